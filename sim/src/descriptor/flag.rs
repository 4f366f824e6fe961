//! A descriptor that is readable while its flag is up.
//!
//! It is a timerfd whose timer never runs. The two calls that change it fail on any other file, so nothing happens to
//! a file of the program's that has got its number, and nobody has to look before. Some kernels are built without
//! one of the calls (`CONFIG_CHECKPOINT_RESTORE`); there it is an eventfd, which is looked at before each use, and
//! can also be written, which `POLLOUT` shows.

use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, Result, fcntl_dupfd_cloexec, read, write};
use rustix::ioctl::{Opcode, Setter, ioctl, opcode};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::guarded::{Guarded, raised};

/// A flag, down at first.
#[derive(Debug)]
pub(crate) struct Flag {
    fd: Guarded<OwnedFd>,
    is_timer: bool,
}

impl Flag {
    pub(crate) fn new() -> Result<Self> {
        Self::timer().or_else(|_| Self::event())
    }

    fn timer() -> Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = raised(timerfd_create(TimerfdClockId::Monotonic, flags)?);
        set_ticks(&timer)?;
        stop(&timer)?;
        let (fd, is_timer) = (Guarded::new(timer)?, true);
        Ok(Self { fd, is_timer })
    }

    fn event() -> Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let (fd, is_timer) = (Guarded::new(raised(eventfd(0, flags)?))?, false);
        Ok(Self { fd, is_timer })
    }

    /// Another descriptor of it, or `EBADF` if the program has closed this one.
    pub(crate) fn duplicate(&self) -> Result<OwnedFd> {
        fcntl_dupfd_cloexec(self.own().ok_or(Errno::BADF)?, 0)
    }

    /// Makes it readable, and wakes who waits for it, also if it was readable before.
    pub(crate) fn raise(&self) {
        // What fails here was closed by the program. An eventfd is never written so often that it has to wait.
        let _ = match self.is_timer {
            true => self.fd.unguarded().map(set_ticks),
            false => (self.own()).map(|fd| write(fd, &1u64.to_ne_bytes()).map(drop)),
        };
    }

    /// Makes it unreadable. A program may have read it, which it should not; then nothing is read, which
    /// could wait.
    pub(crate) fn lower(&self) {
        let _ = match self.is_timer {
            true => self.fd.unguarded().map(stop),
            false => {
                (self.own().filter(|fd| is_readable(fd))).map(|fd| read(fd, &mut [0; 8]).map(drop))
            }
        };
    }

    /// The descriptor, unless the program has closed it.
    pub(crate) fn own(&self) -> Option<&OwnedFd> {
        self.fd.own()
    }
}

/// Lets a timerfd be as if its timer had come, on kernels that can.
#[expect(unsafe_code, reason = "a call that the library has no function for")]
fn set_ticks(timer: &OwnedFd) -> Result<()> {
    /// `TFD_IOC_SET_TICKS`
    const SET_TICKS: Opcode = opcode::write::<u64>(b'T', 0);
    // SAFETY: this call reads a number of 64 bits. It is of timerfds alone.
    unsafe { ioctl(timer, Setter::<SET_TICKS, u64>::new(1)) }
}

/// Lets a timerfd be as if its timer had never come.
fn stop(timer: &OwnedFd) -> Result<()> {
    let never = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let stopped = Itimerspec {
        it_interval: never,
        it_value: never,
    };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &stopped).map(drop)
}

fn is_readable(fd: &OwnedFd) -> bool {
    let mut ask = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut ask, Some(&Timespec::default())) == Ok(1)
}

#[cfg(test)]
mod tests {
    use rustix::event::epoll;

    use super::*;

    /// Of each kind that this kernel has.
    fn flags() -> impl Iterator<Item = Flag> {
        let event = Flag::event().expect("all have eventfds");
        Flag::timer().into_iter().chain([event])
    }

    #[test]
    fn it_is_readable_while_it_is_up() {
        for flag in flags() {
            let fd = flag.duplicate().unwrap();
            for _ in 0..3 {
                assert!(!is_readable(&fd));
                flag.raise();
                assert!(is_readable(&fd));
                flag.raise();
                flag.lower();
                assert!(!is_readable(&fd));
                flag.lower();
            }
            flag.raise();
            assert_eq!(read(&fd, &mut [0; 8]), Ok(8));
            flag.lower();
            assert!(!is_readable(&fd));
        }
    }

    #[test]
    fn each_raise_is_an_edge() {
        for flag in flags() {
            let fd = flag.duplicate().unwrap();
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
            let edges = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&epoll, &fd, epoll::EventData::new_u64(0), edges).unwrap();
            let count = || {
                let mut events = Vec::with_capacity(2);
                let room = rustix::buffer::spare_capacity(&mut events);
                epoll::wait(&epoll, room, Some(&Timespec::default())).unwrap()
            };
            assert_eq!(count(), 0);
            for _ in 0..3 {
                flag.raise();
                assert_eq!((count(), count()), (1, 0));
                flag.raise();
                assert_eq!((count(), count()), (1, 0));
                flag.lower();
                assert_eq!(count(), 0);
            }
        }
    }
}
