//! Staying as the parent of a program, so that from outside it looks as if the program itself were
//! there.
//!
//! Signals that somebody sends are passed on. Those of the terminal reach the program anyway, which
//! is in the same group; when one stops the program, its parent stops too. The parent never ends
//! before the program, and the kernel kills the program if its parent is killed.
//!
//! A program that takes too long is ended with all that it has started: who hangs may be a child
//! that it waits for.
#![expect(
    unsafe_code,
    reason = "what is between fork and exec, signals without a name, and children that have ended"
)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, raise, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, getpid, getppid};

use super::descendants::Descendants;

/// How a program ended.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// By itself.
    Status(u8),
    /// By this signal.
    Signal(i32),
    /// By its parent, since it took too long.
    TimedOut,
    /// By its parent: under a schedule it could not go on.
    Deadlock,
    /// By its parent: it took too long by its own clock, under a schedule.
    OutOfTime,
}

/// The end of a program.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    pub(super) how: End,
    /// The number of its process.
    pub(super) program: i32,
}

impl Ended {
    /// Whether neither a signal nor its parent ended the program.
    pub(super) fn is_by_itself(&self) -> bool {
        matches!(self.how, End::Status(_))
    }
}

/// From the signal that asks a program to end to the one that ends it.
const GRACE: Duration = Duration::from_secs(5);

/// Signals that end a wait for processes that the program has left behind.
const ENDING: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// Runs a program to its end, and with `waits` to the end of all that it has started. For a process
/// with one thread, which ends soon afterwards: its signals stay blocked.
///
/// # Errors
/// The program cannot be started.
pub(super) fn run(
    command: &mut Command,
    timeout: Option<Duration>,
    waits: bool,
) -> io::Result<Ended> {
    // SAFETY: the default is not a handler of this program. Without it children leave no status.
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
        if getppid() == parent {
            Ok(())
        } else {
            Err(Errno::ESRCH.into())
        }
    };
    // SAFETY: between fork and exec it makes system calls, and nothing else.
    unsafe { command.pre_exec(start) };
    // Orphans get another parent only if there is something to do about them.
    let adopts = waits || timeout.is_some();
    let descendants = adopts.then(Descendants::adopt).transpose()?;
    let mut child = command.spawn()?;
    let mut patience = Patience::new(timeout);
    let mut ended = None;
    // A signal has ended the wait for what the program left behind.
    let mut is_tired = false;
    loop {
        let left = patience.left();
        // A signal may come at any time.
        match poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], left) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        while let Some(signal) = signals.read_signal()? {
            let number = signal.ssi_signo as i32;
            if ended.is_some() {
                is_tired |= ENDING.contains(&number);
            } else if number == libc::SIGCHLD {
                stop_with(&child);
            } else if signal.ssi_code <= 0 {
                send(&child, number);
            }
        }
        if let (Some(signal), Some(descendants)) = (patience.signal(), &descendants) {
            descendants.send(signal);
        }
        if ended.is_none() {
            ended = child.try_wait()?;
        }
        let Some(descendants) = &descendants else {
            match ended {
                Some(status) => return Ok(Ended::new(&child, End::of(status))),
                None => continue,
            }
        };
        bury_others(&child);
        let is_over = patience.is_over();
        let Some(status) = ended else { continue };
        if !is_over && (!waits || is_tired || descendants.are_gone()) {
            return Ok(Ended::new(&child, End::of(status)));
        }
        if is_over && (patience.is_at_its_end() || descendants.are_gone()) {
            return Ok(Ended::new(&child, End::TimedOut));
        }
    }
}

impl Ended {
    fn new(child: &Child, how: End) -> Self {
        Self {
            how,
            program: pid_of(child).as_raw(),
        }
    }
}

impl End {
    fn of(status: ExitStatus) -> Self {
        match status.signal() {
            Some(signal) => Self::Signal(signal),
            None => Self::Status(status.code().unwrap_or_default() as u8),
        }
    }
}

/// Reaps processes that became children of this one because their parents ended earlier, and have
/// ended.
fn bury_others(child: &Child) {
    while let Some(ended) = ended_child().filter(|ended| *ended != pid_of(child)) {
        let _ = waitpid(ended, Some(WaitPidFlag::WNOHANG));
    }
}

/// A child that has ended and was not waited for.
fn ended_child() -> Option<Pid> {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    let mut found = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: there is room for what it says.
    let is_known = unsafe { libc::waitid(libc::P_ALL, 0, found.as_mut_ptr(), flags) } == 0;
    // SAFETY: it was filled, or is still zero, as it stays if there is none.
    let pid = unsafe { found.assume_init().si_pid() };
    (is_known && pid != 0).then(|| Pid::from_raw(pid))
}

/// Stops, if the terminal has stopped the program, so that the parent of this process notices.
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
    // SAFETY: changes no memory of this process; the child has not been waited for, so that its
    // number is its own.
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

    /// SIGKILL has not ended all, as those of another user.
    fn is_at_its_end(&self) -> bool {
        self.next.is_none() && self.until.is_none()
    }

    /// The signal that is due now, once.
    fn signal(&mut self) -> Option<Signal> {
        let until = self.until.filter(|until| *until <= Instant::now())?;
        let Some(signal) = self.next.take() else {
            self.until = None;
            return None;
        };
        self.until = until.checked_add(GRACE);
        if signal == Signal::SIGTERM {
            self.next = Some(Signal::SIGKILL);
        }
        Some(signal)
    }
}
