//! Calls that were refused or misused.

use core::net::IpAddr;

use verbs_api::site::Site;
use verbs_api::{BadHandle, Cause, Error, ErrorKind, FullQueue, Qp, QpState, Verb};

use super::Class;
use super::journal::Journal;
use super::problem::Describe;
use super::words::{Names, counted, place_named};

/// A call was refused.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Refused {
    /// Of which class that is.
    pub class: Class,
    /// The error: verb, errno value and facts.
    pub error: Error,
}

impl Describe for Refused {
    fn class(&self) -> Class {
        self.class
    }

    fn key(&self) -> [&'static str; 2] {
        let reason = match self.error.cause() {
            Cause::OutOfRange { what, .. } => what,
            Cause::Argument { problem, .. } => problem,
            _ => "",
        };
        [self.error.verb().name(), reason]
    }

    fn sentence(&self, _: &dyn Names) -> String {
        let Self { error, .. } = self;
        let posted = match error.cause() {
            Cause::QueueFull {
                queue: FullQueue::UnsignaledSend,
                ..
            } => ": no slot is ever free again",
            Cause::QueueFull { .. } => ": no slot is free until a completion is polled",
            _ => "",
        };
        format!("{error}{posted}")
    }
}

/// A layer over the verbs was misused, which the simulator does not see
/// ([`Misuse`](crate::Misuse)).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Misused {
    /// Of which class that is.
    pub class: Class,
    /// What tells it from others of its class at the same place.
    pub fact: [&'static str; 2],
    /// In words.
    pub text: String,
    /// Where what it speaks of began, behind words that say which; if it is known.
    pub place: Option<(&'static str, Site)>,
}

impl Describe for Misused {
    fn class(&self) -> Class {
        self.class
    }

    fn key(&self) -> [&'static str; 2] {
        self.fact
    }

    fn sentence(&self, names: &dyn Names) -> String {
        let Self { text, place, .. } = self;
        format!("{text}{}", place_named(*place, names))
    }
}

/// A batch that was begun in a layer over the verbs (`ibv_wr_start`), and neither completed nor aborted: its work is not
/// posted.
#[derive(Clone, Debug, PartialEq)]
pub struct Unposted {
    /// The queue pair.
    pub qp: Qp,
    /// Its number.
    pub qp_num: u32,
    /// How many work requests it has.
    pub requests: usize,
    /// Where it was begun.
    pub begun_at: Option<Site>,
    /// It would have been ended by now, if ever: its queue pair is gone, or its thread ends the program.
    pub is_certain: bool,
}

impl Describe for Unposted {
    fn class(&self) -> Class {
        Class::Batched
    }

    fn sentence(&self, _: &dyn Names) -> String {
        let Self {
            qp_num, requests, ..
        } = self;
        let requests = counted(*requests as u64, "work request", "work requests");
        format!(
            "a batch of {requests} on qp {qp_num:#x} was begun, and neither completed nor aborted"
        )
    }
}

impl Class {
    /// That of a call which was refused; `None` if a program without mistakes may meet that.
    pub fn of_refusal(error: &Error) -> Option<Self> {
        let verb = error.verb();
        Some(match (error.cause(), error.kind()) {
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
            // Programs find out like this what there is, so it may be right.
            (_, ErrorKind::NotSupported | ErrorKind::NotImplemented) => Self::Refused,
            // What there was to poll is over.
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
                // For ever.
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
            (Cause::Handle { .. }, _) => Self::Refused,
            (Cause::InUse { .. }, _) => Self::Busy,
            // What a device or the laboratory has too little of is known only when it is refused.
            (Cause::Limit { .. }, _) => Self::Refused,
            (Cause::Mismatch { .. }, _) => Self::OtherParent,
            (
                Cause::QpState {
                    state: QpState::Err,
                },
                _,
            ) => Self::AfterError,
            (Cause::QpState { .. }, _) => Self::WrongState,
            // Programs find out like this how much there may be.
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
            (Cause::NoLocalWrite, _) => Self::Rights,
            // Programs find out like this what there is.
            (Cause::Argument { what: "access", .. }, _) => Self::Refused,
            _ => return Self::of_refused_verb(verb),
        })
    }

    fn of_refused_verb(verb: Verb) -> Option<Self> {
        Some(match verb {
            // Programs ask these until they are refused.
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

impl Journal {
    /// The queue pair of a batch goes that was neither completed nor aborted.
    pub(crate) fn unposted(&mut self, batch: &Unposted) {
        self.note(batch.clone(), batch.begun_at);
    }
}
