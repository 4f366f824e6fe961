//! Where the structures live that programs point to.
//!
//! A pointer from a program may be anything. It names an object if it is the start of a filled slot. The
//! lookup takes no lock and does not touch what the pointer points to. The memory of an object is never
//! used again, so a pointer to a destroyed one never names another. This costs a few hundred bytes for each
//! object ever made.

use std::alloc::{self, Layout};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use verbs_api::sync::Mutex;

/// Slots of the first chunk; each further one has twice as many as the one before.
const FIRST: usize = 64;
const CHUNKS: usize = 26;

/// All objects of a kind that a process ever had.
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

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self {
            chunks: [const { AtomicPtr::new(null_mut()) }; CHUNKS],
            used: Mutex::new(0),
        }
    }
}

impl<T: Sync> Arena<T> {
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
            place.store(empty_slots(FIRST << chunk)?, Ordering::Release);
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

/// So many slots that stay for ever, or `None` without memory for them. They are not written: the
/// machine gives memory for those that are used.
fn empty_slots<T>(count: usize) -> Option<*mut Slot<T>> {
    let layout = Layout::array::<Slot<T>>(count).ok()?;
    // SAFETY: the size is above zero. Zero bytes are empty slots: a value that is not there, and false.
    let slots: *mut Slot<T> = unsafe { alloc::alloc_zeroed(layout) }.cast();
    (!slots.is_null()).then_some(slots)
}

impl<T> Slot<T> {
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
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn new_arena<T>() -> &'static Arena<T> {
        Box::leak(Box::default())
    }

    #[test]
    fn only_the_starts_of_filled_slots_are_objects() {
        let arena = new_arena::<[u64; 3]>();
        let all: Vec<_> = (0..500)
            .map(|at| {
                let made = arena.insert(|index| Ok::<_, ()>([index as u64, at, 0]));
                made.unwrap().unwrap()
            })
            .collect();
        for (index, object) in all.iter().enumerate() {
            assert_eq!(object[..2], [index as u64; 2]);
            let address = std::ptr::from_ref(*object) as usize;
            assert!(std::ptr::eq(arena.find(address).unwrap(), *object));
            assert!(std::ptr::eq(arena.at(index).unwrap(), *object));
            for wrong in [address + 1, address + 8, address + 24] {
                assert!(
                    arena
                        .find(wrong)
                        .is_none_or(|other| other[0] != index as u64)
                );
            }
        }
        assert!(arena.find(0).is_none());
        assert!(arena.find(usize::MAX).is_none());
        assert!(arena.at(500).is_none());
        assert!(arena.iter().eq(all));
    }

    /// An address that a thread has from another one finds nothing, or the whole object.
    #[test]
    fn objects_that_other_threads_make_are_found_whole() {
        const THREADS: usize = 4;
        const EACH: usize = 100;
        let arena = new_arena::<[AtomicUsize; 2]>();
        let told: [AtomicUsize; THREADS] = Default::default();
        std::thread::scope(|scope| {
            for (number, mine) in told.iter().enumerate() {
                let theirs = &told[(number + 1) % told.len()];
                scope.spawn(move || {
                    for round in 0..EACH {
                        let make = |index| Ok::<_, ()>([index, round].map(AtomicUsize::new));
                        let made = arena.insert(make).unwrap().unwrap();
                        mine.store(std::ptr::from_ref(made).addr(), Ordering::Relaxed);
                        if let Some(seen) = arena.find(theirs.load(Ordering::Relaxed)) {
                            let [index, round] = seen.each_ref().map(|n| n.load(Ordering::Relaxed));
                            assert!(index < THREADS * EACH && round < EACH);
                            assert!(std::ptr::eq(arena.at(index).unwrap(), seen));
                        }
                    }
                });
            }
        });
        assert_eq!(arena.iter().count(), THREADS * EACH);
    }

    /// A chunk twice as large as the last becomes resident as its slots are filled.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no pages")]
    fn memory_is_touched_as_it_is_used() {
        const PAGE: usize = 4096;
        let arena = new_arena::<[u64; 64]>();
        let filled = FIRST * ((1 << 9) - 1) + 1;
        for index in 0..filled {
            arena
                .insert(|_| Ok::<_, ()>([index as u64; 64]))
                .unwrap()
                .unwrap();
        }
        let (chunk, at) = place(filled - 1);
        assert_eq!((chunk, at), (9, 0));
        let first = arena.chunks[chunk].load(Ordering::Relaxed) as usize / PAGE * PAGE;
        let pages = (FIRST << chunk) * size_of::<Slot<[u64; 64]>>() / PAGE;
        let mut resident = vec![0; pages];
        // SAFETY: the pages are mapped; there is a byte for each.
        let asked = unsafe { libc::mincore(first as *mut _, pages * PAGE, resident.as_mut_ptr()) };
        assert_eq!(asked, 0);
        let resident = resident.iter().filter(|page| **page & 1 != 0).count();
        // A huge page may be more than the object needs.
        assert!(
            resident <= pages / 4,
            "{resident} of {pages} pages for one object"
        );
    }
}
