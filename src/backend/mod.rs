//! What the suite can run against: the simulator under each of its profiles, and the devices of
//! this machine.

mod hardware;
mod machine;
mod place;
mod simulator;

pub use hardware::{Hardware, only};
pub use simulator::Simulator;

use std::fmt;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use serde::Serialize;
use verbs_api::profile::Profile;
use verbs_api::{Capabilities, LinkLayer, Verbs};
use verbs_explore::Checked;
use verbs_scenarios::{Backend, Failure, Fixture};
use verbs_sim::{Pcap, Sim, SimConfig};

use crate::workers::Workers;

/// Name of the option value that means every profile.
pub const ALL_PROFILES: &str = "all";

/// A backend to choose on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The simulator
    Sim,
    /// A device of this machine, through libibverbs
    Hw,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sim => "sim",
            Self::Hw => "hw",
        })
    }
}

impl Kind {
    /// All its devices, with nothing on them; none if it is not for this system.
    pub fn verbs(self) -> Option<Box<dyn Verbs>> {
        match self {
            Self::Sim => Some(Box::new(Sim::new(SimConfig::new()))),
            Self::Hw => machine::verbs(None),
        }
    }

    /// The options that are for it alone.
    fn options(self) -> Command {
        let none = Command::new("options");
        match self {
            Self::Sim => OfSimulator::augment_args(none),
            Self::Hw => OfHardware::augment_args(none),
        }
    }

    /// What is in the way of using its devices, a sentence each.
    pub fn obstacles(self) -> Vec<String> {
        match self {
            Self::Sim => Vec::new(),
            Self::Hw => machine::obstacles(),
        }
    }
}

/// Which backend, as the command line says it: the options of one are refused for the other.
#[derive(Clone, Debug)]
pub enum Choice {
    /// The simulator.
    Sim(OfSimulator),
    /// A device of this machine.
    Hw(OfHardware),
}

/// What `--backend` says.
#[derive(Args, Clone, Debug)]
struct OfBoth {
    /// What to run against
    #[arg(long, value_enum, default_value = "sim")]
    backend: Kind,
}

/// Options of the simulator.
#[derive(Args, Clone, Debug)]
pub struct OfSimulator {
    /// Profile of the simulator, such as spec or rxe; `all` runs each in turn
    #[arg(long, value_name = "NAME", default_value = "spec")]
    pub profile: String,
    /// Link layer of the simulator: ethernet (RoCE version 2) or infiniband
    /// [default: ethernet; with `--profile all`, both]
    #[arg(long, value_name = "NAME", value_parser = verbs_settings::link_layer)]
    pub link_layer: Option<LinkLayer>,
    /// Seed of everything random in the simulator
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Send encoded RoCEv2 packets between the simulated nodes
    #[arg(long)]
    pub wire: bool,
    /// Write every packet of the simulator to this file, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
}

/// Options of the devices of this machine.
#[derive(Args, Clone, Debug)]
pub struct OfHardware {
    /// The device and its place in the network.
    #[command(flatten)]
    pub at: DevicePlace,
    /// Also run scenarios that are recorded to crash this driver's kernel
    #[arg(long)]
    pub may_crash_kernel: bool,
    /// Also know the deviations of this file, which `verbsim deviations` drafts. May be given
    /// several times
    #[arg(long, value_name = "FILE")]
    pub deviations: Vec<PathBuf>,
    /// Run the scenarios in this process, not in child processes: one that hangs or crashes ends
    /// the run
    #[arg(long)]
    pub in_process: bool,
    /// Run scenarios in this many child processes at the same time. Those that others would
    /// disturb run alone, at the end
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        conflicts_with = "in_process"
    )]
    pub jobs: NonZero<usize>,
    /// Be a child process that runs the scenarios that the standard input names
    #[arg(long, hide = true)]
    pub worker: bool,
}

