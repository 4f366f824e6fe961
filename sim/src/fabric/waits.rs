//! The threads that wait in verbs, and the condition of each wait.

use verbs_api::site::Site;
use verbs_api::{CmChannel, CmId, CompChannel, Context, Cq, Element};

use crate::displayed::displayed;
use crate::time::Time;

displayed! {
    /// The condition that a wait ends on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum WaitFor {
        /// An event on a channel.
        Event(channel: CompChannel) = "an event on {channel}";
        /// An edge of a channel's descriptor: an event after those already seen.
        Edge(channel: CompChannel) = "an edge of {channel}";
        /// An asynchronous event.
        AsyncEvent(context: Context) = "an asynchronous event";
        /// An event of rdma_cm.
        CmEvent(channel: CmChannel) = "an event on {channel}";
        /// The acknowledgement of events about an object.
        Acknowledgement(element: Element) = "events to be acknowledged";
        /// The acknowledgement of events of rdma_cm.
        CmAcknowledgement(id: CmId) = "events to be acknowledged";
        /// The end of a batch on a queue pair with this number, which another thread began at this
        /// site.
        Batch { qp_num: u32, begun_at: Option<Site> } = "the end of a batch on qp {qp_num:#x}";
        /// The end of another thread's iteration over a CQ.
        Iteration(cq: Cq) = "the end of an iteration over {cq}";
    }
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
    /// Whether it is known to be the program's main thread. Other threads may wait for events that
    /// need not come.
    pub(crate) is_main: bool,
}
