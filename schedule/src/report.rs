//! What is known of a run when it has ended.

use core::fmt;
use core::time::Duration;

use nix::sys::wait::WaitStatus;

use crate::changes::Change;

/// A run that has ended.
#[derive(Debug)]
pub struct Run {
    /// How the first process ended, unless it had to be killed.
    pub status: Option<WaitStatus>,
    /// Why the run ended.
    pub end: End,
    /// What is known of the steps.
    pub steps: Steps,
    /// What differs from a schedule in which each thread goes on as long as it can. At most 100,000
    /// of them.
    pub changes: Vec<Change>,
    /// The time that has passed by the clock of the program.
    pub elapsed: Duration,
    /// Why choices depended on real time, if they did: the same seed may then give another run.
    pub by_time: Vec<ByTime>,
}

/// Why a run ended.
#[derive(Clone, Debug)]
pub enum End {
    /// All processes have ended, or only those that the program left behind waited.
    Ended,
    /// No thread can go on, and no wait has an end. Or these threads cannot, as each waits for a
    /// mutex that another one of them holds.
    Deadlock(Vec<Stuck>),
    /// The limit of virtual time is over.
    TimeLimit(Vec<Stuck>),
    /// This process has got a second signal that ends programs. The first one is for the program.
    Interrupted,
    /// The limit of real time is over.
    TimedOut(Vec<Stuck>),
}

/// Why choices depended on real time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ByTime {
    /// A thread slept in a call that the schedule does not control.
    Slept {
        /// The name of the call.
        call: &'static str,
    },
    /// A thread ran for long without a call, and others went on at the same time.
    Ran,
    /// The program waited for something from outside.
    Outside {
        /// The descriptor.
        fd: i32,
    },
}

/// The steps of a run: in each of them a thread went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// How many there were.
    pub count: u64,
    /// In how many of them another thread went on than in the one before.
    pub switches: u64,
    /// A hash of all of them. Equal runs have equal hashes.
    pub hash: u64,
    last: Option<usize>,
}

impl Default for Steps {
    fn default() -> Self {
        Self {
            count: 0,
            switches: 0,
            // As in FNV.
            hash: 0xcbf2_9ce4_8422_2325,
            last: None,
        }
    }
}

impl Steps {
    /// Adds one: the number of a thread, its system call, and whether the kernel carries that out.
    pub(crate) fn add(&mut self, thread: usize, call: i32, is_carried_out: bool) {
        self.count += 1;
        self.switches += u64::from(self.last.is_some_and(|last| last != thread));
        self.last = Some(thread);
        for value in [thread as u64, call as u64, is_carried_out.into()] {
            self.hash = (self.hash ^ value).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// A thread that waits.
#[derive(Clone, Debug)]
pub struct Stuck {
    /// The number of the thread, as they were born.
    pub thread: usize,
    /// The process.
    pub pid: i32,
    /// The thread, as the kernel knows it.
    pub tid: i32,
    /// The name of the thread.
    pub name: String,
    /// The system call that it waits in.
    pub call: &'static str,
    /// Its arguments.
    pub args: [u64; 6],
    /// What it waits for, in words, as far as that is known: who holds the mutex, which files
    /// could be ready, when the wait is over.
    pub waits_for: String,
    /// Since when, by the clock of the program.
    pub since: Duration,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            thread,
            pid,
            name,
            call,
            args: [first, second, third, ..],
            waits_for,
            since,
            ..
        } = self;
        write!(f, "thread {thread} ({name}, process {pid}) waits in {call}")?;
        if waits_for.is_empty() {
            write!(f, "({first:#x}, {second:#x}, {third:#x})")?;
        } else {
            write!(f, " for {waits_for}")?;
        }
        write!(f, ", since {since:?}")
    }
}

impl fmt::Display for ByTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slept { call } => write!(
                f,
                "a thread slept in {call}, which the schedule does not control"
            ),
            Self::Ran => write!(f, "a thread ran for long without a call"),
            Self::Outside { fd } => write!(
                f,
                "the program waited for something from outside, on descriptor {fd}"
            ),
        }
    }
}
