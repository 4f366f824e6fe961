//! Shared receive queues: life, posting, the limit, and the receives that messages take.
//!
//! Receives are taken in the order of posting and complete in any order, each on the QP that took it.
//! As with other queues, their slots are taken and their bytes the device's until their completions
//! are polled:
//!
//! ```text
//!     | taken: under way, or done and not polled | waiting ... |
//!                                                ^ next        ^ end
//! ```

use std::collections::BTreeMap;

use smallvec::SmallVec;
use verbs_api::behavior::LimitReadback;
use verbs_api::table::Id;
use verbs_api::{
    AsyncEventType, Cause, Context, Element, Error, ErrorKind, Handle, Object, Pd as PdHandle,
    PostError, RecvWr, Result, Srq as SrqHandle, SrqAttr, SrqAttrMask, SrqInit, Verb,
};

use super::claim::Queue;
use super::post::{check_sges, post_each};
use super::qp::Recv;
use super::xrc::SrqPart;
use super::{InContext, Node, in_range, in_use, invalid};

/// A shared receive queue.
#[derive(Clone, Debug)]
pub(super) struct Srq {
    pub(super) handle: SrqHandle,
    pub(super) pd: u32,
    init: SrqInit,
    attr: SrqAttr,
    /// The event of the limit is still to come.
    armed: bool,
    /// By their numbers, which are given in the order of posting. What is done and polled is gone.
    recvs: BTreeMap<u64, Recv>,
    next: u64,
    end: u64,
    /// The number after the last one that `fresh` has given.
    given: u64,
    /// What it has beside if it is of XRC.
    pub(super) xrc: Option<SrqPart>,
    /// QPs that use it.
    pub(super) users: u32,
    pub(super) async_unacked: u32,
    failed: bool,
}

/// A receive that a QP has taken, for the message that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) srq: Id,
    pub(super) seq: u64,
}

/// Why no receive was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoReceive {
    Empty,
    Failed,
}

impl InContext for Srq {
    fn context(&self) -> Context {
        self.handle.context()
    }
}

impl Srq {
    fn waiting(&self) -> u64 {
        self.end - self.next
    }

    /// A receive whose slot is taken.
    pub(super) fn get(&self, seq: u64) -> &Recv {
        &self.recvs[&seq]
    }

    /// How many slots are taken.
    pub(super) fn taken(&self) -> usize {
        self.recvs.len()
    }

    /// The receive of a number, if its slot is still taken.
    pub(super) fn find(&self, seq: u64) -> Option<&Recv> {
        self.recvs.get(&seq)
    }

    /// The receives that it has not given yet, with their numbers.
    pub(super) fn fresh(&mut self) -> impl Iterator<Item = (u64, &Recv)> {
        let first = std::mem::replace(&mut self.given, self.end);
        self.recvs.range(first..).map(|(seq, recv)| (*seq, recv))
    }
}

impl Node {
    /// `ibv_create_srq`
    pub fn create_srq(&mut self, pd: PdHandle, init: &SrqInit) -> Result<SrqHandle> {
        let verb = Verb::CreateSrq;
        let pd_index = Self::find(&self.pds, verb, pd)?;
        let max = i64::from(self.attr.max_srq_wr);
        in_range(verb, "max_wr", init.attr.max_wr.into(), 1, max)?;
        let max = i64::from(self.attr.max_srq_sge);
        in_range(verb, "max_sge", init.attr.max_sge.into(), 0, max)?;
        let (count, max) = (self.srqs.len(), self.attr.max_srq);
        self.check_room(verb, "shared receive queues", count, max)?;
        let context = pd.context();
        let xrc = self.check_xrc_srq(verb, context, init)?;
        let limit = match self.behavior.srq_limit_at_creation {
            true => init.attr.srq_limit,
            false => 0,
        };
        let max_wr = self.behavior.wr_rounding.up(init.attr.max_wr);
        let id = self.srqs.insert(|id| Srq {
            handle: SrqHandle::from_parts(context, id.index, id.generation),
            pd: pd_index,
            init: *init,
            attr: SrqAttr {
                max_wr,
                srq_limit: limit,
                ..init.attr
            },
            armed: limit > 0,
            recvs: BTreeMap::new(),
            next: 0,
            end: 0,
            given: 0,
            xrc,
            users: 0,
            async_unacked: 0,
            failed: false,
        });
        if let Some(part) = xrc {
            self.enter_xrc_srq(part);
        }
        self.pds.at_mut(pd_index).srqs += 1;
        self.add_object(context, Object::Srq, id.index);
        Ok(SrqHandle::from_parts(context, id.index, id.generation))
    }

