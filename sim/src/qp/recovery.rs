//! Whether the program continues after a failure: it gives the queue pair up, and work that it
//! posts later succeeds.

use super::Qp;
use crate::device::{Device, Ticket};

/// The program destroys a queue pair, or takes it out of use. If it has polled the failure, it
/// handles the failure by this.
pub(crate) fn note_given_up(qp: &Qp, device: &mut Device) {
    if qp.posts_in_error.is_some() {
        device.base.journal.give_up(qp.common.qp_num);
    }
}

/// A successful completion was polled while it is open whether the program continues after a
/// failure. Only work posted after the queue pair was given up counts: all work of a queue pair
/// connected since then, or later sends of another one.
#[cold]
pub(crate) fn note_success(qp: &mut Qp, device: &mut Device, ticket: Ticket) {
    let journal = &mut device.base.journal;
    let given_up = journal.recovery.given_up;
    let connected_after = qp.common.connected_after;
    let since = match &mut qp.requester {
        // Sends of an old queue pair count from the first one posted after the failure was given
        // up.
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
