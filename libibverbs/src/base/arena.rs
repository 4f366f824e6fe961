//! Memory of the structures that programs point to.
//!
//! A pointer from a program may be anything. It names an object if it is the start of a filled
//! slot. The lookup takes no lock and does not touch the memory that it points to.
//!
//! A slot has four states. It is *filled* when an object is made, and stays filled when the object
//! is ended: for the next [`QUARANTINE`] ends of its kind a pointer still finds the object, and the
//! engine reports that it is destroyed. Then the slot is *hidden*: lookups do not find it. When
//! nothing refers to the object any more, it is dropped and the slot is *free*. The next object may
//! use it.
//!
//! The invariant: the value of a slot is written only while the slot is free or new, and dropped
//! only when
//! - it has been hidden since before an epoch that has passed ([`pin`]), so no thread has a
//!   [`Found`] of it, and
//! - it has no [`Held`]. A `Held` is made only from a `Found` or another `Held`, so none can
//!   appear.

use std::alloc::{self, Layout};
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use verbs_api::sync::Mutex;

use super::pin::{self, Pin};

/// Slots of the first chunk; each further one has twice as many as the one before.
const FIRST: usize = 64;
const CHUNKS: usize = 18;

/// Ended objects whose slots are not used again yet.
pub(crate) const QUARANTINE: usize = if cfg!(test) { 20 } else { 4096 };
/// Slots that leave the quarantine together, since the barrier of an epoch costs about as much as a
/// system call.
const BATCH: usize = if cfg!(test) { 4 } else { 64 };

/// Bits of a number for the slot of the object.
const INDEX_BITS: u32 = 24;

/// The objects of one kind in a process, and those that ended last.
pub(crate) struct Arena<T: 'static> {
    chunks: [AtomicPtr<Slot<T>>; CHUNKS],
    places: Mutex<Places>,
}

/// The states of slots. All numbers are indices.
#[derive(Default)]
struct Places {
    /// The number of slots that were ever used.
    used: usize,
    /// Ended objects, oldest first.
    quarantine: VecDeque<u32>,
    /// The number of objects that ended since slots last left the quarantine.
    ended: usize,
    hidden: Vec<u32>,
    /// All hidden slots have been hidden since before this epoch. `None` if the kernel refuses the
    /// barrier of an epoch: hidden slots then stay hidden.
    since: Option<u64>,
    free: Vec<u32>,
}

struct Slot<T> {
    value: UnsafeCell<MaybeUninit<T>>,
    is_filled: AtomicBool,
    is_ended: AtomicBool,
    holders: AtomicU32,
    /// The number of objects that the slot had before.
    lives: AtomicU64,
}

// SAFETY: a value is written and dropped only while no other thread can reach it (see the head of
// the file), and shared in between. Another thread than its maker may drop it.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Arena<T> {}

/// An object that a lookup found. Its thread is pinned, so a call that sleeps until an event holds
/// the object instead. A call that waits for another thread's batch or iteration stays pinned.
pub(crate) struct Found<T: 'static> {
    slot: &'static Slot<T>,
    _pin: Pin,
}

/// An object that keeps its slot, like an `Arc`.
pub(crate) struct Held<T: 'static> {
    slot: &'static Slot<T>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self {
            chunks: [const { AtomicPtr::new(null_mut()) }; CHUNKS],
            places: Mutex::default(),
        }
    }
}

impl<T: Send + Sync> Arena<T> {
    /// Puts an object into a free slot. `make` gets its number: the slot in the low [`INDEX_BITS`],
    /// and above them the number of objects that the slot had before. So no two objects have the
    /// same number. If `make` fails the slot stays free. `None` if no slot is left.
    pub(crate) fn insert<E>(
        &'static self,
        make: impl FnOnce(u64) -> Result<T, E>,
    ) -> Option<Result<Found<T>, E>> {
        let index = self.take_slot()?;
        let slot = self.slot(index as usize)?;
        let lives = slot.lives.load(Ordering::Relaxed);
        let value = match make(lives << INDEX_BITS | u64::from(index)) {
            Ok(value) => value,
            Err(error) => {
                self.places.lock().free.push(index);
                return Some(Err(error));
            }
        };
        let found = Found {
            slot,
            _pin: Pin::new(),
        };
        // SAFETY: the slot is new or was free, and it is this call's.
        unsafe { (*slot.value.get()).write(value) };
        slot.is_ended.store(false, Ordering::Relaxed);
        slot.is_filled.store(true, Ordering::Release);
        Some(Ok(found))
    }

