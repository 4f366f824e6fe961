//! The error of a run in which no task can go on.

use core::fmt::Write;
#[cfg(feature = "tokio")]
use core::time::Duration;
use std::collections::BTreeMap;

#[cfg(feature = "tokio")]
use verbs_api::lab::Lab;
use verbs_api::lab::TaskWait;
use verbs_api::{Cause, Error, ErrorKind, Verb};

use super::Executor;
use super::task::Pause;

impl Executor<'_> {
    /// Names each task, what it waits for, since when and where, and the state of each
    /// CQ and channel that a task waits for.
    pub(super) fn stalled(&self) -> Error {
        let is_busy_waiting = self.0.is_busy_waiting();
        let waits = self.0.lab.stalled_tasks();
        let mut text = headline(&waits).to_owned();
        let _ = write!(text, " at {:?}: no task can go on, ", self.now());
        text += match (is_busy_waiting, self.0.lab.next_due()) {
            (true, _) => "those that yield and sleep do so again and again",
            (false, None) => "and nothing is in flight",
            (false, Some(_)) => "and the horizon is reached while timers still run",
        };
        let waits_for = self.waits_for(&waits);
        for (number, task) in &*self.0.tasks.borrow() {
            let _ = write!(text, "\n  {}, since {:?}: ", task.name, task.ran);
            text += &match waits_for.get(number) {
                _ if task.pause != Pause::Runs => "it is paused".to_owned(),
                Some(waits) => waits.join(", or "),
                None if is_busy_waiting => {
                    "yields, or something outside of the simulation".to_owned()
                }
                None => "something outside of the simulation".to_owned(),
            };
        }
        let cause = Cause::Text(text.into());
        Error::new(Verb::Lab, ErrorKind::Stalled, cause)
    }

    /// What each task waits for. The run is over, so that it does not matter that they are woken.
    fn waits_for(&self, waits: &[TaskWait]) -> BTreeMap<u64, Vec<String>> {
        let ready = &self.0.ready;
        let mut found = BTreeMap::<u64, Vec<String>>::new();
        for wait in waits {
            for number in ready.woken_by(&wait.waker) {
                found.entry(number).or_default().push(wait.wait.to_string());
            }
        }
        for (at, waker) in self.0.sleepers.all() {
            for number in ready.woken_by(&waker) {
                found.entry(number).or_default().push(format!("{at:?}"));
            }
        }
        for task in self.0.tasks.borrow().values() {
            let joiner = task.joiner.borrow();
            for number in joiner.iter().flat_map(|waker| ready.woken_by(waker)) {
                let end = format!("the end of {}", task.name);
                found.entry(number).or_default().push(end);
            }
        }
        found
    }
}

/// What the tasks of another executor wait for, when none can go on. Nothing has been in flight
/// since some time, or timers run on without a task.
#[cfg(feature = "tokio")]
pub(crate) fn stalled_text(lab: &dyn Lab, since: Duration) -> String {
    let waits = lab.stalled_tasks();
    let mut text = headline(&waits).to_owned();
    let _ = match lab.next_due() {
        None => write!(
            text,
            ": no task can go on, and nothing is in flight since {since:?}"
        ),
        Some(_) => write!(text, ": no task goes on, while timers still run"),
    };
    for wait in &waits {
        text += "\n  one task or more: ";
        let _ = write!(text, "{}", wait.wait);
    }
    if waits.is_empty() {
        text += "\n  no task waits for something of the simulation";
    }
    text
}

/// A completion that waits in a CQ, and no event for it: the usual sign of a wrong order of polling
/// and arming.
fn headline(waits: &[TaskWait]) -> &'static str {
    let mut cqs = waits.iter().flat_map(|wait| &wait.wait.stall.cqs);
    if cqs.any(|cq| cq.unpolled > 0) {
        "lost wake-up"
    } else {
        "deadlock"
    }
}
