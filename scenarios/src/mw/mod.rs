//! Memory windows.
//!
//! | file | holds |
//! |---|---|
//! | `bind` | what a bind does, and its order among others |
//! | `ring` | binds on a full queue, and at each of its places |
//! | `fault` | binds that fail |
//! | `access` | the memory that a window opens, and the queue pairs that may use it |
//! | `inval` | invalidation, by the owner and by the peer |
//! | `life` | windows and what they are made of |

mod access;
mod bind;
mod fault;
mod inval;
mod life;
mod ring;

use verbs_api::{
    Access, Mr, Mw, MwBind, MwBindInfo, MwType, RcParams, Remote, SendWr, WcOpcode, WcStatus,
    inc_rkey,
};

use crate::failure::check_eq;
use crate::{Claim, End, OfRule, Pair, PairOptions, Result, Scenario, Setup};

/// What regions and queue pairs allow here.
const ALL: Access = Access::ALL_RDMA
    .union(Access::REMOTE_ATOMIC)
    .union(Access::MW_BIND);
const BOTH: [MwType; 2] = [MwType::Type1, MwType::Type2];
const WRITE: Access = Access::REMOTE_WRITE;
const LEN: u32 = 8;

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    bind::unbound_window_opens_nothing,
    bind::bind_gives_a_new_key_and_the_old_one_dies,
    bind::bind_of_no_bytes_unbinds_type_1,
    bind::work_request_binds_with_the_key_of_the_caller,
    bind::bind_mw_is_for_type_1,
    bind::bind_by_work_request_is_for_type_2,
    bind::binds_complete_in_order_and_before_what_is_behind_starts,
    bind::uc_queue_pair_binds,
    bind::ud_queue_pair_does_not_bind,
    ring::bind_on_a_full_queue_is_refused,
    ring::bind_has_any_place_of_the_queue,
    fault::region_must_allow_to_be_bound,
    fault::window_to_be_written_needs_a_region_that_may_be_written,
    fault::window_lies_within_its_region,
    fault::bind_mw_wants_one_domain,
    fault::window_of_type_2_and_queue_pair_share_a_domain,
    fault::window_region_and_queue_pair_share_a_domain,
    fault::bound_window_of_type_2_is_not_bound_again,
    fault::window_of_type_1_is_not_zero_based,
    fault::window_of_type_2_has_bytes,
    fault::failed_bind_leaves_the_window_as_it_was,
    fault::unsignaled_bind_that_fails_completes_as_declared,
    access::window_gives_rights_that_its_region_does_not,
    access::window_ends_where_it_was_bound,
    access::window_of_one_byte_opens_that_byte,
    access::nothing_opens_outside_the_region,
    access::window_of_type_1_opens_for_every_queue_pair_of_its_domain,
    access::window_of_type_2_opens_for_the_queue_pair_of_its_bind,
    access::zero_based_window_has_offsets,
    access::access_of_no_bytes_is_not_checked,
    inval::invalidated_window_opens_nothing_and_is_free,
    inval::window_of_type_1_is_not_invalidated_by_its_owner,
    inval::window_of_type_1_is_not_invalidated_by_a_peer,
    inval::send_invalidates_before_its_receive_completes,
    inval::completion_names_the_key_that_was_invalidated,
    inval::send_that_invalidates_what_is_no_window_fails,
    inval::send_does_not_invalidate_the_window_of_another_queue_pair,
    inval::window_is_invalidated_on_the_queue_pair_of_its_bind,
    life::deallocated_window_opens_nothing,
    life::region_with_a_window_is_not_deregistered,
    life::queue_pair_with_a_window_is_destroyed,
    life::domain_with_a_window_is_busy,
    life::device_has_the_types_that_it_says,
];

/// A pair whose B has windows.
fn pair<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    setup.pair(options())
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
fn sibling<'b>(setup: &'b Setup<'_>, pair: &Pair<'_>) -> Result<Pair<'b>> {
    let a = setup.sibling(&pair.a, options())?;
    let b = setup.sibling(&pair.b, options())?;
    setup.connect(a, b, options())
}

