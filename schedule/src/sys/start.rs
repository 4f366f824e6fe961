//! Starting the program, and the guardian that leaves nothing of it behind.

use std::ffi::{CStr, CString};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use libc::{c_int, c_ulong, sock_filter};
use nix::fcntl::OFlag;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, pipe2};

use super::{Listener, install, kill, open_process};
use crate::{memory, proc};

/// A program that has been started, and that goes on when the supervisor answers its first call.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) pid: i32,
    pub(crate) handle: OwnedFd,
    pub(crate) listener: Listener,
    pub(crate) guardian: Guardian,
}

/// The parent of the program, and of all orphans of the run. It reaps them, and ends those that
/// live when the supervisor ends, however it does.
#[derive(Debug)]
pub(crate) struct Guardian {
    pid: Pid,
    /// The guardian writes the status of the program here.
    status: std::fs::File,
}

impl Guardian {
    /// Waits for the status of the program. `None` if the guardian was killed.
    pub(crate) fn status(&self) -> Option<c_int> {
        let mut bytes = [0; size_of::<c_int>()];
        (&self.status).read_exact(&mut bytes).ok()?;
        Some(c_int::from_ne_bytes(bytes))
    }
}

impl Drop for Guardian {
    /// Ends all that lives, and waits for that.
    fn drop(&mut self) {
        // SAFETY: the arguments are numbers. The guardian is a child that is not waited for yet.
        let _ended_before = unsafe { libc::kill(self.pid.as_raw(), libc::SIGRTMAX()) };
        while waitpid(self.pid, None) == Err(nix::Error::EINTR) {}
    }
}

/// What the three processes tell each other, in memory that they share.
struct Words {
    /// The descriptor of the listener in the program's process and one, or a failure.
    listener: AtomicI32,
    /// The program's process, or a failure. The guardian has the listener, too, then.
    program: AtomicI32,
}

/// A step of the start that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Fork,
    Filter,
    Open,
    Copy,
    Read,
    /// A process has ended before it could tell how far it came.
    Life,
}

/// The error of a step. It fits into a word, as a negative number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Failure {
    step: Step,
    error: c_int,
}

impl Step {
    const ALL: [Self; 6] = [
        Self::Fork,
        Self::Filter,
        Self::Open,
        Self::Copy,
        Self::Read,
        Self::Life,
    ];

    fn fails(self, error: &io::Error) -> Failure {
        let error = error.raw_os_error().unwrap_or(libc::EINVAL);
        Failure { step: self, error }
    }

    /// The call that the step makes.
    fn name(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Filter => "seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER)",
            Self::Open => "pidfd_open",
            Self::Copy => "pidfd_getfd",
            Self::Read => "process_vm_readv",
            Self::Life => "a process ended before the program started",
        }
    }
}

impl Failure {
    /// More than the kernel has errors.
    const ERRORS: c_int = 4096;

    fn to_word(self) -> c_int {
        -(self.step as c_int * Self::ERRORS + self.error)
    }

    fn of_word(word: c_int) -> Self {
        let step = Step::ALL.get((-word / Self::ERRORS) as usize);
        Self {
            step: step.copied().unwrap_or(Step::Life),
            error: -word % Self::ERRORS,
        }
    }
}

impl From<Failure> for io::Error {
    fn from(Failure { step, error }: Failure) -> Self {
        let what = Self::from_raw_os_error(error);
        let advice = match (step, error) {
            (Step::Filter, libc::EBUSY) => " (another filter already has a listener)",
            (Step::Filter, libc::EINVAL) => " (it needs Linux 5.19)",
            (Step::Copy | Step::Read, libc::EPERM) => " (in a container: --cap-add SYS_PTRACE)",
            _ => "",
        };
        Self::new(what.kind(), format!("{}: {what}{advice}", step.name()))
    }
}

/// What a new process needs to run a program.
struct Program<'a> {
    path: &'a CStr,
    args: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
    filter: &'a [sock_filter],
}

