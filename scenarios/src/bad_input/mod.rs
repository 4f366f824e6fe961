//! What must not be asked: invalid handles, numbers out of range, work and changes that a queue
//! pair is not ready for, memory that does not exist. Each is refused, and changes nothing.
//!
//! | file | holds |
//! |---|---|
//! | `handles` | handles that are zero, stale, or of another context, for every verb |
//! | `corrupt` | handles that are good here, and corrupt behind the trait |
//! | `xrc`, `dm`, `parent` | handles of XRC, device memory, and parent domains, as above |
//! | `create` | creating with bad arguments, or beyond a limit; bad table indices |
//! | `destroy` | destroying what is in use |
//! | `modify` | changes of a queue pair that do not exist |
//! | `post` | work that cannot be posted |
//! | `memory` | work on memory that is not valid for it |

mod corrupt;
mod create;
mod destroy;
mod dm;
mod handles;
mod memory;
mod modify;
mod parent;
mod post;
mod xrc;

use std::fmt::Debug;

use verbs_api::{Error, ErrorKind};

use crate::{Result, Scenario, Setup, expect_err_among};
pub(crate) use handles::open_again;

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    handles::every_verb_refuses_handles_that_are_none,
    handles::address_handles_that_are_none_are_refused,
    handles::queue_pairs_that_are_none_join_no_group,
    handles::windows_that_are_none_are_refused,
    handles::srqs_that_are_none_are_refused,
    #[cfg(unix)]
    handles::handles_that_are_none_have_no_descriptor,
    handles::arming_what_is_no_cq_is_refused,
    handles::objects_of_another_context_are_refused,
    handles::address_handle_of_another_context_is_refused,
    handles::srq_of_another_context_is_refused,
    handles::stale_handle_never_names_a_later_object,
    corrupt::garbled_cq_is_not_armed,
    corrupt::garbled_cq_is_refused,
    corrupt::garbled_qp_is_refused,
    corrupt::garbled_qp_joins_no_group,
    corrupt::garbled_region_is_refused,
    corrupt::garbled_window_is_refused,
    corrupt::garbled_window_and_region_are_bound_as_declared,
    corrupt::garbled_domain_is_refused,
    corrupt::garbled_address_handle_is_refused,
    corrupt::garbled_srq_is_refused,
    corrupt::handle_of_another_context_garbles_nothing,
    xrc::xrc_domains_that_are_none_are_refused,
    xrc::xrc_domain_of_another_context_is_refused,
    xrc::garbled_xrc_target_is_refused,
    dm::device_memories_that_are_none_are_refused,
    dm::device_memory_of_another_context_is_refused,
    parent::domains_that_are_none_are_refused,
    create::qp_sizes_above_the_limits_are_refused,
    create::unknown_qp_type_is_refused,
    create::remote_write_without_local_write_is_refused,
    create::unknown_access_bits_are_refused,
    create::region_above_the_limit_is_refused,
    create::address_vector_that_leads_nowhere_is_refused,
    create::port_out_of_range_is_refused,
    create::table_index_out_of_range_is_refused,
    create::failed_creation_leaves_no_reference,
    create::creation_without_memory_changes_nothing,
    create::too_many_open_files_change_nothing,
    destroy::objects_go_in_the_order_of_their_use_only,
    destroy::refused_destruction_leaves_a_working_connection,
    destroy::domain_with_an_address_handle_is_busy,
    modify::illegal_change_of_an_rc_qp_is_refused,
    modify::illegal_change_of_a_uc_qp_is_refused,
    modify::illegal_change_of_a_ud_qp_is_refused,
    modify::illegal_change_of_an_xrc_sender_is_refused,
    modify::illegal_change_of_an_xrc_target_is_refused,
    modify::illegal_change_in_sqe_is_refused,
    modify::wrong_current_state_is_refused,
    modify::unknown_attribute_is_refused,
    modify::attribute_out_of_range_is_refused,
    modify::value_that_is_wider_than_its_field_is_as_declared,
    modify::number_that_is_wider_than_in_packets_is_refused_or_cut,
    modify::bad_address_of_the_peer_is_refused,
    modify::address_that_no_device_has_is_as_declared,
    post::list_of_sends_stops_at_the_bad_one,
    post::list_of_receives_stops_at_the_bad_one,
    post::list_for_a_queue_pair_that_is_none_stops_at_its_first,
    post::too_much_inline_data_is_refused,
    post::inline_read_is_refused,
    post::full_send_queue_takes_no_more,
    post::done_send_keeps_its_slot_until_it_is_polled,
    post::done_receive_keeps_its_slot_until_it_is_polled,
    post::full_receive_queue_takes_no_more,
    post::rc_qp_takes_work_only_in_the_states_for_it,
    post::uc_qp_takes_work_only_in_the_states_for_it,
    post::ud_qp_takes_work_only_in_the_states_for_it,
    post::xrc_sender_takes_work_only_in_the_states_for_it,
    post::refused_send_is_not_queued,
    post::refused_receive_is_not_queued,
    memory::send_from_outside_its_memory_fails,
    memory::write_from_outside_its_memory_fails,
    memory::read_to_outside_its_memory_fails,
    memory::receive_to_outside_its_memory_fails,
    memory::receive_larger_than_its_memory_may_take_what_fits,
    memory::write_to_outside_remote_memory_fails,
    memory::read_from_outside_remote_memory_fails,
    memory::key_in_the_place_of_the_other_is_none,
    memory::very_ends_of_a_region_can_be_used,
    memory::write_of_no_bytes_may_name_any_memory,
    memory::read_of_no_bytes_may_name_any_memory,
    memory::entry_of_no_bytes_may_name_any_address,
    memory::message_above_the_longest_fails,
];

/// A call that must fail with one of these kinds of error, and changes the number of no objects.
pub(crate) fn refused<T, E>(
    setup: &Setup<'_>,
    kinds: &[ErrorKind],
    rule: &'static str,
    call: impl FnOnce() -> Result<T, E>,
) -> Result<E>
where
    T: Debug,
    E: Clone + Into<Error>,
{
    let before = setup.live()?;
    let error = expect_err_among(call(), kinds, rule)?;
    setup.expect_live(before, rule)?;
    Ok(error)
}
