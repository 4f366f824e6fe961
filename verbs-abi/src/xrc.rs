//! Extended reliable connections.

use std::ffi::{c_int, c_void};

use crate::ibv_context;

structures! {
    ibv_xrcd { context: *mut ibv_context }
    ibv_xrcd_init_attr { comp_mask: u32, fd: c_int, oflags: c_int }

    ibv_qp_open_attr {
        comp_mask: u32,
        qp_num: u32,
        xrcd: *mut ibv_xrcd,
        qp_context: *mut c_void,
        qp_type: u32,
    }
}

constants! {
    flags ibv_xrcd_init_attr_mask: u32 {
        IBV_XRCD_INIT_ATTR_FD = 1 << 0,
        IBV_XRCD_INIT_ATTR_OFLAGS = 1 << 1,
    }
    flags ibv_qp_open_attr_mask: u32 {
        IBV_QP_OPEN_ATTR_NUM = 1 << 0,
        IBV_QP_OPEN_ATTR_XRCD = 1 << 1,
        IBV_QP_OPEN_ATTR_CONTEXT = 1 << 2,
        IBV_QP_OPEN_ATTR_TYPE = 1 << 3,
    }
}
