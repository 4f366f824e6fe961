//! What posted work holds, and the program's own numbers for it.
//!
//! The device gets numbers of this layer: the queue, and the position of the work request in it.
//! The completions of one queue come in the order of posting (CQ-POLL-07). So a completion also
//! says that all work requests before it are done: unsignaled ones, and those whose completion was
//! lost in an overrun.
//!
//! A queue is locked while work is posted on it, so that the numbers are in the order of posting.
//!
//! Each work request also has the time at which it was posted: completions that were in a CQ by
//! then come out before its own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;

use super::{Ah, Mr, Mw};
use crate::cq::WcOpcode;
use crate::error::PostError;
use crate::sync::{Mutex, MutexGuard};

/// The send queue or the receive queue of a QP, as its CQ knows it.
pub(super) struct Queue {
    /// Its index among the queues of the CQ.
    index: u32,
    /// Another QP's completions may carry any number: those of raw QPs on this CQ.
    qp_num: u32,
    /// The program's own value of the QP.
    qp_context: u64,
    clock: Clock,
    ledger: Mutex<Ledger>,
}

/// The time of a context: how many of its objects with completions still to come were reset or
/// destroyed. It is an atomic of std, since a thread that sees an earlier time only forgets later.
#[derive(Clone, Default)]
pub(super) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(super) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Time goes on; the moment that is over, which no other call gives.
    pub(super) fn pass(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

#[derive(Default)]
struct Ledger {
    entries: VecDeque<Entry>,
    next: u32,
}

struct Entry {
    number: u32,
    posted: Posted,
    at: u64,
    holds: Holds,
}

/// What is known of a work request that was posted.
#[derive(Clone, Copy)]
pub(super) struct Posted {
    /// The program's own number.
    pub(super) wr_id: u64,
    /// What its completion is of.
    pub(super) opcode: WcOpcode,
}

/// What a work request uses. Only kept, for what dropping it does.
pub(super) enum Hold {
    Mr(#[expect(dead_code, reason = "kept for its Drop")] Mr),
    Mw(#[expect(dead_code, reason = "kept for its Drop")] Mw),
    Ah(#[expect(dead_code, reason = "kept for its Drop")] Ah),
}

/// What one work request uses.
pub(super) type Holds = SmallVec<[Hold; 1]>;

/// What completed work held. To be dropped with no lock held, since that may destroy objects.
pub(super) type Released = SmallVec<[Hold; 16]>;

impl Queue {
    pub(super) fn new(index: u32, qp_num: u32, qp_context: u64, clock: Clock) -> Self {
        Self {
            index,
            qp_num,
            qp_context,
            clock,
            ledger: Mutex::default(),
        }
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    pub(super) fn qp_num(&self) -> u32 {
        self.qp_num
    }

    pub(super) fn qp_context(&self) -> u64 {
        self.qp_context
    }

    /// Enters work requests and posts them, with the numbers that the device gets. What is refused
    /// is not entered; what a panic leaves behind stays entered, since it may have been posted.
    pub(super) fn post(
        &self,
        list: impl ExactSizeIterator<Item = (Posted, Holds)>,
        post: impl FnOnce(FirstNumber) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        let mut ledger = self.ledger.lock();
        let first = FirstNumber {
            index: self.index,
            number: ledger.next,
        };
        let (count, now) = (list.len(), self.clock.now());
        for (posted, holds) in list {
            ledger.push(posted, now, holds);
        }
        let result = post(first);
        if let Err(error) = &result {
            ledger.pop_last(count - error.bad_wr.min(count));
        }
        result
    }

    /// The work request of this number is done, and all before it. With the time when it was
    /// posted.
    pub(super) fn complete(&self, number: u32, released: &mut Released) -> Option<(Posted, u64)> {
        let mut ledger = self.ledger.lock();
        let at = ledger.position(number).ok()?;
        for _ in 0..at {
            ledger.pop_first(released);
        }
        ledger.pop_first(released)
    }

    /// No completion is expected of it.
    pub(super) fn is_settled(&self) -> bool {
        self.ledger.lock().entries.is_empty()
    }

    /// Keeps others from posting.
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked(self.ledger.lock())
    }

    /// No completion of a number before this one will come. What they held has been released.
    pub(super) fn forget_before(&self, number: u32) {
        let mut ledger = self.ledger.lock();
        // Numbers wrap around: of two, the earlier is the one that is less than half the circle
        // back.
        let is_before = |entry: &Entry| (entry.number.wrapping_sub(number) as i32) < 0;
        let at = ledger.entries.partition_point(is_before);
        ledger.entries.drain(..at);
    }
}

/// A queue that no thread can post on.
pub(super) struct Locked<'a>(MutexGuard<'a, Ledger>);

impl Locked<'_> {
    /// Nothing that is posted will be executed any more. The program's own numbers stay, for
    /// completions that have not been polled. The number of the next work request, and what was
    /// held: to be dropped with no lock held.
    pub(super) fn release(mut self) -> (u32, Vec<Hold>) {
        let entries = self.0.entries.iter_mut();
        let held = entries.flat_map(|entry| entry.holds.drain(..)).collect();
        (self.0.next, held)
    }
}

impl Ledger {
    fn push(&mut self, posted: Posted, at: u64, holds: Holds) {
        self.entries.push_back(Entry {
            number: self.next,
            posted,
            at,
            holds,
        });
        // Never used again, also if it is refused: a driver may have taken it all the same.
        self.next = self.next.wrapping_add(1);
    }

    fn pop_first(&mut self, released: &mut Released) -> Option<(Posted, u64)> {
        let entry = self.entries.pop_front()?;
        released.extend(entry.holds);
        Some((entry.posted, entry.at))
    }

    /// A caller that posts holds these references too, so nothing is destroyed here.
    fn pop_last(&mut self, count: usize) {
        self.entries.truncate(self.entries.len() - count);
    }

    /// Where the entry of this number is, or would be. Numbers wrap around.
    fn position(&self, number: u32) -> Result<usize, usize> {
        let first = self.entries.front().map_or(number, |entry| entry.number);
        let number = number.wrapping_sub(first);
        self.entries
            .binary_search_by_key(&number, |entry| entry.number.wrapping_sub(first))
    }
}

/// The number of the first work request of a list; the others follow.
#[derive(Clone, Copy)]
pub(super) struct FirstNumber {
    index: u32,
    number: u32,
}

impl FirstNumber {
    /// What the device gets for the work request at this place of the list.
    pub(super) fn wr_id(self, place: usize) -> u64 {
        u64::from(self.index) << 32 | u64::from(self.number.wrapping_add(place as u32))
    }
}

/// The index of a queue and the number in it, from the work request id that the device returned.
pub(super) fn parts(wr_id: u64) -> (u32, u32) {
    ((wr_id >> 32) as u32, wr_id as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Cause, Error, ErrorKind, Verb};

    fn post(queue: &Queue, wr_ids: &[u64], bad_wr: Option<usize>) -> u64 {
        let mut first = 0;
        let list = wr_ids.iter().map(|wr_id| {
            let opcode = WcOpcode::Send;
            let wr_id = *wr_id;
            (Posted { wr_id, opcode }, Holds::new())
        });
        let error = Error::new(Verb::PostSend, ErrorKind::NoMemory, Cause::Unspecified);
        let result = queue.post(list, |number| {
            first = number.wr_id(0);
            bad_wr.map_or(Ok(()), |bad_wr| Err(PostError { bad_wr, error }))
        });
        assert_eq!(result.is_err(), bad_wr.is_some());
        first
    }

    fn complete(queue: &Queue, wr_id: u64) -> Option<u64> {
        let (index, number) = parts(wr_id);
        assert_eq!(index, queue.index());
        let posted = queue.complete(number, &mut Released::new());
        posted.map(|(posted, _)| posted.wr_id)
    }

    /// A completion returns the program's number and settles all earlier work; refused work
    /// requests leave a gap that no later one fills; numbers wrap around.
    #[test]
    fn numbers_of_the_program_come_back_across_gaps_and_the_wrap() {
        let queue = Queue::new(5, 1, 0, Clock::default());
        queue.ledger.lock().next = u32::MAX - 2;
        let first = post(&queue, &[10, 11, 12, 13], Some(2));
        let second = post(&queue, &[10, 10, 14], None);
        assert_eq!(second as u32, (first as u32).wrapping_add(4));
        assert_eq!(second as u32, 1, "the numbers have wrapped around");
        assert_eq!(complete(&queue, first + 1), Some(11));
        assert_eq!(complete(&queue, first), None, "settled by the later one");
        assert_eq!(complete(&queue, first + 2), None, "was refused");
        assert_eq!(complete(&queue, second + 2), Some(14));
        assert!(queue.ledger.lock().entries.is_empty());
    }

    #[test]
    fn what_comes_before_a_reset_is_forgotten_and_nothing_else() {
        let queue = Queue::new(0, 1, 0, Clock::default());
        let before = post(&queue, &[1, 2], None);
        let (end, _) = queue.lock().release();
        let after = post(&queue, &[3], None);
        assert_eq!(complete(&queue, before), Some(1), "not polled yet");
        queue.forget_before(end);
        assert_eq!(complete(&queue, before + 1), None);
        queue.forget_before(end.wrapping_sub(1));
        assert_eq!(complete(&queue, after), Some(3));
    }
}
