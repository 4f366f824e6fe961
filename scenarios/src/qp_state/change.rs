//! Attributes that change, RESET, and two changes at once.

use std::thread;

use verbs_api::behavior::Check;
use verbs_api::{
    Access, ErrorKind, Mtu, QpAttr, QpAttrMask as M, QpModify, QpState, QpType, RcParams, WcStatus,
    connect, transition,
};

use crate::failure::{check, check_eq, in_case};
use crate::fresh_qp::{FreshQp, required};
use crate::{OfRule, Pair, PairOptions, Result, Setup, expect_err, wr_ids};

scenario!(reset_drops_what_was_posted: "QP-STATE-25"; needs MODIFY_CONNECT, RNR);
/// Sends that wait, and receives, as many as there is room for; and again.
fn reset_drops_what_was_posted(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-25";
    let pair = setup.rc_pair()?;
    let Pair { a, b } = pair;
    let most = setup.query_qp(a.qp, M::CAP)?.init.cap;
    for _ in 0..2 {
        for wr_id in 0..most.max_send_wr {
            a.send(wr_id.into(), 8).rule(RULE)?;
        }
        for wr_id in 0..most.max_recv_wr {
            a.recv(wr_id.into(), 8).rule(RULE)?;
        }
        setup.to_reset(a.qp)?;
        for cq in [a.send_cq, a.recv_cq] {
            setup.no_completion(cq, RULE)?;
        }
        setup.to_reset(b.qp)?;
        let params = setup.rc_params();
        connect::by_attributes(setup.verbs(), a.qp, b.qp, &params)?;
        pair.still_works(RULE)?;
    }
    Ok(())
}

scenario!(reset_drops_receives_of_uc_and_ud: "QP-STATE-25"; needs UC, UD, MODIFY_CONNECT);
fn reset_drops_receives_of_uc_and_ud(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-25";
    for qp_type in [QpType::Uc, QpType::Ud] {
        let (a, b) = FreshQp::pair(setup, qp_type)?;
        a.reach(QpState::Rts)?;
        b.reach(QpState::Rts)?;
        for wr_id in 0..8 {
            b.end.recv(wr_id, 8)?;
        }
        for qp in [&a, &b] {
            qp.go(QpState::Reset)?;
        }
        setup.no_completion(b.end.recv_cq, RULE)?;
        for qp in [&a, &b] {
            qp.reach(QpState::Rts)?;
        }
        b.end.recv(9, 8)?;
        a.end.send(1, 8)?;
        let seen = wr_ids(&setup.successes(b.end.recv_cq, 1).rule(RULE)?);
        check_eq!(RULE, seen, [9], format!("what {qp_type} completed"));
        setup.successes(a.end.send_cq, 1)?;
    }
    Ok(())
}

scenario!(reset_qp_connects_again: "QP-STATE-25"; needs MODIFY_CONNECT);
/// From RTS and from ERR, with other sequence numbers each time.
fn reset_qp_connects_again(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-25";
    let pair = setup.rc_pair()?;
    let Pair { a, b } = pair;
    for (round, psn) in [0, 0x00ff_ffff, 77, 77].into_iter().enumerate() {
        pair.still_works(RULE)?;
        if round % 2 == 1 {
            setup.to_err(a.qp)?;
        }
        for qp in [a.qp, b.qp] {
            setup.to_reset(qp)?;
            check_eq!(RULE, setup.state(qp)?, QpState::Reset);
        }
        let params = RcParams {
            psn_a: psn,
            psn_b: psn ^ 0x1234,
            ..setup.rc_params()
        };
        connect::by_attributes(setup.verbs(), a.qp, b.qp, &params).rule(RULE)?;
    }
    pair.still_works(RULE)
}

