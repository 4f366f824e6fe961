//! What was looked at.

use core::fmt;

/// Counts of a run that broke no invariant, which show that it did something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Calls, without queries.
    pub calls: u64,
    /// Work requests that were posted.
    pub posted: u64,
    /// Completions that were polled.
    pub polled: u64,
    /// CQ events that were read.
    pub events: u64,
    /// Bytes of regions that were compared.
    pub bytes: u64,
    /// Completions with an error other than a flush: a queue pair had failed.
    pub failed: u64,
    /// Queue pairs that became ready to send after one had failed.
    pub reconnected: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            calls,
            posted,
            polled,
            events,
            bytes,
            ..
        } = self;
        write!(
            f,
            "{calls} calls, {posted} work requests, {polled} completions, {events} events, {bytes} bytes compared"
        )
    }
}
