//! What the region and the queue pair of the responder allow, and which fault is found first.

use verbs_api::behavior::QpAccessStatus;
use verbs_api::{
    Access, AsyncEvent, AsyncEventType, Element, QpState, RcParams, Remote, SendOp, SendWr, Sge,
    WcStatus,
};

use crate::failure::{check, check_eq, in_case};
use crate::{End, Failure, OfRule, Pair, PairOptions, Result, Setup};

const LOCAL: Access = Access::LOCAL_WRITE;
const LEN: u32 = 8;

/// What a peer can ask for, and the right it needs.
const OPERATIONS: [(&str, Access); 2] = [
    ("write", Access::REMOTE_WRITE),
    ("read", Access::REMOTE_READ),
];

const RIGHTS: [Access; 6] = [
    Access::empty(),
    LOCAL,
    LOCAL.union(Access::REMOTE_WRITE),
    Access::REMOTE_READ,
    LOCAL.union(Access::REMOTE_READ),
    Access::ALL_RDMA,
];

/// A writes to or reads from a place, signaled, in the way that needs `right`.
fn ask(a: &End<'_>, right: Access, remote: Remote, len: u32) -> Result {
    let (op, local) = match right {
        Access::REMOTE_READ => (SendOp::RdmaRead { remote }, a.sge(a.landing(), len)),
        _ => (SendOp::RdmaWrite { remote }, a.sge(0, len)),
    };
    let list = [local];
    // An entry of no bytes means a great many to some devices.
    let list = if len == 0 { &[] } else { &list[..] };
    a.post(SendWr::new(1, op, list))
}

scenario!(region_decides_what_a_peer_may_do: "RDMA-03"; needs RDMA_READ);
fn region_decides_what_a_peer_may_do(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-03";
    for rights in RIGHTS {
        for (what, needed) in OPERATIONS {
            let Pair { a, b } = setup.rc_pair()?;
            let mr = setup.alloc_mr(b.pd, 64, rights)?;
            setup.write_mr(mr, 0, &[7; 64])?;
            a.fill(1, LEN)?;
            ask(&a, needed, setup.query_mr(mr)?.remote(0), LEN)?;
            let status = if rights.contains(needed) {
                WcStatus::Success
            } else {
                WcStatus::RemAccessErr
            };
            let case = format!("{what} where {rights:?} is allowed");
            in_case(&case, setup.one_with(a.send_cq, status, RULE).map(drop))?;
            if !rights.contains(needed) {
                let mut after = [0; 64];
                setup.read_mr(mr, 0, &mut after)?;
                check!(RULE, after == [7; 64], "the memory as it was", "{after:?}");
            }
        }
    }
    Ok(())
}

scenario!(queue_pair_decides_what_a_peer_may_do: "RDMA-04"; needs MODIFY_CONNECT, RDMA_READ);
fn queue_pair_decides_what_a_peer_may_do(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-04";
    let declared = setup.behavior()?.qp_access_status;
    for rights in [
        LOCAL | Access::REMOTE_READ,
        LOCAL | Access::REMOTE_WRITE,
        LOCAL,
    ] {
        // That it names no memory does not matter.
        let cases = OPERATIONS.map(|operation| [(operation, LEN), (operation, 0)]);
        for ((what, needed), len) in cases.into_iter().flatten() {
            let options = PairOptions::default();
            let [a, b] = [setup.ctx_a(), setup.ctx_b()].map(|side| setup.end(side, options));
            let of_b = RcParams {
                access: rights,
                ..RcParams::default()
            };
            let Pair { a, b } = setup.connect_each(a?, b?, RcParams::default(), of_b)?;
            b.fill_at(b.landing(), 3, LEN)?;
            ask(&a, needed, a.remote(), len)?;
            let wc = setup.one(a.send_cq)?;
            let case = format!("{what} of {len} bytes where the queue pair allows {rights:?}");
            let seen = match wc.status {
                WcStatus::RemAccessErr => QpAccessStatus::RemAccessErr,
                WcStatus::RemInvReqErr => QpAccessStatus::RemInvReqErr,
                status if rights.contains(needed) => {
                    in_case(&case, Ok(check_success(RULE, status)?))?;
                    continue;
                }
                _ => {
                    let expected = "REM_ACCESS_ERR or REM_INV_REQ_ERR";
                    let failure = Failure::assertion(expected, wc.to_string());
                    return in_case(&case, Err(failure).rule(RULE));
                }
            };
            let allowed = rights.contains(needed);
            check!(RULE, !allowed, "SUCCESS", "{wc} ({case})");
            in_case(&case, setup.as_declared(RULE, declared, seen))?;
            b.expect_data(3, LEN, RULE)?;
        }
    }
    Ok(())
}

