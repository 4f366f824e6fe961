//! What a connection is asked for with.

/// As many resources as the device has.
pub const RDMA_MAX_RESP_RES: u8 = 0xff;

/// As many requests as the device can have under way.
pub const RDMA_MAX_INIT_DEPTH: u8 = 0xff;

/// The Q_Key of datagrams that are addressed by rdma_cm.
pub const RDMA_UDP_QKEY: u32 = 0x0123_4567;

/// Bytes of private data that a message of rdma_cm has room for. A message has no length, so its
/// receiver sees all of them, the rest zero (CM-60); iWARP passes on just what was sent.
pub mod private_data {
    /// A request for a connection ([`PortSpace::Tcp`](crate::cm::PortSpace::Tcp)).
    pub const REQ: usize = 56;
    /// The answer to it.
    pub const REP: usize = 196;
    /// A refusal.
    pub const REJ: usize = 148;
    /// A request for a QP of datagrams ([`PortSpace::Udp`](crate::cm::PortSpace::Udp)).
    pub const SIDR_REQ: usize = 180;
    /// The answer to it.
    pub const SIDR_REP: usize = 136;
}

/// What `rdma_connect` and `rdma_accept` take (`struct rdma_conn_param`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnParam<'a> {
    /// The program's own bytes for the peer ([`private_data`]).
    pub private_data: &'a [u8],
    /// RDMA reads and atomics of the peer that may be under way here; [`RDMA_MAX_RESP_RES`].
    pub responder_resources: u8,
    /// RDMA reads and atomics that may be under way from here; [`RDMA_MAX_INIT_DEPTH`].
    pub initiator_depth: u8,
    /// The peer's hardware has flow control. Without meaning today.
    pub flow_control: u8,
    /// Retries of an unacknowledged request, 0 to 7 (TMR-01). Only a client sets it; a server uses
    /// the value of its client.
    pub retry_count: u8,
    /// Retries for a peer without a receive, 0 to 7 (TMR-04).
    pub rnr_retry_count: u8,
    /// The QP has an SRQ. Ignored if the id has a QP.
    pub srq: u8,
    /// The number of the QP. Ignored if the id has one.
    pub qp_num: u32,
}

impl<'a> ConnParam<'a> {
    /// With one read under way in each direction, 7 retries of each kind, and no private data.
    pub const fn new() -> Self {
        Self {
            private_data: &[],
            responder_resources: 1,
            initiator_depth: 1,
            flow_control: 0,
            retry_count: 7,
            rnr_retry_count: 7,
            srq: 0,
            qp_num: 0,
        }
    }

    /// With private data.
    #[must_use]
    pub const fn private_data(self, private_data: &'a [u8]) -> Self {
        Self {
            private_data,
            ..self
        }
    }
}
