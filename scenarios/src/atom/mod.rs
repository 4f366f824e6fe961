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

use verbs_api::{Access, RcParams, Remote, SendWr, Sge};

use crate::{End, Pair, PairOptions, Result, Scenario, Setup};

/// What regions and queue pairs allow here.
const ALL: Access = Access::ALL_RDMA.union(Access::REMOTE_ATOMIC);

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    value::fetch_and_add_wraps_around_and_gives_what_was_there,
    value::compare_and_swap_stores_if_equal_and_gives_what_was_there,
    value::result_is_in_the_order_of_the_machine,
    value::result_is_scattered_whole_or_not_at_all,
    value::device_does_what_its_attribute_says,
    rights::list_of_other_than_8_bytes_is_refused,
    rights::address_must_be_a_multiple_of_8_whatever_the_key,
    rights::responder_learns_of_an_invalid_request,
    rights::region_needs_the_right_for_atomics_alone,
    rights::queue_pair_needs_the_right_for_atomics_alone,
    rights::key_range_and_domain_are_checked,
    rights::result_needs_memory_that_may_be_written,
    order::sum_of_many_queue_pairs_is_exact,
    order::list_is_executed_in_order,
    order::fenced_send_carries_the_result,
    order::atomics_and_reads_beyond_the_depth_wait,
    order::atomics_count_in_the_depth_of_reads,
    order::responder_without_depth_refuses_atomics,
    order::retried_atomic_is_executed_once,
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

fn pair<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    setup.pair(options())
}

/// The number in the memory of an end, at an offset.
fn set(end: &End<'_>, setup: &Setup<'_>, offset: u64, value: u64) -> Result {
    Ok(setup.write_mr(end.mr, offset as usize, &value.to_ne_bytes())?)
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
