//! The nodes of a simulation and what is between them: a plain struct, like a node.
//!
//! Everything that a simulation is, but for waiting: the clock, the packets under way, the timers,
//! the rules of the wire, the trace. A verb works on its node; what comes of it happens before
//! [`work`](Fabric::work) returns (inline), or waits in flight until the clock is moved to it
//! (stepped).

mod cm;
mod deadlines;
mod fates;
mod faults;
pub(crate) mod late;
mod outage;
mod turns;
mod waits;
pub(crate) mod wire;

use core::time::Duration;
use std::collections::VecDeque;
#[cfg(feature = "fd")]
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
#[cfg(feature = "fd")]
use verbs_api::Verb;
use verbs_api::lab::{FaultId, Harm, TappedPacket, TimerReport, TraceEvent, TraceRecord};
use verbs_api::site::Site;
use verbs_api::{Context, Gid, Result};

use crate::config::{Mode, SimConfig};
#[cfg(feature = "fd")]
use crate::descriptor::Descriptors;
use crate::device::EmptyCqs;
#[cfg(feature = "fd")]
use crate::device::EventQueue;
use crate::device::{Gids, gids};
use crate::diagnosis::Unposted;
use crate::direct::Direct;
use crate::fault::{Striker, Strikers};
use crate::memory::{Memory, SharedMemory};
use crate::node::Node;
use crate::packet::frame;
use crate::packet::payload::Payload;
use crate::packet::{DropReason, Packet, PortId};
use crate::storage::Ring;
use crate::time::{Time, sooner};
use cm::Managed;
use deadlines::Deadlines;
use fates::Fate;
use late::Late;
use outage::Outages;
use waits::Waits;
pub(crate) use waits::{WaitFor, Waiting};
use wire::{Verdict, Wire};

/// The nodes of a simulation and what is between them.
#[derive(Debug)]
pub(crate) struct Fabric {
    pub(crate) config: SimConfig,
    pub(crate) seats: Vec<Seat>,
    pub(crate) memory: SharedMemory,
    pub(crate) now: Time,
    /// Packets under way, in the order in which they arrive. In inline mode there are none between
    /// two verbs.
    pub(crate) flight: Box<Ring<Packet>>,
    /// Queue pairs that have asked for a turn, with their nodes. They have it behind the packets that arrive by now.
    pub(crate) turns: VecDeque<(u32, (u32, u32))>,
    /// Packets under way that fault rules hold back.
    pub(crate) late: Late,
    pub(crate) outages: Outages,
    pub(crate) deadlines: Deadlines,
    pub(crate) wire: Wire,
    pub(crate) strikers: Strikers,
    pub(crate) trace: Option<Vec<TraceRecord>>,
    /// Nodes where something happened that a waiting thread may wait for.
    pub(crate) news: Vec<u32>,
    /// Not in stepped mode, where each poll is seen.
    pub(crate) empty: Option<Arc<EmptyCqs>>,
    /// Nobody sees single packets: they go straight from one node to the other.
    pub(crate) unseen: bool,
    pub(crate) direct: Direct,
    /// What the nodes know of that: whether whole messages may travel as one, and whether polls that find
    /// nothing are seen by nobody.
    pub(crate) informed: Option<(bool, bool)>,
    pub(crate) closed: bool,
    /// Where the program calls the present verb.
    pub(crate) site: Option<Site>,
    pub(crate) waits: Waits,
    /// What a layer over the verbs has not posted when the program ends.
    pub(crate) unposted: Vec<Unposted>,
    /// What connects queue pairs.
    pub(crate) managed: Managed,
    /// What there is for other processes, on a network.
    #[cfg(feature = "network")]
    pub(crate) border: Option<Box<crate::network::gateway::Border>>,
}

/// What stands for the connection manager in the place of a node.
const MANAGER: u32 = u32::MAX;

/// A node in its place.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) node: Node,
    /// Threads that wait for news of it.
    pub(crate) waiting: u32,
    #[cfg(feature = "fd")]
    pub(crate) descriptors: Descriptors,
}

/// Lets a queue pair have its turn, and takes from its node what came of that.
#[cold]
pub(crate) fn give_turn(fabric: &mut Fabric, index: u32, qp: (u32, u32)) {
    turns::give(fabric, index, qp);
    fabric.collect(index);
    if fabric.node(index).device.turns.are_wanted() {
        turns::grant(fabric, index);
    }
}

/// Lets the queue pair have its turn that asked first. False if none did.
fn give_next_turn(fabric: &mut Fabric) -> bool {
    let first = fabric.turns.pop_front();
    if let Some((node, qp)) = first {
        give_turn(fabric, node, qp);
    }
    first.is_some()
}

