//! The shell around the nodes: locks, waiting, the clock, and how packets move.
//!
//! Each node has one lock, taken once a verb. Packets change nodes with no lock held. In inline
//! mode a node's packets leave by one drainer at a time, so that two threads that post on one QP
//! never deliver out of order; in stepped mode all packets wait in one queue.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
#[cfg(feature = "fd")]
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::ThreadId;

use verbs_api::{
    BadHandle, Cause, CompChannel, Context, Error, ErrorKind, LostWakeup, Object, Result, Stall,
    TimerReport, TraceEvent, TraceRecord, Verb, Wait,
};

use crate::clock::Clock;
use crate::config::{Mode, SimConfig};
#[cfg(feature = "fd")]
use crate::descriptor::{Descriptors, EventQueue};
use crate::node::{Node, bad_handle, gids, node_of};
use crate::packet::Packet;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::time::Time;
use crate::wire::Wire;

/// The nodes of a fabric and what is between them.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) config: SimConfig,
    cells: Vec<Cell>,
    pub(crate) clock: Clock,
    /// Nodes whose packets some thread is delivering.
    in_transit: AtomicU32,
    flight: Mutex<Flight>,
    pub(crate) wire: Mutex<Wire>,
    /// Whether the wire has to be asked.
    watched: AtomicBool,
    trace: Option<Mutex<Vec<TraceRecord>>>,
    closed: AtomicBool,
    /// The one thread of stepped mode.
    owner: OnceLock<ThreadId>,
}

#[derive(Debug)]
struct Cell {
    seat: Mutex<Seat>,
    news: Condvar,
}

/// A node behind its lock.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) node: Node,
    /// Some thread delivers the packets of this node.
    draining: bool,
    /// The node's deadline as the queue of stepped mode knows it.
    deadline: Option<Time>,
    #[cfg(feature = "fd")]
    descriptors: Descriptors,
}

/// What is under way in stepped mode.
#[derive(Debug, Default)]
struct Flight {
    packets: BTreeMap<(Time, u64), Packet>,
    sequence: u64,
    deadlines: BTreeSet<(Time, u32)>,
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// An event on a channel.
    Event(CompChannel),
    /// An asynchronous event.
    AsyncEvent(Context),
    /// Another thread to acknowledge events.
    Acknowledgement(Object),
}

