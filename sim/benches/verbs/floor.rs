//! Floors: the least that a machine needs for the parts of every verb.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam::queue::ArrayQueue;
use parking_lot::Mutex;
use verbs_api::Wc;

/// Takes and releases an uncontended lock.
pub(crate) fn lock() -> impl FnMut() {
    let mutex = Mutex::new(0_u64);
    move || *black_box(&mutex).lock() += 1
}

/// Copies 64 bytes, and passes a completion through a bounded queue.
pub(crate) fn copy_and_queue() -> impl FnMut() {
    let (from, mut into) = (vec![1_u8; 64], vec![0_u8; 64]);
    let queue = ArrayQueue::new(16);
    move || {
        black_box(&mut into[..]).copy_from_slice(black_box(&from));
        queue.push(black_box(Wc::default())).expect("it is empty");
        black_box(queue.pop());
    }
}

/// Reads a shared number.
pub(crate) fn load() -> impl FnMut() {
    let number = AtomicU64::new(0);
    move || {
        black_box(black_box(&number).load(Ordering::Acquire));
    }
}

/// Copies `bytes` bytes from the start of a page to the start of a page. Some machines copy much
/// slower if the target is a few bytes further into its page than the source.
pub(crate) fn memcpy(bytes: usize) -> impl FnMut() {
    const PAGE: usize = 4096;
    let (from, mut into) = (vec![1_u8; bytes + PAGE], vec![0_u8; bytes + PAGE]);
    let [from_start, into_start] = [&from, &into].map(|bytes| bytes.as_ptr().align_offset(PAGE));
    move || {
        let from = &from[from_start..from_start + bytes];
        black_box(&mut into[into_start..into_start + bytes]).copy_from_slice(black_box(from));
    }
}
