//! The connection manager's view of its machine.

use core::net::IpAddr;

use verbs_api::{Gid, Mtu};

use crate::packet::PortId;

/// The machine: its ports, and where addresses lead.
pub(crate) trait Host {
    /// The port that has an address.
    fn port_at(&self, address: IpAddr) -> Option<Local>;

    /// The port that addresses of the machine itself, such as 127.0.0.1, lead to.
    fn loopback(&self) -> Option<Local>;

    /// Where an address leads, from a port.
    fn peer_at(&self, from: &Local, address: IpAddr) -> Option<Peer>;

    /// Whether an address, if it has an owner, is on the devices' network.
    fn is_on_network(&self, address: IpAddr) -> bool;

    /// The GUID of a device.
    fn guid(&self, node: u32) -> u64;

    /// The active MTU of a port.
    fn mtu(&self, port: PortId) -> Mtu;

    /// The limits of outstanding reads and atomics to and from a queue pair of a device.
    fn reads(&self, node: u32) -> Reads;

    /// The LID of a group, on InfiniBand.
    fn group_lid(&self, group: Gid) -> u16;
}

/// A port of this machine, by one of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) id: PortId,
    pub(crate) address: IpAddr,
    pub(crate) gid: Gid,
    pub(crate) gid_index: u8,
    /// 0 on Ethernet.
    pub(crate) lid: u16,
}

/// A port to which MADs are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peer {
    pub(crate) gid: Gid,
    /// 0 on Ethernet.
    pub(crate) lid: u16,
}

/// Limits of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reads {
    /// `max_qp_rd_atom`
    pub(crate) responder: u8,
    /// `max_qp_init_rd_atom`
    pub(crate) initiator: u8,
}
