//! A conformance suite for RDMA devices.
//!
//! The suite is written against the trait [`Verbs`](verbs_api::Verbs) alone, so it judges any
//! backend: the simulator and real devices. It is a catalogue of [rules](rules()), and
//! [scenarios](Scenario) that check them. Start with [`run()`]: it runs scenarios against a
//! [`Backend`] and gives a [`Run`](report::Run).
//!
//! ```
//! let arming = verbs_scenarios::select("CQ-ARM-03");
//! assert!(!arming.is_empty());
//! let rule = verbs_scenarios::rule("CQ-ARM-03").unwrap();
//! assert!(!rule.source.to_string().is_empty());
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `rules`, `reasons` | the catalogue; why a rule has no scenario |
//! | [`Scenario`], `row` | a scenario as data; its row next to its body, and lists of rows |
//! | [`Setup`], [`End`], [`Pair`] | what the body of a scenario works with |
//! | [`Failure`], [`OfRule`], [`Claim`] | what is wrong when one fails, and of which rule |
//! | [`asked`], `refusal` | what a device has, as it answers; refusals of what it has not |
//! | [`run()`], [`Backend`], [`Deviation`] | running, and judging the outcome |
//! | [`report`], `facts` | the report and its JSON; what the device says of itself |
//! | `cq_arm`, `chan`, ... | the scenarios, a file for each [`Group`] |

pub mod asked;
mod claim;
pub mod deviations;
mod end;
mod facts;
mod failure;
mod fresh_qp;
mod kind;
mod known;
mod line;
mod place;
mod port_events;
mod reasons;
mod refusal;
pub mod report;
mod round_trip;
mod setup;
mod timeout;
#[macro_use]
mod row;
mod rules;
mod runner;
mod scenario;

mod ah;
mod async_event;
mod atom;
mod bad_input;
mod chan;
mod cm;
mod cq_arm;
mod cq_create;
mod cq_destroy;
mod cq_ex;
mod cq_moderate;
mod cq_ovr;
mod cq_poll;
mod cq_resize;
mod dev;
mod dm;
mod ece;
mod errors;
mod fixture;
mod lacks;
mod lid;
mod life;
mod mcast;
mod mpe;
mod mr;
mod mw;
mod odp;
mod parent;
mod path_mtu;
mod qp_create;
mod qp_destroy;
mod qp_flush;
mod qp_state;
mod rdma;
mod refill;
mod rnr;
mod ro;
mod rq;
mod sq;
mod srq;
mod tmr;
mod uc;
mod ud;
mod wc;
mod xrc;

pub use asked::Asked;
pub use claim::Claim;
pub use deviations::Deviation;
pub use end::{End, EndParts, GRH_LEN, Pair, PairOptions, pattern, wr_ids};
pub use failure::{Failure, FailureKind, OfRule, Result, expect_err, expect_err_among};
pub use fixture::Fixture;
pub use place::Place;
pub use reasons::reason;
pub use rules::{Level, Rule, rule, rules};
pub use runner::{Backend, Runner, bounds, lost, run, run_in, select};
pub use scenario::{Body, Hazards, Scenario};
pub use setup::{Bounds, Negative, Setup};

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

macro_rules! group {
    ($module:ident, $title:literal) => {
        Group {
            name: stringify!($module),
            title: $title,
            scenarios: $module::SCENARIOS,
        }
    };
}

/// All scenarios, by subject.
pub const GROUPS: &[Group] = &[
    group!(cq_arm, "CQ arming"),
    group!(chan, "Completion channels"),
    group!(cq_resize, "CQ resize"),
    group!(cq_create, "CQ creation"),
    group!(cq_poll, "Polling"),
    group!(cq_ovr, "CQ overrun"),
    group!(cq_destroy, "CQ destruction"),
    group!(cq_ex, "Extended CQs"),
    group!(cq_moderate, "Moderation of CQ events"),
    group!(wc, "Work completions"),
    group!(qp_create, "Queue pair creation and query"),
    group!(qp_state, "Queue pair states"),
    group!(qp_flush, "Error state and flushing"),
    group!(qp_destroy, "Queue pair destruction"),
    group!(ece, "Enhanced connection establishment"),
    group!(sq, "Send queues"),
    group!(rq, "Receive queues"),
    group!(srq, "Shared receive queues"),
    group!(xrc, "Extended reliable connections"),
    group!(refill, "Queues filled again after failures"),
    group!(life, "Life of objects"),
    group!(rdma, "RDMA Read and Write"),
    group!(ro, "Order of data in memory"),
    group!(atom, "Atomics"),
    group!(mpe, "Flushes and atomic writes"),
    group!(errors, "Errors of connections"),
    group!(path_mtu, "Path MTUs that differ"),
    group!(rnr, "Receiver not ready"),
    group!(tmr, "Timers and retries"),
    group!(uc, "Unreliable connections"),
    group!(ud, "Datagrams"),
    group!(mcast, "Multicast"),
    group!(ah, "Address handles"),
    group!(lid, "LIDs"),
    group!(parent, "Parent domains and thread domains"),
    group!(mr, "Memory regions"),
    group!(odp, "On-demand regions"),
    group!(mw, "Memory windows"),
    group!(dm, "Device memory"),
    group!(dev, "Devices and ports"),
    group!(cm, "rdma_cm"),
    group!(lacks, "What a device lacks"),
    group!(async_event, "Asynchronous events"),
    group!(bad_input, "Bad input"),
];

/// All scenarios, in the order of [`GROUPS`].
pub fn all() -> impl Iterator<Item = &'static Scenario> {
    GROUPS.iter().flat_map(|group| group.scenarios)
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

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
        shared::<Setup<'_>>();
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
