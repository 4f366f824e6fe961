//! A connection, or a request for datagrams: its phase and its negotiated parameters.

use verbs_roce::mad::{CmMad, CmMessage};

use super::host::{Local, Peer};

/// A connection.
#[derive(Clone, Debug)]
pub(super) struct Conn {
    pub(super) phase: Phase,
    /// The local communication id, or the id of a request for datagrams; `theirs` is that of the
    /// other side.
    pub(super) ours: u32,
    pub(super) theirs: u32,
    pub(super) transaction: u64,
    pub(super) from: Local,
    pub(super) to: Peer,
    pub(super) service_id: u64,
    /// The local queue pair.
    pub(super) qpn: u32,
    /// The remote queue pair.
    pub(super) remote_qpn: u32,
    /// The first sequence number of requests of the other side, chosen here.
    pub(super) rq_psn: u32,
    /// The first sequence number of requests of this side, chosen there.
    pub(super) sq_psn: u32,
    pub(super) responder_resources: u8,
    pub(super) initiator_depth: u8,
    pub(super) retry_count: u8,
    pub(super) rnr_retry_count: u8,
    /// Code of the path MTU.
    pub(super) path_mtu: u8,
    /// Code of the queue pair's timeout.
    pub(super) ack_timeout: u8,
    /// The message that is repeated until it is answered.
    pub(super) waiting: Option<Waiting>,
}

/// A message that waits for its answer.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) mad: CmMad,
    /// The number of retries left.
    pub(super) retries_left: u8,
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No messages yet, or no further messages.
    Idle,
    ReqSent,
    ReqReceived,
    RepSent,
    RepReceived,
    Established,
    DreqSent,
    DreqReceived,
    /// No further messages, but packets may be in flight.
    Timewait,
    SidrReqSent,
    SidrReqReceived,
}

impl Conn {
    /// A connection of which only the ends are known.
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

    /// A message of the connection.
    pub(super) fn mad(&self, message: CmMessage) -> CmMad {
        CmMad {
            transaction: self.transaction,
            message,
        }
    }
}
