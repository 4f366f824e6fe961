//! Many queue pairs between two nodes.

use std::hint::black_box;

use verbs_api::{Qp, RecvWr, Verbs};

use crate::link::{Fabric, Link};
use crate::stopwatch::Stopwatch;
use crate::table::{Line, MISS, NOTHING};

/// The number of queue pairs of each node.
const MANY: usize = 100_000;
/// The number of queue pairs where each benchmark runs only once, to check that it works.
const A_FEW: usize = 2_000;
/// Queue pairs of a busy program.
const SOME: usize = 1_000;

/// Many links between the same two ends.
#[derive(Clone)]
pub(crate) struct Links<'f> {
    fabric: &'f Fabric,
    first: Link<'f>,
    qps: Vec<Qp>,
}

pub(crate) fn lines(watch: &mut Stopwatch) -> Vec<Line> {
    let count = if watch.measures() { MANY } else { A_FEW };
    let fabric = Fabric::new(2);
    let mut links = Links::new(&fabric);
    let one = watch.time("write of 64 B, 1 queue pair a node", || links.write(0));
    let fill_one = watch.time("write_mr of 64 B, 1 queue pair a node", || links.fill());
    links.extend(SOME);
    let mut next = 0;
    let name = "write of 64 B, 1,000 queue pairs in turn";
    let some = watch.operation(name, &links.and_no_op(), |links| {
        next = (next + 1) % SOME;
        links.write(next);
    });
    links.extend(count);
    // The first use of each link costs more.
    (0..count).for_each(|number| links.write(number));
    let same = watch.time("write of 64 B, many queue pairs, one in use", || {
        links.write(black_box(count / 2))
    });
    let fill = watch.time("write_mr of 64 B, many queue pairs", || links.fill());
    let mut next = 0;
    let in_turn = watch.time("write of 64 B, many queue pairs in turn", || {
        next = (next + 1) % count;
        links.write(next);
    });
    let mut random = 1_u64;
    let name = "write of 64 B, many queue pairs in random order";
    let at_random = watch.operation(name, &links.and_no_op(), |links| {
        // A linear congruential generator (Knuth's MMIX): cheap, and random enough for caches.
        random = random.wrapping_mul(6_364_136_223_846_793_005);
        random = random.wrapping_add(1_442_695_040_888_963_407);
        links.write((random >> 33) as usize % count);
    });
    let misses = watch.misses(name, &at_random);
    let few = Links::new(&fabric);
    few.receive();
    let few = watch.time("write_mr of 64 B with one receive", || few.fill());
    links.receive();
    let many = watch.time("write_mr of 64 B with many receives", || links.fill());
    vec![
        some.against(&one),
        same.against(&one).more(NOTHING),
        in_turn.against(&one),
        at_random.against(&one).most(350.0),
        misses.most(8.0),
        fill.against(&fill_one).more(NOTHING),
        many.against(&few).more(MISS),
    ]
}

impl<'f> Links<'f> {
    pub(crate) fn new(fabric: &'f Fabric) -> Self {
        let first = fabric.link(0, 1, 4096);
        let qps = vec![first.qp];
        Self { fabric, first, qps }
    }

    /// Adds links until there are `count`.
    pub(crate) fn extend(&mut self, count: usize) {
        let more = (self.qps.len()..count).map(|_| self.fabric.another(&self.first).qp);
        self.qps.extend(more);
    }

    fn and_no_op(&self) -> [Self; 2] {
        self.first.and_no_op().map(|first| Self {
            first,
            ..self.clone()
        })
    }

    /// An RDMA Write of 64 bytes on the link with this number, and a poll of its completion.
    fn write(&self, number: usize) {
        let qp = self.qps[number];
        Link { qp, ..self.first }.write(64);
    }

    /// Posts a receive on each link, after the first 64 bytes of the program's memory.
    fn receive(&self) {
        let mem = self.first.near.mem;
        for (offset, qp) in (0..4000).cycle().zip(&self.qps) {
            let list = [mem.sge(64 + offset, 16)];
            let wr = RecvWr::new(1, &list);
            self.fabric.sim.post_recv(*qp, &[wr]).unwrap();
        }
    }

    /// Writes 64 bytes of the program's own memory.
    fn fill(&self) {
        let mr = self.first.near.mr;
        let bytes = black_box(&[1; 64]);
        self.fabric.sim.write_mr(mr, 0, bytes).unwrap();
    }
}
