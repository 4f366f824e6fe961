//! Facts that the core records when something goes wrong: data, without sentences or judgment.

use verbs_api::cm::{CmEventType, CmId};
use verbs_api::lab::ArmState;
use verbs_api::site::Site;
use verbs_api::{CompChannel, Cq, QpState, WcStatus};

use super::cause::Why;
use crate::displayed::displayed;
use crate::time::Time;

/// A QP, by its node and its number.
pub(crate) type QpAt = (u32, u32);

/// A work request that failed.
#[derive(Clone, Debug)]
pub(crate) struct FailedWork {
    pub(crate) qp_num: u32,
    pub(crate) receive: bool,
    pub(crate) label: u64,
    pub(crate) status: WcStatus,
    /// The cause as far as this node knows.
    pub(crate) why: Option<Why>,
    /// The node of the peer, and the number of the request that it had to answer.
    pub(crate) asked: Option<(u32, u32)>,
    pub(crate) at: Time,
    /// Where it was posted.
    pub(crate) site: Option<Site>,
    pub(crate) standing: Standing,
}

/// The progress of a QP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reached {
    pub(crate) state: QpState,
    /// Whether it has carried out a request, or may have done so on an earlier connection.
    pub(crate) has_taken: bool,
    /// Whether a fault rule or the test controls have stopped it.
    pub(crate) is_affected: bool,
}

displayed! {
    /// Details of a dropped packet.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum DropDetails {
        /// Its sequence number, and the one that the queue pair expects.
        Psn { psn: u32, waits_for: u32 } = "{psn} comes, and {waits_for} is waited for";
        /// Its Q_Key, and that of the queue pair.
        Qkey { qkey: u32, own: u32 } = "{qkey:#x} in the packet, and {own:#x} at the qp";
        /// How long its sender waits for a receive before it tries again, in milliseconds. The
        /// code of that time is 0, the longest.
        Longest { wait: f64 }
            = "the sender waits {wait} ms before each try, since min_rnr_timer is 0, which stands for the longest time";
        /// The sizes of its message, of the header before it, and of the receive, and where the
        /// receive was posted.
        Short { length: u32, grh: u32, room: u64, posted_at: Option<Site> }
            = "the message has {length} bytes, its GRH {grh}, and the receive {room}";
    }
}

/// How a program has handled failed work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    #[default]
    Open,
    /// The program has polled the failure.
    Polled,
    /// The program has given the queue pair up after that, as the one with this number.
    GivenUp(u32),
    /// Work that it posted since then has succeeded.
    Handled,
}

/// How a program has used a CQ.
#[derive(Clone, Debug, Default)]
pub(crate) struct CqUse {
    /// Whether a completion was ever polled.
    pub(crate) was_polled: bool,
    /// Whether the last poll returned as many completions as it asked for, and left some.
    pub(crate) is_partly_polled: bool,
    /// Whether an event of it was read and it was not polled since.
    pub(crate) event_was_read: bool,
    /// Whether an event of it was read and it was not armed since.
    pub(crate) is_disarmed: bool,
    /// Where the last event was read.
    pub(crate) event_read_at: Option<Site>,
    /// Whether the last poll before arming had left some completions.
    pub(crate) was_armed_over: bool,
    /// Whether a failure was polled since it was armed. The program may stop because of it.
    pub(crate) failure_was_seen: bool,
    /// Where it was armed.
    pub(crate) armed_at: Option<Site>,
    /// Where the oldest work was posted whose completion was unpolled when its queue pair was
    /// destroyed.
    pub(crate) unpolled_at: Option<Site>,
}

/// The facts about a CQ that a diagnosis uses.
#[derive(Clone, Debug)]
pub(crate) struct CqSeen {
    pub(crate) cq: Cq,
    pub(crate) cqe: u32,
    pub(crate) armed: ArmState,
    pub(crate) usage: CqUse,
    /// The number of completions in it.
    pub(crate) unpolled: u32,
    /// The number of successful completions in it. Failures are findings of their own.
    pub(crate) successes: u32,
    /// Whether one of them is solicited.
    pub(crate) has_solicited: bool,
    /// Whether all of them are of sends.
    pub(crate) are_of_sends: bool,
    pub(crate) channel: Option<ChannelSeen>,
    /// The number of unread events of it.
    pub(crate) events_unread: u32,
    /// Whether moderation delays an event of it.
    pub(crate) has_late_event: bool,
    /// Where it was created.
    pub(crate) made_at: Option<Site>,
}

/// The facts about a completion channel that a diagnosis uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelSeen {
    pub(crate) channel: CompChannel,
    /// The number of unread events of all its CQs.
    pub(crate) events_unread: u32,
    /// Whether more events remained when the last one was read.
    pub(crate) was_left: bool,
    /// Where the last event was read.
    pub(crate) read_at: Option<Site>,
}

/// Unread events of one type about an id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CmUnread {
    pub(crate) id: CmId,
    pub(crate) event: CmEventType,
    pub(crate) events: u32,
    /// Where the program created the id, or read its request.
    pub(crate) made_at: Option<Site>,
}
