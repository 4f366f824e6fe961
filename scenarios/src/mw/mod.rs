//! Memory windows.
//!
//! | file | holds |
//! |---|---|
//! | `bind` | what a bind does, and its order among others |
//! | `fault` | binds that fail |
//! | `access` | what a window opens, and to whom |
//! | `inval` | invalidation, by the owner and by the peer |
//! | `life` | windows and what they are made of |

mod access;
mod bind;
mod fault;
mod inval;
mod life;

use verbs_api::{
    Access, Capabilities, Mr, Mw, MwBind, MwBindInfo, MwType, RcParams, Remote, SendWr, WcOpcode,
    WcStatus, inc_rkey,
};

use crate::failure::check_eq;
use crate::{Bench, End, Hazards, OfRule, Pair, PairOptions, Result, Scenario};

const MW: Capabilities = Capabilities::MW;
/// What regions and queue pairs allow here.
const ALL: Access = Access::ALL_RDMA
    .union(Access::REMOTE_ATOMIC)
    .union(Access::MW_BIND);
const BOTH: [MwType; 2] = [MwType::Type1, MwType::Type2];
const WRITE: Access = Access::REMOTE_WRITE;
const LEN: u32 = 8;

const fn row(id: &'static str, rules: &'static [&'static str], body: crate::Body) -> Scenario {
    Scenario::new(id, rules, body).needs(MW)
}

pub(crate) const SCENARIOS: &[Scenario] = &[
    row(
        "mw.unbound_window_opens_nothing",
        &["MW-01"],
        bind::unbound_window_opens_nothing,
    ),
    row(
        "mw.bind_gives_a_new_key_and_the_old_one_dies",
        &["MW-02", "MW-14", "WC-04"],
        bind::bind_gives_a_new_key_and_the_old_one_dies,
    ),
    row(
        "mw.bind_of_no_bytes_unbinds_type_1",
        &["MW-03"],
        bind::bind_of_no_bytes_unbinds_type_1,
    ),
    row(
        "mw.work_request_binds_with_the_key_of_the_caller",
        &["MW-04", "WC-04"],
        bind::work_request_binds_with_the_key_of_the_caller,
    ),
    row(
        "mw.bind_mw_is_for_type_1",
        &["MW-05"],
        bind::bind_mw_is_for_type_1,
    ),
    row(
        "mw.bind_by_work_request_is_for_type_2",
        &["MW-05"],
        bind::bind_by_work_request_is_for_type_2,
    ),
    row(
        "mw.binds_complete_in_order_and_before_what_is_behind_starts",
        &["MW-27", "MW-02"],
        bind::binds_complete_in_order_and_before_what_is_behind_starts,
    ),
    row(
        "mw.uc_queue_pair_binds",
        &["MW-22"],
        bind::uc_queue_pair_binds,
    )
    .needs(Capabilities::UC),
    row(
        "mw.ud_queue_pair_does_not_bind",
        &["MW-22", "SQ-20"],
        bind::ud_queue_pair_does_not_bind,
    )
    .needs(Capabilities::UD),
    row(
        "mw.region_must_allow_to_be_bound",
        &["MW-06", "WC-26"],
        fault::region_must_allow_to_be_bound,
    ),
    row(
        "mw.window_to_be_written_needs_a_region_that_may_be_written",
        &["MW-07", "WC-26"],
        fault::window_to_be_written_needs_a_region_that_may_be_written,
    ),
    row(
        "mw.window_lies_within_its_region",
        &["MW-08", "WC-26"],
        fault::window_lies_within_its_region,
    ),
    row(
        "mw.bind_mw_wants_one_domain",
        &["MW-09", "PD-02"],
        fault::bind_mw_wants_one_domain,
    ),
    row(
        "mw.window_of_type_2_and_queue_pair_share_a_domain",
        &["MW-09", "PD-02", "WC-26"],
        fault::window_of_type_2_and_queue_pair_share_a_domain,
    ),
    row(
        "mw.window_region_and_queue_pair_share_a_domain",
        &["MW-09", "PD-02", "WC-26"],
        fault::window_region_and_queue_pair_share_a_domain,
    ),
    row(
        "mw.bound_window_of_type_2_is_not_bound_again",
        &["MW-13", "WC-26"],
        fault::bound_window_of_type_2_is_not_bound_again,
    ),
    row(
        "mw.window_of_type_1_is_not_zero_based",
        &["MW-20"],
        fault::window_of_type_1_is_not_zero_based,
    ),
    row(
        "mw.window_of_type_2_has_bytes",
        &["MW-21", "WC-26"],
        fault::window_of_type_2_has_bytes,
    ),
    row(
        "mw.failed_bind_leaves_the_window_as_it_was",
        &["MW-23"],
        fault::failed_bind_leaves_the_window_as_it_was,
    ),
    row(
        "mw.unsignaled_bind_that_fails_completes_as_declared",
        &["MW-24"],
        fault::unsignaled_bind_that_fails_completes_as_declared,
    ),
    row(
        "mw.window_gives_rights_that_its_region_does_not",
        &["MW-10", "ATOM-05"],
        access::window_gives_rights_that_its_region_does_not,
    )
    .needs(Capabilities::RDMA_READ.union(Capabilities::ATOMICS)),
    row(
        "mw.window_ends_where_it_was_bound",
        &["MW-11"],
        access::window_ends_where_it_was_bound,
    ),
    row(
        "mw.nothing_opens_outside_the_region",
        &["MW-11"],
        access::nothing_opens_outside_the_region,
    ),
    row(
        "mw.window_of_type_1_opens_for_every_queue_pair_of_its_domain",
        &["MW-12"],
        access::window_of_type_1_opens_for_every_queue_pair_of_its_domain,
    ),
    row(
        "mw.window_of_type_2_opens_for_the_queue_pair_of_its_bind",
        &["MW-12"],
        access::window_of_type_2_opens_for_the_queue_pair_of_its_bind,
    ),
    row(
        "mw.zero_based_window_has_offsets",
        &["MW-20"],
        access::zero_based_window_has_offsets,
    ),
    row(
        "mw.access_of_no_bytes_is_not_checked",
        &["MW-29", "RDMA-10"],
        access::access_of_no_bytes_is_not_checked,
    )
    .needs(Capabilities::RDMA_READ),
    row(
        "mw.invalidated_window_opens_nothing_and_is_free",
        &["MW-15", "WC-04"],
        inval::invalidated_window_opens_nothing_and_is_free,
    ),
    row(
        "mw.window_of_type_1_is_not_invalidated_by_its_owner",
        &["MW-16"],
        inval::window_of_type_1_is_not_invalidated_by_its_owner,
    ),
    row(
        "mw.window_of_type_1_is_not_invalidated_by_a_peer",
        &["MW-16", "MW-18"],
        inval::window_of_type_1_is_not_invalidated_by_a_peer,
    ),
    row(
        "mw.send_invalidates_before_its_receive_completes",
        &["MW-17"],
        inval::send_invalidates_before_its_receive_completes,
    ),
    row(
        "mw.completion_names_the_key_that_was_invalidated",
        &["WC-12"],
        inval::completion_names_the_key_that_was_invalidated,
    ),
    row(
        "mw.send_that_invalidates_what_is_no_window_fails",
        &["MW-18"],
        inval::send_that_invalidates_what_is_no_window_fails,
    ),
    row(
        "mw.send_does_not_invalidate_the_window_of_another_queue_pair",
        &["MW-18"],
        inval::send_does_not_invalidate_the_window_of_another_queue_pair,
    ),
    row(
        "mw.window_is_invalidated_on_the_queue_pair_of_its_bind",
        &["MW-25"],
        inval::window_is_invalidated_on_the_queue_pair_of_its_bind,
    ),
    row(
        "mw.deallocated_window_opens_nothing",
        &["MW-19"],
        life::deallocated_window_opens_nothing,
    ),
    row(
        "mw.region_with_a_window_is_not_deregistered",
        &["MR-07"],
        life::region_with_a_window_is_not_deregistered,
    ),
    row(
        "mw.queue_pair_with_a_window_is_destroyed",
        &["QP-DESTROY-04"],
        life::queue_pair_with_a_window_is_destroyed,
    )
    .hazards(Hazards::MAY_HANG),
    row(
        "mw.domain_with_a_window_is_busy",
        &["PD-01"],
        life::domain_with_a_window_is_busy,
    ),
    Scenario::new(
        "mw.device_has_the_types_that_it_says",
        &["MW-26"],
        life::device_has_the_types_that_it_says,
    ),
];

/// A pair whose B has windows.
fn pair<'b>(bench: &'b Bench<'_>) -> Result<Pair<'b>> {
    bench.pair(options())
}

fn options() -> PairOptions {
    PairOptions {
        access: ALL,
        rc: RcParams {
            access: ALL,
            // What is not answered is given up soon.
            timeout: 10,
            retry_cnt: 2,
            ..RcParams::default()
        },
        ..PairOptions::default()
    }
}

/// One more connected pair on the domains, regions and CQs of another.
fn sibling<'b>(bench: &'b Bench<'_>, pair: &Pair<'_>) -> Result<Pair<'b>> {
    let a = bench.sibling(&pair.a, options())?;
    let b = bench.sibling(&pair.b, options())?;
    bench.connect(a, b, options())
}

