//! The simulator under a profile.

use verbs_api::profile::Profile;
use verbs_api::{Capabilities, LinkLayer};
use verbs_scenarios::report::BackendInfo;
use verbs_scenarios::{Backend, Deviation, Fixture, Scenario, deviations};
use verbs_sim::{Mode, Pcap, Sim, SimConfig};

use super::{checked, word};

/// The simulator: a fresh one for each scenario.
#[derive(Clone, Copy, Debug)]
pub struct Simulator {
    /// What its devices are.
    pub profile: Profile,
    /// What is between its ports: Ethernet or InfiniBand.
    pub link_layer: LinkLayer,
    /// Seed of everything random.
    pub seed: u64,
    /// Nothing but bytes of RoCEv2 passes between its nodes.
    pub wire: bool,
    /// Where all its packets are written to.
    pub pcap: Option<Pcap>,
}

impl Simulator {
    /// Under this profile, on Ethernet, with this seed.
    pub fn new(profile: Profile, seed: u64) -> Self {
        Self {
            profile,
            link_layer: LinkLayer::Ethernet,
            seed,
            wire: false,
            pcap: None,
        }
    }
}

impl Backend for Simulator {
    fn info(&self) -> BackendInfo {
        BackendInfo {
            version: env!("CARGO_PKG_VERSION").to_string(),
            backend: "sim".to_string(),
            device: "sim0".to_string(),
            driver: "sim".to_string(),
            kernel: None,
            rdma_core: None,
            link_layer: word(self.link_layer),
            profile: self.profile.to_string(),
            seed: self.seed,
        }
    }

    fn start(&self, threads: bool) -> verbs_api::Result<Fixture> {
        let mode = if threads { Mode::Inline } else { Mode::Stepped };
        let mut config = SimConfig::new()
            .seed(self.seed)
            .profile(self.profile)
            .link_layer(self.link_layer)
            .mode(mode)
            .wire(self.wire)
            .trace(true);
        if let Some(pcap) = self.pcap {
            config = config.pcap(pcap);
        }
        Ok(checked(Box::new(Sim::new(config))))
    }

    fn lacking(&self, lacks: Capabilities) -> Option<Box<dyn Backend + '_>> {
        let mut lacking = *self;
        lacking.profile.lacks |= lacks;
        if lacks.contains(Capabilities::IWARP_LACKS) {
            // Its packets are not those of RoCE.
            (lacking.wire, lacking.pcap) = (false, None);
        }
        Some(Box::new(lacking))
    }

    fn lacks(&self) -> Option<Capabilities> {
        let of_system = if cfg!(target_os = "linux") {
            Capabilities::empty()
        } else {
            Capabilities::FD
        };
        Some(self.profile.lacks | of_system)
    }

    fn deviations(&self) -> Vec<Deviation> {
        deviations::of_profile(self.profile.name)
    }

    fn replay(&self, scenario: &Scenario) -> String {
        format!(
            "verbsim run --filter {} --seed {} --profile {} --link-layer {}{}",
            scenario.id,
            self.seed,
            self.profile,
            word(self.link_layer),
            if self.wire { " --wire" } else { "" }
        )
    }
}
