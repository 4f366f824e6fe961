//! What C functions return, and how nothing else leaves them.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use verbs_api::{Error, PostError, ReregError};

use crate::caller;

/// An errno value as a C call returns it: positive, but for profiles of drivers that err there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) c_int);

pub(crate) type Result<T, E = Errno> = std::result::Result<T, E>;

impl From<Error> for Errno {
    fn from(error: Error) -> Self {
        Self(error.raw().unwrap_or(error.kind().errno()))
    }
}

impl From<PostError> for Errno {
    fn from(failed: PostError) -> Self {
        failed.error.into()
    }
}

impl From<ReregError> for Errno {
    fn from(failed: ReregError) -> Self {
        failed.error.into()
    }
}

/// Runs a verb. A panic, which could only be a mistake of the simulator, has been printed and is `EIO`: it must not go on
/// through C. Nor may the unwinding of a thread that is cancelled come here, which is no panic.
#[inline]
pub(crate) fn guarded<R>(verb: impl FnOnce() -> Result<R>) -> Result<R> {
    let _uncancelled = Uncancelled::new();
    quickly(verb)
}

/// The same of a verb that comes to no call of the system at which threads are cancelled.
#[inline]
fn quickly<R>(verb: impl FnOnce() -> Result<R>) -> Result<R> {
    caller::settle();
    let result = catch_unwind(AssertUnwindSafe(verb)).unwrap_or(Err(Errno(libc::EIO)));
    if let Err(Errno(errno)) = result {
        set_errno(errno.abs());
    }
    result
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// While it lives, its thread cannot be cancelled.
struct Uncancelled(c_int);

impl Uncancelled {
    fn new() -> Self {
        const DISABLE: c_int = 1;
        let mut before = 0;
        // SAFETY: there is room for what was before.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Self(before)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: as it was.
        unsafe { pthread_setcancelstate(self.0, &raw mut self.0) };
    }
}

/// 0, or an errno value: most verbs.
pub(crate) fn status(verb: impl FnOnce() -> Result<()>) -> c_int {
    guarded(verb).map_or_else(|Errno(errno)| errno, |()| 0)
}

/// The same of verbs that programs call for each message.
#[inline]
pub(crate) fn quick_status(verb: impl FnOnce() -> Result<()>) -> c_int {
    quickly(verb).map_or_else(|Errno(errno)| errno, |()| 0)
}

/// A count, or an errno value as a negative number.
#[inline]
pub(crate) fn count(verb: impl FnOnce() -> Result<c_int>) -> c_int {
    quickly(verb).unwrap_or_else(|Errno(errno)| -errno.abs())
}

/// What the verb gives, or -1 and `errno`.
pub(crate) fn or_minus_one<T: From<i8>>(verb: impl FnOnce() -> Result<T>) -> T {
    guarded(verb).unwrap_or_else(|_| T::from(-1))
}

/// What the verb gives, or 0 and `errno`.
pub(crate) fn or_zero<T: Default>(verb: impl FnOnce() -> Result<T>) -> T {
    guarded(verb).unwrap_or_default()
}

/// A pointer, or null and `errno`.
pub(crate) fn pointer<T>(verb: impl FnOnce() -> Result<*mut T>) -> *mut T {
    guarded(verb).unwrap_or(null_mut())
}

/// Nothing to return, whatever happens.
#[inline]
pub(crate) fn silent(verb: impl FnOnce() -> Result<()>) {
    let _ = quickly(verb);
}

pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: gives the place of this thread's own number, which may be written.
    unsafe { *libc::__errno_location() = errno };
}

/// What the last call of C said.
pub(crate) fn last_errno() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno(error.raw_os_error().unwrap_or(libc::EIO))
}

/// Refuses a null pointer to what a verb needs, wherever in memory that may be.
#[inline]
pub(crate) fn not_null<T>(pointer: *const T) -> Result<()> {
    if pointer.is_null() {
        return Err(Errno(libc::EINVAL));
    }
    Ok(())
}

/// Refuses a pointer at which Rust cannot have what a verb needs: null, or not aligned.
#[inline]
pub(crate) fn present<T>(pointer: *const T) -> Result<()> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(Errno(libc::EINVAL));
    }
    Ok(())
}

/// So many values that a program passes.
///
/// # Safety
/// If the pointer can be that of so many, they are there, and nobody changes them while they are used (C's contract).
#[inline]
pub(crate) unsafe fn values<'a, T>(first: *const T, count: usize) -> Result<&'a [T]> {
    // SAFETY: the caller's promise.
    unsafe { verbs_abi::slice(first, count) }.ok_or(Errno(libc::EFAULT))
}

/// What is not there: `EOPNOTSUPP`.
pub(crate) const UNSUPPORTED: Errno = Errno(libc::EOPNOTSUPP);
