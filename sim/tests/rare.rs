//! Things that programs rarely do, and no scenario does.

use std::thread;

use verbs_api::lab::{Lab, Limit};
use verbs_api::{
    AhAttr, AsyncEventType, Context, CqInit, CqInitEx, Element, ErrorKind, Mtu, Qp, QpAttr,
    QpAttrMask as Mask, QpCap, QpInit, QpState, QpType, RcParams, RecvWr, Remote, SendWr, Sge,
    SrqInit, Verbs, Wait, Wc, WcStatus, XrcdInit, connect, transition,
};
use verbs_sim::{Mode, Sim, SimConfig};

/// RQ-01, SRQ-04: if a list is too long and the queue is full, the full queue is reported.
#[test]
fn a_full_receive_queue_is_seen_before_a_list_that_is_too_long() {
    let sim = Sim::new(SimConfig::new());
    let context = sim.open_device("sim0").unwrap();
    let pd = sim.alloc_pd(context).unwrap();
    let cq = sim.create_cq(context, &CqInit::new(4)).unwrap();
    let srq = sim.create_srq(pd, &SrqInit::new(1)).unwrap();
    let cap = QpCap {
        max_recv_wr: 1,
        ..QpCap::default()
    };
    let init = QpInit::new(QpType::Ud, cq, cq).cap(cap);
    let qp = sim.create_qp(pd, &init).unwrap();
    connect::ud_to_rts(&sim, qp, 1, 0).unwrap();
    let too_long = vec![Sge::default(); 200];
    let (long, good) = ([RecvWr::new(1, &too_long)], [RecvWr::new(0, &[])]);
    let on_qp = |list: &[RecvWr<'_>]| sim.post_recv(qp, list);
    let on_srq = |list: &[RecvWr<'_>]| sim.post_srq_recv(srq, list);
    for post in [&on_qp as &dyn Fn(&[RecvWr<'_>]) -> _, &on_srq] {
        let kind = |list| post(list).map_err(|refused| refused.error.kind());
        assert_eq!(kind(&long), Err(ErrorKind::Invalid));
        assert_eq!(kind(&good), Ok(()));
        assert_eq!(kind(&long), Err(ErrorKind::NoMemory));
    }
}

/// DEV-03: objects of a closed context no longer count, for every kind of object.
#[test]
fn what_went_with_a_context_leaves_its_room() {
    let sim = Sim::new(SimConfig::new());
    let make = |context: Context| {
        let pd = sim.alloc_pd(context)?;
        let gid = sim.query_gid(context, 1, 0)?;
        sim.create_ah(pd, &AhAttr::global(1, 0, gid))?;
        let channel = sim.create_comp_channel(context)?;
        let cq = sim.create_cq(context, &CqInit::new(4).channel(channel))?;
        sim.create_srq(pd, &SrqInit::new(1))?;
        sim.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq))?;
        sim.alloc_mr(pd, 64, verbs_api::Access::LOCAL_WRITE)?;
        sim.alloc_mw(pd, verbs_api::MwType::Type1)?;
        let xrcd = sim.open_xrcd(context, &XrcdInit::private())?;
        sim.create_xrc_recv_qp(xrcd)
    };
    const OBJECTS: u64 = 10;
    for _ in 0..3 {
        let context = sim.open_device("sim0").unwrap();
        let limit = Some(OBJECTS);
        sim.set_limit(context, Limit::Objects, limit).unwrap();
        make(context).unwrap();
        assert_eq!(sim.live(context).unwrap().qps, 2);
        let refused = sim.alloc_pd(context).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NoMemory);
        sim.close_device(context).unwrap();
    }
}

/// QP-STATE-11: an XRC_RECV queue pair has no sends to drain, so SQD reports that it has drained.
#[test]
fn a_queue_pair_that_only_receives_has_drained_at_once() {
    let sim = Sim::new(SimConfig::new());
    let context = sim.open_device("sim0").unwrap();
    let xrcd = sim.open_xrcd(context, &XrcdInit::private()).unwrap();
    let qp = sim.create_xrc_recv_qp(xrcd).unwrap();
    let gid = sim.query_gid(context, 1, 0).unwrap();
    let attr = QpAttr {
        port_num: 1,
        path_mtu: Mtu::Mtu1024,
        ah_attr: Some(AhAttr::global(1, 0, gid)),
        en_sqd_async_notify: true,
        ..QpAttr::default()
    };
    let enter = |qp: Qp, from, to, extra| {
        let required = transition::attributes(QpType::XrcRecv, from, to)
            .unwrap()
            .required;
        let attr = QpAttr {
            qp_state: to,
            ..attr
        };
        let mask = Mask::STATE | required | extra;
        sim.modify_qp(qp, &attr, mask).unwrap();
    };
    enter(qp, QpState::Reset, QpState::Init, Mask::empty());
    enter(qp, QpState::Init, QpState::Rtr, Mask::empty());
    enter(qp, QpState::Rtr, QpState::Rts, Mask::empty());
    enter(qp, QpState::Rts, QpState::Sqd, Mask::EN_SQD_ASYNC_NOTIFY);
    let event = sim.get_async_event(context, Wait::Poll).unwrap();
    assert_eq!(event.event_type, AsyncEventType::SqDrained);
    assert_eq!(event.element, Element::Qp(qp));
    enter(qp, QpState::Sqd, QpState::Rts, Mask::empty());
    let attr = sim.query_qp(qp, Mask::empty()).unwrap().attr;
    assert!(!attr.en_sqd_async_notify, "it is requested again each time");
}

/// Virtual time is for one thread. Calls of another are refused, and change nothing.
#[test]
fn stepped_mode_is_for_one_thread() {
    let sim = Sim::new(SimConfig::new());
    let context = sim.open_device("sim0").unwrap();
    let of_another = || {
        [
            sim.open_device("sim0").map(drop),
            sim.alloc_pd(context).map(drop),
            sim.query_device(context).map(drop),
            sim.close_device(context),
        ]
    };
    let results = thread::scope(|scope| scope.spawn(of_another).join().unwrap());
    for result in results {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Usage);
    }
    sim.close_device(context).unwrap();
}

