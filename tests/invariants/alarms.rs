//! What a device may do that looks like a defect.

use verbs_api::lab::{Fault, PacketFilter};
use verbs_api::profile::Profile;
use verbs_api::{
    Access, AhAttr, CqInit, Mtu, Qp, QpInit, QpModify, QpState, QpType, RcParams, RecvWr, SendWr,
    SrqInit, Verbs, Wait, connect,
};
use verbs_explore::Checked;
use verbs_sim::SimConfig;

use crate::common::{End, checked, drain, pair, settle};

fn ends(sim: &Checked) -> [End<'_>; 2] {
    ["sim0", "sim1"].map(|name| End::open(sim, name, 16, 4096))
}

/// WC-03: a completion of an SRQ is of the datagram QP that had the number before.
#[test]
fn number_of_a_datagram_qp_is_used_again() {
    let sim = checked(SimConfig::new().profile(Profile::ADVERSARIAL));
    let [near, far] = ends(&sim);
    let srq = sim.create_srq(far.pd, &SrqInit::new(4)).unwrap();
    let of_srq = |qp_type| QpInit::new(qp_type, far.cq, far.cq).srq(srq);
    let old = sim.create_qp(far.pd, &of_srq(QpType::Ud)).unwrap();
    let number = sim.qp_num(old).unwrap();
    let sender = near.qp(QpType::Ud, 4);
    for qp in [old, sender] {
        connect::ud_to_rts(&sim, qp, 1, 7).unwrap();
    }
    let list = [far.mem.sge(0, 100)];
    sim.post_srq_recv(srq, &[RecvWr::new(1, &list)]).unwrap();
    let gid = sim.query_gid(far.context, 1, 0).unwrap();
    let ah = sim.create_ah(near.pd, &AhAttr::global(1, 0, gid)).unwrap();
    let send = SendWr::send(2, &[]).to(ah, number, 7);
    sim.post_send(sender, &[send]).unwrap();
    settle(&sim);
    sim.destroy_qp(old, Wait::Poll).unwrap();
    let new = sim.create_qp(far.pd, &of_srq(QpType::Rc)).unwrap();
    assert_eq!(sim.qp_num(new).unwrap(), number);
    let peer = near.qp(QpType::Rc, 4);
    connect::by_attributes(&sim, new, peer, &RcParams::default()).unwrap();
    assert_eq!(far.drain().len(), 1);
    sim.finish().unwrap();
}

/// UC-04: a receive holds the beginning of a message that has lost its end, and then a shorter one:
/// of an SRQ, and of a QP that is gone when its completion is polled.
#[test]
fn receive_holds_the_beginning_of_a_message_that_was_lost() {
    for shared in [true, false] {
        // An SRQ for UC is what this profile has.
        let sim = checked(SimConfig::new().profile(Profile::RXE));
        let [near, far] = ends(&sim);
        let params = RcParams {
            path_mtu: Mtu::Mtu256,
            ..RcParams::default()
        };
        let list = [far.mem.sge(0, 1000)];
        let recv = RecvWr::new(1, &list);
        let sender = near.qp(QpType::Uc, 4);
        let receiver = if shared {
            let srq = sim.create_srq(far.pd, &SrqInit::new(4)).unwrap();
            sim.post_srq_recv(srq, &[recv]).unwrap();
            let init = QpInit::new(QpType::Uc, far.cq, far.cq).srq(srq);
            sim.create_qp(far.pd, &init).unwrap()
        } else {
            far.qp(QpType::Uc, 4)
        };
        connect::by_attributes(&sim, sender, receiver, &params).unwrap();
        if !shared {
            sim.post_recv(receiver, &[recv]).unwrap();
        }
        near.write(0, &[7; 1000]);
        let lost = Fault::drop(PacketFilter::EVERY).nth(2);
        sim.lab().unwrap().inject(lost).unwrap();
        near.send(sender, 2, 0, 500);
        near.send(sender, 3, 0, 8);
        settle(&sim);
        if !shared {
            sim.destroy_qp(receiver, Wait::Poll).unwrap();
        }
        assert_eq!(far.drain()[0].byte_len, 8);
        assert_eq!(far.read(255, 2), [7, 0]);
        sim.finish().unwrap();
    }
}

/// CQ-OVR-02: receives that were in an SRQ before it was used overrun a CQ like others.
#[test]
fn receives_of_an_srq_overrun_the_cq_of_a_qp_that_comes_later() {
    let sim = checked(SimConfig::new());
    let [near, far] = ends(&sim);
    let srq = sim.create_srq(far.pd, &SrqInit::new(4)).unwrap();
    let recv = RecvWr::new(1, &[]);
    sim.post_srq_recv(srq, &[recv, recv]).unwrap();
    let tight = sim.create_cq(far.context, &CqInit::new(1)).unwrap();
    let init = QpInit::new(QpType::Rc, tight, tight).srq(srq);
    let receiver = sim.create_qp(far.pd, &init).unwrap();
    let sender = near.qp(QpType::Rc, 4);
    connect::by_attributes(&sim, sender, receiver, &RcParams::default()).unwrap();
    let send = SendWr::send(2, &[]);
    sim.post_send(sender, &[send, send]).unwrap();
    settle(&sim);
    sim.get_async_event(far.context, Wait::Poll).unwrap();
    sim.finish().unwrap();
}

/// ATOM-01: the answer to an atomic of before a reset is taken for that of another, which was not
/// executed.
#[test]
fn atomic_gets_the_answer_of_another_connection() {
    let access = Access::ALL_RDMA | Access::REMOTE_ATOMIC;
    let params = RcParams {
        access,
        ..RcParams::default()
    };
    let sim = checked(SimConfig::new());
    let [near, far] = ends(&sim);
    let mr = sim.alloc_mr(far.pd, 16, access).unwrap();
    let far_mem = sim.query_mr(mr).unwrap();
    let (a, b) = pair((&near, &far), QpType::Rc, 4, &params);
    let list = [near.mem.sge(0, 8)];
    near.post(
        a,
        SendWr::compare_and_swap(1, &list, far_mem.remote(8), 1, 2),
    );
    let reset = |qp: Qp| {
        let reset = QpModify::to(QpState::Reset);
        sim.modify_qp(qp, &reset.attr, reset.mask).unwrap();
    };
    reset(a);
    reset(b);
    connect::by_attributes(&sim, a, b, &params).unwrap();
    near.post(a, SendWr::fetch_and_add(2, &list, far_mem.remote(0), 5));
    settle(&sim);
    assert_eq!(drain(&sim, near.cq).len(), 1);
    let mut counter = [0; 8];
    sim.read_mr(mr, 0, &mut counter).unwrap();
    assert_eq!(counter, [0; 8]);
    sim.finish().unwrap();
}
