//! What a device reports and no call depends on.

use crate::{LinkSpeed, LinkWidth};

/// Attributes of a device and its ports that programs can read, and that decide nothing: those of
/// its [`Profile`](crate::profile::Profile).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reported {
    /// The firmware's version.
    pub fw_ver: &'static str,
    /// The vendor, as 24 bits of an OUI.
    pub vendor_id: u32,
    /// The vendor's number of the part.
    pub vendor_part_id: u32,
    /// The flags of `enum ibv_device_cap_flags` that do not follow from its capabilities.
    pub device_cap_flags: u32,
    /// The page sizes, a bit each.
    pub page_size_cap: u64,
    /// Entries of the list of an RDMA Read; `None` for those of every send.
    pub max_sge_rd: Option<u32>,
    /// RDMA Reads and atomics that it answers at a time; `None` for what all its queue pairs
    /// answer.
    pub max_res_rd_atom: Option<u32>,
    /// P_Keys, of all ports.
    pub max_pkeys: u16,
    /// The time until it acknowledges, as an exponent of 2 in units of 4.096 us.
    pub local_ca_ack_delay: u8,
    /// The flags of `struct ibv_port_attr` on Ethernet.
    pub port_cap_flags: u32,
    /// The number of virtual lanes, as in `struct ibv_port_attr`.
    pub max_vl_num: u8,
    /// Bytes of the longest message.
    pub max_msg_sz: u32,
    /// Places in the table of P_Keys of a port, at least 1.
    pub pkey_tbl_len: u16,
    /// The lanes of a port that is up.
    pub active_width: LinkWidth,
    /// The speed of each of them.
    pub active_speed: LinkSpeed,
}

impl Reported {
    /// What a device of [`Profile::SPEC`](crate::profile::Profile::SPEC) reports.
    pub const SPEC: Self = Self {
        fw_ver: env!("CARGO_PKG_VERSION"),
        // That of other software devices.
        vendor_id: 0x00ff_ffff,
        vendor_part_id: 0,
        // A wrong current state is noticed, and port events, the GUID of the image, RNR NAKs and
        // local invalidation are there.
        device_cap_flags: 0x0020_1c80,
        // Pages of 4 KiB and all larger ones.
        page_size_cap: !0xfff,
        max_sge_rd: None,
        max_res_rd_atom: None,
        max_pkeys: 4,
        local_ca_ack_delay: 15,
        // CM, and GIDs that are IP addresses.
        port_cap_flags: 0x0401_0000,
        max_vl_num: 1,
        max_msg_sz: 1 << 31,
        pkey_tbl_len: 4,
        active_width: LinkWidth::X4,
        active_speed: LinkSpeed::Edr,
    };

    /// What rxe0 reports on Linux 6.1.
    pub(crate) const RXE: Self = Self {
        fw_ver: "0.0.0",
        // Also counters of bad keys, automatic path migration, a change of the port, and the port
        // of address handles is checked; but not a wrong current state.
        device_cap_flags: 0x0020_1c76,
        page_size_cap: 0xffff_f000,
        max_res_rd_atom: Some(258_048),
        max_pkeys: 64,
        port_cap_flags: 0x0001_0000,
        max_msg_sz: 8 << 20,
        pkey_tbl_len: 1,
        active_width: LinkWidth::X1,
        active_speed: LinkSpeed::Sdr,
        ..Self::SPEC
    };

    /// What siw0 reports on Linux 6.1, except that it has no P_Key, and gives 2^32 - 1 bytes as the
    /// longest message.
    pub(crate) const SIW: Self = Self {
        fw_ver: "0.0.0",
        vendor_id: 0x0062_6d74,
        vendor_part_id: 1,
        device_cap_flags: 0x0020_0000,
        page_size_cap: 0x1000,
        max_sge_rd: Some(1),
        max_pkeys: 0,
        local_ca_ack_delay: 0,
        // CM, and management of the device.
        port_cap_flags: 0x0009_0000,
        max_vl_num: 0,
        pkey_tbl_len: 1,
        active_width: LinkWidth::X1,
        active_speed: LinkSpeed::Sdr,
        ..Self::SPEC
    };
}
