//! What went wrong in a model, and which mistake it points to.

use core::error::Error as StdError;
use core::fmt;

use verbs_api::lab::{ArmState, CqReport, LostWakeup};
use verbs_api::{Cause, Cq, Error, Verb};

/// What a model, or a thread of it, gives.
pub type Outcome<T = ()> = Result<T, ModelError>;

/// What went wrong. Any error becomes one by `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelError {
    message: String,
    diagnosis: Option<String>,
    /// The words of the verb's error, if it comes from one.
    of_verb: Option<String>,
    /// It came before the arming of this CQ, which is for later ones.
    pub(crate) armed_late: Option<Cq>,
    /// It only says that another thread failed.
    pub(crate) follows: bool,
}

impl ModelError {
    /// With this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            diagnosis: None,
            of_verb: None,
            armed_late: None,
            follows: false,
        }
    }

    pub(crate) fn following(message: impl Into<String>) -> Self {
        Self {
            follows: true,
            ..Self::new(message)
        }
    }

    /// The error's own words.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The mistake in a program that leads there, where the error tells, with rule ids.
    pub fn diagnosis(&self) -> Option<&str> {
        self.diagnosis.as_deref()
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.diagnosis {
            Some(diagnosis) => write!(f, "\n{diagnosis}"),
            None => Ok(()),
        }
    }
}

impl ModelError {
    /// Whether it is this error of a verb, or a panic that says it.
    pub(crate) fn has(&self, error: &str) -> bool {
        match &self.of_verb {
            Some(own) => own == error,
            None => self.message.contains(error),
        }
    }

    /// Says it in other words.
    pub(crate) fn reword(&mut self, words: impl Fn(&str) -> String) {
        self.message = words(&self.message);
        self.diagnosis = self.diagnosis.as_deref().map(words);
    }

    /// The mistake, with a fact from the steps: whether the CQ was polled after arming.
    pub(crate) fn polled_after_arming(&mut self, polled: bool) {
        let more = if polled {
            "It was polled after arming, but not until it was empty (CQ-ARM-30, CQ-POLL-02)"
        } else {
            "It was not polled after arming and before waiting (CQ-ARM-03, CQ-ARM-31)"
        };
        let diagnosis = self.diagnosis.get_or_insert_default();
        *diagnosis = format!("{diagnosis}. {more}");
    }
}

impl<E: StdError + 'static> From<E> for ModelError {
    fn from(error: E) -> Self {
        let mut causes = core::iter::successors(Some(&error as &(dyn StdError + 'static)), |e| {
            StdError::source(*e)
        });
        let error_of_verb = causes.find_map(|cause| cause.downcast_ref::<Error>());
        Self {
            diagnosis: error_of_verb.and_then(diagnose),
            of_verb: error_of_verb.map(ToString::to_string),
            armed_late: error_of_verb.and_then(armed_late),
            ..Self::new(error.to_string())
        }
    }
}

/// The CQ that was armed when completions were already in it.
fn armed_late(error: &Error) -> Option<Cq> {
    let Cause::LostWakeup(lost) = error.cause() else {
        return None;
    };
    let is_late = |cq: &&CqReport| cq.armed != ArmState::Off && cq.unpolled > 0 && !cq.overrun;
    lost.cqs.iter().find(is_late).map(|cq| cq.cq)
}

/// The mistake that an error of the simulator points to.
fn diagnose(error: &Error) -> Option<String> {
    match error.cause() {
        Cause::LostWakeup(_) if error.verb() == Verb::ChannelFd => Some(
            "an edge comes once for what has happened, however many events that is: read events \
             until there is none, then wait for the next edge (CHAN-30, CHAN-32)"
                .into(),
        ),
        Cause::LostWakeup(lost) => Some(lost_wakeup(lost)),
        Cause::CqOverrun => Some(
            "a completion found the CQ full: it must have room for all that may complete before it \
             is polled, after a resize too (CQ-OVR-01, CQ-POLL-10, CQ-RESIZE-07)"
                .into(),
        ),
        Cause::Stall(_) if matches!(error.verb(), Verb::DestroyCq | Verb::DestroyQp) => Some(
            "an event was read and is not acknowledged: destroying waits for that \
             (CHAN-34, CHAN-35, ASYNC-03)"
                .into(),
        ),
        _ => None,
    }
}

fn lost_wakeup(lost: &LostWakeup) -> String {
    let Some(cq) = lost.cqs.iter().max_by_key(|cq| (cq.overrun, cq.unpolled)) else {
        return format!(
            "no CQ is on {}: an event can no longer come, and one that was unread went with its CQ \
             (CHAN-36, CQ-ARM-50)",
            lost.channel
        );
    };
    let CqReport { cq, unpolled, .. } = *cq;
    let have = match unpolled {
        1 => format!("an unpolled completion is in {cq}"),
        count => format!("{count} unpolled completions are in {cq}"),
    };
    match cq_state(&lost.cqs) {
        State::Overrun => format!("{cq} has overrun, and makes no events any more (CQ-OVR-02)"),
        State::Holds(ArmState::Next) => {
            format!("{have}, and it is armed: arming applies only to later ones")
        }
        State::Holds(ArmState::Solicited) => format!(
            "{have}: {cq} is armed for solicited completions, but this one is not solicited, or \
             came before the arming (CQ-ARM-06, CQ-ARM-03)"
        ),
        State::Holds(ArmState::Off) => format!(
            "{have}: its event has been used up, and {cq} was not armed again, or not polled until \
             it was empty (CQ-ARM-17, CQ-ARM-30)"
        ),
        State::Empty(true) => {
            "all completions have been polled: the loop waits for more than there \
             are, or another thread took them"
                .into()
        }
        State::Empty(false) => format!(
            "{cq} is empty and not armed: no completion would make an event (CQ-ARM-17, CQ-ARM-35)"
        ),
    }
}

/// The state of the CQ that matters most.
enum State {
    Overrun,
    Holds(ArmState),
    /// Whether all are armed.
    Empty(bool),
}

fn cq_state(cqs: &[CqReport]) -> State {
    if cqs.iter().any(|cq| cq.overrun) {
        return State::Overrun;
    }
    match cqs.iter().max_by_key(|cq| cq.unpolled) {
        Some(cq) if cq.unpolled > 0 => State::Holds(cq.armed),
        _ => State::Empty(cqs.iter().all(|cq| cq.armed != ArmState::Off)),
    }
}
