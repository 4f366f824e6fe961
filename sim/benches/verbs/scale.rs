//! What many objects take: time and bytes for each, beside what few take. Each is done once, since
//! it takes seconds.

use std::hint::black_box;

use crate::link::Fabric;
use crate::many::Links;
use crate::memory::allocated;
use crate::table::Line;
use crate::time;

/// Ratios of many to few above this are more than caches and growing tables. Few are as many as caches
/// do not hold, where that is what counts.
const AIM: f64 = 2.0;

/// Nodes of a fabric, queue pairs on two nodes, entries of a CQ.
pub(crate) fn lines() -> Vec<Line> {
    let mut lines = nodes(10, 1_000);
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

fn line(what: String, many: f64, few: f64) -> Line {
    Line::ns(&what, many)
        .beside(&Line::ns("each of few", few))
        .times(AIM)
}

fn bytes(what: String, many: f64, few: f64) -> Line {
    Line::new(&what, many, "B")
        .beside(&Line::new("each of few", few, "B"))
        .times(AIM)
}

fn nodes(few: u32, many: u32) -> Vec<Line> {
    let [(few_time, few_bytes, small), (time, bytes_each, large)] =
        [few, many].map(|count| each(count, || Fabric::new(count)));
    let message = |fabric: &Fabric, to| {
        let link = fabric.link(0, to, 4096);
        let count = 20_000;
        each(count, || (0..count).for_each(|_| link.write(64))).0
    };
    vec![
        line(format!("a node, one of {many}"), time, few_time),
        bytes(
            format!("memory of a node, one of {many}"),
            bytes_each,
            few_bytes,
        ),
        line(
            format!("write of 64 B among {many} nodes"),
            message(&large, many - 1),
            message(&small, few - 1),
        ),
    ]
}

fn queue_pairs(few: u32, many: u32) -> Vec<Line> {
    let fabric = Fabric::new(2);
    let mut links = Links::new(&fabric);
    let (few_time, ..) = each(few, || links.extend(few as usize));
    let (time, ..) = each(many, || links.extend((few + many) as usize));
    let name = format!("two queue pairs made and connected, of {many}");
    vec![line(name, time, few_time)]
}

fn entries(few: u32, many: u32) -> Vec<Line> {
    let fabric = Fabric::new(2);
    let [(few_time, few_bytes), (time, bytes_each)] = [few, many].map(|count| {
        let cq = fabric.cq(0, count);
        let (time, bytes_each, ()) = each(count, || fabric.fill_cq(cq, count));
        fabric.empty_cq(cq, count);
        (time, bytes_each)
    });
    vec![
        line(format!("completion in a CQ of {many}"), time, few_time),
        bytes(
            format!("memory of a completion in a CQ of {many}"),
            bytes_each,
            few_bytes,
        ),
    ]
}
