//! Work that cannot be posted.

use verbs_api::behavior::{Errno, SqRelease};
use verbs_api::{
    Arm, Cq, ErrorKind, PostError, QpAttrMask, QpCap, QpState, QpType, RecvWr, SendWr, WcStatus,
};

use super::refused;
use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::fresh_qp::FreshQp;
use crate::{End, OfRule, PairOptions, Result, Setup, expect_err, wr_ids};

const INVALID: [ErrorKind; 1] = [ErrorKind::Invalid];
const FULL: [ErrorKind; 1] = [ErrorKind::NoMemory];
/// Too much of something: both are good, a device has one of them.
const TOO_MUCH: [ErrorKind; 2] = [ErrorKind::Invalid, ErrorKind::NoMemory];

scenario!(list_of_sends_stops_at_the_bad_one: "SQ-01", "SQ-06");
fn list_of_sends_stops_at_the_bad_one(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    let most = cap(setup, &a)?.max_send_sge as usize;
    let (good, full) = ([a.sge(0, 8)], vec![a.sge(0, 1); most]);
    let too_many = vec![a.sge(0, 1); most + 1];
    let list = [
        SendWr::send(1, &good),
        SendWr::send(2, &full),
        SendWr::send(3, &too_many),
        SendWr::send(4, &good),
    ];
    for wr_id in 1..=2 {
        b.recv(wr_id, 64)?;
    }
    let error = refused(setup, &TOO_MUCH, "SQ-06", || setup.post_send(a.qp, &list))?;
    declared_errno(setup, "SQ-06", &error)?;
    check_eq!("SQ-01", error.bad_wr, 2);
    for cq in [a.send_cq, b.recv_cq] {
        let seen = wr_ids(&setup.successes(cq, 2).rule("SQ-01")?);
        check_eq!("SQ-01", seen, [1, 2], "the work before the bad one");
        setup.no_completion(cq, "SQ-01")?;
    }
    pair.still_works("SQ-01")
}

scenario!(list_of_receives_stops_at_the_bad_one: "RQ-01", "RQ-03");
fn list_of_receives_stops_at_the_bad_one(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    let most = cap(setup, &b)?.max_recv_sge as usize;
    let entry = |i: usize| b.sge(b.landing() + 8 * i as u64, 8);
    let full: Vec<_> = (0..most).map(entry).collect();
    let too_many: Vec<_> = (0..=most).map(entry).collect();
    let list = [
        RecvWr::new(1, &full[..1]),
        RecvWr::new(2, &full),
        RecvWr::new(3, &too_many),
        RecvWr::new(4, &full),
    ];
    let error = refused(setup, &INVALID, "RQ-03", || setup.post_recv(b.qp, &list))?;
    check_eq!("RQ-01", error.bad_wr, 2);
    for wr_id in 1..=2 {
        a.send(wr_id, 8)?;
    }
    let seen = wr_ids(&setup.successes(b.recv_cq, 2).rule("RQ-01")?);
    check_eq!("RQ-01", seen, [1, 2], "the receives before the bad one");
    setup.successes(a.send_cq, 2)?;
    // It takes a receive of its own: neither the third nor the fourth was posted.
    pair.still_works("RQ-01")
}

scenario!(list_for_a_queue_pair_that_is_none_stops_at_its_first: "SQ-01", "RQ-01");
fn list_for_a_queue_pair_that_is_none_stops_at_its_first(setup: &Setup<'_>) -> Result {
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    setup.destroy_qp(end.qp, setup.wait())?;
    let data = [end.sge(0, 8)];
    let sends = [SendWr::send(1, &data), SendWr::send(2, &data)];
    let sent = setup.post_send(end.qp, &sends);
    check_eq!(
        "SQ-01",
        expect_err(sent, ErrorKind::Invalid, "SQ-01")?.bad_wr,
        0
    );
    let receives = [RecvWr::new(1, &data), RecvWr::new(2, &data)];
    let received = setup.post_recv(end.qp, &receives);
    check_eq!(
        "RQ-01",
        expect_err(received, ErrorKind::Invalid, "RQ-01")?.bad_wr,
        0
    );
    Ok(())
}

