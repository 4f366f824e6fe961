//! Values that each process has of its own.
//!
//! A child after `fork` has the memory of its parent, whose threads may have been changing a value
//! or holding its lock. So the child starts without the value, and makes its own at the first use.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value that is made at its first use, and then stays until the process ends.
pub(crate) struct PerProcess<T: 'static> {
    own: AtomicPtr<T>,
    of_parent: AtomicPtr<T>,
}

/// A value of any type, for `fork`.
trait Inherited: Sync {
    fn leave_to_parent(&self);
}

/// An element of the list of values that have been made.
struct Made {
    value: &'static dyn Inherited,
    next: *mut Made,
}

static MADE: AtomicPtr<Made> = AtomicPtr::new(null_mut());

impl<T: Send + Sync> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self {
            own: AtomicPtr::new(null_mut()),
            of_parent: AtomicPtr::new(null_mut()),
        }
    }

    /// The value, if this process has made it.
    #[inline]
    pub(crate) fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or a value that was whole when it was stored, and is never freed.
        unsafe { self.own.load(Ordering::Acquire).as_ref() }
    }

    /// In a child after `fork`, the value of the nearest ancestor that had one.
    pub(crate) fn of_parent(&self) -> Option<&'static T> {
        // SAFETY: as in `get`.
        unsafe { self.of_parent.load(Ordering::Relaxed).as_ref() }
    }

    /// The value, which `make` makes if this process has none. When two threads make it at the same
    /// time, both get the one that is stored first.
    pub(crate) fn get_or_make(&'static self, make: impl FnOnce() -> T) -> &'static T {
        self.get()
            .unwrap_or_else(|| self.store(make()).unwrap_or_else(|first| first))
    }

    /// Makes `value` the value of this process.
    ///
    /// # Errors
    /// Another thread has stored one first, which is returned.
    pub(crate) fn store(&'static self, value: T) -> Result<&'static T, &'static T> {
        // In the list first: a fork finds all values that have been stored.
        list(self);
        let new = Box::into_raw(Box::new(value));
        let (stored, seen) = (Ordering::Release, Ordering::Acquire);
        match self.own.compare_exchange(null_mut(), new, stored, seen) {
            // SAFETY: just made, and never freed from now on.
            Ok(_) => Ok(unsafe { &*new }),
            Err(first) => {
                // SAFETY: no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: as in `get`.
                Err(unsafe { &*first })
            }
        }
    }
}

impl<T: Send + Sync + Default> PerProcess<T> {
    /// The value, which starts as the default.
    #[inline]
    pub(crate) fn get_or_default(&'static self) -> &'static T {
        self.get()
            .unwrap_or_else(|| self.get_or_make(Default::default))
    }
}

impl<T: Send + Sync> Inherited for PerProcess<T> {
    fn leave_to_parent(&self) {
        let own = self.own.swap(null_mut(), Ordering::Relaxed);
        // A value may be in the list twice; only the first visit finds it.
        if !own.is_null() {
            self.of_parent.store(own, Ordering::Relaxed);
        }
    }
}

fn list(value: &'static dyn Inherited) {
    let new = Box::into_raw(Box::new(Made {
        value,
        next: MADE.load(Ordering::Relaxed),
    }));
    let (stored, failed) = (Ordering::Release, Ordering::Relaxed);
    // SAFETY: `new` is this thread's until it is stored.
    while let Err(first) = MADE.compare_exchange(unsafe { (*new).next }, new, stored, failed) {
        // SAFETY: as above.
        unsafe { (*new).next = first };
    }
}

/// Leaves all values to the parent. For a child after `fork`, which has one thread. It allocates
/// nothing and takes no lock.
pub(crate) fn after_fork() {
    let mut next = MADE.swap(null_mut(), Ordering::Acquire);
    // SAFETY: null, or an element, which is never freed.
    while let Some(made) = unsafe { next.as_ref() } {
        made.value.leave_to_parent();
        next = made.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_makes_its_own_value_and_finds_that_of_its_parent() {
        static VALUE: PerProcess<u32> = PerProcess::new();
        assert_eq!((VALUE.get(), VALUE.of_parent()), (None, None));
        assert_eq!(*VALUE.get_or_make(|| 1), 1);
        assert_eq!(VALUE.store(2), Err(&1));
        // As `after_fork` does for all: other tests run in this process.
        VALUE.leave_to_parent();
        VALUE.leave_to_parent();
        assert_eq!((VALUE.get(), VALUE.of_parent()), (None, Some(&1)));
        assert_eq!(*VALUE.get_or_default(), 0);
        VALUE.leave_to_parent();
        assert_eq!(VALUE.of_parent(), Some(&0));
    }

    /// A value that is not in the list would be used by a child as its own.
    #[test]
    fn every_value_is_in_the_list_of_those_that_a_child_leaves() {
        static VALUE: PerProcess<u32> = PerProcess::new();
        VALUE.get_or_default();
        // SAFETY: null, or an element, which is never freed.
        let at = |made: *mut Made| unsafe { made.as_ref() };
        let all = std::iter::successors(at(MADE.load(Ordering::Acquire)), |made| at(made.next));
        let own = std::ptr::from_ref(&VALUE).cast::<()>();
        assert!(
            all.into_iter()
                .any(|made| std::ptr::from_ref(made.value).cast::<()>() == own)
        );
    }
}
