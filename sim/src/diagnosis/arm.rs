//! CQs that are armed, or are not: completions of which no event tells.

use verbs_api::Cq;
use verbs_api::lab::ArmState;
use verbs_api::site::Site;

use super::Class;
use super::fact::CqSeen;
use super::journal::Journal;
use super::problem::{Describe, Noted};
use super::words::{Names, counted, waiting};

/// A CQ is armed, and completions wait in it that were there before: the classic lost wake-up.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LostWakeup {
    /// The CQ.
    pub cq: Cq,
    /// What it is armed for.
    pub armed: ArmState,
    /// How many wait.
    pub unpolled: u32,
    /// The poll before took as many as it asked for, and left these.
    pub partly: bool,
}

impl Describe for LostWakeup {
    fn class(&self) -> Class {
        if self.partly {
            Class::DrainIncomplete
        } else {
            Class::LostWakeup
        }
    }

    fn sentence(&self, names: &dyn Names) -> String {
        let (cq, armed, wait) = (names.cq(self.cq), self.armed, waiting(self.unpolled));
        let partly = if self.partly {
            ", which the poll before had no room for"
        } else {
            ""
        };
        format!("{cq} is {armed}, and {wait} in it from before{partly}: no event tells of that")
    }
}

/// A CQ is armed for solicited completions, and others wait in it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SolicitedOnly {
    /// The CQ.
    pub cq: Cq,
    /// How many wait.
    pub unpolled: u32,
    /// All of them are of sends, which nobody can solicit.
    pub of_sends: bool,
}

impl Describe for SolicitedOnly {
    fn class(&self) -> Class {
        Class::SolicitedOnly
    }

    fn sentence(&self, names: &dyn Names) -> String {
        let cq = names.cq(self.cq);
        let (wait, why) = if self.of_sends {
            let (one, many) = ("completion of a send waits", "completions of sends wait");
            let wait = counted(self.unpolled.into(), one, many);
            (wait, ", which nobody can solicit")
        } else {
            (waiting(self.unpolled), " that nobody solicited")
        };
        format!("{cq} is armed solicited, and {wait} in it{why}: no event tells of that")
    }
}

/// A CQ was not armed since the last event of it was read, and completions wait in it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NotArmedAgain {
    /// The CQ.
    pub cq: Cq,
    /// How many wait.
    pub unpolled: u32,
}

impl Describe for NotArmedAgain {
    fn class(&self) -> Class {
        Class::NotArmedAgain
    }

    fn sentence(&self, names: &dyn Names) -> String {
        let (cq, wait) = (names.cq(self.cq), waiting(self.unpolled));
        format!(
            "{cq} was not armed again since its last event was read, and {wait} in it: no event tells of that"
        )
    }
}

/// A CQ was armed that has no channel: no event comes of that.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ArmedWithoutChannel {
    /// The CQ.
    pub cq: Cq,
}

impl Describe for ArmedWithoutChannel {
    fn class(&self) -> Class {
        Class::ArmedWithoutChannel
    }

    fn sentence(&self, names: &dyn Names) -> String {
        let cq = names.cq(self.cq);
        format!("{cq} is armed, but has no completion channel: no event comes of it")
    }
}

impl Journal {
    /// A CQ that has no channel is armed.
    #[cold]
    pub(crate) fn armed_without_channel(&mut self, cq: Cq, site: Option<Site>) {
        self.note(ArmedWithoutChannel { cq }, site);
    }
}

impl CqSeen {
    /// Completions of which no event tells, though it is armed.
    pub(super) fn asleep(&self) -> Option<Noted> {
        self.lost_wakeup().or_else(|| self.unsolicited())
    }

    /// It is armed for an event, completions that would have made one wait in it, and no event tells of them.
    pub(super) fn lost_wakeup(&self) -> Option<Noted> {
        let waits = match self.armed {
            ArmState::Off => false,
            ArmState::Solicited => self.has_solicited,
            ArmState::Next => self.unpolled > 0,
        };
        let problem = LostWakeup {
            cq: self.cq,
            armed: self.armed,
            unpolled: self.unpolled,
            partly: self.usage.was_armed_over || self.usage.is_partly_polled,
        };
        let is_lost = waits && self.tells_nothing();
        is_lost.then(|| Noted::at(problem, self.usage.armed_at))
    }

    fn unsolicited(&self) -> Option<Noted> {
        let problem = SolicitedOnly {
            cq: self.cq,
            unpolled: self.unpolled,
            of_sends: self.are_of_sends,
        };
        let is_armed = self.armed == ArmState::Solicited && !self.has_solicited;
        let is_so = is_armed && self.unpolled > 0 && self.tells_nothing();
        is_so.then(|| Noted::at(problem, self.usage.armed_at))
    }

    /// An event told of completions, and none can tell of those that have come since.
    pub(super) fn not_armed_again(&self) -> Option<Noted> {
        let problem = NotArmedAgain {
            cq: self.cq,
            unpolled: self.successes,
        };
        let is_disarmed = self.usage.is_disarmed && self.armed == ArmState::Off;
        let is_so = self.successes > 0 && is_disarmed && self.tells_nothing();
        is_so.then(|| Noted::at(problem, self.usage.event_read_at))
    }

    /// Nothing has told the program to stop since it was armed.
    pub(super) fn goes_on(&self) -> bool {
        !self.usage.failure_was_seen
    }

    /// It has a channel, where no event of it is, nor will be.
    fn tells_nothing(&self) -> bool {
        self.channel.is_some() && self.events_unread == 0 && !self.has_late_event
    }
}
