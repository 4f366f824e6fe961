//! What C functions return, as errors.

use std::ffi::c_int;

use verbs_api::{BadHandle, Cause, Error, ErrorKind, Object, Result, Verb};

use crate::owner::Destroyed;

/// The present `errno`.
pub(crate) fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// A result that is 0, an errno value of either sign, or -1 with `errno` set.
pub(crate) fn check(verb: Verb, result: c_int) -> Result<()> {
    match result {
        0 => Ok(()),
        -1 => Err(Error::from_raw(verb, errno()).with_raw(-1)),
        raw => Err(Error::from_raw(verb, raw)),
    }
}

/// What a call makes: a pointer, or null with `errno` set.
pub(crate) fn made<T>(verb: Verb, call: impl FnOnce() -> *mut T) -> Result<*mut T> {
    // Some drivers forget to say why, and the reason of an earlier call is not theirs.
    // SAFETY: gives the place of this thread's own number, which may be written.
    unsafe { *libc::__errno_location() = 0 };
    let pointer = call();
    if !pointer.is_null() {
        return Ok(pointer);
    }
    let raw = match errno() {
        0 => ErrorKind::Io.errno(),
        errno => errno,
    };
    Err(Error::from_raw(verb, raw))
}

pub(crate) fn bad_handle(verb: Verb, object: Object, problem: BadHandle) -> Error {
    Error::new(verb, ErrorKind::Invalid, Cause::Handle { object, problem })
}

/// Another thread destroyed the object meanwhile.
pub(crate) fn destroyed(verb: Verb, object: Object) -> impl FnOnce(Destroyed) -> Error {
    move |Destroyed| bad_handle(verb, object, BadHandle::Stale)
}

pub(crate) fn invalid(verb: Verb, what: &'static str, problem: &'static str) -> Error {
    Error::new(verb, ErrorKind::Invalid, Cause::Argument { what, problem })
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;

    use super::*;

    #[test]
    fn a_call_that_does_not_say_why_it_failed_is_not_given_an_older_reason() {
        let fail = |fd| {
            // SAFETY: no descriptor has this number, so nothing is closed.
            unsafe { libc::close(fd) };
            null_mut::<u8>()
        };
        let verb = Verb::CreateCq;
        let said = made(verb, || fail(-1)).unwrap_err();
        assert_eq!(said.raw(), Some(libc::EBADF));
        let silent = made(verb, null_mut::<u8>).unwrap_err();
        assert_eq!(silent.kind(), ErrorKind::Io);
    }
}
