//! A program of Rust that uses libibverbs: it creates a queue pair on the first device.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// `struct ibv_qp_init_attr`.
#[repr(C)]
struct QpInitAttr {
    qp_context: *mut c_void,
    send_cq: *mut c_void,
    recv_cq: *mut c_void,
    srq: *mut c_void,
    /// `struct ibv_qp_cap`: work requests to send and to receive, their scatter/gather elements,
    /// inline bytes.
    cap: [u32; 5],
    qp_type: c_int,
    sq_sig_all: c_int,
}

const IBV_QPT_RC: c_int = 2;

#[link(name = "ibverbs")]
unsafe extern "C" {
    fn ibv_get_device_list(count: *mut c_int) -> *mut *mut c_void;
    fn ibv_free_device_list(list: *mut *mut c_void);
    fn ibv_open_device(device: *mut c_void) -> *mut c_void;
    fn ibv_close_device(context: *mut c_void) -> c_int;
    fn ibv_alloc_pd(context: *mut c_void) -> *mut c_void;
    fn ibv_dealloc_pd(pd: *mut c_void) -> c_int;
    fn ibv_create_cq(
        context: *mut c_void,
        cqe: c_int,
        cq_context: *mut c_void,
        channel: *mut c_void,
        vector: c_int,
    ) -> *mut c_void;
    fn ibv_destroy_cq(cq: *mut c_void) -> c_int;
    fn ibv_create_qp(pd: *mut c_void, init: *mut QpInitAttr) -> *mut c_void;
    fn ibv_destroy_qp(qp: *mut c_void) -> c_int;
}

/// Creates a queue pair and destroys it. Returns whether each call succeeded.
pub fn works() -> bool {
    // SAFETY: each pointer is what libibverbs returned, and is looked at before it is used.
    unsafe {
        let mut count = 0;
        let list = ibv_get_device_list(&mut count);
        if list.is_null() || count == 0 {
            return false;
        }
        let context = ibv_open_device(*list);
        ibv_free_device_list(list);
        if context.is_null() {
            return false;
        }
        let pd = ibv_alloc_pd(context);
        let cq = ibv_create_cq(context, 16, null_mut(), null_mut(), 0);
        let mut init = QpInitAttr {
            qp_context: null_mut(),
            send_cq: cq,
            recv_cq: cq,
            srq: null_mut(),
            cap: [4, 4, 1, 1, 0],
            qp_type: IBV_QPT_RC,
            sq_sig_all: 1,
        };
        let qp = ibv_create_qp(pd, &mut init);
        !qp.is_null()
            && ibv_destroy_qp(qp) == 0
            && ibv_destroy_cq(cq) == 0
            && ibv_dealloc_pd(pd) == 0
            && ibv_close_device(context) == 0
    }
}
