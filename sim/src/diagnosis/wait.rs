//! Waiting threads, and what they wait for.

use core::time::Duration;

use verbs_api::Cq;
use verbs_api::site::Site;

use super::Class;
use super::evt::events_of;
use super::problem::{Problem, Unacknowledged, problems};
use super::words::{counted, place_named};

problems! {
    /// A thread waits, and nothing in progress ends its wait.
    Waits {
        /// The call in which it waits: a verb, or a function of the system.
        call: &'static str,
        /// What it waits for, as a phrase.
        waits_for: String,
        /// The time it has waited, if that is known.
        since: Option<Duration>,
        /// The class of the reason.
        class: Class,
        /// The reason as a sentence, with what would end the wait.
        why: String,
        /// A place that the sentence refers to, with the words that introduce it, if it is known.
        place: Option<(&'static str, Site)>,
        /// The problem of an object, if that is the reason. Its sentence is printed instead of
        /// `why`.
        of: Option<Box<Problem>>,
    }
    is *class,
    |names| {
        let since = since.map(|since| format!(", for {:.1} s now", since.as_secs_f64()));
        let since = since.unwrap_or_default();
        // The object's own sentence says more than the reason of the wait.
        let text = match of.as_deref() {
            Some(Problem::Unacknowledged(Unacknowledged { events, of, last })) => {
                events_of(*events, of, last.as_deref()) + " not acknowledged"
            }
            Some(problem) => problem.described().sentence(names),
            None => why.clone(),
        };
        let place = place_named(*place, names);
        format!("a thread waits in {call} for {waits_for}{since}: {text}{place}")
    };

    /// The program was stopped after it had polled an empty CQ many times.
    BusyPoll {
        /// The CQ.
        cq: Cq,
        /// The number of polls since its last completion.
        times: u64,
        /// The work that may still complete in it, as a phrase.
        outstanding: String,
    }
    is Class::BusyPoll,
    |names| {
        let (cq, times) = (names.cq(*cq), counted(*times, "time", "times"));
        format!("{cq} was polled {times} since its last completion: {outstanding}")
    };
}
