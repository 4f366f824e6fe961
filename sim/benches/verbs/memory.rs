//! Bytes allocated, counted by the global allocator of the benchmarks.
#![allow(unsafe_code, reason = "a global allocator is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use crate::link::Fabric;
use crate::table::Line;

/// Links that are made to see what one takes. The tables they are in have grown past this number
/// by then, as those of a program have.
const LINKS: usize = 1_500;

pub(crate) fn lines() -> [Line; 2] {
    let bytes = |what, used| Line::new(what, of_a_queue_pair(used), "B");
    [
        bytes("memory of an idle RC QP of 16+16 WRs", false).most(1_152.0),
        bytes("the same, when both queues have been full", true).most(2_048.0),
    ]
}

/// Bytes that one RC queue pair of 16 sends and 16 receives takes, connected and idle: untouched,
/// or after both its queues have been full. What the allocator keeps for itself is not counted.
fn of_a_queue_pair(used: bool) -> f64 {
    let fabric = Fabric::new(2);
    let link = fabric.link(0, 1, 4096);
    link.fill_queues();
    let bytes = allocated(|| {
        for _ in 0..LINKS {
            let link = fabric.another(&link);
            if used {
                link.fill_queues();
            }
        }
    });
    bytes as f64 / (2 * LINKS) as f64
}

/// Bytes that are allocated after `run` and were not before.
pub(crate) fn allocated(run: impl FnOnce()) -> isize {
    ALLOCATED.store(0, Ordering::SeqCst);
    COUNTING.store(true, Ordering::SeqCst);
    run();
    COUNTING.store(false, Ordering::SeqCst);
    ALLOCATED.load(Ordering::SeqCst)
}

static COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATED: AtomicIsize = AtomicIsize::new(0);

/// Counts only when asked to, so that what is timed pays for one load at most.
struct Counter;

#[global_allocator]
static COUNTER: Counter = Counter;

fn count(bytes: isize) {
    if COUNTING.load(Ordering::Relaxed) {
        ALLOCATED.fetch_add(bytes, Ordering::Relaxed);
    }
}

// SAFETY: all work is passed on to the allocator of the system; counting allocates nothing. The
// methods that are not here are made of these two by the trait.
unsafe impl GlobalAlloc for Counter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise is that of this method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above; the block came from `System`.
        unsafe { System.dealloc(block, layout) }
    }
}
