//! Every name of the C bindings, in one place, with their gaps filled and their traps closed.
//!
//! Inline functions of `verbs.h` go through the context's operations table, as there. The async
//! event is a structure of our own, because the bindings make its type a Rust enum, which may not
//! hold a number of a newer library. Extended verbs of the bindings are never used: on 64-bit
//! machines they do not find the extended context.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) use rdma_sys::{
    ibv_ack_async_event, ibv_ack_cq_events, ibv_ah, ibv_ah_attr, ibv_alloc_pd, ibv_async_event,
    ibv_attach_mcast, ibv_close_device, ibv_comp_channel, ibv_context, ibv_cq, ibv_cq_ex,
    ibv_cq_init_attr_ex, ibv_create_ah, ibv_create_comp_channel, ibv_create_cq, ibv_create_qp,
    ibv_create_srq, ibv_data_buf, ibv_dealloc_pd, ibv_dereg_mr, ibv_destroy_ah,
    ibv_destroy_comp_channel, ibv_destroy_cq, ibv_destroy_qp, ibv_destroy_srq, ibv_detach_mcast,
    ibv_device, ibv_device_attr, ibv_device_attr_ex, ibv_free_device_list, ibv_get_async_event,
    ibv_get_cq_event, ibv_get_device_list, ibv_get_device_name, ibv_gid, ibv_gid_entry,
    ibv_global_route, ibv_modify_cq_attr, ibv_modify_qp, ibv_modify_srq, ibv_mr, ibv_mw,
    ibv_mw_bind, ibv_mw_bind_info, ibv_open_device, ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_attr,
    ibv_qp_cap, ibv_qp_ex, ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_qp_open_attr,
    ibv_qp_to_qp_ex, ibv_query_device, ibv_query_gid, ibv_query_pkey, ibv_query_qp, ibv_query_srq,
    ibv_recv_wr, ibv_reg_mr, ibv_reg_mr_iova, ibv_rereg_mr, ibv_resize_cq, ibv_send_wr, ibv_sge,
    ibv_srq, ibv_srq_attr, ibv_srq_init_attr, ibv_srq_init_attr_ex, ibv_wc, ibv_xrcd,
    ibv_xrcd_init_attr,
};
use rdma_sys::{ibv_moderate_cq, ibv_poll_cq_attr, verbs_context, wr_t};
pub(crate) use rdma_sys::{
    rdma_accept, rdma_ack_cm_event, rdma_bind_addr, rdma_cm_event, rdma_cm_id, rdma_conn_param,
    rdma_connect, rdma_create_event_channel, rdma_create_id, rdma_destroy_event_channel,
    rdma_destroy_id, rdma_event_channel, rdma_get_cm_event, rdma_listen, rdma_port_space,
    rdma_resolve_addr, rdma_resolve_route,
};
use verbs_api::CqInitEx;

/// `struct ibv_async_event`, with a type that may hold any number.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AsyncEvent {
    /// A pointer, or a port number in its lower half.
    pub(crate) element: usize,
    pub(crate) event_type: u32,
}

const _: () = assert!(size_of::<AsyncEvent>() == size_of::<ibv_async_event>());
const _: () =
    assert!(offset_of!(AsyncEvent, event_type) == offset_of!(ibv_async_event, event_type));

/// `IBV_REREG_MR_CHANGE_TRANSLATION`
pub(crate) const CHANGE_TRANSLATION: c_int = 1 << 0;
/// `IBV_REREG_MR_CHANGE_PD`
pub(crate) const CHANGE_PD: c_int = 1 << 1;
/// `IBV_REREG_MR_CHANGE_ACCESS`
pub(crate) const CHANGE_ACCESS: c_int = 1 << 2;
/// `IBV_REREG_MR_ERR_INPUT`
pub(crate) const ERR_INPUT: c_int = -1;
/// `IBV_REREG_MR_ERR_DONT_FORK_NEW`
pub(crate) const ERR_DONT_FORK_NEW: c_int = -2;
/// `IBV_REREG_MR_ERR_DO_FORK_OLD`
pub(crate) const ERR_DO_FORK_OLD: c_int = -3;

