//! Creation, query, destruction; queue pairs that are made with an SRQ.

use std::time::Duration;

use verbs_api::{
    Access, AsyncEventType, Capabilities, ErrorKind, QpAttrMask, QpCap, QpInit, QpType, RecvWr,
    Sge, SrqAttr, SrqAttrMask, SrqInit, Wait,
};

use super::Shared;
use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::qp_create::{expect_room, fill};
use crate::{Claim, OfRule, PairOptions, Result, Setup, expect_err, expect_err_among};

const LIMIT: AsyncEventType = AsyncEventType::SrqLimitReached;

scenario!(new_queue_has_at_least_what_was_asked_for: "SRQ-01"; needs SRQ);
fn new_queue_has_at_least_what_was_asked_for(setup: &Setup<'_>) -> Result {
    let pd = setup.alloc_pd(setup.ctx_a())?;
    for (max_wr, max_sge) in [(1, 1), (7, 1), (8, 3), (100, 2), (1000, 6), (4, 0)] {
        let init = SrqInit::new(max_wr).max_sge(max_sge).context(5);
        let srq = setup.create_srq(pd, &init).rule("SRQ-01")?;
        let seen = setup.srq_init(srq)?.attr;
        let enough = seen.max_wr >= max_wr && seen.max_sge >= max_sge;
        let expected = format!("at least {max_wr} receives of {max_sge} entries");
        check!("SRQ-01", enough, expected, "{seen:?}");
        setup.destroy_srq(srq, setup.wait())?;
    }
    Ok(())
}

scenario!(size_is_rounded_as_declared: "SRQ-01", "SRQ-09"; needs SRQ);
/// By the receives that it takes: before a change of its size, and in all after it.
fn size_is_rounded_as_declared(setup: &Setup<'_>) -> Result {
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let mr = setup.alloc_mr(pd, 64, Access::LOCAL_WRITE)?;
    let room = [setup.query_mr(mr)?.sge(0, 64)];
    let declared = setup.behavior()?.wr_rounding;
    let resizes = setup
        .capabilities(setup.ctx_a())?
        .contains(Capabilities::SRQ_RESIZE);
    for asked in [1, 2, 3, 5, 8, 9] {
        let srq = setup.create_srq(pd, &SrqInit::new(asked))?;
        let post = |wr_id| Ok(setup.post_srq_recv(srq, &[RecvWr::new(wr_id, &room)])?);
        let taken = fill(post, "SRQ-01")?;
        expect_room(declared, asked, taken, "SRQ-01")?;
        if resizes {
            let attr = SrqAttr {
                max_wr: 4 * asked,
                ..SrqAttr::default()
            };
            setup
                .modify_srq(srq, &attr, SrqAttrMask::MAX_WR)
                .rule("SRQ-09")?;
            let all = taken + fill(post, "SRQ-09")?;
            expect_room(declared, attr.max_wr, all, "SRQ-09")?;
        }
        setup.destroy_srq(srq, setup.wait())?;
    }
    Ok(())
}

scenario!(query_tells_sizes_and_limit: "SRQ-16"; needs SRQ);
fn query_tells_sizes_and_limit(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-16";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    for (max_wr, max_sge) in [(1, 1), (8, 3), (100, 2)] {
        let srq = setup.create_srq(pd, &SrqInit::new(max_wr).max_sge(max_sge))?;
        let made = setup.srq_init(srq)?.attr;
        let seen = setup.query_srq(srq).rule(RULE)?;
        let same = seen.max_wr >= made.max_wr && seen.max_sge >= made.max_sge;
        check!(RULE, same, format!("at least {made:?}"), "{seen:?}");
        check_eq!(RULE, seen.srq_limit, 0);
        // With fewer receives than a limit some devices raise its event at once.
        let receives: Vec<_> = (0..max_wr).map(|id| RecvWr::new(id.into(), &[])).collect();
        setup.post_srq_recv(srq, &receives)?;
        for srq_limit in [1, max_wr, 0] {
            let attr = SrqAttr {
                srq_limit,
                ..SrqAttr::default()
            };
            setup.modify_srq(srq, &attr, SrqAttrMask::LIMIT)?;
            let expected = SrqAttr { srq_limit, ..seen };
            check_eq!(RULE, setup.query_srq(srq)?, expected, "what a query tells");
        }
    }
    Ok(())
}

