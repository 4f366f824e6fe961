//! A conformance suite for RDMA devices.
//!
//! The suite is written against the trait [`Verbs`](verbs_api::Verbs) alone, so it judges any
//! backend: the simulator and real devices. It is a catalogue of [rules](rules()), and
//! [scenarios](Scenario) that check them. Start with [`run()`]: it runs scenarios against a
//! [`Backend`] and gives a [`Run`](report::Run).
//!
//! | module | holds |
//! |---|---|
//! | `rules`, `reasons` | the catalogue; why a rule has no scenario |
//! | [`Scenario`] | a scenario as a row beside its body |
//! | [`Bench`], [`End`], [`Pair`] | what the body of a scenario works with |
//! | [`Failure`], [`OfRule`] | what is wrong when one fails |
//! | [`run()`], [`Backend`], [`Deviation`] | running, and judging the outcome |
//! | [`report`] | the report and its JSON |
//! | `cq_arm`, `chan`, ... | the scenarios, a file for each [`Group`] |

mod bench;
mod climber;
pub mod deviations;
mod end;
mod failure;
mod kind;
mod reasons;
pub mod report;
mod rules;
mod runner;
#[macro_use]
mod scenario;

mod ah;
mod async_event;
mod atom;
mod bad_input;
mod chan;
mod cq_arm;
mod cq_create;
mod cq_destroy;
mod cq_ex;
mod cq_ovr;
mod cq_poll;
mod cq_resize;
mod dev;
mod errors;
mod life;
mod mcast;
mod mr;
mod mw;
mod path_mtu;
mod qp_create;
mod qp_destroy;
mod qp_flush;
mod qp_state;
mod rdma;
mod rnr;
mod rq;
mod sq;
mod srq;
mod tmr;
mod uc;
mod ud;
mod wc;
mod world;
mod xrc;

pub use bench::{Bench, Bounds, Negative, Place};
pub use deviations::Deviation;
pub use end::{End, GRH_LEN, Pair, PairOptions, QKEY, pattern, wr_ids};
pub use failure::{Failure, FailureKind, OfRule, Result, expect_err, expect_err_among};
pub use reasons::reason;
pub use rules::{Level, Rule, rule, rules};
pub use runner::{Attempt, Backend, run, run_in, select};
pub use scenario::{Body, Hazards, Scenario};
pub use world::World;

/// Scenarios on one subject.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Group {
    /// The first part of their ids.
    pub name: &'static str,
    /// The subject in words.
    pub title: &'static str,
    /// The scenarios.
    pub scenarios: &'static [Scenario],
}

/// All scenarios, by subject.
pub const GROUPS: &[Group] = &[
    group("cq_arm", "CQ arming", cq_arm::SCENARIOS),
    group("chan", "Completion channels", chan::SCENARIOS),
    group("cq_resize", "CQ resize", cq_resize::SCENARIOS),
    group("cq_create", "CQ creation", cq_create::SCENARIOS),
    group("cq_poll", "Polling", cq_poll::SCENARIOS),
    group("cq_ovr", "CQ overrun", cq_ovr::SCENARIOS),
    group("cq_destroy", "CQ destruction", cq_destroy::SCENARIOS),
    group("cq_ex", "Extended CQs", cq_ex::SCENARIOS),
    group("wc", "Work completions", wc::SCENARIOS),
    group(
        "qp_create",
        "Queue pair creation and query",
        qp_create::SCENARIOS,
    ),
    group("qp_state", "Queue pair states", qp_state::SCENARIOS),
    group("qp_flush", "Error state and flushing", qp_flush::SCENARIOS),
    group(
        "qp_destroy",
        "Queue pair destruction",
        qp_destroy::SCENARIOS,
    ),
    group("sq", "Send queues", sq::SCENARIOS),
    group("rq", "Receive queues", rq::SCENARIOS),
    group("srq", "Shared receive queues", srq::SCENARIOS),
    group("xrc", "Extended reliable connections", xrc::SCENARIOS),
    group("life", "Life of objects", life::SCENARIOS),
    group("rdma", "RDMA Read and Write", rdma::SCENARIOS),
    group("atom", "Atomics", atom::SCENARIOS),
    group("errors", "Errors of connections", errors::SCENARIOS),
    group("path_mtu", "Path MTUs that differ", path_mtu::SCENARIOS),
    group("rnr", "Receiver not ready", rnr::SCENARIOS),
    group("tmr", "Timers and retries", tmr::SCENARIOS),
    group("uc", "Unreliable connections", uc::SCENARIOS),
    group("ud", "Datagrams", ud::SCENARIOS),
    group("mcast", "Multicast", mcast::SCENARIOS),
    group("ah", "Address handles", ah::SCENARIOS),
    group("mr", "Memory regions", mr::SCENARIOS),
    group("mw", "Memory windows", mw::SCENARIOS),
    group("dev", "Devices and ports", dev::SCENARIOS),
    group("async_event", "Asynchronous events", async_event::SCENARIOS),
    group("bad_input", "Bad input", bad_input::SCENARIOS),
];

/// All scenarios, in the order of [`GROUPS`].
pub fn all() -> impl Iterator<Item = &'static Scenario> {
    GROUPS.iter().flat_map(|group| group.scenarios)
}

const fn group(name: &'static str, title: &'static str, scenarios: &'static [Scenario]) -> Group {
    Group {
        name,
        title,
        scenarios,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn scenario_ids_are_unique_and_name_their_group() {
        let mut seen = BTreeSet::new();
        for group in GROUPS {
            for scenario in group.scenarios {
                assert_eq!(scenario.group(), group.name, "{}", scenario.id);
                assert!(seen.insert(scenario.id), "{} twice", scenario.id);
            }
        }
    }

    #[test]
    fn threads_of_a_scenario_can_share_its_bench() {
        fn shared<T: Sync>() {}
        shared::<Bench<'_>>();
        shared::<End<'_>>();
    }

    #[test]
    fn scenarios_cite_rules_that_exist() {
        for scenario in all() {
            assert!(!scenario.rules.is_empty(), "{}", scenario.id);
            for id in scenario.rules {
                assert!(rule(id).is_some(), "{}: no rule {id}", scenario.id);
            }
        }
    }
}
