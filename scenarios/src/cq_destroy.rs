//! Destroying CQs: what keeps them busy, what they wait for, what goes with them.

use std::time::Duration;

use verbs_api::{
    Arm, AsyncEvent, AsyncEventType, Cq, CqInit, Element, ErrorKind, Handle, QpCap, Wait, Wc,
};

use crate::cq_ovr::{Queue, SmallCq};
use crate::failure::{check, check_eq, in_case};
use crate::setup::yield_to_others;
use crate::{Claim, End, Failure, OfRule, Pair, PairOptions, Result, Scenario, Setup};
use crate::{expect_err, expect_err_among};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    cq_of_a_qp_is_busy_and_stays_usable,
    cq_is_busy_until_its_last_qp_is_gone,
    unpolled_completions_are_discarded,
    would_block_until_async_events_are_acknowledged,
    unread_async_events_go_with_their_cq,
    waits_for_the_acknowledgement_of_a_completion_event,
    waits_for_the_acknowledgement_of_an_async_event,
    waits_for_events_of_both_kinds,
    last_acknowledgement_wakes_whatever_it_is_of,
    wait_that_no_thread_can_end_stalls,
    busy_comes_before_waiting,
    bad_handle_is_refused,
    lets_go_of_its_channel,
    completions_of_a_destroyed_qp_all_stay_or_all_go,
    completions_of_a_reset_qp_all_stay_or_all_go,
    completions_of_a_destroyed_qp_give_their_room_back,
    completions_of_a_reset_qp_give_their_room_back,
];

scenario!(cq_of_a_qp_is_busy_and_stays_usable: "CQ-DESTROY-01"; hazards MAY_CRASH);
fn cq_of_a_qp_is_busy_and_stays_usable(setup: &Setup<'_>) -> Result {
    for one_cq in [false, true] {
        let unconnected = setup.end(
            setup.ctx_a(),
            PairOptions {
                one_cq,
                ..PairOptions::default()
            },
        )?;
        are_busy(setup, &unconnected)?;
        go_with_the_qp(setup, &unconnected)?;
        let pair = setup.pair(PairOptions {
            one_cq,
            ..PairOptions::default()
        })?;
        are_busy(setup, &pair.a)?;
        are_busy(setup, &pair.b)?;
        pass(setup, &pair, 1).rule("CQ-DESTROY-01")?;
        setup.successes(pair.b.recv_cq, 1).rule("CQ-DESTROY-01")?;
        setup.to_err(pair.a.qp)?;
        // On iWARP the peer is notified, and not the next pair, which may have the same numbers.
        setup.settle()?;
        are_busy(setup, &pair.a)?;
        go_with_the_qp(setup, &pair.a)?;
        go_with_the_qp(setup, &pair.b)?;
    }
    Ok(())
}

scenario!(cq_is_busy_until_its_last_qp_is_gone: "CQ-DESTROY-01"; hazards MAY_CRASH);
fn cq_is_busy_until_its_last_qp_is_gone(setup: &Setup<'_>) -> Result {
    let options = PairOptions::default();
    let last = setup.end(setup.ctx_a(), options)?;
    for _ in 0..2 {
        let other = setup.end_on(last.send_cq, last.recv_cq, options)?;
        setup.destroy_qp(other.qp, setup.wait())?;
        are_busy(setup, &last)?;
    }
    go_with_the_qp(setup, &last)
}

scenario!(unpolled_completions_are_discarded: "CQ-DESTROY-02");
fn unpolled_completions_are_discarded(setup: &Setup<'_>) -> Result {
    for unpolled in [0, 1, 16] {
        let pair = setup.pair(PairOptions {
            recv_cqe: 16,
            ..PairOptions::default()
        })?;
        for wr_id in 0..unpolled {
            pass(setup, &pair, wr_id)?;
        }
        let end = pair.b;
        setup.destroy_qp(end.qp, setup.wait())?;
        setup
            .destroy_cq(end.recv_cq, Wait::Poll)
            .rule("CQ-DESTROY-02")?;
        let gone = setup.poll_cq(end.recv_cq, &mut [Wc::default()]);
        expect_err(gone, ErrorKind::Invalid, "CQ-DESTROY-02")?;
        let next = setup.create_cq(end.context, &CqInit::new(16))?;
        setup.no_completion(next, "CQ-DESTROY-02")?;
    }
    Ok(())
}

