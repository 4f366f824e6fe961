//! Two threads at the same time, each with a queue pair and a CQ of its own.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use crate::link::{Fabric, Link};
use crate::stopwatch::{self, Stopwatch};
use crate::table::Line;

/// The messages of a stretch, and the stretches of each thread.
const STRETCH: u32 = 256;
const STRETCHES: u32 = 50;
const TRIES: u32 = 20;

/// The number of messages that a thread has written, on a cache line of its own.
#[repr(align(128))]
struct Done(AtomicU32);

pub(crate) fn lines(watch: &mut Stopwatch) -> [Line; 2] {
    let fabric = Fabric::new(4);
    let [first, same, apart] =
        [(0, 1), (0, 1), (2, 3)].map(|(from, to)| fabric.link(from, to, 4096));
    let one = watch.time("write of 64 B, one thread", || first.write(64));
    let tries = if watch.measures() { TRIES } else { 1 };
    let both = |what: &str, other| {
        let samples: Vec<_> = (0..tries).flat_map(|_| run([first, other])).collect();
        let line = if samples.is_empty() {
            // Another program took the second core, so there is no figure of both threads.
            let what = format!("{what}: never seen at the same time");
            Line::ns(&what, f64::INFINITY)
        } else {
            Line::ns(what, stopwatch::low(samples))
        };
        line.against(&one)
    };
    [
        both("two threads, the same nodes", same),
        both("two threads, nodes of their own", apart),
    ]
}

/// Nanoseconds of a message of either thread, in each stretch in which both ran at about the same
/// pace.
fn run(links: [Link<'_>; 2]) -> Vec<f64> {
    let done = [0, 0].map(|count| Done(AtomicU32::new(count)));
    let begin = Barrier::new(2);
    let write = &|own: usize| {
        let mut samples = Vec::new();
        let [mine, theirs] = [own, 1 - own].map(|number| &done[number].0);
        begin.wait();
        let (mut start, mut before) = (Instant::now(), theirs.load(Ordering::Relaxed));
        for message in 1..=STRETCH * STRETCHES {
            links[own].write(64);
            mine.store(message, Ordering::Relaxed);
            if message % STRETCH == 0 {
                let (end, now) = (Instant::now(), theirs.load(Ordering::Relaxed));
                let others = now - before;
                if (STRETCH / 2..=STRETCH * 2).contains(&others) {
                    let took = (end - start).as_nanos() as f64;
                    samples.push(took / f64::from(STRETCH + others));
                }
                (start, before) = (end, now);
            }
        }
        samples
    };
    thread::scope(|scope| {
        let threads = [0, 1].map(|number| scope.spawn(move || write(number)));
        threads
            .map(|thread| thread.join().expect("it ends"))
            .concat()
    })
}
