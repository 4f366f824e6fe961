//! SQD: sends wait, the rest goes on.

use verbs_api::{
    Access, AsyncEvent, AsyncEventType, Element, GlobalRoute, QpAttr, QpAttrMask as M, QpModify,
    QpState, QpType, transition,
};

use crate::failure::{check_eq, value_in_case};
use crate::fresh_qp::FreshQp;
use crate::{End, OfRule, Pair, PairOptions, Result, Setup, wr_ids};

scenario!(sends_posted_in_sqd_wait_for_rts: "QP-STATE-10"; needs MODIFY_CONNECT);
fn sends_posted_in_sqd_wait_for_rts(setup: &Setup<'_>) -> Result {
    wait_for_rts(setup, QpType::Rc)
}

scenario!(uc_sends_posted_in_sqd_wait_for_rts: "QP-STATE-10"; needs UC, MODIFY_CONNECT);
fn uc_sends_posted_in_sqd_wait_for_rts(setup: &Setup<'_>) -> Result {
    wait_for_rts(setup, QpType::Uc)
}

scenario!(ud_sends_posted_in_sqd_wait_for_rts: "QP-STATE-10"; needs UD, MODIFY_CONNECT);
fn ud_sends_posted_in_sqd_wait_for_rts(setup: &Setup<'_>) -> Result {
    wait_for_rts(setup, QpType::Ud)
}

/// Twice, with work before, in and behind SQD: all completes in order.
fn wait_for_rts(setup: &Setup<'_>, qp_type: QpType) -> Result {
    const RULE: &str = "QP-STATE-10";
    let Pair { a, b } = setup.pair(PairOptions::of(qp_type))?;
    for round in 0..2 {
        let first = round * 10;
        for wr_id in first..first + 5 {
            b.recv(wr_id, 8)?;
        }
        a.send(first, 8)?;
        setup.successes(a.send_cq, 1)?;
        setup.successes(b.recv_cq, 1)?;
        setup.modify(a.qp, QpModify::to(QpState::Sqd))?;
        for wr_id in first + 1..first + 4 {
            a.send(wr_id, 8).rule(RULE)?;
        }
        for cq in [a.send_cq, b.recv_cq] {
            setup.no_completion(cq, RULE)?;
        }
        setup.modify(a.qp, QpModify::to(QpState::Rts)).rule(RULE)?;
        let held: Vec<_> = (first + 1..first + 4).collect();
        for cq in [a.send_cq, b.recv_cq] {
            let seen = setup.successes(cq, 3).rule(RULE)?;
            check_eq!(RULE, wr_ids(&seen), held, "what was held");
        }
        a.send(first + 4, 8).rule(RULE)?;
        for cq in [a.send_cq, b.recv_cq] {
            let seen = setup.successes(cq, 1).rule(RULE)?;
            check_eq!(RULE, wr_ids(&seen), [first + 4]);
        }
    }
    Ok(())
}

scenario!(held_sends_run_before_later_ones: "QP-STATE-10"; needs MODIFY_CONNECT);
/// The held sends run no later than with the next one, before it.
fn held_sends_run_before_later_ones(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-10";
    let Pair { a, b } = setup.rc_pair()?;
    for wr_id in 0..5 {
        b.recv(wr_id, 8)?;
    }
    setup.modify(a.qp, QpModify::to(QpState::Sqd))?;
    setup.until_sq_drained(a.qp)?;
    for wr_id in 0..3 {
        a.send(wr_id, 8).rule(RULE)?;
    }
    setup.modify(a.qp, QpModify::to(QpState::Rts))?;
    for wr_id in 3..5 {
        a.send(wr_id, 8).rule(RULE)?;
    }
    for cq in [a.send_cq, b.recv_cq] {
        let seen = wr_ids(&setup.successes(cq, 5).rule(RULE)?);
        check_eq!(RULE, seen, [0, 1, 2, 3, 4], "the order of work");
    }
    Ok(())
}

scenario!(work_under_way_is_finished_in_sqd:
    "QP-STATE-10", "QP-STATE-12"; needs MODIFY_CONNECT, LAB);
/// A send that has found no receive is under way; what is posted behind SQD is not.
fn work_under_way_is_finished_in_sqd(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    under_way(setup, &a)?;
    let draining = || -> Result<bool> {
        let attr = setup.query_qp(a.qp, M::STATE)?.attr;
        check_eq!("QP-STATE-12", attr.qp_state, QpState::Sqd);
        Ok(attr.sq_draining)
    };
    setup.modify(a.qp, QpModify::to(QpState::Sqd))?;
    a.send(3, 8)?;
    check_eq!("QP-STATE-12", draining()?, true, "sq_draining");
    for wr_id in 1..=3 {
        b.recv(wr_id, 8)?;
    }
    for cq in [a.send_cq, b.recv_cq] {
        let seen = setup.successes(cq, 2).rule("QP-STATE-10")?;
        check_eq!("QP-STATE-10", wr_ids(&seen), [1, 2], "what was under way");
        setup.no_completion(cq, "QP-STATE-10")?;
    }
    check_eq!("QP-STATE-12", draining()?, false, "sq_draining");
    setup.modify(a.qp, QpModify::to(QpState::Rts))?;
    b.recv(4, 8)?;
    a.send(4, 8)?;
    for cq in [a.send_cq, b.recv_cq] {
        let seen = setup.successes(cq, 2).rule("QP-STATE-10")?;
        check_eq!("QP-STATE-10", wr_ids(&seen), [3, 4], "what was held first");
    }
    Ok(())
}

