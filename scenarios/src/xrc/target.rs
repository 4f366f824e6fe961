//! Queue pairs of a domain, and who has them open.

use verbs_api::lab::Limit;
use verbs_api::{
    AsyncEvent, AsyncEventType, Context, Element, ErrorKind, Qp, QpAttrMask, QpModify, QpState,
    QpType, SendWr, Wait, WcStatus, Xrcd, XrcdInit,
};

use super::{Named, beside_b};
use crate::end::gives_up_soon;
use crate::failure::{check, check_eq, in_case};
use crate::fresh_qp::FreshQp;
use crate::{Bench, Claim, OfRule, Pair, PairOptions, Result, expect_err, expect_err_among};

const RULE: &str = "XRC-05";

fn private(bench: &Bench<'_>) -> Result<Xrcd> {
    Ok(bench.open_xrcd(bench.ctx_b(), &XrcdInit::private())?)
}

scenario!(target_is_opened_by_its_number: "XRC-05"; needs XRC);
fn target_is_opened_by_its_number(bench: &Bench<'_>) -> Result {
    let file = Named::new("open");
    let neighbour = beside_b(bench)?;
    let xrcds = [
        bench.open_xrcd(bench.ctx_b(), &file.init().create())?,
        bench.open_xrcd(neighbour, &file.init())?,
    ];
    let target = bench.create_xrc_recv_qp(xrcds[0])?;
    let number = bench.qp_num(target)?;
    let other = bench.create_xrc_recv_qp(xrcds[0])?;
    let mut handles = vec![target];
    for xrcd in [xrcds[1], xrcds[0], xrcds[1]] {
        let opened = bench.open_qp(xrcd, number).rule(RULE)?;
        check!(RULE, !handles.contains(&opened), "a new handle", "{opened}");
        check_eq!(RULE, bench.qp_num(opened)?, number, "the number");
        handles.push(opened);
    }
    // What one changes all see, and the other queue pair is independent.
    let fresh = FreshQp::new(bench, QpType::XrcSend)?;
    let to_init = verbs_api::QpAttr {
        qp_state: QpState::Init,
        ..fresh.attr
    };
    let mask = crate::fresh_qp::required(QpType::XrcRecv, QpState::Reset, QpState::Init);
    bench.modify_qp(handles[1], &to_init, mask).rule(RULE)?;
    for qp in &handles {
        let seen = bench.query_qp(*qp, QpAttrMask::STATE)?;
        check_eq!(RULE, seen.attr.qp_state, QpState::Init, format!("{qp}"));
        check_eq!(RULE, seen.init.qp_type, QpType::XrcRecv);
    }
    check_eq!(RULE, bench.state(other)?, QpState::Reset);
    Ok(())
}

scenario!(number_that_is_none_of_the_domain_is_refused: "XRC-05"; needs XRC);
fn number_that_is_none_of_the_domain_is_refused(bench: &Bench<'_>) -> Result {
    let (own, other) = (private(bench)?, private(bench)?);
    let target = bench.create_xrc_recv_qp(own)?;
    let number = bench.qp_num(target)?;
    let rc = bench.end(bench.ctx_b(), PairOptions::default())?;
    let sender = bench.end(bench.ctx_b(), PairOptions::of(QpType::XrcSend))?;
    let gone = bench.create_xrc_recv_qp(own)?;
    let number_of_gone = bench.qp_num(gone)?;
    bench.destroy_qp(gone, bench.wait())?;
    for (what, xrcd, number) in [
        ("in another domain", other, number),
        ("of nothing", own, 0),
        ("above 24 bits", own, number | 1 << 24),
        ("of a qp of RC", own, rc.qp_num),
        ("of a sender", own, sender.qp_num),
        ("of one that is gone", own, number_of_gone),
    ] {
        let kinds = [ErrorKind::Invalid, ErrorKind::NotFound];
        let opened = expect_err_among(bench.open_qp(xrcd, number), &kinds, RULE);
        in_case(what, opened.map(drop))?;
    }
    bench.open_qp(own, number).rule(RULE).map(drop)
}

/// A connected pair whose receiving end is in the domain of a file, with one more handle of its
/// queue pair, in another context.
struct Shared<'b> {
    pair: Pair<'b>,
    neighbour: Context,
    other: Xrcd,
    opened: Qp,
}

