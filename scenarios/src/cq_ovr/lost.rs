//! Completions that are lost where much is flushed, and by a queue pair in its second life.

use verbs_api::behavior::Overrun;
use verbs_api::{
    AsyncEvent, AsyncEventType, CqInit, Element, QpCap, QpModify, QpState, RecvWr, Result as Done,
    connect,
};

use super::small_cq::{Queue, SmallCq, impatient};
use crate::failure::check_eq;
use crate::{End, OfRule, Pair, PairOptions, Result, Setup};

const RULE: &str = "CQ-OVR-04";

/// How many lost completions the events of a queue pair reported since the last look: one where an
/// overrun is fatal, else none.
fn told_once(setup: &Setup<'_>, end: &End<'_>) -> Result {
    let events = setup.async_events(end.context)?;
    let fatal = AsyncEvent::new(AsyncEventType::QpFatal, Element::Qp(end.qp));
    let reported = events.iter().filter(|event| **event == fatal).count();
    let expected = match setup.behavior()?.overrun {
        Some(Overrun::Dead) => 1,
        Some(_) => 0,
        None => return Ok(()),
    };
    check_eq!([RULE, "ASYNC-07"], reported, expected, fatal.to_string());
    Ok(())
}

scenario!(loss_of_flushed_sends_is_told_once: "CQ-OVR-04", "ASYNC-07"; needs RNR);
/// They wait for a receive when their queue pair is brought to ERR.
fn loss_of_flushed_sends_is_told_once(setup: &Setup<'_>) -> Result {
    let small = SmallCq::new(setup, Queue::Send, 4)?;
    let a = small.pair.a;
    for wr_id in 0..small.too_many()? + 3 {
        a.send(wr_id, 8)?;
    }
    setup.to_err(a.qp).rule(RULE)?;
    check_eq!(RULE, setup.state(a.qp)?, QpState::Err);
    told_once(setup, &a)
}

scenario!(loss_of_a_great_many_flushed_receives_is_told_once: "CQ-OVR-04", "ASYNC-07");
fn loss_of_a_great_many_flushed_receives_is_told_once(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_b();
    let most = setup.query_device(context)?.max_qp_wr.min(30_000);
    let options = PairOptions {
        cap: QpCap {
            max_recv_wr: most,
            ..QpCap::default()
        },
        ..PairOptions::default()
    };
    let small = setup.create_cq(context, &CqInit::new(4))?;
    let roomy = setup.create_cq(context, &CqInit::new(64))?;
    let end = setup.end_on(roomy, small, options)?;
    let Pair { b, .. } = {
        let peer = setup.end(setup.ctx_a(), PairOptions::default())?;
        setup.connect(peer, end, options)?
    };
    let room = [b.sge(0, 8)];
    let list: Vec<_> = (0..u64::from(most))
        .map(|wr_id| RecvWr::new(wr_id, &room))
        .collect();
    setup.post_recv(b.qp, &list)?;
    setup.to_err(b.qp).rule(RULE)?;
    check_eq!(RULE, setup.state(b.qp)?, QpState::Err);
    told_once(setup, &b)
}

scenario!(loss_in_a_second_life_is_told_again:
    "CQ-OVR-04", "ASYNC-07"; needs MODIFY_CONNECT);
/// First of a receive, then, in other CQs, of a send.
fn loss_in_a_second_life_is_told_again(setup: &Setup<'_>) -> Result {
    let wide = PairOptions {
        send_cqe: 512,
        recv_cqe: 512,
        cap: QpCap {
            max_send_wr: 64,
            max_recv_wr: 64,
            ..QpCap::default()
        },
        rc: impatient(),
        ..PairOptions::default()
    };
    let context = setup.ctx_b();
    let small = || -> Done<_> { setup.create_cq(context, &CqInit::new(4)) };
    let a = setup.end(setup.ctx_a(), wide)?;
    let b = setup.end_on(small()?, small()?, wide)?;
    let Pair { a, b } = setup.connect(a, b, wide)?;
    let count = match setup.verbs().lab() {
        Some(_) => u64::from(setup.query_cq(b.recv_cq)?.cqe) + 1,
        None => 60,
    };
    let again = || -> Result {
        for qp in [a.qp, b.qp] {
            setup.modify(qp, QpModify::to(QpState::Reset))?;
        }
        let params = setup.here(wide.rc);
        Ok(connect::by_attributes(setup.verbs(), a.qp, b.qp, &params)?)
    };
    again()?;
    for wr_id in 0..count {
        b.recv(wr_id, 8)?;
    }
    for wr_id in 0..count {
        // It may have failed already.
        let _ = a.send(wr_id, 8);
    }
    setup.poll_all(a.send_cq)?;
    told_once(setup, &b)?;
    again()?;
    for wr_id in 0..count {
        let _ = b.write(wr_id, 8);
    }
    setup.settle()?;
    told_once(setup, &b)
}
