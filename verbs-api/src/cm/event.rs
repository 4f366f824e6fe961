//! Events of rdma_cm.

use core::fmt;

use crate::ah::AhAttr;
use crate::c_enum::c_enum;
use crate::handle::CmId;

c_enum! {
    /// Kind of an event (`enum rdma_cm_event_type`).
    CmEventType {
        /// The address is resolved.
        AddrResolved = 0, "ADDR_RESOLVED";
        /// It is not.
        AddrError = 1, "ADDR_ERROR";
        /// The route is resolved.
        RouteResolved = 2, "ROUTE_RESOLVED";
        /// It is not.
        RouteError = 3, "ROUTE_ERROR";
        /// A client asks for a connection: the event has a new id.
        ConnectRequest = 4, "CONNECT_REQUEST";
        /// The server has accepted, and the id has no QP.
        ConnectResponse = 5, "CONNECT_RESPONSE";
        /// Something went wrong while connecting.
        ConnectError = 6, "CONNECT_ERROR";
        /// The peer does not answer.
        Unreachable = 7, "UNREACHABLE";
        /// The peer refused.
        Rejected = 8, "REJECTED";
        /// The connection is established, or the QP for datagrams is known.
        Established = 9, "ESTABLISHED";
        /// The connection has ended.
        Disconnected = 10, "DISCONNECTED";
        /// The device is gone.
        DeviceRemoval = 11, "DEVICE_REMOVAL";
        /// The group is joined.
        MulticastJoin = 12, "MULTICAST_JOIN";
        /// It is not.
        MulticastError = 13, "MULTICAST_ERROR";
        /// The address of the device's interface has changed.
        AddrChange = 14, "ADDR_CHANGE";
        /// Nothing of an ended connection is under way any more.
        TimewaitExit = 15, "TIMEWAIT_EXIT";
        /// Names and services are resolved (`rdma_resolve_addrinfo`).
        AddrinfoResolved = 16, "ADDRINFO_RESOLVED";
        /// They are not.
        AddrinfoError = 17, "ADDRINFO_ERROR";
        /// The program has written the event itself ([`Cm::write_event`](super::Cm::write_event)).
        User = 18, "USER";
    }
}

/// An event (`struct rdma_cm_event`), to be acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CmEvent {
    /// The id it is about.
    pub id: CmId,
    /// The listener that a request came to.
    pub listen_id: Option<CmId>,
    /// What happened.
    pub event: CmEventType,
    /// 0, a negative errno value, or the reason of a refusal.
    pub status: i32,
    /// Further parameters of the event.
    pub param: CmParam,
    /// How the backend tells it from others.
    pub token: u64,
}

impl CmEvent {
    /// An event without parameters, for backends.
    pub const fn new(id: CmId, event: CmEventType, token: u64) -> Self {
        Self {
            id,
            listen_id: None,
            event,
            status: 0,
            param: CmParam::None,
            token,
        }
    }

    /// The program's own bytes of the peer ([`CmParam::private_data`]).
    pub fn private_data(&self) -> &[u8] {
        self.param.private_data()
    }
}

impl fmt::Display for CmEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.event, self.id)?;
        if let Some(listener) = self.listen_id {
            write!(f, " of {listener}")?;
        }
        if self.status != 0 {
            write!(f, " status {}", self.status)?;
        }
        Ok(())
    }
}

/// What an event tells besides (the union `param`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CmParam {
    /// Nothing.
    #[default]
    None,
    /// About a connection.
    Conn(ConnData),
    /// About datagrams.
    Ud(UdData),
    /// The program's own value, in an event that it has written
    /// ([`Cm::write_event`](super::Cm::write_event)).
    Arg(u64),
}

impl CmParam {
    /// The program's own bytes of the peer, padded where the transport pads them; none if there are
    /// none.
    pub fn private_data(&self) -> &[u8] {
        match self {
            Self::None | Self::Arg(_) => &[],
            Self::Conn(data) => &data.private_data,
            Self::Ud(data) => &data.private_data,
        }
    }
}

/// What the peer says of a connection (`struct rdma_conn_param`). The default, for backends to fill
/// in, is all zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnData {
    /// The peer's own bytes.
    pub private_data: Vec<u8>,
    /// What to have here: the peer's initiator depth (CM-61).
    pub responder_resources: u8,
    /// What may be under way from here: the peer's responder resources (CM-61).
    pub initiator_depth: u8,
    /// The peer's hardware has flow control.
    pub flow_control: u8,
    /// Retries that the client asks for.
    pub retry_count: u8,
    /// Retries for a receiver that is not ready, that the peer asks for.
    pub rnr_retry_count: u8,
    /// The peer's QP has an SRQ.
    pub srq: u8,
    /// The number of the peer's QP.
    pub qp_num: u32,
}

/// Where datagrams go (`struct rdma_ud_param`). The default, for backends to fill in, is all zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UdData {
    /// The peer's own bytes.
    pub private_data: Vec<u8>,
    /// The value given to [`Cm::join_multicast`](super::Cm::join_multicast), which C has instead of
    /// private data.
    pub context: u64,
    /// What to make an address handle of.
    pub ah_attr: AhAttr,
    /// The number of the QP.
    pub qp_num: u32,
    /// Its Q_Key.
    pub qkey: u32,
}
