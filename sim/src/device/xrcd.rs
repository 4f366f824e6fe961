//! Extended reliable connections (XRC): domains, and the handles by which programs know an XRC_RECV
//! queue pair.
//!
//! An XRC_RECV queue pair does not belong to a context. It is in the device's table of queue pairs,
//! so that it receives packets, and it exists as long as it is open somewhere. Programs know it by
//! the handles of those openings:
//!
//! ```text
//!     context a ── xrcd ── opening ─┐
//!                                   ├── queue pair, in the domain of both xrcds
//!     context b ── xrcd ── opening ─┘
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use verbs_api::table::{Id, Table};
use verbs_api::{
    Capabilities, Context, Element, ErrorKind, Handle, Object, Qp as QpHandle, Srq as SrqHandle,
    SrqInit, Xrcd as XrcdHandle, XrcdInit,
};

use super::Device;
use super::check::{check_unused, find, find_in, in_context, invalid};
use super::refusal::{Refusal, Result};
use super::wakeup::Wakeup;

/// The XRC objects of a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Xrcds {
    domains: Table<Domain>,
    /// The domains of files.
    files: BTreeMap<PathBuf, u32>,
    pub(crate) table: Table<Xrcd>,
    pub(crate) openings: Table<Opening>,
}

/// A domain. It belongs to the device, and exists as long as a handle of it.
#[derive(Clone, Debug)]
struct Domain {
    file: Option<PathBuf>,
    xrcds: u32,
}

/// A handle of a domain in a context.
#[derive(Clone, Debug)]
pub(crate) struct Xrcd {
    context: Context,
    domain: u32,
    srqs: u32,
    qps: u32,
}

/// A handle of a queue pair of a domain, in a context.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    handle: QpHandle,
    xrcd: u32,
    /// The slot of the queue pair.
    pub(crate) qp: u32,
}

/// Additional data of an XRC SRQ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SrqPart {
    xrcd: u32,
    /// The CQ in which its receives complete.
    pub(crate) cq: u32,
}

/// The first index of handles that name openings. All other indices are smaller.
const FIRST_OPENING: u32 = 1_000_000;
const _: () = assert!(verbs_api::profile::DeviceLimits::SPEC.max_qp < FIRST_OPENING);

/// SRQ numbers have 24 bits, and are built like those of queue pairs.
const INDEX_BITS: u32 = 17;

in_context!(Xrcd, context);
in_context!(Opening, handle.context());

/// The slot in the table of openings, if a handle with this index names an opening.
pub(crate) fn opening_at(index: u32) -> Option<u32> {
    index.checked_sub(FIRST_OPENING)
}

/// The handle as the table of openings has it.
pub(crate) fn opening(qp: QpHandle) -> Option<QpHandle> {
    let index = opening_at(qp.index())?;
    Some(QpHandle::from_parts(qp.context(), index, qp.generation()))
}

fn srq_num(srq: SrqHandle) -> u32 {
    let tag = (srq.generation() - 1) & 0x7f;
    tag << INDEX_BITS | (srq.index() + 1)
}

impl Device {
    /// `ibv_open_xrcd`
    pub(crate) fn open_xrcd(
        &mut self,
        context: Context,
        init: &XrcdInit<'_>,
    ) -> Result<XrcdHandle> {
        self.check_has_xrc()?;
        let of_file = |file| self.xrcds.files.get(file).copied();
        let found = init.file.and_then(of_file);
        // The flags have the meaning of `open` (XRC-01).
        if found.is_some() && init.exclusive {
            return Err(invalid("the domain of the file", "is there already"));
        }
        if found.is_none() && init.file.is_some() && !init.create {
            let (kind, what) = (ErrorKind::NotFound, "the domain of the file");
            return Err(Refusal::argument(kind, what, "is not there"));
        }
        let max = self.base.attr.max_pd;
        self.base
            .check_room("XRC domains", &self.xrcds.table, max)?;
        // Without a file each call creates a private domain.
        let domain = found.unwrap_or_else(|| {
            let file = init.file.map(PathBuf::from);
            let of_file = file.clone().into_iter();
            let domain = self.xrcds.domains.insert(|_| Domain { file, xrcds: 0 });
            self.xrcds
                .files
                .extend(of_file.map(|file| (file, domain.index)));
            domain.index
        });
        self.xrcds.domains.at_mut(domain).xrcds += 1;
        let id = self.xrcds.table.insert(|_| Xrcd {
            context,
            domain,
            srqs: 0,
            qps: 0,
        });
        Ok(self.base.added(context, id, XrcdHandle::from_parts))
    }