scenario!(would_block_until_async_events_are_acknowledged:
    "CQ-DESTROY-03", "ASYNC-03"; hazards MAY_HANG);
fn would_block_until_async_events_are_acknowledged(setup: &Setup<'_>) -> Result {
    let end = overrun(setup)?;
    let event = cq_error(setup, &end)?;
    setup.destroy_qp(end.qp, setup.wait())?;
    would_block(setup, end.send_cq, ["CQ-DESTROY-03", "ASYNC-03"])?;
    setup.ack_async_event(end.context, &event)?;
    setup
        .destroy_cq(end.send_cq, Wait::Poll)
        .rule("CQ-DESTROY-03")
}

scenario!(unread_async_events_go_with_their_cq: "CQ-DESTROY-03", "ASYNC-06"; hazards MAY_HANG);
fn unread_async_events_go_with_their_cq(setup: &Setup<'_>) -> Result {
    let end = overrun(setup)?;
    setup.settle()?;
    setup.destroy_qp(end.qp, setup.wait())?;
    setup
        .destroy_cq(end.send_cq, Wait::Poll)
        .rule("CQ-DESTROY-03")?;
    setup.no_async_event(end.context, "ASYNC-06")
}

scenario!(waits_for_the_acknowledgement_of_a_completion_event:
    "CQ-DESTROY-03", "CHAN-35"; needs THREADS; hazards MAY_HANG);
fn waits_for_the_acknowledgement_of_a_completion_event(setup: &Setup<'_>) -> Result {
    let end = with_event_read(setup)?;
    setup.destroy_qp(end.qp, setup.wait())?;
    let destroy = || setup.destroy_cq(end.send_cq, setup.wait());
    let acknowledge = || Ok(setup.ack_cq_events(end.send_cq, 1)?);
    setup
        .waits_until(["CQ-DESTROY-03", "CHAN-35"], destroy, acknowledge)?
        .rule("CQ-DESTROY-03")
}

scenario!(waits_for_the_acknowledgement_of_an_async_event:
    "CQ-DESTROY-03", "ASYNC-03"; needs THREADS; hazards MAY_HANG);
fn waits_for_the_acknowledgement_of_an_async_event(setup: &Setup<'_>) -> Result {
    let end = overrun(setup)?;
    let event = cq_error(setup, &end)?;
    setup.destroy_qp(end.qp, setup.wait())?;
    let destroy = || setup.destroy_cq(end.send_cq, setup.wait());
    let acknowledge = || Ok(setup.ack_async_event(end.context, &event)?);
    setup
        .waits_until(["CQ-DESTROY-03", "ASYNC-03"], destroy, acknowledge)?
        .rule("CQ-DESTROY-03")
}

scenario!(last_acknowledgement_wakes_whatever_it_is_of:
    "CQ-DESTROY-03", "CHAN-35"; needs THREADS; hazards MAY_HANG);
/// Those before it leave the waiting thread where it is.
fn last_acknowledgement_wakes_whatever_it_is_of(setup: &Setup<'_>) -> Result {
    for async_last in [false, true] {
        let small = SmallCq::new(setup, Queue::Send, 3)?;
        let (end, cq) = (small.end, small.cq);
        for wr_id in 0..2 {
            setup.arm(cq, Arm::NEXT)?;
            small.push(wr_id)?;
            setup.take_event(small.channel)?;
        }
        small.push_all(2..2 + small.too_many()?)?;
        let error = cq_error(setup, &end)?;
        setup.destroy_qp(end.qp, setup.wait())?;
        let order = if async_last {
            [false, false, true]
        } else {
            [true, false, false]
        };
        let destroy = || setup.destroy_cq(cq, setup.wait());
        let acknowledge = || {
            for is_async in order {
                yield_to_others();
                if is_async {
                    setup.ack_async_event(end.context, &error)?
                } else {
                    setup.ack_cq_events(cq, 1)?
                }
            }
            Ok(())
        };
        let destroyed = setup.waits_until(["CQ-DESTROY-03", "CHAN-35"], destroy, acknowledge)?;
        destroyed.rule("CQ-DESTROY-03")?;
    }
    Ok(())
}

