//! Why a rule has no scenario.

use crate::rules::{Level, Rule};

/// Why `rule` has no scenario, if there is a reason. One without a reason is a gap.
///
/// Meant for rules that no scenario cites.
pub fn reason(rule: &Rule) -> Option<&'static str> {
    let by_id = BY_ID.iter().find(|(id, _)| *id == rule.id);
    match (by_id, rule.level) {
        (Some((_, reason)), _) => Some(reason),
        (None, Level::Informative) => Some("informative: nothing to assert"),
        (None, _) if COVERED.contains(&rule.group.as_str()) => None,
        (None, _) => Some("not covered yet"),
    }
}

const BY_ID: &[(&str, &str)] = &[
    ("CHAN-28", "C ABI: tests/clients/events.c"),
    ("CHAN-31", "C ABI: tests/clients/events.c"),
    (
        "MR-23",
        "C ABI: tests/clients/memory.c, except for an access: only C can free memory that a region still has, and the drop-in has no pages of its own",
    ),
    (
        "ODP-06",
        "only C can register all memory of its process: tests/clients/on_demand.c",
    ),
    (
        "DEV-03",
        "C ABI: tests/clients/wrong.c: closing a device also frees the objects that are left, as the kernel does, and the diagnosis reports them",
    ),
    ("DEV-07", "C ABI: tests/clients/datagram.c"),
    ("DEV-12", "C ABI: tests/clients/datagram.c"),
    ("AH-02", "C ABI: tests/clients/datagram.c"),
    ("IMP-01", "C ABI: tests/clients/import.c"),
    ("IMP-02", "C ABI: tests/clients/import.c"),
    ("IMP-03", "C ABI: tests/clients/import.c"),
    ("IMP-04", "C ABI: tests/clients/device_memory.c"),
    ("ROCE-01", "in bytes of packets only: tests/wire.rs"),
    ("ROCE-02", "in bytes of packets only: tests/wire.rs"),
    (
        "ROCE-03",
        "packets that no device here sends: sim/tests/network/main.rs",
    ),
    ("CM-84", "C ABI: tests/clients/cm.c"),
    (
        "CM-86",
        "kernels and libraries of this year only: sim/tests/cm.rs, tests/clients/newest.c",
    ),
    (
        "WC-36",
        "takes packets of a connection that is over: tests/protocol/sequence.rs",
    ),
];

/// Groups of which every rule has a scenario or a reason of its own.
const COVERED: &[&str] = &[
    "CQ-ARM",
    "CHAN",
    "CQ-RESIZE",
    "CQ-CREATE",
    "CQ-POLL",
    "CQ-OVR",
    "CQ-DESTROY",
    "CQ-MOD",
    "WC",
    "QP-CREATE",
    "QP-STATE",
    "QP-FLUSH",
    "QP-DESTROY",
    "SQ",
    "RQ",
    "SRQ",
    "LIFE",
    "RDMA",
    "RO",
    "ATOM",
    "MPE",
    "RNR",
    "TMR",
    "UC",
    "UD",
    "MCAST",
    "AH",
    "ROCE",
    "LID",
    "LACK",
    "CM",
    "ECE",
    "DEV",
    "ASYNC",
    "MR",
    "DMABUF",
    "ODP",
    "MW",
    "DM",
    "IMP",
    "PD",
    "XRC",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{rule, rules};

    #[test]
    fn reasons_name_rules_that_exist_and_that_no_scenario_cites() {
        for (id, _) in BY_ID {
            let rule = rule(id).unwrap_or_else(|| panic!("there is no rule {id}"));
            let citing = crate::all().find(|scenario| scenario.checks(rule));
            if let Some(scenario) = citing {
                panic!("{id} has a reason and a scenario, {}", scenario.id);
            }
        }
        for group in COVERED {
            assert!(rules().iter().any(|rule| rule.group == *group), "{group}");
        }
    }
}
