//! A descriptor that is used only while it names the same file.
//!
//! A program that closes all descriptors (`closefrom`) also closes those of the simulator, and
//! their numbers may then name files of the program. So the numbers are high, which only processes
//! with very many files use. Before each use, a check compares the file with the original one. It
//! takes about 0.1 us.

use std::mem;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::fstat;
use rustix::io::{Result, fcntl_dupfd_cloexec};
use rustix::process::{Resource, getrlimit};

/// The lowest number of a guarded descriptor, if the process may have that many.
const FIRST: u64 = 1024;

/// The owner of a descriptor, such as a file or a socket, that a program may close without the
/// owner's knowledge.
///
/// A program that closes all descriptors, as daemons do with `closefrom`, also closes those of the
/// libraries in its process. The kernel may then give their numbers to files of the program. A
/// guarded descriptor has a high number, which makes that rare. Each use first checks that the
/// number still names the same file. The check takes about 0.1 us.
#[derive(Debug)]
pub struct Guarded<T: AsFd> {
    /// Always present until the drop, even if the descriptor is closed or names another file: for
    /// calls that fail then.
    pub(super) of: Option<T>,
    file: (u64, u64),
}

/// The same file, with a high descriptor number.
pub(crate) fn raised(fd: OwnedFd) -> OwnedFd {
    let half = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 2;
    fcntl_dupfd_cloexec(&fd, FIRST.min(half) as i32).unwrap_or(fd)
}

impl<T: AsFd + From<OwnedFd> + Into<OwnedFd>> Guarded<T> {
    /// Moves the descriptor to a high number, which `execve` closes, and guards it. It keeps its
    /// number if the process may not have another descriptor.
    ///
    /// # Errors
    /// If the kernel does not report which file the descriptor names.
    pub fn raise(of: T) -> std::io::Result<Self> {
        Ok(Self::new(raised(of.into()).into())?)
    }
}

impl<T: AsFd> Guarded<T> {
    /// Guards an owner whose descriptor has been [`raised`].
    pub(crate) fn new(of: T) -> Result<Self> {
        let file = file_of(&of)?;
        Ok(Self { of: Some(of), file })
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
            // The descriptor is closed, or it belongs to the program by now.
            mem::forget(self.of.take());
        }
    }
}

fn file_of(fd: &impl AsFd) -> Result<(u64, u64)> {
    let stat = fstat(fd)?;
    Ok((stat.st_dev, stat.st_ino))
}
