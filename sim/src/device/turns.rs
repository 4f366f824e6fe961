//! Turns: a queue pair sends the answer to a long read in several, so that it holds up nothing else.

use std::mem;

use verbs_api::table::Id;
use verbs_api::{Handle, Qp as QpHandle};

/// Packets of reads that leave in one turn, at most.
const BURST: u32 = 64;

/// The present turn, and the queue pairs that wait for another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    /// Packets of reads that may still leave in the present turn.
    left: u32,
    /// Queue pairs that have more to send, by slot and generation, in the order in which they asked.
    waiting: Vec<Id>,
}

impl Turns {
    /// A turn begins.
    pub(crate) fn begin(&mut self) {
        self.left = BURST;
    }

    /// No packet of a read leaves before the next turn.
    pub(crate) fn end(&mut self) {
        self.left = 0;
    }

    /// How many of `packets` packets may leave in this turn. They count as sent.
    pub(crate) fn take(&mut self, packets: u32) -> u32 {
        let taken = packets.min(self.left);
        self.left -= taken;
        taken
    }

    /// A queue pair asks for another turn.
    pub(crate) fn ask(&mut self, qp: QpHandle) {
        self.waiting.push(Id {
            index: qp.index(),
            generation: qp.generation(),
        });
    }

    /// Whether a queue pair has asked for a turn since the last [`take_waiting`](Self::take_waiting).
    #[inline]
    pub(crate) fn are_wanted(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The queue pairs that have asked for a turn since the last call.
    pub(crate) fn take_waiting(&mut self) -> Vec<Id> {
        mem::take(&mut self.waiting)
    }
}
