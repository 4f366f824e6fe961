//! Send queues: what they take, in which order it runs, and when it is done.
//!
//! | file | holds |
//! |---|---|
//! | `opcode` | which operation each transport has |
//! | `post` | what a post takes and answers; inline data |
//! | `order` | order of work, fences, when work is done |
//! | `owned` | whose the bytes of work are |
//! | `lists` | lists of several entries, and messages of no bytes |
//! | `batch` | sends that are posted as a whole or not at all |
//! | `apart` | queue pairs and threads side by side |

mod apart;
mod batch;
mod lists;
pub(crate) mod opcode;
mod order;
mod owned;
mod packet;
mod post;

use crate::Scenario;

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    batch::batch_runs_when_it_is_complete,
    batch::batch_binds_counts_and_invalidates,
    batch::batch_can_invalidate_at_the_peer,
    batch::aborted_batch_never_runs,
    batch::batch_with_an_error_is_not_posted_at_all,
    batch::batch_gathers_inline_data,
    batch::batch_takes_inline_data_at_the_post,
    batch::batch_of_datagrams_names_their_destinations,
    batch::batch_has_only_operations_that_were_asked_for,
    batch::queue_pair_with_batches_of_what_it_has_not_is_refused,
    batch::uc_qp_has_batches_of_what_its_transport_has,
    opcode::rc_qp_has_sends_writes_and_reads,
    opcode::rc_qp_has_the_operations_of_its_table,
    opcode::uc_qp_has_the_operations_of_its_table,
    opcode::only_rc_qp_has_atomics,
    opcode::rc_qp_binds_and_invalidates,
    opcode::uc_qp_binds_and_invalidates,
    opcode::ud_qp_does_not_invalidate,
    opcode::ud_qp_has_the_operations_of_its_table,
    opcode::xrc_sender_has_the_operations_of_its_table,
    opcode::xrc_sender_has_atomics,
    opcode::xrc_sender_binds_and_invalidates,
    post::queue_takes_as_much_at_once_as_it_says,
    post::waiting_queue_takes_as_much_as_it_says,
    post::number_of_an_error_is_positive,
    post::empty_list_is_posted_with_success,
    post::empty_list_is_posted_with_success_before_rts,
    post::destination_is_for_datagrams,
    post::message_without_entries_has_no_bytes,
    post::message_without_entries_has_no_bytes_on_uc,
    post::message_without_entries_has_no_bytes_on_ud,
    lists::each_entry_of_a_list_counts,
    lists::each_entry_of_a_list_counts_on_uc,
    lists::each_entry_of_a_list_counts_on_ud,
    lists::each_entry_of_a_list_counts_on_xrc,
    lists::each_entry_of_a_batch_counts,
    lists::each_entry_of_a_batch_counts_on_uc,
    lists::each_entry_of_a_batch_counts_on_ud,
    lists::each_entry_of_a_batch_counts_on_xrc,
    post::inline_data_is_taken_at_the_post,
    post::inline_data_is_taken_at_the_post_however_long_it_waits,
    post::inline_data_is_refused_without_its_flag,
    post::inline_data_needs_no_key,
    post::inline_data_is_gathered,
    post::inline_data_needs_no_region,
    post::memory_of_posted_work_is_the_devices,
    post::bytes_of_receives_are_the_devices_up_to_the_last,
    owned::memory_of_each_receive_and_send_is_the_devices,
    owned::memory_is_the_devices_whatever_was_done_before,
    owned::memory_stays_the_devices_when_another_queue_pair_goes,
    owned::batch_that_is_refused_leaves_what_was_posted,
    order::work_of_all_kinds_and_lengths_keeps_its_order,
    order::sends_and_writes_keep_their_order,
    order::uc_work_keeps_its_order,
    order::ud_work_keeps_its_order,
    order::fenced_work_waits_for_the_reads_before_it,
    order::unfenced_send_takes_what_was_there_or_what_is_read,
    opcode::segmented_send_is_refused_on_a_connection,
    opcode::segmented_send_is_for_datagrams_of_devices_that_have_it,
    order::fenced_work_waits_for_a_read_that_is_tried_again,
    order::written_data_is_there_when_a_later_send_is_received,
    order::later_write_wins,
    order::later_write_wins_where_it_lies_over_the_earlier,
    order::read_sees_what_was_written_before_it,
    order::rc_success_means_that_the_data_is_there,
    order::rc_send_without_an_answer_is_no_success,
    order::uc_success_says_nothing_of_the_receiver,
    order::ud_success_says_nothing_of_the_receiver,
    order::memory_of_an_unreliable_send_is_free_when_it_is_done,
    apart::posts_of_threads_all_complete_each_thread_in_its_order,
    apart::queue_pair_that_waits_holds_up_no_other,
    apart::more_work_than_the_cq_has_room_for_can_be_posted,
    packet::last_packet_has_what_the_message_has_once,
    packet::last_packet_of_uc_has_what_the_message_has_once,
    packet::reads_and_atomics_are_not_solicited,
    packet::last_packet_names_the_key_to_invalidate,
    packet::local_work_waits_for_what_is_not_acknowledged,
];