scenario!(rights_change_in_rts: "QP-STATE-26"; needs MODIFY_CONNECT);
/// Rights that are revoked and granted again apply from then on.
fn rights_change_in_rts(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-26";
    let rights = |access| {
        QpModify::to(QpState::Rts).set(M::ACCESS_FLAGS, |attr| attr.qp_access_flags = access)
    };
    let Pair { a, b } = setup.pair(PairOptions {
        rc: RcParams {
            access: Access::empty(),
            ..RcParams::default()
        },
        ..PairOptions::default()
    })?;
    setup
        .modify(b.qp, rights(Access::REMOTE_WRITE))
        .rule(RULE)?;
    a.fill(6, 64)?;
    a.write(1, 64)?;
    setup.successes(a.send_cq, 1).rule(RULE)?;
    b.expect_data(6, 64, RULE)?;
    setup.modify(b.qp, rights(Access::REMOTE_READ)).rule(RULE)?;
    a.fill(7, 64)?;
    a.write(2, 64)?;
    let wc = setup.one(a.send_cq)?;
    check!(RULE, wc.status != WcStatus::Success, "a refusal", "{wc}");
    b.expect_data(6, 64, RULE)
}

scenario!(optional_attributes_change_in_rts: "QP-STATE-26"; needs MODIFY_CONNECT);
fn optional_attributes_change_in_rts(setup: &Setup<'_>) -> Result {
    optional(setup, QpType::Rc)
}

scenario!(optional_attributes_of_uc_and_ud_change_in_rts:
    "QP-STATE-26"; needs UC, UD, MODIFY_CONNECT);
fn optional_attributes_of_uc_and_ud_change_in_rts(setup: &Setup<'_>) -> Result {
    optional(setup, QpType::Uc)?;
    optional(setup, QpType::Ud)
}

scenario!(optional_attributes_of_xrc_change_in_rts: "QP-STATE-26"; needs MODIFY_CONNECT, XRC);
fn optional_attributes_of_xrc_change_in_rts(setup: &Setup<'_>) -> Result {
    optional(setup, QpType::XrcSend)?;
    optional(setup, QpType::XrcRecv)
}

/// Each alone, all together, and none.
fn optional(setup: &Setup<'_>, qp_type: QpType) -> Result {
    const RULE: &str = "QP-STATE-26";
    let table = transition::attributes(qp_type, QpState::Rts, QpState::Rts);
    let optional = table.map_or(M::empty(), |attributes| attributes.optional);
    let bits = optional - M::ALT_PATH - M::PATH_MIG_STATE;
    let (mut a, mut b) = match qp_type {
        QpType::XrcRecv => FreshQp::pair(setup, QpType::XrcSend)?,
        _ => FreshQp::pair(setup, qp_type)?,
    };
    b.reach(QpState::Rts)?;
    a.reach(QpState::Rts)?;
    for (i, mask) in (1..).zip(bits.iter().chain([M::empty(), bits])) {
        let changes = match qp_type {
            QpType::XrcRecv => &mut b,
            _ => &mut a,
        };
        changes.attr.cur_qp_state = QpState::Rts;
        changes.attr.min_rnr_timer = i;
        changes.attr.qkey = u32::from(i);
        let changed = changes.change(QpState::Rts, M::STATE | mask).rule(RULE);
        in_case(&format!("{qp_type} with {mask}"), changed)?;
        let seen = changes.query()?.attr;
        check_eq!(RULE, seen.qp_state, QpState::Rts);
        if mask.contains(M::MIN_RNR_TIMER) {
            check_eq!(RULE, seen.min_rnr_timer, i);
        }
        if mask.contains(M::QKEY) {
            check_eq!(RULE, seen.qkey, u32::from(i));
        }
        b.end.recv(1, 8)?;
        a.end.send(2, 8)?;
        for cq in [a.end.send_cq, b.end.recv_cq] {
            setup.successes(cq, 1).rule(RULE)?;
        }
    }
    Ok(())
}

scenario!(mtu_above_that_of_the_port_is_as_declared: "QP-STATE-28"; needs MODIFY_CONNECT);
/// On a simulator the port's MTU is made smaller than its maximum; elsewhere it is used as it is.
fn mtu_above_that_of_the_port_is_as_declared(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-28";
    if let Some(lab) = setup.verbs().lab() {
        lab.set_mtu(setup.ctx_a(), setup.port(), Mtu::Mtu1024)?;
    }
    let port = setup.query_port(setup.ctx_a(), setup.port())?;
    let active = u32::from(port.active_mtu);
    let mut qp = FreshQp::new(setup, QpType::Rc)?;
    qp.reach(QpState::Init)?;
    let mask = required(QpType::Rc, QpState::Init, QpState::Rtr);
    if active < u32::from(port.max_mtu) {
        qp.attr.path_mtu = Mtu::from(active + 1);
        let seen = match qp.change(QpState::Rtr, mask) {
            Ok(()) => Check::Accepted,
            refused => {
                expect_err(refused, ErrorKind::Invalid, RULE)?;
                check_eq!(RULE, setup.state(qp.end.qp)?, QpState::Init);
                Check::Refused
            }
        };
        setup.as_declared(RULE, setup.behavior()?.mtu_above_active, seen)?;
        qp = FreshQp::new(setup, QpType::Rc)?;
        qp.reach(QpState::Init)?;
    }
    qp.attr.path_mtu = port.active_mtu;
    qp.change(QpState::Rtr, mask).rule(RULE)
}

