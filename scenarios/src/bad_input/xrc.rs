//! Handles of XRC that are zero, stale, corrupt, or of another context.

use verbs_api::{
    CqInit, DriverObject, ErrorKind, QpAttrMask, QpInit, QpModify, QpState, QpType, SrqInit, Verb,
    Wait, XrcdInit,
};

use super::corrupt::{corrupt, no_such};
use super::handles::{Call, Handles, bad_handles, open_again, refuse_all};
use super::refused;
use crate::failure::check_eq;
use crate::{OfRule, PairOptions, Result, Setup};

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
fn with_xrc(setup: &Setup<'_>, handles: Handles) -> Result<Handles> {
    let xrcd = setup.open_xrcd(handles.context, &XrcdInit::private())?;
    let (pd, cq) = (
        setup.alloc_pd(handles.context)?,
        setup.create_cq(handles.context, &CqInit::new(4))?,
    );
    let srq = setup.create_srq(pd, &SrqInit::new(4).xrc(xrcd, cq))?;
    let qp = setup.create_xrc_recv_qp(xrcd)?;
    Ok(Handles {
        xrcd,
        srq,
        qp,
        ..handles
    })
}

fn destroy(setup: &Setup<'_>, handles: &Handles) -> Result {
    setup.destroy_qp(handles.qp, setup.wait())?;
    setup.destroy_srq(handles.srq, setup.wait())?;
    Ok(setup.close_xrcd(handles.xrcd)?)
}

scenario!(xrc_domains_that_are_none_are_refused:
    "DEV-13", "CQ-DESTROY-05", "PD-04", "QP-STATE-32", "QP-CREATE-05"; needs XRC);
fn xrc_domains_that_are_none_are_refused(setup: &Setup<'_>) -> Result {
    let options = PairOptions::default();
    let in_new_context = || -> Result<Handles> {
        let context = open_again(setup)?;
        with_xrc(setup, Handles::in_context(context))
    };
    let [closed, destroyed] = [in_new_context()?, in_new_context()?];
    setup.close_device(closed.context)?;
    destroy(setup, &destroyed)?;
    let good = Handles::of(&setup.end(setup.ctx_a(), options)?);
    let good = with_xrc(setup, good)?;
    for (problem, bad) in bad_handles(setup, &good, options)? {
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
        refuse_all(setup, CALLS, &good, problem, &bad)?;
    }
    check_eq!("QP-STATE-32", setup.state(good.qp)?, QpState::Reset);
    destroy(setup, &good)
}

scenario!(xrc_domain_of_another_context_is_refused: "DEV-13", "DEV-02"; needs XRC);
fn xrc_domain_of_another_context_is_refused(setup: &Setup<'_>) -> Result {
    let own = with_xrc(setup, Handles::in_context(setup.ctx_a()))?;
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(4))?;
    for context in [open_again(setup)?, setup.ctx_b()] {
        let other = with_xrc(setup, Handles::in_context(context))?;
        let their_cq = setup.create_cq(context, &CqInit::new(4))?;
        for (xrcd, cq) in [
            (other.xrcd, cq),
            (own.xrcd, their_cq),
            (other.xrcd, their_cq),
        ] {
            let init = SrqInit::new(4).xrc(xrcd, cq);
            refused(setup, &[ErrorKind::Invalid], "DEV-13", || {
                setup.create_srq(pd, &init)
            })?;
        }
        // None of them is held by a failed creation.
        setup.destroy_cq(their_cq, setup.wait()).rule("DEV-02")?;
        destroy(setup, &other).rule("DEV-02")?;
    }
    destroy(setup, &own).rule("DEV-02")
}

scenario!(garbled_xrc_target_is_refused: "QP-STATE-32"; needs XRC, CORRUPT_HANDLE; hazards MAY_CRASH);
fn garbled_xrc_target_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-32";
    let own = with_xrc(setup, Handles::in_context(setup.ctx_a()))?;
    let opened = setup.open_qp(own.xrcd, setup.qp_num(own.qp)?)?;
    corrupt(setup, DriverObject::Qp(opened), || {
        let QpModify { attr, mask } = QpModify::to(QpState::Reset);
        no_such(setup, "modify", RULE, || {
            setup.modify_qp(opened, &attr, mask)
        })?;
        no_such(setup, "query", RULE, || {
            setup.query_qp(opened, QpAttrMask::STATE)
        })?;
        no_such(setup, "destroy", RULE, || {
            setup.destroy_qp(opened, Wait::Poll)
        })?;
        // The other handle is good.
        check_eq!(RULE, setup.state(own.qp)?, QpState::Reset);
        Ok(())
    })?;
    setup.destroy_qp(opened, setup.wait()).rule(RULE)?;
    destroy(setup, &own).rule(RULE)
}
