//! Many runs, each under the schedule of its own seed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::time::{Duration, Instant};
use std::{env, io, thread};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::wait::{WaitStatus, wait, waitpid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::fork;
use super::outcome::Outcome;
use super::shrink::shrink;
use crate::exec::{Args, start};
use crate::interrupt;
use crate::output::{Stop, print};
use crate::progress::Progress;
use crate::words::count;

/// Runs that may reduce the changes of each failure.
const RUNS_TO_SHRINK: usize = 300;

/// Lines of the output of a failed run that the report shows.
const SHOWN: usize = 30;

/// Runs the program under each seed, and reports how runs fail.
pub(in crate::exec) fn explore(args: &Args, seeds: Range<u64>) -> Result<(), Stop> {
    interrupt::listen(|| {}, || {});
    let start = Instant::now();
    let mut report = Report::default();
    let progress = Progress::new(
        seeds.end - seeds.start,
        "schedules",
        "{pos}/{len} {per_sec} {wide_bar} {eta} {msg}",
    );
    let mut running: BTreeMap<Pid, Job> = BTreeMap::new();
    let mut left = seeds.clone();
    // Whether two runs at once would meet is known after the first.
    let mut jobs = 1;
    let mut refused = None;
    loop {
        while running.len() < jobs
            && interrupt::go_on().is_continue()
            && let Some(seed) = left.next()
        {
            let job = Job::new(seed).map_err(|error| Stop::usage(error.to_string()))?;
            running.insert(job.start(args)?, job);
        }
        if running.is_empty() {
            break;
        }
        let ended = match wait() {
            Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) => pid,
            Ok(_) | Err(nix::Error::EINTR) => continue,
            Err(error) => return Err(Stop::usage(format!("a run: {error}"))),
        };
        let Some(job) = running.remove(&ended) else {
            continue;
        };
        match job.read() {
            Ok(ran) => {
                if ran.is_isolated() {
                    jobs = args.schedule.jobs.map_or_else(cpus, Into::into);
                }
                report.add(ran);
            }
            // What the others have found is not lost.
            Err(why) => {
                refused.get_or_insert(why);
                left = 0..0;
            }
        }
        progress.message(report.progress());
        progress.advance();
    }
    drop(progress);
    let budget = args.schedule.shrink.unwrap_or(RUNS_TO_SHRINK);
    for failure in report.failures.values_mut() {
        if interrupt::go_on().is_continue() {
            failure.reduce(args, budget)?;
        }
    }
    if report.runs > 0 || refused.is_none() {
        print(&report.text(start.elapsed()))?;
    }
    if let Some(why) = refused {
        return Err(Stop::Usage(why));
    }
    match (report.failures.is_empty(), left.next()) {
        (false, _) => Err(Stop::NotGood),
        (true, Some(seed)) => Err(Stop::Interrupted(format!(
            "interrupted; go on with --explore {seed}..{}",
            seeds.end
        ))),
        (true, None) => Ok(()),
    }
}

fn cpus() -> usize {
    thread::available_parallelism().map_or(1, Into::into)
}

/// A run that is under way.
struct Job {
    seed: u64,
    output: File,
    result: File,
}

/// What the process of a run says at its end.
#[derive(Serialize, Deserialize)]
struct Said {
    /// As `exec --schedule` has it.
    status: u8,
    message: Option<String>,
    /// None if the program could not run.
    outcome: Option<Outcome>,
}

/// A run that has ended.
struct Ran {
    seed: u64,
    said: Said,
    output: String,
    /// The changes that it needs to fail, if they were reduced.
    reduced: Option<Vec<String>>,
}

impl Job {
    fn new(seed: u64) -> io::Result<Self> {
        let file = |name: &str| memfd_create(name, MFdFlags::MFD_CLOEXEC).map(File::from);
        Ok(Self {
            seed,
            output: file("verbsim-output")?,
            result: file("verbsim-result")?,
        })
    }

