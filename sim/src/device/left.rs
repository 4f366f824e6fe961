//! What a program leaves in its CQs, and how it came to be left there.

use verbs_api::WcStatus;
use verbs_api::lab::ArmState;
use verbs_api::site::Site;

use super::base::Base;
use super::channel::Channel;
use super::cq::Cq;
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
    /// An event of it was read, and it was not armed since.
    pub(super) is_disarmed: bool,
    /// Where the last event was read.
    pub(super) event_read_at: Option<Site>,
    /// That was so when it was armed: the last poll had left some.
    pub(super) was_armed_over: bool,
    /// A completion was polled since then that tells of a failure: who sees that may stop.
    pub(super) failure_was_seen: bool,
    /// Where it was armed.
    pub(super) armed_at: Option<Site>,
    /// Where the oldest work was posted whose completion was not polled when its queue pair went.
    pub(super) unpolled_at: Option<Site>,
}

impl Cq {
    /// It has been armed.
    pub(super) fn note_armed(&mut self, base: &mut Base) {
        self.dealings.armed_at = base.site;
        self.dealings.is_disarmed = false;
        self.dealings.failure_was_seen = false;
        self.dealings.was_armed_over = self.dealings.is_partly_polled;
        if self.channel.is_none() {
            base.note_mistake(Problem::ArmedWithoutChannel { cq: self.handle });
        }
    }
}

/// A CQ with what it is to be seen with.
pub(crate) struct Left<'c> {
    pub(super) cq: &'c Cq,
    pub(super) channel: Option<&'c Channel>,
    /// An event of it is put off, and will come.
    pub(super) has_late_event: bool,
    /// Where it was made.
    pub(super) made_at: Option<Site>,
}

