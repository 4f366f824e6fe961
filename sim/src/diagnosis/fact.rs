//! What the core states when something goes wrong: data, without words or judgment.

use core::fmt;

use verbs_api::lab::ArmState;
use verbs_api::site::Site;
use verbs_api::{CompChannel, Cq, QpState, WcStatus};

use super::cause::Why;
use crate::time::Time;

/// A QP, by its node and its number there.
pub(crate) type QpAt = (u32, u32);

/// A work request that failed.
#[derive(Clone, Debug)]
pub(crate) struct FailedWork {
    pub(crate) qp_num: u32,
    pub(crate) receive: bool,
    pub(crate) label: u64,
    pub(crate) status: WcStatus,
    /// As far as this node knows.
    pub(crate) why: Option<Why>,
    /// The node of the peer, and the number of the request that it had to answer.
    pub(crate) asked: Option<(u32, u32)>,
    pub(crate) at: Time,
    /// Where it was posted.
    pub(crate) site: Option<Site>,
    pub(crate) standing: Standing,
}

/// How far a QP has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reached {
    pub(crate) state: QpState,
    /// It has carried out a request, or may have on a connection before.
    pub(crate) has_taken: bool,
    /// A fault rule or the laboratory has stopped it.
    pub(crate) is_harmed: bool,
}

/// More of why a packet is dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DropDetails {
    /// Its sequence number, and the one that the queue pair waits for.
    Psn { psn: u32, waits_for: u32 },
    /// Its Q_Key, and that of the queue pair.
    Qkey { qkey: u32, own: u32 },
    /// The bytes of its message, of what comes before these, and of the receive, and where that was
    /// posted.
    Short {
        length: u32,
        grh: u32,
        room: u64,
        posted_at: Option<Site>,
    },
}

impl DropDetails {
    pub(super) fn posted_at(&self) -> Option<Site> {
        match self {
            Self::Short { posted_at, .. } => *posted_at,
            Self::Psn { .. } | Self::Qkey { .. } => None,
        }
    }
}

impl fmt::Display for DropDetails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Psn { psn, waits_for } => {
                write!(f, "{psn} comes, and {waits_for} is waited for")
            }
            Self::Qkey { qkey, own } => {
                write!(f, "{qkey:#x} in the packet, and {own:#x} at the qp")
            }
            Self::Short {
                length, grh, room, ..
            } => write!(
                f,
                "the message has {length} bytes, its GRH {grh}, and the receive {room}"
            ),
        }
    }
}

/// How a program has dealt with work that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    #[default]
    Open,
    /// It has polled the failure.
    Polled,
    /// It has given the queue pair up after that, as the one of this number.
    GivenUp(u32),
    /// Work that it has posted since then has succeeded.
    Handled,
}

/// How a program has used a CQ.
#[derive(Clone, Debug, Default)]
pub(crate) struct CqUse {
    /// A completion was polled, some time.
    pub(crate) was_polled: bool,
    /// The last poll took as many as it asked for, and left some.
    pub(crate) is_partly_polled: bool,
    /// An event of it was read, and it was not polled since.
    pub(crate) event_was_read: bool,
    /// An event of it was read, and it was not armed since.
    pub(crate) is_disarmed: bool,
    /// Where the last event was read.
    pub(crate) event_read_at: Option<Site>,
    /// That was so when it was armed: the last poll had left some.
    pub(crate) was_armed_over: bool,
    /// A completion was polled since then that tells of a failure: who sees that may stop.
    pub(crate) failure_was_seen: bool,
    /// Where it was armed.
    pub(crate) armed_at: Option<Site>,
    /// Where the oldest work was posted whose completion was not polled when its queue pair went.
    pub(crate) unpolled_at: Option<Site>,
}

/// A CQ, with what is to be seen of it.
#[derive(Clone, Debug)]
pub(crate) struct CqSeen {
    pub(crate) cq: Cq,
    pub(crate) cqe: u32,
    pub(crate) armed: ArmState,
    pub(crate) usage: CqUse,
    /// Completions in it.
    pub(crate) unpolled: u32,
    /// Those of them that are of no failed work: a failure is a finding of its own.
    pub(crate) successes: u32,
    /// A solicited one is among them.
    pub(crate) has_solicited: bool,
    /// All of them are of sends.
    pub(crate) are_of_sends: bool,
    pub(crate) channel: Option<ChannelSeen>,
    /// Events of it that were not read.
    pub(crate) events_unread: u32,
    /// An event of it is put off, and will come.
    pub(crate) has_late_event: bool,
    /// Where it was made.
    pub(crate) made_at: Option<Site>,
}

/// A completion channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelSeen {
    pub(crate) channel: CompChannel,
    /// Events of all its CQs that were not read.
    pub(crate) events_unread: u32,
    /// The last event that was read was not the last there was.
    pub(crate) was_left: bool,
    /// Where that was read.
    pub(crate) read_at: Option<Site>,
}