    fn take_slot(&self) -> Option<u32> {
        let mut places = self.places.lock();
        if let Some(free) = places.free.pop() {
            return Some(free);
        }
        let (chunk, _) = place(places.used);
        let first = self.chunks.get(chunk)?;
        // Chunks are made at need: most programs have few objects.
        if first.load(Ordering::Relaxed).is_null() {
            first.store(empty_slots(FIRST << chunk)?, Ordering::Release);
        }
        places.used += 1;
        Some(places.used as u32 - 1)
    }

    /// Ends an object. Its slot is used again some time after the last reference is dropped.
    /// Returns false if it was ended before.
    pub(crate) fn end(&'static self, object: &T) -> bool {
        let slot = self.slot_at(std::ptr::from_ref(object).addr());
        let Some((index, slot)) = slot.filter(|(_, slot)| slot.is_filled.load(Ordering::Relaxed))
        else {
            return false;
        };
        let is_first = !slot.is_ended.swap(true, Ordering::Relaxed);
        if is_first {
            let mut places = self.places.lock();
            places.quarantine.push_back(index as u32);
            places.ended += 1;
            if places.ended >= BATCH {
                places.ended = 0;
                self.reclaim(&mut places);
            }
        }
        is_first
    }

    /// Frees hidden slots, and hides slots that have been in quarantine long enough. At most twice
    /// as many slots leave it as objects were ended, so the cost does not grow with their number.
    #[cold]
    fn reclaim(&'static self, places: &mut Places) {
        if !places.hidden.is_empty() {
            // A thread may still use an object of the hidden slots.
            if !places.since.is_some_and(pin::has_passed) {
                return;
            }
            for index in std::mem::take(&mut places.hidden) {
                match self.slot(index as usize).filter(|slot| slot.clear()) {
                    Some(_) => places.free.push(index),
                    // A call holds it.
                    None => places.quarantine.push_back(index),
                }
            }
        }
        // Waiting for a whole batch keeps the number of barriers small.
        let excess = places.quarantine.len().saturating_sub(QUARANTINE);
        if excess < BATCH {
            return;
        }
        places.hidden = places.quarantine.drain(..excess.min(2 * BATCH)).collect();
        for index in &places.hidden {
            if let Some(slot) = self.slot(*index as usize) {
                slot.is_filled.store(false, Ordering::Relaxed);
            }
        }
        places.since = pin::advance();
    }

