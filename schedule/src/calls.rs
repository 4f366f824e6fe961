//! The calls that are trapped, and what each waits for.

use syscalls::Sysno;

use crate::clock::Timeout;
use crate::memory;
use crate::proc;
use crate::sys::Notification;

/// The calls by which threads wait, wake, yield, start and end, and those that a new thread or
/// program makes first: so it announces itself.
#[rustfmt::skip]
pub(crate) const TRAPPED: &[Sysno] = &[
    // Waits for descriptors.
    Sysno::read, Sysno::readv, Sysno::recvfrom, Sysno::recvmsg, Sysno::recvmmsg,
    Sysno::accept, Sysno::accept4, Sysno::ppoll, Sysno::pselect6,
    Sysno::epoll_pwait, Sysno::epoll_pwait2,
    #[cfg(target_arch = "x86_64")] Sysno::poll,
    #[cfg(target_arch = "x86_64")] Sysno::select,
    #[cfg(target_arch = "x86_64")] Sysno::epoll_wait,
    Sysno::write, Sysno::writev, Sysno::sendto, Sysno::sendmsg, Sysno::sendmmsg,
    // Waits for other threads, for processes and for time.
    Sysno::futex, Sysno::wait4, Sysno::waitid, Sysno::nanosleep, Sysno::clock_nanosleep,
    #[cfg(target_arch = "x86_64")] Sysno::alarm,
    Sysno::setitimer, Sysno::getitimer, Sysno::timerfd_settime, Sysno::timerfd_gettime,
    Sysno::timer_create, Sysno::timer_settime, Sysno::timer_gettime, Sysno::timer_delete,
    Sysno::timer_getoverrun,
    // Signals.
    Sysno::kill, Sysno::tkill, Sysno::tgkill, Sysno::rt_sigqueueinfo, Sysno::rt_tgsigqueueinfo,
    Sysno::pidfd_send_signal, Sysno::rt_sigsuspend, Sysno::rt_sigtimedwait,
    #[cfg(target_arch = "x86_64")] Sysno::pause,
    // Threads and processes start and end.
    Sysno::clone, Sysno::clone3, Sysno::exit, Sysno::exit_group,
    Sysno::execve, Sysno::execveat,
    #[cfg(target_arch = "x86_64")] Sysno::fork,
    #[cfg(target_arch = "x86_64")] Sysno::vfork,
    // The first of a new thread or program.
    Sysno::set_robust_list, Sysno::rseq, Sysno::set_tid_address,
    // Others.
    Sysno::sched_yield, Sysno::getrandom, Sysno::flock,
];

/// Calls that fail with `ENOSYS`, as on a kernel without them: the waits in them cannot be seen.
/// `io_uring_setup`, `futex_waitv`, `futex_wake`, `futex_wait` and `futex_requeue`.
pub(crate) const REFUSED: &[u32] = &[425, 449, 454, 455, 456];

/// The argument of a `sched_yield` that is a point of the schedule: the thread has work to do.
pub const POINT: u64 = 0x0076_5f70_6f69_6e74;

/// The first argument of a `sched_yield` of a thread that has looked for something, and found
/// nothing. The second one says where.
pub const EMPTY: u64 = 0x0076_5f65_6d70_7479;

/// The argument of a `sched_yield` of a thread that reads the clock again and again.
pub const CLOCK: u64 = 0x0076_5f63_6c6f_636b;

/// A call, as far as the schedule is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Waits for nothing, and is answered at once.
    Passing(Passing),
    /// A point of the program.
    Point,
    /// The thread lets others go first.
    Yield,
    /// The thread reads the clock again and again.
    Clock,
    /// The thread looks for something, and does not wait if there is nothing.
    Look,
    /// Waits for time alone.
    Sleep(Timeout),
    Futex(Futex),
    /// Waits for a lock of `flock`.
    Lock {
        fd: i32,
        work: i32,
    },
    /// Waits until one of the descriptors is ready.
    Descriptors(Descriptors),
    /// Waits for the end of a child, or for another change.
    Child(Child),
    /// Waits for a signal.
    Signal(Timeout),
}

