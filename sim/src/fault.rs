//! When a fault rule strikes.

use verbs_api::When;

use crate::rng::Random;

/// Counts what matched a rule, and decides.
#[derive(Clone, Debug)]
pub(crate) struct Striker {
    when: When,
    seen: u64,
    struck: u64,
}

impl Striker {
    pub(crate) fn new(when: When) -> Self {
        Self {
            when,
            seen: 0,
            struck: 0,
        }
    }

    /// Something matched: whether the rule strikes it.
    pub(crate) fn strikes(&mut self, random: &mut Random) -> bool {
        self.seen += 1;
        let strikes = match self.when {
            When::Nth(n) => self.seen == n,
            When::First(n) => self.seen <= n,
            When::PerMillion(rate) => random.per_million(rate),
            _ => true,
        };
        self.struck += u64::from(strikes);
        strikes
    }

    /// How often it has struck.
    pub(crate) fn struck(&self) -> u64 {
        self.struck
    }
}
