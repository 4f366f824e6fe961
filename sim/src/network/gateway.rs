//! Where packets leave the process, and where they come in.

use std::collections::{BTreeSet, VecDeque};
use std::mem;
use std::net::IpAddr;
use std::ops::Range;

use verbs_api::Gid;
use verbs_api::lab::Syndrome;
use verbs_api::table::Id;
use verbs_roce::{Frame, Ip, ReadError};
use verbs_udp::{Received, Train};

use super::Network;
use super::outgoing::Outgoing;
use crate::config::SimConfig;
use crate::diagnosis;
use crate::fabric::Fabric;
use crate::fabric::rules::Verdict;
use crate::memory::{Gone, SharedMemory};
use crate::packet::frame;
use crate::packet::{DropReason, Op, Packet, PortId};

/// What a fabric has for other processes.
#[derive(Debug)]
pub(crate) struct Gateway {
    network: Network,
    outgoing: Outgoing,
    /// The same, empty, to be exchanged for it.
    spare: Outgoing,
    /// Acknowledgements of what has come: they leave behind what the program answers, in one piece with it.
    acknowledgements: Vec<Packet>,
    /// What leaves now is caused by what comes in.
    is_arriving: bool,
    /// A thread sends what has left. What leaves meanwhile it sends afterwards, so the order stays.
    is_sending: bool,
    /// Packets that leave at once, at most.
    most: usize,
    /// Queue pairs that have more to send to other processes, with their nodes.
    turns: VecDeque<(u32, Id)>,
    /// Of the ports here.
    addresses: BTreeSet<IpAddr>,
    /// Ports of each node.
    ports: u8,
    /// By node, queue pairs that packets of other processes may be for, as last counted; behind them, ids of rdma_cm.
    remote_qps: Vec<u32>,
    all_remote_qps: u32,
}

/// Bytes that may wait to be sent.
const CROWDED: usize = 1 << 20;

/// Where something comes in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RxSource {
    Port(PortId),
    /// At the socket of a group: a copy for this process.
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
            ports: config.ports,
            remote_qps: vec![0; config.nodes as usize + 1],
            all_remote_qps: 0,
        }))
    }

    /// A queue pair with a peer in another process has more to send. It gets a turn once the network has room.
    pub(crate) fn wants_turn(&mut self, node: u32, qp: Id) {
        self.turns.push_back((node, qp));
    }

    /// A packet leaves, if its bytes are still there.
    #[inline(never)]
    pub(crate) fn leave(&mut self, packet: &Packet, memory: &SharedMemory) {
        if self.is_arriving && packet.op == Op::Acknowledge(Syndrome::Ack) {
            return self.keep(packet);
        }
        let payload = packet.payload.bytes(&mut memory.lock());
        let Ok(payload): Result<_, Gone> = payload else {
            return;
        };
        // One that no network carries is lost there, as one to an address that nobody has.
        let _ = self.outgoing.push(packet, &payload, self.most);
    }

    /// Keeps an acknowledgement, which says what an older one to the same queue pair says.
    fn keep(&mut self, packet: &Packet) {
        let way = |of: &Packet| (of.route, of.src_qpn, of.dest_qpn);
        match self.acknowledgements.last_mut() {
            Some(last) if way(last) == way(packet) => *last = packet.clone(),
            _ => self.acknowledgements.push(packet.clone()),
        }
    }

    /// What was kept leaves.
    fn let_go(&mut self) {
        for packet in self.acknowledgements.drain(..) {
            // As in `leave`.
            let _ = self.outgoing.push(&packet, &[], self.most);
        }
    }

    /// Packets of other processes may be for so many queue pairs of a node now: how many there are in all.
    pub(crate) fn count_remote_qps(&mut self, node: u32, now: u32) -> u32 {
        let before = mem::replace(&mut self.remote_qps[node as usize], now);
        self.all_remote_qps = self.all_remote_qps - before + now;
        self.all_remote_qps
    }

    /// Whether something is to be sent.
    #[inline]
    pub(crate) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether so much is to be sent, while a thread sends, that no more should come.
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_sending && self.outgoing.bytes() > CROWDED
    }

    /// Whether queue pairs have more to send to other processes.
    pub(crate) fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    /// What is to be sent, if nobody sends. Who gets it sends it, and calls [`sent`](Self::sent).
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Outgoing> {
        if self.outgoing.is_empty() || self.is_sending {
            return None;
        }
        self.let_go();
        self.is_sending = true;
        let spare = mem::take(&mut self.spare);
        Some(mem::replace(&mut self.outgoing, spare))
    }

    /// As above, with what was kept.
    pub(crate) fn take_all(&mut self) -> Option<Outgoing> {
        self.let_go();
        self.take()
    }

    /// It was sent: what is to be sent now. From now on singly, if the system did not cut a train apart.
    pub(crate) fn sent(&mut self, mut outgoing: Outgoing, cuts: bool) -> Option<Outgoing> {
        if !cuts {
            self.most = 1;
        }
        outgoing.clear();
        self.spare = outgoing;
        self.is_sending = false;
        self.take()
    }

    /// Whether everything that has left was sent.
    pub(crate) fn is_all_sent(&self) -> bool {
        self.outgoing.is_empty() && self.acknowledgements.is_empty() && !self.is_sending
    }
}

impl Fabric {
    /// Lets a queue pair have its turn that has more to send to another process, unless much is to be sent already.
    /// Whether more turns are wanted.
    pub(super) fn send_turn(&mut self) -> bool {
        if let Some(gateway) = &mut self.gateway
            && !gateway.is_crowded()
            && let Some((node, qp)) = gateway.turns.pop_front()
        {
            self.give_turn(node, qp);
            self.deliver_all();
        }
        let gateway = self.gateway.as_ref();
        gateway.is_some_and(|gateway| gateway.has_turns())
    }