/// What a call that waits for nothing does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Passing {
    /// Starts a thread or a process.
    Start(Start),
    /// The thread ends.
    Exit,
    /// The process ends.
    ExitGroup,
    /// The process runs another program.
    Exec,
    /// A new program runs, or a new thread.
    Announce {
        clears: Option<u64>,
    },
    /// Sends a signal to a process, to a group, or to all, as `kill` has them.
    Kill {
        pid: i32,
        signal: i32,
    },
    /// Sends a signal in another way.
    Signal,
    /// Makes a POSIX timer, whose number is to be written here.
    CreateTimer {
        event: u64,
        at: u64,
    },
    /// Sets or reads a timer.
    Timer,
    Random {
        at: u64,
        length: u64,
    },
    /// Does nothing that the schedule must know.
    Other,
}

/// Which change of a child a call waits for, besides its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    /// The child, or any.
    pub(crate) pid: Option<i32>,
    /// Whether it waits for a child that is stopped, too.
    pub(crate) stops: bool,
    /// Whether it waits for a child that goes on after that, too.
    pub(crate) continues: bool,
}

/// What a call waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Descriptors {
    pub(crate) wanted: Vec<Wanted>,
    pub(crate) timeout: Timeout,
    /// Whether the call writes: it does not wait for others then, except for room.
    pub(crate) is_write: bool,
    /// How much it writes, as far as that is known.
    pub(crate) length: u64,
    /// Whether the call waits if none is ready.
    pub(crate) is_patient: bool,
    /// How the call says that its time is over.
    pub(crate) over: Over,
    /// The signals that are blocked during the call, if others are.
    pub(crate) mask: Option<u64>,
}

/// What a call writes and returns when its time is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// It cannot be over.
    Never,
    /// It fails with `EAGAIN`, by `SO_RCVTIMEO`.
    Again,
    /// It returns 0.
    Zero,
    /// `poll` returns 0, without events.
    Poll { at: u64, count: u64 },
    /// `select` returns 0, and its sets of this many bytes are empty.
    Select {
        sets: [u64; 3],
        length: usize,
        /// Where the kernel writes how much is left of the time.
        left: u64,
    },
}

/// A descriptor, and the events of `poll` that are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) fd: i32,
    pub(crate) events: i16,
}

/// What starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) is_thread: bool,
    /// Where the kernel clears the number of a thread that has ended, and wakes a futex.
    pub(crate) clears: Option<u64>,
    /// Whether both have the same memory.
    pub(crate) shares: bool,
    /// Whether the parent waits until the child runs another program, or ends.
    pub(crate) is_vfork: bool,
}

/// What a call of `futex` does. Addresses are in the memory of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Futex {
    pub(crate) at: u64,
    pub(crate) is_private: bool,
    pub(crate) what: FutexWork,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FutexWork {
    Wait {
        value: u32,
        bits: u32,
        timeout: Timeout,
    },
    Wake {
        count: u32,
        bits: u32,
    },
    /// Moves up to `moved` waiters to another futex.
    Requeue {
        count: u32,
        moved: u32,
        to: u64,
        value: Option<u32>,
    },
    /// Changes the word at `to`, and wakes `others` there if its old value holds by `work`.
    WakeOp {
        count: u32,
        others: u32,
        to: u64,
        work: u32,
    },
    /// Takes a futex that has an owner.
    Lock {
        timeout: Timeout,
        /// Whether it waits if another thread has it.
        is_patient: bool,
    },
    /// Releases a futex that has an owner.
    Unlock,
    /// Waits to be moved to a futex that has an owner.
    WaitRequeueLock {
        value: u32,
        timeout: Timeout,
    },
    /// Lets one waiter take the futex at `to`, and moves up to `moved` others there.
    RequeueLock {
        moved: u32,
        to: u64,
        value: u32,
    },
    /// Fails with an error.
    Fails(i32),
    /// Not known here: the kernel carries it out.
    Other,
}

/// A call that waits for more is left to the kernel.
const MOST_DESCRIPTORS: u32 = 0x1_0000;

const NONBLOCKING: u64 = libc::MSG_DONTWAIT as u64;

impl Call {
    pub(crate) fn of(call: &Notification) -> Self {
        match Self::wanted(call) {
            // The kernel fails it.
            Self::Sleep(Timeout::Invalid(_))
            | Self::Signal(Timeout::Invalid(_))
            | Self::Descriptors(Descriptors {
                timeout: Timeout::Invalid(_),
                ..
            }) => Self::Passing(Passing::Other),
            call => call,
        }
    }

