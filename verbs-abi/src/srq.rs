//! Shared receive queues.

use std::ffi::c_void;

use verbs_api::SrqAttr;

use crate::{ibv_context, ibv_cq, ibv_pd, ibv_xrcd};

structures! {
    ibv_srq_attr { max_wr: u32, max_sge: u32, srq_limit: u32 }
    ibv_srq_init_attr { srq_context: *mut c_void, attr: ibv_srq_attr }

    ibv_srq [128] {
        context: *mut ibv_context,
        srq_context: *mut c_void,
        pd: *mut ibv_pd,
        handle: u32,
        mutex: libc::pthread_mutex_t,
        cond: libc::pthread_cond_t,
        events_completed: u32,
    }

    /// Which of the fields behind `comp_mask` are there it says itself.
    ibv_srq_init_attr_ex {
        srq_context: *mut c_void,
        attr: ibv_srq_attr,
        comp_mask: u32,
        srq_type: u32,
        pd: *mut ibv_pd,
        xrcd: *mut ibv_xrcd,
        cq: *mut ibv_cq,
        tm_cap: [u32; 2],
    }
}

constants! {
    flags ibv_srq_init_attr_mask: u32 {
        IBV_SRQ_INIT_ATTR_TYPE = 1 << 0,
        IBV_SRQ_INIT_ATTR_PD = 1 << 1,
        IBV_SRQ_INIT_ATTR_XRCD = 1 << 2,
        IBV_SRQ_INIT_ATTR_CQ = 1 << 3,
        IBV_SRQ_INIT_ATTR_TM = 1 << 4,
    }
    numbers ibv_srq_type: u32 { IBV_SRQT_BASIC = 0, IBV_SRQT_XRC = 1, IBV_SRQT_TM = 2 }
}

conversions! {
    ibv_srq_attr, SrqAttr { max_wr, max_sge, srq_limit, }
}
