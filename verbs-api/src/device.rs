//! Devices, ports and their tables.

use core::fmt;

use crate::c_enum::c_enum;
use crate::cq_ex::CqModeration;
use crate::odp::OdpCaps;
use crate::shown::debug_is_display;

/// One entry of the device list (`ibv_get_device_list`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The name `open_device` takes, such as `mlx5_0`, `rxe0` or `sim0`.
    pub name: String,
    /// The driver behind it, such as `mlx5`, `rxe` or `sim`.
    pub driver: String,
    /// The transport.
    pub transport: Transport,
}

impl DeviceInfo {
    /// An entry, for backends.
    pub fn new(name: impl Into<String>, driver: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            driver: driver.into(),
            transport,
        }
    }
}

/// The transport of a device (`enum ibv_transport_type`, narrowed).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// InfiniBand or RoCE: queue pairs are connected by their attributes.
    Ib,
    /// iWARP: queue pairs are connected by rdma_cm.
    Iwarp,
}

/// Limits and identity of a device (`struct ibv_device_attr`). Counts, unless it says otherwise.
/// The default, for backends to fill in, is all zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceAttr {
    /// Version of the firmware, or of the software that stands for it.
    pub fw_ver: String,
    /// GUID of the node.
    pub node_guid: u64,
    /// The vendor, by its number of the IEEE.
    pub vendor_id: u32,
    /// The vendor's number of the part.
    pub vendor_part_id: u32,
    /// Version of the hardware, as the vendor counts.
    pub hw_ver: u32,
    /// Longest memory region, in bytes.
    pub max_mr_size: u64,
    /// Queue pairs.
    pub max_qp: u32,
    /// Work requests of one queue of a QP.
    pub max_qp_wr: u32,
    /// Scatter/gather entries of one work request.
    pub max_sge: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Entries of one CQ.
    pub max_cqe: u32,
    /// Memory regions.
    pub max_mr: u32,
    /// Protection domains.
    pub max_pd: u32,
    /// Memory windows.
    pub max_mw: u32,
    /// Address handles.
    pub max_ah: u32,
    /// Shared receive queues; 0 if the device has none.
    pub max_srq: u32,
    /// Work requests of one SRQ.
    pub max_srq_wr: u32,
    /// Scatter/gather entries of one work request of an SRQ.
    pub max_srq_sge: u32,
    /// RDMA Reads and atomics that one QP answers at a time.
    pub max_qp_rd_atom: u8,
    /// RDMA Reads and atomics that one QP has outstanding at a time.
    pub max_qp_init_rd_atom: u8,
    /// Memory windows of type 1 (`IBV_DEVICE_MEM_WINDOW`, MW-26).
    pub mem_window: bool,
    /// Memory windows of type 2B (`IBV_DEVICE_MEM_WINDOW_TYPE_2B`, MW-26).
    pub mem_window_type_2b: bool,
    /// Extended reliable connections (`IBV_DEVICE_XRC`, XRC-07).
    pub xrc: bool,
    /// The scope of atomics.
    pub atomic_cap: AtomicCap,
    /// Bytes of inline data of one work request.
    pub max_inline_data: u32,
    /// Multicast groups with a queue pair attached.
    pub max_mcast_grp: u32,
    /// Queue pairs attached to one multicast group.
    pub max_mcast_qp_attach: u32,
    /// Completion vectors (`context->num_comp_vectors`), at least 1.
    pub num_comp_vectors: u32,
    /// Ports, numbered from 1.
    pub phys_port_cnt: u8,
}

