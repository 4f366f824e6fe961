//! Flushes and atomic writes: the memory placement extensions.

use std::time::Duration;

use verbs_api::behavior::QpAccessStatus;
use verbs_api::lab::{Fault, FaultGuard, PacketFilter, PacketOpcode};
use verbs_api::{
    Access, BatchEnd, Capabilities, ErrorKind, MwType, PlacementType, QpInit, QpType, RcParams,
    Remote, SelectivityLevel, SendOps, SendWr, WcOpcode, WcStatus, inc_rkey,
};

use crate::bad_input::refused;
use crate::failure::{check, check_eq, in_case};
use crate::mw::part;
use crate::{End, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err, pattern, wr_ids};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    flush_places_the_writes_before_it,
    flush_and_atomic_write_complete_as_what_they_are,
    flush_and_atomic_write_are_for_batches_alone,
    device_tells_what_it_has,
    region_must_allow_each_type_of_a_flush,
    queue_pair_must_allow_each_type_of_a_flush,
    window_allows_flushes,
    flush_checks_key_and_bytes,
    flush_for_persistence_needs_mapped_pages,
    flushes_do_not_count_in_the_depth,
    address_of_an_atomic_write_must_be_a_multiple_of_8,
    region_of_an_atomic_write_needs_the_right_to_write,
    queue_pair_of_an_atomic_write_needs_the_right_to_write,
    atomic_writes_count_in_the_depth_of_reads,
    responder_without_depth_refuses_atomic_writes,
    fenced_send_waits_for_an_atomic_write,
    response_without_data_is_the_answer,
    atomic_write_whose_response_is_lost_is_carried_out_once,
    flush_whose_packet_is_lost_is_sent_again,
    other_transports_have_none,
    flush_reaches_the_memory_of_an_srq,
];

const FLUSHES: Access = Access::FLUSH_GLOBAL.union(Access::FLUSH_PERSISTENT);
/// What regions and queue pairs allow here. Memory that may be flushed for persistence must be
/// persistent on some devices, so regions do not allow that.
const IN_REGION: Access = Access::ALL_RDMA.union(Access::FLUSH_GLOBAL);
const IN_QP: Access = Access::ALL_RDMA.union(FLUSHES);
const GLOBAL: PlacementType = PlacementType::GLOBAL;
const VALUE: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

fn options(send_ops: SendOps) -> PairOptions {
    PairOptions {
        send_ops: send_ops | SendOps::RDMA_WRITE | SendOps::SEND,
        access: IN_REGION,
        rc: RcParams {
            access: IN_QP,
            ..RcParams::default()
        },
        ..PairOptions::default()
    }
}

fn pair<'b>(setup: &'b Setup<'_>, send_ops: SendOps) -> Result<Pair<'b>> {
    setup.pair(options(send_ops))
}

/// A pair for both, as far as the device has them.
fn pair_for_all<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    let has = setup.capabilities(setup.ctx_a())?;
    let mut send_ops = SendOps::empty();
    send_ops.set(SendOps::FLUSH, has.contains(Capabilities::FLUSH));
    let writes = has.contains(Capabilities::ATOMIC_WRITE);
    send_ops.set(SendOps::ATOMIC_WRITE, writes);
    pair(setup, send_ops)
}

