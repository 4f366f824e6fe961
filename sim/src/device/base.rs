//! What all parts of a device share: its abilities and behavior, the time, and the record of
//! events.

use core::time::Duration;

use verbs_api::behavior::Behavior;
use verbs_api::lab::{Limit, TraceEvent};
use verbs_api::profile::DeviceLimits;
use verbs_api::site::Site;
use verbs_api::table::Table;
use verbs_api::{Access, AtomicCap, Capabilities, Cause, Context, DeviceAttr, ErrorKind, Verb};

use super::check::lacks;
use super::contexts::OpenDevice;
use super::event_queue::EventQueue;
use super::limits::Rules;
use super::parent::Parents;
use super::refusal::{PostRefusal, Refusal, Result};
use super::wakeup::Wakeups;
use crate::diagnosis::Journal;
use crate::packet::{DropReason, Packet};
use crate::rng::{Purpose, Random};
use crate::time::Time;

/// What all parts of a device share.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(crate) id: u32,
    pub(crate) behavior: Behavior,
    /// Capabilities that the device lacks. Verbs that need them are refused.
    pub(crate) lacks: Capabilities,
    pub(crate) attr: DeviceAttr,
    /// Fault rules and resource limits.
    pub(crate) rules: Rules,
    /// Whether programs may use Q_Keys with the top bit set.
    pub(crate) privileged: bool,
    /// Whether the device has failed and does nothing more (ASYNC-10).
    pub(crate) dead: bool,
    /// Whether whole messages travel as one packet, where nothing can observe the difference.
    pub(crate) whole_messages: bool,
    /// Whether it checks what programs do to memory that belongs to the device.
    pub(crate) checks_memory: bool,
    /// The number of queue pairs that may receive packets of other processes.
    pub(crate) remote_qps: u32,
    /// The time of the current operation.
    pub(crate) now: Time,
    pub(super) random: Random,
    pub(super) contexts: Table<OpenDevice>,
    pub(crate) parents: Parents,
    /// The context and the protection domain (its index) that all rdma_cm ids share. No program has
    /// created them.
    pub(crate) of_ids: Option<(Context, u32)>,
    pub(crate) wakeups: Wakeups,
    /// Event queues that are watched and have changed.
    pub(crate) changed_queues: Vec<EventQueue>,
    pub(crate) journal: Journal,
    /// Where the program called the current verb.
    pub(crate) site: Option<Site>,
    /// The trace records since they were last taken. `None` if none are kept.
    pub(crate) trace: Option<Vec<TraceEvent>>,
}

impl Base {
    pub(super) fn new(id: u32, attr: DeviceAttr, behavior: Behavior, seed: u64) -> Self {
        Self {
            id,
            behavior,
            lacks: Capabilities::empty(),
            attr,
            rules: Rules::default(),
            privileged: true,
            dead: false,
            whole_messages: false,
            checks_memory: false,
            remote_qps: 0,
            now: Time::ZERO,
            random: Random::new(seed, Purpose::Node, id),
            contexts: Table::default(),
            parents: Parents::default(),
            of_ids: None,
            wakeups: Wakeups::default(),
            changed_queues: Vec::new(),
            journal: Journal::default(),
            site: None,
            trace: None,
        }
    }

    /// Sets the limits of the device.
    pub(crate) fn set_limits(&mut self, limits: &DeviceLimits) {
        self.attr = device_attr(self.id, self.attr.phys_port_cnt, limits);
    }

    /// Removes capabilities from the device.
    pub(crate) fn set_lacks(&mut self, lacks: Capabilities) {
        self.lacks = lacks;
        if lacks.contains(Capabilities::ATOMICS) {
            self.attr.atomic_cap = AtomicCap::None;
        }
        self.attr.xrc &= !lacks.contains(Capabilities::XRC);
        self.attr.mem_window &= !lacks.contains(Capabilities::MW_TYPE_1);
        self.attr.mem_window_type_2b &= !lacks.contains(Capabilities::MW_TYPE_2);
        // Attributes must agree with what verbs accept.
        if lacks.contains(Capabilities::MW) {
            self.attr.max_mw = 0;
        }
        if lacks.contains(Capabilities::SRQ) {
            (self.attr.max_srq, self.attr.max_srq_wr) = (0, 0);
            self.attr.max_srq_sge = 0;
        }
        if lacks.contains(Capabilities::COMP_VECTORS) {
            self.attr.num_comp_vectors = 1;
        }
        if lacks.contains(Capabilities::MCAST) {
            self.attr.max_mcast_grp = 0;
            self.attr.max_mcast_qp_attach = 0;
        }
    }

