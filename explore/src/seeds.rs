//! Which seeds are tried, by which threads, and how many at once.

use core::fmt;
use core::num::NonZero;
use core::ops::{ControlFlow, Range};
use core::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Seeds to try. The outcome depends on these alone, not on the number of jobs: the failure that is
/// reported is that of the lowest seed that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds {
    range: Range<u64>,
    shard: Shard,
    jobs: NonZero<usize>,
}

/// One of several equal parts of the seeds: every `of`th, from the `number`th on. Shards need not
/// know each other; together they try each seed once.
///
/// ```
/// use verbs_explore::Shard;
///
/// let shard: Shard = "2/3".parse()?;
/// assert_eq!((shard.number(), shard.of()), (2, 3));
/// assert!("4/3".parse::<Shard>().is_err());
/// # Ok::<(), verbs_explore::NoShard>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u64,
    of: u64,
}

/// The outcome of trying seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Searched<F> {
    /// How many seeds were tried.
    pub tried: u64,
    /// The lowest seed that fails, and how.
    pub failure: Option<(u64, F)>,
    /// What was left when the search was broken off: the same shard of these seeds goes on.
    pub rest: Option<Range<u64>>,
}

impl Seeds {
    /// These seeds, in one shard and one job.
    pub const fn new(range: Range<u64>) -> Self {
        Self {
            range,
            shard: Shard::WHOLE,
            jobs: NonZero::<usize>::MIN,
        }
    }

    /// Others, in the same shard and jobs.
    #[must_use]
    pub fn range(self, range: Range<u64>) -> Self {
        Self { range, ..self }
    }

    /// Only those of a shard. Default: [`Shard::WHOLE`].
    #[must_use]
    pub fn shard(self, shard: Shard) -> Self {
        Self { shard, ..self }
    }

    /// How many threads try seeds at the same time, at most. Default: 1.
    #[must_use]
    pub fn jobs(self, jobs: NonZero<usize>) -> Self {
        Self { jobs, ..self }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        let all = self.range.end.saturating_sub(self.range.start);
        all.saturating_sub(self.shard.number - 1)
            .div_ceil(self.shard.of)
    }

    /// The `index`th of them, from 0.
    fn nth(&self, index: u64) -> u64 {
        self.range.start + (self.shard.number - 1) + index * self.shard.of
    }

    /// Tries them in their order until one fails. `trial` says how one fails. `tried` is called
    /// after each, and may break the search off: seeds that have begun are finished, and no other
    /// begins. Once a seed has failed, no higher one begins.
    pub fn search<F: Send>(
        &self,
        trial: impl Fn(u64) -> Option<F> + Sync,
        tried: impl Fn() -> ControlFlow<()> + Sync,
    ) -> Searched<F> {
        let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
        let count = self.count();
        // Seeds from this index on need not be tried any more.
        let end = AtomicU64::new(count);
        let failure = Mutex::new(None);
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= end.load(Ordering::Relaxed) {
                    return;
                }
                let failed = trial(self.nth(index));
                done.fetch_add(1, Ordering::Relaxed);
                if tried().is_break() {
                    end.fetch_min(next.load(Ordering::Relaxed), Ordering::Relaxed);
                }
                if let Some(how) = failed
                    && end.fetch_min(index, Ordering::Relaxed) > index
                {
                    // Threads come here in any order: the lowest index stays.
                    let mut lowest = failure.lock().unwrap_or_else(PoisonError::into_inner);
                    if lowest.as_ref().is_none_or(|(of, _)| *of > index) {
                        *lowest = Some((index, how));
                    }
                }
            }
        };
        let jobs = count.min(self.jobs.get() as u64);
        thread::scope(|scope| {
            for _ in 1..jobs {
                // If no more threads can be started, the existing ones do all the work.
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
        let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        let end = end.into_inner();
        let is_left = failure.is_none() && end < count;
        Searched {
            tried: done.into_inner(),
            rest: is_left.then(|| self.range.start + end * self.shard.of..self.range.end),
            failure: failure.map(|(index, how)| (self.nth(index), how)),
        }
    }
}

impl Shard {
    /// All seeds.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Shard `number` (from 1) of `of`.
    ///
    /// # Errors
    /// If there is no such shard.
    pub const fn new(number: u64, of: u64) -> Result<Self, NoShard> {
        if number == 0 || number > of {
            return Err(NoShard);
        }
        Ok(Self { number, of })
    }

    /// Which it is, from 1.
    pub const fn number(self) -> u64 {
        self.number
    }

    /// How many there are.
    pub const fn of(self) -> u64 {
        self.of
    }
}

impl FromStr for Shard {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<Self, NoShard> {
        let (number, of) = text.split_once('/').ok_or(NoShard)?;
        let part = |text: &str| text.parse().map_err(|_| NoShard);
        Self::new(part(number)?, part(of)?)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// A shard that does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NoShard;

impl fmt::Display for NoShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a shard is K/N, with K from 1 to N")
    }
}

impl fmt::Debug for NoShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for NoShard {}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(n: usize) -> NonZero<usize> {
        NonZero::new(n).unwrap()
    }

    #[test]
    fn shards_together_try_each_seed_once() {
        for (start, length, of) in [(0, 10, 3), (5, 2, 4), (7, 0, 2), (3, 12, 1)] {
            let tried = Mutex::new(Vec::new());
            for number in 1..=of {
                let shard = Shard::new(number, of).unwrap();
                let seeds = Seeds::new(start..start + length).shard(shard).jobs(jobs(2));
                let trial = |seed| {
                    tried.lock().unwrap().push(seed);
                    None::<()>
                };
                let searched = seeds.search(trial, || ControlFlow::Continue(()));
                assert_eq!(searched.tried, seeds.count());
            }
            let mut tried = tried.into_inner().unwrap();
            tried.sort_unstable();
            assert_eq!(tried, (start..start + length).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_lowest_seed_that_fails_is_found_by_any_number_of_jobs() {
        for n in 1..4 {
            let seeds = Seeds::new(0..1000).jobs(jobs(n));
            let searched = seeds.search(
                |seed| (seed % 100 >= 37).then_some(seed * 2),
                || ControlFlow::Continue(()),
            );
            assert_eq!(searched.failure, Some((37, 74)));
            assert!(searched.tried >= 38);
        }
    }

    #[test]
    fn what_is_left_of_a_search_that_was_broken_off_goes_on() {
        for (n, shard) in [(1, Shard::WHOLE), (3, Shard::new(2, 3).unwrap())] {
            let tried = Mutex::new(Vec::new());
            let trial = |seed| {
                tried.lock().unwrap().push(seed);
                None::<()>
            };
            let seeds = Seeds::new(5..500).shard(shard).jobs(jobs(n));
            let some = || match tried.lock().unwrap().len() {
                ..20 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            };
            let rest = seeds.search(trial, some).rest.expect("it was broken off");
            let seeds = seeds.range(rest);
            assert_eq!(seeds.search(trial, || ControlFlow::Continue(())).rest, None);
            let mut tried = tried.into_inner().unwrap();
            tried.sort_unstable();
            let all = (5..500).skip(shard.number() as usize - 1);
            assert_eq!(tried, all.step_by(shard.of() as usize).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_shard_that_does_not_exist_is_refused() {
        for text in ["", "1", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b"] {
            assert_eq!(text.parse::<Shard>(), Err(NoShard), "{text}");
        }
        assert_eq!("2/2".parse::<Shard>().unwrap().to_string(), "2/2");
    }
}
