//! Empty polls of one CQ, in virtual time: whether the next one may move the clock to a timer.

use std::mem;

use crate::time::Time;

/// What has happened in a fabric: the number of events and calls, and the time.
pub(crate) type Moment = (u64, Time);

/// Empty polls of one CQ that leave a clock where it is, after which the next one moves it all the
/// same. So a party that never rests, and needs no time for what it does, does not stop time.
const PATIENCE: u32 = 10_000;

/// The last empty poll of a CQ.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Look {
    /// What had happened when it began, and then when it ended.
    saw: Moment,
    /// Empty polls at this time.
    polls: u32,
    rearmed: Rearmed,
}

/// Whether a poll belongs to the one before: a program polls, arms, and polls again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rearmed {
    #[default]
    No,
    /// It was polled. The next poll does if the program arms before.
    Polled,
    /// It was polled and armed.
    Armed,
}

impl Look {
    /// The CQ was armed.
    #[inline]
    pub(super) fn armed(&mut self) {
        if self.rearmed == Rearmed::Polled {
            self.rearmed = Rearmed::Armed;
        }
    }

    /// An empty poll begins. Returns whether it may move the clock to a timer; `None` if it belongs
    /// to the one before.
    pub(crate) fn begin(&mut self, now: Moment) -> Option<bool> {
        if self.rearmed == Rearmed::Armed {
            self.rearmed = Rearmed::No;
            return None;
        }
        self.rearmed = Rearmed::Polled;
        let saw = self.see(now);
        Some(saw == now || self.polls >= PATIENCE)
    }

    /// The empty poll ends.
    pub(crate) fn end(&mut self, now: Moment) {
        self.polls = self.polls.saturating_add(1);
        self.see(now);
    }

    /// Returns what had happened before.
    fn see(&mut self, now: Moment) -> Moment {
        let saw = mem::replace(&mut self.saw, now);
        if saw.1 != now.1 {
            self.polls = 0;
        }
        saw
    }
}
