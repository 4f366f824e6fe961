//! One owner for each C object.

use std::ffi::c_int;

use parking_lot::{RwLock, RwLockReadGuard};

/// A C object, and the function that destroys it. Calls on the object share a lock that its
/// destruction takes alone, so that no call can reach memory that another thread has freed.
pub(crate) struct Owned<T> {
    raw: RwLock<*mut T>,
    destroy: unsafe extern "C" fn(*mut T) -> c_int,
}

impl<T> std::fmt::Debug for Owned<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:p}", *self.raw.read())
    }
}

// SAFETY: libibverbs objects may be used from any thread; the pointer is only dereferenced by C.
unsafe impl<T> Send for Owned<T> {}
// SAFETY: as above; verbs are thread-safe, and destruction excludes them by the lock.
unsafe impl<T> Sync for Owned<T> {}

/// The object has been destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Destroyed;

impl<T> Owned<T> {
    /// # Safety
    /// `raw` is a live object that nothing else destroys, and that `destroy` destroys.
    pub(crate) unsafe fn new(raw: *mut T, destroy: unsafe extern "C" fn(*mut T) -> c_int) -> Self {
        Self {
            raw: RwLock::new(raw),
            destroy,
        }
    }

    /// Uses the object. It lives while `call` runs.
    pub(crate) fn with<R>(&self, call: impl FnOnce(*mut T) -> R) -> Result<R, Destroyed> {
        let raw = self.raw.read();
        if raw.is_null() {
            Err(Destroyed)
        } else {
            Ok(call(*raw))
        }
    }

    /// The object, which lives as long as what is returned. One thread may hold it several times.
    pub(crate) fn hold(&self) -> Result<Held<'_, T>, Destroyed> {
        // Not behind a thread that waits to destroy it, or holding it twice could be a deadlock.
        let raw = self.raw.read_recursive();
        if raw.is_null() {
            Err(Destroyed)
        } else {
            Ok(Held(raw))
        }
    }

    /// Uses the object with all other calls excluded.
    pub(crate) fn alone<R>(&self, call: impl FnOnce(*mut T) -> R) -> Result<R, Destroyed> {
        let raw = self.raw.write();
        if raw.is_null() {
            Err(Destroyed)
        } else {
            Ok(call(*raw))
        }
    }

    /// Destroys the object, unless the driver refuses with the number returned. `ready` is asked
    /// first, with all other calls excluded.
    pub(crate) fn destroy<E>(
        &self,
        ready: impl FnOnce() -> Result<(), E>,
    ) -> Result<Result<c_int, Destroyed>, E> {
        let mut raw = self.raw.write();
        if raw.is_null() {
            return Ok(Err(Destroyed));
        }
        ready()?;
        // SAFETY: the object is live and ours (`new`), and no other call is under way.
        let result = unsafe { (self.destroy)(*raw) };
        if result == 0 {
            *raw = std::ptr::null_mut();
        }
        Ok(Ok(result))
    }

    /// The pointer as a number, to find the object that C names.
    pub(crate) fn address(&self) -> usize {
        *self.raw.read() as usize
    }
}

/// An object that cannot be destroyed now.
pub(crate) struct Held<'a, T>(RwLockReadGuard<'a, *mut T>);

impl<T> Held<'_, T> {
    pub(crate) fn get(&self) -> *mut T {
        *self.0
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        let raw = *self.raw.get_mut();
        if !raw.is_null() {
            // SAFETY: the object is live and ours (`new`), and `&mut self` excludes other calls. A
            // refusal cannot be reported here; the process keeps the object.
            unsafe { (self.destroy)(raw) };
        }
    }
}
