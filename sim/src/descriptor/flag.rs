//! A descriptor that is readable while its flag is up.
//!
//! It is a timerfd whose timer never runs. The two calls that change it fail on any other file. So
//! they need no check, and cannot change a file of the program that got the same number. Some
//! kernels lack one of the calls (`CONFIG_CHECKPOINT_RESTORE`). There it is an eventfd, which is
//! checked before each use. An eventfd can also be written, which `POLLOUT` shows.

use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, Result, fcntl_dupfd_cloexec, read, write};
use rustix::ioctl::{Opcode, Setter, ioctl, opcode};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::guarded::{Guarded, raised};

/// A flag, initially down.
pub(crate) struct Flag {
    /// Its owner is `None` if the program has closed the descriptor.
    pub(crate) fd: Guarded<OwnedFd>,
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

    /// Duplicates the descriptor. `EBADF` if the program has closed it.
    pub(crate) fn duplicate(&self) -> Result<OwnedFd> {
        fcntl_dupfd_cloexec(self.fd.own().ok_or(Errno::BADF)?, 0)
    }

    /// Makes it readable, and wakes its waiters even if it was readable before.
    pub(crate) fn raise(&self) {
        // A failure means that the program closed it. An eventfd never has enough writes to block.
        let _ = if self.is_timer {
            self.fd.of.as_ref().map(set_ticks)
        } else {
            (self.fd.own()).map(|fd| write(fd, &1u64.to_ne_bytes()).map(drop))
        };
    }

    /// Makes it unreadable. The program may have read it by mistake. Then it is not read again,
    /// because that could block.
    pub(crate) fn lower(&self) {
        let _ = if self.is_timer {
            self.fd.of.as_ref().map(stop)
        } else {
            (self.fd.own().filter(|fd| is_readable(fd))).map(|fd| read(fd, &mut [0; 8]).map(drop))
        };
    }
}

/// Makes a timerfd look as if its timer had fired, on kernels that can.
#[expect(unsafe_code, reason = "a call that the library has no function for")]
fn set_ticks(timer: &OwnedFd) -> Result<()> {
    /// `TFD_IOC_SET_TICKS`
    const SET_TICKS: Opcode = opcode::write::<u64>(b'T', 0);
    // SAFETY: this call reads a 64-bit number. Other files than timerfds refuse it.
    unsafe { ioctl(timer, Setter::<SET_TICKS, u64>::new(1)) }
}

/// Makes a timerfd look as if its timer had never fired.
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

    /// A flag of each kind that this kernel supports.
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
