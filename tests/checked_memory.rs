//! What a diagnosis says of memory that is the device's, where that is looked at: in each mode, and
//! nothing elsewhere.

mod common;

use std::ptr;

use common::{End, pair, settle};
use verbs_api::{
    Access, Mr, QpAttr, QpAttrMask, QpState, QpType, RcParams, RecvWr, Remote, SendWr, Sge, Verbs,
};
use verbs_sim::{Class, Finding, Mode, Sim, SimConfig};

const LENGTH: usize = 200_000;

/// The program's own memory, registered.
struct Own {
    first: *mut u8,
    mr: Mr,
    lkey: u32,
}

impl Own {
    /// Zeros, which stay until the test program ends.
    #[expect(unsafe_code, reason = "the caller's memory")]
    fn new(end: &End<'_>) -> Self {
        let first = Box::leak(vec![0; LENGTH].into_boxed_slice()).as_mut_ptr();
        // SAFETY: it is there forever, and is accessed only through pointers.
        let mr = unsafe { end.verbs.reg_mr(end.pd, first, LENGTH, Access::LOCAL_WRITE) }.unwrap();
        let lkey = end.verbs.query_mr(mr).unwrap().lkey;
        Self { first, mr, lkey }
    }

    fn sge(&self, length: u32) -> Sge {
        Sge {
            addr: self.first as u64,
            length,
            lkey: self.lkey,
        }
    }

    /// The program changes a byte.
    #[expect(unsafe_code, reason = "the caller's memory")]
    fn change(&self, at: usize) {
        assert!(at < LENGTH);
        // SAFETY: it lies within the memory, to which no reference exists.
        unsafe {
            let byte = self.first.add(at);
            ptr::write_volatile(byte, !ptr::read_volatile(byte));
        }
    }
}

/// The findings about memory, without the remedies.
fn said(sim: &Sim) -> Vec<String> {
    let of_memory = [
        Class::Changed,
        Class::Unmapped,
        Class::DeregisteredEarly,
        Class::Overlaid,
    ];
    let diagnosis = sim.diagnose();
    let all = diagnosis.mistakes.iter();
    let all = all.filter(|finding| of_memory.contains(&finding.class()));
    all.map(in_words).collect()
}

/// Without the place, of which it is only seen that there is one.
fn in_words(finding: &Finding) -> String {
    let site = finding.site.expect("it was called from here").to_string();
    assert!(site.starts_with(file!()), "{site}");
    let text = finding.to_string();
    text.strip_suffix(&format!(" ({site})")).unwrap().to_owned()
}

/// Runs a program in each mode.
fn in_each_mode(program: impl Fn(&Sim), expected: &[&str]) {
    for mode in [Mode::Stepped, Mode::Inline, Mode::RealTime] {
        let config = SimConfig::new().mode(mode);
        let sim = Sim::new(config.clone().check_memory(true));
        program(&sim);
        assert_eq!(said(&sim), expected, "{mode:?}");
        let sim = Sim::new(config);
        program(&sim);
        assert_eq!(said(&sim), [""; 0], "{mode:?}");
    }
}

fn ends(sim: &Sim) -> (End<'_>, End<'_>) {
    (
        End::open(sim, "sim0", 16, LENGTH),
        End::open(sim, "sim1", 16, LENGTH),
    )
}

/// SQ-17, to the last byte; one completion stands for those before it.
#[test]
fn sends_whose_bytes_change_are_found() {
    let program = |sim: &Sim| {
        let (a, b) = ends(sim);
        let (qp, _) = pair((&a, &b), QpType::Rc, 8, &RcParams::default());
        let own = Own::new(&a);
        let remote = b.mem.remote(0);
        let large = [own.sge(LENGTH as u32)];
        let post = |wr| sim.post_send(qp, &[wr]).unwrap();
        let write = |wr_id, list| SendWr::rdma_write(wr_id, list, remote);
        let small = [own.sge(8)];
        post(write(1, &large).unsignaled());
        post(write(2, &small).unsignaled());
        post(write(3, &small));
        // Only of the first.
        own.change(LENGTH - 1);
        settle(sim);
        own.change(0);
        own.change(0);
        assert_eq!(a.drain().len(), 1);
        own.change(0);
        // As it was.
        post(write(4, &small));
        settle(sim);
        a.drain();
    };
    let expected = "sim0: VS-MEM-01: the bytes of send 0x1 of qp 0x2 were changed before its completion was polled";
    in_each_mode(program, &[expected]);
}

