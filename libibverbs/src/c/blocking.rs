//! Calls that wait until there is an event, unless the program made the descriptor non-blocking. A signal ends the wait
//! with `EINTR`.
//!
//! Where the real library reads, a thread may be cancelled (`pthread_cancel`), which unwinds its stack. So the calls that
//! only wait sleep outside of what keeps panics from the program, and have nothing there that would have to be dropped.
//! All else is done while the thread cannot be cancelled (`result`).

use std::cell::Cell;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use verbs_api::ErrorKind;
use verbs_api::sync::Mutex;
use verbs_sim::Sleeping;

use super::object::{CObject, Found, Kind};
use super::result::{Object, Refusal, Result, guarded, last_errno, set_errno};
use crate::engine::engine;

unsafe extern "C-unwind" {
    fn poll(entries: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int;
}

std::thread_local!(
    /// While a call sleeps. A thread that is cancelled drops it when it goes.
    static SLEEPS: Cell<Option<Sleeping<'static>>> = const { Cell::new(None) };
);

/// What came of a look.
pub(crate) enum Next<T> {
    Taken(T),
    /// Nothing is there until this descriptor can be read.
    Sleep(RawFd),
}

/// No descriptor: `poll` skips it, and so a call sleeps until a signal comes. The kernel leaves a
/// thread in a call whose descriptor another thread closes, and so does this library when another
/// thread destroys the object of a call.
const NEVER_READABLE: RawFd = -1;

impl<T> Next<T> {
    /// Another thread has destroyed the object.
    pub(crate) const GONE: Self = Self::Sleep(NEVER_READABLE);
}

/// Whether a call has slept.
#[derive(Clone, Copy)]
pub(crate) struct Begun(bool);

impl Begun {
    /// The object that a program points to. `None` if it was destroyed while the call slept.
    pub(crate) fn find<K: Kind>(self, seen: *mut K::Seen) -> Result<Option<Found<K>>> {
        match CObject::<K>::find(seen) {
            Err(_) if self.0 => Ok(None),
            found => found.map(Some),
        }
    }
}

/// Looks until `attempt` has taken something, and sleeps meanwhile: 0, or -1 and `errno`. Nothing of it may have to be
/// dropped.
#[inline(always)]
pub(crate) fn call(
    name: &'static str,
    object: impl Object,
    attempt: impl Fn(Begun) -> Result<Next<()>> + Copy,
    sleeping: impl Fn() -> Option<Sleeping<'static>> + Copy,
) -> c_int {
    let mut begun = Begun(false);
    loop {
        let fd = match guarded(name, object, || attempt(begun)) {
            Ok(Next::Taken(())) => return 0,
            Ok(Next::Sleep(fd)) => fd,
            Err(_) => return -1,
        };
        // A diagnosis says which thread waits.
        let _ = guarded(name, object, || {
            SLEEPS.set(sleeping());
            Ok(())
        });
        let woken = until_readable(fd);
        begun = Begun(true);
        let error = last_errno();
        let _ = guarded(name, object, || {
            SLEEPS.take();
            Ok(())
        });
        if !woken {
            set_errno(error);
            return -1;
        }
    }
}

/// The same within a call that does more than that. The thread cannot be cancelled.
pub(crate) fn wait<T, S>(
    fd: &Mutex<Option<OwnedFd>>,
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

/// Takes what is there, or says what to sleep for.
pub(crate) fn look<T>(
    fd: &Mutex<Option<OwnedFd>>,
    take: impl Fn() -> verbs_api::Result<T>,
) -> Result<Next<T>> {
    let mut looks = 0;
    loop {
        let error = match take() {
            Err(error) => error,
            Ok(taken) => return Ok(Next::Taken(taken)),
        };
        let Some(fd) = fd.lock().as_ref().map(AsRawFd::as_raw_fd) else {
            return Ok(Next::GONE);
        };
        if error.kind() != ErrorKind::WouldBlock {
            return Err(error.into());
        }
        // SAFETY: only reads the flags.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        if flags < 0 {
            return Err(Refusal::by_system("fcntl of the channel's descriptor"));
        }
        if flags & libc::O_NONBLOCK != 0 {
            return Err(Refusal::expected(libc::EAGAIN));
        }
        if !engine().sim.look_for_packets(&mut looks) {
            return Ok(Next::Sleep(fd));
        }
    }
}

/// Removes `O_NONBLOCK` from a descriptor, as the kernel's are. The program may set it.
pub(crate) fn set_blocking(fd: &OwnedFd) -> Result<()> {
    let fd = fd.as_raw_fd();
    // SAFETY: reads and writes the flags of a descriptor that is ours.
    let result = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_NONBLOCK)
    };
    if result < 0 {
        return Err(Refusal::by_system("fcntl"));
    }
    Ok(())
}

/// Whether a diagnosis will show which threads wait.
pub(crate) fn is_diagnosed() -> bool {
    engine().config.diagnose().is_some()
}

/// False with `errno` if a signal came.
#[inline(always)]
fn until_readable(fd: RawFd) -> bool {
    let mut entry = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, which is ours.
    unsafe { poll(&raw mut entry, 1, -1) >= 0 }
}
