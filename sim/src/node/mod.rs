//! A node: one simulated device with its queue pairs, as a plain struct.
//!
//! Verbs and packets go in; packets, events and the next deadline come out. There is no lock, no clock
//! and no I/O here, and the whole is `Clone`, so that a search can try what would happen.
//!
//! Verbs that concern no queue pair are methods of the [`Device`], those that do are methods here,
//! named as in libibverbs. Who drives a node sets its time, and then gives it work:
//! [`handle_packet`](Node::handle_packet), [`handle_timeout`](Node::handle_timeout), and
//! [`give_turn`] for each queue pair that has asked for a turn.
//!
//! | file | holds |
//! |---|---|
//! | `door` | a packet comes in: for whom is it |
//! | `find` | which queue pair a handle or a number means |
//! | `groups` | the queue pairs of multicast groups |
//! | `queue_pairs`, `push` | verbs of queue pairs; those that post sends |
//! | `xrc` | queue pairs of XRC_RECV, which several programs share |
//! | `poll` | completions leave their CQs, and their slots are free |
//! | `owner` | which posted work owns which bytes |
//! | `garble` | handles that are garbled on purpose |
//! | `alone` | a node of its own, for searches |

mod alone;
mod demux;
mod find;
mod garble;
mod groups;
mod owner;
mod poll;
mod push;
mod queue_pairs;
mod slot;
mod xrc;

pub(crate) use slot::NodeSlot;

use std::sync::Arc;

use verbs_api::behavior::Behavior;
use verbs_api::lab::{Live, TimerReport, TraceEvent};
use verbs_api::table::{Id, Table};
use verbs_api::{Cause, Context, Element, Error, ErrorKind, Result, Verb};

use crate::device::{Device, Gids, numbered};
use crate::memory::SharedMemory;
use crate::qp::{Numbers, Qp};
use crate::time::Time;

pub use alone::Alone;

/// One simulated device with its queue pairs.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) device: Device,
    pub(crate) qps: Table<Qp>,
    pub(crate) numbers: Numbers,
    pub(crate) groups: groups::Groups,
}

/// The table of P_Keys of a port has changed: connections there may need what was in it.
pub(crate) fn note_pkeys_changed(node: &mut Node, port: u8) {
    for qp in node.qps.indices(|_| true) {
        let qp = &mut node.qps.at_mut(qp).common;
        qp.is_moved |= qp.route.is_some() && qp.attr.port_num == port;
    }
}

/// The name of the timer of a CQ.
const MODERATION: &str = "moderation";

impl Node {
    /// A node with `ports` ports on a fabric with these GIDs and this memory. Keys and QP numbers are anywhere, if they
    /// are to be made from `scatter`.
    pub(crate) fn new(
        id: u32,
        ports: u8,
        behavior: Behavior,
        shared: (Arc<Gids>, SharedMemory),
        seed: u64,
        scatter: Option<u64>,
    ) -> Self {
        let mut device = Device::new(id, ports, behavior, shared, seed);
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

    /// The time of what is asked next.
    #[inline]
    pub(crate) fn set_now(&mut self, now: Time) {
        self.device.base.now = now;
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do; `None` if no timer runs.
    pub(crate) fn next_deadline(&mut self) -> Option<Time> {
        let first = self.device.timers.first();
        let moderated = self.device.cqs.moderated.first();
        let deadline = first.into_iter().chain(moderated).min();
        deadline.map(|(at, _)| at)
    }

    /// The timers that run.
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

    /// Lets every timer fire that is due.
    pub(crate) fn handle_timeout(&mut self) {
        let device = &mut self.device;
        let now = device.base.now;
        while let Some((at, index)) = device.timers.first()
            && at <= now
        {
            let qp = self.qps.at_mut(index);
            let (of, what) = (Element::Qp(qp.common.handle), qp.timer_name());
            device.base.note(TraceEvent::Timer { of, what });
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

    /// Whether something happened since the last call that a waiting thread may wait for.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.device.base.news)
    }

    /// `ibv_close_device`: all that the context still has goes with it, as when the kernel cleans
    /// up behind a process.
    /// cleans up; `look` sees it as it was.
    pub(crate) fn close_device(
        &mut self,
        context: Context,
        look: impl FnOnce(&mut Self, Context),
    ) -> Result<()> {
        let base = &self.device.base;
        base.find_context(Verb::CloseDevice, context)?;
        if base.of_ids.is_some_and(|(own, _)| own == context) {
            let cause = Cause::Usage(format!("{context} is that of all ids of rdma_cm").into());
            return Err(Error::new(Verb::CloseDevice, ErrorKind::Usage, cause));
        }
        look(self, context);
        self.remove_qps_of(context);
        for ticket in self.device.clear_context(context) {
            self.release(ticket);
        }
        self.device.base.remove_context(context);
        Ok(())
    }

    /// From now on the device is dead: what it was doing ends without a completion.
    pub(crate) fn kill(&mut self, context: Context) -> Result<()> {
        if self.device.kill(context)? {
            for qp in self.qps.indices(|_| true) {
                self.device.timers.set(qp, None);
            }
        }
        Ok(())
    }

    /// Learns where all GIDs of the fabric are now.
    pub(crate) fn adopt_gids(&mut self, gids: Arc<Gids>) {
        self.device.adopt_gids(gids);
        for index in self.qps.indices(|_| true) {
            let qp = &mut self.qps.at_mut(index).common;
            if let (Some(route), Some(attr)) = (&mut qp.route, &qp.attr.ah_attr) {
                let ports = &self.device.ports;
                let to = ports.with_qp(ports.destination(attr), qp.attr.dest_qp_num);
                let had_one = std::mem::replace(&mut route.to, to).is_some();
                qp.is_moved |= had_one && to.is_none();
            }
        }
    }

    /// How many objects live, asked through a context.
    pub(crate) fn live_of(&self, context: Context) -> Result<Live> {
        self.device.base.find_context(Verb::Lab, context)?;
        Ok(self.device.live())
    }
}

/// A queue pair that asked for a turn has it, unless it is gone.
pub(crate) fn give_turn(node: &mut Node, Id { index, generation }: Id) {
    node.device.turns.begin();
    if let Some(qp) = node.qps.live_mut(index, generation)
        && !node.device.base.dead
    {
        qp.go_on(&mut node.device);
    }
}
