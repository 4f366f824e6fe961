//! The attributes that a change names, and those that it does not.

use verbs_api::{
    Access, AhAttr, MigState, Mtu, QpAttr, QpAttrMask as M, QpState, QpType, WcStatus,
};

use crate::failure::{check_eq, in_case};
use crate::fresh_qp::{FreshQp, required};
use crate::{OfRule, Result, Setup};

const RULE: &str = "QP-STATE-35";

/// Values that no queue pair has, and most of which none can have.
fn nonsense(to: QpState) -> QpAttr {
    QpAttr {
        qp_state: to,
        cur_qp_state: QpState::Sqe,
        path_mtu: Mtu::from(77),
        path_mig_state: MigState::Armed,
        qkey: 0x8fff_ffff,
        rq_psn: 0x00ab_cdef,
        sq_psn: 0x00fe_dcba,
        dest_qp_num: u32::MAX,
        qp_access_flags: Access::REMOTE_ATOMIC,
        ah_attr: None::<AhAttr>,
        pkey_index: u16::MAX,
        en_sqd_async_notify: true,
        max_rd_atomic: u8::MAX,
        max_dest_rd_atomic: u8::MAX,
        min_rnr_timer: u8::MAX,
        port_num: u8::MAX,
        timeout: u8::MAX,
        retry_cnt: u8::MAX,
        rnr_retry: u8::MAX,
        ..QpAttr::default()
    }
}

scenario!(attributes_that_are_not_named_are_not_looked_at: "QP-STATE-35"; needs MODIFY_CONNECT);
fn attributes_that_are_not_named_are_not_looked_at(setup: &Setup<'_>) -> Result {
    in_each_state(setup, QpType::Rc)
}

scenario!(datagram_attributes_that_are_not_named_are_not_looked_at:
    "QP-STATE-35"; needs UD, MODIFY_CONNECT);
fn datagram_attributes_that_are_not_named_are_not_looked_at(setup: &Setup<'_>) -> Result {
    in_each_state(setup, QpType::Ud)
}

/// From RESET to RTS and SQD, and back: each state again, with the state alone where that can be.
fn in_each_state(setup: &Setup<'_>, qp_type: QpType) -> Result {
    let (a, b) = FreshQp::pair(setup, qp_type)?;
    b.reach(QpState::Rts)?;
    if let Some(lab) = setup.verbs().lab() {
        // There are values for which a program needs a privilege.
        lab.set_privileged(a.end.context, false)?;
    }
    for (from, to) in [
        (QpState::Reset, QpState::Reset),
        (QpState::Init, QpState::Init),
        (QpState::Rts, QpState::Rts),
        (QpState::Rts, QpState::Sqd),
        (QpState::Sqd, QpState::Sqd),
        (QpState::Sqd, QpState::Rts),
    ] {
        a.reach(from)?;
        if !required(qp_type, from, to).difference(M::STATE).is_empty() {
            continue;
        }
        let before = a.query()?.attr;
        let changed = setup.modify_qp(a.end.qp, &nonsense(to), M::STATE);
        let case = format!("{qp_type}, {from} to {to}");
        in_case(&case, changed.rule(RULE))?;
        if to == QpState::Sqd {
            setup.until_sq_drained(a.end.qp)?;
        }
        let after = a.query()?.attr;
        let expected = QpAttr {
            qp_state: to,
            // A query gives the state; this is for changes.
            cur_qp_state: after.cur_qp_state,
            sq_draining: after.sq_draining,
            ..before
        };
        check_eq!(RULE, after, expected, case);
    }
    // In RTS there is no event, unless the device always sends one.
    if setup.behavior()?.sq_drained_always == Some(false) {
        setup.no_async_event(a.end.context, RULE)?;
    }
    b.end.recv(1, 8)?;
    a.end.send(2, 8)?;
    for cq in [a.end.send_cq, b.end.recv_cq] {
        setup.one_with(cq, WcStatus::Success, RULE)?;
    }
    Ok(())
}

scenario!(partition_stays_until_another_is_named: "QP-STATE-35", "TMR-15"; needs MODIFY_CONNECT, LAB);
/// Both sides have another partition at index 1 than at 0, and those at 0 do not match.
fn partition_stays_until_another_is_named(setup: &Setup<'_>) -> Result {
    // Some devices have one place only.
    if setup.query_port(setup.ctx_a(), setup.port())?.pkey_tbl_len < 2 {
        return Ok(());
    }
    for (context, first) in [(setup.ctx_a(), 0x8001), (setup.ctx_b(), 0x8002)] {
        for (index, pkey) in [(0, first), (1, 0x8123)] {
            setup.lab().set_pkey(context, setup.port(), index, pkey)?;
        }
    }
    let (mut a, mut b) = FreshQp::pair(setup, QpType::Rc)?;
    for end in [&mut a, &mut b] {
        end.attr.pkey_index = 1;
        end.reach(QpState::Init)?;
        // Named in the first change alone.
        end.attr.pkey_index = 0;
        end.reach(QpState::Rts)?;
        let seen = end.query()?.attr.pkey_index;
        check_eq!(RULE, seen, 1, "the index");
    }
    b.end.recv(1, 8)?;
    a.end.send(2, 8)?;
    for cq in [a.end.send_cq, b.end.recv_cq] {
        setup.one_with(cq, WcStatus::Success, "TMR-15")?;
    }
    Ok(())
}

scenario!(migration_state_is_told_as_it_was_set: "QP-CREATE-08"; needs MODIFY_CONNECT);
/// A device without path migration may refuse it.
fn migration_state_is_told_as_it_was_set(setup: &Setup<'_>) -> Result {
    let mut qp = FreshQp::new(setup, QpType::Rc)?;
    qp.reach(QpState::Rts)?;
    for state in [MigState::Rearm, MigState::Migrated] {
        qp.attr.path_mig_state = state;
        if qp
            .change(QpState::Rts, M::STATE | M::PATH_MIG_STATE)
            .is_ok()
        {
            let seen = qp.query()?.attr.path_mig_state;
            check_eq!("QP-CREATE-08", seen, state, "the migration state");
        }
    }
    Ok(())
}
