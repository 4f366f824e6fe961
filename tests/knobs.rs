//! The knobs are the suite's planted defects: a device that declares the behavior of the
//! specification and has another is found out.

use verbs_api::{Behavior, Knob, Verbs};
use verbs_scenarios::report::{BackendInfo, Outcome};
use verbs_scenarios::{Backend, Scenario, run};
use verbs_sim::{Mode, Sim, SimConfig};

/// The simulator with one knob turned, that declares otherwise.
struct Liar {
    behavior: Behavior,
}

impl Backend for Liar {
    fn info(&self) -> BackendInfo {
        let text = |text: &str| text.to_string();
        BackendInfo {
            version: text(""),
            backend: text("sim"),
            device: text("sim0"),
            driver: text("sim"),
            kernel: None,
            profile: text("liar"),
            seed: 0,
        }
    }

    fn start(&self, threads: bool) -> verbs_api::Result<Box<dyn Verbs>> {
        let mode = if threads { Mode::Inline } else { Mode::Stepped };
        let config = SimConfig::new()
            .behavior(self.behavior)
            .declare(Behavior::SPEC)
            .mode(mode);
        Ok(Box::new(Sim::new(config)))
    }

    fn replay(&self, _scenario: &Scenario) -> String {
        String::new()
    }
}

#[test]
fn every_value_of_every_knob_is_noticed_when_the_specification_is_declared() {
    let mut unnoticed = Vec::new();
    for knob in Knob::ALL {
        let own = Behavior::SPEC.get(knob.name);
        for value in knob
            .values()
            .into_iter()
            .filter(|value| Some(*value) != own)
        {
            let mut behavior = Behavior::SPEC;
            behavior.set(knob.name, value).unwrap();
            if !is_noticed(knob, &Liar { behavior }) {
                unnoticed.push(format!("{} = {value}", knob.name));
            }
        }
    }
    assert!(
        unnoticed.is_empty(),
        "no scenario notices {}",
        unnoticed.join(", ")
    );
}

/// Tries the scenarios of the knob's rules first, since one of them should do.
fn is_noticed(knob: &Knob, liar: &Liar) -> bool {
    let of_knob = |scenario: &&Scenario| scenario.rules.iter().any(|id| knob.rules.contains(id));
    let (likely, rest): (Vec<_>, Vec<_>) = verbs_scenarios::all().partition(of_knob);
    let fails = |scenario: &&'static Scenario| {
        let run = run(liar, &[*scenario], |_| {}).expect("a world can be had");
        run.scenarios[0].outcome == Outcome::Failed
    };
    likely.iter().any(fails) || rest.iter().any(fails)
}
