//! Which side of a queue pair runs in each state.

use verbs_api::{AsyncEvent, AsyncEventType, Element, QpState, QpType, SendWr, WcStatus};

use crate::failure::{check, check_eq, in_case};
use crate::fresh_qp::FreshQp;
use crate::{OfRule, Result, Setup, wr_ids};

/// A state, whether its send queue runs, and whether its receive queue takes messages (table A3 of
/// the rules). SQE is apart, since not every device and transport has it.
const STATES: [(QpState, bool, bool); 6] = [
    (QpState::Reset, false, false),
    (QpState::Init, false, false),
    (QpState::Rtr, false, true),
    (QpState::Rts, true, true),
    (QpState::Sqd, false, true),
    (QpState::Err, false, false),
];

scenario!(rc_qp_runs_as_its_state_says:
    "QP-STATE-10", "QP-STATE-13", "QP-STATE-20", "QP-STATE-22", "QP-STATE-23";
    needs MODIFY_CONNECT, RDMA_READ);
fn rc_qp_runs_as_its_state_says(setup: &Setup<'_>) -> Result {
    table(setup, QpType::Rc)
}

scenario!(uc_qp_runs_as_its_state_says:
    "QP-STATE-10", "QP-STATE-13", "QP-STATE-20", "QP-STATE-22", "QP-STATE-23";
    needs UC, MODIFY_CONNECT);
fn uc_qp_runs_as_its_state_says(setup: &Setup<'_>) -> Result {
    table(setup, QpType::Uc)
}

scenario!(ud_qp_runs_as_its_state_says:
    "QP-STATE-10", "QP-STATE-13", "QP-STATE-20", "QP-STATE-22", "QP-STATE-23";
    needs UD, MODIFY_CONNECT);
fn ud_qp_runs_as_its_state_says(setup: &Setup<'_>) -> Result {
    table(setup, QpType::Ud)
}

scenario!(xrc_qp_runs_as_its_state_says:
    "QP-STATE-10", "QP-STATE-13", "QP-STATE-20", "QP-STATE-22", "QP-STATE-23";
    needs MODIFY_CONNECT, XRC);
/// The sender, and an SRQ of the receiving end.
fn xrc_qp_runs_as_its_state_says(setup: &Setup<'_>) -> Result {
    table(setup, QpType::XrcSend)
}

fn table(setup: &Setup<'_>, qp_type: QpType) -> Result {
    for (state, sends, takes) in STATES {
        let result = sends_in(setup, qp_type, state, sends);
        in_case(&format!("the send queue in {state}"), result)?;
        let result = takes_in(setup, qp_type, state, takes);
        in_case(&format!("the receive queue in {state}"), result)?;
    }
    Ok(())
}

/// What is posted in the state is sent, or is not: the peer sees it.
fn sends_in(setup: &Setup<'_>, qp_type: QpType, state: QpState, sends: bool) -> Result {
    const RULE: &str = "QP-STATE-10";
    let (a, b) = FreshQp::pair(setup, qp_type)?;
    b.reach(QpState::Rts)?;
    a.reach(state)?;
    b.end.recv(1, 8)?;
    // What the post answers is bad input's.
    let data = [a.end.sge(0, 8)];
    let _ = a.post(&[SendWr::send(2, &data)]);
    if sends {
        for cq in [a.end.send_cq, b.end.recv_cq] {
            setup.successes(cq, 1).rule(RULE)?;
        }
        return Ok(());
    }
    setup.no_completion(b.end.recv_cq, RULE)?;
    let own = setup.drain(a.end.send_cq)?;
    let flushed = own.iter().all(|wc| wc.status == WcStatus::WrFlushErr);
    check!(RULE, flushed, "no completion but a flush", "{own:?}");
    Ok(())
}

/// A message from the peer is received, or is dropped.
fn takes_in(setup: &Setup<'_>, qp_type: QpType, state: QpState, takes: bool) -> Result {
    let (mut a, b) = FreshQp::pair(setup, qp_type)?;
    a.gives_up_soon();
    a.reach(QpState::Rts)?;
    b.reach(state)?;
    let posted = b.end.recv(1, 64);
    if takes {
        posted.rule("QP-STATE-20")?;
    }
    a.end.fill(3, 8)?;
    a.end.send(2, 8)?;
    if takes {
        let rule = match state {
            QpState::Sqd => "QP-STATE-13",
            QpState::Rtr => "QP-STATE-22",
            _ => "QP-STATE-20",
        };
        setup.successes(b.end.recv_cq, 1).rule(rule)?;
        setup.successes(a.end.send_cq, 1).rule(rule)?;
        return b.end.expect_data(3, 8, rule);
    }
    let sent = setup.one(a.end.send_cq)?;
    let lost = [
        WcStatus::RetryExcErr,
        WcStatus::RemOpErr,
        WcStatus::FatalErr,
    ];
    let expected = match qp_type {
        QpType::Rc | QpType::XrcSend => lost.contains(&sent.status),
        _ => sent.status == WcStatus::Success,
    };
    check!(
        "QP-STATE-23",
        expected,
        "a message that is dropped",
        "{sent}"
    );
    let got = setup.drain(b.end.recv_cq)?;
    let flushed = got.iter().all(|wc| wc.status == WcStatus::WrFlushErr);
    check!("QP-STATE-23", flushed, "no message", "{got:?}");
    check_eq!("QP-STATE-23", setup.state(b.end.qp)?, state);
    Ok(())
}

