//! The gateway: packets leave the process, and arrive from other processes.

use std::collections::{BTreeSet, VecDeque};
use std::mem;
use std::net::IpAddr;

use verbs_api::Gid;
use verbs_api::lab::Syndrome;
use verbs_api::table::Id;
use verbs_roce::{Frame, Ip, ReadError};
use verbs_udp::{Received, Train};

use super::Network;
use super::outgoing::Outgoing;
use crate::config::SimConfig;
use crate::fabric::Fabric;
use crate::memory::{Gone, SharedMemory};
use crate::packet::{DropReason, NetworkType, Op, Packet, PortId, frame};

/// The connection of a fabric to other processes.
pub(crate) struct Gateway {
    network: Network,
    outgoing: Outgoing,
    /// An empty buffer that is exchanged for `outgoing`.
    spare: Outgoing,
    /// Delayed acknowledgements of received packets. They leave after the program's answer, in one
    /// system call with it.
    acknowledgements: Vec<Packet>,
    /// Outgoing packets are caused by packets that are arriving.
    is_arriving: bool,
    /// A thread is sending. It also sends the packets that leave until it is done, so the order
    /// stays.
    is_sending: bool,
    /// Packets sent in one system call, at most.
    most: usize,
    /// Queue pairs that have more to send to other processes, with their nodes.
    pub(super) turns: VecDeque<(u32, Id)>,
    /// Addresses of the local ports.
    addresses: BTreeSet<IpAddr>,
    /// The number of queue pairs of each node that packets of other processes may be addressed to,
    /// as last counted. The last element counts ids of rdma_cm.
    remote_qps: Vec<u32>,
    all_remote_qps: u32,
}

/// Pending bytes above which no more should be posted.
const CROWDED: usize = 1 << 20;

/// The socket on which a packet arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RxSource {
    Port(PortId),
    /// The socket of a multicast group: a copy for this process.
    Group(Gid),
}

impl Gateway {
    /// The gateway of a simulation that is on a network.
    pub(crate) fn of(config: &SimConfig) -> Option<Box<Self>> {
        let network = config.network?;
        Some(Box::new(Self {
            network,
            outgoing: Outgoing::default(),
            spare: Outgoing::default(),
            acknowledgements: Vec::new(),
            is_arriving: false,
            is_sending: false,
            most: Train::MOST,
            turns: VecDeque::new(),
            addresses: BTreeSet::new(),
            remote_qps: vec![0; config.nodes as usize + 1],
            all_remote_qps: 0,
        }))
    }

    /// Queues a turn for a queue pair with a peer in another process. It gets the turn once the
    /// network has room.
    pub(crate) fn wants_turn(&mut self, node: u32, qp: Id) {
        self.turns.push_back((node, qp));
    }

    /// Queues a packet to be sent, if the memory of its payload still exists.
    #[inline(never)]
    pub(crate) fn leave(&mut self, packet: &Packet, memory: &SharedMemory) {
        // A connection acknowledges most messages just before the program answers, so one system
        // call can carry both.
        if self.is_arriving && packet.op == Op::Acknowledge(Syndrome::Ack) {
            return self.keep(packet);
        }
        let payload = packet.payload.bytes(&mut memory.lock());
        let Ok(payload): Result<_, Gone> = payload else {
            return;
        };
        // A packet that no network carries is lost, as is one to an address without an owner.
        let _ = self.outgoing.push(packet, &payload, self.most);
    }

    /// Delays an acknowledgement. It replaces an older one to the same queue pair, since
    /// acknowledgements are cumulative.
    fn keep(&mut self, packet: &Packet) {
        let way = |of: &Packet| (of.route, of.src_qpn, of.dest_qpn);
        match self.acknowledgements.last_mut() {
            Some(last) if way(last) == way(packet) => *last = packet.clone(),
            _ => self.acknowledgements.push(packet.clone()),
        }
    }

    /// Queues the delayed acknowledgements.
    fn queue_acknowledgements(&mut self) {
        for packet in self.acknowledgements.drain(..) {
            // A packet that no network carries is lost.
            let _ = self.outgoing.push(&packet, &[], self.most);
        }
    }

