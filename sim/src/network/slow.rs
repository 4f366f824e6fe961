//! Which peers are slow: processes of this machine that have not read what was sent to them.
//!
//! The kernel knows it. A process that has ended has no socket, and one that reads and does not
//! answer is not slow: its queue pair may be destroyed.

use std::collections::BTreeSet;
use std::mem;

use verbs_udp::has_unread;

use super::sockets::Sockets;
use crate::device::Doubt;
use crate::fabric::Fabric;
use crate::runtime::Runtime;

/// Reads of the sockets after which the rest has to wait for the receiver.
const MOST: u32 = 256;

impl Runtime {
    /// Settles the doubts of all queue pairs whose timers have fired.
    pub(crate) fn settle_doubts(&self) {
        let Some(sockets) = &self.sockets else { return };
        let doubts = self.with(|fabric| fabric.take_doubts());
        if doubts.is_empty() {
            return;
        }
        // First the peers, then the own sockets: otherwise a peer that answers in between would
        // seem to have said nothing.
        let peers: BTreeSet<_> = doubts.iter().map(|(_, doubt)| doubt.peer).collect();
        let slow: BTreeSet<_> = peers.into_iter().filter(|peer| has_unread(*peer)).collect();
        let is_served = self.read_all(sockets);
        self.with(|fabric| {
            for (node, doubt) in &doubts {
                let is_slow = !is_served || slow.contains(&doubt.peer);
                fabric.settle_doubt(*node, doubt, is_slow);
            }
        });
    }

    /// Reads the answers that this process had no processor to read. Returns whether it has read
    /// all.
    fn read_all(&self, sockets: &Sockets) -> bool {
        sockets.await_reader();
        (0..MOST).any(|_| self.try_read(sockets) == Some(false))
    }
}

impl Fabric {
    /// Takes the open doubts of all nodes, with the nodes.
    fn take_doubts(&mut self) -> Vec<(u32, Doubt)> {
        let nodes = 0..self.nodes();
        let of_node = |node| {
            let open = mem::take(&mut self.node_mut(node).device.doubts.open);
            open.into_iter().map(move |doubt| (node, doubt))
        };
        nodes.flat_map(of_node).collect()
    }

    /// Settles a doubt. While packets are lost on purpose, no peer counts as slow.
    fn settle_doubt(&mut self, node: u32, doubt: &Doubt, is_slow: bool) {
        let is_slow = is_slow && !self.rules.see_packets();
        self.work(node, |node| {
            if let Some(qp) = node.qps.live_mut(doubt.qp.index, doubt.qp.generation)
                && !node.device.base.dead
            {
                qp.settle(&mut node.device, doubt, is_slow);
            }
        });
    }
}
