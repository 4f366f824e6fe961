//! Asynchronous events.

mod death;

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::thread;

use verbs_api::{
    AhAttr, AsyncEvent, AsyncEventType, Capabilities, Context, Element, ErrorKind, Gid, PortState,
    QpAttrMask, QpModify, QpState, QpType, RcParams, SendWr, WcStatus,
};

use crate::cq_ovr::{Queue, SmallCq};
use crate::end::gives_up_soon;
use crate::failure::{check, check_eq, in_case};
use crate::{End, Failure, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    event_of_a_cq_names_it,
    event_of_a_port_names_it,
    death::dead_device_lets_its_objects_be_freed_and_no_more,
    death::work_under_way_goes_with_its_device,
    death::peer_of_a_dead_device_gets_no_answer,
    event_of_a_port_wakes_who_waits_for_it,
    one_of_several_threads_gets_it,
    message_before_rts_raises_at_most_comm_est,
    datagram_raises_nothing,
    every_kind_has_a_text_of_its_own,
    drained_queue_says_so_once,
    path_migration_is_refused_where_there_is_none,
    change_of_a_table_is_told_and_can_be_read,
    what_a_port_announces_is_told,
    kinds_have_the_numbers_of_c,
];

scenario!(event_of_a_cq_names_it: "ASYNC-02", "ASYNC-05");
fn event_of_a_cq_names_it(setup: &Setup<'_>) -> Result {
    let overrun = || -> Result<SmallCq<'_>> {
        let small = SmallCq::new(setup, Queue::Recv, 1)?;
        let cqe = small.cqe()?;
        small.push_all(0..cqe + 1)?;
        Ok(small)
    };
    // Each is read after both have come.
    let first = overrun()?;
    setup.poll_all(first.pair.a.send_cq)?;
    let second = overrun()?;
    setup.poll_all(second.pair.a.send_cq)?;
    let events = setup.async_events(setup.ctx_b())?;
    let of_cqs = events
        .iter()
        .filter(|event| event.event_type == AsyncEventType::CqErr);
    let elements: Vec<_> = of_cqs.map(|event| event.element).collect();
    let expected = [first.cq, second.cq].map(Element::Cq);
    check_eq!(
        "ASYNC-02",
        elements.iter().collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
    for event in &events {
        let fits = match event.event_type {
            AsyncEventType::CqErr => matches!(event.element, Element::Cq(_)),
            AsyncEventType::QpFatal => matches!(event.element, Element::Qp(_)),
            _ => false,
        };
        check!("ASYNC-05", fits, "events of CQs and queue pairs", "{event}");
    }
    Ok(())
}

scenario!(event_of_a_port_names_it:
    "ASYNC-02", "ASYNC-03", "ASYNC-09", "ASYNC-13", "ASYNC-05"; needs LAB);
fn event_of_a_port_names_it(setup: &Setup<'_>) -> Result {
    let (lab, port) = (setup.lab(), setup.port());
    let name = &setup.devices()?[0].name;
    let other = setup.open_device(name)?;
    for up in [false, true, true, false, true] {
        lab.set_port(setup.ctx_a(), port, up)?;
    }
    // What is as it was raises nothing.
    let kinds = [
        AsyncEventType::PortErr,
        AsyncEventType::PortActive,
        AsyncEventType::PortErr,
        AsyncEventType::PortActive,
    ];
    let expected = kinds.map(|event_type| AsyncEvent::new(event_type, Element::Port(port)));
    for context in [setup.ctx_a(), other] {
        let seen = setup.async_events(context)?;
        check_eq!(["ASYNC-05", "ASYNC-02"], seen, expected, "the events");
    }
    setup.no_async_event(setup.ctx_b(), "ASYNC-13")?;
    for (up, state) in [(false, PortState::Down), (true, PortState::Active)] {
        lab.set_port(setup.ctx_a(), port, up)?;
        let event = setup.async_event(setup.ctx_a()).rule("ASYNC-09")?;
        // It has been acknowledged.
        let twice = setup.ack_async_event(setup.ctx_a(), &event);
        expect_err(twice, ErrorKind::Usage, "ASYNC-03")?;
        let agrees = (event.event_type == AsyncEventType::PortActive) == up;
        check!("ASYNC-09", agrees, "the event of the change", "{event}");
        check_eq!(
            "ASYNC-09",
            setup.query_port(setup.ctx_a(), port)?.state,
            state
        );
    }
    Ok(())
}

