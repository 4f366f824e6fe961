//! The locks and threads of everything that models can be made of, named in this one place.
//!
//! Normally they are std's, which have no state outside themselves: a child can use new ones after
//! `fork`, whatever the threads of its parent were doing. A build with `--cfg loom` and feature
//! `loom` has those of [loom](https://docs.rs/loom) instead, and one with `--cfg shuttle` and
//! feature `shuttle` those of [shuttle](https://docs.rs/shuttle): a checker that chooses, at each
//! of them, which thread continues. `verbs-models` sets both where they are needed. All have the
//! interface of parking_lot: a panic does not poison a lock, and a wait borrows the guard.
//!
//! What must not be a choice of the checker uses std by name: reference counts, and locks in which
//! nothing else is locked or waited for.

pub use imp::{Condvar, Mutex, MutexGuard};
pub use threads::thread;

/// A checker decides which thread goes on: there is no time, and nothing but what this module names
/// can be waited for.
pub const CHECKED: bool = cfg!(any(
    all(loom, feature = "loom"),
    all(shuttle, feature = "shuttle")
));

#[cfg(all(loom, feature = "loom", shuttle, feature = "shuttle"))]
compile_error!("a build is for one checker: --cfg loom or --cfg shuttle");

#[cfg(not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"))))]
mod threads {
    pub use std::thread;
}

#[cfg(all(loom, feature = "loom"))]
mod threads {
    pub use loom::thread;
}

#[cfg(all(shuttle, feature = "shuttle"))]
mod threads {
    pub use shuttle::thread;
}

mod imp {
    use core::fmt;
    use core::ops::{Deref, DerefMut};
    use std::sync::{PoisonError, TryLockError};
    use std::time::Instant;

    use super::CHECKED;
    #[cfg(all(loom, feature = "loom"))]
    use loom::sync as its;
    #[cfg(all(shuttle, feature = "shuttle"))]
    use shuttle::sync as its;
    #[cfg(not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"))))]
    use std::sync as its;

    /// A lock, which a checker knows of.
    #[derive(Default)]
    pub struct Mutex<T>(its::Mutex<T>);

    impl<T> Mutex<T> {
        /// A lock around `value`.
        pub fn new(value: T) -> Self {
            Self(its::Mutex::new(value))
        }

        /// Waits for the lock.
        #[inline]
        #[track_caller]
        pub fn lock(&self) -> MutexGuard<'_, T> {
            let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let guard = Some(guard);
            MutexGuard { mutex: self, guard }
        }

        /// The lock, if it is free.
        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            let guard = match self.0.try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return None,
            };
            let guard = Some(guard);
            Some(MutexGuard { mutex: self, guard })
        }
    }

    impl<T> fmt::Debug for Mutex<T> {
        /// Looking inside would be a step of its own.
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Mutex(..)")
        }
    }

    /// A lock that is held.
    pub struct MutexGuard<'a, T> {
        mutex: &'a Mutex<T>,
        /// `None` only while a call of this module has it.
        guard: Option<its::MutexGuard<'a, T>>,
    }

    impl<T> MutexGuard<'_, T> {
        /// Releases the lock while `run` runs.
        pub fn unlocked<R>(held: &mut Self, run: impl FnOnce() -> R) -> R {
            held.guard = None;
            let result = run();
            held.guard = held.mutex.lock().guard.take();
            result
        }
    }

    const HELD: &str = "the lock is held between calls";

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        #[inline]
        fn deref(&self) -> &T {
            self.guard.as_ref().expect(HELD)
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        #[inline]
        fn deref_mut(&mut self) -> &mut T {
            self.guard.as_mut().expect(HELD)
        }
    }

    impl<T> fmt::Debug for MutexGuard<'_, T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("MutexGuard(..)")
        }
    }

    /// Where threads wait. Under a checker no wait ends without a notification.
    #[derive(Debug, Default)]
    pub struct Condvar(its::Condvar);

    impl Condvar {
        /// A new condition variable without waiters.
        pub fn new() -> Self {
            Self(its::Condvar::new())
        }

        /// Releases the lock and waits for a notification.
        #[track_caller]
        pub fn wait<T>(&self, held: &mut MutexGuard<'_, T>) {
            let guard = held.guard.take().expect(HELD);
            let guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
            held.guard = Some(guard);
        }

        /// As [`wait`](Self::wait), but no longer than until `end`. There is no time under a
        /// checker.
        #[track_caller]
        pub fn wait_until<T>(&self, held: &mut MutexGuard<'_, T>, end: Instant) {
            if CHECKED {
                return self.wait(held);
            }
            let guard = held.guard.take().expect(HELD);
            let left = end.saturating_duration_since(Instant::now());
            let waited = self.0.wait_timeout(guard, left);
            held.guard = Some(waited.unwrap_or_else(PoisonError::into_inner).0);
        }

        /// Wakes all who wait.
        #[track_caller]
        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}
