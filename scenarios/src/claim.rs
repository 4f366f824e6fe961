//! What assertions say that they check, and the record of it.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// The rule that an assertion checks, by its id, or two rules. A failure names the first.
///
/// ```
/// use verbs_scenarios::Claim;
///
/// assert_eq!(Claim::from("WC-04").main(), Some("WC-04"));
/// assert_eq!(Claim::from(["MW-06", "WC-26"]).main(), Some("MW-06"));
/// assert_eq!(Claim::NONE.main(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim([Option<&'static str>; 2]);

impl Claim {
    /// For set-up, which only leads up to what a scenario checks.
    pub const NONE: Self = Self([None; 2]);

    /// One rule.
    pub const fn one(rule: &'static str) -> Self {
        Self([Some(rule), None])
    }

    /// Two rules, the one that a failure names first.
    pub const fn two(main: &'static str, other: &'static str) -> Self {
        Self([Some(main), Some(other)])
    }

    /// The same main rule, along with this one.
    #[must_use]
    pub const fn with(self, other: &'static str) -> Self {
        Self([self.0[0], Some(other)])
    }

    /// The rule that a failure names.
    pub const fn main(self) -> Option<&'static str> {
        self.0[0]
    }
}

impl From<&'static str> for Claim {
    fn from(rule: &'static str) -> Self {
        Self::one(rule)
    }
}

impl From<[&'static str; 2]> for Claim {
    fn from([main, other]: [&'static str; 2]) -> Self {
        Self::two(main, other)
    }
}

/// Rules by their ids.
pub(crate) type Rules = BTreeSet<&'static str>;

thread_local! {
    /// Those that assertions of this thread have named.
    static NAMED: RefCell<Rules> = const { RefCell::new(Rules::new()) };
}

/// Records that an assertion is made, whether it holds or not.
pub(crate) fn record(claim: impl Into<Claim>) -> Claim {
    let claim = claim.into();
    NAMED.with_borrow_mut(|named| named.extend(claim.0.into_iter().flatten()));
    claim
}

/// What `body` gives, and the rules that its assertions name on this thread: not those of threads
/// that it starts.
pub(crate) fn recorded<T>(body: impl FnOnce() -> T) -> (T, Rules) {
    NAMED.take();
    let value = body();
    (value, NAMED.take())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{OfRule, Result, check, check_eq};

    #[test]
    fn assertions_are_recorded_up_to_the_first_that_does_not_hold() {
        let (result, named) = recorded(|| -> Result {
            check_eq!(Claim::NONE, 1 + 1, 2);
            Ok::<_, verbs_api::Error>(()).rule(["WC-01", "WC-02"])?;
            check!(Claim::one("WC-03").with("WC-04"), false, "true", "false");
            check_eq!("WC-05", 1, 1);
            Ok(())
        });
        assert_eq!(result.unwrap_err().rule, Some("WC-03"));
        assert!(named.iter().eq(&["WC-01", "WC-02", "WC-03", "WC-04"]));
    }
}