scenario!(event_of_a_port_wakes_who_waits_for_it: "ASYNC-01"; needs LAB, THREADS);
fn event_of_a_port_wakes_who_waits_for_it(setup: &Setup<'_>) -> Result {
    let (context, port) = (setup.ctx_a(), setup.port());
    let got = setup.waits_until(
        "ASYNC-01",
        || setup.async_event(context),
        || Ok(setup.lab().set_port(context, port, false)?),
    )?;
    let expected = AsyncEvent::new(AsyncEventType::PortErr, Element::Port(port));
    check_eq!("ASYNC-01", got.rule("ASYNC-01")?, expected, "the event");
    Ok(())
}

scenario!(one_of_several_threads_gets_it: "ASYNC-04"; needs THREADS);
/// Three threads wait and three CQs overrun: each thread gets another event.
fn one_of_several_threads_gets_it(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ASYNC-04";
    let context = setup.ctx_b();
    let small = || SmallCq::new(setup, Queue::Recv, 1);
    let cqs = [small()?, small()?, small()?];
    let mut events: Vec<AsyncEvent> = thread::scope(|scope| {
        let threads = cqs
            .each_ref()
            .map(|_| scope.spawn(|| setup.async_event(context)));
        for small in &cqs {
            small.push_all(0..small.cqe()? + 1)?;
        }
        let join = |thread: thread::ScopedJoinHandle<'_, Result<AsyncEvent>>| {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<Result<_>>()
    })?;
    // Events that no thread waited for: a device may also report the queue pairs.
    events.extend(setup.async_events(context)?);
    for small in &cqs {
        let of_it = events
            .iter()
            .filter(|event| event.element == Element::Cq(small.cq));
        check_eq!(RULE, of_it.count(), 1, format!("events of {}", small.cq));
    }
    Ok(())
}

scenario!(message_before_rts_raises_at_most_comm_est: "ASYNC-08"; needs UC, MODIFY_CONNECT);
/// `COMM_EST` is for the receiver to go on by; a device need not raise it.
fn message_before_rts_raises_at_most_comm_est(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ASYNC-08";
    for qp_type in [QpType::Rc, QpType::Uc] {
        let options = PairOptions::of(qp_type);
        let [a, b] = [setup.ctx_a(), setup.ctx_b()].map(|side| setup.end(side, options));
        let (a, b) = (a?, b?);
        let rc = RcParams::default();
        setup.climb(&b, &a, rc, QpState::Rtr)?;
        setup.climb(&a, &b, rc, QpState::Rts)?;
        let send = |wr_id| -> Result {
            let data = [a.sge(0, 8)];
            b.recv(wr_id, 8)?;
            setup.post_send(a.qp, &[SendWr::send(wr_id, &data)])?;
            setup.successes(b.recv_cq, 1).rule(RULE).map(drop)
        };
        send(1)?;
        send(2)?;
        let comm_est = AsyncEvent::new(AsyncEventType::CommEst, Element::Qp(b.qp));
        let events = setup.async_events(b.context)?;
        check!(
            RULE,
            events.is_empty() || events == [comm_est],
            "nothing, or COMM_EST once",
            "{events:?} ({qp_type})"
        );
        let to_rts = QpModify::to(QpState::Rts).set(QpAttrMask::SQ_PSN, |attr| attr.sq_psn = 0);
        let to_rts = match qp_type {
            QpType::Rc => to_rts
                .set(QpAttrMask::TIMEOUT, |attr| attr.timeout = setup.timeout(14))
                .set(QpAttrMask::RETRY_CNT, |attr| attr.retry_cnt = 7)
                .set(QpAttrMask::RNR_RETRY, |attr| attr.rnr_retry = 7)
                .set(QpAttrMask::MAX_QP_RD_ATOMIC, |attr| attr.max_rd_atomic = 1),
            _ => to_rts,
        };
        setup.modify(b.qp, to_rts)?;
        send(3)?;
        setup.no_async_event(b.context, RULE)?;
    }
    Ok(())
}

