//! Waiting threads, and what they wait for.

use core::time::Duration;

use verbs_api::Cq;
use verbs_api::site::Site;

use super::Class;
use super::problem::{Describe, Problem};
use super::words::{Names, counted, place_named};

/// A thread waits, and nothing in progress ends its wait.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Waits {
    /// The call in which it waits: a verb, or a function of the system.
    pub call: &'static str,
    /// What it waits for, as a phrase.
    pub waits_for: String,
    /// The time it has waited, if that is known.
    pub since: Option<Duration>,
    /// The class of the reason.
    pub class: Class,
    /// The reason as a sentence, with what would end the wait.
    pub why: String,
    /// A place that the sentence refers to, with the words that introduce it, if it is known.
    pub place: Option<(&'static str, Site)>,
    /// The problem of an object, if that is the reason. Its sentence is printed instead of `why`.
    pub of: Option<Box<Problem>>,
}

impl Describe for Waits {
    fn class(&self) -> Class {
        self.class
    }

    fn sentence(&self, names: &dyn Names) -> String {
        let Self {
            call,
            waits_for,
            since,
            why,
            place,
            of,
            ..
        } = self;
        let now = |since: &Duration| format!(", for {:.1} s now", since.as_secs_f64());
        let since = since.as_ref().map(now).unwrap_or_default();
        // The object's own sentence says more than the reason of the wait.
        let text = match of.as_deref() {
            Some(Problem::Unacknowledged(unacknowledged)) => {
                format!("{} not acknowledged", unacknowledged.events_in_words())
            }
            Some(problem) => problem.sentence(names),
            None => why.clone(),
        };
        let place = place_named(*place, names);
        format!("a thread waits in {call} for {waits_for}{since}: {text}{place}")
    }
}

/// The program was stopped after it had polled an empty CQ many times.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PolledInVain {
    /// The CQ.
    pub cq: Cq,
    /// The number of polls since its last completion.
    pub times: u64,
    /// The work that may still complete in it, as a phrase.
    pub outstanding: String,
}

impl Describe for PolledInVain {
    fn class(&self) -> Class {
        Class::PolledInVain
    }

    fn sentence(&self, names: &dyn Names) -> String {
        let (cq, outstanding) = (names.cq(self.cq), &self.outstanding);
        let times = counted(self.times, "time", "times");
        format!("{cq} was polled {times} since its last completion: {outstanding}")
    }
}
