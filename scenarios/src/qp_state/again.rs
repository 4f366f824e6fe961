//! A queue pair that was reset is as a new one: nothing of what it was comes back.

use std::time::Duration;

use verbs_api::lab::{Fault, PacketClass, PacketFilter, PacketOpcode};
use verbs_api::{
    Access, AsyncEventType, ErrorKind, Mtu, QpAttrMask as M, QpModify, QpState, QpType, RcParams,
    SendWr, Wait, WcStatus, connect,
};

use crate::failure::{check, check_eq, in_case};
use crate::fresh_qp::FreshQp;
use crate::{OfRule, Pair, PairOptions, Result, Setup, expect_err, wr_ids};

const RULE: &str = "QP-STATE-34";

const REQUESTS: PacketFilter = PacketFilter::EVERY.class(PacketClass::Request);
const ANSWERS: PacketFilter = PacketFilter::EVERY.class(PacketClass::Response);

/// A time-out of 1.05 ms, a wait for a receive of 10.24 ms, sequence numbers from 5 on.
fn params(setup: &Setup<'_>) -> RcParams {
    let access = Access::ALL_RDMA | Access::REMOTE_ATOMIC;
    RcParams {
        path_mtu: Mtu::Mtu256,
        timeout: 8,
        min_rnr_timer: 20,
        psn_a: 5,
        psn_b: 5,
        access,
        ..setup.rc_params()
    }
}

fn pair<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    pair_with(setup, params(setup))
}

fn pair_with<'b>(setup: &'b Setup<'_>, rc: RcParams) -> Result<Pair<'b>> {
    let access = rc.access;
    setup.pair(PairOptions {
        rc,
        access,
        ..PairOptions::default()
    })
}

/// Both ends to RESET, and to RTS with the same parameters.
fn again(setup: &Setup<'_>, pair: &Pair<'_>) -> Result {
    again_with(setup, pair, params(setup))
}

fn again_with(setup: &Setup<'_>, Pair { a, b }: &Pair<'_>, rc: RcParams) -> Result {
    for end in [a, b] {
        setup.to_reset(end.qp)?;
    }
    Ok(connect::by_attributes(setup.verbs(), a.qp, b.qp, &rc)?)
}

scenario!(no_timer_of_before_strikes: "QP-STATE-34"; needs MODIFY_CONNECT, LAB);
/// Work of the first life is never answered. That of the second has all of its time.
fn no_timer_of_before_strikes(setup: &Setup<'_>) -> Result {
    let pair = pair(setup)?;
    let a = pair.a;
    let lost = setup.lab().inject(Fault::drop(REQUESTS))?;
    a.write(1, 8)?;
    setup.lab().advance(Duration::from_micros(900))?;
    setup.lab().remove(lost)?;
    again(setup, &pair)?;
    setup.lab().tap();
    let late = Duration::from_micros(700);
    setup.lab().inject(Fault::delay(ANSWERS, late))?;
    a.write(2, 8)?;
    let done = wr_ids(&setup.successes(a.send_cq, 1).rule(RULE)?);
    check_eq!(RULE, done, [2]);
    let mut packets = setup.packets();
    packets.retain(|packet| PacketClass::Request.has(packet.opcode));
    check_eq!(RULE, packets.len(), 1, "requests of the second life");
    Ok(())
}

scenario!(no_wait_of_before_holds_up: "QP-STATE-34"; needs MODIFY_CONNECT, RNR, LAB);
/// The first life ends while it waits for a receive.
fn no_wait_of_before_holds_up(setup: &Setup<'_>) -> Result {
    let pair = pair(setup)?;
    let Pair { a, b } = pair;
    a.send(1, 8)?;
    setup.lab().advance(Duration::from_micros(100))?;
    again(setup, &pair)?;
    b.recv(2, 8)?;
    a.send(3, 8)?;
    setup.lab().advance(Duration::from_micros(100))?;
    for (cq, expected) in [(a.send_cq, 3), (b.recv_cq, 2)] {
        check_eq!(RULE, wr_ids(&setup.drain(cq)?), [expected], "done at once");
    }
    setup.lab().advance(Duration::from_millis(30))?;
    pair.still_works(RULE)
}

