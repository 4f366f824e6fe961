//! The state machine of queue pairs: what runs in each state, and what changing it does.
//!
//! `bad_input` checks that changes that do not exist are refused, and what a post answers in each
//! state.
//!
//! | file | holds |
//! |---|---|
//! | `table` | which side runs in each state |
//! | `sqd` | SQD: sends wait, the rest goes on |
//! | `sqe` | SQE, and that RC never enters it |
//! | `again` | a second life after RESET, and the end in ERR |
//! | `mask` | the attributes that a change names, and those that it does not |
//! | `change` | attributes that change, RESET, two changes at once |

mod again;
mod change;
mod mask;
mod sqd;
mod sqe;
mod table;

use crate::Scenario;

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    table::rc_qp_runs_as_its_state_says,
    table::uc_qp_runs_as_its_state_says,
    table::ud_qp_runs_as_its_state_says,
    table::xrc_qp_runs_as_its_state_says,
    table::receives_posted_in_init_are_used_from_rtr_on,
    table::qp_in_rtr_is_read_and_written,
    table::message_that_is_tried_again_finds_the_qp_ready,
    table::message_that_comes_in_init_is_kept_as_declared,
    table::first_message_in_rtr_is_told_as_declared,
    table::first_datagram_in_rtr_is_not_told,
    sqd::sends_posted_in_sqd_wait_for_rts,
    sqd::uc_sends_posted_in_sqd_wait_for_rts,
    sqd::ud_sends_posted_in_sqd_wait_for_rts,
    sqd::held_sends_run_before_later_ones,
    sqd::work_under_way_is_finished_in_sqd,
    sqd::idle_queue_is_drained_at_once,
    sqd::drained_queue_is_told_once_if_that_was_asked_for,
    sqd::drained_queue_is_not_told_unasked,
    sqd::queue_is_told_to_be_drained_when_it_is,
    sqd::peer_goes_on_while_the_queue_is_drained,
    sqd::rc_attributes_change_in_sqd,
    sqd::uc_attributes_change_in_sqd,
    sqd::ud_attributes_change_in_sqd,
    sqe::failed_send_of_uc_leads_to_sqe,
    sqe::failed_send_of_ud_leads_to_sqe,
    sqe::uc_qp_comes_back_from_sqe,
    sqe::ud_qp_comes_back_from_sqe,
    sqe::failed_send_of_rc_leads_to_err,
    sqe::peer_of_a_failed_end_stays_until_its_own_request_fails,
    change::reset_drops_what_was_posted,
    change::reset_drops_receives_of_uc_and_ud,
    change::reset_qp_connects_again,
    change::rights_change_in_rts,
    change::optional_attributes_change_in_rts,
    change::optional_attributes_of_uc_and_ud_change_in_rts,
    change::optional_attributes_of_xrc_change_in_rts,
    change::mtu_above_that_of_the_port_is_as_declared,
    change::read_depths_are_at_least_what_was_asked_for,
    change::changes_of_two_threads_come_one_after_the_other,
    mask::attributes_that_are_not_named_are_not_looked_at,
    mask::datagram_attributes_that_are_not_named_are_not_looked_at,
    mask::partition_stays_until_another_is_named,
    mask::migration_state_is_told_as_it_was_set,
    again::no_timer_of_before_strikes,
    again::no_wait_of_before_holds_up,
    again::answers_of_before_are_for_nothing,
    again::message_of_before_is_not_gone_on_with,
    again::atomic_of_before_is_not_answered_again,
    again::atomic_of_before_that_comes_late_gets_no_answer,
    again::response_of_before_is_for_no_work_of_now,
    again::packet_of_before_makes_no_write_shorter_or_longer,
    again::no_timer_strikes_in_error,
    again::packet_that_was_kept_goes_with_the_reset,
    again::each_connection_is_told_as_the_first,
    again::wish_to_be_told_goes_with_the_reset,
    again::nothing_leaves_in_error,
    again::state_is_told_alike_and_draining_in_sqd_alone,
    again::event_of_a_queue_pair_is_acknowledged_once,
];
