//! SQE, and that RC never enters it.

use verbs_api::{
    Access, QpAttrMask as M, QpState, QpType, RcParams, SendWr, Sge, WcStatus, transition,
};

use crate::failure::{check, check_eq, value_in_case};
use crate::fresh_qp::FreshQp;
use crate::{Claim, End, OfRule, Pair, PairOptions, Result, Setup, wr_ids};

/// An entry with an invalid key.
fn bad(end: &End<'_>) -> Sge {
    let good = end.sge(0, 8);
    Sge {
        lkey: good.lkey ^ 0xa5,
        ..good
    }
}

scenario!(failed_send_of_uc_leads_to_sqe: "QP-STATE-15"; needs UC, MODIFY_CONNECT);
fn failed_send_of_uc_leads_to_sqe(setup: &Setup<'_>) -> Result {
    leads_to_sqe(setup, QpType::Uc)
}

scenario!(failed_send_of_ud_leads_to_sqe: "QP-STATE-15", "UD-19"; needs UD, MODIFY_CONNECT);
fn failed_send_of_ud_leads_to_sqe(setup: &Setup<'_>) -> Result {
    leads_to_sqe(setup, QpType::Ud)
}

/// The sends behind it are flushed, those of the same list and those posted later; receives that
/// were there and new ones take messages.
fn leads_to_sqe(setup: &Setup<'_>, qp_type: QpType) -> Result {
    const RULE: &str = "QP-STATE-15";
    let Pair { a, b } = setup.pair(PairOptions::of(qp_type))?;
    a.recv(20, 8)?;
    let (good, bad) = ([a.sge(0, 8)], [bad(&a)]);
    let list = [
        a.to_peer(SendWr::send(1, &bad).unsignaled()),
        a.to_peer(SendWr::send(2, &good).unsignaled()),
        a.to_peer(SendWr::send(3, &good)),
    ];
    setup.post_send(a.qp, &list)?;
    let failed = setup.one(a.send_cq).rule(RULE)?;
    let own = !matches!(failed.status, WcStatus::Success | WcStatus::WrFlushErr);
    check!(
        RULE,
        own && failed.wr_id == 1,
        "the failure of 1",
        "{failed}"
    );
    let flushed = |ids: &[u64]| -> Result {
        for id in ids {
            let wc = setup.one_with(a.send_cq, WcStatus::WrFlushErr, RULE)?;
            check_eq!(RULE, wc.wr_id, *id, "flushed");
        }
        setup.no_completion(a.send_cq, RULE)
    };
    flushed(&[2, 3])?;
    let rule = match qp_type {
        QpType::Ud => Claim::two(RULE, "UD-19"),
        _ => Claim::one(RULE),
    };
    check_eq!(rule, setup.state(a.qp)?, QpState::Sqe);
    a.send(4, 8).rule(RULE)?;
    flushed(&[4])?;
    a.recv(21, 8).rule(RULE)?;
    for wr_id in 20..22 {
        b.send(wr_id, 8)?;
    }
    let got = setup.successes(a.recv_cq, 2).rule(RULE)?;
    check_eq!(RULE, wr_ids(&got), [20, 21]);
    check_eq!(RULE, setup.state(a.qp)?, QpState::Sqe);
    Ok(())
}

scenario!(uc_qp_comes_back_from_sqe: "QP-STATE-16"; needs UC, MODIFY_CONNECT);
fn uc_qp_comes_back_from_sqe(setup: &Setup<'_>) -> Result {
    comes_back(setup, QpType::Uc)
}

scenario!(ud_qp_comes_back_from_sqe: "QP-STATE-16"; needs UD, MODIFY_CONNECT);
fn ud_qp_comes_back_from_sqe(setup: &Setup<'_>) -> Result {
    comes_back(setup, QpType::Ud)
}

/// With no attribute, and with each that is optional.
fn comes_back(setup: &Setup<'_>, qp_type: QpType) -> Result {
    const RULE: &str = "QP-STATE-16";
    let table = transition::attributes(qp_type, QpState::Sqe, QpState::Rts);
    let optional = table.map_or(M::empty(), |attributes| attributes.optional);
    let (mut a, b) = FreshQp::pair(setup, qp_type)?;
    b.reach(QpState::Rts)?;
    a.reach(QpState::Rts)?;
    let ways = optional.iter().chain([M::empty(), optional]);
    for (wr_id, extra) in (10..).zip(ways) {
        let bad = [bad(&a.end)];
        a.end.post(SendWr::send(1, &bad))?;
        setup.one(a.end.send_cq)?;
        a.attr.cur_qp_state = QpState::Sqe;
        let back = a.change(QpState::Rts, M::STATE | extra).rule(RULE);
        value_in_case(&format!("with {extra}"), back)?;
        check_eq!(RULE, setup.state(a.end.qp)?, QpState::Rts);
        b.end.recv(wr_id, 8)?;
        a.end.send(wr_id, 8).rule(RULE)?;
        for cq in [a.end.send_cq, b.end.recv_cq] {
            let seen = setup.successes(cq, 1).rule(RULE)?;
            check_eq!(RULE, wr_ids(&seen), [wr_id]);
        }
    }
    Ok(())
}

scenario!(failed_send_of_rc_leads_to_err: "QP-STATE-17");
fn failed_send_of_rc_leads_to_err(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-17";
    let Pair { a, .. } = setup.rc_pair()?;
    check_eq!(RULE, setup.state(a.qp)?, QpState::Rts);
    let bad = [bad(&a)];
    a.post(SendWr::send(1, &bad))?;
    setup.one(a.send_cq)?;
    let left = || {
        let state = setup.state(a.qp)?;
        check!(RULE, state != QpState::Sqe, "never SQE", "{state}");
        Ok((state == QpState::Err).then_some(()))
    };
    setup.until("ERR", left).rule(RULE)
}

scenario!(peer_of_a_failed_end_stays_until_its_own_request_fails: "QP-STATE-31");
/// It fails for want of an answer.
fn peer_of_a_failed_end_stays_until_its_own_request_fails(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-31";
    let Pair { a, b } = setup.pair(PairOptions {
        rc: RcParams {
            timeout: 8,
            retry_cnt: 1,
            access: Access::ALL_RDMA,
            ..RcParams::default()
        },
        ..PairOptions::default()
    })?;
    check_eq!(RULE, setup.state(b.qp)?, QpState::Rts, "the peer's state");
    b.recv(20, 8)?;
    let bad = [bad(&a)];
    a.post(SendWr::send(1, &bad))?;
    setup.one(a.send_cq)?;
    let failed = || Ok((setup.state(a.qp)? == QpState::Err).then_some(()));
    setup.until("ERR", failed)?;
    setup.no_completion(b.recv_cq, RULE)?;
    check_eq!(RULE, setup.state(b.qp)?, QpState::Rts, "the peer's state");
    b.send(2, 8)?;
    setup.one_with(b.send_cq, WcStatus::RetryExcErr, RULE)?;
    check_eq!(RULE, setup.state(b.qp)?, QpState::Err, "the peer's state");
    Ok(())
}