    /// Notes how many queue pairs of a node packets of other processes may be addressed to. Returns
    /// the sum over all nodes.
    pub(crate) fn count_remote_qps(&mut self, node: u32, now: u32) -> u32 {
        let before = mem::replace(&mut self.remote_qps[node as usize], now);
        self.all_remote_qps = self.all_remote_qps - before + now;
        self.all_remote_qps
    }

    /// Whether packets wait to be sent.
    #[inline]
    pub(crate) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether a thread is sending and the pending output is too large to add more.
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_sending && self.outgoing.bytes.len() > CROWDED
    }

    /// Takes the pending output, unless another thread is sending. The caller sends it and then
    /// calls [`sent`](Self::sent).
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Outgoing> {
        if self.outgoing.is_empty() || self.is_sending {
            return None;
        }
        self.queue_acknowledgements();
        self.is_sending = true;
        let spare = mem::take(&mut self.spare);
        Some(mem::replace(&mut self.outgoing, spare))
    }

    /// Takes the pending output and the delayed acknowledgements, unless another thread is sending.
    pub(crate) fn take_all(&mut self) -> Option<Outgoing> {
        self.queue_acknowledgements();
        self.take()
    }

    /// Ends a send, and takes the output that became pending since. If the system did not cut a
    /// train (`cuts` is false), packets leave singly from now on.
    pub(crate) fn sent(&mut self, mut outgoing: Outgoing, cuts: bool) -> Option<Outgoing> {
        if !cuts {
            self.most = 1;
        }
        outgoing.clear();
        self.spare = outgoing;
        self.is_sending = false;
        self.take()
    }

    /// Whether all output has been sent.
    pub(crate) fn is_all_sent(&self) -> bool {
        self.outgoing.is_empty() && self.acknowledgements.is_empty() && !self.is_sending
    }
}

impl Fabric {
    /// Gives the first queue pair in line its turn to send to another process, unless too much
    /// output is pending. Returns whether more turns are wanted.
    pub(super) fn send_turn(&mut self) -> bool {
        if let Some(gateway) = &mut self.gateway
            && !gateway.is_crowded()
            && let Some((node, qp)) = gateway.turns.pop_front()
        {
            self.give_turn(node, qp);
            self.deliver_all();
        }
        let gateway = self.gateway.as_ref();
        gateway.is_some_and(|gateway| !gateway.turns.is_empty())
    }

    /// Takes in packets of other processes and delivers them. Answers to them leave within one
    /// turn, and the rest later.
    pub(super) fn let_arrive(&mut self, source: RxSource, take_in: impl FnOnce(&mut Fabric)) {
        if let RxSource::Port(to) = source {
            let is_crowded = self.gateway.as_deref().is_some_and(Gateway::is_crowded);
            let turns = &mut self.node_mut(to.node).device.turns;
            // Answers would only add to the pending output, so they wait for turns of their own.
            if is_crowded {
                turns.end();
            } else {
                turns.begin();
            }
        }
        self.set_arriving(true);
        take_in(self);
        self.deliver_all();
        self.set_arriving(false);
    }

    /// Groups that have members here.
    pub(super) fn groups(&self) -> BTreeSet<Gid> {
        let of_node = |node| self.node(node).groups.keys().copied();
        (0..self.nodes()).flat_map(of_node).collect()
    }

    /// All ports of nodes that have members of a group.
    fn ports_of_members(&self, group: &Gid) -> Vec<PortId> {
        let ports = 1..=self.config.ports;
        let has_members = |node: &u32| self.node(*node).groups.contains_key(group);
        let nodes = (0..self.nodes()).filter(has_members);
        let of_node = |node| ports.clone().map(move |port| PortId { node, port });
        nodes.flat_map(of_node).collect()
    }

    /// Notes packets of other processes that the program never read.
    pub(super) fn note_unread(
        &mut self,
        source: RxSource,
        address: IpAddr,
        received: &Received<'_>,
    ) {
        let (Some(gateway), Some(ip)) = (&self.gateway, Ip::new(received.from, address)) else {
            return;
        };
        let RxSource::Port(to) = source else { return };
        if !gateway.network.has(received.from) {
            return;
        }
        let node = self.node_mut(to.node);
        for datagram in received.datagrams() {
            if let Ok(received) = Frame::read_udp(ip, received.port, datagram) {
                let route = frame::route(&received, PortId::OUTSIDE, to);
                if let Ok(packet) = node.packet_of(received, route) {
                    node.note_unread(&packet);
                }
            }
        }
    }

