//! Rules that turn completions into errors, or make resources scarce.

use std::collections::BTreeMap;
use std::iter;

use verbs_api::lab::{FaultId, Limit, TraceEvent};
use verbs_api::{Cause, Error, ErrorKind, Result, Verb, WcStatus};

use super::Node;
use crate::fault::SharedStriker;

/// The rules in force on a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    /// Those for completions, by the number of the QP; `None` is any. In the order in which they were made.
    completions: BTreeMap<Option<u32>, Vec<CompletionRule>>,
    limits: Vec<(Limit, u64, SharedStriker)>,
    /// How many were made.
    count: u64,
}

#[derive(Clone, Debug)]
struct CompletionRule {
    /// How many rules were made before it.
    number: u64,
    status: WcStatus,
    striker: SharedStriker,
}

/// What a rule of a node does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// Completions of the QP with this number, or of any, get a status.
    Completion(Option<u32>, WcStatus),
    /// There is no more of a resource than this.
    Limit(Limit, u64),
}

impl Rules {
    fn add(&mut self, what: What, striker: SharedStriker) {
        match what {
            What::Completion(qpn, status) => {
                let number = self.count;
                self.completions
                    .entry(qpn)
                    .or_default()
                    .push(CompletionRule {
                        number,
                        status,
                        striker,
                    });
            }
            What::Limit(limit, value) => self.limits.push((limit, value, striker)),
        }
        self.count += 1;
    }

    fn strikers(&self) -> impl Iterator<Item = &SharedStriker> {
        let completions = self.completions.values().flatten();
        let limits = self.limits.iter().map(|(.., striker)| striker);
        completions.map(|rule| &rule.striker).chain(limits)
    }

    fn remove(&mut self, id: FaultId) {
        self.completions.retain(|_, rules| {
            rules.retain(|rule| rule.striker.id() != id);
            !rules.is_empty()
        });
        self.limits.retain(|(.., striker)| striker.id() != id);
    }

    /// Those for completions of a QP, in the order in which they were made.
    fn for_qp(&self, number: u32) -> impl Iterator<Item = &CompletionRule> {
        let of = |qpn| self.completions.get(&qpn).map_or(&[][..], Vec::as_slice);
        let (mut own, mut any) = (of(Some(number)), of(None));
        iter::from_fn(move || {
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
}

impl Node {
    pub(crate) fn add_rule(&mut self, what: What, striker: SharedStriker) {
        self.rules.add(what, striker);
    }

    /// How often a rule has struck, if it is here.
    pub(crate) fn struck(&self, id: FaultId) -> Option<u64> {
        let mut strikers = self.rules.strikers();
        Some(strikers.find(|striker| striker.id() == id)?.struck())
    }

    pub(crate) fn remove_rule(&mut self, id: FaultId) {
        self.rules.remove(id);
    }

    /// Whether a rule turns the next completion of a QP into an error, and which.
    #[inline]
    pub(super) fn strike(&mut self, qp: u32) -> Option<WcStatus> {
        if self.rules.completions.is_empty() {
            return None;
        }
        self.strike_by_rule(qp)
    }

    #[cold]
    fn strike_by_rule(&mut self, qp: u32) -> Option<WcStatus> {
        let number = self.qps.at(qp).qp_num;
        let mut struck = None;
        for rule in self.rules.for_qp(number) {
            if rule.striker.strikes(struck.is_none()) {
                struck = Some(rule.status);
            }
        }
        if struck.is_some() {
            self.note(TraceEvent::Fault {
                what: "the completion becomes an error",
            });
        }
        struck
    }

    /// How much there is of a resource, if that is limited.
    pub(super) fn limit(&self, limit: Limit) -> Option<u64> {
        let of_it = self.rules.limits.iter().filter(|(of, ..)| *of == limit);
        let by_rules = of_it.map(|(_, value, _)| *value);
        by_rules.chain(self.limits.get(&limit).copied()).min()
    }

    /// Refuses `count` of a resource of which there is less.
    pub(super) fn check_limit(
        &self,
        verb: Verb,
        limit: Limit,
        what: &'static str,
        count: u64,
    ) -> Result<()> {
        let Some(max) = self.limit(limit).filter(|max| count > *max) else {
            return Ok(());
        };
        let mut free = self.limits.get(&limit).is_none_or(|own| count <= *own);
        for (of, value, striker) in &self.rules.limits {
            if *of == limit && count > *value {
                free &= !striker.strikes(free);
            }
        }
        let kind = match limit {
            Limit::Files => ErrorKind::TooManyFiles,
            _ => ErrorKind::NoMemory,
        };
        Err(Error::new(verb, kind, Cause::Limit { what, limit: max }))
    }
}
