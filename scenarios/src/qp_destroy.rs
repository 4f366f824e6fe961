//! Destroying queue pairs: in any state, waiting for acknowledgements, what peers see.

use std::collections::BTreeSet;
use std::time::Duration;

use verbs_api::{
    AsyncEvent, AsyncEventType, Element, ErrorKind, QpAttrMask, QpInit, QpModify, QpState, QpType,
    Wait, WcStatus,
};

use crate::end::gives_up_soon;
use crate::failure::{check, check_eq, in_case};
use crate::fresh_qp::FreshQp;
use crate::{Claim, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    rc_qp_goes_in_every_state,
    uc_qp_goes_in_every_state,
    ud_qp_goes_in_every_state,
    uc_and_ud_qps_go_in_sqe,
    qp_goes_connected_and_in_error,
    would_block_until_async_events_are_acknowledged,
    waits_for_the_acknowledgement_of_an_async_event,
    unread_async_events_go_with_their_qp,
    peer_of_an_rc_qp_that_is_gone_gets_no_answer,
    message_to_a_qp_that_is_gone_reaches_no_other,
    number_of_a_qp_that_is_gone_is_used_again_as_declared,
    numbers_stay_good_however_many_were_used,
];

scenario!(rc_qp_goes_in_every_state: "QP-DESTROY-01"; needs MODIFY_CONNECT);
fn rc_qp_goes_in_every_state(setup: &Setup<'_>) -> Result {
    in_every_state(setup, QpType::Rc)
}

scenario!(uc_qp_goes_in_every_state: "QP-DESTROY-01"; needs UC, MODIFY_CONNECT);
fn uc_qp_goes_in_every_state(setup: &Setup<'_>) -> Result {
    in_every_state(setup, QpType::Uc)
}

scenario!(ud_qp_goes_in_every_state: "QP-DESTROY-01"; needs UD, MODIFY_CONNECT);
fn ud_qp_goes_in_every_state(setup: &Setup<'_>) -> Result {
    in_every_state(setup, QpType::Ud)
}

scenario!(uc_and_ud_qps_go_in_sqe: "QP-DESTROY-01"; needs UC, UD, MODIFY_CONNECT);
fn uc_and_ud_qps_go_in_sqe(setup: &Setup<'_>) -> Result {
    for qp_type in [QpType::Uc, QpType::Ud] {
        go_in(setup, qp_type, &[QpState::Sqe])?;
    }
    Ok(())
}

fn in_every_state(setup: &Setup<'_>, qp_type: QpType) -> Result {
    let states = [
        QpState::Reset,
        QpState::Init,
        QpState::Rtr,
        QpState::Rts,
        QpState::Sqd,
        QpState::Err,
    ];
    go_in(setup, qp_type, &states)
}

fn go_in(setup: &Setup<'_>, qp_type: QpType, states: &[QpState]) -> Result {
    for state in states {
        let qp = FreshQp::new(setup, qp_type)?;
        qp.reach(*state)?;
        let destroyed = setup.destroy_qp(qp.end.qp, setup.wait());
        in_case(&state.to_string(), destroyed.rule("QP-DESTROY-01"))?;
        let again = setup.destroy_qp(qp.end.qp, Wait::Poll);
        expect_err(again, ErrorKind::Invalid, "QP-DESTROY-01")?;
        for cq in [qp.end.send_cq, qp.end.recv_cq] {
            setup.destroy_cq(cq, setup.wait()).rule("QP-DESTROY-01")?;
        }
    }
    Ok(())
}

scenario!(qp_goes_connected_and_in_error: "QP-DESTROY-01");
/// Without single transitions.
fn qp_goes_connected_and_in_error(setup: &Setup<'_>) -> Result {
    for in_error in [false, true] {
        let Pair { a, b } = setup.rc_pair()?;
        if in_error {
            setup.to_err(a.qp)?;
        }
        for end in [a, b] {
            let destroyed = setup.destroy_qp(end.qp, setup.wait());
            destroyed.rule("QP-DESTROY-01")?;
            let again = setup.destroy_qp(end.qp, Wait::Poll);
            expect_err(again, ErrorKind::Invalid, "QP-DESTROY-01")?;
        }
    }
    Ok(())
}

/// A queue pair with an event: it has drained.
fn with_an_event<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    let pair = setup.rc_pair()?;
    let notify = QpModify::to(QpState::Sqd).set(QpAttrMask::EN_SQD_ASYNC_NOTIFY, |attr| {
        attr.en_sqd_async_notify = true;
    });
    setup.modify(pair.a.qp, notify)?;
    Ok(pair)
}

fn take(setup: &Setup<'_>, pair: &Pair<'_>) -> Result<AsyncEvent> {
    let event = setup.take_async_event(pair.a.context)?;
    let expected = AsyncEvent::new(AsyncEventType::SqDrained, Element::Qp(pair.a.qp));
    check_eq!(Claim::NONE, event, expected, "the event");
    Ok(event)
}

scenario!(would_block_until_async_events_are_acknowledged:
    "QP-DESTROY-03", "ASYNC-03"; needs MODIFY_CONNECT; hazards MAY_HANG);