    fn start(&self, args: &Args) -> Result<Pid, Stop> {
        let work = || {
            let (stop, outcome) = start::scheduled(args, self.seed);
            let said = Said {
                status: stop.status(),
                message: stop.message(),
                outcome,
            };
            let text = serde_json::to_vec(&said).expect("plain data");
            // Without it the parent reports that the run has said nothing.
            let _ = (&self.result).write_all(&text);
        };
        fork::start(&self.output, work).map_err(|error| Stop::usage(format!("a run: {error}")))
    }

    /// Runs with these changes.
    fn run(self, args: &Args, changes: &[String]) -> Result<Ran, Stop> {
        let mut args = args.clone();
        let changes = changes.iter().filter_map(|change| change.parse().ok());
        args.schedule.changes = Some(changes.collect());
        let pid = self.start(&args)?;
        while waitpid(pid, None) == Err(nix::Error::EINTR) {}
        self.read().map_err(Stop::Usage)
    }

    /// What the run has said and printed.
    fn read(mut self) -> Result<Ran, String> {
        let text = |file: &mut File| {
            let mut bytes = Vec::new();
            let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
            read.map(|_| String::from_utf8_lossy(&bytes).into_owned())
        };
        let seed = self.seed;
        let [output, said] = [text(&mut self.output), text(&mut self.result)];
        let output = output.map_err(|error| format!("the run of seed {seed}: {error}"))?;
        let said = said.ok().and_then(|said| serde_json::from_str(&said).ok());
        let said: Said = said
            .ok_or_else(|| format!("the run of seed {seed} ended without a result:\n{output}"))?;
        match &said {
            Said {
                outcome: None,
                message: Some(message),
                ..
            } => Err(message.trim_start_matches("error: ").to_owned()),
            _ => Ok(Ran {
                seed,
                said,
                output,
                reduced: None,
            }),
        }
    }
}

impl Ran {
    /// The changes of its schedule.
    fn changes(&self) -> &[String] {
        let outcome = self.said.outcome.as_ref();
        outcome.map_or(&[], |outcome| &outcome.changes)
    }

    fn is_isolated(&self) -> bool {
        let outcome = self.said.outcome.as_ref();
        outcome.is_some_and(|outcome| outcome.is_isolated)
    }

    /// What makes the failure the same as that of another run. `None` if the run is good.
    fn failure(&self) -> Option<String> {
        if self.said.status == 0 {
            return None;
        }
        let outcome = self.said.outcome.as_ref().and_then(Outcome::failure);
        let how = outcome.unwrap_or_else(|| "the diagnosis has a finding".to_owned());
        let findings: Vec<_> = self.findings().into_iter().collect();
        Some(if findings.is_empty() {
            how
        } else {
            format!("{how}; {}", findings.join(", "))
        })
    }

    /// The classes of mistakes in the diagnosis, with the places.
    fn findings(&self) -> BTreeSet<String> {
        let finding = |line: &str| {
            let (_, rest) = line.split_once(": VS-")?;
            let (class, text) = rest.split_once(": ")?;
            let place = text
                .strip_suffix(')')
                .and_then(|text| text.rsplit_once(" ("));
            let place = place.map_or(String::new(), |(_, place)| format!(" ({place})"));
            (!line.starts_with("help: ")).then(|| format!("VS-{class}{place}"))
        };
        self.output.lines().filter_map(finding).collect()
    }
}

/// What has been seen of all runs.
#[derive(Default)]
struct Report {
    runs: u64,
    steps: u64,
    switches: u64,
    schedules: BTreeSet<u64>,
    by_time: BTreeMap<String, u64>,
    shared_networks: u64,
    failures: BTreeMap<String, Failure>,
}

/// A way to fail.
struct Failure {
    runs: u64,
    /// The run with the fewest changes of thread, and of these the smallest seed.
    shortest: Ran,
}

impl Failure {
    /// Reduces the changes of its run, with at most `budget` runs.
    fn reduce(&mut self, args: &Args, budget: usize) -> Result<(), Stop> {
        let failure = self.shortest.failure();
        let (seed, changes) = (self.shortest.seed, self.shortest.changes().to_vec());
        let kept = shrink(changes, budget, |changes| {
            let ran = Job::new(seed)
                .map_err(|error| Stop::usage(error.to_string()))?
                .run(args, changes)?;
            if ran.failure() != failure {
                return Ok(None);
            }
            self.shortest = ran;
            Ok(Some(self.shortest.changes().to_vec()))
        })?;
        self.shortest.reduced = (budget > 0).then_some(kept);
        Ok(())
    }
}

