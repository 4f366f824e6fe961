//! Sockets over RDMA (`rsocket`), which this library has by name only: programs that do not use them are linked with
//! them all the same.

use std::ffi::c_int;
use std::sync::Once;

use crate::output;
use crate::result::set_errno;

fn say() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        output::say("rsockets are not supported");
    });
    set_errno(libc::ENOTSUP);
}

/// Those that return a number.
pub(crate) extern "C" fn minus_one() -> c_int {
    say();
    -1
}

/// Those that return a size or an offset.
pub(crate) extern "C" fn minus_one_wide() -> isize {
    say();
    -1
}

/// Takes descriptors of the system, too.
pub(crate) extern "C" fn poll(
    fds: *mut libc::pollfd,
    count: libc::nfds_t,
    timeout: c_int,
) -> c_int {
    // SAFETY: as the program asks (C's contract). No descriptor can be one of a socket over RDMA.
    unsafe { libc::poll(fds, count, timeout) }
}

/// The same.
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
