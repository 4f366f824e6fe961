//! Calls that wait for an event, unless the program made the descriptor non-blocking. A signal ends
//! the wait with `EINTR`.
//!
//! A thread can be cancelled (`pthread_cancel`) where the real library reads, which unwinds its
//! stack. So calls that only wait sleep outside of the code that catches panics, and have nothing
//! there that must be dropped. Everything else runs while the thread cannot be cancelled
//! (`result`).

use std::cell::Cell;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use verbs_api::ErrorKind;
use verbs_api::sync::Mutex;
use verbs_sim::WaitGuard;

use super::object::{CObject, Structure};
use super::result::{Later, Object, Refusal, Result, guarded, last_errno, set_errno};
use crate::engine::{engine, sim};

unsafe extern "C-unwind" {
    fn poll(entries: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int;
}

std::thread_local!(
    /// Set while a call sleeps. The end of a cancelled thread drops it.
    static SLEEPS: Cell<Option<WaitGuard<'static>>> = const { Cell::new(None) };
);

/// The result of a look for an event.
pub(crate) enum Next<T> {
    Taken(T),
    /// No event, until this descriptor can be read.
    Sleep(RawFd),
}

/// No descriptor. `poll` skips it, so a call sleeps until a signal comes. The kernel leaves a
/// thread in a call whose descriptor another thread closes, and so does this library when another
/// thread destroys the object of a call.
const NEVER_READABLE: RawFd = -1;

impl<T> Next<T> {
    /// Another thread has destroyed the object.
    const GONE: Self = Self::Sleep(NEVER_READABLE);

    /// Gives an event that was taken to the program.
    pub(crate) fn give(self, give: impl FnOnce(T) -> Result<()>) -> Result<Next<()>> {
        match self {
            Self::Taken(event) => give(event).map(Next::Taken),
            Self::Sleep(fd) => Ok(Next::Sleep(fd)),
        }
    }
}

/// Calls `attempt` until it has taken an event, and sleeps in between. Returns 0, or -1 and
/// `errno`. No value here may need to be dropped.
#[inline(always)]
pub(crate) fn call<S: Structure>(
    name: &'static str,
    seen: *mut S,
    attempt: impl Fn(&CObject<S::Kind>) -> Result<Next<()>> + Copy,
    sleeping: impl Fn(&CObject<S::Kind>) -> Option<WaitGuard<'static>> + Copy,
) -> c_int {
    // An attempt looks the object up, because another thread may destroy it between two of them.
    let object = Later(seen);
    let mut has_slept = false;
    loop {
        let attempted = guarded(name, object, |()| match seen.found() {
            // Another thread has destroyed the object in the meantime, which is not a mistake of
            // this call.
            Err(_) if has_slept => Ok(Next::GONE),
            found => attempt(&*found?),
        });
        let fd = match attempted {
            Ok(Next::Taken(())) => return 0,
            Ok(Next::Sleep(fd)) => fd,
            Err(_) => return -1,
        };
        // A diagnosis shows the threads that wait.
        let _ = guarded(name, object, |()| {
            let found = is_diagnosed().then(|| seen.found().ok()).flatten();
            let sleeps = found.and_then(|found| sleeping(&found));
            SLEEPS.set(sleeps.map(|sleeps| {
                if is_main_thread() {
                    sleeps.in_main_thread()
                } else {
                    sleeps
                }
            }));
            Ok(())
        });
        let woken = until_readable(fd);
        has_slept = true;
        let error = last_errno();
        let _ = guarded(name, object, |()| {
            SLEEPS.take();
            Ok(())
        });
        // The calls in between may have changed `errno`.
        if !woken {
            set_errno(error);
            return -1;
        }
    }
}

/// Waits for an event within a call that does more. The thread cannot be cancelled.
pub(crate) fn wait<T, S>(
    fd: &Descriptor,
    take: impl Fn() -> verbs_api::Result<T>,
    sleeping: impl Fn() -> S,
) -> Result<T> {
    loop {
        match look(fd, &take)? {
            Next::Taken(taken) => return Ok(taken),
            Next::Sleep(fd) => {
                let _sleeping = is_diagnosed().then(&sleeping);
                if !until_readable(fd) {
                    return Err(Refusal::expected(last_errno()));
                }
            }
        }
    }
}

/// Takes an event, or returns the descriptor to sleep for.
pub(crate) fn look<T>(fd: &Descriptor, take: impl Fn() -> verbs_api::Result<T>) -> Result<Next<T>> {
    let mut looks = 0;
    loop {
        let error = match take() {
            Err(error) => error,
            Ok(taken) => return Ok(Next::Taken(taken)),
        };
        let Some(fd) = fd.number() else {
            return Ok(Next::GONE);
        };
        // Other errors do not go away by waiting.
        if error.kind() != ErrorKind::WouldBlock {
            return Err(error.into());
        }
        // SAFETY: only reads the flags.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        if flags < 0 {
            return Err(Refusal::by_system("fcntl of the channel's descriptor"));
        }
        // The program waits on the descriptor itself.
        if flags & libc::O_NONBLOCK != 0 {
            return Err(Refusal::expected(libc::EAGAIN));
        }
        // An event may be in a packet that no thread has read yet.
        if !sim().look_for_packets(&mut looks) {
            return Ok(Next::Sleep(fd));
        }
    }
}

/// A descriptor of an object, until the object is destroyed: the one by which a program waits for
/// its events, or the command descriptor of a context.
pub(crate) struct Descriptor(Mutex<Option<OwnedFd>>);

impl Descriptor {
    /// Removes `O_NONBLOCK`, as the kernel's descriptors are. The program may set it.
    pub(crate) fn new(fd: OwnedFd) -> Result<Self> {
        let flags = fcntl(&fd, FcntlArg::F_GETFL).map(OFlag::from_bits_retain);
        let set = flags.and_then(|flags| fcntl(&fd, FcntlArg::F_SETFL(flags - OFlag::O_NONBLOCK)));
        set.map_err(|_| Refusal::by_system("fcntl"))?;
        Ok(fd.into())
    }

    /// Its number, until it is closed.
    pub(crate) fn number(&self) -> Option<RawFd> {
        self.0.lock().as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Closes it when `destroy` has destroyed the object. The lock makes both steps one for a
    /// thread that waits.
    pub(crate) fn close_after(&self, destroy: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut fd = self.0.lock();
        destroy()?;
        drop(fd.take());
        Ok(())
    }

    /// Closes it now.
    pub(crate) fn close(&self) {
        drop(self.0.lock().take());
    }
}

/// A descriptor that keeps its flags.
impl From<OwnedFd> for Descriptor {
    fn from(fd: OwnedFd) -> Self {
        Self(Mutex::new(Some(fd)))
    }
}

/// Whether a diagnosis will show which threads wait.
fn is_diagnosed() -> bool {
    engine().config.diagnose().is_some()
}

fn is_main_thread() -> bool {
    nix::unistd::gettid() == nix::unistd::getpid()
}

/// Waits. False, with `errno`, if a signal came.
#[inline(always)]
fn until_readable(fd: RawFd) -> bool {
    let mut entry = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, which is a local variable.
    unsafe { poll(&raw mut entry, 1, -1) >= 0 }
}
