//! Fault rules of a device: completions become errors, resources become scarce.

use std::collections::BTreeMap;

use verbs_api::lab::{Fault, FaultId, Limit};
use verbs_api::{Cause, ErrorKind, WcStatus};

use super::refusal::{Refusal, Result};
use crate::trigger::Trigger;

/// The rules in force on a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// The rules for completions, by QP number (`None` is any), in the order of their creation.
    completions: BTreeMap<Option<u32>, Vec<CompletionRule>>,
    limits: Vec<(Limit, u64, Trigger)>,
    /// The limits that the test controls have set.
    set: BTreeMap<Limit, u64>,
    /// The number of rules created so far.
    count: u64,
}

#[derive(Clone, Debug)]
struct CompletionRule {
    /// The number of rules created before it.
    number: u64,
    status: WcStatus,
    trigger: Trigger,
}

impl Rules {
    /// Adds a rule for completions or for a resource.
    pub(crate) fn add(&mut self, fault: &Fault, trigger: Trigger) {
        match *fault {
            Fault::Completion { qpn, status, .. } => {
                let number = self.count;
                let rules = self.completions.entry(qpn).or_default();
                rules.push(CompletionRule {
                    number,
                    status,
                    trigger,
                });
            }
            Fault::Limit { limit, value, .. } => self.limits.push((limit, value, trigger)),
            _ => {}
        }
        self.count += 1;
    }

    pub(crate) fn remove(&mut self, id: FaultId) {
        self.completions.retain(|_, rules| {
            rules.retain(|rule| rule.trigger.id != id);
            !rules.is_empty()
        });
        self.limits.retain(|(.., trigger)| trigger.id != id);
    }

    /// The status of an error, if a rule turns the next completion of this QP into one.
    #[inline]
    pub(super) fn fire(&mut self, qp_num: u32) -> Option<WcStatus> {
        // Each completion passes here, and rules are rare.
        if self.completions.is_empty() {
            return None;
        }
        self.fire_by_rule(qp_num)
    }

    /// Whether no rule is for completions.
    pub(crate) fn spares_completions(&self) -> bool {
        self.completions.is_empty()
    }

    #[cold]
    fn fire_by_rule(&mut self, qp_num: u32) -> Option<WcStatus> {
        let of = |qpn| self.completions.get(&qpn).into_iter().flatten();
        let mut rules: Vec<_> = of(Some(qp_num)).chain(of(None)).collect();
        // Rules apply in the order of their creation, whichever list they are in.
        rules.sort_by_key(|rule| rule.number);
        let mut fired = None;
        for rule in rules {
            // Every rule counts the completion, also after another rule has fired, so leaving out
            // one rule does not change the others.
            if rule.trigger.fires(fired.is_none()) {
                fired = Some(rule.status);
            }
        }
        fired
    }

    /// Sets or removes the limit of a resource that the test controls impose.
    pub(crate) fn set_limit(&mut self, limit: Limit, value: Option<u64>) {
        match value {
            Some(value) => self.set.insert(limit, value),
            None => self.set.remove(&limit),
        };
    }

    /// The limit of a resource, if there is one.
    pub(crate) fn limit(&self, limit: Limit) -> Option<u64> {
        let of_it = self.limits.iter().filter(|(of, ..)| *of == limit);
        let by_rules = of_it.map(|(_, value, _)| *value);
        by_rules.chain(self.set.get(&limit).copied()).min()
    }

    /// Refuses `count` of a resource above its limit.
    pub(crate) fn check(&self, limit: Limit, what: &'static str, count: u64) -> Result<()> {
        let Some(max) = self.limit(limit).filter(|max| count > *max) else {
            return Ok(());
        };
        // Each rule that limits the resource counts its firings.
        let mut free = self.set.get(&limit).is_none_or(|own| count <= *own);
        for (of, value, trigger) in &self.limits {
            if *of == limit && count > *value {
                free &= !trigger.fires(free);
            }
        }
        let kind = match limit {
            Limit::Files => ErrorKind::TooManyFiles,
            _ => ErrorKind::NoMemory,
        };
        Err(Refusal::new(kind, Cause::Limit { what, limit: max }))
    }
}
