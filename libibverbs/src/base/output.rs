//! What the library writes for the user: messages on the standard error, the diagnosis, the trace
//! and the packets.
//!
//! A file is opened early: by the end a program may have used up its descriptors, changed its user
//! or its root directory. What the library writes never ends the program: a limit on the size of
//! files (`SIGXFSZ`) and a pipe without a reader (`SIGPIPE`) are errors here, and no signals.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::FromRawFd;
use std::ptr::null_mut;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use verbs_sim::Guarded;

/// Where the diagnosis, the trace or the packets go.
pub(crate) struct Output {
    /// A path, or `-` for the standard error.
    to: String,
    /// The file, if it could be opened at first.
    file: Option<Guarded<File>>,
}

impl Output {
    pub(crate) fn open(to: &str) -> Self {
        // If that fails, the end may still find another way, and reports what it finds.
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
    /// # Errors
    /// A sentence with the path: why the text could not be written. A standard error that nobody
    /// reads is no error.
    pub(crate) fn write(&self, text: &str) -> Result<(), String> {
        match self.append(text.as_bytes()) {
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
                // The program has closed the descriptor.
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

/// Writes to descriptor 2. `io::stderr` takes a closed one for a success, and the text would be
/// lost.
///
/// # Errors
/// Those of `write`, such as `EBADF` if the program has closed the descriptor.
fn write_to_stderr(bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the descriptor stays the program's: it is not closed here.
    let stderr = ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDERR_FILENO) });
    (&*stderr).write_all(bytes)
}

/// Writes without the signals of a write that fails: the thread blocks them, and takes those that
/// came.
fn quietly<T>(write: impl FnOnce() -> T) -> T {
    let signals: SigSet = [Signal::SIGPIPE, Signal::SIGXFSZ].into_iter().collect();
    let Ok(before) = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK) else {
        return write();
    };
    // A signal that was pending is the program's.
    let new = without_pending(signals);
    let result = write();
    let at_once = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both structures are whole; nothing is to be said of the signal that was taken.
    while unsafe { libc::sigtimedwait(new.as_ref(), null_mut(), &raw const at_once) } > 0 {}
    let _ = before.thread_set_mask();
    result
}

fn without_pending(mut signals: SigSet) -> SigSet {
    let mut pending = MaybeUninit::zeroed();
    // SAFETY: there is room for the set, which the call fills; zeros are the empty one.
    let pending = unsafe {
        libc::sigpending(pending.as_mut_ptr());
        SigSet::from_sigset_t_unchecked(pending.assume_init())
    };
    for signal in &pending {
        signals.remove(signal);
    }
    signals
}
