//! Where the structures live that programs point to.
//!
//! A pointer from a program may be anything. It is an object's if it is the start of a slot that has
//! been filled; that is looked up without touching what it points to, and without a lock. The memory
//! of an object is never given out again, so that a pointer to one that is gone never becomes
//! another's. It costs what an object takes, a few hundred bytes, for each that was ever made.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use parking_lot::Mutex;

/// Slots of the first chunk; each further one has twice as many as the one before.
const FIRST: usize = 64;
const CHUNKS: usize = 26;

/// All objects of a kind there ever were.
pub(crate) struct Arena<T: 'static> {
    chunks: [AtomicPtr<Slot<T>>; CHUNKS],
    used: Mutex<usize>,
}

struct Slot<T> {
    value: UnsafeCell<MaybeUninit<T>>,
    filled: AtomicBool,
}

// SAFETY: slots are written once, before they are marked as filled, and shared from then on.
unsafe impl<T: Sync> Sync for Arena<T> {}

impl<T: Sync> Arena<T> {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: [const { AtomicPtr::new(null_mut()) }; CHUNKS],
            used: Mutex::new(0),
        }
    }

    /// Puts an object in a slot of its own. `make` gets its index, which counts from 0; where it fails
    /// the slot stays empty. `None` if there is no room.
    pub(crate) fn insert<E>(
        &'static self,
        make: impl FnOnce(usize) -> Result<T, E>,
    ) -> Option<Result<&'static T, E>> {
        let mut used = self.used.lock();
        let index = *used;
        let (chunk, at) = place(index);
        let place = self.chunks.get(chunk)?;
        if place.load(Ordering::Relaxed).is_null() {
            let slots: Box<[Slot<T>]> = (0..FIRST << chunk).map(|_| Slot::empty()).collect();
            place.store(Box::leak(slots).as_mut_ptr(), Ordering::Release);
        }
        *used += 1;
        drop(used);
        // SAFETY: the chunk has so many slots, and stays for ever.
        let slot: &'static Slot<T> = unsafe { &*place.load(Ordering::Acquire).add(at) };
        let value = match make(index) {
            Ok(value) => value,
            Err(error) => return Some(Err(error)),
        };
        // SAFETY: the index is this call's own, and nobody looks at a slot that is not filled.
        let value = unsafe { (*slot.value.get()).write(value) };
        slot.filled.store(true, Ordering::Release);
        Some(Ok(value))
    }

    /// The object in a slot.
    pub(crate) fn at(&'static self, index: usize) -> Option<&'static T> {
        let (chunk, at) = place(index);
        let first = self.chunks.get(chunk)?.load(Ordering::Acquire);
        if first.is_null() {
            return None;
        }
        // SAFETY: the chunk has so many slots, and stays for ever.
        unsafe { &*first.add(at) }.get()
    }

    /// All objects there ever were, by index.
    pub(crate) fn iter(&'static self) -> impl Iterator<Item = &'static T> {
        let used = *self.used.lock();
        (0..used).filter_map(|index| self.at(index))
    }

    /// The object that starts at this address.
    #[inline]
    pub(crate) fn find(&'static self, address: usize) -> Option<&'static T> {
        for (chunk, first) in self.chunks.iter().enumerate() {
            let first = first.load(Ordering::Acquire);
            if first.is_null() {
                return None;
            }
            let offset = address.wrapping_sub(first as usize);
            if offset < (FIRST << chunk) * size_of::<Slot<T>>() {
                if offset % size_of::<Slot<T>>() != std::mem::offset_of!(Slot<T>, value) {
                    return None;
                }
                // SAFETY: the slot lies within the chunk, which stays for ever.
                return unsafe { &*first.add(offset / size_of::<Slot<T>>()) }.get();
            }
        }
        None
    }
}

/// Chunk and slot of an index.
fn place(index: usize) -> (usize, usize) {
    let chunk = (index / FIRST + 1).ilog2() as usize;
    (chunk, index - FIRST * ((1 << chunk) - 1))
}

impl<T> Slot<T> {
    fn empty() -> Self {
        Self {
            value: UnsafeCell::new(MaybeUninit::uninit()),
            filled: AtomicBool::new(false),
        }
    }

    #[inline]
    fn get(&'static self) -> Option<&'static T> {
        if !self.filled.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: it was written before it was marked, and is never written again as a whole.
        Some(unsafe { (*self.value.get()).assume_init_ref() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_starts_of_filled_slots_are_objects() {
        static ARENA: Arena<[u64; 3]> = Arena::new();
        let all: Vec<_> = (0..500)
            .map(|at| {
                let made = ARENA.insert(|index| Ok::<_, ()>([index as u64, at, 0]));
                made.unwrap().unwrap()
            })
            .collect();
        for (index, object) in all.iter().enumerate() {
            assert_eq!(object[..2], [index as u64; 2]);
            let address = std::ptr::from_ref(*object) as usize;
            assert!(std::ptr::eq(ARENA.find(address).unwrap(), *object));
            assert!(std::ptr::eq(ARENA.at(index).unwrap(), *object));
            for wrong in [address + 1, address + 8, address + 24] {
                assert!(
                    ARENA
                        .find(wrong)
                        .is_none_or(|other| other[0] != index as u64)
                );
            }
        }
        assert!(ARENA.find(0).is_none());
        assert!(ARENA.find(usize::MAX).is_none());
        assert!(ARENA.at(500).is_none());
        assert!(ARENA.iter().eq(all));
    }
}
