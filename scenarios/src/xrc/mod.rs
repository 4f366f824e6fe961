//! Extended reliable connections: one connection for all SRQs of a domain.
//!
//! What the senders can do, and what runs in each state, is in the tables of the send queue and of
//! the states, as for other transports.
//!
//! | file | holds |
//! |---|---|
//! | `domain` | which domain is opened, and when it is closed |
//! | `target` | queue pairs of a domain, and who has them open |
//! | `queue` | the queues that its queue pairs do not have |
//! | `take` | which SRQ a message goes to, and its completion |
//! | `memory` | the memory that a peer reaches |

mod domain;
mod memory;
mod queue;
mod take;
mod target;

use std::fs;
use std::path::PathBuf;

use verbs_api::{Context, XrcdInit};

use crate::{Failure, Result, Scenario, Setup};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    domain::domain_opens_or_is_refused_as_not_supported,
    domain::private_domains_are_apart,
    domain::file_names_one_domain_in_all_contexts,
    domain::domain_is_made_and_found_as_its_flags_say,
    domain::domain_is_busy_while_it_is_used,
    domain::domain_lives_until_its_last_close,
    domain::domain_goes_with_the_context_that_has_it_open,
    domain::dead_device_lets_its_domain_be_closed_and_no_more,
    domain::srq_keeps_its_cq_and_its_domain_busy,
    target::target_is_opened_by_its_number,
    target::number_that_is_none_of_the_domain_is_refused,
    target::target_lives_until_it_is_open_nowhere,
    target::target_stays_when_one_of_its_contexts_closes,
    target::events_of_a_target_come_to_all_who_have_it_open,
    target::target_counts_among_the_queue_pairs,
    target::target_is_opened_only_while_there_is_memory,
    target::drained_target_is_told_if_that_was_asked_for,
    target::target_outlives_the_srq_of_its_last_message,
    queue::sender_takes_no_receives,
    queue::target_takes_no_work,
    queue::attributes_of_the_other_half_are_ignored,
    queue::queues_that_are_not_there_have_no_sizes,
    queue::srq_of_a_domain_is_for_no_qp_of_rc,
    take::message_takes_a_receive_of_the_srq_it_names,
    take::message_with_immediate_takes_a_receive_of_the_srq_it_names,
    take::connections_share_an_srq,
    take::message_of_many_packets_takes_one_receive,
    take::solicited_message_fires_at_the_cq_of_its_srq,
    take::srq_that_is_none_of_the_domain_is_an_error,
    take::number_of_an_srq_that_is_gone_names_no_other,
    take::empty_srq_is_a_receiver_that_is_not_ready,
    take::message_above_its_receive_fails_on_both_sides,
    take::receives_stay_when_a_target_fails_or_goes,
    take::receive_under_way_is_flushed_to_the_cq_of_its_srq,
    take::lost_packets_are_sent_again,
    take::requests_name_their_srq_and_answers_do_not,
    take::read_that_comes_again_is_answered_from_its_own_domain,
    memory::receives_are_in_memory_of_their_srqs_domain,
    memory::peer_reaches_the_memory_of_the_domain_of_the_srq_it_names,
    memory::target_allows_what_its_rights_say,
];

/// A file that may name a domain. A backend that has made it leaves it behind; it goes with this.
struct Named(PathBuf);

impl Named {
    /// A path for this process and one scenario.
    fn new(scenario: &str) -> Self {
        let name = format!("verbsim-{}-{scenario}.xrcd", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn init(&self) -> XrcdInit<'_> {
        XrcdInit::of(&self.0)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        // The simulator never made it.
        let _ = fs::remove_file(&self.0);
    }
}

/// The device of side B, opened once more: as another process of the same host.
fn beside_b(setup: &Setup<'_>) -> Result<Context> {
    let devices = setup.devices()?;
    match devices.get(1).or(devices.first()) {
        Some(device) => Ok(setup.open_device(&device.name)?),
        None => Err(Failure::assertion("at least one device", "none")),
    }
}
