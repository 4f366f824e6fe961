//! What many objects take: time and bytes for each, beside what few take. Each is done once, since
//! it takes seconds.

use std::hint::black_box;

use crate::beside::fastest;
use crate::link::Fabric;
use crate::many::Links;
use crate::memory::allocated;
use crate::table::{Line, MISS, NOTHING};
use crate::time;

/// Bytes of a cache line.
const LINE: f64 = 64.0;

/// Nodes of a fabric, queue pairs on two nodes, entries of a CQ.
pub(crate) fn lines() -> Vec<Line> {
    let mut lines = nodes(100, 1_000);
    lines.extend(queue_pairs(10_000, 100_000));
    lines.extend(entries(1 << 12, 1 << 22));
    lines
}

/// The same with fewer, to see that it works.
pub(crate) fn try_out() {
    nodes(2, 20);
    queue_pairs(10, 100);
    entries(1 << 10, 1 << 12);
}

/// Time and bytes for each of `count` things that `make` makes.
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

/// Beside few, where growing tables and caches take the rest. Memory comes from the kernel page by page,
/// which is most of what the last two take.
fn beside(many: Line, few: f64) -> Line {
    let few = Line::new("each of few", few, many.unit);
    many.beside(&few)
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
        beside(Line::ns(&node, time), few_time).more(MISS),
        beside(Line::new(&memory, bytes, "B"), few_bytes).more(LINE),
        beside(Line::ns(&write, message), few_message).more(NOTHING),
    ]
}

fn queue_pairs(few: u32, many: u32) -> Vec<Line> {
    let fabric = Fabric::new(2);
    let mut links = Links::new(&fabric);
    let (few_time, ..) = each(few, || links.extend(few as usize));
    let (time, ..) = each(many, || links.extend((few + many) as usize));
    let name = format!("two queue pairs made and connected, of {many}");
    vec![beside(Line::ns(&name, time), few_time).more(15.0 * MISS)]
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
        beside(Line::ns(&entry, time), few_time).more(2.0 * MISS),
        beside(Line::new(&memory, bytes, "B"), few_bytes).more(LINE),
    ]
}
