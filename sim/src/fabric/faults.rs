//! Fault rules: what they do to calls and ports, and how often they have struck.

use verbs_api::lab::{FaultId, Strike, When};
use verbs_api::{Cause, Error, Result, Verb};

use super::Fabric;
use super::rules::Rules;
use crate::config::Mode;
use crate::trigger::Trigger;

impl Fabric {
    /// The error that a fault rule makes of a call.
    #[inline]
    pub(crate) fn strike_call(&mut self, node: u32, verb: Verb) -> Result<()> {
        if !self.rules.fails_calls() {
            return Ok(());
        }
        self.fail_call(node, verb)
    }

    #[cold]
    fn fail_call(&mut self, node: u32, verb: Verb) -> Result<()> {
        match self.rules.fail(node, verb) {
            Some(kind) => Err(Error::new(verb, kind, Cause::Injected)),
            None => Ok(()),
        }
    }

    /// Decides when the next rule strikes.
    pub(crate) fn trigger(&mut self, id: FaultId, when: When) -> Trigger {
        self.rules.triggers.make(id, when)
    }

    /// What rules have struck.
    pub(crate) fn strikes(&self) -> Vec<Strike> {
        self.rules.triggers.strikes()
    }

    /// How often a rule has struck, if it is in force.
    pub(crate) fn struck(&self, id: FaultId) -> Option<u64> {
        // Nodes that have the same rule count together.
        let on_node = || {
            self.slots
                .iter()
                .find_map(|slot| slot.node.device.base.rules.struck(id))
        };
        let of_port = || self.schedule.outages.struck(id);
        self.rules.struck(id).or_else(on_node).or_else(of_port)
    }

    /// Changes the rules of the wire, and lets the nodes know what can be observed.
    pub(crate) fn rewire<R>(&mut self, change: impl FnOnce(&mut Rules) -> R) -> R {
        let result = change(&mut self.rules);
        self.inform_nodes();
        result
    }

    /// Packets pass a tap from now on.
    pub(crate) fn start_tap(&mut self) {
        self.recorder.start_tap();
        self.inform_nodes();
    }

    /// Whether an observer or a rule sees single packets.
    pub(super) fn sees_packets(&self) -> bool {
        self.recorder.sees_packets() || self.rules.see_packets()
    }

    /// Tells the nodes what is seen of what they do. In stepped mode that is all: each packet is an
    /// event, and so is each poll, which moves the clock.
    pub(super) fn inform_nodes(&mut self) {
        let inline = self.config.mode != Mode::Stepped;
        let are_bytes = self.config.wire || self.config.pcap.is_some();
        let whole_messages = inline && !self.sees_packets() && !are_bytes;
        self.unseen = whole_messages && !self.recorder.is_traced();
        // What is carried out at once is copied without a look at the memory.
        self.direct.is_allowed =
            self.unseen && !self.rules.fails_calls() && !self.config.check_memory;
        #[cfg(test)]
        self.direct.tally.restrict(&mut self.direct.is_allowed);
        self.direct.epoch += 1;
        let quiet_polls = inline && !self.rules.fails_calls() && !self.config.trace_threads;
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
