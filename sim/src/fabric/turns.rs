//! Turns of queue pairs that have more to send than leaves at once.

use super::Fabric;
use crate::node;
use crate::time::Time;

/// Queue pairs of a node have asked for turns. Those with a peer in another process have theirs once the network
/// has room.
#[cold]
pub(super) fn grant(fabric: &mut Fabric, index: u32) {
    let node = &mut fabric.slots[index as usize].node;
    for qp in node.device.turns.take_waiting() {
        if let Some(gateway) = &mut fabric.gateway
            && let Some(asks) = node.qps.peek(qp.0)
            && asks.common.is_connected_outside()
        {
            gateway.wants_turn(index, qp);
            continue;
        }
        fabric.turns.push_back((index, qp));
    }
}

/// Lets a queue pair have its turn.
pub(super) fn give(fabric: &mut Fabric, index: u32, qp: (u32, u32)) {
    fabric.direct.epoch += 1;
    let node = &mut fabric.slots[index as usize].node;
    node.set_now(fabric.now);
    node::give_turn(node, qp);
}

/// When the next turn is: at once, if a queue pair waits for one.
pub(super) fn next(fabric: &Fabric) -> Option<Time> {
    (!fabric.turns.is_empty()).then_some(fabric.now)
}
