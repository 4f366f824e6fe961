//! rdma_cm: how sides find each other, connect and disconnect.
//!
//! Connections of InfiniBand and RoCE are made by messages of the CM to queue pair 1, those of
//! iWARP over TCP. What is of the former alone needs `MODIFY_CONNECT`, which iWARP lacks.
//!
//! | file | holds |
//! |---|---|
//! | `link` | two sides that connect |
//! | `bind`, `resolve` | devices, addresses and ports; where they lead |
//! | `listen`, `connect`, `refuse`, `part` | requests, connections, refusals, and the end |
//! | `queue_pair`, `ece` | states and attributes of queue pairs; their options |
//! | `state` | calls in the wrong state |
//! | `event` | channels and events |
//! | `loss` | messages that are lost or come twice, and devices that go |
//! | `datagram` | queue pairs of datagrams, and groups |

mod bind;
mod connect;
mod datagram;
mod ece;
mod event;
mod link;
mod listen;
mod loss;
mod part;
mod queue_pair;
mod refuse;
mod resolve;
mod state;

use crate::Scenario;

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    bind::each_device_has_a_context_that_stays,
    bind::address_of_a_device_binds_to_the_device_at_once,
    bind::unspecified_address_binds_to_no_device,
    bind::port_0_is_one_that_nobody_has,
    bind::address_and_port_are_for_one_id,
    bind::unspecified_address_shares_its_port_with_none,
    bind::ids_of_two_families_share_a_port_where_each_keeps_to_its_own,
    bind::address_of_no_device_is_refused,
    bind::bound_id_keeps_its_address,
    bind::ids_that_say_so_share_an_address_until_one_listens,
    bind::options_are_those_of_the_queue_pair,
    state::call_in_the_wrong_state_changes_nothing,
    resolve::resolved_address_tells_the_device_and_both_ends,
    resolve::who_names_no_source_gets_one,
    resolve::address_that_leads_nowhere_is_an_error_when_its_time_is_over,
    resolve::resolved_route_is_one_path,
    resolve::each_step_gives_one_event_of_its_id,
    listen::listening_binds_an_id_that_is_not_bound,
    listen::each_request_is_an_id_of_its_own,
    listen::id_of_a_request_is_bound_to_where_it_came,
    listen::request_tells_what_the_client_has,
    listen::context_of_a_request_is_that_of_its_listener,
    listen::listener_takes_what_comes_to_its_port,
    listen::no_more_requests_wait_than_the_backlog,
    queue_pair::queue_pair_needs_an_id_that_is_bound_to_a_device,
    queue_pair::queue_pair_is_of_the_domain_that_is_named,
    queue_pair::queue_pair_follows_the_events_of_its_id,
    queue_pair::queue_pairs_are_set_to_what_was_agreed,
    queue_pair::program_connects_queue_pairs_of_its_own,
    queue_pair::attributes_of_a_state_are_known_in_time,
    queue_pair::peers_that_may_read_may_flush,
    queue_pair::server_that_is_told_of_data_is_connected,
    ece::options_of_the_program_reach_its_peer,
    ece::options_that_were_never_set_are_zeros,
    ece::options_are_for_ids_without_a_queue_pair,
    ece::queue_pairs_of_ids_agree_on_options,
    ece::queue_pair_has_no_option_that_its_peer_does_not_want,
    ece::another_vendor_ends_up_without_options,
    ece::request_without_options_leaves_those_of_the_server,
    ece::options_that_the_server_refuses_are_the_reason,
    ece::messages_of_iwarp_have_no_options,
    connect::data_flows_when_both_are_connected,
    connect::reads_and_atomics_go_both_ways,
    connect::reads_under_way_are_as_many_as_was_agreed,
    connect::client_hears_what_the_server_says_and_the_server_nothing,
    connect::private_data_has_the_length_of_its_message,
    connect::too_much_private_data_is_refused,
    connect::answer_with_too_much_private_data_refuses_the_client,
    connect::most_is_as_many_as_the_device_has,
    refuse::request_where_nobody_listens_is_refused,
    refuse::refused_client_hears_why,
    refuse::request_that_is_destroyed_is_refused,
    refuse::request_of_a_client_that_is_gone_cannot_be_answered,
    refuse::requests_that_nobody_reads_go_with_their_listener,
    refuse::only_a_request_can_be_answered,
    part::peer_keeps_its_queue_pair_until_it_disconnects_too,
    part::what_was_never_connected_cannot_be_disconnected,
    part::connection_ends_once,
    part::refused_request_is_answered_or_ends_the_connection,
    part::both_may_disconnect_at_once,
    part::each_side_hears_when_nothing_is_under_way_any_more,
    part::connection_ends_with_its_id,
    part::id_that_goes_answers_the_end,
    part::queue_pair_that_is_connected_cannot_ask_again,
    part::sides_meet_again_and_again,
    event::id_stays_while_its_events_are_unacknowledged,
    event::destruction_waits_until_events_are_acknowledged,
    event::waiting_thread_is_woken_by_an_event,
    event::events_that_nobody_reads_go_with_their_id,
    event::destroyed_id_is_no_id,
    event::events_that_nobody_has_read_move_with_their_id,
    event::events_are_in_the_channel_of_their_id,
    event::events_come_in_the_order_in_which_they_happened,
    event::empty_channel_gives_nothing,
    event::event_is_acknowledged_once,
    #[cfg(target_os = "linux")]
    event::descriptor_is_readable_while_an_event_is_unread,
    event::channel_stays_while_an_id_has_it,
    loss::message_that_is_lost_is_sent_again,
    loss::nobody_answers_in_the_end,
    loss::server_gives_up_a_client_that_confirms_nothing,
    loss::end_that_is_lost_is_told_again,
    loss::end_that_nobody_answers_comes_all_the_same,
    loss::message_that_comes_twice_counts_once,
    loss::data_waits_for_no_message,
    loss::ids_of_a_device_that_goes_hear_of_it,
    datagram::queue_pair_of_datagrams_is_ready_at_once,
    datagram::client_hears_where_datagrams_go,
    datagram::server_hears_no_more_of_datagrams,
    datagram::private_data_of_datagrams_has_the_length_of_its_message,
    datagram::request_for_datagrams_is_refused,
    datagram::lost_request_for_datagrams_is_sent_again,
    datagram::lost_answer_to_datagrams_brings_another_request,
    datagram::joined_group_reaches_the_queue_pair,
    datagram::group_is_left_as_often_as_it_was_joined,
    datagram::group_is_joined_by_an_id_of_datagrams_on_a_device,
];
