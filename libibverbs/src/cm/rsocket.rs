//! Sockets over RDMA (`rsocket`), which are not supported. The functions exist because programs are
//! linked with them even if they do not call them.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{LazyLock, Once};

use verbs_api::sync::Mutex;

use crate::base::output;
use crate::c::{last_errno, set_errno};

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
