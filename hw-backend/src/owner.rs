//! One owner for each C object.

use std::ffi::c_int;

use parking_lot::{RwLock, RwLockReadGuard};
use verbs_abi::{
    ibv_ah, ibv_comp_channel, ibv_context, ibv_cq, ibv_dm, ibv_mr, ibv_mw, ibv_pd, ibv_qp, ibv_srq,
    ibv_td, ibv_xrcd, inline, library, rdma_cm_id, rdma_event_channel,
};
use verbs_api::{BadHandle, Object, Result, Verb};

use crate::errno::{bad_handle, check, made, misuse};

/// A C object, and its destruction. Calls on the object share a lock. Its destruction takes the
/// lock exclusively, so no call can access memory that another thread has freed.
pub(crate) struct Owned<T: Kind> {
    raw: RwLock<*mut T>,
    /// False if another library keeps the object.
    ours: bool,
}

/// A structure of C for an object.
pub(crate) trait Kind {
    const OBJECT: Object;

    /// # Safety
    /// The object is live and ours.
    unsafe fn destroy(object: *mut Self) -> c_int;
}

macro_rules! kinds {
    ($( $name:ident: $object:ident, $destroy:path; )*) => { $(
        impl Kind for $name {
            const OBJECT: Object = Object::$object;

            unsafe fn destroy(object: *mut Self) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { $destroy(object) }
            }
        }
    )* };
}

kinds! {
    ibv_context: Context, library::ibv_close_device;
    ibv_pd: Pd, library::ibv_dealloc_pd;
    ibv_td: Td, inline::dealloc_td;
    ibv_mr: Mr, library::ibv_dereg_mr;
    ibv_mw: Mw, inline::dealloc_mw;
    ibv_dm: Dm, inline::free_dm;
    ibv_comp_channel: CompChannel, library::ibv_destroy_comp_channel;
    ibv_cq: Cq, library::ibv_destroy_cq;
    ibv_qp: Qp, library::ibv_destroy_qp;
    ibv_srq: Srq, library::ibv_destroy_srq;
    ibv_ah: Ah, library::ibv_destroy_ah;
    ibv_xrcd: Xrcd, inline::close_xrcd;
    rdma_cm_id: CmId, library::rdma_destroy_id;
}

impl Kind for rdma_event_channel {
    const OBJECT: Object = Object::CmChannel;

    unsafe fn destroy(object: *mut Self) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { library::rdma_destroy_event_channel(object) };
        0
    }
}

impl<T: Kind> std::fmt::Debug for Owned<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:p}", *self.raw.read())
    }
}

// SAFETY: libibverbs objects may be used from any thread. Only C dereferences the pointer.
unsafe impl<T: Kind> Send for Owned<T> {}
// SAFETY: as above; verbs are thread-safe, and destruction excludes them by the lock.
unsafe impl<T: Kind> Sync for Owned<T> {}

impl<T: Kind> Owned<T> {
    /// # Safety
    /// `raw` is a live object that nothing else destroys.
    pub(crate) unsafe fn new(raw: *mut T) -> Self {
        Self {
            raw: RwLock::new(raw),
            ours: true,
        }
    }

    /// An object that another library keeps. It is not destroyed here.
    ///
    /// `raw` is live as long as this, or until the last call on it.
    pub(crate) unsafe fn borrowed(raw: *mut T) -> Self {
        Self {
            raw: RwLock::new(raw),
            ours: false,
        }
    }

    /// Refuses to destroy an object that another library keeps.
    pub(crate) fn check_ours(&self, verb: Verb) -> Result<()> {
        if self.ours {
            return Ok(());
        }
        let text = format!("the {} is of rdma_cm, which keeps it", T::OBJECT);
        Err(misuse(verb, text))
    }

    /// Uses the object. It lives while `call` runs.
    pub(crate) fn with<R>(&self, verb: Verb, call: impl FnOnce(*mut T) -> R) -> Result<R> {
        let raw = self.raw.read();
        Ok(call(live(verb, *raw)?))
    }

    /// Calls C with the object. Its result becomes an error.
    pub(crate) fn call(&self, verb: Verb, call: impl FnOnce(*mut T) -> c_int) -> Result<()> {
        check(verb, self.with(verb, call)?)
    }

    /// Makes another object from this one.
    ///
    /// `call` returns a live object that nothing else destroys, or null.
    pub(crate) unsafe fn make<M: Kind>(
        &self,
        verb: Verb,
        call: impl FnOnce(*mut T) -> *mut M,
    ) -> Result<Owned<M>> {
        let raw = self.with(verb, |raw| made(verb, || call(raw)))??;
        // SAFETY: the caller's promise.
        Ok(unsafe { Owned::new(raw) })
    }

    /// The object, live as long as the returned guard. One thread may hold it several times.
    pub(crate) fn hold(&self, verb: Verb) -> Result<Held<'_, T>> {
        // This does not queue behind a thread that waits to destroy the object. Otherwise holding
        // it twice could be a deadlock.
        let raw = self.raw.read_recursive();
        live(verb, *raw)?;
        Ok(Held(raw))
    }

    /// Uses the object with all other calls excluded.
    pub(crate) fn alone<R>(&self, verb: Verb, call: impl FnOnce(*mut T) -> R) -> Result<R> {
        let raw = self.raw.write();
        Ok(call(live(verb, *raw)?))
    }

    /// Destroys the object, unless the driver refuses. `ready` is called first. All other calls are
    /// excluded.
    pub(crate) fn destroy(&self, verb: Verb, ready: impl FnOnce() -> Result<()>) -> Result<()> {
        self.check_ours(verb)?;
        let destroy = |object| {
            ready()?;
            // SAFETY: the object is live and ours (`new`), and no other call is under way.
            check(verb, unsafe { T::destroy(object) })
        };
        self.destroy_by(verb, destroy)
    }

    /// Destroys the object by another call.
    pub(crate) fn destroy_by(
        &self,
        verb: Verb,
        destroy: impl FnOnce(*mut T) -> Result<()>,
    ) -> Result<()> {
        let mut raw = self.raw.write();
        destroy(live(verb, *raw)?)?;
        *raw = std::ptr::null_mut();
        Ok(())
    }

    /// The pointer as a number, to find the object that C names. 0 after its destruction.
    pub(crate) fn address(&self) -> usize {
        *self.raw.read() as usize
    }
}

/// Refuses an object that another thread has destroyed.
fn live<T: Kind>(verb: Verb, raw: *mut T) -> Result<*mut T> {
    if raw.is_null() {
        return Err(bad_handle(verb, T::OBJECT, BadHandle::Stale));
    }
    Ok(raw)
}

/// An object that cannot be destroyed now.
pub(crate) struct Held<'a, T>(RwLockReadGuard<'a, *mut T>);

impl<T> Held<'_, T> {
    pub(crate) fn get(&self) -> *mut T {
        *self.0
    }
}

impl<T: Kind> Drop for Owned<T> {
    fn drop(&mut self) {
        let raw = *self.raw.get_mut();
        if !raw.is_null() && self.ours {
            // SAFETY: the object is live and ours (`new`), and `&mut self` excludes other calls. A
            // refusal cannot be reported here; the process keeps the object.
            unsafe { T::destroy(raw) };
        }
    }
}
