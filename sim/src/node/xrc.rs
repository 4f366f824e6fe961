//! Extended reliable connections: domains, the queue pairs in them that several contexts have open,
//! and the SRQ that a request names.
//!
//! A queue pair of XRC_RECV is of no context. It stands among the others of the node, for the
//! packets that come for it, and lives as long as it is open somewhere; programs know it by the
//! handles of those openings:
//!
//! ```text
//!     context a ── xrcd ── opening ─┐
//!                                   ├── queue pair, in the domain of both xrcds
//!     context b ── xrcd ── opening ─┘
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use verbs_api::behavior::UnknownSrq;
use verbs_api::lab::Syndrome;
use verbs_api::table::{Id, Table};
use verbs_api::{
    AsyncEventType, Capabilities, Cause, Context, Element, Error, ErrorKind, Handle, Object,
    Qp as QpHandle, QpCap, QpInit, QpType, Result, Srq as SrqHandle, SrqInit, Verb,
    Xrcd as XrcdHandle, XrcdInit,
};

use super::qp::Qp;
use super::responder::Refusal;
use super::{InContext, Node, in_use, invalid};

/// What a node has of XRC.
#[derive(Clone, Debug, Default)]
pub(super) struct Xrc {
    domains: Table<Domain>,
    /// The domains of files.
    files: BTreeMap<PathBuf, u32>,
    xrcds: Table<Xrcd>,
    pub(super) openings: Table<Opening>,
    /// By the index of the queue pair.
    targets: BTreeMap<u32, Target>,
}

/// A domain: it belongs to the device, and lives as long as a handle of it.
#[derive(Clone, Debug)]
struct Domain {
    file: Option<PathBuf>,
    xrcds: u32,
}

/// A handle of a domain, in a context.
#[derive(Clone, Debug)]
pub(super) struct Xrcd {
    context: Context,
    domain: u32,
    srqs: u32,
    qps: u32,
}

/// A queue pair of a domain.
#[derive(Clone, Debug)]
struct Target {
    domain: u32,
    /// Indices of its openings, at least one.
    openings: BTreeSet<u32>,
}

/// A handle of a queue pair of a domain, in a context.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    handle: QpHandle,
    xrcd: u32,
    qp: u32,
    async_unacked: u32,
}

/// What an SRQ of XRC has beside.
#[derive(Clone, Copy, Debug)]
pub(super) struct SrqPart {
    xrcd: u32,
    domain: u32,
    /// Where its receives complete.
    pub(super) cq: u32,
}

/// The indices of handles that name openings begin here, above those of all others.
const FIRST_OPENING: u32 = 1_000_000;
const _: () = assert!(super::qp::MAX_QP < FIRST_OPENING);

/// The context of queue pairs that are of none: of no node.
const NO_CONTEXT: Context = Context::from_parts(u32::MAX, 1);

/// In place of what a queue pair of XRC_RECV does not have.
const NONE: u32 = u32::MAX;

/// SRQ numbers are 24 bits, made as those of queue pairs are.
const INDEX_BITS: u32 = 17;

impl InContext for Xrcd {
    fn context(&self) -> Context {
        self.context
    }
}

impl InContext for Opening {
    fn context(&self) -> Context {
        self.handle.context()
    }
}

impl Xrc {
    /// How many handles of domains there are.
    pub(super) fn xrcds(&self) -> u32 {
        self.xrcds.len()
    }

    /// The handles of domains.
    pub(super) fn handles(&self) -> &Table<Xrcd> {
        &self.xrcds
    }

    /// How many handles of queue pairs there are beyond the queue pairs themselves.
    pub(super) fn openings_beyond_one(&self) -> u32 {
        self.openings.len() - self.targets.len() as u32
    }
}

/// Whether a transport acknowledges, and tries again.
pub(super) fn is_reliable(qp_type: QpType) -> bool {
    matches!(qp_type, QpType::Rc | QpType::XrcSend | QpType::XrcRecv)
}

/// The transport of the peer of a queue pair.
pub(super) fn counterpart(qp_type: QpType) -> QpType {
    match qp_type {
        QpType::XrcSend => QpType::XrcRecv,
        QpType::XrcRecv => QpType::XrcSend,
        same => same,
    }
}

