//! The turn at an extended CQ.
//!
//! From `ibv_start_poll` to `ibv_end_poll` the queue belongs to the thread that started the
//! iteration. Calls of other threads wait, as they do under a driver's lock.
use std::cell::Cell;

use parking_lot::{ReentrantMutex, ReentrantMutexGuard};
use verbs_api::{Cq, WcEx};
use verbs_sim::WaitGuard;

use crate::c::caller;
use crate::engine::sim;

/// The lock of the queue, and the completion that its iteration has reached.
#[derive(Default)]
pub(super) struct Iteration(pub(super) ReentrantMutex<Cell<Option<WcEx>>>);

/// A turn at a queue.
pub(super) type Turn<'i> = ReentrantMutexGuard<'i, Cell<Option<WcEx>>>;

impl Iteration {
    /// Waits until no other thread has the turn. `call` is the name of the call that waits.
    pub(super) fn turn(&self, cq: Cq, call: &'static str) -> Turn<'_> {
        let Self(lock) = self;
        lock.try_lock().unwrap_or_else(|| {
            let _sleeping = caller::is_named().then(|| WaitGuard::for_iteration(sim(), call, cq));
            lock.lock()
        })
    }

    /// Ends an iteration of this thread.
    ///
    /// # Safety
    /// The thread has forgotten the guard of a turn.
    pub(super) unsafe fn end(&self) {
        // SAFETY: so the lock is this thread's (the caller's promise).
        unsafe { self.0.force_unlock() }
    }
}
