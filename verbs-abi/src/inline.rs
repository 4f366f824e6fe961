//! The inline functions of `verbs.h`: they call operations of an object, or of its context, and
//! report an error if there is none.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::offset_of;
use std::ptr::{null, null_mut};

use crate::{
    EXTENDED, ibv_alloc_dm_attr, ibv_context, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex,
    ibv_device_attr_ex, ibv_dm, ibv_modify_cq_attr, ibv_mr, ibv_mw, ibv_mw_bind,
    ibv_parent_domain_init_attr, ibv_pd, ibv_poll_cq_attr, ibv_port_attr, ibv_qp,
    ibv_qp_init_attr_ex, ibv_qp_open_attr, ibv_recv_wr, ibv_send_wr, ibv_sge, ibv_srq,
    ibv_srq_init_attr_ex, ibv_td, ibv_td_init_attr, ibv_values_ex, ibv_wc, ibv_xrcd,
    ibv_xrcd_init_attr, library, verbs_context,
};

/// What an operation that a driver has not filled in gives.
const MISSING: c_int = libc::ENOSYS;
/// What an extended operation that is not there gives.
const NOT_SUPPORTED: c_int = libc::EOPNOTSUPP;

/// The error of a missing operation that creates objects.
fn nothing<T>() -> *mut T {
    // SAFETY: gives the place of this thread's own number, which may be written.
    unsafe { *libc::__errno_location() = NOT_SUPPORTED };
    null_mut()
}

/// What has a context, or is one.
trait InContext {
    /// # Safety
    /// The object is live.
    unsafe fn context(object: *mut Self) -> *mut ibv_context;
}

impl InContext for ibv_context {
    unsafe fn context(object: *mut Self) -> *mut ibv_context {
        object
    }
}

macro_rules! in_context {
    ($($kind:ident)*) => { $(
        impl InContext for $kind {
            unsafe fn context(object: *mut Self) -> *mut ibv_context {
                // SAFETY: the caller's promise.
                unsafe { (*object).context }
            }
        }
    )* };
}

in_context! { ibv_pd ibv_td ibv_mw ibv_dm ibv_cq ibv_qp ibv_srq ibv_xrcd }

/// The extended context around a context (`verbs_get_ctx`), if it has the field at this offset.
///
/// # Safety
/// `context` is a live context.
unsafe fn around(context: *mut ibv_context, field: usize) -> Option<*mut verbs_context> {
    // SAFETY: the caller's promise.
    if unsafe { (*context).abi_compat } != EXTENDED {
        return None;
    }
    // SAFETY: so the context is the last member of an extended one.
    let extended = unsafe { context.byte_sub(offset_of!(verbs_context, context)) };
    let extended = extended.cast::<verbs_context>();
    // Fields are added at the front: one exists if the size reaches back to it.
    let needed = size_of::<verbs_context>() - field;
    // SAFETY: the extended context is live, like its last member.
    (unsafe { (*extended).sz } >= needed).then_some(extended)
}

/// Finds an operation.
macro_rules! find {
    (own, $object:expr, $name:ident) => {
        (*$object).$name
    };
    (ops, $object:expr, $name:ident) => {
        (*InContext::context($object)).ops.$name
    };
    (extended, $object:expr, $name:ident) => {
        around(
            InContext::context($object),
            offset_of!(verbs_context, $name),
        )
        .and_then(|extended| (*extended).$name)
    };
}

macro_rules! operations {
    ($( $table:ident $name:ident($object:ident: $kind:ty $(, $arg:ident: $type:ty)*) -> $returned:ty, or $otherwise:expr; )*) => { $(
        #[doc = concat!("`ibv_", stringify!($name), "`")]
        ///
        /// # Safety
        /// The object is live, and all that is passed is as the manual page asks for.
        pub unsafe extern "C" fn $name($object: $kind $(, $arg: $type)*) -> $returned {
            // SAFETY: a live object has a live context, and an extended one has the field.
            match unsafe { find!($table, $object, $name) } {
                // SAFETY: the caller's promise is the operation's.
                Some(op) => unsafe { op($object $(, $arg)*) },
                None => $otherwise,
            }
        }
    )* };
}