/// Where the opening stands in its table that handles of this index name.
pub(super) fn opening_at(index: u32) -> Option<u32> {
    index.checked_sub(FIRST_OPENING)
}

/// The handle that stands in the table of openings.
pub(super) fn opening(qp: QpHandle) -> Option<QpHandle> {
    let index = opening_at(qp.index())?;
    Some(QpHandle::from_parts(qp.context(), index, qp.generation()))
}

fn srq_num(srq: SrqHandle) -> u32 {
    let tag = (srq.generation() - 1) & 0x7f;
    tag << INDEX_BITS | (srq.index() + 1)
}

impl Node {
    /// `ibv_open_xrcd`
    pub fn open_xrcd(&mut self, context: Context, init: &XrcdInit<'_>) -> Result<XrcdHandle> {
        let verb = Verb::OpenXrcd;
        self.find_context(verb, context)?;
        self.check_has_xrc(verb)?;
        let found = init.file.and_then(|file| self.xrc.files.get(file).copied());
        if found.is_some() && init.exclusive {
            return Err(invalid(verb, "the domain of the file", "is there already"));
        }
        if found.is_none() && init.file.is_some() && !init.create {
            let (what, problem) = ("the domain of the file", "is not there");
            let cause = Cause::Argument { what, problem };
            return Err(Error::new(verb, ErrorKind::NotFound, cause));
        }
        let count = self.xrc.xrcds.len();
        self.check_room(verb, "XRC domains", count, self.attr.max_pd)?;
        let domain = found.unwrap_or_else(|| {
            let file = init.file.map(PathBuf::from);
            let of_file = file.clone();
            let domain = self.xrc.domains.insert(|_| Domain { file, xrcds: 0 });
            let entry = of_file.map(|file| (file, domain.index));
            self.xrc.files.extend(entry);
            domain.index
        });
        self.xrc.domains.at_mut(domain).xrcds += 1;
        let id = self.xrc.xrcds.insert(|_| Xrcd {
            context,
            domain,
            srqs: 0,
            qps: 0,
        });
        self.add_object(context, Object::Xrcd, id.index);
        Ok(XrcdHandle::from_parts(context, id.index, id.generation))
    }

    /// `ibv_close_xrcd`
    pub fn close_xrcd(&mut self, xrcd: XrcdHandle) -> Result<()> {
        let verb = Verb::CloseXrcd;
        let index = Self::find(&self.xrc.xrcds, verb, xrcd)?;
        let own = self.xrc.xrcds.at(index);
        for (by, count) in [(Object::Srq, own.srqs), (Object::Qp, own.qps)] {
            if count > 0 {
                return Err(in_use(verb, Object::Xrcd, by, count));
            }
        }
        self.remove_xrcd(index);
        Ok(())
    }

    fn remove_xrcd(&mut self, index: u32) {
        let Xrcd {
            context, domain, ..
        } = self.xrc.xrcds.remove(index);
        self.remove_object(context, Object::Xrcd, index);
        let own = self.xrc.domains.at_mut(domain);
        own.xrcds -= 1;
        if own.xrcds == 0
            && let Some(file) = self.xrc.domains.remove(domain).file
        {
            self.xrc.files.remove(&file);
        }
    }

    pub(super) fn remove_xrcds_of(&mut self, context: Context) {
        for index in self.objects(context, Object::Xrcd) {
            self.remove_xrcd(index);
        }
    }

    pub(super) fn check_has_xrc(&self, verb: Verb) -> Result<()> {
        self.check_has(verb, Capabilities::XRC, "has no XRC")
    }

    // Queue pairs of XRC_RECV

