//! The connection manager's view of its machine: its ports, and where addresses lead.

use core::net::IpAddr;

use verbs_api::{Access, AhAttr, Gid, Mtu};

use super::id::Id;
use crate::address::{fnv, gid_of, ip_of};
use crate::config::SimConfig;
use crate::device::Device;
use crate::hosts::HostNodes;
use crate::node::NodeSlot;
use crate::packet::PortId;

/// A port of this machine, by one of its GIDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) id: PortId,
    pub(crate) gid: Gid,
    pub(crate) gid_index: u8,
    /// 0 on Ethernet.
    pub(crate) lid: u16,
}

/// A port to which MADs are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peer {
    pub(crate) gid: Gid,
    /// 0 on Ethernet.
    pub(crate) lid: u16,
}

/// The ends of a message, and its transaction, which its answer repeats.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) local: Local,
    pub(crate) peer: Peer,
    pub(crate) transaction: u64,
}

/// Limits of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reads {
    /// `max_qp_rd_atom`
    pub(crate) responder: u8,
    /// `max_qp_init_rd_atom`
    pub(crate) initiator: u8,
}

impl Local {
    pub(crate) fn address(&self) -> IpAddr {
        match ip_of(self.gid) {
            IpAddr::V6(_) if self.lid != 0 => ipoib(self.id),
            address => address,
        }
    }

    /// The attributes of packets from here to a peer or a group.
    pub(crate) fn ah_attr(&self, to: Peer) -> AhAttr {
        AhAttr {
            dlid: to.lid,
            ..AhAttr::global(self.id.port, self.gid_index, to.gid)
        }
    }
}

/// The IPoIB address of an InfiniBand port that is not on a network.
fn ipoib(PortId { node, port }: PortId) -> IpAddr {
    let [high, low] = (node as u16).to_be_bytes();
    IpAddr::from([10, high, low, port])
}

/// The nodes, as the machine of the connection manager.
#[derive(Clone, Copy)]
pub(crate) struct Host<'a> {
    slots: &'a [NodeSlot],
    config: &'a SimConfig,
    /// The nodes whose addresses are local. `None` is all nodes.
    home: Option<HostNodes>,
}

impl<'a> Host<'a> {
    pub(crate) fn new(slots: &'a [NodeSlot], config: &'a SimConfig) -> Self {
        Self {
            slots,
            config,
            home: None,
        }
    }

    /// The machine of an id, which has only some nodes if the id belongs to a host.
    pub(super) fn seen_by(self, id: &Id) -> Self {
        let home = id.home;
        Self { home, ..self }
    }

    fn device(self, node: u32) -> Option<&'a Device> {
        let slot = self.slots.get(node as usize)?;
        Some(&slot.node.device).filter(|device| !device.base.dead)
    }

    /// A port, by one of its GIDs.
    pub(crate) fn local(self, id: PortId, gid: Gid) -> Option<Local> {
        let ports = &self.device(id.node)?.ports;
        // A GID may have two entries. The second is of RoCE version 2, which rdma_cm uses.
        let gid_index = ports.at(id.port).gids.iter().rposition(|of| *of == gid)?;
        Some(Local {
            id,
            gid,
            gid_index: gid_index as u8,
            lid: ports.lid(id.port),
        })
    }

    /// The port that has an address, and the GID that leads to it.
    fn place(self, address: IpAddr) -> Option<(PortId, Gid)> {
        let ports = &self.slots[0].node.device.ports;
        if ports.subnet.is_none() || self.config.network.is_some() {
            let gid = ports.gid_of(address);
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

    /// The port that has an address.
    pub(crate) fn port_at(self, address: IpAddr) -> Option<Local> {
        let (id, gid) = self.place(address)?;
        let is_local = self.home.is_none_or(|home| home.contains(id.node));
        self.local(id, gid).filter(|_| is_local)
    }

    /// The port that addresses of the machine itself, such as 127.0.0.1, lead to.
    pub(crate) fn loopback(self) -> Option<Local> {
        // rdma_cm speaks of IP addresses, so a port with one comes first.
        let node = self.home.map_or(0, HostNodes::first);
        let first = PortId { node, port: 1 };
        let gids = &self.device(node)?.ports.at(1).gids;
        let of_ip = gids.iter().find(|gid| gid.ipv4().is_some());
        self.local(first, *of_ip.or(gids.first())?)
    }

    /// Where an address leads, from a port.
    fn peer_at(self, from: &Local, address: IpAddr) -> Option<Peer> {
        let ports = &self.device(from.id.node)?.ports;
        // A path starts at an active port.
        if !ports.at(from.id.port).up {
            return None;
        }
        let (id, gid) = match self.place(address) {
            Some(place) => place,
            None if self.config.reaches(address) => (PortId::OUTSIDE, ports.gid_of(address)),
            None => return None,
        };
        let lid = ports.lid_of(id, gid);
        let same_family = ip_of(gid).is_ipv4() == ip_of(from.gid).is_ipv4();
        same_family.then_some(Peer { gid, lid })
    }

    /// Whether an address, if it has an owner, is on the devices' network.
    pub(crate) fn is_on_network(self, address: IpAddr) -> bool {
        let is_private = self.config.network.is_none();
        is_private && matches!(address, IpAddr::V4(address) if address.octets()[0] == 10)
    }

    /// The GUID of a device.
    pub(crate) fn guid(self, node: u32) -> u64 {
        self.device(node)
            .map_or(0, |device| device.base.attr.node_guid)
    }

    /// The active MTU of a port.
    pub(crate) fn mtu(self, port: PortId) -> Mtu {
        let device = self.device(port.node);
        device.map_or(Mtu::Mtu1024, |device| device.ports.at(port.port).mtu)
    }

    /// Whether the devices are those of iWARP.
    pub(crate) fn is_iwarp(self) -> bool {
        self.config.is_iwarp()
    }

    /// The limits of outstanding reads and atomics to and from a queue pair of a device.
    pub(crate) fn reads(self, node: u32) -> Reads {
        let attr = self.device(node).map(|device| &device.base.attr);
        let most = |value: Option<i32>| value.unwrap_or(0).clamp(0, 0xff) as u8;
        Reads {
            responder: most(attr.map(|attr| attr.max_qp_rd_atom as i32)),
            initiator: most(attr.map(|attr| attr.max_qp_init_rd_atom as i32)),
        }
    }

    /// The flushes that queue pairs of a device may allow.
    pub(crate) fn flushes(self, node: u32) -> Access {
        let device = self.device(node);
        device.map_or(Access::empty(), |device| device.base.flushes())
    }

    /// The LID of a group, on InfiniBand.
    pub(crate) fn group_lid(self, group: Gid) -> u16 {
        const FIRST: u16 = 0xc000;
        match self.slots[0].node.device.ports.subnet {
            Some(_) => FIRST | (fnv(&group.0) as u16 & 0x1fff),
            None => 0,
        }
    }

    /// The path to an address: the local port, and the destination.
    pub(super) fn path(self, bound: Option<Local>, target: IpAddr) -> Option<(Local, Peer)> {
        let own = || self.port_at(target);
        let local = bound.or_else(own).or_else(|| self.loopback())?;
        if target.is_multicast() {
            let gid = gid_of(target);
            let lid = self.group_lid(gid);
            return Some((local, Peer { gid, lid }));
        }
        let is_own = target.is_unspecified() || target.is_loopback();
        let to_itself = || self.peer_at(&local, local.address()).filter(|_| is_own);
        let to = self.peer_at(&local, target).or_else(to_itself)?;
        Some((local, to))
    }
}
