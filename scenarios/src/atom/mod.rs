//! Atomics.
//!
//! | file | holds |
//! |---|---|
//! | `value` | what is stored, and what comes back |
//! | `rights` | what is refused: length, alignment, keys, rights |
//! | `order` | atomics among others: depth, fence, many queue pairs, retries |

mod order;
mod rights;
mod value;

use verbs_api::{Access, Capabilities, RcParams, Remote, SendWr, Sge};

use crate::{Bench, End, Pair, PairOptions, Result, Scenario};

const ATOMICS: Capabilities = Capabilities::ATOMICS;
/// What regions and queue pairs allow here.
const ALL: Access = Access::ALL_RDMA.union(Access::REMOTE_ATOMIC);

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::new(
        "atom.fetch_and_add_wraps_around_and_gives_what_was_there",
        &["ATOM-01", "WC-04", "WC-09"],
        value::fetch_and_add_wraps_around_and_gives_what_was_there,
    )
    .needs(ATOMICS),
    Scenario::new(
        "atom.compare_and_swap_stores_if_equal_and_gives_what_was_there",
        &["ATOM-02", "WC-04", "WC-09"],
        value::compare_and_swap_stores_if_equal_and_gives_what_was_there,
    )
    .needs(ATOMICS),
    Scenario::new(
        "atom.result_is_in_the_order_of_the_machine",
        &["ATOM-12"],
        value::result_is_in_the_order_of_the_machine,
    )
    .needs(ATOMICS),
    Scenario::new(
        "atom.result_is_scattered_whole_or_not_at_all",
        &["ATOM-11"],
        value::result_is_scattered_whole_or_not_at_all,
    )
    .needs(ATOMICS),
    Scenario::new(
        "atom.device_does_what_its_attribute_says",
        &["ATOM-10"],
        value::device_does_what_its_attribute_says,
    ),
    Scenario::new(
        "atom.list_of_other_than_8_bytes_is_refused",
        &["ATOM-03"],
        rights::list_of_other_than_8_bytes_is_refused,
    )
    .needs(ATOMICS),
    Scenario::new(
        "atom.address_must_be_a_multiple_of_8_whatever_the_key",
        &["ATOM-04", "WC-27"],
        rights::address_must_be_a_multiple_of_8_whatever_the_key,
    )
    .needs(ATOMICS),
    Scenario::new(
        "atom.responder_learns_of_an_invalid_request",
        &["ASYNC-14"],
        rights::responder_learns_of_an_invalid_request,
    )
    .needs(ATOMICS),
    Scenario::new(
        "atom.region_needs_the_right_for_atomics_alone",
        &["ATOM-05"],
        rights::region_needs_the_right_for_atomics_alone,
    )
    .needs(ATOMICS),
    Scenario::new(
        "atom.queue_pair_needs_the_right_for_atomics_alone",
        &["ATOM-05"],
        rights::queue_pair_needs_the_right_for_atomics_alone,
    )
    .needs(ATOMICS),
    Scenario::new(
        "atom.key_range_and_domain_are_checked",
        &["ATOM-06", "WC-28"],
        rights::key_range_and_domain_are_checked,
    )
    .needs(ATOMICS),
    Scenario::new(
        "atom.result_needs_memory_that_may_be_written",
        &["ATOM-07"],
        rights::result_needs_memory_that_may_be_written,
    )
    .needs(ATOMICS),
    Scenario::new(
        "atom.sum_of_many_queue_pairs_is_exact",
        &["ATOM-08"],
        order::sum_of_many_queue_pairs_is_exact,
    )
    .needs(ATOMICS),
    Scenario::new(
        "atom.list_is_executed_in_order",
        &["SQ-14"],
        order::list_is_executed_in_order,
    )
    .needs(ATOMICS),
    Scenario::new(
        "atom.fenced_send_carries_the_result",
        &["SQ-12"],
        order::fenced_send_carries_the_result,
    )
    .needs(ATOMICS),
    Scenario::new(
        "atom.atomics_and_reads_beyond_the_depth_wait",
        &["ATOM-13", "RDMA-18"],
        order::atomics_and_reads_beyond_the_depth_wait,
    )
    .needs(ATOMICS.union(Capabilities::RDMA_READ)),
    Scenario::new(
        "atom.atomics_count_in_the_depth_of_reads",
        &["ATOM-13", "RDMA-18"],
        order::atomics_count_in_the_depth_of_reads,
    )
    .needs(
        ATOMICS
            .union(Capabilities::RDMA_READ)
            .union(Capabilities::LAB),
    ),
    Scenario::new(
        "atom.responder_without_depth_refuses_atomics",
        &["RDMA-19"],
        order::responder_without_depth_refuses_atomics,
    )
    .needs(ATOMICS.union(Capabilities::MODIFY_CONNECT)),
    Scenario::new(
        "atom.retried_atomic_is_executed_once",
        &["ATOM-09", "TMR-09"],
        order::retried_atomic_is_executed_once,
    )
    .needs(ATOMICS.union(Capabilities::LAB)),
];

/// What the ends allow each other: all.
fn options() -> PairOptions {
    PairOptions {
        access: ALL,
        rc: RcParams {
            access: ALL,
            ..RcParams::default()
        },
        ..PairOptions::default()
    }
}

fn pair<'b>(bench: &'b Bench<'_>) -> Result<Pair<'b>> {
    bench.pair(options())
}

/// The number in the memory of an end, at an offset.
fn set(end: &End<'_>, bench: &Bench<'_>, offset: u64, value: u64) -> Result {
    Ok(bench.write_mr(end.mr, offset as usize, &value.to_ne_bytes())?)
}

fn get(end: &End<'_>, offset: u64) -> Result<u64> {
    let bytes = end.bytes(offset, 8)?;
    let mut value = [0; 8];
    value.copy_from_slice(&bytes);
    Ok(u64::from_ne_bytes(value))
}

/// Both kinds of atomics: they store what is there plus one, if it is `value`.
fn both<'s>(sges: &'s [Sge], remote: Remote, value: u64) -> [(&'static str, SendWr<'s>); 2] {
    let next = value.wrapping_add(1);
    [
        ("fetch and add", SendWr::fetch_and_add(1, sges, remote, 1)),
        (
            "compare and swap",
            SendWr::compare_and_swap(1, sges, remote, value, next),
        ),
    ]
}