fn would_block_until_async_events_are_acknowledged(setup: &Setup<'_>) -> Result {
    let pair = with_an_event(setup)?;
    let event = take(setup, &pair)?;
    let (qp, context) = (pair.a.qp, pair.a.context);
    let waits = [
        (Wait::Poll, ErrorKind::WouldBlock),
        (Wait::For(Duration::from_millis(1)), ErrorKind::TimedOut),
    ];
    for (wait, kind) in waits {
        expect_err(
            setup.destroy_qp(qp, wait),
            kind,
            ["QP-DESTROY-03", "ASYNC-03"],
        )?;
    }
    // Nothing has changed.
    let state = setup.state(qp).rule("QP-DESTROY-03")?;
    check_eq!("QP-DESTROY-03", state, QpState::Sqd);
    setup.ack_async_event(context, &event)?;
    setup.destroy_qp(qp, Wait::Poll).rule("QP-DESTROY-03")
}

scenario!(waits_for_the_acknowledgement_of_an_async_event:
    "QP-DESTROY-03", "ASYNC-03"; needs MODIFY_CONNECT, THREADS; hazards MAY_HANG);
fn waits_for_the_acknowledgement_of_an_async_event(setup: &Setup<'_>) -> Result {
    let pair = with_an_event(setup)?;
    let event = take(setup, &pair)?;
    let (qp, context) = (pair.a.qp, pair.a.context);
    let destroyed = setup.waits_until(
        ["QP-DESTROY-03", "ASYNC-03"],
        || setup.destroy_qp(qp, setup.wait()),
        || Ok(setup.ack_async_event(context, &event)?),
    )?;
    destroyed.rule("QP-DESTROY-03")
}

scenario!(unread_async_events_go_with_their_qp:
    "QP-DESTROY-03", "ASYNC-06"; needs MODIFY_CONNECT; hazards MAY_HANG);
fn unread_async_events_go_with_their_qp(setup: &Setup<'_>) -> Result {
    let pair = with_an_event(setup)?;
    setup.settle()?;
    let destroyed = setup.destroy_qp(pair.a.qp, Wait::Poll);
    destroyed.rule("QP-DESTROY-03")?;
    setup.no_async_event(pair.a.context, "ASYNC-06")
}

scenario!(peer_of_an_rc_qp_that_is_gone_gets_no_answer: "QP-DESTROY-05");
fn peer_of_an_rc_qp_that_is_gone_gets_no_answer(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(PairOptions {
        rc: gives_up_soon(),
        ..PairOptions::default()
    })?;
    b.recv(1, 8)?;
    setup.destroy_qp(b.qp, setup.wait())?;
    // On iWARP the sender is notified.
    setup.settle()?;
    a.send(2, 8)?;
    let wc = setup.one_with(a.send_cq, WcStatus::RetryExcErr, "QP-DESTROY-05")?;
    check_eq!("QP-DESTROY-05", wc.wr_id, 2);
    Ok(())
}

scenario!(message_to_a_qp_that_is_gone_reaches_no_other: "QP-DESTROY-05"; needs MODIFY_CONNECT);
/// In the meantime others are created on its CQs, brought to its state, with receives.
fn message_to_a_qp_that_is_gone_reaches_no_other(setup: &Setup<'_>) -> Result {
    let (mut a, b) = FreshQp::pair(setup, QpType::Rc)?;
    a.gives_up_soon();
    a.reach(QpState::Rts)?;
    b.reach(QpState::Rts)?;
    setup.destroy_qp(b.end.qp, setup.wait())?;
    let mut others = Vec::new();
    for _ in 0..4 {
        let mut other = FreshQp::new(setup, QpType::Rc)?;
        // If it has the number of the destroyed one, their sequences still tell them apart.
        other.attr.rq_psn = 0xff_0000;
        other.reach(QpState::Rts)?;
        other.end.recv(1, 8)?;
        others.push(other);
    }
    a.end.send(2, 8)?;
    setup.one_with(a.end.send_cq, WcStatus::RetryExcErr, "QP-DESTROY-05")?;
    for other in others {
        let seen = setup.drain(other.end.recv_cq)?;
        check!("QP-DESTROY-05", seen.is_empty(), "none", "{seen:?}");
    }
    Ok(())
}

scenario!(number_of_a_qp_that_is_gone_is_used_again_as_declared: "QP-DESTROY-06");
fn number_of_a_qp_that_is_gone_is_used_again_as_declared(setup: &Setup<'_>) -> Result {
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let init = QpInit::new(QpType::Rc, end.send_cq, end.recv_cq);
    let mut gone = BTreeSet::new();
    let mut reused = false;
    for _ in 0..8 {
        let qp = setup.create_qp(end.pd, &init)?;
        reused |= !gone.insert(setup.qp_num(qp)?);
        setup.destroy_qp(qp, setup.wait())?;
    }
    let declared = setup.behavior()?.number_reuse;
    setup.as_declared("QP-DESTROY-06", declared, reused)
}

scenario!(numbers_stay_good_however_many_were_used: "QP-CREATE-07");
/// They have 24 bits, and one that came late gets its messages.
fn numbers_stay_good_however_many_were_used(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-CREATE-07";
    let rounds = match setup.verbs().lab() {
        Some(_) => 9000,
        None => 200,
    };
    let end = setup.end(setup.ctx_b(), PairOptions::default())?;
    let init = QpInit::new(QpType::Rc, end.send_cq, end.recv_cq);
    for round in 0..rounds {
        let qp = setup.create_qp(end.pd, &init)?;
        let number = setup.qp_num(qp)?;
        check!(
            RULE,
            (2..1 << 24).contains(&number),
            "a number of 24 bits, except 0 and 1",
            "{number:#x}"
        );
        setup.destroy_qp(qp, setup.wait())?;
        if round % (rounds / 4) == 100 {
            setup.rc_pair()?.still_works(RULE)?;
        }
    }
    setup.rc_pair()?.still_works(RULE)
}
