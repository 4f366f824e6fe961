//! The receives and the events when a queue pair fails or is destroyed, or when the SRQ itself
//! fails.

use verbs_api::lab::{Fault, FaultId, PacketFilter, PacketOpcode};
use verbs_api::{
    AsyncEvent, AsyncEventType, Element, ErrorKind, QpState, QpType, RcParams, RecvWr, WcStatus,
};

use super::{ROOM, Shared};
use crate::failure::{check, check_eq};
use crate::{Claim, OfRule, Pair, PairOptions, Result, Setup, expect_err};

scenario!(receives_stay_when_a_qp_is_destroyed: "SRQ-14"; needs SRQ);
fn receives_stay_when_a_qp_is_destroyed(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-14";
    let shared = Shared::new(setup, 8)?;
    shared.post(0..4)?;
    for round in 0..4 {
        let pair = shared.pair(PairOptions::default())?;
        shared.takes(&pair, 1, round, RULE)?;
        setup.destroy_qp(pair.b.qp, setup.wait())?;
    }
    Ok(())
}

scenario!(completions_come_out_after_their_queue_is_gone: "CQ-DESTROY-08", "SRQ-11"; needs SRQ);
/// Those that did not go with their queue pair.
fn completions_come_out_after_their_queue_is_gone(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-DESTROY-08";
    let shared = Shared::new(setup, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    shared.post(0..4)?;
    for wr_id in 0..3 {
        pair.a.send(wr_id, 8)?;
    }
    setup.successes(pair.a.send_cq, 3)?;
    setup.settle()?;
    setup.destroy_qp(pair.b.qp, setup.wait())?;
    shared.destroy().rule("SRQ-11")?;
    let left = setup.poll_all(pair.b.recv_cq).rule(RULE)?;
    let seen: Vec<_> = left.iter().map(|wc| (wc.wr_id, wc.status)).collect();
    let all = [0, 1, 2].map(|wr_id| (wr_id, WcStatus::Success));
    check!(
        RULE,
        seen.is_empty() || seen == all,
        "all in order, or none",
        "{seen:?}"
    );
    setup.as_declared(RULE, setup.behavior()?.cqe_purge, seen.is_empty())
}

scenario!(receives_are_not_flushed_with_a_qp: "QP-FLUSH-04"; needs SRQ);
fn receives_are_not_flushed_with_a_qp(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-FLUSH-04";
    let shared = Shared::new(setup, 8)?;
    let (fails, stays) = (
        shared.pair(PairOptions::default())?,
        shared.pair(PairOptions::default())?,
    );
    shared.post(0..4)?;
    shared.takes(&fails, 1, 0, RULE)?;
    setup.to_err(fails.b.qp)?;
    setup.no_completion(fails.b.recv_cq, RULE)?;
    for wr_id in 1..4 {
        shared.takes(&stays, 2, wr_id, RULE)?;
    }
    Ok(())
}

/// The event that a QP takes no receive any more, once and with nothing after it.
fn last_is_told(setup: &Setup<'_>, pair: &Pair<'_>, rule: &'static str) -> Result {
    let last = AsyncEvent::new(AsyncEventType::QpLastWqeReached, Element::Qp(pair.b.qp));
    let events = setup.async_events(pair.b.context)?;
    let reported = events.iter().filter(|event| **event == last).count();
    check!(
        [rule, "ASYNC-02"],
        reported == 1,
        format!("{last}, once"),
        "events: {events:?}"
    );
    Ok(())
}

scenario!(qp_in_error_has_taken_its_last_receive: "QP-FLUSH-05", "ASYNC-02"; needs SRQ);
fn qp_in_error_has_taken_its_last_receive(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-FLUSH-05";
    let shared = Shared::new(setup, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    shared.post(0..4)?;
    shared.takes(&pair, 1, 0, RULE)?;
    setup.to_err(pair.b.qp)?;
    last_is_told(setup, &pair, RULE)?;
    // It is in error already.
    setup.to_err(pair.b.qp)?;
    setup.no_async_event(pair.b.context, RULE)?;
    setup.no_completion(pair.b.recv_cq, RULE)
}

/// The first packets of a message have arrived, its last never does.
fn begins<'b>(setup: &'b Setup<'_>, shared: &Shared<'b>) -> Result<(Pair<'b>, FaultId)> {
    let pair = shared.pair(PairOptions {
        rc: RcParams {
            path_mtu: verbs_api::Mtu::Mtu256,
            timeout: 8,
            retry_cnt: 1,
            ..RcParams::default()
        },
        ..PairOptions::default()
    })?;
    let lost = setup.lab().inject(Fault::drop(
        PacketFilter::EVERY
            .dest_qpn(pair.b.qp_num)
            .opcode(PacketOpcode::RcSendLast),
    ))?;
    pair.a.send(1, ROOM)?;
    setup.one_with(pair.a.send_cq, WcStatus::RetryExcErr, Claim::NONE)?;
    Ok((pair, lost))
}

scenario!(receive_under_way_is_flushed_before_the_last_is_told:
    "QP-FLUSH-05", "ASYNC-02"; needs SRQ, LAB);
fn receive_under_way_is_flushed_before_the_last_is_told(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-FLUSH-05";
    let shared = Shared::new(setup, 8)?;
    shared.post(0..2)?;
    let (pair, lost) = begins(setup, &shared)?;
    setup.no_completion(pair.b.recv_cq, RULE)?;
    setup.to_err(pair.b.qp)?;
    last_is_told(setup, &pair, RULE)?;
    // What the event promises to be all is there.
    let got = setup.drain(pair.b.recv_cq)?;
    let seen: Vec<_> = got.iter().map(|wc| (wc.wr_id, wc.status)).collect();
    check_eq!(RULE, seen, [(0, WcStatus::WrFlushErr)], "the receives");
    setup.lab().remove(lost)?;
    shared.takes(&shared.pair(PairOptions::default())?, 2, 1, RULE)?;
    setup.no_completion(pair.b.recv_cq, RULE)
}

scenario!(reset_qp_gives_back_the_slot_it_had_taken: "SRQ-04", "SRQ-14"; needs SRQ, LAB);
/// Its receive is used without a completion; the others and their slots are not.
fn reset_qp_gives_back_the_slot_it_had_taken(setup: &Setup<'_>) -> Result {
    for destroyed in [false, true] {
        let shared = Shared::new(setup, 4)?;
        shared.post(0..4)?;
        let (pair, lost) = begins(setup, &shared)?;
        if destroyed {
            setup.destroy_qp(pair.b.qp, setup.wait())?
        } else {
            setup.to_reset(pair.b.qp)?
        }
        setup.lab().remove(lost)?;
        let free = u64::from(shared.max_wr()?) - 3;
        check_eq!("SRQ-04", shared.room()?, free, "the free slots");
        shared.takes(&shared.pair(PairOptions::default())?, 2, 1, "SRQ-14")?;
    }
    Ok(())
}

scenario!(failed_queue_is_told_and_gives_no_receive: "SRQ-17", "ASYNC-02"; needs SRQ, LAB);
fn failed_queue_is_told_and_gives_no_receive(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-17";
    let shared = Shared::new(setup, 4)?;
    let (takes, waits) = (
        shared.pair(PairOptions::default())?,
        shared.pair(PairOptions::default())?,
    );
    shared.post([0, 1])?;
    shared.takes(&takes, 1, 0, RULE)?;
    setup.lab().fail_srq(shared.srq)?;
    shared.event(AsyncEventType::SrqErr, [RULE, "ASYNC-02"])?;
    // One event reports it.
    setup.lab().fail_srq(shared.srq)?;
    setup.no_async_event(shared.context, RULE)?;
    let posted = setup.post_srq_recv(shared.srq, &[RecvWr::new(2, &[])]);
    expect_err(posted, ErrorKind::Invalid, RULE)?;
    expect_err(shared.set_limit(1), ErrorKind::Invalid, RULE)?;
    takes.a.send(2, 64)?;
    setup.one_with(takes.a.send_cq, WcStatus::RemOpErr, RULE)?;
    check_eq!(RULE, setup.state(takes.b.qp)?, QpState::Err);
    check_eq!(RULE, setup.state(waits.b.qp)?, QpState::Rts, "the other QP");
    for pair in [takes, waits] {
        setup.destroy_qp(pair.b.qp, setup.wait())?;
    }
    shared.destroy().rule(RULE)
}

scenario!(datagram_for_a_failed_queue_fails_its_qp: "SRQ-17"; needs UD, SRQ, LAB);
/// The sender does not notice.
fn datagram_for_a_failed_queue_fails_its_qp(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-17";
    let shared = Shared::new(setup, 4)?;
    let pair = shared.pair(PairOptions::of(QpType::Ud))?;
    shared.post([0, 1])?;
    shared.takes(&pair, 1, 0, RULE)?;
    setup.lab().fail_srq(shared.srq)?;
    pair.a.send(2, 64)?;
    setup.one_with(pair.a.send_cq, WcStatus::Success, RULE)?;
    setup.no_completion(pair.b.recv_cq, RULE)?;
    check_eq!(RULE, setup.state(pair.b.qp)?, QpState::Err);
    Ok(())
}