scenario!(too_much_inline_data_is_refused: "SQ-09");
fn too_much_inline_data_is_refused(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(PairOptions {
        cap: QpCap {
            max_inline_data: 64,
            ..QpCap::default()
        },
        ..PairOptions::default()
    })?;
    let (a, b) = (pair.a, pair.b);
    let most = cap(setup, &a)?.max_inline_data;
    let longest = setup.query_port(a.context, setup.port())?.max_msg_sz;
    let [one_more, all] = [most + 1, longest].map(|length| [a.sge(0, length)]);
    let bytes = vec![0; most as usize + 1];
    for too_much in [
        SendWr::send(1, &one_more).inline(),
        SendWr::send(1, &all).inline(),
        SendWr::send(1, &[]).inline_data(&bytes),
    ] {
        let error = refused(setup, &TOO_MUCH, "SQ-09", || {
            setup.post_send(a.qp, &[too_much])
        })?;
        declared_errno(setup, "SQ-09", &error)?;
        check_eq!("SQ-09", error.bad_wr, 0);
    }
    b.recv(2, most)?;
    a.post(SendWr::send(3, &[a.sge(0, most)]).inline())
        .rule("SQ-09")?;
    setup.successes(b.recv_cq, 1)?;
    setup.successes(a.send_cq, 1)?;
    pair.still_works("SQ-09")
}

scenario!(inline_read_is_refused: "SQ-10"; needs RDMA_READ);
fn inline_read_is_refused(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(PairOptions {
        cap: QpCap {
            max_inline_data: 64,
            ..QpCap::default()
        },
        ..PairOptions::default()
    })?;
    let a = pair.a;
    let bytes = SendWr::rdma_read(1, &[], a.remote()).inline_data(&[0; 8]);
    expect_err(setup.post_send(a.qp, &[bytes]), ErrorKind::Invalid, "SQ-10")?;
    let into = [a.sge(a.landing(), 8)];
    let read = SendWr::rdma_read(1, &into, a.remote()).inline();
    match setup.post_send(a.qp, &[read]) {
        Ok(()) => {
            let wc = setup.one(a.send_cq)?;
            let failed = wc.status != WcStatus::Success;
            check!("SQ-10", failed, "an error", "{wc}");
            Ok(())
        }
        error => {
            expect_err(error, ErrorKind::Invalid, "SQ-10")?;
            pair.still_works("SQ-10")
        }
    }
}

scenario!(full_send_queue_takes_no_more: "SQ-03"; needs RNR);
/// Without a receive at the peer, sends wait.
fn full_send_queue_takes_no_more(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(deep_cqs())?;
    let (a, b) = (pair.a, pair.b);
    let most = cap(setup, &a)?.max_send_wr as usize;
    let ids: Vec<u64> = (0..=most as u64).collect();
    let data = [a.sge(0, 8)];
    let list: Vec<_> = ids.iter().map(|id| SendWr::send(*id, &data)).collect();
    let error = refused(setup, &FULL, "SQ-03", || setup.post_send(a.qp, &list))?;
    check_eq!("SQ-03", error.bad_wr, most);
    let error = refused(setup, &FULL, "SQ-03", || setup.post_send(a.qp, &list))?;
    check_eq!("SQ-03", error.bad_wr, 0);
    let at_once = cap(setup, &b)?.max_recv_wr as usize;
    for some in ids[..most].chunks(at_once) {
        for id in some {
            b.recv(*id, 8)?;
        }
        setup.successes(b.recv_cq, some.len()).rule("SQ-03")?;
    }
    let seen = wr_ids(&setup.successes(a.send_cq, most).rule("SQ-03")?);
    check_eq!("SQ-03", seen, ids[..most], "completed");
    pair.still_works("SQ-03")
}

scenario!(done_send_keeps_its_slot_until_it_is_polled: "SQ-05", "SQ-03");
/// RDMA Writes are done when the peer has acknowledged them; what was written last shows it.
fn done_send_keeps_its_slot_until_it_is_polled(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(deep_cqs())?;
    let (a, b) = (pair.a, pair.b);
    let most = cap(setup, &a)?.max_send_wr;
    b.recv(0, 8)?;
    for wr_id in 1..u64::from(most) {
        a.write(wr_id, 8)?;
    }
    a.send(u64::from(most), 8)?;
    setup.one(b.recv_cq)?;
    setup.settle()?;
    let release = match setup.post_send(a.qp, &[SendWr::rdma_write(0, &[], a.remote())]) {
        Ok(()) => SqRelease::Completion,
        Err(error) => {
            check_eq!(["SQ-05", "SQ-03"], error.error.kind(), ErrorKind::NoMemory);
            SqRelease::Poll
        }
    };
    setup.as_declared("SQ-05", setup.behavior()?.sq_release, release)?;
    setup.poll(a.send_cq, 1)?;
    setup
        .post_send(a.qp, &[SendWr::rdma_write(0, &[], a.remote())])
        .rule("SQ-05")?;
    Ok(())
}

