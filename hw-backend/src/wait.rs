//! Bounded waits on file descriptors.

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use verbs_api::{Cause, Error, ErrorKind, Result, Verb, Wait};

/// The end of a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    wait: Wait,
    start: Instant,
}

impl Deadline {
    pub(crate) fn new(wait: Wait) -> Self {
        Self {
            wait,
            start: Instant::now(),
        }
    }

    /// The end of the wait. `None` if it has none.
    ///
    /// `WouldBlock` if the caller does not wait, `TimedOut` if the end has come.
    pub(crate) fn instant(&self, verb: Verb, cause: &Cause) -> Result<Option<Instant>> {
        match self.wait {
            Wait::Forever => Ok(None),
            Wait::Poll => Err(Error::new(verb, ErrorKind::WouldBlock, cause.clone())),
            Wait::For(time) => match self.start.checked_add(time) {
                Some(end) if end <= Instant::now() => {
                    Err(Error::new(verb, ErrorKind::TimedOut, cause.clone()))
                }
                end => Ok(end),
            },
        }
    }
}

/// A wait without an end returns from time to time, so that its caller notices a destroyed object.
const LOOK_UP: Duration = Duration::from_millis(200);

/// Waits until the descriptor can be read, or for the time of a slice.
pub(crate) fn wait_readable(verb: Verb, fd: RawFd, deadline: &Deadline) -> Result<()> {
    let end = deadline.instant(verb, &Cause::NoEvent)?;
    let left = end.map_or(LOOK_UP, |end| end.saturating_duration_since(Instant::now()));
    let left = left.min(LOOK_UP).try_into().ok();
    // SAFETY: the descriptor belongs to an object whose destruction waits for its waiters.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    match poll(&mut [PollFd::new(&fd, PollFlags::IN)], left.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(Error::from_raw(verb, errno.raw_os_error())),
    }
}

/// Makes the descriptor non-blocking.
pub(crate) fn set_nonblocking(verb: Verb, fd: RawFd) -> Result<()> {
    // SAFETY: the descriptor belongs to an object that was just made.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    fcntl_getfl(fd)
        .and_then(|flags| fcntl_setfl(fd, flags | OFlags::NONBLOCK))
        .map_err(|errno| Error::from_raw(verb, errno.raw_os_error()))
}

/// A duplicate of an object's descriptor, which the caller owns. Called while the object lives.
pub(crate) fn duplicate(verb: Verb, fd: RawFd) -> Result<OwnedFd> {
    // SAFETY: the descriptor belongs to a live object (the caller's promise).
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    rustix::io::fcntl_dupfd_cloexec(fd, 0)
        .map_err(|errno| Error::from_raw(verb, errno.raw_os_error()))
}
