//! Decides when a fault rule fires.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use verbs_api::lab::{FaultId, Firing, When};

use crate::rng::{Purpose, Random};

/// The firings of all rules, oldest first, if they are kept.
type Firings = Option<Arc<Mutex<Vec<Firing>>>>;

/// Counts the matches of a rule, and decides on which it fires. Nodes that share a rule have
/// clones, which count together.
#[derive(Clone, Debug)]
pub(crate) struct Trigger {
    pub(crate) id: FaultId,
    seed: u64,
    number: u32,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug)]
struct Counts {
    when: When,
    random: Random,
    seen: u64,
    fired: u64,
    firings: Firings,
}

/// Makes triggers, and has those of the rules in force.
pub(crate) struct Triggers {
    seed: u64,
    made: u32,
    in_force: BTreeMap<FaultId, Trigger>,
    firings: Firings,
}

impl Triggers {
    /// Triggers for a seed. `keeps` tells whether firings are kept.
    pub(crate) fn new(seed: u64, keeps: bool) -> Self {
        Self {
            seed,
            made: 0,
            in_force: BTreeMap::new(),
            firings: keeps.then(Arc::default),
        }
    }

    /// The trigger of the next rule. Its random numbers depend on the seed and on the number of
    /// rules before it.
    pub(crate) fn make(&mut self, id: FaultId, when: When) -> Trigger {
        let (seed, number) = (self.seed, self.made);
        let random = Random::new(seed, Purpose::Fault, number);
        self.made += 1;
        let counts = Counts {
            when,
            random,
            seen: 0,
            fired: 0,
            firings: self.firings.clone(),
        };
        let counts = Arc::new(Mutex::new(counts));
        let trigger = Trigger {
            id,
            seed,
            number,
            counts,
        };
        self.in_force.insert(id, trigger.clone());
        trigger
    }

    /// Forgets the trigger of a rule that is removed.
    pub(crate) fn remove(&mut self, id: FaultId) {
        self.in_force.remove(&id);
    }

    /// How often a rule has fired, if it is in force.
    pub(crate) fn fired(&self, id: FaultId) -> Option<u64> {
        let trigger = self.in_force.get(&id)?;
        Some(trigger.counts.lock().fired)
    }

    pub(crate) fn firings(&self) -> Vec<Firing> {
        let all = self.firings.as_ref();
        all.map(|all| all.lock().clone()).unwrap_or_default()
    }
}

impl Trigger {
    /// Any number, for the last match. It depends on the seed, the number of rules before this one
    /// and the ordinal of the match, so a rule with fewer matches draws the same ones.
    pub(crate) fn draw(&self) -> u64 {
        let ordinal = self.counts.lock().seen;
        let seed = Random::new(self.seed, Purpose::Jitter, self.number).any();
        Random::new(seed.wrapping_add(ordinal), Purpose::Jitter, 0).any()
    }

    /// Counts a match, and decides whether the rule fires on it. If it is not `free`, an
    /// earlier rule has fired on it, and this one only counts.
    pub(crate) fn fires(&self, free: bool) -> bool {
        let mut counts = self.counts.lock();
        let counts = &mut *counts;
        counts.seen += 1;
        let ordinal = counts.seen;
        let would = match &counts.when {
            When::Nth(n) => ordinal == *n,
            When::First(n) => ordinal <= *n,
            When::These(ordinals) => ordinals.contains(&ordinal),
            When::PerMillion(rate) => counts.random.per_million(*rate),
            _ => true,
        };
        let fires = would && free;
        if fires {
            counts.fired += 1;
            let fault = self.id;
            if let Some(all) = &counts.firings {
                all.lock().push(Firing { fault, ordinal });
            }
        }
        fires
    }
}
