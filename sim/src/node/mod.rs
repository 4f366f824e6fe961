//! A node: one simulated device with its queue pairs, as a plain struct.
//!
//! Verbs and packets go in; packets, events and the next deadline come out. There is no lock, no
//! clock and no I/O here. A node is `Clone`, so a search can try out what would happen.
//!
//! Verbs that do not concern a queue pair are methods of the [`Device`]. Those that do are methods
//! here, with the names of libibverbs. The caller sets the time of a device and then gives it work:
//! [`handle_packet`](Node::handle_packet), [`handle_timeout`](Node::handle_timeout), and
//! [`give_turn`](Node::give_turn) for each queue pair that has asked for a turn.
//!
//! | file | holds |
//! |---|---|
//! | `demux` | incoming packets, and the queue pairs they are addressed to |
//! | `find` | finding queue pairs by a handle or a number |
//! | `groups` | the queue pairs of multicast groups |
//! | `queue_pairs` | verbs of queue pairs |
//! | `ece` | options of queue pairs |
//! | `xrc` | queue pairs of XRC_RECV, which several programs share |
//! | `poll` | completions leave their CQs, and their slots become free |
//! | `owner` | which posted work owns which bytes |
//! | `corrupt_handle` | handles whose numbers a program has changed |

mod corrupt_handle;
mod demux;
mod ece;
mod find;
mod groups;
mod owner;
mod poll;
mod queue_pairs;
mod xrc;

use std::sync::Arc;

use verbs_api::lab::{TimerReport, TraceEvent};
use verbs_api::table::{Id, Table};
use verbs_api::{Context, Element, Handle, Pd};

use crate::config::SimConfig;
use crate::descriptor::Descriptors;
use crate::device::{Device, Gids, Refusal, Result, numbered};
use crate::memory::SharedMemory;
use crate::qp::{Numbers, Qp};
use crate::time::Time;

/// One simulated device with its queue pairs.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) device: Device,
    pub(crate) qps: Table<Qp>,
    pub(crate) numbers: Numbers,
    pub(crate) groups: groups::Groups,
}

/// A node, and the file descriptors of its event queues.
pub(crate) struct NodeSlot {
    pub(crate) node: Node,
    pub(crate) descriptors: Descriptors,
}

/// The name of the timer of a CQ.
const MODERATION: &str = "moderation";

