//! Output of the library: messages on the standard error, the diagnosis, the trace and the packets.
//!
//! A file is opened early, because by the end a program may have used up its descriptors, changed
//! its user or its root directory. Writing never ends the program: a limit on the size of files
//! (`SIGXFSZ`) and a pipe without a reader (`SIGPIPE`) are errors here, not signals.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::FromRawFd;
use std::ptr::null_mut;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use verbs_sim::Guarded;

/// The target of the diagnosis, the trace or the packets.
pub(crate) struct Output {
    /// A path, or `-` for the standard error.
    to: String,
    /// The file, if it could be opened at first.
    file: Option<Guarded<File>>,
}

impl Output {
    pub(crate) fn open(to: &str) -> Self {
        // If opening fails, writing at the end tries again, and reports the error.
        let file = (to != "-").then(|| opened(to).and_then(Guarded::raise));
        Self {
            to: to.to_owned(),
            file: file.and_then(Result::ok),
        }
    }

    pub(crate) fn is_stderr(&self) -> bool {
        self.to == "-"
    }

    /// Appends to the file, after what other processes of the same run have written.
    ///
    /// A sentence with the path and the reason. A standard error without a reader is not an error.
    pub(crate) fn write(&self, text: &str) -> Result<(), String> {
        match self.append(text.as_bytes()) {
            // A pipe such as `2>&1 | head` may end first.
            Err(error) if self.is_stderr() && error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| format!("{}: {error}", self.to)),
        }
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        quietly(|| {
            if self.is_stderr() {
                return write_to_stderr(bytes);
            }
            match self.file.as_ref().and_then(Guarded::own) {
                Some(mut file) => file.write_all(bytes),
                // The program has closed the descriptor, or used its number for another file.
                None => opened(&self.to)?.write_all(bytes),
            }
        })
    }
}

/// Each buffer is written as a whole.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn opened(path: &str) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Writes a line on the standard error, which may be closed.
pub(crate) fn say(text: impl Display) {
    let line = format!("verbsim: {text}\n");
    let _ = quietly(|| write_to_stderr(line.as_bytes()));
}

/// Writes to descriptor 2. `io::stderr` takes a closed descriptor for success, and the text would
/// be lost.
///
/// # Errors
/// The errors of `write`, such as `EBADF` if the program has closed the descriptor.
fn write_to_stderr(bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the descriptor stays open: it is the program's, and is not closed here.
    let stderr = ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDERR_FILENO) });
    (&*stderr).write_all(bytes)
}

/// Writes without the signals of a failed write: the thread blocks them, and takes those that came.
fn quietly<T>(write: impl FnOnce() -> T) -> T {
    let signals: SigSet = [Signal::SIGPIPE, Signal::SIGXFSZ].into_iter().collect();
    let Ok(before) = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK) else {
        return write();
    };
    // A signal that was pending before is for the program.
    let new = without_pending(signals);
    let result = write();
    let at_once = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both structures are initialized. The call does not return information about the
    // signal.
    while unsafe { libc::sigtimedwait(new.as_ref(), null_mut(), &raw const at_once) } > 0 {}
    let _ = before.thread_set_mask();
    result
}

fn without_pending(mut signals: SigSet) -> SigSet {
    let mut pending = MaybeUninit::zeroed();
    // SAFETY: the call fills the set. Zeros are the empty set.
    let pending = unsafe {
        libc::sigpending(pending.as_mut_ptr());
        SigSet::from_sigset_t_unchecked(pending.assume_init())
    };
    for signal in &pending {
        signals.remove(signal);
    }
    signals
}
