//! CQ overrun: one completion too many.

mod lost;
mod small_cq;

use verbs_api::behavior::{KnobValue, Overrun};
use verbs_api::{
    Arm, AsyncEvent, AsyncEventType, Capabilities, CqInit, ErrorKind, QpState, QpType, RecvWr,
    SendWr, WcStatus,
};

pub(crate) use small_cq::{Queue, SmallCq, impatient};

use crate::failure::{check, check_eq, in_case};
use crate::{Failure, OfRule, Result, Scenario, Setup, expect_err, wr_ids};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    one_completion_too_many_raises_cq_err,
    overrun_cq_cannot_be_used,
    older_completions_can_be_polled,
    qps_that_lost_a_completion_fail,
    unreliable_qps_that_lost_a_completion_fail,
    datagram_qps_that_lost_a_completion_fail,
    requester_is_told_of_the_loss_or_not_answered,
    event_comes_once_however_many_are_lost,
    other_cqs_and_qps_go_on,
    overrun_cq_can_be_destroyed,
    memory_and_completions_stay_true,
    lost::loss_of_flushed_sends_is_told_once,
    lost::loss_of_a_great_many_flushed_receives_is_told_once,
    lost::loss_in_a_second_life_is_told_again,
];

scenario!(one_completion_too_many_raises_cq_err: "CQ-OVR-01");
fn one_completion_too_many_raises_cq_err(setup: &Setup<'_>) -> Result {
    for queue in Queue::BOTH {
        let small = SmallCq::new(setup, queue, 3)?;
        let cqe = small.cqe()?;
        small.fill(0..cqe)?;
        setup.no_async_event(small.end.context, "CQ-OVR-01")?;
        small.push_all(cqe..small.too_many()?)?;
        small.cq_err("CQ-OVR-01")?;
    }
    Ok(())
}

scenario!(overrun_cq_cannot_be_used: "CQ-OVR-02");
fn overrun_cq_cannot_be_used(setup: &Setup<'_>) -> Result {
    for queue in Queue::BOTH {
        in_case(&format!("{queue:?}"), check_use_after_overrun(setup, queue))?;
    }
    Ok(())
}

fn check_use_after_overrun(setup: &Setup<'_>, queue: Queue) -> Result {
    let small = SmallCq::new(setup, queue, 4)?;
    // One that has lost no completion: the others may be in error.
    let healthy = SmallCq::on(setup, queue, small.cq)?;
    small.overrun("CQ-OVR-02")?;
    let same = |what, dead| {
        let seen = if dead {
            Overrun::Dead
        } else {
            Overrun::DropNew
        };
        in_case(what, expect_overrun(setup, "CQ-OVR-02", seen))
    };
    for arm in [Arm::NEXT, Arm::SOLICITED] {
        let armed = setup.req_notify_cq(small.cq, arm);
        same("arm", armed.is_err())?;
        if armed.is_err() {
            expect_err(armed, ErrorKind::Invalid, "CQ-OVR-02")?;
        }
    }
    if setup
        .capabilities(small.end.context)?
        .contains(Capabilities::RESIZE_CQ)
    {
        let larger = small.cqe()? as i32 * 2;
        same("resize", setup.resize_cq(small.cq, larger).is_err())?;
    }
    small.drained()?;
    healthy.push_all(0..2)?;
    let new = healthy.drained()?;
    let of_healthy = new.iter().filter(|wc| wc.qp_num == healthy.end.qp_num);
    same("new completions", of_healthy.count() == 0)
}

/// An overrun has the effect that the device declares, or that of the rules if it declares none.
fn expect_overrun(setup: &Setup<'_>, rule: &'static str, seen: Overrun) -> Result {
    let declared = setup.behavior()?.overrun.unwrap_or(Overrun::Dead);
    check_eq!(
        rule,
        seen.text(),
        declared.text(),
        "the effect of an overrun"
    );
    Ok(())
}

scenario!(older_completions_can_be_polled: "CQ-OVR-03");
fn older_completions_can_be_polled(setup: &Setup<'_>) -> Result {
    let declared = setup.behavior()?.overrun.is_some();
    for queue in Queue::BOTH {
        let small = SmallCq::new(setup, queue, 5)?;
        let cqe = small.cqe()?;
        let count = small.overrun("CQ-OVR-03")?;
        let got = wr_ids(&small.leftovers()?.0);
        let in_order = got.is_sorted_by(|older, newer| older < newer);
        check!(
            "CQ-OVR-03",
            in_order,
            "completions in their order",
            "{got:?}"
        );
        let lost = (got.len() as u64) < count;
        check!("CQ-OVR-03", lost, format!("fewer than {count}"), "{got:?}");
        if declared {
            let oldest: Vec<_> = got.into_iter().take(cqe as usize).collect();
            check_eq!("CQ-OVR-03", oldest, (0..cqe).collect::<Vec<_>>());
        }
    }
    Ok(())
}

