//! Which operation each transport has.

use verbs_api::behavior::IllegalOpcode;
use verbs_api::{
    Access, Capabilities, ErrorKind, MwType, QpType, RcParams, Remote, SendOp, SendWr, WcOpcode,
    WcStatus, inc_rkey,
};

use crate::failure::{check_eq, in_case};
use crate::kind::Kind;
use crate::mw::part;
use crate::{Claim, End, GRH_LEN, OfRule, Pair, PairOptions, Result, Setup, expect_err};

/// The transports that have an operation: RC, UC, UD and XRC_SEND.
const OPERATIONS: [(Kind, [bool; 4]); 5] = [
    (Kind::Send, [true, true, true, true]),
    (Kind::SendImm, [true, true, true, true]),
    (Kind::Write, [true, true, false, true]),
    (Kind::WriteImm, [true, true, false, true]),
    (Kind::Read, [true, false, false, true]),
];

const TRANSPORTS: [QpType; 4] = [QpType::Rc, QpType::Uc, QpType::Ud, QpType::XrcSend];

scenario!(rc_qp_has_sends_writes_and_reads: "SQ-18"; needs RDMA_READ);
/// What the transport has, without immediate data.
fn rc_qp_has_sends_writes_and_reads(setup: &Setup<'_>) -> Result {
    for (kind, _) in OPERATIONS.iter().filter(|(kind, _)| !kind.has_imm()) {
        in_case(&format!("{kind:?}"), runs(setup, QpType::Rc, *kind))?;
    }
    Ok(())
}

scenario!(rc_qp_has_the_operations_of_its_table:
    "SQ-18", "SQ-19"; needs SEND_WITH_IMM, WRITE_WITH_IMM, RDMA_READ);
fn rc_qp_has_the_operations_of_its_table(setup: &Setup<'_>) -> Result {
    table(setup, QpType::Rc)
}

scenario!(uc_qp_has_the_operations_of_its_table:
    "SQ-18", "SQ-19", "SQ-20"; needs UC, SEND_WITH_IMM, WRITE_WITH_IMM);
fn uc_qp_has_the_operations_of_its_table(setup: &Setup<'_>) -> Result {
    table(setup, QpType::Uc)
}

scenario!(ud_qp_has_the_operations_of_its_table:
    "SQ-18", "SQ-19", "SQ-20", "UD-11"; needs UD, SEND_WITH_IMM);
fn ud_qp_has_the_operations_of_its_table(setup: &Setup<'_>) -> Result {
    table(setup, QpType::Ud)
}

scenario!(xrc_sender_has_the_operations_of_its_table:
    "SQ-18", "SQ-19"; needs SEND_WITH_IMM, WRITE_WITH_IMM, RDMA_READ, XRC);
fn xrc_sender_has_the_operations_of_its_table(setup: &Setup<'_>) -> Result {
    table(setup, QpType::XrcSend)
}

fn table(setup: &Setup<'_>, qp_type: QpType) -> Result {
    for (kind, had) in OPERATIONS {
        let of = TRANSPORTS.iter().zip(had).find(|(of, _)| **of == qp_type);
        let result = match of {
            Some((_, true)) => runs(setup, qp_type, kind),
            _ => is_refused(setup, qp_type, kind),
        };
        in_case(&format!("{kind:?}"), result)?;
    }
    Ok(())
}

/// It moves its data, of several lengths, to or from the peer, and its immediate data.
fn runs(setup: &Setup<'_>, qp_type: QpType, kind: Kind) -> Result {
    const RULE: &str = "SQ-18";
    let Pair { a, b } = setup.pair(PairOptions::of(qp_type))?;
    let grh = if qp_type == QpType::Ud { GRH_LEN } else { 0 };
    for (tag, length) in [(1, 64), (2, 1000), (3, 0)] {
        let (source, sink) = if kind == Kind::Read { (b, a) } else { (a, b) };
        source.fill(tag, length)?;
        let offset = if kind == Kind::Read { a.landing() } else { 0 };
        // A marker behind a plain write shows that it has arrived.
        let marker = kind == Kind::Write;
        if marker || kind.takes_a_receive() {
            b.recv(8, length)?;
        }
        let imm = [9, 8, 7, tag];
        let data = [a.sge(offset, length)];
        let mut work = kind.work_with(&a, 7, &data, imm);
        if let SendOp::RdmaRead { remote } = &mut work.op {
            *remote = b.mem.remote(0);
        }
        a.post(work).rule(RULE)?;
        if marker {
            a.send(9, 0)?;
        }
        let sent = setup.successes(a.send_cq, 1).rule(RULE)?[0];
        check_eq!(RULE, sent.wr_id, 7);
        if marker {
            setup.successes(a.send_cq, 1).rule(RULE)?;
        }
        if marker || kind.takes_a_receive() {
            let received = setup.successes(b.recv_cq, 1).rule(RULE)?[0];
            check_eq!(RULE, received.wr_id, 8);
            if kind.has_imm() {
                check_eq!("SQ-19", received.imm_data, imm, "the immediate data");
                let bytes = received.byte_len - grh;
                check_eq!("SQ-19", bytes, length, "the length of the message");
            }
        }
        sink.expect_data(tag, length, RULE)?;
    }
    Ok(())
}