/// Starts a program under a filter.
///
/// This process must have one thread: the child of a fork may otherwise find locks taken.
pub(crate) fn start(
    path: &CStr,
    args: &[CString],
    env: &[CString],
    filter: &[sock_filter],
) -> io::Result<Started> {
    let pointers = |list: &[CString]| {
        let list = list.iter().map(|text| text.as_ptr());
        list.chain([std::ptr::null()]).collect()
    };
    let program = Program {
        path,
        args: pointers(args),
        env: pointers(env),
        filter,
    };
    let length = std::num::NonZero::new(4096).expect("a length");
    let rights = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: the kernel chooses an address where nothing is.
    let page = unsafe { mmap_anonymous(None, length, rights, MapFlags::MAP_SHARED) }?;
    // SAFETY: the page has zeros, is aligned, and is mapped until the end of this function.
    let words = unsafe { page.cast::<Words>().as_ref() };
    let (status, status_in) = pipe2(OFlag::O_CLOEXEC)?;
    let parent = std::process::id();
    // SAFETY: this process has one thread, so that its copy can do what it can do.
    let guardian = match unsafe { libc::fork() } {
        0 => {
            drop(status);
            guard(&program, words, parent, &status_in)
        }
        -1 => return Err(Step::Fork.fails(&io::Error::last_os_error()).into()),
        pid => Guardian {
            pid: Pid::from_raw(pid),
            status: status.into(),
        },
    };
    drop(status_in);
    let result = take_over(words, guardian).map_err(io::Error::from);
    // SAFETY: `words` is not used any more.
    let _unmapped = unsafe { munmap(page, 4096) };
    result
}

/// The supervisor's side: takes over the listener. The program waits in its first call, `execve`.
fn take_over(words: &Words, guardian: Guardian) -> Result<Started, Failure> {
    let by = guardian.pid.as_raw();
    let pid = wait_for(&words.program, by)?;
    let handle = open_process(pid).map_err(|error| Step::Open.fails(&error))?;
    let fd = wait_for(&words.listener, by)? - 1;
    let listener = Listener::of(handle.as_fd(), fd).map_err(|error| Step::Copy.fails(&error))?;
    // It has these words, too.
    memory::check(pid, std::ptr::from_ref(words).addr())
        .map_err(|error| Step::Read.fails(&error.into()))?;
    Ok(Started {
        pid,
        handle,
        listener,
        guardian,
    })
}

/// Waits until a child has stored a positive number, or a failure.
fn wait_for(word: &AtomicI32, child: i32) -> Result<i32, Failure> {
    loop {
        // It may store the word, and end then.
        let has_ended = has_ended(child);
        match word.load(Ordering::Acquire) {
            0 if has_ended => {
                return Err(Failure {
                    step: Step::Life,
                    error: libc::ECHILD,
                });
            }
            0 => std::thread::yield_now(),
            failure @ ..0 => return Err(Failure::of_word(failure)),
            number => return Ok(number),
        }
    }
}

/// Whether a child has ended. It stays to be waited for.
fn has_ended(child: i32) -> bool {
    // SAFETY: zeros are information about no child.
    let mut information = unsafe { std::mem::zeroed::<libc::siginfo_t>() };
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: there is room for the information, which the kernel fills, or leaves as it is.
    unsafe {
        let result = libc::waitid(
            libc::P_PID,
            child.cast_unsigned(),
            &raw mut information,
            how,
        );
        // There is no such child if its status was not wanted.
        result != 0 || information.si_pid() != 0
    }
}

fn error() -> i32 {
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EINVAL)
}

