//! The threads of a simulation: which take part, which sleep, and which made each trace record.

use parking_lot::Mutex;

use crate::sync::thread;

/// Which threads take part, and which of them sleep.
///
/// The lock is not of the facade, so that a model checker does not see it as a step.
/// Whichever of the last two threads stops first, the other one closes the simulation.
pub(crate) struct Roster(Mutex<Counts>);

struct Counts {
    threads: u32,
    /// Threads that sleep and have not been woken: for each node, and in all.
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

    /// Notes that a thread sleeps until there is news of this node. Returns whether no thread is
    /// awake.
    pub(crate) fn sleeps(&self, node: usize) -> bool {
        let mut counts = self.0.lock();
        counts.asleep[node] += 1;
        counts.all_asleep += 1;
        counts.all_sleep()
    }

    /// Notes that the threads that sleep until there is news of this node are woken.
    pub(crate) fn woken(&self, node: usize) {
        let mut counts = self.0.lock();
        counts.all_asleep -= std::mem::take(&mut counts.asleep[node]);
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