    /// Refuses a verb whose capability the device lacks.
    pub(crate) fn check_has(&self, capability: Capabilities, problem: &'static str) -> Result<()> {
        if self.lacks.contains(capability) {
            Err(lacks(problem))
        } else {
            Ok(())
        }
    }

    /// The access flags of the flushes that the device has (MR-19).
    pub(crate) fn flushes(&self) -> Access {
        if self.lacks.contains(Capabilities::FLUSH) {
            Access::empty()
        } else {
            Access::FLUSH_GLOBAL | Access::FLUSH_PERSISTENT
        }
    }

    /// Refuses dma-bufs, if the device has none.
    #[cfg(unix)]
    pub(crate) fn check_has_dmabufs(&self) -> Result<()> {
        self.check_has(Capabilities::DMABUF, "has no regions of a dma-buf")
    }

    /// Refuses another object where a limit of the test controls or the device is reached.
    pub(crate) fn check_room<T>(
        &self,
        what: &'static str,
        present: &Table<T>,
        max: u32,
    ) -> Result<()> {
        if present.len() >= max {
            let limit = max.into();
            let cause = Cause::Limit { what, limit };
            return Err(Refusal::new(ErrorKind::NoMemory, cause));
        }
        // Test controls limit all objects together, as the memory of a device does.
        // Without a limit the sum is not needed.
        if self.rules.limit(Limit::Objects).is_none() {
            return Ok(());
        }
        let objects = self.contexts.iter().map(|(_, open)| open.objects());
        self.rules
            .check(Limit::Objects, "objects", objects.sum::<u64>() + 1)
    }

    /// Refuses verbs on a dead device. Objects of the process and its kernel can still be queried
    /// and freed.
    #[inline]
    pub(crate) fn check_alive(&self, verb: Verb) -> Result<()> {
        if self.dead {
            check_without_device(verb)
        } else {
            Ok(())
        }
    }

    /// The refusal of a C call, which returns a negative number on some drivers.
    pub(crate) fn as_returned(&self, refusal: PostRefusal) -> PostRefusal {
        if self.behavior.negative_errno {
            refusal.negative()
        } else {
            refusal
        }
    }

    /// Draws a wait of whole microseconds up to `longest`, or none, half of the time.
    pub(crate) fn draw_wait(&mut self, longest: u64) -> Option<Duration> {
        let drawn = self.random.any();
        (drawn & 1 == 1).then(|| Duration::from_micros(1 + (drawn >> 1) % longest))
    }

    #[inline]
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// Adds a record to the trace.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn note(&mut self, event: TraceEvent) {
        if let Some(trace) = &mut self.trace {
            trace.push(event);
        }
    }

    /// Records that a packet was dropped.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn note_dropped(&mut self, packet: &Packet, why: DropReason) {
        self.journal.dropped(self.now, packet, why);
        self.note(TraceEvent::Dropped { why: why.text() });
    }
}

/// Refuses verbs that need the device.
#[cold]
fn check_without_device(verb: Verb) -> Result<()> {
    let without_device = matches!(
        verb,
        Verb::CloseDevice
            | Verb::DeallocPd
            | Verb::DeallocTd
            | Verb::DeregMr
            | Verb::DestroyCompChannel
            | Verb::DestroyCq
            | Verb::DestroyQp
            | Verb::DestroyAh
            | Verb::DestroySrq
            | Verb::CloseXrcd
            | Verb::DeallocMw
            | Verb::FreeDm
            | Verb::DetachMcast
            | Verb::GetCqEvent
            | Verb::AckCqEvents
            | Verb::GetAsyncEvent
            | Verb::AckAsyncEvent
            | Verb::ReadMr
            | Verb::WriteMr
            | Verb::MapMr
            | Verb::QueryMr
            | Verb::QueryMw
            | Verb::QueryCq
            | Verb::EndPoll
            | Verb::CorruptHandle
            | Verb::ChannelFd
            | Verb::AsyncFd
            | Verb::Lab
    );
    if without_device {
        return Ok(());
    }
    let cause = Cause::Text("the device is dead".into());
    Err(Refusal::new(ErrorKind::Io, cause))
}

/// The result of `ibv_query_device` for a device with these limits.
pub(super) fn device_attr(node: u32, ports: u8, limits: &DeviceLimits) -> DeviceAttr {
    let mut attr = DeviceAttr::default();
    limits.put_into(&mut attr);
    // Locally administered, and different for each device.
    attr.node_guid = 0x0200_00ff_fe00_0000 | u64::from(node) << 8;
    attr.max_qp = limits.max_qp.min(DeviceLimits::SPEC.max_qp);
    (attr.mem_window, attr.mem_window_type_2b, attr.xrc) = (true, true, true);
    attr.atomic_cap = AtomicCap::Hca;
    attr.phys_port_cnt = ports;
    attr
}
