//! Turns: a queue pair sends the answer to a long read in several turns, so that it does not delay
//! other work.

use verbs_api::table::Id;
use verbs_api::{Handle, Qp as QpHandle};

/// The most packets of reads that leave in one turn.
const BURST: u32 = 64;

/// The current turn, and the queue pairs that wait for another one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    /// The number of packets of reads that may still leave in the current turn.
    left: u32,
    /// Queue pairs that have more to send, by slot and generation, in the order of their requests.
    pub(crate) waiting: Vec<Id>,
}

impl Turns {
    /// Begins a turn.
    pub(crate) fn begin(&mut self) {
        self.left = BURST;
    }

    /// Ends the turn: no packet of a read leaves before the next one.
    pub(crate) fn end(&mut self) {
        self.left = 0;
    }

    /// The number of packets, at most `packets`, that may leave in this turn. They count as sent.
    pub(crate) fn take(&mut self, packets: u32) -> u32 {
        let taken = packets.min(self.left);
        // Reads that arrive in the same turn share its packets.
        self.left -= taken;
        taken
    }

    /// Requests another turn for a queue pair.
    pub(crate) fn ask(&mut self, qp: QpHandle) {
        self.waiting.push(Id {
            index: qp.index(),
            generation: qp.generation(),
        });
    }
}
