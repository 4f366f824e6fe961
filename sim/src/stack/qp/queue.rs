//! A work queue.
//!
//! Work requests are numbered in the order of posting, for the life of the QP. They stay in the
//! queue until a completion that covers them is polled, since until then their bytes belong to the
//! device and their slot is taken:
//!
//! ```text
//!     | done, not polled | under way ... | waiting ... |
//!     ^ base             ^ done                        ^ end
//! ```

use std::collections::VecDeque;

/// The send queue or the receive queue of a QP.
#[derive(Clone, Debug)]
pub(crate) struct WorkQueue<W> {
    requests: VecDeque<W>,
    base: u64,
    done: u64,
    /// The number after the last one that `fresh` has given.
    given: u64,
    capacity: u32,
}

impl<W> WorkQueue<W> {
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            requests: VecDeque::new(),
            base: 0,
            done: 0,
            given: 0,
            capacity,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.requests.len() >= self.capacity as usize
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Puts a request at the end; the queue must not be full. Whether it is the first since
    /// [`fresh`](Self::fresh).
    pub(crate) fn push(&mut self, request: W) -> bool {
        let is_first = self.given == self.end();
        self.requests.push_back(request);
        is_first
    }

    /// The requests that it has not given yet, with their numbers.
    pub(crate) fn fresh(&mut self) -> impl Iterator<Item = (u64, &W)> {
        let first = self.given.max(self.base);
        self.given = self.end();
        (first..).zip(self.requests.range((first - self.base) as usize..))
    }

    /// The request of a number, if its slot is still taken.
    pub(crate) fn find(&self, seq: u64) -> Option<&W> {
        self.requests.get(seq.checked_sub(self.base)? as usize)
    }

    /// The number after the last one.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.requests.len() as u64
    }

    /// The number of the oldest request that is not done; [`end`](Self::end) if all are.
    pub(crate) fn oldest(&self) -> u64 {
        self.done
    }

    /// Whether a request is not done.
    pub(crate) fn has_undone(&self) -> bool {
        self.done < self.end()
    }

    /// How many requests are not done.
    pub(crate) fn undone(&self) -> u64 {
        self.end() - self.done
    }

    pub(crate) fn get(&self, seq: u64) -> &W {
        &self.requests[(seq - self.base) as usize]
    }

    pub(crate) fn get_mut(&mut self, seq: u64) -> &mut W {
        &mut self.requests[(seq - self.base) as usize]
    }

    /// The oldest request that is not done is done now; its number.
    pub(crate) fn finish(&mut self) -> u64 {
        debug_assert!(self.has_undone());
        self.done += 1;
        self.done - 1
    }

    /// Frees the slots of done requests up to this one; how many. `free` gets the requests.
    pub(crate) fn release(&mut self, seq: u64, mut free: impl FnMut(&W)) -> u32 {
        debug_assert!(seq < self.done);
        let first = self.base;
        while self.base <= seq {
            self.requests.pop_front().iter().for_each(&mut free);
            self.base += 1;
        }
        self.shrink();
        (self.base - first) as u32
    }

    /// Takes back the requests from this number on, none of which was started; how many. `free` gets them.
    pub(crate) fn take_back(&mut self, first: u64, free: impl FnMut(&W)) -> u32 {
        let kept = (first - self.base) as usize;
        self.requests.range(kept..).for_each(free);
        let taken = self.requests.len() - kept;
        self.requests.truncate(kept);
        debug_assert!(self.given <= first);
        taken as u32
    }

    /// Drops all requests; how many. Numbers go on. `free` gets the requests.
    pub(crate) fn clear(&mut self, free: impl FnMut(&W)) -> u32 {
        let end = self.end();
        self.requests.iter().for_each(free);
        let dropped = self.requests.len();
        (self.base, self.done) = (end, end);
        self.requests.clear();
        self.shrink();
        dropped as u32
    }

    /// An idle queue does not keep the memory of a busy one.
    fn shrink(&mut self) {
        const KEPT: usize = 4;
        if self.requests.is_empty() && self.requests.capacity() > KEPT {
            self.requests.shrink_to(KEPT);
        }
    }

    /// All requests whose bytes still belong to the device.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &W> {
        self.requests.iter()
    }
}