/// The bytes of an end's region from an offset on.
fn part(end: &End<'_>, offset: u64, length: u64, access: Access) -> MwBindInfo {
    part_of(end.mr, end.mem.addr + offset, length, access)
}

fn part_of(mr: Mr, addr: u64, length: u64, access: Access) -> MwBindInfo {
    MwBindInfo {
        mr,
        addr,
        length,
        access,
    }
}

/// Posts a bind on a queue pair, in the way of the window's type: the new key.
fn post_bind(
    bench: &Bench<'_>,
    end: &End<'_>,
    wr_id: u64,
    mw: Mw,
    info: MwBindInfo,
) -> Result<u32> {
    let attr = bench.query_mw(mw)?;
    match attr.mw_type {
        MwType::Type1 => bench.bind_mw(end.qp, mw, &MwBind::new(wr_id, info))?,
        _ => {
            let bind = SendWr::bind_mw(wr_id, mw, inc_rkey(attr.rkey), info);
            bench.post_send(end.qp, &[bind])?;
        }
    }
    Ok(bench.query_mw(mw)?.rkey)
}

/// Binds a window on a queue pair: the new key.
fn bind(bench: &Bench<'_>, end: &End<'_>, mw: Mw, info: MwBindInfo) -> Result<u32> {
    let rkey = post_bind(bench, end, 50, mw, info)?;
    let wc = bench.one_with(end.send_cq, WcStatus::Success, "MW-02")?;
    check_eq!("WC-04", (wc.wr_id, wc.opcode), (50, WcOpcode::BindMw));
    Ok(rkey)
}

