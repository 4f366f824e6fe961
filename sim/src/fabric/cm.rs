//! The connection manager and the nodes: its view of them, and the transport of its messages.

use core::net::IpAddr;
use std::collections::BTreeMap;

use verbs_api::{AhAttr, Gid, Mtu, Verb};
use verbs_api::{CmChannel, CmId};
use verbs_roce::mad::CmMad;

use super::Fabric;
use crate::address::{fnv, gid_of, ip_of};
use crate::cm::{Arrival, Host, Local, Manager, Outgoing, Peer, Reads};
use crate::config::{Mode, SimConfig};
use crate::descriptor::Descriptor;
use crate::device::Device;
use crate::node::NodeSlot;
use crate::packet::payload::Payload;
use crate::packet::{PortId, Route};

/// The connection manager with the threads and descriptors that wait for it.
pub(crate) struct CmBridge {
    pub(crate) manager: Manager,
    /// Threads that wait for its news.
    pub(super) waiting: u32,
    pub(crate) descriptors: BTreeMap<CmChannel, Descriptor>,
}

impl CmBridge {
    pub(super) fn new(config: &SimConfig) -> Self {
        let seed = config.scatter.unwrap_or(config.seed);
        Self {
            manager: Manager::new(seed, config.cm_timeout, config.trace),
            waiting: 0,
            descriptors: BTreeMap::new(),
        }
    }
}

impl Fabric {
    /// Works on the connection manager, and lets the effects happen.
    pub(crate) fn manage<R>(&mut self, work: impl FnOnce(&mut Manager, &dyn Host) -> R) -> R {
        let manager = &mut self.cm_bridge.manager;
        (manager.now, manager.site) = (self.schedule.now, self.site);
        let machine = Machine {
            slots: &self.slots,
            config: &self.config,
        };
        let result = work(manager, &machine);
        self.flush_manager();
        if self.config.mode != Mode::Stepped && !self.schedule.flight.is_empty() {
            self.deliver_all();
        }
        result
    }

    /// The node of an id, for the trace and for fault rules. The first one if the id has none.
    pub(crate) fn node_of_id(&mut self, id: Option<CmId>) -> u32 {
        let of = |id| self.manage(|manager, _| manager.ids.node_of(id));
        id.and_then(of).unwrap_or(0)
    }

    /// Passes messages that arrived at QP 1 of a node to the manager.
    #[cold]
    pub(super) fn receive_mads(&mut self, node: u32) {
        for (route, payload) in self.slots[node as usize].node.device.gsi.take() {
            let Some((arrival, mad)) = self.read_mad(node, &route, &payload) else {
                continue;
            };
            let manager = &mut self.cm_bridge.manager;
            manager.now = self.schedule.now;
            let machine = Machine {
                slots: &self.slots,
                config: &self.config,
            };
            manager.receive(&machine, arrival, &mad);
            self.flush_manager();
        }
    }

    /// Reads a message, if it is for the manager.
    fn read_mad(&self, node: u32, route: &Route, payload: &Payload) -> Option<(Arrival, CmMad)> {
        let bytes = payload.bytes(&mut self.memory.lock()).ok()?;
        let mad = CmMad::read(&bytes).ok()?;
        let machine = Machine {
            slots: &self.slots,
            config: &self.config,
        };
        let to = machine.local(route.to?, route.dgid)?;
        let subnet = self.slots[node as usize].node.device.ports.subnet();
        let from = Peer {
            gid: route.sgid,
            lid: subnet.map_or(0, |subnet| subnet.lid(route.from)),
        };
        Some((Arrival { to, from }, mad))
    }

    /// Lets the effects of work on the manager happen: records events, wakes threads and sends
    /// messages.
    fn flush_manager(&mut self) {
        let notes = self.cm_bridge.manager.take_notes();
        self.recorder.record(self.schedule.now, notes);
        // The manager may have set a timer.
        self.schedule.deadlines.is_sooner = true;
        let cm_bridge = &mut self.cm_bridge;
        if cm_bridge.waiting > 0 && cm_bridge.manager.channels.take_news() {
            self.news.push(self.slots.len() as u32);
        }
        while let Some(channel) = cm_bridge.manager.channels.changed() {
            let queue = cm_bridge.manager.channels.queue(Verb::CmGetEvent, channel);
            if let Some(descriptor) = cm_bridge.descriptors.get_mut(&channel) {
                descriptor.update(queue.as_ref().ok().copied());
            }
            if queue.is_err() {
                cm_bridge.descriptors.remove(&channel);
            }
        }
        for outgoing in cm_bridge.manager.take_outgoing() {
            self.send_mad(&outgoing);
        }
    }

