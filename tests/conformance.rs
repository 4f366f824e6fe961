//! The conformance suite on the simulator that keeps to the specification.

use std::ops::ControlFlow;

use verbs_api::profile::Profile;
use verbs_api::{Capabilities, LinkLayer};
use verbs_scenarios::report::{BackendInfo, Entry, Outcome, Run};
use verbs_scenarios::{Backend, Fixture, Scenario};
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
    for profile in Profile::ALL {
        if !profile.link_layers.contains(&LinkLayer::InfiniBand) {
            continue;
        }
        let backend = Simulator {
            link_layer: LinkLayer::InfiniBand,
            ..Simulator::new(*profile, 0)
        };
        let run = run_on(&backend);
        let is_good = |entry: &&Entry| match entry.outcome {
            Outcome::Passed | Outcome::KnownDeviation => true,
            // What needs a capability that the profile lacks.
            Outcome::Skipped => !profile.lacks.is_empty(),
            _ => false,
        };
        let others = run.scenarios.iter().filter(|entry| !is_good(entry));
        let others: Vec<_> = others.map(in_words).collect();
        assert!(others.is_empty(), "{profile}:\n{}", others.join("\n"));
    }
}

/// A simulator whose devices have lost something that its profile has.
struct Lossy {
    whole: Simulator,
    lost: Capabilities,
}

impl Backend for Lossy {
    fn info(&self) -> BackendInfo {
        self.whole.info()
    }

    fn start(&self, threads: bool) -> verbs_api::Result<Fixture> {
        let lacking = self.whole.lacking(self.lost);
        lacking.expect("it can lack what it has").start(threads)
    }

    fn lacks(&self) -> Option<Capabilities> {
        self.whole.lacks()
    }

    fn replay(&self, scenario: &Scenario) -> String {
        self.whole.replay(scenario)
    }
}

/// Such scenarios are not skipped: the run fails and names what is missing. Scenarios that need a
/// capability that the profile lacks are skipped as usual.
#[test]
fn a_device_that_has_lost_a_capability_fails() {
    for lost in [Capabilities::THREADS, Capabilities::FD, Capabilities::XRC] {
        let backend = Lossy {
            whole: Simulator::new(Profile::RXE, 0),
            lost,
        };
        let run = run_on(&backend);
        assert!(run.summary.is_bad());
        for entry in &run.scenarios {
            let scenario = verbs_scenarios::all().find(|of| of.id == entry.id).unwrap();
            let of_profile = scenario.needs.intersects(Profile::RXE.lacks);
            let expected = match scenario.needs.intersects(lost) {
                true if Profile::RXE.lacks.contains(lost) => Outcome::Skipped,
                true => Outcome::Failed,
                false if of_profile => Outcome::Skipped,
                false => continue,
            };
            assert_eq!(entry.outcome, expected, "{}", in_words(entry));
            if expected == Outcome::Failed {
                let failure = entry.failure.as_ref().unwrap();
                assert!(failure.expected.contains(&lost.to_string()), "{failure:?}");
            }
        }
    }
}

fn run(seed: u64) -> Run {
    run_on(&Simulator::new(Profile::SPEC, seed))
}

fn run_on(backend: &dyn Backend) -> Run {
    let scenarios: Vec<_> = verbs_scenarios::all().collect();
    verbs_scenarios::run(backend, &scenarios, |_| ControlFlow::Continue(())).unwrap()
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
