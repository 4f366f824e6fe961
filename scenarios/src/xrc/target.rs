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
use crate::{Claim, OfRule, Pair, PairOptions, Result, Setup, expect_err, expect_err_among};

const RULE: &str = "XRC-05";

fn private(setup: &Setup<'_>) -> Result<Xrcd> {
    Ok(setup.open_xrcd(setup.ctx_b(), &XrcdInit::private())?)
}

scenario!(target_is_opened_by_its_number: "XRC-05"; needs XRC);
fn target_is_opened_by_its_number(setup: &Setup<'_>) -> Result {
    let file = Named::new("open");
    let neighbour = beside_b(setup)?;
    let xrcds = [
        setup.open_xrcd(setup.ctx_b(), &file.init().create())?,
        setup.open_xrcd(neighbour, &file.init())?,
    ];
    let target = setup.create_xrc_recv_qp(xrcds[0])?;
    let number = setup.qp_num(target)?;
    let other = setup.create_xrc_recv_qp(xrcds[0])?;
    let mut handles = vec![target];
    for xrcd in [xrcds[1], xrcds[0], xrcds[1]] {
        let opened = setup.open_qp(xrcd, number).rule(RULE)?;
        check!(RULE, !handles.contains(&opened), "a new handle", "{opened}");
        check_eq!(RULE, setup.qp_num(opened)?, number, "the number");
        handles.push(opened);
    }
    // What one changes all see, and the other queue pair is independent.
    let fresh = FreshQp::new(setup, QpType::XrcSend)?;
    let to_init = verbs_api::QpAttr {
        qp_state: QpState::Init,
        ..fresh.attr
    };
    let mask = crate::fresh_qp::required(QpType::XrcRecv, QpState::Reset, QpState::Init);
    setup.modify_qp(handles[1], &to_init, mask).rule(RULE)?;
    for qp in &handles {
        let seen = setup.query_qp(*qp, QpAttrMask::STATE)?;
        check_eq!(RULE, seen.attr.qp_state, QpState::Init, format!("{qp}"));
        check_eq!(RULE, seen.init.qp_type, QpType::XrcRecv);
    }
    check_eq!(RULE, setup.state(other)?, QpState::Reset);
    Ok(())
}

scenario!(number_that_is_none_of_the_domain_is_refused: "XRC-05"; needs XRC);
fn number_that_is_none_of_the_domain_is_refused(setup: &Setup<'_>) -> Result {
    let (own, other) = (private(setup)?, private(setup)?);
    let target = setup.create_xrc_recv_qp(own)?;
    let number = setup.qp_num(target)?;
    let rc = setup.end(setup.ctx_b(), PairOptions::default())?;
    let sender = setup.end(setup.ctx_b(), PairOptions::of(QpType::XrcSend))?;
    let gone = setup.create_xrc_recv_qp(own)?;
    let number_of_gone = setup.qp_num(gone)?;
    setup.destroy_qp(gone, setup.wait())?;
    for (what, xrcd, number) in [
        ("in another domain", other, number),
        ("of nothing", own, 0),
        ("above 24 bits", own, number | 1 << 24),
        ("of a qp of RC", own, rc.qp_num),
        ("of a sender", own, sender.qp_num),
        ("of a destroyed one", own, number_of_gone),
    ] {
        let kinds = [ErrorKind::Invalid, ErrorKind::NotFound];
        let opened = expect_err_among(setup.open_qp(xrcd, number), &kinds, RULE);
        in_case(what, opened.map(drop))?;
    }
    setup.open_qp(own, number).rule(RULE).map(drop)
}

/// A connected pair whose receiving end is in the domain of a file, with one more handle of its
/// queue pair, in another context.
struct Shared<'b> {
    pair: Pair<'b>,
    neighbour: Context,
    other: Xrcd,
    opened: Qp,
}

fn shared<'b>(setup: &'b Setup<'_>, file: &Named) -> Result<Shared<'b>> {
    let neighbour = beside_b(setup)?;
    let xrcd = setup.open_xrcd(setup.ctx_b(), &file.init().create())?;
    let other = setup.open_xrcd(neighbour, &file.init())?;
    let options = PairOptions {
        rc: gives_up_soon(),
        ..PairOptions::of(QpType::XrcSend)
    };
    let a = setup.end(setup.ctx_a(), options)?;
    let b = setup.xrc_end(xrcd, None, options)?;
    let pair = setup.connect(a, b, options)?;
    let opened = setup.open_qp(other, pair.b.qp_num)?;
    Ok(Shared {
        pair,
        neighbour,
        other,
        opened,
    })
}

