//! When a fault rule strikes.

use std::sync::Arc;

use parking_lot::Mutex;
use verbs_api::lab::{FaultId, Strike, When};

use crate::rng::{Purpose, Random};

/// What all rules have struck, oldest first, where somebody may ask.
#[derive(Clone, Debug)]
struct Strikes(Option<Arc<Mutex<Vec<Strike>>>>);

impl Strikes {
    fn add(&self, strike: Strike) {
        if let Some(all) = &self.0 {
            all.lock().push(strike);
        }
    }
}

/// Counts what matched a rule, and decides.
#[derive(Debug)]
pub(crate) struct Trigger {
    id: FaultId,
    when: When,
    random: Random,
    seen: u64,
    struck: u64,
    strikes: Strikes,
}

/// The striker of a rule that several nodes have: they count together.
#[derive(Clone, Debug)]
pub(crate) struct SharedTrigger(Arc<Mutex<Trigger>>);

/// Makes strikers.
#[derive(Debug)]
pub(crate) struct Triggers {
    seed: u64,
    made: u32,
    strikes: Strikes,
}

impl Triggers {
    /// Whether strikes are kept is said by `keeps`.
    pub(crate) fn new(seed: u64, keeps: bool) -> Self {
        Self {
            seed,
            made: 0,
            strikes: Strikes(keeps.then(Arc::default)),
        }
    }

    /// The striker of the next rule. Which random numbers it gets depends on the seed and on how many
    /// rules there were before it.
    pub(crate) fn make(&mut self, id: FaultId, when: When) -> Trigger {
        let random = Random::new(self.seed, Purpose::Fault, self.made);
        self.made += 1;
        Trigger {
            id,
            when,
            random,
            seen: 0,
            struck: 0,
            strikes: self.strikes.clone(),
        }
    }

    pub(crate) fn strikes(&self) -> Vec<Strike> {
        let all = self.strikes.0.as_ref();
        all.map(|all| all.lock().clone()).unwrap_or_default()
    }
}

impl Trigger {
    /// Something matched: whether the rule strikes it. What is not `free` an earlier rule has struck:
    /// it only counts.
    pub(crate) fn strikes(&mut self, free: bool) -> bool {
        self.seen += 1;
        let would = match &self.when {
            When::Nth(n) => self.seen == *n,
            When::First(n) => self.seen <= *n,
            When::These(ordinals) => ordinals.contains(&self.seen),
            When::PerMillion(rate) => self.random.per_million(*rate),
            _ => true,
        };
        let strikes = would && free;
        if strikes {
            self.struck += 1;
            self.strikes.add(Strike {
                fault: self.id,
                ordinal: self.seen,
            });
        }
        strikes
    }

    pub(crate) fn id(&self) -> FaultId {
        self.id
    }

    /// How often it has struck.
    pub(crate) fn struck(&self) -> u64 {
        self.struck
    }

    pub(crate) fn shared(self) -> SharedTrigger {
        SharedTrigger(Arc::new(Mutex::new(self)))
    }
}

impl SharedTrigger {
    /// As [`Striker::strikes`].
    pub(crate) fn strikes(&self, free: bool) -> bool {
        self.0.lock().strikes(free)
    }

    pub(crate) fn id(&self) -> FaultId {
        self.0.lock().id
    }

    /// How often it has struck.
    pub(crate) fn struck(&self) -> u64 {
        self.0.lock().struck
    }
}
