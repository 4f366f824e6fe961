//! Bytes that posted work names belong to the device until its completion is polled, and no other
//! bytes do.

use std::ops::Range;

use verbs_api::behavior::Behavior;
use verbs_api::{
    Access, Cq, CqInit, ErrorKind, Mr, MrAttr, MrChange, MrInit, MrMemory, Pd, Qp, QpAttr,
    QpAttrMask, QpCap, QpInit, QpState, QpType, RcParams, RecvWr, SendWr, Sge, SrqInit, Verbs,
    Wait, Wc,
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

    /// A few bytes, or sometimes many.
    fn range(&mut self) -> Range<u64> {
        let most = if self.below(8) == 0 { BYTES } else { 64 };
        let start = self.below(BYTES);
        start..start + self.below(most.min(BYTES - start)) + 1
    }
}

/// The posted work that was not polled: what it writes, and where.
#[derive(Default)]
struct Posted {
    sends: Vec<Range<u64>>,
    receives: Vec<Range<u64>>,
    /// The number of receives that have a message.
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
        // In some runs a second region has the same memory at other addresses.
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

/// A region of `BYTES` in a domain that is not the first of its device, with a pair of queue pairs
/// and their CQ.
struct Desk {
    sim: Sim,
    pd: Pd,
    /// Another domain of the device, with a queue pair.
    other: Pd,
    cq: Cq,
    mr: Mr,
    mem: MrAttr,
    qp: Qp,
    peer: Qp,
    stranger: Qp,
}

impl Desk {
    fn new(config: SimConfig) -> Self {
        let sim = Sim::new(config);
        let context = sim.open_device("sim0").unwrap();
        let [other, pd] = [(); 2].map(|()| sim.alloc_pd(context).unwrap());
        let cq = sim.create_cq(context, &CqInit::new(64)).unwrap();
        let cap = QpCap {
            max_recv_sge: 8,
            ..QpCap::default()
        };
        let init = QpInit::new(QpType::Rc, cq, cq).cap(cap);
        let make = |pd| sim.create_qp(pd, &init).unwrap();
        let [qp, peer, stranger, other_peer] = [pd, pd, other, other].map(make);
        for (one, two) in [(qp, peer), (stranger, other_peer)] {
            sim.connect_rc(one, two, &RcParams::default()).unwrap();
        }
        let mr = sim.alloc_mr(pd, BYTES as usize, Access::ALL_RDMA).unwrap();
        let mem = sim.query_mr(mr).unwrap();
        Self {
            sim,
            pd,
            other,
            cq,
            mr,
            mem,
            qp,
            peer,
            stranger,
        }
    }

    fn recv(&self, qp: Qp, list: &[Sge]) {
        self.sim.post_recv(qp, &[RecvWr::new(0, list)]).unwrap();
    }

    /// Sends a message to the peer's next receive, and polls both completions.
    fn deliver(&self) {
        self.sim
            .post_send(self.qp, &[SendWr::send(1, &[])])
            .unwrap();
        self.sim.lab().unwrap().settle().unwrap();
        assert_eq!(self.sim.poll_cq(self.cq, &mut [Wc::default(); 3]), Ok(2));
    }

