//! Shared receive queues: life, posting, the limit, and the receives that messages take.
//!
//! Receives are taken in the order of posting and complete in any order, each on the QP that took
//! it. As with other queues, their slots are in use and their bytes belong to the device until
//! their completions are polled:
//!
//! ```text
//!     | taken: under way, or done and not polled | waiting ... |
//!                                                ^ next        ^ end
//! ```

use std::collections::BTreeMap;

use verbs_api::behavior::LimitReadback;
use verbs_api::site::Site;
use verbs_api::table::Id;
use verbs_api::{
    AsyncEventType, Capabilities, Element, ErrorKind, FullQueue, Handle, Object, Pd as PdHandle,
    RecvWr, Srq as SrqHandle, SrqAttr, SrqAttrMask, SrqInit,
};

use super::Device;
use super::check::{
    check_acknowledged, check_sges, check_unused, find, in_context, in_range, invalid, lacks,
    post_each,
};
use super::claim::ClaimedQueue;
use super::refusal::{PostRefusal, Refusal, Result};
use super::wakeup::Wakeup;
use super::work::Recv;
use super::xrcd::SrqPart;

/// A shared receive queue.
#[derive(Clone, Debug)]
pub(crate) struct Srq {
    pub(crate) handle: SrqHandle,
    pub(crate) pd: u32,
    init: SrqInit,
    attr: SrqAttr,
    /// Whether the event of the limit is still to be raised.
    armed: bool,
    /// Where the limit was set.
    pub(crate) limit_site: Option<Site>,
    /// Whether a message has found no receive since the limit was set.
    pub(crate) is_dry: bool,
    /// The receives whose slots are in use, by their numbers, which follow the order of posting.
    /// Receives whose completions were polled are removed.
    pub(crate) recvs: BTreeMap<u64, Recv>,
    next: u64,
    end: u64,
    /// The number after the last one that `fresh` returned.
    given: u64,
    /// Additional data of an XRC SRQ.
    pub(crate) xrc: Option<SrqPart>,
    /// The number of QPs that use it.
    pub(crate) users: u32,
    /// Whether the test controls have made it fail (SRQ-17).
    pub(crate) failed: bool,
}

/// A receive that a QP has taken for an arriving message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) srq: Id,
    pub(crate) seq: u64,
}

/// Why no receive was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoReceive {
    Empty,
    Failed,
}

in_context!(Srq, handle.context());

impl Srq {
    fn waiting(&self) -> u64 {
        self.end - self.next
    }

    /// Whether the event of its limit is still to come.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn is_armed(&self) -> bool {
        self.armed
    }

    /// The oldest receive that waits.
    pub(crate) fn first_waiting(&self) -> Result<&Recv, NoReceive> {
        match self.recvs.get(&self.next) {
            // A failed SRQ has no receives for messages (SRQ-17).
            _ if self.failed => Err(NoReceive::Failed),
            recv => recv.ok_or(NoReceive::Empty),
        }
    }

    /// The receives that it has not returned yet, with their numbers.
    pub(crate) fn fresh(&mut self) -> impl Iterator<Item = (u64, &Recv)> {
        let first = std::mem::replace(&mut self.given, self.end);
        self.recvs.range(first..).map(|(seq, recv)| (*seq, recv))
    }
}

