//! Counters: 8 bytes that nothing but fetch-and-adds change.

use core::ops::Range;
use std::collections::BTreeMap;

/// A fetch-and-add that can be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Add {
    /// The memory of its counter.
    pub(crate) memory: u64,
    /// Where the counter is in it.
    pub(crate) at: u64,
    number: u64,
}

/// The counters of one memory, by where they are.
#[derive(Debug, Default)]
pub(crate) struct Counters(BTreeMap<u64, Counter>);

/// What a counter must hold: its first value, and each add that is done, and any of those that may
/// be.
#[derive(Debug, Default)]
struct Counter {
    sum: u64,
    /// Adds that have not been seen to succeed.
    open: BTreeMap<u64, u64>,
    posted: u64,
}

impl Counters {
    pub(crate) fn has(&self, at: u64) -> bool {
        self.0.contains_key(&at)
    }

    /// A counter that holds `value`.
    pub(crate) fn start(&mut self, at: u64, value: u64) {
        let sum = value;
        let counter = Counter {
            sum,
            ..Counter::default()
        };
        self.0.insert(at, counter);
    }

    /// An add was posted.
    pub(crate) fn add(&mut self, memory: u64, at: u64, add: u64) -> Option<Add> {
        let counter = self.0.get_mut(&at)?;
        let number = counter.posted;
        counter.posted += 1;
        counter.open.insert(number, add);
        Some(Add { memory, at, number })
    }

    /// An add has succeeded.
    pub(crate) fn done(&mut self, add: &Add) {
        if let Some(counter) = self.0.get_mut(&add.at)
            && let Some(value) = counter.open.remove(&add.number)
        {
            counter.sum = counter.sum.wrapping_add(value);
        }
    }

    /// Something else may write there: what is in it cannot be followed any more.
    pub(crate) fn forget(&mut self, range: &Range<u64>) {
        self.0
            .retain(|at, _| *at + 8 <= range.start || range.end <= *at);
    }

    /// Whether the bytes from `start` on agree with each counter that is wholly in them.
    pub(crate) fn check(&self, start: u64, bytes: &[u8]) -> Result<(), String> {
        for (at, counter) in self.0.range(start..) {
            let Some(value) = value_at(bytes, at - start) else {
                break;
            };
            if !counter.can_be(value) {
                return Err(format!(
                    "the counter at offset {at:#x} is {value:#x}; with each finished fetch-and-add executed \
                     once it is {:#x}, and {} more may have been executed",
                    counter.sum,
                    counter.open.len()
                ));
            }
        }
        Ok(())
    }
}

impl Counter {
    fn can_be(&self, value: u64) -> bool {
        let mut rest = vec![value.wrapping_sub(self.sum)];
        if self.open.len() > MOST_OPEN {
            return true;
        }
        for add in self.open.values() {
            if rest.contains(&0) {
                return true;
            }
            let without: Vec<u64> = rest.iter().map(|rest| rest.wrapping_sub(*add)).collect();
            rest.extend(without);
            rest.sort_unstable();
            rest.dedup();
        }
        rest.contains(&0)
    }
}

/// The 8 bytes at `at`, as a device counts in them.
pub(crate) fn value_at(bytes: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// Adds whose end is unknown, beyond which any value is taken for right.
const MOST_OPEN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    /// ATOM-01: what is done counts once, what is open at most once.
    #[test]
    fn a_counter_holds_what_is_done_and_some_of_what_is_open() {
        let mut counters = Counters::default();
        counters.start(8, 100);
        let [done, _open, _another] = [1, 10, 20].map(|add| counters.add(0, 8, add).unwrap());
        counters.done(&done);
        for (value, good) in [
            (100, false),
            (101, true),
            (102, false),
            (111, true),
            (121, true),
            (131, true),
            (141, false),
        ] {
            let mut bytes = [0; 24];
            bytes[8..16].copy_from_slice(&u64::to_ne_bytes(value));
            assert_eq!(counters.check(0, &bytes).is_ok(), good, "{value}");
            assert!(counters.check(9, &bytes[9..]).is_ok());
            assert!(counters.check(0, &bytes[..15]).is_ok());
        }
        counters.forget(&(15..16));
        assert!(!counters.has(8));
    }
}