scenario!(target_lives_until_it_is_open_nowhere: "XRC-05"; needs XRC);
fn target_lives_until_it_is_open_nowhere(setup: &Setup<'_>) -> Result {
    let file = Named::new("nowhere");
    let Shared {
        pair,
        other,
        opened,
        ..
    } = shared(setup, &file)?;
    pair.still_works(RULE)?;
    setup.destroy_qp(pair.b.qp, setup.wait()).rule(RULE)?;
    pair.still_works(RULE)?;
    check_eq!(RULE, setup.state(opened)?, QpState::Rts);
    let again = setup.open_qp(other, pair.b.qp_num).rule(RULE)?;
    for qp in [opened, again] {
        setup.destroy_qp(qp, setup.wait()).rule(RULE)?;
    }
    let none = setup.open_qp(other, pair.b.qp_num);
    expect_err_among(none, &[ErrorKind::Invalid, ErrorKind::NotFound], RULE)?;
    pair.b.recv(1, 8)?;
    pair.a.send(1, 8)?;
    setup.one_with(pair.a.send_cq, WcStatus::RetryExcErr, RULE)?;
    setup.no_completion(pair.b.recv_cq, RULE)
}

scenario!(target_stays_when_one_of_its_contexts_closes: "XRC-05", "LIFE-07"; needs XRC);
fn target_stays_when_one_of_its_contexts_closes(setup: &Setup<'_>) -> Result {
    let file = Named::new("contexts");
    let shared = shared(setup, &file)?;
    setup.close_device(shared.neighbour)?;
    shared.pair.still_works(RULE)?;
    check_eq!(RULE, setup.state(shared.pair.b.qp)?, QpState::Rts);
    setup
        .destroy_qp(shared.pair.b.qp, setup.wait())
        .rule(RULE)?;
    shared.pair.b.recv(1, 8)?;
    shared.pair.a.send(1, 8)?;
    // It was the last.
    setup.one_with(shared.pair.a.send_cq, WcStatus::RetryExcErr, "LIFE-07")?;
    Ok(())
}

scenario!(events_of_a_target_come_to_all_who_have_it_open:
    "XRC-05", "ASYNC-02", "ASYNC-03", "ASYNC-06"; needs XRC);
fn events_of_a_target_come_to_all_who_have_it_open(setup: &Setup<'_>) -> Result {
    let file = Named::new("events");
    let Shared {
        pair,
        neighbour,
        other,
        opened,
    } = shared(setup, &file)?;
    let silent = setup.open_qp(other, pair.b.qp_num)?;
    let data = [pair.a.sge(0, 8)];
    let bad = pair.a.bad_remote();
    pair.a.post(SendWr::rdma_write(1, &data, bad))?;
    setup.one_with(pair.a.send_cq, WcStatus::RemAccessErr, RULE)?;
    match setup.behavior()?.qp_access_event {
        Some(true) => {}
        Some(false) => return setup.no_async_event(neighbour, "ASYNC-02"),
        // It declares neither, and what follows is about the event.
        None => return Ok(()),
    }
    let event = |qp| AsyncEvent::new(AsyncEventType::QpAccessErr, Element::Qp(qp));
    // The events of a handle that goes, goes with it.
    setup.destroy_qp(silent, setup.wait())?;
    for (context, qp) in [(pair.b.context, pair.b.qp), (neighbour, opened)] {
        let seen = setup.take_async_event(context).rule("ASYNC-02")?;
        check_eq!("ASYNC-02", seen, event(qp), "the event");
        setup.no_async_event(context, "ASYNC-06")?;
    }
    // Each handle waits for its own.
    setup.ack_async_event(neighbour, &event(opened))?;
    setup.destroy_qp(opened, Wait::Poll).rule("ASYNC-03")?;
    let waits = setup.destroy_qp(pair.b.qp, Wait::Poll);
    expect_err(waits, ErrorKind::WouldBlock, "ASYNC-03")?;
    setup.ack_async_event(pair.b.context, &event(pair.b.qp))?;
    setup.destroy_qp(pair.b.qp, Wait::Poll).rule("ASYNC-03")
}