scenario!(answers_of_before_are_for_nothing: "QP-STATE-34"; needs MODIFY_CONNECT, LAB);
/// They come when the second life has sent nothing, and would be for what it sends next.
fn answers_of_before_are_for_nothing(setup: &Setup<'_>) -> Result {
    let pair = pair(setup)?;
    let Pair { a, b } = pair;
    let late = Fault::delay(ANSWERS, Duration::from_micros(500));
    let late = setup.lab().inject(late)?;
    a.write(1, 8)?;
    setup.lab().advance(Duration::from_micros(100))?;
    again(setup, &pair)?;
    setup.lab().remove(late)?;
    setup.lab().advance(Duration::from_millis(1))?;
    for cq in [a.send_cq, b.recv_cq] {
        check!(RULE, setup.drain(cq)?.is_empty(), "none", "a completion");
    }
    pair.still_works(RULE)
}

scenario!(message_of_before_is_not_gone_on_with: "QP-STATE-34"; needs MODIFY_CONNECT, LAB);
/// Its last packet is missing when the first life ends.
fn message_of_before_is_not_gone_on_with(setup: &Setup<'_>) -> Result {
    let pair = pair(setup)?;
    let Pair { a, b } = pair;
    for is_send in [true, false] {
        let lost = setup.lab().inject(Fault::drop(REQUESTS).nth(3))?;
        b.recv(1, 768)?;
        if is_send {
            a.send(1, 768)?
        } else {
            a.write(1, 768)?
        }
        setup.lab().advance(Duration::from_micros(100))?;
        setup.lab().remove(lost)?;
        again(setup, &pair)?;
        pair.still_works(RULE)?;
    }
    Ok(())
}

scenario!(atomic_of_before_is_not_answered_again: "QP-STATE-34"; needs ATOMICS, MODIFY_CONNECT, LAB);
/// An atomic of the second life has the sequence number of one of the first, and its answer is
/// lost.
fn atomic_of_before_is_not_answered_again(setup: &Setup<'_>) -> Result {
    for depth in [1, 4] {
        let rc = RcParams {
            max_rd_atomic: depth,
            ..params(setup)
        };
        let pair = pair_with(setup, rc)?;
        let Pair { a, b } = pair;
        let set = |value: u64| setup.write_mr(b.mr, 0, &value.to_ne_bytes());
        for (life, value) in [(1, 100_u64), (2, 500)] {
            set(value)?;
            let lost = setup.lab().inject(Fault::drop(ANSWERS).nth(1))?;
            let into = [a.sge(a.landing(), 8)];
            a.post(SendWr::fetch_and_add(life, &into, b.mem.remote(0), 1))?;
            setup.successes(a.send_cq, 1).rule(RULE)?;
            setup.lab().remove(lost)?;
            let seen = a.bytes(a.landing(), 8)?;
            check_eq!(RULE, seen, value.to_ne_bytes(), "what was there");
            let sum = b.bytes(0, 8)?;
            check_eq!(RULE, sum, (value + 1).to_ne_bytes(), "added once");
            again_with(setup, &pair, rc)?;
        }
    }
    Ok(())
}

scenario!(atomic_of_before_that_comes_late_gets_no_answer:
    "QP-STATE-34"; needs ATOMICS, MODIFY_CONNECT, LAB);
