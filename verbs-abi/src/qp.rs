//! Queue pairs.

use std::ffi::{c_int, c_uint, c_void};

use verbs_api::{Cq, QpAttr, QpCap, QpInit, Srq};

use crate::{ibv_ah_attr, ibv_context, ibv_cq, ibv_pd, ibv_srq, ibv_xrcd, token};

structures! {
    ibv_qp [160] {
        context: *mut ibv_context,
        qp_context: *mut c_void,
        pd: *mut ibv_pd,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        handle: u32,
        qp_num: u32,
        state: u32,
        qp_type: u32,
        mutex: libc::pthread_mutex_t,
        cond: libc::pthread_cond_t,
        events_completed: u32,
    }

    ibv_qp_cap {
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
    }

    ibv_qp_init_attr [64] {
        qp_context: *mut c_void,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        cap: ibv_qp_cap,
        qp_type: u32,
        sq_sig_all: c_int,
    }

    /// Which of the fields behind `comp_mask` are there it says itself.
    ibv_qp_init_attr_ex [136] {
        qp_context: *mut c_void,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
        cap: ibv_qp_cap,
        qp_type: u32,
        sq_sig_all: c_int,
        comp_mask: u32,
        pd: *mut ibv_pd,
        xrcd: *mut ibv_xrcd,
        create_flags: u32,
        max_tso_header: u16,
        rwq_ind_tbl: *mut c_void,
        rx_hash_conf: [u64; 3],
        source_qpn: u32,
        send_ops_flags: u64,
    }

    ibv_qp_attr [144] {
        qp_state: u32,
        cur_qp_state: u32,
        path_mtu: u32,
        path_mig_state: u32,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: c_uint,
        cap: ibv_qp_cap,
        ah_attr: ibv_ah_attr,
        alt_ah_attr: ibv_ah_attr,
        pkey_index: u16,
        alt_pkey_index: u16,
        en_sqd_async_notify: u8,
        sq_draining: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        rate_limit: u32,
    }
}

constants! {
    flags ibv_qp_init_attr_mask: u32 {
        IBV_QP_INIT_ATTR_PD = 1 << 0,
        IBV_QP_INIT_ATTR_XRCD = 1 << 1,
        IBV_QP_INIT_ATTR_CREATE_FLAGS = 1 << 2,
        IBV_QP_INIT_ATTR_SEND_OPS_FLAGS = 1 << 6,
    }
}

conversions! {
    ibv_qp_cap, QpCap { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data, }

    ibv_qp_attr, QpAttr {
        qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qp_num,
        qp_access_flags, cap, ah_attr, alt_ah_attr, pkey_index, en_sqd_async_notify, sq_draining,
        max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry,
    }
}

impl ibv_qp_init_attr {
    /// All of it, with these CQs and this SRQ.
    pub fn from_c(init: &Self, send_cq: Cq, recv_cq: Cq, srq: Option<Srq>) -> QpInit {
        let mut found = QpInit::new(init.qp_type.into(), send_cq, recv_cq);
        found.cap = ibv_qp_cap::from_c(&init.cap);
        found.srq = srq;
        found.sq_sig_all = init.sq_sig_all != 0;
        found.qp_context = init.qp_context as u64;
        found
    }

    /// All of it but operations for batches, with these CQs and this SRQ.
    pub fn to_c(
        init: &QpInit,
        send_cq: *mut ibv_cq,
        recv_cq: *mut ibv_cq,
        srq: *mut ibv_srq,
    ) -> Self {
        Self {
            qp_context: token(init.qp_context),
            send_cq,
            recv_cq,
            srq,
            cap: ibv_qp_cap::to_c(&init.cap),
            qp_type: init.qp_type.into(),
            sq_sig_all: init.sq_sig_all.into(),
        }
    }
}

impl From<ibv_qp_init_attr> for ibv_qp_init_attr_ex {
    /// With an empty mask.
    fn from(plain: ibv_qp_init_attr) -> Self {
        Self {
            qp_context: plain.qp_context,
            send_cq: plain.send_cq,
            recv_cq: plain.recv_cq,
            srq: plain.srq,
            cap: plain.cap,
            qp_type: plain.qp_type,
            sq_sig_all: plain.sq_sig_all,
            ..Self::default()
        }
    }
}
