//! The state machine of queue pairs: what runs in each state, and what changing it does.
//!
//! That a change which does not exist is refused, and what a post answers in each state, is bad
//! input's.
//!
//! | file | holds |
//! |---|---|
//! | `table` | which side runs in each state |
//! | `sqd` | SQD: sends wait, the rest goes on |
//! | `sqe` | SQE, and that RC never enters it |
//! | `change` | attributes that change, RESET, two changes at once |

mod change;
mod sqd;
mod sqe;
mod table;

use verbs_api::Capabilities;

use crate::Scenario;

const STEPS: Capabilities = Capabilities::MODIFY_CONNECT;
const UC: Capabilities = STEPS.union(Capabilities::UC);
const UD: Capabilities = STEPS.union(Capabilities::UD);
const XRC: Capabilities = STEPS.union(Capabilities::XRC);
const READ: Capabilities = STEPS.union(Capabilities::RDMA_READ);

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::new(
        "qp_state.rc_qp_runs_as_its_state_says",
        &[
            "QP-STATE-10",
            "QP-STATE-13",
            "QP-STATE-20",
            "QP-STATE-22",
            "QP-STATE-23",
        ],
        table::rc_qp_runs_as_its_state_says,
    )
    .needs(READ),
    Scenario::new(
        "qp_state.uc_qp_runs_as_its_state_says",
        &[
            "QP-STATE-10",
            "QP-STATE-13",
            "QP-STATE-20",
            "QP-STATE-22",
            "QP-STATE-23",
        ],
        table::uc_qp_runs_as_its_state_says,
    )
    .needs(UC),
    Scenario::new(
        "qp_state.ud_qp_runs_as_its_state_says",
        &[
            "QP-STATE-10",
            "QP-STATE-13",
            "QP-STATE-20",
            "QP-STATE-22",
            "QP-STATE-23",
        ],
        table::ud_qp_runs_as_its_state_says,
    )
    .needs(UD),
    Scenario::new(
        "qp_state.xrc_qp_runs_as_its_state_says",
        &[
            "QP-STATE-10",
            "QP-STATE-13",
            "QP-STATE-20",
            "QP-STATE-22",
            "QP-STATE-23",
        ],
        table::xrc_qp_runs_as_its_state_says,
    )
    .needs(XRC),
    Scenario::new(
        "qp_state.receives_posted_in_init_are_used_from_rtr_on",
        &["QP-STATE-20"],
        table::receives_posted_in_init_are_used_from_rtr_on,
    )
    .needs(STEPS),
    Scenario::new(
        "qp_state.qp_in_rtr_is_read_and_written",
        &["QP-STATE-22"],
        table::qp_in_rtr_is_read_and_written,
    )
    .needs(READ),
    Scenario::new(
        "qp_state.message_that_is_tried_again_finds_the_qp_ready",
        &["QP-STATE-23"],
        table::message_that_is_tried_again_finds_the_qp_ready,
    )
    .needs(STEPS.union(Capabilities::LAB)),
    Scenario::new(
        "qp_state.message_that_comes_in_init_is_kept_as_declared",
        &["QP-STATE-23"],
        table::message_that_comes_in_init_is_kept_as_declared,
    )
    .needs(STEPS.union(Capabilities::LAB)),
    Scenario::new(
        "qp_state.first_message_in_rtr_is_told_as_declared",
        &["QP-STATE-24", "ASYNC-08"],
        table::first_message_in_rtr_is_told_as_declared,
    )
    .needs(STEPS),
    Scenario::new(
        "qp_state.first_datagram_in_rtr_is_not_told",
        &["QP-STATE-24"],
        table::first_datagram_in_rtr_is_not_told,
    )
    .needs(UD),
    Scenario::new(
        "qp_state.sends_posted_in_sqd_wait_for_rts",
        &["QP-STATE-10"],
        sqd::sends_posted_in_sqd_wait_for_rts,
    )
    .needs(STEPS),
    Scenario::new(
        "qp_state.uc_sends_posted_in_sqd_wait_for_rts",
        &["QP-STATE-10"],
        sqd::uc_sends_posted_in_sqd_wait_for_rts,
    )
    .needs(UC),
    Scenario::new(
        "qp_state.ud_sends_posted_in_sqd_wait_for_rts",
        &["QP-STATE-10"],
        sqd::ud_sends_posted_in_sqd_wait_for_rts,
    )
    .needs(UD),
    Scenario::new(
        "qp_state.held_sends_run_before_later_ones",
        &["QP-STATE-10"],
        sqd::held_sends_run_before_later_ones,
    )
    .needs(STEPS),
    Scenario::new(
        "qp_state.work_under_way_is_finished_in_sqd",
        &["QP-STATE-10", "QP-STATE-12"],
        sqd::work_under_way_is_finished_in_sqd,
    )
    .needs(STEPS.union(Capabilities::LAB)),
    Scenario::new(
        "qp_state.idle_queue_is_drained_at_once",
        &["QP-STATE-12"],
        sqd::idle_queue_is_drained_at_once,
    )
    .needs(STEPS),
    Scenario::new(
        "qp_state.drained_queue_is_told_once_if_that_was_asked_for",
        &["QP-STATE-11", "ASYNC-16"],
        sqd::drained_queue_is_told_once_if_that_was_asked_for,
    )
    .needs(STEPS),
    Scenario::new(
        "qp_state.drained_queue_is_not_told_unasked",
        &["QP-STATE-11", "ASYNC-16"],
        sqd::drained_queue_is_not_told_unasked,
    )
    .needs(STEPS),
    Scenario::new(
        "qp_state.queue_is_told_to_be_drained_when_it_is",
        &["QP-STATE-11", "ASYNC-16"],
        sqd::queue_is_told_to_be_drained_when_it_is,
    )
    .needs(STEPS.union(Capabilities::LAB)),
    Scenario::new(
        "qp_state.peer_goes_on_while_the_queue_is_drained",
        &["QP-STATE-13"],
        sqd::peer_goes_on_while_the_queue_is_drained,
    )
    .needs(READ),
    Scenario::new(
        "qp_state.rc_attributes_change_in_sqd",
        &["QP-STATE-14"],
        sqd::rc_attributes_change_in_sqd,
    )
    .needs(STEPS),
    Scenario::new(
        "qp_state.uc_attributes_change_in_sqd",
        &["QP-STATE-14"],
        sqd::uc_attributes_change_in_sqd,
    )
    .needs(UC),
    Scenario::new(
        "qp_state.ud_attributes_change_in_sqd",
        &["QP-STATE-14"],
        sqd::ud_attributes_change_in_sqd,
    )
    .needs(UD),
    Scenario::new(
        "qp_state.failed_send_of_uc_leads_to_sqe",
        &["QP-STATE-15"],
        sqe::failed_send_of_uc_leads_to_sqe,
    )
    .needs(UC),
    Scenario::new(
        "qp_state.failed_send_of_ud_leads_to_sqe",
        &["QP-STATE-15", "UD-19"],
        sqe::failed_send_of_ud_leads_to_sqe,
    )
    .needs(UD),
    Scenario::new(
        "qp_state.uc_qp_comes_back_from_sqe",
        &["QP-STATE-16"],
        sqe::uc_qp_comes_back_from_sqe,
    )
    .needs(UC),
    Scenario::new(
        "qp_state.ud_qp_comes_back_from_sqe",
        &["QP-STATE-16"],
        sqe::ud_qp_comes_back_from_sqe,
    )
    .needs(UD),
    Scenario::new(
        "qp_state.failed_send_of_rc_leads_to_err",
        &["QP-STATE-17"],
        sqe::failed_send_of_rc_leads_to_err,
    ),
    Scenario::new(
        "qp_state.peer_of_a_failed_end_stays_until_its_own_request_fails",
        &["QP-STATE-31"],
        sqe::peer_of_a_failed_end_stays_until_its_own_request_fails,
    ),
    Scenario::new(
        "qp_state.reset_drops_what_was_posted",
        &["QP-STATE-25"],
        change::reset_drops_what_was_posted,
    )
    .needs(STEPS.union(Capabilities::RNR)),
    Scenario::new(
        "qp_state.reset_drops_receives_of_uc_and_ud",
        &["QP-STATE-25"],
        change::reset_drops_receives_of_uc_and_ud,
    )
    .needs(UC.union(UD)),
    Scenario::new(
        "qp_state.reset_qp_connects_again",
        &["QP-STATE-25"],
        change::reset_qp_connects_again,
    )
    .needs(STEPS),
    Scenario::new(
        "qp_state.rights_change_in_rts",
        &["QP-STATE-26"],
        change::rights_change_in_rts,
    )
    .needs(STEPS),
    Scenario::new(
        "qp_state.optional_attributes_change_in_rts",
        &["QP-STATE-26"],
        change::optional_attributes_change_in_rts,
    )
    .needs(STEPS),
    Scenario::new(
        "qp_state.optional_attributes_of_uc_and_ud_change_in_rts",
        &["QP-STATE-26"],
        change::optional_attributes_of_uc_and_ud_change_in_rts,
    )
    .needs(UC.union(UD)),
    Scenario::new(
        "qp_state.optional_attributes_of_xrc_change_in_rts",
        &["QP-STATE-26"],
        change::optional_attributes_of_xrc_change_in_rts,
    )
    .needs(XRC),
    Scenario::new(
        "qp_state.mtu_above_that_of_the_port_is_as_declared",
        &["QP-STATE-28"],
        change::mtu_above_that_of_the_port_is_as_declared,
    )
    .needs(STEPS),
    Scenario::new(
        "qp_state.read_depths_are_at_least_what_was_asked_for",
        &["QP-STATE-30"],
        change::read_depths_are_at_least_what_was_asked_for,
    )
    .needs(STEPS),
    Scenario::new(
        "qp_state.changes_of_two_threads_come_one_after_the_other",
        &["QP-STATE-33"],
        change::changes_of_two_threads_come_one_after_the_other,
    )
    .needs(STEPS.union(Capabilities::THREADS)),
];
