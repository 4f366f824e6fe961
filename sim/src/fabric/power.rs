//! Hosts that crash and start again.

use verbs_api::lab::{Fault, FaultId, TraceEvent};

use super::Fabric;
use crate::device::{Result, invalid};
use crate::hosts::HostNodes;
use crate::node::Node;

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
