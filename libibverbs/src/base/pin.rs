//! Threads that use objects: epoch-based reclamation.
//!
//! A thread is *pinned* while it has a [`Pin`]. Its [`Record`] then holds the epoch in which it was
//! pinned. An object is reclaimed in three steps:
//! 1. lookups stop finding it,
//! 2. [`advance`] begins an epoch,
//! 3. [`has_passed`] returns whether no thread has been pinned since before that epoch.
//!
//! After the third step no thread has a reference from a lookup. A thread either had stored its pin
//! before step 2, so step 3 sees it; or it looks the object up after step 1, and does not find it.
//! This needs a full barrier on both sides: between the store of the pin and the lookup, and
//! between steps 1 and 3. `advance` calls `membarrier(2)`, which takes effect in all threads of the
//! process, so a pin needs only two plain stores. Miri has no such call; there both sides have a
//! fence.
//!
//! A thread that never drops a pin, such as one that leaves a call by `longjmp`, stops reclamation.
//! Memory then grows.

use std::marker::PhantomData;
use std::ptr::{self, null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, compiler_fence, fence};

use std::ffi::c_void;

use super::thread::with_words;

/// The thread is pinned as long as this lives.
pub(crate) struct Pin {
    record: &'static Record,
    /// A pin belongs to its thread.
    _not_send: PhantomData<*const ()>,
}

/// The pins of a thread, for other threads. Records are never freed. A thread that ends leaves its
/// record to another.
#[repr(align(128))]
pub(crate) struct Record {
    /// The epoch in which the thread was pinned. The low bits are the number of its pins. Only the
    /// thread writes it.
    pins: AtomicU64,
    is_taken: AtomicBool,
    next: AtomicPtr<Record>,
}

/// Bits that count the pins of a thread.
const COUNT: u64 = 0xffff;

/// The present epoch. Its low bits, where a record has its number of pins, are zero.
static EPOCH: AtomicU64 = AtomicU64::new(COUNT + 1);

/// All records.
static RECORDS: AtomicPtr<Record> = AtomicPtr::new(null_mut());

impl Pin {
    #[inline]
    pub(crate) fn new() -> Self {
        // SAFETY: null, or a record, which is never freed.
        let record = unsafe { own_record().as_ref() };
        let record = record.unwrap_or_else(take_record);
        let pins = record.pins.load(Ordering::Relaxed);
        // A nested pin keeps the epoch of the first one, which protects more.
        let pins = if pins & COUNT == 0 {
            EPOCH.load(Ordering::Acquire)
        } else {
            pins
        };
        // Release: a thread that sees this value also sees that earlier pins have ended.
        record.pins.store(pins + 1, Ordering::Release);
        if cfg!(miri) {
            fence(Ordering::SeqCst);
        } else {
            // `membarrier` is the other half of the barrier.
            compiler_fence(Ordering::SeqCst);
        }
        Self {
            record,
            _not_send: PhantomData,
        }
    }
}

impl Drop for Pin {
    #[inline]
    fn drop(&mut self) {
        let pins = self.record.pins.load(Ordering::Relaxed);
        self.record.pins.store(pins - 1, Ordering::Release);
    }
}

/// Begins an epoch. Hidden objects can be reclaimed when it [`has_passed`]. `None` if the kernel
/// does not permit the barrier; then nothing can be reclaimed.
pub(crate) fn advance() -> Option<u64> {
    let epoch = EPOCH.fetch_add(COUNT + 1, Ordering::SeqCst) + COUNT + 1;
    barrier().then_some(epoch)
}

/// Whether no thread has been pinned since before the epoch.
pub(crate) fn has_passed(epoch: u64) -> bool {
    records().all(|record| {
        let pins = record.pins.load(Ordering::Acquire);
        pins & COUNT == 0 || pins >= epoch
    })
}

/// Unpins the threads of the parent in a child after `fork`, where they do not exist. The one
/// thread of the child is not pinned.
pub(crate) fn after_fork() {
    let own = own_record();
    for record in records().filter(|record| !ptr::eq(*record, own)) {
        record.pins.store(0, Ordering::Relaxed);
        record.is_taken.store(false, Ordering::Relaxed);
    }
}

fn records() -> impl Iterator<Item = &'static Record> {
    // SAFETY: null, or a record, which is never freed.
    let at = |place: &AtomicPtr<Record>| unsafe { place.load(Ordering::Acquire).as_ref() };
    std::iter::successors(at(&RECORDS), move |record| at(&record.next))
}

/// The record of this thread, or null.
#[inline(always)]
fn own_record() -> *const Record {
    with_words(|words| words.pins.get()).cast()
}

fn set_record(record: *const Record) {
    with_words(|words| words.pins.set(record.cast_mut().cast()));
}

/// Takes or makes a record for this thread.
#[cold]
fn take_record() -> &'static Record {
    let (order, failed) = (Ordering::Acquire, Ordering::Relaxed);
    let free = records().find(|record| {
        let taken = &record.is_taken;
        taken.compare_exchange(false, true, order, failed).is_ok()
    });
    let record = free.unwrap_or_else(new_record);
    set_record(record);
    if let Some(key) = exit_key() {
        // SAFETY: the key is ours. If the call lacks memory, the record stays taken.
        unsafe { libc::pthread_setspecific(key, ptr::from_ref(record).cast()) };
    }
    record
}

fn new_record() -> &'static Record {
    let record: &'static Record = Box::leak(Box::new(Record {
        pins: AtomicU64::new(0),
        is_taken: AtomicBool::new(true),
        next: AtomicPtr::new(null_mut()),
    }));
    let first = ptr::from_ref(record).cast_mut();
    let mut next = RECORDS.load(Ordering::Relaxed);
    loop {
        record.next.store(next, Ordering::Relaxed);
        let (order, failed) = (Ordering::Release, Ordering::Relaxed);
        match RECORDS.compare_exchange(next, first, order, failed) {
            Ok(_) => return record,
            Err(now) => next = now,
        }
    }
}

/// The key whose value is passed to [`leave`] when a thread ends. Destructors of other keys may
/// call verbs after that. The thread then takes a record again, and `leave` is called again.
fn exit_key() -> Option<libc::pthread_key_t> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the call writes the key. The function stays, since the library is never unloaded.
        let made = unsafe { libc::pthread_key_create(&raw mut key, Some(leave)) };
        (made == 0).then_some(key)
    })
}

unsafe extern "C" fn leave(record: *mut c_void) {
    set_record(null());
    // SAFETY: the value of the key is a record, which is never freed.
    let record = unsafe { &*record.cast::<Record>() };
    record.pins.store(0, Ordering::Release);
    record.is_taken.store(false, Ordering::Release);
}

/// A full barrier in every running thread of the process. Other threads have one when they run
/// again. False if the kernel has no such call, or does not permit it.
fn barrier() -> bool {
    #[cfg(test)]
    if refusing::BARRIERS.get() {
        return false;
    }
    if cfg!(miri) {
        fence(Ordering::SeqCst);
        return true;
    }
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
    // SAFETY: the call touches no memory.
    let call =
        |command: libc::c_int| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 };
    // The process must register once; before that the kernel refuses.
    call(PRIVATE_EXPEDITED) || call(REGISTER_PRIVATE_EXPEDITED) && call(PRIVATE_EXPEDITED)
}

/// A kernel that refuses the barrier, for tests of one thread.
#[cfg(test)]
pub(crate) mod refusing {
    use std::cell::Cell;

    thread_local! {
        pub(crate) static BARRIERS: Cell<bool> = const { Cell::new(false) };
    }
}