/// The first thread to open a device is that thread.
#[test]
fn stepped_mode_is_of_the_thread_that_came_first() {
    let sim = Sim::new(SimConfig::new());
    let opened = thread::scope(|scope| scope.spawn(|| sim.open_device("sim0")).join().unwrap());
    let context = opened.unwrap();
    let pd = sim.alloc_pd(context);
    assert_eq!(pd.unwrap_err().kind(), ErrorKind::Usage);
}

/// A program that only polls gets its completion, with a trace and without.
#[test]
fn polls_that_find_nothing_let_the_time_go_on() {
    const POLLS: usize = 100;
    for (trace, iterates) in [(false, false), (false, true), (true, false), (true, true)] {
        let sim = Sim::new(SimConfig::new().trace(trace));
        let context = sim.open_device("sim0").unwrap();
        let pd = sim.alloc_pd(context).unwrap();
        let init = CqInitEx::new(CqInit::new(4));
        let cq = sim.create_cq_ex(context, &init).unwrap();
        let make = || sim.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq)).unwrap();
        let [qp, peer]: [Qp; 2] = [(); 2].map(|()| make());
        sim.connect_rc(qp, peer, &RcParams::default()).unwrap();
        let write = SendWr::rdma_write(1, &[], Remote::default());
        sim.post_send(qp, &[write]).unwrap();
        let finds = |_: &usize| {
            if iterates {
                sim.start_poll(cq).is_ok()
            } else {
                sim.poll_cq(cq, &mut [Wc::default()]).unwrap() == 1
            }
        };
        let found = (0..POLLS).find(finds);
        assert!(found.is_some(), "trace: {trace}, iterates: {iterates}");
    }
}

/// DEV-13: a handle of a simulation with more devices is invalid here.
#[test]
fn a_context_of_a_device_that_is_not_there_is_refused() {
    let own = Sim::new(SimConfig::new().nodes(2));
    let larger = Sim::new(SimConfig::new().nodes(3));
    let context = larger.open_device("sim2").unwrap();
    let refused = [
        own.alloc_pd(context).map(drop),
        own.query_device(context).map(drop),
        own.close_device(context),
    ];
    for result in refused {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Invalid);
    }
}

/// TMR-20: a packet through another port of the device than the queue pair's is dropped.
#[test]
fn packet_through_another_port_of_the_device_is_dropped() {
    let sim = Sim::new(SimConfig::new().ports(2));
    let params = RcParams {
        timeout: 8,
        retry_cnt: 1,
        ..RcParams::default()
    };
    let [a, b] = ["sim0", "sim1"].map(|name| {
        let context = sim.open_device(name).unwrap();
        let pd = sim.alloc_pd(context).unwrap();
        let cq = sim.create_cq(context, &CqInit::new(4)).unwrap();
        let qp = sim.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq)).unwrap();
        (context, cq, qp)
    });
    let [of_a, of_b] = [a, b].map(|(_, _, qp)| connect::endpoint(&sim, qp, &params).unwrap());
    // B goes to the second port of A's device, where A is not.
    let astray = connect::Endpoint {
        gid: sim.query_gid(a.0, 2, 0).unwrap(),
        ..of_a
    };
    connect::to_endpoint(&sim, a.2, &of_b, &params).unwrap();
    connect::to_endpoint(&sim, b.2, &astray, &params).unwrap();
    sim.post_recv(a.2, &[RecvWr::new(1, &[])]).unwrap();
    sim.post_send(b.2, &[SendWr::send(2, &[])]).unwrap();
    sim.settle().unwrap();
    let mut done = [Wc::default(); 4];
    assert_eq!(sim.poll_cq(a.1, &mut done).unwrap(), 0);
    assert_eq!(sim.poll_cq(b.1, &mut done).unwrap(), 1);
    assert_eq!(done[0].status, WcStatus::RetryExcErr);
}

