//! The fields of a work completion, the number of completions, and the meaning of each status.
//!
//! | file | holds |
//! |---|---|
//! | `fields` | the fields of completions |
//! | `every` | every field, on each transport and from each kind of queue |
//! | `unreliable` | what datagrams and unreliable connections add to them |
//! | `count` | which work gives a completion, and how many |
//! | `status` | what leads to each status |

mod count;
mod every;
mod fields;
mod status;
mod unreliable;

use crate::Scenario;
use crate::kind::Kind;

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    fields::wr_id_comes_back_in_all_its_bits,
    fields::qp_num_tells_queue_pairs_on_one_cq_apart,
    fields::opcode_names_what_was_posted,
    fields::opcode_names_what_was_posted_with_immediate,
    fields::byte_len_of_a_receive_is_that_of_the_message,
    unreliable::byte_len_of_a_receive_is_that_of_the_message_on_uc,
    unreliable::byte_len_of_a_datagram_counts_the_room_for_the_grh,
    fields::byte_len_of_a_write_with_immediate_is_that_of_the_write,
    fields::byte_len_of_a_read_is_that_of_the_read,
    fields::byte_len_of_other_sends_is_as_declared,
    fields::immediate_data_is_delivered_bit_for_bit,
    unreliable::immediate_data_is_delivered_bit_for_bit_on_uc,
    unreliable::immediate_data_is_delivered_bit_for_bit_on_ud,
    unreliable::src_qp_names_the_sender_of_a_datagram,
    unreliable::grh_flag_is_set_on_datagrams_with_a_grh,
    fields::grh_flag_of_a_connected_receive_is_as_declared,
    unreliable::datagram_says_which_path_it_took,
    unreliable::service_level_of_a_datagram_over_ethernet_is_as_declared,
    fields::vendor_err_of_a_simulated_success_is_zero,
    fields::failure_names_its_work_request_and_qp,
    fields::scatter_gather_lists_are_used_in_their_order,
    fields::read_scatters_in_the_order_of_its_list,
    every::every_field_is_right,
    every::every_field_is_right_with_an_srq,
    every::every_field_is_right_on_uc,
    every::every_field_is_right_on_ud,
    every::every_field_is_right_on_ud_with_an_srq,
    every::every_field_is_right_on_xrc,
    count::unsignaled_failure_gives_a_completion,
    count::unsignaled_success_gives_no_completion,
    count::unsignaled_success_gives_no_completion_on_uc,
    count::unsignaled_success_gives_no_completion_on_ud,
    count::every_send_completes_where_all_are_signaled,
    count::every_consumed_receive_completes,
    count::no_work_request_completes_twice,
    count::first_failure_has_its_status_and_the_rest_is_flushed,
    count::success_stands_for_all_work_before_it,
    count::no_success_behind_an_unsignaled_failure,
    status::receive_too_small_is_a_length_error,
    status::datagram_above_the_mtu_is_a_length_error,
    status::read_without_read_depth_is_as_declared,
    status::address_handle_of_another_pd_is_an_operation_error,
    status::send_from_memory_with_a_bad_key_is_a_protection_error,
    status::receive_into_memory_with_a_bad_key_is_a_protection_error,
    status::work_of_a_qp_in_error_is_flushed,
    status::write_with_a_bad_rkey_is_a_remote_access_error,
    status::read_with_a_bad_rkey_is_a_remote_access_error,
    status::silent_peer_uses_up_the_retries,
    status::peer_without_receives_uses_up_the_rnr_retries,
    status::every_status_has_a_text_of_its_own,
];
