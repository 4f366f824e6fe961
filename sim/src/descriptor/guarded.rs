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

/// A file, socket or other owner of a descriptor that a program may close without the owner's knowledge.
///
/// A program that closes all descriptors, as daemons do by `closefrom`, closes those of the libraries in its process too.
/// The kernel may then give their numbers to files of the program. A guarded descriptor has a high number, which makes
/// that rare, and each use first checks that the number still names the same file. The check takes about 0.1 us.
#[derive(Debug)]
pub struct Guarded<T: AsFd> {
    /// Always there, but for the drop.
    of: Option<T>,
    file: (u64, u64),
}

/// The same descriptor, with a high number.
pub(crate) fn raised(fd: OwnedFd) -> OwnedFd {
    let half = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 2;
    fcntl_dupfd_cloexec(&fd, FIRST.min(half) as i32).unwrap_or(fd)
}

impl<T: AsFd + From<OwnedFd> + Into<OwnedFd>> Guarded<T> {
    /// Moves the descriptor to a high number, which `execve` closes, and guards it. It keeps its number if the process may
    /// have no other descriptor.
    ///
    /// # Errors
    /// The kernel does not say which file the descriptor names.
    pub fn raise(of: T) -> std::io::Result<Self> {
        Ok(Self::new(raised(of.into()).into())?)
    }
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

    /// The owner, or `None` if the program has closed its descriptor.
    pub fn own(&self) -> Option<&T> {
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
