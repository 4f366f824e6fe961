//! A run in a process of its own: a schedule is for the whole process, and so is a network.
#![expect(unsafe_code, reason = "fork has no safe interface")]

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use nix::libc;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork, setpgid};

/// Starts a process that does `work` and ends. Its standard output and standard error are
/// `output`; its standard input is empty. It ends with this process, and Ctrl-C does not reach it.
///
/// # Errors
/// The system has no process for it.
pub(super) fn start(output: &File, work: impl FnOnce()) -> io::Result<Pid> {
    let input = File::open("/dev/null")?;
    // SAFETY: the only other thread of this process waits for Ctrl-C in a system call, and has no
    // lock.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let prepare = || {
                set_pdeathsig(Signal::SIGKILL)?;
                setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
                dup2_stdin(input.as_fd())?;
                dup2_stdout(output.as_fd())?;
                dup2_stderr(output.as_fd())
            };
            if prepare().is_ok() {
                work();
            }
            // SAFETY: ends the process. What the parent has registered for its own end is not for
            // this one to do.
            unsafe { libc::_exit(0) }
        }
    }
}
