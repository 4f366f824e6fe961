//! Armed and unarmed CQs: completions that no event reports.

use verbs_api::Cq;
use verbs_api::lab::ArmState;

use super::Class;
use super::fact::CqSeen;
use super::problem::{Noted, problems};
use super::words::{counted, waiting};

problems! {
    /// A CQ is armed, and completions that were added before wait in it: the classic lost wake-up.
    LostWakeup {
        /// The CQ.
        cq: Cq,
        /// The kind of completion it is armed for.
        armed: ArmState,
        /// The number of waiting completions.
        unpolled: u32,
        /// Whether the poll before arming returned as many completions as it asked for, and left
        /// these.
        partly: bool,
    }
    is if *partly { Class::DrainIncomplete } else { Class::LostWakeup },
    |names| {
        let (cq, wait) = (names.cq(*cq), waiting(*unpolled));
        let partly = if *partly { ", which the poll before had no room for" } else { "" };
        format!("{cq} is {armed}, and {wait} in it from before{partly}: no event reports that")
    };

    /// A CQ is armed for solicited completions, and others wait in it.
    SolicitedOnly {
        /// The CQ.
        cq: Cq,
        /// The number of waiting completions.
        unpolled: u32,
        /// Whether all of them are of sends, which cannot be solicited.
        of_sends: bool,
    }
    is Class::SolicitedOnly,
    |names| {
        let (wait, why) = if *of_sends {
            let (one, many) = ("completion of a send waits", "completions of sends wait");
            (counted(*unpolled, one, many), ", which cannot be solicited")
        } else {
            (waiting(*unpolled), ", not solicited")
        };
        let cq = names.cq(*cq);
        format!("{cq} is armed solicited, and {wait} in it{why}: no event reports that")
    };

    /// A CQ was not armed since its last event was read, and completions wait in it.
    NotArmedAgain {
        /// The CQ.
        cq: Cq,
        /// The number of waiting completions.
        unpolled: u32,
    }
    is Class::NotArmedAgain,
    |names| format!(
        "{} was not armed again since its last event was read, and {} in it: no event reports that",
        names.cq(*cq),
        waiting(*unpolled),
    );

    /// A CQ without a channel was armed, which never makes an event.
    ArmedWithoutChannel {
        /// The CQ.
        cq: Cq,
    }
    is Class::ArmedWithoutChannel,
    |names| {
        let cq = names.cq(*cq);
        format!("{cq} is armed, but has no completion channel: no event comes of it")
    };
}

impl CqSeen {
    /// Completions that no event reports although the CQ is armed.
    pub(super) fn asleep(&self) -> Option<Noted> {
        self.lost_wakeup().or_else(|| self.unsolicited())
    }

    /// A lost wake-up: completions of the armed kind wait in the CQ, and no event reports them.
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
            // Either the last poll before arming left completions, or the last poll after it.
            partly: self.usage.was_armed_over || self.usage.is_partly_polled,
        };
        (waits && self.tells_nothing()).then(|| Noted::at(problem, self.usage.armed_at))
    }

    fn unsolicited(&self) -> Option<Noted> {
        let problem = SolicitedOnly {
            cq: self.cq,
            unpolled: self.unpolled,
            of_sends: self.are_of_sends,
        };
        // A solicited completion in the CQ is a lost wake-up, which is certain.
        let is_so = self.armed == ArmState::Solicited && !self.has_solicited && self.unpolled > 0;
        (is_so && self.tells_nothing()).then(|| Noted::at(problem, self.usage.armed_at))
    }

    /// Completions that were added after the last event, in a CQ that was not armed again.
    pub(super) fn not_armed_again(&self) -> Option<Noted> {
        let problem = NotArmedAgain {
            cq: self.cq,
            // Failures may have made the program stop.
            unpolled: self.successes,
        };
        let is_off = self.usage.is_disarmed && self.armed == ArmState::Off;
        (is_off && self.successes > 0 && self.tells_nothing())
            .then(|| Noted::at(problem, self.usage.event_read_at))
    }

    /// Whether the program has seen no failure since it armed the CQ.
    pub(super) fn goes_on(&self) -> bool {
        !self.usage.failure_was_seen
    }

    /// Whether it has a channel, with no event of this CQ queued or due.
    fn tells_nothing(&self) -> bool {
        // Without a channel the program polls, and needs no event.
        self.channel.is_some() && self.events_unread == 0 && !self.has_late_event
    }
}