/// How numbers are read and written that C keeps beside the program.
pub(crate) const RELAXED: Ordering = Ordering::Relaxed;

/// `ENOSYS`, for an operation that a driver has not filled in.
const MISSING: c_int = libc::ENOSYS;

/// `ibv_poll_cq`
///
/// # Safety
/// `cq` is a live CQ; `wc` has room for `entries`.
pub(crate) unsafe fn poll_cq(cq: *mut ibv_cq, entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: a live CQ has a live context with a filled operations table.
    let op = unsafe { (*(*cq).context).ops.poll_cq };
    // SAFETY: the caller's promise is the operation's.
    op.map_or(-MISSING, |op| unsafe { op(cq, entries, wc) })
}

/// `ibv_req_notify_cq`
///
/// # Safety
/// `cq` is a live CQ.
pub(crate) unsafe fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: as in `poll_cq`.
    let op = unsafe { (*(*cq).context).ops.req_notify_cq };
    // SAFETY: as in `poll_cq`.
    op.map_or(MISSING, |op| unsafe { op(cq, solicited_only) })
}

/// `ibv_post_send`
///
/// # Safety
/// `qp` is a live QP; the list and all it points to are valid.
pub(crate) unsafe fn post_send(
    qp: *mut ibv_qp,
    wr: *mut ibv_send_wr,
    bad_wr: &mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: a live QP has a live context with a filled operations table.
    let op = unsafe { (*(*qp).context).ops.post_send };
    // SAFETY: the caller's promise is the operation's.
    op.map_or(MISSING, |op| unsafe { op(qp, wr, bad_wr) })
}

/// `ibv_post_recv`
///
/// # Safety
/// `qp` is a live QP; the list and all it points to are valid.
pub(crate) unsafe fn post_recv(
    qp: *mut ibv_qp,
    wr: *mut ibv_recv_wr,
    bad_wr: &mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: as in `post_send`.
    let op = unsafe { (*(*qp).context).ops.post_recv };
    // SAFETY: as in `post_send`.
    op.map_or(MISSING, |op| unsafe { op(qp, wr, bad_wr) })
}

/// `ibv_alloc_mw`
///
/// # Safety
/// `pd` is a live PD.
pub(crate) unsafe fn alloc_mw(pd: *mut ibv_pd, mw_type: u32) -> *mut ibv_mw {
    // SAFETY: a live PD has a live context with a filled operations table.
    let op = unsafe { (*(*pd).context).ops.alloc_mw };
    // SAFETY: the caller's promise is the operation's.
    op.map_or(null_mut(), |op| unsafe { op(pd, mw_type) })
}

/// `ibv_dealloc_mw`
///
/// # Safety
/// `mw` is a live window that nothing uses.
pub(crate) unsafe extern "C" fn dealloc_mw(mw: *mut ibv_mw) -> c_int {
    // SAFETY: a live window has a live context with a filled operations table.
    let op = unsafe { (*(*mw).context).ops.dealloc_mw };
    // SAFETY: the caller's promise is the operation's.
    op.map_or(MISSING, |op| unsafe { op(mw) })
}

/// `ibv_bind_mw`
///
/// # Safety
/// `qp`, `mw` and the region that is named are live.
pub(crate) unsafe fn bind_mw(qp: *mut ibv_qp, mw: *mut ibv_mw, bind: &mut ibv_mw_bind) -> c_int {
    // SAFETY: window and region are live.
    let (mw_type, mw_pd, mr_pd) = unsafe { ((*mw).type_, (*mw).pd, (*bind.bind_info.mr).pd) };
    if mw_type != 1 {
        return libc::EINVAL;
    }
    if mw_pd != mr_pd {
        return libc::EPERM;
    }
    // SAFETY: a live window has a live context with a filled operations table.
    let op = unsafe { (*(*mw).context).ops.bind_mw };
    // SAFETY: the caller's promise is the operation's.
    op.map_or(MISSING, |op| unsafe { op(qp, mw, bind) })
}

