//! The search through the interleavings of a model.

use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use verbs_sim::{Mode, SimConfig};

use crate::diagram::Counterexample;
use crate::error::{ModelError, Outcome};
use crate::harness::{Execution, Harness};

/// Searches a model with the default bounds, and fails the test if it does not hold.
///
/// # Panics
/// As [`Report::expect_holds`].
#[track_caller]
pub fn check(body: impl Fn(&Harness) -> Outcome + Send + Sync + 'static) {
    Search::new().run(body).expect_holds();
}

/// What chooses among the interleavings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checker {
    /// loom, in a build with `--cfg loom`: all of them.
    Loom,
    /// shuttle, in a build with `--cfg shuttle`: a sample.
    Shuttle,
    /// Nothing: threads of the machine, once.
    None,
}

/// The checker of this build.
pub const CHECKER: Checker = if cfg!(loom) {
    Checker::Loom
} else if cfg!(shuttle) {
    Checker::Shuttle
} else {
    Checker::None
};

/// How a model is searched.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "each checker reads its own")]
pub struct Search {
    preemptions: Option<u32>,
    limit: u64,
    samples: u64,
    config: SimConfig,
}

impl Default for Search {
    fn default() -> Self {
        Self::new()
    }
}

impl Search {
    /// With loom all interleavings, at most a million; with shuttle 10,000; one device.
    pub const fn new() -> Self {
        Self {
            preemptions: None,
            limit: 1_000_000,
            samples: 10_000,
            config: SimConfig::new().nodes(1).mode(Mode::Inline),
        }
    }

    /// loom: tries only interleavings that preempt a thread that could go on at most this often. A
    /// bound of 0 or 1 misses common mistakes; 2 and 3 find nearly all. Default: no bound, or what
    /// `LOOM_MAX_PREEMPTIONS` says.
    #[must_use]
    pub const fn preemptions(self, bound: u32) -> Self {
        Self {
            preemptions: Some(bound),
            ..self
        }
    }

    /// The bound of [`preemptions`](Self::preemptions).
    pub const fn bound(&self) -> Option<u32> {
        self.preemptions
    }

    /// loom: gives up the search after this many interleavings; it does not count as passed.
    /// Default: a million, or less if `LOOM_MAX_PERMUTATIONS` is lower.
    #[must_use]
    pub const fn limit(self, executions: u64) -> Self {
        Self {
            limit: executions,
            ..self
        }
    }

    /// shuttle: how many interleavings to try, half of them at random, half with random priorities
    /// (PCT, depth 3); the same ones each time. Default: 10,000.
    #[must_use]
    pub const fn samples(self, executions: u64) -> Self {
        Self {
            samples: executions,
            ..self
        }
    }

    /// The simulation: how many devices, and how they behave. The harness uses `sim0`; the mode is
    /// always inline. Default: one device that follows the specification.
    #[must_use]
    pub const fn config(self, config: SimConfig) -> Self {
        Self {
            config: config.mode(Mode::Inline),
            ..self
        }
    }

    /// Searches until the model fails or the search ends. It does not panic, whatever the model
    /// does.
    ///
    /// The body must do the same each time, apart from the order of threads: no clock, no random
    /// numbers, no order of a hash table.
    pub fn run(&self, body: impl Fn(&Harness) -> Outcome + Send + Sync + 'static) -> Report {
        let body = Arc::new(body);
        let first = Run::new(self, None);
        let coverage = first.search(self, body.clone());
        let executions = first.progress().executions;
        let Some(found) = first.take_found() else {
            return Report::new(executions, coverage, None);
        };
        // The search takes the same way again: so only the one execution that matters is traced.
        let again = Run::new(self, Some(executions));
        if CHECKER != Checker::None && !found.failures.is_empty() {
            again.search(self, body);
        }
        let same = |again: &Execution| again.failures == found.failures;
        let traced = again.take_found().filter(same);
        let counterexample = Counterexample::new(executions, traced.unwrap_or(found));
        Report::new(executions, coverage, Some(counterexample))
    }
}

/// One run of the search.
#[derive(Clone)]
struct Run {
    config: SimConfig,
    /// Which execution to trace.
    traced: Option<u64>,
    progress: Arc<Mutex<Progress>>,
}

#[derive(Default)]
struct Progress {
    executions: u64,
    found: Option<Execution>,
}

/// Ends a search that has found something.
struct Stop;

