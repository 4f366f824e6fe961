//! A test under many seeds and faults.

use core::fmt;
use std::env;
use std::num::NonZero;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use verbs_api::Verbs;
use verbs_api::lab::{Lab, TraceRecord};
use verbs_faults::{Part, Plan, PlanError};
use verbs_sim::{Diagnosis, Finding, Pcap, Sim, SimConfig, Suppressions};

use crate::checked::{Checked, Witness};
use crate::panics::caught;
use crate::replay::{Replay, ReplayError};
use crate::seeds::{Searched, Seeds, Shard};
use crate::shrink::shrink;

/// Runs a test in many fresh simulations, a seed each, until it fails in one; then looks for the
/// fewest faults with which it still fails.
///
/// ```
/// use std::time::Duration;
/// use verbs_api::Wait;
/// use verbs_explore::Exploration;
///
/// let explored = Exploration::new("opens").seeds(0..100).run(|world| {
///     let context = world.verbs().open_device("sim0").map_err(|error| error.to_string())?;
///     world.verbs().close_device(context).map_err(|error| error.to_string())
/// });
/// assert_eq!(explored.unwrap(), 100);
/// ```
#[derive(Clone, Debug)]
pub struct Exploration {
    name: String,
    config: SimConfig,
    plan: Plan,
    seeds: Seeds,
    pcap: Option<Pcap>,
    strict: Option<Suppressions>,
}

/// A fresh simulation, for one run of a test.
#[non_exhaustive]
pub struct World {
    verbs: Arc<Checked>,
    seed: u64,
}

/// One run of a test.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Trial {
    /// What was wrong: what the test returned, its panic, or the invariant that the device broke.
    pub failure: Option<String>,
    /// The plan that strikes exactly what struck.
    pub struck: Plan,
    /// How often each rule has struck.
    pub strikes: Vec<u64>,
    /// What happened up to the failure, oldest record first. Empty unless it was asked for.
    pub trace: Vec<TraceRecord>,
    /// What the program had done wrong when it failed, and what was there then. Empty unless the
    /// trace was asked for.
    pub diagnosis: Diagnosis,
}

/// The outcome of a test under many seeds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explored {
    /// How many seeds were tried.
    pub tried: u64,
    /// In how many of them each rule of the plan has struck. A rule that hardly ever strikes shows
    /// nothing.
    pub struck: Vec<u64>,
    /// The failure of the lowest seed that fails, with the fewest faults.
    pub failure: Option<Found>,
    /// What was left when the search was broken off: the same shard of these seeds goes on.
    pub rest: Option<Range<u64>>,
}

/// How a test fails, and what brings it back.
#[derive(Clone)]
#[non_exhaustive]
pub struct Found {
    /// The seed.
    pub seed: u64,
    /// What was wrong.
    pub failure: String,
    /// The faults with which it fails. None of those that strike can be left out.
    pub faults: Plan,
    /// Brings it back: the same trace, byte for byte.
    pub replay: Replay,
    /// What happened up to the failure, oldest record first. Without what the program did on its
    /// way out: objects that are destroyed when an error is returned, or when a panic drops them.
    ///
    /// Polls of an empty queue are left out, as in any trace of the simulator. If a program does
    /// nothing but poll an empty queue, that is one record, such as
    /// `ibv_poll_cq(cq#0, 4) = 0, 57 times`.
    pub trace: Vec<TraceRecord>,
    /// What the program had done wrong when it failed, and apart from that what was there then: it
    /// is taken before anything is destroyed on the way out. If the device broke an invariant, it
    /// is of that moment.
    pub diagnosis: Diagnosis,
}

impl Exploration {
    /// For a test with this name, which replays carry: letters, digits and `_`, `-`, `.`, `/`, in
    /// the place of anything else `_`. Defaults: seeds 0 to 999, two nodes, the standard plan of
    /// faults, one job.
    pub fn new(name: &str) -> Self {
        Self {
            name: word(name),
            config: SimConfig::new(),
            plan: Plan::standard(),
            seeds: Seeds::new(0..1000),
            pcap: None,
            strict: None,
        }
    }

    /// Tries these seeds.
    #[must_use]
    pub fn seeds(mut self, range: Range<u64>) -> Self {
        self.seeds = self.seeds.range(range);
        self
    }

    /// Only the seeds of a shard.
    #[must_use]
    pub fn shard(mut self, shard: Shard) -> Self {
        self.seeds = self.seeds.shard(shard);
        self
    }

    /// Makes up to this many runs at the same time.
    #[must_use]
    pub fn jobs(mut self, jobs: NonZero<usize>) -> Self {
        self.seeds = self.seeds.jobs(jobs);
        self
    }

    /// Runs under these faults.
    #[must_use]
    pub fn faults(mut self, plan: Plan) -> Self {
        self.plan = plan;
        self
    }

    /// Runs in simulations of this configuration. Its seed is ignored, since each run has its own.
    /// Only in [`Mode::Stepped`](verbs_sim::Mode::Stepped), the default, does the seed decide a
    /// run.
    #[must_use]
    pub fn config(mut self, config: SimConfig) -> Self {
        self.config = config;
        self
    }

