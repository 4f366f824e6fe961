//! A node: one simulated device, as a plain struct.
//!
//! Verbs and packets go in, with the time where it matters; packets, events and the next deadline
//! come out. There is no lock, no clock and no I/O here, and the whole is `Clone`, so that a search
//! can try what would happen.
//!
//! Methods, in the order a driver of the node calls them:
//!
//! - verbs: one method each, named as in libibverbs;
//! - inputs: [`handle_packet`](Node::handle_packet), [`handle_timeout`](Node::handle_timeout);
//! - outputs: [`poll_packet`](Node::poll_packet), [`next_deadline`](Node::next_deadline).
//!
//! | file | holds |
//! |---|---|
//! | `context` | contexts, device and port queries, asynchronous events |
//! | `tables` | changes of the GID and P_Key tables of a port |
//! | `domain` | protection domains, address handles |
//! | `region` | memory regions, and the checks of scatter/gather lists |
//! | `mw` | memory windows: binding, invalidation, access through them |
//! | `events` | queues of events |
//! | `channel` | completion channels |
//! | `cq`, `cq_ex` | completion queues; iterations over extended ones |
//! | `notify`, `moderate` | arming; events for several completions |
//! | `srq` | shared receive queues |
//! | `xrc` | domains of extended reliable connections, and what is shared in them |
//! | `qp`, `modify`, `post` | queue pairs: life, state changes, posting |
//! | `queue` | a work queue: what is posted, under way, done and not polled yet |
//! | `claim` | which posted work owns which bytes |
//! | `requester`, `responder`, `datagram` | the transports |
//! | `grh` | the header of the network in front of a datagram |
//! | `batch` | batches of sends |
//! | `death` | a device that dies |
//! | `mcast` | multicast groups |
//! | `atomic` | atomics, and the answers that may be asked for again |
//! | `fault` | rules that turn completions into errors or make resources scarce |
//! | `history`, `why`, `findings` | what went wrong, in words, and what was left undone |
//! | `garble` | handles that are garbled on purpose |

mod atomic;
mod batch;
mod channel;
mod claim;
mod context;
mod cq;
mod cq_ex;
mod datagram;
mod death;
mod domain;
mod events;
mod fault;
mod findings;
mod garble;
mod grh;
mod history;
mod key;
mod mcast;
mod moderate;
mod modify;
mod mw;
mod notify;
mod post;
mod qp;
mod queue;
mod region;
mod requester;
mod responder;
mod srq;
mod tables;
mod why;
mod xrc;

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use verbs_api::behavior::Behavior;
use verbs_api::lab::{Limit, Live, TimerReport, TraceEvent};
use verbs_api::profile::DeviceLimits;
use verbs_api::{
    AtomicCap, BadHandle, Capabilities, Cause, Context, DeviceAttr, Element, Error, ErrorKind, Gid,
    Handle, Object, Result, Verb,
};

use crate::empty::EmptyCqs;
use crate::memory::{Memory, SharedMemory};
use crate::packet::{Packet, PortId};
use crate::ring::Ring;
use crate::rng::{Purpose, Random};
use crate::subnet::Subnet;
use crate::time::Time;
use crate::timers::Timers;
use verbs_api::table::{Id, Table};

pub(crate) use context::gids;
#[cfg(feature = "fd")]
pub(crate) use events::EventQueue;
pub(crate) use fault::What;
use history::History;
use key::Regions;

/// The GIDs of a fabric and the ports that have them.
pub(crate) type Gids = BTreeMap<Gid, PortId>;

/// One simulated device.
#[derive(Clone, Debug)]
pub struct Node {
    id: u32,
    behavior: Behavior,
    /// What the device does not have, so that it refuses it.
    lacks: Capabilities,
    attr: DeviceAttr,
    ports: Vec<context::Port>,
    gids: Arc<Gids>,
    /// The LIDs, on InfiniBand.
    subnet: Option<Subnet>,
    memory: SharedMemory,
    contexts: Table<context::OpenDevice>,
    pds: Table<domain::Pd>,
    ahs: Table<domain::Ah>,
    mrs: Regions,
    mws: Table<mw::Mw>,
    channels: Table<channel::Channel>,
    cqs: Table<cq::Cq>,
    qps: Table<qp::Qp>,
    groups: mcast::Groups,
    srqs: Table<srq::Srq>,
    claims: claim::Claims,
    xrc: xrc::Xrc,
    limits: BTreeMap<Limit, u64>,
    /// Programs may have Q_Keys with the top bit set.
    privileged: bool,
    cq_entries: u64,
    next_addr: u64,
    rules: fault::Rules,
    random: Random,
    /// In a box, to be exchanged for an empty one.
    outbox: Box<Ring<Packet>>,
    /// One a QP, for what it waits for.
    timers: Timers,
    /// One a CQ, for an event that is put off.
    moderated: Timers,
    /// The time of the present operation.
    now: Time,
    dead: bool,
    whole_messages: bool,
    news: bool,
    /// Queues of events that somebody watches and that have changed.
    changed_queues: Vec<events::EventQueue>,
    shown: Shown,
    history: History,
    trace: Option<Vec<TraceEvent>>,
}

