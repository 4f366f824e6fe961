//! What devices say of themselves.

use std::ffi::{c_char, c_int, c_uint};

use verbs_api::{CqModeration, DeviceAttr, DeviceAttrEx, OdpCaps, OdpGeneral, OdpOps, TsoCaps};

structures! {
    ibv_device_attr [232] {
        fw_ver: [c_char; 64],
        node_guid: u64,
        sys_image_guid: u64,
        max_mr_size: u64,
        page_size_cap: u64,
        vendor_id: u32,
        vendor_part_id: u32,
        hw_ver: u32,
        max_qp: c_int,
        max_qp_wr: c_int,
        device_cap_flags: c_uint,
        max_sge: c_int,
        max_sge_rd: c_int,
        max_cq: c_int,
        max_cqe: c_int,
        max_mr: c_int,
        max_pd: c_int,
        max_qp_rd_atom: c_int,
        max_ee_rd_atom: c_int,
        max_res_rd_atom: c_int,
        max_qp_init_rd_atom: c_int,
        max_ee_init_rd_atom: c_int,
        atomic_cap: u32,
        max_ee: c_int,
        max_rdd: c_int,
        max_mw: c_int,
        max_raw_ipv6_qp: c_int,
        max_raw_ethy_qp: c_int,
        max_mcast_grp: c_int,
        max_mcast_qp_attach: c_int,
        max_total_mcast_qp_attach: c_int,
        max_ah: c_int,
        max_fmr: c_int,
        max_map_per_fmr: c_int,
        max_srq: c_int,
        max_srq_wr: c_int,
        max_srq_sge: c_int,
        max_pkeys: u16,
        local_ca_ack_delay: u8,
        phys_port_cnt: u8,
    }

    ibv_tso_caps { max_tso: u32, supported_qpts: u32 }
    ibv_cq_moderation_caps { max_cq_count: u16, max_cq_period: u16 }

    /// The operations of RC, UC and UD.
    ibv_odp_caps [24] { general_caps: u64, per_transport_caps: [u32; 3] }

    ibv_device_attr_ex [400] {
        orig_attr: ibv_device_attr,
        comp_mask: u32,
        odp_caps: ibv_odp_caps,
        completion_timestamp_mask: u64,
        hca_core_clock: u64,
        device_cap_flags_ex: u64,
        tso_caps: ibv_tso_caps,
        rss_to_tm_caps = rss_caps: [u64; 9],
        cq_mod_caps: ibv_cq_moderation_caps,
        max_dm_size: u64,
        pci_atomic_caps: [u16; 3],
        xrc_odp_caps: u32,
        phys_port_cnt_ex: u32,
    }

    /// The time as its two numbers.
    ibv_values_ex { comp_mask: u32, raw_clock: [i64; 2] }
}

/// Bits of `device_cap_flags_ex`, for which only the kernel has names
/// (`IB_UVERBS_DEVICE_FLUSH_GLOBAL` and so on, MPE-03).
const FLUSH_GLOBAL: u64 = 1 << 38;
const FLUSH_PERSISTENT: u64 = 1 << 39;
const ATOMIC_WRITE: u64 = 1 << 40;

constants! {
    flags ibv_device_cap_flags: u32 {
        IBV_DEVICE_AUTO_PATH_MIG = 1 << 4,
        IBV_DEVICE_SRQ_RESIZE = 1 << 13,
        IBV_DEVICE_MEM_WINDOW = 1 << 17,
        IBV_DEVICE_XRC = 1 << 20,
        IBV_DEVICE_MEM_WINDOW_TYPE_2B = 1 << 24,
    }
    flags ibv_values_mask: u32 { IBV_VALUES_MASK_RAW_CLOCK = 1 << 0 }
}

conversions! {
    ibv_device_attr, DeviceAttr {
        fw_ver, vendor_id, vendor_part_id, hw_ver, max_mr_size, max_qp, max_qp_wr, max_sge, max_cq, max_cqe,
        max_mr, max_pd, max_mw, max_ah, max_srq, max_srq_wr, max_srq_sge, max_qp_rd_atom, max_qp_init_rd_atom, atomic_cap, max_mcast_grp,
        max_mcast_qp_attach, phys_port_cnt,
    }
    => from |raw| {
        node_guid: u64::from_be(raw.node_guid),
        xrc: raw.device_cap_flags & IBV_DEVICE_XRC != 0,
        mem_window: raw.device_cap_flags & IBV_DEVICE_MEM_WINDOW != 0,
        mem_window_type_2b: raw.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B != 0,
        // These C says elsewhere, or not at all: a QP that asks for too much is refused.
        num_comp_vectors: 0,
        max_inline_data: 0,
    }
    to |attr| {
        node_guid: attr.node_guid.to_be(),
        sys_image_guid: attr.node_guid.to_be(),
        device_cap_flags: [
            (attr.xrc, IBV_DEVICE_XRC),
            (attr.mem_window, IBV_DEVICE_MEM_WINDOW),
            (attr.mem_window_type_2b, IBV_DEVICE_MEM_WINDOW_TYPE_2B),
        ]
        .into_iter()
        .fold(0, |flags, (has, flag)| flags | if has { flag } else { 0 }),
    }

    ibv_tso_caps, TsoCaps { max_tso, supported_qpts, }
    ibv_cq_moderation_caps, CqModeration { max_cq_count: cq_count, max_cq_period: cq_period, }

    ibv_device_attr_ex, DeviceAttrEx {
        orig_attr, completion_timestamp_mask, hca_core_clock, tso_caps, cq_mod_caps: cq_moderation,
        max_dm_size,
    }
    => from |raw| {
        flush_global: raw.device_cap_flags_ex & FLUSH_GLOBAL != 0,
        flush_persistent: raw.device_cap_flags_ex & FLUSH_PERSISTENT != 0,
        atomic_write: raw.device_cap_flags_ex & ATOMIC_WRITE != 0,
        odp: odp_from_c(raw),
    }
    to |attr| {
        odp_caps: odp_to_c(&attr.odp),
        xrc_odp_caps: attr.odp.xrc.bits(),
        device_cap_flags_ex: [
            (attr.flush_global, FLUSH_GLOBAL),
            (attr.flush_persistent, FLUSH_PERSISTENT),
            (attr.atomic_write, ATOMIC_WRITE),
        ]
        .into_iter()
        .fold(0, |flags, (has, flag)| flags | if has { flag } else { 0 }),
    }
}

/// C has the operations of XRC elsewhere, because they came later.
fn odp_from_c(raw: &ibv_device_attr_ex) -> OdpCaps {
    let [rc, uc, ud] = raw
        .odp_caps
        .per_transport_caps
        .map(OdpOps::from_bits_retain);
    let mut odp = OdpCaps::default();
    odp.general = OdpGeneral::from_bits_retain(raw.odp_caps.general_caps);
    (odp.rc, odp.uc, odp.ud) = (rc, uc, ud);
    odp.xrc = OdpOps::from_bits_retain(raw.xrc_odp_caps);
    odp
}

fn odp_to_c(odp: &OdpCaps) -> ibv_odp_caps {
    ibv_odp_caps {
        general_caps: odp.general.bits(),
        per_transport_caps: [odp.rc, odp.uc, odp.ud].map(|ops| ops.bits()),
    }
}
