//! A completion: what it is of, its place in a CQ, and what became of it.

use verbs_api::Wc;
use verbs_api::table::Id;

use crate::storage::Ring;
use crate::time::Time;

/// The completions of a CQ that were not polled yet, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct CompletionRing {
    entries: Ring<Entry>,
    /// How many of them would have satisfied a solicited request.
    solicited: usize,
}

impl CompletionRing {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn has_solicited(&self) -> bool {
        self.solicited > 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// A place at the end, of which all has to be written.
    #[inline(always)]
    pub(super) fn push(&mut self, solicited: bool) -> &mut Entry {
        self.solicited += usize::from(solicited);
        let entry = self.entries.push();
        entry.solicited = solicited;
        entry
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<&Entry> {
        let entry = self.entries.pop()?;
        self.solicited -= usize::from(entry.solicited);
        Some(entry)
    }

    /// Takes out what is `wanted`.
    pub(super) fn take_out(&mut self, wanted: impl Fn(&Entry) -> bool) -> Vec<Ticket> {
        let mut taken = Vec::new();
        for _ in 0..self.len() {
            let Some(entry) = self.pop().copied() else {
                break;
            };
            match wanted(&entry) {
                true => taken.push(entry.ticket),
                false => *self.push(entry.solicited) = entry,
            }
        }
        taken
    }
}

/// A completion in the ring, with what polling it gives back to the QP.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) wc: Wc,
    pub(crate) ticket: Ticket,
    /// It would have satisfied a solicited request.
    pub(super) solicited: bool,
    /// When it was added.
    pub(crate) at: Time,
}

/// Which work request a completion is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) qp: u32,
    pub(crate) qp_generation: u32,
    pub(crate) queue: Queue,
    /// Number of the work request in its queue.
    pub(crate) seq: u64,
    /// What is shown for it.
    pub(crate) label: u64,
}

/// The queue that a work request was in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Queue {
    /// The QP's send queue.
    #[default]
    Send,
    /// The QP's receive queue.
    Recv,
    /// An SRQ.
    Shared(Id),
}

impl Ticket {
    pub(crate) fn is_recv(&self) -> bool {
        self.queue != Queue::Send
    }
}

/// A completion that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) wc: Wc,
    pub(crate) ticket: Ticket,
    /// The sender set the solicited bit; for a send, the work request did.
    pub(crate) solicited: bool,
    /// It is of a queue pair of UD.
    pub(crate) of_datagram: bool,
}

/// What became of a completion, and so of its queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It was made as it should be.
    Made,
    /// A fault rule made it an error: its queue stops.
    Failed,
    /// The CQ had no room for it: a receive queue stops.
    Dropped,
    /// The CQ had no room for it, and is of no use any more: its queue pair stops (CQ-OVR-04).
    Fatal,
}

impl Delivery {
    /// No program will see the completion.
    pub(crate) fn is_lost(self) -> bool {
        matches!(self, Self::Dropped | Self::Fatal)
    }
}