impl Device {
    /// `ibv_create_srq`
    pub(crate) fn create_srq(&mut self, pd: PdHandle, init: &SrqInit) -> Result<SrqHandle> {
        let pd_index = self.domains.find_pd(&self.base, pd)?;
        self.base.check_has(Capabilities::SRQ, "has no SRQs")?;
        let max = i64::from(self.base.attr.max_srq_wr);
        in_range("max_wr", init.attr.max_wr.into(), 1, max)?;
        let max = i64::from(self.base.attr.max_srq_sge);
        in_range("max_sge", init.attr.max_sge.into(), 0, max)?;
        let max = self.base.attr.max_srq;
        self.base
            .check_room("shared receive queues", &self.srqs, max)?;
        let context = pd.context();
        let xrc = self.check_xrc_srq(context, init)?;
        // The manual says that the limit is ignored at creation, but some drivers set it.
        let limit = if self.base.behavior.srq_limit_at_creation {
            init.attr.srq_limit
        } else {
            0
        };
        let max_wr = self.base.behavior.wr_rounding.up(init.attr.max_wr);
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
            limit_site: self.base.site,
            is_dry: false,
            recvs: BTreeMap::new(),
            next: 0,
            end: 0,
            given: 0,
            xrc,
            users: 0,
            failed: false,
        });
        if let Some(part) = xrc {
            self.enter_xrc_srq(part);
        }
        self.domains.pds.at_mut(pd_index).srqs += 1;
        Ok(self.base.added_in(pd, id, SrqHandle::from_parts))
    }

    /// The attributes it was created with.
    pub(crate) fn srq_init(&self, srq: SrqHandle) -> Result<SrqInit> {
        let index = find(&self.srqs, srq)?;
        Ok(self.srqs.at(index).init)
    }

    /// `ibv_query_srq`
    pub(crate) fn query_srq(&self, srq: SrqHandle) -> Result<SrqAttr> {
        let index = find(&self.srqs, srq)?;
        if !self.base.behavior.srq_query {
            return Err(lacks("does not report on SRQs"));
        }
        Ok(self.srqs.at(index).attr)
    }

    /// `ibv_modify_srq`. Everything is checked before anything changes (SRQ-10).
    pub(crate) fn modify_srq(
        &mut self,
        srq: SrqHandle,
        attr: &SrqAttr,
        mask: SrqAttrMask,
    ) -> Result<()> {
        let index = find(&self.srqs, srq)?;
        let own = self.srqs.at(index);
        // Nothing can repair a failed SRQ.
        if own.failed {
            return Err(failed());
        }
        if !(mask - (SrqAttrMask::MAX_WR | SrqAttrMask::LIMIT)).is_empty() {
            return Err(invalid(
                "mask",
                "names an attribute that an srq does not have",
            ));
        }
        let mut new = own.attr;
        if mask.contains(SrqAttrMask::MAX_WR) {
            let lacked = Capabilities::SRQ_RESIZE;
            self.base.check_has(lacked, "cannot resize SRQs")?;
            // Receives in the queue keep their slots.
            let least = own.recvs.len().max(1) as i64;
            let max = self.base.attr.max_srq_wr.into();
            in_range("max_wr", attr.max_wr.into(), least, max)?;
            new.max_wr = self.base.behavior.wr_rounding.up(attr.max_wr);
        }
        // Each call that sets the limit arms its event again (SRQ-05).
        let sets_limit = mask.contains(SrqAttrMask::LIMIT);
        if sets_limit {
            new.srq_limit = attr.srq_limit;
        }
        let (limit, most) = (i64::from(new.srq_limit), i64::from(new.max_wr));
        in_range("srq_limit", limit, 0, most)?;
        let own = self.srqs.at_mut(index);
        own.attr = new;
        if sets_limit {
            (own.armed, own.is_dry) = (new.srq_limit > 0, false);
            own.limit_site = self.base.site;
            if self.base.behavior.srq_limit_at_once {
                self.check_srq_limit(index);
            }
        }
        Ok(())
    }

    /// `ibv_destroy_srq` without waiting.
    pub(crate) fn destroy_srq(&mut self, srq: SrqHandle) -> Result<()> {
        let index = find(&self.srqs, srq)?;
        let own = self.srqs.at(index);
        // Messages for its queue pairs need the receives.
        check_unused(Object::Srq, &[(Object::Qp, own.users)])?;
        let unacked = self.base.unacked(Element::Srq(srq));
        check_acknowledged(Object::Srq, unacked)?;
        self.remove_srq(index);
        Ok(())
    }

    pub(super) fn remove_srq(&mut self, index: u32) {
        let srq = self.srqs.remove(index);
        self.base
            .remove_object(srq.handle.context(), Object::Srq, index);
        if let Some(part) = srq.xrc {
            self.leave_xrc_srq(part);
        }
        let pd = self.domains.pds.at_mut(srq.pd);
        pd.srqs -= 1;
        pd.posted -= srq.recvs.len() as u32;
        let element = Element::Srq(srq.handle);
        self.base.discard_async(element);
        self.flush_deferred_writes();
        // A thread may wait for events of this SRQ, which are discarded.
        self.base.wakeups.add(Wakeup::Acknowledged(element));
    }

    /// `ibv_post_srq_recv`
    pub(crate) fn post_srq_recv(
        &mut self,
        srq: SrqHandle,
        list: &[RecvWr<'_>],
    ) -> Result<(), PostRefusal> {
        let index = find(&self.srqs, srq)?;
        let posted = post_each(list, |wr| self.push_srq_recv(index, wr));
        posted.map_err(|refusal| self.base.as_returned(refusal))
    }

    fn push_srq_recv(&mut self, index: u32, wr: &RecvWr<'_>) -> Result<()> {
        let srq = self.srqs.at_mut(index);
        if srq.failed {
            return Err(failed());
        }
        if srq.recvs.len() >= srq.attr.max_wr as usize {
            return Err(Refusal::full(FullQueue::SharedReceive, srq.attr.max_wr));
        }
        // As for a queue pair, the full queue is reported first (SRQ-04).
        check_sges(wr.sg_list, srq.attr.max_sge, ErrorKind::Invalid)?;
        let mut recv = Recv::default();
        recv.put(wr);
        recv.site = self.base.site;
        let is_fresh = srq.given == srq.end;
        srq.recvs.insert(srq.end, recv);
        srq.end += 1;
        self.domains.pds.at_mut(srq.pd).posted += 1;
        if is_fresh {
            self.claims.mark_unsorted(ClaimedQueue::Shared(index));
        }
        Ok(())
    }

    /// Takes the oldest receive of an SRQ for a message.
    pub(crate) fn take_shared(&mut self, index: u32) -> Result<Taken, NoReceive> {
        let own = self.srqs.at_mut(index);
        if let Some(why) = own.first_waiting().err() {
            own.is_dry |= why == NoReceive::Empty;
            return Err(why);
        }
        let taken = Taken {
            srq: Id {
                index,
                generation: own.handle.generation(),
            },
            seq: own.next,
        };
        own.next += 1;
        // Taking a receive may fall below the limit.
        self.check_srq_limit(index);
        Ok(taken)
    }

    /// Raises `SRQ_LIMIT_REACHED` once, when fewer receives wait than the limit (SRQ-05, -06).
    fn check_srq_limit(&mut self, index: u32) {
        let readback = self.base.behavior.srq_limit_readback;
        let srq = self.srqs.at_mut(index);
        // The event is raised once for each time that the limit is set.
        if !srq.armed || srq.waiting() >= srq.attr.srq_limit.into() {
            return;
        }
        srq.armed = false;
        if readback == LimitReadback::Zero {
            srq.attr.srq_limit = 0;
        }
        let element = Element::Srq(srq.handle);
        self.base.raise(AsyncEventType::SrqLimitReached, element);
    }

    /// The SRQ of a receive that was taken, if it still exists.
    pub(crate) fn srq_of(&self, taken: Taken) -> Option<&Srq> {
        let srq = self.srqs.peek(taken.srq.index);
        srq.filter(|srq| srq.handle.generation() == taken.srq.generation)
    }

    /// Frees the slot of a receive that is finished.
    pub(crate) fn release_shared(&mut self, taken: Taken) {
        // The slot of the SRQ may belong to another one by now.
        if self.srq_of(taken).is_none() {
            return;
        }
        let srq = self.srqs.at_mut(taken.srq.index);
        // A completion may have been lost and its receive released already.
        if srq.recvs.remove(&taken.seq).is_some() {
            self.domains.pds.at_mut(srq.pd).posted -= 1;
        }
    }
}

fn failed() -> Refusal {
    invalid("srq", "has failed")
}