scenario!(datagram_raises_nothing: "ASYNC-08"; needs UD);
fn datagram_raises_nothing(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(PairOptions::of(QpType::Ud))?;
    b.recv(1, 8)?;
    a.send(2, 8)?;
    setup.successes(b.recv_cq, 1)?;
    for end in [&a, &b] {
        setup.no_async_event(end.context, "ASYNC-08")?;
    }
    Ok(())
}

scenario!(every_kind_has_a_text_of_its_own: "ASYNC-11"; without RC);
fn every_kind_has_a_text_of_its_own(_: &Setup<'_>) -> Result {
    let texts: BTreeSet<_> = AsyncEventType::ALL
        .iter()
        .map(ToString::to_string)
        .collect();
    check_eq!("ASYNC-11", texts.len(), AsyncEventType::ALL.len(), "texts");
    check!("ASYNC-11", !texts.contains(""), "no empty text", "one");
    let unknown = AsyncEventType::from(u32::MAX).to_string();
    check!("ASYNC-11", !unknown.is_empty(), "a text", "none");
    Ok(())
}

scenario!(drained_queue_says_so_once: "ASYNC-16", "ASYNC-02"; needs MODIFY_CONNECT);
fn drained_queue_says_so_once(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ASYNC-16";
    let Pair { a, b } = setup.rc_pair()?;
    for round in 0..3 {
        for wr_id in 0..4 {
            b.recv(wr_id, 3000)?;
            a.send(wr_id, 3000)?;
        }
        let drain = QpModify::to(QpState::Sqd).set(QpAttrMask::EN_SQD_ASYNC_NOTIFY, |attr| {
            attr.en_sqd_async_notify = true;
        });
        setup.modify(a.qp, drain)?;
        let event = setup.async_event(a.context).rule(RULE)?;
        let expected = AsyncEvent::new(AsyncEventType::SqDrained, Element::Qp(a.qp));
        check_eq!("ASYNC-02", event, expected);
        // What was started is done; how much that is depends on the device.
        let before = setup.poll_all(a.send_cq)?.len();
        setup.modify(a.qp, QpModify::to(QpState::Rts))?;
        setup.successes(a.send_cq, 4 - before).rule(RULE)?;
        setup.successes(b.recv_cq, 4)?;
        let once = setup.no_async_event(a.context, RULE);
        in_case(&format!("round {round}"), once)?;
    }
    Ok(())
}

scenario!(path_migration_is_refused_where_there_is_none: "ASYNC-17"; needs MODIFY_CONNECT);
fn path_migration_is_refused_where_there_is_none(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ASYNC-17";
    if setup
        .capabilities(setup.ctx_a())?
        .contains(Capabilities::PATH_MIG)
    {
        // The rule is of devices without it.
        return Ok(());
    }
    let Pair { a, b } = setup.rc_pair()?;
    let way: AhAttr = setup.route_to(b.context)?;
    let alternate =
        QpModify::to(QpState::Rts).set(QpAttrMask::ALT_PATH, |attr| attr.alt_ah_attr = Some(way));
    match setup.modify_qp(a.qp, &alternate.attr, alternate.mask) {
        Err(error) if error.kind() == ErrorKind::Invalid => {}
        Err(error) if error.kind() == ErrorKind::NotSupported => {}
        result => {
            let seen = format!("{result:?}");
            let failure = Failure::assertion("EINVAL or EOPNOTSUPP", seen);
            return Err(failure).rule(RULE);
        }
    }
    check_eq!(RULE, setup.state(a.qp)?, QpState::Rts);
    quiet(setup, &[&a, &b], RULE)
}

fn quiet(setup: &Setup<'_>, ends: &[&End<'_>], rule: &'static str) -> Result {
    ends.iter()
        .try_for_each(|end| setup.no_async_event(end.context, rule))
}

