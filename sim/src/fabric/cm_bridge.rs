//! The connection manager and the nodes: the effects of its work, and how its messages are sent.

use core::mem;
use std::collections::BTreeMap;

use verbs_api::{CmChannel, CmId};
use verbs_roce::mad::{CmMad, CmMessage};

use super::Fabric;
use crate::cm::{Exchange, Host, Manager, Peer};
use crate::config::{Mode, SimConfig};
use crate::descriptor::Descriptor;
use crate::packet::payload::Payload;
use crate::packet::{PortId, Route};

/// The connection manager with the descriptors of its channels.
pub(crate) struct CmBridge {
    pub(crate) manager: Manager,
    pub(crate) descriptors: BTreeMap<CmChannel, Descriptor>,
}

impl CmBridge {
    pub(super) fn new(config: &SimConfig) -> Self {
        let seed = config.scatter.unwrap_or(config.seed);
        Self {
            manager: Manager::new(seed, config.cm_timeout, config.trace),
            descriptors: BTreeMap::new(),
        }
    }
}

impl Fabric {
    /// Works on the connection manager, and lets the effects happen.
    pub(crate) fn manage<R>(&mut self, work: impl FnOnce(&mut Manager, Host<'_>) -> R) -> R {
        let manager = &mut self.cm_bridge.manager;
        (manager.now, manager.site) = (self.schedule.now, self.site);
        let result = work(manager, Host::new(&self.slots, &self.config));
        self.flush_manager();
        if self.config.mode != Mode::Stepped && !self.schedule.flight.is_empty() {
            self.deliver_all();
        }
        result
    }

    /// The node of an id, for the trace and for fault rules. The first one if the id has none.
    pub(crate) fn node_of_id(&self, id: Option<CmId>) -> u32 {
        let node_of = |id| self.cm_bridge.manager.ids.node_of(id);
        id.and_then(node_of).unwrap_or(0)
    }

    /// Passes messages that arrived at QP 1 of a node to the manager.
    #[cold]
    pub(super) fn receive_mads(&mut self, node: u32) {
        let received = &mut self.slots[node as usize].node.device.gsi.received;
        for (route, payload) in mem::take(received) {
            let Some((arrival, mad)) = self.read_mad(node, &route, &payload) else {
                continue;
            };
            let manager = &mut self.cm_bridge.manager;
            manager.now = self.schedule.now;
            manager.receive(Host::new(&self.slots, &self.config), arrival, &mad.message);
            self.flush_manager();
        }
    }

    /// Tells the manager of connections of a node that have ended with their queue pairs.
    #[cold]
    pub(super) fn note_ended(&mut self, node: u32) {
        for (qp_num, by) in mem::take(&mut self.node_mut(node).device.gsi.ended) {
            let manager = &mut self.cm_bridge.manager;
            manager.now = self.schedule.now;
            manager.qp_ended(node, qp_num, by);
            self.flush_manager();
        }
    }

    /// Reads a message, if it is for the manager.
    fn read_mad(&self, node: u32, route: &Route, payload: &Payload) -> Option<(Exchange, CmMad)> {
        let bytes = payload.bytes(&mut self.memory.lock()).ok()?;
        let mad = CmMad::read(&bytes).ok()?;
        let ports = &self.slots[node as usize].node.device.ports;
        let arrival = Exchange {
            local: Host::new(&self.slots, &self.config).local(route.to?, route.dgid)?,
            peer: Peer {
                gid: route.sgid,
                lid: ports.lid_of(route.from, route.sgid),
            },
            transaction: mad.transaction,
        };
        Some((arrival, mad))
    }

    /// Lets the effects of work on the manager happen: records events, wakes threads and sends
    /// messages.
    fn flush_manager(&mut self) {
        let notes = self.cm_bridge.manager.notes.as_mut().map(mem::take);
        self.recorder
            .record(self.schedule.now, notes.unwrap_or_default());
        // The manager may have set a timer.
        self.schedule.deadlines.is_sooner = true;
        let cm_bridge = &mut self.cm_bridge;
        cm_bridge
            .manager
            .channels
            .wakeups
            .move_to(&mut self.wakeups);
        while let Some(channel) = cm_bridge.manager.channels.changed() {
            let queue = cm_bridge.manager.channels.queue(channel);
            if let Some(descriptor) = cm_bridge.descriptors.get_mut(&channel) {
                descriptor.update(queue.as_ref().ok().copied());
            }
            if queue.is_err() {
                cm_bridge.descriptors.remove(&channel);
            }
        }
        for (exchange, message) in mem::take(&mut cm_bridge.manager.egress) {
            self.send_mad(exchange, message);
        }
    }

    /// Sends a message through QP 1 of a node.
    fn send_mad(&mut self, exchange: Exchange, message: CmMessage) {
        let (local, transaction) = (&exchange.local, exchange.transaction);
        let slot = &mut self.slots[local.id.node as usize];
        let device = &mut slot.node.device;
        device.base.now = self.schedule.now;
        // A port whose address was removed sends nothing.
        let Ok(mut route) = device.ports.route(&local.ah_attr(exchange.peer)) else {
            return;
        };
        let Manager { numbers, ids, .. } = &self.cm_bridge.manager;
        // Numbers in the message, not its route, distinguish processes that share an address.
        if device.ports.tenant.is_some() && numbers.is_for_other(ids, &message) {
            route.to = Some(PortId::OUTSIDE);
        }
        if device.base.dead {
            return;
        }
        let mad = CmMad {
            transaction,
            message,
        }
        .write();
        device.send_mad(&route, &mad);
        self.collect(local.id.node);
    }
}
