//! Functions of libibverbs that no device here supports.
//!
//! They are exported because programs, and the libraries of vendors that programs are linked with,
//! import them. Public functions fail with `EOPNOTSUPP`. Inline functions of `verbs.h` find the
//! functions here in the context. Private functions are those by which libibverbs and its drivers
//! call each other. A driver of another vendor is never called, except that it registers itself.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use crate::c::{Refusal, or_minus_one, pointer, set_errno, status};

macro_rules! absent {
    (@object) => { () };
    (@object $object:ident) => { $object };
    ($( $call:literal: $name:ident($($object:ident: $seen:ident)?) -> $returns:ty = $leave:ident; )*) => {
        $(
            pub(crate) extern "C" fn $name($($object: *mut verbs_abi::$seen)?) -> $returns {
                let object = absent!(@object $($object)?);
                $leave($call, object, |_| {
                    Err(Refusal::unsupported("no device here can do this"))
                })
            }
        )*

        /// The names of the functions.
        #[cfg(test)]
        const NAMES: &[&str] = &[$($call),*];
    };
}

absent! {
    "ibv_alloc_dmah": alloc_dmah(context: ibv_context) -> *mut c_void = pointer;
    "ibv_create_comp_cntr": create_comp_cntr(context: ibv_context) -> *mut c_void = pointer;
    "ibv_create_counters": create_counters(context: ibv_context) -> *mut c_void = pointer;
    "ibv_create_flow": create_flow(qp: ibv_qp) -> *mut c_void = pointer;
    "ibv_create_flow_action_esp": create_flow_action_esp(context: ibv_context) -> *mut c_void = pointer;
    "ibv_create_rwq_ind_table": create_rwq_ind_table(context: ibv_context) -> *mut c_void = pointer;
    "ibv_create_wq": create_wq(context: ibv_context) -> *mut c_void = pointer;
    "ibv_dealloc_dmah": dealloc_dmah() -> c_int = status;
    "ibv_destroy_comp_cntr": destroy_comp_cntr() -> c_int = status;
    "ibv_dm_export_dmabuf_fd": dm_export_dmabuf_fd(dm: ibv_dm) -> c_int = or_minus_one;
    "ibv_inc_comp_cntr": inc_comp_cntr() -> c_int = status;
    "ibv_inc_err_comp_cntr": inc_err_comp_cntr() -> c_int = status;
    "ibv_modify_qp_rate_limit": modify_qp_rate_limit(qp: ibv_qp) -> c_int = status;
    "ibv_post_srq_ops": post_srq_ops(srq: ibv_srq) -> c_int = status;
    "ibv_qp_attach_comp_cntr": qp_attach_comp_cntr(qp: ibv_qp) -> c_int = status;
    "ibv_read_comp_cntr": read_comp_cntr() -> c_int = status;
    "ibv_read_err_comp_cntr": read_err_comp_cntr() -> c_int = status;
    "ibv_resolve_eth_l2_from_gid": resolve_eth_l2_from_gid(context: ibv_context) -> c_int = status;
    "ibv_set_comp_cntr": set_comp_cntr() -> c_int = status;
    "ibv_set_err_comp_cntr": set_err_comp_cntr() -> c_int = status;
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

/// A private function that returns nothing: a driver registers itself, or logs, or frees something.
pub(crate) extern "C" fn nothing() {}

#[cfg(test)]
mod tests {
    use super::NAMES;

    #[test]
    fn the_documentation_lists_what_is_absent() {
        let text = include_str!("../../../docs/drop-in.md");
        let (_, listed) = text.split_once("<!-- absent -->").expect("the list begins");
        let (listed, _) = listed.split_once("<!-- end -->").expect("the list ends");
        let mut listed: Vec<_> = listed
            .split('`')
            .filter(|of| of.starts_with("ibv_"))
            .collect();
        listed.sort_unstable();
        assert_eq!(listed, NAMES);
    }
}
