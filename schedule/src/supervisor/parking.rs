//! Stopping threads in their calls, and letting them go on.

use std::os::fd::AsFd;

use super::Supervisor;
use crate::calls::{Call, Over, Passing};
use crate::clock::Timeout;
use crate::memory;
use crate::sys::{self, Answer, Notification};
use crate::table::{Parked, State, ThreadNumber};
use crate::timers::Event;

impl Supervisor {
    pub(super) fn park(
        &mut self,
        number: ThreadNumber,
        notification: Notification,
        mut call: Call,
    ) {
        let mut timeout = match &call {
            Call::Sleep(timeout) | Call::Signal(timeout) => *timeout,
            Call::Futex(futex) => futex.timeout(),
            Call::Descriptors(wait) => wait.timeout,
            _ => Timeout::Never,
        };
        if let Call::Descriptors(wait) = &mut call
            && wait.over == Over::Never
            && wait.is_patient
        {
            let fd = wait.wanted[0].fd;
            wait.is_patient = !self.is_nonblocking(number, fd);
            let copy = self.copy(number, fd).filter(|_| !wait.is_write);
            if let Some(time) = copy.and_then(|copy| sys::receive_timeout(copy.as_fd())) {
                timeout = Timeout::After(time);
                wait.over = Over::Again;
            }
        }
        let futex = match &call {
            Call::Futex(futex) => Some(*futex),
            _ => None,
        };
        self.table.threads[number].state = State::Parked(Box::new(Parked {
            notification,
            call,
            deadline: self.clock.end_of(timeout),
            since: self.clock.now(),
            futex: None,
            has_network_had_time: false,
            result: None,
        }));
        if let Some(futex) = futex {
            let result = self.table.futex(number, futex, &mut self.draw);
            if let Some(parked) = self.table.parked_mut(number) {
                parked.result = result;
            }
            if result.is_none() {
                self.circle = self.circle(number);
            }
        }
    }

    pub(super) fn answer(
        &mut self,
        number: ThreadNumber,
        notification: &Notification,
        answer: Answer,
    ) {
        self.table.threads[number].state = State::Runs;
        if self.listener.answer(notification.id, answer).is_err() {
            // The thread was killed.
            self.lose(number);
        }
    }

    /// Carries out a call that waits for nothing.
    pub(super) fn pass(
        &mut self,
        number: ThreadNumber,
        notification: &Notification,
        passing: &Passing,
    ) {
        let process = self.table.threads[number].process;
        if self.is_logged {
            eprintln!("t{number} {passing:?} {:x?}", notification.args);
        }
        match passing {
            Passing::Start(start) => self.table.threads[number].starts = Some(*start),
            Passing::Exec => self.table.processes[process].executes = Some(number),
            Passing::Signal => self.has_signals = true,
            Passing::Kill { pid, signal } => {
                self.has_signals = true;
                if let Some(result) = self.kill(number, *pid, *signal) {
                    self.answer(number, notification, Answer::Return(result));
                    return;
                }
            }
            Passing::Random { at, length } => {
                let length = (*length).min(256);
                let bytes: Vec<u8> = (0..length).map(|_| self.draw.next() as u8).collect();
                if memory::write(notification.tid, *at, &bytes) {
                    self.answer(number, notification, Answer::Return(length as i64));
                    return;
                }
            }
            Passing::CreateTimer { event, at } => {
                let result = Event::read(notification.tid, *event).and_then(|event| {
                    let id = self.timers.create(process, event);
                    let is_written = memory::write(notification.tid, *at, &id.to_ne_bytes());
                    if is_written {
                        Ok(())
                    } else {
                        Err(libc::EFAULT)
                    }
                });
                let result = result.map_or_else(|error| -i64::from(error), |()| 0);
                self.answer(number, notification, Answer::Return(result));
                return;
            }
            Passing::Timer => {
                let handle = &self.table.processes[process].handle;
                let copy = |fd| sys::copy_of(handle.as_ref()?.as_fd(), fd).ok();
                let answer = self.timers.call(process, notification, &self.clock, copy);
                self.answer(number, notification, answer);
                return;
            }
            Passing::Exit | Passing::ExitGroup | Passing::Announce { .. } | Passing::Other => {}
        }
        self.answer(number, notification, Answer::Continue);
        match passing {
            Passing::Exit => self.end_thread(number),
            Passing::ExitGroup => self.wait_for_end(process),
            _ => {}
        }
    }
}
