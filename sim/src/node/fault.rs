//! Rules that turn completions into errors, or make resources scarce.

use verbs_api::{Cause, Error, ErrorKind, FaultId, Limit, Result, TraceEvent, Verb, WcStatus};

use super::Node;
use crate::fault::SharedStriker;

/// A rule in force on a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeRule {
    what: What,
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

impl NodeRule {
    pub(crate) fn new(what: What, striker: SharedStriker) -> Self {
        Self { what, striker }
    }
}

impl Node {
    pub(crate) fn add_rule(&mut self, rule: NodeRule) {
        self.rules.push(rule);
    }

    /// How often a rule has struck, if it is here.
    pub(crate) fn struck(&self, id: FaultId) -> Option<u64> {
        let rule = self.rules.iter().find(|rule| rule.striker.id() == id)?;
        Some(rule.striker.struck())
    }

    pub(crate) fn remove_rule(&mut self, id: FaultId) {
        self.rules.retain(|rule| rule.striker.id() != id);
    }

    /// Whether a rule turns the next completion of a QP into an error, and which.
    #[inline]
    pub(super) fn strike(&mut self, qp: u32) -> Option<WcStatus> {
        if self.rules.is_empty() {
            return None;
        }
        self.strike_by_rule(qp)
    }

    #[cold]
    fn strike_by_rule(&mut self, qp: u32) -> Option<WcStatus> {
        let number = self.qps.at(qp).qp_num;
        let mut struck = None;
        for rule in &self.rules {
            if let What::Completion(qpn, status) = rule.what
                && qpn.is_none_or(|qpn| qpn == number)
                && rule.striker.strikes(struck.is_none())
            {
                struck = Some(status);
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
        let by_rules = self.rules.iter().filter_map(|rule| match rule.what {
            What::Limit(of, value) if of == limit => Some(value),
            _ => None,
        });
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
        for rule in &self.rules {
            if let What::Limit(of, value) = rule.what
                && of == limit
                && count > value
            {
                free &= !rule.striker.strikes(free);
            }
        }
        let kind = match limit {
            Limit::Files => ErrorKind::TooManyFiles,
            _ => ErrorKind::NoMemory,
        };
        Err(Error::new(verb, kind, Cause::Limit { what, limit: max }))
    }
}
