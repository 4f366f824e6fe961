//! Fault rules: their effects on calls and ports, and how often they have struck.

use verbs_api::lab::{FaultId, Strike, When};
use verbs_api::{Cause, Verb};

use super::Fabric;
use super::rules::Rules;
use crate::config::Mode;
use crate::device::{Refusal, Result};
use crate::trigger::Trigger;

impl Fabric {
    /// Returns the refusal that a fault rule makes of a call, if any.
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
            Some(kind) => Err(Refusal::new(kind, Cause::Injected)),
            None => Ok(()),
        }
    }

    /// Makes the trigger that decides when the next rule strikes.
    pub(crate) fn trigger(&mut self, id: FaultId, when: When) -> Trigger {
        self.rules.triggers.make(id, when)
    }

    /// The strikes of all rules.
    pub(crate) fn strikes(&self) -> Vec<Strike> {
        self.rules.triggers.strikes()
    }

    /// How often a rule has struck, if it is in force.
    pub(crate) fn struck(&self, id: FaultId) -> Option<u64> {
        // Nodes that share a rule count together.
        let on_node = || {
            self.slots
                .iter()
                .find_map(|slot| slot.node.device.base.rules.struck(id))
        };
        let of_port = || self.schedule.outages.struck(id);
        self.rules.struck(id).or_else(on_node).or_else(of_port)
    }

    /// Changes the fault rules, and tells the nodes what can be observed.
    pub(crate) fn rewire<R>(&mut self, change: impl FnOnce(&mut Rules) -> R) -> R {
        let result = change(&mut self.rules);
        self.inform_nodes();
        result
    }

    /// Lets packets pass a tap from now on.
    pub(crate) fn start_tap(&mut self) {
        self.recorder.start_tap();
        self.inform_nodes();
    }

    /// Whether an observer or a rule sees single packets.
    pub(super) fn sees_packets(&self) -> bool {
        self.recorder.sees_packets() || self.rules.see_packets()
    }

    /// Tells the nodes what is observed of them. In stepped mode everything is: each packet is an
    /// event, and each poll moves the clock.
    pub(super) fn inform_nodes(&mut self) {
        let inline = self.config.mode != Mode::Stepped;
        let are_bytes = self.config.wire || self.config.pcap.is_some();
        let whole_messages = inline && !self.sees_packets() && !are_bytes;
        self.unseen = whole_messages && !self.recorder.is_traced();
        // The fast path copies without checking the memory.
        self.direct.is_allowed =
            self.unseen && !self.rules.fails_calls() && !self.config.check_memory;
        #[cfg(test)]
        self.direct.tally.restrict(&mut self.direct.is_allowed);
        self.direct.epoch += 1;
        let quiet_polls = inline && !self.rules.fails_calls() && !self.config.trace_threads;
        let before = self.informed.replace((whole_messages, quiet_polls));
        // Forgetting which CQs are empty would slow down the next poll of each.
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