    /// The call, of which the time may be invalid.
    fn wanted(call: &Notification) -> Self {
        let tid = call.tid;
        let a = call.args;
        let fd = a[0] as i32;
        let Some(sysno) = Sysno::new(call.number as usize) else {
            return Self::Passing(Passing::Other);
        };
        match sysno {
            Sysno::read | Sysno::readv => Self::reads(fd, 0),
            Sysno::recvfrom | Sysno::recvmmsg => Self::reads(fd, a[3]),
            Sysno::recvmsg => Self::reads(fd, a[2]),
            Sysno::accept | Sysno::accept4 => Self::reads(fd, 0),
            #[cfg(target_arch = "x86_64")]
            Sysno::poll => Self::polls(tid, a, Timeout::millis(a[2] as i32), None),
            Sysno::ppoll => Self::polls(tid, a, Timeout::at(tid, a[2]), memory::u64_at(tid, a[3])),
            #[cfg(target_arch = "x86_64")]
            Sysno::select => Self::selects(tid, a, Timeout::of_timeval(tid, a[4]), None),
            Sysno::pselect6 => {
                let mask = memory::u64_at(tid, a[5]).and_then(|at| memory::u64_at(tid, at));
                Self::selects(tid, a, Timeout::at(tid, a[4]), mask)
            }
            #[cfg(target_arch = "x86_64")]
            Sysno::epoll_wait => Self::waits(fd, Timeout::millis(a[3] as i32), None),
            Sysno::epoll_pwait => {
                Self::waits(fd, Timeout::millis(a[3] as i32), memory::u64_at(tid, a[4]))
            }
            Sysno::epoll_pwait2 => {
                Self::waits(fd, Timeout::at(tid, a[3]), memory::u64_at(tid, a[4]))
            }
            Sysno::write => Self::writes(fd, 0, a[2]),
            Sysno::writev => {
                let list = memory::read(tid, a[1], 16 * a[2].min(1024) as usize);
                let list = list.unwrap_or_default();
                let (words, _) = list.as_chunks();
                let lengths = words.iter().skip(1).step_by(2);
                let length = lengths.map(|word| u64::from_ne_bytes(*word)).sum();
                Self::writes(fd, 0, length)
            }
            Sysno::sendto | Sysno::sendmmsg => Self::writes(fd, a[3], 0),
            Sysno::sendmsg => Self::writes(fd, a[2], 0),
            Sysno::timer_create => Self::Passing(Passing::CreateTimer {
                event: a[1],
                at: a[2],
            }),
            #[cfg(target_arch = "x86_64")]
            Sysno::alarm => Self::Passing(Passing::Timer),
            Sysno::setitimer
            | Sysno::getitimer
            | Sysno::timerfd_settime
            | Sysno::timerfd_gettime => Self::Passing(Passing::Timer),
            Sysno::timer_settime
            | Sysno::timer_gettime
            | Sysno::timer_getoverrun
            | Sysno::timer_delete => Self::Passing(Passing::Timer),
            Sysno::futex => Self::Futex(Futex::of(call)),
            Sysno::wait4 if a[2] & 1 != 0 => Self::Look,
            Sysno::wait4 => Self::child(Some(a[0] as i32).filter(|pid| *pid > 0), a[2]),
            Sysno::waitid if a[3] & 1 != 0 => Self::Look,
            Sysno::waitid => Self::child((a[0] == 1).then_some(a[1] as i32), a[3]),
            Sysno::nanosleep => Self::Sleep(Timeout::at(tid, a[0]).or_fault()),
            Sysno::clock_nanosleep if a[1] & 1 != 0 => {
                Self::Sleep(Timeout::absolute(tid, a[2]).or_fault())
            }
            Sysno::clock_nanosleep => Self::Sleep(Timeout::at(tid, a[2]).or_fault()),
            Sysno::kill => Self::Passing(Passing::Kill {
                pid: a[0] as i32,
                signal: a[1] as i32,
            }),
            Sysno::tkill | Sysno::tgkill | Sysno::rt_sigqueueinfo => Self::Passing(Passing::Signal),
            Sysno::rt_tgsigqueueinfo | Sysno::pidfd_send_signal => Self::Passing(Passing::Signal),
            Sysno::rt_sigsuspend => Self::Signal(Timeout::Never),
            Sysno::rt_sigtimedwait => Self::Signal(Timeout::at(tid, a[2])),
            #[cfg(target_arch = "x86_64")]
            Sysno::pause => Self::Signal(Timeout::Never),
            Sysno::clone => {
                let clears = if cfg!(target_arch = "x86_64") {
                    a[3]
                } else {
                    a[4]
                };
                Self::starts(a[0], clears)
            }
            Sysno::clone3 => {
                let field = |at| memory::u64_at(tid, a[0] + at).unwrap_or(0);
                Self::starts(field(0), field(16))
            }
            #[cfg(target_arch = "x86_64")]
            Sysno::fork => Self::starts(0, 0),
            #[cfg(target_arch = "x86_64")]
            Sysno::vfork => Self::starts((libc::CLONE_VFORK | libc::CLONE_VM) as u64, 0),
            Sysno::exit => Self::Passing(Passing::Exit),
            Sysno::exit_group => Self::Passing(Passing::ExitGroup),
            Sysno::execve | Sysno::execveat => Self::Passing(Passing::Exec),
            Sysno::set_tid_address => Self::Passing(Passing::Announce { clears: Some(a[0]) }),
            Sysno::set_robust_list | Sysno::rseq => {
                Self::Passing(Passing::Announce { clears: None })
            }
            Sysno::flock if a[1] as i32 & (libc::LOCK_NB | libc::LOCK_UN) == 0 => Self::Lock {
                fd,
                work: a[1] as i32,
            },
            Sysno::sched_yield if a[0] == POINT => Self::Point,
            Sysno::sched_yield if a[0] == EMPTY => Self::Look,
            Sysno::sched_yield if a[0] == CLOCK => Self::Clock,
            Sysno::sched_yield => Self::Yield,
            Sysno::getrandom => Self::Passing(Passing::Random {
                at: a[0],
                length: a[1],
            }),
            _ => Self::Passing(Passing::Other),
        }
    }