    /// Lets a run fail if its program has made definite mistakes ([`Sim::strict`]), except for
    /// those that are `allowed`. Failures that the faults of the plan cause are not mistakes.
    #[must_use]
    pub fn strict(mut self, allowed: Suppressions) -> Self {
        self.strict = Some(allowed);
        self
    }

    /// Writes the packets of the run that failed, with the fewest faults, or of a replay.
    #[must_use]
    pub fn pcap(mut self, pcap: Pcap) -> Self {
        self.pcap = Some(pcap);
        self
    }

    /// The seeds, for another search than [`run`](Self::run).
    pub fn all_seeds(&self) -> &Seeds {
        &self.seeds
    }

    /// Runs the test under each seed, and returns how many there were. It prints nothing. A panic
    /// of the test is a failure, like an error.
    ///
    /// If the environment variable [`REPLAY`] holds a replay of this name, only that is run.
    ///
    /// # Errors
    /// The failure of the lowest seed that fails, with the fewest faults.
    ///
    /// # Panics
    /// For a replay that is refused, or a plan that the simulation refuses.
    pub fn run<E: fmt::Display>(
        &self,
        test: impl Fn(&World) -> Result<(), E> + Sync,
    ) -> Result<u64, Box<Found>> {
        if let Some(replay) = self.replay_of_environment() {
            let found = self.replay(&replay, &test);
            let found = found.unwrap_or_else(|refused| panic!("{REPLAY}: {refused}"));
            return found.map_or(Ok(1), |found| Err(Box::new(found)));
        }
        let explored = self.search(&test, || ControlFlow::Continue(()));
        let failure = explored.failure.map(Box::new);
        failure.map_or(Ok(explored.tried), Err)
    }

    /// As [`run`](Self::run), but ignores the environment; calls `tried` after each seed, which may
    /// break the search off.
    ///
    /// # Panics
    /// For a plan that the simulation refuses ([`check`](Self::check)).
    pub fn search<E: fmt::Display>(
        &self,
        test: impl Fn(&World) -> Result<(), E> + Sync,
        tried: impl Fn() -> ControlFlow<()> + Sync,
    ) -> Explored {
        let rules = self.plan.rules().iter();
        let struck: Vec<_> = rules.map(|_| AtomicU64::new(0)).collect();
        let trial = |seed| {
            let trial = self.trial(seed, &self.plan, false, &test);
            for (seeds, strikes) in struck.iter().zip(&trial.strikes) {
                seeds.fetch_add((*strikes > 0).into(), Ordering::Relaxed);
            }
            trial.failed()
        };
        let Searched {
            tried,
            failure,
            rest,
        } = self.seeds.search(trial, tried);
        Explored {
            tried,
            rest,
            struck: struck.into_iter().map(AtomicU64::into_inner).collect(),
            failure: failure.map(|(seed, failed)| self.found(seed, &failed.struck, &test)),
        }
    }

    /// Checks that the simulation takes the plan, which was read from `file`.
    ///
    /// # Errors
    /// The first rule that it refuses, for a node or port that does not exist.
    pub fn check(&self, file: &str) -> Result<(), PlanError> {
        let sim = Sim::new(self.config.clone());
        self.plan.check(file, &sim)
    }

    /// Runs the test as a replay says, and returns its failure, if it fails.
    ///
    /// # Errors
    /// If the replay is of another version, name or plan, or if the test passes and a fault that
    /// the replay names did not strike.
    ///
    /// # Panics
    /// For a plan that the simulation refuses ([`check`](Self::check)).
    pub fn replay<E: fmt::Display>(
        &self,
        replay: &Replay,
        test: impl Fn(&World) -> Result<(), E>,
    ) -> Result<Option<Found>, ReplayError> {
        let faults = replay.plan(&self.name, &self.plan)?;
        let trial = self.trial(replay.seed, &faults, true, test);
        if trial.failure.is_none() {
            replay.check_struck(&faults, &trial.struck)?;
        }
        Ok(trial.failure.map(|failure| Found {
            seed: replay.seed,
            failure,
            faults,
            replay: replay.clone(),
            trace: trial.trace,
            diagnosis: trial.diagnosis,
        }))
    }

