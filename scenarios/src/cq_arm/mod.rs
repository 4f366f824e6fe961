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

use verbs_api::{Arm, Capabilities, SendFlags, SendWr};

use crate::{Bench, Hazards, Pair, Result, Scenario};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::new(
        "cq_arm.any_cq_can_be_armed",
        &["CQ-ARM-23", "CQ-ARM-28"],
        request::any_cq_can_be_armed,
    ),
    Scenario::new(
        "cq_arm.fresh_cq_takes_both_kinds_of_request",
        &["CQ-ARM-20", "CQ-ARM-18", "CQ-ARM-28"],
        request::fresh_cq_takes_both_kinds_of_request,
    ),
    Scenario::new(
        "cq_arm.event_names_its_cq_and_context",
        &["CQ-ARM-04"],
        request::event_names_its_cq_and_context,
    ),
    Scenario::new(
        "cq_arm.request_is_of_one_cq_only",
        &["CQ-ARM-01"],
        request::request_is_of_one_cq_only,
    ),
    Scenario::new(
        "cq_arm.request_is_of_the_cq_and_not_of_its_qps",
        &["CQ-ARM-52"],
        request::request_is_of_the_cq_and_not_of_its_qps,
    ),
    Scenario::new(
        "cq_arm.new_cq_is_unarmed",
        &["CQ-ARM-35"],
        request::new_cq_is_unarmed,
    ),
    Scenario::new(
        "cq_arm.request_is_one_shot",
        &["CQ-ARM-17", "CQ-ARM-02", "CQ-ARM-27"],
        request::request_is_one_shot,
    ),
    Scenario::new(
        "cq_arm.repeated_request_is_one_request",
        &["CQ-ARM-12", "CQ-ARM-13"],
        request::repeated_request_is_one_request,
    ),
    Scenario::new(
        "cq_arm.next_among_requests_takes_precedence_in_any_order",
        &["CQ-ARM-16", "CQ-ARM-12", "CQ-ARM-14", "CQ-ARM-15"],
        request::next_among_requests_takes_precedence_in_any_order,
    ),
    Scenario::new(
        "cq_arm.requests_and_receives_follow_the_table_in_any_order",
        &["CQ-ARM-16", "CQ-ARM-17", "CQ-ARM-36", "CQ-ARM-06"],
        request::requests_and_receives_follow_the_table_in_any_order,
    ),
    Scenario::new(
        "cq_arm.firing_clears_the_kind_of_request",
        &["CQ-ARM-36"],
        request::firing_clears_the_kind_of_request,
    ),
    Scenario::new(
        "cq_arm.every_argument_but_zero_means_solicited",
        &["CQ-ARM-19", "CQ-ARM-05", "CQ-ARM-26"],
        request::every_argument_but_zero_means_solicited,
    ),
    Scenario::new(
        "cq_arm.first_completion_makes_the_event_unless_moderation_says_otherwise",
        &["CQ-ARM-26"],
        request::first_completion_makes_the_event_unless_moderation_says_otherwise,
    )
    .needs(Capabilities::CQ_MODERATION),
    Scenario::new(
        "cq_arm.present_completions_satisfy_no_request",
        &["CQ-ARM-03"],
        request::present_completions_satisfy_no_request,
    ),
    Scenario::new(
        "cq_arm.present_solicited_receive_does_not_satisfy_a_new_request",
        &["CQ-ARM-25", "CQ-ARM-03"],
        request::present_solicited_receive_does_not_satisfy_a_new_request,
    ),
    Scenario::new(
        "cq_arm.destroying_an_armed_cq_cancels_its_request",
        &["CQ-ARM-50", "CQ-ARM-35"],
        request::destroying_an_armed_cq_cancels_its_request,
    ),
    Scenario::new(
        "cq_arm.arming_what_is_no_cq_is_refused",
        &["CQ-ARM-21", "CQ-ARM-20"],
        request::arming_what_is_no_cq_is_refused,
    )
    .hazards(Hazards::MAY_CRASH),
    Scenario::new(
        "cq_arm.arming_works_or_says_that_it_is_not_supported",
        &["CQ-ARM-54"],
        request::arming_works_or_says_that_it_is_not_supported,
    ),
    Scenario::new(
        "cq_arm.arming_without_a_channel_is_as_declared",
        &["CQ-ARM-48"],
        request::arming_without_a_channel_is_as_declared,
    ),
    Scenario::new(
        "cq_arm.unread_events_are_kept_apart_or_merged_as_declared",
        &["CQ-ARM-49"],
        request::unread_events_are_kept_apart_or_merged_as_declared,
    ),
    Scenario::new(
        "cq_arm.lost_completion_is_known_by_its_cq_error",
        &["CQ-ARM-51", "CQ-OVR-01"],
        request::lost_completion_is_known_by_its_cq_error,
    ),
    Scenario::new(
        "cq_arm.unarmed_cq_makes_no_event",
        &["CQ-ARM-40", "CQ-ARM-35"],
        kinds::unarmed_cq_makes_no_event,
    ),
    Scenario::new(
        "cq_arm.next_fires_for_any_completion",
        &["CQ-ARM-11", "CQ-ARM-42"],
        kinds::next_fires_for_any_completion,
    ),
    Scenario::new(
        "cq_arm.solicited_is_upgraded_by_next",
        &["CQ-ARM-14"],
        kinds::solicited_is_upgraded_by_next,
    ),
    Scenario::new(
        "cq_arm.next_is_not_downgraded_by_solicited",
        &["CQ-ARM-15"],
        kinds::next_is_not_downgraded_by_solicited,
    ),
    Scenario::new(
        "cq_arm.receive_fires_solicited_if_its_message_asked_for_it",
        &["CQ-ARM-06", "CQ-ARM-08"],
        kinds::receive_fires_solicited_if_its_message_asked_for_it,
    ),
    Scenario::new(
        "cq_arm.successful_sends_do_not_fire_solicited",
        &["CQ-ARM-24", "CQ-ARM-44", "CQ-ARM-43"],
        kinds::successful_sends_do_not_fire_solicited,
    ),
    Scenario::new(
        "cq_arm.send_errors_fire_solicited",
        &["CQ-ARM-09"],
        kinds::send_errors_fire_solicited,
    ),
    Scenario::new(
        "cq_arm.receive_errors_fire_solicited",
        &["CQ-ARM-10"],
        kinds::receive_errors_fire_solicited,
    ),
    Scenario::new(
        "cq_arm.flushes_fire_solicited",
        &["CQ-ARM-42", "CQ-ARM-09", "CQ-ARM-10"],
        kinds::flushes_fire_solicited,
    ),
    Scenario::new(
        "cq_arm.every_error_status_fires_solicited",
        &["CQ-ARM-09", "CQ-ARM-10"],
        kinds::every_error_status_fires_solicited,
    )
    .needs(Capabilities::LAB),
    Scenario::new(
        "cq_arm.receiver_not_ready_fires_as_any_error",
        &["CQ-ARM-09", "CQ-ARM-11", "CQ-ARM-14", "CQ-ARM-15"],
        kinds::receiver_not_ready_fires_as_any_error,
    )
    .needs(Capabilities::RNR),
    Scenario::new(
        "cq_arm.read_fires_next_only",
        &["CQ-ARM-11", "CQ-ARM-24", "CQ-ARM-43"],
        kinds::read_fires_next_only,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "cq_arm.atomic_fires_next_only",
        &["CQ-ARM-11", "CQ-ARM-24", "CQ-ARM-43"],
        kinds::atomic_fires_next_only,
    )
    .needs(Capabilities::ATOMICS),
    Scenario::new(
        "cq_arm.binds_fire_next_only_and_send_with_invalidate_as_a_send",
        &["CQ-ARM-11", "CQ-ARM-06", "CQ-ARM-08", "CQ-ARM-43"],
        kinds::binds_fire_next_only_and_send_with_invalidate_as_a_send,
    )
    .needs(Capabilities::MW_TYPE_2),
    Scenario::new(
        "cq_arm.send_with_immediate_fires_as_a_send",
        &["CQ-ARM-06", "CQ-ARM-08", "CQ-ARM-11", "CQ-ARM-44"],
        kinds::send_with_imm_fires_as_a_send,
    )
    .needs(Capabilities::SEND_WITH_IMM),
    Scenario::new(
        "cq_arm.write_with_immediate_fires_as_a_send",
        &["CQ-ARM-07", "CQ-ARM-08", "CQ-ARM-11", "CQ-ARM-44"],
        kinds::write_with_imm_fires_as_a_send,
    )
    .needs(Capabilities::WRITE_WITH_IMM),
    Scenario::new(
        "cq_arm.uc_follows_the_same_table",
        &["CQ-ARM-46", "CQ-ARM-06", "CQ-ARM-11", "CQ-ARM-42"],
        kinds::uc_follows_the_same_table,
    )
    .needs(Capabilities::UC),
    Scenario::new(
        "cq_arm.uc_with_immediate_follows_the_same_table",
        &["CQ-ARM-46", "CQ-ARM-06", "CQ-ARM-07"],
        kinds::uc_with_immediate_follows_the_same_table,
    )
    .needs(
        Capabilities::UC
            .union(Capabilities::SEND_WITH_IMM)
            .union(Capabilities::WRITE_WITH_IMM),
    ),
    Scenario::new(
        "cq_arm.ud_follows_the_same_table",
        &["CQ-ARM-46", "CQ-ARM-06", "CQ-ARM-11", "CQ-ARM-42"],
        kinds::ud_follows_the_same_table,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "cq_arm.ud_with_immediate_follows_the_same_table",
        &["CQ-ARM-46", "CQ-ARM-06"],
        kinds::ud_with_immediate_follows_the_same_table,
    )
    .needs(Capabilities::UD.union(Capabilities::SEND_WITH_IMM)),
    Scenario::new(
        "cq_arm.xrc_follows_the_same_table",
        &["CQ-ARM-46", "CQ-ARM-06", "CQ-ARM-11", "CQ-ARM-42"],
        kinds::xrc_follows_the_same_table,
    )
    .needs(
        Capabilities::XRC
            .union(Capabilities::SEND_WITH_IMM)
            .union(Capabilities::WRITE_WITH_IMM)
            .union(Capabilities::RNR),
    ),
    Scenario::new(
        "cq_arm.sender_chooses_the_solicited_bit_for_each_message",
        &["CQ-ARM-08", "CQ-ARM-06"],
        messages::sender_chooses_the_solicited_bit_for_each_message,
    ),
    Scenario::new(
        "cq_arm.solicited_request_on_a_send_cq_waits_for_an_error",
        &["CQ-ARM-24", "CQ-ARM-09"],
        messages::solicited_request_on_a_send_cq_waits_for_an_error,
    ),
    Scenario::new(
        "cq_arm.unsignaled_send_fires_only_if_it_fails",
        &["CQ-ARM-41"],
        messages::unsignaled_send_fires_only_if_it_fails,
    ),
    Scenario::new(
        "cq_arm.solicited_bit_of_a_write_means_nothing",
        &["CQ-ARM-43"],
        messages::solicited_bit_of_a_write_means_nothing,
    ),
    Scenario::new(
        "cq_arm.solicited_bit_of_a_read_means_nothing",
        &["CQ-ARM-43"],
        messages::solicited_bit_of_a_read_means_nothing,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "cq_arm.message_of_many_packets_makes_one_event",
        &["CQ-ARM-45", "CQ-ARM-02"],
        messages::message_of_many_packets_makes_one_event,
    ),
    Scenario::new(
        "cq_arm.message_sent_again_fires_once",
        &["CQ-ARM-45"],
        messages::message_sent_again_fires_once,
    )
    .needs(Capabilities::LAB),
    Scenario::new(
        "cq_arm.dropped_datagram_fires_nothing",
        &["CQ-ARM-47"],
        messages::dropped_datagram_fires_nothing,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "cq_arm.message_without_a_receive_fires_nothing_on_uc",
        &["CQ-ARM-47"],
        messages::message_without_a_receive_fires_nothing_on_uc,
    )
    .needs(Capabilities::UC),
    Scenario::new(
        "cq_arm.message_with_a_gap_fires_nothing_on_uc",
        &["CQ-ARM-47"],
        messages::message_with_a_gap_fires_nothing_on_uc,
    )
    .needs(Capabilities::UC.union(Capabilities::LAB)),
    Scenario::new(
        "cq_arm.one_event_for_many_completions",
        &["CQ-ARM-29", "CQ-ARM-32", "CQ-ARM-53"],
        handler::one_event_for_many_completions,
    ),
    Scenario::new(
        "cq_arm.request_made_after_the_last_arrival_waits",
        &["CQ-ARM-30", "CQ-ARM-32"],
        handler::request_made_after_the_last_arrival_waits,
    ),
    Scenario::new(
        "cq_arm.event_does_not_oblige_to_poll",
        &["CQ-ARM-33"],
        handler::event_does_not_oblige_to_poll,
    ),
    Scenario::new(
        "cq_arm.completion_stays_until_it_is_polled",
        &["CQ-ARM-34"],
        handler::completion_stays_until_it_is_polled,
    ),
    Scenario::new(
        "cq_arm.completion_stays_through_resizes",
        &["CQ-ARM-34"],
        handler::completion_stays_through_resizes,
    )
    .needs(Capabilities::RESIZE_CQ),
    Scenario::new(
        "cq_arm.event_may_come_with_an_empty_cq",
        &["CQ-ARM-38", "CQ-ARM-53"],
        handler::event_may_come_with_an_empty_cq,
    ),
    Scenario::new(
        "cq_arm.polling_and_reading_neither_arm_nor_disarm",
        &["CQ-ARM-39"],
        handler::polling_and_reading_neither_arm_nor_disarm,
    ),
    Scenario::new(
        "cq_arm.unacknowledged_events_do_not_hold_up_requests",
        &["CQ-ARM-39"],
        handler::unacknowledged_events_do_not_hold_up_requests,
    ),
    Scenario::new(
        "cq_arm.safe_handler_misses_nothing_in_any_order",
        &["CQ-ARM-31", "CQ-ARM-37"],
        handler::safe_handler_misses_nothing_in_any_order,
    )
    .hazards(Hazards::MAY_HANG),
    Scenario::new(
        "cq_arm.safe_handler_misses_nothing_of_many_senders",
        &["CQ-ARM-31", "CQ-ARM-37"],
        handler::safe_handler_misses_nothing_of_many_senders,
    )
    .needs(Capabilities::THREADS)
    .hazards(Hazards::MAY_HANG),
    Scenario::new(
        "cq_arm.completion_beside_a_request_fires_or_is_seen",
        &["CQ-ARM-37"],
        handler::completion_beside_a_request_fires_or_is_seen,
    )
    .needs(Capabilities::THREADS),
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
fn deliver(bench: &Bench<'_>, pair: &Pair<'_>, flags: SendFlags) -> Result {
    post(pair, 0, flags)?;
    bench.successes(pair.b.recv_cq, 1)?;
    bench.successes(pair.a.send_cq, 1)?;
    Ok(())
}

/// Leaves the receive of a message unpolled in the CQ, which is unarmed then. Its event says that
/// it really is there.
fn leave(bench: &Bench<'_>, pair: &Pair<'_>, wr_id: u64, flags: SendFlags) -> Result {
    bench.arm(pair.b.recv_cq, Arm::NEXT)?;
    post(pair, wr_id, flags)?;
    bench.event_and_ack(pair.b.channel)?;
    bench.successes(pair.a.send_cq, 1)?;
    Ok(())
}

/// Messages go from B to A.
fn reversed<'b>(pair: &Pair<'b>) -> Pair<'b> {
    Pair {
        a: pair.b,
        b: pair.a,
    }
}
