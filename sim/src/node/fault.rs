//! Rules that turn completions into errors.

use verbs_api::{Qp as QpHandle, TraceEvent, Verb, WcStatus, When};

use super::Node;
use crate::fault::Striker;

/// A rule in force.
#[derive(Clone, Debug)]
pub(crate) struct CompletionRule {
    id: u64,
    qp: Option<QpHandle>,
    status: WcStatus,
    striker: Striker,
}

impl CompletionRule {
    pub(crate) fn new(id: u64, qp: Option<QpHandle>, status: WcStatus, when: When) -> Self {
        Self {
            id,
            qp,
            status,
            striker: Striker::new(when),
        }
    }
}

impl Node {
    pub(crate) fn add_completion_rule(&mut self, rule: CompletionRule) {
        self.completion_rules.push(rule);
    }

    /// Takes a rule out of force: how often it has struck, if it was there.
    pub(crate) fn remove_completion_rule(&mut self, id: u64) -> Option<u64> {
        let position = self
            .completion_rules
            .iter()
            .position(|rule| rule.id == id)?;
        Some(self.completion_rules.remove(position).striker.struck())
    }

    /// Whether a rule turns the next completion of a QP into an error, and which.
    #[inline]
    pub(super) fn strike(&mut self, qp: u32) -> Option<WcStatus> {
        if self.completion_rules.is_empty() {
            return None;
        }
        self.strike_by_rule(qp)
    }

    #[cold]
    fn strike_by_rule(&mut self, qp: u32) -> Option<WcStatus> {
        let names = |wanted: QpHandle| self.find_qp(Verb::Lab, wanted) == Ok(qp);
        let meant: Vec<bool> = (self.completion_rules.iter())
            .map(|rule| rule.qp.is_none_or(names))
            .collect();
        let rules = self.completion_rules.iter_mut().zip(meant);
        for (rule, _) in rules.filter(|(_, of_it)| *of_it) {
            if rule.striker.strikes(&mut self.random) {
                let status = rule.status;
                self.note(TraceEvent::Fault {
                    what: "the completion becomes an error",
                });
                return Some(status);
            }
        }
        None
    }
}
