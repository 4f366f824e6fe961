//! A test under many seeds and faults.

use core::fmt;
use std::env;
use std::num::NonZero;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use verbs_api::Verbs;
use verbs_api::lab::{Lab, TraceRecord};
use verbs_api::profile::Profile;
use verbs_faults::{Part, Plan, PlanError};
use verbs_sim::{Diagnosis, Finding, Pcap, Sim, SimConfig, Suppressions};

use crate::checked::{Checked, Summary, Witness};
use crate::coverage::Coverage;
use crate::panics::caught;
use crate::replay::{Replay, ReplayError};
use crate::seeds::{Searched, Seeds, Shard};
use crate::shrink::shrink;

/// Runs a test in many fresh simulations, each with a seed of its own, until one run fails. Then
/// looks for the smallest set of faults with which it still fails.
///
/// A failure can be repeated if all that the test does follows from its seed. So the test uses one
/// thread and [`Mode::Stepped`](verbs_sim::Mode::Stepped), the default. It does not depend on a
/// clock, on the order of a `HashMap`, or on random numbers other than those made from
/// [`World::seed`].
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
/// assert_eq!(explored.unwrap().tried, 100);
/// ```
#[derive(Clone, Debug)]
pub struct Exploration {
    name: String,
    config: SimConfig,
    profiles: Vec<Profile>,
    plan: Plan,
    seeds: Seeds,
    pcap: Option<Pcap>,
    strict: Option<Suppressions>,
    twice: bool,
}

/// A fresh simulation, for one run of a test.
#[non_exhaustive]
pub struct World {
    verbs: Arc<Checked>,
    seed: u64,
    profile: Option<Profile>,
}

/// The result of one run of a test.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Trial {
    /// The failure: the invariant that the device broke, the test's error or panic, or a mistake
    /// that [`strict`](Exploration::strict) does not allow.
    pub failure: Option<String>,
    /// A plan that repeats exactly the faults that fired.
    pub fired: Plan,
    /// The number of firings of each rule of the plan.
    pub firings: Vec<u64>,
    /// Counts of what the test did, if no invariant is broken.
    pub summary: Summary,
    /// The trace up to the failure, or of the whole run if it passed, oldest record first. Empty
    /// unless it was asked for.
    pub trace: Vec<TraceRecord>,
    /// The program's mistakes before the failure, and the objects alive at that point. Empty unless
    /// the test failed and the trace was asked for.
    pub diagnosis: Diagnosis,
}

/// The outcome of a test under many seeds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explored {
    /// The number of seeds tried, and what was met in them.
    pub coverage: Coverage,
    /// The failure of the lowest seed that fails, with the smallest set of faults.
    pub failure: Option<Found>,
    /// If the search was interrupted, the seeds with which to continue it, in the same shard.
    pub rest: Option<Range<u64>>,
}

/// A failure of a test, and how to replay it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Found {
    /// The seed.
    pub seed: u64,
    /// The profile of the devices, if the exploration has [profiles](Exploration::profiles).
    pub profile: Option<Profile>,
    /// The failure, as in [`Trial::failure`]; or a note that the run did not fail again with the
    /// same seed and faults.
    pub failure: String,
    /// The smallest set of faults that was found with which the test fails. Without any one of them
    /// it passes, except if 1,000 runs were not enough to find that set.
    pub faults: Plan,
    /// Replays the failure: the same trace, byte for byte.
    pub replay: Replay,
    /// The trace up to the failure, oldest record first. It ends before the unwinding or the
    /// returned error destroys the program's objects.
    ///
    /// Polls of an empty queue are left out, as in any trace of the simulator. If a program does
    /// nothing but poll an empty queue, that is one record, such as
    /// `ibv_poll_cq(cq#0, 4) = 0, 57 times`.
    pub trace: Vec<TraceRecord>,
    /// The program's mistakes before the failure, and the objects alive at that point, before
    /// anything is destroyed on the way out. If the device broke an invariant, it is a snapshot of
    /// that moment.
    pub diagnosis: Diagnosis,
}

