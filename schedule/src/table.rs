//! The threads and processes of a run, numbered as they are born.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use syscalls::Sysno;

use crate::calls::{Call, Start};
use crate::clock::Nanos;
use crate::futex::Waiting;
use crate::proc;
use crate::sys::Notification;

/// A thread, by its number.
pub(crate) type ThreadNumber = usize;

/// A process, by its number.
pub(crate) type ProcessNumber = usize;

#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) tid: i32,
    /// Its number in its own namespace, as its futexes have it.
    pub(crate) own: i32,
    pub(crate) process: ProcessNumber,
    pub(crate) state: State,
    /// Where it has looked and found nothing, since it last got something done: by the number of
    /// the call, and what that looks at.
    pub(crate) looked: BTreeSet<(i32, u64)>,
    /// When it last went on.
    pub(crate) went_on: Nanos,
    /// How many points may follow until it looks again, if it looks again and again.
    pub(crate) points_of_look: u32,
    /// Whether it has not called yet.
    pub(crate) is_new: bool,
    /// Where the kernel clears the thread's number when it ends.
    pub(crate) clears: Option<u64>,
    /// What it has started, while it is not known whether that has started.
    pub(crate) starts: Option<Start>,
    /// How long it had run when it was first seen to run without a call.
    pub(crate) ran: Option<u64>,
    /// The call that it was seen to sleep in.
    pub(crate) sleeps: Option<Sysno>,
    /// Whether it has run for long without a call before.
    pub(crate) has_spun: bool,
}

#[derive(Debug)]
pub(crate) enum State {
    /// The kernel lets it run.
    Runs,
    /// It waits in a call of the table.
    Parked(Box<Parked>),
    /// It waits for the child of a `vfork`.
    InVfork(ProcessNumber),
    /// It sleeps in the kernel, in a call that is not trapped.
    Away,
    /// A signal has stopped it.
    Stopped,
    /// It has run for long without a call, perhaps until another thread changes a word.
    Spins,
    Gone,
}

#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) notification: Notification,
    pub(crate) call: Call,
    /// When the wait is over.
    pub(crate) deadline: Option<Nanos>,
    pub(crate) since: Nanos,
    /// The futex that it waits for.
    pub(crate) futex: Option<Waiting>,
    /// Whether the network has had time to make room for what the thread writes.
    pub(crate) has_network_had_time: bool,
    /// What the call returns, once that is known.
    pub(crate) result: Option<i64>,
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: Option<ProcessNumber>,
    /// `None` once it has ended.
    pub(crate) handle: Option<OwnedFd>,
    /// The thread that runs another program, until it is known whether it could.
    pub(crate) executes: Option<ThreadNumber>,
    /// Whether its parent has been notified that it is stopped.
    pub(crate) is_stop_known: bool,
    /// Whether it goes on after that, and its parent has not been notified.
    pub(crate) has_continued: bool,
    /// The process whose memory it has: another one after `vfork`.
    pub(crate) memory: ProcessNumber,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) threads: Vec<Thread>,
    pub(crate) processes: Vec<Process>,
    /// The living threads.
    by_tid: BTreeMap<i32, ThreadNumber>,
}

impl Table {
    pub(crate) fn find(&self, tid: i32) -> Option<ThreadNumber> {
        self.by_tid.get(&tid).copied()
    }

    /// The living threads.
    pub(crate) fn living(&self) -> impl Iterator<Item = ThreadNumber> + use<'_> {
        self.by_tid.values().copied()
    }

    pub(crate) fn threads_of(&self, process: ProcessNumber) -> Vec<ThreadNumber> {
        let of = |number: &ThreadNumber| self.threads[*number].process == process;
        self.living().filter(of).collect()
    }

    pub(crate) fn find_process(&self, pid: i32) -> Option<ProcessNumber> {
        let of = |process: &Process| process.pid == pid && process.handle.is_some();
        self.processes.iter().position(of)
    }

    pub(crate) fn add_process(
        &mut self,
        pid: i32,
        parent: Option<ProcessNumber>,
        handle: OwnedFd,
    ) -> ProcessNumber {
        self.processes.push(Process {
            pid,
            parent,
            handle: Some(handle),
            executes: None,
            is_stop_known: false,
            has_continued: false,
            memory: self.processes.len(),
        });
        self.processes.len() - 1
    }

    /// Adds a thread that runs.
    pub(crate) fn add(
        &mut self,
        tid: i32,
        process: ProcessNumber,
        clears: Option<u64>,
    ) -> ThreadNumber {
        let number = self.threads.len();
        self.threads.push(Thread {
            tid,
            own: proc::own_number(tid),
            process,
            state: State::Runs,
            looked: BTreeSet::new(),
            went_on: 0,
            points_of_look: 0,
            is_new: true,
            clears,
            starts: None,
            ran: None,
            sleeps: None,
            has_spun: false,
        });
        self.by_tid.insert(tid, number);
        number
    }

    pub(crate) fn remove(&mut self, number: ThreadNumber) {
        let thread = &mut self.threads[number];
        thread.state = State::Gone;
        self.by_tid.remove(&thread.tid);
    }

    /// Gives a thread the number of the process that another program now runs in.
    pub(crate) fn become_leader(&mut self, number: ThreadNumber) {
        let thread = &mut self.threads[number];
        self.by_tid.remove(&thread.tid);
        thread.tid = self.processes[thread.process].pid;
        thread.own = proc::own_number(thread.tid);
        self.by_tid.insert(thread.tid, number);
    }

    pub(crate) fn parked(&self, number: ThreadNumber) -> Option<&Parked> {
        match &self.threads[number].state {
            State::Parked(parked) => Some(parked),
            _ => None,
        }
    }

    pub(crate) fn parked_mut(&mut self, number: ThreadNumber) -> Option<&mut Parked> {
        match &mut self.threads[number].state {
            State::Parked(parked) => Some(parked),
            _ => None,
        }
    }

    pub(crate) fn does_run(&self, number: ThreadNumber) -> bool {
        matches!(self.threads[number].state, State::Runs)
    }
}