/// Which devices of this machine, and where they are connected.
#[derive(Args, Clone, Debug)]
pub struct DevicePlace {
    /// Which device [default: the first]
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// The device at the other end of each connection [default: the same]
    #[arg(long, value_name = "NAME")]
    pub peer_device: Option<String>,
    /// Port of the device [default: the first that is active]
    #[arg(long, value_name = "N")]
    pub port: Option<u8>,
    /// Index in the port's GID table [default: the first GID that is set, of RoCE version 2 if the
    /// port is of RoCE]
    #[arg(long, value_name = "N")]
    pub gid_index: Option<u8>,
}

impl Args for Choice {
    fn augment_args(command: Command) -> Command {
        let both = OfBoth::augment_args(command);
        let sim = OfSimulator::augment_args(both.next_help_heading("Options of --backend sim"));
        let hw = OfHardware::augment_args(sim.next_help_heading("Options of --backend hw"));
        hw.next_help_heading(None)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Choice {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let OfBoth { backend } = OfBoth::from_arg_matches(matches)?;
        let other = match backend {
            Kind::Sim => Kind::Hw,
            Kind::Hw => Kind::Sim,
        };
        if let Some(option) = given(matches, &other.options()).next() {
            let text = format!("{option} is for --backend {other}, and the backend is {backend}");
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        Ok(match backend {
            Kind::Sim => Self::Sim(OfSimulator::from_arg_matches(matches)?),
            Kind::Hw => Self::Hw(OfHardware::from_arg_matches(matches)?),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The options of `command` that the user has given, as they are written.
fn given(matches: &ArgMatches, command: &Command) -> impl Iterator<Item = String> {
    let options = command.get_arguments();
    let is_given = |option: &&Arg| {
        let source = matches.value_source(option.get_id().as_str());
        source == Some(ValueSource::CommandLine)
    };
    let written = |option: &Arg| option.get_long().map(|name| format!("--{name}"));
    options.filter(is_given).filter_map(written)
}

impl Choice {
    /// The file that all packets are written to.
    pub fn pcap(&self) -> Option<&Path> {
        match self {
            Self::Sim(options) => options.pcap.as_deref(),
            Self::Hw(_) => None,
        }
    }

    /// The backends that are meant: several for [`ALL_PROFILES`]. Simulators write their packets to
    /// `pcap`.
    ///
    /// # Errors
    /// Says which profiles or devices there are.
    pub fn backends(&self, pcap: Option<Pcap>) -> Result<Vec<Chosen>, String> {
        let options = match self {
            Self::Sim(options) => {
                let here = |backend| Chosen {
                    backend,
                    workers: None,
                };
                return Ok(options.simulators(pcap)?.into_iter().map(here).collect());
            }
            Self::Hw(options) => options,
        };
        let hardware = Hardware::chosen(options)?;
        let workers = hardware.workers(options.jobs);
        Ok(vec![Chosen {
            backend: Box::new(hardware),
            workers: workers.filter(|_| !options.in_process && !options.worker),
        }])
    }
}

/// A backend, and the processes in which scenarios run on it.
pub struct Chosen {
    /// The backend.
    pub backend: Box<dyn Backend>,
    /// The processes. `None`: this one.
    pub workers: Option<Workers>,
}

impl OfSimulator {
    fn simulators(&self, pcap: Option<Pcap>) -> Result<Vec<Box<dyn Backend>>, String> {
        let name = &self.profile;
        let chosen = match &name[..] {
            ALL_PROFILES => Profile::ALL.to_vec(),
            _ => vec![
                Profile::named(name)
                    .map_err(|unknown| format!("{unknown}, and {ALL_PROFILES} for each of them"))?,
            ],
        };
        let asked = match self.link_layer {
            Some(link_layer) => vec![link_layer],
            None if name == ALL_PROFILES => vec![LinkLayer::Ethernet, LinkLayer::InfiniBand],
            None => vec![LinkLayer::Ethernet],
        };
        if self.wire || pcap.is_some() {
            only_roce(&chosen, &asked)?;
        }
        let mut simulators: Vec<Box<dyn Backend>> = Vec::new();
        for link_layer in asked {
            let able = chosen
                .iter()
                .filter(|of| of.link_layers.contains(&link_layer));
            simulators.extend(able.map(|profile| -> Box<dyn Backend> {
                Box::new(Simulator {
                    link_layer,
                    wire: self.wire,
                    pcap,
                    ..Simulator::new(*profile, self.seed)
                })
            }));
        }
        if simulators.is_empty() {
            Err(format!("profile {name} is for ethernet alone"))
        } else {
            Ok(simulators)
        }
    }
}

/// Bytes of packets are those of RoCEv2.
///
/// # Errors
/// Says what has another wire.
pub fn only_roce(profiles: &[Profile], link_layers: &[LinkLayer]) -> Result<(), String> {
    let other = profiles
        .iter()
        .find(|profile| profile.lacks.contains(Capabilities::IWARP_LACKS));
    match (other, link_layers) {
        (Some(of), _) => Err(format!(
            "profile {of} is of iWARP, and --wire and --pcap are of RoCEv2"
        )),
        (None, [LinkLayer::Ethernet]) => Ok(()),
        _ => Err("--wire and --pcap are of RoCEv2, and not of InfiniBand".to_owned()),
    }
}

/// A link layer as options and reports name it.
fn word(link_layer: LinkLayer) -> String {
    link_layer.name().to_ascii_lowercase()
}

/// Fresh devices whose invariants are checked, whatever a scenario looks at.
pub fn checked(verbs: Box<dyn Verbs>) -> Fixture {
    let checked = Arc::new(Checked::new(verbs));
    let verbs: Arc<dyn Verbs> = checked.clone();
    Fixture::new(verbs).ending_with(move || {
        let finished = checked.finish();
        finished
            .map(drop)
            .map_err(|broken| Failure::invariant(broken.invariant.promise(), broken.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        choice: Choice,
    }

    fn runs(options: &str) -> Result<Vec<[String; 2]>, String> {
        let line = format!("verbsim {options}");
        let line = Line::try_parse_from(line.split_whitespace()).map_err(|e| e.to_string())?;
        let infos = line
            .choice
            .backends(None)?
            .into_iter()
            .map(|of| of.backend.info());
        Ok(infos.map(|info| [info.profile, info.link_layer]).collect())
    }

    #[test]
    fn all_profiles_run_on_each_link_layer_that_they_have() {
        let all = runs("--profile all").unwrap();
        let on = |link_layer: &str| all.iter().filter(|of| of[1] == link_layer).count();
        assert_eq!((on("ethernet"), on("infiniband")), (Profile::ALL.len(), 3));
        let infiniband = runs("--profile all --link-layer infiniband").unwrap();
        assert_eq!(infiniband[..], all[Profile::ALL.len()..]);
        assert_eq!(runs("").unwrap(), [["spec", "ethernet"]]);
        let one = runs("--profile mlx5 --link-layer infiniband").unwrap();
        assert_eq!(one, [["mlx5", "infiniband"]]);
    }

    #[test]
    fn bytes_of_another_wire_are_refused_in_words() {
        for (options, expected) in [
            ("--wire --profile siw", "profile siw is of iWARP"),
            ("--wire --profile all", "profile siw is of iWARP"),
            (
                "--wire --profile mlx5 --link-layer infiniband",
                "not of InfiniBand",
            ),
        ] {
            let refused = runs(options).unwrap_err();
            assert!(refused.contains(expected), "{options}: {refused}");
        }
        assert_eq!(runs("--wire --profile rxe").unwrap(), [["rxe", "ethernet"]]);
    }

    #[test]
    fn what_a_profile_or_nobody_has_is_refused_in_words() {
        let refused = runs("--profile rxe --link-layer infiniband").unwrap_err();
        assert_eq!(refused, "profile rxe is for ethernet alone");
        let unknown = runs("--link-layer token-ring").unwrap_err();
        assert!(
            unknown.contains("allowed are ethernet, infiniband"),
            "{unknown}"
        );
    }
}