/// What the guardian does: starts the program, reaps, and ends what lives once its parent has ended
/// or sends a signal.
fn guard(program: &Program<'_>, words: &Words, parent: u32, status: &OwnedFd) -> ! {
    let ends = libc::SIGRTMAX();
    // SAFETY: the signal sets are initialized before they are used; all else are numbers and
    // strings that live on.
    let (pid, waited) = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, ends as c_ulong);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as c_ulong);
        libc::prctl(libc::PR_SET_NAME, c"verbs-guardian".as_ptr());
        if libc::getppid().cast_unsigned() != parent {
            libc::_exit(1);
        }
        let [mut all, mut before, mut waited] = [std::mem::zeroed::<libc::sigset_t>(); 3];
        libc::sigfillset(&raw mut all);
        libc::sigemptyset(&raw mut waited);
        libc::sigaddset(&raw mut waited, libc::SIGCHLD);
        libc::sigaddset(&raw mut waited, ends);
        // A child leaves no status if the signal is ignored.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let guardian = libc::getpid();
        let pid = libc::fork();
        if pid == 0 {
            libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
            run(program, words, guardian);
        }
        (pid, waited)
    };
    if pid < 0 {
        let failure = Step::Fork.fails(&io::Error::last_os_error());
        words.program.store(failure.to_word(), Ordering::Release);
        finish();
    }
    // While a process has the listener, no call goes on without an answer.
    let listener = wait_for(&words.listener, pid).and_then(|fd| {
        let process = open_process(pid).map_err(|error| Step::Open.fails(&error))?;
        Listener::of(process.as_fd(), fd - 1).map_err(|error| {
            kill(process.as_fd());
            Step::Copy.fails(&error)
        })
    });
    match &listener {
        Ok(_) => words.program.store(pid, Ordering::Release),
        Err(failure) => words.program.store(failure.to_word(), Ordering::Release),
    }
    loop {
        // SAFETY: the set is initialized, and no information is wanted.
        let signal = unsafe { libc::sigwaitinfo(&raw const waited, std::ptr::null_mut()) };
        if signal == ends {
            finish();
        }
        while let Some((ended, how)) = reap() {
            if ended == pid {
                let bytes = how.to_ne_bytes();
                // SAFETY: the bytes live on. They fit into the pipe.
                let _gone = unsafe { libc::write(status.as_raw_fd(), bytes.as_ptr().cast(), 4) };
            }
        }
    }
}

/// A child that has ended, and its status.
fn reap() -> Option<(i32, c_int)> {
    let mut status = 0;
    // SAFETY: there is room for the status.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

/// Ends all children, and theirs, which then are children of this process.
fn finish() -> ! {
    loop {
        // SAFETY: no status is wanted; the argument may be null.
        let pid = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
        if pid < 0 {
            // SAFETY: this process has nothing to clean up.
            unsafe { libc::_exit(0) };
        }
        if pid == 0 {
            for child in proc::children(std::process::id().cast_signed()) {
                // SAFETY: the arguments are numbers. A child stays until it is waited for.
                let _ended_before = unsafe { libc::kill(child, libc::SIGKILL) };
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// What the new process does.
///
/// # Safety
/// It calls only functions that are safe after a fork.
unsafe fn run(program: &Program<'_>, words: &Words, guardian: i32) -> ! {
    // SAFETY: the strings and lists live on in the copy of the memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong);
        if libc::getppid() != guardian {
            libc::_exit(1);
        }
        libc::prctl(libc::PR_SET_NAME, c"verbs-schedule".as_ptr());
        // Rust ignores it.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::personality(libc::ADDR_NO_RANDOMIZE as c_ulong);
        let message = install(program.filter)
            .map_or_else(|error| Step::Filter.fails(&error).to_word(), |fd| fd + 1);
        words.listener.store(message, Ordering::Release);
        if message < 0 {
            libc::_exit(1);
        }
        libc::execvpe(
            program.path.as_ptr(),
            program.args.as_ptr(),
            program.env.as_ptr(),
        );
        libc::_exit(if error() == libc::ENOENT { 127 } else { 126 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_its_step_and_its_error_in_a_word() {
        for step in Step::ALL {
            let failure = Failure {
                step,
                error: libc::EPERM,
            };
            assert!(failure.to_word() < 0);
            assert_eq!(Failure::of_word(failure.to_word()), failure);
        }
        let error = io::Error::from(Step::Copy.fails(&io::Error::from_raw_os_error(libc::EPERM)));
        let text = error.to_string();
        assert!(text.starts_with("pidfd_getfd: "), "{text}");
        assert!(text.contains("--cap-add SYS_PTRACE"), "{text}");
    }

    #[test]
    fn the_end_of_a_child_ends_the_wait_for_its_word() {
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let pid = child.id().cast_signed();
        let failure = wait_for(&AtomicI32::new(0), pid).expect_err("it stores nothing");
        assert_eq!(failure.step, Step::Life);
        let stored = AtomicI32::new(7);
        assert_eq!(wait_for(&stored, pid), Ok(7));
        assert!(child.wait().expect("it is a child").success());
    }
}
