//! Test controls that only a simulator has: hold the clock, lose packets on purpose, run out of
//! memory.
//!
//! | | |
//! |---|---|
//! | [`Lab`] | the test controls ([`Verbs::lab`]) |
//! | [`Fault`], [`FaultGuard`], [`Partition`] | what goes wrong on purpose |
//! | [`TraceRecord`], [`TappedPacket`] | what happened |
//! | [`Stall`], [`LostWakeup`], [`WaitReport`], [`TaskWait`] | why a wait cannot end |

use core::ops::Range;
use core::time::Duration;
use std::sync::Arc;

use crate::device::{Gid, Mtu};
use crate::error::Result;
use crate::event::AsyncEventType;
use crate::handle::{Context, Mr, Srq};
use crate::verbs::Verbs;

pub use crate::fault::{
    Distribution, Effect, Fault, FaultGuard, FaultId, Firing, PacketFilter, Partition, Shape, When,
};
pub use crate::packet::{CmMessage, PacketClass, PacketOpcode, PacketView, Syndrome, TappedPacket};
pub use crate::report::{ArmState, CqReport, LostWakeup, Stall, TaskWait, TimerReport, WaitReport};
pub use crate::trace::{TraceEvent, TraceRecord};

/// The test controls of a simulator ([`Verbs::lab`]). Object-safe, like `Verbs`.
pub trait Lab {
    /// Time since the start, by the simulator's own clock.
    fn now(&self) -> Duration;

    /// Moves the clock by `by`; timers and packets that fall due on the way take effect in order.
    ///
    /// # Errors
    /// `NotSupported` if the clock is that of the machine.
    fn advance(&self, by: Duration) -> Result<()>;

    /// Does the next thing that is due within `limit` from now, and moves the clock to its time: a
    /// packet, a timer, a change of a port, or a queue pair's turn to send. Returns whether there
    /// was one; if not, nothing changes. A program that runs several parties on one thread takes a
    /// step when they have nothing to do ([`activity`](Self::activity)).
    ///
    /// # Errors
    /// `NotSupported` if the clock is that of the machine.
    fn step(&self, limit: Duration) -> Result<bool>;

    /// When the next thing is due that a [`step`](Self::step) would do, since the start. `None` if
    /// nothing happens any more unless a program acts.
    fn next_due(&self) -> Option<Duration>;

    /// A number that grows with all that happens: a packet arrives, a timer fires, a port changes,
    /// or a call changes something, except to arm and to acknowledge. If it stays the same while
    /// each party on a thread has a turn, none of them has anything to do.
    fn activity(&self) -> u64;

    /// Whether no packet is in flight and no timer runs, as after [`settle`](Self::settle). A port
    /// may still change later.
    fn is_idle(&self) -> bool;

    /// Runs until no packet is in flight, not even one that a rule delays, and no timer runs.
    ///
    /// # Errors
    /// [`Stalled`](crate::ErrorKind::Stalled) if that is not reached within the horizon (120 s by
    /// default), with the timers that still run: an endless RNR retry, for instance.
    fn settle(&self) -> Result<()>;

    /// Holds the clock for an executor of tasks, or lets it go. While it is held, only
    /// [`advance`](Self::advance), [`step`](Self::step) and [`settle`](Self::settle) move it: an
    /// empty poll and [`Verbs::wake_on`] take no step, and a verb that may wait fails with `Usage`,
    /// because a task waits by a future.
    ///
    /// # Errors
    /// `NotSupported` if waits do not move the clock; `Usage` if it is held already.
    fn hold_clock(&self, held: bool) -> Result<()>;

    /// How much time passes at most until a wait without a limit, or `settle`, gives up.
    fn horizon(&self) -> Duration;

    /// The waits of tasks by [`Verbs::wake_on`]. An executor asks when no task can run and no step
    /// is left, so that nothing ends them; a diagnosis of the program reports them from then on.
    fn stalled_tasks(&self) -> Vec<TaskWait>;

    /// Declares that no more work will come: each thread that waits for an event, now or later,
    /// gets [`Cause::LostWakeup`](crate::Cause::LostWakeup) unless an event is queued.
    fn close(&self);

