//! Polling: completions leave their CQs, and the slots of their work become free.

use verbs_api::{Cq as CqHandle, Wc, WcStatus};

use super::Node;
use crate::device::{Result, Ticket};

impl Node {
    /// `ibv_poll_cq`
    #[inline]
    pub(crate) fn poll_cq(&mut self, cq: CqHandle, wc: &mut [Wc]) -> Result<usize> {
        // A poll of no entries does not take the error of a dead CQ.
        let index = self.device.check_poll(cq, !wc.is_empty())?;
        let mut count = 0;
        while count < wc.len()
            && let Some(entry) = self.device.cqs.pop(index)
        {
            wc[count] = entry.wc;
            // The entry is copied before its slot is released.
            let ticket = entry.ticket;
            self.seen(wc[count].status, ticket);
            count += 1;
        }
        self.device.cqs.polled(index, count == wc.len());
        // The program may look at the received data now.
        if count > 0 {
            self.device.flush_deferred_writes();
        }
        Ok(count)
    }

    /// `ibv_start_poll`
    pub(crate) fn start_poll(&mut self, cq: CqHandle) -> Result<()> {
        let (status, ticket) = self.device.start_poll(cq)?;
        self.taken(status, ticket);
        Ok(())
    }

    /// `ibv_next_poll`
    pub(crate) fn next_poll(&mut self, cq: CqHandle) -> Result<()> {
        let (status, ticket) = self.device.next_poll(cq)?;
        self.taken(status, ticket);
        Ok(())
    }

    /// `ibv_destroy_cq` without waiting.
    pub(crate) fn destroy_cq(&mut self, cq: CqHandle) -> Result<()> {
        for ticket in self.device.destroy_cq(cq)? {
            self.release(ticket);
        }
        Ok(())
    }

    /// An iteration has moved to a completion.
    fn taken(&mut self, status: WcStatus, ticket: Ticket) {
        self.seen(status, ticket);
        self.device.flush_deferred_writes();
    }

    /// The program has received a completion.
    #[inline(always)]
    fn seen(&mut self, status: WcStatus, ticket: Ticket) {
        self.note_seen(status, ticket);
        self.release(ticket);
    }

    /// A completion has left its CQ: frees its slot, and in a queue of the QP those before it.
    #[inline(always)]
    pub(super) fn release(&mut self, ticket: Ticket) {
        self.device.forget_completion(&ticket);
        // The queue pair may be destroyed, and its completion still be here.
        if let Some(qp) = self.qps.live_mut(ticket.qp, ticket.qp_generation) {
            qp.release(&mut self.device, ticket);
        }
    }

    /// Records that a completion was polled, where some are from before a RESET.
    #[cold]
    #[cfg_attr(any(), mutants::skip)] // texts
    fn note_polled(&mut self, status: WcStatus, ticket: Ticket) {
        if let Some(qp) = self.qps.live_mut(ticket.qp, ticket.qp_generation) {
            qp.note_polled(&mut self.device, status, ticket);
        }
    }

    /// Records that the program has seen the status of its work.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // texts
    fn note_seen(&mut self, status: WcStatus, ticket: Ticket) {
        let is_failure = status != WcStatus::Success;
        if self.device.base.journal.has_outlived {
            self.note_polled(status, ticket);
        }
        // A success only matters after a failure that the program may have handled.
        if (is_failure || self.device.base.journal.recovery.is_awaited())
            && let Some(qp) = self.qps.live_mut(ticket.qp, ticket.qp_generation)
        {
            if is_failure {
                qp.has_seen_failure();
                let qp_num = qp.common.qp_num;
                if status != WcStatus::WrFlushErr {
                    let journal = &mut self.device.base.journal;
                    journal.see_failure(qp_num, ticket.is_recv());
                }
            } else {
                qp.note_success(&mut self.device, ticket);
            }
        }
    }
}