scenario!(qps_that_lost_a_completion_fail: "CQ-OVR-04", "ASYNC-07");
fn qps_that_lost_a_completion_fail(setup: &Setup<'_>) -> Result {
    those_that_lost_a_completion_fail(setup, QpType::Rc)
}

scenario!(unreliable_qps_that_lost_a_completion_fail: "CQ-OVR-04", "ASYNC-07"; needs UC);
fn unreliable_qps_that_lost_a_completion_fail(setup: &Setup<'_>) -> Result {
    those_that_lost_a_completion_fail(setup, QpType::Uc)
}

scenario!(datagram_qps_that_lost_a_completion_fail: "CQ-OVR-04", "ASYNC-07"; needs UD);
fn datagram_qps_that_lost_a_completion_fail(setup: &Setup<'_>) -> Result {
    those_that_lost_a_completion_fail(setup, QpType::Ud)
}

/// Each of those that did, and no other that uses the CQ.
fn those_that_lost_a_completion_fail(setup: &Setup<'_>, qp_type: QpType) -> Result {
    for queue in Queue::BOTH {
        let context = match queue {
            Queue::Send => setup.ctx_a(),
            Queue::Recv => setup.ctx_b(),
        };
        let cq = setup.create_cq(context, &CqInit::new(4))?;
        let qp = || SmallCq::of(setup, queue, cq, qp_type);
        let (spared, first, second) = (qp()?, qp()?, qp()?);
        first.overrun("CQ-OVR-04")?;
        second.push_all(0..first.too_many()?)?;
        let events = setup.async_events(first.end.context)?;
        let states = [setup.state(first.end.qp)?, setup.state(second.end.qp)?];
        match (setup.behavior()?.overrun, queue) {
            (Some(Overrun::Dead), _) => {
                check_eq!("CQ-OVR-04", states, [QpState::Err; 2]);
                for small in [first, second] {
                    let fatal = events.iter().filter(|e| **e == small.qp_fatal_event());
                    let what = format!("the number of {}", small.qp_fatal_event());
                    check_eq!(["CQ-OVR-04", "ASYNC-07"], fatal.count(), 1, what);
                }
            }
            (Some(Overrun::DropNew), Queue::Recv) => {
                check_eq!("CQ-OVR-04", states, [QpState::Err; 2]);
                no_qp_fatal(&events)?;
            }
            (Some(Overrun::DropNew), Queue::Send) => {
                check_eq!("CQ-OVR-04", states, [QpState::Rts; 2]);
                no_qp_fatal(&events)?;
            }
            (None | Some(_), _) => {
                let good = states
                    .iter()
                    .all(|s| matches!(s, QpState::Rts | QpState::Err));
                check!("CQ-OVR-04", good, "RTS or ERR", "{states:?}");
            }
        }
        check_eq!("CQ-OVR-04", setup.state(spared.end.qp)?, QpState::Rts);
    }
    Ok(())
}

// Where messages are answered.
scenario!(requester_is_told_of_the_loss_or_not_answered: "CQ-OVR-04"; needs RNR);
fn requester_is_told_of_the_loss_or_not_answered(setup: &Setup<'_>) -> Result {
    let expected = match setup.behavior()?.overrun_nak {
        Some(true) => WcStatus::RemOpErr,
        Some(false) => WcStatus::RetryExcErr,
        None => return Ok(()),
    };
    let small = SmallCq::new(setup, Queue::Recv, 3)?;
    let count = small.overrun("CQ-OVR-04")?;
    let sends = setup
        .poll(small.pair.a.send_cq, count as usize)
        .rule("CQ-OVR-04")?;
    let failed = sends.iter().find(|wc| wc.status != WcStatus::Success);
    check_eq!(
        "CQ-OVR-04",
        failed.map(|wc| wc.status),
        Some(expected),
        "the first status other than success, of the message whose completion was lost"
    );
    Ok(())
}

fn no_qp_fatal(events: &[AsyncEvent]) -> Result {
    let fatal = AsyncEventType::QpFatal;
    match events.iter().find(|event| event.event_type == fatal) {
        None => Ok(()),
        Some(event) => Err(Failure::assertion("no QP_FATAL", event.to_string())).rule("CQ-OVR-04"),
    }
}

