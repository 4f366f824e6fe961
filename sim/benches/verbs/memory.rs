//! Bytes allocated, counted by the global allocator of the benchmarks.
#![allow(unsafe_code, reason = "a global allocator is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use crate::link::Fabric;
use crate::table::Line;

/// The number of links that are created to measure the memory of one. The tables have grown past
/// this number by then, as in a long-running program.
const LINKS: usize = 1_500;

pub(crate) fn lines() -> [Line; 2] {
    let bytes = |what, used| Line::new(what, of_a_queue_pair(used), "B");
    [
        bytes("memory of an idle RC QP of 16+16 WRs", false).most(1_152.0),
        bytes("the same, when both queues have been full", true).most(2_048.0),
    ]
}

/// The bytes of one connected and idle RC queue pair with 16 sends and 16 receives, either unused
/// or after both its queues have been full. The allocator's own overhead is not counted.
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

/// The bytes that `run` allocates and keeps.
pub(crate) fn allocated(run: impl FnOnce()) -> isize {
    ALLOCATED.store(0, Ordering::SeqCst);
    COUNTING.store(true, Ordering::SeqCst);
    run();
    COUNTING.store(false, Ordering::SeqCst);
    ALLOCATED.load(Ordering::SeqCst)
}

static COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATED: AtomicIsize = AtomicIsize::new(0);

/// Counts only when asked to, so that timed code pays for one load at most.
struct Counter;

#[global_allocator]
static COUNTER: Counter = Counter;

fn count(bytes: isize) {
    if COUNTING.load(Ordering::Relaxed) {
        ALLOCATED.fetch_add(bytes, Ordering::Relaxed);
    }
}

// SAFETY: all work is passed on to the allocator of the system; counting allocates nothing. The
// trait implements the other methods with these two.
unsafe impl GlobalAlloc for Counter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise is that of this method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise is that of this method; the block came from `System`.
        unsafe { System.dealloc(block, layout) }
    }
}
