//! The threads that wait in verbs, and the condition of each wait.

use core::fmt;

use verbs_api::site::Site;
use verbs_api::{CmChannel, CmId, CompChannel, Context, Cq, Element};

use crate::time::Time;

/// The condition that a wait ends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// An event on a channel.
    Event(CompChannel),
    /// An edge of a channel's descriptor: an event after those already seen.
    Edge(CompChannel),
    /// An asynchronous event.
    AsyncEvent(Context),
    /// An event of rdma_cm.
    CmEvent(CmChannel),
    /// The acknowledgement of events about an object.
    Acknowledgement(Element),
    /// The acknowledgement of events of rdma_cm.
    CmAcknowledgement(CmId),
    /// The end of a batch on a queue pair with this number, which another thread began at this
    /// site.
    Batch { qp_num: u32, begun_at: Option<Site> },
    /// The end of another thread's iteration over a CQ.
    Iteration(Cq),
}

impl WaitFor {
    /// Whether only another thread of the program can end the wait.
    pub(crate) fn needs_other_thread(self) -> bool {
        matches!(self, Self::Acknowledgement(_) | Self::CmAcknowledgement(_))
    }
}

/// A thread that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// The call that waits.
    pub(crate) call: &'static str,
    pub(crate) wait_for: WaitFor,
    /// The index of the node, or the number of nodes for the connection manager.
    pub(crate) place: u32,
    pub(crate) since: Time,
    pub(crate) site: Option<Site>,
}

impl fmt::Display for WaitFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(channel) => write!(f, "an event on {channel}"),
            Self::Edge(channel) => write!(f, "an edge of {channel}"),
            Self::AsyncEvent(context) => write!(f, "an asynchronous event of {context}"),
            Self::CmEvent(channel) => write!(f, "an event on {channel}"),
            Self::Acknowledgement(_) | Self::CmAcknowledgement(_) => {
                f.write_str("events to be acknowledged")
            }
            Self::Batch { qp_num, .. } => write!(f, "the end of a batch on qp {qp_num:#x}"),
            Self::Iteration(cq) => write!(f, "the end of an iteration over {cq}"),
        }
    }
}
