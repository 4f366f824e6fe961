//! Raw calls on objects that have owners: errors, or outcomes that are documented, and never worse.

use verbs_api::owned::{CompChannel, RecvWr, SendWr};
use verbs_api::{
    Access, Arm, BadHandle, Cause, CqInit, Error, ErrorKind, QpInit, QpModify, QpState, QpType,
    RcParams, Verbs, Wait,
};

use crate::setup::{End, Setup, pair, recv, send, wr_ids};

fn assert_stale(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let problem = BadHandle::Stale;
    assert!(
        matches!(error.cause(), Cause::Handle { problem: p, .. } if *p == problem),
        "{error}"
    );
}

/// An object that was destroyed by its raw handle: each call returns an error, and dropping is
/// fine.
#[test]
fn objects_destroyed_under_their_owner_give_errors() {
    let setup = Setup::stepped();
    let (ends, [near, far]) = pair(&setup);
    let end = &ends[0];
    near.post_recv(RecvWr::new(1, &[end.mr.sge(..)])).unwrap();
    setup.sim.destroy_qp(near.handle(), Wait::Poll).unwrap();
    setup.sim.destroy_cq(end.cq.handle(), Wait::Poll).unwrap();
    setup.sim.dereg_mr(end.mr.handle()).unwrap();
    let sge = [end.mr.sge(..8)];
    assert_stale(&near.post_send(SendWr::send(1, &sge)).unwrap_err().error);
    assert_stale(&near.post_recv(RecvWr::new(1, &sge)).unwrap_err().error);
    assert_stale(&near.modify(&QpModify::to(QpState::Err)).unwrap_err());
    assert_stale(&near.state().unwrap_err());
    assert_stale(&near.connect_rc(&far, &RcParams::default()).unwrap_err());
    assert_stale(&end.mr.read(0, &mut [0]).unwrap_err());
    assert_stale(&end.mr.write(0, &[0]).unwrap_err());
    assert_stale(&end.cq.poll().unwrap_err());
    assert_stale(&end.cq.wait(Wait::Forever).unwrap_err());
    assert_stale(&end.cq.req_notify(Arm::NEXT).unwrap_err());
    assert_stale(
        &end.pd
            .qp(QpType::Rc, &end.cq, &end.cq)
            .create()
            .unwrap_err(),
    );
    let refused = near.destroy().unwrap_err();
    assert_stale(&refused.error);
    setup.sim.close_device(end.context.handle()).unwrap();
    assert_stale(&end.context.alloc_pd().unwrap_err());
    assert_stale(&end.channel.get_event(Wait::Forever).unwrap_err());
    drop((ends, refused, far));
    setup.assert_nothing_lives();
}

/// An event that was read raw and not acknowledged does not make a drop wait: the CQ goes when it
/// can.
#[test]
fn a_raw_event_delays_the_end_of_a_cq_and_nothing_else() {
    let setup = Setup::stepped();
    let (ends, [near, far]) = pair(&setup);
    ends[0].cq.req_notify(Arm::NEXT).unwrap();
    recv(&near, 1);
    send(&far, 1);
    setup.settle();
    let event = setup
        .sim
        .get_cq_event(ends[0].channel.handle(), Wait::Poll)
        .unwrap();
    let context = ends[0].context.clone();
    drop((ends, near, far));
    let live = setup.live(0);
    assert_eq!((live.cqs, live.channels, live.qps), (1, 1, 0));
    setup.sim.ack_cq_events(event.cq, 1).unwrap();
    drop(context.create_comp_channel().unwrap());
    drop(context);
    setup.assert_nothing_lives();
}

/// An event of a CQ that no program can get hold of any more is acknowledged and passed over, and
/// the CQ goes if that was in its way; also if it is one of a raw CQ.
#[test]
fn events_without_an_owner_are_acknowledged_and_passed_over() {
    let setup = Setup::stepped();
    let (ends, [near, far]) = pair(&setup);
    let channel = ends[0].channel.clone();
    for _ in 0..2 {
        ends[0].cq.req_notify(Arm::NEXT).unwrap();
        recv(&near, 1);
        send(&far, 1);
        setup.settle();
    }
    let event = setup.sim.get_cq_event(channel.handle(), Wait::Poll);
    drop((ends, near, far));
    assert_eq!(
        setup.live(0).cqs,
        1,
        "an event was read raw, another is queued"
    );
    setup.sim.ack_cq_events(event.unwrap().cq, 1).unwrap();
    let passed_over = |channel: &CompChannel| {
        assert!(channel.get_event(Wait::Poll).unwrap().is_none());
    };
    passed_over(&channel);
    assert_eq!(setup.live(0).cqs, 0);

    let end = End::open(&setup, "sim0");
    let init = CqInit::new(4).channel(end.channel.handle());
    let raw = setup.sim.create_cq(end.context.handle(), &init).unwrap();
    setup.sim.req_notify_cq(raw, Arm::NEXT).unwrap();
    let init = QpInit::new(QpType::Rc, raw, raw);
    let qp = setup.sim.create_qp(end.pd.handle(), &init).unwrap();
    let peer = end.qp(QpType::Rc);
    let params = RcParams::default();
    setup.sim.connect_rc(qp, peer.handle(), &params).unwrap();
    setup
        .sim
        .post_recv(qp, &[verbs_api::RecvWr::new(1, &[])])
        .unwrap();
    send(&peer, 1);
    setup.settle();
    passed_over(&end.channel);
    setup.sim.destroy_qp(qp, Wait::Poll).unwrap();
    setup.sim.destroy_cq(raw, Wait::Poll).unwrap();
}

