//! Whether a thread that waits can go on.

use std::os::fd::{AsFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::fstat;
use syscalls::Sysno;

use super::Supervisor;
use crate::calls::{Call, Child, Descriptors, EMPTY, FutexWork, Over};
use crate::clock::Timeout;
use crate::memory;
use crate::proc;
use crate::sys::{self, Answer, Notification};
use crate::table::{ProcessNumber, ThreadNumber};

/// Restarts the call unless a handler runs: the errors of the kernel for that.
const RESTART: i64 = -512;
const RESTART_UNLESS_HANDLED: i64 = -514;

/// How long TCP may take to deliver, in milliseconds: it delays for 40 at most.
const DELIVERY: u8 = 80;

/// A loop that looks has at most this number of points from one look to the next.
const POINTS_OF_LOOP: u32 = 8;

/// How urgent a thread is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// It can get something done.
    Works,
    /// It only looks.
    Looks,
    /// It may have to wait, where that cannot be known.
    Risks,
}

/// How a thread can go on.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) answer: Answer,
    pub(super) class: Class,
    /// Whether its call finds nothing.
    pub(super) is_empty: bool,
}

/// The call, and what it looks at.
fn looks_at(call: &Notification) -> (i32, u64) {
    let [first, second, ..] = call.args;
    (call.number, if first == EMPTY { second } else { first })
}

impl Supervisor {
    /// The descriptor that a parked thread waits for, if it is one of those from outside.
    /// `is_last` looks at those of an epoll descriptor, too.
    pub(super) fn waits_outside(&self, number: ThreadNumber, is_last: bool) -> Option<i32> {
        let parked = self.table.parked(number)?;
        let Call::Descriptors(wait) = &parked.call else {
            return None;
        };
        let tid = parked.notification.tid;
        let is_outside = |fd| {
            let file = self.copy(number, fd).and_then(|copy| fstat(copy).ok());
            file.is_some_and(|file| self.outside.contains(&(file.st_dev, file.st_ino)))
        };
        let own = wait.wanted.iter().map(|wanted| wanted.fd);
        let mut fds = own.flat_map(|fd| {
            let in_epoll = if is_last {
                proc::of_epoll(tid, fd)
            } else {
                Vec::new()
            };
            in_epoll.into_iter().chain([fd])
        });
        fds.find(|fd| is_outside(*fd))
    }

    /// How a parked thread can go on now.
    ///
    /// A thread only looks if it looks where it has looked before and found nothing, without having
    /// got anything done since. The next points belong to that: they are those of a loop.
    pub(super) fn enabled(&self, number: ThreadNumber, is_signaled: bool) -> Option<Way> {
        let (answer, class) = self.answer_now(number, is_signaled)?;
        let thread = &self.table.threads[number];
        let parked = self.table.parked(number)?;
        let is_empty = class == Class::Looks;
        let class = match class {
            Class::Works if parked.call == Call::Point && thread.points_of_look > 0 => Class::Looks,
            Class::Looks if !thread.looked.contains(&looks_at(&parked.notification)) => {
                Class::Works
            }
            class => class,
        };
        Some(Way {
            answer,
            class,
            is_empty,
        })
    }

    /// Notes that a parked thread goes on.
    pub(super) fn note_look(&mut self, number: ThreadNumber, is_empty: bool) {
        let Some(parked) = self.table.parked(number) else {
            return;
        };
        let (is_point, at) = (parked.call == Call::Point, looks_at(&parked.notification));
        let thread = &mut self.table.threads[number];
        if is_empty {
            let is_known = !thread.looked.insert(at);
            thread.points_of_look = if is_known { POINTS_OF_LOOP } else { 0 };
        } else if is_point {
            thread.points_of_look = thread.points_of_look.saturating_sub(1);
        } else {
            thread.looked.clear();
            thread.points_of_look = 0;
        }
    }