fn post(setup: &Setup<'_>, a: &End<'_>, list: &[SendWr<'_>]) -> Result {
    Ok(setup.post_batch(a.qp, list, BatchEnd::Complete)?)
}

fn flush<'s>(wr_id: u64, remote: Remote, length: u32) -> SendWr<'s> {
    SendWr::flush(wr_id, remote, length, GLOBAL, SelectivityLevel::Range)
}

fn flush_region<'s>(wr_id: u64, remote: Remote) -> SendWr<'s> {
    SendWr::flush(wr_id, remote, 0, GLOBAL, SelectivityLevel::Mr)
}

scenario!(flush_places_the_writes_before_it: "MPE-01"; needs FLUSH, BATCHES, LAB);
/// All bytes are there before either side polls a completion.
fn flush_places_the_writes_before_it(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MPE-01";
    for (what, len) in [("range", 2), ("range", 5000), ("region", 5000)] {
        let Pair { a, b } = pair(setup, SendOps::FLUSH)?;
        let data = [a.sge(0, len)];
        a.fill(1, len)?;
        b.fill_at(b.landing(), 0, len)?;
        let flush = match what {
            "range" => flush(2, a.remote(), len),
            _ => flush_region(2, a.remote()),
        };
        post(
            setup,
            &a,
            &[SendWr::rdma_write(1, &data, a.remote()), flush],
        )?;
        setup.lab().advance(Duration::from_millis(1))?;
        let seen = b.expect_data(1, len, RULE);
        in_case(&format!("{len} bytes, a flush of the {what}"), seen)?;
        setup.successes(a.send_cq, 2).rule(RULE)?;
    }
    Ok(())
}

scenario!(flush_and_atomic_write_complete_as_what_they_are:
    "MPE-01", "MPE-02", "MPE-07"; needs FLUSH, ATOMIC_WRITE, BATCHES);
fn flush_and_atomic_write_complete_as_what_they_are(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MPE-07";
    let Pair { a, b } = pair_for_all(setup)?;
    let place = b.mem.remote(b.landing() + 64);
    a.fill(1, 200)?;
    let data = [a.sge(0, 200)];
    let list = [
        SendWr::rdma_write(1, &data, a.remote()),
        SendWr::atomic_write(2, place, VALUE),
        flush(3, a.remote(), 200),
        flush_region(4, a.remote()),
    ];
    post(setup, &a, &list).rule("MPE-02")?;
    let done = setup.successes(a.send_cq, 4).rule("MPE-01")?;
    check_eq!("MPE-01", wr_ids(&done), [1, 2, 3, 4]);
    let opcodes: Vec<_> = done.iter().map(|wc| wc.opcode).collect();
    let expected = [
        WcOpcode::RdmaWrite,
        WcOpcode::AtomicWrite,
        WcOpcode::Flush,
        WcOpcode::Flush,
    ];
    check_eq!(RULE, opcodes, expected);
    let mut expected = pattern(1, 200);
    expected[64..72].copy_from_slice(&VALUE);
    check_eq!(RULE, b.bytes(b.landing(), 200)?, expected, "the bytes");
    setup.no_completion(b.recv_cq, RULE)
}

scenario!(flush_and_atomic_write_are_for_batches_alone:
    "MPE-02"; needs FLUSH, ATOMIC_WRITE, BATCHES);
fn flush_and_atomic_write_are_for_batches_alone(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MPE-02";
    let pair = pair_for_all(setup)?;
    let Pair { a, .. } = pair;
    let list = [a.sge(0, 8)];
    for work in [
        flush(1, a.remote(), 8),
        SendWr::atomic_write(1, a.remote(), VALUE),
    ] {
        let refused = expect_err(setup.post_send(a.qp, &[work]), ErrorKind::Invalid, RULE);
        in_case(work.op.name(), refused.map(drop))?;
        let with_list = SendWr::new(2, work.op, &list);
        let posted = setup.post_batch(a.qp, &[with_list], BatchEnd::Complete);
        let refused = expect_err(posted, ErrorKind::Invalid, RULE);
        in_case(&format!("{} of a list", work.op.name()), refused.map(drop))?;
    }
    setup.no_completion(a.send_cq, RULE)?;
    pair.still_works(RULE)
}

scenario!(device_tells_what_it_has: "MPE-03"; without RC);
fn device_tells_what_it_has(setup: &Setup<'_>) -> Result {
    let has = setup.capabilities(setup.ctx_a())?;
    let attr = setup.query_device_ex(setup.ctx_a())?;
    // The library may be too old for what the kernel has.
    let is_reported = |is_so: bool, of| is_so || !has.contains(of);
    let flushes = attr.flush_global || attr.flush_persistent;
    let reported = [
        is_reported(flushes, Capabilities::FLUSH),
        is_reported(attr.atomic_write, Capabilities::ATOMIC_WRITE),
    ];
    check_eq!("MPE-03", reported, [true; 2], "flushes, atomic writes");
    Ok(())
}

/// Each combination of placement types.
const TYPES: [PlacementType; 3] = [
    GLOBAL,
    PlacementType::PERSISTENT,
    GLOBAL.union(PlacementType::PERSISTENT),
];

/// The rights that a flush of these types needs.
fn rights(placement: PlacementType) -> Access {
    let mut rights = Access::empty();
    let persists = placement.contains(PlacementType::PERSISTENT);
    rights.set(Access::FLUSH_GLOBAL, placement.contains(GLOBAL));
    rights.set(Access::FLUSH_PERSISTENT, persists);
    rights
}

scenario!(region_must_allow_each_type_of_a_flush: "MPE-04"; needs FLUSH, BATCHES);
fn region_must_allow_each_type_of_a_flush(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MPE-04";
    for access in [Access::empty(), Access::FLUSH_GLOBAL, FLUSHES] {
        for placement in TYPES {
            let Pair { a, b } = pair(setup, SendOps::FLUSH)?;
            let mr = match setup.alloc_mr(b.pd, 64, Access::ALL_RDMA | access) {
                // The memory is not persistent.
                Err(_) if access == FLUSHES && setup.verbs().lab().is_none() => continue,
                made => made.rule(RULE)?,
            };
            let remote = setup.query_mr(mr)?.remote(0);
            let level = SelectivityLevel::Range;
            post(setup, &a, &[SendWr::flush(1, remote, 64, placement, level)])?;
            let status = if access.contains(rights(placement)) {
                WcStatus::Success
            } else {
                WcStatus::RemAccessErr
            };
            let case = format!("{placement:?} where {access:?} is allowed");
            in_case(&case, setup.one_with(a.send_cq, status, RULE).map(drop))?;
        }
    }
    Ok(())
}

scenario!(queue_pair_must_allow_each_type_of_a_flush: "MPE-04", "RDMA-04"; needs FLUSH, BATCHES);
fn queue_pair_must_allow_each_type_of_a_flush(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MPE-04";
    for access in [Access::empty(), Access::FLUSH_PERSISTENT, FLUSHES] {
        let rc = RcParams {
            access: Access::ALL_RDMA | access,
            ..RcParams::default()
        };
        let Pair { a, .. } = setup.pair(PairOptions {
            rc,
            ..options(SendOps::FLUSH)
        })?;
        post(setup, &a, &[flush(1, a.remote(), 64)])?;
        let wc = setup.one(a.send_cq).rule(RULE)?;
        let allowed = access.contains(Access::FLUSH_GLOBAL);
        judge_rights(setup, RULE, allowed, wc.status)?;
    }
    Ok(())
}

/// A queue pair allows an operation, or refuses it as declared.
fn judge_rights(setup: &Setup<'_>, rule: &'static str, allowed: bool, status: WcStatus) -> Result {
    let seen = match status {
        WcStatus::RemAccessErr => QpAccessStatus::RemAccessErr,
        WcStatus::RemInvReqErr => QpAccessStatus::RemInvReqErr,
        _ => {
            let is_right = allowed && status == WcStatus::Success;
            check!(rule, is_right, format!("allowed: {allowed}"), "{status}");
            return Ok(());
        }
    };
    check!(rule, !allowed, "SUCCESS", "{status}");
    setup.as_declared("RDMA-04", setup.behavior()?.qp_access_status, seen)
}

scenario!(window_allows_flushes: "MPE-04", "MPE-05"; needs FLUSH, BATCHES, MW_TYPE_2);
/// The region itself allows none.
fn window_allows_flushes(setup: &Setup<'_>) -> Result {
    for (access, status) in [
        (Access::FLUSH_GLOBAL, WcStatus::Success),
        (Access::REMOTE_WRITE, WcStatus::RemAccessErr),
    ] {
        for level in [SelectivityLevel::Range, SelectivityLevel::Mr] {
            let Pair { a, b } = setup.pair(PairOptions {
                access: Access::ALL_RDMA | Access::MW_BIND,
                ..options(SendOps::FLUSH)
            })?;
            let mw = setup.alloc_mw(b.pd, MwType::Type2)?;
            let rkey = inc_rkey(setup.query_mw(mw)?.rkey);
            b.post(SendWr::bind_mw(1, mw, rkey, part(&b, 64, 64, access)))?;
            setup.one_with(b.send_cq, WcStatus::Success, "MPE-04")?;
            let addr = b.mem.addr
                + if level == SelectivityLevel::Range {
                    64
                } else {
                    0
                };
            let remote = Remote { addr, rkey };
            post(setup, &a, &[SendWr::flush(2, remote, 64, GLOBAL, level)])?;
            let done = setup.one_with(a.send_cq, status, ["MPE-04", "MPE-05"]);
            in_case(&format!("{access:?}, {level:?}"), done.map(drop))?;
        }
    }
    Ok(())
}

scenario!(flush_checks_key_and_bytes: "MPE-05"; needs FLUSH, BATCHES);
fn flush_checks_key_and_bytes(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MPE-05";
    let [good, bad] = [WcStatus::Success, WcStatus::RemAccessErr];
    // How far from the end of the region it begins, its length, and both outcomes.
    for (case, back, length, of_range, of_region) in [
        ("all", 64, 64, good, good),
        ("no bytes", 64, 0, good, good),
        ("too many bytes", 64, 65, bad, good),
        ("bytes behind", 0, 8, bad, good),
        ("wrong key", 64, 8, bad, bad),
        ("wrong key, no bytes", 64, 0, bad, bad),
    ] {
        for (level, status) in [
            (SelectivityLevel::Range, of_range),
            (SelectivityLevel::Mr, of_region),
        ] {
            let Pair { a, b } = pair(setup, SendOps::FLUSH)?;
            let mut remote = b.mem.remote(b.mem.length - back);
            if case.starts_with("wrong key") {
                remote.rkey ^= 0xa5;
            }
            post(
                setup,
                &a,
                &[SendWr::flush(1, remote, length, GLOBAL, level)],
            )?;
            let done = setup.one_with(a.send_cq, status, RULE).map(drop);
            in_case(&format!("{case}, {level:?}"), done)?;
        }
    }
    Ok(())
}

scenario!(flush_for_persistence_needs_mapped_pages: "ODP-04"; needs FLUSH, BATCHES, ODP);
fn flush_for_persistence_needs_mapped_pages(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ODP-04";
    for placement in TYPES {
        for (level, length) in [
            (SelectivityLevel::Range, 64),
            (SelectivityLevel::Range, 0),
            (SelectivityLevel::Mr, 0),
        ] {
            let Pair { a, b } = pair(setup, SendOps::FLUSH)?;
            let access = Access::ALL_RDMA | Access::ON_DEMAND | rights(placement);
            let mr = setup.alloc_mr(b.pd, 64, access)?;
            let remote = setup.query_mr(mr)?.remote(0);
            setup.map_mr(mr, false)?;
            let work = SendWr::flush(1, remote, length, placement, level);
            post(setup, &a, &[work])?;
            let needs_pages = level == SelectivityLevel::Mr || length > 0;
            let persists = placement.contains(PlacementType::PERSISTENT);
            let status = if needs_pages && persists {
                WcStatus::RemAccessErr
            } else {
                WcStatus::Success
            };
            let case = format!("{placement:?}, {level:?}, {length} bytes");
            in_case(&case, setup.one_with(a.send_cq, status, RULE).map(drop))?;
        }
    }
    Ok(())
}

/// The most requests with one of these opcodes that have no response yet.
fn most_under_way(setup: &Setup<'_>, requests: &[PacketOpcode]) -> i32 {
    let (mut now, mut most) = (0, 0);
    for packet in setup.packets() {
        now += match packet.opcode {
            opcode if requests.contains(&opcode) => 1,
            PacketOpcode::RcReadResponseOnly => -1,
            _ => 0,
        };
        most = most.max(now);
    }
    most
}

fn with_depth<'b>(setup: &'b Setup<'_>, depth: u8, send_ops: SendOps) -> Result<Pair<'b>> {
    let rc = RcParams {
        access: IN_QP,
        max_rd_atomic: depth,
        ..RcParams::default()
    };
    setup.pair(PairOptions {
        rc,
        ..options(send_ops)
    })
}

scenario!(flushes_do_not_count_in_the_depth: "MPE-06"; needs FLUSH, BATCHES, LAB);
fn flushes_do_not_count_in_the_depth(setup: &Setup<'_>) -> Result {
    let Pair { a, .. } = with_depth(setup, 1, SendOps::FLUSH)?;
    setup.lab().tap();
    let list: Vec<_> = (0..6).map(|n| flush(n, a.remote(), 8)).collect();
    post(setup, &a, &list)?;
    setup.successes(a.send_cq, 6).rule("MPE-06")?;
    let most = most_under_way(setup, &[PacketOpcode::RcFlush]);
    check!("MPE-06", most > 1, "more than the depth, 1", "{most}");
    Ok(())
}

scenario!(address_of_an_atomic_write_must_be_a_multiple_of_8:
    "MPE-08", "WC-27"; needs ATOMIC_WRITE, BATCHES);
fn address_of_an_atomic_write_must_be_a_multiple_of_8(setup: &Setup<'_>) -> Result {
    for offset in [1, 4, 7] {
        let Pair { a, b } = pair(setup, SendOps::ATOMIC_WRITE)?;
        b.fill(3, 24)?;
        let place = b.mem.remote(offset);
        post(setup, &a, &[SendWr::atomic_write(1, place, VALUE)])?;
        let failed = setup.one_with(a.send_cq, WcStatus::RemInvReqErr, "WC-27");
        in_case(&format!("at {offset}"), failed.map(drop))?;
        b.expect_data_at(0, 3, 24, "MPE-08")?;
    }
    Ok(())
}

/// Rights other than those to write.
const NO_WRITES: Access = Access::LOCAL_WRITE
    .union(Access::REMOTE_READ)
    .union(Access::REMOTE_ATOMIC);
/// The right to write alone.
const WRITES: Access = Access::LOCAL_WRITE.union(Access::REMOTE_WRITE);

scenario!(region_of_an_atomic_write_needs_the_right_to_write:
    "MPE-09", "WC-28"; needs ATOMIC_WRITE, BATCHES);
/// And its key and its bytes are checked.
fn region_of_an_atomic_write_needs_the_right_to_write(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MPE-09";
    for (case, access, status) in [
        ("good", WRITES, WcStatus::Success),
        ("no right", NO_WRITES, WcStatus::RemAccessErr),
        ("key", WRITES, WcStatus::RemAccessErr),
        ("bytes", WRITES, WcStatus::RemAccessErr),
    ] {
        let Pair { a, b } = pair(setup, SendOps::ATOMIC_WRITE)?;
        let mr = setup.alloc_mr(b.pd, 64, access)?;
        let mut remote = setup
            .query_mr(mr)?
            .remote(if case == "bytes" { 64 } else { 8 });
        if case == "key" {
            remote.rkey ^= 0xa5;
        }
        post(setup, &a, &[SendWr::atomic_write(1, remote, VALUE)])?;
        let done = setup.one_with(a.send_cq, status, [RULE, "WC-28"]);
        in_case(case, done.map(drop))?;
        let mut after = [0; 24];
        setup.read_mr(mr, 0, &mut after)?;
        let mut expected = [0; 24];
        if case == "good" {
            expected[8..16].copy_from_slice(&VALUE);
        }
        check_eq!(RULE, after, expected, format!("the bytes ({case})"));
    }
    Ok(())
}

scenario!(queue_pair_of_an_atomic_write_needs_the_right_to_write:
    "MPE-09", "RDMA-04"; needs ATOMIC_WRITE, BATCHES);
fn queue_pair_of_an_atomic_write_needs_the_right_to_write(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MPE-09";
    for (access, allowed) in [(WRITES, true), (NO_WRITES, false)] {
        let rc = RcParams {
            access,
            ..RcParams::default()
        };
        let Pair { a, b } = setup.pair(PairOptions {
            rc,
            ..options(SendOps::ATOMIC_WRITE)
        })?;
        let before = b.bytes(b.landing(), 8)?;
        post(setup, &a, &[SendWr::atomic_write(1, a.remote(), VALUE)])?;
        let wc = setup.one(a.send_cq).rule(RULE)?;
        judge_rights(setup, RULE, allowed, wc.status)?;
        let after = b.bytes(b.landing(), 8)?;
        let expected = if allowed { VALUE.to_vec() } else { before };
        check_eq!(RULE, after, expected, "the bytes");
    }
    Ok(())
}

scenario!(atomic_writes_count_in_the_depth_of_reads:
    "MPE-10", "RDMA-18"; needs RDMA_READ, ATOMIC_WRITE, BATCHES, LAB);
fn atomic_writes_count_in_the_depth_of_reads(setup: &Setup<'_>) -> Result {
    for depth in [1, 2, 4] {
        let ops = SendOps::ATOMIC_WRITE | SendOps::RDMA_READ;
        let Pair { a, b } = with_depth(setup, depth, ops)?;
        setup.lab().tap();
        let into = [a.sge(a.landing(), 8)];
        let list: Vec<_> = (0..12)
            .map(|n| match n % 2 {
                0 => SendWr::atomic_write(n, b.mem.remote(8 * n), VALUE),
                _ => SendWr::rdma_read(n, &into, b.mem.remote(0)),
            })
            .collect();
        post(setup, &a, &list)?;
        setup.successes(a.send_cq, 12).rule("MPE-10")?;
        let requests = [PacketOpcode::RcAtomicWrite, PacketOpcode::RcReadRequest];
        let most = most_under_way(setup, &requests);
        // All of the depth is used, too.
        check_eq!(["MPE-10", "RDMA-18"], most, i32::from(depth), "under way");
    }
    Ok(())
}

scenario!(responder_without_depth_refuses_atomic_writes:
    "MPE-10"; needs MODIFY_CONNECT, ATOMIC_WRITE, BATCHES);
fn responder_without_depth_refuses_atomic_writes(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MPE-10";
    let options = options(SendOps::ATOMIC_WRITE);
    let [a, b] = [setup.ctx_a(), setup.ctx_b()].map(|side| setup.end(side, options));
    let of_a = RcParams {
        timeout: 8,
        retry_cnt: 1,
        ..options.rc
    };
    let of_b = RcParams {
        max_rd_atomic: 0,
        ..of_a
    };
    let Pair { a, b } = setup.connect_each(a?, b?, of_a, of_b)?;
    let before = b.bytes(b.landing(), 8)?;
    post(setup, &a, &[SendWr::atomic_write(1, a.remote(), VALUE)])?;
    let wc = setup.one(a.send_cq).rule(RULE)?;
    // As for atomics: another device may let the requester wait without result.
    let silent = setup.verbs().lab().is_none() && wc.status == WcStatus::RetryExcErr;
    let is_refused = wc.status == WcStatus::RemInvReqErr || silent;
    check!(RULE, is_refused, "REM_INV_REQ_ERR or RETRY_EXC_ERR", "{wc}");
    check_eq!(RULE, b.bytes(b.landing(), 8)?, before, "the bytes");
    Ok(())
}

scenario!(fenced_send_waits_for_an_atomic_write: "MPE-10", "SQ-12"; needs ATOMIC_WRITE, BATCHES, LAB);
fn fenced_send_waits_for_an_atomic_write(setup: &Setup<'_>) -> Result {
    for fenced in [false, true] {
        let Pair { a, b } = pair(setup, SendOps::ATOMIC_WRITE)?;
        b.recv(1, 8)?;
        let data = [a.sge(0, 8)];
        let send = SendWr::send(2, &data);
        let send = if fenced { send.fence() } else { send };
        setup.lab().tap();
        let write = SendWr::atomic_write(1, b.mem.remote(0), VALUE);
        post(setup, &a, &[write, send])?;
        setup.successes(a.send_cq, 2).rule("MPE-10")?;
        let packets = setup.packets();
        let place = |opcode| packets.iter().position(|packet| packet.opcode == opcode);
        let response = place(PacketOpcode::RcReadResponseOnly);
        let is_behind = place(PacketOpcode::RcSendOnly) > response;
        let case = format!("fenced: {fenced}");
        check_eq!(["MPE-10", "SQ-12"], is_behind, fenced, case);
    }
    Ok(())
}

scenario!(response_without_data_is_the_answer:
    "MPE-11"; needs FLUSH, ATOMIC_WRITE, BATCHES, LAB);
fn response_without_data_is_the_answer(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MPE-11";
    let Pair { a, .. } = pair_for_all(setup)?;
    for (work, opcode, payload) in [
        (flush(1, a.remote(), 64), PacketOpcode::RcFlush, 0),
        (
            SendWr::atomic_write(1, a.remote(), VALUE),
            PacketOpcode::RcAtomicWrite,
            8,
        ),
    ] {
        setup.lab().tap();
        post(setup, &a, &[work])?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        let packets = setup.packets();
        let seen: Vec<_> = packets.iter().map(|p| (p.opcode, p.payload)).collect();
        let response = (PacketOpcode::RcReadResponseOnly, 0);
        check_eq!(RULE, seen, [(opcode, payload), response], "the packets");
        check_eq!(RULE, packets[1].psn, packets[0].psn, "the number");
    }
    Ok(())
}

fn impatient(send_ops: SendOps) -> PairOptions {
    let options = options(send_ops);
    let rc = RcParams {
        timeout: 8,
        ..options.rc
    };
    PairOptions { rc, ..options }
}

scenario!(atomic_write_whose_response_is_lost_is_carried_out_once:
    "MPE-12"; needs ATOMIC_WRITE, BATCHES, LAB);
/// Before it comes again, the program at the responder changes the bytes.
fn atomic_write_whose_response_is_lost_is_carried_out_once(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MPE-12";
    for (opcode, after) in [
        (PacketOpcode::RcReadResponseOnly, [9; 8]),
        (PacketOpcode::RcAtomicWrite, VALUE),
    ] {
        let Pair { a, b } = setup.pair(impatient(SendOps::ATOMIC_WRITE))?;
        let lost = Fault::drop(PacketFilter::EVERY.opcode(opcode)).first(1);
        let lost = FaultGuard::new(setup.lab(), lost)?;
        post(
            setup,
            &a,
            &[SendWr::atomic_write(1, b.mem.remote(0), VALUE)],
        )?;
        setup.lab().advance(Duration::from_micros(50))?;
        setup.write_mr(b.mr, 0, &[9; 8])?;
        let done = setup.one_with(a.send_cq, WcStatus::Success, RULE);
        in_case(&format!("{opcode} lost"), done.map(drop))?;
        check_eq!(RULE, b.bytes(0, 8)?, after, format!("{opcode} lost"));
        drop(lost);
    }
    Ok(())
}

scenario!(flush_whose_packet_is_lost_is_sent_again: "MPE-12"; needs FLUSH, BATCHES, LAB);
fn flush_whose_packet_is_lost_is_sent_again(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MPE-12";
    for opcode in [PacketOpcode::RcReadResponseOnly, PacketOpcode::RcFlush] {
        for nth in 1..=3 {
            let Pair { a, b } = setup.pair(impatient(SendOps::FLUSH))?;
            let lost = Fault::drop(PacketFilter::EVERY.opcode(opcode)).nth(nth);
            let lost = FaultGuard::new(setup.lab(), lost)?;
            a.fill(5, 8)?;
            let data = [a.sge(0, 8)];
            let list = [
                flush(1, a.remote(), 8),
                SendWr::rdma_write(2, &data, a.remote()),
                flush(3, a.remote(), 8),
                flush(4, a.remote(), 8),
            ];
            post(setup, &a, &list)?;
            let case = format!("{opcode} {nth} lost");
            let done = setup.successes(a.send_cq, 4).rule(RULE).map(drop);
            in_case(&case, done)?;
            b.expect_data(5, 8, RULE)?;
            drop(lost);
        }
    }
    Ok(())
}

scenario!(other_transports_have_none: "MPE-14"; needs RC, UC, UD, BATCHES);
fn other_transports_have_none(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MPE-14";
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    for (qp_type, send_ops) in [
        (QpType::Uc, SendOps::FLUSH),
        (QpType::Uc, SendOps::ATOMIC_WRITE),
        (QpType::Ud, SendOps::FLUSH),
        (QpType::Ud, SendOps::ATOMIC_WRITE),
        (QpType::XrcSend, SendOps::ATOMIC_WRITE),
    ] {
        let init = QpInit::new(qp_type, end.send_cq, end.recv_cq);
        let init = init.send_ops(SendOps::SEND | send_ops);
        let kinds = [ErrorKind::NotSupported, ErrorKind::Invalid];
        let made = refused(setup, &kinds, RULE, || setup.create_qp(end.pd, &init));
        in_case(&format!("{send_ops:?} on {qp_type}"), made.map(drop))?;
    }
    Ok(())
}

scenario!(flush_reaches_the_memory_of_an_srq: "MPE-14", "MPE-01"; needs FLUSH, BATCHES, XRC);
fn flush_reaches_the_memory_of_an_srq(setup: &Setup<'_>) -> Result {
    let options = PairOptions {
        qp_type: QpType::XrcSend,
        ..options(SendOps::FLUSH)
    };
    let Pair { a, b } = setup.pair(options).rule("MPE-14")?;
    a.fill(3, 64)?;
    let data = [a.sge(0, 64)];
    let write = a.to_peer(SendWr::rdma_write(1, &data, a.remote()));
    post(setup, &a, &[write, a.to_peer(flush(2, a.remote(), 64))])?;
    let done = setup.successes(a.send_cq, 2).rule("MPE-14")?;
    check_eq!("MPE-14", done[1].opcode, WcOpcode::Flush);
    b.expect_data(3, 64, "MPE-01")
}
