//! What brings a failure back, as one word.

use core::fmt;
use core::str::FromStr;
use std::collections::BTreeSet;

use verbs_api::lab::When;
use verbs_faults::{Part, Plan};

/// Names one run exactly: what ran, the seed, and which faults fired. As text it is one word, to
/// be given to `verbsim replay` or to [`Exploration::replay`](crate::Exploration::replay):
///
/// ```
/// use verbs_explore::Replay;
///
/// let replay: Replay = "0.1.0+3:echo:17:8f3a2c11:0.3,1.9".parse()?;
/// assert_eq!((replay.subject.as_str(), replay.seed), ("echo", 17));
/// assert_eq!(replay.to_string(), "0.1.0+3:echo:17:8f3a2c11:0.3,1.9");
/// # Ok::<(), verbs_explore::ReplayError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The version that wrote it. With another one the same seed and faults may mean another run.
    pub version: String,
    /// What ran: the name of an exploration or a scenario. For an exploration with
    /// [profiles](crate::Exploration::profiles), `@` and the profile follow. Without colons and
    /// white space.
    pub subject: String,
    /// The seed of everything random.
    pub seed: u64,
    /// The [digest](Plan::digest) of the fault plan.
    pub plan: u32,
    /// The parts of the plan that are in force: the number of a rule, and of what it fires on,
    /// unless the whole rule is. `None` is the whole plan, with firings drawn from the seed.
    pub parts: Option<Vec<Part>>,
}

impl Replay {
    /// A run of this version.
    pub fn new(subject: &str, seed: u64, plan: &Plan, parts: Option<Vec<Part>>) -> Self {
        Self {
            version: VERSION.to_owned(),
            subject: subject.to_owned(),
            seed,
            plan: plan.digest(),
            parts,
        }
    }

    /// The plan that does exactly this.
    ///
    /// # Errors
    /// If it was written by another version, for something else, or with another plan; it says what
    /// differs.
    pub fn plan(&self, subject: &str, plan: &Plan) -> Result<Plan, ReplayError> {
        let differs = |what, theirs: &dyn fmt::Display, ours: &dyn fmt::Display| {
            Err(ReplayError::Differs {
                what,
                theirs: theirs.to_string(),
                ours: ours.to_string(),
            })
        };
        if self.version != VERSION {
            return differs("version", &self.version, &VERSION);
        }
        if self.subject != subject {
            return differs("subject", &self.subject, &subject);
        }
        if self.plan != plan.digest() {
            let digest = |digest: u32| format!("{digest:08x}");
            return differs("fault plan", &digest(self.plan), &digest(plan.digest()));
        }
        let Some(parts) = &self.parts else {
            return Ok(plan.clone());
        };
        if !parts.iter().all(|part| has(plan, part)) {
            return Err(ReplayError::Malformed {
                field: "faults",
                allowed: "rules of the plan from 0, with the number of a firing from 1 that they can have",
            });
        }
        Ok(plan.scripted(parts).only(parts))
    }

    /// Checks that all faults that the replay names have fired. `faults` is its
    /// [plan](Self::plan).
    ///
    /// # Errors
    /// Names the first part that has not.
    pub(crate) fn check_fired(&self, faults: &Plan, fired: &Plan) -> Result<(), ReplayError> {
        let rules: BTreeSet<usize> = self.parts.iter().flatten().map(|part| part.rule).collect();
        let fired = fired.parts();
        for part in faults.parts() {
            if part.ordinal.is_some()
                && !fired.contains(&part)
                && let Some(&rule) = rules.iter().nth(part.rule)
            {
                return Err(ReplayError::NeverFired(Part { rule, ..part }));
            }
        }
        Ok(())
    }
}

fn has(plan: &Plan, part: &Part) -> bool {
    let rule = plan.rules().get(part.rule);
    rule.is_some_and(|rule| match (rule.when(), part.ordinal) {
        (Some(when), Some(ordinal)) => ordinal > 0 && can_fire(when, ordinal),
        (when, ordinal) => when.is_none() && ordinal.is_none(),
    })
}

fn can_fire(when: &When, ordinal: u64) -> bool {
    match when {
        When::Nth(n) => ordinal == *n,
        When::First(n) => ordinal <= *n,
        When::These(ordinals) => ordinals.contains(&ordinal),
        When::PerMillion(rate) => *rate > 0,
        _ => true,
    }
}

/// The version of the package, and how often the same seed and faults have come to mean another run
/// since it was set.
///
/// 1: a responder answers a long read in turns, and no duplicate of a read that it no longer keeps.
/// 2: random programs have the verbs of on-demand regions, dma-bufs, device memory, parent domains,
/// ECE, flushes and atomic writes.
/// 3: an empty poll does not move the clock to a timer while anything happens.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+3");