    /// How a parked thread can go on now, and whether its call finds anything.
    fn answer_now(&self, number: ThreadNumber, is_signaled: bool) -> Option<(Answer, Class)> {
        let parked = self.table.parked(number)?;
        let is_over = parked.deadline.is_some_and(|end| end <= self.clock.now());
        let works = |answer| Some((answer, Class::Works));
        if is_signaled {
            return works(match parked.call {
                // Its whole time would start again.
                Call::Futex(futex) if matches!(futex.timeout(), Timeout::After(_)) => {
                    Answer::Return(RESTART_UNLESS_HANDLED)
                }
                Call::Futex(_) | Call::Lock { .. } => Answer::Return(RESTART),
                Call::Sleep(_) => Answer::Return(RESTART_UNLESS_HANDLED),
                _ => Answer::Continue,
            });
        }
        match &parked.call {
            Call::Passing(_) | Call::Point => works(Answer::Continue),
            Call::Clock => works(Answer::Return(0)),
            Call::Yield => Some((Answer::Return(0), Class::Looks)),
            Call::Look => Some((Answer::Continue, Class::Looks)),
            Call::Sleep(_) if is_over => works(Answer::Return(0)),
            Call::Sleep(_) => None,
            Call::Lock { .. } => works(Answer::Return(parked.result?)),
            Call::Futex(futex) => match parked.result {
                Some(result) => works(Answer::Return(result)),
                None if futex.what == FutexWork::Other => works(Answer::Continue),
                None if is_over => works(Answer::Return(-i64::from(libc::ETIMEDOUT))),
                None => None,
            },
            Call::Descriptors(wait) => {
                if self.is_any_ready(number, wait) {
                    if wait.is_patient && !self.fits(number, wait) {
                        return Some((Answer::Continue, Class::Risks));
                    }
                    works(Answer::Continue)
                } else if !wait.is_patient {
                    Some((Answer::Continue, Class::Looks))
                } else if is_over {
                    let is_look = parked.deadline <= Some(parked.since);
                    let result = match wait.over {
                        Over::Again => -i64::from(libc::EAGAIN),
                        _ => 0,
                    };
                    Some((
                        Answer::Return(result),
                        if is_look { Class::Looks } else { Class::Works },
                    ))
                } else {
                    None
                }
            }
            Call::Child(of) => self
                .has_child(number, *of)
                .then_some((Answer::Continue, Class::Works)),
            Call::Signal(_) if is_over => works(Answer::Return(-i64::from(libc::EAGAIN))),
            Call::Signal(_) => None,
        }
    }

    /// Whether a signal waits for a parked thread.
    pub(super) fn is_signaled(&self, number: ThreadNumber) -> bool {
        let Some(parked) = self.table.parked(number) else {
            return false;
        };
        let tid = parked.notification.tid;
        if proc::state(tid) == proc::State::Deep {
            return true;
        }
        let args = parked.notification.args;
        match &parked.call {
            Call::Descriptors(Descriptors {
                mask: Some(mask), ..
            }) if proc::pending(tid) & !mask != 0 => true,
            // Only the process itself sees that a descriptor of signals is readable.
            Call::Descriptors(wait) => {
                let pending = proc::pending(tid);
                let has_signal = |fd| proc::of_signals(tid, fd) & pending != 0;
                pending != 0
                    && wait.wanted.iter().any(|wanted| {
                        has_signal(wanted.fd)
                            || proc::of_epoll(tid, wanted.fd).into_iter().any(has_signal)
                    })
            }
            Call::Signal(_) => {
                let set = memory::u64_at(tid, args[0]).unwrap_or(0);
                let is_suspended =
                    Sysno::new(parked.notification.number as usize) == Some(Sysno::rt_sigsuspend);
                proc::pending(tid) & if is_suspended { !set } else { set } != 0
            }
            _ => false,
        }
    }

    /// Whether a wait for a child is over: one has ended, or none is left.
    fn has_child(&self, number: ThreadNumber, call: Child) -> bool {
        let mut lives = false;
        for child in self.children_of(number, call) {
            let of = &self.table.processes[child];
            let state = || proc::state(of.pid);
            if of.handle.is_none() {
                if state() == proc::State::Zombie {
                    return true;
                }
            } else {
                lives = true;
                let has_stopped =
                    call.stops && !of.is_stop_known && state() == proc::State::Stopped;
                if has_stopped || (call.continues && of.has_continued) {
                    return true;
                }
            }
        }
        !lives
    }

    /// The children that a call is about, and that were known to live once.
    fn children_of(&self, number: ThreadNumber, call: Child) -> Vec<ProcessNumber> {
        let parent = Some(self.table.threads[number].process);
        let all = self.table.processes.iter().enumerate();
        let own = all.filter(|(_, child)| {
            child.parent == parent && call.pid.is_none_or(|pid| pid == child.pid)
        });
        own.map(|(number, _)| number).collect()
    }

    /// The kernel notifies a parent once that a child has stopped, or goes on.
    pub(super) fn note_changes(&mut self, number: ThreadNumber, call: Child) {
        for child in self.children_of(number, call) {
            let of = &mut self.table.processes[child];
            if call.stops && of.handle.is_some() && proc::state(of.pid) == proc::State::Stopped {
                of.is_stop_known = true;
            }
            if call.continues {
                of.has_continued = false;
            }
        }
    }

