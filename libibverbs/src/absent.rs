//! What this library has only by name.
//!
//! Public functions for what the devices lack, and the private ones by which libibverbs and its drivers
//! talk to each other. Vendors' libraries import these, and programs are linked with such libraries. None
//! is called for a device of another vendor, except the one by which a driver registers.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use crate::result::{UNSUPPORTED, set_errno};

/// Anything that returns a number.
pub(crate) extern "C" fn unsupported() -> c_int {
    set_errno(UNSUPPORTED.0);
    UNSUPPORTED.0
}

/// Anything that returns a descriptor.
pub(crate) extern "C" fn minus_one() -> c_int {
    set_errno(UNSUPPORTED.0);
    -1
}

/// Anything that returns a pointer.
pub(crate) extern "C" fn none() -> *mut c_void {
    set_errno(UNSUPPORTED.0);
    null_mut()
}

/// A driver is there, or logs, or something is let go of.
pub(crate) extern "C" fn nothing() {}
