//! Events that were not read, not acknowledged, or read for another CQ than was polled.

use verbs_api::{AsyncEventType, CompChannel, Cq};

use super::fact::{ChannelSeen, CqSeen};
use super::problem::{Describe, Noted};
use super::words::{Names, counted, waiting};
use super::{Certainty, Class};

/// An event of a CQ was read, the CQ was not polled since, and completions wait in it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OtherPolled {
    /// The CQ.
    pub cq: Cq,
    /// The number of waiting completions.
    pub unpolled: u32,
    /// Whether the program has destroyed the CQ: it may have ended before it wanted to poll.
    pub destroyed: bool,
}

impl Describe for OtherPolled {
    fn class(&self) -> Class {
        Class::OtherPolled
    }

    fn certainty(&self) -> Certainty {
        // A program that destroys a CQ may have ended before it wanted to poll.
        if self.destroyed {
            Certainty::Hint
        } else {
            self.class().certainty()
        }
    }

    fn sentence(&self, names: &dyn Names) -> String {
        let (cq, wait) = (names.cq(self.cq), waiting(self.unpolled));
        format!("an event of {cq} was read, and {cq} was not polled since: {wait} in it")
    }
}

/// Events of CQs wait in a channel.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unread {
    /// The channel.
    pub channel: CompChannel,
    /// The number of unread events.
    pub events: u32,
}

impl Describe for Unread {
    fn class(&self) -> Class {
        Class::UnreadEvents
    }

    fn sentence(&self, names: &dyn Names) -> String {
        let channel = names.channel(self.channel);
        let events = counted(self.events.into(), "event", "events");
        format!("{events} of {channel} not read")
    }
}

/// Asynchronous events that report an error were not read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UnreadAsync {
    /// The type of the events.
    pub event_type: AsyncEventType,
    /// The object that they are about.
    pub of: String,
    /// The number of unread events.
    pub events: u32,
}

impl Describe for UnreadAsync {
    fn class(&self) -> Class {
        Class::UnreadAsync
    }

    fn sentence(&self, _: &dyn Names) -> String {
        let events = counted(self.events.into(), "event", "events");
        format!("{events} {} of {} not read", self.event_type, self.of)
    }
}

/// Events were read and not acknowledged, so destroying their object would wait forever. A thread
/// that does wait is another mistake, and a certain one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unacknowledged {
    /// The object that they are about.
    pub of: String,
    /// The type of the last event, if there are several types.
    pub last: Option<String>,
    /// The number of events.
    pub events: u32,
}

impl Describe for Unacknowledged {
    fn class(&self) -> Class {
        Class::NotAcknowledged
    }

    fn sentence(&self, _: &dyn Names) -> String {
        let events = self.events_in_words();
        format!("{events} read and not acknowledged: its destroy would wait")
    }
}

impl Unacknowledged {
    /// The events, without their consequences.
    pub(super) fn events_in_words(&self) -> String {
        let last = match &self.last {
            None => String::new(),
            Some(last) if self.events == 1 => format!(", {last},"),
            Some(last) => format!(", the last {last},"),
        };
        let events = counted(self.events.into(), "event", "events");
        format!("{events} of {}{last}", self.of)
    }
}

impl ChannelSeen {
    /// The unread events of the channel.
    pub(super) fn unread(&self) -> Option<Noted> {
        let (channel, events) = (self.channel, self.events_unread);
        (events > 0).then(|| Noted::at(Unread { channel, events }, self.read_at))
    }
}

impl CqSeen {
    /// An event that was not read although an earlier one of the channel was, as when one edge
    /// reported both. Only a CQ with completions counts: the event of an empty one reported
    /// nothing that was missed.
    pub(super) fn unread(&self) -> Option<Noted> {
        let seen = self.channel.filter(|_| self.unpolled > 0)?;
        let (channel, events) = (seen.channel, self.events_unread);
        (events > 0 && seen.was_left).then(|| Noted::at(Unread { channel, events }, seen.read_at))
    }

    /// Completions of a CQ that was not polled after its event.
    pub(super) fn other_polled(&self, destroyed: bool) -> Option<Noted> {
        let problem = OtherPolled {
            cq: self.cq,
            unpolled: self.successes,
            destroyed,
        };
        // Failures are findings of their own.
        (self.successes > 0 && self.usage.event_was_read)
            .then(|| Noted::at(problem, self.usage.event_read_at))
    }
}
