//! The functions that the library wraps, in the libraries behind it.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use libc::RTLD_NEXT;

/// Whether the library is preloaded. Otherwise its wrappers do nothing.
pub(super) static IS_ACTIVE: AtomicBool = AtomicBool::new(false);

/// A function of the libraries behind this one.
pub(super) struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    pub(super) const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            found: AtomicPtr::new(null_mut()),
        }
    }

    /// Its address, or null if there is none. After the first call this takes no lock.
    pub(super) fn address(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        // SAFETY: the name ends with 0.
        let found = unsafe { libc::dlsym(RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}
