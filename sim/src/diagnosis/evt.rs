//! Events that were not read, not acknowledged, or read for another CQ than was polled.

use verbs_api::cm::{CmEventType, CmId};
use verbs_api::{AsyncEventType, CompChannel, Cq};

use super::fact::{ChannelSeen, CmUnread, CqSeen};
use super::problem::{Noted, problems};
use super::words::{counted, waiting};
use super::{Certainty, Class};

problems! {
    /// An event of a CQ was read, the CQ was not polled since, and completions wait in it.
    OtherPolled {
        /// The CQ.
        cq: Cq,
        /// The number of waiting completions.
        unpolled: u32,
        /// Whether the program has destroyed the CQ: it may have ended before it wanted to poll.
        destroyed: bool,
    }
    is Class::OtherPolled,
    certainty if *destroyed { Certainty::Hint } else { Class::OtherPolled.certainty() },
    |names| {
        let (cq, wait) = (names.cq(*cq), waiting(*unpolled));
        format!("an event of {cq} was read, and {cq} was not polled since: {wait} in it")
    };

    /// Events of CQs wait in a channel.
    Unread {
        /// The channel.
        channel: CompChannel,
        /// The number of unread events.
        events: u32,
    }
    is Class::UnreadEvents,
    |names| {
        let events = counted(*events, "event", "events");
        format!("{events} of {} not read", names.channel(*channel))
    };

    /// Events of rdma_cm were not read, and the program hangs, or work has failed for the reason
    /// that they report.
    UnreadCm {
        /// The id that they are about: the listener, for requests.
        id: CmId,
        /// The type of the events, as a program reads them.
        event: CmEventType,
        /// The number of unread events.
        events: u32,
    }
    is Class::UnreadCm,
    |_| format!("{} {event} of {id} not read", counted(*events, "event", "events"));

    /// Asynchronous events were not read that report an error, or a state that the program did not
    /// act on and that has consequences.
    UnreadAsync {
        /// The type of the events.
        event_type: AsyncEventType,
        /// The object that they are about.
        of: String,
        /// The number of unread events.
        events: u32,
    }
    is Class::UnreadAsync,
    |_| format!("{} {event_type} of {of} not read", counted(*events, "event", "events"));

    /// Events were read and not acknowledged, so destroying their object would wait forever. A
    /// thread that does wait is another mistake, and a certain one.
    Unacknowledged {
        /// The object that they are about.
        of: String,
        /// The type of the last event, if there are several types.
        last: Option<String>,
        /// The number of events.
        events: u32,
    }
    is Class::NotAcknowledged,
    |_| {
        let events = events_of(*events, of, last.as_deref());
        format!("{events} read and not acknowledged: its destroy would wait")
    };
}

/// Events about an object, without their consequences.
pub(super) fn events_of(events: u32, of: &str, last: Option<&str>) -> String {
    let last = match last {
        None => String::new(),
        Some(last) if events == 1 => format!(", {last},"),
        Some(last) => format!(", the last {last},"),
    };
    format!("{} of {of}{last}", counted(events, "event", "events"))
}

impl CmUnread {
    /// The unread events, at the place of their id.
    pub(super) fn noted(self) -> Noted {
        let (id, event, events) = (self.id, self.event, self.events);
        Noted::at(UnreadCm { id, event, events }, self.made_at)
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
