//! Bytes that posted work names are the device's until its completion is polled, and no others are.

use std::ops::Range;

use verbs_api::{
    Access, CqInit, ErrorKind, MrInit, MrMemory, Qp, QpAttr, QpAttrMask, QpInit, QpState, QpType,
    RcParams, RecvWr, SendWr, Sge, Verbs, Wc,
};
use verbs_sim::{Sim, SimConfig};

const BYTES: u64 = 4096;
const STEPS: u32 = if cfg!(miri) { 60 } else { 3_000 };

/// A linear congruential generator (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// A few bytes, or now and then many.
    fn range(&mut self) -> Range<u64> {
        let most = if self.below(8) == 0 { BYTES } else { 64 };
        let start = self.below(BYTES);
        start..start + self.below(most.min(BYTES - start)) + 1
    }
}

/// What has been posted and not polled: who writes it, and where.
#[derive(Default)]
struct Posted {
    sends: Vec<Range<u64>>,
    receives: Vec<Range<u64>>,
    /// So many receives have a message.
    messages: usize,
}

fn overlap(all: &[Range<u64>], with: &Range<u64>) -> bool {
    let over = |range: &Range<u64>| range.start < with.end && with.start < range.end;
    all.iter().any(over)
}

/// SQ-17: sends and receives, through two regions that share memory, over resets.
#[test]
fn bytes_are_the_devices_while_work_names_them_and_no_longer() {
    for seed in 0..4 {
        let mut random = Random(seed);
        let sim = Sim::new(SimConfig::new());
        let context = sim.open_device("sim0").unwrap();
        let pd = sim.alloc_pd(context).unwrap();
        let cq = sim.create_cq(context, &CqInit::new(256)).unwrap();
        let make = || sim.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq)).unwrap();
        let [qp, peer]: [Qp; 2] = [(); 2].map(|()| make());
        let connect = || sim.connect_rc(qp, peer, &RcParams::default()).unwrap();
        connect();
        let rights = Access::ALL_RDMA;
        let mr = sim.alloc_mr(pd, BYTES as usize, rights).unwrap();
        // In some runs a second region shows the same memory at other addresses.
        let shown = (seed % 2 == 1).then(|| {
            let init = MrInit::new(BYTES as usize, rights).memory(MrMemory::Of(mr, 0));
            sim.query_mr(sim.alloc_mr_as(pd, &init).unwrap()).unwrap()
        });
        let first = sim.query_mr(mr).unwrap();
        let own = sim.alloc_mr(pd, BYTES as usize, rights).unwrap();
        let target = sim.query_mr(own).unwrap().remote(0);
        let entry = |range: &Range<u64>, by_second: bool| -> Sge {
            let attr = shown.filter(|_| by_second).unwrap_or(first);
            attr.sge(range.start, (range.end - range.start) as u32)
        };
        let mut posted = Posted::default();
        for _ in 0..STEPS {
            let by_second = random.below(2) == 0;
            match random.below(12) {
                0..4 if posted.receives.len() < 16 => {
                    let range = random.range();
                    let list = [entry(&range, by_second)];
                    sim.post_recv(peer, &[RecvWr::new(0, &list)]).unwrap();
                    posted.receives.push(range);
                }
                4..6 if posted.sends.len() < 16 => {
                    let range = random.range();
                    let list = [entry(&range, by_second)];
                    let write = SendWr::rdma_write(1, &list, target);
                    sim.post_send(qp, &[write]).unwrap();
                    posted.sends.push(range);
                }
                6 if posted.messages < posted.receives.len() && posted.sends.len() < 16 => {
                    sim.post_send(qp, &[SendWr::send(1, &[])]).unwrap();
                    posted.sends.push(0..0);
                    posted.messages += 1;
                }
                7..9 => {
                    sim.lab().unwrap().settle().unwrap();
                    let mut wc = [Wc::default()];
                    if sim.poll_cq(cq, &mut wc).unwrap() == 1 {
                        match wc[0].wr_id {
                            0 => {
                                posted.receives.remove(0);
                                posted.messages -= 1;
                            }
                            _ => drop(posted.sends.remove(0)),
                        }
                    }
                }
                9 if random.below(20) == 0 => {
                    for qp in [qp, peer] {
                        let reset = QpAttr {
                            qp_state: QpState::Reset,
                            ..QpAttr::default()
                        };
                        sim.modify_qp(qp, &reset, QpAttrMask::STATE).unwrap();
                    }
                    while sim.poll_cq(cq, &mut [Wc::default()]).unwrap() == 1 {}
                    connect();
                    posted = Posted::default();
                }
                _ => {}
            }
            let range = random.range();
            let mut bytes = vec![0; (range.end - range.start) as usize];
            let is_written = overlap(&posted.receives, &range);
            let is_used = is_written || overlap(&posted.sends, &range);
            let read = sim.read_mr(mr, range.start as usize, &mut bytes);
            let written = sim.write_mr(mr, range.start as usize, &bytes);
            for (result, is_refused) in [(read, is_written), (written, is_used)] {
                let kind = result.err().map(|error| error.kind());
                assert_eq!(kind, is_refused.then_some(ErrorKind::Usage), "{range:?}");
            }
        }
    }
}
