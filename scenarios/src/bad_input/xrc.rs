//! Handles of XRC that are zero, stale, garbled, or of another context.

use verbs_api::{
    CqInit, DriverObject, ErrorKind, QpAttrMask, QpInit, QpModify, QpState, QpType, SrqInit, Verb,
    Wait, XrcdInit,
};

use super::garbled::{garbled, no_such};
use super::handles::{Call, Handles, bad_handles, open_again, refuse_all};
use super::refused;
use crate::failure::check_eq;
use crate::{Bench, OfRule, PairOptions, Result};

/// The verbs on XRC domains, their SRQs and the queue pairs in them.
pub(super) const CALLS: &[(Verb, &str, Call)] = &[
    (Verb::OpenXrcd, "DEV-13", |v, _, bad| {
        v.open_xrcd(bad.context, &XrcdInit::private()).map(drop)
    }),
    (Verb::CloseXrcd, "DEV-13", |v, _, bad| {
        v.close_xrcd(bad.xrcd)
    }),
    (Verb::CreateQp, "DEV-13", |v, _, bad| {
        v.create_xrc_recv_qp(bad.xrcd).map(drop)
    }),
    (Verb::OpenQp, "DEV-13", |v, good, bad| {
        v.open_qp(bad.xrcd, v.qp_num(good.qp)?).map(drop)
    }),
    (Verb::CreateSrq, "DEV-13", |v, good, bad| {
        let init = SrqInit::new(4).xrc(bad.xrcd, good.cq);
        v.create_srq(good.pd, &init).map(drop)
    }),
    (Verb::CreateSrq, "CQ-DESTROY-05", |v, good, bad| {
        let init = SrqInit::new(4).xrc(good.xrcd, bad.cq);
        v.create_srq(good.pd, &init).map(drop)
    }),
    (Verb::CreateSrq, "PD-04", |v, good, bad| {
        let init = SrqInit::new(4).xrc(good.xrcd, good.cq);
        v.create_srq(bad.pd, &init).map(drop)
    }),
    (Verb::CreateQp, "QP-CREATE-05", |v, good, bad| {
        let init = QpInit::new(QpType::XrcSend, bad.cq, good.cq);
        v.create_qp(good.pd, &init).map(drop)
    }),
    (Verb::GetSrqNum, "DEV-13", |v, _, bad| {
        v.srq_num(bad.srq).map(drop)
    }),
    (Verb::QueryQp, "QP-STATE-32", |v, _, bad| {
        v.qp_num(bad.qp).map(drop)
    }),
    (Verb::QueryQp, "QP-STATE-32", |v, _, bad| {
        v.query_qp(bad.qp, QpAttrMask::STATE).map(drop)
    }),
    (Verb::ModifyQp, "QP-STATE-32", |v, _, bad| {
        let QpModify { attr, mask } = QpModify::to(QpState::Reset);
        v.modify_qp(bad.qp, &attr, mask)
    }),
    (Verb::DestroyQp, "QP-STATE-32", |v, _, bad| {
        v.destroy_qp(bad.qp, Wait::Poll)
    }),
];

/// With a domain, an SRQ and a queue pair of it.
fn with_xrc(bench: &Bench<'_>, handles: Handles) -> Result<Handles> {
    let xrcd = bench.open_xrcd(handles.context, &XrcdInit::private())?;
    let (pd, cq) = (
        bench.alloc_pd(handles.context)?,
        bench.create_cq(handles.context, &CqInit::new(4))?,
    );
    let srq = bench.create_srq(pd, &SrqInit::new(4).xrc(xrcd, cq))?;
    let qp = bench.create_xrc_recv_qp(xrcd)?;
    Ok(Handles {
        xrcd,
        srq,
        qp,
        ..handles
    })
}

fn destroy(bench: &Bench<'_>, handles: &Handles) -> Result {
    bench.destroy_qp(handles.qp, bench.wait())?;
    bench.destroy_srq(handles.srq, bench.wait())?;
    Ok(bench.close_xrcd(handles.xrcd)?)
}