    /// `ibv_close_xrcd`
    pub(crate) fn close_xrcd(&mut self, xrcd: XrcdHandle) -> Result<()> {
        let index = find(&self.xrcds.table, xrcd)?;
        let own = self.xrcds.table.at(index);
        let users = [(Object::Srq, own.srqs), (Object::Qp, own.qps)];
        check_unused(Object::Xrcd, &users)?;
        self.remove_xrcd(index);
        Ok(())
    }

    pub(super) fn remove_xrcd(&mut self, index: u32) {
        let xrcd = self.xrcds.table.remove(index);
        self.base.remove_object(xrcd.context, Object::Xrcd, index);
        let own = self.xrcds.domains.at_mut(xrcd.domain);
        own.xrcds -= 1;
        // The domain lives as long as one of its handles.
        if own.xrcds == 0
            && let Some(file) = self.xrcds.domains.remove(xrcd.domain).file
        {
            self.xrcds.files.remove(&file);
        }
    }

    fn check_has_xrc(&self) -> Result<()> {
        self.base.check_has(Capabilities::XRC, "has no XRC")
    }

    // Handles of XRC_RECV queue pairs

    /// The domain of a handle.
    pub(crate) fn domain_of(&self, xrcd: XrcdHandle) -> Result<u32> {
        let xrcd = find(&self.xrcds.table, xrcd)?;
        Ok(self.xrcds.table.at(xrcd).domain)
    }

    /// Adds an opening of a queue pair. Returns its index and its handle.
    pub(crate) fn add_opening(&mut self, xrcd: XrcdHandle, qp: u32) -> (u32, QpHandle) {
        let xrcd = xrcd.index();
        let own = self.xrcds.table.at_mut(xrcd);
        own.qps += 1;
        let context = own.context;
        let handle = |Id { index, generation }| {
            QpHandle::from_parts(context, FIRST_OPENING + index, generation)
        };
        let id = self.xrcds.openings.insert(|id| Opening {
            handle: handle(id),
            xrcd,
            qp,
        });
        let handle = handle(id);
        self.base.add_object(context, Object::Qp, handle.index());
        (id.index, handle)
    }

    /// Closes an opening. Returns the slot of its queue pair.
    pub(crate) fn remove_opening(&mut self, index: u32) -> u32 {
        let Opening { handle, xrcd, qp } = self.xrcds.openings.remove(index);
        let context = handle.context();
        self.base.remove_object(context, Object::Qp, handle.index());
        self.xrcds.table.at_mut(xrcd).qps -= 1;
        self.base.discard_async(Element::Qp(handle));
        // A thread may wait for events of this handle, which are discarded.
        self.base
            .wakeups
            .add(Wakeup::Acknowledged(Element::Qp(handle)));
        qp
    }

    // SRQs

    /// Checks and returns the additional data of an XRC SRQ.
    pub(super) fn check_xrc_srq(
        &self,
        context: Context,
        init: &SrqInit,
    ) -> Result<Option<SrqPart>> {
        let Some(xrc) = init.xrc else {
            return Ok(None);
        };
        self.check_has_xrc()?;
        let xrcd = find_in(&self.xrcds.table, context, xrc.xrcd)?;
        let cq = find_in(&self.cqs.table, context, xrc.cq)?;
        Ok(Some(SrqPart { xrcd, cq }))
    }

    /// Counts the SRQ as a user of its domain and its CQ.
    pub(super) fn enter_xrc_srq(&mut self, part: SrqPart) {
        self.xrcds.table.at_mut(part.xrcd).srqs += 1;
        self.cqs.table.at_mut(part.cq).srqs += 1;
    }

    pub(crate) fn leave_xrc_srq(&mut self, part: SrqPart) {
        self.xrcds.table.at_mut(part.xrcd).srqs -= 1;
        self.cqs.table.at_mut(part.cq).srqs -= 1;
    }

    /// `ibv_get_srq_num`
    pub(crate) fn srq_num(&self, srq: SrqHandle) -> Result<u32> {
        let index = find(&self.srqs, srq)?;
        match self.srqs.at(index).xrc {
            Some(_) => Ok(srq_num(srq)),
            None => Err(invalid("srq", "is not of XRC, and has no number")),
        }
    }

    /// The SRQ with this number in a domain, and its protection domain.
    pub(crate) fn srq_of_number(&self, number: u32, domain: u32) -> Option<(u32, u32)> {
        let slot = (number & ((1 << INDEX_BITS) - 1)).checked_sub(1)?;
        let srq = self.srqs.peek(slot)?;
        let own = self.xrcds.table.at(srq.xrc?.xrcd).domain;
        // The slot may belong to an SRQ of another domain, or to a newer one.
        (own == domain && srq_num(srq.handle) == number).then_some((slot, srq.pd))
    }
}
