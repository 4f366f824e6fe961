//! Results of C functions, as errors.

use std::ffi::c_int;
use std::sync::Arc;

use verbs_abi::library::Missing;
use verbs_api::table::Table;
use verbs_api::{BadHandle, Cause, Context, Error, ErrorKind, Handle, Object, Result, Verb};

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

/// The object that a call makes: a pointer, or null with `errno` set.
pub(crate) fn made<T>(verb: Verb, call: impl FnOnce() -> *mut T) -> Result<*mut T> {
    // SAFETY: returns the address of this thread's number, which may be written.
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

/// The object of a handle, if no other table has objects of this kind.
pub(crate) fn look_up<H: Handle, T>(table: &Table<Arc<T>>, verb: Verb, of: H) -> Result<Arc<T>> {
    let found = table.get(of.index(), of.generation()).cloned();
    found.map_err(|problem| bad_handle(verb, H::OBJECT, problem))
}

/// The library lacks a function that the verb needs.
pub(crate) fn missing(verb: Verb) -> impl FnOnce(Missing) -> Error {
    move |missing| {
        let cause = Cause::Text(missing.to_string().into());
        Error::new(verb, ErrorKind::NotSupported, cause)
    }
}

/// Refuses an object that is of another context.
pub(crate) fn of_context<H: Handle>(verb: Verb, object: H, context: Context) -> Result<()> {
    if object.context() == context {
        return Ok(());
    }
    let (object, must_share) = (H::OBJECT, "context");
    let cause = Cause::Mismatch { object, must_share };
    Err(Error::new(verb, ErrorKind::Invalid, cause))
}

/// A call that would make C access freed memory, or wait forever.
pub(crate) fn misuse(verb: Verb, text: impl Into<Box<str>>) -> Error {
    Error::new(verb, ErrorKind::Usage, Cause::Usage(text.into()))
}

/// The error of a region without memory for it.
pub(crate) fn no_memory(verb: Verb) -> Error {
    let cause = Cause::Text("the machine has no memory for the region".into());
    Error::new(verb, ErrorKind::NoMemory, cause)
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

    #[test]
    fn a_function_that_the_library_lacks_is_not_supported_and_named() {
        let error = missing(Verb::QueryGidEx)(Missing("_ibv_query_gid_ex"));
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert!(error.to_string().contains("_ibv_query_gid_ex"), "{error}");
    }
}