scenario!(receives_posted_in_init_are_used_from_rtr_on: "QP-STATE-20"; needs MODIFY_CONNECT);
fn receives_posted_in_init_are_used_from_rtr_on(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-20";
    let (a, b) = FreshQp::pair(setup, QpType::Rc)?;
    a.reach(QpState::Rts)?;
    let mut wr_id = 0;
    for state in [QpState::Init, QpState::Rtr, QpState::Rts, QpState::Sqd] {
        b.reach(state)?;
        for _ in 0..2 {
            b.end.recv(wr_id, 8).rule(RULE)?;
            wr_id += 1;
        }
    }
    for i in 0..wr_id {
        a.end.send(i, 8)?;
    }
    let got = setup.successes(b.end.recv_cq, wr_id as usize).rule(RULE)?;
    check_eq!(RULE, wr_ids(&got), (0..wr_id).collect::<Vec<_>>());
    Ok(())
}

scenario!(qp_in_rtr_is_read_and_written: "QP-STATE-22"; needs MODIFY_CONNECT, RDMA_READ);
fn qp_in_rtr_is_read_and_written(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-22";
    let (a, b) = FreshQp::pair(setup, QpType::Rc)?;
    a.reach(QpState::Rts)?;
    b.reach(QpState::Rtr)?;
    for (tag, length) in [(1, 8), (2, 4000)] {
        a.end.fill(tag, length)?;
        b.end.fill(tag + 100, length)?;
        a.end.write(1, length)?;
        a.end.read(2, length)?;
        let done = setup.successes(a.end.send_cq, 2).rule(RULE)?;
        check_eq!(RULE, wr_ids(&done), [1, 2]);
        b.end.expect_data(tag, length, RULE)?;
        a.end.expect_data(tag + 100, length, RULE)?;
    }
    check_eq!(RULE, setup.state(b.end.qp)?, QpState::Rtr);
    Ok(())
}

scenario!(message_that_is_tried_again_finds_the_qp_ready: "QP-STATE-23"; needs MODIFY_CONNECT, LAB);
/// A retry comes after the responder is ready: what was dropped before is sent again.
fn message_that_is_tried_again_finds_the_qp_ready(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-23";
    for state in [QpState::Reset, QpState::Init] {
        let (a, b) = FreshQp::pair(setup, QpType::Rc)?;
        a.reach(QpState::Rts)?;
        b.reach(state)?;
        a.end.send(1, 8)?;
        // The first try is lost, and the first retry far.
        setup.lab().advance(std::time::Duration::from_millis(1))?;
        let early = setup.drain(a.end.send_cq)?;
        check!(RULE, early.is_empty(), "no completion yet", "{early:?}");
        b.reach(QpState::Rtr)?;
        b.end.recv(2, 8)?;
        for cq in [a.end.send_cq, b.end.recv_cq] {
            setup.successes(cq, 1).rule(RULE)?;
        }
    }
    Ok(())
}

scenario!(message_that_comes_in_init_is_kept_as_declared: "QP-STATE-23"; needs MODIFY_CONNECT, LAB);
/// It is dropped, and tried again long after; or it is there as soon as the queue pair is ready.
fn message_that_comes_in_init_is_kept_as_declared(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-23";
    let moment = std::time::Duration::from_millis(1);
    let (a, b) = FreshQp::pair(setup, QpType::Rc)?;
    a.reach(QpState::Rts)?;
    b.reach(QpState::Init)?;
    b.end.recv(2, 8)?;
    a.end.send(1, 8)?;
    setup.lab().advance(moment)?;
    b.reach(QpState::Rtr)?;
    setup.lab().advance(moment)?;
    let early = setup.drain(b.end.recv_cq)?;
    let left = 1 - early.len().min(1);
    setup.successes(b.end.recv_cq, left).rule(RULE)?;
    setup.successes(a.end.send_cq, 1).rule(RULE)?;
    let declared = setup.behavior()?.buffer_when_not_ready;
    setup.as_declared(RULE, declared, !early.is_empty())
}

scenario!(first_message_in_rtr_is_told_as_declared:
    "QP-STATE-24", "ASYNC-08"; needs MODIFY_CONNECT);
fn first_message_in_rtr_is_told_as_declared(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-24";
    let reported = established(setup, QpType::Rc)?;
    check!(
        [RULE, "ASYNC-08"],
        reported <= 1,
        "at most one event",
        "{reported}"
    );
    setup.as_declared(RULE, setup.behavior()?.comm_est, reported == 1)
}

scenario!(first_datagram_in_rtr_is_not_told: "QP-STATE-24"; needs UD, MODIFY_CONNECT);
fn first_datagram_in_rtr_is_not_told(setup: &Setup<'_>) -> Result {
    check_eq!("QP-STATE-24", established(setup, QpType::Ud)?, 0, "events");
    Ok(())
}

/// Messages arrive in RTR: how many events tell it. The state stays.
fn established(setup: &Setup<'_>, qp_type: QpType) -> Result<usize> {
    const RULE: &str = "QP-STATE-24";
    let (a, b) = FreshQp::pair(setup, qp_type)?;
    a.reach(QpState::Rts)?;
    b.reach(QpState::Rtr)?;
    for wr_id in 0..3 {
        b.end.recv(wr_id, 8)?;
        a.end.send(wr_id, 8)?;
        setup.successes(b.end.recv_cq, 1)?;
    }
    let events = setup.async_events(b.end.context)?;
    let expected = AsyncEvent::new(AsyncEventType::CommEst, Element::Qp(b.end.qp));
    for event in &events {
        check_eq!(RULE, *event, expected, "the event");
    }
    check_eq!(RULE, setup.state(b.end.qp)?, QpState::Rtr);
    b.reach(QpState::Rts)?;
    b.end.recv(9, 8)?;
    a.end.send(9, 8)?;
    setup.successes(b.end.recv_cq, 1)?;
    let later = setup.async_events(b.end.context)?;
    Ok(events.len() + later.len())
}
