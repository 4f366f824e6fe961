//! Calls that were refused or misused.

use core::net::IpAddr;

use verbs_api::site::Site;
use verbs_api::{BadHandle, Cause, Error, ErrorKind, FullQueue, Qp, QpState, Verb};

use super::Class;
use super::problem::{Describe, problems};
use super::words::{Names, counted, listed, place_named};
use crate::device::argument;

problems! {
    /// A call was refused.
    Refused {
        /// The class of the finding.
        class: Class,
        /// The error: verb, errno value and facts.
        error: Error,
        /// The objects that use the one that was to be destroyed, where they are named: ids of
        /// rdma_cm. Each with where the program created it, or read its request.
        users: Vec<(String, Option<Site>)>,
    }
    is *class,
    key {
        let reason = match error.cause() {
            Cause::OutOfRange { what, .. } => what,
            Cause::Argument { problem, .. } => problem,
            _ => "",
        };
        [error.verb().name(), reason]
    },
    |names| match error.cause() {
        _ if !users.is_empty() => format!("{error}: {}", listed(users, names)),
        Cause::QueueFull { queue: FullQueue::UnsignaledSend, .. } => {
            format!("{error}: no slot is ever free again")
        }
        Cause::QueueFull { .. } => {
            format!("{error}: no slot is free until a completion is polled")
        }
        _ => error.to_string(),
    };

    /// A layer over the verbs was misused, which the simulator does not see
    /// ([`Misuse`](crate::Misuse)).
    Misused {
        /// The class of the finding.
        class: Class,
        /// Distinguishes it from others of its class at the same place.
        fact: [&'static str; 2],
        /// The sentence of the finding.
        text: String,
        /// A place that the sentence refers to, with the words that introduce it, if it is known.
        place: Option<(&'static str, Site)>,
    }
    is *class,
    key *fact,
    |names| format!("{text}{}", place_named(*place, names));
}

/// A batch that was started in a layer over the verbs (`ibv_wr_start`) and neither completed nor
/// aborted. Its work is not posted.
#[derive(Clone, Debug, PartialEq)]
pub struct Unposted {
    /// The queue pair.
    pub qp: Qp,
    /// Its number.
    pub qp_num: u32,
    /// The number of its work requests.
    pub requests: usize,
    /// Where it was started.
    pub begun_at: Option<Site>,
    /// Whether it can no longer be completed: its queue pair was destroyed, or its thread ends the
    /// program.
    pub is_certain: bool,
}

impl Describe for Unposted {
    fn class(&self) -> Class {
        Class::Batched
    }

    fn sentence(&self, _: &dyn Names) -> String {
        let (qp_num, requests) = (self.qp_num, self.requests);
        let requests = counted(requests, "work request", "work requests");
        format!(
            "a batch of {requests} on qp {qp_num:#x} was begun, and neither completed nor aborted"
        )
    }
}

impl Class {
    /// The class of a refused call. `None` if a correct program may get this error.
    pub fn of_refusal(error: &Error) -> Option<Self> {
        use ErrorKind as K;
        let (verb, kind) = (error.verb(), error.kind());
        let is_expected = matches!(
            kind,
            K::WouldBlock | K::TimedOut | K::Interrupted | K::Stalled | K::Io
        );
        Some(match error.cause() {
            // The address is wrong, or the peer has not opened its device yet.
            Cause::UnownedGid { .. } => Self::UnownedGid,
            Cause::Injected | Cause::CqOverrun | Cause::CmEvent(_) => return None,
            _ if is_expected => return None,
            // Programs detect features like this, so the call may be correct.
            _ if matches!(kind, K::NotSupported | K::NotImplemented) => Self::Refused,
            // The CQ is empty, which is not a mistake.
            Cause::Text(_)
                if kind == K::NotFound && matches!(verb, Verb::StartPoll | Verb::NextPoll) =>
            {
                return None;
            }
            // Programs try every address of the machine. No device has the link-local ones.
            Cause::NoAddress { ip: IpAddr::V6(ip) } if ip.is_unicast_link_local() => return None,
            // Programs fill an SRQ until it is full, since its size may be rounded up.
            Cause::QueueFull { .. } if verb == Verb::PostSrqRecv => return None,
            Cause::QueueFull { queue, .. } => match queue {
                // No slot will ever be free.
                FullQueue::UnsignaledSend => Self::SendQueueFull,
                // Programs may post until they are refused, and poll then.
                FullQueue::Send => Self::QueueFull,
                _ => Self::ReceiveQueueFull,
            },
            Cause::Handle { problem, .. } => match problem {
                BadHandle::Stale => Self::Destroyed,
                // The program has lost its power: that of its test may still run.
                BadHandle::Crashed => return None,
                BadHandle::Foreign => Self::OtherParent,
                // A handle of no object may come from an earlier failure.
                _ => Self::Refused,
            },
            Cause::InUse { .. } => Self::Busy,
            // Only a refusal shows that a device or the test controls limit a resource.
            Cause::Limit { .. } => Self::Refused,
            Cause::Mismatch { .. } => Self::OtherParent,
            Cause::QpState { state } if *state == QpState::Err => Self::AfterError,
            Cause::QpState { .. } => Self::WrongState,
            Cause::IterationOpen { .. } => Self::Iterated,
            // A combination that is refused on every device.
            Cause::NoLocalWrite => Self::Rights,
            Cause::OutOfRange { what, .. } => match *what {
                // Programs find the largest value like this.
                argument::MAX_INLINE_DATA if verb == Verb::CreateQp => Self::Refused,
                argument::MAX_INLINE_DATA | argument::INLINE_DATA => Self::Inline,
                argument::NUM_SGE => Self::LongList,
                _ => return Self::of_refused_verb(verb),
            },
            Cause::Argument {
                what: argument::INLINE | argument::INLINE_DATA,
                ..
            } => Self::Inline,
            _ => return Self::of_refused_verb(verb),
        })
    }

    fn of_refused_verb(verb: Verb) -> Option<Self> {
        Some(match verb {
            // Programs query entries until they are refused.
            Verb::QueryPort
            | Verb::QueryGid
            | Verb::QueryGidEx
            | Verb::QueryGidTable
            | Verb::QueryPkey
            | Verb::OpenDevice => return None,
            Verb::ModifyQp | Verb::ConnectRc => Self::Transition,
            Verb::ResizeCq => Self::Resized,
            Verb::StartPoll | Verb::NextPoll | Verb::EndPoll | Verb::ReadWc => Self::Iterated,
            Verb::AckCqEvents | Verb::AckAsyncEvent => Self::OverAcknowledged,
            _ => Self::Refused,
        })
    }
}
