//! The nodes of a simulation and what is between them: a plain struct, like a node.
//!
//! It has the whole state of a simulation except waiting: the clock, the packets in flight, the
//! timers, the fault rules, the trace. A verb works on its node. In inline mode its effects happen
//! before [`work`](Fabric::work) returns. In stepped mode they stay in flight until the clock
//! reaches them.

mod cm_bridge;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod deadlines;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod delay_queue;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod empty_poll;
#[cfg_attr(any(), mutants::skip)] // texts
mod fates;
mod faults;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod outage;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod power;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod recorder;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod rules;
mod schedule;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod shaping;
#[cfg_attr(any(), mutants::skip)] // the suite does not reach it
mod tasks;
#[cfg_attr(any(), mutants::skip)] // texts
mod waits;

use core::time::Duration;
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use verbs_api::behavior::AckEffect;
use verbs_api::lab::{Effect, FaultId, TimerReport, TraceEvent};
use verbs_api::site::Site;
use verbs_api::table::Id;
use verbs_api::{Cq, Wc};

use crate::config::{Mode, SimConfig};
use crate::descriptor::Descriptors;
use crate::device::{EmptyCqs, Gids, Result, Wakeup, gids};
use crate::diagnosis::Unposted;
use crate::direct::{Direct, FastPath};
use crate::memory::{Late, Memory, SharedMemory};
use crate::network::Gateway;
use crate::node::{Node, NodeSlot};
use crate::packet::payload::Payload;
use crate::packet::{DropReason, Packet};
use crate::time::Time;
use cm_bridge::CmBridge;
use recorder::Recorder;
use rules::{Rules, Verdict};
use schedule::{Due, Schedule};
pub(crate) use tasks::Look;
use tasks::Tasks;
use waits::Waits;
pub(crate) use waits::{WaitFor, Waiting};

/// The nodes of a simulation and what is between them.
pub(crate) struct Fabric {
    pub(crate) config: SimConfig,
    pub(crate) slots: Vec<NodeSlot>,
    pub(crate) memory: SharedMemory,
    pub(crate) schedule: Schedule,
    /// The number of steps, and of calls that changed something.
    pub(crate) activity: u64,
    pub(crate) rules: Rules,
    pub(crate) recorder: Recorder,
    /// What happened that threads wait for.
    pub(crate) wakeups: Vec<Wakeup>,
    /// CQs that are known to be empty without the lock. Not in stepped mode, where each poll moves
    /// the clock.
    pub(crate) empty: Option<EmptyCqs>,
    /// No observer sees single packets, so they move directly from one node to the other.
    pub(crate) unseen: bool,
    pub(crate) direct: Direct,
    /// What the nodes know of the observers: whether a whole message may travel as one packet, and
    /// whether no observer sees empty polls.
    pub(crate) informed: Option<(bool, bool)>,
    /// No more work will come.
    pub(crate) closed: bool,
    /// The call site of the current verb.
    pub(crate) site: Option<Site>,
    /// The threads that wait in a verb.
    pub(crate) waits: Waits,
    tasks: Tasks,
    /// Whether an executor holds the clock: polls and tasks do not move it, and no call waits.
    pub(crate) is_held: bool,
    /// Batches of a layer over the verbs that were not posted when the program ends.
    pub(crate) unposted: Vec<Unposted>,
    /// The connection manager.
    pub(crate) cm_bridge: CmBridge,
    /// The gateway to other processes, on a network.
    pub(crate) gateway: Option<Box<Gateway>>,
}

/// The connection manager where the index of a node is expected.
const MANAGER: u32 = u32::MAX;

