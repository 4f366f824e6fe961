//! What is explored: random programs or a scenario, on devices of a profile.

use core::fmt;

use verbs_api::Capabilities;
use verbs_api::profile::Profile;
use verbs_explore::program::{self, Outcome, Pace, Program};
use verbs_explore::{Exploration, Found, World};
use verbs_scenarios::{Deviation, Scenario, deviations, run_in, select};
use verbs_sim::{Pcap, SimConfig};

use crate::output::Stop;
use crate::run::no_scenario;

/// What is explored, on devices of a profile.
pub(crate) struct Subject {
    what: What,
    profile: Profile,
    known: Vec<Deviation>,
}

#[derive(Clone, Copy)]
enum What {
    Programs,
    Scenario(&'static Scenario),
}

/// What random programs are called in a replay.
const PROGRAM: &str = "program";

/// Nodes of random programs.
const NODES: u32 = 4;

/// How many programs a search for the shortest one tries at most.
const SHRINK_TRIES: usize = 2000;

impl Subject {
    fn new(what: What, profile: &str) -> Result<Self, Stop> {
        let profile =
            Profile::named(profile).map_err(|unknown| Stop::usage(unknown.to_string()))?;
        Ok(Self {
            what,
            profile,
            known: deviations::of_profile(profile.name),
        })
    }

    /// What a pattern means: random programs without one, else scenarios.
    pub(crate) fn chosen(pattern: Option<&str>, profile: &str) -> Result<Vec<Self>, Stop> {
        let Some(pattern) = pattern else {
            return Ok(vec![Self::new(What::Programs, profile)?]);
        };
        let matching = select(pattern);
        if matching.is_empty() {
            return Err(no_scenario(pattern));
        }
        let decided = matching.into_iter().filter(|scenario| is_decided(scenario));
        let subjects: Result<Vec<_>, _> = decided
            .map(|scenario| Self::new(What::Scenario(scenario), profile))
            .collect();
        match subjects {
            Ok(subjects) if subjects.is_empty() => Err(Stop::usage(format!(
                "what matches {pattern} needs threads, whose order no seed decides"
            ))),
            subjects => subjects,
        }
    }

    /// The one of this name, as [`Display`](fmt::Display) gives it.
    pub(crate) fn named(name: &str) -> Result<Self, Stop> {
        let unknown = || Stop::usage(format!("unknown subject `{name}` in the replay"));
        let (what, profile) = name.split_once('/').ok_or_else(unknown)?;
        let what = match what {
            PROGRAM => What::Programs,
            id => verbs_scenarios::all()
                .find(|scenario| scenario.id == id && is_decided(scenario))
                .map(What::Scenario)
                .ok_or_else(unknown)?,
        };
        Self::new(what, profile)
    }

    /// The fault plan it has if none is chosen.
    pub(crate) fn usual_faults(&self) -> &'static str {
        match self.what {
            What::Programs => "standard",
            What::Scenario(_) => "none",
        }
    }

    /// What the devices are.
    pub(crate) fn profile(&self) -> Profile {
        self.profile
    }

    /// An exploration of it, which writes the packets of what it shows.
    pub(crate) fn exploration(&self, planted_defect: bool, pcap: Option<Pcap>) -> Exploration {
        let config = SimConfig::new()
            .profile(self.profile)
            .planted_defect(planted_defect);
        let config = match self.what {
            What::Programs => config.nodes(NODES),
            What::Scenario(scenario) => config.lacks(self.profile.lacks | scenario.lacks),
        };
        let exploration = Exploration::new(&self.to_string()).config(config);
        match pcap {
            Some(pcap) => exploration.pcap(pcap),
            None => exploration,
        }
    }

    /// Runs it in a world.
    pub(crate) fn test(&self, world: &World) -> Result<(), String> {
        match self.what {
            What::Programs => judge(&program::run(&self.program(world.seed()), &*world.verbs())),
            What::Scenario(scenario) => run_in(&*world.verbs(), scenario, &self.known)
                .map_err(|failure| format!("expected {}, seen {}", failure.expected, failure.seen)),
        }
    }

    /// A random program that fails, as short as can be, as a test to paste into a file.
    pub(crate) fn code(&self, exploration: &Exploration, found: &Found) -> Option<String> {
        let What::Programs = self.what else {
            return None;
        };
        let run = |program: &Program| {
            let mut outcome = Outcome::default();
            let trial = exploration.trial(found.seed, &found.faults, false, |world| {
                outcome = program::run(program, &*world.verbs());
                judge(&outcome)
            });
            (outcome, trial.failure.is_some())
        };
        let fails = |program: &Program| run(program).1;
        let shortest = program::shrink(self.program(found.seed), SHRINK_TRIES, fails);
        let (outcome, _) = run(&shortest);
        let name = format!("program_of_seed_{}", found.seed);
        let simulation = self.simulation(found);
        Some(program::print(
            &shortest,
            &outcome,
            &name,
            &simulation,
            NODES as u8,
        ))
    }

    /// The code of a world with faults.
    fn simulation(&self, found: &Found) -> String {
        let profile = self.profile.name;
        let Found { seed, faults, .. } = found;
        format!(
            "verbs_explore::Checked::new(Box::new(Sim::new(\n        SimConfig::new()\n            \
             .nodes({NODES})\n            .seed({seed})\n            \
             .profile(Profile::named(\"{profile}\").unwrap()),\n    )) as Box<dyn Verbs>);\n    \
             let faults = r#\"{faults}\"#;\n    \
             let faults = verbs_faults::Plan::parse(\"faults\", faults).unwrap();\n    \
             let _in_force = faults.inject(verbs.lab().unwrap()).unwrap()"
        )
    }

    fn program(&self, seed: u64) -> Program {
        Program::of_seed(seed, Pace::Free)
    }
}

/// What a replay calls it.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            What::Programs => PROGRAM,
            What::Scenario(scenario) => scenario.id,
        };
        write!(f, "{what}/{}", self.profile)
    }
}

fn is_decided(scenario: &Scenario) -> bool {
    !scenario.needs.contains(Capabilities::THREADS)
}

fn judge(outcome: &Outcome) -> Result<(), String> {
    match &outcome.faults[..] {
        [] => Ok(()),
        faults => Err(faults.join("; ")),
    }
}