scenario!(done_receive_keeps_its_slot_until_it_is_polled: "RQ-02");
/// Where a send keeps its slot as long.
fn done_receive_keeps_its_slot_until_it_is_polled(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RQ-02";
    let pair = setup.pair(deep_cqs())?;
    let (a, b) = (pair.a, pair.b);
    let most = cap(setup, &b)?.max_recv_wr;
    for wr_id in 0..u64::from(most) {
        b.recv(wr_id, 8)?;
    }
    // The send may complete before the receive does.
    setup.arm(b.recv_cq, Arm::NEXT)?;
    a.send(1, 8)?;
    setup.successes(a.send_cq, 1)?;
    setup.expect_event(b.channel, b.recv_cq, RULE)?;
    let room = [b.sge(b.landing(), 8)];
    let next = [RecvWr::new(most.into(), &room)];
    let release = match setup.post_recv(b.qp, &next) {
        Ok(()) => SqRelease::Completion,
        Err(error) => {
            check_eq!(RULE, error.error.kind(), ErrorKind::NoMemory);
            SqRelease::Poll
        }
    };
    setup.as_declared(RULE, setup.behavior()?.sq_release, release)?;
    setup.poll(b.recv_cq, 1)?;
    if release == SqRelease::Poll {
        setup.post_recv(b.qp, &next).rule(RULE)?;
    }
    Ok(())
}

scenario!(full_receive_queue_takes_no_more: "RQ-02");
fn full_receive_queue_takes_no_more(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(deep_cqs())?;
    let (a, b) = (pair.a, pair.b);
    let most = cap(setup, &b)?.max_recv_wr as usize;
    let room = [b.sge(b.landing(), 8)];
    let ids: Vec<u64> = (0..=most as u64).collect();
    let list: Vec<_> = ids.iter().map(|id| RecvWr::new(*id, &room)).collect();
    let error = refused(setup, &FULL, "RQ-02", || setup.post_recv(b.qp, &list))?;
    check_eq!("RQ-02", error.bad_wr, most);
    let error = refused(setup, &FULL, "RQ-02", || setup.post_recv(b.qp, &list))?;
    check_eq!("RQ-02", error.bad_wr, 0);
    for id in &ids[..most] {
        a.send(*id, 8)?;
        setup.successes(a.send_cq, 1).rule("RQ-02")?;
    }
    let seen = wr_ids(&setup.successes(b.recv_cq, most).rule("RQ-02")?);
    check_eq!("RQ-02", seen, ids[..most], "completed");
    pair.still_works("RQ-02")
}

/// Room for the completions of queues that a device made larger than asked for.
fn deep_cqs() -> PairOptions {
    PairOptions {
        send_cqe: 1024,
        recv_cqe: 1024,
        ..PairOptions::default()
    }
}

/// What happens to work that is posted in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Refused,
    Accepted,
    Flushed,
}

/// Sends and receives in each state.
const FATES: [(QpState, Fate, Fate); 6] = [
    (QpState::Reset, Fate::Refused, Fate::Refused),
    (QpState::Init, Fate::Refused, Fate::Accepted),
    (QpState::Rtr, Fate::Refused, Fate::Accepted),
    (QpState::Rts, Fate::Accepted, Fate::Accepted),
    (QpState::Sqd, Fate::Accepted, Fate::Accepted),
    (QpState::Err, Fate::Flushed, Fate::Flushed),
];

scenario!(rc_qp_takes_work_only_in_the_states_for_it:
    "QP-STATE-18", "QP-STATE-19", "QP-STATE-20", "QP-STATE-21"; needs MODIFY_CONNECT);
fn rc_qp_takes_work_only_in_the_states_for_it(setup: &Setup<'_>) -> Result {
    fates(setup, QpType::Rc)
}

scenario!(uc_qp_takes_work_only_in_the_states_for_it:
    "QP-STATE-18", "QP-STATE-19", "QP-STATE-20", "QP-STATE-21"; needs UC, MODIFY_CONNECT);
fn uc_qp_takes_work_only_in_the_states_for_it(setup: &Setup<'_>) -> Result {
    fates(setup, QpType::Uc)
}

scenario!(ud_qp_takes_work_only_in_the_states_for_it:
    "QP-STATE-18", "QP-STATE-19", "QP-STATE-20", "QP-STATE-21"; needs UD, MODIFY_CONNECT);
fn ud_qp_takes_work_only_in_the_states_for_it(setup: &Setup<'_>) -> Result {
    fates(setup, QpType::Ud)
}

scenario!(xrc_sender_takes_work_only_in_the_states_for_it:
    "QP-STATE-18", "QP-STATE-21"; needs MODIFY_CONNECT, XRC);
/// Its receives are those of XRC-03.
fn xrc_sender_takes_work_only_in_the_states_for_it(setup: &Setup<'_>) -> Result {
    fates(setup, QpType::XrcSend)
}

