//! Two threads at the same time, each with a queue pair and a CQ of its own.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use crate::link::{Fabric, Link};
use crate::stopwatch::Stopwatch;
use crate::table::Line;

/// The best counts.
const TRIES: u32 = 20;
/// Looks of the thread that is ready first, and messages between two of them.
const LOOKS: u32 = 200;
const MESSAGES: u32 = 64;

/// How far a thread is, on a cache line of its own.
#[repr(align(128))]
struct Progress(AtomicU32);

pub(crate) fn lines(watch: &mut Stopwatch) -> [Line; 2] {
    let fabric = Fabric::new(4);
    let [first, same, apart] =
        [(0, 1), (0, 1), (2, 3)].map(|(from, to)| fabric.link(from, to, 4096));
    let one = watch.time("write of 64 B, one thread", || first.write(64));
    let both = |what: &str, other| {
        let tries = (0..TRIES).map(|_| run(&[first, other]));
        let together = tries.filter_map(|(time, together)| together.then_some(time));
        match together.reduce(f64::min) {
            Some(time) => Line::ns(what, time).beside(&one),
            None => Line::new(what, f64::INFINITY, "ns: they never ran at the same time"),
        }
    };
    [
        both("two threads, the same nodes", same),
        both("two threads, nodes of their own", apart).times(0.7),
    ]
}

/// Nanoseconds of a message of either, and whether both threads ran at the same time.
fn run(links: &[Link<'_>; 2]) -> (f64, bool) {
    let progress = [0, 0].map(|count| Progress(AtomicU32::new(count)));
    let (begin, ready) = (Barrier::new(2), AtomicBool::new(false));
    let write = |link: &Link<'_>, own: &Progress, other: &Progress| {
        begin.wait();
        let start = Instant::now();
        let (mut seen, mut moved) = (0, 0);
        for look in 1.. {
            (0..MESSAGES).for_each(|_| link.write(64));
            own.0.store(look, Ordering::Relaxed);
            let now = other.0.load(Ordering::Relaxed);
            moved += u32::from(now != seen);
            seen = now;
            if look == LOOKS || ready.load(Ordering::Relaxed) {
                ready.store(true, Ordering::Relaxed);
                // Threads that take turns see each other move once a turn.
                return (start, Instant::now(), look * MESSAGES, moved > look / 2);
            }
        }
        unreachable!("one of the looks is the last")
    };
    let [a, b] = thread::scope(|scope| {
        let [link_a, link_b] = links;
        let [own_a, own_b] = &progress;
        let threads = [
            scope.spawn(|| write(link_a, own_a, own_b)),
            scope.spawn(|| write(link_b, own_b, own_a)),
        ];
        threads.map(|thread| thread.join().expect("it ends"))
    });
    let took = a.1.max(b.1) - a.0.min(b.0);
    (took.as_nanos() as f64 / f64::from(a.2 + b.2), a.3 && b.3)
}