/// It is refused at once, or fails.
fn is_refused(setup: &Setup<'_>, qp_type: QpType, kind: Kind) -> Result {
    let a = setup.pair(PairOptions::of(qp_type))?.a;
    let data = [a.sge(a.landing(), 8)];
    illegal(setup, &a, a.to_peer(kind.work(&a, 1, &data)))
}

scenario!(only_rc_qp_has_atomics: "SQ-18", "SQ-20", "UD-11"; needs UC, UD, ATOMICS);
/// Atomics, for a queue pair that is not of RC.
fn only_rc_qp_has_atomics(setup: &Setup<'_>) -> Result {
    for qp_type in [QpType::Uc, QpType::Ud] {
        for swap in [false, true] {
            let a = setup.pair(PairOptions::of(qp_type))?.a;
            let into = [a.sge(a.landing(), 8)];
            let remote = Remote {
                addr: a.mem.addr,
                rkey: a.mem.rkey,
            };
            let work = if swap {
                SendWr::compare_and_swap(1, &into, remote, 0, 1)
            } else {
                SendWr::fetch_and_add(1, &into, remote, 1)
            };
            let case = format!("{} on {qp_type}", work.op.name());
            in_case(&case, illegal(setup, &a, a.to_peer(work)))?;
        }
    }
    Ok(())
}

scenario!(xrc_sender_has_atomics: "SQ-18"; needs ATOMICS, XRC);
/// Both atomics, on XRC.
fn xrc_sender_has_atomics(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-18";
    let Pair { a, b } = setup.pair(PairOptions {
        access: Access::ALL_RDMA | Access::REMOTE_ATOMIC,
        rc: RcParams {
            access: Access::REMOTE_ATOMIC,
            ..RcParams::default()
        },
        ..PairOptions::of(QpType::XrcSend)
    })?;
    let remote = Remote {
        addr: b.mem.addr,
        rkey: b.mem.rkey,
    };
    let into = [a.sge(a.landing(), 8)];
    setup.write_mr(b.mr, 0, &5_u64.to_ne_bytes())?;
    for (work, before, after) in [
        (SendWr::fetch_and_add(1, &into, remote, 2), 5_u64, 7_u64),
        (SendWr::compare_and_swap(2, &into, remote, 7, 9), 7, 9),
    ] {
        a.post(work).rule(RULE)?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        let name = work.op.name();
        let old = a.bytes(a.landing(), 8)?;
        check_eq!(
            RULE,
            old,
            before.to_ne_bytes(),
            format!("what {name} found")
        );
        let new = b.bytes(0, 8)?;
        check_eq!(RULE, new, after.to_ne_bytes(), format!("what {name} left"));
    }
    Ok(())
}

scenario!(xrc_sender_binds_and_invalidates: "SQ-18", "MW-22"; needs MW_TYPE_2, XRC);
/// A window of the sender's own memory.
fn xrc_sender_binds_and_invalidates(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-18";
    let Pair { a, .. } = setup.pair(PairOptions {
        access: Access::ALL_RDMA | Access::MW_BIND,
        ..PairOptions::of(QpType::XrcSend)
    })?;
    let mw = setup.alloc_mw(a.pd, MwType::Type2)?;
    let info = part(&a, 0, 64, Access::REMOTE_WRITE);
    for _ in 0..2 {
        let rkey = inc_rkey(setup.query_mw(mw)?.rkey);
        for (work, opcode) in [
            (SendWr::bind_mw(1, mw, rkey, info), WcOpcode::BindMw),
            (SendWr::local_inv(2, rkey), WcOpcode::LocalInv),
        ] {
            setup.post_send(a.qp, &[work]).rule(RULE)?;
            let done = setup.one_with(a.send_cq, WcStatus::Success, [RULE, "MW-22"])?;
            check_eq!(RULE, done.opcode, opcode);
        }
    }
    Ok(())
}

scenario!(ud_qp_does_not_invalidate: "SQ-18", "SQ-20", "UD-11"; needs UD, MW_TYPE_2);
/// Invalidation, for datagrams.
fn ud_qp_does_not_invalidate(setup: &Setup<'_>) -> Result {
    for local in [false, true] {
        let a = setup.pair(PairOptions::of(QpType::Ud))?.a;
        let mw = setup.alloc_mw(a.pd, MwType::Type2)?;
        let rkey = setup.query_mw(mw)?.rkey;
        let work = if local {
            SendWr::local_inv(1, rkey)
        } else {
            SendWr::send_with_inv(1, &[], rkey)
        };
        in_case(work.op.name(), illegal(setup, &a, a.to_peer(work)))?;
    }
    Ok(())
}

