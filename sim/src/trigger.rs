//! Decides when a fault rule strikes.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use verbs_api::lab::{FaultId, Strike, When};

use crate::rng::{Purpose, Random};

/// The strikes of all rules, oldest first, if they are kept.
type Strikes = Option<Arc<Mutex<Vec<Strike>>>>;

/// Counts the matches of a rule, and decides which it strikes. Nodes that share a rule have clones,
/// which count together.
#[derive(Clone, Debug)]
pub(crate) struct Trigger {
    pub(crate) id: FaultId,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug)]
struct Counts {
    when: When,
    random: Random,
    seen: u64,
    struck: u64,
    strikes: Strikes,
}

/// Makes triggers, and has those of the rules in force.
pub(crate) struct Triggers {
    seed: u64,
    made: u32,
    in_force: BTreeMap<FaultId, Trigger>,
    strikes: Strikes,
}

impl Triggers {
    /// Triggers for a seed. `keeps` tells whether strikes are kept.
    pub(crate) fn new(seed: u64, keeps: bool) -> Self {
        Self {
            seed,
            made: 0,
            in_force: BTreeMap::new(),
            strikes: keeps.then(Arc::default),
        }
    }

    /// The trigger of the next rule. Its random numbers depend on the seed and on the number of
    /// rules before it.
    pub(crate) fn make(&mut self, id: FaultId, when: When) -> Trigger {
        let random = Random::new(self.seed, Purpose::Fault, self.made);
        self.made += 1;
        let counts = Counts {
            when,
            random,
            seen: 0,
            struck: 0,
            strikes: self.strikes.clone(),
        };
        let counts = Arc::new(Mutex::new(counts));
        let trigger = Trigger { id, counts };
        self.in_force.insert(id, trigger.clone());
        trigger
    }

    /// Forgets the trigger of a rule that is removed.
    pub(crate) fn remove(&mut self, id: FaultId) {
        self.in_force.remove(&id);
    }

    /// How often a rule has struck, if it is in force.
    pub(crate) fn struck(&self, id: FaultId) -> Option<u64> {
        let trigger = self.in_force.get(&id)?;
        Some(trigger.counts.lock().struck)
    }

    pub(crate) fn strikes(&self) -> Vec<Strike> {
        let all = self.strikes.as_ref();
        all.map(|all| all.lock().clone()).unwrap_or_default()
    }
}

impl Trigger {
    /// Counts a match, and decides whether the rule strikes it. If it is not `free`, an earlier
    /// rule has struck it, and this one only counts.
    pub(crate) fn strikes(&self, free: bool) -> bool {
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
        let strikes = would && free;
        if strikes {
            counts.struck += 1;
            let fault = self.id;
            if let Some(all) = &counts.strikes {
                all.lock().push(Strike { fault, ordinal });
            }
        }
        strikes
    }
}
