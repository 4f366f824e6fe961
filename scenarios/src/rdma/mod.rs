//! RDMA Read and Write.
//!
//! | file | holds |
//! |---|---|
//! | `data` | which bytes are moved |
//! | `rights` | what the region and the queue pair of the responder allow |
//! | `depth` | reads that are outstanding at a time, and what is behind them |
//! | `long` | reads of many packets, and what comes behind them |

mod data;
mod depth;
mod long;
mod rights;

use crate::Scenario;

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    data::write_changes_the_named_bytes_only,
    data::read_brings_the_named_bytes_only,
    data::all_of_a_write_is_there_only_when_a_completion_says_so,
    data::write_is_not_seen_by_the_responder,
    data::write_with_immediate_completes_one_receive_behind_its_data,
    data::message_has_at_most_max_msg_sz_bytes,
    rights::region_decides_what_a_peer_may_do,
    rights::queue_pair_decides_what_a_peer_may_do,
    rights::responder_learns_of_an_access_violation,
    rights::denied_write_with_immediate_completes_no_receive_with_success,
    rights::denied_write_with_immediate_needs_no_receive,
    rights::write_with_both_keys_bad_is_a_local_error,
    rights::read_with_both_keys_bad_is_found_at_one_side,
    rights::read_needs_local_write,
    rights::memory_without_rights_can_be_sent_from,
    depth::reads_beyond_the_depth_wait,
    depth::no_more_reads_are_outstanding_than_allowed,
    depth::responder_without_depth_refuses_reads,
    depth::send_may_leave_before_the_response_of_a_read,
    long::work_behind_long_reads_is_done_in_order,
    long::long_read_goes_on_from_a_packet_that_was_lost,
];