scenario!(waits_for_events_of_both_kinds: "CQ-DESTROY-03"; hazards MAY_HANG);
fn waits_for_events_of_both_kinds(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-DESTROY-03";
    for async_first in [false, true] {
        let small = SmallCq::new(setup, Queue::Send, 1)?;
        let (end, cq) = (small.end, small.cq);
        setup.arm(cq, Arm::NEXT)?;
        small.push_all(0..small.too_many()?)?;
        setup.take_event(small.channel)?;
        let error = cq_error(setup, &end)?;
        setup.destroy_qp(end.qp, setup.wait())?;
        for is_async in [async_first, !async_first] {
            would_block(setup, cq, RULE)?;
            if is_async {
                setup.ack_async_event(end.context, &error)?
            } else {
                setup.ack_cq_events(cq, 1)?
            }
        }
        setup.destroy_cq(cq, Wait::Poll).rule(RULE)?;
    }
    Ok(())
}

scenario!(wait_that_no_thread_can_end_stalls: "CQ-DESTROY-03", "CHAN-35"; needs LAB);
fn wait_that_no_thread_can_end_stalls(setup: &Setup<'_>) -> Result {
    let end = with_event_read(setup)?;
    setup.destroy_qp(end.qp, setup.wait())?;
    let endless = setup.destroy_cq(end.send_cq, Wait::Forever);
    expect_err(endless, ErrorKind::Stalled, "CQ-DESTROY-03")?;
    setup.ack_cq_events(end.send_cq, 1)?;
    setup.destroy_cq(end.send_cq, Wait::Forever).rule("CHAN-35")
}

scenario!(busy_comes_before_waiting: "CQ-DESTROY-04", "CQ-DESTROY-03"; hazards MAY_HANG, MAY_CRASH);
fn busy_comes_before_waiting(setup: &Setup<'_>) -> Result {
    let end = with_event_read(setup)?;
    for wait in [Wait::Poll, setup.wait(), Wait::For(Duration::from_secs(1))] {
        let busy = setup.destroy_cq(end.send_cq, wait);
        expect_err(busy, ErrorKind::Busy, "CQ-DESTROY-04")?;
    }
    setup.destroy_qp(end.qp, setup.wait())?;
    would_block(setup, end.send_cq, ["CQ-DESTROY-03", "CQ-DESTROY-04"])?;
    setup.ack_cq_events(end.send_cq, 1)?;
    setup
        .destroy_cq(end.send_cq, Wait::Poll)
        .rule("CQ-DESTROY-04")
}

scenario!(bad_handle_is_refused: "CQ-DESTROY-05"; without RC);
fn bad_handle_is_refused(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_a();
    let live = setup.create_cq(context, &CqInit::new(4))?;
    let gone = setup.create_cq(context, &CqInit::new(4))?;
    setup.destroy_cq(gone, Wait::Poll)?;
    let (index, generation) = (live.index(), live.generation());
    let handles = [
        ("zero", Cq::default()),
        ("destroyed", gone),
        (
            "of another context",
            Cq::from_parts(setup.ctx_b(), index, generation),
        ),
        (
            "out of range",
            Cq::from_parts(context, u32::MAX, generation),
        ),
        (
            "of a later generation",
            Cq::from_parts(context, index, generation + 1),
        ),
    ];
    for (what, cq) in handles {
        let refused = setup.destroy_cq(cq, Wait::Poll);
        check!(
            "CQ-DESTROY-05",
            refused.is_err(),
            "an error",
            "success for a handle that is {what}"
        );
        let kinds = [ErrorKind::Invalid, ErrorKind::NotFound];
        expect_err_among(refused, &kinds, "CQ-DESTROY-05")?;
    }
    setup.destroy_cq(live, Wait::Poll).rule("CQ-DESTROY-05")
}

scenario!(lets_go_of_its_channel: "CQ-DESTROY-07", "CQ-DESTROY-01");
fn lets_go_of_its_channel(setup: &Setup<'_>) -> Result {
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let busy = || {
        let busy = setup.destroy_comp_channel(end.channel);
        expect_err(busy, ErrorKind::Busy, "CQ-DESTROY-07")
    };
    are_busy(setup, &end)?;
    busy()?;
    setup.destroy_qp(end.qp, setup.wait())?;
    setup.destroy_cq(end.send_cq, Wait::Poll)?;
    busy()?;
    setup.destroy_cq(end.recv_cq, Wait::Poll)?;
    setup
        .destroy_comp_channel(end.channel)
        .rule("CQ-DESTROY-07")
}

