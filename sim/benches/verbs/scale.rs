//! The cost of many objects: time and bytes for each, compared with few. Each benchmark runs once,
//! since it takes seconds.

use std::hint::black_box;

use crate::link::Fabric;
use crate::many::Links;
use crate::memory::allocated;
use crate::table::{Line, MISS, NOTHING};
use crate::time;
use crate::unrelated::fastest;

/// Bytes of a cache line.
const LINE: f64 = 64.0;

/// The nodes of a fabric, the queue pairs on two nodes, and the entries of a CQ.
pub(crate) fn lines() -> Vec<Line> {
    let mut lines = nodes(100, 1_000);
    lines.extend(queue_pairs(10_000, 100_000));
    lines.extend(entries(1 << 12, 1 << 22));
    lines
}

/// Runs the same benchmarks with fewer objects, to check that they work.
pub(crate) fn try_out() {
    nodes(2, 20);
    queue_pairs(10, 100);
    entries(1 << 10, 1 << 12);
}

/// Time and bytes for each of `count` objects that `make` creates.
fn each<T>(count: u32, make: impl FnOnce() -> T) -> (f64, f64, T) {
    let (mut nanos, mut made) = (0.0, None);
    let bytes = allocated(|| {
        let start = time::of_thread();
        made = Some(black_box(make()));
        nanos = (time::of_thread() - start).as_nanos() as f64;
    });
    let made = made.expect("it has run");
    let count = f64::from(count);
    (nanos / count, bytes as f64 / count, made)
}

/// Compares with few objects, for which growing tables and caches cost most. The kernel maps memory
/// page by page, which is the largest cost of the last two benchmarks.
fn compared(many: Line, few: f64) -> Line {
    let few = Line::new("each of few", few, many.unit);
    many.against(&few)
}

fn nodes(few: u32, many: u32) -> Vec<Line> {
    let [(few_time, few_bytes, small), (time, bytes, large)] =
        [few, many].map(|count| each(count, || Fabric::new(count)));
    let message = |fabric: &Fabric, to| {
        let link = fabric.link(0, to, 4096);
        fastest(|| link.write(64))
    };
    let [few_message, message] = [message(&small, few - 1), message(&large, many - 1)];
    let node = format!("a node, one of {many}");
    let memory = format!("memory of a node, one of {many}");
    let write = format!("write of 64 B among {many} nodes");
    vec![
        compared(Line::ns(&node, time), few_time).more(MISS),
        compared(Line::new(&memory, bytes, "B"), few_bytes).more(LINE),
        compared(Line::ns(&write, message), few_message).more(NOTHING),
    ]
}

fn queue_pairs(few: u32, many: u32) -> Vec<Line> {
    let fabric = Fabric::new(2);
    let mut links = Links::new(&fabric);
    let (few_time, ..) = each(few, || links.extend(few as usize));
    let (time, ..) = each(many, || links.extend((few + many) as usize));
    let name = format!("two queue pairs made and connected, of {many}");
    vec![compared(Line::ns(&name, time), few_time).more(15.0 * MISS)]
}

fn entries(few: u32, many: u32) -> Vec<Line> {
    let fabric = Fabric::new(2);
    let [(few_time, few_bytes), (time, bytes)] = [few, many].map(|count| {
        let cq = fabric.cq(0, count);
        let (time, bytes, ()) = each(count, || fabric.fill_cq(cq, count));
        fabric.empty_cq(cq, count);
        (time, bytes)
    });
    let entry = format!("completion in a CQ of {many}");
    let memory = format!("memory of a completion in a CQ of {many}");
    vec![
        compared(Line::ns(&entry, time), few_time).more(2.0 * MISS),
        compared(Line::new(&memory, bytes, "B"), few_bytes).more(LINE),
    ]
}