impl Fabric {
    pub(crate) fn new(config: SimConfig) -> Self {
        assert!(
            config.is_roce() || !(config.wire || config.pcap.is_some()),
            "bytes of packets are those of RoCEv2"
        );
        let (nodes, ports) = (config.nodes, config.ports);
        let mut memory = Memory::new(config.behavior.placement);
        if config.check_memory {
            memory.check_mapping();
        }
        let memory = Arc::new(Mutex::new(memory));
        let subnet = config.subnet();
        // On a network nobody has an address yet.
        let located = if config.has_network() { 0 } else { nodes };
        let gids = gids(located, ports, subnet.is_some());
        let shared = (Arc::new(gids), memory.clone());
        let seat = |id| {
            let mut node = Node::new(
                id,
                ports,
                config.behavior,
                shared.clone(),
                config.seed,
                config.scatter,
            );
            node.device.base.set_limits(&config.limits);
            node.device.base.checks_memory = config.check_memory;
            node.device.base.set_lacks(config.lacks);
            if let Some(subnet) = subnet {
                node.device.ports.join(subnet);
            }
            if config.behavior.roce_v1 && config.is_roce() {
                node.device.ports.offer_roce_v1();
            }
            if config.has_network() {
                node.device.ports.join_network();
            }
            if config.trace {
                node.device.base.start_trace();
            }
            Seat {
                node,
                waiting: 0,
                #[cfg(feature = "fd")]
                descriptors: Descriptors::default(),
            }
        };
        let mut fabric = Self {
            seats: (0..nodes).map(seat).collect(),
            memory,
            now: Time::ZERO,
            flight: Box::default(),
            turns: VecDeque::new(),
            late: Late::default(),
            outages: Outages::default(),
            deadlines: Deadlines::default(),
            wire: Wire::default(),
            strikers: Strikers::new(config.seed, config.strikes),
            trace: config.trace.then(Vec::new),
            news: Vec::new(),
            empty: (config.mode != Mode::Stepped).then(EmptyCqs::new),
            unseen: false,
            direct: Direct::default(),
            informed: None,
            closed: false,
            site: None,
            waits: Waits::default(),
            unposted: Vec::new(),
            managed: Managed::new(&config),
            #[cfg(feature = "network")]
            border: config.network.map(|network| {
                Box::new(crate::network::gateway::Border::new(network, nodes, ports))
            }),
            config,
        };
        if fabric.config.planted_defect {
            fabric.wire.plant_defect();
        }
        fabric.inform_nodes();
        fabric
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// The CQs that can be seen to be empty without the lock.
    pub(crate) fn empty_cqs(&self) -> &Option<Arc<EmptyCqs>> {
        &self.empty
    }

    /// A node, to look at.
    pub(crate) fn node(&self, index: u32) -> &Node {
        &self.seats[index as usize].node
    }

    /// Works on a node where nothing comes of it that would have to take effect, nor that ways of messages depend on.
    pub(crate) fn node_mut(&mut self, index: u32) -> &mut Node {
        &mut self.seats[index as usize].node
    }

    /// Works on a node, and lets what comes of it take effect.
    pub(crate) fn work<R>(&mut self, index: u32, work: impl FnOnce(&mut Node) -> R) -> R {
        self.direct.epoch += 1;
        let result = self.work_quietly(index, work);
        if self.node(index).device.turns.are_wanted() {
            turns::grant(self, index);
            if self.config.mode != Mode::Stepped {
                self.deliver_all();
            }
        }
        result
    }

    /// As above, where no way of a message depends on what changes.
    #[inline]
    pub(crate) fn work_quietly<R>(&mut self, index: u32, work: impl FnOnce(&mut Node) -> R) -> R {
        let node = &mut self.seats[index as usize].node;
        node.set_now(self.now);
        node.device.base.site = self.site;
        let result = work(node);
        self.collect(index);
        if self.config.mode != Mode::Stepped && !self.flight.is_empty() {
            self.deliver_all();
        }
        result
    }

    /// Delivers what is under way, and what that makes the nodes send.
    #[inline(never)]
    pub(crate) fn deliver_all(&mut self) {
        while self.deliver_next() || give_next_turn(self) {}
    }

    /// Delivers the oldest packet, in its place: they are not small. False if there is none.
    #[inline(always)]
    fn deliver_next(&mut self) -> bool {
        let Some(packet) = self.flight.front() else {
            return false;
        };
        self.direct.epoch += 1;
        let to = packet.route.to.filter(|to| !to.is_outside());
        #[cfg(feature = "network")]
        if let Some(border) = &mut self.border
            && packet.route.leads_outside()
        {
            border.leave(packet, &self.memory);
        }
        let mut fate = None;
        // What goes nowhere is lost.
        if let Some(to) = to {
            let node = &mut self.seats[to.node as usize].node;
            node.set_now(self.now);
            let taken = match self.config.wire {
                false => node.handle_packet(packet),
                true => node.handle_as_bytes(packet, &self.memory),
            };
            fate = taken.err().map(|why| Fate::of(packet, why));
        }
        if let Some(delivered) = self.flight.pop() {
            delivered.payload = Payload::default();
        }
        if let Some(fate) = fate {
            fates::note(&mut self.seats, &fate);
        }
        if let Some(to) = to {
            self.collect(to.node);
            if self.node(to.node).device.turns.are_wanted() {
                turns::grant(self, to.node);
            }
            if self.node(to.node).device.gsi.has_received() {
                cm::receive(self, to.node);
            }
        }
        true
    }

    /// Takes from a node what came of work on it: its trace, then its packets; notes its news.
    #[inline(always)]
    fn collect(&mut self, index: u32) {
        let seat = &mut self.seats[index as usize];
        self.deadlines.update(index, &mut seat.node.device);
        if seat.waiting > 0 && seat.node.take_news() {
            self.news.push(index);
        }
        #[cfg(feature = "fd")]
        seat.descriptors.update(&mut seat.node.device);
        if self.unseen {
            return seat.node.device.outbox.move_to(&mut self.flight);
        }
        self.collect_seen(index);
    }

    /// As above, where packets can be seen.
    #[inline(never)]
    fn collect_seen(&mut self, index: u32) {
        if let Some(trace) = &mut self.trace {
            let (at, node) = (self.now.since_start(), index);
            let events = self.seats[index as usize]
                .node
                .device
                .base
                .take_trace()
                .into_iter();
            trace.extend(events.map(|event| TraceRecord::new(at, node, event)));
        }
        let arrives = self.now.after(self.config.latency);
        while let Some(mut packet) = self.seats[index as usize].node.device.outbox.pop() {
            packet.arrives = arrives;
            if packet.route.to.is_none() {
                self.lose(index, &packet, DropReason::UnownedGid);
                continue;
            }
            self.wire.spoil(&mut packet);
            self.capture(&packet);
            match self.verdict(&packet) {
                Verdict::Passes => self.fly(packet),
                Verdict::Lost(why) => self.lose(index, &packet, why),
                Verdict::Harmed(harm) => self.harm(index, packet, harm),
            }
        }
    }

    /// Writes a packet to the file of packets, if there is one.
    fn capture(&self, packet: &Packet) {
        let Some(pcap) = &self.config.pcap else {
            return;
        };
        // What cannot be written does not leave.
        if let Ok(payload) = packet.payload.bytes(&mut self.memory.lock())
            && let Ok(bytes) = frame::write(packet, &payload)
        {
            pcap.record(self.now, &bytes);
        }
    }

    /// What becomes of a packet on its way; the tap sees it.
    pub(crate) fn verdict(&mut self, packet: &Packet) -> Verdict {
        if !self.wire.sees_packets() {
            return Verdict::Passes;
        }
        self.wire.carry(self.now, packet)
    }

    /// Lets a packet go its way, and behind it those that it was the last to overtake.
    pub(crate) fn fly(&mut self, packet: Packet) {
        let (link, arrives) = (packet.route.link(), packet.arrives);
        *self.flight.push() = packet;
        if self.late.is_empty() {
            return;
        }
        for overtaken in self.late.overtake(link) {
            *self.flight.push() = Packet {
                arrives,
                ..overtaken
            };
        }
    }

    pub(crate) fn harm(&mut self, index: u32, mut packet: Packet, harm: Harm) {
        if self.is_traced() {
            let packet = packet.view();
            self.record(index, TraceEvent::Harmed { packet, harm });
        }
        if matches!(harm, Harm::Delay(_) | Harm::Reorder(_)) {
            fates::note(&mut self.seats, &Fate::of(&packet, DropReason::HeldBack));
        }
        match harm {
            Harm::Corrupt => {
                packet.damaged = true;
                self.fly(packet);
            }
            Harm::Duplicate(by) if by.is_zero() => {
                *self.flight.push() = packet.clone();
                self.fly(packet);
            }
            Harm::Duplicate(by) => {
                let copy = packet.clone();
                self.fly(packet);
                self.hold(copy, by, 0);
            }
            Harm::Delay(by) => self.hold(packet, by, 0),
            Harm::Reorder(behind) => self.hold(packet, Harm::REORDER_WITHIN, behind),
            // A loss is another verdict.
            _ => self.fly(packet),
        }
    }

    /// Holds a packet back. It takes its bytes along: those whose they are may have them back before
    /// it arrives.
    fn hold(&mut self, mut packet: Packet, by: Duration, behind: u32) {
        let from = match self.config.mode {
            Mode::Stepped => packet.arrives,
            Mode::Inline | Mode::RealTime => self.now,
        };
        packet.arrives = from.after(by);
        // Of memory that is gone nothing can be taken; it is lost on arrival.
        if let Ok(payload) = packet.payload.taken_along(&self.memory) {
            packet.payload = payload;
        }
        self.late.hold(packet, behind);
        self.deadlines.is_sooner = true;
    }

    pub(crate) fn lose(&mut self, node: u32, packet: &Packet, why: DropReason) {
        if self.is_traced() {
            let packet = packet.view();
            let why = why.text();
            self.record(node, TraceEvent::Lost { packet, why });
        }
        fates::note(&mut self.seats, &Fate::of(packet, why));
    }

    /// Puts a GID into the table of a port; all nodes learn where it is.
    pub(crate) fn set_gid(
        &mut self,
        node: u32,
        context: Context,
        port: u8,
        index: u32,
        gid: Gid,
    ) -> Result<()> {
        let gids = self.work(node, |node| node.device.set_gid(context, port, index, gid))?;
        self.adopt_gids(&gids);
        Ok(())
    }

    /// All nodes learn where GIDs are.
    pub(crate) fn adopt_gids(&mut self, gids: &Arc<Gids>) {
        self.direct.epoch += 1;
        for seat in &mut self.seats {
            seat.node.adopt_gids(gids.clone());
        }
    }

    /// Lets a port go down or come up, the next packet arrive, a queue pair have its turn or the next timer fire, if
    /// that is due until `limit`.
    pub(crate) fn step(&mut self, limit: Time) -> bool {
        let packet = self.next_packet();
        if packet.is_none_or(|at| at > self.now) && give_next_turn(self) {
            return true;
        }
        let timer = self.next_timer();
        if let Some(at) = self.outages.next()
            && at <= packet.unwrap_or(limit).min(limit)
            && timer.is_none_or(|(first, _)| at <= first)
        {
            self.set_now(at);
            self.change_port();
            return true;
        }
        let is_due = |at: &Time| *at <= limit;
        // A packet before a timer, so that an acknowledgement that comes in time is in time.
        if let Some(at) = packet.filter(is_due)
            && timer.is_none_or(|(first, _)| at <= first)
        {
            self.set_now(at);
            // Of two that arrive at one time, the one that is late has left before the other.
            if self.late.next_at() == Some(at) {
                self.deliver_late();
                return true;
            }
            return self.deliver_next();
        }
        let Some((at, index)) = timer.filter(|(at, _)| is_due(at)) else {
            return false;
        };
        self.set_now(at);
        match index {
            MANAGER => self.manage(|manager, _| manager.handle_timeout()),
            node => self.work(node, |node| node.handle_timeout()),
        }
        true
    }

    /// Runs until nothing is under way and no timer runs; false if the horizon came first.
    pub(crate) fn settle(&mut self) -> bool {
        let limit = self.now.after(self.config.horizon);
        while self.next_work().is_some() && self.step(limit) {}
        self.next_work().is_none()
    }

    /// Moves the clock by what is due until `limit`, then to `limit`.
    pub(crate) fn advance(&mut self, limit: Time) {
        while self.step(limit) {}
        self.set_now(limit);
    }

    /// Lets happen what is due by now.
    pub(crate) fn catch_up(&mut self) {
        self.advance(self.now);
    }

    /// Never back.
    pub(crate) fn set_now(&mut self, to: Time) {
        self.now = self.now.max(to);
    }

    /// A time before which nothing happens by itself: no packet, no timer, and no change of a port.
    pub(crate) fn expected(&mut self) -> Option<Time> {
        let seats = &self.seats;
        let of_node = self
            .deadlines
            .earliest(|index| &seats[index as usize].node.device);
        let others = [
            self.managed.manager.next_deadline(),
            self.next_packet(),
            turns::next(self),
            self.outages.next(),
        ];
        others.into_iter().fold(of_node, sooner)
    }

    /// When the next packet arrives, queue pair has its turn or timer fires.
    pub(crate) fn next_work(&mut self) -> Option<Time> {
        let timer = self.next_timer().map(|(at, _)| at);
        let others = [turns::next(self), timer];
        others.into_iter().fold(self.next_packet(), sooner)
    }

    /// When the next packet arrives.
    fn next_packet(&self) -> Option<Time> {
        let packet = self.flight.front().map(|packet| packet.arrives);
        sooner(packet, self.late.next_at())
    }

    /// Lets a port be down for a time.
    pub(crate) fn add_outage(
        &mut self,
        port: PortId,
        down_at: Time,
        up_at: Option<Time>,
        striker: Striker,
    ) {
        self.outages.add(port, down_at, up_at, striker);
        self.deadlines.is_sooner = true;
        while self.outages.next().is_some_and(|at| at <= self.now) {
            self.change_port();
        }
    }

    #[cold]
    fn change_port(&mut self) {
        if let Some((port, up)) = self.outages.take() {
            self.work(port.node, |node| node.device.switch_port(port.port, up));
        }
    }

    /// Takes a rule out of force.
    pub(crate) fn remove_rule(&mut self, id: FaultId) {
        self.rewire(|wire| wire.remove(id));
        for seat in &mut self.seats {
            seat.node.device.base.rules.remove(id);
        }
        if let Some(port) = self.outages.remove(id) {
            self.work(port.node, |node| node.device.switch_port(port.port, true));
        }
    }

    /// Delivers the packet that arrives next of those that were held back.
    #[cold]
    fn deliver_late(&mut self) {
        let Some(packet) = self.late.pop() else {
            return;
        };
        match packet.route.to {
            #[cfg(feature = "network")]
            Some(to) if to.is_outside() => {
                if let Some(border) = &mut self.border {
                    border.leave(&packet, &self.memory);
                }
            }
            Some(to) => {
                let taken = self.work(to.node, |node| node.handle_packet(&packet));
                if let Err(why) = taken {
                    fates::note(&mut self.seats, &Fate::of(&packet, why));
                }
                if self.node(to.node).device.gsi.has_received() {
                    cm::receive(self, to.node);
                }
            }
            None => {}
        }
    }

    fn next_timer(&mut self) -> Option<(Time, u32)> {
        let seats = &mut self.seats;
        let of_node = self
            .deadlines
            .first(|index| seats[index as usize].node.next_deadline());
        let managed = self.managed.manager.next_deadline();
        let managed = managed.map(|at| (at, MANAGER));
        of_node.into_iter().chain(managed).min()
    }

    /// All timers that run, in the order of their deadlines.
    pub(crate) fn timers(&self) -> Vec<TimerReport> {
        let mut timers: Vec<_> = self
            .seats
            .iter()
            .flat_map(|seat| seat.node.timers())
            .collect();
        timers.sort_by_key(|timer| timer.at);
        timers
    }

    /// What the tap saw since the last call.
    pub(crate) fn tapped(&mut self) -> Vec<TappedPacket> {
        self.wire.tapped()
    }

    /// A duplicate of the descriptor of a queue of events of a node.
    #[cfg(feature = "fd")]
    pub(crate) fn descriptor(&mut self, node: u32, verb: Verb, of: EventQueue) -> Result<OwnedFd> {
        let seat = &mut self.seats[node as usize];
        let base = &seat.node.device.base;
        base.check_has(verb, verbs_api::Capabilities::FD, "has no file descriptors")?;
        seat.descriptors.open(verb, of, &mut seat.node.device)
    }

    pub(crate) fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// Records in the trace so far.
    pub(crate) fn trace_len(&self) -> usize {
        self.trace.as_ref().map_or(0, Vec::len)
    }

    /// Adds to the trace.
    pub(crate) fn record(&mut self, node: u32, event: TraceEvent) {
        let at = self.now.since_start();
        if let Some(trace) = &mut self.trace {
            trace.push(TraceRecord::new(at, node, event));
        }
    }

    pub(crate) fn trace(&self) -> Vec<TraceRecord> {
        self.trace.clone().unwrap_or_default()
    }

    /// No more work will come.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// How many nodes there are.
    pub(crate) fn nodes(&self) -> u32 {
        self.seats.len() as u32
    }

    /// One more thread waits for news of a node, or of the connection manager behind all nodes, or one less.
    pub(crate) fn count_waiting(&mut self, index: u32, starts: bool) {
        let waiting = match self.seats.get_mut(index as usize) {
            Some(seat) => &mut seat.waiting,
            None => &mut self.managed.waiting,
        };
        *waiting = if starts { *waiting + 1 } else { *waiting - 1 };
    }

    /// Nodes that had news since the last call, and whose news a thread waits for.
    pub(crate) fn take_news(&mut self) -> impl Iterator<Item = u32> {
        self.news.drain(..)
    }
}
