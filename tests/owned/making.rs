//! Making objects: sizes, and values of the program's own.

use verbs_api::owned::{Element, RecvWr};
use verbs_api::{
    CqFlags, ErrorKind, QpModify, QpState, QpType, RcParams, Wait, WcFields, WcStatus,
};

use crate::setup::{End, Setup, recv, send};

/// What no `int` of C can hold is refused in the name of the verb, and the device is not asked.
#[test]
fn a_size_that_c_cannot_say_is_refused() {
    const MOST: u32 = i32::MAX as u32;
    let setup = Setup::stepped();
    let context = setup.open("sim0");
    let cq = context.cq(1).create().unwrap();
    for too_many in [MOST + 1, u32::MAX] {
        let of = |what, min| format!("EINVAL: {what} is {too_many}, allowed are {min} to {MOST}");
        let extended = context.cq(too_many);
        let extended = extended.extended(WcFields::STANDARD, CqFlags::empty());
        for (refused, text) in [
            (context.cq(too_many).create().map(drop), "ibv_create_cq: "),
            (extended.create().map(drop), "ibv_create_cq_ex: "),
            (cq.resize(too_many), "ibv_resize_cq: "),
        ] {
            let text = text.to_owned() + &of("cqe", 1);
            assert_eq!(refused.unwrap_err().to_string(), text);
        }
        let refused = context.cq(1).comp_vector(too_many).create().unwrap_err();
        let text = "ibv_create_cq: ".to_owned() + &of("comp_vector", 0);
        assert_eq!(refused.to_string(), text);
    }
    // The device has its own limits.
    for refused in [
        context.cq(MOST).create().map(drop),
        context.cq(1).comp_vector(MOST).create().map(drop),
        cq.resize(MOST),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
}

/// A program finds its data about a queue pair by the completions and events of it: whether the
/// work succeeds or fails, for every sender of a receive, however the CQ is polled, and also after
/// its destruction.
#[test]
fn completions_and_events_lead_to_what_the_program_knows() {
    let setup = Setup::stepped();
    let [near, far] = ["sim0", "sim1"].map(|name| End::open(&setup, name));
    let cq = far.context.cq(16).cq_context(5).channel(&far.channel);
    let cq = cq.extended(WcFields::STANDARD, CqFlags::empty());
    let cq = cq.create().unwrap();
    let srq = far.pd.srq(8).srq_context(6).create().unwrap();
    let make = |qp_context, shares| {
        let qp = far.pd.qp(QpType::Rc, &cq, &cq).qp_context(qp_context);
        let qp = if shares { qp.srq(&srq) } else { qp };
        let (qp, peer) = (qp.create().unwrap(), near.qp(QpType::Rc));
        qp.connect_rc(&peer, &RcParams::default()).unwrap();
        (qp, peer)
    };
    let made = [make(10, false), make(11, false), make(12, true)];
    cq.req_notify(verbs_api::Arm::NEXT).unwrap();
    let [(a, _), (b, _), (sharing, _)] = &made;
    recv(a, 1);
    recv(b, 1);
    srq.post_recv(RecvWr::new(1, &[])).unwrap();
    for (_, peer) in &made {
        send(peer, 2);
    }
    setup.settle();
    let event = far.channel.get_event(Wait::Poll).unwrap().unwrap();
    assert_eq!(event.cq().cq_context(), 5);
    let completed: Vec<_> = event.cq().poll().unwrap().collect();
    let mut contexts: Vec<_> = completed.iter().map(|of| of.qp_context).collect();
    contexts.sort_unstable();
    assert_eq!(contexts, [10, 11, 12]);
    assert_eq!(
        near.cq.poll().unwrap().next().unwrap().qp_context,
        0,
        "the default"
    );

    recv(b, 3);
    recv(a, 3);
    let to_error = QpModify::to(QpState::Err);
    for qp in [b, a, sharing] {
        qp.modify(&to_error).unwrap();
    }
    let event = far.context.get_async_event(Wait::Poll).unwrap().unwrap();
    let Element::Qp(last) = event.element() else {
        panic!("{event}");
    };
    assert_eq!(
        (last.qp_context(), last.srq().unwrap().srq_context()),
        (12, 6)
    );
    drop(made);
    let flushed: Vec<_> = cq.iterate().map(Result::unwrap).collect();
    assert!(flushed.iter().all(|of| of.status == WcStatus::WrFlushErr));
    let contexts: Vec<_> = flushed.iter().map(|of| of.qp_context).collect();
    assert_eq!(contexts, [11, 10]);
}