/// Two sends are sent and refused for want of a receive.
fn under_way(setup: &Setup<'_>, a: &End<'_>) -> Result {
    for wr_id in 1..=2 {
        a.send(wr_id, 8)?;
    }
    Ok(setup.lab().advance(std::time::Duration::from_micros(50))?)
}

scenario!(idle_queue_is_drained_at_once: "QP-STATE-12"; needs MODIFY_CONNECT);
fn idle_queue_is_drained_at_once(setup: &Setup<'_>) -> Result {
    let Pair { a, .. } = setup.rc_pair()?;
    setup.modify(a.qp, QpModify::to(QpState::Sqd))?;
    setup.until_sq_drained(a.qp).rule("QP-STATE-12")
}

/// RTS to SQD, with notification.
fn notify() -> QpModify {
    QpModify::to(QpState::Sqd).set(M::EN_SQD_ASYNC_NOTIFY, |attr| {
        attr.en_sqd_async_notify = true;
    })
}

fn is_told(setup: &Setup<'_>, a: &End<'_>) -> Result {
    let event = setup.async_event(a.context).rule("QP-STATE-11")?;
    let expected = AsyncEvent::new(AsyncEventType::SqDrained, Element::Qp(a.qp));
    check_eq!("ASYNC-16", event, expected, "the event");
    setup.no_async_event(a.context, "QP-STATE-11")
}

scenario!(drained_queue_is_told_once_if_that_was_asked_for:
    "QP-STATE-11", "ASYNC-16"; needs MODIFY_CONNECT);
/// Each time it is asked for.
fn drained_queue_is_told_once_if_that_was_asked_for(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    for _ in 0..2 {
        pair.deliver(0..3)?;
        setup.successes(pair.b.recv_cq, 3)?;
        setup.modify(pair.a.qp, notify())?;
        is_told(setup, &pair.a)?;
        setup.modify(pair.a.qp, QpModify::to(QpState::Rts))?;
    }
    Ok(())
}

scenario!(drained_queue_is_not_told_unasked: "QP-STATE-11", "ASYNC-16"; needs MODIFY_CONNECT);
/// Also not when it was asked for the last time, or is asked not to.
fn drained_queue_is_not_told_unasked(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let a = &pair.a;
    let not = QpModify::to(QpState::Sqd).set(M::EN_SQD_ASYNC_NOTIFY, |attr| {
        attr.en_sqd_async_notify = false;
    });
    // It has the wish and does not name it.
    let unnamed = QpModify {
        mask: M::STATE,
        ..notify()
    };
    for unasked in [not, QpModify::to(QpState::Sqd), unnamed, not] {
        pair.deliver(0..3)?;
        setup.successes(pair.b.recv_cq, 3)?;
        setup.modify(a.qp, unasked)?;
        setup.no_async_event(a.context, "QP-STATE-11")?;
        setup.modify(a.qp, QpModify::to(QpState::Rts))?;
        setup.modify(a.qp, notify())?;
        is_told(setup, a)?;
        setup.modify(a.qp, QpModify::to(QpState::Rts))?;
    }
    Ok(())
}

scenario!(queue_is_told_to_be_drained_when_it_is:
    "QP-STATE-11", "ASYNC-16"; needs MODIFY_CONNECT, LAB);
fn queue_is_told_to_be_drained_when_it_is(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    under_way(setup, &a)?;
    setup.modify(a.qp, notify())?;
    a.send(3, 8)?;
    setup.lab().advance(std::time::Duration::from_millis(5))?;
    let early = setup.get_async_event(a.context, verbs_api::Wait::Poll);
    crate::expect_err(early, verbs_api::ErrorKind::WouldBlock, "QP-STATE-11")?;
    for wr_id in 1..=3 {
        b.recv(wr_id, 8)?;
    }
    is_told(setup, &a)?;
    let done = setup.drain(a.send_cq)?;
    check_eq!("ASYNC-16", wr_ids(&done), [1, 2], "what was under way");
    Ok(())
}