operations! {
    ops poll_cq(cq: *mut ibv_cq, entries: c_int, wc: *mut ibv_wc) -> c_int, or -MISSING;
    ops req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int, or MISSING;
    ops post_send(qp: *mut ibv_qp, wr: *mut ibv_send_wr, bad: *mut *mut ibv_send_wr) -> c_int, or MISSING;
    ops post_recv(qp: *mut ibv_qp, wr: *mut ibv_recv_wr, bad: *mut *mut ibv_recv_wr) -> c_int, or MISSING;
    ops post_srq_recv(srq: *mut ibv_srq, wr: *mut ibv_recv_wr, bad: *mut *mut ibv_recv_wr) -> c_int, or MISSING;
    ops alloc_mw(pd: *mut ibv_pd, mw_type: u32) -> *mut ibv_mw, or nothing();
    ops dealloc_mw(mw: *mut ibv_mw) -> c_int, or MISSING;
    extended advise_mr(pd: *mut ibv_pd, advice: u32, flags: u32, list: *mut ibv_sge, count: u32) -> c_int, or NOT_SUPPORTED;
    extended alloc_null_mr(pd: *mut ibv_pd) -> *mut ibv_mr, or nothing();
    extended query_rt_values(context: *mut ibv_context, values: *mut ibv_values_ex) -> c_int, or NOT_SUPPORTED;
    extended alloc_td(context: *mut ibv_context, attr: *mut ibv_td_init_attr) -> *mut ibv_td, or nothing();
    extended dealloc_td(td: *mut ibv_td) -> c_int, or NOT_SUPPORTED;
    extended alloc_parent_domain(context: *mut ibv_context, attr: *mut ibv_parent_domain_init_attr) -> *mut ibv_pd, or nothing();
    extended alloc_dm(context: *mut ibv_context, attr: *mut ibv_alloc_dm_attr) -> *mut ibv_dm, or nothing();
    extended free_dm(dm: *mut ibv_dm) -> c_int, or NOT_SUPPORTED;
    extended reg_dm_mr(pd: *mut ibv_pd, dm: *mut ibv_dm, offset: u64, length: usize, access: c_uint) -> *mut ibv_mr, or nothing();
    own memcpy_to_dm(dm: *mut ibv_dm, offset: u64, from: *const c_void, length: usize) -> c_int, or NOT_SUPPORTED;
    extended create_cq_ex(context: *mut ibv_context, attr: *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex, or nothing();
    extended modify_cq(cq: *mut ibv_cq, attr: *mut ibv_modify_cq_attr) -> c_int, or NOT_SUPPORTED;
    extended create_qp_ex(context: *mut ibv_context, attr: *mut ibv_qp_init_attr_ex) -> *mut ibv_qp, or nothing();
    extended open_qp(context: *mut ibv_context, attr: *mut ibv_qp_open_attr) -> *mut ibv_qp, or nothing();
    extended create_srq_ex(context: *mut ibv_context, attr: *mut ibv_srq_init_attr_ex) -> *mut ibv_srq, or nothing();
    extended get_srq_num(srq: *mut ibv_srq, number: *mut u32) -> c_int, or NOT_SUPPORTED;
    extended open_xrcd(context: *mut ibv_context, attr: *mut ibv_xrcd_init_attr) -> *mut ibv_xrcd, or nothing();
    extended close_xrcd(xrcd: *mut ibv_xrcd) -> c_int, or NOT_SUPPORTED;
    own start_poll(cq: *mut ibv_cq_ex, attr: *mut ibv_poll_cq_attr) -> c_int, or MISSING;
    own next_poll(cq: *mut ibv_cq_ex) -> c_int, or MISSING;
    own end_poll(cq: *mut ibv_cq_ex) -> (), or ();
}

/// `ibv_bind_mw`
///
/// # Safety
/// `qp`, `mw` and the region that is named are live.
pub unsafe fn bind_mw(qp: *mut ibv_qp, mw: *mut ibv_mw, bind: &mut ibv_mw_bind) -> c_int {
    // SAFETY: window and region are live.
    let (mw_type, mw_pd, mr_pd) = unsafe { ((*mw).mw_type, (*mw).pd, (*bind.bind_info.mr).pd) };
    if mw_type != 1 {
        return libc::EINVAL;
    }
    if mw_pd != mr_pd {
        return libc::EPERM;
    }
    // SAFETY: a live window has a live context.
    match unsafe { find!(ops, mw, bind_mw) } {
        // SAFETY: the caller's promise is the operation's.
        Some(op) => unsafe { op(qp, mw, bind) },
        None => MISSING,
    }
}

/// `ibv_memcpy_from_dm`
///
/// # Safety
/// `dm` is live, and `to` has room for `length` bytes.
pub unsafe fn memcpy_from_dm(
    to: *mut c_void,
    dm: *mut ibv_dm,
    offset: u64,
    length: usize,
) -> c_int {
    // SAFETY: the device memory is live.
    match unsafe { find!(own, dm, memcpy_from_dm) } {
        // SAFETY: the caller's promise is the operation's.
        Some(op) => unsafe { op(to, dm, offset, length) },
        None => NOT_SUPPORTED,
    }
}

/// `ibv_query_port`: the extended operation if there is one, which fills the link layer and the
/// flags.
///
/// # Safety
/// `context` is a live context.
pub unsafe fn query_port(context: *mut ibv_context, port: u8, attr: &mut ibv_port_attr) -> c_int {
    // SAFETY: the context is live, and an extended one has the field.
    match unsafe { find!(extended, context, query_port) } {
        // SAFETY: the attributes have the size that is given.
        Some(op) => unsafe { op(context, port, attr, size_of::<ibv_port_attr>()) },
        // SAFETY: this one fills the start of the attributes; the rest is as it was.
        None => unsafe { library::ibv_query_port(context, port, attr) },
    }
}

/// `ibv_query_device_ex`: the plain query, if there is no other.
///
/// # Safety
/// `context` is a live context.
pub unsafe fn query_device_ex(context: *mut ibv_context, attr: &mut ibv_device_attr_ex) -> c_int {
    // SAFETY: the context is live, and an extended one has the field.
    let result = match unsafe { find!(extended, context, query_device_ex) } {
        // SAFETY: the attributes have the size that is given.
        Some(op) => unsafe { op(context, null(), attr, size_of::<ibv_device_attr_ex>()) },
        None => NOT_SUPPORTED,
    };
    match result {
        libc::EOPNOTSUPP | libc::ENOSYS => {
            // SAFETY: the context is live.
            unsafe { library::ibv_query_device(context, &mut attr.orig_attr) }
        }
        result => result,
    }
}