/// Where the node shows which CQs are empty. A clone of the node shows nothing.
#[derive(Debug, Default)]
struct Shown(Option<Arc<EmptyCqs>>);

impl Clone for Shown {
    fn clone(&self) -> Self {
        Self(None)
    }
}

/// A table of objects with numbers that others see, which some devices give again at once.
fn numbered<T>(reuse: bool) -> Table<T> {
    if reuse {
        Table::without_quarantine()
    } else {
        Table::default()
    }
}

/// What all objects inside a context have.
pub(crate) trait InContext {
    fn context(&self) -> Context;
}

impl Node {
    /// A node with `ports` ports on a fabric with these GIDs and this memory.
    pub(crate) fn new(
        id: u32,
        ports: u8,
        behavior: Behavior,
        (gids, memory): (Arc<Gids>, SharedMemory),
        seed: u64,
    ) -> Self {
        Self {
            id,
            behavior,
            lacks: Capabilities::empty(),
            attr: context::device_attr(id, ports, &DeviceLimits::SPEC),
            ports: (1..=ports)
                .map(|port| context::Port::new(PortId { node: id, port }))
                .collect(),
            gids,
            subnet: None,
            memory,
            contexts: Table::default(),
            pds: Table::default(),
            ahs: Table::default(),
            mrs: Regions::new(numbered(behavior.key_reuse)),
            mws: Table::default(),
            channels: Table::default(),
            cqs: Table::default(),
            qps: numbered(behavior.number_reuse),
            groups: mcast::Groups::default(),
            srqs: Table::default(),
            claims: claim::Claims::default(),
            xrc: xrc::Xrc::default(),
            limits: BTreeMap::new(),
            privileged: true,
            cq_entries: 0,
            next_addr: region::first_addr(id),
            rules: fault::Rules::default(),
            random: Random::new(seed, Purpose::Node, id),
            outbox: Box::default(),
            timers: Timers::default(),
            moderated: Timers::default(),
            now: Time::ZERO,
            dead: false,
            whole_messages: false,
            news: false,
            changed_queues: Vec::new(),
            shown: Shown::default(),
            history: History::default(),
            trace: None,
        }
    }

    /// A node of its own with one port, behavior as given: for tests and searches that need no
    /// fabric. Its packets reach itself only, with [`run`](Self::run).
    pub fn alone(behavior: Behavior, seed: u64) -> Self {
        let memory = Memory::new(behavior.placement);
        let shared = (
            Arc::new(context::gids(1, 1, false)),
            Arc::new(Mutex::new(memory)),
        );
        Self::new(0, 1, behavior, shared, seed)
    }

    /// Delivers packets to this node itself until none is left. Packets to other nodes are lost.
    pub fn run(&mut self, now: Time) {
        while let Some(packet) = self.poll_packet() {
            if packet.route.to.is_some_and(|to| to.node == self.id) {
                self.handle_packet(now, &packet);
            }
        }
    }

    /// The next packet to send, oldest first.
    pub fn poll_packet(&mut self) -> Option<Packet> {
        self.outbox.pop().map(mem::take)
    }