/// What may change: bytes of reads, those that a read brings before a fenced write, and those of
/// work that failed.
#[test]
fn bytes_that_may_change_are_let_be() {
    let program = |sim: &Sim| {
        let (a, b) = ends(sim);
        let params = RcParams {
            access: Access::ALL_RDMA,
            ..RcParams::default()
        };
        let (qp, _) = pair((&a, &b), QpType::Rc, 8, &params);
        b.write(0, &[1; 8]);
        let own = Own::new(&a);
        let list = [own.sge(8)];
        let none = Remote {
            addr: b.mem.addr,
            rkey: 0,
        };
        sim.post_send(qp, &[SendWr::rdma_read(2, &list, b.mem.remote(0))])
            .unwrap();
        settle(sim);
        own.change(0);
        a.drain();
        // What a read brings a fenced write takes along.
        let read = SendWr::rdma_read(5, &list, b.mem.remote(0));
        let write = SendWr::rdma_write(6, &list, b.mem.remote(8)).fence();
        sim.post_send(qp, &[read, write]).unwrap();
        settle(sim);
        assert_eq!(a.drain().len(), 2);
        for wr_id in [3, 4] {
            sim.post_send(qp, &[SendWr::rdma_write(wr_id, &list, none)])
                .unwrap();
        }
        settle(sim);
        own.change(0);
        assert_eq!(a.drain().len(), 2);
    };
    in_each_mode(program, &[]);
}

/// MR-06: until the completion is polled, and not after.
#[test]
fn regions_that_are_deregistered_too_early_are_found() {
    let program = |sim: &Sim| {
        let (a, b) = ends(sim);
        let (qp, to) = pair((&a, &b), QpType::Rc, 8, &RcParams::default());
        for early in [true, false] {
            let (own, target) = (Own::new(&a), Own::new(&b));
            let receive = [target.sge(8)];
            sim.post_recv(to, &[RecvWr::new(5, &receive)]).unwrap();
            sim.post_send(qp, &[SendWr::send(6, &[own.sge(8)])])
                .unwrap();
            settle(sim);
            if !early {
                a.drain();
                b.drain();
            }
            sim.dereg_mr(own.mr).unwrap();
            sim.dereg_mr(target.mr).unwrap();
            a.drain();
            b.drain();
        }
    };
    let expected = |node, mr, work| {
        format!(
            "sim{node}: VS-MEM-03: hint: {mr} was deregistered before the completion of {work} of qp 0x2 was polled"
        )
    };
    let expected = [
        expected(0, "mr#1", "send 0x6"),
        expected(1, "mr#1", "receive 0x5"),
    ];
    let sim = Sim::new(SimConfig::new().check_memory(true));
    program(&sim);
    let said = said(&sim);
    assert_eq!(said.len(), 2, "{said:?}");
    for (said, expected) in said.iter().zip(&expected) {
        let posted = format!("{expected}, which was posted at {}:", file!());
        assert!(said.starts_with(&posted), "{said}");
    }
    let sim = Sim::new(SimConfig::new());
    program(&sim);
    assert!(self::said(&sim).is_empty());
}

/// SQ-17: by the bytes that both messages have, until the first one is polled.
#[test]
fn messages_that_are_placed_over_unpolled_ones_are_found() {
    // The place of the second receive, what is sent, and whether the first one is polled before.
    let cases = [
        (7, Some(8), false, true),
        (8, Some(8), false, false),
        (4, Some(4), false, false),
        (0, Some(0), false, false),
        // A write with immediate data places nothing in a receive.
        (0, None, false, false),
        (0, Some(8), true, false),
    ];
    for (offset, length, is_polled, is_found) in cases {
        let sim = Sim::new(SimConfig::new().check_memory(true));
        let (a, b) = ends(&sim);
        let params = RcParams {
            access: Access::ALL_RDMA,
            ..RcParams::default()
        };
        let (qp, to) = pair((&a, &b), QpType::Rc, 8, &params);
        for (wr_id, offset) in [(1, 0), (2, offset)] {
            let list = [b.mem.sge(offset, 8)];
            sim.post_recv(to, &[RecvWr::new(wr_id, &list)]).unwrap();
            match length {
                Some(length) => a.send(qp, wr_id, 0, length),
                None => {
                    let list = [a.mem.sge(0, 8)];
                    let wr = SendWr::rdma_write_with_imm(wr_id, &list, b.mem.remote(64), [0; 4]);
                    sim.post_send(qp, &[wr]).unwrap();
                }
            }
            settle(&sim);
            if is_polled {
                b.drain();
            }
        }
        let expected = "sim1: VS-MEM-04: hint: the message of receive 0x2 of qp 0x2 was placed over that of receive 0x1, whose completion was not polled, posted at ";
        let said = said(&sim);
        let case = (offset, length, is_polled);
        assert_eq!(said.len(), usize::from(is_found), "{case:?}: {said:?}");
        assert!(
            said.iter().all(|line| line.starts_with(expected)),
            "{said:?}"
        );
    }
}

/// QP-FLUSH-01: what was flushed touches no memory, whether or not the program has polled that.
#[test]
fn regions_of_flushed_work_can_be_deregistered() {
    let sim = Sim::new(SimConfig::new().check_memory(true));
    let (a, b) = ends(&sim);
    let (qp, _) = pair((&a, &b), QpType::Rc, 8, &RcParams::default());
    let own = Own::new(&a);
    sim.post_recv(qp, &[RecvWr::new(5, &[own.sge(8)])]).unwrap();
    let error = QpAttr {
        qp_state: QpState::Err,
        ..QpAttr::default()
    };
    sim.modify_qp(qp, &error, QpAttrMask::STATE).unwrap();
    sim.dereg_mr(own.mr).unwrap();
    assert!(said(&sim).is_empty());
}
