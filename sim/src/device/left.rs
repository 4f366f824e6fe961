//! What a program leaves in its CQs, and how it came to be left there.

use verbs_api::lab::ArmState;
use verbs_api::site::Site;
use verbs_api::{Handle, Object, WcStatus};

use super::base::Base;
use super::cq::{Cq, Cqs};
use crate::diagnosis::{Noted, Problem};

/// How a program has dealt with a CQ, as far as a diagnosis asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dealings {
    /// A completion was polled, some time.
    pub(super) was_polled: bool,
    /// The last poll took as many as it asked for, and left some.
    pub(super) is_partly_polled: bool,
    /// An event of it was read, and it was not polled since.
    pub(super) event_was_read: bool,
    /// Where that was.
    pub(super) event_read_at: Option<Site>,
    /// That was so when it was armed: the last poll had left some.
    pub(super) was_armed_over: bool,
    /// Where it was armed.
    pub(super) armed_at: Option<Site>,
    /// Where the oldest work was posted whose completion was not polled when its queue pair went.
    unpolled_at: Option<Site>,
}

impl Cqs {
    /// A poll of a CQ is over; `is_filled` if it took as many as it asked for.
    #[inline(always)]
    pub(crate) fn polled(&mut self, index: u32, is_filled: bool) {
        let cq = self.table.at_mut(index);
        let is_empty = cq.ring.is_empty();
        cq.dealings.is_partly_polled = is_filled && !is_empty;
        cq.dealings.event_was_read = false;
        if is_empty {
            self.show(index);
        }
    }

    /// Completions in a CQ of which no event tells, though it is armed.
    pub(crate) fn asleep(&self, index: u32) -> Option<Noted> {
        self.left_asleep(index)
            .or_else(|| self.left_unsolicited(index))
    }

    /// What a CQ that goes away still had, if that is a mistake.
    pub(super) fn note_left(&self, base: &mut Base, index: u32) {
        let cq = self.table.at(index);
        if base.history.has_overrun(cq.handle) {
            return;
        }
        if let Some(Noted { problem, site, .. }) = self.left_in_channel(cq) {
            base.history.note(problem, site);
        }
        let found = self.left_asleep(index).or_else(|| cq.left_after_event());
        if let Some(Noted { problem, site, .. }) = found.or_else(|| cq.never_polled(None)) {
            base.history.note(problem, site);
        }
    }

    /// A queue pair goes, and completions of it are left that nobody has polled.
    pub(crate) fn note_unpolled(&mut self, index: u32, site: Site) {
        self.table
            .at_mut(index)
            .dealings
            .unpolled_at
            .get_or_insert(site);
    }

    /// What is in a CQ at the end. `posted_at` is where the oldest work was posted of which a completion is there.
    pub(crate) fn left(&self, base: &Base, index: u32, posted_at: Option<Site>) -> Option<Noted> {
        let cq = self.table.at(index);
        let unpolled = cq.ring.len() as u32;
        if unpolled == 0 || base.history.has_overrun(cq.handle) {
            return None;
        }
        let asleep = self.asleep(index);
        let rest = Problem::Unpolled {
            cq: cq.handle,
            unpolled,
        };
        let rest = Noted::at(rest, posted_at.or(cq.dealings.unpolled_at));
        let found = asleep
            .or_else(|| cq.left_after_event())
            .or_else(|| cq.never_polled(posted_at));
        Some(found.unwrap_or(rest))
    }

    /// It is armed for an event, completions that would have made one wait in it, and no event tells of them.
    fn left_asleep(&self, index: u32) -> Option<Noted> {
        let cq = self.table.at(index);
        let armed = cq.notify.state();
        let waits = match armed {
            ArmState::Off => false,
            ArmState::Solicited => cq.has_solicited(),
            ArmState::Next => !cq.ring.is_empty(),
        };
        let problem = Problem::LostWakeup {
            cq: cq.handle,
            armed,
            unpolled: cq.ring.len() as u32,
            partly: cq.dealings.was_armed_over,
        };
        let is_lost = waits && self.tells_nothing(index);
        is_lost.then(|| Noted::at(problem, cq.dealings.armed_at))
    }

    fn left_unsolicited(&self, index: u32) -> Option<Noted> {
        let cq = self.table.at(index);
        let is_armed = cq.notify.state() == ArmState::Solicited && !cq.has_solicited();
        let (cq, site, unpolled) = (cq.handle, cq.dealings.armed_at, cq.ring.len() as u32);
        let problem = Problem::SolicitedOnly { cq, unpolled };
        (is_armed && unpolled > 0 && self.tells_nothing(index)).then(|| Noted::at(problem, site))
    }

    /// An event of it was never read, though one before it was: as when an edge told of both.
    fn left_in_channel(&self, cq: &Cq) -> Option<Noted> {
        let channel = self.channels.at(cq.channel?);
        let events = cq.events_unread.len() as u32;
        let problem = Problem::Unread {
            channel: channel.handle,
            events,
        };
        let is_so = events > 0 && channel.was_left;
        is_so.then(|| Noted::at(problem, channel.read_at))
    }

    /// It has a channel, where no event of it is, nor will be.
    fn tells_nothing(&self, index: u32) -> bool {
        let cq = self.table.at(index);
        cq.channel.is_some() && cq.events_unread.is_empty() && self.moderated.get(index).is_none()
    }

    /// A CQ into which more work completes than it has room for; `outstanding` work does.
    pub(crate) fn too_small(&self, base: &Base, index: u32, outstanding: u64) -> Option<Noted> {
        let cq = self.table.at(index);
        let report = cq.report();
        let (cqe, unpolled) = (report.cqe, report.unpolled);
        let problem = Problem::SmallCq {
            cq: cq.handle,
            cqe,
            unpolled,
            outstanding,
        };
        let is_small = !report.overrun && u64::from(unpolled) + outstanding > cqe.into();
        is_small.then(|| {
            Noted::at(
                problem,
                base.made_at(cq.handle.context(), Object::Cq, index),
            )
        })
    }
}

impl Cq {
    /// Where an event of it was last read.
    pub(crate) fn event_read_at(&self) -> Option<Site> {
        self.dealings.event_read_at
    }

    /// An event told of completions, and nobody looked.
    fn left_after_event(&self) -> Option<Noted> {
        let unpolled = self.successes();
        let problem = Problem::OtherPolled {
            cq: self.handle,
            unpolled,
        };
        let is_so = unpolled > 0 && self.dealings.event_was_read;
        is_so.then(|| Noted::at(problem, self.dealings.event_read_at))
    }

    /// Work has completed in it, not only been flushed, and nobody ever looked.
    fn never_polled(&self, posted_at: Option<Site>) -> Option<Noted> {
        let unpolled = self.successes();
        let problem = Problem::NeverPolled {
            cq: self.handle,
            unpolled,
        };
        let is_so = unpolled > 0 && !self.dealings.was_polled;
        is_so.then(|| Noted::at(problem, self.dealings.unpolled_at.or(posted_at)))
    }

    /// Completions in it that are of no flushed work.
    fn successes(&self) -> u32 {
        let flushed = |status| status == WcStatus::WrFlushErr;
        self.ring
            .iter()
            .filter(|entry| !flushed(entry.wc.status))
            .count() as u32
    }
}