/// A window of B that shows `LEN` bytes at the landing place, for writing: itself and its key.
fn bound(bench: &Bench<'_>, b: &End<'_>, mw_type: MwType) -> Result<(Mw, u32)> {
    let mw = bench.alloc_mw(b.pd, mw_type)?;
    let rkey = bind(bench, b, mw, part(b, b.landing(), LEN.into(), WRITE))?;
    Ok((mw, rkey))
}

/// A writes to a place of B: with what it ends.
fn write(bench: &Bench<'_>, a: &End<'_>, remote: Remote) -> Result<WcStatus> {
    a.post(SendWr::rdma_write(60, &[a.sge(0, LEN)], remote))?;
    Ok(bench.one(a.send_cq)?.status)
}

/// The key opens the landing place of B: what A writes is there.
fn opens(bench: &Bench<'_>, Pair { a, b }: &Pair<'_>, rkey: u32, rule: &'static str) -> Result {
    let addr = b.mem.addr + b.landing();
    let tag = (rkey as u8).wrapping_add(77);
    b.fill_at(b.landing(), tag.wrapping_add(1), LEN)?;
    a.fill(tag, LEN)?;
    let status = write(bench, a, Remote { addr, rkey })?;
    check_eq!(
        rule,
        status,
        WcStatus::Success,
        "a write through the window"
    );
    b.expect_data(tag, LEN, rule)
}

/// The key opens nothing there; the connection is at its end then.
fn is_shut(bench: &Bench<'_>, pair: &Pair<'_>, rkey: u32, rule: &'static str) -> Result {
    let addr = pair.b.mem.addr + pair.b.landing();
    denies(bench, pair, Remote { addr, rkey }, rule)
}

/// A write to a place is refused; the connection is at its end then.
fn denies(
    bench: &Bench<'_>,
    Pair { a, b }: &Pair<'_>,
    remote: Remote,
    rule: &'static str,
) -> Result {
    let before = b.bytes(0, b.mem.length as usize).rule(rule)?;
    a.fill(99, LEN)?;
    let status = write(bench, a, remote)?;
    check_eq!(rule, status, WcStatus::RemAccessErr, "a write");
    let after = b.bytes(0, b.mem.length as usize).rule(rule)?;
    check_eq!(rule, after == before, true, "the memory is as it was");
    Ok(())
}
