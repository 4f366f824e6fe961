//! Structures of the trait to and from those of C.

use verbs_api::{
    AhAttr, DeviceAttr, Gid, GlobalRoute, LinkLayer, PortAttr, QpAttr, QpCap, SendFlags, SendOp,
    SrqAttr, Wc, WcFlags,
};

use crate::sys;

pub(crate) fn device_attr(attr: &sys::ibv_device_attr, num_comp_vectors: i32) -> DeviceAttr {
    let text = attr
        .fw_ver
        .iter()
        .take_while(|c| **c != 0)
        .map(|c| *c as u8 as char);
    DeviceAttr {
        fw_ver: text.collect(),
        node_guid: u64::from_be(attr.node_guid),
        max_mr_size: attr.max_mr_size,
        max_qp: count(attr.max_qp),
        max_qp_wr: count(attr.max_qp_wr),
        max_sge: count(attr.max_sge),
        max_cq: count(attr.max_cq),
        max_cqe: count(attr.max_cqe),
        max_mr: count(attr.max_mr),
        max_pd: count(attr.max_pd),
        max_mw: count(attr.max_mw),
        max_ah: count(attr.max_ah),
        max_srq: count(attr.max_srq),
        max_srq_wr: count(attr.max_srq_wr),
        max_srq_sge: count(attr.max_srq_sge),
        max_qp_rd_atom: small(attr.max_qp_rd_atom),
        max_qp_init_rd_atom: small(attr.max_qp_init_rd_atom),
        xrc: attr.device_cap_flags & sys::DEVICE_XRC != 0,
        mem_window: attr.device_cap_flags & sys::DEVICE_MEM_WINDOW != 0,
        mem_window_type_2b: attr.device_cap_flags & sys::DEVICE_MEM_WINDOW_TYPE_2B != 0,
        atomic_cap: attr.atomic_cap.into(),
        // Not told by the device; a QP that asks for too much is refused.
        max_inline_data: 0,
        max_mcast_grp: count(attr.max_mcast_grp),
        max_mcast_qp_attach: count(attr.max_mcast_qp_attach),
        num_comp_vectors: count(num_comp_vectors),
        phys_port_cnt: attr.phys_port_cnt,
    }
}

/// A count that C keeps in a signed number.
fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

fn small(number: i32) -> u8 {
    u8::try_from(number.max(0)).unwrap_or(u8::MAX)
}

/// `IBV_QPF_GRH_REQUIRED`
const GRH_REQUIRED: u8 = 1;

pub(crate) fn port_attr(attr: &sys::ibv_port_attr) -> PortAttr {
    PortAttr {
        state: attr.state.into(),
        max_mtu: attr.max_mtu.into(),
        active_mtu: attr.active_mtu.into(),
        gid_tbl_len: count(attr.gid_tbl_len),
        pkey_tbl_len: attr.pkey_tbl_len,
        max_msg_sz: attr.max_msg_sz,
        lid: attr.lid,
        link_layer: LinkLayer::from(u32::from(attr.link_layer)),
        grh_required: attr.flags & GRH_REQUIRED != 0,
        bad_pkey_cntr: attr.bad_pkey_cntr,
        qkey_viol_cntr: attr.qkey_viol_cntr,
    }
}

pub(crate) fn ah_attr(attr: &AhAttr) -> sys::ibv_ah_attr {
    let grh = attr.grh.unwrap_or(GlobalRoute {
        dgid: Gid::default(),
        flow_label: 0,
        sgid_index: 0,
        hop_limit: 0,
        traffic_class: 0,
    });
    sys::ibv_ah_attr {
        grh: sys::ibv_global_route {
            dgid: sys::ibv_gid { raw: grh.dgid.0 },
            flow_label: grh.flow_label,
            sgid_index: grh.sgid_index,
            hop_limit: grh.hop_limit,
            traffic_class: grh.traffic_class,
        },
        dlid: attr.dlid,
        sl: attr.sl,
        src_path_bits: attr.src_path_bits,
        static_rate: 0,
        is_global: attr.grh.is_some().into(),
        port_num: attr.port_num,
    }
}