/// The key of a window, which programs write, too.
///
/// # Safety
/// `mw` is a live window, and stays it as long as what is returned is used.
pub(crate) unsafe fn mw_rkey<'a>(mw: *mut ibv_mw) -> &'a AtomicU32 {
    // SAFETY: the field is aligned and lives as long as the window; this program has atomic access
    // to it alone.
    unsafe { AtomicU32::from_ptr(&raw mut (*mw).rkey) }
}

/// `ibv_post_srq_recv`
///
/// # Safety
/// `srq` is a live SRQ; the list and all it points to are valid.
pub(crate) unsafe fn post_srq_recv(
    srq: *mut ibv_srq,
    wr: *mut ibv_recv_wr,
    bad_wr: &mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: a live SRQ has a live context with a filled operations table.
    let op = unsafe { (*(*srq).context).ops.post_srq_recv };
    // SAFETY: the caller's promise is the operation's.
    op.map_or(MISSING, |op| unsafe { op(srq, wr, bad_wr) })
}

/// `IBV_DEVICE_AUTO_PATH_MIG`, of the device's `device_cap_flags`.
pub(crate) const DEVICE_AUTO_PATH_MIG: u32 = 1 << 4;

/// `IBV_DEVICE_SRQ_RESIZE`, of the device's `device_cap_flags`.
pub(crate) const DEVICE_SRQ_RESIZE: u32 = 1 << 13;

/// `IBV_DEVICE_XRC`, as above.
pub(crate) const DEVICE_XRC: u32 = 1 << 20;

/// `IBV_DEVICE_MEM_WINDOW`, as above.
pub(crate) const DEVICE_MEM_WINDOW: u32 = 1 << 17;

/// `IBV_DEVICE_MEM_WINDOW_TYPE_2B`, as above.
pub(crate) const DEVICE_MEM_WINDOW_TYPE_2B: u32 = 1 << 24;

/// `ibv_query_port`: the extended operation if there is one, which fills the link layer and the
/// flags; it gets the size that this program knows of the structure.
///
/// # Safety
/// `context` is a live context.
pub(crate) unsafe fn query_port(
    context: *mut ibv_context,
    port: u8,
    attr: &mut ibv_port_attr,
) -> c_int {
    // SAFETY: `context` is live.
    let extended = unsafe { extended(context, offset_of!(verbs_context, query_port)) };
    // SAFETY: `extended` returned a live extended context, whose `sz` says that it has this field.
    let op = extended.and_then(|extended| unsafe { (*extended).query_port });
    match op {
        // SAFETY: the attribute structure has the size that is given.
        Some(op) => unsafe { op(context, port, attr, size_of::<ibv_port_attr>()) },
        // SAFETY: the exported function fills the first part of the structure, which is the same
        // in `ibv_port_attr`; the rest is zero.
        None => unsafe { rdma_sys::ibv_query_port(context, port, std::ptr::from_mut(attr).cast()) },
    }
}

unsafe extern "C" {
    fn _ibv_query_gid_ex(
        context: *mut ibv_context,
        port_num: u32,
        gid_index: u32,
        entry: *mut ibv_gid_entry,
        flags: u32,
        entry_size: usize,
    ) -> c_int;

    fn _ibv_query_gid_table(
        context: *mut ibv_context,
        entries: *mut ibv_gid_entry,
        max_entries: usize,
        flags: u32,
        entry_size: usize,
    ) -> isize;
}

