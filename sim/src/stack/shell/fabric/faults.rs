//! Fault rules: what they do to calls and ports, and how often they have struck.

use verbs_api::lab::{FaultId, Strike, When};
use verbs_api::{Cause, Error, Result, Verb};

use super::Fabric;
use crate::fault::Striker;

impl Fabric {
    /// The error that a fault rule makes of a call.
    #[inline]
    pub(in crate::stack::shell) fn strike_call(&mut self, node: u32, verb: Verb) -> Result<()> {
        if !self.wire.fails_calls() {
            return Ok(());
        }
        self.fail_call(node, verb)
    }

    #[cold]
    fn fail_call(&mut self, node: u32, verb: Verb) -> Result<()> {
        match self.wire.fail(node, verb) {
            Some(kind) => Err(Error::new(verb, kind, Cause::Injected)),
            None => Ok(()),
        }
    }

    /// Decides when the next rule strikes.
    pub(in crate::stack::shell) fn striker(&mut self, id: FaultId, when: When) -> Striker {
        self.strikers.make(id, when)
    }

    /// What rules have struck.
    pub(in crate::stack::shell) fn strikes(&self) -> Vec<Strike> {
        self.strikers.strikes()
    }

    /// How often a rule has struck, if it is in force.
    pub(in crate::stack::shell) fn struck(&self, id: FaultId) -> Option<u64> {
        // Nodes that have the same rule count together.
        let on_node = || {
            self.seats
                .iter()
                .find_map(|seat| seat.node.device.base.rules.struck(id))
        };
        let of_port = || self.outages.struck(id);
        self.wire.struck(id).or_else(on_node).or_else(of_port)
    }
}