impl Run {
    fn new(search: &Search, traced: Option<u64>) -> Self {
        Self {
            config: search.config.clone(),
            traced,
            progress: Arc::default(),
        }
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_found(&self) -> Option<Execution> {
        self.progress().found.take()
    }

    fn search<B>(&self, search: &Search, body: Arc<B>) -> Coverage
    where
        B: Fn(&Harness) -> Outcome + Send + Sync + 'static,
    {
        let run = self.clone();
        let once = move || run.once(&*body);
        let executions = || self.progress().executions;
        let result = catch_unwind(AssertUnwindSafe(|| explore(search, once, executions)));
        result.unwrap_or_else(|panic| {
            if !panic.is::<Stop>() {
                self.gave_up(&*panic);
            }
            Coverage::Truncated
        })
    }

    /// The checker itself stopped: threads wait for each other, or forever.
    fn gave_up(&self, panic: &(dyn std::any::Any + Send)) {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let message = format!("the checker stopped: {}", text.unwrap_or("it panicked"));
        self.progress().found.get_or_insert(Execution {
            threads: Vec::new(),
            failures: vec![("checker".into(), ModelError::new(message))],
            steps: Vec::new(),
        });
    }

    fn once(&self, body: &(dyn Fn(&Harness) -> Outcome + Send + Sync)) {
        let number = {
            let mut progress = self.progress();
            progress.executions += 1;
            progress.executions
        };
        let trace = CHECKER == Checker::None || self.traced == Some(number);
        let execution = Harness::execute(self.config.clone().trace_threads(trace), body);
        if !execution.failures.is_empty() {
            self.progress().found = Some(execution);
            stop();
        }
    }
}

/// Unwinds out of the checker, without a word.
fn stop() {
    if CHECKER != Checker::None {
        std::panic::resume_unwind(Box::new(Stop));
    }
}

#[cfg(loom)]
fn explore(
    search: &Search,
    once: impl Fn() + Send + Sync + 'static,
    executions: impl Fn() -> u64,
) -> Coverage {
    let started = std::time::Instant::now();
    let mut builder = loom::model::Builder::new();
    builder.max_branches = builder.max_branches.max(100_000);
    if let Some(bound) = search.preemptions {
        builder.preemption_bound = Some(bound as usize);
    }
    let own_limit = builder
        .max_permutations
        .map_or(u64::MAX, |limit| limit as u64);
    let limit = search.limit.min(own_limit);
    // It stops before this one. A search that is cut runs one interleaving above the limit, and one
    // that ends by itself at the limit does not.
    builder.max_permutations = Some(usize::try_from(limit.saturating_add(2)).unwrap_or(usize::MAX));
    if builder.checkpoint_file.is_none() {
        // It looks at its limits only so often.
        builder.checkpoint_interval = 1;
    }
    builder.check(once);
    let is_late = |limit| started.elapsed() >= limit;
    if executions() > limit || builder.max_duration.is_some_and(is_late) {
        return Coverage::Truncated;
    }
    match builder.preemption_bound {
        Some(bound) => Coverage::Preemptions(bound as u32),
        None => Coverage::All,
    }
}

#[cfg(all(shuttle, not(loom)))]
fn explore(
    search: &Search,
    once: impl Fn() + Send + Sync + 'static,
    _executions: impl Fn() -> u64,
) -> Coverage {
    use shuttle::scheduler::{PctScheduler, RandomScheduler};
    const SEED: u64 = 0;
    const DEPTH: usize = 3;
    let mut config = shuttle::Config::new();
    config.stack_size = 0x40000;
    config.failure_persistence = shuttle::FailurePersistence::None;
    let once = Arc::new(once);
    let half = (search.samples / 2).max(1) as usize;
    let pct = PctScheduler::new_from_seed(SEED, DEPTH, half);
    let job = once.clone();
    shuttle::Runner::new(pct, config.clone()).run(move || job());
    let random = RandomScheduler::new_from_seed(SEED, half);
    shuttle::Runner::new(random, config).run(move || once());
    Coverage::Sample
}

#[cfg(not(any(loom, shuttle)))]
fn explore(
    _search: &Search,
    once: impl Fn() + Send + Sync + 'static,
    _executions: impl Fn() -> u64,
) -> Coverage {
    once();
    Coverage::Once
}

/// How much of what can happen a search has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Coverage {
    /// All interleavings.
    All,
    /// All with at most this many preemptions.
    Preemptions(u32),
    /// A sample.
    Sample,
    /// One: the build has no checker.
    Once,
    /// It ended early: at its limit, or with a counterexample.
    Truncated,
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all interleavings"),
            Self::Preemptions(bound) => write!(f, "all with at most {bound} preemptions"),
            Self::Sample => f.write_str("a sample"),
            Self::Once => f.write_str("one, without a checker"),
            Self::Truncated => f.write_str("incomplete"),
        }
    }
}

/// The outcome of a search.
#[derive(Clone, Debug)]
#[must_use = "a search that is not looked at proves nothing"]
#[non_exhaustive]
pub struct Report {
    /// Executions of the model, the failed one included.
    pub executions: u64,
    /// How much of what can happen they were.
    pub coverage: Coverage,
    /// How the model fails.
    pub counterexample: Option<Counterexample>,
}

impl Report {
    fn new(executions: u64, coverage: Coverage, counterexample: Option<Counterexample>) -> Self {
        Self {
            executions,
            coverage,
            counterexample,
        }
    }

    /// The model did not fail, and the search did all it was asked to.
    pub fn holds(&self) -> bool {
        self.counterexample.is_none() && self.coverage != Coverage::Truncated
    }

    /// Does nothing if the model [`holds`](Self::holds).
    ///
    /// # Panics
    /// With the counterexample; or if the search was given up.
    #[track_caller]
    pub fn expect_holds(self) {
        assert!(self.holds(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.counterexample {
            Some(counterexample) => counterexample.fmt(f),
            None if self.coverage == Coverage::Truncated => write!(
                f,
                "the search was given up after {} executions and proves nothing: bound it with \
                 Search::preemptions, or make the model smaller",
                self.executions
            ),
            None => write!(
                f,
                "holds in {} executions: {}",
                self.executions, self.coverage
            ),
        }
    }
}
