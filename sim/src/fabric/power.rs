//! Hosts that crash and start again.

use verbs_api::lab::{Fault, FaultId, TraceEvent};

use super::Fabric;
use crate::device::{Result, invalid};
use crate::node::Node;

impl Fabric {
    pub(crate) fn has_power(&self, node: u32) -> bool {
        !self.rules.crashed.contains_key(&node)
    }

    /// The host of a node loses its power. The rule `cut` cuts it off.
    pub(crate) fn crash(&mut self, node: u32, cut: FaultId) -> Result<()> {
        if !self.has_power(node) {
            return Err(invalid("node", "has crashed already"));
        }
        self.rules.crashed.insert(node, cut);
        let what = "the host crashes";
        self.record(node, TraceEvent::Fault { what });
        // First of all, since what ends says goodbye.
        self.add_rule(cut, Fault::link_down(node));
        self.manage(|manager, _| manager.crash(node));
        self.work(node, Node::crash)?;
        if !self.cm_bridge.manager.contexts.is_empty() {
            // The librdmacm of the host's next life.
            let opened = self.work(node, Node::open_for_ids)?;
            self.cm_bridge.manager.contexts[node as usize] = opened;
        }
        Ok(())
    }

    /// The host of a node has power again.
    pub(crate) fn restart(&mut self, node: u32) -> Result<()> {
        let cut = self.rules.crashed.remove(&node);
        let cut = cut.ok_or_else(|| invalid("node", "has not crashed"))?;
        let what = "the host starts again";
        self.record(node, TraceEvent::Fault { what });
        self.remove_rule(cut);
        Ok(())
    }
}
