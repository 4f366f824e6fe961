//! Fault rules: what they do to calls and ports, and how often they have struck.

use verbs_api::lab::{FaultId, Strike, When};
use verbs_api::{Cause, Error, Result, Verb};

use super::Fabric;
use super::wire::Wire;
use crate::config::Mode;
use crate::fault::Striker;

impl Fabric {
    /// The error that a fault rule makes of a call.
    #[inline]
    pub(crate) fn strike_call(&mut self, node: u32, verb: Verb) -> Result<()> {
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
    pub(crate) fn striker(&mut self, id: FaultId, when: When) -> Striker {
        self.strikers.make(id, when)
    }

    /// What rules have struck.
    pub(crate) fn strikes(&self) -> Vec<Strike> {
        self.strikers.strikes()
    }

    /// How often a rule has struck, if it is in force.
    pub(crate) fn struck(&self, id: FaultId) -> Option<u64> {
        // Nodes that have the same rule count together.
        let on_node = || {
            self.slots
                .iter()
                .find_map(|slot| slot.node.device.base.rules.struck(id))
        };
        let of_port = || self.outages.struck(id);
        self.wire.struck(id).or_else(on_node).or_else(of_port)
    }

    /// Changes the rules of the wire, and lets the nodes know what can be observed.
    pub(crate) fn rewire<R>(&mut self, change: impl FnOnce(&mut Wire) -> R) -> R {
        let result = change(&mut self.wire);
        self.inform_nodes();
        result
    }

    /// Tells the nodes what is seen of what they do. In stepped mode that is all: each packet is an
    /// event, and so is each poll, which moves the clock.
    pub(super) fn inform_nodes(&mut self) {
        let inline = self.config.mode != Mode::Stepped;
        let are_bytes = self.config.wire || self.config.pcap.is_some();
        let whole_messages = inline && !self.wire.sees_packets() && !are_bytes;
        self.unseen = whole_messages && self.trace.is_none();
        // What is carried out at once is copied without a look at the memory.
        self.direct.is_allowed =
            self.unseen && !self.wire.fails_calls() && !self.config.check_memory;
        #[cfg(test)]
        self.direct.tally.restrict(&mut self.direct.is_allowed);
        self.direct.epoch += 1;
        let quiet_polls = inline && !self.wire.fails_calls() && !self.config.trace_threads;
        let before = self.informed.replace((whole_messages, quiet_polls));
        if before == self.informed {
            return;
        }
        if let Some(empty) = &self.empty {
            empty.clear();
        }
        for slot in &mut self.slots {
            slot.node.device.base.whole_messages = whole_messages;
            let shows = quiet_polls && !slot.node.device.base.dead;
            slot.node
                .device
                .cqs
                .show_empty(self.empty.clone().filter(|_| shows));
        }
    }
}
