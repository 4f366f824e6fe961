//! Resizing a CQ: what is kept, what is refused.
//!
//! | file | holds |
//! |---|---|
//! | `size` | which sizes there are, and that they are real |
//! | `kept` | completions, arming, events and all else that a resize keeps |
//! | `refused` | resizes that fail, and that they change nothing |

mod kept;
mod refused;
mod size;

use verbs_api::{Arm, Capabilities};

use crate::{Bench, Pair, Result, Scenario};

pub(crate) const SCENARIOS: &[Scenario] = &[
    resize(
        "cq_resize.empty_cq_takes_any_size",
        &["CQ-RESIZE-02", "CQ-RESIZE-08"],
        size::empty_cq_takes_any_size,
    ),
    resize(
        "cq_resize.limits_of_the_size_are_inclusive",
        &["CQ-RESIZE-11", "CQ-RESIZE-14"],
        size::limits_of_the_size_are_inclusive,
    ),
    resize(
        "cq_resize.larger_cq_holds_more_completions",
        &["CQ-RESIZE-01"],
        size::larger_cq_holds_more_completions,
    ),
    resize(
        "cq_resize.size_told_is_the_capacity",
        &["CQ-RESIZE-12"],
        size::size_told_is_the_capacity,
    ),
    resize(
        "cq_resize.example_of_2000_entries",
        &["CQ-RESIZE-17"],
        size::example_of_2000_entries,
    ),
    resize(
        "cq_resize.smaller_size_is_taken_or_left",
        &["CQ-RESIZE-09", "CQ-RESIZE-21"],
        size::smaller_size_is_taken_or_left,
    ),
    resize(
        "cq_resize.present_size_changes_nothing",
        &["CQ-RESIZE-28"],
        size::present_size_changes_nothing,
    ),
    resize(
        "cq_resize.shrunk_to_what_is_there_overruns_with_the_next",
        &["CQ-RESIZE-07"],
        size::shrunk_to_what_is_there_overruns_with_the_next,
    ),
    resize(
        "cq_resize.completions_survive_in_order",
        &["CQ-RESIZE-22", "CQ-RESIZE-03"],
        kept::completions_survive_in_order,
    ),
    resize(
        "cq_resize.partly_polled_ring_is_kept_at_every_index",
        &["CQ-RESIZE-29", "CQ-RESIZE-22"],
        kept::partly_polled_ring_is_kept_at_every_index,
    ),
    resize(
        "cq_resize.request_survives_with_its_type",
        &["CQ-RESIZE-24", "CQ-RESIZE-04"],
        kept::request_survives_with_its_type,
    ),
    resize(
        "cq_resize.armed_cq_with_completions_makes_no_event",
        &["CQ-RESIZE-25", "CQ-RESIZE-20"],
        kept::armed_cq_with_completions_makes_no_event,
    ),
    resize(
        "cq_resize.queued_event_stays_readable",
        &["CQ-RESIZE-30"],
        kept::queued_event_stays_readable,
    ),
    resize(
        "cq_resize.channel_context_vector_and_qps_stay",
        &["CQ-RESIZE-27"],
        kept::channel_context_vector_and_qps_stay,
    ),
    resize(
        "cq_resize.any_number_of_qps_may_use_the_cq",
        &["CQ-RESIZE-05"],
        kept::any_number_of_qps_may_use_the_cq,
    ),
    resize(
        "cq_resize.traffic_goes_on_through_resizes",
        &["CQ-RESIZE-23"],
        kept::traffic_goes_on_through_resizes,
    ),
    resize(
        "cq_resize.traffic_goes_on_while_a_thread_resizes",
        &["CQ-RESIZE-23"],
        kept::traffic_goes_on_while_a_thread_resizes,
    )
    .needs(Capabilities::THREADS),
    resize(
        "cq_resize.overrun_cq_does_not_get_back_what_it_lost",
        &["CQ-RESIZE-31"],
        kept::overrun_cq_does_not_get_back_what_it_lost,
    ),
    resize(
        "cq_resize.size_below_the_completions_present_is_refused",
        &["CQ-RESIZE-06", "CQ-RESIZE-14", "CQ-RESIZE-20"],
        refused::size_below_the_completions_present_is_refused,
    ),
    resize(
        "cq_resize.failure_changes_nothing",
        &["CQ-RESIZE-26", "CQ-RESIZE-13"],
        refused::failure_changes_nothing,
    ),
    resize(
        "cq_resize.no_memory_leaves_the_cq_as_it_was",
        &["CQ-RESIZE-15", "CQ-RESIZE-26", "CQ-RESIZE-13"],
        refused::no_memory_leaves_the_cq_as_it_was,
    )
    .needs(Capabilities::LAB),
    resize(
        "cq_resize.failure_does_not_disturb_traffic",
        &["CQ-RESIZE-18"],
        refused::failure_does_not_disturb_traffic,
    ),
    resize(
        "cq_resize.failure_does_not_tell_the_count",
        &["CQ-RESIZE-19"],
        refused::failure_does_not_tell_the_count,
    ),
    resize(
        "cq_resize.what_is_no_cq_is_refused",
        &["CQ-RESIZE-10"],
        refused::what_is_no_cq_is_refused,
    ),
    Scenario::new(
        "cq_resize.device_without_resize_says_so",
        &["CQ-RESIZE-16"],
        refused::device_without_resize_says_so,
    ),
];

/// A scenario for devices that can resize CQs.
const fn resize(
    id: &'static str,
    rules: &'static [&'static str],
    body: fn(&Bench<'_>) -> Result,
) -> Scenario {
    Scenario::new(id, rules, body).needs(Capabilities::RESIZE_CQ)
}

/// B's CQ of receives is armed so, or not at all: shown by a plain message, then a solicited one,
/// with `wr_id` and the next.
fn expect_armed(
    bench: &Bench<'_>,
    pair: &Pair<'_>,
    arm: Option<Arm>,
    wr_id: u64,
    rule: &'static str,
) -> Result {
    let solicited_fires = bench.behavior()?.recv_se_fires != Some(false);
    for (wr_id, solicited) in [(wr_id, false), (wr_id + 1, true)] {
        pair.b.recv(wr_id, 8)?;
        if solicited {
            pair.a.send_solicited(wr_id, 8)?;
        } else {
            pair.a.send(wr_id, 8)?;
        }
        bench.successes(pair.a.send_cq, 1)?;
        let asked_for = arm.is_some_and(|arm| arm.solicited_only() == solicited);
        if asked_for && (solicited_fires || !solicited) {
            bench.expect_event(pair.b.channel, pair.b.recv_cq, rule)?;
        }
        bench.no_event(pair.b.channel, rule)?;
    }
    Ok(())
}

/// Requests that can be made while there are completions, without an event for these.
fn requests_beside_completions(bench: &Bench<'_>) -> Result<Vec<Option<Arm>>> {
    let mut requests = vec![None, Some(Arm::SOLICITED)];
    if bench.behavior()?.arm_sees_unpolled == Some(false) {
        requests.push(Some(Arm::NEXT));
    }
    Ok(requests)
}
