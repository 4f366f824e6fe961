//! A device that dies.

use std::time::Duration;

use verbs_api::lab::{Fault, PacketFilter};
use verbs_api::{
    Access, Ah, Arm, AsyncEventType, CqInit, Element, ErrorKind, Gid, MrChange, MwType, QpAttrMask,
    QpInit, QpModify, QpState, QpType, RecvWr, SendWr, SrqInit, Wait, Wc, WcStatus,
};

use crate::end::gives_up_soon;
use crate::failure::{check, check_eq, in_case};
use crate::mcast::{ALL_HOSTS, MLID};
use crate::{End, OfRule, Pair, PairOptions, Result, Setup, expect_err};

const RULE: &str = "ASYNC-10";

type Call = fn(&Setup<'_>, &End<'_>, Ah) -> verbs_api::Result<()>;

/// Verbs that need a device that lives, each with arguments that are good.
const CALLS: &[(&str, Call)] = &[
    ("query_device", |v, end, _| {
        v.query_device(end.context).map(drop)
    }),
    ("query_port", |v, end, _| {
        v.query_port(end.context, v.port()).map(drop)
    }),
    ("query_gid", |v, end, _| {
        v.query_gid(end.context, v.port(), 0).map(drop)
    }),
    ("query_pkey", |v, end, _| {
        v.query_pkey(end.context, v.port(), 0).map(drop)
    }),
    ("query_rt_values", |v, end, _| {
        v.query_rt_values(end.context).map(drop)
    }),
    ("alloc_pd", |v, end, _| v.alloc_pd(end.context).map(drop)),
    ("alloc_mr", |v, end, _| {
        v.alloc_mr(end.pd, 64, Access::empty()).map(drop)
    }),
    ("rereg_mr", |v, end, _| {
        let change = MrChange {
            access: Some(Access::empty()),
            ..MrChange::default()
        };
        v.rereg_mr(end.mr, &change).map_err(|refused| refused.error)
    }),
    ("create_comp_channel", |v, end, _| {
        v.create_comp_channel(end.context).map(drop)
    }),
    ("create_cq", |v, end, _| {
        v.create_cq(end.context, &CqInit::new(1)).map(drop)
    }),
    ("resize_cq", |v, end, _| v.resize_cq(end.recv_cq, 100)),
    ("req_notify_cq", |v, end, _| {
        v.req_notify_cq(end.recv_cq, Arm::NEXT)
    }),
    ("poll_cq", |v, end, _| {
        v.poll_cq(end.recv_cq, &mut [Wc::default()]).map(drop)
    }),
    ("start_poll", |v, end, _| v.start_poll(end.recv_cq)),
    ("create_qp", |v, end, _| {
        let init = QpInit::new(QpType::Rc, end.send_cq, end.recv_cq);
        v.create_qp(end.pd, &init).map(drop)
    }),
    ("query_qp", |v, end, _| {
        v.query_qp(end.qp, QpAttrMask::STATE).map(drop)
    }),
    ("modify_qp", |v, end, _| {
        let QpModify { attr, mask } = QpModify::to(QpState::Err);
        v.modify_qp(end.qp, &attr, mask)
    }),
    ("post_send", |v, end, ah| {
        let data = [end.sge(0, 8)];
        let send = SendWr::send(1, &data).to(ah, end.qp_num, v.qkey());
        Ok(v.post_send(end.qp, &[send])?)
    }),
    ("post_recv", |v, end, _| {
        let into = [end.sge(0, 64)];
        Ok(v.post_recv(end.qp, &[RecvWr::new(1, &into)])?)
    }),
    ("create_ah", |v, end, _| {
        let way = verbs_api::AhAttr::global(v.port(), 0, Gid([0xfe; 16]));
        v.create_ah(end.pd, &way).map(drop)
    }),
    ("alloc_mw", |v, end, _| {
        v.alloc_mw(end.pd, MwType::Type1).map(drop)
    }),
    ("create_srq", |v, end, _| {
        v.create_srq(end.pd, &SrqInit::new(1)).map(drop)
    }),
    ("attach_mcast", |v, end, _| {
        v.attach_mcast(end.qp, ALL_HOSTS, MLID)
    }),
    ("open_device", |v, end, _| {
        let place = usize::from(end.context == v.ctx_b());
        let device = v.devices()?[place].name.clone();
        v.open_device(&device).map(drop)
    }),
];

