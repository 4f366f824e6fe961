//! The failure of a scenario, and the checks that report it.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};
use verbs_api::{Cause, Error, ErrorKind, PostError, Verb};

use crate::claim::{self, Claim};
use crate::known::case_unless_known;

/// The result of a scenario body.
pub type Result<T = (), E = Failure> = core::result::Result<T, E>;

/// A device that did not do as a rule says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The rule that does not hold; `None` when what failed only leads up to it.
    pub rule: Option<&'static str>,
    /// The expected observation.
    pub expected: String,
    /// The actual observation.
    pub seen: String,
    /// The scenario continues after it if a deviation explains it.
    pub(crate) goes_on: bool,
}

/// The kinds of failure of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FailureKind {
    /// Something else was seen than expected.
    Assertion,
    /// Something that had to come did not.
    Hang,
    /// The backend, or the scenario, broke down.
    Crash,
    /// Something that must hold whatever the scenario does did not.
    Invariant,
}

impl FailureKind {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Assertion => "assertion",
            Self::Hang => "hang",
            Self::Crash => "crash",
            Self::Invariant => "invariant",
        }
    }
}

impl Failure {
    /// Something else was seen than expected.
    pub fn assertion(expected: impl Into<String>, seen: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::Assertion,
            rule: None,
            expected: expected.into(),
            seen: seen.into(),
            goes_on: false,
        }
    }

    /// Something that had to come did not.
    pub fn hang(expected: impl Into<String>, seen: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::Hang,
            ..Self::assertion(expected, seen)
        }
    }

    /// The backend, or the scenario, broke down.
    pub fn crash(expected: impl Into<String>, seen: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::Crash,
            ..Self::assertion(expected, seen)
        }
    }

    /// Something that must hold whatever a scenario does did not: what was promised, and what was
    /// seen instead.
    pub fn invariant(promise: impl Into<String>, seen: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::Invariant,
            ..Self::assertion(promise, seen)
        }
    }

    /// The same failure, of this rule if it names none yet. Where set-up fails: an assertion is a
    /// [`rule`](OfRule::rule), which is recorded.
    #[must_use]
    pub(crate) fn of_rule(self, rule: impl Into<Claim>) -> Self {
        Self {
            rule: self.rule.or(rule.into().main()),
            ..self
        }
    }
}

impl From<Error> for Failure {
    /// A verb that should have succeeded.
    fn from(error: Error) -> Self {
        // These resolve an address, and their time may be over like that of a wait (AH-07).
        let resolves = matches!(error.verb(), Verb::CreateAh | Verb::ModifyQp);
        let waited = match error.kind() {
            ErrorKind::Stalled => true,
            ErrorKind::TimedOut => !resolves,
            _ => matches!(error.cause(), Cause::LostWakeup(_)),
        };
        let expected = format!("{} succeeds", error.verb());
        if waited {
            Self::hang(expected, format!("waited without result: {error}"))
        } else {
            Self::assertion(expected, error.to_string())
        }
    }
}

impl From<PostError> for Failure {
    fn from(error: PostError) -> Self {
        Self {
            seen: error.to_string(),
            ..error.error.into()
        }
    }
}

/// Asserts a result, and says which rule it is about:
/// `setup.req_notify_cq(cq, arm).rule("CQ-ARM-20")?`.
pub trait OfRule<T> {
    /// The result. Its failure is of `rule` if it names none yet.
    fn rule(self, rule: impl Into<Claim>) -> Result<T>;
}

impl<T, E: Into<Failure>> OfRule<T> for Result<T, E> {
    fn rule(self, rule: impl Into<Claim>) -> Result<T> {
        let rule = claim::record(rule);
        self.map_err(|error| error.into().of_rule(rule))
    }
}

/// A verb that must fail, with this kind of error. Gives the error, for a look at its facts.
pub fn expect_err<T, E>(result: Result<T, E>, kind: ErrorKind, rule: impl Into<Claim>) -> Result<E>
where
    T: Debug,
    E: Clone + Into<Error>,
{
    expect_err_among(result, &[kind], rule)
}

/// A verb that must fail, with one of these kinds of error.
pub fn expect_err_among<T, E>(
    result: Result<T, E>,
    kinds: &[ErrorKind],
    rule: impl Into<Claim>,
) -> Result<E>
where
    T: Debug,
    E: Clone + Into<Error>,
{
    let rule = claim::record(rule);
    let symbols: Vec<_> = kinds.iter().map(|kind| kind.symbol()).collect();
    let expected = format!("an error {}", symbols.join(" or "));
    match result {
        Ok(value) => Err(Failure::assertion(expected, format!("success: {value:?}")).of_rule(rule)),
        Err(error) => {
            let facts: Error = error.clone().into();
            if kinds.contains(&facts.kind()) {
                Ok(error)
            } else {
                Err(Failure::assertion(expected, facts.to_string()).of_rule(rule))
            }
        }
    }
}