    /// `ibv_create_qp_ex` with a domain.
    pub fn create_xrc_recv_qp(&mut self, xrcd: XrcdHandle) -> Result<QpHandle> {
        let verb = Verb::CreateQp;
        let xrcd = Self::find(&self.xrc.xrcds, verb, xrcd)?;
        self.check_qp_room(verb)?;
        let none = QpInit::new(QpType::XrcRecv, Default::default(), Default::default());
        let init = none.cap(QpCap {
            max_send_wr: 0,
            max_recv_wr: 0,
            max_send_sge: 0,
            max_recv_sge: 0,
            max_inline_data: 0,
        });
        let number_reuse = self.behavior.number_reuse;
        let id = self.qps.insert(|id| {
            let handle = QpHandle::from_parts(NO_CONTEXT, id.index, id.generation);
            Qp::new(handle, number_reuse, init, (NONE, NONE, NONE), None)
        });
        let target = Target {
            domain: self.xrc.xrcds.at(xrcd).domain,
            openings: BTreeSet::new(),
        };
        self.xrc.targets.insert(id.index, target);
        Ok(self.open_target(xrcd, id.index))
    }

    /// `ibv_open_qp`
    pub fn open_qp(&mut self, xrcd: XrcdHandle, qp_num: u32) -> Result<QpHandle> {
        let verb = Verb::OpenQp;
        let xrcd = Self::find(&self.xrc.xrcds, verb, xrcd)?;
        let domain = self.xrc.xrcds.at(xrcd).domain;
        let is_of_domain = |qp: &u32| {
            let target = self.xrc.targets.get(qp);
            target.is_some_and(|target| target.domain == domain)
        };
        let Some(qp) = self.qp_of_number(qp_num).filter(is_of_domain) else {
            return Err(invalid(verb, "qp_num", "is of no target in the domain"));
        };
        let count = self.xrc.openings.len();
        self.check_room(verb, "open queue pairs", count, self.attr.max_qp)?;
        Ok(self.open_target(xrcd, qp))
    }

    fn open_target(&mut self, xrcd: u32, qp: u32) -> QpHandle {
        let own = self.xrc.xrcds.at_mut(xrcd);
        own.qps += 1;
        let context = own.context;
        let handle = |Id { index, generation }| {
            QpHandle::from_parts(context, FIRST_OPENING + index, generation)
        };
        let id = self.xrc.openings.insert(|id| Opening {
            handle: handle(id),
            xrcd,
            qp,
            async_unacked: 0,
        });
        let target = self.xrc.targets.get_mut(&qp).expect("it is a target");
        target.openings.insert(id.index);
        self.add_object(context, Object::Qp, handle(id).index());
        handle(id)
    }

    /// `ibv_destroy_qp` of an opening; with the last the queue pair goes.
    pub(super) fn destroy_opening(&mut self, verb: Verb, opening: QpHandle) -> Result<()> {
        let index = Self::find(&self.xrc.openings, verb, opening)?;
        let events = self.xrc.openings.at(index).async_unacked;
        if events > 0 {
            let object = Object::Qp;
            let cause = Cause::Unacknowledged { object, events };
            return Err(Error::new(verb, ErrorKind::WouldBlock, cause));
        }
        self.close_target(index);
        Ok(())
    }

    pub(super) fn close_target(&mut self, index: u32) {
        let Opening {
            handle, xrcd, qp, ..
        } = self.xrc.openings.remove(index);
        self.remove_object(handle.context(), Object::Qp, handle.index());
        self.xrc.xrcds.at_mut(xrcd).qps -= 1;
        self.discard_async(handle.context(), Element::Qp(handle));
        let target = self.xrc.targets.get_mut(&qp).expect("it is a target");
        target.openings.remove(&index);
        if target.openings.is_empty() {
            self.xrc.targets.remove(&qp);
            if let Some(taken) = self.qps.remove(qp).taken {
                self.release_shared(taken);
            }
            self.place_late();
        }
        self.news = true;
    }

    /// The queue pair that a handle names, by itself or by an opening.
    #[inline]
    pub(super) fn find_qp(&self, verb: Verb, qp: QpHandle) -> Result<u32> {
        match opening(qp) {
            None => Self::find(&self.qps, verb, qp),
            Some(opening) => {
                let index = Self::find(&self.xrc.openings, verb, opening)?;
                Ok(self.xrc.openings.at(index).qp)
            }
        }
    }