    /// Takes packets of other processes in and delivers them. What they ask for leaves in one turn, and the rest later.
    pub(super) fn let_arrive(&mut self, source: RxSource, take_in: impl FnOnce(&mut Fabric)) {
        if let RxSource::Port(to) = source {
            let gateway = self.gateway.as_ref();
            let is_crowded = gateway.is_some_and(|gateway| gateway.is_crowded());
            let turns = &mut self.node_mut(to.node).device.turns;
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
        let of_node = |node| self.node(node).groups.iter().copied();
        self.node_numbers().flat_map(of_node).collect()
    }

    /// All ports of nodes that have members of a group.
    fn ports_of_members(&self, group: &Gid) -> Vec<PortId> {
        let ports = 1..=self.gateway.as_ref().map_or(0, |gateway| gateway.ports);
        let has_members = |node: &u32| self.node(*node).groups.iter().any(|of| of == group);
        let nodes = self.node_numbers().filter(has_members);
        let of_node = |node| ports.clone().map(move |port| PortId { node, port });
        nodes.flat_map(of_node).collect()
    }

    fn node_numbers(&self) -> Range<u32> {
        let gateway = self.gateway.as_ref();
        0..gateway.map_or(0, |gateway| gateway.remote_qps.len() - 1) as u32
    }

    /// Packets of other processes are there that nobody has read and nobody will.
    pub(super) fn note_unread(&mut self, source: RxSource, address: IpAddr, came: &Received<'_>) {
        let (Some(gateway), Some(ip)) = (&self.gateway, Ip::new(came.from, address)) else {
            return;
        };
        let RxSource::Port(to) = source else { return };
        if !gateway.network.has(came.from) {
            return;
        }
        let node = self.node_mut(to.node);
        for datagram in came.datagrams() {
            if let Ok(received) = Frame::read_udp(ip, came.port, datagram) {
                let route = frame::route(&received, PortId::OUTSIDE, to);
                if let Ok(packet) = node.packet_of(received, route) {
                    diagnosis::note_unread(node, &packet);
                }
            }
        }
    }

    /// A port has an address from now on. If its socket does not cut trains apart, none are made.
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

    /// The process shares its addresses, as the tenant with this number. The node has no queue pair yet.
    pub(crate) fn become_tenant(&mut self, node: u32, number: u8) {
        self.work(node, |node| {
            node.device.ports.become_tenant(number);
            node.numbers.become_tenant(number);
        });
        self.manage(|manager, _| manager.numbers.become_tenant(number));
    }

    /// Packets of another process came in.
    pub(crate) fn arrive(&mut self, source: RxSource, address: IpAddr, came: &Received<'_>) {
        self.let_arrive(source, |fabric| {
            fabric.take_in(source, address, came);
        });
    }

    fn set_arriving(&mut self, is_arriving: bool) {
        if let Some(gateway) = &mut self.gateway {
            gateway.is_arriving = is_arriving;
        }
    }

    fn take_in(&mut self, source: RxSource, address: IpAddr, came: &Received<'_>) {
        let Some(gateway) = &self.gateway else { return };
        let is_own = gateway.addresses.contains(&came.from);
        let is_stranger = !gateway.network.has(came.from);
        let ports = match source {
            RxSource::Port(port) => vec![port],
            // Members here got it when it was sent. An address alone does not tell who sent it, if others share it.
            RxSource::Group(_) if is_own && gateway.network.given().is_none() => return,
            RxSource::Group(group) => self.ports_of_members(&group),
        };
        let Some(ip) = Ip::new(came.from, address) else {
            return;
        };
        let ip = ip.with_traffic_class(came.traffic_class);
        let ip = ip.with_hop_limit(came.hop_limit);
        for datagram in came.datagrams() {
            for port in &ports {
                match is_stranger {
                    true => self.refuse(*port, DropReason::OtherFabric),
                    false => self.arrive_at(*port, source, (ip, came.port), is_own, datagram),
                }
            }
        }
    }

    fn arrive_at(
        &mut self,
        to: PortId,
        source: RxSource,
        (ip, port): (Ip, u16),
        is_own: bool,
        bytes: &[u8],
    ) {
        let received = match Frame::read_udp(ip, port, bytes) {
            Ok(received) => received,
            // A device without congestion control does nothing about it.
            Err(ReadError::Cnp) => return,
            Err(_) => return self.refuse(to, DropReason::NotRoceDatagram),
        };
        let mut route = frame::route(&received, PortId::OUTSIDE, to);
        if let RxSource::Group(group) = source {
            route.dgid = group;
        }
        let packet = match self.node(to.node).packet_of(received, route) {
            Ok(packet) if packet.damaged => return self.refuse(to, DropReason::WrongIcrc),
            Ok(packet) => packet,
            Err(_) => return self.refuse(to, DropReason::NotForDevice),
        };
        let ports = &self.node(to.node).device.ports;
        let is_copy = is_own && !ports.is_of_other_tenant(packet.src_qpn);
        if is_copy && matches!(source, RxSource::Group(_)) {
            return;
        }
        let packet = Packet {
            arrives: self.now(),
            ..packet
        };
        match self.verdict(&packet) {
            Verdict::Passes => self.schedule.fly(packet),
            Verdict::Lost(why) => self.lose(to.node, &packet, why),
            Verdict::Harmed(harm) => self.harm(to.node, packet, harm),
        }
    }

    fn refuse(&mut self, to: PortId, why: DropReason) {
        self.node_mut(to.node).device.base.journal.garbage(why);
    }
}