    /// One run, under these faults.
    ///
    /// # Panics
    /// For faults that the simulation refuses.
    pub fn trial<E: fmt::Display>(
        &self,
        seed: u64,
        faults: &Plan,
        trace: bool,
        test: impl FnOnce(&World) -> Result<(), E>,
    ) -> Trial {
        let config = self.config.clone().seed(seed).trace(trace);
        // Whose turn it was is for models, and would fill the trace with polls.
        let config = config.trace_threads(false);
        let config = match self.pcap.filter(|_| trace) {
            Some(pcap) => config.pcap(pcap),
            None => config,
        };
        let sim = Arc::new(Sim::new(config));
        let in_force = faults.inject(&*sim).expect("the simulation takes the plan");
        // Seeds that pass cost nothing: how one fails is looked at only when it is shown.
        let witness = trace.then(|| Arc::new(Witness::new(sim.clone())));
        let checked = Checked::new(sim.clone() as Arc<dyn Verbs>);
        let checked = match &witness {
            Some(witness) => checked.watched(witness.clone()),
            None => checked,
        };
        let verbs = Arc::new(checked);
        let world = World { verbs, seed };
        let result = caught(|| test(&world).map_err(|error| error.to_string()));
        if let Some(witness) = &witness {
            witness.ended();
        }
        let broken = world.verbs.finish().err().map(|broken| broken.to_string());
        let struck = in_force.struck();
        let mut strikes = vec![0; faults.rules().len()];
        for part in &struck {
            strikes[part.rule] += 1;
        }
        let mistakes = || sim.diagnose().check(self.strict.as_ref()?).err();
        // What the device did wrong comes before what the test makes of it, and that before what it
        // did wrong.
        let failure = broken.or_else(|| result.and_then(|result| result).err());
        let failure = failure.or_else(mistakes);
        let (diagnosis, trace) = match (&failure, &witness) {
            (Some(_), Some(witness)) => witness.failure(),
            _ => (Diagnosis::default(), sim.trace()),
        };
        Trial {
            failure,
            struck: faults.scripted(&struck),
            strikes,
            trace,
            diagnosis,
        }
    }

    /// The failure of a seed with the fewest faults, of those that struck when it failed.
    fn found<E: fmt::Display>(
        &self,
        seed: u64,
        struck: &Plan,
        test: impl Fn(&World) -> Result<(), E>,
    ) -> Found {
        let fails = |parts: &[Part]| {
            let trial = self.trial(seed, &struck.only(parts), false, &test);
            trial.failure.is_some()
        };
        let fewest = shrink(struck.parts(), SHRINK_ATTEMPTS, fails);
        let faults = struck.only(&fewest);
        let trial = self.trial(seed, &faults, true, &test);
        let unsteady = || "it failed, but not with the same seed and faults again".to_owned();
        Found {
            seed,
            failure: trial.failure.unwrap_or_else(unsteady),
            faults,
            replay: Replay::new(&self.name, seed, &self.plan, Some(fewest)),
            trace: trial.trace,
            diagnosis: trial.diagnosis,
        }
    }

    fn replay_of_environment(&self) -> Option<Replay> {
        let text = env::var(REPLAY).ok()?;
        let replay: Replay = match text.parse() {
            Ok(replay) => replay,
            Err(error) => panic!("{REPLAY}: {error}"),
        };
        (replay.subject == self.name).then_some(replay)
    }
}

/// The environment variable that makes an exploration run one replay and nothing else.
pub const REPLAY: &str = "VERBSIM_REPLAY";

/// How many runs a search for the fewest faults takes at most.
const SHRINK_ATTEMPTS: usize = 1000;

/// Records of the trace that a failure shows.
const TRACE_TAIL: usize = 40;

impl World {
    /// The devices `sim0`, `sim1`, ..., with the invariants checked on every call.
    pub fn verbs(&self) -> Arc<dyn Verbs> {
        self.verbs.clone()
    }

    /// The test controls around them.
    pub fn lab(&self) -> &dyn Lab {
        self.verbs.lab().expect("a simulation has test controls")
    }

    /// The seed, for what the test itself decides by chance.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("seed", &self.seed).finish()
    }
}

impl Trial {
    /// Itself, if it failed.
    pub fn failed(self) -> Option<Self> {
        self.failure.is_some().then_some(self)
    }
}

/// As one word of a shell and of a replay.
fn word(name: &str) -> String {
    let plain = |c: char| {
        if c.is_alphanumeric() || "_-./".contains(c) {
            c
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}

/// The failure, the faults as a plan, how to replay it (not with `{:#}`), the diagnosis, and the
/// end of the trace.
impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.failure)?;
        writeln!(f, "seed {}, with these faults:", self.seed)?;
        for line in self.faults.to_string().lines() {
            writeln!(f, "    {line}")?;
        }
        if !f.alternate() {
            writeln!(f, "run it again: {REPLAY}={} cargo test", self.replay)?;
        }
        let Diagnosis {
            mistakes,
            leftovers,
            ..
        } = &self.diagnosis;
        write_findings(f, "mistakes of the program up to then:", mistakes)?;
        write_findings(f, "what was there then:", leftovers)?;
        let skipped = self.trace.len().saturating_sub(TRACE_TAIL);
        match skipped {
            0 => writeln!(f, "trace:")?,
            skipped => writeln!(f, "trace, without the first {skipped} records:")?,
        }
        for record in &self.trace[skipped..] {
            writeln!(f, "    {record}")?;
        }
        Ok(())
    }
}

/// Some findings below a heading, if there are any.
fn write_findings(f: &mut fmt::Formatter<'_>, heading: &str, findings: &[Finding]) -> fmt::Result {
    let mut some = Diagnosis::default();
    some.mistakes = findings.to_vec();
    if !some.is_empty() {
        writeln!(f, "{heading}")?;
    }
    for line in some.to_string().lines() {
        writeln!(f, "    {line}")?;
    }
    Ok(())
}

/// As it is displayed: `unwrap` shows it.
impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