impl Exploration {
    /// A new exploration. `name` is part of its replays: letters, digits and `_`, `-`, `.`, `/`;
    /// any other character becomes `_`. Defaults: seeds 0 to 999, two devices, the
    /// [standard plan](Plan::standard) of faults, one run at a time.
    pub fn new(name: &str) -> Self {
        Self {
            name: word(name),
            config: SimConfig::new(),
            profiles: Vec::new(),
            plan: Plan::standard(),
            seeds: Seeds::new(0..1000),
            pcap: None,
            strict: None,
            twice: false,
        }
    }

    /// Sets the range of seeds.
    #[must_use]
    pub fn seeds(mut self, range: Range<u64>) -> Self {
        self.seeds = self.seeds.range(range);
        self
    }

    /// Runs only the seeds of a shard, so that several machines can share an exploration.
    #[must_use]
    pub fn shard(mut self, shard: Shard) -> Self {
        self.seeds = self.seeds.shard(shard);
        self
    }

    /// Sets the largest number of runs at the same time.
    #[must_use]
    pub fn jobs(mut self, jobs: NonZero<usize>) -> Self {
        self.seeds = self.seeds.jobs(jobs);
        self
    }

    /// Sets the plan of faults.
    #[must_use]
    pub fn faults(mut self, plan: Plan) -> Self {
        self.plan = plan;
        self
    }

    /// Sets the configuration of the simulations. Its seed is ignored, because each run has its
    /// own. In another mode than [`Mode::Stepped`](verbs_sim::Mode::Stepped), the default, the seed
    /// does not decide all of a run, so a failure may not come back.
    #[must_use]
    pub fn config(mut self, config: SimConfig) -> Self {
        self.config = config;
        self
    }

    /// Runs the test on devices of each of these profiles, instead of that of the
    /// [configuration](Self::config): those of seed `n` have profile `n % profiles.len()`. Without
    /// any, the default, all have that of the configuration.
    ///
    /// A replay names the profile, and is refused if its seed has got another one since.
    #[must_use]
    pub fn profiles(mut self, profiles: impl IntoIterator<Item = Profile>) -> Self {
        self.profiles = profiles.into_iter().collect();
        self
    }

    /// Makes a run fail if the test passes but has made definite mistakes ([`Sim::strict`]), except
    /// for those that are `allowed`. Failures that the faults of the plan cause are not mistakes.
    #[must_use]
    pub fn strict(mut self, allowed: Suppressions) -> Self {
        self.strict = Some(allowed);
        self
    }

    /// Runs each seed twice, and fails if the two runs differ: with the first record of their
    /// traces that does. A test that depends on the order of a `HashMap`, on a clock, or on what an
    /// earlier run left in a `static` differs, and its failures may not come back.
    #[must_use]
    pub fn twice(mut self) -> Self {
        self.twice = true;
        self
    }

    /// Writes the packets of a run to a capture file: of the failed run with the smallest set of
    /// faults, or of a replay. Other runs write nothing.
    #[must_use]
    pub fn pcap(mut self, pcap: Pcap) -> Self {
        self.pcap = Some(pcap);
        self
    }

    /// The seeds to try, with their shard and jobs, for a search of your own
    /// ([`trial`](Self::trial)).
    pub fn all_seeds(&self) -> &Seeds {
        &self.seeds
    }