/// Raw objects keep what they use, and keep numbers of their own along with objects of this layer.
#[test]
fn raw_work_on_a_cq_with_an_owner_keeps_its_own_numbers() {
    let setup = Setup::stepped();
    let (ends, [near, far]) = pair(&setup);
    let end = &ends[0];
    let init = QpInit::new(QpType::Rc, end.cq.handle(), end.cq.handle());
    let raw = setup.sim.create_qp(end.pd.handle(), &init).unwrap();
    let peer = ends[1].qp(QpType::Rc);
    let params = RcParams::default();
    setup.sim.connect_rc(raw, peer.handle(), &params).unwrap();
    let mr = end.small_mr();
    near.post_recv(RecvWr::new(7, &[mr.sge(..)])).unwrap();
    drop(mr);
    // The numbers that this layer gives to the device, in the hands of another QP.
    for wr_id in [0, 1, 1 << 32, u64::MAX] {
        setup
            .sim
            .post_recv(raw, &[verbs_api::RecvWr::new(wr_id, &[])])
            .unwrap();
        send(&peer, 0);
    }
    setup.settle();
    assert_eq!(wr_ids(&end.cq), [0, 1, 1 << 32, u64::MAX]);
    assert_eq!(setup.live(0).mrs, 2, "they settled nothing");
    // And raw work on a QP of this layer.
    let own = verbs_api::SendWr::send(1 << 63 | 5, &[]);
    setup.sim.post_send(near.handle(), &[own]).unwrap();
    recv(&far, 0);
    recv(&far, 0);
    send(&near, 6);
    setup.settle();
    assert_eq!(wr_ids(&end.cq), [1 << 63 | 5, 6]);

    let cq = setup.sim.create_cq(end.context.handle(), &CqInit::new(1));
    let cq = cq.unwrap();
    let refused = end.context.clone().close().unwrap_err();
    assert_eq!(refused.error.kind(), ErrorKind::Busy);
    setup.sim.destroy_qp(raw, Wait::Poll).unwrap();
    drop((ends, near, far, peer, refused));
    // The context took the raw CQ with it.
    assert_stale(&setup.sim.query_cq(cq).unwrap_err());
    setup.assert_nothing_lives();
}

/// Handles of two backends may be equal; objects are not, and cannot be confused.
#[test]
fn objects_of_two_backends_or_contexts_do_not_mix() {
    let (first, second) = (Setup::stepped(), Setup::stepped());
    let (one, other) = (End::open(&first, "sim0"), End::open(&second, "sim0"));
    let third = End::open(&first, "sim0");
    assert_eq!(one.cq.handle(), other.cq.handle());
    assert_ne!(one.cq, other.cq);
    let mismatch =
        |error: Error| assert!(matches!(error.cause(), Cause::Mismatch { .. }), "{error}");
    for foreign in [&other, &third] {
        mismatch(
            one.pd
                .qp(QpType::Rc, &one.cq, &foreign.cq)
                .create()
                .unwrap_err(),
        );
        mismatch(
            one.context
                .cq(1)
                .channel(&foreign.channel)
                .create()
                .unwrap_err(),
        );
        let qp = one.qp(QpType::Rc);
        let list = [foreign.mr.sge(..)];
        mismatch(qp.post_recv(RecvWr::new(1, &list)).unwrap_err().error);
    }
    let params = RcParams::default();
    mismatch(
        one.qp(QpType::Rc)
            .connect_rc(&other.qp(QpType::Rc), &params)
            .unwrap_err(),
    );
    one.qp(QpType::Rc)
        .connect_rc(&third.qp(QpType::Rc), &params)
        .unwrap();
}

/// MR-13: one buffer registered twice, each region used by its own connection, and deregistered one
/// after the other.
#[test]
#[expect(unsafe_code, reason = "the caller's memory")]
fn memory_of_the_caller_may_be_registered_twice_and_is_given_back() {
    let mut memory = vec![0_u8; 64];
    let setup = Setup::stepped();
    let (ends, [near, far]) = pair(&setup);
    let (addr, length) = (memory.as_mut_ptr(), memory.len());
    let register = || {
        // SAFETY: both regions are destroyed below, before `memory` is used again or freed.
        unsafe { ends[1].pd.reg_mr(addr, length, Access::LOCAL_WRITE) }.unwrap()
    };
    let regions = [register(), register()];
    assert_eq!(regions[0].addr(), regions[1].addr());
    ends[0].mr.write(0, b"firstother").unwrap();
    for (i, mr) in regions.iter().enumerate() {
        let list = [mr.sge(5 * i..)];
        far.post_recv(RecvWr::new(0, &list)).unwrap();
        let list = [ends[0].mr.sge(5 * i..5 * i + 5)];
        near.post_send(SendWr::send(0, &list)).unwrap();
        let error = mr.read(0, &mut [0]).unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::Invalid,
            "the bytes are the caller's"
        );
    }
    setup.settle();
    let [one, other] = regions;
    let refused = one.destroy().unwrap_err();
    assert_eq!(
        refused.error.kind(),
        ErrorKind::Busy,
        "work may still write"
    );
    assert_eq!(wr_ids(&ends[1].cq), [0, 0]);
    refused.object.destroy().unwrap();
    other.destroy().unwrap();
    assert_eq!(&memory[..10], b"firstother");
}
