//! How fast the simulator is in inline mode, and how much memory it takes, beside floors measured
//! in the same run. Ends with a table of ratios; see `docs/benchmarks.md`.
//!
//! | file | holds |
//! |---|---|
//! | `beside` | what verbs take beside many objects that are not theirs |
//! | `floor` | what a machine needs for the least that a verb must do |
//! | `link` | connected queue pairs, and the operations that are timed |
//! | `memory` | bytes allocated, counted |
//! | `scale` | many nodes, queue pairs and completions |
//! | `stopwatch` | criterion, and what it measured |
//! | `table` | figures, floors, ratios, aims |

mod beside;
mod callgrind;
mod calls;
mod floor;
mod link;
mod memory;
mod scale;
mod stopwatch;
mod table;
mod time;

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use link::{Fabric, Link};
use stopwatch::Stopwatch;
use table::Line;
use verbs_sim::Mode;

/// Queue pairs on each node where there are many.
const MANY: usize = 100_000;
/// As above, where each benchmark runs only once to see that it works.
const A_FEW: usize = 200;

fn main() {
    let mut watch = Stopwatch::new();
    floors(&mut watch);
    small_messages(&mut watch);
    large_messages(&mut watch);
    two_threads(&mut watch);
    many_queue_pairs(&mut watch);
    if watch.measures() {
        let mut lines = times(&watch);
        lines.extend(memory());
        lines.extend(scale::lines());
        lines.extend(beside::lines(1.0));
        print!("{}", table::render(&lines));
        print!("\n{}", table::render(&instructions(&watch)));
        if !callgrind::is_there() {
            println!("no valgrind: no instructions are counted");
        }
    } else {
        memory();
        scale::try_out();
        beside::lines(0.001);
    }
    watch.finish();
}

fn floors(watch: &mut Stopwatch) {
    watch.time("floor/lock and unlock", floor::lock());
    watch.time("floor/64 B copy, push and pop", floor::copy_and_queue());
    watch.time("floor/atomic load", floor::load());
    for (name, bytes) in SIZES {
        watch.time(&format!("floor/memcpy of {name}"), floor::memcpy(bytes));
    }
}

fn small_messages(watch: &mut Stopwatch) {
    let fabric = Fabric::new(2);
    let link = fabric.link(0, 1, 4096);
    watch.operation("write of 64 B", link, |link| link.write(64));
    watch.operation("send and receive of 64 B", link, |link| link.send(64));
    watch.operation("arm, send, event", link, |link| link.event(64));
    watch.time("empty poll", link.empty_poll());
    let within = fabric.link(0, 0, 4096);
    watch.time("write of 64 B to the same node", || within.write(64));
    let fabric = Fabric::with_mode(2, Mode::RealTime);
    let link = fabric.link(0, 1, 4096);
    watch.time("write of 64 B in real time", || link.write(64));
    watch.time("send and receive of 64 B in real time", || link.send(64));
}

fn large_messages(watch: &mut Stopwatch) {
    let fabric = Fabric::new(2);
    for (name, bytes) in SIZES {
        let link = fabric.link(0, 1, bytes);
        let write = || link.write(bytes as u32);
        watch.time(&format!("write of {name}"), write);
    }
}

/// Two threads, each with a queue pair and a CQ of its own: time for one message of either.
fn two_threads(watch: &mut Stopwatch) {
    let fabric = Fabric::new(4);
    let shared = [fabric.link(0, 1, 4096), fabric.link(0, 1, 4096)];
    watch.span("two threads, the same nodes", |rounds| {
        in_threads(&shared, rounds)
    });
    let apart = [fabric.link(0, 1, 4096), fabric.link(2, 3, 4096)];
    watch.span("two threads, nodes of their own", |rounds| {
        in_threads(&apart, rounds)
    });
}