    /// How many events of a queue pair were read by this handle and not acknowledged.
    pub(super) fn qp_unacked(&mut self, verb: Verb, qp: QpHandle) -> Result<&mut u32> {
        match opening(qp) {
            None => {
                let index = Self::find(&self.qps, verb, qp)?;
                Ok(&mut self.qps.at_mut(index).async_unacked)
            }
            Some(opening) => {
                let index = Self::find(&self.xrc.openings, verb, opening)?;
                Ok(&mut self.xrc.openings.at_mut(index).async_unacked)
            }
        }
    }

    /// Raises an event about a queue pair: in every context that has it open.
    pub(super) fn raise_of_qp(&mut self, index: u32, event: AsyncEventType) {
        let Some(target) = self.xrc.targets.get(&index) else {
            let qp = self.qps.at(index).handle;
            return self.raise(qp.context(), event, Element::Qp(qp));
        };
        let openings = target.openings.iter();
        let handles: Vec<QpHandle> = openings
            .map(|opening| self.xrc.openings.at(*opening).handle)
            .collect();
        for qp in handles {
            self.raise(qp.context(), event, Element::Qp(qp));
        }
    }

    // SRQs

    /// What an SRQ is to have of XRC.
    pub(super) fn check_xrc_srq(
        &self,
        verb: Verb,
        context: Context,
        init: &SrqInit,
    ) -> Result<Option<SrqPart>> {
        let Some(xrc) = init.xrc else {
            return Ok(None);
        };
        self.check_has_xrc(verb)?;
        let xrcd = Self::find_in(&self.xrc.xrcds, verb, context, xrc.xrcd)?;
        let cq = Self::find_in(&self.cqs, verb, context, xrc.cq)?;
        let domain = self.xrc.xrcds.at(xrcd).domain;
        Ok(Some(SrqPart { xrcd, domain, cq }))
    }

    /// Domain and CQ are in use.
    pub(super) fn enter_xrc_srq(&mut self, part: SrqPart) {
        self.xrc.xrcds.at_mut(part.xrcd).srqs += 1;
        self.cqs.at_mut(part.cq).srqs += 1;
    }

    pub(super) fn leave_xrc_srq(&mut self, part: SrqPart) {
        self.xrc.xrcds.at_mut(part.xrcd).srqs -= 1;
        self.cqs.at_mut(part.cq).srqs -= 1;
    }

    /// `ibv_get_srq_num`
    pub fn srq_num(&self, srq: SrqHandle) -> Result<u32> {
        let verb = Verb::GetSrqNum;
        let index = Self::find(&self.srqs, verb, srq)?;
        match self.srqs.at(index).xrc {
            Some(_) => Ok(srq_num(srq)),
            None => Err(invalid(verb, "srq", "is not of XRC, and has no number")),
        }
    }

    /// Finds the SRQ that a request names: its receives, and the memory of its domain, are what the
    /// request is for (XRC-04).
    pub(super) fn steer(&mut self, index: u32, remote_srqn: u32) -> Result<(), Refusal> {
        let domain = self.xrc.targets.get(&index).map(|target| target.domain);
        let slot = (remote_srqn & ((1 << INDEX_BITS) - 1)).checked_sub(1);
        let srq = slot.and_then(|slot| self.srqs.peek(slot));
        let is_meant = |srq: &super::srq::Srq| {
            let own = srq.xrc.map(|part| part.domain);
            own.is_some() && own == domain && srq_num(srq.handle) == remote_srqn
        };
        let Some(srq) = srq.filter(|srq| is_meant(srq)) else {
            return Err(self.unknown_srq());
        };
        let (srq, pd) = (srq.handle.index(), srq.pd);
        let qp = self.qps.at_mut(index);
        (qp.srq, qp.pd) = (Some(srq), pd);
        Ok(())
    }

    /// The domain has no such SRQ (XRC-06).
    fn unknown_srq(&self) -> Refusal {
        let syndrome = match self.behavior.xrc_unknown_srq {
            UnknownSrq::RemOpErr => Syndrome::NakRemoteOperation,
            UnknownSrq::RemInvReqErr | _ => Syndrome::NakInvalidRequest,
        };
        Refusal::Fault {
            syndrome: Some(syndrome),
            recv: None,
            event: None,
        }
    }
}