    /// Puts a fault rule in force. If several would fire on the same thing, the first one does.
    ///
    /// # Errors
    /// `Invalid` for what [`Fault::check`] refuses, and for a node that does not exist.
    fn inject(&self, fault: Fault) -> Result<FaultId>;

    /// Takes a rule out of force, and returns how often it has fired. Packets that it has delayed
    /// stay delayed.
    ///
    /// # Errors
    /// `Invalid` if the rule is not in force.
    fn remove(&self, fault: FaultId) -> Result<u64>;

    /// The number of firings of a rule that is in force.
    ///
    /// # Errors
    /// `Invalid` if the rule is not in force.
    fn fired(&self, fault: FaultId) -> Result<u64>;

    /// All firings since the start, oldest first, including those of rules no longer in force. It
    /// can turn a plan with rates into one that repeats exactly what happened. Empty in a
    /// simulation that is set up to keep none.
    fn firings(&self) -> Vec<Firing>;

    /// A view of the devices for calls that the program under test does not make. Fault rules
    /// neither count them nor fire on them, and they are not in the trace. Otherwise they have all
    /// their effects.
    fn unobserved(&self) -> &dyn Verbs;

    /// The number of the node of a context's device, as rules and the trace name it.
    fn node(&self, context: Context) -> Result<u32>;

    /// Starts to record packets. Messages are then sent packet by packet.
    fn tap(&self);

    /// The packets recorded since [`tap`](Self::tap) or the last call.
    fn tapped(&self) -> Vec<TappedPacket>;

    /// Brings a port of the context's device up or down (ASYNC-09).
    fn set_port(&self, context: Context, port: u8, up: bool) -> Result<()>;

    /// Lets the context's device die, for good (ASYNC-10). Each of its contexts gets
    /// `DEVICE_FATAL`; it neither sends nor receives any more. From then on its verbs fail with
    /// [`Io`](crate::ErrorKind::Io), except those that free an object, read or acknowledge an
    /// event, or only look at what the program has: the bytes and attributes of regions, the
    /// attributes of windows and CQs.
    fn kill_device(&self, context: Context) -> Result<()>;

    /// The same devices, as a program on one machine sees them. Unless the simulation names its
    /// machines, each node is one, with the name of its device.
    ///
    /// [`devices`](Verbs::devices) and [`open_device`](Verbs::open_device) have the devices of the
    /// machine only. Ids of rdma_cm on its event channels have its addresses only, as on separate
    /// machines: the address of another one is not local, so a client without a source address
    /// starts from its own device, and two hosts may listen at the same port. Test controls are
    /// those of the whole simulation, and so is every handle: a call with a handle of another host
    /// is not refused.
    ///
    /// # Errors
    /// `Invalid` if the host does not exist; `NotSupported` on a network, where each process is a
    /// machine already.
    fn host(&self, name: &str) -> Result<Arc<dyn Verbs>>;

    /// The numbers of the nodes of a host, for [`PacketFilter::from`] and the like.
    ///
    /// # Errors
    /// The errors of [`host`](Self::host).
    fn nodes_of(&self, host: &str) -> Result<Range<u32>>;

    /// Lets a host lose its power. All its objects are destroyed, its ids of rdma_cm too, and their
    /// handles are refused. It says nothing to its peers: they get no answer, until their retries
    /// end. What was on its way to the host is lost, and what it had sent arrives. Until
    /// [`restart`](Self::restart) its devices cannot be opened.
    ///
    /// # Errors
    /// The errors of [`host`](Self::host); `Invalid` if it has crashed already.
    fn crash(&self, host: &str) -> Result<()>;

    /// Gives a host that has [crashed](Self::crash) its power back: its devices are there again,
    /// with no objects, and their links work. Peers that send to a queue pair of before get no
    /// answer. A device that has [died](Self::kill_device) stays dead.
    ///
    /// # Errors
    /// The errors of [`host`](Self::host); `Invalid` if it has not crashed.
    fn restart(&self, host: &str) -> Result<()>;

    /// Sets the active MTU of a port, up to its greatest, as when the MTU of its link changes.
    fn set_mtu(&self, context: Context, port: u8, mtu: Mtu) -> Result<()>;

