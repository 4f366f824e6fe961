//! Births and deaths of threads and processes.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;

use super::Supervisor;
use crate::calls::Start;
use crate::proc;
use crate::sys;
use crate::table::{ProcessNumber, State, ThreadNumber};

impl Supervisor {
    /// Ends what lives.
    pub(super) fn kill_all(&mut self) {
        for process in &self.table.processes {
            if let Some(handle) = &process.handle {
                sys::kill(handle.as_fd());
            }
        }
        let living: Vec<_> = (0..self.table.processes.len()).collect();
        for process in living {
            self.wait_for_end(process);
        }
    }

    /// A thread that is not known has called. `None` if it has ended already.
    pub(super) fn birth(&mut self, tid: i32) -> Option<ThreadNumber> {
        let pid = proc::process(tid)?;
        let process = self.table.find_process(pid);
        let starter = self.table.living().find(|number| {
            let thread = &self.table.threads[*number];
            let is_own = match process {
                Some(process) => thread.process == process,
                None => proc::parent(pid)
                    .is_some_and(|parent| self.table.processes[thread.process].pid == parent),
            };
            is_own
                && thread
                    .starts
                    .is_some_and(|start| start.is_thread == process.is_some())
        });
        let start = starter.and_then(|number| self.table.threads[number].starts.take());
        let number = match process {
            Some(process) => self
                .table
                .add(tid, process, start.and_then(|start| start.clears)),
            None => self.begin(
                pid,
                starter.map(|number| self.table.threads[number].process),
                start,
            )?,
        };
        if let Some(starter) = starter.filter(|_| start.is_some_and(|start| start.is_vfork)) {
            let child = self.table.threads[number].process;
            self.table.threads[starter].state = State::InVfork(child);
        }
        Some(number)
    }

    /// Adds a process, and its first thread.
    fn begin(
        &mut self,
        pid: i32,
        parent: Option<ProcessNumber>,
        start: Option<Start>,
    ) -> Option<ThreadNumber> {
        let handle = sys::open_process(pid).ok()?;
        let process = self.table.add_process(pid, parent, handle);
        if let Some(parent) = parent.filter(|_| start.is_some_and(|start| start.shares)) {
            self.table.processes[process].memory = self.table.processes[parent].memory;
        }
        Some(self.table.add(pid, process, None))
    }

    /// Looks for what a thread has started, and what has not called yet.
    pub(super) fn look_for_birth(&mut self, number: ThreadNumber, start: Start) {
        let process = self.table.threads[number].process;
        let pid = self.table.processes[process].pid;
        if start.is_thread {
            let mut tids = proc::threads(pid).into_iter();
            if let Some(tid) = tids.find(|tid| self.table.find(*tid).is_none()) {
                self.table.add(tid, process, start.clears);
            }
        } else {
            let is_new = |pid: &i32| {
                self.table
                    .processes
                    .iter()
                    .all(|process| process.pid != *pid)
            };
            if let Some(pid) = proc::children(pid).into_iter().find(is_new) {
                self.begin(pid, Some(process), Some(start));
            }
        }
    }

    /// If the process runs another program now, its other threads have ended. Returns the number
    /// of the thread that called.
    pub(super) fn after_exec(&mut self, number: ThreadNumber) -> ThreadNumber {
        let process = self.table.threads[number].process;
        let Some(by) = self.table.processes[process].executes.take() else {
            return number;
        };
        let pid = self.table.processes[process].pid;
        if proc::has_executed(pid) {
            self.end_vfork(process);
            self.table.processes[process].memory = process;
            self.timers.forget_posix(process);
        }
        let left = proc::threads(pid);
        for other in self.table.threads_of(process) {
            if other != by && (!left.contains(&self.table.threads[other].tid)) {
                self.table.remove(other);
            }
        }
        if left.contains(&self.table.threads[by].tid) {
            return number;
        }
        // It has the number of the first thread now.
        self.table.remove(number);
        self.table.become_leader(by);
        self.table.threads[by].state = State::Runs;
        by
    }

    /// The parent of a process goes on, if it waits for it in `vfork`.
    fn end_vfork(&mut self, process: ProcessNumber) {
        let Some(parent) = self.table.processes[process].parent else {
            return;
        };
        for number in self.table.threads_of(parent) {
            if matches!(self.table.threads[number].state, State::InVfork(of) if of == process) {
                self.table.threads[number].state = State::Runs;
            }
        }
    }

    /// Waits until a thread that exits has ended.
    pub(super) fn end_thread(&mut self, number: ThreadNumber) {
        let tid = self.table.threads[number].tid;
        while !matches!(proc::state(tid), proc::State::Gone | proc::State::Zombie) {
            std::thread::sleep(Duration::from_micros(20));
        }
        self.lose(number);
    }

    /// A thread has ended.
    pub(super) fn lose(&mut self, number: ThreadNumber) {
        let process = self.table.threads[number].process;
        self.table.clear(number, &mut self.draw);
        self.table.remove(number);
        if self.table.threads_of(process).is_empty() {
            self.wait_for_end(process);
        }
    }

    pub(super) fn wait_for_end(&mut self, process: ProcessNumber) {
        if let Some(handle) = &self.table.processes[process].handle {
            let mut fds = [PollFd::new(handle.as_fd(), PollFlags::POLLIN)];
            while poll(&mut fds, PollTimeout::NONE).is_err() {}
            self.bury(process);
        }
    }

    /// A process has ended.
    pub(super) fn bury(&mut self, process: ProcessNumber) {
        for number in self.table.threads_of(process) {
            self.table.clear(number, &mut self.draw);
            self.table.remove(number);
        }
        let of = &mut self.table.processes[process];
        if of.handle.take().is_none() {
            return;
        }
        let pid = Pid::from_raw(of.pid);
        self.has_signals = true;
        self.timers.forget(process);
        self.end_vfork(process);
        if process == self.root {
            let status = self.guardian.status();
            self.status = status.and_then(|status| WaitStatus::from_raw(pid, status).ok());
        }
    }

    /// Waits for the end of those that a signal has killed.
    pub(super) fn bury_killed(&mut self) {
        let living: Vec<_> = self.table.living().collect();
        for number in living {
            if self.is_killed(number) {
                self.wait_for_end(self.table.threads[number].process);
            }
        }
    }

    /// Whether a signal has killed a parked thread.
    fn is_killed(&self, number: ThreadNumber) -> bool {
        let Some(parked) = self.table.parked(number) else {
            return false;
        };
        loop {
            match proc::state(self.table.threads[number].tid) {
                proc::State::Gone | proc::State::Zombie => return true,
                // It is about to sleep, or to end.
                proc::State::Runs if self.listener.is_waiting(parked.notification.id) => {
                    std::thread::yield_now();
                }
                proc::State::Runs => return true,
                proc::State::Sleeps | proc::State::Deep | proc::State::Stopped => return false,
            }
        }
    }
}