fn in_threads(links: &[Link<'_>; 2], rounds: u64) -> Duration {
    let each = rounds.div_ceil(2);
    let begin = Barrier::new(2);
    let spans = thread::scope(|scope| {
        let threads = links.each_ref().map(|link| {
            scope.spawn(|| {
                begin.wait();
                let start = Instant::now();
                for _ in 0..each {
                    link.write(64);
                }
                (start, Instant::now())
            })
        });
        threads.map(|thread| thread.join().expect("the thread ends"))
    });
    let [(start_a, end_a), (start_b, end_b)] = spans;
    end_a.max(end_b) - start_a.min(start_b)
}

fn many_queue_pairs(watch: &mut Stopwatch) {
    let count = if watch.measures() { MANY } else { A_FEW };
    let fabric = Fabric::new(2);
    let mut links = fabric.links(0, 1, 4096, 1);
    watch.time("write of 64 B, 1 queue pair a node", || links.write(0));
    watch.time("write_mr of 64 B, 1 queue pair a node", || links.fill());
    links.extend(&fabric, count - 1);
    watch.time("write of 64 B, many queue pairs, one in use", || {
        links.write(black_box(count / 2))
    });
    watch.time("write_mr of 64 B, many queue pairs", || links.fill());
    let mut next = 0;
    watch.time("write of 64 B, many queue pairs in turn", || {
        next = (next + 1) % count;
        links.write(next);
    });
    let mut random = 1_u64;
    watch.time("write of 64 B, many queue pairs in random order", || {
        // A linear congruential generator (Knuth's MMIX): cheap, and random enough for caches.
        random = random.wrapping_mul(6_364_136_223_846_793_005);
        random = random.wrapping_add(1_442_695_040_888_963_407);
        links.write((random >> 33) as usize % count);
    });
    let few = fabric.links(0, 1, 4096, 1);
    few.receive();
    watch.time("write_mr of 64 B beside one receive", || few.fill());
    links.receive();
    watch.time("write_mr of 64 B beside many receives", || links.fill());
}

const SIZES: [(&str, usize); 3] = [("4 KiB", 4 << 10), ("64 KiB", 64 << 10), ("1 MiB", 1 << 20)];

/// What is compared with what, and the aims.
fn times(watch: &Stopwatch) -> Vec<Line> {
    let time = |name: &str| watch.figure(name);
    let lock = time("floor/lock and unlock");
    let sketch = lock + time("floor/64 B copy, push and pop");
    let copy = |size: &str| time(&format!("floor/memcpy of {size}"));
    let one = time("write of 64 B, 1 queue pair a node");
    let ns =
        |name: &str, floor_name: &str, floor| Line::ns(name, time(name)).beside(floor_name, floor);
    let own = |name: &str| ns(name, "lock + 64 B copy + push/pop", sketch);
    let alone = |name: &str| ns(name, "one thread", time("write of 64 B"));
    let few = |name: &str| ns(name, "the same, 1 QP a node", one);
    vec![
        own("write of 64 B").times(2.0),
        own("write of 64 B to the same node"),
        own("send and receive of 64 B").times(3.3),
        own("arm, send, event").times(5.0),
        ns(
            "write of 64 B in real time",
            "inline",
            time("write of 64 B"),
        ),
        ns(
            "send and receive of 64 B in real time",
            "inline",
            time("send and receive of 64 B"),
        ),
        ns("empty poll", "lock and unlock", lock).times(0.25),
        ns("empty poll", "atomic load", time("floor/atomic load")),
        ns("write of 4 KiB", "memcpy of 4 KiB", copy("4 KiB")).times(2.5),
        ns("write of 64 KiB", "memcpy of 64 KiB", copy("64 KiB")).times(1.1),
        ns("write of 1 MiB", "memcpy of 1 MiB", copy("1 MiB")).times(1.02),
        alone("two threads, the same nodes"),
        alone("two threads, nodes of their own").times(0.7),
        few("write of 64 B, many queue pairs, one in use").more(30.0),
        few("write of 64 B, many queue pairs in turn"),
        few("write of 64 B, many queue pairs in random order").most(350.0),
        ns(
            "write_mr of 64 B, many queue pairs",
            "the same, 1 QP a node",
            time("write_mr of 64 B, 1 queue pair a node"),
        )
        .more(10.0),
        ns(
            "write_mr of 64 B beside many receives",
            "beside one",
            time("write_mr of 64 B beside one receive"),
        )
        .more(50.0),
    ]
}

fn memory() -> Vec<Line> {
    let bytes = |what, used| Line::new(what, memory::of_a_queue_pair(used), "B");
    vec![
        bytes("memory of an idle RC QP of 16+16 WRs", false).most(1152.0),
        bytes("the same, when both queues have been full", true).most(2048.0),
    ]
}

/// Instructions, without those of the caller.
fn instructions(watch: &Stopwatch) -> Vec<Line> {
    let count = |name: &str| Line::new(name, watch.instructions(name), "instructions");
    vec![
        count("write of 64 B").most(600.0),
        count("send and receive of 64 B").most(1_100.0),
        count("arm, send, event").most(1_500.0),
    ]
}