/// `ibv_query_gid_ex`
///
/// # Safety
/// `context` is a live context.
pub(crate) unsafe fn query_gid_ex(
    context: *mut ibv_context,
    port_num: u32,
    gid_index: u32,
    entry: &mut ibv_gid_entry,
) -> c_int {
    let size = size_of::<ibv_gid_entry>();
    // SAFETY: the context is live, and the entry has the size that is given.
    unsafe { _ibv_query_gid_ex(context, port_num, gid_index, entry, 0, size) }
}

/// `ibv_query_gid_table`
///
/// # Safety
/// `context` is a live context.
pub(crate) unsafe fn query_gid_table(
    context: *mut ibv_context,
    entries: &mut [ibv_gid_entry],
) -> isize {
    let (start, count) = (entries.as_mut_ptr(), entries.len());
    // SAFETY: the context is live, and there are so many entries of the size that is given.
    unsafe { _ibv_query_gid_table(context, start, count, 0, size_of::<ibv_gid_entry>()) }
}

/// `ibv_query_device_ex`: the plain query, if there is no other.
///
/// # Safety
/// `context` is a live context.
pub(crate) unsafe fn query_device_ex(
    context: *mut ibv_context,
    attr: &mut ibv_device_attr_ex,
) -> c_int {
    // SAFETY: as promised.
    let extended = unsafe { extended(context, offset_of!(verbs_context, query_device_ex)) };
    // SAFETY: `extended` returned a live extended context, whose `sz` says that it has this field.
    let op = extended.and_then(|extended| unsafe { (*extended).query_device_ex });
    let result = op.map_or(MISSING, |op| {
        // SAFETY: the attribute structure has the size that is given.
        unsafe { op(context, null(), attr, size_of::<ibv_device_attr_ex>()) }
    });
    match result {
        libc::EOPNOTSUPP | libc::ENOSYS => {
            // SAFETY: the context is live.
            unsafe { ibv_query_device(context, &mut attr.orig_attr) }
        }
        result => result,
    }
}

/// `IBV_CQ_INIT_ATTR_MASK_FLAGS`
const CQ_INIT_FLAGS: u32 = 1 << 0;

/// `ibv_create_cq_ex`
///
/// # Safety
/// `context` is a live context; `channel` is a live channel of it, or null.
pub(crate) unsafe fn create_cq_ex(
    context: *mut ibv_context,
    channel: *mut ibv_comp_channel,
    init: &CqInitEx,
) -> *mut ibv_cq {
    // SAFETY: as promised.
    let extended = unsafe { extended(context, offset_of!(verbs_context, create_cq_ex)) };
    // SAFETY: `extended` returned a live extended context, whose `sz` says that it has this field.
    let op = extended.and_then(|extended| unsafe { (*extended).create_cq_ex });
    let Some(op) = op else {
        // SAFETY: the number is this thread's own.
        unsafe { *libc::__errno_location() = libc::EOPNOTSUPP };
        return null_mut();
    };
    let mut attr = ibv_cq_init_attr_ex {
        cqe: init.cq.cqe as u32,
        cq_context: token(init.cq.cq_context),
        channel,
        comp_vector: init.cq.comp_vector as u32,
        wc_flags: init.wc_flags.bits(),
        comp_mask: if init.flags.is_empty() {
            0
        } else {
            CQ_INIT_FLAGS
        },
        flags: init.flags.bits(),
        parent_domain: null_mut(),
    };
    // SAFETY: context and channel are live, or the channel is null.
    let cq = unsafe { op(context, &mut attr) };
    // An extended CQ starts with the fields of a CQ (`ibv_cq_ex_to_cq`).
    cq.cast()
}

/// `ibv_start_poll`
///
/// # Safety
/// `cq` is a live extended CQ over which no iteration is open.
pub(crate) unsafe fn start_poll(cq: *mut ibv_cq) -> c_int {
    let cq: *mut ibv_cq_ex = cq.cast();
    let mut attr = ibv_poll_cq_attr { comp_mask: 0 };
    // SAFETY: the CQ is live and an extended one.
    let op = unsafe { (*cq).start_poll };
    // SAFETY: as promised.
    op.map_or(MISSING, |op| unsafe { op(cq, &mut attr) })
}

