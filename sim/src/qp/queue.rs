//! A work queue.
//!
//! Work requests are numbered in the order of posting, for the life of the QP. They stay in the
//! queue until a completion that covers them is polled. Until then their bytes belong to the device
//! and their slot is in use:
//!
//! ```text
//!     | done, not polled | under way ... | waiting ... |
//!     ^ base             ^ done                        ^ end
//! ```

use crate::storage::{FreeList, Ring};

/// The send queue or the receive queue of a QP.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkQueue<W: Default> {
    pub(crate) requests: Ring<W>,
    base: u64,
    done: u64,
    /// The number after the last one that `fresh` returned.
    given: u64,
    /// The number after the last request that `clear` dropped.
    cleared: u64,
    pub(crate) capacity: u32,
}

impl<W: Default> WorkQueue<W> {
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.requests.len() >= self.capacity as usize
    }

    /// The requests that it has not returned yet, with their numbers.
    pub(crate) fn fresh(&mut self) -> impl Iterator<Item = (u64, &W)> {
        let first = self.given.max(self.base);
        self.given = self.end();
        (first..).zip(self.requests.range((first - self.base) as usize))
    }

    /// The request with this number, if its slot is still in use.
    #[inline]
    pub(crate) fn find(&self, seq: u64) -> Option<&W> {
        self.requests.get(seq.checked_sub(self.base)? as usize)
    }

    /// The number of the oldest request whose slot is in use, or [`end`](Self::end) if none is.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.base
    }

    /// Whether a request is from before the queue was cleared, and others were posted since.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(super) fn has_outlived(&self, seq: u64) -> bool {
        seq < self.cleared && self.cleared < self.end()
    }

    /// The number after the last request.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.base + self.requests.len() as u64
    }

    /// The number of the oldest request that is not done, or [`end`](Self::end) if all are.
    #[inline]
    pub(crate) fn oldest(&self) -> u64 {
        self.done
    }

    /// Whether a request is not done.
    #[inline]
    pub(crate) fn has_undone(&self) -> bool {
        self.done < self.end()
    }

    /// The requests that are done, but whose completions are unpolled.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn unpolled(&self) -> impl Iterator<Item = &W> {
        self.requests.iter().take((self.done - self.base) as usize)
    }

    /// The number of requests that are not done.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn undone(&self) -> u64 {
        self.end() - self.done
    }

    #[inline]
    pub(crate) fn get(&self, seq: u64) -> &W {
        self.find(seq).expect("its slot is taken")
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, seq: u64) -> &mut W {
        self.requests.at_mut((seq - self.base) as usize)
    }

    /// Marks the oldest request that is not done as done. Returns its number.
    #[inline]
    pub(crate) fn finish(&mut self) -> u64 {
        debug_assert!(self.has_undone());
        self.done += 1;
        self.done - 1
    }

    /// All requests whose bytes still belong to the device.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &W> {
        self.requests.iter()
    }

    /// The requests from one number to another, whose bytes still belong to the device.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(super) fn between(&self, from: u64, to: u64) -> impl Iterator<Item = &W> {
        let count = (to + 1).saturating_sub(self.base);
        let others = from.saturating_sub(self.base);
        self.iter().take(count as usize).skip(others as usize)
    }

    /// Returns a slot for a request at the end, with the contents of its previous request, and
    /// whether it is the first since [`fresh`](Self::fresh). The queue must not be full.
    #[inline]
    pub(crate) fn push(&mut self, spare: &mut FreeList<W>) -> (&mut W, bool) {
        let is_first = self.given == self.end();
        (self.requests.push_from(spare), is_first)
    }

    /// Frees the slots of done requests up to this one, and passes the requests to `free`. Returns
    /// their number.
    #[inline(always)]
    pub(crate) fn release(
        &mut self,
        seq: u64,
        spare: &mut FreeList<W>,
        mut free: impl FnMut(&mut W),
    ) -> u32 {
        debug_assert!(seq < self.done);
        let first = self.base;
        // Completions come in order, so this one covers all earlier requests.
        while self.base <= seq
            && let Some(request) = self.requests.pop()
        {
            free(request);
            self.base += 1;
        }
        // An empty queue returns its slots, so that idle queues have no memory.
        self.requests.release(spare);
        (self.base - first) as u32
    }

    /// Removes the requests from this number on, none of which was started, and passes them to
    /// `free`. Returns their number.
    pub(crate) fn take_back(
        &mut self,
        first: u64,
        spare: &mut FreeList<W>,
        mut free: impl FnMut(&mut W),
    ) -> u32 {
        debug_assert!(self.given <= first);
        let taken = self.end() - first;
        for _ in 0..taken {
            self.requests.pop_back().map(&mut free);
        }
        self.requests.release(spare);
        taken as u32
    }

    /// Drops all requests and passes them to `free`. Returns their number. The numbering continues.
    pub(crate) fn clear(&mut self, spare: &mut FreeList<W>, mut free: impl FnMut(&mut W)) -> u32 {
        let end = self.end();
        let dropped = self.requests.len();
        while let Some(request) = self.requests.pop() {
            free(request);
        }
        self.requests.release(spare);
        // Numbers never repeat in the life of a queue pair, so old tickets match nothing.
        (self.base, self.done) = (end, end);
        self.cleared = end;
        dropped as u32
    }
}
