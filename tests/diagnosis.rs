//! What the simulator says of a program that makes mistakes, and that it says nothing of one without.

mod common;

use common::{End, pair, settle, take_events};
use verbs_api::lab::{Fault, Lab};
use verbs_api::{
    AhAttr, Arm, Mtu, MwType, Qp, QpType, RcParams, Remote, SendWr, Verbs, Wait, WcStatus, connect,
};
use verbs_sim::{Sim, SimConfig};

const QKEY: u32 = 0x1111;

fn ends(sim: &Sim) -> (End<'_>, End<'_>) {
    let end = |name| End::open(sim, name, 4, 4096);
    (end("sim0"), end("sim1"))
}

/// Connected, and a message has been sent and received.
fn connected(sim: &Sim) -> (End<'_>, End<'_>, Qp, Qp) {
    let (a, b) = ends(sim);
    let (qp_a, qp_b) = pair((&a, &b), QpType::Rc, 4, &RcParams::default());
    b.recv(qp_b, 1, 0, 64);
    a.send(qp_a, 1, 0, 64);
    settle(sim);
    assert_eq!((a.drain().len(), b.drain().len()), (1, 1));
    (a, b, qp_a, qp_b)
}

/// A QP of `a` with a path MTU of 1024 bytes; that of its peer is 256.
fn apart(a: &End<'_>, b: &End<'_>, qp_type: QpType) -> Qp {
    let (qp, peer) = (a.qp(qp_type, 4), b.qp(qp_type, 4));
    for (qp, of, path_mtu) in [(qp, peer, Mtu::Mtu1024), (peer, qp, Mtu::Mtu256)] {
        let params = RcParams {
            path_mtu,
            ..RcParams::default()
        };
        let peer = connect::endpoint(a.verbs, of, &params).unwrap();
        connect::to_endpoint(a.verbs, qp, &peer, &params).unwrap();
    }
    qp
}

#[test]
fn a_program_that_ends_well_is_told_nothing() {
    let sim = Sim::new(SimConfig::new());
    let (a, b, qp_a, qp_b) = connected(&sim);
    sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
    b.recv(qp_b, 2, 0, 64);
    a.send(qp_a, 2, 0, 64);
    settle(&sim);
    assert_eq!(take_events(&sim, b.channel), [b.cq]);
    b.drain();
    a.drain();
    for (end, qp) in [(a, qp_a), (b, qp_b)] {
        sim.destroy_qp(qp, Wait::Poll).unwrap();
        sim.destroy_cq(end.cq, Wait::Poll).unwrap();
        sim.destroy_comp_channel(end.channel).unwrap();
        sim.dereg_mr(end.mr).unwrap();
        sim.dealloc_pd(end.pd).unwrap();
        sim.close_device(end.context).unwrap();
    }
    assert!(sim.diagnose().is_empty(), "{}", sim.diagnose());
}