/// The bytes of an end's region from an offset on.
pub(crate) fn part(end: &End<'_>, offset: u64, length: u64, access: Access) -> MwBindInfo {
    part_of(end.mr, end.mem.addr + offset, length, access)
}

pub(crate) fn part_of(mr: Mr, addr: u64, length: u64, access: Access) -> MwBindInfo {
    MwBindInfo {
        mr,
        addr,
        length,
        access,
    }
}

/// Posts a bind on a queue pair, in the way of the window's type: the new key.
fn post_bind(
    setup: &Setup<'_>,
    end: &End<'_>,
    wr_id: u64,
    mw: Mw,
    info: MwBindInfo,
) -> Result<u32> {
    let attr = setup.query_mw(mw)?;
    match attr.mw_type {
        MwType::Type1 => setup.bind_mw(end.qp, mw, &MwBind::new(wr_id, info))?,
        _ => {
            let bind = SendWr::bind_mw(wr_id, mw, inc_rkey(attr.rkey), info);
            setup.post_send(end.qp, &[bind])?;
        }
    }
    Ok(setup.query_mw(mw)?.rkey)
}

/// Binds a window on a queue pair: the new key.
pub(crate) fn bind(setup: &Setup<'_>, end: &End<'_>, mw: Mw, info: MwBindInfo) -> Result<u32> {
    let rkey = post_bind(setup, end, 50, mw, info)?;
    let wc = setup.one_with(end.send_cq, WcStatus::Success, Claim::NONE)?;
    check_eq!(Claim::NONE, (wc.wr_id, wc.opcode), (50, WcOpcode::BindMw));
    Ok(rkey)
}

/// A window of B that shows `LEN` bytes at the landing place, for writing: itself and its key.
fn bound(setup: &Setup<'_>, b: &End<'_>, mw_type: MwType) -> Result<(Mw, u32)> {
    let mw = setup.alloc_mw(b.pd, mw_type)?;
    let rkey = bind(setup, b, mw, part(b, b.landing(), LEN.into(), WRITE))?;
    Ok((mw, rkey))
}

/// A writes to a place of B: with what it ends.
fn write(setup: &Setup<'_>, a: &End<'_>, remote: Remote) -> Result<WcStatus> {
    a.post(SendWr::rdma_write(60, &[a.sge(0, LEN)], remote))?;
    Ok(setup.one(a.send_cq)?.status)
}

/// The key opens the landing place of B: what A writes is there.
pub(crate) fn opens(
    setup: &Setup<'_>,
    Pair { a, b }: &Pair<'_>,
    rkey: u32,
    rule: &'static str,
) -> Result {
    let addr = b.mem.addr + b.landing();
    let tag = (rkey as u8).wrapping_add(77);
    b.fill_at(b.landing(), tag.wrapping_add(1), LEN)?;
    a.fill(tag, LEN)?;
    let status = write(setup, a, Remote { addr, rkey })?;
    check_eq!(
        rule,
        status,
        WcStatus::Success,
        "a write through the window"
    );
    b.expect_data(tag, LEN, rule)
}

/// The key opens nothing there; the connection is at its end then.
fn is_shut(setup: &Setup<'_>, pair: &Pair<'_>, rkey: u32, rule: &'static str) -> Result {
    let addr = pair.b.mem.addr + pair.b.landing();
    denies(setup, pair, Remote { addr, rkey }, rule)
}

/// A write to a place is refused; the connection is at its end then.
fn denies(
    setup: &Setup<'_>,
    Pair { a, b }: &Pair<'_>,
    remote: Remote,
    rule: &'static str,
) -> Result {
    let before = b.bytes(0, b.mem.length as usize).rule(rule)?;
    a.fill(99, LEN)?;
    let status = write(setup, a, remote)?;
    check_eq!(rule, status, WcStatus::RemAccessErr, "a write");
    let after = b.bytes(0, b.mem.length as usize).rule(rule)?;
    check_eq!(rule, after == before, true, "the memory is as it was");
    Ok(())
}