/// `ibv_next_poll`
///
/// # Safety
/// `cq` is a live extended CQ over which an iteration is open.
pub(crate) unsafe fn next_poll(cq: *mut ibv_cq) -> c_int {
    let cq: *mut ibv_cq_ex = cq.cast();
    // SAFETY: the CQ is live and an extended one.
    let op = unsafe { (*cq).next_poll };
    // SAFETY: as promised.
    op.map_or(MISSING, |op| unsafe { op(cq) })
}

/// `ibv_end_poll`
///
/// # Safety
/// `cq` is a live extended CQ over which an iteration is open.
pub(crate) unsafe fn end_poll(cq: *mut ibv_cq) {
    let cq: *mut ibv_cq_ex = cq.cast();
    // SAFETY: the CQ is live and an extended one.
    if let Some(op) = unsafe { (*cq).end_poll } {
        // SAFETY: as promised.
        unsafe { op(cq) };
    }
}

/// `IBV_CQ_ATTR_MODERATE`
const CQ_MODERATE: u32 = 1 << 0;

/// `ibv_modify_cq`
///
/// # Safety
/// `cq` is a live CQ.
pub(crate) unsafe fn modify_cq(cq: *mut ibv_cq, cq_count: u16, cq_period: u16) -> c_int {
    // SAFETY: a live CQ has a live context.
    let context = unsafe { (*cq).context };
    // SAFETY: as above.
    let extended = unsafe { extended(context, offset_of!(verbs_context, modify_cq)) };
    // SAFETY: `extended` returned a live extended context, whose `sz` says that it has this field.
    let op = extended.and_then(|extended| unsafe { (*extended).modify_cq });
    let mut attr = ibv_modify_cq_attr {
        attr_mask: CQ_MODERATE,
        moderate: ibv_moderate_cq {
            cq_count,
            cq_period,
        },
    };
    // SAFETY: the CQ is live.
    op.map_or(libc::EOPNOTSUPP, |op| unsafe { op(cq, &mut attr) })
}

/// `IBV_QP_INIT_ATTR_PD`
const INIT_PD: u32 = 1 << 0;
/// `IBV_QP_INIT_ATTR_XRCD`
const INIT_XRCD: u32 = 1 << 1;
/// `IBV_QP_INIT_ATTR_SEND_OPS_FLAGS`
const INIT_SEND_OPS: u32 = 1 << 6;

/// `ibv_create_qp_ex` with the operations that its batches may have. The sizes that it got stand in
/// `attr` then.
///
/// # Safety
/// `pd` is a live protection domain; `attr` names live CQs, and a live SRQ or none.
pub(crate) unsafe fn create_qp_with(
    pd: *mut ibv_pd,
    attr: &mut ibv_qp_init_attr,
    send_ops_flags: u64,
) -> *mut ibv_qp {
    // SAFETY: a live domain has a live context.
    let context = unsafe { (*pd).context };
    // SAFETY: as above.
    let extended = unsafe { extended(context, offset_of!(verbs_context, create_qp_ex)) };
    // SAFETY: `extended` returned a live extended context, whose `sz` says that it has this field.
    let op = extended.and_then(|extended| unsafe { (*extended).create_qp_ex });
    let Some(op) = op else {
        return missing();
    };
    // SAFETY: the structure is plain numbers and pointers, for which zero is a value.
    let mut all: ibv_qp_init_attr_ex = unsafe { std::mem::zeroed() };
    all.qp_context = attr.qp_context;
    all.send_cq = attr.send_cq;
    all.recv_cq = attr.recv_cq;
    all.srq = attr.srq;
    all.cap = attr.cap;
    all.qp_type = attr.qp_type;
    all.sq_sig_all = attr.sq_sig_all;
    all.comp_mask = INIT_PD;
    if send_ops_flags != 0 {
        all.comp_mask |= INIT_SEND_OPS;
    }
    all.pd = pd;
    all.send_ops_flags = send_ops_flags;
    // SAFETY: the context is live, and what the structure names is too.
    let qp = unsafe { op(context, &mut all) };
    attr.cap = all.cap;
    qp
}