scenario!(read_depths_are_at_least_what_was_asked_for: "QP-STATE-30"; needs MODIFY_CONNECT);
fn read_depths_are_at_least_what_was_asked_for(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-30";
    let device = setup.query_device(setup.ctx_a())?;
    let most = device.max_qp_init_rd_atom.min(device.max_qp_rd_atom);
    let declared = setup.behavior()?.rd_atomic_rounding;
    for depth in [0, 1, 2, 3, 5, most].into_iter().filter(|n| *n <= most) {
        let mut qp = FreshQp::new(setup, QpType::Rc)?;
        (qp.attr.max_rd_atomic, qp.attr.max_dest_rd_atomic) = (depth, depth);
        in_case(&format!("{depth}"), qp.reach(QpState::Rts).rule(RULE))?;
        let seen = qp.query()?.attr;
        for (name, seen) in [
            ("max_rd_atomic", seen.max_rd_atomic),
            ("max_dest_rd_atomic", seen.max_dest_rd_atomic),
        ] {
            let good = declared.map_or(seen >= depth, |rounding| {
                u32::from(seen) == rounding.up(depth.into())
            });
            let expected = format!("{name} of {depth} or more, rounded as declared");
            check!(RULE, good, expected, "{seen}");
        }
    }
    Ok(())
}

scenario!(changes_of_two_threads_come_one_after_the_other:
    "QP-STATE-33"; needs MODIFY_CONNECT, THREADS);
/// Each of two changes succeeds or is refused as in one of the two orders.
fn changes_of_two_threads_come_one_after_the_other(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-33";
    for _ in 0..4 {
        let (a, _b) = FreshQp::pair(setup, QpType::Rc)?;
        let both = |first: QpModify, second: QpModify| {
            let other = a.end.qp;
            thread::scope(|scope| {
                let one = scope.spawn(|| setup.modify_qp(other, &first.attr, first.mask).is_ok());
                let two = setup.modify_qp(other, &second.attr, second.mask).is_ok();
                (one.join().expect("no panic"), two)
            })
        };
        a.reach(QpState::Init)?;
        // Both exist, in either order: the later one is in force.
        let rights = |access| {
            QpModify::to(QpState::Init).set(M::ACCESS_FLAGS, |attr| attr.qp_access_flags = access)
        };
        let (read, write) = (Access::REMOTE_READ, Access::REMOTE_WRITE);
        let done = both(rights(read), rights(write));
        check_eq!(RULE, done, (true, true), "what succeeded");
        let seen = a.query()?.attr.qp_access_flags;
        check!(
            RULE,
            [read, write].contains(&seen),
            "one of them",
            "{seen:?}"
        );
        // Only in one order both exist, and either order ends in ERR.
        a.reach(QpState::Rts)?;
        let (sqd, err) = both(QpModify::to(QpState::Sqd), QpModify::to(QpState::Err));
        check!(RULE, err, "RTS or SQD to ERR", "refused (SQD {sqd})");
        check_eq!(RULE, setup.state(a.end.qp)?, QpState::Err);
        // The later one is INIT to INIT, which allows the same attributes.
        a.go(QpState::Reset)?;
        let attr = QpAttr {
            qp_state: QpState::Init,
            ..a.attr
        };
        let mask = required(QpType::Rc, QpState::Reset, QpState::Init);
        let init = QpModify { attr, mask };
        let (one, two) = both(init, init);
        check!(
            RULE,
            one && two,
            "RESET to INIT, and INIT to INIT",
            "{one} {two}"
        );
        check_eq!(RULE, setup.state(a.end.qp)?, QpState::Init);
    }
    Ok(())
}
