//! Address handles and address vectors.

use crate::device::Gid;

/// An address vector (`struct ibv_ah_attr`), for address handles and connected QPs.
///
/// Write it with [`global`](Self::global), or with `..AhAttr::default()`, which is all zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AhAttr {
    /// Global route; required on RoCE (QP-STATE-29, AH-01).
    pub grh: Option<GlobalRoute>,
    /// Destination LID; 0 on Ethernet.
    pub dlid: u16,
    /// Service level, 0 to 15.
    pub sl: u8,
    /// Source path bits.
    pub src_path_bits: u8,
    /// Local port, from 1.
    pub port_num: u8,
}

impl AhAttr {
    /// To `dgid` through port `port_num`, from its GID `sgid_index`; hop limit 64, the rest 0.
    pub const fn global(port_num: u8, sgid_index: u8, dgid: Gid) -> Self {
        let grh = GlobalRoute {
            dgid,
            flow_label: 0,
            sgid_index,
            hop_limit: 64,
            traffic_class: 0,
        };
        Self {
            grh: Some(grh),
            dlid: 0,
            sl: 0,
            src_path_bits: 0,
            port_num,
        }
    }
}

/// A global route (`struct ibv_global_route`).
///
/// The receiver of a datagram finds these values in the header in front of it ([`Grh`](crate::Grh),
/// UD-20). A connected queue pair keeps them for queries; its peer does not see them. The default
/// is all zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GlobalRoute {
    /// Destination GID.
    pub dgid: Gid,
    /// Flow label: the lower 20 bits. IPv4 has none.
    pub flow_label: u32,
    /// Index of the source GID in the port's table.
    pub sgid_index: u8,
    /// Hop limit, or time to live of IPv4. Devices whose packets take the system's routes, such as
    /// soft-RoCE, use the route's.
    pub hop_limit: u8,
    /// Traffic class, or type of service of IPv4.
    pub traffic_class: u8,
}