/// `ibv_alloc_null_mr`
///
/// # Safety
/// `pd` is a live protection domain.
pub(crate) unsafe fn alloc_null_mr(pd: *mut ibv_pd) -> *mut ibv_mr {
    // SAFETY: a live domain has a live context.
    let context = unsafe { (*pd).context };
    // SAFETY: as above.
    let extended = unsafe { extended(context, offset_of!(verbs_context, alloc_null_mr)) };
    // SAFETY: `extended` returned a live extended context, whose `sz` says that it has this field.
    let op = extended.and_then(|extended| unsafe { (*extended).alloc_null_mr });
    match op {
        // SAFETY: the domain is live.
        Some(op) => unsafe { op(pd) },
        None => missing(),
    }
}

/// What a function gives that makes objects and is not there.
fn missing<T>() -> *mut T {
    // SAFETY: the number is this thread's own.
    unsafe { *libc::__errno_location() = libc::EOPNOTSUPP };
    null_mut()
}

/// `IBV_XRCD_INIT_ATTR_FD`
pub(crate) const XRCD_FD: u32 = 1 << 0;
/// `IBV_XRCD_INIT_ATTR_OFLAGS`
pub(crate) const XRCD_OFLAGS: u32 = 1 << 1;

/// `ibv_open_xrcd`
///
/// # Safety
/// `context` is a live context; the descriptor in `attr` is open, or -1.
pub(crate) unsafe fn open_xrcd(
    context: *mut ibv_context,
    attr: &mut ibv_xrcd_init_attr,
) -> *mut ibv_xrcd {
    // SAFETY: the context is live.
    let extended = unsafe { extended(context, offset_of!(verbs_context, open_xrcd)) };
    // SAFETY: `extended` returned a live extended context, whose `sz` says that it has this field.
    let op = extended.and_then(|extended| unsafe { (*extended).open_xrcd });
    // SAFETY: the caller's promise is the operation's.
    op.map_or_else(missing, |op| unsafe { op(context, attr) })
}

/// `ibv_close_xrcd`
///
/// # Safety
/// `xrcd` is a live domain that nothing uses.
pub(crate) unsafe extern "C" fn close_xrcd(xrcd: *mut ibv_xrcd) -> c_int {
    // SAFETY: a live domain has a live context.
    let context = unsafe { (*xrcd).context };
    // SAFETY: as above.
    let extended = unsafe { extended(context, offset_of!(verbs_context, close_xrcd)) };
    // SAFETY: `extended` returned a live extended context, whose `sz` says that it has this field.
    let op = extended.and_then(|extended| unsafe { (*extended).close_xrcd });
    // SAFETY: the caller's promise is the operation's.
    op.map_or(MISSING, |op| unsafe { op(xrcd) })
}

/// `IBV_SRQT_XRC`
const SRQ_XRC: u32 = 1;
/// `IBV_SRQ_INIT_ATTR_TYPE`, `_PD`, `_XRCD` and `_CQ`
const SRQ_MASK: u32 = 0xf;

