//! An eventfd that is written only while it is one.

use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, Result, fcntl_dupfd_cloexec, read, write};

use crate::guarded::{Guarded, raised};

/// An eventfd. All eventfds are one file, which nothing else is but other files without a name, as epoll's.
#[derive(Debug)]
pub(crate) struct EventFd(Guarded<OwnedFd>);

impl EventFd {
    pub(crate) fn new() -> Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Guarded::new(raised(fd))?))
    }

    /// Another descriptor of it, or `EBADF` if the program has closed this one.
    pub(crate) fn duplicate(&self) -> Result<OwnedFd> {
        fcntl_dupfd_cloexec(self.own().ok_or(Errno::BADF)?, 0)
    }

    /// Makes it readable, and wakes who waits for it, also if it was readable before.
    pub(crate) fn raise(&self) {
        if let Some(fd) = self.own() {
            // It cannot fail, nor wait though a program may have made it blocking: the counter stays far
            // below its end.
            let _ = write(fd, &1u64.to_ne_bytes());
        }
    }

    /// Makes it unreadable. A program may have read it, which it should not; then nothing is read, which
    /// could wait.
    pub(crate) fn lower(&self) {
        if let Some(fd) = self.own().filter(|fd| is_readable(fd)) {
            let _ = read(fd, &mut [0; 8]);
        }
    }

    /// The descriptor, unless the program has closed it.
    pub(crate) fn own(&self) -> Option<&OwnedFd> {
        self.0.own()
    }
}

fn is_readable(fd: &OwnedFd) -> bool {
    let mut ask = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut ask, Some(&Timespec::default())) == Ok(1)
}
