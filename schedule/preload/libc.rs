//! What this library needs of the C library. It is compiled by itself, without crates.
#![expect(non_camel_case_types, reason = "they are the C library's names")]

use core::ffi::{c_char, c_int, c_long, c_void};

pub(super) type clockid_t = c_int;
pub(super) type time_t = c_long;

#[repr(C)]
pub(super) struct timespec {
    pub(super) tv_sec: time_t,
    pub(super) tv_nsec: c_long,
}

#[repr(C)]
pub(super) struct timeval {
    pub(super) tv_sec: time_t,
    pub(super) tv_usec: c_long,
}

pub(super) const CLOCK_REALTIME: clockid_t = 0;
pub(super) const CLOCK_MONOTONIC: clockid_t = 1;
pub(super) const CLOCK_MONOTONIC_RAW: clockid_t = 4;
pub(super) const CLOCK_REALTIME_COARSE: clockid_t = 5;
pub(super) const CLOCK_MONOTONIC_COARSE: clockid_t = 6;
pub(super) const CLOCK_BOOTTIME: clockid_t = 7;
pub(super) const CLOCK_TAI: clockid_t = 11;
pub(super) const TIME_UTC: c_int = 1;

#[cfg(target_arch = "x86_64")]
mod numbers {
    use core::ffi::c_long;

    pub(crate) const SYS_SCHED_YIELD: c_long = 24;
    pub(crate) const SYS_CLOCK_GETTIME: c_long = 228;
    pub(crate) const SYS_GETRANDOM: c_long = 318;
}
#[cfg(target_arch = "aarch64")]
mod numbers {
    use core::ffi::c_long;

    pub(crate) const SYS_SCHED_YIELD: c_long = 124;
    pub(crate) const SYS_CLOCK_GETTIME: c_long = 113;
    pub(crate) const SYS_GETRANDOM: c_long = 278;
}
pub(super) use numbers::{SYS_CLOCK_GETTIME, SYS_GETRANDOM, SYS_SCHED_YIELD};

pub(super) const EINTR: c_int = 4;
pub(super) const EIO: c_int = 5;
pub(super) const EBUSY: c_int = 16;

pub(super) const O_RDONLY: c_int = 0;
pub(super) const O_CLOEXEC: c_int = 0o2_000_000;
pub(super) const PROT_READ: c_int = 1;
pub(super) const MAP_SHARED: c_int = 1;
pub(super) const MAP_FAILED: *mut c_void = core::ptr::without_provenance_mut(usize::MAX);

/// The object after this one.
pub(super) const RTLD_NEXT: *mut c_void = core::ptr::without_provenance_mut(usize::MAX);
/// All objects.
pub(super) const RTLD_DEFAULT: *mut c_void = core::ptr::null_mut();

unsafe extern "C" {
    pub(super) fn syscall(number: c_long, ...) -> c_long;
    pub(super) fn sched_yield() -> c_int;
    pub(super) fn getenv(name: *const c_char) -> *mut c_char;
    pub(super) fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    pub(super) fn close(fd: c_int) -> c_int;
    pub(super) fn mmap(
        at: *mut c_void,
        length: usize,
        rights: c_int,
        flags: c_int,
        fd: c_int,
        offset: c_long,
    ) -> *mut c_void;
    pub(super) fn dlsym(object: *mut c_void, name: *const c_char) -> *mut c_void;
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    pub(super) fn dlvsym(
        object: *mut c_void,
        name: *const c_char,
        version: *const c_char,
    ) -> *mut c_void;
    pub(super) fn abort() -> !;
    pub(super) fn __errno_location() -> *mut c_int;
}
