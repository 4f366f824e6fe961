//! Completion channels and completion queues.

use std::ffi::{c_int, c_void};

use verbs_api::CqModeration;

use crate::ibv_context;

structures! {
    ibv_comp_channel [16] { context: *mut ibv_context, fd: c_int, refcnt: c_int }

    ibv_cq [128] {
        context: *mut ibv_context,
        channel: *mut ibv_comp_channel,
        cq_context: *mut c_void,
        handle: u32,
        cqe: c_int,
        mutex: libc::pthread_mutex_t,
        cond: libc::pthread_cond_t,
        comp_events_completed: u32,
        async_events_completed: u32,
    }

    ibv_moderate_cq { cq_count: u16, cq_period: u16 }
    ibv_modify_cq_attr [8] { attr_mask: u32, moderate: ibv_moderate_cq }
}

constants! {
    flags ibv_cq_attr_mask: u32 { IBV_CQ_ATTR_MODERATE = 1 << 0 }
}

conversions! {
    ibv_moderate_cq, CqModeration { cq_count, cq_period, }
}
