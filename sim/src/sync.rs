//! The locks of the simulator: those of [`verbs_api::sync`], which a model checker can exchange.

pub(crate) use verbs_api::sync::thread::{self, ThreadId};
pub(crate) use verbs_api::sync::{CHECKED, Condvar, Mutex, MutexGuard};

/// The thread that asks. It is looked up once: `thread::current` counts references.
#[inline]
pub(crate) fn this_thread() -> ThreadId {
    if CHECKED {
        // A checker runs its threads on one of the system.
        return thread::current().id();
    }
    std::thread_local!(static THIS: ThreadId = thread::current().id());
    THIS.with(|this| *this)
}