    /// Runs the test under each seed, and returns what it met: a passed exploration in which no
    /// fault fired says little ([`Coverage::hints`]). Prints nothing. A panic of the test is a
    /// failure, like an error.
    ///
    /// If the environment variable [`REPLAY`] holds a replay of an exploration of this name, runs
    /// only that.
    ///
    /// # Errors
    /// The failure of the lowest seed that fails, with the smallest set of faults; or the failure
    /// of the replay.
    ///
    /// # Panics
    /// If [`REPLAY`] holds no replay, or one that [`replay`](Self::replay) refuses. If the
    /// simulation refuses the plan ([`check`](Self::check)).
    pub fn run<E: fmt::Display>(
        &self,
        test: impl Fn(&World) -> Result<(), E> + Sync,
    ) -> Result<Coverage, Box<Found>> {
        if let Some(replay) = self.replay_of_environment() {
            let found = self.replay(&replay, &test);
            let found = found.unwrap_or_else(|refused| panic!("{REPLAY}: {refused}"));
            let coverage = Coverage {
                tried: 1,
                ..Coverage::default()
            };
            return found.map_or(Ok(coverage), |found| Err(Box::new(found)));
        }
        let explored = self.search(&test, || ControlFlow::Continue(()));
        let failure = explored.failure.map(Box::new);
        failure.map_or(Ok(explored.coverage), Err)
    }

    /// Runs the test like [`run`](Self::run), but ignores the environment, and calls `tried` after
    /// each seed, from any of the threads. If `tried` returns `Break`, no other seed begins.
    ///
    /// # Panics
    /// If the simulation refuses the plan ([`check`](Self::check)).
    pub fn search<E: fmt::Display>(
        &self,
        test: impl Fn(&World) -> Result<(), E> + Sync,
        tried: impl Fn() -> ControlFlow<()> + Sync,
    ) -> Explored {
        let rules = self.plan.rules().iter();
        let fired: Vec<_> = rules.map(|_| AtomicU64::new(0)).collect();
        let (failed, reconnected) = (AtomicU64::new(0), AtomicU64::new(0));
        let count = |seeds: &AtomicU64, times: u64| {
            seeds.fetch_add((times > 0).into(), Ordering::Relaxed);
        };
        let trial = |seed| {
            let trial = self.judged(seed, &self.plan, false, &test);
            let firings = fired.iter().zip(&trial.firings);
            firings.for_each(|(seeds, firings)| count(seeds, *firings));
            count(&failed, trial.summary.failed);
            count(&reconnected, trial.summary.reconnected);
            trial.failed()
        };
        let Searched {
            tried,
            failure,
            rest,
        } = self.seeds.search(trial, tried);
        let coverage = Coverage {
            tried,
            fired: fired.into_iter().map(AtomicU64::into_inner).collect(),
            failed: failed.into_inner(),
            reconnected: reconnected.into_inner(),
        };
        Explored {
            coverage,
            rest,
            failure: failure.map(|(seed, failed)| self.found(seed, &failed, &test)),
        }
    }

    /// Checks that the simulation accepts the plan. `file` is the name that an error has for the
    /// plan.
    ///
    /// # Errors
    /// The first rule that it refuses, for a node or port that does not exist.
    pub fn check(&self, file: &str) -> Result<(), PlanError> {
        let sim = Sim::new(self.config.clone());
        self.plan.check(file, &sim)
    }

    /// Runs the test as a replay describes, and returns its failure, or `None` if it passes.
    ///
    /// # Errors
    /// If the replay is of another version, name, profile or plan, or if the test passes and a
    /// fault that the replay names did not fire.
    ///
    /// # Panics
    /// If the simulation refuses the plan ([`check`](Self::check)).
    pub fn replay<E: fmt::Display>(
        &self,
        replay: &Replay,
        test: impl Fn(&World) -> Result<(), E>,
    ) -> Result<Option<Found>, ReplayError> {
        let faults = replay.plan(&self.subject(replay.seed), &self.plan)?;
        let trial = self.judged(replay.seed, &faults, true, &test);
        if trial.failure.is_none() {
            replay.check_fired(&faults, &trial.fired)?;
        }
        Ok(trial.failure.map(|failure| Found {
            seed: replay.seed,
            profile: self.profile(replay.seed),
            failure,
            faults,
            replay: replay.clone(),
            trace: trial.trace,
            diagnosis: trial.diagnosis,
        }))
    }