    /// A copy of a descriptor of a thread.
    pub(super) fn copy(&self, number: ThreadNumber, fd: i32) -> Option<OwnedFd> {
        let process = &self.table.processes[self.table.threads[number].process];
        match sys::copy_of(process.handle.as_ref()?.as_fd(), fd) {
            Ok(copy) => Some(copy),
            // Its first thread has ended, before others.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                sys::copy_of_thread(self.table.threads[number].tid, fd).ok()
            }
            Err(_) => None,
        }
    }

    /// Takes the lock of `flock` for a thread that waits for it. Returns what the call returns, if
    /// it need not wait any more.
    pub(super) fn take_lock(&self, number: ThreadNumber) -> Option<i64> {
        let Call::Lock { fd, work } = self.table.parked(number)?.call else {
            return None;
        };
        // Without a descriptor the call fails.
        let Some(copy) = self.copy(number, fd) else {
            return Some(-i64::from(libc::EBADF));
        };
        match sys::lock(copy.as_fd(), work) {
            Ok(()) => Some(0),
            Err(error) => match error.raw_os_error()? {
                libc::EWOULDBLOCK => None,
                error => Some(-i64::from(error)),
            },
        }
    }

    /// Whether there is room for all that a thread writes. A pipe that is ready has room for a
    /// page; whether for more is known only when it is empty.
    pub(super) fn fits(&self, number: ThreadNumber, wait: &Descriptors) -> bool {
        if !wait.is_write || wait.length <= libc::PIPE_BUF as u64 {
            return true;
        }
        let Some(copy) = self.copy(number, wait.wanted[0].fd) else {
            return true;
        };
        let is_pipe = fstat(&copy).is_ok_and(|file| file.st_mode & libc::S_IFMT == libc::S_IFIFO);
        !is_pipe || sys::unread(copy.as_fd()) == 0
    }

    /// Gives TCP time to deliver what it has, and returns whether a thread can go on now. TCP
    /// delays what it sends for want of room. Where only a reader waits there is nothing on the
    /// way, as [`sys::send_at_once`] sees to it; `is_last` waits for those, too: the run ends else.
    pub(super) fn waits_for_network(&mut self, is_last: bool) -> bool {
        let mut copies = Vec::new();
        let mut writers = Vec::new();
        for number in self.table.living() {
            let Some(parked) = self.table.parked(number) else {
                continue;
            };
            let Call::Descriptors(wait) = &parked.call else {
                continue;
            };
            let tid = parked.notification.tid;
            for wanted in &wait.wanted {
                let is_late = wanted.events & libc::POLLOUT != 0 && !parked.has_network_had_time;
                if !is_last && !is_late {
                    continue;
                }
                let Some(copy) = self.copy(number, wanted.fd) else {
                    continue;
                };
                if sys::is_tcp(copy.as_fd())
                    || is_last && !proc::of_epoll(tid, wanted.fd).is_empty()
                {
                    copies.push((copy, PollFlags::from_bits_retain(wanted.events)));
                    writers.push(number);
                }
            }
        }
        let polled = copies.iter();
        let polled = polled.map(|(copy, events)| PollFd::new(copy.as_fd(), *events));
        let mut polled: Vec<_> = polled.collect();
        if polled.is_empty() || poll(&mut polled, DELIVERY).unwrap_or(0) > 0 {
            return !polled.is_empty();
        }
        for number in writers {
            if let Some(parked) = self.table.parked_mut(number) {
                parked.has_network_had_time = true;
            }
        }
        false
    }

    pub(super) fn is_nonblocking(&self, number: ThreadNumber, fd: i32) -> bool {
        let flags = self
            .copy(number, fd)
            .and_then(|copy| fcntl(&copy, FcntlArg::F_GETFL).ok());
        flags.is_some_and(|flags| OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK))
    }

    pub(super) fn is_any_ready(&self, number: ThreadNumber, wait: &Descriptors) -> bool {
        wait.wanted.iter().any(|wanted| {
            // The call fails with a descriptor that does not exist.
            let Some(copy) = self.copy(number, wanted.fd) else {
                return true;
            };
            if wait.is_write {
                sys::send_at_once(copy.as_fd());
            }
            let events = PollFlags::from_bits_retain(wanted.events);
            let mut fds = [PollFd::new(copy.as_fd(), events)];
            poll(&mut fds, PollTimeout::ZERO).unwrap_or(0) > 0
        })
    }
}