/// Two private simulations have scattered numbers. Neither reaches its own queue pairs by the
/// other's numbers, and the reason is reported.
#[test]
fn a_number_of_another_private_fabric_is_told_as_that() {
    let end = |seed| {
        let sim = Sim::new(SimConfig::new().scatter(seed));
        let context = sim.open_device("sim0").unwrap();
        let pd = sim.alloc_pd(context).unwrap();
        let cq = sim.create_cq(context, &CqInit::new(4)).unwrap();
        let qp = sim.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq)).unwrap();
        let endpoint = connect::endpoint(&sim, qp, &RcParams::default()).unwrap();
        (sim, cq, qp, endpoint)
    };
    let ((sim, cq, qp, own), (.., other)) = (end(1), end(2));
    assert_ne!(own.qp_num, other.qp_num);
    connect::to_endpoint(&sim, qp, &other, &RcParams::default()).unwrap();
    sim.post_send(qp, &[SendWr::send(1, &[])]).unwrap();
    sim.settle().unwrap();
    let mut wc = [Wc::default()];
    assert_eq!(sim.poll_cq(cq, &mut wc).unwrap(), 1);
    assert_eq!(wc[0].status, WcStatus::RetryExcErr);
    let said = sim.diagnose().to_string();
    assert!(said.contains("it is of another process"), "{said}");
}

/// ASYNC-10: a device also fails where whole messages travel and polls take the fast path.
#[test]
fn a_dead_device_is_not_polled() {
    let sim = Sim::new(SimConfig::new().mode(Mode::Inline));
    let context = sim.open_device("sim0").unwrap();
    let pd = sim.alloc_pd(context).unwrap();
    let cq = sim.create_cq(context, &CqInit::new(4)).unwrap();
    let qp = sim.create_qp(pd, &QpInit::new(QpType::Ud, cq, cq)).unwrap();
    connect::ud_to_rts(&sim, qp, 1, 0).unwrap();
    let error = QpAttr {
        qp_state: QpState::Err,
        ..QpAttr::default()
    };
    sim.modify_qp(qp, &error, Mask::STATE).unwrap();
    sim.post_recv(qp, &[RecvWr::new(1, &[])]).unwrap();
    sim.kill_device(context).unwrap();
    // A flushed receive waits in it.
    let polled = sim.poll_cq(cq, &mut [Wc::default()]);
    assert_eq!(polled.unwrap_err().kind(), ErrorKind::Io);
}

/// SQ-01, SQ-08: inline bytes outside of all regions are refused immediately, and take no slot of
/// the queue.
#[test]
fn inline_bytes_that_are_nowhere_take_no_place_in_the_queue() {
    let sim = Sim::new(SimConfig::new());
    let context = sim.open_device("sim0").unwrap();
    let pd = sim.alloc_pd(context).unwrap();
    let cq = sim.create_cq(context, &CqInit::new(4)).unwrap();
    let cap = QpCap {
        max_send_wr: 1,
        max_inline_data: 16,
        ..QpCap::default()
    };
    let init = QpInit::new(QpType::Rc, cq, cq).cap(cap);
    let [qp, peer]: [Qp; 2] = [(); 2].map(|()| sim.create_qp(pd, &init).unwrap());
    sim.connect_rc(qp, peer, &RcParams::default()).unwrap();
    let nowhere = [Sge {
        addr: 0x10,
        length: 16,
        lkey: 0,
    }];
    let inline = SendWr::rdma_write(1, &nowhere, Remote::default()).inline();
    let refused = sim.post_send(qp, &[inline]).unwrap_err();
    assert_eq!(refused.error.kind(), ErrorKind::Fault);
    // The queue has room for one request.
    let empty = SendWr::rdma_write(2, &[], Remote::default());
    sim.post_send(qp, &[empty]).unwrap();
    sim.settle().unwrap();
    let mut done = [Wc::default(); 2];
    assert_eq!(sim.poll_cq(cq, &mut done).unwrap(), 1);
    assert_eq!((done[0].wr_id, done[0].status), (2, WcStatus::Success));
}
