//! A descriptor that is used only while it is what it was.
//!
//! A program that closes all descriptors (`closefrom`) closes those of the simulator too, and their numbers may
//! become those of files of the program's own. So a number is high, where files come to only if there are very many,
//! and before each use it is looked at: whether it still names what it named in the beginning. That look costs about
//! 0.1 us.

use std::mem;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::fstat;
use rustix::io::{Result, fcntl_dupfd_cloexec};
use rustix::process::{Resource, getrlimit};

/// The number from which on descriptors are, if the process may have so many.
const FIRST: u64 = 1024;

/// What has a descriptor, and which file that is.
#[derive(Debug)]
pub(crate) struct Guarded<T: AsFd> {
    /// Always there, but for the drop.
    of: Option<T>,
    file: (u64, u64),
}

/// The same descriptor, with a high number.
pub(crate) fn raised(fd: OwnedFd) -> OwnedFd {
    let half = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 2;
    fcntl_dupfd_cloexec(&fd, FIRST.min(half) as i32).unwrap_or(fd)
}

impl<T: AsFd> Guarded<T> {
    /// Something whose descriptor has been [`raised`].
    pub(crate) fn new(of: T) -> Result<Self> {
        let file = file_of(&of)?;
        Ok(Self { of: Some(of), file })
    }

    /// It, though its descriptor may be closed, or another's: for what fails then.
    pub(crate) fn unguarded(&self) -> Option<&T> {
        self.of.as_ref()
    }

    /// It, unless the program has closed its descriptor.
    pub(crate) fn own(&self) -> Option<&T> {
        let of = self.of.as_ref()?;
        (file_of(of) == Ok(self.file)).then_some(of)
    }
}

impl<T: AsFd> Drop for Guarded<T> {
    fn drop(&mut self) {
        if self.own().is_none() {
            // Nothing to close, or what is the program's.
            mem::forget(self.of.take());
        }
    }
}

fn file_of(fd: &impl AsFd) -> Result<(u64, u64)> {
    let stat = fstat(fd)?;
    Ok((stat.st_dev, stat.st_ino))
}
