//! What this library has only by name.
//!
//! Public functions for what the devices lack, and the private ones by which libibverbs and its drivers
//! talk to each other. Vendors' libraries import these, and programs are linked with such libraries. None
//! is called for a device of another vendor, except the one by which a driver registers.
//!
//! A program that calls a public one is refused with `EOPNOTSUPP`. What is inline in `verbs.h`
//! finds the functions here in the context.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use crate::result::{Refusal, or_minus_one, pointer, set_errno, status};

macro_rules! absent {
    (@object) => { () };
    (@object $object:ident) => { $object };
    ($( $call:literal: $name:ident($($object:ident: $seen:ident)?) -> $returns:ty = $leave:ident; )*) => { $(
        pub(crate) extern "C" fn $name($($object: *mut verbs_abi::$seen)?) -> $returns {
            $leave($call, absent!(@object $($object)?), || Err(Refusal::unsupported("no device here can do this")))
        }
    )* };
}

absent! {
    "ibv_advise_mr": advise_mr(pd: ibv_pd) -> c_int = status;
    "ibv_alloc_buf": alloc_buf() -> *mut c_void = pointer;
    "ibv_alloc_dmah": alloc_dmah(context: ibv_context) -> *mut c_void = pointer;
    "ibv_create_counters": create_counters(context: ibv_context) -> *mut c_void = pointer;
    "ibv_create_flow": create_flow(qp: ibv_qp) -> *mut c_void = pointer;
    "ibv_create_flow_action_esp": create_flow_action_esp(context: ibv_context) -> *mut c_void = pointer;
    "ibv_create_rwq_ind_table": create_rwq_ind_table(context: ibv_context) -> *mut c_void = pointer;
    "ibv_create_wq": create_wq(context: ibv_context) -> *mut c_void = pointer;
    "ibv_dealloc_dmah": dealloc_dmah() -> c_int = status;
    "ibv_dm_export_dmabuf_fd": dm_export_dmabuf_fd(dm: ibv_dm) -> c_int = or_minus_one;
    "ibv_free_buf": free_buf() -> c_int = status;
    "ibv_modify_qp_rate_limit": modify_qp_rate_limit(qp: ibv_qp) -> c_int = status;
    "ibv_post_srq_ops": post_srq_ops(srq: ibv_srq) -> c_int = status;
    "ibv_reg_buf_mr": reg_buf_mr(pd: ibv_pd) -> *mut c_void = pointer;
    "ibv_reg_mr_ex": reg_mr_ex(pd: ibv_pd) -> *mut c_void = pointer;
    "ibv_resolve_eth_l2_from_gid": resolve_eth_l2_from_gid(context: ibv_context) -> c_int = status;
}

/// A private function that returns a number.
pub(crate) extern "C" fn unsupported() -> c_int {
    set_errno(libc::EOPNOTSUPP);
    libc::EOPNOTSUPP
}

/// A private function that returns a pointer.
pub(crate) extern "C" fn none() -> *mut c_void {
    set_errno(libc::EOPNOTSUPP);
    null_mut()
}

/// A driver is there, or logs, or something is let go of.
pub(crate) extern "C" fn nothing() {}
