//! The catalogue of rules: what the scenarios check, one normative sentence each.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// One normative sentence with an id that never changes.
///
/// In `source` and `divergence`, `man` is a man page of rdma-core, `lib:`, `providers/` and
/// `verbs.h` are its files, `k:` is a file of Linux, `pyv:` one of rdma-core's Python tests,
/// `mojo:` and `rdmamojo` are pages of that site, `RDMA Aware manual` is NVIDIA's RDMA Aware
/// Networks Programming User Manual, `Shanley` is the book InfiniBand Network Architecture, and
/// `IBA` is the InfiniBand Architecture Specification, volume 1.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Rule {
    /// The id, such as `CQ-ARM-03`.
    pub id: String,
    /// The id without its number, such as `CQ-ARM`.
    pub group: String,
    /// The level of obligation.
    pub level: Level,
    /// The sentence.
    pub rule: String,
    /// The source of the rule.
    pub source: String,
    /// What was looked for in public texts and sources, if none of them confirms the rule. Default:
    /// none, the source confirms it.
    #[serde(default)]
    pub unverified: Option<String>,
    /// How it can be observed.
    pub observe: String,
    /// Devices or drivers known to differ.
    pub divergence: Option<String>,
    /// Rules that say the same, each or between them: the scenarios that check one of them check
    /// this one, and no assertion names it. Default: none.
    #[serde(default)]
    pub same_as: Vec<String>,
}

/// The level of obligation of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Level {
    /// Must hold; a difference is a deviation of the device.
    #[serde(rename = "M")]
    Must,
    /// The outcome must lie in a set; which member is a knob of the device's behavior.
    #[serde(rename = "A")]
    Allowed,
    /// Informative: stated by a source, but nothing to assert.
    #[serde(rename = "I")]
    Informative,
}

impl Level {
    /// The letter it has in the catalogue.
    pub const fn letter(self) -> char {
        match self {
            Self::Must => 'M',
            Self::Allowed => 'A',
            Self::Informative => 'I',
        }
    }
}

/// Every rule, in the order of the catalogue.
pub fn rules() -> &'static [Rule] {
    &RULES
}

/// The rule with this id.
pub fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../rules.json")).expect("the catalogue is part of the crate")
});

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Scenario;

    #[test]
    fn a_rule_that_others_say_is_named_by_no_scenario() {
        for rule in rules() {
            for id in &rule.same_as {
                let other = super::rule(id).unwrap_or_else(|| panic!("{}: no rule {id}", rule.id));
                assert!(other.same_as.is_empty(), "{}: {id} is others", rule.id);
            }
            if !rule.same_as.is_empty() {
                let names = |scenario: &&Scenario| scenario.rules.contains(&rule.id.as_str());
                let naming = crate::all().find(names).map(|scenario| scenario.id);
                assert_eq!(naming, None, "{}", rule.id);
            }
        }
    }

    /// More unverified rules than this are a sign that sources are no longer looked up.
    const UNVERIFIED_WARNING_LIGHT: usize = 20;

    #[test]
    fn a_source_can_be_looked_up_or_the_rule_says_what_was_looked_for() {
        for rule in rules() {
            assert!(!rule.source.is_empty(), "{} has no source", rule.id);
            let recalled = rule.source.contains("recalled");
            assert!(!recalled, "{} cites from memory: {}", rule.id, rule.source);
            if let Some(looked_for) = &rule.unverified {
                assert!(looked_for.len() > 20, "{}: {looked_for:?}", rule.id);
            }
        }
        let unverified = rules().iter().filter(|rule| rule.unverified.is_some());
        let ids: Vec<_> = unverified.map(|rule| &rule.id).collect();
        let count = ids.len();
        assert!(count <= UNVERIFIED_WARNING_LIGHT, "{count} rules: {ids:?}");
    }

    #[test]
    fn ids_are_unique_and_start_with_their_group() {
        let mut seen = BTreeSet::new();
        for rule in rules() {
            assert!(seen.insert(&rule.id), "{} twice", rule.id);
            let (group, number) = rule.id.rsplit_once('-').unwrap();
            assert_eq!(group, rule.group);
            assert_eq!(number.len(), 2);
        }
        assert_eq!(rules().len(), 763);
    }
}