    /// Puts a GID into the table of a port (`ibv_query_gid`); each context gets `GID_CHANGE`
    /// (ASYNC-20). Zero empties the entry. Peers that send to a removed GID get no answer. On an
    /// InfiniBand network of several processes, the LID of the port follows the entry at index 0.
    ///
    /// # Errors
    /// `Invalid` for an index outside the table, or a GID that another entry of the fabric has.
    fn set_gid(&self, context: Context, port: u8, index: u32, gid: Gid) -> Result<()>;

    /// Puts a P_Key into the table of a port (`ibv_query_pkey`); each context gets `PKEY_CHANGE`
    /// (ASYNC-20). Zero empties the entry.
    ///
    /// # Errors
    /// `Invalid` for an index outside the table.
    fn set_pkey(&self, context: Context, port: u8, index: u16, pkey: u16) -> Result<()>;

    /// Raises at each context an event that a subnet manager or a cable would cause: `LID_CHANGE`,
    /// `SM_CHANGE`, `CLIENT_REREGISTER` or `DEVICE_SPEED_CHANGE` (ASYNC-20, ASYNC-21).
    ///
    /// # Errors
    /// `Invalid` for other events, which have causes of their own.
    fn announce(&self, context: Context, port: u8, kind: AsyncEventType) -> Result<()>;

    /// Lets an SRQ fail: `SRQ_ERR` is raised (SRQ-17), and it neither takes nor gives receives any
    /// more. A QP that needs one goes to the error state.
    fn fail_srq(&self, srq: Srq) -> Result<()>;

    /// Lets the exporter of a dma-buf withdraw the memory of a region (DMABUF-08): work that uses
    /// it fails from then on. Other regions of the dma-buf keep their memory.
    ///
    /// # Errors
    /// `Invalid` for another region than one of a dma-buf.
    fn revoke_dmabuf(&self, mr: Mr) -> Result<()>;

    /// Takes from the programs of the context's device the privilege for Q_Keys with the top bit
    /// set (`CAP_NET_RAW`, QP-CREATE-11), or gives it back. They start with it.
    fn set_privileged(&self, context: Context, privileged: bool) -> Result<()>;

    /// Sets a resource limit of the context's device, or lifts it.
    fn set_limit(&self, context: Context, limit: Limit, value: Option<u64>) -> Result<()>;

    /// Live objects of the context's device, over all its contexts.
    fn live(&self, context: Context) -> Result<Live>;

    /// The trace so far, oldest record first.
    fn trace(&self) -> Vec<TraceRecord>;
}

/// A resource that can be made scarce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// Open files: completion channels and contexts take one each; beyond it `EMFILE` (CHAN-09).
    Files,
    /// Objects of all kinds together; beyond it `ENOMEM` (CHAN-10).
    Objects,
    /// Queue pairs: `max_qp` of the device; beyond it `ENOMEM` (QP-CREATE-12).
    QueuePairs,
    /// Entries of all CQs together; beyond it `ENOMEM` (CQ-RESIZE-15).
    CqEntries,
    /// Bytes of all memory regions together; beyond it `ENOMEM`. Regions that share memory each
    /// count, null regions do not.
    Bytes,
}

impl Limit {
    /// Every resource.
    pub const ALL: &'static [Self] = &[
        Self::Files,
        Self::Objects,
        Self::QueuePairs,
        Self::CqEntries,
        Self::Bytes,
    ];

    /// The name, such as `cq_entries`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Objects => "objects",
            Self::QueuePairs => "queue_pairs",
            Self::CqEntries => "cq_entries",
            Self::Bytes => "bytes",
        }
    }
}

/// The number of objects of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Live {
    /// Contexts.
    pub contexts: u32,
    /// Protection domains and parent domains.
    pub pds: u32,
    /// Thread domains.
    pub tds: u32,
    /// Memory regions.
    pub mrs: u32,
    /// Memory windows.
    pub mws: u32,
    /// Device memories.
    pub dms: u32,
    /// Completion channels.
    pub channels: u32,
    /// Completion queues.
    pub cqs: u32,
    /// Queue pairs.
    pub qps: u32,
    /// Address handles.
    pub ahs: u32,
    /// Shared receive queues.
    pub srqs: u32,
    /// Handles of XRC domains.
    pub xrcds: u32,
}
