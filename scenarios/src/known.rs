//! What is known of the device that a scenario judges: an assertion whose failure a recorded
//! deviation explains is noted, and the scenario goes on.

use std::cell::RefCell;

use crate::deviations::Deviation;
use crate::failure::{Failure, Result};

thread_local! {
    /// What this thread knows, while it runs a scenario.
    static KNOWN: RefCell<Option<Known>> = const { RefCell::new(None) };
}

struct Known {
    deviations: Vec<Deviation>,
    noted: Vec<Failure>,
}

/// What `body` gives, and the failures that these deviations explain and that it went on after.
/// Threads that it starts know nothing: there a failure ends the scenario.
pub(crate) fn knowing<T>(deviations: &[&Deviation], body: impl FnOnce() -> T) -> (T, Vec<Failure>) {
    KNOWN.set(Some(Known {
        deviations: deviations.iter().map(|known| (*known).clone()).collect(),
        noted: Vec::new(),
    }));
    let value = body();
    (
        value,
        KNOWN.take().map_or_else(Vec::new, |known| known.noted),
    )
}

/// What an assertion that does not hold comes to: nothing if it is known and leaves all that is
/// needed to go on.
pub(crate) fn unless_known(failure: Failure) -> Result {
    note(failure, |known| known.ends.is_none())
}

/// What the failure of a case comes to: nothing if it is known, since other cases do not build on
/// it.
pub(crate) fn case_unless_known(failure: Failure) -> Result {
    note(failure, |_| true)
}

fn note(failure: Failure, goes_on: impl Fn(&Deviation) -> bool) -> Result {
    KNOWN.with_borrow_mut(|known| {
        let Some(Known { deviations, noted }) = known else {
            return Err(failure);
        };
        let failure = Failure {
            goes_on: true,
            ..failure
        };
        let explains = |of: &Deviation| goes_on(of) && of.explains(failure.rule, &failure.seen);
        if !deviations.iter().any(explains) {
            return Err(failure);
        }
        if !noted.contains(&failure) {
            noted.push(failure);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{check, check_eq};

    #[test]
    fn a_scenario_goes_on_after_what_is_known_and_ends_with_what_is_not() {
        let body = || -> Result {
            for seen in [2, 2, 3] {
                check_eq!("WC-01", seen, 1);
            }
            check!("WC-02", false, "true", "false");
            Ok(())
        };
        let known = |symptom: &str| Deviation {
            symptom: symptom.to_string(),
            ..Deviation::default()
        };
        let (two, three) = (known("2"), known("3"));
        let (result, noted) = knowing(&[&two, &three], body);
        let unknown = result.unwrap_err();
        assert_eq!((unknown.rule, unknown.goes_on), (Some("WC-02"), true));
        let seen: Vec<_> = noted.iter().map(|failure| failure.seen.as_str()).collect();
        assert_eq!(seen, ["2", "3"], "each once");
        let ends = Deviation {
            ends: Some("it is too late".to_string()),
            ..three
        };
        let (result, noted) = knowing(&[&two, &ends], body);
        assert_eq!(result.unwrap_err().seen, "3");
        assert_eq!(noted.len(), 1);
        let outside = body().unwrap_err();
        assert_eq!(outside.seen, "2", "nothing is known any more");
        assert!(!outside.goes_on, "a thread of a scenario ends with it");
    }
}