scenario!(target_counts_among_the_queue_pairs: "QP-CREATE-12"; needs XRC, LAB);
fn target_counts_among_the_queue_pairs(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-CREATE-12";
    let context = setup.ctx_b();
    let xrcd = private(setup)?;
    setup.lab().set_limit(context, Limit::QueuePairs, Some(2))?;
    let first = setup.create_xrc_recv_qp(xrcd).rule(RULE)?;
    setup.create_xrc_recv_qp(xrcd).rule(RULE)?;
    for _ in 0..2 {
        let before = setup.live()?;
        let refused = setup.create_xrc_recv_qp(xrcd);
        expect_err_among(refused, &[ErrorKind::NoMemory, ErrorKind::Invalid], RULE)?;
        setup.expect_live(before, RULE)?;
    }
    setup.destroy_qp(first, setup.wait())?;
    setup.create_xrc_recv_qp(xrcd).rule(RULE).map(drop)
}

scenario!(target_is_opened_only_while_there_is_memory: "LIFE-06"; needs XRC, LAB);
fn target_is_opened_only_while_there_is_memory(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LIFE-06";
    let context = setup.ctx_b();
    let xrcd = private(setup)?;
    let target = setup.create_xrc_recv_qp(xrcd)?;
    let number = setup.qp_num(target)?;
    setup.lab().set_limit(context, Limit::Objects, Some(0))?;
    let before = setup.live()?;
    expect_err(setup.open_qp(xrcd, number), ErrorKind::NoMemory, RULE)?;
    setup.expect_live(before, RULE)?;
    setup.lab().set_limit(context, Limit::Objects, None)?;
    let opened = setup.open_qp(xrcd, number).rule(RULE)?;
    for qp in [opened, target] {
        setup.destroy_qp(qp, setup.wait()).rule(RULE)?;
    }
    setup.close_xrcd(xrcd).rule(RULE)
}

scenario!(drained_target_is_told_if_that_was_asked_for:
    "QP-STATE-11", "QP-STATE-12", "ASYNC-16"; needs XRC, MODIFY_CONNECT);
/// It has no sends: SQD finds it drained.
fn drained_target_is_told_if_that_was_asked_for(setup: &Setup<'_>) -> Result {
    let (sender, target) = FreshQp::pair(setup, QpType::XrcSend)?;
    sender.reach(QpState::Rts)?;
    target.reach(QpState::Rts)?;
    let always = setup.behavior()?.sq_drained_always == Some(true);
    for asks in [true, false, true] {
        let sqd = QpModify::to(QpState::Sqd).set(QpAttrMask::EN_SQD_ASYNC_NOTIFY, |attr| {
            attr.en_sqd_async_notify = asks;
        });
        setup.modify(target.end.qp, sqd)?;
        if asks || always {
            let event = setup.async_event(target.end.context).rule("QP-STATE-11")?;
            let element = Element::Qp(target.end.qp);
            let expected = AsyncEvent::new(AsyncEventType::SqDrained, element);
            check_eq!("ASYNC-16", event, expected, "the event");
        }
        setup.until_sq_drained(target.end.qp).rule("QP-STATE-12")?;
        setup.no_async_event(target.end.context, "QP-STATE-11")?;
        setup.modify(target.end.qp, QpModify::to(QpState::Rts))?;
    }
    Ok(())
}

scenario!(target_outlives_the_srq_of_its_last_message: "QP-STATE-25", "QP-DESTROY-01"; needs XRC);
/// It is reset and destroyed after the SRQ and its protection domain.
fn target_outlives_the_srq_of_its_last_message(setup: &Setup<'_>) -> Result {
    for is_reset in [true, false] {
        let pair = setup.pair(PairOptions::of(QpType::XrcSend))?;
        pair.still_works(Claim::NONE)?;
        let b = pair.b;
        setup.destroy_srq(b.srq(), setup.wait())?;
        setup.dereg_mr(b.mr)?;
        setup.dealloc_pd(b.pd)?;
        if is_reset {
            setup.to_reset(b.qp).rule("QP-STATE-25")?;
            check_eq!("QP-STATE-25", setup.state(b.qp)?, QpState::Reset);
        }
        setup.destroy_qp(b.qp, setup.wait()).rule("QP-DESTROY-01")?;
    }
    Ok(())
}
