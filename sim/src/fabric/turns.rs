//! Turns of queue pairs that have more to send than may leave in one turn.

use super::Fabric;
use verbs_api::table::Id;

impl Fabric {
    /// Grants the turns that queue pairs of a node have asked for. Those with a peer in another
    /// process get theirs once the network has room.
    #[cold]
    pub(super) fn grant_turns(&mut self, index: u32) {
        let node = &mut self.slots[index as usize].node;
        for qp in node.device.turns.take_waiting() {
            if let Some(gateway) = &mut self.gateway
                && let Some(asks) = node.qps.peek(qp.index)
                // In this process packets are delivered before the next turn, so none can pile up.
                && asks.common.is_connected_outside()
            {
                gateway.wants_turn(index, qp);
                continue;
            }
            self.schedule.turns.push_back((index, qp));
        }
    }

    /// Lets a queue pair put the packets of its turn into its egress queue.
    pub(super) fn start_turn(&mut self, index: u32, qp: Id) {
        self.direct.epoch += 1;
        let node = &mut self.slots[index as usize].node;
        node.set_now(self.schedule.now);
        node.give_turn(qp);
    }
}