    /// Runs the test once, with this seed and under these faults. With `trace`, which takes longer,
    /// the result has the trace and the diagnosis, and [`pcap`](Self::pcap) is written.
    ///
    /// # Panics
    /// If the simulation refuses the faults.
    pub fn trial<E: fmt::Display>(
        &self,
        seed: u64,
        faults: &Plan,
        trace: bool,
        test: impl FnOnce(&World) -> Result<(), E>,
    ) -> Trial {
        let config = self.config.clone().seed(seed).trace(trace);
        // Records of which thread ran are for models, and would fill the trace with polls.
        let config = config.trace_threads(false);
        let profile = self.profile(seed);
        let config = match profile {
            Some(profile) => config.profile(profile),
            None => config,
        };
        let config = match self.pcap.filter(|_| trace) {
            Some(pcap) => config.pcap(pcap),
            None => config,
        };
        let sim = Arc::new(Sim::new(config));
        let in_force = faults.inject(&*sim).expect("the simulation takes the plan");
        // Only a run that is shown pays for the snapshot of its failure.
        let witness = trace.then(|| Arc::new(Witness::new(sim.clone())));
        let checked = Checked::new(sim.clone() as Arc<dyn Verbs>);
        let checked = match &witness {
            Some(witness) => checked.watched(witness.clone()),
            None => checked,
        };
        let verbs = Arc::new(checked);
        let world = World {
            verbs,
            seed,
            profile,
        };
        let result = caught(|| test(&world).map_err(|error| error.to_string()));
        if let Some(witness) = &witness {
            witness.ended();
        }
        let finished = world.verbs.finish();
        let summary = finished.as_ref().copied().unwrap_or_default();
        let broken = finished.err().map(|broken| broken.to_string());
        let fired = in_force.fired();
        let mut firings = vec![0; faults.rules().len()];
        for part in &fired {
            firings[part.rule] += 1;
        }
        let mistakes = || sim.diagnose().check(self.strict.as_ref()?).err();
        // A device that breaks an invariant may make the test fail, so it comes first.
        let failure = broken.or_else(|| result.and_then(|result| result).err());
        let failure = failure.or_else(mistakes);
        let (diagnosis, trace) = match (&failure, &witness) {
            (Some(_), Some(witness)) => witness.failure(),
            _ => (Diagnosis::default(), sim.trace()),
        };
        Trial {
            failure,
            fired: faults.scripted(&fired),
            firings,
            summary,
            trace,
            diagnosis,
        }
    }

    /// Runs the test once, or twice if the runs are to be the same.
    fn judged<E: fmt::Display>(
        &self,
        seed: u64,
        faults: &Plan,
        trace: bool,
        test: impl Fn(&World) -> Result<(), E>,
    ) -> Trial {
        let mut first = self.trial(seed, faults, trace || self.twice, &test);
        if self.twice {
            let second = self.trial(seed, faults, true, &test);
            if let Some(difference) = difference(&first, &second) {
                first.failure = Some(difference);
            }
        }
        first
    }

    /// The failure of a seed with the smallest set of the faults that fired.
    fn found<E: fmt::Display>(
        &self,
        seed: u64,
        failed: &Trial,
        test: impl Fn(&World) -> Result<(), E>,
    ) -> Found {
        let fired = &failed.fired;
        let fails = |parts: &[Part]| {
            let trial = self.judged(seed, &fired.only(parts), false, &test);
            trial.failure.is_some()
        };
        let fewest = shrink(fired.parts(), SHRINK_ATTEMPTS, fails);
        let faults = fired.only(&fewest);
        let trial = self.judged(seed, &faults, true, &test);
        let unsteady = || {
            let first = failed.failure.as_deref().unwrap_or_default();
            format!("it failed, but not with the same seed and faults again: {first}")
        };
        Found {
            seed,
            profile: self.profile(seed),
            failure: trial.failure.unwrap_or_else(unsteady),
            faults,
            replay: Replay::new(&self.subject(seed), seed, &self.plan, Some(fewest)),
            trace: trial.trace,
            diagnosis: trial.diagnosis,
        }
    }

