//! The conformance suite on the simulator that keeps to the specification.

use std::sync::Arc;

use verbs_api::profile::Profile;
use verbs_api::{LinkLayer, Verbs};
use verbs_scenarios::report::{BackendInfo, Entry, Outcome, Run};
use verbs_scenarios::{Backend, Fixture, Scenario};
use verbs_sim::{Mode, Sim, SimConfig};
use verbsim::backend::Simulator;

/// Under the specification every scenario runs and passes, whatever the seed: none fails, none is
/// skipped, none deviates.
#[test]
fn the_default_profile_passes_every_scenario() {
    let scenarios = verbs_scenarios::all().count();
    assert!(scenarios > 0);
    for seed in 0..3 {
        let run = run(seed);
        let is_passed = |entry: &&Entry| entry.outcome == Outcome::Passed;
        let others = run.scenarios.iter().filter(|entry| !is_passed(entry));
        let others: Vec<_> = others.map(in_words).collect();
        assert!(others.is_empty(), "seed {seed}:\n{}", others.join("\n"));
        assert_eq!(run.summary.passed, scenarios, "seed {seed}");
    }
}

/// The same seed gives the same report.
#[test]
fn a_report_can_be_had_again() {
    assert_eq!(run(3), run(3));
}

/// So does every scenario on InfiniBand, where a LID leads.
#[test]
fn every_scenario_passes_on_infiniband() {
    let scenarios: Vec<_> = verbs_scenarios::all().collect();
    let run = verbs_scenarios::run(&InfiniBand(simulator(0)), &scenarios, |_| ()).unwrap();
    let is_passed = |entry: &&Entry| entry.outcome == Outcome::Passed;
    let others = run.scenarios.iter().filter(|entry| !is_passed(entry));
    let others: Vec<_> = others.map(in_words).collect();
    assert!(others.is_empty(), "{}", others.join("\n"));
}

/// The simulator, but for its link layer.
struct InfiniBand(Simulator);

impl Backend for InfiniBand {
    fn info(&self) -> BackendInfo {
        self.0.info()
    }

    fn start(&self, threads: bool) -> verbs_api::Result<Fixture> {
        let mode = if threads { Mode::Inline } else { Mode::Stepped };
        let config = SimConfig::new().link_layer(LinkLayer::InfiniBand);
        let verbs: Arc<dyn Verbs> = Arc::new(Sim::new(config.mode(mode)));
        Ok(Fixture::new(verbs))
    }

    fn replay(&self, scenario: &Scenario) -> String {
        self.0.replay(scenario)
    }
}

fn simulator(seed: u64) -> Simulator {
    Simulator {
        profile: Profile::SPEC,
        seed,
    }
}

fn run(seed: u64) -> Run {
    let backend = simulator(seed);
    let scenarios: Vec<_> = verbs_scenarios::all().collect();
    verbs_scenarios::run(&backend, &scenarios, |_| ()).unwrap()
}

/// How a scenario ended that did not pass.
fn in_words(entry: &Entry) -> String {
    let Entry {
        id,
        outcome,
        reason,
        failure,
        ..
    } = entry;
    match failure {
        Some(failure) => format!(
            "{id}: {outcome:?}: expected {}, seen {}\n    {}",
            failure.expected, failure.seen, failure.replay
        ),
        None => format!("{id}: {outcome:?}: {reason:?}"),
    }
}