scenario!(completions_of_a_destroyed_qp_all_stay_or_all_go: "CQ-DESTROY-08");
fn completions_of_a_destroyed_qp_all_stay_or_all_go(setup: &Setup<'_>) -> Result {
    completions_of_a_qp_that_goes(setup, |end| Ok(setup.destroy_qp(end.qp, setup.wait())?))
}

scenario!(completions_of_a_reset_qp_all_stay_or_all_go: "CQ-DESTROY-08"; needs MODIFY_CONNECT);
fn completions_of_a_reset_qp_all_stay_or_all_go(setup: &Setup<'_>) -> Result {
    completions_of_a_qp_that_goes(setup, |end| setup.to_reset(end.qp))
}

/// Two QPs share a CQ that holds completions of both in turn when one of them goes: many, or one.
fn completions_of_a_qp_that_goes(setup: &Setup<'_>, go: impl Fn(&End<'_>) -> Result) -> Result {
    for count in [6, 2] {
        in_case(
            &format!("{count} of each"),
            so_many_stay_or_go(setup, count, &go),
        )?;
    }
    Ok(())
}

/// With `count` completions of each, the first of which are polled before.
fn so_many_stay_or_go(setup: &Setup<'_>, count: u64, go: impl Fn(&End<'_>) -> Result) -> Result {
    let options = PairOptions::default();
    let stays = setup.pair(options)?;
    let goes = setup.second_pair(&stays, options)?;
    let unpolled: Vec<_> = (1..count).collect();
    for wr_id in 0..count {
        pass(setup, &stays, wr_id)?;
        pass(setup, &goes, wr_id)?;
    }
    let cq = stays.b.recv_cq;
    setup.poll(cq, 2)?;
    go(&goes.b)?;
    let left = setup.poll_all(cq)?;
    let of = |end: &End<'_>| -> Vec<u64> {
        let of = left.iter().filter(|wc| wc.qp_num == end.qp_num);
        of.map(|wc| wc.wr_id).collect()
    };
    check_eq!(
        "CQ-DESTROY-08",
        of(&stays.b),
        unpolled,
        "the completions of the QP that stays"
    );
    let purged = match &of(&goes.b)[..] {
        [] => true,
        all if all == unpolled => false,
        other => {
            let expected = format!("all of {unpolled:?} in order, or none");
            let failure = Failure::assertion(expected, format!("{other:?}"));
            return Err(failure).rule("CQ-DESTROY-08");
        }
    };
    setup.as_declared("CQ-DESTROY-08", setup.behavior()?.cqe_purge, purged)?;
    // Nothing of them is left that a request could find.
    setup.arm(cq, Arm::SOLICITED)?;
    setup.no_event(stays.b.channel, "CQ-DESTROY-08")
}

scenario!(completions_of_a_destroyed_qp_give_their_room_back: "CQ-DESTROY-08", "CQ-CREATE-02");
fn completions_of_a_destroyed_qp_give_their_room_back(setup: &Setup<'_>) -> Result {
    room_comes_back(setup, |end| Ok(setup.destroy_qp(end.qp, setup.wait())?))
}

scenario!(completions_of_a_reset_qp_give_their_room_back:
    "CQ-DESTROY-08", "CQ-CREATE-02"; needs MODIFY_CONNECT);
fn completions_of_a_reset_qp_give_their_room_back(setup: &Setup<'_>) -> Result {
    room_comes_back(setup, |end| setup.to_reset(end.qp))
}

/// One QP after the other goes with as many completions as the CQ has entries, of receives and of
/// sends. The CQ has room for as many of the next one.
fn room_comes_back(setup: &Setup<'_>, go: impl Fn(&End<'_>) -> Result) -> Result {
    const RULE: Claim = Claim::two("CQ-DESTROY-08", "CQ-CREATE-02");
    let options = PairOptions {
        send_cqe: 6,
        recv_cqe: 6,
        cap: QpCap {
            max_send_wr: 32,
            max_recv_wr: 32,
            ..QpCap::default()
        },
        ..PairOptions::default()
    };
    let first = setup.pair(options)?;
    let [sends, receives] = [first.b.send_cq, first.b.recv_cq];
    let room = |cq| Ok::<_, Failure>(setup.query_cq(cq)?.cqe as usize);
    let counts = [room(sends)?, room(receives)?];
    let fill = |Pair { a, b }: &Pair<'_>| -> Result {
        for wr_id in 0..counts[0] as u64 {
            b.write(wr_id, 8)?;
        }
        for wr_id in 0..counts[1] as u64 {
            b.recv(wr_id, 8)?;
            a.send(wr_id, 8)?;
            setup.successes(a.send_cq, 1)?;
        }
        setup.settle()
    };
    let mut pair = first;
    for _ in 0..3 {
        fill(&pair)?;
        go(&pair.b)?;
        // They are those of a device that leaves them there.
        setup.drain(sends)?;
        setup.drain(receives)?;
        pair = setup.connect(
            setup.end(setup.ctx_a(), options)?,
            setup.end_on(sends, receives, options)?,
            options,
        )?;
    }
    fill(&pair)?;
    for (cq, count) in [(sends, counts[0]), (receives, counts[1])] {
        let got = setup.successes(cq, count).rule(RULE)?;
        let expected: Vec<_> = (0..count as u64).collect();
        check_eq!(
            RULE,
            crate::wr_ids(&got),
            expected,
            "the completions that fit"
        );
    }
    setup.no_async_event(pair.b.context, RULE)
}

