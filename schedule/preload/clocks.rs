//! The clocks of the C library.

use core::ffi::{c_int, c_void};
use core::mem::transmute;

use super::libc::{self, clockid_t, time_t, timespec, timeval};
use super::page::now;
use super::pthread::Real;

const SECOND: u64 = 1_000_000_000;

/// `clock_gettime`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    // The others are of the time that threads and processes run, or do not exist.
    let is_virtual = matches!(
        clock,
        libc::CLOCK_REALTIME
            | libc::CLOCK_MONOTONIC
            | libc::CLOCK_MONOTONIC_RAW
            | libc::CLOCK_REALTIME_COARSE
            | libc::CLOCK_MONOTONIC_COARSE
            | libc::CLOCK_BOOTTIME
            | libc::CLOCK_TAI
    );
    // SAFETY: the caller passes room for a time.
    unsafe {
        match now() {
            Some(now) if is_virtual && !time.is_null() => {
                (*time).tv_sec = (now / SECOND) as time_t;
                (*time).tv_nsec = (now % SECOND) as _;
                0
            }
            _ => libc::syscall(libc::SYS_CLOCK_GETTIME, clock, time) as c_int,
        }
    }
}

/// `gettimeofday`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn gettimeofday(time: *mut timeval, _zone: *mut c_void) -> c_int {
    let mut now = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the caller passes room for a time, or null.
    unsafe {
        let result = clock_gettime(libc::CLOCK_REALTIME, &raw mut now);
        if let Some(time) = time.as_mut() {
            time.tv_sec = now.tv_sec;
            time.tv_usec = now.tv_nsec / 1000;
        }
        result
    }
}

/// `time`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn time(at: *mut time_t) -> time_t {
    let mut now = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the caller passes room for a time, or null.
    unsafe {
        clock_gettime(libc::CLOCK_REALTIME, &raw mut now);
        if let Some(at) = at.as_mut() {
            *at = now.tv_sec;
        }
    }
    now.tv_sec
}

/// `timespec_get`
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn timespec_get(time: *mut timespec, base: c_int) -> c_int {
    type Function = unsafe extern "C" fn(*mut timespec, c_int) -> c_int;
    static REAL: Real = Real::new(c"timespec_get");
    // SAFETY: the caller passes room for a time. The C library's function has this type.
    unsafe {
        match base {
            libc::TIME_UTC if clock_gettime(libc::CLOCK_REALTIME, time) == 0 => base,
            libc::TIME_UTC => 0,
            _ => transmute::<*mut c_void, Function>(REAL.get())(time, base),
        }
    }
}