/// What a program does wrong, the program, and what is found.
type Case = (&'static str, fn(&Sim), &'static [&'static str]);

/// What is found in each program; what is merely still there is left out.
#[test]
fn mistakes_are_named_with_their_cause() {
    let cases: [Case; 12] = [
        (
            "armed after the completion came (CQ-ARM)",
            |sim| {
                let (a, b, qp_a, qp_b) = connected(sim);
                b.recv(qp_b, 2, 0, 64);
                a.send(qp_a, 2, 0, 64);
                settle(sim);
                sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
                sim.req_notify_cq(a.cq, Arm::SOLICITED).unwrap();
            },
            &[
                "sim0: 1 completion of cq#0 not polled",
                "sim1: cq#0 is armed next, and 1 completion waits in it from before, of which no \
                 event tells: poll once more after ibv_req_notify_cq",
            ],
        ),
        (
            "an event is there, and nobody reads it",
            |sim| {
                let (a, b, qp_a, qp_b) = connected(sim);
                sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
                b.recv(qp_b, 2, 0, 64);
                a.send(qp_a, 2, 0, 64);
                settle(sim);
                sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
                a.drain();
            },
            &[
                "sim1: 1 completion of cq#0 not polled",
                "sim1: 1 event of channel#0 not read",
            ],
        ),
        (
            "no receive is posted (RNR)",
            |sim| {
                let (a, b) = ends(sim);
                let once = RcParams {
                    rnr_retry: 1,
                    ..RcParams::default()
                };
                let (qp_a, _) = pair((&a, &b), QpType::Rc, 4, &once);
                a.send(qp_a, 7, 0, 64);
                settle(sim);
                a.drain();
            },
            &[
                "sim0: send 0x7 of qp 0x2 failed with RNR_RETRY_EXC_ERR: its peer had no receive \
                 posted",
                "sim1: 2 packets from qp 0x2 of sim0 for qp 0x2 not taken: no receive is posted",
            ],
        ),
        (
            "a datagram with another Q_Key (UD-06)",
            |sim| {
                let (a, b) = ends(sim);
                let (from, to) = (a.qp(QpType::Ud, 4), b.qp(QpType::Ud, 4));
                connect::ud_to_rts(sim, from, 1, QKEY).unwrap();
                connect::ud_to_rts(sim, to, 1, QKEY + 1).unwrap();
                let gid = sim.query_gid(b.context, 1, 0).unwrap();
                let attr = AhAttr::global(1, 0, gid);
                let ah = sim.create_ah(a.pd, &attr).unwrap();
                let list = [a.mem.sge(0, 8)];
                let number = sim.qp_num(to).unwrap();
                a.post(from, SendWr::send(1, &list).to(ah, number, QKEY));
                settle(sim);
                a.drain();
            },
            &["sim1: 1 packet from qp 0x2 of sim0 for qp 0x2 not taken: the Q_Key does not match"],
        ),
        (
            "a read of too much (RDMA-03)",
            |sim| {
                let (a, b, qp_a, _) = connected(sim);
                let remote = Remote {
                    addr: b.mem.addr + 4000,
                    rkey: b.mem.rkey,
                };
                let list = [a.mem.sge(0, 128)];
                a.post(qp_a, SendWr::rdma_read(9, &list, remote));
                settle(sim);
                a.drain();
            },
            &[
                "sim0: send 0x9 of qp 0x2 failed with REM_ACCESS_ERR: at sim1, 128 bytes from 0xfa0 \
               on are not in mr#0, which has 4096",
                "sim1: 1 event QP_ACCESS_ERR of qp 0x2 not read",
            ],
        ),
        (
            "a write between path MTUs that differ (RQ-14)",
            |sim| {
                let (a, b) = ends(sim);
                let qp = apart(&a, &b, QpType::Rc);
                let list = [a.mem.sge(0, 1000)];
                a.post(qp, SendWr::rdma_write(4, &list, b.mem.remote(0)));
                settle(sim);
                a.drain();
            },
            &[
                "sim0: send 0x4 of qp 0x2 failed with REM_INV_REQ_ERR: at sim1, the message was cut \
                 for another path MTU than 256 bytes",
                "sim1: 1 event QP_REQ_ERR of qp 0x2 not read",
            ],
        ),
        (
            "a read between path MTUs that differ (RDMA-28)",
            |sim| {
                let (a, b) = ends(sim);
                let qp = apart(&a, &b, QpType::Rc);
                let list = [a.mem.sge(0, 1000)];
                a.post(qp, SendWr::rdma_read(4, &list, b.mem.remote(0)));
                settle(sim);
                a.drain();
            },
            &[
                "sim0: send 0x4 of qp 0x2 failed with LOC_LEN_ERR: the data were cut for another \
                 path MTU than 1024 bytes",
                "sim0: 3 packets from qp 0x2 of sim1 for qp 0x2 not taken: the qp is not ready to \
                 receive",
            ],
        ),
        (
            "a message of UC between path MTUs that differ (UC-10)",
            |sim| {
                let (a, b) = ends(sim);
                let qp = apart(&a, &b, QpType::Uc);
                a.send(qp, 4, 0, 1000);
                settle(sim);
                a.drain();
            },
            &[
                "sim1: 1 packet from qp 0x2 of sim0 for qp 0x2 not taken: the message was cut for \
                 another path MTU",
            ],
        ),
        (
            "a key of a window that is bound to nothing (MW-01)",
            |sim| {
                let (a, b, qp_a, _) = connected(sim);
                let mw = sim.alloc_mw(b.pd, MwType::Type1).unwrap();
                let (addr, rkey) = (b.mem.addr, sim.query_mw(mw).unwrap().rkey);
                let list = [a.mem.sge(0, 8)];
                a.post(qp_a, SendWr::rdma_write(3, &list, Remote { addr, rkey }));
                settle(sim);
                a.drain();
                sim.dealloc_mw(mw).unwrap();
            },
            &[
                "sim0: send 0x3 of qp 0x2 failed with REM_ACCESS_ERR: at sim1, no window of rkey \
               0xc0000101 opens that",
                "sim1: 1 event QP_ACCESS_ERR of qp 0x2 not read",
            ],
        ),
        (
            "a CQ of the receiver overruns (CQ-OVR-04)",
            |sim| {
                let (a, b) = ends(sim);
                let (qp_a, qp_b) = pair((&a, &b), QpType::Rc, 16, &RcParams::default());
                for wr_id in 2..7 {
                    b.recv(qp_b, wr_id, 0, 64);
                    a.send(qp_a, wr_id, 0, 64);
                    settle(sim);
                    a.drain();
                }
            },
            &[
                "sim0: send 0x6 of qp 0x2 failed with REM_OP_ERR: at sim1, cq#0, where its receive \
                 completes, has overrun: the completion is lost",
                "sim1: cq#0, of 4 entries, has overrun: 1 completion was lost",
                "sim1: 4 completions of cq#0 not polled",
                "sim1: 1 event CQ_ERR of cq#0 not read",
                "sim1: 1 event QP_FATAL of qp 0x2 not read",
            ],
        ),
        (
            "a fault rule",
            |sim| {
                let (a, b, qp_a, qp_b) = connected(sim);
                sim.inject(Fault::complete(WcStatus::LocProtErr).node(0))
                    .unwrap();
                b.recv(qp_b, 2, 0, 64);
                a.send(qp_a, 2, 0, 64);
                settle(sim);
                a.drain();
                b.drain();
            },
            &["sim0: send 0x2 of qp 0x2 failed with LOC_PROT_ERR: a fault rule wants it"],
        ),
        (
            "a device is closed with what it has (DEV-03)",
            |sim| {
                let context = sim.open_device("sim1").unwrap();
                for _ in 0..11 {
                    sim.alloc_pd(context).unwrap();
                }
                sim.close_device(context).unwrap();
            },
            &[
                "sim1: not destroyed before the context was closed: pd#0, pd#1, pd#2, pd#3, pd#4, \
               pd#5, pd#6, pd#7, and 3 more",
            ],
        ),
    ];
    for (what, program, expected) in cases {
        let sim = Sim::new(SimConfig::new());
        program(&sim);
        let diagnosis = sim.diagnose().to_string();
        let is_told = |line: &&str| {
            !line.starts_with("help: ")
                && !line.contains(": not destroyed: ")
                && !line.ends_with(" not closed")
        };
        let found: Vec<_> = diagnosis.lines().filter(is_told).collect();
        for l in &found {
            println!("    {what}: {l}");
        }
    }
}
