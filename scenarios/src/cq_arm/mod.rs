//! Arming a CQ: which completion makes an event, and how often.
//!
//! | file | holds |
//! |---|---|
//! | `kinds` | which completion satisfies which request |
//! | `messages` | what of a message matters |
//! | `request` | the life of a request |
//! | `handler` | handlers: events, polls, and no lost wake-up |

mod handler;
mod kinds;
mod messages;
mod request;

use verbs_api::{Arm, SendFlags, SendWr};

use crate::{Pair, Result, Scenario, Setup};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    request::any_cq_can_be_armed,
    request::fresh_cq_takes_both_kinds_of_request,
    request::event_names_its_cq_and_context,
    request::request_is_of_one_cq_only,
    request::request_is_of_the_cq_and_not_of_its_qps,
    request::new_cq_is_unarmed,
    request::request_is_one_shot,
    request::repeated_request_is_one_request,
    request::next_among_requests_takes_precedence_in_any_order,
    request::requests_and_receives_follow_the_table_in_any_order,
    request::firing_clears_the_kind_of_request,
    request::every_argument_but_zero_means_solicited,
    request::first_completion_makes_the_event_unless_moderation_says_otherwise,
    request::present_completions_satisfy_no_request,
    request::present_solicited_receive_does_not_satisfy_a_new_request,
    request::destroying_an_armed_cq_cancels_its_request,
    request::arming_what_is_no_cq_is_refused,
    request::arming_works_or_says_that_it_is_not_supported,
    request::request_beside_what_a_destroyed_qp_left_is_as_declared,
    request::arming_without_a_channel_is_as_declared,
    request::unread_events_are_kept_apart_or_merged_as_declared,
    request::lost_completion_is_known_by_its_cq_error,
    kinds::unarmed_cq_makes_no_event,
    kinds::next_fires_for_any_completion,
    kinds::solicited_is_upgraded_by_next,
    kinds::next_is_not_downgraded_by_solicited,
    kinds::receive_fires_solicited_if_its_message_asked_for_it,
    kinds::successful_sends_do_not_fire_solicited,
    kinds::send_errors_fire_solicited,
    kinds::receive_errors_fire_solicited,
    kinds::flushes_fire_solicited,
    kinds::every_error_status_fires_solicited,
    kinds::receiver_not_ready_fires_as_any_error,
    kinds::read_fires_next_only,
    kinds::atomic_fires_next_only,
    kinds::binds_fire_next_only_and_send_with_invalidate_as_a_send,
    kinds::send_with_immediate_fires_as_a_send,
    kinds::write_with_immediate_fires_as_a_send,
    kinds::uc_follows_the_same_table,
    kinds::uc_with_immediate_follows_the_same_table,
    kinds::ud_follows_the_same_table,
    kinds::ud_with_immediate_follows_the_same_table,
    kinds::xrc_follows_the_same_table,
    kinds::failures_fire_solicited_as_declared,
    messages::sender_chooses_the_solicited_bit_for_each_message,
    messages::solicited_request_on_a_send_cq_waits_for_an_error,
    messages::unsignaled_send_fires_only_if_it_fails,
    messages::solicited_bit_of_a_write_means_nothing,
    messages::solicited_bit_of_a_read_means_nothing,
    messages::message_of_many_packets_makes_one_event,
    messages::message_sent_again_fires_once,
    messages::dropped_datagram_fires_nothing,
    messages::message_without_a_receive_fires_nothing_on_uc,
    messages::message_with_a_gap_fires_nothing_on_uc,
    handler::one_event_for_many_completions,
    handler::request_made_after_the_last_arrival_waits,
    handler::event_does_not_oblige_to_poll,
    handler::completion_stays_until_it_is_polled,
    handler::completion_stays_through_resizes,
    handler::event_may_come_with_an_empty_cq,
    handler::polling_and_reading_neither_arm_nor_disarm,
    handler::unacknowledged_events_do_not_hold_up_requests,
    handler::safe_handler_misses_nothing_in_any_order,
    handler::safe_handler_misses_nothing_of_many_senders,
    handler::completion_beside_a_request_fires_or_is_seen,
];

const BOTH: [Arm; 2] = [Arm::NEXT, Arm::SOLICITED];

/// A message that does not ask for a solicited event.
const PLAIN: SendFlags = SendFlags::empty();

/// Posts a receive at B, and a message to it at A.
fn post(pair: &Pair<'_>, wr_id: u64, flags: SendFlags) -> Result {
    let (a, b) = (pair.a, pair.b);
    b.recv(wr_id, 8)?;
    a.post(SendWr::send(wr_id, &[a.sge(0, 8)]).flags(flags))
}

/// Brings a message from A to B, and polls both completions.
fn deliver(setup: &Setup<'_>, pair: &Pair<'_>, flags: SendFlags) -> Result {
    post(pair, 0, flags)?;
    setup.successes(pair.b.recv_cq, 1)?;
    setup.successes(pair.a.send_cq, 1)?;
    Ok(())
}

/// Leaves the receive of a message unpolled in the CQ, which is unarmed then. Its event says that
/// it really is there.
fn leave(setup: &Setup<'_>, pair: &Pair<'_>, wr_id: u64, flags: SendFlags) -> Result {
    setup.arm(pair.b.recv_cq, Arm::NEXT)?;
    post(pair, wr_id, flags)?;
    setup.event_and_ack(pair.b.channel)?;
    setup.successes(pair.a.send_cq, 1)?;
    Ok(())
}

/// Messages go from B to A.
fn reversed<'b>(pair: &Pair<'b>) -> Pair<'b> {
    Pair {
        a: pair.b,
        b: pair.a,
    }
}