fn fates(setup: &Setup<'_>, qp_type: QpType) -> Result {
    for (state, of_send, of_receive) in FATES {
        let qp = FreshQp::new(setup, qp_type)?;
        qp.reach(state)?;
        let end = qp.end;
        let data = [end.sge(0, 64)];
        let receives = [RecvWr::new(3, &data), RecvWr::new(4, &data)];
        let received = match of_receive {
            Fate::Refused => "QP-STATE-19",
            Fate::Accepted => "QP-STATE-20",
            Fate::Flushed => "QP-STATE-21",
        };
        let has_receives = qp_type != QpType::XrcSend;
        if has_receives {
            let posted = setup.post_recv(end.qp, &receives);
            let result = meets(posted, of_receive, received);
            in_case(&format!("a receive in {state}"), result)?;
        }
        let sends = [SendWr::send(1, &data), SendWr::send(2, &data)];
        let sent = match of_send {
            Fate::Flushed => "QP-STATE-21",
            _ => "QP-STATE-18",
        };
        let result = meets(qp.post(&sends), of_send, sent);
        in_case(&format!("a send in {state}"), result.map(drop))?;
        let flushed = of_send == Fate::Flushed;
        for (what, cq, wr_id) in [("sends", end.send_cq, 1), ("receives", end.recv_cq, 3)]
            .iter()
            .filter(|(what, ..)| flushed && (has_receives || *what == "sends"))
        {
            let seen = value_in_case(what, setup.poll(*cq, 2).rule("QP-STATE-21"))?;
            let seen: Vec<_> = seen.iter().map(|wc| (wc.wr_id, wc.status)).collect();
            let expected = [*wr_id, wr_id + 1].map(|wr_id| (wr_id, WcStatus::WrFlushErr));
            check_eq!("QP-STATE-21", seen, expected, "flushed work");
        }
    }
    Ok(())
}

fn meets(posted: Result<(), PostError>, fate: Fate, rule: &'static str) -> Result {
    if fate != Fate::Refused {
        return posted.rule(rule);
    }
    let error = expect_err(posted, ErrorKind::Invalid, rule)?;
    check_eq!(rule, error.bad_wr, 0);
    Ok(())
}

scenario!(refused_send_is_not_queued: "QP-STATE-18"; needs MODIFY_CONNECT);
fn refused_send_is_not_queued(setup: &Setup<'_>) -> Result {
    for state in [QpState::Reset, QpState::Init, QpState::Rtr] {
        let (a, b) = FreshQp::pair(setup, QpType::Rc)?;
        b.reach(QpState::Rts)?;
        a.reach(state)?;
        let data = [a.end.sge(0, 8)];
        let refused = a.post(&[SendWr::send(1, &data)]);
        expect_err(refused, ErrorKind::Invalid, "QP-STATE-18")?;
        a.reach(QpState::Rts)?;
        b.end.recv(2, 8)?;
        a.post(&[SendWr::send(3, &data)])?;
        for (cq, wr_id) in [(a.end.send_cq, 3), (b.end.recv_cq, 2)] {
            let result = only(setup, cq, wr_id, "QP-STATE-18");
            value_in_case(&format!("posted in {state}"), result)?;
        }
    }
    Ok(())
}

scenario!(refused_receive_is_not_queued: "QP-STATE-19"; needs MODIFY_CONNECT);
fn refused_receive_is_not_queued(setup: &Setup<'_>) -> Result {
    let (a, b) = FreshQp::pair(setup, QpType::Rc)?;
    let room = [b.end.sge(0, 8)];
    let refused = setup.post_recv(b.end.qp, &[RecvWr::new(1, &room)]);
    expect_err(refused, ErrorKind::Invalid, "QP-STATE-19")?;
    a.reach(QpState::Rts)?;
    b.reach(QpState::Rts)?;
    b.end.recv(2, 8)?;
    let data = [a.end.sge(0, 8)];
    a.post(&[SendWr::send(3, &data)])?;
    only(setup, b.end.recv_cq, 2, "QP-STATE-19")
}

/// Exactly one completion comes, a success of this work.
fn only(setup: &Setup<'_>, cq: Cq, wr_id: u64, rule: &'static str) -> Result {
    let seen = wr_ids(&setup.successes(cq, 1).rule(rule)?);
    check_eq!(rule, seen, [wr_id], "completed");
    setup.no_completion(cq, rule)
}

/// The sizes that the queue pair really has.
fn cap(setup: &Setup<'_>, end: &End<'_>) -> Result<QpCap> {
    Ok(setup.query_qp(end.qp, QpAttrMask::CAP)?.init.cap)
}

/// Too much was refused as the device declares.
fn declared_errno(setup: &Setup<'_>, rule: &'static str, error: &PostError) -> Result {
    let seen = match error.error.kind() {
        ErrorKind::NoMemory => Errno::Enomem,
        _ => Errno::Einval,
    };
    setup.as_declared(rule, setup.behavior()?.sge_errno, seen)
}
