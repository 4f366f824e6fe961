//! The time of the program.

use core::time::Duration;

use crate::memory;

/// A time, or a duration, in nanoseconds.
pub(crate) type Nanos = u64;

/// The time at the start, by all clocks: some days after the epoch.
const START: Nanos = 1_000_000 * 1_000_000_000;

/// Programs wait for a very long time where they mean without an end.
pub(crate) const VERY_LONG: Nanos = 100 * 366 * 24 * 3600 * 1_000_000_000;

/// When a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timeout {
    Never,
    After(Nanos),
    /// At a time by a clock of the program.
    At(Nanos),
    /// The call fails with this error: no time is there, or not a valid one.
    Invalid(i32),
}

impl Timeout {
    /// Milliseconds, as `poll` has them.
    pub(crate) fn millis(count: i32) -> Self {
        u64::try_from(count).map_or(Self::Never, |count| Self::After(count * 1_000_000))
    }

    /// A duration in the memory of a thread. Never, if the address is 0.
    pub(crate) fn at(tid: i32, at: u64) -> Self {
        Self::read(tid, at, Self::After)
    }

    /// The same, in microseconds, of which `select` takes more than a second has.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn of_timeval(tid: i32, at: u64) -> Self {
        match words_at::<2>(tid, at) {
            _ if at == 0 => Self::Never,
            None => Self::Invalid(libc::EFAULT),
            Some([seconds, micros]) => {
                let seconds = seconds.saturating_add(micros / 1_000_000);
                nanos(seconds, micros % 1_000_000, 1000).map_or_else(Self::Invalid, Self::After)
            }
        }
    }

    /// A time in the memory of a thread. Never, if the address is 0.
    pub(crate) fn absolute(tid: i32, at: u64) -> Self {
        Self::read(tid, at, Self::At)
    }

    /// The same, where the call needs one.
    pub(crate) fn or_fault(self) -> Self {
        match self {
            Self::Never => Self::Invalid(libc::EFAULT),
            time => time,
        }
    }

    fn read(tid: i32, at: u64, valid: fn(Nanos) -> Self) -> Self {
        match words_at(tid, at) {
            _ if at == 0 => Self::Never,
            None => Self::Invalid(libc::EFAULT),
            Some([seconds, rest]) => nanos(seconds, rest, 1).map_or_else(Self::Invalid, valid),
        }
    }
}

/// Some numbers in the memory of a thread.
pub(crate) fn words_at<const COUNT: usize>(tid: i32, at: u64) -> Option<[i64; COUNT]> {
    let bytes = memory::read(tid, at, 8 * COUNT)?;
    let (words, _) = bytes.as_chunks();
    let words: &[[u8; 8]; COUNT] = words.try_into().ok()?;
    Some(words.map(i64::from_ne_bytes))
}

/// A time of whole seconds and a rest, in units of `unit` nanoseconds. Fails with an error if there
/// is no such time.
pub(crate) fn nanos(seconds: i64, rest: i64, unit: Nanos) -> Result<Nanos, i32> {
    let (Ok(seconds), Ok(rest)) = (u64::try_from(seconds), u64::try_from(rest)) else {
        return Err(libc::EINVAL);
    };
    if rest >= 1_000_000_000 / unit {
        return Err(libc::EINVAL);
    }
    Ok(seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(rest * unit))
}

/// The clock of the program, which moves with the schedule.
#[derive(Debug)]
pub(crate) struct Clock {
    now: Nanos,
    page: crate::sys::Page,
}

impl Clock {
    pub(crate) fn new(page: crate::sys::Page) -> Self {
        let clock = Self { now: START, page };
        clock.page.set(clock.now);
        clock
    }

    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.now - START)
    }

    /// A time, from the start.
    pub(crate) fn elapsed_at(&self, time: Nanos) -> Duration {
        Duration::from_nanos(time.saturating_sub(START))
    }

    pub(crate) fn set(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        self.page.set(self.now);
    }

    /// When a wait that starts now is over.
    pub(crate) fn end_of(&self, timeout: Timeout) -> Option<Nanos> {
        let end = match timeout {
            Timeout::Never | Timeout::Invalid(_) => return None,
            Timeout::After(time) => self.now.saturating_add(time),
            Timeout::At(time) => time,
        };
        (end < VERY_LONG).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_valid_or_an_error_and_a_huge_one_is_the_longest() {
        assert_eq!(nanos(2, 3, 1), Ok(2_000_000_003));
        assert_eq!(nanos(2, 3, 1000), Ok(2_000_003_000));
        assert_eq!(nanos(0, 999_999, 1000), Ok(999_999_000));
        assert_eq!(nanos(i64::MAX, 999_999_999, 1), Ok(Nanos::MAX));
        for (seconds, rest, unit) in [(-1, 0, 1), (0, -1, 1), (0, 1_000_000_000, 1)] {
            assert_eq!(nanos(seconds, rest, unit), Err(libc::EINVAL));
        }
        assert_eq!(nanos(0, 1_000_000, 1000), Err(libc::EINVAL));
    }
}