impl Node {
    /// Creates a node on a fabric with these GIDs and this memory. If the configuration scatters
    /// its keys and QP numbers, they are unpredictable.
    pub(crate) fn new(id: u32, config: &SimConfig, gids: Arc<Gids>, memory: SharedMemory) -> Self {
        let (behavior, scatter) = (config.behavior, config.scatter);
        let mut device = Device::new(id, config.ports, behavior, gids, memory, config.seed);
        // Numbers that no other process has let packets be recognized as another's.
        if let Some(seed) = scatter {
            device.domains.regions.scatter_keys(seed, id);
        }
        Self {
            device,
            qps: numbered(behavior.number_reuse),
            numbers: scatter.map_or_else(Numbers::default, |seed| Numbers::scattered(seed, id)),
            groups: groups::Groups::default(),
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do. `None` if no timer runs.
    pub(crate) fn next_deadline(&mut self) -> Option<Time> {
        let first = self.device.timers.first();
        let moderated = self.device.cqs.moderated.first();
        let deadline = first.into_iter().chain(moderated).min();
        deadline.map(|(at, _)| at)
    }

    /// The running timers.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn timers(&self) -> Vec<TimerReport> {
        let device = &self.device;
        let report = |(at, index): (Time, u32)| {
            let qp = self.qps.at(index);
            let of = Element::Qp(qp.common.handle);
            TimerReport::new(of, qp.timer_name(), at.since_start())
        };
        let moderation = |(at, index): (Time, u32)| {
            let of = Element::Cq(device.cqs.table.at(index).handle);
            TimerReport::new(of, MODERATION, at.since_start())
        };
        let timers = device.timers.running().into_iter().map(report);
        let moderated = device.cqs.moderated.running().into_iter();
        timers.chain(moderated.map(moderation)).collect()
    }

    /// Handles all timers that are due.
    pub(crate) fn handle_timeout(&mut self) {
        let device = &mut self.device;
        let now = device.base.now;
        while let Some((at, index)) = device.timers.first()
            && at <= now
        {
            let qp = self.qps.at_mut(index);
            let (of, what) = (Element::Qp(qp.common.handle), qp.timer_name());
            device.base.note(TraceEvent::Timer { of, what });
            // The queue pair may set its timer again.
            device.timers.set(index, None);
            qp.timeout(device);
        }
        while let Some((at, index)) = device.cqs.moderated.first()
            && at <= now
        {
            let of = Element::Cq(device.cqs.table.at(index).handle);
            let what = MODERATION;
            device.base.note(TraceEvent::Timer { of, what });
            device.cqs.end_moderation(&mut device.base, index);
        }
    }

    /// `ibv_close_device`: removes all remaining objects of the context, like the kernel when a
    /// process ends. `look` is called before that.
    pub(crate) fn close_device(
        &mut self,
        context: Context,
        look: impl FnOnce(&mut Self, Context),
    ) -> Result<()> {
        let base = &self.device.base;
        if base.of_ids.is_some_and(|(own, _)| own == context) {
            let text = format!("{context} is that of all ids of rdma_cm");
            return Err(Refusal::usage(text));
        }
        // A diagnosis names the objects that the program did not destroy.
        look(self, context);
        self.remove_qps_of(context);
        for ticket in self.device.clear_context(context) {
            self.release(ticket);
        }
        self.device.base.remove_context(context);
        Ok(())
    }

    /// Removes all objects of all programs at once. Nothing leaves any more that has not left.
    #[cfg_attr(any(), mutants::skip)] // controls of tests
    pub(crate) fn crash(&mut self) -> Result<()> {
        self.device.base.of_ids = None;
        for context in self.device.base.contexts() {
            self.close_device(context, |_, _| {})?;
        }
        self.device.forget_egress();
        Ok(())
    }

    /// Opens the device for the ids of rdma_cm, whatever the limits of programs are.
    pub(crate) fn open_for_ids(&mut self) -> Result<(Context, Pd)> {
        let rules = core::mem::take(&mut self.device.base.rules);
        let opened = self.device.open_device().and_then(|context| {
            let pd = self.device.alloc_pd(context)?;
            Ok((context, pd))
        });
        self.device.base.rules = rules;
        let (context, pd) = opened?;
        self.device.base.of_ids = Some((context, pd.index()));
        Ok((context, pd))
    }

    /// Makes the device fail for good: work in progress ends without completions.
    pub(crate) fn kill(&mut self) {
        if self.device.kill() {
            for qp in self.qps.indices(|_| true) {
                self.device.timers.set(qp, None);
            }
        }
    }

    /// Adopts the new table of all GIDs of the fabric.
    pub(crate) fn adopt_gids(&mut self, gids: Arc<Gids>) {
        self.device.adopt_gids(gids);
        for index in self.qps.indices(|_| true) {
            let qp = &mut self.qps.at_mut(index).common;
            if let (Some(route), Some(attr)) = (&mut qp.route, &qp.attr.ah_attr) {
                let ports = &self.device.ports;
                let to = ports.with_qp(ports.destination(attr), qp.attr.dest_qp_num);
                let had_one = std::mem::replace(&mut route.to, to).is_some();
                // A connection that loses its peer by this fails without a mistake of the program.
                qp.is_moved |= had_one && to.is_none();
            }
        }
    }

    /// The table of P_Keys of a port has changed. Connections of the port may need the old entry.
    pub(crate) fn note_pkeys_changed(&mut self, port: u8) {
        for qp in self.qps.indices(|_| true) {
            let qp = &mut self.qps.at_mut(qp).common;
            qp.is_moved |= qp.route.is_some() && qp.attr.port_num == port;
        }
    }

    /// Gives a queue pair the turn it asked for, unless it was destroyed.
    pub(crate) fn give_turn(&mut self, Id { index, generation }: Id) {
        self.device.turns.begin();
        // The slot may belong to another queue pair by now.
        if let Some(qp) = self.qps.live_mut(index, generation)
            && !self.device.base.dead
        {
            qp.go_on(&mut self.device);
        }
    }
}