scenario!(segmented_send_is_refused_on_a_connection: "SQ-18", "SQ-20");
fn segmented_send_is_refused_on_a_connection(setup: &Setup<'_>) -> Result {
    segmented_send_is_refused(setup, QpType::Rc)
}

scenario!(segmented_send_is_for_datagrams_of_devices_that_have_it: "SQ-18", "SQ-20"; needs UC, UD);
/// Only they have it on UD, and none has it on UC.
fn segmented_send_is_for_datagrams_of_devices_that_have_it(setup: &Setup<'_>) -> Result {
    segmented_send_is_refused(setup, QpType::Uc)?;
    if setup
        .capabilities(setup.ctx_a())?
        .contains(Capabilities::TSO)
    {
        Ok(())
    } else {
        segmented_send_is_refused(setup, QpType::Ud)
    }
}

fn segmented_send_is_refused(setup: &Setup<'_>, qp_type: QpType) -> Result {
    let a = setup.pair(PairOptions::of(qp_type))?.a;
    let data = [a.sge(0, 64)];
    let refused = illegal(setup, &a, a.to_peer(SendWr::tso(1, &data, 32)));
    in_case(&format!("TSO on {qp_type}"), refused)
}

scenario!(rc_qp_binds_and_invalidates: "SQ-18"; needs MW_TYPE_2);
fn rc_qp_binds_and_invalidates(setup: &Setup<'_>) -> Result {
    binds_and_invalidates(setup, QpType::Rc)
}

scenario!(uc_qp_binds_and_invalidates: "SQ-18"; needs UC, MW_TYPE_2);
fn uc_qp_binds_and_invalidates(setup: &Setup<'_>) -> Result {
    binds_and_invalidates(setup, QpType::Uc)
}

/// B binds a window, which A invalidates, then again, and invalidates it itself.
fn binds_and_invalidates(setup: &Setup<'_>, qp_type: QpType) -> Result {
    const RULE: &str = "SQ-18";
    let Pair { a, b } = setup.pair(PairOptions {
        access: Access::ALL_RDMA | Access::MW_BIND,
        ..PairOptions::of(qp_type)
    })?;
    let mw = setup.alloc_mw(b.pd, MwType::Type2)?;
    let info = part(&b, 0, 64, Access::REMOTE_WRITE);
    for local in [false, true] {
        let rkey = inc_rkey(setup.query_mw(mw)?.rkey);
        setup
            .post_send(b.qp, &[SendWr::bind_mw(1, mw, rkey, info)])
            .rule(RULE)?;
        let bound = setup.one_with(b.send_cq, WcStatus::Success, RULE)?;
        check_eq!(RULE, bound.opcode, WcOpcode::BindMw);
        if local {
            setup
                .post_send(b.qp, &[SendWr::local_inv(2, rkey)])
                .rule(RULE)?;
            let done = setup.one_with(b.send_cq, WcStatus::Success, RULE)?;
            check_eq!(RULE, done.opcode, WcOpcode::LocalInv);
        } else {
            b.recv(3, 8)?;
            a.fill(5, 8)?;
            a.post(SendWr::send_with_inv(4, &[a.sge(0, 8)], rkey))
                .rule(RULE)?;
            setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
            setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
            b.expect_data(5, 8, RULE)?;
        }
    }
    Ok(())
}

/// Work of an operation that the queue pair does not have is refused, or fails, as declared.
pub(crate) fn illegal(setup: &Setup<'_>, a: &End<'_>, wr: SendWr<'_>) -> Result {
    // UD has segmented sends, if the device does.
    let rule = match (a.qp_type, wr.op) {
        (QpType::Ud, op) if !matches!(op, SendOp::Tso { .. }) => Claim::two("SQ-20", "UD-11"),
        _ => Claim::one("SQ-20"),
    };
    let result = setup.post_send(a.qp, &[wr]);
    let seen = if result.is_ok() {
        setup.one_with(a.send_cq, WcStatus::LocQpOpErr, rule)?;
        IllegalOpcode::LocQpOpErr
    } else {
        let error = expect_err(result, ErrorKind::Invalid, rule)?;
        check_eq!("SQ-20", error.bad_wr, 0);
        IllegalOpcode::Einval
    };
    setup.no_completion(a.send_cq, "SQ-18")?;
    setup.as_declared("SQ-20", setup.behavior()?.illegal_opcode, seen)
}