/// Passes a solicited message from A to B. The completion of its receive is then there, and not
/// polled.
fn pass(setup: &Setup<'_>, pair: &Pair<'_>, wr_id: u64) -> Result {
    let (a, b) = (pair.a, pair.b);
    setup.arm(b.recv_cq, Arm::NEXT)?;
    b.recv(wr_id, 8)?;
    a.send_solicited(wr_id, 8)?;
    setup.successes(a.send_cq, 1)?;
    setup.event_and_ack(b.channel)?;
    Ok(())
}

/// Its queue pair uses them: neither CQ of the end can be destroyed.
fn are_busy(setup: &Setup<'_>, end: &End<'_>) -> Result {
    for cq in [end.send_cq, end.recv_cq] {
        let busy = setup.destroy_cq(cq, Wait::Poll);
        expect_err(busy, ErrorKind::Busy, "CQ-DESTROY-01")?;
    }
    Ok(())
}

/// The CQs of an end can be destroyed once its queue pair is.
fn go_with_the_qp(setup: &Setup<'_>, end: &End<'_>) -> Result {
    setup.destroy_qp(end.qp, setup.wait())?;
    setup
        .destroy_cq(end.send_cq, Wait::Poll)
        .rule("CQ-DESTROY-01")?;
    if end.recv_cq == end.send_cq {
        return Ok(());
    }
    setup
        .destroy_cq(end.recv_cq, Wait::Poll)
        .rule("CQ-DESTROY-01")
}

/// The CQ cannot be destroyed yet, and still lives.
fn would_block(setup: &Setup<'_>, cq: Cq, rule: impl Into<Claim>) -> Result {
    let waits = setup.destroy_cq(cq, Wait::Poll);
    expect_err(waits, ErrorKind::WouldBlock, rule)?;
    setup.query_cq(cq).rule("CQ-DESTROY-03")?;
    Ok(())
}

/// An end with an event of its send CQ that was read and not acknowledged.
fn with_event_read<'b>(setup: &'b Setup<'_>) -> Result<End<'b>> {
    let end = setup.rc_pair()?.a;
    setup.arm(end.send_cq, Arm::NEXT)?;
    end.write(1, 8)?;
    setup.take_event(end.send_channel)?;
    Ok(end)
}

/// An end on one CQ, to which more completions were made than it can hold.
fn overrun<'b>(setup: &'b Setup<'_>) -> Result<End<'b>> {
    let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(1))?;
    let writes = setup.query_cq(cq)?.cqe + 1;
    let options = PairOptions {
        cap: QpCap {
            max_send_wr: writes,
            ..QpCap::default()
        },
        ..PairOptions::default()
    };
    let a = setup.end_on(cq, cq, options)?;
    let b = setup.end(setup.ctx_b(), options)?;
    let pair = setup.connect(a, b, options)?;
    for wr_id in 0..writes {
        pair.a.write(wr_id.into(), 8)?;
    }
    Ok(pair.a)
}

/// Reads the `CQ_ERR` of an end's CQ, and does not acknowledge it; others it does.
fn cq_error(setup: &Setup<'_>, end: &End<'_>) -> Result<AsyncEvent> {
    let wanted = AsyncEvent::new(AsyncEventType::CqErr, Element::Cq(end.send_cq));
    loop {
        let event = setup.take_async_event(end.context)?;
        if event == wanted {
            return Ok(event);
        }
        setup.ack_async_event(end.context, &event)?;
    }
}
