//! The simulator under a profile.

use verbs_api::profile::Profile;
use verbs_scenarios::report::BackendInfo;
use verbs_scenarios::{Backend, Deviation, Fixture, Scenario, deviations};
use verbs_sim::{Mode, Sim, SimConfig};

use super::checked;

/// The simulator: a fresh one for each scenario.
#[derive(Clone, Copy, Debug)]
pub struct Simulator {
    /// What its devices are.
    pub profile: Profile,
    /// Seed of everything random.
    pub seed: u64,
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

    fn start(&self, threads: bool) -> verbs_api::Result<Fixture> {
        let mode = if threads { Mode::Inline } else { Mode::Stepped };
        let config = SimConfig::new()
            .seed(self.seed)
            .profile(self.profile)
            .mode(mode)
            .trace(true);
        Ok(checked(Box::new(Sim::new(config))))
    }

    fn deviations(&self) -> Vec<Deviation> {
        deviations::of_profile(self.profile.name)
    }

    fn replay(&self, scenario: &Scenario) -> String {
        format!(
            "verbsim run --filter {} --seed {} --profile {}",
            scenario.id, self.seed, self.profile
        )
    }
}
