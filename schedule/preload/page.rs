//! The page that the supervisor writes the time to.

use core::cell::Cell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::libc;

/// What `PAGE` is before anything asked for it.
const NOT_YET: *mut AtomicU64 = core::ptr::without_provenance_mut(1);

/// The page, once something asked for it. Null without one.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(NOT_YET);

/// The argument of a `sched_yield` that lets time pass: see `verbs_schedule::CLOCK`.
const CLOCK: u64 = 0x0076_5f63_6c6f_636b;

/// Every 32nd read lets time pass: a thread may wait for a time by reading the clock.
const OFTEN: u32 = 32;

thread_local! {
    /// How often this thread has read the clock.
    static READS: Cell<u32> = const { Cell::new(0) };
}

/// The time of the schedule, in nanoseconds. `None` without one.
pub(super) fn now() -> Option<u64> {
    // SAFETY: the page stays mapped, and begins with the time.
    let time = unsafe { page().as_ref() }?;
    READS.with(|reads| {
        reads.set(reads.get().wrapping_add(1));
        if reads.get().is_multiple_of(OFTEN) {
            // SAFETY: the call has no effect without a supervisor.
            unsafe { libc::syscall(libc::SYS_SCHED_YIELD, CLOCK) };
        }
    });
    Some(time.load(Ordering::Acquire))
}

/// Whether the program runs by a schedule.
pub(super) fn is_scheduled() -> bool {
    !page().is_null()
}

/// The page. Null without one.
fn page() -> *mut AtomicU64 {
    let mut page = PAGE.load(Ordering::Acquire);
    if page == NOT_YET {
        page = map();
        PAGE.store(page, Ordering::Release);
    }
    page
}

/// Maps the page. Null without one.
fn map() -> *mut AtomicU64 {
    // SAFETY: the arguments are strings and numbers; a new mapping replaces no other.
    unsafe {
        let name = libc::getenv(c"VERBS_SCHEDULE_CLOCK".as_ptr());
        if name.is_null() {
            return null_mut();
        }
        let fd = libc::open(name, libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return null_mut();
        }
        let page = libc::mmap(null_mut(), 4096, libc::PROT_READ, libc::MAP_SHARED, fd, 0);
        libc::close(fd);
        if page == libc::MAP_FAILED {
            null_mut()
        } else {
            page.cast()
        }
    }
}