    /// Sends a message through QP 1 of a node.
    fn send_mad(&mut self, outgoing: &Outgoing) {
        let Outgoing { from, to, mad } = outgoing;
        let slot = &mut self.slots[from.id.node as usize];
        slot.node.set_now(self.schedule.now);
        let device = &mut slot.node.device;
        let attr = AhAttr {
            dlid: to.lid,
            ..AhAttr::global(from.id.port, from.gid_index, to.gid)
        };
        // A port whose address was removed sends nothing.
        let Ok(route) = device.ports.route(&attr) else {
            return;
        };
        let route = {
            let Manager { numbers, ids, .. } = &self.cm_bridge.manager;
            // Numbers in the message, not its route, distinguish processes that share an address.
            if device.ports.is_shared() && numbers.is_for_other(ids, &mad.message) {
                Route {
                    to: Some(PortId::OUTSIDE),
                    ..route
                }
            } else {
                route
            }
        };
        if device.base.dead {
            return;
        }
        device.send_mad(&route, &mad.write());
        self.collect(from.id.node);
    }
}

/// The nodes, as the machine of the connection manager.
struct Machine<'a> {
    slots: &'a [NodeSlot],
    config: &'a SimConfig,
}

impl Machine<'_> {
    fn device(&self, node: u32) -> Option<&Device> {
        let slot = self.slots.get(node as usize)?;
        Some(&slot.node.device).filter(|device| !device.base.dead)
    }

    /// A port, by one of its GIDs.
    fn local(&self, id: PortId, gid: Gid) -> Option<Local> {
        let ports = &self.device(id.node)?.ports;
        // A GID may have two entries. The second is of RoCE version 2, which rdma_cm uses.
        let gid_index = ports.at(id.port).gids.iter().rposition(|of| *of == gid)?;
        let subnet = ports.subnet();
        Some(Local {
            id,
            address: match subnet {
                Some(_) => ipoib(id),
                None => ip_of(gid),
            },
            gid,
            gid_index: gid_index as u8,
            lid: subnet.map_or(0, |subnet| subnet.lid(id)),
        })
    }

    /// The port that has an address, and the GID that leads to it.
    fn place(&self, address: IpAddr) -> Option<(PortId, Gid)> {
        let ports = &self.slots[0].node.device.ports;
        if ports.subnet().is_none() {
            let gid = gid_of(address);
            return Some((ports.port_of(&gid)?, gid));
        }
        let IpAddr::V4(v4) = address else {
            return None;
        };
        let [_, high, low, port] = v4.octets();
        let node = u16::from_be_bytes([high, low]).into();
        let id = PortId { node, port };
        let is_there = ipoib(id) == address && (1..=self.config.ports).contains(&port);
        let slot = self.slots.get(node as usize).filter(|_| is_there)?;
        Some((id, slot.node.device.ports.at(port).gids[0]))
    }
}

/// The IPoIB address of an InfiniBand port.
fn ipoib(PortId { node, port }: PortId) -> IpAddr {
    let [high, low] = (node as u16).to_be_bytes();
    IpAddr::from([10, high, low, port])
}

impl Host for Machine<'_> {
    fn port_at(&self, address: IpAddr) -> Option<Local> {
        let (id, gid) = self.place(address)?;
        self.local(id, gid)
    }

    fn loopback(&self) -> Option<Local> {
        // rdma_cm speaks of IP addresses, so a port with one comes first.
        let first = PortId { node: 0, port: 1 };
        let gids = &self.device(0)?.ports.at(1).gids;
        let of_ip = gids.iter().find(|gid| gid.ipv4().is_some());
        self.local(first, *of_ip.or(gids.first())?)
    }

    fn peer_at(&self, from: &Local, address: IpAddr) -> Option<Peer> {
        let ports = &self.device(from.id.node)?.ports;
        // A path starts at an active port.
        if !ports.at(from.id.port).up {
            return None;
        }
        let (gid, lid) = match self.place(address) {
            Some((id, gid)) => (gid, ports.subnet().map_or(0, |subnet| subnet.lid(id))),
            None if self.config.reaches(address) => (gid_of(address), 0),
            None => return None,
        };
        let same_family = ip_of(gid).is_ipv4() == ip_of(from.gid).is_ipv4();
        same_family.then_some(Peer { gid, lid })
    }

    fn is_on_network(&self, address: IpAddr) -> bool {
        let is_private = self.config.network.is_none();
        is_private && matches!(address, IpAddr::V4(address) if address.octets()[0] == 10)
    }

    fn guid(&self, node: u32) -> u64 {
        self.device(node)
            .map_or(0, |device| device.base.attr.node_guid)
    }

    fn mtu(&self, port: PortId) -> Mtu {
        let device = self.device(port.node);
        device.map_or(Mtu::Mtu1024, |device| device.ports.at(port.port).mtu)
    }

    fn reads(&self, node: u32) -> Reads {
        let attr = self.device(node).map(|device| &device.base.attr);
        let most = |value: Option<i32>| value.unwrap_or(0).clamp(0, 0xff) as u8;
        Reads {
            responder: most(attr.map(|attr| attr.max_qp_rd_atom as i32)),
            initiator: most(attr.map(|attr| attr.max_qp_init_rd_atom as i32)),
        }
    }

    fn group_lid(&self, group: Gid) -> u16 {
        const FIRST: u16 = 0xc000;
        match self.slots[0].node.device.ports.subnet() {
            Some(_) => FIRST | (fnv(&group.0) as u16 & 0x1fff),
            None => 0,
        }
    }
}
