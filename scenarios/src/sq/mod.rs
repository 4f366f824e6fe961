//! Send queues: what they take, in which order it runs, and when it is done.
//!
//! | file | holds |
//! |---|---|
//! | `opcode` | which operation each transport has |
//! | `post` | what a post takes and answers; inline data |
//! | `order` | order of work, fences, when work is done |
//! | `batch` | sends that are posted as a whole or not at all |
//! | `apart` | queue pairs and threads beside each other |

mod apart;
mod batch;
mod opcode;
mod order;
mod post;

use verbs_api::Capabilities;

use crate::kind::IMM;
use crate::{Hazards, Scenario};

const BATCHES: Capabilities = Capabilities::BATCHES;

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::new(
        "sq.batch_runs_when_it_is_complete",
        &["SQ-26", "SQ-28"],
        batch::batch_runs_when_it_is_complete,
    )
    .needs(BATCHES.union(IMM).union(Capabilities::RDMA_READ)),
    Scenario::new(
        "sq.batch_binds_counts_and_invalidates",
        &["SQ-26", "SQ-27"],
        batch::batch_binds_counts_and_invalidates,
    )
    .needs(
        BATCHES
            .union(Capabilities::ATOMICS)
            .union(Capabilities::MW_TYPE_2),
    ),
    Scenario::new(
        "sq.aborted_batch_never_runs",
        &["SQ-26"],
        batch::aborted_batch_never_runs,
    )
    .needs(BATCHES),
    Scenario::new(
        "sq.batch_with_an_error_is_not_posted_at_all",
        &["SQ-27"],
        batch::batch_with_an_error_is_not_posted_at_all,
    )
    .needs(BATCHES),
    Scenario::new(
        "sq.batch_gathers_inline_data",
        &["SQ-08"],
        batch::batch_gathers_inline_data,
    )
    .needs(BATCHES),
    Scenario::new(
        "sq.batch_of_datagrams_names_their_destinations",
        &["SQ-26", "SQ-28"],
        batch::batch_of_datagrams_names_their_destinations,
    )
    .needs(BATCHES.union(Capabilities::UD)),
    Scenario::new(
        "sq.batch_has_only_operations_that_were_asked_for",
        &["SQ-28"],
        batch::batch_has_only_operations_that_were_asked_for,
    )
    .needs(BATCHES),
    Scenario::new(
        "sq.queue_pair_with_batches_of_what_it_has_not_is_refused",
        &["SQ-28"],
        batch::queue_pair_with_batches_of_what_it_has_not_is_refused,
    )
    .needs(BATCHES.union(Capabilities::UD)),
    Scenario::new(
        "sq.rc_qp_has_sends_writes_and_reads",
        &["SQ-18"],
        opcode::rc_qp_has_sends_writes_and_reads,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "sq.rc_qp_has_the_operations_of_its_table",
        &["SQ-18", "SQ-19"],
        opcode::rc_qp_has_the_operations_of_its_table,
    )
    .needs(IMM.union(Capabilities::RDMA_READ)),
    Scenario::new(
        "sq.uc_qp_has_the_operations_of_its_table",
        &["SQ-18", "SQ-19", "SQ-20"],
        opcode::uc_qp_has_the_operations_of_its_table,
    )
    .needs(IMM.union(Capabilities::UC)),
    Scenario::new(
        "sq.only_rc_qp_has_atomics",
        &["SQ-18", "SQ-20"],
        opcode::only_rc_qp_has_atomics,
    )
    .needs(
        Capabilities::UC
            .union(Capabilities::UD)
            .union(Capabilities::ATOMICS),
    ),
    Scenario::new(
        "sq.rc_qp_binds_and_invalidates",
        &["SQ-18"],
        opcode::rc_qp_binds_and_invalidates,
    )
    .needs(Capabilities::MW_TYPE_2),
    Scenario::new(
        "sq.uc_qp_binds_and_invalidates",
        &["SQ-18"],
        opcode::uc_qp_binds_and_invalidates,
    )
    .needs(Capabilities::UC.union(Capabilities::MW_TYPE_2)),
    Scenario::new(
        "sq.ud_qp_does_not_invalidate",
        &["SQ-18", "SQ-20"],
        opcode::ud_qp_does_not_invalidate,
    )
    .needs(Capabilities::UD.union(Capabilities::MW_TYPE_2)),
    Scenario::new(
        "sq.ud_qp_has_the_operations_of_its_table",
        &["SQ-18", "SQ-19", "SQ-20", "UD-11"],
        opcode::ud_qp_has_the_operations_of_its_table,
    )
    .needs(Capabilities::SEND_WITH_IMM.union(Capabilities::UD)),
    Scenario::new(
        "sq.xrc_sender_has_the_operations_of_its_table",
        &["SQ-18", "SQ-19"],
        opcode::xrc_sender_has_the_operations_of_its_table,
    )
    .needs(IMM.union(Capabilities::RDMA_READ).union(Capabilities::XRC)),
    Scenario::new(
        "sq.xrc_sender_has_atomics",
        &["SQ-18"],
        opcode::xrc_sender_has_atomics,
    )
    .needs(Capabilities::ATOMICS.union(Capabilities::XRC)),
    Scenario::new(
        "sq.xrc_sender_binds_and_invalidates",
        &["SQ-18", "MW-22"],
        opcode::xrc_sender_binds_and_invalidates,
    )
    .needs(Capabilities::MW_TYPE_2.union(Capabilities::XRC)),
    Scenario::new(
        "sq.queue_takes_as_much_at_once_as_it_says",
        &["SQ-04"],
        post::queue_takes_as_much_at_once_as_it_says,
    ),
    Scenario::new(
        "sq.waiting_queue_takes_as_much_as_it_says",
        &["SQ-04"],
        post::waiting_queue_takes_as_much_as_it_says,
    )
    .needs(Capabilities::RNR),
    Scenario::new(
        "sq.number_of_an_error_is_positive",
        &["SQ-02"],
        post::number_of_an_error_is_positive,
    ),
    Scenario::new(
        "sq.empty_list_is_posted_with_success",
        &["SQ-24"],
        post::empty_list_is_posted_with_success,
    ),
    Scenario::new(
        "sq.message_without_entries_has_no_bytes",
        &["SQ-07"],
        post::message_without_entries_has_no_bytes,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "sq.message_without_entries_has_no_bytes_on_uc",
        &["SQ-07"],
        post::message_without_entries_has_no_bytes_on_uc,
    )
    .needs(Capabilities::UC),
    Scenario::new(
        "sq.message_without_entries_has_no_bytes_on_ud",
        &["SQ-07"],
        post::message_without_entries_has_no_bytes_on_ud,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "sq.inline_data_is_taken_at_the_post",
        &["SQ-08"],
        post::inline_data_is_taken_at_the_post,
    ),
    Scenario::new(
        "sq.inline_data_is_taken_at_the_post_however_long_it_waits",
        &["SQ-08"],
        post::inline_data_is_taken_at_the_post_however_long_it_waits,
    )
    .needs(Capabilities::RNR),
    Scenario::new(
        "sq.inline_data_needs_no_key",
        &["SQ-08"],
        post::inline_data_needs_no_key,
    ),
    Scenario::new(
        "sq.memory_of_posted_work_is_the_devices",
        &["SQ-17"],
        post::memory_of_posted_work_is_the_devices,
    )
    .needs(Capabilities::LAB.union(Capabilities::RDMA_READ)),
    Scenario::new(
        "sq.work_of_all_kinds_and_lengths_keeps_its_order",
        &["SQ-11"],
        order::work_of_all_kinds_and_lengths_keeps_its_order,
    )
    .needs(IMM.union(Capabilities::RDMA_READ)),
    Scenario::new(
        "sq.sends_and_writes_keep_their_order",
        &["SQ-11"],
        order::sends_and_writes_keep_their_order,
    ),
    Scenario::new(
        "sq.uc_work_keeps_its_order",
        &["SQ-11"],
        order::uc_work_keeps_its_order,
    )
    .needs(Capabilities::UC),
    Scenario::new(
        "sq.ud_work_keeps_its_order",
        &["SQ-11"],
        order::ud_work_keeps_its_order,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "sq.fenced_work_waits_for_the_reads_before_it",
        &["SQ-12"],
        order::fenced_work_waits_for_the_reads_before_it,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "sq.unfenced_send_takes_what_was_there_or_what_is_read",
        &["SQ-13"],
        order::unfenced_send_takes_what_was_there_or_what_is_read,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "sq.segmented_send_is_refused_on_a_connection",
        &["SQ-18", "SQ-20"],
        opcode::segmented_send_is_refused_on_a_connection,
    ),
    Scenario::new(
        "sq.segmented_send_is_for_datagrams_of_devices_that_have_it",
        &["SQ-18", "SQ-20"],
        opcode::segmented_send_is_for_datagrams_of_devices_that_have_it,
    )
    .needs(Capabilities::UC.union(Capabilities::UD)),
    Scenario::new(
        "sq.fenced_work_waits_for_a_read_that_is_tried_again",
        &["SQ-12"],
        order::fenced_work_waits_for_a_read_that_is_tried_again,
    )
    .needs(Capabilities::LAB.union(Capabilities::RDMA_READ)),
    Scenario::new(
        "sq.written_data_is_there_when_a_later_send_is_received",
        &["SQ-14"],
        order::written_data_is_there_when_a_later_send_is_received,
    ),
    Scenario::new("sq.later_write_wins", &["SQ-14"], order::later_write_wins),
    Scenario::new(
        "sq.rc_success_means_that_the_data_is_there",
        &["SQ-15"],
        order::rc_success_means_that_the_data_is_there,
    ),
    Scenario::new(
        "sq.rc_send_without_an_answer_is_no_success",
        &["SQ-15"],
        order::rc_send_without_an_answer_is_no_success,
    )
    .needs(Capabilities::LAB),
    Scenario::new(
        "sq.uc_success_says_nothing_of_the_receiver",
        &["SQ-16"],
        order::uc_success_says_nothing_of_the_receiver,
    )
    .needs(Capabilities::UC),
    Scenario::new(
        "sq.ud_success_says_nothing_of_the_receiver",
        &["SQ-16"],
        order::ud_success_says_nothing_of_the_receiver,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "sq.memory_of_an_unreliable_send_is_free_when_it_is_done",
        &["SQ-17"],
        order::memory_of_an_unreliable_send_is_free_when_it_is_done,
    )
    .needs(Capabilities::UC.union(Capabilities::UD)),
    Scenario::new(
        "sq.posts_of_threads_all_complete_each_thread_in_its_order",
        &["SQ-25"],
        apart::posts_of_threads_all_complete_each_thread_in_its_order,
    )
    .needs(Capabilities::THREADS),
    Scenario::new(
        "sq.queue_pair_that_waits_holds_up_no_other",
        &["SQ-29"],
        apart::queue_pair_that_waits_holds_up_no_other,
    )
    .needs(Capabilities::RNR),
    Scenario::new(
        "sq.more_work_than_the_cq_has_room_for_can_be_posted",
        &["SQ-30"],
        apart::more_work_than_the_cq_has_room_for_can_be_posted,
    )
    .hazards(Hazards::MAY_HANG),
];