    /// What it was made with.
    pub fn srq_init(&self, srq: SrqHandle) -> Result<SrqInit> {
        let index = Self::find(&self.srqs, Verb::QuerySrq, srq)?;
        Ok(self.srqs.at(index).init)
    }

    /// `ibv_query_srq`
    pub fn query_srq(&self, srq: SrqHandle) -> Result<SrqAttr> {
        let verb = Verb::QuerySrq;
        let index = Self::find(&self.srqs, verb, srq)?;
        if !self.behavior.srq_query {
            return Err(cannot(verb, "cannot tell of SRQs"));
        }
        Ok(self.srqs.at(index).attr)
    }

    /// `ibv_modify_srq`. Everything is checked before anything changes (SRQ-10).
    pub fn modify_srq(&mut self, srq: SrqHandle, attr: &SrqAttr, mask: SrqAttrMask) -> Result<()> {
        let verb = Verb::ModifySrq;
        let index = Self::find(&self.srqs, verb, srq)?;
        let own = self.srqs.at(index);
        if own.failed {
            return Err(failed(verb));
        }
        if !(mask - (SrqAttrMask::MAX_WR | SrqAttrMask::LIMIT)).is_empty() {
            return Err(invalid(
                verb,
                "mask",
                "names an attribute that an srq does not have",
            ));
        }
        let mut new = own.attr;
        if mask.contains(SrqAttrMask::MAX_WR) {
            if !self.behavior.srq_resize {
                return Err(cannot(verb, "cannot resize SRQs"));
            }
            let least = own.recvs.len().max(1) as i64;
            let max = self.attr.max_srq_wr.into();
            in_range(verb, "max_wr", attr.max_wr.into(), least, max)?;
            new.max_wr = self.behavior.wr_rounding.up(attr.max_wr);
        }
        let sets_limit = mask.contains(SrqAttrMask::LIMIT);
        if sets_limit {
            new.srq_limit = attr.srq_limit;
        }
        let (limit, most) = (i64::from(new.srq_limit), i64::from(new.max_wr));
        in_range(verb, "srq_limit", limit, 0, most)?;
        let own = self.srqs.at_mut(index);
        own.attr = new;
        if sets_limit {
            own.armed = new.srq_limit > 0;
            if self.behavior.srq_limit_at_once {
                self.check_srq_limit(index);
            }
        }
        Ok(())
    }

    /// `ibv_destroy_srq` that does not wait.
    pub fn destroy_srq(&mut self, srq: SrqHandle) -> Result<()> {
        let verb = Verb::DestroySrq;
        let index = Self::find(&self.srqs, verb, srq)?;
        let own = self.srqs.at(index);
        if own.users > 0 {
            return Err(in_use(verb, Object::Srq, Object::Qp, own.users));
        }
        if own.async_unacked > 0 {
            let cause = Cause::Unacknowledged {
                object: Object::Srq,
                events: own.async_unacked,
            };
            return Err(Error::new(verb, ErrorKind::WouldBlock, cause));
        }
        self.remove_srq(index);
        Ok(())
    }

    fn remove_srq(&mut self, index: u32) {
        let srq = self.srqs.remove(index);
        self.remove_object(srq.handle.context(), Object::Srq, index);
        if let Some(part) = srq.xrc {
            self.leave_xrc_srq(part);
        }
        let pd = self.pds.at_mut(srq.pd);
        pd.srqs -= 1;
        pd.posted -= srq.recvs.len() as u32;
        self.discard_async(srq.handle.context(), Element::Srq(srq.handle));
        self.place_late();
        self.news = true;
    }

    pub(super) fn remove_srqs_of(&mut self, context: Context) {
        for index in self.objects(context, Object::Srq) {
            self.remove_srq(index);
        }
    }

    /// `ibv_post_srq_recv`
    pub fn post_srq_recv(&mut self, srq: SrqHandle, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let index = Self::find(&self.srqs, Verb::PostSrqRecv, srq)
            .map_err(|error| PostError::new(0, error))?;
        let posted = post_each(list, |wr| self.push_srq_recv(index, wr));
        posted.map_err(|error| self.as_returned(error))
    }