scenario!(limit_given_at_creation_is_ignored: "SRQ-01"; needs SRQ);
fn limit_given_at_creation_is_ignored(setup: &Setup<'_>) -> Result {
    let usual = Shared::new(setup, 8)?;
    let mut init = SrqInit::new(8);
    init.attr.srq_limit = 4;
    let srq = setup.create_srq(usual.pd, &init).rule("SRQ-01")?;
    let shared = Shared { srq, ..usual };
    let pair = shared.pair(PairOptions::default())?;
    shared.post(0..4)?;
    for i in 0..2 {
        shared.takes(&pair, i, i.into(), "SRQ-01")?;
    }
    check_eq!("SRQ-01", shared.events()?, [], "the events");
    shared.tells_limit(0, "SRQ-01")
}

scenario!(sizes_above_the_limits_are_refused: "SRQ-02"; needs SRQ);
fn sizes_above_the_limits_are_refused(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_a();
    let pd = setup.alloc_pd(context)?;
    let most = setup.query_device(context)?;
    let before = setup.live()?;
    for (max_wr, max_sge) in [
        (most.max_srq_wr + 1, 1),
        (u32::MAX, 1),
        (1, most.max_srq_sge + 1),
        (1, u32::MAX),
    ] {
        let init = SrqInit::new(max_wr).max_sge(max_sge);
        let refused = expect_err(setup.create_srq(pd, &init), ErrorKind::Invalid, "SRQ-02");
        in_case(
            &format!("{max_wr} receives of {max_sge}"),
            refused.map(drop),
        )?;
    }
    setup.expect_live(before, "SRQ-02")?;
    let init = SrqInit::new(1).max_sge(most.max_srq_sge);
    let srq = setup.create_srq(pd, &init).rule("SRQ-02")?;
    setup.destroy_srq(srq, setup.wait())?;
    setup.dealloc_pd(pd).rule("SRQ-02")
}

scenario!(sizes_of_the_receive_queue_are_ignored_with_one: "QP-CREATE-04"; needs SRQ);
fn sizes_of_the_receive_queue_are_ignored_with_one(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-CREATE-04";
    let shared = Shared::new(setup, 8)?;
    for (max_recv_wr, max_recv_sge) in [(0, 0), (u32::MAX, 1), (1, u32::MAX)] {
        let options = PairOptions {
            cap: QpCap {
                max_recv_wr,
                max_recv_sge,
                ..QpCap::default()
            },
            ..PairOptions::default()
        };
        // Side A has a receive queue of its own, of the usual size.
        let a = setup.end(setup.ctx_a(), PairOptions::default())?;
        let parts = shared.parts(shared.cq()?, shared.cq()?);
        let b = setup.end_of(parts, options);
        let b = value_in_case(&format!("{max_recv_wr} of {max_recv_sge}"), b.rule(RULE))?;
        let pair = setup.connect(a, b, options)?;
        shared.post([3])?;
        shared.takes(&pair, 1, 3, RULE)?;
    }
    Ok(())
}

scenario!(uc_qp_has_none: "QP-CREATE-04"; needs UC, SRQ);
fn uc_qp_has_none(setup: &Setup<'_>) -> Result {
    let shared = Shared::new(setup, 8)?;
    let cq = shared.cq()?;
    let init = QpInit::new(QpType::Uc, cq, cq).srq(shared.srq);
    let kinds = [ErrorKind::Invalid, ErrorKind::NotSupported];
    expect_err_among(setup.create_qp(shared.pd, &init), &kinds, "QP-CREATE-04")?;
    // It is not held by what was refused.
    shared.destroy().rule("QP-CREATE-04")
}