    fn child(pid: Option<i32>, options: u64) -> Self {
        Self::Child(Child {
            pid,
            stops: options & libc::WUNTRACED as u64 != 0,
            continues: options & libc::WCONTINUED as u64 != 0,
        })
    }

    fn reads(fd: i32, flags: u64) -> Self {
        let wanted = Wanted {
            fd,
            events: libc::POLLIN,
        };
        Self::Descriptors(Descriptors {
            wanted: vec![wanted],
            timeout: Timeout::Never,
            is_write: false,
            length: 0,
            is_patient: flags & NONBLOCKING == 0,
            over: Over::Never,
            mask: None,
        })
    }

    fn writes(fd: i32, flags: u64, length: u64) -> Self {
        let wanted = Wanted {
            fd,
            events: libc::POLLOUT,
        };
        Self::Descriptors(Descriptors {
            wanted: vec![wanted],
            timeout: Timeout::Never,
            is_write: true,
            length,
            is_patient: flags & NONBLOCKING == 0,
            over: Over::Never,
            mask: None,
        })
    }

    fn waits(fd: i32, timeout: Timeout, mask: Option<u64>) -> Self {
        let wanted = Wanted {
            fd,
            events: libc::POLLIN,
        };
        Self::waits_for(vec![wanted], timeout, Over::Zero, mask)
    }

    fn waits_for(wanted: Vec<Wanted>, timeout: Timeout, over: Over, mask: Option<u64>) -> Self {
        Self::Descriptors(Descriptors {
            wanted,
            timeout,
            is_write: false,
            length: 0,
            is_patient: true,
            over,
            mask,
        })
    }