/// Attributes of newer devices (`struct ibv_device_attr_ex`). What a device does not report is
/// zero, as in the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceAttrEx {
    /// The result of [`Verbs::query_device`](crate::Verbs::query_device).
    pub orig_attr: DeviceAttr,
    /// The valid bits of a completion's timestamp; 0 if the device gives none.
    pub completion_timestamp_mask: u64,
    /// Ticks of the device's clock, in kHz.
    pub hca_core_clock: u64,
    /// The greatest values that moderation accepts; 0 without
    /// [`Capabilities::CQ_MODERATION`](crate::Capabilities::CQ_MODERATION).
    pub cq_moderation: CqModeration,
    /// Segmented sends.
    pub tso_caps: TsoCaps,
    /// Flushes that make data visible (`IB_DEVICE_FLUSH_GLOBAL` of Linux, MPE-03).
    pub flush_global: bool,
    /// Flushes that make data persistent (`IB_DEVICE_FLUSH_PERSISTENT` of Linux, MPE-03).
    pub flush_persistent: bool,
    /// Atomic writes (`IB_DEVICE_ATOMIC_WRITE` of Linux, MPE-03).
    pub atomic_write: bool,
    /// On-demand paging.
    pub odp: OdpCaps,
    /// The bytes of device memory that all contexts share; 0 without
    /// [`Capabilities::DEVICE_MEMORY`](crate::Capabilities::DEVICE_MEMORY).
    pub max_dm_size: u64,
}

/// Values of a device that change all the time (`struct ibv_values_ex`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RtValues {
    /// The device's clock, in ticks of [`hca_core_clock`](DeviceAttrEx::hca_core_clock). It is that
    /// of [`WcEx::completion_ts`](crate::WcEx::completion_ts).
    pub raw_clock: u64,
}

impl RtValues {
    /// The values, for backends.
    pub const fn new(raw_clock: u64) -> Self {
        Self { raw_clock }
    }
}

/// Segmented sends of a device (`struct ibv_tso_caps`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TsoCaps {
    /// The longest one, in bytes; 0 if the device has none.
    pub max_tso: u32,
    /// The transports that have them: bit n for [`QpType`](crate::QpType) n.
    pub supported_qpts: u32,
}

/// An entry of a GID table (`struct ibv_gid_entry`). The default is a value to fill a buffer for
/// `query_gid_table` with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GidEntry {
    /// The GID.
    pub gid: Gid,
    /// The index in the table.
    pub gid_index: u32,
    /// The port, from 1.
    pub port_num: u32,
    /// The packet format.
    pub gid_type: GidType,
    /// The index of the network interface behind it; 0 if there is none.
    pub ndev_ifindex: u32,
}

c_enum! {
    /// The format of packets to a GID (`enum ibv_gid_type`).
    GidType {
        /// InfiniBand.
        Ib = 0, "IB";
        /// RoCE over Ethernet.
        RoceV1 = 1, "ROCE_V1";
        /// RoCE over UDP.
        RoceV2 = 2, "ROCE_V2";
    }
}

c_enum! {
    /// The scope of atomics of a device (`enum ibv_atomic_cap`, ATOM-08).
    AtomicCap {
        /// No atomics (ATOM-10).
        None = 0, "NONE";
        /// Atomics through the same device.
        Hca = 1, "HCA";
        /// Also atomic with the processor and other devices.
        Glob = 2, "GLOB";
    }
}

/// State and limits of a port (`struct ibv_port_attr`). The default, for backends to fill in, is
/// all zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortAttr {
    /// Logical state; traffic needs [`PortState::Active`].
    pub state: PortState,
    /// Largest MTU the port can have.
    pub max_mtu: Mtu,
    /// The MTU it has; never above `max_mtu`.
    pub active_mtu: Mtu,
    /// Entries of the GID table.
    pub gid_tbl_len: u32,
    /// Entries of the P_Key table.
    pub pkey_tbl_len: u16,
    /// Longest message, in bytes.
    pub max_msg_sz: u32,
    /// Local identifier; 0 on Ethernet.
    pub lid: u16,
    /// The LID of the subnet manager; 0 on Ethernet.
    pub sm_lid: u16,
    /// The number of low bits of LIDs that are path bits: packets with any of them come to the port
    /// (LID-02).
    pub lmc: u8,
    /// Lanes of the link.
    pub active_width: LinkWidth,
    /// Speed of each lane.
    pub active_speed: LinkSpeed,
    /// Link layer.
    pub link_layer: LinkLayer,
    /// Address vectors must have a GRH (RoCE).
    pub grh_required: bool,
    /// P_Key violations seen.
    pub bad_pkey_cntr: u32,
    /// Q_Key violations seen.
    pub qkey_viol_cntr: u32,
}