    /// Moves all packets that wait to be sent to the end of a queue.
    #[inline(always)]
    pub(crate) fn move_packets(&mut self, queue: &mut Box<Ring<Packet>>) {
        if self.outbox.is_empty() {
            return;
        }
        if queue.is_empty() {
            mem::swap(queue, &mut self.outbox);
        } else {
            queue.append(&mut self.outbox);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do; `None` if no timer runs.
    pub fn next_deadline(&mut self) -> Option<Time> {
        let first = self.timers.first();
        let moderated = self.moderated.first();
        let deadline = first.into_iter().chain(moderated).min();
        deadline.map(|(at, _)| at)
    }

    /// The timers that run.
    pub fn timers(&self) -> Vec<TimerReport> {
        let report = |(at, index): (Time, u32)| {
            let qp = self.qps.at(index);
            TimerReport::new(Element::Qp(qp.handle), qp.timer_name(), at.since_start())
        };
        let moderation = |(at, index): (Time, u32)| {
            let of = Element::Cq(self.cqs.at(index).handle);
            TimerReport::new(of, MODERATION, at.since_start())
        };
        let timers = self.timers.running().into_iter().map(report);
        let moderated = self.moderated.running().into_iter().map(moderation);
        timers.chain(moderated).collect()
    }

    /// Lets whole messages travel as one packet, where nothing can observe the difference.
    pub(crate) fn set_whole_messages(&mut self, whole: bool) {
        self.whole_messages = whole;
    }

    /// From now on shows here which CQs are found empty, or nowhere.
    pub(crate) fn show_empty_cqs(&mut self, to: Option<Arc<EmptyCqs>>) {
        self.shown = Shown(to);
    }

    /// Refuses what the device has not.
    pub(super) fn check_has(
        &self,
        verb: Verb,
        capability: Capabilities,
        problem: &'static str,
    ) -> Result<()> {
        if !self.lacks.contains(capability) {
            return Ok(());
        }
        let what = "the device";
        let cause = Cause::Argument { what, problem };
        Err(Error::new(verb, ErrorKind::NotSupported, cause))
    }

    /// Sets the limits of the device.
    pub(crate) fn set_limits(&mut self, limits: &DeviceLimits) {
        self.attr = context::device_attr(self.id, self.ports.len() as u8, limits);
    }

    /// Takes abilities from the device.
    pub(crate) fn set_lacks(&mut self, lacks: Capabilities) {
        self.lacks = lacks;
        if lacks.contains(Capabilities::ATOMICS) {
            self.attr.atomic_cap = AtomicCap::None;
        }
        self.attr.xrc &= !lacks.contains(Capabilities::XRC);
        self.attr.mem_window &= !lacks.contains(Capabilities::MW_TYPE_1);
        self.attr.mem_window_type_2b &= !lacks.contains(Capabilities::MW_TYPE_2);
        if lacks.contains(Capabilities::MW) {
            self.attr.max_mw = 0;
        }
        if lacks.contains(Capabilities::MCAST) {
            self.attr.max_mcast_grp = 0;
            self.attr.max_mcast_qp_attach = 0;
        }
    }

    /// Lets the keys of regions and windows be anywhere, while there are none.
    pub(crate) fn scatter_keys(&mut self, seed: u64) {
        self.mrs.scatter_keys(seed, self.id);
    }

    /// Starts to keep trace records.
    pub(crate) fn start_trace(&mut self) {
        self.trace = Some(Vec::new());
    }

    /// The trace records since the last call.
    pub(crate) fn take_trace(&mut self) -> Vec<TraceEvent> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether something happened since the last call that a waiting thread may wait for.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// Sets or lifts a resource limit.
    pub(crate) fn set_limit(
        &mut self,
        context: Context,
        limit: Limit,
        value: Option<u64>,
    ) -> Result<()> {
        self.find_context(Verb::Lab, context)?;
        match value {
            Some(value) => self.limits.insert(limit, value),
            None => self.limits.remove(&limit),
        };
        Ok(())
    }

    /// Gives or takes the privilege for Q_Keys.
    pub(crate) fn set_privileged(&mut self, context: Context, privileged: bool) -> Result<()> {
        self.find_context(Verb::Lab, context)?;
        self.privileged = privileged;
        Ok(())
    }

    /// How many objects live, asked through a context.
    pub(crate) fn live_of(&self, context: Context) -> Result<Live> {
        self.find_context(Verb::Lab, context)?;
        Ok(self.live())
    }

    /// How many objects live.
    pub fn live(&self) -> Live {
        let mut live = Live::default();
        live.contexts = self.contexts.len();
        live.pds = self.pds.len();
        live.mrs = self.mrs.len();
        live.mws = self.mws.len();
        live.channels = self.channels.len();
        live.cqs = self.cqs.len();
        live.qps = self.qps.len() + self.xrc.openings_beyond_one();
        live.ahs = self.ahs.len();
        live.srqs = self.srqs.len();
        live.xrcds = self.xrc.xrcds();
        live
    }

    fn note(&mut self, event: TraceEvent) {
        if let Some(trace) = &mut self.trace {
            trace.push(event);
        }
    }

    /// The index of a handle's object, if the handle is good.
    fn find<H: Handle, T: InContext>(table: &Table<T>, verb: Verb, handle: H) -> Result<u32> {
        let problem = match table.get(handle.index(), handle.generation()) {
            Ok(object) if object.context() == handle.context() => return Ok(handle.index()),
            Ok(_) => BadHandle::Foreign,
            Err(problem) => problem,
        };
        Err(bad_handle(verb, H::OBJECT, problem))
    }

    /// As [`find`](Self::find), for an object that must be of this context.
    fn find_in<H: Handle, T: InContext>(
        table: &Table<T>,
        verb: Verb,
        context: Context,
        handle: H,
    ) -> Result<u32> {
        let index = Self::find(table, verb, handle)?;
        same_context(verb, context, handle)?;
        Ok(index)
    }

    fn find_context(&self, verb: Verb, context: Context) -> Result<u32> {
        let index = slot_of(context);
        match self.contexts.get(index, context.generation()) {
            Ok(_) => Ok(index),
            Err(problem) => Err(bad_handle(verb, Object::Context, problem)),
        }
    }

    /// Refuses one more object where a limit of the laboratory or the device is reached.
    fn check_room(&self, verb: Verb, what: &'static str, count: u32, max: u32) -> Result<()> {
        if count >= max {
            let cause = Cause::Limit {
                what,
                limit: u64::from(max),
            };
            return Err(Error::new(verb, ErrorKind::NoMemory, cause));
        }
        let live = self.live();
        let objects = [
            live.pds,
            live.mrs,
            live.mws,
            live.channels,
            live.cqs,
            live.qps,
            live.ahs,
            live.srqs,
            live.xrcds,
        ]
        .map(u64::from);
        self.check_limit(
            verb,
            Limit::Objects,
            "objects",
            objects.iter().sum::<u64>() + 1,
        )
    }

    fn files(&self) -> u64 {
        u64::from(self.contexts.len()) + u64::from(self.channels.len())
    }

    /// Lets every timer fire that is due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        while let Some((at, index)) = self.timers.first()
            && at <= now
        {
            let qp = self.qps.at(index);
            let (of, what) = (Element::Qp(qp.handle), qp.timer_name());
            self.note(TraceEvent::Timer { of, what });
            self.timers.set(index, None);
            self.timeout(now, index);
        }
        while let Some((at, index)) = self.moderated.first()
            && at <= now
        {
            let (of, what) = (Element::Cq(self.cqs.at(index).handle), MODERATION);
            self.note(TraceEvent::Timer { of, what });
            self.end_moderation(index);
        }
    }

    /// The time of what is asked next.
    #[inline]
    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = now;
    }
}