impl World {
    pub(crate) fn new(config: SimConfig) -> Self {
        let (nodes, ports) = (config.nodes, config.ports);
        let gids = std::sync::Arc::new(gids(nodes, ports));
        let inline = config.mode != Mode::Stepped;
        let cell = |id| {
            let mut node = Node::new(id, ports, config.behavior, gids.clone(), config.seed);
            node.set_whole_messages(inline);
            if config.trace {
                node.start_trace();
            }
            let seat = Seat {
                node,
                draining: false,
                deadline: None,
                #[cfg(feature = "fd")]
                descriptors: Descriptors::default(),
            };
            Cell {
                seat: Mutex::new(seat),
                news: Condvar::new(),
            }
        };
        Self {
            cells: (0..nodes).map(cell).collect(),
            clock: match config.mode {
                Mode::Stepped | Mode::Inline => Clock::virtual_time(),
                Mode::RealTime => Clock::real_time(),
            },
            in_transit: AtomicU32::new(0),
            flight: Mutex::new(Flight::default()),
            wire: Mutex::new(Wire::new(config.seed)),
            watched: AtomicBool::new(false),
            trace: config.trace.then(|| Mutex::new(Vec::new())),
            closed: AtomicBool::new(false),
            owner: OnceLock::new(),
            config,
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(crate) fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// Adds a record of a call to the trace.
    pub(crate) fn record(&self, node: u32, event: TraceEvent) {
        if let Some(trace) = &self.trace {
            trace.lock().push(TraceRecord {
                at: self.now().since_start(),
                node,
                event,
            });
        }
    }

    pub(crate) fn trace(&self) -> Vec<TraceRecord> {
        self.trace
            .as_ref()
            .map(|trace| trace.lock().clone())
            .unwrap_or_default()
    }

    /// Changes the rules of the wire, and lets the nodes know what can be observed.
    pub(crate) fn rewire<R>(&self, change: impl FnOnce(&mut Wire) -> R) -> R {
        let (result, sees_packets) = {
            let mut wire = self.wire.lock();
            let result = change(&mut wire);
            self.watched.store(!wire.is_idle(), Ordering::Relaxed);
            (result, wire.sees_packets())
        };
        let whole = self.config.mode != Mode::Stepped && !sees_packets;
        for cell in &self.cells {
            cell.seat.lock().node.set_whole_messages(whole);
        }
        result
    }

    /// Refuses a second thread in stepped mode, and calls that a fault rule strikes.
    pub(crate) fn check_call(&self, verb: Verb) -> Result<()> {
        self.check_thread(verb)?;
        if self.watched.load(Ordering::Relaxed)
            && let Some(kind) = self.wire.lock().fail(verb)
        {
            return Err(Error::new(verb, kind, Cause::Injected));
        }
        Ok(())
    }

    pub(crate) fn check_thread(&self, verb: Verb) -> Result<()> {
        if self.config.mode != Mode::Stepped {
            return Ok(());
        }
        let this = std::thread::current().id();
        if *self.owner.get_or_init(|| this) == this {
            return Ok(());
        }
        let text = "stepped mode is for one thread, and this is a second one; use Mode::Inline or RealTime";
        Err(Error::new(
            verb,
            ErrorKind::Usage,
            Cause::Usage(text.into()),
        ))
    }

    /// The number of the node that a context is of.
    pub(crate) fn node_of(&self, verb: Verb, object: Object, context: Context) -> Result<u32> {
        let node = node_of(context);
        if (node as usize) < self.cells.len() {
            return Ok(node);
        }
        Err(bad_handle(verb, object, BadHandle::Foreign))
    }

    /// Looks at a node. For what changes nothing.
    pub(crate) fn look<R>(&self, node: u32, look: impl FnOnce(&Node) -> R) -> R {
        look(&self.cells[node as usize].seat.lock().node)
    }

    /// A duplicate of the descriptor of a queue of events.
    #[cfg(feature = "fd")]
    pub(crate) fn descriptor(&self, node: u32, verb: Verb, of: EventQueue) -> Result<OwnedFd> {
        let seat = &mut *self.cells[node as usize].seat.lock();
        seat.descriptors.open(verb, of, &seat.node)
    }

    /// Works on a node, and lets what comes of it take effect.
    pub(crate) fn work<R>(&self, node: u32, work: impl FnOnce(&mut Node, Time) -> R) -> R {
        let mut seat = self.cells[node as usize].seat.lock();
        let result = work(&mut seat.node, self.now());
        self.settle_node(node, seat);
        result
    }

    /// Tries until it is done, an error comes, or the wait is over.
    pub(crate) fn wait<R>(
        &self,
        node: u32,
        verb: Verb,
        wait: Wait,
        wait_for: WaitFor,
        mut attempt: impl FnMut(&mut Node) -> Result<R>,
    ) -> Result<R> {
        match self.config.mode {
            Mode::Stepped => self.wait_stepped(node, verb, wait, wait_for, attempt),
            Mode::Inline | Mode::RealTime => {
                let mut seat = self.cells[node as usize].seat.lock();
                let result = self.wait_inline(node, &mut seat, verb, wait, wait_for, &mut attempt);
                self.settle_node(node, seat);
                result
            }
        }
    }

    fn wait_stepped<R>(
        &self,
        node: u32,
        verb: Verb,
        wait: Wait,
        wait_for: WaitFor,
        mut attempt: impl FnMut(&mut Node) -> Result<R>,
    ) -> Result<R> {
        let start = self.now();
        loop {
            let result = self.work(node, |node, _| attempt(node));
            let Err(error) = result else { return result };
            if error.kind() != ErrorKind::WouldBlock {
                return Err(error);
            }
            let limit = match wait {
                Wait::Poll => return Err(error),
                Wait::Forever => start.after(self.config.horizon),
                Wait::For(time) => start.after(time),
            };
            // In stepped mode there is no other thread that could acknowledge.
            let hopeless = matches!(wait_for, WaitFor::Acknowledgement(_));
            if !hopeless && self.step(limit) {
                continue;
            }
            if let Wait::For(_) = wait {
                self.clock.move_to(limit);
                return Err(Error::new(verb, ErrorKind::TimedOut, error.cause().clone()));
            }
            return Err(self.stalled(node, verb, wait_for));
        }
    }

    fn wait_inline<R>(
        &self,
        node: u32,
        seat: &mut MutexGuard<'_, Seat>,
        verb: Verb,
        wait: Wait,
        wait_for: WaitFor,
        attempt: &mut impl FnMut(&mut Node) -> Result<R>,
    ) -> Result<R> {
        let start = self.now();
        loop {
            let result = attempt(&mut seat.node);
            let Err(error) = result else { return result };
            if error.kind() != ErrorKind::WouldBlock || wait == Wait::Poll {
                return Err(error);
            }
            let end = match wait {
                Wait::For(time) => start.after(time),
                Wait::Poll | Wait::Forever => Time::MAX,
            };
            if self.now() >= end {
                return Err(Error::new(verb, ErrorKind::TimedOut, error.cause().clone()));
            }
            if self.closed.load(Ordering::Relaxed) {
                return Err(lost_wakeup(&seat.node, verb, wait_for, self.now()));
            }
            if let WaitFor::Event(channel) = wait_for {
                seat.node.count_waiter(channel, true);
            }
            let news = &self.cells[node as usize].news;
            match self.clock.real() {
                Some(clock) => clock.wait(news, seat, end),
                None => news.wait(seat),
            }
            if let WaitFor::Event(channel) = wait_for {
                seat.node.count_waiter(channel, false);
            }
        }
    }

    /// No more work will come.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.wake_all();
    }

    fn wake_all(&self) {
        for cell in &self.cells {
            // With the lock, so that no thread is between its look and its wait.
            let _seat = cell.seat.lock();
            cell.news.notify_all();
        }
    }

    /// Moves the clock by what is due until `limit`, then to `limit`.
    pub(crate) fn advance(&self, limit: Time) {
        while self.step(limit) {}
        self.clock.move_to(limit);
        self.wake_all();
    }

    /// Runs until nothing is in flight and no timer runs; false if the horizon came first.
    pub(crate) fn settle(&self) -> bool {
        let limit = self.now().after(self.config.horizon);
        loop {
            if let (Some(clock), Some(due)) = (self.clock.real(), self.next_due()) {
                clock.wait_until(due.at().min(limit));
            }
            if !self.step(limit) {
                break;
            }
        }
        self.wake_all();
        self.next_due().is_none_or(|due| due.at() <= limit)
    }

    /// Lets the next packet arrive or the next timer fire, if one is due until `limit`.
    pub(crate) fn step(&self, limit: Time) -> bool {
        let Some(due) = self.next_due().filter(|due| due.at() <= limit) else {
            return false;
        };
        match due {
            Due::Packet(at) => {
                self.clock.move_to(at);
                let popped = self.flight.lock().packets.pop_first();
                if let Some((_, packet)) = popped
                    && let Some(to) = packet.route.to
                {
                    self.work(to.node, |node, now| node.handle_packet(now, packet));
                }
            }
            Due::Timer(at, node) => self.fire(at, node),
        }
        true
    }

    /// Lets all timers fire that are due now, and expects the next one.
    pub(crate) fn fire_due(&self) {
        while self.step(self.now()) {}
        if let (Some(clock), Some(due)) = (self.clock.real(), self.next_due()) {
            clock.expect(due.at());
        }
    }

    /// Lets the timers of a node fire that are due at `at`. Where several threads run, not while
    /// one delivers packets: an acknowledgement that is in transit is in time.
    fn fire(&self, at: Time, index: u32) {
        loop {
            let mut seat = self.cells[index as usize].seat.lock();
            if seat.node.next_deadline() != Some(at) {
                return;
            }
            if self.in_transit.load(Ordering::SeqCst) == 0 {
                self.clock.move_to(at);
                seat.node.handle_timeout(self.now());
                return self.settle_node(index, seat);
            }
            drop(seat);
            std::thread::yield_now();
        }
    }

    fn next_due(&self) -> Option<Due> {
        if self.config.mode == Mode::Stepped {
            let flight = self.flight.lock();
            let packet = flight.packets.keys().next().map(|(at, _)| Due::Packet(*at));
            let timer = flight
                .deadlines
                .first()
                .map(|(at, node)| Due::Timer(*at, *node));
            // Packets before timers, so that an acknowledgement that comes in time is in time.
            return [packet, timer].into_iter().flatten().min_by_key(Due::at);
        }
        let deadline = |(node, cell): (u32, &Cell)| {
            cell.seat
                .lock()
                .node
                .next_deadline()
                .map(|at| Due::Timer(at, node))
        };
        (0..)
            .zip(&self.cells)
            .filter_map(deadline)
            .min_by_key(Due::at)
    }

    pub(crate) fn timers(&self) -> Vec<TimerReport> {
        let mut timers: Vec<_> = self
            .cells
            .iter()
            .flat_map(|cell| cell.seat.lock().node.timers())
            .collect();
        timers.sort_by_key(|timer| timer.at);
        timers
    }

    fn stalled(&self, node: u32, verb: Verb, wait_for: WaitFor) -> Error {
        if self.closed.load(Ordering::Relaxed) {
            return self.look(node, |node| lost_wakeup(node, verb, wait_for, self.now()));
        }
        let timers = match wait_for {
            WaitFor::Acknowledgement(_) => Vec::new(),
            _ => self.timers(),
        };
        let stall = self.look(node, |node| {
            let stall = stall(node, wait_for, self.now());
            Stall { timers, ..stall }
        });
        Error::new(verb, ErrorKind::Stalled, Cause::Stall(Box::new(stall)))
    }

    /// After work on a node: its trace, those who wait, its packets. Lets go of the lock.
    fn settle_node(&self, index: u32, mut seat: MutexGuard<'_, Seat>) {
        if self.config.mode != Mode::Stepped {
            self.run_loopback(index, &mut seat);
        } else {
            self.put_in_flight(index, &mut seat);
        }
        self.publish(index, &mut seat);
        if seat.node.has_packets() && !seat.draining {
            self.claim(&mut seat);
            self.drain(index, seat);
        }
    }

    /// This thread delivers the packets of the node from now on.
    fn claim(&self, seat: &mut Seat) {
        seat.draining = true;
        self.in_transit.fetch_add(1, Ordering::SeqCst);
    }

    /// Nothing is left to deliver.
    fn unclaim(&self, seat: &mut Seat) {
        seat.draining = false;
        self.in_transit.fetch_sub(1, Ordering::SeqCst);
    }

    fn publish(&self, index: u32, seat: &mut MutexGuard<'_, Seat>) {
        if let Some(trace) = &self.trace {
            let (at, node) = (self.now().since_start(), index);
            let events = seat.node.take_trace();
            trace.lock().extend(
                events
                    .into_iter()
                    .map(|event| TraceRecord { at, node, event }),
            );
        }
        if let (Some(clock), Some(due)) = (self.clock.real(), seat.node.next_deadline()) {
            clock.expect(due);
        }
        #[cfg(feature = "fd")]
        {
            let Seat {
                node, descriptors, ..
            } = &mut **seat;
            descriptors.update(node);
        }
        if seat.node.take_news() {
            self.cells[index as usize].news.notify_all();
        }
    }

    /// Whether a packet gets through; the tap sees it.
    fn carry(&self, node: u32, packet: &Packet) -> bool {
        let lost = if packet.route.to.is_none() {
            "no port has this GID"
        } else if self.watched.load(Ordering::Relaxed)
            && !self.wire.lock().carry(self.now().since_start(), packet)
        {
            "a fault rule"
        } else {
            return true;
        };
        if self.is_traced() {
            self.record(
                node,
                TraceEvent::Lost {
                    packet: packet.view(),
                    why: lost,
                },
            );
        }
        false
    }

    fn put_in_flight(&self, index: u32, seat: &mut MutexGuard<'_, Seat>) {
        let deadline = seat.node.next_deadline();
        if !seat.node.has_packets() && deadline == seat.deadline {
            return;
        }
        // What the packets come of is recorded before what becomes of them.
        self.publish(index, seat);
        let at = self.now().after(self.config.latency);
        while let Some(packet) = seat.node.poll_packet() {
            if self.carry(index, &packet) {
                let mut flight = self.flight.lock();
                let sequence = flight.sequence;
                flight.sequence += 1;
                flight.packets.insert((at, sequence), packet);
            }
        }
        if deadline != seat.deadline {
            let mut flight = self.flight.lock();
            if let Some(old) = std::mem::replace(&mut seat.deadline, deadline) {
                flight.deadlines.remove(&(old, index));
            }
            if let Some(new) = deadline {
                flight.deadlines.insert((new, index));
            }
        }
    }

    /// Delivers the packets that a node sends to itself, as long as they come first in its queue.
    fn run_loopback(&self, index: u32, seat: &mut MutexGuard<'_, Seat>) {
        if seat.draining {
            return;
        }
        while seat.node.next_packet_is_loopback()
            && let Some(packet) = seat.node.poll_packet()
        {
            self.publish(index, seat);
            if self.carry(index, &packet) {
                seat.node.handle_packet(self.now(), packet);
            }
        }
    }

    /// Delivers the packets of a node, and of those that answer, until none is left. The caller
    /// has set the node's flag; it is taken back with its lock held and nothing left to deliver.
    fn drain(&self, first: u32, mut seat: MutexGuard<'_, Seat>) {
        let mut ours = vec![first];
        let mut batch: VecDeque<Packet> = seat.node.take_packets();
        drop(seat);
        loop {
            let Some(packet) = batch.pop_front() else {
                let Some(index) = ours.last().copied() else {
                    return;
                };
                let mut seat = self.cells[index as usize].seat.lock();
                batch = seat.node.take_packets();
                if batch.is_empty() {
                    self.unclaim(&mut seat);
                    ours.pop();
                }
                continue;
            };
            let from = packet.route.from.node;
            let Some(to) = packet
                .route
                .to
                .map(|to| to.node)
                .filter(|_| self.carry(from, &packet))
            else {
                continue;
            };
            let mut seat = self.cells[to as usize].seat.lock();
            seat.node.handle_packet(self.now(), packet);
            self.publish(to, &mut seat);
            if seat.node.has_packets() && !seat.draining {
                self.claim(&mut seat);
                ours.push(to);
            }
            // With nothing of ours left to deliver, the answers come next, under the same lock.
            if batch.is_empty() && ours.contains(&to) {
                batch = seat.node.take_packets();
                if batch.is_empty() {
                    self.unclaim(&mut seat);
                    ours.retain(|of| *of != to);
                }
            }
        }
    }
}

/// What is due next.
enum Due {
    Packet(Time),
    Timer(Time, u32),
}

impl Due {
    fn at(&self) -> Time {
        match self {
            Self::Packet(at) | Self::Timer(at, _) => *at,
        }
    }
}

/// How things stand for a wait, but for the timers.
fn stall(node: &Node, wait_for: WaitFor, now: Time) -> Stall {
    let (waiting_for, channel) = match wait_for {
        WaitFor::Event(channel) => (format!("an event on {channel}"), Some(channel)),
        WaitFor::AsyncEvent(context) => (format!("an asynchronous event of {context}"), None),
        WaitFor::Acknowledgement(object) => (
            format!("another thread to acknowledge events of the {object}"),
            None,
        ),
    };
    let (queued_events, cqs) = channel
        .map(|channel| node.channel_report(channel))
        .unwrap_or_default();
    let now = now.since_start();
    Stall {
        waiting_for,
        now,
        channel,
        queued_events,
        cqs,
        timers: Vec::new(),
    }
}

fn lost_wakeup(node: &Node, verb: Verb, wait_for: WaitFor, now: Time) -> Error {
    let cause = match wait_for {
        WaitFor::Event(channel) => {
            let (_, cqs) = node.channel_report(channel);
            Cause::LostWakeup(Box::new(LostWakeup { channel, cqs }))
        }
        _ => Cause::Stall(Box::new(stall(node, wait_for, now))),
    };
    Error::new(verb, ErrorKind::Stalled, cause)
}
