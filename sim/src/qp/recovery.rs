//! Whether the program continues after a failure: it gives the queue pair up, and work that it
//! posts later succeeds. What it gives up without a failure may be lost.

use verbs_api::QpState;

use super::Qp;
use crate::device::{Device, Ticket};
use crate::diagnosis::problem::{CutOff, Ending, PostedInError};

impl Qp {
    /// The program has polled a completion with an error.
    pub(crate) fn has_seen_failure(&mut self) {
        if self.common.state() == QpState::Err {
            self.posts_in_error.get_or_insert(0);
        }
    }

    /// A send is posted in the error state. Programs post one to find the end of the flushed work
    /// (QP-FLUSH-08).
    pub(super) fn note_post_in_error(&mut self, device: &mut Device) {
        if let Some(posts) = &mut self.posts_in_error
            && self.common.attr.qp_state == QpState::Err
        {
            *posts += 1;
            // One send is allowed as the end mark of the flush.
            if *posts > 1 {
                let base = &mut device.base;
                let qp_num = self.common.qp_num;
                base.journal.note(PostedInError { qp_num }, base.site);
            }
        }
    }

    /// The program destroys a queue pair, or takes it out of use. If it has polled the failure, it
    /// handles the failure by this.
    pub(crate) fn note_given_up(&self, device: &mut Device) {
        if self.posts_in_error.is_some() {
            device.base.journal.give_up(self.common.qp_num);
        }
    }

    /// The program stops the queue pair: records the sends that are under way.
    pub(crate) fn note_cut_off(&self, device: &mut Device, how: Ending) {
        let Some(sq) = self.requester.as_ref().map(|own| &own.sq) else {
            return;
        };
        // After a failure the rest is flushed, and the failure is the finding.
        let is_live = matches!(self.common.state(), QpState::Rts | QpState::Sqd);
        if is_live && self.common.is_reliable() && sq.has_undone() {
            let (oldest, base) = (sq.get(sq.oldest()), &mut device.base);
            let problem = CutOff {
                qp_num: self.common.qp_num,
                wr_id: oldest.label,
                sends: sq.undone(),
                how,
                place: base.site.map(|site| ("at", site.with_calls())),
            };
            base.journal.note(problem, oldest.site);
        }
    }

    /// A successful completion was polled while it is open whether the program continues after a
    /// failure. Only work posted after the queue pair was given up counts: all work of a queue pair
    /// connected since then, or later sends of another one.
    #[cold]
    pub(crate) fn note_success(&mut self, device: &mut Device, ticket: Ticket) {
        let journal = &mut device.base.journal;
        let given_up = journal.recovery.given_up;
        let connected_after = self.common.connected_after;
        let since = match &mut self.requester {
            // Sends of an old queue pair count from the first one posted after the failure was
            // given up.
            Some(own) if connected_after < given_up && !ticket.is_recv() => {
                let end = own.sq.end();
                let (number, begins) = *own.known.begins.get_or_insert((given_up, end));
                if ticket.seq >= begins {
                    own.known.begins = None;
                    number
                } else {
                    connected_after
                }
            }
            _ => connected_after,
        };
        journal.go_on(since);
    }
}
