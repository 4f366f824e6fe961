//! The report of a run, and its JSON.
//!
//! A report holds one [`Run`] for each profile of the device that the suite ran against.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use crate::facts::{Facts, GidFacts};
use crate::failure::FailureKind;
use crate::setup::Negative;

/// Version of the JSON: it changes when a field is renamed, removed, or changes its meaning.
pub const SCHEMA: u32 = 1;

/// The results of the suite.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// One for each device and profile.
    pub runs: Vec<Run>,
}

impl Report {
    /// A report of these runs.
    pub fn new(runs: Vec<Run>) -> Self {
        Self {
            schema: SCHEMA,
            runs,
        }
    }

    /// All is well: no scenario failed or unexpectedly passed, and at least one ran.
    pub fn is_good(&self) -> bool {
        are_good(self.runs.iter().map(|run| run.summary))
    }
}

fn are_good(mut all: impl Iterator<Item = Summary> + Clone) -> bool {
    all.clone().all(|summary| !summary.is_bad()) && all.any(|summary| summary.ran() > 0)
}

/// The results of the suite on one device under one profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Run {
    /// The subject of the run.
    #[serde(flatten)]
    pub info: BackendInfo,
    /// What the device says of itself.
    #[serde(flatten)]
    pub facts: Facts,
    /// The number of scenarios by outcome.
    pub summary: Summary,
    /// Each scenario, in the order of the list.
    pub scenarios: Vec<Entry>,
}

impl Run {
    /// A run of this subject, which says this of itself, with these results.
    pub fn new(info: BackendInfo, facts: Facts, scenarios: Vec<Entry>) -> Self {
        let mut summary = Summary::default();
        for entry in &scenarios {
            summary.count(entry.outcome);
        }
        Self {
            info,
            facts,
            summary,
            scenarios,
        }
    }
}

/// The subject of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BackendInfo {
    /// Version of the program that ran the suite.
    pub version: String,
    /// The backend, such as `sim`.
    pub backend: String,
    /// The device, such as `sim0`.
    pub device: String,
    /// The driver behind the device.
    pub driver: String,
    /// Release of the kernel, where one is concerned.
    pub kernel: Option<String>,
    /// Version of rdma-core, where its library reaches the device.
    pub rdma_core: Option<String>,
    /// The link layer of the port, in small letters: `ethernet` or `infiniband`.
    pub link_layer: String,
    /// The profile: the set of behavior values that was in force, or that the device was judged by.
    pub profile: String,
    /// The seed of all that was random; 0 where nothing was.
    pub seed: u64,
}

/// The number of scenarios by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Passed.
    pub passed: usize,
    /// Failed, without a deviation that explains it.
    pub failed: usize,
    /// Not run: something that the scenario needs is missing, or something is there that must not
    /// be.
    pub skipped: usize,
    /// Failed as a recorded deviation says.
    pub known_deviations: usize,
    /// Passed, although a deviation is recorded.
    pub unexpected_passes: usize,
}

impl Summary {
    /// A scenario failed or unexpectedly passed.
    pub fn is_bad(&self) -> bool {
        self.failed > 0 || self.unexpected_passes > 0
    }

    /// The number of scenarios that ran: all except skipped ones.
    pub fn ran(&self) -> usize {
        self.passed + self.failed + self.known_deviations + self.unexpected_passes
    }

    fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Passed => &mut self.passed,
            Outcome::Failed => &mut self.failed,
            Outcome::Skipped => &mut self.skipped,
            Outcome::KnownDeviation => &mut self.known_deviations,
            Outcome::UnexpectedPass => &mut self.unexpected_passes,
        } += 1;
    }
}

/// One scenario of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Entry {
    /// The id.
    pub id: &'static str,
    /// The rules it checks.
    pub rules: &'static [&'static str],
    /// The outcome.
    pub outcome: Outcome,
    /// Why, unless it passed or simply failed: what is missing, or what the deviation says.
    pub reason: Option<String>,
    /// How long it took; `None` if it did not run, or in simulated time.
    pub seconds: Option<f64>,
    /// The failure, if it failed or showed a known deviation.
    pub failure: Option<FailureReport>,
    /// How sure it is that nothing happened; `None` if the scenario did not check that.
    pub negative: Option<Negative>,
    /// Asynchronous events of a port of a real device that were not the scenario's, each kind once.
    pub passed_over: Vec<String>,
    /// The rules that its assertions named on the way, whether they held or not. Not in the JSON.
    /// Empty if it ran in a process of its own.
    #[serde(skip)]
    pub named: BTreeSet<&'static str>,
    /// Failures that did not end it. Not in the JSON.
    #[serde(skip)]
    pub noted: Vec<FailureReport>,
    /// The failure that ended it early, if any: later assertions are not judged.
    /// Not in the JSON.
    #[serde(skip)]
    pub ended_by: Option<FailureReport>,
}

/// The outcomes of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The device did as the rules say.
    Passed,
    /// It did not, and no recorded deviation explains it.
    Failed,
    /// Not run, or not to its end: something that the scenario needs is missing, or something is
    /// there that must not be.
    Skipped,
    /// It did not, as a recorded deviation says.
    KnownDeviation,
    /// It did, although a deviation is recorded.
    UnexpectedPass,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureReport {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The rule that does not hold, if what failed is a rule and not what leads up to it.
    pub rule: Option<&'static str>,
    /// The expected observation.
    pub expected: String,
    /// The actual observation.
    pub seen: String,
    /// The scenario cannot continue after it, even if a deviation explains it: such a deviation
    /// says why ([`Deviation::ends`](crate::Deviation::ends)).
    pub ends: bool,
    /// The last calls, packets and completions, oldest first, a line each; empty where the backend
    /// keeps no trace.
    pub trace: Vec<String>,
    /// The command that runs the scenario again.
    pub replay: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_is_that_something_ran_and_nothing_surprised() {
        let summary = |outcomes: &[Outcome]| {
            let mut summary = Summary::default();
            for outcome in outcomes {
                summary.count(*outcome);
            }
            summary
        };
        let good = |runs: &[&[Outcome]]| are_good(runs.iter().map(|outcomes| summary(outcomes)));
        assert!(good(&[&[Outcome::Passed, Outcome::Skipped]]));
        assert!(good(&[&[Outcome::KnownDeviation], &[Outcome::Skipped]]));
        assert!(!good(&[&[]]));
        assert!(!good(&[&[Outcome::Skipped], &[Outcome::Skipped]]));
        assert!(!good(&[&[Outcome::Passed, Outcome::Failed]]));
        assert!(!good(&[&[Outcome::Passed], &[Outcome::UnexpectedPass]]));
        assert!(!good(&[]));
    }
}
