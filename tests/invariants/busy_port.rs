//! The suite on a device whose port has something to say: that is not the scenario's.

use std::ops::ControlFlow;
use std::time::Duration;

use verbs_api::profile::Profile;
use verbs_scenarios::report::{BackendInfo, Outcome};
use verbs_scenarios::{Backend, Bounds, Fixture, Scenario, run, select};
use verbs_sim::{Mode, Sim, SimConfig};
use verbsim::backend::Simulator;

use crate::defective::{Defect, Defective, gid_change};

struct BusyPort;

impl Backend for BusyPort {
    fn info(&self) -> BackendInfo {
        Simulator::new(Profile::SPEC, 0).info()
    }

    fn start(&self, _threads: bool) -> verbs_api::Result<Fixture> {
        let sim = Sim::new(SimConfig::new().mode(Mode::RealTime));
        let verbs: Box<dyn verbs_api::Verbs> = Box::new(Defective::new(sim, Defect::BusyPort));
        Ok(Fixture::new(verbs))
    }

    fn replay(&self, _scenario: &Scenario) -> String {
        String::new()
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            negative: Duration::from_millis(2),
            ..Bounds::default()
        }
    }
}

/// Those that take events of queues, and those that see none.
#[test]
fn events_of_the_port_are_passed_over_and_reported() {
    let ids = ["srq.", "cq_resize.", "cq_poll.", "async_event."];
    let scenarios: Vec<_> = ids.iter().flat_map(|id| select(id)).collect();
    let run = run(&BusyPort, &scenarios, |_| ControlFlow::Continue(())).unwrap();
    let mut met = 0;
    for entry in &run.scenarios {
        assert_ne!(
            entry.outcome,
            Outcome::Failed,
            "{}: {:?}",
            entry.id,
            entry.failure
        );
        if !entry.passed_over.is_empty() {
            assert_eq!(
                entry.passed_over,
                [gid_change().to_string()],
                "{}",
                entry.id
            );
            met += 1;
        }
    }
    assert!(met > 10, "{met}");
}