scenario!(xrc_domains_that_are_none_are_refused:
    "DEV-13", "CQ-DESTROY-05", "PD-04", "QP-STATE-32", "QP-CREATE-05"; needs XRC);
fn xrc_domains_that_are_none_are_refused(bench: &Bench<'_>) -> Result {
    let options = PairOptions::default();
    let in_new_context = || -> Result<Handles> {
        let context = open_again(bench)?;
        with_xrc(bench, Handles::in_context(context))
    };
    let [closed, destroyed] = [in_new_context()?, in_new_context()?];
    bench.close_device(closed.context)?;
    destroy(bench, &destroyed)?;
    let good = Handles::of(&bench.end(bench.ctx_a(), options)?);
    let good = with_xrc(bench, good)?;
    for (problem, bad) in bad_handles(bench, &good, options)? {
        let of = |gone: &Handles| Handles {
            xrcd: gone.xrcd,
            srq: gone.srq,
            qp: gone.qp,
            ..bad
        };
        let bad = match problem {
            "closed" => of(&closed),
            "stale" => of(&destroyed),
            _ => bad,
        };
        refuse_all(bench, CALLS, &good, problem, &bad)?;
    }
    check_eq!("QP-STATE-32", bench.state(good.qp)?, QpState::Reset);
    destroy(bench, &good)
}

scenario!(xrc_domain_of_another_context_is_refused: "DEV-13", "DEV-02"; needs XRC);
fn xrc_domain_of_another_context_is_refused(bench: &Bench<'_>) -> Result {
    let own = with_xrc(bench, Handles::in_context(bench.ctx_a()))?;
    let pd = bench.alloc_pd(bench.ctx_a())?;
    let cq = bench.create_cq(bench.ctx_a(), &CqInit::new(4))?;
    for context in [open_again(bench)?, bench.ctx_b()] {
        let other = with_xrc(bench, Handles::in_context(context))?;
        let their_cq = bench.create_cq(context, &CqInit::new(4))?;
        for (xrcd, cq) in [
            (other.xrcd, cq),
            (own.xrcd, their_cq),
            (other.xrcd, their_cq),
        ] {
            let init = SrqInit::new(4).xrc(xrcd, cq);
            refused(bench, &[ErrorKind::Invalid], "DEV-13", || {
                bench.create_srq(pd, &init)
            })?;
        }
        // None of them is held by a failed creation.
        bench.destroy_cq(their_cq, bench.wait()).rule("DEV-02")?;
        destroy(bench, &other).rule("DEV-02")?;
    }
    destroy(bench, &own).rule("DEV-02")
}

scenario!(garbled_xrc_target_is_refused: "QP-STATE-32"; needs XRC, GARBLE; hazards MAY_CRASH);
fn garbled_xrc_target_is_refused(bench: &Bench<'_>) -> Result {
    const RULE: &str = "QP-STATE-32";
    let own = with_xrc(bench, Handles::in_context(bench.ctx_a()))?;
    let opened = bench.open_qp(own.xrcd, bench.qp_num(own.qp)?)?;
    garbled(bench, DriverObject::Qp(opened), || {
        let QpModify { attr, mask } = QpModify::to(QpState::Reset);
        no_such(bench, "modify", RULE, || {
            bench.modify_qp(opened, &attr, mask)
        })?;
        no_such(bench, "query", RULE, || {
            bench.query_qp(opened, QpAttrMask::STATE)
        })?;
        no_such(bench, "destroy", RULE, || {
            bench.destroy_qp(opened, Wait::Poll)
        })?;
        // The other handle is good.
        check_eq!(RULE, bench.state(own.qp)?, QpState::Reset);
        Ok(())
    })?;
    bench.destroy_qp(opened, bench.wait()).rule(RULE)?;
    destroy(bench, &own).rule(RULE)
}