    fn profile(&self, seed: u64) -> Option<Profile> {
        let number = seed.checked_rem(self.profiles.len() as u64)?;
        Some(self.profiles[number as usize])
    }

    /// The subject of the replays of this seed: the name, and the profile if any are set. A name
    /// has no `@`.
    fn subject(&self, seed: u64) -> String {
        match self.profile(seed) {
            Some(profile) => format!("{}@{}", self.name, word(profile.name)),
            None => self.name.clone(),
        }
    }

    fn replay_of_environment(&self) -> Option<Replay> {
        let text = env::var(REPLAY).ok()?;
        let replay: Replay = match text.parse() {
            Ok(replay) => replay,
            Err(error) => panic!("{REPLAY}: {error}"),
        };
        let name = replay.subject.split('@').next();
        (name == Some(self.name.as_str())).then_some(replay)
    }
}

/// The environment variable that makes an exploration run only one replay
/// ([`Exploration::run`]).
pub const REPLAY: &str = "VERBSIM_REPLAY";

/// The largest number of runs of a search for the smallest set of faults.
const SHRINK_ATTEMPTS: usize = 1000;

/// The number of trace records that a failure shows.
const TRACE_TAIL: usize = 40;

impl World {
    /// The devices `sim0`, `sim1`, ..., with the invariants checked on every call.
    pub fn verbs(&self) -> Arc<dyn Verbs> {
        self.verbs.clone()
    }

    /// The devices, for as long as the world lives.
    pub(crate) fn device(&self) -> &dyn Verbs {
        &*self.verbs
    }

    /// The test controls of the simulation.
    pub fn lab(&self) -> &dyn Lab {
        self.verbs.lab().expect("a simulation has test controls")
    }

    /// The seed, for random choices of the test itself.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The profile of the devices, if the exploration has [profiles](Exploration::profiles).
    pub fn profile(&self) -> Option<Profile> {
        self.profile
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("seed", &self.seed).finish()
    }
}

impl Trial {
    /// This trial, if it failed.
    pub fn failed(self) -> Option<Self> {
        self.failure.is_some().then_some(self)
    }
}

/// What two runs of a seed do not have in common.
fn difference(first: &Trial, second: &Trial) -> Option<String> {
    let text = |record: Option<&TraceRecord>| match record {
        Some(record) => format!("`{}`", record.to_string().trim()),
        None => "the end".to_owned(),
    };
    let longest = first.trace.len().max(second.trace.len());
    let records = (0..longest).map(|at| (at, [first, second].map(|run| run.trace.get(at))));
    let mut records = records.filter(|(_, [once, again])| once != again);
    if let Some((at, [once, again])) = records.next() {
        let (once, again) = (text(once), text(again));
        return Some(format!(
            "two runs of the seed differ: record {at} of the trace is {once}, and then {again}"
        ));
    }
    let outcome = |run: &Trial| run.failure.clone().unwrap_or_else(|| "a pass".to_owned());
    (first.failure != second.failure).then(|| {
        let (once, again) = (outcome(first), outcome(second));
        format!("two runs of the seed differ, and their traces do not: {once}, and then {again}")
    })
}

/// A name without characters that a shell or the text of a replay would split.
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

/// Prints the failure, the faults as a plan, the command that replays it (not with `{:#}`), the
/// diagnosis, and the last 40 records of the trace.
impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.failure)?;
        write!(f, "seed {}, ", self.seed)?;
        if let Some(profile) = self.profile {
            write!(f, "profile {profile}, ")?;
        }
        writeln!(f, "with these faults:")?;
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
        write_findings(f, "mistakes before the failure:", mistakes)?;
        write_findings(f, "objects alive at the failure:", leftovers)?;
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

/// Writes the findings below a heading, if there are any.
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

/// Prints the same as `Display`, so that `unwrap` shows the report.
impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