scenario!(peer_goes_on_while_the_queue_is_drained: "QP-STATE-13"; needs MODIFY_CONNECT, RDMA_READ);
/// Its sends, writes and reads.
fn peer_goes_on_while_the_queue_is_drained(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-13";
    let Pair { a, b } = setup.rc_pair()?;
    a.recv_at(1, a.landing() + 8192, 64)?;
    setup.modify(a.qp, QpModify::to(QpState::Sqd))?;
    a.recv_at(2, a.landing() + 8192, 64).rule(RULE)?;
    a.fill(4, 3000)?;
    b.fill(5, 3000)?;
    b.write(10, 3000)?;
    b.read(11, 3000)?;
    b.send(12, 64)?;
    b.send(13, 64)?;
    let done = setup.successes(b.send_cq, 4).rule(RULE)?;
    check_eq!(RULE, wr_ids(&done), [10, 11, 12, 13]);
    let got = setup.successes(a.recv_cq, 2).rule(RULE)?;
    check_eq!(RULE, wr_ids(&got), [1, 2]);
    a.expect_data(5, 3000, RULE)?;
    b.expect_data(4, 3000, RULE)?;
    check_eq!(RULE, setup.state(a.qp)?, QpState::Sqd);
    Ok(())
}

scenario!(rc_attributes_change_in_sqd: "QP-STATE-14"; needs MODIFY_CONNECT);
fn rc_attributes_change_in_sqd(setup: &Setup<'_>) -> Result {
    attributes_change(setup, QpType::Rc)
}

scenario!(uc_attributes_change_in_sqd: "QP-STATE-14"; needs UC, MODIFY_CONNECT);
fn uc_attributes_change_in_sqd(setup: &Setup<'_>) -> Result {
    attributes_change(setup, QpType::Uc)
}

scenario!(ud_attributes_change_in_sqd: "QP-STATE-14"; needs UD, MODIFY_CONNECT);
fn ud_attributes_change_in_sqd(setup: &Setup<'_>) -> Result {
    attributes_change(setup, QpType::Ud)
}

/// Each attribute that the table allows, to a value that it did not have where it can have another.
fn attributes_change(setup: &Setup<'_>, qp_type: QpType) -> Result {
    const RULE: &str = "QP-STATE-14";
    let table = transition::attributes(qp_type, QpState::Sqd, QpState::Sqd);
    let optional = table.map_or(M::empty(), |attributes| attributes.optional);
    // Path migration is a matter of its own.
    let bits = optional - M::ALT_PATH - M::PATH_MIG_STATE;
    let (mut a, b) = FreshQp::pair(setup, qp_type)?;
    b.reach(QpState::Rts)?;
    a.reach(QpState::Sqd)?;
    for (name, bit) in bits.iter_names() {
        change(&mut a.attr, bit);
        let changed = a.change(QpState::Sqd, M::STATE | bit).rule(RULE);
        value_in_case(name, changed)?;
        let seen = value(&a.query()?.attr, bit);
        check_eq!(RULE, seen, value(&a.attr, bit), name);
        check_eq!(RULE, setup.state(a.end.qp)?, QpState::Sqd);
        // A change from SQD to SQD drains again.
        setup.until_sq_drained(a.end.qp)?;
    }
    a.go(QpState::Rts)?;
    if qp_type != QpType::Ud {
        b.end.recv(1, 8)?;
        a.end.send(2, 8)?;
        for cq in [a.end.send_cq, b.end.recv_cq] {
            setup.successes(cq, 1).rule(RULE)?;
        }
    }
    Ok(())
}

fn change(attr: &mut QpAttr, bit: M) {
    match bit {
        M::ACCESS_FLAGS => attr.qp_access_flags = Access::REMOTE_READ,
        M::QKEY => attr.qkey = 0x2222_2222,
        M::TIMEOUT => attr.timeout = 16,
        M::RETRY_CNT => attr.retry_cnt = 3,
        M::RNR_RETRY => attr.rnr_retry = 5,
        M::MIN_RNR_TIMER => attr.min_rnr_timer = 20,
        M::MAX_QP_RD_ATOMIC => attr.max_rd_atomic = 2,
        M::MAX_DEST_RD_ATOMIC => attr.max_dest_rd_atomic = 4,
        M::AV => {
            if let Some(av) = &mut attr.ah_attr {
                // The hop limit may be that of the route.
                av.grh = av.grh.map(|grh| GlobalRoute {
                    traffic_class: 4,
                    ..grh
                });
            }
        }
        // There is one port, and one P_Key.
        _ => {}
    }
}

fn value(attr: &QpAttr, bit: M) -> u64 {
    match bit {
        M::ACCESS_FLAGS => attr.qp_access_flags.bits().into(),
        M::QKEY => attr.qkey.into(),
        M::TIMEOUT => attr.timeout.into(),
        M::RETRY_CNT => attr.retry_cnt.into(),
        M::RNR_RETRY => attr.rnr_retry.into(),
        M::MIN_RNR_TIMER => attr.min_rnr_timer.into(),
        M::MAX_QP_RD_ATOMIC => attr.max_rd_atomic.into(),
        M::MAX_DEST_RD_ATOMIC => attr.max_dest_rd_atomic.into(),
        M::AV => {
            let grh = attr.ah_attr.and_then(|av| av.grh);
            grh.map_or(0, |grh| grh.traffic_class.into())
        }
        M::PORT => attr.port_num.into(),
        M::PKEY_INDEX => attr.pkey_index.into(),
        _ => 0,
    }
}
