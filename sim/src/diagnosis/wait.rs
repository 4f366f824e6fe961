//! Threads that wait, and what they wait for.

use core::time::Duration;

use verbs_api::Cq;
use verbs_api::site::Site;

use super::Class;
use super::problem::{Describe, Problem};
use super::words::{Names, counted, place_named};

/// A thread waits, and nothing that is under way ends that.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Waits {
    /// What it has called: a verb, or a function of the system.
    pub call: &'static str,
    /// What it waits for, in words.
    pub waits_for: String,
    /// For how long, if that is known.
    pub since: Option<Duration>,
    /// Why nothing comes.
    pub class: Class,
    /// In words, with what would end it.
    pub why: String,
    /// A place that these words speak of, behind words that say which; if it is known.
    pub place: Option<(&'static str, Site)>,
    /// What is wrong with an object, if that is why: it is said in place of these words.
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

/// The program was stopped, and had polled a CQ that had nothing many times.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PolledInVain {
    /// The CQ.
    pub cq: Cq,
    /// How often since its last completion.
    pub times: u64,
    /// What may still complete in it, in words.
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
