//! The way of a completion: into its CQ, and out of it.

use verbs_api::{Handle, Qp as QpHandle};

use super::Device;
use super::completion::{Completion, Delivery, Queue, Ticket};
use super::cq::Outcome;
use super::srq::Taken;

impl Device {
    /// Adds a completion to a CQ. What becomes of it is for its queue pair to heed.
    #[inline(always)]
    pub(crate) fn complete(&mut self, cq: u32, completion: Completion) -> Delivery {
        let Outcome { delivery, lost } = self.cqs.complete(&mut self.base, cq, completion);
        if let Some(ticket) = lost
            && self.base.behavior.lost_frees_srq_slot
        {
            self.free_shared(&ticket);
        }
        delivery
    }

    /// Removes the unpolled completions of a QP, where the device does so (CQ-DESTROY-08).
    pub(crate) fn purge(&mut self, cq: u32, qp: QpHandle) {
        let (index, generation) = (qp.index(), qp.generation());
        // They are counted only on a device that removes them.
        if self.cqs.unpolled(index, generation) == 0 {
            return;
        }
        let of = |ticket: &Ticket| ticket.qp == index && ticket.qp_generation == generation;
        let ring = &mut self.cqs.table.at_mut(cq).ring;
        let purged = ring.take_out(|entry| of(&entry.ticket));
        self.cqs.show(cq);
        for ticket in purged {
            self.let_go(&ticket);
        }
    }

    /// A completion is in no CQ any more. Of a receive of an SRQ the slot is free.
    #[inline(always)]
    pub(crate) fn let_go(&mut self, ticket: &Ticket) {
        self.cqs.count(&self.base, ticket, false);
        self.free_shared(ticket);
    }

    /// No completion will tell of a work request any more: the slot of a receive of an SRQ is free.
    fn free_shared(&mut self, ticket: &Ticket) {
        if let Queue::Shared(srq) = ticket.queue {
            let seq = ticket.seq;
            self.release_shared(Taken { srq, seq });
        }
    }
}
