//! Programs that miss an event, wait for one that cannot come, or give up work that is under way,
//! and the findings.

use verbs_api::cm::{Cm, CmEventType, PortSpace};
use verbs_api::{
    QpCap, QpInit, QpModify, QpState, QpType, RcParams, RecvWr, SrqAttr, SrqAttrMask, SrqInit,
    Verbs, Wait, connect,
};
use verbs_sim::Sim;

use super::cases::Case;
use super::common::settle;
use super::{connected, ends};

pub(super) const CASES: &[Case] = &[
    (
        "does not read that an SRQ reaches its limit, and a message finds no receive (SRQ-05)",
        |sim| send_to_srq(sim, 3),
        &[
            "sim0: VS-RNR-01: send 0x2 of qp 0x2 failed with RNR_RETRY_EXC_ERR: its peer had no receive posted",
            "sim1: VS-EVT-05: hint: 1 event SRQ_LIMIT_REACHED of srq#0 not read (here)",
        ],
    ),
    (
        "does not read that an SRQ reaches its limit, and ends before it is empty: no mistake",
        |sim| send_to_srq(sim, 2),
        &[],
    ),
    (
        "waits for LAST_WQE_REACHED of a queue pair without an SRQ (ASYNC-18)",
        |sim| {
            let (_, b, _, qp_b) = connected(sim);
            b.fail(qp_b);
            sim.get_async_event(b.context, Wait::Forever).unwrap_err();
        },
        &[
            "sim1: VS-WAIT-01: hint: a thread waits in ibv_get_async_event for an asynchronous event, for 0.0 s now: no qp has an SRQ, so LAST_WQE_REACHED does not come; no qp was asked for SQ_DRAINED (en_sqd_async_notify); no SRQ has a limit, so SRQ_LIMIT_REACHED does not come (here)",
        ],
    ),
    (
        "does not read the events of rdma_cm, and waits for something else (CM-40)",
        |sim| {
            leave_cm_event(sim);
            let (_, b, ..) = connected(sim);
            sim.get_cq_event(b.channel, Wait::Forever).unwrap_err();
        },
        &[
            "sim1: VS-ARM-03: a thread waits in ibv_get_cq_event for an event on channel#0, for 0.0 s now: cq#0 is not armed (here)",
            "sim0: VS-CM-02: hint: 1 event USER of cm id#0 not read (here)",
        ],
    ),
    (
        "does not read the events of rdma_cm, and ends: no mistake",
        leave_cm_event,
        &[],
    ),
    (
        "destroys an event channel before its ids (CM-58)",
        |sim| {
            let channel = sim.create_event_channel().unwrap();
            sim.create_id(channel, 0, PortSpace::Tcp).unwrap();
            sim.destroy_event_channel(channel).unwrap_err();
        },
        &[
            "sim0: VS-OBJ-01: rdma_destroy_event_channel: EBUSY: the cm channel is still used by 1 cm id: cm id#0 (here) (here)",
        ],
    ),
    (
        "destroys a queue pair, and moves one to RESET, with sends under way: that their acknowledgements come later is not another mistake (QP-FLUSH-06)",
        |sim| {
            let (a, b, qp_a, qp_b) = connected(sim);
            b.recv(qp_b, 2, 0, 64);
            b.recv(qp_b, 3, 0, 64);
            a.send(qp_a, 2, 0, 64);
            a.send(qp_a, 3, 0, 64);
            sim.destroy_qp(qp_a, Wait::Poll).unwrap();
            let (c, d, qp_c, qp_d) = connected(sim);
            d.recv(qp_d, 4, 0, 64);
            c.send(qp_c, 4, 0, 64);
            let reset = QpModify::to(QpState::Reset);
            sim.modify_qp(qp_c, &reset.attr, reset.mask).unwrap();
            settle(sim);
            b.drain();
            d.drain();
        },
        &[
            "sim0: VS-SQ-07: hint: send 0x2 and 1 more send of qp 0x2 were under way when the program destroyed the qp, at here: data may be lost",
            "sim0: VS-SQ-07: hint: send 0x4 of qp 0x3 was under way when the program moved the qp to RESET, at here: data may be lost",
        ],
    ),
    (
        "moves a queue pair with receives to ERR, and destroys it: no mistake",
        |sim| {
            let (_, b, _, qp_b) = connected(sim);
            b.recv(qp_b, 2, 0, 64);
            b.fail(qp_b);
            assert_eq!(b.drain().len(), 1);
            sim.destroy_qp(qp_b, Wait::Poll).unwrap();
        },
        &[],
    ),
];

/// Sends messages to an SRQ with two receives. The event of its limit comes with the first one, and
/// is not read before the SRQ is destroyed.
fn send_to_srq(sim: &Sim, messages: u64) {
    let (a, b) = ends(sim);
    let srq = sim.create_srq(b.pd, &SrqInit::new(4)).unwrap();
    let cap = QpCap {
        max_send_wr: 1,
        ..QpCap::default()
    };
    let init = QpInit::new(QpType::Rc, b.cq, b.cq).cap(cap).srq(srq);
    let (from, to) = (a.qp(QpType::Rc, 4), sim.create_qp(b.pd, &init).unwrap());
    let params = RcParams {
        rnr_retry: 0,
        ..RcParams::default()
    };
    connect::by_attributes(sim, from, to, &params).unwrap();
    let list = [b.mem.sge(0, 64)];
    let receives = [RecvWr::new(0, &list), RecvWr::new(1, &list)];
    sim.post_srq_recv(srq, &receives).unwrap();
    let attr = SrqAttr {
        srq_limit: 2,
        ..SrqAttr::default()
    };
    sim.modify_srq(srq, &attr, SrqAttrMask::LIMIT).unwrap();
    for wr_id in 0..messages {
        a.send(from, wr_id, 0, 64);
        settle(sim);
    }
    a.drain();
    b.drain();
    sim.destroy_qp(to, Wait::Poll).unwrap();
    sim.destroy_srq(srq, Wait::Poll).unwrap();
}

fn leave_cm_event(sim: &Sim) {
    let channel = sim.create_event_channel().unwrap();
    let id = sim.create_id(channel, 0, PortSpace::Tcp).unwrap();
    sim.write_event(id, CmEventType::User, 0, 0).unwrap();
}