impl Fabric {
    pub(crate) fn new(mut config: SimConfig) -> Self {
        assert!(
            config.is_roce() || !(config.wire || config.pcap.is_some()),
            "bytes of packets are those of RoCEv2"
        );
        if config.mode == Mode::Inline {
            // No timer would fire.
            config.behavior.ack_effect = AckEffect::Arrival;
        }
        let (nodes, ports) = (config.nodes, config.ports);
        let mut memory = Memory::new(Late::of(&config));
        memory.checks_mapping = config.check_memory;
        let memory = Arc::new(Mutex::new(memory));
        let subnet = config.subnet();
        // On a network no port has an address yet.
        let located = if config.network.is_some() { 0 } else { nodes };
        let gids = gids(located, ports, subnet.is_some());
        let gids = Arc::new(gids);
        let slot = |id| {
            let mut node = Node::new(id, &config, gids.clone(), memory.clone());
            node.device.base.set_limits(&config.limits);
            node.device.report(&config.reported);
            node.device.base.checks_memory = config.check_memory;
            node.device.base.set_lacks(config.lacks);
            node.device.ece = config.ece;
            node.device.domains.regions.odp = config.odp.without(config.lacks);
            if let Some(subnet) = subnet {
                node.device.ports.join(subnet);
            }
            if config.behavior.roce_v1 && config.is_roce() {
                node.device.ports.offer_roce_v1();
            }
            if config.network.is_some() {
                node.device.ports.join_network();
            }
            node.device.doubts.patience = config.waits_for_peers();
            node.device.base.trace = config.trace.then(Vec::new);
            NodeSlot {
                node,
                descriptors: Descriptors::default(),
            }
        };
        let mut fabric = Self {
            slots: (0..nodes).map(slot).collect(),
            memory,
            schedule: Schedule::default(),
            activity: 0,
            rules: Rules::new(&config),
            recorder: Recorder::new(&config),
            wakeups: Vec::new(),
            empty: (config.mode != Mode::Stepped).then(EmptyCqs::new),
            unseen: false,
            direct: Direct::default(),
            informed: None,
            closed: false,
            site: None,
            waits: Waits::default(),
            tasks: Tasks::default(),
            is_held: false,
            unposted: Vec::new(),
            cm_bridge: CmBridge::new(&config),
            gateway: Gateway::of(&config),
            config,
        };
        fabric.inform_nodes();
        fabric
    }

    /// The fast path, for one call.
    #[inline(always)]
    pub(crate) fn fast_path(&mut self) -> FastPath<'_> {
        FastPath {
            slots: &mut self.slots,
            direct: &mut self.direct,
            wakeups: &mut self.wakeups,
            now: self.schedule.now,
            site: self.site,
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.schedule.now
    }

    /// A node, for reading.
    pub(crate) fn node(&self, index: u32) -> &Node {
        &self.slots[index as usize].node
    }

    /// A node, for work without effects on other nodes and on cached paths.
    pub(crate) fn node_mut(&mut self, index: u32) -> &mut Node {
        &mut self.slots[index as usize].node
    }

    /// `ibv_poll_cq` on a node.
    #[inline(always)]
    pub(crate) fn poll_cq(&mut self, index: u32, cq: Cq, wc: &mut [Wc]) -> Result<usize> {
        let site = self.site;
        let node = self.node_mut(index);
        node.device.base.site = site;
        node.poll_cq(cq, wc)
    }

    /// Works on a node, and lets the effects happen.
    pub(crate) fn work<R>(&mut self, index: u32, work: impl FnOnce(&mut Node) -> R) -> R {
        // The work may change what cached paths depend on.
        self.direct.epoch += 1;
        let result = self.work_quietly(index, work);
        if self.grant_turns(index) && self.config.mode != Mode::Stepped {
            self.deliver_all();
        }
        result
    }

    /// Works on a node, and lets the effects happen. Cached paths stay valid, so `work` must not
    /// change anything that they depend on.
    #[inline]
    pub(crate) fn work_quietly<R>(&mut self, index: u32, work: impl FnOnce(&mut Node) -> R) -> R {
        let node = &mut self.slots[index as usize].node;
        node.device.base.now = self.schedule.now;
        node.device.base.site = self.site;
        let result = work(node);
        self.collect(index);
        if !self.node(index).device.gsi.ended.is_empty() {
            self.note_ended(index);
        }
        if self.config.mode != Mode::Stepped && !self.schedule.flight.is_empty() {
            self.deliver_all();
        }
        result
    }

