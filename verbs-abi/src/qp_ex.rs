//! Extended queue pairs, which take batches.

use std::ffi::{c_int, c_uint, c_void};

use crate::{ibv_ah, ibv_mw, ibv_mw_bind_info, ibv_qp, ibv_sge};

structures! {
    ibv_data_buf { addr: *const c_void, length: usize }

    ibv_qp_ex [360] (grows) {
        qp_base: ibv_qp,
        comp_mask: u64,
        wr_id: u64,
        wr_flags: c_uint,
        wr_atomic_cmp_swp: op!(*mut ibv_qp_ex, u32, u64, u64, u64),
        wr_atomic_fetch_add: op!(*mut ibv_qp_ex, u32, u64, u64),
        wr_bind_mw: op!(*mut ibv_qp_ex, *mut ibv_mw, u32, *const ibv_mw_bind_info),
        wr_local_inv: op!(*mut ibv_qp_ex, u32),
        wr_rdma_read: op!(*mut ibv_qp_ex, u32, u64),
        wr_rdma_write: op!(*mut ibv_qp_ex, u32, u64),
        wr_rdma_write_imm: op!(*mut ibv_qp_ex, u32, u64, u32),
        wr_send: op!(*mut ibv_qp_ex),
        wr_send_imm: op!(*mut ibv_qp_ex, u32),
        wr_send_inv: op!(*mut ibv_qp_ex, u32),
        wr_send_tso: op!(*mut ibv_qp_ex, *mut c_void, u16, u16),
        wr_set_ud_addr: op!(*mut ibv_qp_ex, *mut ibv_ah, u32, u32),
        wr_set_xrc_srqn: op!(*mut ibv_qp_ex, u32),
        wr_set_inline_data: op!(*mut ibv_qp_ex, *const c_void, usize),
        wr_set_inline_data_list: op!(*mut ibv_qp_ex, usize, *const ibv_data_buf),
        wr_set_sge: op!(*mut ibv_qp_ex, u32, u64, u32),
        wr_set_sge_list: op!(*mut ibv_qp_ex, usize, *const ibv_sge),
        wr_start: op!(*mut ibv_qp_ex),
        wr_complete: op!(*mut ibv_qp_ex => c_int),
        wr_abort: op!(*mut ibv_qp_ex),
        wr_atomic_write: op!(*mut ibv_qp_ex, u32, u64, *const c_void),
        wr_flush = (wr_flush): op!(*mut ibv_qp_ex, u32, u64, usize, u8, u8),
    }
}
