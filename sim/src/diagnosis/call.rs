//! Calls that were refused or misused.

use core::net::IpAddr;

use verbs_api::site::Site;
use verbs_api::{BadHandle, Cause, Error, ErrorKind, FullQueue, Qp, QpState, Verb};

use super::Class;
use super::problem::{Describe, problems};
use super::words::{Names, counted, place_named};

problems! {
    /// A call was refused.
    Refused {
        /// The class of the finding.
        class: Class,
        /// The error: verb, errno value and facts.
        error: Error,
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
    |_| match error.cause() {
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
        let verb = error.verb();
        Some(match (error.cause(), error.kind()) {
            // The address is wrong, or the peer has not opened its device yet.
            (Cause::UnownedGid { .. }, _) => Self::UnownedGid,
            (
                _,
                ErrorKind::WouldBlock
                | ErrorKind::TimedOut
                | ErrorKind::Interrupted
                | ErrorKind::Stalled
                | ErrorKind::Io,
            )
            | (Cause::Injected | Cause::CqOverrun | Cause::CmEvent(_), _) => return None,
            // Programs detect features like this, so the call may be correct.
            (_, ErrorKind::NotSupported | ErrorKind::NotImplemented) => Self::Refused,
            // The CQ is empty, which is not a mistake.
            (Cause::Text(_), ErrorKind::NotFound)
                if matches!(verb, Verb::StartPoll | Verb::NextPoll) =>
            {
                return None;
            }
            // Programs fill an SRQ until it is full, since its size may be rounded up.
            (Cause::QueueFull { .. }, _) if verb == Verb::PostSrqRecv => return None,
            // Programs try every address of the machine. No device has the link-local ones.
            (Cause::NoAddress { ip: IpAddr::V6(ip) }, _) if ip.is_unicast_link_local() => {
                return None;
            }
            (Cause::QueueFull { queue, .. }, _) => match *queue {
                // No slot will ever be free.
                FullQueue::UnsignaledSend => Self::SendQueueFull,
                // Programs may post until they are refused, and poll then.
                FullQueue::Send => Self::QueueFull,
                _ => Self::ReceiveQueueFull,
            },
            (
                Cause::Handle {
                    problem: BadHandle::Stale,
                    ..
                },
                _,
            ) => Self::Destroyed,
            (
                Cause::Handle {
                    problem: BadHandle::Foreign,
                    ..
                },
                _,
            ) => Self::OtherParent,
            // A handle of no object may come from an earlier failure.
            (Cause::Handle { .. }, _) => Self::Refused,
            (Cause::InUse { .. }, _) => Self::Busy,
            // Only a refusal shows that a device or the test controls limit a resource.
            (Cause::Limit { .. }, _) => Self::Refused,
            (Cause::Mismatch { .. }, _) => Self::OtherParent,
            (
                Cause::QpState {
                    state: QpState::Err,
                },
                _,
            ) => Self::AfterError,
            (Cause::QpState { .. }, _) => Self::WrongState,
            // Programs find the largest value like this.
            (
                Cause::OutOfRange {
                    what: "max_inline_data",
                    ..
                },
                _,
            ) if verb == Verb::CreateQp => Self::Refused,
            (
                Cause::OutOfRange {
                    what: "inline data" | "max_inline_data",
                    ..
                }
                | Cause::Argument {
                    what: "inline data" | "INLINE",
                    ..
                },
                _,
            ) => Self::Inline,
            (
                Cause::OutOfRange {
                    what: "num_sge", ..
                },
                _,
            ) => Self::LongList,
            (Cause::IterationOpen { .. }, _) => Self::Iterated,
            // A combination that is refused on every device.
            (Cause::NoLocalWrite, _) => Self::Rights,
            // Programs detect features like this.
            (Cause::Argument { what: "access", .. }, _) => Self::Refused,
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