    fn polls(tid: i32, a: [u64; 6], timeout: Timeout, mask: Option<u64>) -> Self {
        let count = a[1] as u32;
        // The kernel fails the others.
        let list = match count {
            0 => Some(Vec::new()),
            1..=MOST_DESCRIPTORS => memory::read(tid, a[0], 8 * count as usize),
            _ => None,
        };
        let Some(list) = list else {
            return Self::Passing(Passing::Other);
        };
        let wanted = list.chunks_exact(8).map(|entry| Wanted {
            fd: i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]),
            events: i16::from_ne_bytes([entry[4], entry[5]]),
        });
        let over = Over::Poll {
            at: a[0],
            count: count.into(),
        };
        Self::waits_for(
            wanted.filter(|wanted| wanted.fd >= 0).collect(),
            timeout,
            over,
            mask,
        )
    }

    fn selects(tid: i32, a: [u64; 6], timeout: Timeout, mask: Option<u64>) -> Self {
        let mut count = a[0] as i32;
        if count > libc::FD_SETSIZE as i32 {
            // The kernel looks at no more.
            count = count.min(proc::most_descriptors(tid).unwrap_or(count));
        }
        if !(0..=MOST_DESCRIPTORS as i32).contains(&count) {
            return Self::Passing(Passing::Other);
        }
        let length = (count as usize).div_ceil(64) * 8;
        let sets = [a[1], a[2], a[3]];
        let mut wanted = Vec::new();
        for (at, events) in sets
            .into_iter()
            .zip([libc::POLLIN, libc::POLLOUT, libc::POLLPRI])
        {
            if at == 0 {
                continue;
            }
            // The kernel fails the call.
            let Some(set) = memory::read(tid, at, length) else {
                return Self::Passing(Passing::Other);
            };
            let is_in = |fd: &i32| {
                set.get(*fd as usize / 8)
                    .is_some_and(|byte| byte >> (fd % 8) & 1 != 0)
            };
            wanted.extend((0..count).filter(is_in).map(|fd| Wanted { fd, events }));
        }
        Self::waits_for(
            wanted,
            timeout,
            Over::Select {
                sets,
                length,
                left: a[4],
            },
            mask,
        )
    }

    fn starts(flags: u64, clears: u64) -> Self {
        let has = |flag: i32| flags & flag as u64 != 0;
        Self::Passing(Passing::Start(Start {
            is_thread: has(libc::CLONE_THREAD),
            clears: has(libc::CLONE_CHILD_CLEARTID).then_some(clears),
            shares: has(libc::CLONE_VM),
            is_vfork: has(libc::CLONE_VFORK),
        }))
    }
}

impl Futex {
    /// When the wait is over.
    pub(crate) fn timeout(&self) -> Timeout {
        match self.what {
            FutexWork::Wait { timeout, .. }
            | FutexWork::Lock { timeout, .. }
            | FutexWork::WaitRequeueLock { timeout, .. } => timeout,
            _ => Timeout::Never,
        }
    }

    fn of(call: &Notification) -> Self {
        let tid = call.tid;
        let a = call.args;
        let [value, count] = [a[2] as u32, a[3] as u32];
        let bits = a[5] as u32;
        const LOCK_PI2: i32 = 13;
        // The kernel wakes one at least.
        let at_least_one = |count: u32| count.cast_signed().max(1).cast_unsigned();
        let what = match a[1] as i32 & 0x7f {
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_WAKE_BITSET if bits == 0 => {
                FutexWork::Fails(libc::EINVAL)
            }
            libc::FUTEX_WAIT => FutexWork::Wait {
                value,
                bits: u32::MAX,
                timeout: Timeout::at(tid, a[3]),
            },
            libc::FUTEX_WAIT_BITSET => FutexWork::Wait {
                value,
                bits,
                timeout: Timeout::absolute(tid, a[3]),
            },
            libc::FUTEX_WAKE => FutexWork::Wake {
                count: at_least_one(value),
                bits: u32::MAX,
            },
            libc::FUTEX_WAKE_BITSET => FutexWork::Wake {
                count: at_least_one(value),
                bits,
            },
            work @ (libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE) => FutexWork::Requeue {
                count: value,
                moved: count,
                to: a[4],
                value: (work == libc::FUTEX_CMP_REQUEUE).then_some(bits),
            },
            libc::FUTEX_WAKE_OP => FutexWork::WakeOp {
                count: at_least_one(value),
                others: at_least_one(count),
                to: a[4],
                work: bits,
            },
            libc::FUTEX_LOCK_PI | LOCK_PI2 => FutexWork::Lock {
                timeout: Timeout::absolute(tid, a[3]),
                is_patient: true,
            },
            libc::FUTEX_TRYLOCK_PI => FutexWork::Lock {
                timeout: Timeout::Never,
                is_patient: false,
            },
            libc::FUTEX_UNLOCK_PI => FutexWork::Unlock,
            libc::FUTEX_WAIT_REQUEUE_PI => FutexWork::WaitRequeueLock {
                value,
                timeout: Timeout::absolute(tid, a[3]),
            },
            libc::FUTEX_CMP_REQUEUE_PI if value == 1 => FutexWork::RequeueLock {
                moved: count,
                to: a[4],
                value: bits,
            },
            libc::FUTEX_CMP_REQUEUE_PI => FutexWork::Fails(libc::EINVAL),
            _ => FutexWork::Other,
        };
        let call = Self {
            at: a[0],
            is_private: a[1] as i32 & libc::FUTEX_PRIVATE_FLAG != 0,
            what,
        };
        match call.timeout() {
            Timeout::Invalid(error) => Self {
                what: FutexWork::Fails(error),
                ..call
            },
            _ => call,
        }
    }
}
