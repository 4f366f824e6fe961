//! The threads of a simulation: who takes part, who sleeps, and whose turn it was.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sync::thread;

/// Who takes part, and who of them sleeps.
///
/// A lock of std, not of the facade, so that it is no step of its own for a checker: whichever of
/// the last two threads stops first, the other one closes the simulation.
#[derive(Debug)]
pub(crate) struct Roster(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    threads: u32,
    /// Threads that sleep and have not been woken, by node, and of all.
    asleep: Vec<u32>,
    all_asleep: u32,
}

impl Counts {
    fn all_sleep(&self) -> bool {
        self.all_asleep > 0 && self.all_asleep == self.threads
    }
}

impl Roster {
    pub(crate) fn new(nodes: u32) -> Self {
        let asleep = vec![0; nodes as usize];
        Self(Mutex::new(Counts {
            threads: 0,
            asleep,
            all_asleep: 0,
        }))
    }

    /// A thread goes to sleep until there is news of this node; whether none is awake now.
    pub(crate) fn sleeps(&self, node: usize) -> bool {
        let mut counts = self.lock();
        counts.asleep[node] += 1;
        counts.all_asleep += 1;
        counts.all_sleep()
    }

    /// Those who sleep until there is news of this node are woken.
    pub(crate) fn woken(&self, node: usize) {
        let mut counts = self.lock();
        counts.all_asleep -= std::mem::take(&mut counts.asleep[node]);
    }

    /// One more thread takes part.
    pub(crate) fn enter(&self) {
        self.lock().threads += 1;
    }

    /// One less; whether none is awake now.
    pub(crate) fn leave(&self) -> bool {
        let mut counts = self.lock();
        counts.threads -= 1;
        counts.all_sleep()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        lock(&self.0)
    }
}

/// Whose turn it was.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Vec<Turn>>);

#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) thread: String,
    /// From which record of the trace on the thread made the records.
    pub(crate) start: usize,
    /// It made none, but said this.
    pub(crate) note: Option<String>,
}

impl Turns {
    /// The thread that calls this makes the records from here on.
    pub(crate) fn begin(&self, start: usize) {
        self.push(start, None);
    }

    pub(crate) fn push(&self, start: usize, note: Option<String>) {
        let thread = thread::current().name().unwrap_or_default().to_owned();
        let turn = Turn {
            thread,
            start,
            note,
        };
        self.lock().push(turn);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Turn>> {
        lock(&self.0)
    }
}

/// What a panic leaves behind is whole: every change is a single one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
