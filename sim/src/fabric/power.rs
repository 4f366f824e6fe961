//! Hosts that crash and start again.

use verbs_api::lab::{Fault, FaultId, TraceEvent};

use super::Fabric;
use crate::device::{Result, invalid};
use crate::hosts::HostNodes;
use crate::node::Node;
use crate::packet::{DropReason, Packet};

impl Fabric {
    pub(crate) fn has_power(&self, node: u32) -> bool {
        !self.rules.crashed.contains_key(&node)
    }

    /// A host loses its power. `cut` makes the id of a rule, which cuts a node off.
    pub(crate) fn crash(&mut self, host: HostNodes, cut: impl Fn() -> FaultId) -> Result<()> {
        if !self.has_power(host.first()) {
            return Err(invalid("host", "has crashed already"));
        }
        for node in host.range() {
            let cut = cut();
            self.rules.crashed.insert(node, cut);
            let what = "the host crashes";
            self.record(node, TraceEvent::Fault { what });
            // First of all, since what ends says goodbye.
            self.add_rule(cut, Fault::link_down(node));
        }
        self.lose_packets_to(host);
        self.manage(|manager, _| manager.crash(host));
        for node in host.range() {
            self.work(node, Node::crash)?;
            if !self.cm_bridge.manager.contexts.is_empty() {
                // The librdmacm of the host's next life.
                let opened = self.work(node, Node::open_for_ids)?;
                self.cm_bridge.manager.contexts[node as usize] = opened;
            }
        }
        Ok(())
    }

    /// Loses the packets on their way to a host, which would arrive in its next life.
    fn lose_packets_to(&mut self, host: HostNodes) {
        let is_for_it = |packet: &Packet| packet.route.to.is_some_and(|to| host.contains(to.node));
        let mut lost = self.schedule.delayed.take_out(is_for_it);
        lost.extend(self.rules.shaping.take_out(is_for_it));
        for _ in 0..self.schedule.flight.len() {
            let Some(packet) = self.schedule.flight.pop().cloned() else {
                break;
            };
            if is_for_it(&packet) {
                lost.push(packet);
            } else {
                *self.schedule.flight.push() = packet;
            }
        }
        for packet in lost {
            let node = self.observer_of(&packet);
            self.lose(node, &packet, DropReason::LinkDown);
        }
    }

    /// A host has power again.
    pub(crate) fn restart(&mut self, host: HostNodes) -> Result<()> {
        for node in host.range() {
            let cut = self.rules.crashed.remove(&node);
            let cut = cut.ok_or_else(|| invalid("host", "has not crashed"))?;
            let what = "the host starts again";
            self.record(node, TraceEvent::Fault { what });
            self.remove_rule(cut);
        }
        Ok(())
    }
}