/// Stands for "as the plan and the seed decide".
const SEEDED: &str = "*";

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            version,
            subject,
            seed,
            plan,
            parts,
        } = self;
        write!(f, "{version}:{subject}:{seed}:{plan:08x}:")?;
        let Some(parts) = parts else {
            return f.write_str(SEEDED);
        };
        for (i, part) in parts.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{part}")?;
        }
        Ok(())
    }
}

impl FromStr for Replay {
    type Err = ReplayError;

    fn from_str(text: &str) -> Result<Self, ReplayError> {
        let malformed = |field, allowed| ReplayError::Malformed { field, allowed };
        let fields: Vec<&str> = text.trim().split(':').collect();
        let [version, subject, seed, plan, parts] = fields[..] else {
            return Err(malformed("replay", "VERSION:SUBJECT:SEED:PLAN:FAULTS"));
        };
        let seed = seed.parse().map_err(|_| malformed("seed", "a number"))?;
        let is_digest = plan.len() == 8 && !plan.starts_with('+');
        let plan = u32::from_str_radix(plan, 16).ok().filter(|_| is_digest);
        let plan = plan.ok_or_else(|| malformed("plan", "eight hexadecimal digits"))?;
        let parts = match parts {
            SEEDED => None,
            "" => Some(Vec::new()),
            list => {
                let parts: Option<_> = list.split(',').map(part).collect();
                Some(parts.ok_or_else(|| {
                    malformed("faults", "*, or RULE.NUMBER or RULE, with commas between")
                })?)
            }
        };
        Ok(Self {
            version: version.to_owned(),
            subject: subject.to_owned(),
            seed,
            plan,
            parts,
        })
    }
}

fn part(text: &str) -> Option<Part> {
    let (rule, ordinal) = match text.split_once('.') {
        Some((rule, ordinal)) => (rule, Some(ordinal.parse().ok()?)),
        None => (text, None),
    };
    Some(Part {
        rule: rule.parse().ok()?,
        ordinal,
    })
}

/// Why a replay is refused.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayError {
    /// The text is not a replay.
    Malformed {
        /// Which part makes no sense.
        field: &'static str,
        /// What would.
        allowed: &'static str,
    },
    /// The replay is of another version, subject or plan.
    Differs {
        /// What differs.
        what: &'static str,
        /// The value in the replay.
        theirs: String,
        /// The value of this run.
        ours: String,
    },
    /// The test passed, and this fault of the replay never came to fire.
    NeverFired(Part),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { field, allowed } => {
                write!(f, "the {field} of a replay is {allowed}")
            }
            Self::Differs { what, theirs, ours } => {
                write!(f, "the replay is of {what} {theirs}, but this is {ours}")
            }
            Self::NeverFired(part) => {
                write!(
                    f,
                    "no failure: fault {part} of the replay never came to fire"
                )
            }
        }
    }
}

impl fmt::Debug for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for ReplayError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_that_makes_no_sense_is_refused_with_what_would() {
        for (text, field) in [
            ("", "replay"),
            ("0.1.0:echo:17", "replay"),
            ("0.1.0:echo:x:8f3a2c11:*", "seed"),
            ("0.1.0:echo:-1:8f3a2c11:*", "seed"),
            ("0.1.0:echo:1:zz:*", "plan"),
            ("0.1.0:echo:1:8f3a2c11:1.x", "faults"),
            ("0.1.0:echo:1:8f3a2c11:1.2,", "faults"),
        ] {
            let error = text.parse::<Replay>().unwrap_err();
            let of = |error| match error {
                ReplayError::Malformed { field, .. } => field,
                ReplayError::Differs { what, .. } => what,
                ReplayError::NeverFired(_) => "fired",
            };
            assert_eq!(of(error), field, "{text}");
        }
    }

    #[test]
    fn a_replay_of_something_else_is_refused_with_what_differs() {
        let plan = Plan::standard();
        let replay = Replay::new("echo", 17, &plan, None);
        assert_eq!(replay.plan("echo", &plan), Ok(plan.clone()));
        let old = Replay {
            version: "0.0.1".to_owned(),
            ..replay.clone()
        };
        for (replay, subject, plan, what) in [
            (&old, "echo", &plan, "version 0.0.1"),
            (&replay, "ring", &plan, "subject echo, but this is ring"),
            (&replay, "echo", &Plan::default(), "fault plan"),
        ] {
            let error = replay.plan(subject, plan).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}
