//! What the suite can run against.

use clap::ValueEnum;
use verbs_api::{Behavior, Verbs};
use verbs_scenarios::report::BackendInfo;
use verbs_scenarios::{Backend, Scenario};
use verbs_sim::{Mode, Sim, SimConfig};

/// Name of the option value that means every profile.
pub(crate) const ALL_PROFILES: &str = "all";

/// A backend to choose on the command line.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// The simulator
    Sim,
}

impl Kind {
    /// The backend under the profile of this name, or under each for [`ALL_PROFILES`]. `Err` says
    /// which profiles there are.
    pub(crate) fn with_profile(
        self,
        name: &str,
        seed: u64,
    ) -> Result<Vec<Box<dyn Backend>>, String> {
        let Self::Sim = self;
        let chosen: Vec<Box<dyn Backend>> = PROFILES
            .iter()
            .filter(|(profile, _)| name == ALL_PROFILES || name == *profile)
            .map(|(profile, behavior)| -> Box<dyn Backend> {
                Box::new(Simulator {
                    profile,
                    behavior: *behavior,
                    seed,
                })
            })
            .collect();
        if chosen.is_empty() {
            let names: Vec<_> = PROFILES.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            return Err(format!(
                "no profile is called {name}; there are {names}, and {ALL_PROFILES} for each of them"
            ));
        }
        Ok(chosen)
    }
}

/// Named sets of behavior values.
const PROFILES: &[(&str, Behavior)] = &[("spec", Behavior::SPEC)];

struct Simulator {
    profile: &'static str,
    behavior: Behavior,
    seed: u64,
}

impl Backend for Simulator {
    fn info(&self) -> BackendInfo {
        BackendInfo {
            version: env!("CARGO_PKG_VERSION").to_string(),
            backend: "sim".to_string(),
            device: "sim0".to_string(),
            driver: "sim".to_string(),
            kernel: None,
            profile: self.profile.to_string(),
            seed: self.seed,
        }
    }

    fn start(&self, threads: bool) -> verbs_api::Result<Box<dyn Verbs>> {
        let mode = if threads { Mode::Inline } else { Mode::Stepped };
        let config = SimConfig::new()
            .seed(self.seed)
            .behavior(self.behavior)
            .mode(mode)
            .trace(true);
        Ok(Box::new(Sim::new(config)))
    }

    fn replay(&self, scenario: &Scenario) -> String {
        format!(
            "verbsim run --filter {} --seed {} --profile {}",
            scenario.id, self.seed, self.profile
        )
    }
}