/// The name of the timer of a CQ.
const MODERATION: &str = "moderation";

/// The slot of a context within its node. The rest of the index is the node.
pub(crate) fn slot_of(context: Context) -> u32 {
    context.index() & 0xffff
}

/// The node of a context.
pub(crate) fn node_of(context: Context) -> u32 {
    context.index() >> 16
}

fn context_of(node: u32, id: Id) -> Context {
    Context::from_parts(node << 16 | id.index, id.generation)
}

/// Refuses an object of another context.
fn same_context<H: Handle>(verb: Verb, context: Context, handle: H) -> Result<()> {
    if handle.context() == context {
        return Ok(());
    }
    let cause = Cause::Mismatch {
        object: H::OBJECT,
        must_share: "context",
    };
    Err(Error::new(verb, ErrorKind::Invalid, cause))
}

pub(crate) fn bad_handle(verb: Verb, object: Object, problem: BadHandle) -> Error {
    let kind = match problem {
        // As the kernel's table of objects, on every driver.
        BadHandle::Garbled => ErrorKind::NotFound,
        _ => ErrorKind::Invalid,
    };
    Error::new(verb, kind, Cause::Handle { object, problem })
}

fn invalid(verb: Verb, what: &'static str, problem: &'static str) -> Error {
    Error::new(verb, ErrorKind::Invalid, Cause::Argument { what, problem })
}

fn in_range(verb: Verb, what: &'static str, value: i64, min: i64, max: i64) -> Result<()> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(Error::new(
        verb,
        ErrorKind::Invalid,
        Cause::OutOfRange {
            what,
            value,
            min,
            max,
        },
    ))
}

fn in_use(verb: Verb, object: Object, by: Object, count: u32) -> Error {
    Error::new(verb, ErrorKind::Busy, Cause::InUse { object, by, count })
}
