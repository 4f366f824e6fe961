//! The receives and the events when a queue pair fails or is destroyed, or when the SRQ itself
//! fails.

use verbs_api::lab::{Fault, FaultId, PacketFilter, PacketOpcode};
use verbs_api::{
    AsyncEvent, AsyncEventType, Element, ErrorKind, QpState, QpType, RcParams, RecvWr, WcStatus,
};

use super::{ROOM, Shared};
use crate::failure::{check, check_eq};
use crate::{Bench, Claim, OfRule, Pair, PairOptions, Result, expect_err};

scenario!(receives_stay_when_a_qp_is_destroyed: "SRQ-14"; needs SRQ);
fn receives_stay_when_a_qp_is_destroyed(bench: &Bench<'_>) -> Result {
    const RULE: &str = "SRQ-14";
    let shared = Shared::new(bench, 8)?;
    shared.post(0..4)?;
    for round in 0..4 {
        let pair = shared.pair(PairOptions::default())?;
        shared.takes(&pair, 1, round, RULE)?;
        bench.destroy_qp(pair.b.qp, bench.wait())?;
    }
    Ok(())
}

scenario!(completions_come_out_after_their_queue_is_gone: "CQ-DESTROY-08", "SRQ-11"; needs SRQ);
/// Those that did not go with their queue pair.
fn completions_come_out_after_their_queue_is_gone(bench: &Bench<'_>) -> Result {
    const RULE: &str = "CQ-DESTROY-08";
    let shared = Shared::new(bench, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    shared.post(0..4)?;
    for wr_id in 0..3 {
        pair.a.send(wr_id, 8)?;
    }
    bench.successes(pair.a.send_cq, 3)?;
    bench.settle()?;
    bench.destroy_qp(pair.b.qp, bench.wait())?;
    shared.destroy().rule("SRQ-11")?;
    let left = bench.poll_all(pair.b.recv_cq).rule(RULE)?;
    let seen: Vec<_> = left.iter().map(|wc| (wc.wr_id, wc.status)).collect();
    let all = [0, 1, 2].map(|wr_id| (wr_id, WcStatus::Success));
    check!(
        RULE,
        seen.is_empty() || seen == all,
        "all in order, or none",
        "{seen:?}"
    );
    bench.as_declared(RULE, bench.behavior()?.cqe_purge, seen.is_empty())
}

scenario!(receives_are_not_flushed_with_a_qp: "QP-FLUSH-04"; needs SRQ);
fn receives_are_not_flushed_with_a_qp(bench: &Bench<'_>) -> Result {
    const RULE: &str = "QP-FLUSH-04";
    let shared = Shared::new(bench, 8)?;
    let (fails, stays) = (
        shared.pair(PairOptions::default())?,
        shared.pair(PairOptions::default())?,
    );
    shared.post(0..4)?;
    shared.takes(&fails, 1, 0, RULE)?;
    bench.to_err(fails.b.qp)?;
    bench.no_completion(fails.b.recv_cq, RULE)?;
    for wr_id in 1..4 {
        shared.takes(&stays, 2, wr_id, RULE)?;
    }
    Ok(())
}

/// The event that a QP takes no receive any more, once and with nothing after it.
fn last_is_told(bench: &Bench<'_>, pair: &Pair<'_>, rule: &'static str) -> Result {
    let last = AsyncEvent::new(AsyncEventType::QpLastWqeReached, Element::Qp(pair.b.qp));
    let events = bench.async_events(pair.b.context)?;
    let told = events.iter().filter(|event| **event == last).count();
    check!(
        [rule, "ASYNC-02"],
        told == 1,
        format!("{last}, once"),
        "events: {events:?}"
    );
    Ok(())
}

scenario!(qp_in_error_has_taken_its_last_receive: "QP-FLUSH-05", "ASYNC-02"; needs SRQ);
fn qp_in_error_has_taken_its_last_receive(bench: &Bench<'_>) -> Result {
    const RULE: &str = "QP-FLUSH-05";
    let shared = Shared::new(bench, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    shared.post(0..4)?;
    shared.takes(&pair, 1, 0, RULE)?;
    bench.to_err(pair.b.qp)?;
    last_is_told(bench, &pair, RULE)?;
    // It is in error already.
    bench.to_err(pair.b.qp)?;
    bench.no_async_event(pair.b.context, RULE)?;
    bench.no_completion(pair.b.recv_cq, RULE)
}

/// The first packets of a message have arrived, its last never does.
fn begins<'b>(bench: &'b Bench<'_>, shared: &Shared<'b>) -> Result<(Pair<'b>, FaultId)> {
    let pair = shared.pair(PairOptions {
        rc: RcParams {
            path_mtu: verbs_api::Mtu::Mtu256,
            timeout: 8,
            retry_cnt: 1,
            ..RcParams::default()
        },
        ..PairOptions::default()
    })?;
    let lost = bench.lab().inject(Fault::drop(
        PacketFilter::EVERY
            .dest_qpn(pair.b.qp_num)
            .opcode(PacketOpcode::RcSendLast),
    ))?;
    pair.a.send(1, ROOM)?;
    bench.one_with(pair.a.send_cq, WcStatus::RetryExcErr, Claim::NONE)?;
    Ok((pair, lost))
}

scenario!(receive_under_way_is_flushed_before_the_last_is_told:
    "QP-FLUSH-05", "ASYNC-02"; needs SRQ, LAB);
fn receive_under_way_is_flushed_before_the_last_is_told(bench: &Bench<'_>) -> Result {
    const RULE: &str = "QP-FLUSH-05";
    let shared = Shared::new(bench, 8)?;
    shared.post(0..2)?;
    let (pair, lost) = begins(bench, &shared)?;
    bench.no_completion(pair.b.recv_cq, RULE)?;
    bench.to_err(pair.b.qp)?;
    last_is_told(bench, &pair, RULE)?;
    // What the event promises to be all is there.
    let got = bench.drain(pair.b.recv_cq)?;
    let seen: Vec<_> = got.iter().map(|wc| (wc.wr_id, wc.status)).collect();
    check_eq!(RULE, seen, [(0, WcStatus::WrFlushErr)], "the receives");
    bench.lab().remove(lost)?;
    shared.takes(&shared.pair(PairOptions::default())?, 2, 1, RULE)?;
    bench.no_completion(pair.b.recv_cq, RULE)
}

scenario!(reset_qp_gives_back_the_slot_it_had_taken: "SRQ-04", "SRQ-14"; needs SRQ, LAB);
/// Its receive is gone without a completion; the others and their slots are not.
fn reset_qp_gives_back_the_slot_it_had_taken(bench: &Bench<'_>) -> Result {
    for destroyed in [false, true] {
        let shared = Shared::new(bench, 4)?;
        shared.post(0..4)?;
        let (pair, lost) = begins(bench, &shared)?;
        if destroyed {
            bench.destroy_qp(pair.b.qp, bench.wait())?
        } else {
            bench.to_reset(pair.b.qp)?
        }
        bench.lab().remove(lost)?;
        let free = u64::from(shared.max_wr()?) - 3;
        check_eq!("SRQ-04", shared.room()?, free, "the free slots");
        shared.takes(&shared.pair(PairOptions::default())?, 2, 1, "SRQ-14")?;
    }
    Ok(())
}

scenario!(failed_queue_is_told_and_gives_no_receive: "SRQ-17", "ASYNC-02"; needs SRQ, LAB);
fn failed_queue_is_told_and_gives_no_receive(bench: &Bench<'_>) -> Result {
    const RULE: &str = "SRQ-17";
    let shared = Shared::new(bench, 4)?;
    let (takes, waits) = (
        shared.pair(PairOptions::default())?,
        shared.pair(PairOptions::default())?,
    );
    shared.post([0, 1])?;
    shared.takes(&takes, 1, 0, RULE)?;
    bench.lab().fail_srq(shared.srq)?;
    shared.event(AsyncEventType::SrqErr, [RULE, "ASYNC-02"])?;
    // One event reports it.
    bench.lab().fail_srq(shared.srq)?;
    bench.no_async_event(shared.context, RULE)?;
    let posted = bench.post_srq_recv(shared.srq, &[RecvWr::new(2, &[])]);
    expect_err(posted, ErrorKind::Invalid, RULE)?;
    expect_err(shared.set_limit(1), ErrorKind::Invalid, RULE)?;
    takes.a.send(2, 64)?;
    bench.one_with(takes.a.send_cq, WcStatus::RemOpErr, RULE)?;
    check_eq!(RULE, bench.state(takes.b.qp)?, QpState::Err);
    check_eq!(RULE, bench.state(waits.b.qp)?, QpState::Rts, "the other QP");
    for pair in [takes, waits] {
        bench.destroy_qp(pair.b.qp, bench.wait())?;
    }
    shared.destroy().rule(RULE)
}

scenario!(datagram_for_a_failed_queue_fails_its_qp: "SRQ-17"; needs UD, SRQ, LAB);
/// The sender does not notice.
fn datagram_for_a_failed_queue_fails_its_qp(bench: &Bench<'_>) -> Result {
    const RULE: &str = "SRQ-17";
    let shared = Shared::new(bench, 4)?;
    let pair = shared.pair(PairOptions::of(QpType::Ud))?;
    shared.post([0, 1])?;
    shared.takes(&pair, 1, 0, RULE)?;
    bench.lab().fail_srq(shared.srq)?;
    pair.a.send(2, 64)?;
    bench.one_with(pair.a.send_cq, WcStatus::Success, RULE)?;
    bench.no_completion(pair.b.recv_cq, RULE)?;
    check_eq!(RULE, bench.state(pair.b.qp)?, QpState::Err);
    Ok(())
}