    fn slot(&self, index: usize) -> Option<&'static Slot<T>> {
        let (chunk, at) = place(index);
        let first = self.chunks.get(chunk)?.load(Ordering::Acquire);
        // SAFETY: the chunk has this slot, and is never freed.
        (!first.is_null()).then(|| unsafe { &*first.add(at) })
    }

    /// The object with this number, unless it was dropped.
    pub(crate) fn numbered(&'static self, number: u64) -> Option<Found<T>> {
        let found = self.at(number)?;
        let lives = found.slot.lives.load(Ordering::Relaxed);
        (lives == number >> INDEX_BITS).then_some(found)
    }

    /// The object in the slot of this number.
    pub(crate) fn at(&'static self, number: u64) -> Option<Found<T>> {
        let index = number & ((1 << INDEX_BITS) - 1);
        self.slot(index as usize)?.find()
    }

    /// Whether an object at this address was ended.
    pub(crate) fn had(&'static self, address: usize) -> bool {
        let slot = self.slot_at(address).map(|(_, slot)| slot);
        slot.is_some_and(|slot| {
            slot.is_ended.load(Ordering::Relaxed) || slot.lives.load(Ordering::Relaxed) > 0
        })
    }

    /// All objects that lookups find, in the order of their slots.
    pub(crate) fn iter(&'static self) -> impl Iterator<Item = Found<T>> {
        let used = self.places.lock().used;
        (0..used).filter_map(|index| self.slot(index)?.find())
    }

    /// The object that starts at this address.
    #[inline]
    pub(crate) fn find(&'static self, address: usize) -> Option<Found<T>> {
        self.slot_at(address)?.1.find()
    }

    /// The slot whose value starts at this address, and its index.
    #[inline(always)]
    fn slot_at(&'static self, address: usize) -> Option<(usize, &'static Slot<T>)> {
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
                let at = offset / size_of::<Slot<T>>();
                // SAFETY: the slot lies within the chunk, which is never freed.
                return Some((FIRST * ((1 << chunk) - 1) + at, unsafe { &*first.add(at) }));
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

/// `count` slots that are never freed, or `None` without memory for them. They are not written, so
/// the machine provides memory only for slots that are used.
fn empty_slots<T>(count: usize) -> Option<*mut Slot<T>> {
    let layout = Layout::array::<Slot<T>>(count).ok()?;
    // SAFETY: the size is above zero. Zero bytes are an empty slot.
    let slots: *mut Slot<T> = unsafe { alloc::alloc_zeroed(layout) }.cast();
    (!slots.is_null()).then_some(slots)
}

impl<T> Slot<T> {
    #[inline]
    fn find(&'static self) -> Option<Found<T>> {
        let pin = Pin::new();
        self.is_filled.load(Ordering::Acquire).then_some(Found {
            slot: self,
            _pin: pin,
        })
    }

    /// Drops the value of a slot that has been hidden since before an epoch that has passed.
    /// Returns false if the object is held.
    fn clear(&self) -> bool {
        if self.holders.load(Ordering::Acquire) != 0 {
            return false;
        }
        // SAFETY: the slot was filled, and no thread can reach the value any more.
        unsafe { (*self.value.get()).assume_init_drop() };
        self.lives.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// # Safety
    /// The thread has been pinned since the slot was found, or it is held.
    #[inline]
    unsafe fn value(&self) -> &T {
        // SAFETY: the value exists (the caller's promise).
        unsafe { (*self.value.get()).assume_init_ref() }
    }
}

impl<T> Found<T> {
    /// Holds the object for longer than the call, or while the call sleeps.
    pub(crate) fn hold(&self) -> Held<T> {
        Held::of(self.slot)
    }

    /// Holds the object instead, for a call that sleeps.
    pub(crate) fn held(self) -> Held<T> {
        self.hold()
    }
}

impl<T> Held<T> {
    /// The caller has a reference to the slot already.
    fn of(slot: &'static Slot<T>) -> Self {
        slot.holders.fetch_add(1, Ordering::Relaxed);
        Self { slot }
    }
}

impl<T> Deref for Found<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the pin is from before it was found.
        unsafe { self.slot.value() }
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: it is held.
        unsafe { self.slot.value() }
    }
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self::of(self.slot)
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        self.slot.holders.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn new_arena<T>() -> &'static Arena<T> {
        Box::leak(Box::default())
    }

    fn insert<T: Send + Sync>(arena: &'static Arena<T>, value: T) -> Found<T> {
        arena.insert(|_| Ok::<_, ()>(value)).unwrap().unwrap()
    }

    fn address<T>(object: &T) -> usize {
        std::ptr::from_ref(object).addr()
    }

    /// Tests run at the same time, and each stops reclamation for all while it has a lookup. So a
    /// check of reclamation ends objects until it has happened.
    fn end_many(arena: &'static Arena<Counted>, dropped: &Arc<AtomicUsize>, least: usize) {
        while dropped.load(Ordering::Relaxed) < least {
            arena.end(&*insert(arena, Counted::new(dropped)));
        }
    }

    /// Counts when it is dropped.
    struct Counted(Box<u64>, Arc<AtomicUsize>);

    impl Counted {
        fn new(dropped: &Arc<AtomicUsize>) -> Self {
            Self(Box::new(7), dropped.clone())
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            *self.0 = 0;
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn only_the_starts_of_filled_slots_are_objects() {
        let arena = new_arena::<[u64; 3]>();
        let all: Vec<_> = (0..500)
            .map(|at| {
                let made = arena.insert(|number| Ok::<_, ()>([number, at, 0]));
                made.unwrap().unwrap()
            })
            .collect();
        for (index, object) in (0..).zip(&all) {
            assert_eq!(object[..2], [index; 2]);
            let address = address(&**object);
            assert_eq!(**arena.find(address).as_ref().unwrap(), **object);
            assert_eq!(**arena.numbered(index).as_ref().unwrap(), **object);
            for wrong in [address + 1, address + 8, address + 24] {
                assert!(arena.find(wrong).is_none_or(|other| other[0] != index));
            }
        }
        assert!(arena.find(0).is_none());
        assert!(arena.find(usize::MAX).is_none());
        assert!(arena.numbered(500).is_none());
        assert!(arena.iter().map(|of| *of).eq(all.iter().map(|of| **of)));
    }

    /// Random makes and ends, compared with a model of the objects that lookups find.
    #[test]
    fn a_slot_is_used_again_only_after_the_quarantine_and_under_another_number() {
        let arena = new_arena::<u64>();
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        let (mut live, mut ended) = (Vec::new(), VecDeque::new());
        // The number of the object at each address.
        let mut has: BTreeMap<usize, u64> = BTreeMap::new();
        let mut were_used_again = 0;
        let steps = if cfg!(miri) { 300 } else { 20_000 };
        for _ in 0..steps {
            if live.len() < 10 || live.len() < 40 && random(2) == 0 {
                let found = arena.insert(Ok::<_, ()>).unwrap().unwrap();
                let (at, number) = (address(&*found), *found);
                if let Some(before) = has.insert(at, number) {
                    were_used_again += 1;
                    assert!(!live.contains(&(at, before)), "two objects have a slot");
                    assert!(!ended.contains(&(at, before)), "it was in quarantine");
                    assert_ne!(before, number);
                    assert!(arena.numbered(before).is_none(), "{before} was removed");
                }
                live.push((at, number));
            } else {
                let (at, number) = live.swap_remove(random(live.len()));
                let found = arena.find(at).unwrap();
                assert!(arena.end(&*found) && !arena.end(&*found), "it ends once");
                ended.push_back((at, number));
                if ended.len() > QUARANTINE {
                    ended.pop_front();
                }
            }
            for (at, number) in live.iter().chain(&ended) {
                if random(20) == 0 {
                    assert_eq!(arena.find(*at).map(|found| *found), Some(*number));
                    assert_eq!(arena.numbered(*number).map(|found| *found), Some(*number));
                }
            }
        }
        // The number depends on tests that run at the same time.
        assert!(were_used_again > 0);
    }

    #[test]
    fn what_is_held_stays_though_its_slot_would_be_used_again() {
        let arena = new_arena::<Counted>();
        let [own, others] = [0, 1].map(|_| Arc::new(AtomicUsize::new(0)));
        let held = insert(arena, Counted::new(&own)).hold();
        let again = held.clone();
        drop(held);
        assert!(arena.end(&*again));
        end_many(arena, &others, 3 * QUARANTINE);
        assert_eq!((*again.0, own.load(Ordering::Relaxed)), (7, 0));
        let at = address(&*again);
        assert!(arena.find(at).is_none(), "its quarantine is over");
        assert!(arena.had(at) && !arena.had(at + 1));
        drop(again);
        // The slot waits behind all that were ended before.
        while own.load(Ordering::Relaxed) == 0 {
            let before = others.load(Ordering::Relaxed);
            end_many(arena, &others, before + 1);
        }
        end_many(arena, &others, 10 * QUARANTINE);
        assert_eq!(own.load(Ordering::Relaxed), 1, "it is dropped once");
    }

    #[test]
    fn without_the_barrier_no_slot_is_used_again() {
        crate::base::pin::refusing::BARRIERS.set(true);
        let arena = new_arena::<Counted>();
        let dropped = Arc::new(AtomicUsize::new(0));
        for _ in 0..10 * QUARANTINE {
            // This thread is not pinned when it ends the object.
            let object = insert(arena, Counted::new(&dropped)).hold();
            arena.end(&*object);
        }
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
        crate::base::pin::refusing::BARRIERS.set(false);
    }

    #[test]
    fn a_slot_whose_object_could_not_be_made_is_used_next() {
        let arena = new_arena::<u64>();
        for _ in 0..5 {
            assert!(matches!(arena.insert(|_| Err(1)), Some(Err(1))));
        }
        assert_eq!(*arena.insert(Ok::<_, ()>).unwrap().unwrap(), 0);
    }

    /// A thread finds an object, and uses it after another thread has ended it and enough others to
    /// use its slot again. The flags of the threads order nothing.
    #[test]
    fn what_a_lookup_gave_stays_as_long_as_it_is_used() {
        let arena = new_arena::<Counted>();
        let [own, others] = [0, 1].map(|_| Arc::new(AtomicUsize::new(0)));
        let at = address(&*insert(arena, Counted::new(&own)));
        let [is_found, is_ended] = [const { AtomicBool::new(false) }; 2];
        let wait_for = |flag: &AtomicBool| {
            while !flag.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let found = arena.find(at).unwrap();
                is_found.store(true, Ordering::Relaxed);
                wait_for(&is_ended);
                assert_eq!(*found.0, 7);
            });
            wait_for(&is_found);
            arena.end(&*arena.find(at).unwrap());
            for _ in 0..3 * QUARANTINE {
                arena.end(&*insert(arena, Counted::new(&others)));
            }
            let [is_hidden, is_dropped] =
                [arena.find(at).is_none(), own.load(Ordering::Relaxed) > 0];
            is_ended.store(true, Ordering::Relaxed);
            assert_eq!((is_hidden, is_dropped), (true, false));
            while own.load(Ordering::Relaxed) == 0 {
                arena.end(&*insert(arena, Counted::new(&others)));
            }
        });
    }

    /// While a thread uses an object that it has found, other threads end it, and enough others to
    /// use its slot again.
    #[test]
    #[cfg_attr(miri, ignore = "threads that spin may take minutes there")]
    fn what_a_lookup_gave_stays_while_others_end_it() {
        let arena = new_arena::<Counted>();
        let dropped = Arc::new(AtomicUsize::new(0));
        let shared = AtomicUsize::new(address(&*insert(arena, Counted::new(&dropped))));
        let rounds = 100_000;
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        if let Some(found) = arena.find(shared.load(Ordering::Relaxed)) {
                            std::thread::yield_now();
                            assert_eq!(*found.0, 7);
                            let held = found.hold();
                            drop(found);
                            std::thread::yield_now();
                            assert_eq!(*held.0, 7);
                        }
                    }
                });
            }
            for _ in 0..rounds {
                let next = insert(arena, Counted::new(&dropped));
                let before = shared.swap(address(&*next), Ordering::Relaxed);
                drop(next);
                let found = arena.find(before).unwrap();
                assert!(arena.end(&*found));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        end_many(arena, &dropped, rounds);
    }

    /// An address that a thread has from another one finds nothing, or the whole object.
    #[test]
    fn objects_that_other_threads_make_are_found_whole() {
        const THREADS: usize = 4;
        const EACH: usize = 100;
        let arena = new_arena::<[AtomicUsize; 2]>();
        let reported: [AtomicUsize; THREADS] = Default::default();
        std::thread::scope(|scope| {
            for (number, mine) in reported.iter().enumerate() {
                let theirs = &reported[(number + 1) % reported.len()];
                scope.spawn(move || {
                    for round in 0..EACH {
                        let make =
                            |number| Ok::<_, ()>([number as usize, round].map(AtomicUsize::new));
                        let made = arena.insert(make).unwrap().unwrap();
                        mine.store(address(&*made), Ordering::Relaxed);
                        if let Some(seen) = arena.find(theirs.load(Ordering::Relaxed)) {
                            let [number, round] =
                                seen.each_ref().map(|n| n.load(Ordering::Relaxed));
                            assert!(number < THREADS * EACH && round < EACH);
                            let same = arena.numbered(number as u64).unwrap();
                            assert_eq!(address(&*same), address(&*seen));
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
            insert(arena, [index as u64; 64]);
        }
        let (chunk, at) = place(filled - 1);
        assert_eq!((chunk, at), (9, 0));
        let first = arena.chunks[chunk].load(Ordering::Relaxed) as usize / PAGE * PAGE;
        let pages = (FIRST << chunk) * size_of::<Slot<[u64; 64]>>() / PAGE;
        let mut resident = vec![0; pages];
        // SAFETY: the pages are mapped, and the vector has a byte for each.
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