fn ah_attr_back(attr: &sys::ibv_ah_attr) -> AhAttr {
    let grh = &attr.grh;
    // SAFETY: every member of the union is plain bytes.
    let dgid = Gid(unsafe { grh.dgid.raw });
    let route = GlobalRoute {
        dgid,
        flow_label: grh.flow_label,
        sgid_index: grh.sgid_index,
        hop_limit: grh.hop_limit,
        traffic_class: grh.traffic_class,
    };
    AhAttr {
        grh: (attr.is_global != 0).then_some(route),
        dlid: attr.dlid,
        sl: attr.sl,
        src_path_bits: attr.src_path_bits,
        port_num: attr.port_num,
    }
}

/// Sizes of a queue pair without queues.
pub(crate) const NO_QUEUES: QpCap = QpCap {
    max_send_wr: 0,
    max_recv_wr: 0,
    max_send_sge: 0,
    max_recv_sge: 0,
    max_inline_data: 0,
};

pub(crate) fn cap(cap: &QpCap) -> sys::ibv_qp_cap {
    sys::ibv_qp_cap {
        max_send_wr: cap.max_send_wr,
        max_recv_wr: cap.max_recv_wr,
        max_send_sge: cap.max_send_sge,
        max_recv_sge: cap.max_recv_sge,
        max_inline_data: cap.max_inline_data,
    }
}

pub(crate) fn cap_back(cap: &sys::ibv_qp_cap) -> QpCap {
    QpCap {
        max_send_wr: cap.max_send_wr,
        max_recv_wr: cap.max_recv_wr,
        max_send_sge: cap.max_send_sge,
        max_recv_sge: cap.max_recv_sge,
        max_inline_data: cap.max_inline_data,
    }
}

pub(crate) fn qp_attr(attr: &QpAttr) -> sys::ibv_qp_attr {
    let no_route = AhAttr {
        grh: None,
        dlid: 0,
        sl: 0,
        src_path_bits: 0,
        port_num: 0,
    };
    sys::ibv_qp_attr {
        qp_state: attr.qp_state.into(),
        cur_qp_state: attr.cur_qp_state.into(),
        path_mtu: attr.path_mtu.into(),
        path_mig_state: attr.path_mig_state.into(),
        qkey: attr.qkey,
        rq_psn: attr.rq_psn,
        sq_psn: attr.sq_psn,
        dest_qp_num: attr.dest_qp_num,
        qp_access_flags: attr.qp_access_flags.bits(),
        cap: cap(&attr.cap),
        ah_attr: ah_attr(&attr.ah_attr.unwrap_or(no_route)),
        alt_ah_attr: ah_attr(&attr.alt_ah_attr.unwrap_or(no_route)),
        pkey_index: attr.pkey_index,
        alt_pkey_index: 0,
        en_sqd_async_notify: attr.en_sqd_async_notify.into(),
        sq_draining: attr.sq_draining.into(),
        max_rd_atomic: attr.max_rd_atomic,
        max_dest_rd_atomic: attr.max_dest_rd_atomic,
        min_rnr_timer: attr.min_rnr_timer,
        port_num: attr.port_num,
        timeout: attr.timeout,
        retry_cnt: attr.retry_cnt,
        rnr_retry: attr.rnr_retry,
        alt_port_num: 0,
        alt_timeout: 0,
        rate_limit: 0,
    }
}

