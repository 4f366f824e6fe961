//! The objects of a program under their numbers.

use std::collections::{BTreeMap, BTreeSet};

use verbs_api::{
    Ah, AsyncEvent, CompChannel, Context, Cq, Dm, Handle, Mr, MrAttr, Pd, Qp, Srq, Td,
};

use super::call::Number;

/// Objects of one kind.
#[derive(Debug)]
pub(super) struct Slots<H> {
    /// All that ever lived, in the order in which they were made, and whether they do.
    ever: Vec<(Number, H, bool)>,
}

impl<H> Default for Slots<H> {
    fn default() -> Self {
        Self { ever: Vec::new() }
    }
}

impl<H: Copy + Default + PartialEq> Slots<H> {
    /// The last that had this number, or the zero handle.
    pub(super) fn get(&self, number: Number) -> H {
        let last = self.ever.iter().rev().find(|(of, ..)| *of == number);
        last.map_or_else(H::default, |(_, made, _)| *made)
    }

    /// A new one.
    pub(super) fn put(&mut self, number: Number, made: H) {
        self.ever.push((number, made, true));
    }

    /// It does not live any more.
    pub(super) fn gone(&mut self, gone: H) {
        self.gone_if(|made| made == gone);
    }

    pub(super) fn gone_if(&mut self, is_gone: impl Fn(H) -> bool) {
        for (_, made, lives) in &mut self.ever {
            *lives &= !is_gone(*made);
        }
    }

    /// All that live.
    pub(super) fn live(&self) -> Vec<(Number, H)> {
        let all = self.ever.iter();
        all.filter_map(|(number, made, lives)| lives.then_some((*number, *made)))
            .collect()
    }

    pub(super) fn number(&self, of: H) -> Option<Number> {
        self.number_by(|made| made == of)
    }

    /// The number that the last that fits had.
    pub(super) fn number_by(&self, fits: impl Fn(H) -> bool) -> Option<Number> {
        let found = self.ever.iter().rev().find(|(_, made, _)| fits(*made));
        found.map(|(number, ..)| *number)
    }
}

/// A region, with its place and keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct MrMade {
    pub(super) mr: Mr,
    pub(super) attr: MrAttr,
    /// The device memory that it is a part of, and the offset of its first byte there.
    pub(super) dm: Option<(Dm, u32)>,
}

impl MrMade {
    /// What has its bytes, and the offset of its first byte there.
    pub(super) fn memory(&self) -> (Memory, u32) {
        self.dm.map_or((Memory::Of(self.mr), 0), |(dm, offset)| {
            (Memory::Device(dm), offset)
        })
    }
}

/// What has bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Memory {
    /// A region has its own.
    Of(Mr),
    /// The regions of a device memory share its bytes.
    Device(Dm),
}

/// A device memory, and its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DmMade {
    pub(super) dm: Dm,
    pub(super) length: u32,
}

/// A queue pair, and what is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QpMade {
    pub(super) qp: Qp,
    pub(super) qp_num: u32,
    pub(super) is_ud: bool,
}

/// All objects of a program.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) contexts: Slots<Context>,
    pub(super) pds: Slots<Pd>,
    pub(super) tds: Slots<Td>,
    pub(super) mrs: Slots<MrMade>,
    pub(super) dms: Slots<DmMade>,
    pub(super) channels: Slots<CompChannel>,
    pub(super) cqs: Slots<Cq>,
    pub(super) srqs: Slots<Srq>,
    /// Those that a queue pair of datagrams takes receives from: a datagram may lie there
    /// unreported, with its completion lost.
    pub(super) datagram_srqs: BTreeSet<Srq>,
    pub(super) qps: Slots<QpMade>,
    pub(super) ahs: Slots<Ah>,
    /// The device of each context.
    pub(super) device_of: BTreeMap<Context, usize>,
    /// Events that were read and not acknowledged.
    pub(super) unacked: BTreeMap<Cq, u32>,
    /// Asynchronous events that were read and not acknowledged.
    pub(super) unacked_async: Vec<(Context, AsyncEvent)>,
}

impl Objects {
    /// Place and keys of the region of this number; all zero if there never was one.
    pub(super) fn attr(&self, mr: Number) -> MrAttr {
        self.mrs.get(mr).attr
    }

    /// The number of the QP with this QP number on a device, and whether it is of UD.
    pub(super) fn qp_of(&self, qp_num: u32, device: Option<usize>) -> Option<(Number, bool)> {
        let here = |made: &QpMade| {
            device.is_none() || self.device_of.get(&made.qp.context()).copied() == device
        };
        let all = self.qps.ever.iter().rev();
        let found = all
            .filter(|(_, made, _)| made.qp_num == qp_num)
            .find(|(_, made, _)| here(made));
        found.map(|(number, made, _)| (*number, made.is_ud))
    }

    /// A context is closed, with all its objects.
    pub(super) fn closed(&mut self, context: Context) {
        self.contexts.gone(context);
        self.pds.gone_if(|pd| pd.context() == context);
        self.tds.gone_if(|td| td.context() == context);
        self.mrs.gone_if(|made| made.mr.context() == context);
        self.dms.gone_if(|made| made.dm.context() == context);
        self.channels
            .gone_if(|channel| channel.context() == context);
        self.cqs.gone_if(|cq| cq.context() == context);
        self.srqs.gone_if(|srq| srq.context() == context);
        self.qps.gone_if(|made| made.qp.context() == context);
        self.ahs.gone_if(|ah| ah.context() == context);
        self.unacked.retain(|cq, _| cq.context() != context);
        self.unacked_async.retain(|(of, _)| *of != context);
    }
}
