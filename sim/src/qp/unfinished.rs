//! Work that a queue pair has not finished, which a diagnosis counts and names.

use verbs_api::site::Site;
use verbs_api::{Ah as AhHandle, Dest};

use super::Qp;
use super::wait::ack_timeout;
use crate::device::Send;
use crate::diagnosis::Reached;
use crate::packet::Psn;

impl Qp {
    /// The numbers of outstanding sends, and of outstanding receives of its own queue.
    pub(crate) fn unfinished(&self) -> (u64, u64) {
        let sends = self.requester.as_ref().map_or(0, |own| own.sq.undone());
        let receives = self.responder.receives.rq().map_or(0, |rq| rq.undone());
        (sends, receives)
    }

    /// For each of the two queues, its CQ, and where the oldest work with an unpolled completion
    /// was posted.
    pub(crate) fn unpolled(&self) -> impl Iterator<Item = (u32, Site)> + '_ {
        let send = self.requester.as_ref().and_then(|own| {
            let mut sends = own.sq.unpolled();
            let send = sends.find(|send| self.common.signals(send.flags))?;
            Some((own.cq, send.site?))
        });
        let receives = &self.responder.receives;
        let place = |cq| Some((cq, receives.rq()?.unpolled().next()?.site?));
        send.into_iter().chain(receives.source.cq().and_then(place))
    }

    /// Where the send with this sequence number was posted, if it holds a slot.
    pub(crate) fn posted_at(&self, psn: Psn) -> Option<Site> {
        let sends = &self.requester.as_ref()?.sq;
        let carries = |send: &&Send| psn.distance(send.first) < send.span;
        sends.iter().find(carries)?.site
    }

    /// The CQ of the sends, and the number of outstanding sends that will complete there.
    pub(crate) fn signaled_sends(&self) -> Option<(u32, u64)> {
        let own = self.requester.as_ref()?;
        let undone = (own.sq.oldest()..own.sq.end()).filter_map(|seq| own.sq.find(seq));
        let signaled = undone.filter(|send| self.common.signals(send.flags));
        Some((own.cq, signaled.count() as u64))
    }

    /// The CQ of the sends, and the number of sends that hold a slot but complete there only if
    /// they fail.
    pub(crate) fn unsignaled_sends(&self) -> Option<(u32, u64)> {
        let own = self.requester.as_ref()?;
        let sends = own.sq.iter();
        let unsignaled = sends.filter(|send| !self.common.signals(send.flags));
        Some((own.cq, unsignaled.count() as u64))
    }

    /// Whether sends are under way that never time out: the timeout is 0 (TMR-01).
    pub(crate) fn waits_without_limit(&self) -> bool {
        let is_busy = self.requester.as_ref().is_some_and(|own| own.is_busy());
        let has_timeout = ack_timeout(self.common.attr.timeout).is_some();
        is_busy && self.common.is_reliable() && !has_timeout
    }

    /// The CQ of the receives, and the number of outstanding receives of its own queue.
    pub(crate) fn own_receives(&self) -> Option<(u32, u64)> {
        let receives = &self.responder.receives;
        Some((receives.source.cq()?, receives.rq()?.undone()))
    }

    /// The SRQ whose receives complete in this CQ when messages arrive at the queue pair.
    pub(crate) fn srq_into(&self, cq: u32) -> Option<u32> {
        let receives = &self.responder.receives;
        let is_its = receives.source.cq() == Some(cq);
        receives.made_with().filter(|_| is_its)
    }

    /// The label of a send that holds a slot and uses this address handle.
    pub(crate) fn user_of_ah(&self, ah: AhHandle) -> Option<u64> {
        let uses = |send: &&Send| matches!(send.dest, Dest::Ud { ah: of, .. } if of == ah);
        let requester = self.requester.as_ref()?;
        requester.sq.iter().find(uses).map(|send| send.label)
    }

    /// Its progress, for a diagnosis.
    pub(crate) fn reached(&self) -> Reached {
        // After a reset its peer may know an earlier connection.
        let has_taken = self.was_reset || self.responder.has_taken();
        Reached {
            state: self.common.state(),
            has_taken,
            is_affected: self.is_affected(),
        }
    }
}