fn shared<'b>(bench: &'b Bench<'_>, file: &Named) -> Result<Shared<'b>> {
    let neighbour = beside_b(bench)?;
    let xrcd = bench.open_xrcd(bench.ctx_b(), &file.init().create())?;
    let other = bench.open_xrcd(neighbour, &file.init())?;
    let options = PairOptions {
        rc: gives_up_soon(),
        ..PairOptions::of(QpType::XrcSend)
    };
    let a = bench.end(bench.ctx_a(), options)?;
    let b = bench.xrc_end(xrcd, None, options)?;
    let pair = bench.connect(a, b, options)?;
    let opened = bench.open_qp(other, pair.b.qp_num)?;
    Ok(Shared {
        pair,
        neighbour,
        other,
        opened,
    })
}

scenario!(target_lives_until_it_is_open_nowhere: "XRC-05"; needs XRC);
fn target_lives_until_it_is_open_nowhere(bench: &Bench<'_>) -> Result {
    let file = Named::new("nowhere");
    let Shared {
        pair,
        other,
        opened,
        ..
    } = shared(bench, &file)?;
    pair.still_works(RULE)?;
    bench.destroy_qp(pair.b.qp, bench.wait()).rule(RULE)?;
    pair.still_works(RULE)?;
    check_eq!(RULE, bench.state(opened)?, QpState::Rts);
    let again = bench.open_qp(other, pair.b.qp_num).rule(RULE)?;
    for qp in [opened, again] {
        bench.destroy_qp(qp, bench.wait()).rule(RULE)?;
    }
    let none = bench.open_qp(other, pair.b.qp_num);
    expect_err_among(none, &[ErrorKind::Invalid, ErrorKind::NotFound], RULE)?;
    pair.b.recv(1, 8)?;
    pair.a.send(1, 8)?;
    bench.one_with(pair.a.send_cq, WcStatus::RetryExcErr, RULE)?;
    bench.no_completion(pair.b.recv_cq, RULE)
}

scenario!(target_stays_when_one_of_its_contexts_closes: "XRC-05", "LIFE-07"; needs XRC);
fn target_stays_when_one_of_its_contexts_closes(bench: &Bench<'_>) -> Result {
    let file = Named::new("contexts");
    let shared = shared(bench, &file)?;
    bench.close_device(shared.neighbour)?;
    shared.pair.still_works(RULE)?;
    check_eq!(RULE, bench.state(shared.pair.b.qp)?, QpState::Rts);
    bench
        .destroy_qp(shared.pair.b.qp, bench.wait())
        .rule(RULE)?;
    shared.pair.b.recv(1, 8)?;
    shared.pair.a.send(1, 8)?;
    // It was the last.
    bench.one_with(shared.pair.a.send_cq, WcStatus::RetryExcErr, "LIFE-07")?;
    Ok(())
}

scenario!(events_of_a_target_come_to_all_who_have_it_open:
    "XRC-05", "ASYNC-02", "ASYNC-03", "ASYNC-06"; needs XRC);
fn events_of_a_target_come_to_all_who_have_it_open(bench: &Bench<'_>) -> Result {
    let file = Named::new("events");
    let Shared {
        pair,
        neighbour,
        other,
        opened,
    } = shared(bench, &file)?;
    let silent = bench.open_qp(other, pair.b.qp_num)?;
    let data = [pair.a.sge(0, 8)];
    let bad = pair.a.bad_remote();
    pair.a.post(SendWr::rdma_write(1, &data, bad))?;
    bench.one_with(pair.a.send_cq, WcStatus::RemAccessErr, RULE)?;
    if bench.behavior()?.qp_access_event != Some(true) {
        return bench.no_async_event(neighbour, "ASYNC-02");
    }
    let event = |qp| AsyncEvent::new(AsyncEventType::QpAccessErr, Element::Qp(qp));
    // The events of a handle that goes, goes with it.
    bench.destroy_qp(silent, bench.wait())?;
    for (context, qp) in [(pair.b.context, pair.b.qp), (neighbour, opened)] {
        let seen = bench.take_async_event(context).rule("ASYNC-02")?;
        check_eq!("ASYNC-02", seen, event(qp), "the event");
        bench.no_async_event(context, "ASYNC-06")?;
    }
    // Each handle waits for its own.
    bench.ack_async_event(neighbour, &event(opened))?;
    bench.destroy_qp(opened, Wait::Poll).rule("ASYNC-03")?;
    let waits = bench.destroy_qp(pair.b.qp, Wait::Poll);
    expect_err(waits, ErrorKind::WouldBlock, "ASYNC-03")?;
    bench.ack_async_event(pair.b.context, &event(pair.b.qp))?;
    bench.destroy_qp(pair.b.qp, Wait::Poll).rule("ASYNC-03")
}