impl Report {
    fn add(&mut self, ran: Ran) {
        self.runs += 1;
        if let Some(outcome) = &ran.said.outcome {
            self.steps += outcome.steps;
            self.switches += outcome.switches;
            self.schedules.insert(outcome.hash);
            self.shared_networks += u64::from(!outcome.is_isolated);
            for why in &outcome.by_time {
                *self.by_time.entry(why.clone()).or_default() += 1;
            }
        }
        let Some(failure) = ran.failure() else { return };
        let rank = |ran: &Ran| {
            let switches = ran.said.outcome.as_ref().map(|outcome| outcome.switches);
            (switches, ran.seed)
        };
        match self.failures.get_mut(&failure) {
            Some(known) => {
                known.runs += 1;
                if rank(&ran) < rank(&known.shortest) {
                    known.shortest = ran;
                }
            }
            None => {
                let shortest = ran;
                self.failures.insert(failure, Failure { runs: 1, shortest });
            }
        }
    }

    fn failed(&self) -> u64 {
        self.failures.values().map(|failure| failure.runs).sum()
    }

    fn progress(&self) -> String {
        match self.failed() {
            0 => String::new(),
            failed => format!("{failed} failed"),
        }
    }

    fn text(&self, elapsed: Duration) -> String {
        let mut text = String::new();
        for (how, failure) in &self.failures {
            let Ran { seed, output, .. } = &failure.shortest;
            text += &format!("failed in {}: {how}\n", count(failure.runs, "run"));
            let lines: Vec<_> = output.lines().collect();
            let hidden = lines.len().saturating_sub(SHOWN);
            if hidden > 0 {
                text += &format!("  | ... {} before\n", count(hidden as u64, "line"));
            }
            for line in &lines[hidden..] {
                text += &format!("  | {line}\n");
            }
            text += &format!(
                "  {}\n\n",
                replay(*seed, failure.shortest.reduced.as_deref())
            );
        }
        for (why, runs) in &self.by_time {
            text += &format!(
                "{}: the same seed may give another run: {why}\n",
                count(*runs, "run")
            );
        }
        if self.shared_networks > 0 {
            text += "the runs shared the network of this machine, one at a time\n";
        }
        let runs = self.runs.max(1);
        text += &match self.failures.len() as u64 {
            0 => format!("no failure in {}", count(self.runs, "run")),
            ways => format!(
                "{} of {} failed, in {}",
                self.failed(),
                count(self.runs, "run"),
                count(ways, "way")
            ),
        };
        text += &format!(
            ": {}, of {} and {} of thread on average; {:.0} runs/s\n",
            count(self.schedules.len() as u64, "different schedule"),
            count(self.steps / runs, "step"),
            count(self.switches / runs, "change"),
            runs as f64 / elapsed.as_secs_f64().max(f64::EPSILON),
        );
        text
    }
}

/// The command line with the schedule of one seed, or with some of its changes.
fn replay(seed: u64, changes: Option<&[String]>) -> String {
    let mut words = env::args();
    let mut kept = vec!["verbsim".to_owned()];
    words.next();
    while let Some(word) = words.next() {
        match word.split_once('=').map_or(&*word, |(name, _)| name) {
            "--" => {
                kept.push(word);
                kept.extend(words.by_ref().map(|word| quoted(&word)));
            }
            "--explore" => {
                kept.push(format!("--schedule {seed}"));
                if let Some(changes) = changes {
                    kept.push(format!("--changes {}", quoted(&changes.join(","))));
                }
                if word == "--explore" {
                    words.next();
                }
            }
            "--jobs" | "--shrink" => {
                if !word.contains('=') {
                    words.next();
                }
            }
            _ => kept.push(quoted(&word)),
        }
    }
    kept.join(" ")
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+%@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
