//! The clock of the machine, and the deadlines of threads that wait.
//!
//! This is the only file of the simulator that reads that clock, except for questions to other
//! processes (`network/service.rs`): in [`Mode::RealTime`](crate::Mode::RealTime), and for waits in
//! [`Mode::Inline`](crate::Mode::Inline). In all other cases time is virtual.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use verbs_api::Wait;

use crate::sync::{CHECKED, Condvar, Mutex, MutexGuard};
use crate::time::Time;

/// The clock of the machine, and an alarm for the timer thread.
pub(crate) struct RealClock {
    start: Instant,
    /// When the timer thread wakes up next, in nanoseconds from the start.
    alarm: AtomicU64,
    /// Whether the timer thread is to end.
    ended: Mutex<bool>,
    changed: Condvar,
}

const NEVER: u64 = u64::MAX;

impl RealClock {
    /// Starts a clock whose time is 0 now.
    pub(crate) fn start() -> Self {
        Self {
            start: Instant::now(),
            alarm: AtomicU64::new(NEVER),
            ended: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        let nanos = self.start.elapsed().as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(NEVER))
    }

    /// Sets the alarm, unless it is sooner already.
    pub(crate) fn expect(&self, due: Time) {
        let due = due.as_nanos();
        if due < self.alarm.load(Ordering::Relaxed) {
            // The timer thread reads the alarm under this lock before it sleeps, so it cannot miss
            // the change.
            let _ended = self.ended.lock();
            if self.alarm.fetch_min(due, Ordering::Relaxed) > due {
                self.changed.notify_all();
            }
        }
    }

    /// Waits for a change, until `end` at most.
    fn wait(&self, ended: &mut MutexGuard<'_, bool>, end: Time) {
        let end = self.start.checked_add(end.since_start());
        end.map_or(Deadline::Never, Deadline::Machine)
            .wait(&self.changed, ended);
    }

    /// Waits until this time.
    pub(crate) fn wait_until(&self, end: Time) {
        let mut ended = self.ended.lock();
        while self.now() < end && !*ended {
            self.wait(&mut ended, end);
        }
    }

    /// Calls `fire` when timers are due, until the clock ends. `fire` returns when to call it
    /// again.
    pub(crate) fn run(&self, fire: impl Fn() -> Option<Time>) {
        let mut ended = self.ended.lock();
        while !*ended {
            let alarm = self.alarm.load(Ordering::Relaxed);
            if self.now().as_nanos() < alarm {
                self.wait(&mut ended, Time::from_nanos(alarm));
                continue;
            }
            self.alarm.store(NEVER, Ordering::Relaxed);
            // `fire` returns a time only for timers that are set by then; later ones set the alarm.
            if let Some(next) = MutexGuard::unlocked(&mut ended, &fire) {
                self.alarm.fetch_min(next.as_nanos(), Ordering::Relaxed);
            }
        }
    }

    /// Ends the timer thread.
    pub(crate) fn end(&self) {
        *self.ended.lock() = true;
        self.changed.notify_all();
    }
}

/// When the wait of a thread is over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deadline {
    /// Never, or at a time that `Instant` cannot express.
    Never,
    /// By the clock of the machine.
    Machine(Instant),
    /// By the clock of the simulation, for known threads: a model checker has no other clock.
    Simulation(Time),
}

impl Deadline {
    /// The deadline of a wait that starts now, by the clock of the simulation or of the machine.
    /// `now` is the time of the simulation.
    ///
    /// Not inlined: otherwise the compiler computes it early, from a duration that other waits do
    /// not have, and memory checkers report the uninitialized read.
    #[inline(never)]
    pub(crate) fn of(wait: Wait, by_simulation: bool, now: Time) -> Self {
        let Wait::For(time) = wait else {
            return Self::Never;
        };
        if by_simulation || CHECKED {
            return Self::Simulation(now.after(time));
        }
        let end = Instant::now().checked_add(time);
        end.map_or(Self::Never, Self::Machine)
    }

    /// Whether the deadline has passed.
    pub(crate) fn is_over(self, now: Time) -> bool {
        match self {
            Self::Never => false,
            Self::Machine(end) => Instant::now() >= end,
            Self::Simulation(end) => now >= end,
        }
    }

    /// The deadline, if it is by the clock of the simulation.
    pub(crate) fn virtual_end(self) -> Option<Time> {
        match self {
            Self::Simulation(end) => Some(end),
            Self::Never | Self::Machine(_) => None,
        }
    }

    /// Waits for a wakeup, until the deadline at most.
    pub(crate) fn wait<T>(self, wakeup: &Condvar, guard: &mut MutexGuard<'_, T>) {
        match self {
            Self::Machine(end) => {
                wakeup.wait_until(guard, end);
            }
            Self::Never | Self::Simulation(_) => wakeup.wait(guard),
        }
    }
}
