//! Deadlines of numbered things, at most one for each.
//!
//! Most timers are set and stopped again long before they would fire. So setting and stopping only
//! write the deadline in place. The queue is corrected when the earliest deadline is needed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Time;

/// Deadlines by number. All numbers below the greatest that was ever used take memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    timers: Vec<Timer>,
    /// Each running timer has an entry at its deadline or before it. Entries that differ from the
    /// timer's `queued` are stale.
    queue: BinaryHeap<Reverse<(Time, u32)>>,
    /// The earliest entry has become sooner.
    sooner: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Timer {
    deadline: Option<Time>,
    /// Its entry in the queue.
    queued: Option<Time>,
}

impl Timers {
    /// When the timer fires, if it runs.
    pub(crate) fn get(&self, number: u32) -> Option<Time> {
        self.timers.get(number as usize)?.deadline
    }

    /// Starts, moves or stops a timer.
    #[inline]
    pub(crate) fn set(&mut self, number: u32, at: Option<Time>) {
        let index = number as usize;
        if index >= self.timers.len() {
            // A timer that never ran needs no memory.
            if at.is_none() {
                return;
            }
            self.grow(index);
        }
        let timer = &mut self.timers[index];
        timer.deadline = at;
        if let Some(at) = at
            && timer.queued.is_none_or(|queued| queued > at)
        {
            timer.queued = Some(at);
            self.enqueue(at, number);
        }
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        self.timers.resize(index + 1, Timer::default());
    }

    #[inline(never)]
    fn enqueue(&mut self, at: Time, number: u32) {
        self.sooner |= self.earliest().is_none_or(|earliest| at < earliest);
        self.queue.push(Reverse((at, number)));
    }

    /// A time before which no timer fires, though perhaps none fires at it.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn earliest(&self) -> Option<Time> {
        self.queue.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the note that the earliest entry has become sooner.
    #[inline]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn take_sooner(&mut self) -> bool {
        std::mem::take(&mut self.sooner)
    }

    /// The timer that fires first. At equal times, the one with the least number.
    pub(crate) fn first(&mut self) -> Option<(Time, u32)> {
        loop {
            let Reverse((at, number)) = *self.queue.peek()?;
            let timer = &mut self.timers[number as usize];
            let is_known = timer.queued == Some(at);
            if timer.deadline == Some(at) {
                return Some((at, number));
            }
            // The entry is stale, or the timer was moved to a later time.
            self.queue.pop();
            if is_known {
                timer.queued = timer.deadline;
                let later = timer.deadline.map(|later| Reverse((later, number)));
                self.queue.extend(later);
            }
        }
    }

    /// The timers that run, in the order in which they fire.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn running(&self) -> Vec<(Time, u32)> {
        let timers = (0..).zip(&self.timers);
        let mut running: Vec<_> = timers
            .filter_map(|(number, timer)| Some((timer.deadline?, number)))
            .collect();
        running.sort_unstable();
        running
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::rng::{Purpose, Random};

    /// After any calls, the first timer is the first of those that run.
    #[test]
    fn timers_fire_in_the_order_of_their_deadlines() {
        let mut random = Random::new(1, Purpose::Node, 0);
        let mut timers = Timers::default();
        let mut model: BTreeMap<u32, Time> = BTreeMap::new();
        let mut fired = 0;
        for _ in 0..20_000 {
            let draw = random.any();
            let number = (draw % 7) as u32;
            let at = Time::from_nanos(draw >> 8 & 0xff);
            match draw >> 16 & 3 {
                0 => {
                    timers.set(number, None);
                    model.remove(&number);
                }
                1 | 2 => {
                    timers.set(number, Some(at));
                    model.insert(number, at);
                }
                _ => {
                    let first = model.iter().map(|(number, at)| (*at, *number)).min();
                    assert_eq!(timers.first(), first);
                    if let Some((_, number)) = first {
                        timers.set(number, None);
                        model.remove(&number);
                        fired += 1;
                    }
                }
            }
            assert_eq!(timers.get(number), model.get(&number).copied());
        }
        assert!(fired > 1000);
        assert!(timers.queue.len() < 100, "stale entries pile up");
        assert_eq!(timers.running().len(), model.len());
    }

    /// A caller that learns when the earliest time becomes sooner, and asks for the first timer
    /// when it is due, misses none.
    #[test]
    fn no_timer_fires_before_the_earliest() {
        let mut random = Random::new(2, Purpose::Node, 0);
        let mut timers = Timers::default();
        let (mut expected, mut notified, mut looks) = (None, 0, 0);
        for now in 0..20_000 {
            let draw = random.any();
            let number = (draw % 7) as u32;
            let at = Time::from_nanos(now + 1 + (draw >> 8 & 0xff));
            timers.set(number, (draw >> 16 & 1 == 0).then_some(at));
            if timers.take_sooner() {
                expected = timers.earliest();
                notified += 1;
            }
            let now = Time::from_nanos(now);
            let is_due = timers.running().first().is_some_and(|(at, _)| *at <= now);
            if expected.is_none_or(|expected| expected > now) {
                assert!(!is_due);
                continue;
            }
            looks += 1;
            while let Some((at, number)) = timers.first()
                && at <= now
            {
                timers.set(number, None);
            }
            timers.first();
            expected = timers.earliest();
        }
        assert!(
            (100..5_000).contains(&notified) && (100..5_000).contains(&looks),
            "{notified} {looks}"
        );
    }

    /// A timer that is set and stopped repeatedly at one time stays cheap.
    #[test]
    fn a_timer_that_never_fires_is_queued_once() {
        let mut timers = Timers::default();
        for nanos in 0..1000 {
            timers.set(3, Some(Time::from_nanos(1000 + nanos)));
            timers.set(3, None);
            assert_eq!(timers.take_sooner(), nanos == 0);
        }
        assert_eq!(timers.queue.len(), 1);
        assert_eq!(timers.first(), None);
    }
}
