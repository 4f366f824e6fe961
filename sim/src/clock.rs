//! The clock of the machine, and the thread that lets timers fire by it.
//!
//! This is the only file of the simulator that reads that clock, and only in
//! [`Mode::RealTime`](crate::Mode::RealTime); otherwise time is virtual.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::fabric::Fabric;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::time::Time;
use crate::world::World;

/// The clock of the machine, and an alarm for the thread that lets timers fire.
#[derive(Debug)]
pub(crate) struct RealClock {
    start: Instant,
    /// When that thread wakes up next, in nanoseconds from the start.
    alarm: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The thread is to end.
    ended: bool,
}

const NEVER: u64 = u64::MAX;

impl RealClock {
    /// Its time starts now.
    pub(crate) fn start() -> Self {
        Self {
            start: Instant::now(),
            alarm: AtomicU64::new(NEVER),
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        let nanos = self.start.elapsed().as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(NEVER))
    }

    /// Something is due at this time.
    pub(crate) fn expect(&self, due: Time) {
        let due = due.as_nanos();
        if due < self.alarm.load(Ordering::Relaxed) {
            let _state = self.state.lock();
            if self.alarm.fetch_min(due, Ordering::Relaxed) > due {
                self.changed.notify_all();
            }
        }
    }

    /// Waits for news, but no longer than until `end`; without an end if that is too far away.
    pub(crate) fn wait<T>(&self, news: &Condvar, guard: &mut MutexGuard<'_, T>, end: Time) {
        match self.start.checked_add(end.since_start()) {
            Some(end) => {
                news.wait_until(guard, end);
            }
            None => news.wait(guard),
        }
    }

    /// Waits until this time.
    pub(crate) fn wait_until(&self, end: Time) {
        let mut state = self.state.lock();
        while self.now() < end && !state.ended {
            self.wait(&self.changed, &mut state, end);
        }
    }

    /// Lets timers fire when they are due, until the end.
    fn run(&self, world: &World) {
        let mut state = self.state.lock();
        while !state.ended {
            let alarm = self.alarm.load(Ordering::Relaxed);
            if self.now().as_nanos() < alarm {
                self.wait(&self.changed, &mut state, Time::from_nanos(alarm));
                continue;
            }
            self.alarm.store(NEVER, Ordering::Relaxed);
            // What is set from now on is expected anew.
            MutexGuard::unlocked(&mut state, || world.with_all(Fabric::catch_up));
        }
    }
}

/// The thread that lets timers fire. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct TimerThread {
    world: Arc<World>,
    thread: Option<JoinHandle<()>>,
}

impl TimerThread {
    /// Starts it, where the time is that of the machine.
    ///
    /// # Panics
    /// If the system can start no thread.
    pub(crate) fn start(world: &Arc<World>) -> Option<Self> {
        world.clock.as_ref()?;
        let of_thread = world.clone();
        let run = move || {
            if let Some(clock) = &of_thread.clock {
                clock.run(&of_thread);
            }
        };
        let thread = thread::Builder::new().name("verbs-sim timers".to_owned());
        let thread = thread.spawn(run).expect("the system can start a thread");
        Some(Self {
            world: world.clone(),
            thread: Some(thread),
        })
    }
}

impl Drop for TimerThread {
    fn drop(&mut self) {
        if let Some(clock) = &self.world.clock {
            clock.state.lock().ended = true;
            clock.changed.notify_all();
        }
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported where it happened.
            let _ = thread.join();
        }
    }
}
