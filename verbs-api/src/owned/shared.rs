//! What receives of an SRQ hold, and the program's own numbers for them.
//!
//! The device gets numbers of this layer: which SRQ, and which receive of it. They complete in any
//! order and in any CQ, so each is looked up by its number, and says nothing of others.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::ledger::{Clock, Hold, Holds, Posted, Released};
use crate::error::PostError;
use crate::sync::Mutex;

/// Set in the numbers of receives of SRQs, and in no others of this layer.
const SHARED: u64 = 1 << 62;

/// The receives of an SRQ, as the CQs know it.
pub(super) struct Shared {
    /// Which SRQ of its context.
    key: u32,
    clock: Clock,
    ledger: Mutex<Ledger>,
}

#[derive(Default)]
struct Ledger {
    entries: BTreeMap<u32, Entry>,
    next: u32,
}

struct Entry {
    posted: Posted,
    at: u64,
    holds: Holds,
}

/// The SRQ and the number in it, from the work request id that the device returned; `None` if it is
/// not of an SRQ.
pub(super) fn parts(wr_id: u64) -> Option<(u32, u32)> {
    let key = (wr_id & !SHARED) >> 32;
    (wr_id & SHARED != 0).then_some((key as u32, wr_id as u32))
}

impl Shared {
    pub(super) fn new(key: u32, clock: Clock) -> Self {
        Self {
            key,
            clock,
            ledger: Mutex::default(),
        }
    }

    pub(super) fn key(&self) -> u32 {
        self.key
    }

    /// Enters receives and posts them, with the numbers that the device gets. What is refused is
    /// not entered; what a panic leaves behind stays entered, since it may have been posted.
    pub(super) fn post(
        &self,
        list: impl Iterator<Item = (Posted, Holds)>,
        post: impl FnOnce(&[u64]) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        let mut ledger = self.ledger.lock();
        let at = self.clock.now();
        let numbers: SmallVec<[u32; 4]> = list
            .map(|(posted, holds)| ledger.enter(Entry { posted, at, holds }))
            .collect();
        let of_device = |number: &u32| SHARED | u64::from(self.key) << 32 | u64::from(*number);
        let wr_ids: SmallVec<[u64; 4]> = numbers.iter().map(of_device).collect();
        let result = post(&wr_ids);
        if let Err(error) = &result {
            for number in &numbers[error.bad_wr.min(numbers.len())..] {
                // A caller that posts holds these references too, so nothing is destroyed here.
                ledger.entries.remove(number);
            }
        }
        result
    }

    /// The receive of this number is done. With the time when it was posted.
    pub(super) fn complete(&self, number: u32, released: &mut Released) -> Option<(Posted, u64)> {
        let entry = self.ledger.lock().entries.remove(&number)?;
        released.extend(entry.holds);
        Some((entry.posted, entry.at))
    }

    /// Nothing that is posted will be executed any more. The program's own numbers stay, for
    /// completions that have not been polled. What was held: to be dropped with no lock held.
    pub(super) fn release(&self) -> Vec<Hold> {
        let mut ledger = self.ledger.lock();
        let entries = ledger.entries.values_mut();
        entries.flat_map(|entry| entry.holds.drain(..)).collect()
    }
}

impl Ledger {
    /// A refused receive uses up its number too, since a driver may have taken it all the same.
    /// Numbers that wrap around to one in use skip it.
    fn enter(&mut self, entry: Entry) -> u32 {
        while self.entries.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let number = self.next;
        self.entries.insert(number, entry);
        self.next = self.next.wrapping_add(1);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cq::WcOpcode;
    use crate::error::{Cause, Error, ErrorKind, Verb};

    fn post(shared: &Shared, ids: &[u64], bad_wr: Option<usize>) -> Vec<u64> {
        let mut given = Vec::new();
        let list = ids.iter().map(|wr_id| {
            let opcode = WcOpcode::Recv;
            let wr_id = *wr_id;
            (Posted { wr_id, opcode }, Holds::new())
        });
        let error = Error::new(Verb::PostSrqRecv, ErrorKind::NoMemory, Cause::Unspecified);
        let result = shared.post(list, |wr_ids| {
            given = wr_ids.to_vec();
            bad_wr.map_or(Ok(()), |bad_wr| Err(PostError { bad_wr, error }))
        });
        assert_eq!(result.is_err(), bad_wr.is_some());
        given
    }

    fn complete(shared: &Shared, wr_id: u64) -> Option<u64> {
        let (key, number) = parts(wr_id).expect("it is of an SRQ");
        assert_eq!(key, shared.key());
        let posted = shared.complete(number, &mut Released::new());
        posted.map(|(posted, _)| posted.wr_id)
    }

    /// Completions come in any order, each once; refused receives are not there; numbers wrap
    /// around and pass by those in use.
    #[test]
    fn numbers_of_the_program_come_back_in_any_order() {
        let shared = Shared::new(7, Clock::default());
        let stuck = post(&shared, &[9], None)[0];
        shared.ledger.lock().next = u32::MAX - 1;
        let first = post(&shared, &[10, 11, 12], Some(2));
        let second = post(&shared, &[13, 13], None);
        assert_eq!(complete(&shared, second[1]), Some(13));
        assert_eq!(complete(&shared, first[1]), Some(11));
        assert_eq!(complete(&shared, first[1]), None, "once");
        assert_eq!(complete(&shared, first[2]), None, "was refused");
        assert_eq!(complete(&shared, stuck), Some(9));
        assert_eq!(complete(&shared, first[0]), Some(10));
        assert_eq!(complete(&shared, second[0]), Some(13));
        assert!(shared.ledger.lock().entries.is_empty());
        assert_eq!(parts(1 << 63 | 5), None);
        assert_eq!(super::super::ledger::parts(stuck).0 >> 30, 1);
    }
}