c_enum! {
    /// Logical state of a port (`enum ibv_port_state`).
    PortState {
        /// No change of state.
        Nop = 0, "NOP";
        /// No link.
        Down = 1, "DOWN";
        /// Link, not configured.
        Init = 2, "INIT";
        /// Configured, not yet active.
        Armed = 3, "ARMED";
        /// Carries traffic.
        Active = 4, "ACTIVE";
        /// Link lost for a moment.
        ActiveDefer = 5, "ACTIVE_DEFER";
    }
}

c_enum! {
    /// Link layer of a port (`IBV_LINK_LAYER_*`).
    LinkLayer {
        /// Not reported by the driver.
        Unspecified = 0, "UNSPECIFIED";
        /// InfiniBand.
        InfiniBand = 1, "INFINIBAND";
        /// Ethernet: RoCE or iWARP.
        Ethernet = 2, "ETHERNET";
    }
}

c_enum! {
    /// The number of lanes of a link (`active_width` of `struct ibv_port_attr`).
    LinkWidth {
        /// One.
        X1 = 1, "1X";
        /// Four.
        X4 = 2, "4X";
        /// Eight.
        X8 = 4, "8X";
        /// Twelve.
        X12 = 8, "12X";
        /// Two.
        X2 = 16, "2X";
    }
}

c_enum! {
    /// The speed of a lane (`active_speed` of `struct ibv_port_attr`).
    LinkSpeed {
        /// 2.5 Gbit/s.
        Sdr = 1, "SDR";
        /// 5 Gbit/s.
        Ddr = 2, "DDR";
        /// 10 Gbit/s.
        Qdr = 4, "QDR";
        /// 10 Gbit/s.
        Fdr10 = 8, "FDR10";
        /// 14 Gbit/s.
        Fdr = 16, "FDR";
        /// 25 Gbit/s.
        Edr = 32, "EDR";
        /// 50 Gbit/s.
        Hdr = 64, "HDR";
        /// 100 Gbit/s.
        Ndr = 128, "NDR";
        /// 200 Gbit/s.
        Xdr = 256, "XDR";
    }
}

c_enum! {
    /// Maximum transfer unit: payload bytes of one packet (`enum ibv_mtu`).
    Mtu {
        /// 256 bytes.
        Mtu256 = 1, "256";
        /// 512 bytes.
        Mtu512 = 2, "512";
        /// 1024 bytes.
        Mtu1024 = 3, "1024";
        /// 2048 bytes.
        Mtu2048 = 4, "2048";
        /// 4096 bytes.
        Mtu4096 = 5, "4096";
    }
}

impl Mtu {
    /// The MTU in bytes; `None` for a number that names no MTU.
    pub const fn bytes(self) -> Option<u32> {
        match self {
            Self::Mtu256 => Some(256),
            Self::Mtu512 => Some(512),
            Self::Mtu1024 => Some(1024),
            Self::Mtu2048 => Some(2048),
            Self::Mtu4096 => Some(4096),
            Self::Unknown(_) => None,
        }
    }
}

/// A global identifier in wire order (`union ibv_gid`).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// Whether it names a multicast group: its first byte is 0xff, or it maps an IPv4 address of
    /// one (MCAST-02).
    pub fn is_multicast(&self) -> bool {
        let address = core::net::Ipv6Addr::from(self.0);
        address.is_multicast() || self.ipv4().is_some_and(|address| address.is_multicast())
    }

    /// Whether it is an address of IPv6 that holds on one link alone (`fe80::/10`).
    pub fn is_link_local(&self) -> bool {
        core::net::Ipv6Addr::from(self.0).is_unicast_link_local()
    }

    /// The IPv4 address that it maps, as GIDs of RoCE version 2 over IPv4 do.
    pub fn ipv4(&self) -> Option<core::net::Ipv4Addr> {
        core::net::Ipv6Addr::from(self.0).to_ipv4_mapped()
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        core::net::Ipv6Addr::from(self.0).fmt(f)
    }
}

debug_is_display!(Gid);
