//! RDMA Read and Write.
//!
//! | file | holds |
//! |---|---|
//! | `data` | which bytes are moved |
//! | `rights` | what the region and the queue pair of the responder allow |
//! | `depth` | reads that are outstanding at a time, and what is behind them |

mod data;
mod depth;
mod rights;

use verbs_api::Capabilities;

use crate::Scenario;

const READ: Capabilities = Capabilities::RDMA_READ;
const IMM: Capabilities = Capabilities::WRITE_WITH_IMM;
/// The ends are connected by their attributes, each in its own way.
const APART: Capabilities = Capabilities::MODIFY_CONNECT;

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::new(
        "rdma.write_changes_the_named_bytes_only",
        &["RDMA-01"],
        data::write_changes_the_named_bytes_only,
    )
    .needs(READ),
    Scenario::new(
        "rdma.read_brings_the_named_bytes_only",
        &["RDMA-02"],
        data::read_brings_the_named_bytes_only,
    )
    .needs(READ),
    Scenario::new(
        "rdma.all_of_a_write_is_there_only_when_a_completion_says_so",
        &["RDMA-26"],
        data::all_of_a_write_is_there_only_when_a_completion_says_so,
    )
    .needs(Capabilities::LAB),
    Scenario::new(
        "rdma.write_is_not_seen_by_the_responder",
        &["RDMA-11"],
        data::write_is_not_seen_by_the_responder,
    ),
    Scenario::new(
        "rdma.write_with_immediate_completes_one_receive_behind_its_data",
        &["RDMA-12"],
        data::write_with_immediate_completes_one_receive_behind_its_data,
    )
    .needs(IMM),
    Scenario::new(
        "rdma.message_has_at_most_max_msg_sz_bytes",
        &["RDMA-25", "DEV-10"],
        data::message_has_at_most_max_msg_sz_bytes,
    )
    .needs(READ),
    Scenario::new(
        "rdma.region_decides_what_a_peer_may_do",
        &["RDMA-03"],
        rights::region_decides_what_a_peer_may_do,
    )
    .needs(READ),
    Scenario::new(
        "rdma.queue_pair_decides_what_a_peer_may_do",
        &["RDMA-04"],
        rights::queue_pair_decides_what_a_peer_may_do,
    )
    .needs(READ.union(APART)),
    Scenario::new(
        "rdma.responder_learns_of_an_access_violation",
        &["RDMA-09", "ASYNC-15"],
        rights::responder_learns_of_an_access_violation,
    ),
    Scenario::new(
        "rdma.denied_write_with_immediate_completes_no_receive_with_success",
        &["RDMA-13"],
        rights::denied_write_with_immediate_completes_no_receive_with_success,
    )
    .needs(IMM),
    Scenario::new(
        "rdma.write_with_both_keys_bad_is_a_local_error",
        &["RDMA-14"],
        rights::write_with_both_keys_bad_is_a_local_error,
    ),
    Scenario::new(
        "rdma.read_with_both_keys_bad_is_found_at_one_side",
        &["RDMA-15"],
        rights::read_with_both_keys_bad_is_found_at_one_side,
    )
    .needs(READ),
    Scenario::new(
        "rdma.read_needs_local_write",
        &["RDMA-16"],
        rights::read_needs_local_write,
    )
    .needs(READ),
    Scenario::new(
        "rdma.memory_without_rights_can_be_sent_from",
        &["RDMA-17", "MR-02"],
        rights::memory_without_rights_can_be_sent_from,
    ),
    Scenario::new(
        "rdma.reads_beyond_the_depth_wait",
        &["RDMA-18"],
        depth::reads_beyond_the_depth_wait,
    )
    .needs(READ.union(APART)),
    Scenario::new(
        "rdma.no_more_reads_are_outstanding_than_allowed",
        &["RDMA-18"],
        depth::no_more_reads_are_outstanding_than_allowed,
    )
    .needs(READ.union(Capabilities::LAB)),
    Scenario::new(
        "rdma.responder_without_depth_refuses_reads",
        &["RDMA-19"],
        depth::responder_without_depth_refuses_reads,
    )
    .needs(READ.union(APART)),
    Scenario::new(
        "rdma.send_may_leave_before_the_response_of_a_read",
        &["RDMA-27"],
        depth::send_may_leave_before_the_response_of_a_read,
    )
    .needs(READ.union(Capabilities::LAB)),
];
