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

/// A result that is a pointer, or null with `errno` set.
pub(crate) fn check_pointer<T>(verb: Verb, pointer: *mut T) -> Result<*mut T> {
    if !pointer.is_null() {
        return Ok(pointer);
    }
    // Some drivers forget to say why.
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
