//! Signals that the program sends.

use nix::unistd::getpgrp;

use super::Supervisor;
use crate::proc;
use crate::sys;
use crate::table::{ProcessNumber, State, ThreadNumber};

impl Supervisor {
    /// Sends a signal as `kill` does, where the kernel's way is not the right one: the group of the
    /// program may have the supervisor and others, too; and a process that a signal ends does so at
    /// some time. `None` if the kernel can do it.
    pub(super) fn kill(&mut self, number: ThreadNumber, pid: i32, signal: i32) -> Option<i64> {
        let thread = &self.table.threads[number];
        if thread.own != thread.tid {
            // In a namespace of its own it reaches nothing outside. Numbers differ there.
            return None;
        }
        let caller = thread.process;
        let caller_pid = self.table.processes[caller].pid;
        let group = match pid {
            1.. => None,
            0 => Some(proc::group(caller_pid)?),
            -1 => None,
            _ => Some(pid.checked_neg()?),
        };
        if group.is_some_and(|group| group != getpgrp().as_raw()) {
            return None;
        }
        let is_meant = |of: &i32| match (pid, group) {
            (1.., _) => *of == pid,
            (_, Some(group)) => proc::group(*of) == Some(group),
            (_, None) => *of != caller_pid,
        };
        let living = self.table.processes.iter().enumerate();
        let living = living.filter(|(_, process)| process.handle.is_some());
        let meant: Vec<_> = living
            .filter(|(_, process)| is_meant(&process.pid))
            .collect();
        let meant: Vec<_> = meant.into_iter().map(|(number, _)| number).collect();
        let is_seen = |of: &ProcessNumber| {
            *of != caller && (signal == libc::SIGCONT || self.ends_by(*of, signal))
        };
        if pid > 0 && !meant.iter().any(is_seen) {
            return None;
        }
        let mut result = -i64::from(libc::ESRCH);
        // The caller last: it may end by it.
        let (last, first): (Vec<_>, Vec<_>) = meant.into_iter().partition(|of| *of == caller);
        for of in first.into_iter().chain(last) {
            let ends = of != caller && self.ends_by(of, signal);
            match sys::send_signal(self.table.processes[of].pid, signal) {
                Ok(()) => {
                    result = 0;
                    if ends {
                        self.wait_for_end(of);
                    } else if signal == libc::SIGCONT {
                        self.go_on_after_stop(of);
                    }
                }
                Err(error) if result != 0 => result = -i64::from(error),
                Err(_) => {}
            }
        }
        Some(result)
    }

    /// The threads of a process may have been stopped, and now are not.
    fn go_on_after_stop(&mut self, process: ProcessNumber) {
        for number in self.table.threads_of(process) {
            let thread = &mut self.table.threads[number];
            if matches!(thread.state, State::Stopped) {
                thread.state = State::Runs;
                let process = &mut self.table.processes[process];
                (process.has_continued, process.is_stop_known) = (true, false);
            }
        }
    }

    /// Whether a signal ends a process at once: it has no handler, and is neither ignored nor
    /// blocked.
    fn ends_by(&self, process: ProcessNumber, signal: i32) -> bool {
        match signal {
            libc::SIGKILL => true,
            0 | libc::SIGCHLD | libc::SIGCONT | libc::SIGURG | libc::SIGWINCH => false,
            libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => false,
            // With a dump of its memory. Its thread ends when its call is answered.
            libc::SIGQUIT | libc::SIGILL | libc::SIGTRAP | libc::SIGABRT | libc::SIGBUS => false,
            libc::SIGFPE | libc::SIGSEGV | libc::SIGSYS | libc::SIGXCPU | libc::SIGXFSZ => false,
            _ => {
                let pid = self.table.processes[process].pid;
                proc::state(pid) != proc::State::Stopped && !proc::expects(pid, signal)
            }
        }
    }
}
