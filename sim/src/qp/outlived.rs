//! Completions that outlive a RESET of their queue pair. A program may take them for those of the
//! work that it posts next.

use verbs_api::WcStatus;

use super::Qp;
use crate::device::{Device, Queue, Ticket};
use crate::diagnosis::problem::Outlived;

impl Qp {
    /// It is back in RESET, and its queues are empty.
    pub(super) fn note_outliving(&mut self, device: &mut Device) {
        self.reset_at = device.base.site;
        let stay = |cq: &u32| device.cqs.has_some_of(*cq, self.common.handle);
        device.base.journal.has_outlived |= self.cqs().iter().any(stay);
    }

    /// A completion was polled. It is doubtful if it is from before the last RESET and new work was
    /// posted since. Receives of an SRQ do not belong to the queue pair, so their completions may
    /// come at any time.
    #[cold]
    pub(crate) fn note_polled(&self, device: &mut Device, status: WcStatus, ticket: Ticket) {
        let is_outlived = match ticket.queue {
            Queue::Send => self
                .requester
                .as_ref()
                .map(|own| &own.sq)
                .is_some_and(|sq| sq.has_outlived(ticket.seq)),
            Queue::Recv => self
                .responder
                .receives
                .rq()
                .is_some_and(|rq| rq.has_outlived(ticket.seq)),
            Queue::Shared(_) => false,
        };
        if is_outlived {
            let problem = Outlived {
                qp_num: self.common.qp_num,
                wr_id: ticket.label,
                is_receive: ticket.is_recv(),
                status,
                reset_at: self.reset_at,
            };
            device.base.journal.note(problem, device.base.site);
        }
    }
}
