//! Time in the core: nanoseconds since the start, passed as an argument.

mod timers;

pub(crate) use timers::Timers;

use core::time::Duration;

/// Nanoseconds since the start of the simulation's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Time(u64);

impl Time {
    /// The start.
    pub(crate) const ZERO: Self = Self(0);

    /// The time `nanos` nanoseconds after the start.
    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start.
    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time since the start.
    pub(crate) const fn since_start(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// The time `by` later, or the end of time if that is too far.
    #[must_use]
    pub(crate) fn after(self, by: Duration) -> Self {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(by))
    }
}
