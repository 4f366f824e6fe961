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
//! | `take` | which SRQ a message goes to, and what becomes of it |
//! | `memory` | the memory that a peer reaches |

mod domain;
mod memory;
mod queue;
mod take;
mod target;

use std::fs;
use std::path::PathBuf;

use verbs_api::{Capabilities, Context, XrcdInit};

use crate::{Bench, Failure, Result, Scenario};

const XRC: Capabilities = Capabilities::XRC;
const WRITES: Capabilities = XRC.union(Capabilities::WRITE_WITH_IMM);

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::new(
        "xrc.domain_opens_or_is_refused_as_not_supported",
        &["XRC-07", "QP-CREATE-03"],
        domain::opens_or_is_refused_as_not_supported,
    ),
    Scenario::new(
        "xrc.private_domains_are_apart",
        &["XRC-01"],
        domain::private_domains_are_apart,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.file_names_one_domain_in_all_contexts",
        &["XRC-01"],
        domain::file_names_one_domain_in_all_contexts,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.domain_is_made_and_found_as_its_flags_say",
        &["XRC-01", "XRC-02"],
        domain::is_made_and_found_as_its_flags_say,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.domain_is_busy_while_it_is_used",
        &["XRC-02", "LIFE-01"],
        domain::is_busy_while_it_is_used,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.domain_lives_until_its_last_close",
        &["XRC-02"],
        domain::lives_until_its_last_close,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.domain_goes_with_the_context_that_has_it_open",
        &["XRC-02", "LIFE-07"],
        domain::goes_with_the_context_that_has_it_open,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.dead_device_lets_its_domain_be_closed_and_no_more",
        &["ASYNC-10"],
        domain::dead_device_lets_it_be_closed_and_no_more,
    )
    .needs(XRC.union(Capabilities::LAB)),
    Scenario::new(
        "xrc.srq_keeps_its_cq_and_its_domain_busy",
        &["CQ-DESTROY-06", "LIFE-01", "PD-01"],
        domain::srq_keeps_its_cq_and_its_domain_busy,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.target_is_opened_by_its_number",
        &["XRC-05"],
        target::is_opened_by_its_number,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.number_that_is_none_of_the_domain_is_refused",
        &["XRC-05"],
        target::number_that_is_none_of_the_domain_is_refused,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.target_lives_until_it_is_open_nowhere",
        &["XRC-05"],
        target::lives_until_it_is_open_nowhere,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.target_stays_when_one_of_its_contexts_closes",
        &["XRC-05", "LIFE-07"],
        target::stays_when_one_of_its_contexts_closes,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.events_of_a_target_come_to_all_who_have_it_open",
        &["XRC-05", "ASYNC-02", "ASYNC-03", "ASYNC-06"],
        target::events_come_to_all_who_have_it_open,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.sender_takes_no_receives",
        &["XRC-03"],
        queue::sender_takes_no_receives,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.target_takes_no_work",
        &["XRC-03"],
        queue::target_takes_no_work,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.attributes_of_the_other_half_are_ignored",
        &["XRC-08"],
        queue::attributes_of_the_other_half_are_ignored,
    )
    .needs(XRC.union(Capabilities::MODIFY_CONNECT)),
    Scenario::new(
        "xrc.srq_of_a_domain_is_for_no_qp_of_rc",
        &["QP-CREATE-04"],
        queue::srq_of_a_domain_is_for_no_qp_of_rc,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.message_takes_a_receive_of_the_srq_it_names",
        &["XRC-04"],
        take::message_takes_a_receive_of_the_srq_it_names,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.message_with_immediate_takes_a_receive_of_the_srq_it_names",
        &["XRC-04"],
        take::message_with_immediate_takes_a_receive_of_the_srq_it_names,
    )
    .needs(WRITES.union(Capabilities::SEND_WITH_IMM)),
    Scenario::new(
        "xrc.connections_share_an_srq",
        &["XRC-04", "SRQ-03"],
        take::connections_share_an_srq,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.message_of_many_packets_takes_one_receive",
        &["XRC-04"],
        take::message_of_many_packets_takes_one_receive,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.solicited_message_fires_at_the_cq_of_its_srq",
        &["CQ-ARM-46", "XRC-04"],
        take::solicited_message_fires_at_the_cq_of_its_srq,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.srq_that_is_none_of_the_domain_is_an_error",
        &["XRC-06"],
        take::srq_that_is_none_of_the_domain_is_an_error,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.empty_srq_is_a_receiver_that_is_not_ready",
        &["SRQ-13", "RNR-01", "RNR-03"],
        take::empty_srq_is_a_receiver_that_is_not_ready,
    )
    .needs(XRC.union(Capabilities::RNR)),
    Scenario::new(
        "xrc.message_above_its_receive_fails_on_both_sides",
        &["RQ-05"],
        take::message_above_its_receive_fails_on_both_sides,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.receives_stay_when_a_target_fails_or_goes",
        &["QP-FLUSH-04", "SRQ-14"],
        take::receives_stay_when_a_target_fails_or_goes,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.receive_under_way_is_flushed_to_the_cq_of_its_srq",
        &["QP-FLUSH-01", "XRC-04"],
        take::receive_under_way_is_flushed_to_the_cq_of_its_srq,
    )
    .needs(XRC.union(Capabilities::LAB)),
    Scenario::new(
        "xrc.lost_packets_are_sent_again",
        &["TMR-03", "XRC-04"],
        take::lost_packets_are_sent_again,
    )
    .needs(XRC.union(Capabilities::LAB)),
    Scenario::new(
        "xrc.requests_name_their_srq_and_answers_do_not",
        &["XRC-04"],
        take::requests_name_their_srq_and_answers_do_not,
    )
    .needs(XRC.union(Capabilities::LAB)),
    Scenario::new(
        "xrc.receives_are_in_memory_of_their_srqs_domain",
        &["SRQ-12"],
        memory::receives_are_in_memory_of_their_srqs_domain,
    )
    .needs(XRC),
    Scenario::new(
        "xrc.peer_reaches_the_memory_of_the_domain_of_the_srq_it_names",
        &["RDMA-07", "PD-02"],
        memory::peer_reaches_the_memory_of_the_domain_of_the_srq_it_names,
    )
    .needs(XRC.union(Capabilities::RDMA_READ)),
    Scenario::new(
        "xrc.target_allows_what_its_rights_say",
        &["RDMA-04"],
        memory::target_allows_what_its_rights_say,
    )
    .needs(XRC.union(Capabilities::RDMA_READ)),
];

/// A file that may name a domain. A backend that has made it leaves it behind; it goes with this.
struct Named(PathBuf);

impl Named {
    /// Of this process, and of one scenario.
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
fn beside_b(bench: &Bench<'_>) -> Result<Context> {
    let devices = bench.devices()?;
    match devices.get(1).or(devices.first()) {
        Some(device) => Ok(bench.open_device(&device.name)?),
        None => Err(Failure::assertion("at least one device", "none")),
    }
}