/// Its copy comes when a write of the second life has had its sequence number.
fn atomic_of_before_that_comes_late_gets_no_answer(setup: &Setup<'_>) -> Result {
    const LATE: Duration = Duration::from_millis(1);
    let pair = pair(setup)?;
    let Pair { a, b } = pair;
    let copies = Fault::duplicate(REQUESTS, LATE).first(1);
    setup.lab().inject(copies)?;
    let into = [a.sge(a.landing(), 8)];
    a.post(SendWr::fetch_and_add(1, &into, b.mem.remote(0), 1))?;
    setup.lab().advance(LATE / 4)?;
    setup.successes(a.send_cq, 1)?;
    again(setup, &pair)?;
    a.write(2, 8)?;
    setup.lab().advance(LATE / 4)?;
    setup.successes(a.send_cq, 1)?;
    setup.lab().tap();
    setup.lab().advance(LATE)?;
    let mut answers = setup.packets();
    answers.retain(|packet| packet.opcode == PacketOpcode::RcAtomicAcknowledge);
    check_eq!(RULE, answers.len(), 0, "answers to it");
    let sum = b.bytes(0, 8)?;
    check_eq!(RULE, sum, 1_u64.to_ne_bytes(), "added once");
    pair.still_works(RULE)
}

scenario!(response_of_before_is_for_no_work_of_now:
    "QP-STATE-34"; needs RDMA_READ, MODIFY_CONNECT, LAB);
/// It comes when a write of the second life has its sequence number, and was lost.
fn response_of_before_is_for_no_work_of_now(setup: &Setup<'_>) -> Result {
    let pair = pair(setup)?;
    let Pair { a, b } = pair;
    let late = Fault::delay(ANSWERS, Duration::from_micros(500));
    let late = setup.lab().inject(late)?;
    a.read(1, 8)?;
    setup.lab().advance(Duration::from_micros(100))?;
    again(setup, &pair)?;
    setup.lab().remove(late)?;
    setup.lab().inject(Fault::drop(REQUESTS).nth(1))?;
    a.fill(2, 8)?;
    a.write(2, 8)?;
    setup.lab().advance(Duration::from_micros(700))?;
    let early = setup.drain(a.send_cq)?;
    check!(RULE, early.is_empty(), "no completion yet", "{early:?}");
    let done = wr_ids(&setup.successes(a.send_cq, 1).rule(RULE)?);
    check_eq!(RULE, done, [2]);
    b.expect_data(2, 8, RULE)
}

scenario!(packet_of_before_makes_no_write_shorter_or_longer:
    "RDMA-29"; needs MODIFY_CONNECT, LAB);
/// A write of two packets loses the second, and gets that of a write of the first life in its
/// place.
fn packet_of_before_makes_no_write_shorter_or_longer(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-29";
    const LATE: Duration = Duration::from_micros(500);
    for (before, now) in [(300, 512), (512, 300)] {
        let pair = pair(setup)?;
        let Pair { a, b } = pair;
        b.fill_at(b.landing(), 7, 1024)?;
        let untouched = b.bytes(b.landing() + u64::from(now), 512)?;
        setup.lab().inject(Fault::delay(REQUESTS, LATE).nth(2))?;
        a.write(1, before)?;
        setup.lab().advance(Duration::from_micros(100))?;
        again(setup, &pair)?;
        let lost = Fault::drop(REQUESTS).nth(2);
        setup.lab().inject(lost)?;
        a.write(2, now)?;
        setup.one_with(a.send_cq, WcStatus::RemInvReqErr, RULE)?;
        let behind = b.bytes(b.landing() + u64::from(now), 512)?;
        check_eq!(RULE, behind, untouched, "the bytes behind it");
        let states = [setup.state(a.qp)?, setup.state(b.qp)?];
        check_eq!(RULE, states, [QpState::Err; 2]);
    }
    Ok(())
}