    /// Gives a queue pair its turn, and collects the packets of its node.
    #[cold]
    pub(crate) fn give_turn(&mut self, index: u32, qp: Id) {
        self.direct.epoch += 1;
        let node = &mut self.slots[index as usize].node;
        node.device.base.now = self.schedule.now;
        node.give_turn(qp);
        self.collect(index);
        self.grant_turns(index);
    }

    /// Gives the first queue pair in line its turn. Returns whether there was one.
    fn give_next_turn(&mut self) -> bool {
        let first = self.schedule.turns.pop_front();
        if let Some((node, qp)) = first {
            self.give_turn(node, qp);
        }
        first.is_some()
    }

    /// Grants the turns that queue pairs of a node have asked for. Returns whether there were any.
    #[inline]
    fn grant_turns(&mut self, index: u32) -> bool {
        let are_wanted = !self.node(index).device.turns.waiting.is_empty();
        if are_wanted {
            self.put_in_line(index);
        }
        are_wanted
    }

    /// Puts the queue pairs of a node that have more to send than may leave in one turn in line.
    /// Those with a peer in another process get their turns once the network has room.
    #[cold]
    fn put_in_line(&mut self, index: u32) {
        let node = &mut self.slots[index as usize].node;
        for qp in mem::take(&mut node.device.turns.waiting) {
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

    /// Delivers the packets in flight, and those that the nodes send in response.
    #[inline(never)]
    pub(crate) fn deliver_all(&mut self) {
        while self.deliver_next() || self.give_next_turn() {}
    }

    /// Delivers the oldest packet in place, because packets are large. Returns whether there was
    /// one.
    #[inline(always)]
    fn deliver_next(&mut self) -> bool {
        let Some(packet) = self.schedule.flight.front() else {
            return false;
        };
        // The packet may change what cached paths depend on.
        self.direct.epoch += 1;
        let to = packet.route.to.filter(|to| !to.is_outside());
        if let Some(gateway) = &mut self.gateway
            && packet.route.leads_outside()
        {
            gateway.leave(packet, &self.memory);
        }
        // A packet without a receiver is lost.
        if let Some(to) = to {
            let node = &mut self.slots[to.node as usize].node;
            node.device.base.now = self.schedule.now;
            let taken = if self.config.wire {
                node.handle_as_bytes(packet, &self.memory)
            } else {
                node.handle_packet(packet)
            };
            if let Err(why) = taken {
                fates::note(&mut self.slots, packet, why);
            }
        }
        if let Some(delivered) = self.schedule.flight.pop() {
            delivered.payload = Payload::default();
        }
        if let Some(to) = to {
            self.collect(to.node);
            self.grant_turns(to.node);
            if !self.node(to.node).device.gsi.ended.is_empty() {
                self.note_ended(to.node);
            }
            if !self.node(to.node).device.gsi.received.is_empty() {
                self.receive_mads(to.node);
            }
        }
        true
    }

    /// Collects the effects of work on a node: its trace, then its packets. Passes its wakeups on.
    #[inline(always)]
    fn collect(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        self.schedule.deadlines.update(index, &mut slot.node.device);
        slot.node.device.base.wakeups.move_to(&mut self.wakeups);
        slot.descriptors.update(&mut slot.node.device);
        if self.unseen {
            return slot.node.device.egress.move_to(&mut self.schedule.flight);
        }
        self.collect_seen(index);
    }

    /// Collects the trace and the packets of a node, where an observer sees packets.
    #[inline(never)]
    fn collect_seen(&mut self, index: u32) {
        if self.recorder.is_traced() {
            let base = &mut self.slots[index as usize].node.device.base;
            let events = base.trace.iter_mut().flat_map(mem::take);
            let events = events.map(|event| (index, event));
            self.recorder.record(self.schedule.now, events);
        }
        let arrives = self.schedule.now.after(self.config.link.delay);
        while let Some(mut packet) = self.slots[index as usize].node.device.egress.pop() {
            packet.arrives = arrives;
            if packet.route.to.is_none() {
                self.lose(index, &packet, DropReason::UnownedGid);
                continue;
            }
            self.rules.spoil(&mut packet);
            let now = self.schedule.now;
            self.recorder.capture(now, &packet, &self.memory);
            self.send_on(index, packet);
        }
    }

    /// Lets a packet go its way, past the tap and the fault rules. `node` has sent it, or receives
    /// it from another process.
    pub(crate) fn send_on(&mut self, node: u32, mut packet: Packet) {
        // Making the view takes time.
        if !self.sees_packets() {
            return self.pass(packet);
        }
        // A packet takes its time on the link, whatever the rules make of it.
        self.take_link(&mut packet);
        let (now, view) = (self.schedule.now, packet.view());
        let verdict = self.rules.judge(now, &packet, &view);
        let is_lost = matches!(verdict, Verdict::Lost(_));
        self.recorder.tap(now, view, is_lost);
        self.carry_out(node, packet, verdict);
    }

    /// Lets a packet that a rule has held leave once more, past the other rules.
    fn send_again(&mut self, mut packet: Packet) {
        packet.arrives = self.schedule.now.after(self.config.link.delay);
        self.take_link(&mut packet);
        let verdict = {
            let view = packet.view();
            self.rules.judge(self.schedule.now, &packet, &view)
        };
        let node = self.observer_of(&packet);
        self.carry_out(node, packet, verdict);
    }

    /// The node whose trace has the fate of a packet: its sender, if that is in this process.
    fn observer_of(&self, packet: &Packet) -> u32 {
        let (from, to) = packet.route.link();
        let is_of_here = from < self.nodes();
        if is_of_here { from } else { to.unwrap_or(0) }
    }

    fn take_link(&mut self, packet: &mut Packet) {
        if let Some(by) = self.rules.shaping.delay_of_link(packet, self.schedule.now) {
            packet.arrives = packet.arrives.after(by);
        }
    }

    fn carry_out(&mut self, node: u32, packet: Packet, verdict: Verdict) {
        match verdict {
            Verdict::Passes => self.pass(packet),
            Verdict::Lost(why) => self.lose(node, &packet, why),
            Verdict::Affected(effect, rule, random) => {
                self.note_affected(node, &packet, effect);
                self.apply_effect(packet, effect, rule, random);
            }
        }
    }

    fn note_affected(&mut self, index: u32, packet: &Packet, effect: Effect) {
        if self.recorder.is_traced() {
            let packet = packet.view();
            self.record(index, TraceEvent::Affected { packet, effect });
        }
        // The receiver may give up before a late packet arrives, so its fate counts as a loss until
        // then.
        if effect.is_late() {
            fates::note(&mut self.slots, packet, DropReason::HeldBack);
        }
    }

    fn apply_effect(&mut self, mut packet: Packet, effect: Effect, rule: FaultId, random: u64) {
        packet.damaged |= effect == Effect::Corrupt;
        match effect {
            Effect::Duplicate(by) if by.is_zero() => {
                self.put(packet.clone());
                self.pass(packet);
            }
            Effect::Duplicate(by) => {
                let copy = packet.clone();
                self.pass(packet);
                self.hold(copy, by, 0);
            }
            Effect::Delay(by) => self.hold(packet, by, 0),
            Effect::Reorder(behind) => self.hold(packet, Effect::REORDER_WITHIN, behind),
            Effect::Shape(shape) => {
                let now = self.schedule.now;
                let by = self.rules.shaping.delay(rule, shape, &packet, now, random);
                self.hold(packet, by, 0);
            }
            Effect::Hold => {
                self.take_along(&mut packet);
                self.rules.shaping.hold(rule, packet);
            }
            // Damage is done already, and losses have a verdict of their own.
            _ => self.pass(packet),
        }
    }

    /// Puts a packet in flight, followed by the delayed packets that it was the last to overtake.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn pass(&mut self, packet: Packet) {
        let (link, arrives) = (packet.route.link(), packet.arrives);
        self.put(packet);
        // Without rules that delay packets, none can be overtaken.
        if self.schedule.delayed.is_empty() {
            return;
        }
        for overtaken in self.schedule.delayed.overtake(link) {
            self.put(Packet {
                arrives,
                ..overtaken
            });
        }
    }

    /// Puts a packet in flight. On links that take different times, later ones may arrive sooner.
    fn put(&mut self, packet: Packet) {
        if self.rules.shaping.is_of_links() {
            self.hold(packet, Duration::ZERO, 0);
        } else {
            *self.schedule.flight.push() = packet;
        }
    }

    /// Copies the bytes of a packet, because the sender may reuse them before it arrives.
    fn take_along(&self, packet: &mut Packet) {
        // Bytes of released memory cannot be copied. The packet is then lost on arrival.
        if let Ok(payload) = packet.payload.taken_along(&self.memory) {
            packet.payload = payload;
        }
    }

    /// Delays a packet.
    fn hold(&mut self, mut packet: Packet, by: Duration, behind: u32) {
        let from = match self.config.mode {
            Mode::Stepped => packet.arrives,
            Mode::Inline | Mode::RealTime => self.schedule.now,
        };
        self.take_along(&mut packet);
        packet.arrives = from.after(by);
        self.schedule.delayed.hold(packet, behind);
        self.schedule.deadlines.is_sooner = true;
    }

    #[cfg_attr(any(), mutants::skip)] // texts
    fn lose(&mut self, node: u32, packet: &Packet, why: DropReason) {
        if self.recorder.is_traced() {
            let packet = packet.view();
            let why = why.text();
            self.record(node, TraceEvent::Lost { packet, why });
        }
        fates::note(&mut self.slots, packet, why);
    }

    /// Gives all nodes the table of where GIDs are.
    pub(crate) fn adopt_gids(&mut self, gids: &Arc<Gids>) {
        self.direct.epoch += 1;
        for slot in &mut self.slots {
            slot.node.adopt_gids(gids.clone());
        }
    }

    /// Does the next thing that is due until `limit`: a change of a port, a packet, a turn of a
    /// queue pair or a timer. Returns false if nothing is.
    pub(crate) fn step(&mut self, limit: Time) -> bool {
        if self.schedule.is_turn_due() {
            self.activity += 1;
            return self.give_next_turn();
        }
        let Some((at, due)) = self.next_due(limit) else {
            return false;
        };
        self.schedule.set_now(at);
        self.activity += 1;
        match due {
            Due::Outage => self.change_port(),
            Due::Packet => _ = self.deliver_next(),
            Due::DelayedPacket => self.deliver_delayed(),
            Due::Timer(MANAGER) => self.manage(|manager, host| manager.handle_timeout(host)),
            Due::Timer(node) => self.work(node, |node| node.handle_timeout()),
        }
        true
    }

    /// What is due first after the turns, until `limit`.
    fn next_due(&mut self, limit: Time) -> Option<(Time, Due)> {
        let timer = self.next_timer();
        self.schedule.first_due(timer, limit)
    }

    /// Runs until nothing is in flight and no timer runs. Returns false at the horizon.
    pub(crate) fn settle(&mut self) -> bool {
        let limit = self.schedule.now.after(self.config.horizon);
        // A port that is to change later is not work, so it does not delay the end.
        while self.next_work().is_some() && self.step(limit) {}
        self.next_work().is_none()
    }

    /// Does everything that is due until `limit`, then moves the clock to `limit`.
    pub(crate) fn advance(&mut self, limit: Time) {
        while self.step(limit) {}
        self.schedule.set_now(limit);
    }

    /// Does everything that is due by now.
    pub(crate) fn catch_up(&mut self) {
        self.advance(self.schedule.now);
    }

    /// A time before which nothing happens by itself: no packet, no timer, and no change of a port.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn expected(&mut self) -> Option<Time> {
        let slots = &self.slots;
        let of_node = self
            .schedule
            .deadlines
            .earliest(|index| &slots[index as usize].node.device);
        let times = [
            of_node,
            self.cm_bridge.manager.next_deadline(),
            self.schedule.next_packet(),
            self.schedule.next_turn(),
            self.schedule.outages.next,
        ];
        times.into_iter().flatten().min()
    }