scenario!(event_comes_once_however_many_are_lost: "CQ-OVR-05");
fn event_comes_once_however_many_are_lost(setup: &Setup<'_>) -> Result {
    for queue in Queue::BOTH {
        let first = SmallCq::new(setup, queue, 2)?;
        let others = [
            SmallCq::on(setup, queue, first.cq)?,
            SmallCq::on(setup, queue, first.cq)?,
        ];
        let count = first.overrun("CQ-OVR-05")?;
        first.push_all(count..count + 3)?;
        for other in others {
            other.push_all(0..3)?;
        }
        let events = setup.async_events(first.end.context)?;
        let seen = if events.contains(&first.cq_err_event()) {
            Overrun::DropNew
        } else {
            Overrun::Dead
        };
        expect_overrun(setup, "CQ-OVR-05", seen)?;
    }
    Ok(())
}

scenario!(other_cqs_and_qps_go_on: "CQ-OVR-06", "CQ-CREATE-10");
fn other_cqs_and_qps_go_on(setup: &Setup<'_>) -> Result {
    for queue in Queue::BOTH {
        let other = setup.rc_pair()?;
        let small = SmallCq::new(setup, queue, 4)?;
        other.deliver(0..4)?;
        setup.arm(other.b.recv_cq, Arm::NEXT)?;
        small.overrun("CQ-OVR-06")?;
        other.deliver(4..8).rule("CQ-OVR-06")?;
        setup.expect_event(other.b.channel, other.b.recv_cq, "CQ-OVR-06")?;
        let got = setup.successes(other.b.recv_cq, 8).rule("CQ-CREATE-10")?;
        check_eq!("CQ-CREATE-10", wr_ids(&got), (0..8).collect::<Vec<_>>());
        let states = [setup.state(other.a.qp)?, setup.state(other.b.qp)?];
        check_eq!("CQ-OVR-06", states, [QpState::Rts; 2]);
        let own = [small.cq_err_event(), small.qp_fatal_event()];
        for event in setup.async_events(small.end.context)? {
            let expected = format!("no event but of {} and {}", small.cq, small.end.qp);
            check!("CQ-OVR-06", own.contains(&event), expected, "{event}");
        }
    }
    Ok(())
}

scenario!(overrun_cq_can_be_destroyed: "CQ-OVR-07");
fn overrun_cq_can_be_destroyed(setup: &Setup<'_>) -> Result {
    for queue in Queue::BOTH {
        let small = SmallCq::new(setup, queue, 4)?;
        small.overrun("CQ-OVR-07")?;
        setup.async_events(small.end.context)?;
        let used = setup.destroy_cq(small.cq, setup.wait());
        expect_err(used, ErrorKind::Busy, "CQ-OVR-07")?;
        setup.destroy_qp(small.end.qp, setup.wait())?;
        let destroyed = setup.destroy_cq(small.cq, setup.wait());
        destroyed.rule("CQ-OVR-07")?;
        setup
            .destroy_comp_channel(small.channel)
            .rule("CQ-OVR-07")?;
    }
    Ok(())
}

scenario!(memory_and_completions_stay_true: "CQ-OVR-08");
fn memory_and_completions_stay_true(setup: &Setup<'_>) -> Result {
    const LEN: u32 = 32;
    const GAP: u8 = 0xee;
    let small = SmallCq::new(setup, Queue::Recv, 4)?;
    let (a, b) = (small.pair.a, small.pair.b);
    let count = small.too_many()?;
    let source = |i: u64| i * u64::from(LEN);
    let slot = |i: u64| b.landing() + 2 * source(i);
    let gap = |i: u64| slot(i) + u64::from(LEN);
    for i in 0..count {
        a.fill_at(source(i), i as u8, LEN)?;
        b.fill_at(gap(i), GAP, LEN)?;
    }
    for i in 0..count {
        setup.post_recv(b.qp, &[RecvWr::new(i, &[b.sge(slot(i), LEN)])])?;
    }
    let messages: Vec<_> = (0..count).map(|i| [a.sge(source(i), LEN)]).collect();
    let list: Vec<_> = (0..)
        .zip(&messages)
        .map(|(i, sges)| SendWr::send(i, sges))
        .collect();
    setup.post_send(a.qp, &list)?;
    small.cq_err("CQ-OVR-08")?;
    let (got, _) = small.leftovers()?;
    let order = wr_ids(&got);
    let known = order.iter().all(|wr_id| *wr_id < count);
    let once = order.is_sorted_by(|older, newer| older < newer);
    let expected = format!("some of 0 to {}, in order", count - 1);
    check!("CQ-OVR-08", known && once, expected, "{order:?}");
    for wc in got.iter().filter(|wc| wc.status == WcStatus::Success) {
        check_eq!("CQ-OVR-08", (wc.qp_num, wc.byte_len), (b.qp_num, LEN));
        b.expect_data_at(slot(wc.wr_id), wc.wr_id as u8, LEN, "CQ-OVR-08")?;
    }
    (0..count).try_for_each(|i| b.expect_data_at(gap(i), GAP, LEN, "CQ-OVR-08"))
}
