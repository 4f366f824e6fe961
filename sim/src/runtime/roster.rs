//! The threads of a simulation: which take part, which sleep, and which made each trace record.

use parking_lot::Mutex;

use crate::sync::thread;

/// Which threads take part, and which of them sleep.
///
/// The lock is not of the facade, so that a model checker does not see it as a step.
/// Whichever of the last two threads stops first, the other one closes the simulation.
#[derive(Default)]
pub(crate) struct Roster(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    threads: u32,
    /// Threads that sleep and have not been woken.
    asleep: u32,
}

impl Counts {
    fn all_sleep(&self) -> bool {
        self.asleep > 0 && self.asleep == self.threads
    }
}

impl Roster {
    /// Notes that a thread sleeps. Returns whether no thread is awake.
    pub(crate) fn sleeps(&self) -> bool {
        let mut counts = self.0.lock();
        counts.asleep += 1;
        counts.all_sleep()
    }

    /// Notes that threads are woken.
    pub(crate) fn woken(&self, threads: u32) {
        self.0.lock().asleep -= threads;
    }

    /// Adds a thread.
    pub(crate) fn enter(&self) {
        self.0.lock().threads += 1;
    }

    /// Removes a thread. Returns whether no thread is awake.
    pub(crate) fn leave(&self) -> bool {
        let mut counts = self.0.lock();
        counts.threads -= 1;
        counts.all_sleep()
    }
}

/// The turns of threads, in order.
#[derive(Default)]
pub(crate) struct Turns(pub(crate) Mutex<Vec<Turn>>);

pub(crate) struct Turn {
    pub(crate) thread: String,
    /// The index of the trace record from which on the thread made the records.
    pub(crate) start: usize,
    /// A note by the thread instead of records.
    pub(crate) note: Option<String>,
}

impl Turns {
    /// Notes that the calling thread makes the records from index `start` on, or a note there.
    pub(crate) fn push(&self, start: usize, note: Option<String>) {
        let thread = thread::current().name().unwrap_or_default().to_owned();
        let turn = Turn {
            thread,
            start,
            note,
        };
        self.0.lock().push(turn);
    }
}
