//! Turns of queue pairs that have more to send than leaves at once.

use super::Fabric;
use crate::node;
use verbs_api::table::Id;

impl Fabric {
    /// Queue pairs of a node have asked for turns. Those with a peer in another process get theirs once the network
    /// has room.
    #[cold]
    pub(super) fn grant_turns(&mut self, index: u32) {
        let node = &mut self.slots[index as usize].node;
        for qp in node.device.turns.take_waiting() {
            if let Some(gateway) = &mut self.gateway
                && let Some(asks) = node.qps.peek(qp.index)
                && asks.common.is_connected_outside()
            {
                gateway.wants_turn(index, qp);
                continue;
            }
            self.schedule.turns.push_back((index, qp));
        }
    }

    /// Lets a queue pair put into its outbox what it sends in its turn.
    pub(super) fn start_turn(&mut self, index: u32, qp: Id) {
        self.direct.epoch += 1;
        let node = &mut self.slots[index as usize].node;
        node.set_now(self.schedule.now);
        node::give_turn(node, qp);
    }
}
