//! Sockets over RDMA (`rsocket`), which are not supported. The functions exist because programs that do
//! not use them are linked with them all the same.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{LazyLock, Once};

use verbs_api::sync::Mutex;

use crate::base::output;
use crate::c::result::{last_errno, set_errno};

/// Open descriptors of `repoll_create`.
static REPOLLS: LazyLock<Mutex<BTreeMap<RawFd, OwnedFd>>> = LazyLock::new(Mutex::default);

fn say() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        output::say("rsockets are not supported");
    });
    set_errno(libc::ENOTSUP);
}

/// A function that returns a number.
pub(crate) extern "C" fn minus_one() -> c_int {
    say();
    -1
}

/// A function that returns a size or an offset.
pub(crate) extern "C" fn minus_one_wide() -> isize {
    say();
    -1
}

/// `rpoll`, which also takes descriptors of the system.
pub(crate) extern "C" fn poll(
    fds: *mut libc::pollfd,
    count: libc::nfds_t,
    timeout: c_int,
) -> c_int {
    // SAFETY: the arguments are the program's (C's contract). No descriptor is a socket over RDMA.
    unsafe { libc::poll(fds, count, timeout) }
}

/// `rselect`, which also takes descriptors of the system.
pub(crate) extern "C" fn select(
    count: c_int,
    read: *mut libc::fd_set,
    write: *mut libc::fd_set,
    except: *mut libc::fd_set,
    timeout: *mut libc::timeval,
) -> c_int {
    // SAFETY: as above.
    unsafe { libc::select(count, read, write, except, timeout) }
}

/// `repoll_create`: an epoll descriptor, which [`close`] closes.
pub(crate) extern "C" fn repoll_create(flags: c_int) -> c_int {
    // SAFETY: the call only makes a descriptor.
    let fd = unsafe { libc::epoll_create1(flags & libc::O_CLOEXEC) };
    if fd >= 0 {
        // SAFETY: just made.
        let owned = unsafe { OwnedFd::from_raw_fd(fd) };
        REPOLLS.lock().insert(fd, owned);
    }
    fd
}

/// `repoll_ctl`. Returns an errno value, as librdmacm does.
pub(crate) extern "C" fn repoll_ctl(
    repoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut libc::epoll_event,
) -> c_int {
    let Some(epoll) = epoll_of(repoll) else {
        return libc::EINVAL;
    };
    // SAFETY: the arguments are the program's (C's contract).
    match unsafe { libc::epoll_ctl(epoll, operation, fd, event) } {
        0 => 0,
        _ => last_errno(),
    }
}

pub(crate) extern "C" fn repoll_wait(
    repoll: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    let Some(epoll) = epoll_of(repoll) else {
        set_errno(libc::EINVAL);
        return -1;
    };
    // SAFETY: the arguments are the program's (C's contract).
    unsafe { libc::epoll_wait(epoll, events, most, timeout) }
}

fn epoll_of(repoll: c_int) -> Option<RawFd> {
    REPOLLS.lock().get(&repoll).map(AsRawFd::as_raw_fd)
}

/// `rclose`. Only descriptors of [`repoll_create`] can be open.
pub(crate) extern "C" fn close(fd: c_int) -> c_int {
    let closed = REPOLLS.lock().remove(&fd);
    match closed {
        Some(_) => 0,
        None => minus_one(),
    }
}