    /// Whether the program may read and write these bytes.
    fn is_free(&self, range: Range<usize>) -> bool {
        let mut bytes = vec![0; range.len()];
        let read = self.sim.read_mr(self.mr, range.start, &mut bytes);
        let written = self.sim.write_mr(self.mr, range.start, &bytes);
        for result in [&read, &written] {
            if let Err(error) = result {
                assert_eq!(error.kind(), ErrorKind::Usage);
            }
        }
        // All work here consists of receives.
        assert_eq!(read.is_ok(), written.is_ok(), "{range:?}");
        read.is_ok()
    }
}

/// SQ-17: bytes that several receives name are free when the last of them has been polled.
#[test]
fn bytes_that_several_receives_name_are_free_after_the_last() {
    let desk = Desk::new(SimConfig::new());
    let list = [desk.mem.sge(16, 8)];
    for count in 1..5 {
        for _ in 0..count {
            desk.recv(desk.peer, &list);
        }
        for _ in 0..count {
            for _ in 0..2 {
                assert!(!desk.is_free(16..24));
            }
            desk.deliver();
        }
        assert!(desk.is_free(16..24), "{count} receives");
    }
}

/// PD-02: a receive of another domain cannot reach the bytes, regardless of its entries.
#[test]
fn work_of_another_domain_owns_nothing() {
    let desk = Desk::new(SimConfig::new());
    let list = [desk.mem.sge(16, 8)];
    desk.recv(desk.stranger, &list);
    assert!(desk.is_free(16..24));
    // Between two receives with the same bytes, and after them.
    for _ in 0..2 {
        desk.recv(desk.peer, &list);
        desk.recv(desk.stranger, &list);
        assert!(!desk.is_free(16..24));
        desk.deliver();
        assert!(desk.is_free(16..24));
    }
    // While the domain has work elsewhere, too.
    desk.recv(desk.peer, &[desk.mem.sge(100, 8)]);
    assert!(desk.is_free(16..24));
    desk.recv(desk.peer, &list);
    desk.recv(desk.stranger, &list);
    desk.recv(desk.stranger, &list);
    assert!(!desk.is_free(16..24));
}

/// Each entry of a work request owns its bytes if it is valid for the region, and no others.
#[test]
fn each_entry_owns_its_bytes_and_no_others() {
    let desk = Desk::new(SimConfig::new());
    let of = |length| desk.sim.alloc_mr(desk.pd, length, Access::ALL_RDMA);
    let elsewhere = desk.sim.query_mr(of(64).unwrap()).unwrap();
    // It begins before the region, and so names none of its bytes.
    let before = Sge {
        addr: desk.mem.addr - 8,
        ..desk.mem.sge(0, 64)
    };
    desk.recv(desk.peer, &[before]);
    assert!(desk.is_free(0..8));
    // Around the bytes that the test accesses.
    desk.recv(
        desk.peer,
        &[
            before,
            desk.mem.sge(0, 4),
            desk.mem.sge(8, 4),
            desk.mem.sge(6, 0),
            elsewhere.sge(4, 4),
        ],
    );
    assert!(desk.is_free(4..8));
    assert!(!desk.is_free(3..8));
    assert!(!desk.is_free(4..9));
    // One byte is enough, and so is one of several entries.
    desk.recv(desk.peer, &[elsewhere.sge(0, 8), desk.mem.sge(100, 1)]);
    assert!(!desk.is_free(100..101));
    assert!(desk.is_free(99..100) && desk.is_free(101..102));
}

/// Receives in an SRQ own their bytes over the life of several SRQs, next to a receive of a queue
/// pair in the same domain.
#[test]
fn receives_of_an_srq_own_their_bytes() {
    let desk = Desk::new(SimConfig::new());
    desk.recv(desk.peer, &[desk.mem.sge(64, 8)]);
    let list = [desk.mem.sge(16, 8)];
    for _ in 0..3 {
        let srq = desk.sim.create_srq(desk.pd, &SrqInit::new(4)).unwrap();
        assert!(desk.is_free(16..24));
        desk.sim
            .post_srq_recv(srq, &[RecvWr::new(0, &list)])
            .unwrap();
        assert!(!desk.is_free(16..24));
        assert!(desk.is_free(0..16) && desk.is_free(24..32));
        desk.sim.destroy_srq(srq, Wait::Poll).unwrap();
        assert!(desk.is_free(16..24));
        assert!(!desk.is_free(64..72));
    }
}

/// SRQ-12: the device decides whose domain counts for a receive of an SRQ.
#[test]
fn domain_of_an_srq_counts_as_declared() {
    for checks_qp in [false, true] {
        let mut behavior = Behavior::SPEC;
        behavior.srq_checks_qp_pd = checks_qp;
        let desk = Desk::new(SimConfig::new().behavior(behavior));
        let srq = desk.sim.create_srq(desk.other, &SrqInit::new(4)).unwrap();
        let list = [desk.mem.sge(16, 8)];
        desk.sim
            .post_srq_recv(srq, &[RecvWr::new(0, &list)])
            .unwrap();
        assert_eq!(desk.is_free(16..24), !checks_qp);
    }
}

/// MR-08: the memory of a region is not changed while posted work names a byte of it.
#[test]
fn memory_that_work_names_is_not_exchanged() {
    let desk = Desk::new(SimConfig::new());
    let new_memory = MrChange {
        length: Some(64),
        ..MrChange::default()
    };
    let new_rights = MrChange {
        access: Some(Access::LOCAL_WRITE),
        ..MrChange::default()
    };
    let change = |change| {
        let done = desk.sim.rereg_mr(desk.mr, change);
        done.map_err(|refused| refused.error.kind())
    };
    // Their first byte, the last, and by work that only reads.
    let first = [desk.mem.sge(0, 1)];
    let last = [desk.mem.sge(BYTES - 1, 1)];
    for list in [&first, &last] {
        desk.recv(desk.peer, list);
        assert_eq!(change(&new_memory), Err(ErrorKind::Busy));
        assert_eq!(change(&new_rights), Ok(()));
        desk.deliver();
    }
    let own = desk.sim.alloc_mr(desk.pd, 64, Access::ALL_RDMA).unwrap();
    let target = desk.sim.query_mr(own).unwrap().remote(0);
    let write = SendWr::rdma_write(1, &first, target);
    desk.sim.post_send(desk.qp, &[write]).unwrap();
    assert_eq!(change(&new_memory), Err(ErrorKind::Busy));
    assert_eq!(desk.sim.query_mr(desk.mr).unwrap().length, BYTES);
    desk.sim.lab().unwrap().settle().unwrap();
    assert_eq!(desk.sim.poll_cq(desk.cq, &mut [Wc::default()]), Ok(1));
    assert_eq!(change(&new_memory), Ok(()));
    assert_eq!(desk.sim.query_mr(desk.mr).unwrap().length, 64);
}