/// `ibv_create_srq_ex` of XRC. The sizes that it got stand in `attr` then.
///
/// # Safety
/// `pd`, `xrcd` and `cq` are live, and of one context.
pub(crate) unsafe fn create_xrc_srq(
    pd: *mut ibv_pd,
    attr: &mut ibv_srq_init_attr,
    xrcd: *mut ibv_xrcd,
    cq: *mut ibv_cq,
) -> *mut ibv_srq {
    // SAFETY: a live domain has a live context.
    let context = unsafe { (*pd).context };
    // SAFETY: as above.
    let extended = unsafe { extended(context, offset_of!(verbs_context, create_srq_ex)) };
    // SAFETY: `extended` returned a live extended context, whose `sz` says that it has this field.
    let op = extended.and_then(|extended| unsafe { (*extended).create_srq_ex });
    let Some(op) = op else {
        return missing();
    };
    // SAFETY: the structure is plain numbers and pointers, for which zero is a value.
    let mut all: ibv_srq_init_attr_ex = unsafe { std::mem::zeroed() };
    all.srq_context = attr.srq_context;
    all.attr = attr.attr;
    all.comp_mask = SRQ_MASK;
    all.srq_type = SRQ_XRC;
    all.pd = pd;
    all.xrcd = xrcd;
    all.cq = cq;
    // SAFETY: the context is live, and what the structure names is too.
    let srq = unsafe { op(context, &mut all) };
    attr.attr = all.attr;
    srq
}

/// `ibv_get_srq_num`
///
/// # Safety
/// `srq` is a live SRQ.
pub(crate) unsafe fn get_srq_num(srq: *mut ibv_srq, number: &mut u32) -> c_int {
    // SAFETY: a live SRQ has a live context.
    let context = unsafe { (*srq).context };
    // SAFETY: as above.
    let extended = unsafe { extended(context, offset_of!(verbs_context, get_srq_num)) };
    // SAFETY: `extended` returned a live extended context, whose `sz` says that it has this field.
    let op = extended.and_then(|extended| unsafe { (*extended).get_srq_num });
    // SAFETY: the caller's promise is the operation's.
    op.map_or(MISSING, |op| unsafe { op(srq, number) })
}

/// `ibv_create_qp_ex` of XRC_RECV.
///
/// # Safety
/// `xrcd` is a live domain.
pub(crate) unsafe fn create_xrc_recv_qp(xrcd: *mut ibv_xrcd) -> *mut ibv_qp {
    // SAFETY: a live domain has a live context.
    let context = unsafe { (*xrcd).context };
    // SAFETY: as above.
    let extended = unsafe { extended(context, offset_of!(verbs_context, create_qp_ex)) };
    // SAFETY: `extended` returned a live extended context, whose `sz` says that it has this field.
    let op = extended.and_then(|extended| unsafe { (*extended).create_qp_ex });
    let Some(op) = op else {
        return missing();
    };
    // SAFETY: the structure is plain numbers and pointers, for which zero is a value.
    let mut all: ibv_qp_init_attr_ex = unsafe { std::mem::zeroed() };
    all.qp_type = QP_XRC_RECV;
    all.comp_mask = INIT_XRCD;
    all.xrcd = xrcd;
    // SAFETY: context and domain are live.
    unsafe { op(context, &mut all) }
}

/// `IBV_QPT_XRC_RECV`
const QP_XRC_RECV: u32 = 10;
/// `IBV_QP_OPEN_ATTR_NUM`, `_XRCD` and `_TYPE`
const OPEN_MASK: u32 = 1 << 0 | 1 << 1 | 1 << 3;

/// `ibv_open_qp`
///
/// # Safety
/// `xrcd` is a live domain.
pub(crate) unsafe fn open_qp(xrcd: *mut ibv_xrcd, qp_num: u32) -> *mut ibv_qp {
    // SAFETY: a live domain has a live context.
    let context = unsafe { (*xrcd).context };
    // SAFETY: as above.
    let extended = unsafe { extended(context, offset_of!(verbs_context, open_qp)) };
    // SAFETY: `extended` returned a live extended context, whose `sz` says that it has this field.
    let op = extended.and_then(|extended| unsafe { (*extended).open_qp });
    // SAFETY: the structure is plain numbers and pointers, for which zero is a value.
    let mut attr: ibv_qp_open_attr = unsafe { std::mem::zeroed() };
    attr.comp_mask = OPEN_MASK;
    attr.qp_num = qp_num;
    attr.xrcd = xrcd;
    attr.qp_type = QP_XRC_RECV;
    // SAFETY: context and domain are live.
    op.map_or_else(missing, |op| unsafe { op(context, &mut attr) })
}