fn check_success(rule: &'static str, status: WcStatus) -> Result {
    check_eq!(rule, status, WcStatus::Success);
    Ok(())
}

scenario!(responder_learns_of_an_access_violation: "RDMA-09", "ASYNC-15");
fn responder_learns_of_an_access_violation(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    let outside = b.mem.remote(b.mem.length - 1);
    a.post(SendWr::rdma_write(1, &[a.sge(0, LEN)], outside))?;
    // With what it ends here is a matter of other rules.
    setup.one(a.send_cq)?;
    let expected = AsyncEvent::new(AsyncEventType::QpAccessErr, Element::Qp(b.qp));
    let events = match setup.behavior()?.qp_access_event {
        Some(true) => vec![setup.async_event(b.context).rule("RDMA-09")?],
        _ => setup.async_events(b.context)?,
    };
    let seen = match events[..] {
        [] => false,
        [event] => {
            check_eq!("ASYNC-15", event, expected);
            true
        }
        _ => {
            let seen = format!("{events:?}");
            return Err(Failure::assertion("at most one event", seen)).rule("ASYNC-15");
        }
    };
    setup.as_declared("RDMA-09", setup.behavior()?.qp_access_event, seen)?;
    setup.no_async_event(a.context, "ASYNC-15")
}

scenario!(denied_write_with_immediate_completes_no_receive_with_success:
    "RDMA-13"; needs WRITE_WITH_IMM);
fn denied_write_with_immediate_completes_no_receive_with_success(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-13";
    let Pair { a, b } = setup.rc_pair()?;
    b.recv(1, LEN)?;
    let data = [a.sge(0, LEN)];
    let write = SendWr::rdma_write_with_imm(2, &data, a.bad_remote(), [1; 4]);
    a.post(write)?;
    setup.one_with(a.send_cq, WcStatus::RemAccessErr, RULE)?;
    let wc = setup.one(b.recv_cq).rule(RULE)?;
    let allowed = [
        WcStatus::LocAccessErr,
        WcStatus::LocProtErr,
        WcStatus::WrFlushErr,
    ];
    check!(
        RULE,
        wc.wr_id == 1 && allowed.contains(&wc.status),
        "LOC_ACCESS_ERR, LOC_PROT_ERR or WR_FLUSH_ERR",
        "{wc}"
    );
    Ok(())
}

fn bad_key(entry: Sge) -> Sge {
    Sge {
        lkey: entry.lkey ^ 0xa5,
        ..entry
    }
}

scenario!(write_with_both_keys_bad_is_a_local_error: "RDMA-14");
fn write_with_both_keys_bad_is_a_local_error(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-14";
    let Pair { a, b } = setup.rc_pair()?;
    // Outside the region: its status is the same on devices that tell key and range apart.
    let bad = [a.sge(a.mem.length, LEN)];
    a.post(SendWr::rdma_write(1, &bad, a.bad_remote()))?;
    setup.one_with(a.send_cq, WcStatus::LocProtErr, RULE)?;
    let Pair { a, .. } = setup.second_pair(&Pair { a, b }, PairOptions::default())?;
    b.fill_at(b.landing(), 9, LEN)?;
    let bad = [bad_key(a.sge(0, LEN))];
    a.post(SendWr::rdma_write(1, &bad, a.bad_remote()))?;
    let wc = setup.one(a.send_cq)?;
    // SQ-22 says with which status, if there is but this fault.
    let remote = matches!(wc.status, WcStatus::RemAccessErr | WcStatus::Success);
    check!(RULE, !remote, "a local error", "{wc}");
    setup.no_async_event(b.context, RULE)?;
    b.expect_data(9, LEN, RULE)
}