pub(crate) fn qp_attr_back(attr: &sys::ibv_qp_attr) -> QpAttr {
    QpAttr {
        qp_state: attr.qp_state.into(),
        cur_qp_state: attr.cur_qp_state.into(),
        path_mtu: attr.path_mtu.into(),
        path_mig_state: attr.path_mig_state.into(),
        qkey: attr.qkey,
        rq_psn: attr.rq_psn,
        sq_psn: attr.sq_psn,
        dest_qp_num: attr.dest_qp_num,
        qp_access_flags: verbs_api::Access::from_bits_retain(attr.qp_access_flags),
        cap: cap_back(&attr.cap),
        ah_attr: Some(ah_attr_back(&attr.ah_attr)),
        alt_ah_attr: None,
        pkey_index: attr.pkey_index,
        en_sqd_async_notify: attr.en_sqd_async_notify != 0,
        sq_draining: attr.sq_draining != 0,
        max_rd_atomic: attr.max_rd_atomic,
        max_dest_rd_atomic: attr.max_dest_rd_atomic,
        min_rnr_timer: attr.min_rnr_timer,
        port_num: attr.port_num,
        timeout: attr.timeout,
        retry_cnt: attr.retry_cnt,
        rnr_retry: attr.rnr_retry,
    }
}

pub(crate) fn srq_attr(attr: &SrqAttr) -> sys::ibv_srq_attr {
    sys::ibv_srq_attr {
        max_wr: attr.max_wr,
        max_sge: attr.max_sge,
        srq_limit: attr.srq_limit,
    }
}

pub(crate) fn srq_attr_back(attr: &sys::ibv_srq_attr) -> SrqAttr {
    SrqAttr {
        max_wr: attr.max_wr,
        max_sge: attr.max_sge,
        srq_limit: attr.srq_limit,
    }
}

pub(crate) fn sge(sge: &verbs_api::Sge) -> sys::ibv_sge {
    sys::ibv_sge {
        addr: sge.addr,
        length: sge.length,
        lkey: sge.lkey,
    }
}

/// Fills operation, flags and what the operation needs; the destination is the caller's to fill.
pub(crate) fn send_op(wr: &mut sys::ibv_send_wr, op: &SendOp, flags: SendFlags) -> bool {
    wr.send_flags = flags.bits();
    wr.opcode = match *op {
        SendOp::RdmaWrite { remote } => {
            wr.wr = sys::rdma(remote.addr, remote.rkey);
            0
        }
        SendOp::RdmaWriteWithImm { remote, imm_data } => {
            wr.wr = sys::rdma(remote.addr, remote.rkey);
            sys::set_imm(wr, imm_data);
            1
        }
        SendOp::Send => 2,
        SendOp::SendWithImm { imm_data } => {
            sys::set_imm(wr, imm_data);
            3
        }
        SendOp::RdmaRead { remote } => {
            wr.wr = sys::rdma(remote.addr, remote.rkey);
            4
        }
        SendOp::CompareAndSwap {
            remote,
            compare,
            swap,
        } => {
            wr.wr = sys::atomic(remote.addr, remote.rkey, compare, swap);
            5
        }
        SendOp::FetchAndAdd { remote, add } => {
            wr.wr = sys::atomic(remote.addr, remote.rkey, add, 0);
            6
        }
        SendOp::LocalInv { rkey } => {
            sys::set_invalidated(wr, rkey);
            7
        }
        // Window and region are the caller's to fill, too.
        SendOp::BindMw { .. } => 8,
        SendOp::SendWithInv { rkey } => {
            sys::set_invalidated(wr, rkey);
            9
        }
        SendOp::Tso { mss } => {
            sys::set_tso(wr, mss);
            10
        }
        _ => return false,
    };
    true
}

pub(crate) fn wc(wc: &sys::ibv_wc) -> Wc {
    Wc {
        wr_id: wc.wr_id,
        status: wc.status.into(),
        opcode: wc.opcode.into(),
        vendor_err: wc.vendor_err,
        byte_len: wc.byte_len,
        imm_data: sys::imm_of(wc),
        qp_num: wc.qp_num,
        src_qp: wc.src_qp,
        wc_flags: WcFlags::from_bits_retain(wc.wc_flags),
        pkey_index: wc.pkey_index,
        slid: wc.slid,
        sl: wc.sl,
        dlid_path_bits: wc.dlid_path_bits,
    }
}