scenario!(no_timer_strikes_in_error: "QP-FLUSH-12"; needs LAB);
/// A write without retries was under way; what is posted then is flushed, or never completes.
fn no_timer_strikes_in_error(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-FLUSH-12";
    let rc = RcParams {
        timeout: 8,
        retry_cnt: 0,
        ..RcParams::default()
    };
    let a = setup
        .pair(PairOptions {
            rc,
            ..PairOptions::default()
        })?
        .a;
    setup.lab().inject(Fault::drop(REQUESTS))?;
    a.write(1, 8)?;
    setup.lab().advance(Duration::from_micros(100))?;
    setup.to_err(a.qp)?;
    // Some devices take no work then.
    let _ = a.write(2, 8);
    setup.lab().advance(Duration::from_millis(50))?;
    let mut done = setup.drain(a.send_cq)?;
    done.retain(|wc| wc.wr_id == 2);
    let flushed = done.iter().all(|wc| wc.status == WcStatus::WrFlushErr);
    check!(RULE, flushed, "WR_FLUSH_ERR or nothing", "{done:?}");
    Ok(())
}

scenario!(packet_that_was_kept_goes_with_the_reset: "QP-STATE-34"; needs MODIFY_CONNECT, LAB);
/// A device may keep what comes in INIT until RTR, and not beyond RESET.
fn packet_that_was_kept_goes_with_the_reset(setup: &Setup<'_>) -> Result {
    let (a, b) = FreshQp::pair(setup, QpType::Rc)?;
    a.reach(QpState::Rts)?;
    b.reach(QpState::Init)?;
    a.end.send(1, 8)?;
    setup.lab().advance(Duration::from_micros(100))?;
    for qp in [&a, &b] {
        qp.go(QpState::Reset)?;
    }
    b.reach(QpState::Init)?;
    b.end.recv(2, 8)?;
    b.reach(QpState::Rtr)?;
    setup.no_completion(b.end.recv_cq, RULE)?;
    a.reach(QpState::Rts)?;
    a.end.send(3, 8)?;
    for (cq, expected) in [(a.end.send_cq, 3), (b.end.recv_cq, 2)] {
        let seen = wr_ids(&setup.successes(cq, 1).rule(RULE)?);
        check_eq!(RULE, seen, [expected]);
    }
    Ok(())
}

scenario!(each_connection_is_told_as_the_first: "QP-STATE-34", "QP-STATE-24"; needs MODIFY_CONNECT);
/// A device that reports the first message in RTR does so after each RESET.
fn each_connection_is_told_as_the_first(setup: &Setup<'_>) -> Result {
    let (a, b) = FreshQp::pair(setup, QpType::Rc)?;
    for life in 0..3 {
        a.reach(QpState::Rts)?;
        b.reach(QpState::Rtr)?;
        b.end.recv(1, 8)?;
        a.end.send(2, 8)?;
        setup.successes(b.end.recv_cq, 1)?;
        setup.successes(a.end.send_cq, 1)?;
        let events = setup.async_events(b.end.context)?;
        let reported = events
            .iter()
            .filter(|event| event.event_type == AsyncEventType::CommEst)
            .count();
        let case = format!("life {life}");
        check!(
            RULE,
            reported <= 1,
            "at most one event",
            "{reported} ({case})"
        );
        let declared = setup.behavior()?.comm_est;
        in_case(
            &case,
            setup.as_declared("QP-STATE-24", declared, reported == 1),
        )?;
        for qp in [&a, &b] {
            qp.go(QpState::Reset)?;
        }
    }
    Ok(())
}

scenario!(wish_to_be_told_goes_with_the_reset: "QP-STATE-34", "QP-STATE-11"; needs MODIFY_CONNECT, LAB);
/// In the first life SQD is requested with an event; in the second without.
fn wish_to_be_told_goes_with_the_reset(setup: &Setup<'_>) -> Result {
    let pair = pair(setup)?;
    let a = pair.a;
    let notify = QpModify::to(QpState::Sqd).set(M::EN_SQD_ASYNC_NOTIFY, |attr| {
        attr.en_sqd_async_notify = true;
    });
    setup.modify(a.qp, notify)?;
    setup.async_event(a.context).rule("QP-STATE-11")?;
    again(setup, &pair)?;
    setup.modify(a.qp, QpModify::to(QpState::Sqd))?;
    let reported = setup.get_async_event(a.context, Wait::Poll).is_ok();
    match setup.behavior()?.sq_drained_always {
        Some(always) => check_eq!(RULE, reported, always, "reported"),
        None => check_eq!(RULE, reported, false, "reported"),
    }
    Ok(())
}

