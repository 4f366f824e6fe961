//! Fault rules: their effects on calls and ports, and how often they have fired.

use verbs_api::Verb;
use verbs_api::lab::{Fault, FaultId, When};

use super::Fabric;
use super::outage::Outage;
use super::rules::Rules;
use crate::config::Mode;
use crate::device::Result;
use crate::packet::PortId;
use crate::time::Time;

impl Fabric {
    /// Returns the refusal that a fault rule makes of a call, if any.
    #[inline]
    pub(crate) fn fail_call(&mut self, node: u32, verb: Verb) -> Result<()> {
        if self.rules.calls.is_empty() {
            return Ok(());
        }
        self.rules.fail(node, verb)
    }

    /// Puts a fault rule in force. Its nodes and its port exist.
    pub(crate) fn add_rule(&mut self, id: FaultId, fault: Fault) {
        let when = fault.when().cloned().unwrap_or(When::Always);
        let trigger = self.rules.triggers.make(id, when);
        match fault {
            // Completions and limits belong to a node, so each node has the rule. They count
            // firings together.
            Fault::Completion { node, .. } | Fault::Limit { node, .. } => {
                for index in node.map_or(0..self.nodes(), |node| node..node + 1) {
                    self.work(index, |node| {
                        node.device.base.rules.add(&fault, trigger.clone());
                    });
                }
            }
            Fault::Port {
                node,
                port,
                down_at,
                up_at,
                ..
            } => {
                let at = |time| Time::ZERO.after(time);
                self.schedule.outages.add(Outage {
                    port: PortId { node, port },
                    down_at: Some(at(down_at)),
                    up_at: up_at.map(at),
                    trigger,
                });
                self.schedule.deadlines.is_sooner = true;
                // The rule may begin in the past.
                let now = self.schedule.now;
                while self.schedule.outages.next.is_some_and(|at| at <= now) {
                    self.change_port();
                }
            }
            _ => self.rewire(|rules| rules.add(fault, trigger)),
        }
    }

    /// How often a rule has fired, if it is in force.
    pub(crate) fn fired(&self, id: FaultId) -> Option<u64> {
        self.rules.triggers.fired(id)
    }

    /// Changes the fault rules, and tells the nodes what can be observed.
    pub(crate) fn rewire(&mut self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.rules);
        self.inform_nodes();
    }

    /// Lets packets pass a tap from now on.
    pub(crate) fn start_tap(&mut self) {
        self.recorder.tap.get_or_insert_default();
        self.inform_nodes();
    }

    /// Whether an observer or a rule sees single packets.
    pub(super) fn sees_packets(&self) -> bool {
        self.recorder.tap.is_some() || self.rules.see_packets()
    }

    /// Tells the nodes what is observed of them. In stepped mode everything is: each packet is an
    /// event, and each poll moves the clock.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(super) fn inform_nodes(&mut self) {
        let inline = self.config.mode != Mode::Stepped;
        let are_bytes = self.config.wire || self.config.pcap.is_some();
        let whole_messages = inline && !self.sees_packets() && !are_bytes;
        self.unseen = whole_messages && !self.recorder.is_traced();
        // The fast path copies without checking the memory.
        self.direct.is_allowed =
            self.unseen && self.rules.calls.is_empty() && !self.config.check_memory;
        #[cfg(test)]
        self.direct.tally.restrict(&mut self.direct.is_allowed);
        self.direct.epoch += 1;
        let quiet_polls = inline && self.rules.calls.is_empty() && !self.config.trace_threads;
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
            slot.node.device.cqs.shown = self.empty.clone().filter(|_| shows);
        }
    }
}
