//! An eventfd that is written only while it is one.
//!
//! A program that closes all descriptors (`closefrom`) closes this one too, and its number may become one
//! of a file of the program's own. So its number is high, where files come to only if there are very many,
//! and before each use it is looked at: whether it still names what it named in the beginning. That look costs
//! about what the write costs, 0.1 us, for each event that comes and for each queue that becomes empty.

use std::mem;
use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::fstat;
use rustix::io::{Result, fcntl_dupfd_cloexec, read, write};
use rustix::process::{Resource, getrlimit};

/// The number from which on eventfds are, if the process may have so many descriptors.
const FIRST: u64 = 1024;

/// An eventfd, and which file that is. All eventfds are one file, which no other file is.
#[derive(Debug)]
pub(crate) struct EventFd {
    /// Always there, but for the drop.
    fd: Option<OwnedFd>,
    file: (u64, u64),
}

impl EventFd {
    pub(crate) fn new() -> Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let half = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 2;
        let fd = fcntl_dupfd_cloexec(&fd, FIRST.min(half) as i32).unwrap_or(fd);
        let file = file_of(&fd)?;
        Ok(Self { fd: Some(fd), file })
    }

    /// Another descriptor of it, or `EBADF` if the program has closed this one.
    pub(crate) fn duplicate(&self) -> Result<OwnedFd> {
        fcntl_dupfd_cloexec(self.own().ok_or(rustix::io::Errno::BADF)?, 0)
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
    fn own(&self) -> Option<&OwnedFd> {
        let fd = self.fd.as_ref()?;
        (file_of(fd) == Ok(self.file)).then_some(fd)
    }
}

impl Drop for EventFd {
    fn drop(&mut self) {
        if self.own().is_none() {
            // Nothing to close, or what is the program's.
            mem::forget(self.fd.take());
        }
    }
}

fn file_of(fd: &OwnedFd) -> Result<(u64, u64)> {
    let stat = fstat(fd)?;
    Ok((stat.st_dev, stat.st_ino))
}

fn is_readable(fd: &OwnedFd) -> bool {
    let mut ask = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut ask, Some(&Timespec::default())) == Ok(1)
}