    /// When the next packet arrives, a queue pair has its turn, or a timer fires.
    pub(crate) fn next_work(&mut self) -> Option<Time> {
        let timer = self.next_timer().map(|(at, _)| at);
        let schedule = &self.schedule;
        let times = [schedule.next_packet(), schedule.next_turn(), timer];
        times.into_iter().flatten().min()
    }

    /// When [`step`](Self::step) would do something.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn next_step_at(&mut self) -> Option<Time> {
        let work = self.next_work();
        work.into_iter().chain(self.schedule.outages.next).min()
    }

    /// Makes the next change of a port.
    #[cold]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn change_port(&mut self) {
        if let Some((port, up)) = self.schedule.outages.take() {
            self.work(port.node, |node| node.device.switch_port(port.port, up));
        }
    }

    /// Removes a rule.
    pub(crate) fn remove_rule(&mut self, id: FaultId) {
        self.rewire(|rules| rules.remove(id));
        for packet in self.rules.shaping.remove(id) {
            self.send_again(packet);
        }
        if self.config.mode != Mode::Stepped {
            self.deliver_all();
        }
        for slot in &mut self.slots {
            slot.node.device.base.rules.remove(id);
        }
        // No rule is left to take the port up.
        if let Some(port) = self.schedule.outages.remove(id) {
            self.work(port.node, |node| node.device.switch_port(port.port, true));
        }
    }

    /// Delivers the next delayed packet.
    #[cold]
    fn deliver_delayed(&mut self) {
        let Some(packet) = self.schedule.delayed.pop() else {
            return;
        };
        if let Some(gateway) = &mut self.gateway
            && packet.route.leads_outside()
        {
            return gateway.leave(&packet, &self.memory);
        }
        let Some(to) = packet.route.to.filter(|to| !to.is_outside()) else {
            return;
        };
        let taken = self.work(to.node, |node| node.handle_packet(&packet));
        if let Err(why) = taken {
            fates::note(&mut self.slots, &packet, why);
        }
        if !self.node(to.node).device.gsi.received.is_empty() {
            self.receive_mads(to.node);
        }
    }

    fn next_timer(&mut self) -> Option<(Time, u32)> {
        let slots = &mut self.slots;
        let of_node = self
            .schedule
            .deadlines
            .first(|index| slots[index as usize].node.next_deadline());
        let cm_bridge = self.cm_bridge.manager.next_deadline();
        let cm_bridge = cm_bridge.map(|at| (at, MANAGER));
        of_node.into_iter().chain(cm_bridge).min()
    }

    /// All running timers, in the order of their deadlines.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn timers(&self) -> Vec<TimerReport> {
        let mut timers: Vec<_> = self
            .slots
            .iter()
            .flat_map(|slot| slot.node.timers())
            .collect();
        timers.sort_by_key(|timer| timer.at);
        timers
    }

    /// Adds an event to the trace.
    pub(crate) fn record(&mut self, node: u32, event: TraceEvent) {
        self.recorder.record(self.schedule.now, [(node, event)]);
    }

    /// The threads that wait in a verb.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.waits.iter()
    }

    /// The number of nodes.
    pub(crate) fn nodes(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Counts a thread that starts or stops waiting for a node, or for the connection
    /// manager if `index` is the number of nodes.
    #[cfg_attr(any(), mutants::skip)] // cost
    pub(crate) fn count_waiting(&mut self, index: u32, starts: bool) {
        let wakeups = match self.slots.get_mut(index as usize) {
            Some(slot) => &mut slot.node.device.base.wakeups,
            None => &mut self.cm_bridge.manager.channels.wakeups,
        };
        wakeups.count_waiting(starts);
    }
}
