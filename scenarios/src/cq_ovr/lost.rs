//! Completions that are lost where much is flushed, and by a queue pair in its second life.

use verbs_api::behavior::Overrun;
use verbs_api::{
    AsyncEvent, AsyncEventType, CqInit, Element, QpCap, QpModify, QpState, RecvWr, Result as Done,
    connect,
};

use super::small_cq::{Queue, SmallCq, impatient};
use crate::failure::check_eq;
use crate::{Bench, End, OfRule, Pair, PairOptions, Result};

const RULE: &str = "CQ-OVR-04";

/// How many lost completions the events of a queue pair reported since the last look: one where an
/// overrun is fatal, else none.
fn told_once(bench: &Bench<'_>, end: &End<'_>) -> Result {
    let events = bench.async_events(end.context)?;
    let fatal = AsyncEvent::new(AsyncEventType::QpFatal, Element::Qp(end.qp));
    let told = events.iter().filter(|event| **event == fatal).count();
    let expected = match bench.behavior()?.overrun {
        Some(Overrun::Dead) => 1,
        Some(_) => 0,
        None => return Ok(()),
    };
    check_eq!([RULE, "ASYNC-07"], told, expected, fatal.to_string());
    Ok(())
}

scenario!(loss_of_flushed_sends_is_told_once: "CQ-OVR-04", "ASYNC-07"; needs RNR);
/// They wait for a receive when their queue pair is brought to ERR.
fn loss_of_flushed_sends_is_told_once(bench: &Bench<'_>) -> Result {
    let small = SmallCq::new(bench, Queue::Send, 4)?;
    let a = small.pair.a;
    for wr_id in 0..small.too_many()? + 3 {
        a.send(wr_id, 8)?;
    }
    bench.to_err(a.qp).rule(RULE)?;
    check_eq!(RULE, bench.state(a.qp)?, QpState::Err);
    told_once(bench, &a)
}

scenario!(loss_of_a_great_many_flushed_receives_is_told_once: "CQ-OVR-04", "ASYNC-07");
fn loss_of_a_great_many_flushed_receives_is_told_once(bench: &Bench<'_>) -> Result {
    let context = bench.ctx_b();
    let most = bench.query_device(context)?.max_qp_wr.min(30_000);
    let options = PairOptions {
        cap: QpCap {
            max_recv_wr: most,
            ..QpCap::default()
        },
        ..PairOptions::default()
    };
    let small = bench.create_cq(context, &CqInit::new(4))?;
    let roomy = bench.create_cq(context, &CqInit::new(64))?;
    let end = bench.end_on(roomy, small, options)?;
    let Pair { b, .. } = {
        let peer = bench.end(bench.ctx_a(), PairOptions::default())?;
        bench.connect(peer, end, options)?
    };
    let room = [b.sge(0, 8)];
    let list: Vec<_> = (0..u64::from(most))
        .map(|wr_id| RecvWr::new(wr_id, &room))
        .collect();
    bench.post_recv(b.qp, &list)?;
    bench.to_err(b.qp).rule(RULE)?;
    check_eq!(RULE, bench.state(b.qp)?, QpState::Err);
    told_once(bench, &b)
}

scenario!(loss_in_a_second_life_is_told_again:
    "CQ-OVR-04", "ASYNC-07"; needs MODIFY_CONNECT);
/// First of a receive, then, in other CQs, of a send.
fn loss_in_a_second_life_is_told_again(bench: &Bench<'_>) -> Result {
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
    let context = bench.ctx_b();
    let small = || -> Done<_> { bench.create_cq(context, &CqInit::new(4)) };
    let a = bench.end(bench.ctx_a(), wide)?;
    let b = bench.end_on(small()?, small()?, wide)?;
    let Pair { a, b } = bench.connect(a, b, wide)?;
    let count = match bench.verbs().lab() {
        Some(_) => u64::from(bench.query_cq(b.recv_cq)?.cqe) + 1,
        None => 60,
    };
    let again = || -> Result {
        for qp in [a.qp, b.qp] {
            bench.modify(qp, QpModify::to(QpState::Reset))?;
        }
        let params = bench.place().within(wide.rc);
        Ok(connect::by_attributes(bench.verbs(), a.qp, b.qp, &params)?)
    };
    again()?;
    for wr_id in 0..count {
        b.recv(wr_id, 8)?;
    }
    for wr_id in 0..count {
        // It may have failed already.
        let _ = a.send(wr_id, 8);
    }
    bench.poll_all(a.send_cq)?;
    told_once(bench, &b)?;
    again()?;
    for wr_id in 0..count {
        let _ = b.write(wr_id, 8);
    }
    bench.settle()?;
    told_once(bench, &b)
}
