//! Adding completions to CQs, and removing them.

use verbs_api::{Handle, Qp as QpHandle};

use super::Device;
use super::completion::{Completion, Delivery, Queue, Ticket};
use super::srq::Taken;

impl Device {
    /// Adds a completion to a CQ. The queue pair acts on the result.
    #[inline(always)]
    pub(crate) fn complete(&mut self, cq: u32, completion: Completion) -> Delivery {
        let (delivery, lost) = self.cqs.complete(&mut self.base, cq, completion);
        // The slot of an SRQ's receive would otherwise stay in use, as on drivers that leak it.
        if let Some(ticket) = lost
            && self.base.behavior.lost_frees_srq_slot
        {
            self.free_shared(&ticket);
        }
        delivery
    }

    /// Removes the unpolled completions of a QP, on devices that do so (CQ-DESTROY-08).
    pub(crate) fn purge(&mut self, cq: u32, qp: QpHandle) {
        let (index, generation) = (qp.index(), qp.generation());
        // The count is only kept on a device that removes them.
        if self.cqs.unpolled(index, generation) == 0 {
            return;
        }
        let of = |ticket: &Ticket| ticket.qp == index && ticket.qp_generation == generation;
        let ring = &mut self.cqs.table.at_mut(cq).ring;
        let purged = ring.take_out(|entry| of(&entry.ticket));
        // The CQ may be empty now.
        self.cqs.show(cq);
        for ticket in purged {
            self.forget_completion(&ticket);
        }
    }

    /// A completion is no longer in a CQ: frees the slot of a receive of an SRQ.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // cost
    pub(crate) fn forget_completion(&mut self, ticket: &Ticket) {
        self.cqs.count(&self.base, ticket, false);
        self.free_shared(ticket);
    }

    /// No further completion will cover the work request: frees the slot of a receive of an SRQ.
    fn free_shared(&mut self, ticket: &Ticket) {
        if let Queue::Shared(srq) = ticket.queue {
            let seq = ticket.seq;
            self.release_shared(Taken { srq, seq });
        }
    }
}
