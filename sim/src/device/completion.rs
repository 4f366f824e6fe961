//! A completion: the work it belongs to, its place in a CQ, and the result of adding it.

use verbs_api::Wc;
use verbs_api::table::Id;

use crate::storage::Ring;
use crate::time::Time;

/// The unpolled completions of a CQ, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct CompletionRing {
    entries: Ring<Entry>,
    /// The number of completions that would satisfy a solicited request.
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

    /// Adds an entry at the end. The caller writes all its fields.
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

    /// Removes the `wanted` entries and returns their tickets.
    pub(super) fn take_out(&mut self, wanted: impl Fn(&Entry) -> bool) -> Vec<Ticket> {
        let mut taken = Vec::new();
        // One round through the ring keeps the order of the entries that stay.
        for _ in 0..self.len() {
            let Some(entry) = self.pop().copied() else {
                break;
            };
            if wanted(&entry) {
                taken.push(entry.ticket);
            } else {
                *self.push(entry.solicited) = entry;
            }
        }
        taken
    }
}

/// A completion in the ring, with the data that polling it returns to the QP.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) wc: Wc,
    pub(crate) ticket: Ticket,
    /// Whether it satisfies a solicited-only request.
    pub(super) solicited: bool,
    /// When it was added.
    pub(crate) at: Time,
}

/// The work request that a completion belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) qp: u32,
    pub(crate) qp_generation: u32,
    pub(crate) queue: Queue,
    /// The number of the work request in its queue.
    pub(crate) seq: u64,
    /// The number that traces and reports show for it.
    pub(crate) label: u64,
}

/// The queue of a work request.
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

/// A completion that is to be added to a CQ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) wc: Wc,
    pub(crate) ticket: Ticket,
    /// Whether the sender set the solicited bit, or for a send, the work request did.
    pub(crate) solicited: bool,
    /// Whether its queue pair is of UD.
    pub(crate) of_datagram: bool,
}

/// The result of adding a completion, which decides the state of its queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It was added unchanged.
    Made,
    /// A fault rule made it an error. Its queue stops.
    Failed,
    /// The CQ had no room for it. A receive queue stops.
    Dropped,
    /// The CQ had no room for it and can no longer be used. Its queue pair stops (CQ-OVR-04).
    Fatal,
}

impl Delivery {
    /// Whether no program will see the completion.
    pub(crate) fn is_lost(self) -> bool {
        matches!(self, Self::Dropped | Self::Fatal)
    }
}
