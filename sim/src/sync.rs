//! The locks of the simulator: those of [`verbs_api::sync`], which a model checker can replace.

pub(crate) use verbs_api::sync::thread::{self, ThreadId};
pub(crate) use verbs_api::sync::{CHECKED, Condvar, Mutex, MutexGuard};

/// The calling thread. It is looked up once, because `thread::current` counts references.
#[inline]
pub(crate) fn this_thread() -> ThreadId {
    if CHECKED {
        // A checker runs its threads on one thread of the system.
        return thread::current().id();
    }
    std::thread_local!(static THIS: ThreadId = thread::current().id());
    THIS.with(|this| *this)
}
