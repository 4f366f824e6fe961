//! Fault rules of a device: completions become errors, resources become scarce.

use std::collections::BTreeMap;
use std::iter;

use verbs_api::lab::{FaultId, Limit};
use verbs_api::{Cause, ErrorKind, WcStatus};

use super::refusal::{Refusal, Result};
use crate::trigger::SharedTrigger;

/// The rules in force on a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// The rules for completions, by QP number (`None` is any), in the order of their creation.
    completions: BTreeMap<Option<u32>, Vec<CompletionRule>>,
    limits: Vec<(Limit, u64, SharedTrigger)>,
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
    trigger: SharedTrigger,
}

/// The effect of a rule of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// Completions of the QP with this number, or of any QP, get this status.
    Completion(Option<u32>, WcStatus),
    /// A resource has at most this amount.
    Limit(Limit, u64),
}

impl Rules {
    pub(crate) fn add(&mut self, what: What, trigger: SharedTrigger) {
        match what {
            What::Completion(qpn, status) => {
                let number = self.count;
                self.completions
                    .entry(qpn)
                    .or_default()
                    .push(CompletionRule {
                        number,
                        status,
                        trigger,
                    });
            }
            What::Limit(limit, value) => self.limits.push((limit, value, trigger)),
        }
        self.count += 1;
    }

    fn triggers(&self) -> impl Iterator<Item = &SharedTrigger> {
        let completions = self.completions.values().flatten();
        let limits = self.limits.iter().map(|(.., trigger)| trigger);
        completions.map(|rule| &rule.trigger).chain(limits)
    }

    pub(crate) fn remove(&mut self, id: FaultId) {
        self.completions.retain(|_, rules| {
            rules.retain(|rule| rule.trigger.id() != id);
            !rules.is_empty()
        });
        self.limits.retain(|(.., trigger)| trigger.id() != id);
    }

    /// The rules for completions of a QP, in the order of their creation.
    fn for_qp(&self, number: u32) -> impl Iterator<Item = &CompletionRule> {
        let of = |qpn| self.completions.get(&qpn).map_or(&[][..], Vec::as_slice);
        let (mut own, mut any) = (of(Some(number)), of(None));
        iter::from_fn(move || {
            // Rules apply in the order of their creation, whichever list they are in.
            let first_of_any = match (own.first(), any.first()) {
                (Some(own), Some(any)) => any.number < own.number,
                (own, _) => own.is_none(),
            };
            let next = if first_of_any { &mut any } else { &mut own };
            let (first, rest) = next.split_first()?;
            *next = rest;
            Some(first)
        })
    }

    /// How often a rule has fired, if it is one of these.
    pub(crate) fn struck(&self, id: FaultId) -> Option<u64> {
        let mut triggers = self.triggers();
        Some(triggers.find(|trigger| trigger.id() == id)?.struck())
    }

    /// The status of an error, if a rule turns the next completion of this QP into one.
    #[inline]
    pub(super) fn strike(&mut self, qp_num: u32) -> Option<WcStatus> {
        // Each completion passes here, and rules are rare.
        if self.completions.is_empty() {
            return None;
        }
        self.strike_by_rule(qp_num)
    }

    /// Whether no rule is for completions.
    pub(crate) fn spares_completions(&self) -> bool {
        self.completions.is_empty()
    }

    #[cold]
    fn strike_by_rule(&mut self, qp_num: u32) -> Option<WcStatus> {
        let mut struck = None;
        for rule in self.for_qp(qp_num) {
            // Every rule counts the completion, also after another rule has fired, so leaving out
            // one rule does not change the others.
            if rule.trigger.strikes(struck.is_none()) {
                struck = Some(rule.status);
            }
        }
        struck
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
        // Each rule that limits the resource counts its strikes.
        let mut free = self.set.get(&limit).is_none_or(|own| count <= *own);
        for (of, value, trigger) in &self.limits {
            if *of == limit && count > *value {
                free &= !trigger.strikes(free);
            }
        }
        let kind = match limit {
            Limit::Files => ErrorKind::TooManyFiles,
            _ => ErrorKind::NoMemory,
        };
        Err(Refusal::new(kind, Cause::Limit { what, limit: max }))
    }
}