scenario!(target_counts_among_the_queue_pairs: "QP-CREATE-12"; needs XRC, LAB);
fn target_counts_among_the_queue_pairs(bench: &Bench<'_>) -> Result {
    const RULE: &str = "QP-CREATE-12";
    let context = bench.ctx_b();
    let xrcd = private(bench)?;
    bench.lab().set_limit(context, Limit::QueuePairs, Some(2))?;
    let first = bench.create_xrc_recv_qp(xrcd).rule(RULE)?;
    bench.create_xrc_recv_qp(xrcd).rule(RULE)?;
    for _ in 0..2 {
        let before = bench.live()?;
        let refused = bench.create_xrc_recv_qp(xrcd);
        expect_err_among(refused, &[ErrorKind::NoMemory, ErrorKind::Invalid], RULE)?;
        bench.expect_live(before, RULE)?;
    }
    bench.destroy_qp(first, bench.wait())?;
    bench.create_xrc_recv_qp(xrcd).rule(RULE).map(drop)
}

scenario!(target_is_opened_only_while_there_is_memory: "LIFE-06"; needs XRC, LAB);
fn target_is_opened_only_while_there_is_memory(bench: &Bench<'_>) -> Result {
    const RULE: &str = "LIFE-06";
    let context = bench.ctx_b();
    let xrcd = private(bench)?;
    let target = bench.create_xrc_recv_qp(xrcd)?;
    let number = bench.qp_num(target)?;
    bench.lab().set_limit(context, Limit::Objects, Some(0))?;
    let before = bench.live()?;
    expect_err(bench.open_qp(xrcd, number), ErrorKind::NoMemory, RULE)?;
    bench.expect_live(before, RULE)?;
    bench.lab().set_limit(context, Limit::Objects, None)?;
    let opened = bench.open_qp(xrcd, number).rule(RULE)?;
    for qp in [opened, target] {
        bench.destroy_qp(qp, bench.wait()).rule(RULE)?;
    }
    bench.close_xrcd(xrcd).rule(RULE)
}

scenario!(drained_target_is_told_if_that_was_asked_for:
    "QP-STATE-11", "QP-STATE-12", "ASYNC-16"; needs XRC, MODIFY_CONNECT);
/// It has no sends: SQD finds it drained.
fn drained_target_is_told_if_that_was_asked_for(bench: &Bench<'_>) -> Result {
    let (sender, target) = FreshQp::pair(bench, QpType::XrcSend)?;
    sender.reach(QpState::Rts)?;
    target.reach(QpState::Rts)?;
    let always = bench.behavior()?.sq_drained_always == Some(true);
    for asks in [true, false, true] {
        let sqd = QpModify::to(QpState::Sqd).set(QpAttrMask::EN_SQD_ASYNC_NOTIFY, |attr| {
            attr.en_sqd_async_notify = asks;
        });
        bench.modify(target.end.qp, sqd)?;
        if asks || always {
            let event = bench.async_event(target.end.context).rule("QP-STATE-11")?;
            let element = Element::Qp(target.end.qp);
            let expected = AsyncEvent::new(AsyncEventType::SqDrained, element);
            check_eq!("ASYNC-16", event, expected, "the event");
        }
        let draining = target.query()?.attr.sq_draining;
        check_eq!("QP-STATE-12", draining, false, "draining");
        bench.no_async_event(target.end.context, "QP-STATE-11")?;
        bench.modify(target.end.qp, QpModify::to(QpState::Rts))?;
    }
    Ok(())
}

scenario!(target_outlives_the_srq_of_its_last_message: "QP-STATE-25", "QP-DESTROY-01"; needs XRC);
/// It is reset, and goes, when the SRQ and its domain of memory are gone.
fn target_outlives_the_srq_of_its_last_message(bench: &Bench<'_>) -> Result {
    for is_reset in [true, false] {
        let pair = bench.pair(PairOptions::of(QpType::XrcSend))?;
        pair.still_works(Claim::NONE)?;
        let b = pair.b;
        bench.destroy_srq(b.srq(), bench.wait())?;
        bench.dereg_mr(b.mr)?;
        bench.dealloc_pd(b.pd)?;
        if is_reset {
            bench.to_reset(b.qp).rule("QP-STATE-25")?;
            check_eq!("QP-STATE-25", bench.state(b.qp)?, QpState::Reset);
        }
        bench.destroy_qp(b.qp, bench.wait()).rule("QP-DESTROY-01")?;
    }
    Ok(())
}