    /// Gives a port its address. If its socket does not cut trains (`segments` is false), packets
    /// leave singly.
    pub(crate) fn set_address(&mut self, to: PortId, address: IpAddr, mtu: usize, segments: bool) {
        let Some(gateway) = &mut self.gateway else {
            return;
        };
        gateway.addresses.insert(address);
        if !segments {
            gateway.most = 1;
        }
        let gids = self.work(to.node, |node| {
            node.device.ports.set_address(to.port, address, mtu)
        });
        self.adopt_gids(&gids);
    }

    /// Makes the process a tenant of shared addresses, with this number. The node has no queue pair
    /// yet.
    pub(crate) fn become_tenant(&mut self, node: u32, number: u8) {
        self.work(node, |node| {
            node.device.ports.tenant = Some(number);
            node.numbers.become_tenant(number);
        });
        self.manage(|manager, _| manager.numbers.tenant = Some(number));
    }

    fn set_arriving(&mut self, is_arriving: bool) {
        if let Some(gateway) = &mut self.gateway {
            gateway.is_arriving = is_arriving;
        }
    }

    /// Takes in packets of another process.
    pub(super) fn take_in(&mut self, source: RxSource, address: IpAddr, received: &Received<'_>) {
        let Some(gateway) = &self.gateway else { return };
        let is_own = gateway.addresses.contains(&received.from);
        let is_stranger = !gateway.network.has(received.from);
        let ports = match source {
            RxSource::Port(port) => vec![port],
            // Local members got the packet when it was sent. With shared addresses, the address
            // alone does not identify the sender.
            RxSource::Group(_) if is_own && gateway.network.given().is_none() => return,
            RxSource::Group(group) => self.ports_of_members(&group),
        };
        let Some(ip) = Ip::new(received.from, address) else {
            return;
        };
        let ip = ip.with_traffic_class(received.traffic_class);
        let ip = ip.with_hop_limit(received.hop_limit);
        for datagram in received.datagrams() {
            for port in &ports {
                if is_stranger {
                    self.refuse(*port, DropReason::OtherFabric)
                } else {
                    self.arrive_at(*port, source, ip, received.port, is_own, datagram)
                }
            }
        }
    }

    fn arrive_at(
        &mut self,
        to: PortId,
        source: RxSource,
        ip: Ip,
        port: u16,
        is_own: bool,
        bytes: &[u8],
    ) {
        let received = match Frame::read_udp(ip, port, bytes) {
            Ok(received) => received,
            // A device without congestion control ignores congestion notifications.
            Err(ReadError::Cnp) => return,
            Err(_) => return self.refuse(to, DropReason::NotRoceDatagram),
        };
        let mut route = frame::route(&received, PortId::OUTSIDE, to);
        // The datagram has the group's IP address, and nodes look for its GID.
        if let RxSource::Group(group) = source {
            route.dgid = group;
        }
        // Another fabric of this name has another link layer.
        let is_infiniband = self.node(to.node).device.ports.subnet.is_some();
        if is_infiniband != (route.network_type == NetworkType::InfiniBand) {
            return self.refuse(to, DropReason::OtherFabric);
        }
        let packet = match self.node(to.node).packet_of(received, route) {
            Ok(packet) if packet.damaged => return self.refuse(to, DropReason::WrongIcrc),
            Ok(packet) => packet,
            Err(_) => return self.refuse(to, DropReason::NotForDevice),
        };
        let ports = &self.node(to.node).device.ports;
        let is_copy = is_own && !ports.is_of_other_tenant(packet.src_qpn);
        // Local members got the packet when it was sent.
        if is_copy && matches!(source, RxSource::Group(_)) {
            return;
        }
        let packet = Packet {
            arrives: self.now(),
            ..packet
        };
        self.send_on(to.node, packet);
    }

    fn refuse(&mut self, to: PortId, why: DropReason) {
        self.node_mut(to.node).device.base.journal.garbage(why);
    }
}
