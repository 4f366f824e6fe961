//! Ports and their GIDs.

use std::ffi::c_int;

use verbs_api::{Gid, GidEntry, LinkSpeed, PortAttr};

use crate::border::Border;

structures! {
    /// Callers pass how much of it they know; the exported `ibv_query_port` writes
    /// [`OLD_PORT_ATTR`] bytes.
    ibv_port_attr [56] (grows) {
        state: u32,
        max_mtu: u32,
        active_mtu: u32,
        gid_tbl_len: c_int,
        port_cap_flags: u32,
        max_msg_sz: u32,
        bad_pkey_cntr: u32,
        qkey_viol_cntr: u32,
        pkey_tbl_len: u16,
        lid: u16,
        sm_lid: u16,
        lmc: u8,
        max_vl_num: u8,
        sm_sl: u8,
        subnet_timeout: u8,
        init_type_reply: u8,
        active_width: u8,
        active_speed: u8,
        phys_state: u8,
        link_layer: u8,
        flags: u8,
        port_cap_flags2: u16,
        active_speed_ex = (active_speed_ex): u32,
    }

    /// In wire order. C aligns it for its 64-bit members.
    #[repr(align(8))]
    ibv_gid [16] { raw: [u8; 16] }

    ibv_gid_entry [32] {
        gid: ibv_gid,
        gid_index: u32,
        port_num: u32,
        gid_type: u32,
        ndev_ifindex: u32,
    }
}

/// Bytes of the port attributes that the oldest programs know.
pub const OLD_PORT_ATTR: usize = 48;

constants! {
    flags ibv_port_cap_flags: u32 { IBV_PORT_IP_BASED_GIDS = 1 << 26 }
    macros ibv_qpf: u8 { IBV_QPF_GRH_REQUIRED = 1 << 0 }
}

conversions! {
    ibv_port_attr, PortAttr {
        state, max_mtu, active_mtu, gid_tbl_len, pkey_tbl_len, max_msg_sz, lid, sm_lid, lmc,
        active_width, link_layer, bad_pkey_cntr, qkey_viol_cntr,
    }
    => from |raw| {
        grh_required: raw.flags & IBV_QPF_GRH_REQUIRED != 0,
        active_speed: speed_from_c(raw),
    }
    to |attr| {
        flags: u8::from(attr.grh_required) * IBV_QPF_GRH_REQUIRED,
        active_speed: u8::try_from(u32::from(attr.active_speed)).unwrap_or(0),
        active_speed_ex: match u32::from(attr.active_speed) {
            0..=255 => 0,
            later => later,
        },
    }

    ibv_gid_entry, GidEntry { gid, gid_index, port_num, gid_type, ndev_ifindex, }
}

/// Speeds that came later have a field of their own, which is 0 where the old one says all.
fn speed_from_c(raw: &ibv_port_attr) -> LinkSpeed {
    match raw.active_speed_ex {
        0 => u32::from(raw.active_speed).into(),
        later => later.into(),
    }
}

impl Border<Gid> for ibv_gid {
    fn from_c(raw: &Self) -> Gid {
        Gid(raw.raw)
    }

    fn to_c(gid: &Gid) -> Self {
        Self { raw: gid.0 }
    }
}