/// The extended context around a context (`verbs_get_ctx`), if it has the field at this offset.
///
/// # Safety
/// `context` is a live context.
unsafe fn extended(context: *mut ibv_context, field: usize) -> Option<*mut verbs_context> {
    // SAFETY: `context` is live.
    if unsafe { (*context).abi_compat } as usize != usize::MAX {
        return None;
    }
    // SAFETY: `abi_compat` with all bits set is libibverbs' word that the context is the last
    // member of an extended one.
    let extended = unsafe { context.byte_sub(offset_of!(verbs_context, context)) };
    let extended = extended.cast::<verbs_context>();
    // Fields are added at the front: one exists if the size reaches back to it.
    let needed = size_of::<verbs_context>() - field;
    // SAFETY: as above, it is live.
    (unsafe { (*extended).sz } >= needed).then_some(extended)
}

/// A send work request that is all zero.
pub(crate) fn empty_send_wr() -> ibv_send_wr {
    // SAFETY: all fields are numbers, pointers and unions of them, for which zero is a value.
    unsafe { std::mem::zeroed() }
}

/// The part of a send work request for RDMA.
pub(crate) fn rdma(remote_addr: u64, rkey: u32) -> wr_t {
    wr_t {
        rdma: rdma_sys::rdma_t { remote_addr, rkey },
    }
}

/// The part of a send work request for atomics.
pub(crate) fn atomic(remote_addr: u64, rkey: u32, compare_add: u64, swap: u64) -> wr_t {
    wr_t {
        atomic: rdma_sys::atomic_t {
            remote_addr,
            compare_add,
            swap,
            rkey,
        },
    }
}

/// The part of a send work request for datagrams.
pub(crate) fn datagram(ah: *mut ibv_ah, remote_qpn: u32, remote_qkey: u32) -> wr_t {
    wr_t {
        ud: rdma_sys::ud_t {
            ah,
            remote_qpn,
            remote_qkey,
        },
    }
}

/// The part of a send work request for XRC.
pub(crate) fn set_remote_srqn(wr: &mut ibv_send_wr, remote_srqn: u32) {
    wr.qp_type.xrc = rdma_sys::xrc_t { remote_srqn };
}

/// The part of a send work request for binds.
pub(crate) fn set_bind(
    wr: &mut ibv_send_wr,
    mw: *mut ibv_mw,
    rkey: u32,
    bind_info: ibv_mw_bind_info,
) {
    wr.bind_mw_tso_union.bind_mw = rdma_sys::bind_mw_t {
        mw,
        rkey,
        bind_info,
    };
}

/// The part of a send work request for segmented sends, without a header.
pub(crate) fn set_tso(wr: &mut ibv_send_wr, mss: u16) {
    wr.bind_mw_tso_union.tso = rdma_sys::tso_t {
        hdr: null_mut(),
        hdr_sz: 0,
        mss,
    };
}

/// The key that a send work request invalidates.
pub(crate) fn set_invalidated(wr: &mut ibv_send_wr, rkey: u32) {
    wr.imm_data_invalidated_rkey_union.invalidated_rkey = rkey;
}

/// Immediate data as on the wire.
pub(crate) fn set_imm(wr: &mut ibv_send_wr, imm_data: [u8; 4]) {
    wr.imm_data_invalidated_rkey_union.imm_data = u32::from_ne_bytes(imm_data);
}

/// Immediate data of a completion, as on the wire.
pub(crate) fn imm_of(wc: &ibv_wc) -> [u8; 4] {
    // SAFETY: both members of the union are 32-bit numbers.
    unsafe { wc.imm_data_invalidated_rkey_union.imm_data }.to_ne_bytes()
}

/// A pointer as C takes it for the caller's own values.
pub(crate) fn token(value: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(value as usize)
}