scenario!(nothing_leaves_in_error: "QP-FLUSH-12"; needs MODIFY_CONNECT, RNR, LAB);
/// Neither what was under way, nor what waited for a receive, nor what is posted then.
fn nothing_leaves_in_error(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-FLUSH-12";
    for waits in [false, true] {
        let Pair { a, .. } = pair(setup)?;
        let lost = if waits {
            None
        } else {
            Some(setup.lab().inject(Fault::drop(REQUESTS))?)
        };
        a.send(1, 8)?;
        a.write(2, 8)?;
        setup.lab().advance(Duration::from_micros(100))?;
        setup.to_err(a.qp)?;
        lost.map(|lost| setup.lab().remove(lost)).transpose()?;
        setup.lab().tap();
        setup.packets();
        let _ = a.send(3, 8);
        setup.lab().advance(Duration::from_millis(50))?;
        check_eq!(RULE, setup.packets().len(), 0, "packets");
        let done = wr_ids(&setup.drain(a.send_cq)?);
        check_eq!(RULE, done[..2], [1, 2], "what is flushed");
    }
    Ok(())
}

scenario!(state_is_told_alike_and_draining_in_sqd_alone:
    "QP-CREATE-08", "QP-STATE-12"; needs MODIFY_CONNECT, RNR, LAB);
/// A send that waits for a receive is under way in RTS, SQD, and RTS again.
fn state_is_told_alike_and_draining_in_sqd_alone(setup: &Setup<'_>) -> Result {
    let a = pair(setup)?.a;
    a.send(1, 8)?;
    setup.lab().advance(Duration::from_micros(100))?;
    for state in [
        QpState::Rts,
        QpState::Sqd,
        QpState::Rts,
        QpState::Err,
        QpState::Reset,
    ] {
        if setup.state(a.qp)? != state {
            setup.modify(a.qp, QpModify::to(state))?;
        }
        let query = setup.query_qp(a.qp, M::STATE | M::CUR_STATE | M::CAP)?;
        let attr = query.attr;
        let seen = (attr.qp_state, attr.cur_qp_state);
        check_eq!("QP-CREATE-08", seen, (state, state), "states");
        check_eq!("QP-CREATE-08", attr.cap, query.init.cap, "sizes");
        let draining = state == QpState::Sqd;
        check_eq!(
            "QP-STATE-12",
            attr.sq_draining,
            draining,
            format!("draining in {state}")
        );
    }
    Ok(())
}

scenario!(event_of_a_queue_pair_is_acknowledged_once: "ASYNC-03"; needs MODIFY_CONNECT, LAB);
/// Neither before it was read, nor twice.
fn event_of_a_queue_pair_is_acknowledged_once(setup: &Setup<'_>) -> Result {
    let a = pair(setup)?.a;
    let drained = QpModify::to(QpState::Sqd).set(M::EN_SQD_ASYNC_NOTIFY, |attr| {
        attr.en_sqd_async_notify = true;
    });
    for _ in 0..2 {
        setup.modify(a.qp, drained)?;
        let event = setup.take_async_event(a.context)?;
        setup.ack_async_event(a.context, &event).rule("ASYNC-03")?;
        let twice = setup.ack_async_event(a.context, &event);
        expect_err(twice, ErrorKind::Usage, "ASYNC-03")?;
        setup.modify(a.qp, QpModify::to(QpState::Rts))?;
    }
    setup.destroy_qp(a.qp, setup.wait()).rule("ASYNC-03")
}
