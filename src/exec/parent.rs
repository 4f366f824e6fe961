//! Staying as the parent of a program, so that from outside it looks as if the program itself were there.
//!
//! Signals that somebody sends are passed on. Those of the terminal reach the program anyway, which is in
//! the same group; when one stops the program, its parent stops too. The parent never ends before the
//! program, and the kernel kills the program if its parent is killed.
#![expect(
    unsafe_code,
    reason = "what is between fork and exec, and signals without a name"
)]

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, raise, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, getpid, getppid};

/// How a program ended.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// By itself.
    Status(u8),
    /// By this signal.
    Signal(i32),
    /// By its parent, since it took too long.
    TimedOut,
}

/// From the signal that asks a program to end to the one that ends it.
const GRACE: Duration = Duration::from_secs(5);

/// Runs a program to its end. For a process with one thread, which ends soon afterwards: its signals
/// stay blocked.
///
/// # Errors
/// The program cannot be started.
pub(super) fn run(command: &mut Command, timeout: Option<Duration>) -> io::Result<End> {
    // SAFETY: the default is no handler of this program. Without it children leave no status.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
    let all = SigSet::all();
    let before = all.thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals = SignalFd::with_flags(&all, flags)?;
    let parent = getpid();
    let start = move || {
        before.thread_set_mask()?;
        set_pdeathsig(Signal::SIGKILL)?;
        // It may have been killed before.
        match getppid() == parent {
            true => Ok(()),
            false => Err(Errno::ESRCH.into()),
        }
    };
    // SAFETY: between fork and exec it makes system calls, and nothing else.
    unsafe { command.pre_exec(start) };
    let mut child = command.spawn()?;
    let mut patience = Patience::new(timeout);
    loop {
        let left = patience.left();
        // A signal may come at any time.
        match poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], left) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        while let Some(signal) = signals.read_signal()? {
            let number = signal.ssi_signo as i32;
            if number == libc::SIGCHLD {
                if let Some(status) = child.try_wait()? {
                    return Ok(match status.signal() {
                        _ if patience.is_over() => End::TimedOut,
                        Some(signal) => End::Signal(signal),
                        None => End::Status(status.code().unwrap_or_default() as u8),
                    });
                }
                stop_with(&child);
            } else if signal.ssi_code <= 0 {
                send(&child, number);
            }
        }
        if let Some(signal) = patience.signal() {
            send(&child, signal as i32);
            // One that is stopped would not see it.
            send(&child, libc::SIGCONT);
        }
    }
}

/// Stops, if the terminal has stopped the program: whoever waits for this process is told.
fn stop_with(child: &Child) {
    let stopped = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
    if let Ok(WaitStatus::Stopped(_, Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU)) =
        waitid(Id::Pid(pid_of(child)), stopped)
    {
        // It cannot fail: the signal has no handler.
        let _ = raise(Signal::SIGSTOP);
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id() as libc::pid_t)
}

fn send(child: &Child, signal: i32) {
    // SAFETY: changes no memory of this process; the child has not been waited for, so that its number is
    // its own.
    unsafe { libc::kill(child.id() as libc::pid_t, signal) };
}

/// How long the program may still run, and what comes then.
struct Patience {
    until: Option<Instant>,
    next: Option<Signal>,
}

impl Patience {
    fn new(timeout: Option<Duration>) -> Self {
        Self {
            // What cannot be represented is never.
            until: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            next: Some(Signal::SIGTERM),
        }
    }

    fn left(&self) -> PollTimeout {
        let Some(until) = self.until else {
            return PollTimeout::NONE;
        };
        let left = until.saturating_duration_since(Instant::now());
        // Rounded up, or the last part of a millisecond would be waited for without rest.
        let left = left.as_millis().saturating_add(1);
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    }

    /// The program has been asked to end.
    fn is_over(&self) -> bool {
        self.next != Some(Signal::SIGTERM)
    }

    /// The signal that is due now, once.
    fn signal(&mut self) -> Option<Signal> {
        let until = self.until.filter(|until| *until <= Instant::now())?;
        let signal = self.next.take()?;
        if signal == Signal::SIGTERM {
            (self.next, self.until) = (Some(Signal::SIGKILL), until.checked_add(GRACE));
        } else {
            self.until = None;
        }
        Some(signal)
    }
}