/// The next event of a context is of this kind and of the port of the setup.
fn reported(setup: &Setup<'_>, context: Context, event_type: AsyncEventType) -> Result {
    let event = setup.async_event(context).rule("ASYNC-20")?;
    let element = Element::Port(setup.port());
    let expected = AsyncEvent::new(event_type, element);
    check_eq!(["ASYNC-20", "ASYNC-02"], event, expected);
    Ok(())
}

scenario!(change_of_a_table_is_told_and_can_be_read: "ASYNC-20", "ASYNC-13", "ASYNC-02"; needs LAB);
fn change_of_a_table_is_told_and_can_be_read(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ASYNC-20";
    let (lab, port, context) = (setup.lab(), setup.port(), setup.ctx_b());
    let other = setup.open_device(&setup.devices()?[1].name)?;
    let index = u32::from(setup.place().sgid_index);
    let pair = setup.pair(PairOptions {
        rc: gives_up_soon(),
        ..PairOptions::default()
    })?;
    let gid = Gid([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
    lab.set_gid(context, port, index, gid)?;
    // As a limited member of the default partition it still takes part.
    let (last, pkey) = (setup.query_port(context, port)?.pkey_tbl_len - 1, 0x7fff);
    lab.set_pkey(context, port, last, pkey)?;
    for context in [context, other] {
        reported(setup, context, AsyncEventType::GidChange)?;
        check_eq!(RULE, setup.query_gid(context, port, index)?, gid);
        reported(setup, context, AsyncEventType::PkeyChange)?;
        check_eq!(RULE, setup.query_pkey(context, port, last)?, pkey);
        setup.no_async_event(context, "ASYNC-13")?;
    }
    setup.no_async_event(setup.ctx_a(), "ASYNC-13")?;
    // The old address of the peer does not exist any more; the new one reaches it.
    pair.a.write(1, 8)?;
    setup.one_with(pair.a.send_cq, WcStatus::RetryExcErr, RULE)?;
    let a = setup.rc_pair()?.a;
    a.write(1, 8)?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE).map(drop)
}

scenario!(what_a_port_announces_is_told: "ASYNC-20", "ASYNC-21", "ASYNC-02"; needs LAB);
fn what_a_port_announces_is_told(setup: &Setup<'_>) -> Result {
    let kinds = [
        AsyncEventType::LidChange,
        AsyncEventType::SmChange,
        AsyncEventType::ClientReregister,
        AsyncEventType::DeviceSpeedChange,
    ];
    for kind in kinds {
        setup.lab().announce(setup.ctx_a(), setup.port(), kind)?;
        let result = reported(setup, setup.ctx_a(), kind);
        match kind {
            AsyncEventType::DeviceSpeedChange => result.rule("ASYNC-21")?,
            _ => result?,
        }
        setup.no_async_event(setup.ctx_b(), "ASYNC-20")?;
    }
    Ok(())
}

scenario!(kinds_have_the_numbers_of_c: "ASYNC-22"; without RC);
fn kinds_have_the_numbers_of_c(_: &Setup<'_>) -> Result {
    const IN_ORDER: [AsyncEventType; 21] = [
        AsyncEventType::CqErr,
        AsyncEventType::QpFatal,
        AsyncEventType::QpReqErr,
        AsyncEventType::QpAccessErr,
        AsyncEventType::CommEst,
        AsyncEventType::SqDrained,
        AsyncEventType::PathMig,
        AsyncEventType::PathMigErr,
        AsyncEventType::DeviceFatal,
        AsyncEventType::PortActive,
        AsyncEventType::PortErr,
        AsyncEventType::LidChange,
        AsyncEventType::PkeyChange,
        AsyncEventType::SmChange,
        AsyncEventType::SrqErr,
        AsyncEventType::SrqLimitReached,
        AsyncEventType::QpLastWqeReached,
        AsyncEventType::ClientReregister,
        AsyncEventType::GidChange,
        AsyncEventType::WqFatal,
        AsyncEventType::DeviceSpeedChange,
    ];
    for (number, kind) in (0_u32..).zip(IN_ORDER) {
        check_eq!("ASYNC-22", u32::from(kind), number, "the number");
        check_eq!("ASYNC-22", AsyncEventType::from(number), kind, "the kind");
    }
    Ok(())
}