scenario!(read_with_both_keys_bad_is_found_at_one_side: "RDMA-15"; needs RDMA_READ);
fn read_with_both_keys_bad_is_found_at_one_side(setup: &Setup<'_>) -> Result {
    let a = setup.rc_pair()?.a;
    let into = [bad_key(a.sge(a.landing(), LEN))];
    a.post(SendWr::rdma_read(1, &into, a.bad_remote()))?;
    let wc = setup.one(a.send_cq).rule("RDMA-15")?;
    let at_once = setup.verbs().lab().is_none() && wc.status == WcStatus::LocProtErr;
    check!(
        "RDMA-15",
        wc.status == WcStatus::RemAccessErr || at_once,
        "REM_ACCESS_ERR, or LOC_PROT_ERR of a device that checks earlier",
        "{wc}"
    );
    Ok(())
}

scenario!(read_needs_local_write: "RDMA-16"; needs RDMA_READ);
fn read_needs_local_write(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-16";
    let Pair { a, b } = setup.rc_pair()?;
    let mr = setup.alloc_mr(a.pd, 64, Access::REMOTE_READ)?;
    let into = [setup.query_mr(mr)?.sge(0, LEN)];
    b.fill(1, LEN)?;
    a.post(SendWr::rdma_read(1, &into, b.mem.remote(0)))?;
    setup.one_with(a.send_cq, WcStatus::LocProtErr, RULE)?;
    let mut after = [0; 64];
    setup.read_mr(mr, 0, &mut after)?;
    check!(RULE, after == [0; 64], "the memory as it was", "{after:?}");
    Ok(())
}

scenario!(memory_without_rights_can_be_sent_from: "RDMA-17", "MR-02");
fn memory_without_rights_can_be_sent_from(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    let mr = setup.alloc_mr(a.pd, LEN as usize, Access::empty())?;
    let data = [setup.query_mr(mr)?.sge(0, LEN)];
    setup.write_mr(mr, 0, &crate::pattern(4, LEN))?;
    b.recv(1, LEN)?;
    a.post(SendWr::send(2, &data)).rule("MR-02")?;
    setup.one_with(b.recv_cq, WcStatus::Success, "MR-02")?;
    b.expect_data(4, LEN, "MR-02")?;
    setup.one_with(a.send_cq, WcStatus::Success, "MR-02")?;
    setup.write_mr(mr, 0, &crate::pattern(6, LEN))?;
    a.post(SendWr::rdma_write(3, &data, a.remote()))
        .rule("RDMA-17")?;
    b.recv_at(1, 0, LEN)?;
    // Comes behind the write.
    a.send(4, LEN)?;
    setup.one_with(b.recv_cq, WcStatus::Success, "RDMA-17")?;
    setup.successes(a.send_cq, 2).rule("RDMA-17")?;
    b.expect_data(6, LEN, "RDMA-17")
}

scenario!(denied_write_with_immediate_needs_no_receive: "RDMA-04", "RDMA-13"; needs WRITE_WITH_IMM);
/// Without a receive it fails too, or waits for one without result.
fn denied_write_with_immediate_needs_no_receive(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(PairOptions {
        rc: RcParams {
            access: Access::REMOTE_READ,
            min_rnr_timer: 1,
            rnr_retry: 1,
            ..RcParams::default()
        },
        ..PairOptions::default()
    })?;
    a.write_imm(1, LEN, [1, 2, 3, 4])?;
    let wc = setup.one(a.send_cq).rule("RDMA-04")?;
    let denied = [
        WcStatus::RemAccessErr,
        WcStatus::RemInvReqErr,
        WcStatus::RnrRetryExcErr,
    ];
    check!("RDMA-04", denied.contains(&wc.status), "a refusal", "{wc}");
    check_eq!("RDMA-04", setup.state(a.qp)?, QpState::Err);
    setup.no_completion(b.recv_cq, "RDMA-13")
}
