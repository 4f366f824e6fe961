//! What is known of a run when it has ended, in a form that one process can pass to another.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use verbs_schedule::{End, Run, WaitStatus};

use crate::words::count;

/// The names of threads of the drop-in begin so. They wait whatever the program does.
pub(super) const OWN: &str = "verbs-sim";

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::exec) struct Outcome {
    /// Equal schedules have equal hashes.
    pub(super) hash: u64,
    pub(super) steps: u64,
    /// Steps in which another thread went on than in the one before.
    pub(super) switches: u64,
    /// The changes, as [`verbs_schedule::Change`] prints them.
    pub(super) changes: Vec<String>,
    pub(super) elapsed: Duration,
    /// Why the same seed may give another run.
    pub(super) by_time: Vec<String>,
    /// Why the run ended, if the program did not end it.
    stuck: Option<Stuck>,
    /// How the program ended, if it was by itself or by a signal.
    ended: Option<Ending>,
    /// How the command of --check ended, if it rejected the run.
    pub(super) check: Option<String>,
    /// Whether the run had a network of its own.
    pub(super) is_isolated: bool,
}

/// A program that did not end.
#[derive(Debug, Serialize, Deserialize)]
struct Stuck {
    what: String,
    /// A line for each thread of the program.
    threads: Vec<String>,
    /// The calls in which they wait, without what differs from run to run.
    calls: BTreeSet<String>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Ending {
    Status(i32),
    Signal(i32),
}

impl Outcome {
    pub(super) fn of(run: &Run, is_isolated: bool) -> Self {
        let stuck = match &run.end {
            End::Ended | End::Interrupted => None,
            End::Deadlock(threads) => Some((
                "deadlock: these threads cannot go on, and their waits have no end",
                threads,
            )),
            End::TimeLimit(threads) => {
                Some(("the time of the run by its own clock is over", threads))
            }
            End::TimedOut(threads) => Some(("the real time of the run is over", threads)),
        };
        let stuck = stuck.map(|(what, threads)| {
            let threads = threads
                .iter()
                .filter(|thread| !thread.name.starts_with(OWN));
            Stuck {
                what: what.to_owned(),
                threads: threads.clone().map(ToString::to_string).collect(),
                calls: threads
                    .map(|thread| format!("{} in {}", thread.name, thread.call))
                    .collect(),
            }
        });
        Self {
            hash: run.steps.hash,
            steps: run.steps.count,
            switches: run.steps.switches,
            changes: run.changes.iter().map(ToString::to_string).collect(),
            elapsed: run.elapsed,
            by_time: run.by_time.iter().map(ToString::to_string).collect(),
            stuck,
            ended: match run.status {
                Some(WaitStatus::Exited(_, status)) => Some(Ending::Status(status)),
                Some(WaitStatus::Signaled(_, signal, _)) => Some(Ending::Signal(signal as i32)),
                _ => None,
            },
            check: None,
            is_isolated,
        }
    }

    /// Whether the program had to be ended.
    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.is_some()
    }

    /// The lines for people at the end of a run.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(Stuck { what, threads, .. }) = &self.stuck {
            lines.push(format!("verbsim: {what}:"));
            lines.extend(threads.iter().map(|thread| format!("  {thread}")));
        }
        if let Some(check) = &self.check {
            lines.push(format!("verbsim: --check rejected the run: {check}"));
        }
        lines.push(format!(
            "verbsim: schedule {:016x}: {}, {} of thread, {:?} by the clock of the program",
            self.hash,
            count(self.steps, "step"),
            count(self.switches, "change"),
            self.elapsed,
        ));
        let why = self.by_time.iter();
        lines.extend(why.map(|why| format!("verbsim: the same seed may give another run: {why}")));
        lines
    }

    /// What makes a failure the same as that of another run, if the outcome shows one.
    pub(super) fn failure(&self) -> Option<String> {
        let stuck = self.stuck.as_ref();
        let stuck = stuck.map(|Stuck { what, calls, .. }| {
            let calls: Vec<_> = calls.iter().map(String::as_str).collect();
            format!("{what}: {}", calls.join(", "))
        });
        let ended = || match self.ended? {
            Ending::Status(0) => None,
            Ending::Status(status) => Some(format!("the program ended with status {status}")),
            Ending::Signal(signal) => Some(format!("signal {signal} ended the program")),
        };
        let check = || Some(format!("--check: {}", self.check.as_ref()?));
        stuck.or_else(ended).or_else(check)
    }
}
