//! What must not be asked: handles that are none, numbers out of range, work and changes that a
//! queue pair is not ready for, memory that is not there. Each is refused, and changes nothing.
//!
//! | file | holds |
//! |---|---|
//! | `handles` | handles that are zero, stale, or of another context, for every verb |
//! | `garbled` | handles that are good here, and garbled behind the trait |
//! | `xrc` | handles of XRC, as above |
//! | `create` | creating with bad arguments, or beyond a limit; bad table indices |
//! | `destroy` | destroying what is in use |
//! | `modify` | changes of a queue pair that do not exist |
//! | `post` | work that cannot be posted |
//! | `memory` | work on memory that is not valid for it |

mod create;
mod destroy;
mod garbled;
mod handles;
mod memory;
mod modify;
mod post;
mod xrc;

use std::fmt::Debug;

use verbs_api::{Capabilities, Error, ErrorKind};

use crate::{Bench, Hazards, Result, Scenario, expect_err_among};

const STEPS: Capabilities = Capabilities::MODIFY_CONNECT;

const GROUPS: Capabilities = Capabilities::UD.union(Capabilities::MCAST);

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::new(
        "bad_input.every_verb_refuses_handles_that_are_none",
        &[
            "DEV-13",
            "PD-04",
            "MR-22",
            "CQ-DESTROY-05",
            "QP-STATE-32",
            "QP-CREATE-05",
            "LIFE-05",
            "DEV-02",
        ],
        handles::every_verb_refuses_handles_that_are_none,
    ),
    Scenario::new(
        "bad_input.address_handles_that_are_none_are_refused",
        &["AH-06", "PD-04", "DEV-13"],
        handles::address_handles_that_are_none_are_refused,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "bad_input.queue_pairs_that_are_none_join_no_group",
        &["QP-STATE-32"],
        handles::queue_pairs_that_are_none_join_no_group,
    )
    .needs(GROUPS),
    Scenario::new(
        "bad_input.windows_that_are_none_are_refused",
        &["MW-28", "PD-04", "DEV-13"],
        handles::windows_that_are_none_are_refused,
    )
    .needs(Capabilities::MW),
    Scenario::new(
        "bad_input.srqs_that_are_none_are_refused",
        &["DEV-13", "PD-04"],
        handles::srqs_that_are_none_are_refused,
    )
    .needs(Capabilities::SRQ),
    #[cfg(unix)]
    Scenario::new(
        "bad_input.handles_that_are_none_have_no_descriptor",
        &["DEV-13"],
        handles::handles_that_are_none_have_no_descriptor,
    )
    .needs(Capabilities::FD),
    Scenario::new(
        "bad_input.arming_what_is_no_cq_is_refused",
        &["CQ-ARM-21"],
        handles::arming_what_is_no_cq_is_refused,
    ),
    Scenario::new(
        "bad_input.objects_of_another_context_are_refused",
        &["DEV-13", "DEV-02", "QP-CREATE-05"],
        handles::objects_of_another_context_are_refused,
    ),
    Scenario::new(
        "bad_input.address_handle_of_another_context_is_refused",
        &["DEV-13"],
        handles::address_handle_of_another_context_is_refused,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "bad_input.srq_of_another_context_is_refused",
        &["DEV-13"],
        handles::srq_of_another_context_is_refused,
    )
    .needs(Capabilities::SRQ),
    Scenario::new(
        "bad_input.stale_handle_never_names_a_later_object",
        &["LIFE-05"],
        handles::stale_handle_never_names_a_later_object,
    ),
    Scenario::new(
        "bad_input.garbled_cq_is_not_armed",
        &["CQ-ARM-21"],
        garbled::garbled_cq_is_not_armed,
    )
    .needs(Capabilities::GARBLE)
    .hazards(Hazards::MAY_CRASH),
    Scenario::new(
        "bad_input.garbled_cq_is_refused",
        &["CQ-DESTROY-05"],
        garbled::garbled_cq_is_refused,
    )
    .needs(Capabilities::GARBLE)
    .hazards(Hazards::MAY_CRASH),
    Scenario::new(
        "bad_input.garbled_qp_is_refused",
        &["QP-STATE-32"],
        garbled::garbled_qp_is_refused,
    )
    .needs(Capabilities::GARBLE)
    .hazards(Hazards::MAY_CRASH),
    Scenario::new(
        "bad_input.garbled_qp_joins_no_group",
        &["QP-STATE-32"],
        garbled::garbled_qp_joins_no_group,
    )
    .needs(GROUPS.union(Capabilities::GARBLE))
    .hazards(Hazards::MAY_CRASH),
    Scenario::new(
        "bad_input.garbled_region_is_refused",
        &["MR-22"],
        garbled::garbled_region_is_refused,
    )
    .needs(Capabilities::GARBLE)
    .hazards(Hazards::MAY_CRASH),
    Scenario::new(
        "bad_input.garbled_window_is_refused",
        &["MW-28"],
        garbled::garbled_window_is_refused,
    )
    .needs(Capabilities::GARBLE.union(Capabilities::MW))
    .hazards(Hazards::MAY_CRASH),
    Scenario::new(
        "bad_input.garbled_window_and_region_are_bound_as_declared",
        &["MW-28"],
        garbled::garbled_window_and_region_are_bound_as_declared,
    )
    .needs(Capabilities::GARBLE.union(Capabilities::MW_TYPE_1))
    .hazards(Hazards::MAY_CRASH),
    Scenario::new(
        "bad_input.garbled_domain_is_refused",
        &["PD-04"],
        garbled::garbled_domain_is_refused,
    )
    .needs(Capabilities::GARBLE)
    .hazards(Hazards::MAY_CRASH),
    Scenario::new(
        "bad_input.garbled_address_handle_is_refused",
        &["AH-06"],
        garbled::garbled_address_handle_is_refused,
    )
    .needs(Capabilities::GARBLE.union(Capabilities::UD))
    .hazards(Hazards::MAY_CRASH),
    Scenario::new(
        "bad_input.garbled_srq_is_refused",
        &["DEV-13"],
        garbled::garbled_srq_is_refused,
    )
    .needs(Capabilities::GARBLE.union(Capabilities::SRQ))
    .hazards(Hazards::MAY_CRASH),
    Scenario::new(
        "bad_input.xrc_domains_that_are_none_are_refused",
        &[
            "DEV-13",
            "CQ-DESTROY-05",
            "PD-04",
            "QP-STATE-32",
            "QP-CREATE-05",
        ],
        xrc::domains_that_are_none_are_refused,
    )
    .needs(Capabilities::XRC),
    Scenario::new(
        "bad_input.xrc_domain_of_another_context_is_refused",
        &["DEV-13", "DEV-02"],
        xrc::domain_of_another_context_is_refused,
    )
    .needs(Capabilities::XRC),
    Scenario::new(
        "bad_input.garbled_xrc_target_is_refused",
        &["QP-STATE-32"],
        xrc::garbled_target_is_refused,
    )
    .needs(Capabilities::GARBLE.union(Capabilities::XRC))
    .hazards(Hazards::MAY_CRASH),
    Scenario::new(
        "bad_input.qp_sizes_above_the_limits_are_refused",
        &["QP-CREATE-02"],
        create::qp_sizes_above_the_limits_are_refused,
    ),
    Scenario::new(
        "bad_input.unknown_qp_type_is_refused",
        &["QP-CREATE-03"],
        create::unknown_qp_type_is_refused,
    ),
    Scenario::new(
        "bad_input.remote_write_without_local_write_is_refused",
        &["MR-01"],
        create::remote_write_without_local_write_is_refused,
    ),
    Scenario::new(
        "bad_input.unknown_access_bits_are_refused",
        &["MR-04"],
        create::unknown_access_bits_are_refused,
    ),
    Scenario::new(
        "bad_input.region_above_the_limit_is_refused",
        &["MR-15", "LIFE-06"],
        create::region_above_the_limit_is_refused,
    ),
    Scenario::new(
        "bad_input.address_vector_that_leads_nowhere_is_refused",
        &["AH-01", "LIFE-06"],
        create::address_vector_that_leads_nowhere_is_refused,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "bad_input.port_out_of_range_is_refused",
        &["DEV-05"],
        create::port_out_of_range_is_refused,
    ),
    Scenario::new(
        "bad_input.table_index_out_of_range_is_refused",
        &["DEV-06"],
        create::table_index_out_of_range_is_refused,
    ),
    Scenario::new(
        "bad_input.failed_creation_leaves_no_reference",
        &["LIFE-06", "CQ-CREATE-13"],
        create::failed_creation_leaves_no_reference,
    ),
    Scenario::new(
        "bad_input.creation_without_memory_changes_nothing",
        &["CHAN-10", "PD-03", "LIFE-06"],
        create::creation_without_memory_changes_nothing,
    )
    .needs(
        Capabilities::LAB
            .union(Capabilities::UD)
            .union(Capabilities::SRQ),
    ),
    Scenario::new(
        "bad_input.too_many_open_files_change_nothing",
        &["CHAN-09"],
        create::too_many_open_files_change_nothing,
    )
    .needs(Capabilities::LAB),
    Scenario::new(
        "bad_input.objects_go_in_the_order_of_their_use_only",
        &["LIFE-01", "PD-01", "CHAN-38", "CQ-DESTROY-01", "LIFE-02"],
        destroy::objects_go_in_the_order_of_their_use_only,
    )
    .hazards(Hazards::MAY_CRASH),
    Scenario::new(
        "bad_input.refused_destruction_leaves_a_working_connection",
        &["LIFE-01", "PD-01", "CHAN-38", "CQ-DESTROY-01"],
        destroy::refused_destruction_leaves_a_working_connection,
    )
    .hazards(Hazards::MAY_CRASH),
    Scenario::new(
        "bad_input.domain_with_an_address_handle_is_busy",
        &["LIFE-01", "PD-01"],
        destroy::domain_with_an_address_handle_is_busy,
    )
    .needs(Capabilities::UD),
    Scenario::new(
        "bad_input.illegal_change_of_an_rc_qp_is_refused",
        modify::ILLEGAL,
        modify::illegal_change_of_an_rc_qp_is_refused,
    )
    .needs(STEPS),
    Scenario::new(
        "bad_input.illegal_change_of_a_uc_qp_is_refused",
        modify::ILLEGAL,
        modify::illegal_change_of_a_uc_qp_is_refused,
    )
    .needs(STEPS.union(Capabilities::UC)),
    Scenario::new(
        "bad_input.illegal_change_of_a_ud_qp_is_refused",
        modify::ILLEGAL,
        modify::illegal_change_of_a_ud_qp_is_refused,
    )
    .needs(STEPS.union(Capabilities::UD)),
    Scenario::new(
        "bad_input.illegal_change_of_an_xrc_sender_is_refused",
        modify::ILLEGAL,
        modify::illegal_change_of_an_xrc_sender_is_refused,
    )
    .needs(STEPS.union(Capabilities::XRC)),
    Scenario::new(
        "bad_input.illegal_change_of_an_xrc_target_is_refused",
        modify::ILLEGAL,
        modify::illegal_change_of_an_xrc_target_is_refused,
    )
    .needs(STEPS.union(Capabilities::XRC)),
    Scenario::new(
        "bad_input.illegal_change_in_sqe_is_refused",
        &[
            "QP-STATE-01",
            "QP-STATE-05",
            "QP-STATE-06",
            "QP-STATE-09",
            "QP-STATE-15",
        ],
        modify::illegal_change_in_sqe_is_refused,
    )
    .needs(STEPS.union(Capabilities::UC).union(Capabilities::UD)),
    Scenario::new(
        "bad_input.wrong_current_state_is_refused",
        &["QP-STATE-09", "QP-STATE-06"],
        modify::wrong_current_state_is_refused,
    )
    .needs(STEPS),
    Scenario::new(
        "bad_input.unknown_attribute_is_refused",
        &["QP-STATE-32", "QP-STATE-06"],
        modify::unknown_attribute_is_refused,
    )
    .needs(STEPS),
    Scenario::new(
        "bad_input.attribute_out_of_range_is_refused",
        &["QP-STATE-27", "QP-STATE-06", "TMR-07"],
        modify::attribute_out_of_range_is_refused,
    )
    .needs(STEPS),
    Scenario::new(
        "bad_input.bad_address_of_the_peer_is_refused",
        &["QP-STATE-29", "QP-STATE-27", "QP-STATE-06"],
        modify::bad_address_of_the_peer_is_refused,
    )
    .needs(STEPS),
    Scenario::new(
        "bad_input.list_of_sends_stops_at_the_bad_one",
        &["SQ-01", "SQ-06"],
        post::list_of_sends_stops_at_the_bad_one,
    ),
    Scenario::new(
        "bad_input.list_of_receives_stops_at_the_bad_one",
        &["RQ-01", "RQ-03"],
        post::list_of_receives_stops_at_the_bad_one,
    ),
    Scenario::new(
        "bad_input.too_much_inline_data_is_refused",
        &["SQ-09"],
        post::too_much_inline_data_is_refused,
    ),
    Scenario::new(
        "bad_input.inline_read_is_refused",
        &["SQ-10"],
        post::inline_read_is_refused,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "bad_input.full_send_queue_takes_no_more",
        &["SQ-03"],
        post::full_send_queue_takes_no_more,
    )
    .needs(Capabilities::RNR),
    Scenario::new(
        "bad_input.done_send_keeps_its_slot_until_it_is_polled",
        &["SQ-05", "SQ-03"],
        post::done_send_keeps_its_slot_until_it_is_polled,
    ),
    Scenario::new(
        "bad_input.full_receive_queue_takes_no_more",
        &["RQ-02"],
        post::full_receive_queue_takes_no_more,
    ),
    Scenario::new(
        "bad_input.rc_qp_takes_work_only_in_the_states_for_it",
        post::STATES,
        post::rc_qp_takes_work_only_in_the_states_for_it,
    )
    .needs(STEPS),
    Scenario::new(
        "bad_input.uc_qp_takes_work_only_in_the_states_for_it",
        post::STATES,
        post::uc_qp_takes_work_only_in_the_states_for_it,
    )
    .needs(STEPS.union(Capabilities::UC)),
    Scenario::new(
        "bad_input.ud_qp_takes_work_only_in_the_states_for_it",
        post::STATES,
        post::ud_qp_takes_work_only_in_the_states_for_it,
    )
    .needs(STEPS.union(Capabilities::UD)),
    Scenario::new(
        "bad_input.xrc_sender_takes_work_only_in_the_states_for_it",
        &["QP-STATE-18", "QP-STATE-21"],
        post::xrc_sender_takes_work_only_in_the_states_for_it,
    )
    .needs(STEPS.union(Capabilities::XRC)),
    Scenario::new(
        "bad_input.refused_send_is_not_queued",
        &["QP-STATE-18"],
        post::refused_send_is_not_queued,
    )
    .needs(STEPS),
    Scenario::new(
        "bad_input.refused_receive_is_not_queued",
        &["QP-STATE-19"],
        post::refused_receive_is_not_queued,
    )
    .needs(STEPS),
    Scenario::new(
        "bad_input.send_from_outside_its_memory_fails",
        &["SQ-22", "PD-02", "MR-14", "MR-05"],
        memory::send_from_outside_its_memory_fails,
    ),
    Scenario::new(
        "bad_input.write_from_outside_its_memory_fails",
        &["SQ-22", "PD-02", "MR-14", "MR-05"],
        memory::write_from_outside_its_memory_fails,
    ),
    Scenario::new(
        "bad_input.read_to_outside_its_memory_fails",
        &["SQ-22", "PD-02", "MR-14", "MR-05"],
        memory::read_to_outside_its_memory_fails,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "bad_input.receive_to_outside_its_memory_fails",
        &["RQ-07", "PD-02", "MR-14", "MR-05"],
        memory::receive_to_outside_its_memory_fails,
    ),
    Scenario::new(
        "bad_input.receive_larger_than_its_memory_may_take_what_fits",
        &["RQ-08"],
        memory::receive_larger_than_its_memory_may_take_what_fits,
    ),
    Scenario::new(
        "bad_input.write_to_outside_remote_memory_fails",
        &[
            "RDMA-05", "RDMA-06", "RDMA-07", "PD-02", "MR-14", "MR-05", "RDMA-08",
        ],
        memory::write_to_outside_remote_memory_fails,
    ),
    Scenario::new(
        "bad_input.read_from_outside_remote_memory_fails",
        &[
            "RDMA-05", "RDMA-06", "RDMA-07", "PD-02", "MR-14", "MR-05", "RDMA-08",
        ],
        memory::read_from_outside_remote_memory_fails,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "bad_input.key_in_the_place_of_the_other_is_none",
        &["MR-03"],
        memory::key_in_the_place_of_the_other_is_none,
    ),
    Scenario::new(
        "bad_input.very_ends_of_a_region_can_be_used",
        &["MR-20"],
        memory::very_ends_of_a_region_can_be_used,
    ),
    Scenario::new(
        "bad_input.write_of_no_bytes_may_name_any_memory",
        &["RDMA-10"],
        memory::write_of_no_bytes_may_name_any_memory,
    ),
    Scenario::new(
        "bad_input.read_of_no_bytes_may_name_any_memory",
        &["RDMA-10"],
        memory::read_of_no_bytes_may_name_any_memory,
    )
    .needs(Capabilities::RDMA_READ),
    Scenario::new(
        "bad_input.entry_of_no_bytes_may_name_any_address",
        &["SQ-23"],
        memory::entry_of_no_bytes_may_name_any_address,
    )
    .hazards(Hazards::MAY_HANG.union(Hazards::MAY_CRASH)),
    Scenario::new(
        "bad_input.message_above_the_longest_fails",
        &["SQ-21", "SQ-22"],
        memory::message_above_the_longest_fails,
    ),
];

/// A call that must fail with one of these kinds of error, and changes the number of no objects.
fn refused<T, E>(
    bench: &Bench<'_>,
    kinds: &[ErrorKind],
    rule: &'static str,
    call: impl FnOnce() -> Result<T, E>,
) -> Result<E>
where
    T: Debug,
    E: Clone + Into<Error>,
{
    let before = bench.live()?;
    let error = expect_err_among(call(), kinds, rule)?;
    bench.expect_live(before, rule)?;
    Ok(error)
}