scenario!(query_of_a_qp_tells_of_it: "QP-CREATE-08"; needs SRQ);
fn query_of_a_qp_tells_of_it(setup: &Setup<'_>) -> Result {
    let shared = Shared::new(setup, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    let seen = |qp| -> Result<_> { Ok(setup.query_qp(qp, QpAttrMask::STATE)?.init.srq) };
    check_eq!("QP-CREATE-08", seen(pair.b.qp)?, Some(shared.srq));
    check_eq!("QP-CREATE-08", seen(pair.a.qp)?, None);
    Ok(())
}

scenario!(is_busy_while_a_qp_uses_it: "SRQ-11", "LIFE-01"; needs SRQ);
fn is_busy_while_a_qp_uses_it(setup: &Setup<'_>) -> Result {
    let shared = Shared::new(setup, 8)?;
    shared.post([0, 1])?;
    let pairs = [
        shared.pair(PairOptions::default())?,
        shared.pair(PairOptions::default())?,
    ];
    for (wr_id, pair) in (0..).zip(&pairs) {
        for wait in [Wait::Poll, setup.wait()] {
            let destroyed = setup.destroy_srq(shared.srq, wait);
            expect_err(destroyed, ErrorKind::Busy, ["SRQ-11", "LIFE-01"])?;
        }
        // It still works.
        shared.takes(&pairs[1], 1, wr_id, "SRQ-11")?;
        setup.destroy_qp(pair.b.qp, setup.wait())?;
    }
    shared.destroy().rule("SRQ-11")?;
    expect_err(shared.destroy(), ErrorKind::Invalid, "SRQ-11").map(drop)
}

scenario!(keeps_its_domain_busy: "PD-01", "LIFE-01"; needs SRQ);
fn keeps_its_domain_busy(setup: &Setup<'_>) -> Result {
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let srq = setup.create_srq(pd, &SrqInit::new(4))?;
    expect_err(setup.dealloc_pd(pd), ErrorKind::Busy, "PD-01")?;
    // Nothing has changed.
    let room = [Sge::default()];
    setup
        .post_srq_recv(srq, &[RecvWr::new(1, &room)])
        .rule("LIFE-01")?;
    setup.destroy_srq(srq, setup.wait()).rule("LIFE-01")?;
    setup.dealloc_pd(pd).rule("PD-01")
}

/// An SRQ without a QP, of which an event was read.
fn with_an_event<'b>(setup: &'b Setup<'_>) -> Result<(Shared<'b>, verbs_api::AsyncEvent)> {
    let shared = Shared::new(setup, 4)?;
    let pair = shared.pair(PairOptions::default())?;
    shared.post([0])?;
    shared.set_limit(1)?;
    shared.takes(&pair, 1, 0, Claim::NONE)?;
    let event = shared.take_event(LIMIT, Claim::NONE)?;
    setup.destroy_qp(pair.b.qp, setup.wait())?;
    Ok((shared, event))
}

scenario!(destruction_would_block_until_its_events_are_acknowledged:
    "SRQ-18", "ASYNC-03"; needs SRQ; hazards MAY_HANG);
fn destruction_would_block_until_its_events_are_acknowledged(setup: &Setup<'_>) -> Result {
    let (shared, event) = with_an_event(setup)?;
    let waits = [
        (Wait::Poll, ErrorKind::WouldBlock),
        (Wait::For(Duration::from_millis(1)), ErrorKind::TimedOut),
    ];
    for (wait, kind) in waits {
        expect_err(
            setup.destroy_srq(shared.srq, wait),
            kind,
            ["SRQ-18", "ASYNC-03"],
        )?;
    }
    // Nothing has changed.
    shared.post([1]).rule("SRQ-18")?;
    setup.ack_async_event(shared.context, &event)?;
    setup.destroy_srq(shared.srq, Wait::Poll).rule("SRQ-18")
}

scenario!(destruction_waits_for_the_acknowledgement_of_an_event:
    "SRQ-18", "ASYNC-03"; needs SRQ, THREADS; hazards MAY_HANG);
fn destruction_waits_for_the_acknowledgement_of_an_event(setup: &Setup<'_>) -> Result {
    let (shared, event) = with_an_event(setup)?;
    let destroyed = setup.waits_until(
        ["SRQ-18", "ASYNC-03"],
        || shared.destroy(),
        || Ok(setup.ack_async_event(shared.context, &event)?),
    )?;
    destroyed.rule("SRQ-18")
}
