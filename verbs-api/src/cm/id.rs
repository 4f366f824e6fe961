//! What an id is and has.

use core::net::SocketAddr;

use crate::c_enum::c_enum;
use crate::device::Gid;
use crate::handle::{CmChannel, Context, Pd, Qp};

c_enum! {
    /// What the port of an id is one of (`enum rdma_port_space`).
    PortSpace {
        /// Multicast of IP over InfiniBand.
        Ipoib = 0x0002, "IPOIB";
        /// Connections.
        Tcp = 0x0106, "TCP";
        /// Datagrams.
        Udp = 0x0111, "UDP";
        /// Addresses of InfiniBand.
        Ib = 0x013f, "IB";
    }
}

impl PortSpace {
    /// Whether its ids have datagrams, not connections.
    pub const fn is_datagram(self) -> bool {
        matches!(self, Self::Udp | Self::Ipoib)
    }
}

/// The fields of `struct rdma_cm_id` that a program reads. The default, for backends to fill in, is
/// that of nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CmIdAttr {
    /// Where its events go.
    pub channel: CmChannel,
    /// The caller's own value.
    pub context: u64,
    /// Of which kind its port is.
    pub ps: PortSpace,
    /// The device, once it is bound to one.
    pub verbs: Option<Context>,
    /// A protection domain of that device, shared by all its ids.
    pub pd: Option<Pd>,
    /// The port of the device, from 1; 0 as long as there is none.
    pub port_num: u8,
    /// The QP that was made for it.
    pub qp: Option<Qp>,
    /// The local address, once it is bound.
    pub local_addr: Option<SocketAddr>,
    /// The address of the peer, once there is one.
    pub peer_addr: Option<SocketAddr>,
    /// The own GID, once it is bound to a device.
    pub sgid: Gid,
    /// The GID of the peer, once there is one.
    pub dgid: Gid,
    /// The P_Key of the path.
    pub pkey: u16,
    /// Paths to the peer: 1 once the route is resolved.
    pub num_paths: u32,
}

/// An option of an id (`rdma_set_option`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CmOption {
    /// The type of service of its packets (`RDMA_OPTION_ID_TOS`).
    Tos(u8),
    /// Its port may be that of another id that says the same (`RDMA_OPTION_ID_REUSEADDR`).
    ReuseAddr(bool),
    /// Bound to the unspecified address of IPv6, it does not take requests of IPv4
    /// (`RDMA_OPTION_ID_AFONLY`).
    AfOnly(bool),
    /// The code of the QP's time-out, 0 to 31 (`RDMA_OPTION_ID_ACK_TIMEOUT`, TMR-02).
    AckTimeout(u8),
}