impl Left<'_> {
    /// Completions of which no event tells, though it is armed.
    pub(crate) fn asleep(&self) -> Option<Noted> {
        self.lost_wakeup().or_else(|| self.unsolicited())
    }

    /// What is wrong with a CQ that goes away.
    pub(super) fn as_it_goes(&self) -> impl Iterator<Item = Noted> {
        let found = self.lost_wakeup().filter(|_| self.goes_on());
        let found = found.or_else(|| self.other_polled(true));
        let found = found.or_else(|| self.never_polled(None));
        self.unread().into_iter().chain(found)
    }

    /// What is in it at the end. `posted_at` is where the oldest work was posted of which a completion is there.
    pub(crate) fn at_the_end(&self, posted_at: Option<Site>) -> Option<Noted> {
        let (cq, unpolled) = (self.cq.handle, self.unpolled());
        let posted_at = posted_at.or(self.cq.dealings.unpolled_at);
        let rest = Noted::at(Problem::Unpolled { cq, unpolled }, posted_at);
        let found = self.asleep().filter(|_| self.goes_on());
        let found = found.or_else(|| self.other_polled(false));
        let found = found.or_else(|| self.not_armed_again());
        let found = found.or_else(|| self.never_polled(posted_at));
        found.or_else(|| (unpolled > 0).then_some(rest))
    }

    /// More may complete in it than it has room for: so much work is outstanding.
    pub(crate) fn too_small(&self, outstanding: u64) -> Option<Noted> {
        let (cq, cqe, unpolled) = (self.cq.handle, self.cq.cqe, self.unpolled());
        let problem = Problem::SmallCq {
            cq,
            cqe,
            unpolled,
            outstanding,
        };
        let is_small = u64::from(unpolled) + outstanding > cqe.into();
        is_small.then(|| Noted::at(problem, self.made_at))
    }

    /// It is armed for an event, completions that would have made one wait in it, and no event tells of them.
    fn lost_wakeup(&self) -> Option<Noted> {
        let Cq {
            handle,
            ring,
            notify,
            dealings,
            ..
        } = self.cq;
        let armed = notify.state();
        let waits = match armed {
            ArmState::Off => false,
            ArmState::Solicited => ring.has_solicited(),
            ArmState::Next => !ring.is_empty(),
        };
        let (cq, unpolled, partly) = (*handle, self.unpolled(), self.was_partly_polled());
        let problem = Problem::LostWakeup {
            cq,
            armed,
            unpolled,
            partly,
        };
        let is_lost = waits && self.tells_nothing();
        is_lost.then(|| Noted::at(problem, dealings.armed_at))
    }

    /// Where it was armed.
    pub(crate) fn armed_at(&self) -> Option<Site> {
        self.cq.dealings.armed_at
    }

    /// Nothing has told the program to stop since it was armed.
    fn goes_on(&self) -> bool {
        !self.cq.dealings.failure_was_seen
    }

    /// The last poll before it was armed, or after, left some.
    fn was_partly_polled(&self) -> bool {
        let dealings = &self.cq.dealings;
        dealings.was_armed_over || dealings.is_partly_polled
    }

    fn unsolicited(&self) -> Option<Noted> {
        let Cq {
            handle,
            ring,
            notify,
            dealings,
            ..
        } = self.cq;
        let is_armed = notify.state() == ArmState::Solicited && !ring.has_solicited();
        let (cq, unpolled) = (*handle, self.unpolled());
        let problem = Problem::SolicitedOnly {
            cq,
            unpolled,
            of_sends: ring.iter().all(|entry| !entry.ticket.is_recv()),
        };
        let is_so = is_armed && unpolled > 0 && self.tells_nothing();
        is_so.then(|| Noted::at(problem, dealings.armed_at))
    }

    /// An event of it was never read, though one before it was: as when an edge told of both. One of a CQ that is empty
    /// has told of nothing that was missed.
    fn unread(&self) -> Option<Noted> {
        let channel = self.channel.filter(|_| !self.cq.ring.is_empty())?;
        let events = self.cq.events_unread.len() as u32;
        let problem = Problem::Unread {
            channel: channel.handle,
            events,
        };
        let is_so = events > 0 && channel.was_left;
        is_so.then(|| Noted::at(problem, channel.read_at))
    }

    /// It has a channel, where no event of it is, nor will be.
    fn tells_nothing(&self) -> bool {
        self.channel.is_some() && self.cq.events_unread.is_empty() && !self.has_late_event
    }

    /// An event told of completions, and nobody looked.
    fn other_polled(&self, destroyed: bool) -> Option<Noted> {
        let (cq, unpolled) = (self.cq.handle, self.successes());
        let problem = Problem::OtherPolled {
            cq,
            unpolled,
            destroyed,
        };
        let is_so = unpolled > 0 && self.cq.dealings.event_was_read;
        is_so.then(|| Noted::at(problem, self.cq.dealings.event_read_at))
    }

    /// An event told of completions, and none can tell of those that have come since.
    pub(crate) fn not_armed_again(&self) -> Option<Noted> {
        let (cq, unpolled) = (self.cq.handle, self.successes());
        let is_so = unpolled > 0 && self.cq.dealings.is_disarmed && self.tells_nothing();
        let problem = Problem::NotArmedAgain { cq, unpolled };
        (is_so && self.cq.notify.state() == ArmState::Off)
            .then(|| Noted::at(problem, self.cq.dealings.event_read_at))
    }

    /// Work has completed in it, and nobody ever looked: not at an event that told of it either, which says more.
    fn never_polled(&self, posted_at: Option<Site>) -> Option<Noted> {
        let (cq, unpolled) = (self.cq.handle, self.successes());
        let problem = Problem::NeverPolled { cq, unpolled };
        let posted_at = self.cq.dealings.unpolled_at.or(posted_at);
        let is_so = unpolled > 0 && !self.cq.dealings.was_polled && self.unread().is_none();
        is_so.then(|| Noted::at(problem, posted_at))
    }

    fn unpolled(&self) -> u32 {
        self.cq.ring.len() as u32
    }

    /// Completions in it that are of no failed work: a failure is told by itself.
    fn successes(&self) -> u32 {
        let entries = self.cq.ring.iter();
        let successes = entries.filter(|entry| entry.wc.status == WcStatus::Success);
        successes.count() as u32
    }
}