    fn push_srq_recv(&mut self, index: u32, wr: &RecvWr<'_>) -> Result<()> {
        let verb = Verb::PostSrqRecv;
        let srq = self.srqs.at_mut(index);
        if srq.failed {
            return Err(failed(verb));
        }
        if srq.recvs.len() >= srq.attr.max_wr as usize {
            let cause = Cause::QueueFull {
                queue: "shared receive queue",
                capacity: srq.attr.max_wr,
            };
            return Err(Error::new(verb, ErrorKind::NoMemory, cause));
        }
        check_sges(verb, wr.sg_list, srq.attr.max_sge, ErrorKind::Invalid)?;
        let recv = Recv {
            wr_id: wr.wr_id,
            list: SmallVec::from_slice(wr.sg_list),
        };
        let is_fresh = srq.given == srq.end;
        srq.recvs.insert(srq.end, recv);
        srq.end += 1;
        self.pds.at_mut(srq.pd).posted += 1;
        if is_fresh {
            self.has_fresh_work(Queue::Shared(index));
        }
        Ok(())
    }

    /// Makes an SRQ fail, and raises `SRQ_ERR` (SRQ-17).
    pub(crate) fn fail_srq(&mut self, srq: SrqHandle) -> Result<()> {
        let index = Self::find(&self.srqs, Verb::Lab, srq)?;
        if !std::mem::replace(&mut self.srqs.at_mut(index).failed, true) {
            let (context, element) = (srq.context(), Element::Srq(srq));
            self.raise(context, AsyncEventType::SrqErr, element);
        }
        Ok(())
    }

    /// The oldest receive that waits in an SRQ.
    pub(super) fn first_waiting(&self, srq: u32) -> Result<&Recv, NoReceive> {
        let srq = self.srqs.at(srq);
        match srq.recvs.get(&srq.next) {
            _ if srq.failed => Err(NoReceive::Failed),
            recv => recv.ok_or(NoReceive::Empty),
        }
    }

    /// A QP takes the oldest receive of an SRQ, unless it has one already.
    pub(super) fn take_shared(&mut self, qp: u32, srq: u32) -> Result<(), NoReceive> {
        if self.qps.at(qp).taken.is_some() {
            return Ok(());
        }
        self.first_waiting(srq)?;
        let own = self.srqs.at_mut(srq);
        let taken = Taken {
            srq: Id {
                index: srq,
                generation: own.handle.generation(),
            },
            seq: own.next,
        };
        own.next += 1;
        self.qps.at_mut(qp).taken = Some(taken);
        self.check_srq_limit(srq);
        Ok(())
    }

    /// Raises `SRQ_LIMIT_REACHED`, once, when fewer receives wait than the limit (SRQ-05, -06).
    fn check_srq_limit(&mut self, index: u32) {
        let readback = self.behavior.srq_limit_readback;
        let srq = self.srqs.at_mut(index);
        if !srq.armed || srq.waiting() >= srq.attr.srq_limit.into() {
            return;
        }
        srq.armed = false;
        if readback == LimitReadback::Zero {
            srq.attr.srq_limit = 0;
        }
        let srq = srq.handle;
        let (context, element) = (srq.context(), Element::Srq(srq));
        self.raise(context, AsyncEventType::SrqLimitReached, element);
    }

    /// The SRQ of a receive that was taken, if it is still there.
    pub(super) fn srq_of(&self, taken: Taken) -> Option<&Srq> {
        let srq = self.srqs.peek(taken.srq.index);
        srq.filter(|srq| srq.handle.generation() == taken.srq.generation)
    }

    /// The domain that the memory of a receive must be of: the SRQ's, not the QP's (SRQ-12).
    pub(super) fn pd_of_shared(&self, qp: u32, srq: &Srq) -> u32 {
        match self.behavior.srq_checks_qp_pd {
            true => self.qps.at(qp).pd,
            false => srq.pd,
        }
    }

    /// Nothing will be done with a receive any more: its slot is free.
    pub(super) fn release_shared(&mut self, taken: Taken) {
        if self.srq_of(taken).is_none() {
            return;
        }
        let srq = self.srqs.at_mut(taken.srq.index);
        if srq.recvs.remove(&taken.seq).is_some() {
            self.pds.at_mut(srq.pd).posted -= 1;
        }
    }
}

fn cannot(verb: Verb, problem: &'static str) -> Error {
    let what = "the device";
    Error::new(
        verb,
        ErrorKind::NotSupported,
        Cause::Argument { what, problem },
    )
}

fn failed(verb: Verb) -> Error {
    invalid(verb, "srq", "has failed")
}
