//! Moderation of completion events: one event for several completions.

use core::time::Duration;

use verbs_api::{Capabilities, Cq as CqHandle, CqModeration};

use super::Device;
use super::base::Base;
use super::check::find;
use super::cq::Cqs;
use super::notify::Notify;
use super::refusal::Result;
use crate::time::Time;

/// The largest values that a CQ accepts.
pub(crate) const LIMITS: CqModeration = CqModeration {
    cq_count: u16::MAX,
    cq_period: u16::MAX,
};

/// The moderation of a CQ's events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moderation {
    set: CqModeration,
    /// The number of completions whose event is delayed, and when the first was added.
    pending: Option<(u16, Time)>,
}

impl Moderation {
    /// Whether it delays events.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.set.cq_count > 0 && self.set.cq_period > 0
    }

    /// The latest time of a delayed event.
    fn deadline(&self) -> Option<Time> {
        let (_, since) = self.pending?;
        Some(since.after(Duration::from_micros(self.set.cq_period.into())))
    }
}

impl Device {
    /// `ibv_modify_cq`. A delayed event is queued immediately if it is due under the new values.
    pub(crate) fn modify_cq(&mut self, cq: CqHandle, set: &CqModeration) -> Result<()> {
        let Self { base, cqs, .. } = self;
        let index = find(&cqs.table, cq)?;
        let lacked = Capabilities::CQ_MODERATION;
        base.check_has(lacked, "cannot moderate CQs")?;
        let moderation = &mut cqs.table.at_mut(index).moderation;
        moderation.set = *set;
        let Some((count, _)) = moderation.pending else {
            return Ok(());
        };
        let deadline = moderation.deadline();
        // A lower limit may already be reached.
        if count >= set.cq_count || deadline <= Some(base.now) {
            cqs.end_moderation(base, index);
        } else {
            cqs.moderated.set(index, deadline);
        }
        Ok(())
    }
}

impl Cqs {
    /// Queues the delayed event now.
    pub(crate) fn end_moderation(&mut self, base: &mut Base, index: u32) {
        self.forget_moderation(index);
        // One event for one request, as without moderation.
        self.table.at_mut(index).notify = Notify::default();
        self.queue_event(base, index);
    }

    /// Counts a completion that was added to a moderated CQ. Returns whether it makes an event now.
    #[cold]
    pub(super) fn moderate(&mut self, base: &Base, index: u32, solicited: bool) -> bool {
        let cq = self.table.at_mut(index);
        // Without a request there is no event to delay.
        if !cq.notify.is_asked(solicited) {
            return false;
        }
        let moderation = &mut cq.moderation;
        // The period begins with the first delayed completion.
        let (count, since) = moderation.pending.unwrap_or((0, base.now));
        moderation.pending = Some((count + 1, since));
        if count + 1 < moderation.set.cq_count {
            let deadline = moderation.deadline();
            self.moderated.set(index, deadline);
            return false;
        }
        self.forget_moderation(index);
        self.table.at_mut(index).notify.added(solicited)
    }

    /// Drops the delayed event.
    pub(super) fn forget_moderation(&mut self, index: u32) {
        self.table.at_mut(index).moderation.pending = None;
        self.moderated.set(index, None);
    }
}
