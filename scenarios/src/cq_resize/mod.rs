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

use verbs_api::Arm;

use crate::{Pair, Result, Scenario, Setup};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    size::empty_cq_takes_any_size,
    size::limits_of_the_size_are_inclusive,
    size::larger_cq_holds_more_completions,
    size::size_told_is_the_capacity,
    size::example_of_2000_entries,
    size::smaller_size_is_taken_or_left,
    size::present_size_changes_nothing,
    size::shrunk_to_what_is_there_overruns_with_the_next,
    kept::completions_survive_in_order,
    kept::partly_polled_ring_is_kept_at_every_index,
    kept::request_survives_with_its_type,
    kept::armed_cq_with_completions_makes_no_event,
    kept::queued_event_stays_readable,
    kept::channel_context_vector_and_qps_stay,
    kept::any_number_of_qps_may_use_the_cq,
    kept::traffic_goes_on_through_resizes,
    kept::traffic_goes_on_while_a_thread_resizes,
    kept::overrun_cq_does_not_get_back_what_it_lost,
    refused::size_below_the_completions_present_is_refused,
    refused::failure_changes_nothing,
    refused::no_memory_leaves_the_cq_as_it_was,
    refused::failure_does_not_disturb_traffic,
    refused::failure_does_not_tell_the_count,
    refused::what_is_no_cq_is_refused,
    refused::device_without_resize_says_so,
];

/// B's CQ of receives is armed so, or not at all: shown by a plain message, then a solicited one,
/// with `wr_id` and the next.
fn expect_armed(
    setup: &Setup<'_>,
    pair: &Pair<'_>,
    arm: Option<Arm>,
    wr_id: u64,
    rule: &'static str,
) -> Result {
    let solicited_fires = setup.behavior()?.recv_se_fires != Some(false);
    for (wr_id, solicited) in [(wr_id, false), (wr_id + 1, true)] {
        pair.b.recv(wr_id, 8)?;
        if solicited {
            pair.a.send_solicited(wr_id, 8)?;
        } else {
            pair.a.send(wr_id, 8)?;
        }
        setup.successes(pair.a.send_cq, 1)?;
        let asked_for = arm.is_some_and(|arm| arm.solicited_only() == solicited);
        if asked_for && (solicited_fires || !solicited) {
            setup.expect_event(pair.b.channel, pair.b.recv_cq, rule)?;
        }
        setup.no_event(pair.b.channel, rule)?;
    }
    Ok(())
}

/// Requests that can be made while there are completions, without an event for these.
fn requests_beside_completions(setup: &Setup<'_>) -> Result<Vec<Option<Arm>>> {
    let mut requests = vec![None, Some(Arm::SOLICITED)];
    if setup.behavior()?.arm_sees_unpolled == Some(false) {
        requests.push(Some(Arm::NEXT));
    }
    Ok(requests)
}