/// Says in which case of a table a failure was seen. The table goes on after one that is known.
pub(crate) fn in_case(case: &str, result: Result) -> Result {
    value_in_case(case, result).or_else(case_unless_known)
}

/// As [`in_case`], for a value that the table needs to go on.
pub(crate) fn value_in_case<T>(case: &str, result: Result<T>) -> Result<T> {
    result.map_err(|failure| Failure {
        seen: format!("{} ({case})", failure.seen),
        ..failure
    })
}

/// Fails with `rule` unless a condition holds: `check!("CQ-POLL-01", n <= 4, "at most 4", "{n}")`.
///
/// Takes the rule, the condition, what is expected, and what was seen as arguments of `format!`.
macro_rules! check {
    ($rule:expr, $condition:expr, $expected:expr, $($seen:tt)+) => {{
        let rule = $crate::claim::record($rule);
        if !$condition {
            let failure = $crate::Failure::assertion($expected, format!($($seen)+));
            $crate::known::unless_known(failure.of_rule(rule))?;
        }
    }};
}

/// Fails with `rule` unless what was seen equals what is expected:
/// `check_eq!("WC-02", wc.wr_id, 7)`, or with words for it,
/// `check_eq!("WC-02", wc.wr_id, 7, "wr_id")`.
macro_rules! check_eq {
    ($rule:expr, $seen:expr, $expected:expr) => {
        $crate::failure::check_eq!($rule, $seen, $expected, stringify!($seen))
    };
    ($rule:expr, $seen:expr, $expected:expr, $what:expr) => {
        match (&$seen, &$expected) {
            (seen, expected) => {
                let rule = $crate::claim::record($rule);
                if *seen != *expected {
                    let failure = $crate::Failure::assertion(
                        format!("{} is {expected:?}", $what),
                        format!("{seen:?}"),
                    );
                    $crate::known::unless_known(failure.of_rule(rule))?;
                }
            }
        }
    };
}

pub(crate) use {check, check_eq};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_did_not_end_is_a_hang() {
        for (verb, kind, failure) in [
            (Verb::GetCqEvent, ErrorKind::Invalid, FailureKind::Assertion),
            (Verb::GetCqEvent, ErrorKind::TimedOut, FailureKind::Hang),
            (Verb::GetCqEvent, ErrorKind::Stalled, FailureKind::Hang),
            (Verb::CreateAh, ErrorKind::TimedOut, FailureKind::Assertion),
        ] {
            let error = Error::new(verb, kind, Cause::Unspecified);
            assert_eq!(Failure::from(error).kind, failure);
        }
    }

    #[test]
    fn the_innermost_rule_wins() {
        let inner: Result = Err(Failure::assertion("", "").of_rule("WC-01"));
        assert_eq!(inner.rule("WC-02").unwrap_err().rule, Some("WC-01"));
    }

    #[test]
    fn an_expected_error_must_come_and_be_of_the_kind() {
        let invalid = Error::new(Verb::ResizeCq, ErrorKind::Invalid, Cause::Unspecified);
        let refused: Result<(), Error> = Err(invalid.clone());
        assert!(expect_err(refused.clone(), ErrorKind::Invalid, "WC-01").is_ok());
        let failure = expect_err(refused, ErrorKind::Busy, "WC-01").unwrap_err();
        assert_eq!(failure.expected, "an error EBUSY");
        let accepted: Result<(), Error> = Ok(());
        assert!(expect_err(accepted, ErrorKind::Invalid, "WC-01").is_err());
    }

    #[test]
    fn checks_say_what_was_expected_and_seen() {
        fn body(n: u32) -> Result {
            check!("WC-01", n > 0, "at least one", "{n}");
            check_eq!("WC-02", n, 1, "the count");
            check_eq!("WC-03", n, 1);
            Ok(())
        }
        assert!(body(1).is_ok());
        assert_eq!(body(0).unwrap_err().seen, "0");
        let failure = body(2).unwrap_err();
        assert_eq!(failure.expected, "the count is 1");
        assert_eq!((failure.seen.as_str(), failure.rule), ("2", Some("WC-02")));
    }
}
