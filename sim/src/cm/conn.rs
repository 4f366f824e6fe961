//! A connection, or a request for a queue pair of datagrams: how far it is, and what both sides said.

use verbs_roce::mad::{CmMad, CmMessage};

use super::host::{Local, Peer};

/// A connection.
#[derive(Clone, Debug)]
pub(super) struct Conn {
    pub(super) phase: Phase,
    /// How this side calls it, and how the other does: local and remote communication ids, or the id of a request for
    /// datagrams.
    pub(super) ours: u32,
    pub(super) theirs: u32,
    pub(super) transaction: u64,
    pub(super) from: Local,
    pub(super) to: Peer,
    pub(super) service_id: u64,
    /// The queue pair of this side.
    pub(super) qpn: u32,
    /// The queue pair of the other side.
    pub(super) remote_qpn: u32,
    /// The sequence number that requests of the other side start with, chosen here.
    pub(super) rq_psn: u32,
    /// The sequence number that requests of this side start with, chosen there.
    pub(super) sq_psn: u32,
    pub(super) responder_resources: u8,
    pub(super) initiator_depth: u8,
    pub(super) retry_count: u8,
    pub(super) rnr_retry_count: u8,
    /// Code of the path MTU.
    pub(super) path_mtu: u8,
    /// Code of the time-out of the queue pair.
    pub(super) ack_timeout: u8,
    /// What is sent again until it is answered.
    pub(super) waiting: Option<Waiting>,
}

/// A message that waits for its answer.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) mad: CmMad,
    /// How often it is sent again at most.
    pub(super) left: u8,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing has been said, or nothing is to be said any more.
    Idle,
    ReqSent,
    ReqReceived,
    RepSent,
    RepReceived,
    Established,
    DreqSent,
    DreqReceived,
    /// Nothing is to be said any more, and packets may be under way.
    Timewait,
    SidrReqSent,
    SidrReqReceived,
}

impl Conn {
    /// A connection of which nothing is known yet but its ends.
    pub(super) fn new(ours: u32, transaction: u64, from: Local, to: Peer) -> Self {
        Self {
            phase: Phase::Idle,
            ours,
            theirs: 0,
            transaction,
            from,
            to,
            service_id: 0,
            qpn: 0,
            remote_qpn: 0,
            rq_psn: 0,
            sq_psn: 0,
            responder_resources: 0,
            initiator_depth: 0,
            retry_count: 0,
            rnr_retry_count: 0,
            path_mtu: 0,
            ack_timeout: 0,
            waiting: None,
        }
    }

    /// A message of it.
    pub(super) fn mad(&self, message: CmMessage) -> CmMad {
        CmMad {
            transaction: self.transaction,
            message,
        }
    }
}