scenario!(dead_device_lets_its_objects_be_freed_and_no_more:
    "ASYNC-10", "ASYNC-02"; needs UD, MCAST, MW_TYPE_1, SRQ, LAB);
fn dead_device_lets_its_objects_be_freed_and_no_more(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(PairOptions::of(QpType::Ud))?;
    let Pair { a, b } = pair;
    let ah = setup.create_ah(b.pd, &setup.route_to(a.context)?)?;
    let mw = setup.alloc_mw(b.pd, MwType::Type1)?;
    let key = setup.query_mw(mw)?;
    let srq = setup.create_srq(b.pd, &SrqInit::new(1))?;
    setup.attach_mcast(b.qp, ALL_HOSTS, MLID)?;
    // A completion that is not polled, a receive that waits, an unread event.
    b.recv(1, 8)?;
    b.recv_at(2, 0, 8)?;
    setup.arm(b.recv_cq, Arm::NEXT)?;
    a.send(1, 8)?;
    setup.settle()?;
    setup.lab().kill_device(b.context)?;
    let event = setup.take_async_event(b.context).rule(RULE)?;
    check_eq!(RULE, event.event_type, AsyncEventType::DeviceFatal);
    check_eq!("ASYNC-02", event.element, Element::Device);
    setup.no_async_event(b.context, RULE)?;
    setup.no_async_event(a.context, RULE)?;
    for (what, call) in CALLS {
        let refused = expect_err(call(setup, &b, ah), ErrorKind::Io, RULE);
        in_case(what, refused.map(drop))?;
    }
    // What was there before can be read, and everything be freed.
    setup.expect_event(b.channel, b.recv_cq, RULE)?;
    setup.ack_async_event(b.context, &event).rule(RULE)?;
    check_eq!(RULE, setup.query_mw(mw)?, key, "the window");
    setup.dealloc_mw(mw).rule(RULE)?;
    setup.detach_mcast(b.qp, ALL_HOSTS, MLID).rule(RULE)?;
    setup.destroy_qp(b.qp, Wait::Poll).rule(RULE)?;
    setup.destroy_srq(srq, Wait::Poll).rule(RULE)?;
    for cq in [b.send_cq, b.recv_cq] {
        setup.destroy_cq(cq, Wait::Poll).rule(RULE)?;
    }
    setup.destroy_comp_channel(b.channel).rule(RULE)?;
    setup.dereg_mr(b.mr).rule(RULE)?;
    setup.destroy_ah(ah).rule(RULE)?;
    check_eq!(
        RULE,
        setup.lab().live(b.context)?.qps,
        0,
        "queue pairs left"
    );
    setup.close_device(b.context).rule(RULE)
}

scenario!(work_under_way_goes_with_its_device: "ASYNC-10"; needs LAB);
/// The request is lost, and is neither retransmitted nor given up.
fn work_under_way_goes_with_its_device(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(PairOptions {
        rc: gives_up_soon(),
        ..PairOptions::default()
    })?;
    setup.arm(a.send_cq, Arm::NEXT)?;
    let to_b = PacketFilter::EVERY.dest_qpn(b.qp_num);
    setup.lab().inject(Fault::drop(to_b))?;
    a.send(1, 8)?;
    setup.lab().advance(Duration::from_micros(100))?;
    setup.lab().kill_device(a.context)?;
    setup.lab().tap();
    setup.lab().advance(Duration::from_secs(1))?;
    let left = setup.packets();
    check!(RULE, left.is_empty(), "no packet", "{left:?}");
    setup.no_event(a.channel, RULE)
}

scenario!(peer_of_a_dead_device_gets_no_answer: "ASYNC-10"; needs LAB);
fn peer_of_a_dead_device_gets_no_answer(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(PairOptions {
        rc: gives_up_soon(),
        ..PairOptions::default()
    })?;
    let Pair { a, b } = pair;
    b.recv(1, 8)?;
    setup.lab().kill_device(b.context)?;
    a.send(1, 8)?;
    setup.one_with(a.send_cq, WcStatus::RetryExcErr, RULE)?;
    // The device of A is as it was.
    check_eq!(RULE, setup.state(a.qp)?, QpState::Err);
    setup.query_device(a.context).rule(RULE).map(drop)
}
