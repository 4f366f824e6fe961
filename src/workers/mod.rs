//! Scenarios in processes of their own. One that hangs or crashes costs its own result alone, and
//! several run at the same time.
//!
//! A worker is `verbsim run --worker`. It gets the ids of scenarios on its standard input, a line
//! each, and answers each with a line on its standard output. It ends with its input, and if its
//! parent ends.

mod child;
mod serve;

use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use verbs_scenarios::report::Entry;
use verbs_scenarios::{Backend, Failure, Scenario, bounds, lost};

use child::Child;
pub use serve::serve;

/// Processes that run scenarios.
#[derive(Clone, Debug)]
pub struct Workers {
    /// The program of each.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The number of processes at the same time.
    pub jobs: NonZero<usize>,
}

/// Sees how far a run is. Any thread may call it.
pub trait Watch: Sync {
    /// A scenario starts, unless this breaks the run off.
    fn starts(&self, scenario: &'static Scenario) -> ControlFlow<()>;

    /// A scenario has ended.
    fn ended(&self, entry: Entry);
}

/// What the workers of a run have in common.
struct Shared<'r> {
    workers: &'r Workers,
    backend: &'r dyn Backend,
    watch: &'r dyn Watch,
    left: Mutex<Box<dyn Iterator<Item = &'static Scenario> + Send + 'r>>,
}

impl Workers {
    /// Runs scenarios on the devices of `backend`, which are those that the workers open. With
    /// several processes those that must be [alone](Scenario::alone) come last.
    ///
    /// # Errors
    /// If the first process cannot start: why.
    pub fn run(
        &self,
        backend: &dyn Backend,
        scenarios: &[&'static Scenario],
        watch: &dyn Watch,
    ) -> Result<(), String> {
        let mut first = Some(Child::start(&mut self.command())?);
        let is_last = |scenario: &&'static Scenario| {
            scenario.alone.is_some() && self.jobs > NonZero::<usize>::MIN
        };
        let (last, together): (Vec<_>, Vec<_>) = scenarios.iter().copied().partition(is_last);
        for (scenarios, jobs) in [(together, self.jobs.get()), (last, 1)] {
            let shared = Shared {
                workers: self,
                backend,
                watch,
                left: Mutex::new(Box::new(scenarios.into_iter())),
            };
            thread::scope(|scope| {
                for _ in 0..jobs {
                    let child = first.take();
                    scope.spawn(|| shared.work(child));
                }
            });
        }
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }
}

impl Shared<'_> {
    /// Runs what is left, in one process at a time.
    fn work(&self, mut child: Option<Child>) {
        while let Some(scenario) = self.next() {
            if self.watch.starts(scenario).is_break() {
                break;
            }
            let begun = Instant::now();
            let entry = self.run(&mut child, scenario);
            let entry = entry.unwrap_or_else(|failure| {
                let mut entry = lost(self.backend, scenario, failure);
                entry.seconds = Some(begun.elapsed().as_secs_f64());
                entry
            });
            self.watch.ended(entry);
        }
        if let Some(child) = child {
            child.end();
        }
    }

    fn next(&self) -> Option<&'static Scenario> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.next()
    }

    /// Runs one. Its process is there for the next, unless it may be damaged.
    fn run(
        &self,
        child: &mut Option<Child>,
        scenario: &'static Scenario,
    ) -> Result<Entry, Failure> {
        let running = match child.take() {
            Some(running) => running,
            None => Child::start(&mut self.workers.command()).map_err(|why| {
                let seen = format!("could not start: {why}");
                Failure::assertion("a process for the scenario starts", seen)
            })?,
        };
        let (running, entry) = running.run(scenario, patience(self.backend, scenario))?;
        if scenario.hazards.is_empty() || entry.failure.is_none() {
            *child = Some(running);
        } else {
            running.end();
        }
        Ok(entry)
    }
}

/// How long a scenario may take. One that may hang takes few waits.
fn patience(backend: &dyn Backend, scenario: &Scenario) -> Duration {
    if scenario.hazards.is_empty() {
        return PATIENCE;
    }
    bounds(backend, scenario).positive * LONGEST_WAITS
}

/// How long a scenario may take, on a device with slow verbs too.
const PATIENCE: Duration = Duration::from_secs(300);

/// How many of the longest waits a scenario that has hazards may take: on a busy machine it is slow
/// even if it waits for nothing.
const LONGEST_WAITS: u32 = 12;
