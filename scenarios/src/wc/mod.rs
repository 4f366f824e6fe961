//! What stands in a work completion, how many there are, and what each status means.
//!
//! | file | holds |
//! |---|---|
//! | `fields` | the fields of completions |
//! | `unreliable` | what datagrams and unreliable connections add to them |
//! | `count` | which work gives a completion, and how many |
//! | `status` | what leads to each status |

mod count;
mod fields;
mod status;
mod unreliable;

use verbs_api::Capabilities;

use crate::kind::{IMM, Kind};
use crate::{Hazards, Scenario};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::new(
        "wc.wr_id_comes_back_in_all_its_bits",
        &["WC-02"],
        fields::wr_id_comes_back_in_all_its_bits,
    ),
    Scenario::new(
        "wc.qp_num_tells_queue_pairs_on_one_cq_apart",
        &["WC-03"],
        fields::qp_num_tells_queue_pairs_on_one_cq_apart,
    ),
    Scenario::new(
        "wc.opcode_names_what_was_posted",
        &["WC-04", "WC-05"],
        fields::opcode_names_what_was_posted,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "wc.opcode_names_what_was_posted_with_immediate",
        &["WC-04", "WC-05"],
        fields::opcode_names_what_was_posted_with_immediate,
    )
    .needs(IMM),
    Scenario::new(
        "wc.byte_len_of_a_receive_is_that_of_the_message",
        &["WC-06"],
        fields::byte_len_of_a_receive_is_that_of_the_message,
    ),
    Scenario::new(
        "wc.byte_len_of_a_receive_is_that_of_the_message_on_uc",
        &["WC-06"],
        unreliable::byte_len_of_a_receive_is_that_of_the_message,
    )
    .needs(Capabilities::UC),
    Scenario::new(
        "wc.byte_len_of_a_datagram_counts_the_room_for_the_grh",
        &["WC-07", "UD-04"],
        unreliable::byte_len_of_a_datagram_counts_the_room_for_the_grh,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "wc.byte_len_of_a_write_with_immediate_is_that_of_the_write",
        &["WC-08"],
        fields::byte_len_of_a_write_with_immediate_is_that_of_the_write,
    )
    .needs(IMM),
    Scenario::new(
        "wc.byte_len_of_a_read_is_that_of_the_read",
        &["WC-09"],
        fields::byte_len_of_a_read_is_that_of_the_read,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "wc.byte_len_of_other_sends_is_as_declared",
        &["WC-09"],
        fields::byte_len_of_other_sends_is_as_declared,
    ),
    Scenario::new(
        "wc.immediate_data_is_delivered_bit_for_bit",
        &["WC-10", "WC-11", "SQ-19"],
        fields::immediate_data_is_delivered_bit_for_bit,
    )
    .needs(IMM),
    Scenario::new(
        "wc.immediate_data_is_delivered_bit_for_bit_on_uc",
        &["WC-10", "WC-11", "SQ-19"],
        unreliable::immediate_data_is_delivered_bit_for_bit_on_uc,
    )
    .needs(IMM.union(Capabilities::UC)),
    Scenario::new(
        "wc.immediate_data_is_delivered_bit_for_bit_on_ud",
        &["WC-10", "WC-11", "SQ-19"],
        unreliable::immediate_data_is_delivered_bit_for_bit_on_ud,
    )
    .needs(Capabilities::SEND_WITH_IMM.union(Capabilities::UD)),
    Scenario::new(
        "wc.src_qp_names_the_sender_of_a_datagram",
        &["WC-13"],
        unreliable::src_qp_names_the_sender_of_a_datagram,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "wc.grh_flag_is_set_on_datagrams_with_a_grh",
        &["WC-14"],
        unreliable::grh_flag_is_set_on_datagrams_with_a_grh,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "wc.grh_flag_of_a_connected_receive_is_as_declared",
        &["WC-14"],
        fields::grh_flag_of_a_connected_receive_is_as_declared,
    ),
    Scenario::new(
        "wc.datagram_says_which_path_it_took",
        &["WC-15"],
        unreliable::datagram_says_which_path_it_took,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "wc.service_level_of_a_datagram_over_ethernet_is_as_declared",
        &["WC-15"],
        unreliable::service_level_of_a_datagram_over_ethernet_is_as_declared,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "wc.vendor_err_of_a_simulated_success_is_zero",
        &["WC-16"],
        fields::vendor_err_of_a_simulated_success_is_zero,
    )
    .needs(Capabilities::LAB),
    Scenario::new(
        "wc.failure_names_its_work_request_and_qp",
        &["WC-01", "WC-03"],
        fields::failure_names_its_work_request_and_qp,
    ),
    Scenario::new(
        "wc.scatter_gather_lists_are_used_in_their_order",
        &["WC-35"],
        fields::scatter_gather_lists_are_used_in_their_order,
    )
    .hazards(Hazards::MAY_HANG.union(Hazards::MAY_CRASH)),
    Scenario::new(
        "wc.read_scatters_in_the_order_of_its_list",
        &["WC-35"],
        fields::read_scatters_in_the_order_of_its_list,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "wc.unsignaled_failure_gives_a_completion",
        &["WC-17"],
        count::unsignaled_failure_gives_a_completion,
    ),
    Scenario::new(
        "wc.unsignaled_success_gives_no_completion",
        &["WC-18"],
        count::unsignaled_success_gives_no_completion,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "wc.unsignaled_success_gives_no_completion_on_uc",
        &["WC-18"],
        count::unsignaled_success_gives_no_completion_on_uc,
    )
    .needs(Capabilities::UC),
    Scenario::new(
        "wc.unsignaled_success_gives_no_completion_on_ud",
        &["WC-18"],
        count::unsignaled_success_gives_no_completion_on_ud,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "wc.every_send_completes_where_all_are_signaled",
        &["WC-19"],
        count::every_send_completes_where_all_are_signaled,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "wc.every_consumed_receive_completes",
        &["WC-20"],
        count::every_consumed_receive_completes,
    ),
    Scenario::new(
        "wc.no_work_request_completes_twice",
        &["WC-21", "WC-17", "WC-18"],
        count::no_work_request_completes_twice,
    ),
    Scenario::new(
        "wc.first_failure_has_its_status_and_the_rest_is_flushed",
        &["WC-33"],
        count::first_failure_has_its_status_and_the_rest_is_flushed,
    ),
    Scenario::new(
        "wc.success_stands_for_all_work_before_it",
        &["WC-34"],
        count::success_stands_for_all_work_before_it,
    ),
    Scenario::new(
        "wc.no_success_behind_an_unsignaled_failure",
        &["WC-34", "WC-33"],
        count::no_success_behind_an_unsignaled_failure,
    ),
    Scenario::new(
        "wc.receive_too_small_is_a_length_error",
        &["WC-22", "WC-27"],
        status::receive_too_small_is_a_length_error,
    ),
    Scenario::new(
        "wc.datagram_above_the_mtu_is_a_length_error",
        &["WC-22", "UD-10"],
        status::datagram_above_the_mtu_is_a_length_error,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "wc.read_without_read_depth_is_as_declared",
        &["WC-23", "RDMA-20"],
        status::read_without_read_depth_is_as_declared,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "wc.address_handle_of_another_pd_is_an_operation_error",
        &["WC-23", "UD-12"],
        status::address_handle_of_another_pd_is_an_operation_error,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "wc.send_from_memory_with_a_bad_key_is_a_protection_error",
        &["WC-24"],
        status::send_from_memory_with_a_bad_key_is_a_protection_error,
    ),
    Scenario::new(
        "wc.receive_into_memory_with_a_bad_key_is_a_protection_error",
        &["WC-24", "WC-29"],
        status::receive_into_memory_with_a_bad_key_is_a_protection_error,
    ),
    Scenario::new(
        "wc.work_of_a_qp_in_error_is_flushed",
        &["WC-25"],
        status::work_of_a_qp_in_error_is_flushed,
    ),
    Scenario::new(
        "wc.write_with_a_bad_rkey_is_a_remote_access_error",
        &["WC-28"],
        status::write_with_a_bad_rkey_is_a_remote_access_error,
    ),
    Scenario::new(
        "wc.read_with_a_bad_rkey_is_a_remote_access_error",
        &["WC-28"],
        status::read_with_a_bad_rkey_is_a_remote_access_error,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "wc.silent_peer_uses_up_the_retries",
        &["WC-30"],
        status::silent_peer_uses_up_the_retries,
    ),
    Scenario::new(
        "wc.peer_without_receives_uses_up_the_rnr_retries",
        &["WC-31"],
        status::peer_without_receives_uses_up_the_rnr_retries,
    )
    .needs(Capabilities::RNR),
    Scenario::new(
        "wc.every_status_has_a_text_of_its_own",
        &["WC-32"],
        status::every_status_has_a_text_of_its_own,
    ),
];
