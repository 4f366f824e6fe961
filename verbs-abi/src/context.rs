//! Devices, contexts, and the operations of a context.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::{
    ibv_alloc_dm_attr, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_device_attr_ex, ibv_dm,
    ibv_modify_cq_attr, ibv_mr, ibv_mw, ibv_mw_bind, ibv_parent_domain_init_attr, ibv_pd,
    ibv_port_attr, ibv_qp, ibv_qp_init_attr_ex, ibv_qp_open_attr, ibv_recv_wr, ibv_send_wr,
    ibv_sge, ibv_srq, ibv_srq_init_attr_ex, ibv_td, ibv_td_init_attr, ibv_values_ex, ibv_wc,
    ibv_xrcd, ibv_xrcd_init_attr,
};

/// An operation that verbsim does not call or fill.
type NoOp = usize;

structures! {
    ibv_device [664] {
        ops = _ops: [NoOp; 2],
        node_type: c_int,
        transport_type: c_int,
        name: [c_char; 64],
        dev_name: [c_char; 64],
        dev_path: [c_char; 256],
        ibdev_path: [c_char; 256],
    }

    ibv_context_ops [256] {
        compat_to_dereg_mr = _compat_query_device: [NoOp; 7],
        alloc_mw: op!(*mut ibv_pd, u32 => *mut ibv_mw),
        bind_mw: op!(*mut ibv_qp, *mut ibv_mw, *mut ibv_mw_bind => c_int),
        dealloc_mw: op!(*mut ibv_mw => c_int),
        compat_create_cq = _compat_create_cq: NoOp,
        poll_cq: op!(*mut ibv_cq, c_int, *mut ibv_wc => c_int),
        req_notify_cq: op!(*mut ibv_cq, c_int => c_int),
        compat_to_destroy_srq = _compat_cq_event: [NoOp; 7],
        post_srq_recv: op!(*mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr => c_int),
        compat_to_destroy_qp = _compat_create_qp: [NoOp; 4],
        post_send: op!(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr => c_int),
        post_recv: op!(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr => c_int),
        compat_to_async_event = _compat_create_ah: [NoOp; 5],
    }

    ibv_context [328] {
        device: *mut ibv_device,
        ops: ibv_context_ops,
        cmd_fd: c_int,
        async_fd: c_int,
        num_comp_vectors: c_int,
        mutex: libc::pthread_mutex_t,
        abi_compat: *mut c_void,
    }

    /// What a program that knows of more fields finds by `sz` not to be there.
    verbs_context [696] (grows before context) {
        newest = (free_buf): [NoOp; 6],
        query_port: op!(*mut ibv_context, u8, *mut ibv_port_attr, usize => c_int),
        advise_mr: op!(*mut ibv_pd, u32, u32, *mut ibv_sge, u32 => c_int),
        alloc_null_mr: op!(*mut ibv_pd => *mut ibv_mr),
        counters = read_counters: [NoOp; 4],
        reg_dm_mr: op!(*mut ibv_pd, *mut ibv_dm, u64, usize, c_uint => *mut ibv_mr),
        alloc_dm: op!(*mut ibv_context, *mut ibv_alloc_dm_attr => *mut ibv_dm),
        free_dm: op!(*mut ibv_dm => c_int),
        flow_actions = modify_flow_action_esp: [NoOp; 3],
        modify_qp_rate_limit: NoOp,
        alloc_parent_domain:
            op!(*mut ibv_context, *mut ibv_parent_domain_init_attr => *mut ibv_pd),
        dealloc_td: op!(*mut ibv_td => c_int),
        alloc_td: op!(*mut ibv_context, *mut ibv_td_init_attr => *mut ibv_td),
        modify_cq: op!(*mut ibv_cq, *mut ibv_modify_cq_attr => c_int),
        post_srq_ops: NoOp,
        work_queues = destroy_rwq_ind_table: [NoOp; 5],
        query_rt_values: op!(*mut ibv_context, *mut ibv_values_ex => c_int),
        create_cq_ex: op!(*mut ibv_context, *mut ibv_cq_init_attr_ex => *mut ibv_cq_ex),
        own = priv_: *mut c_void,
        query_device_ex: op!(*mut ibv_context, *const u32, *mut ibv_device_attr_ex, usize => c_int),
        destroy_flow = ibv_destroy_flow: NoOp,
        placeholder2 = ABI_placeholder2: NoOp,
        create_flow = ibv_create_flow: NoOp,
        placeholder1 = ABI_placeholder1: NoOp,
        open_qp: op!(*mut ibv_context, *mut ibv_qp_open_attr => *mut ibv_qp),
        create_qp_ex: op!(*mut ibv_context, *mut ibv_qp_init_attr_ex => *mut ibv_qp),
        get_srq_num: op!(*mut ibv_srq, *mut u32 => c_int),
        create_srq_ex: op!(*mut ibv_context, *mut ibv_srq_init_attr_ex => *mut ibv_srq),
        open_xrcd: op!(*mut ibv_context, *mut ibv_xrcd_init_attr => *mut ibv_xrcd),
        close_xrcd: op!(*mut ibv_xrcd => c_int),
        placeholder3 = _ABI_placeholder3: u64,
        sz: usize,
        context: ibv_context,
    }
}

/// A device with room behind it, where libraries of vendors look whether it is theirs.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct verbs_device {
    /// The part that programs know.
    pub device: ibv_device,
    /// The part for drivers.
    pub of_driver: [u64; 8],
}

/// `abi_compat` of a context that is the last member of an extended one.
pub const EXTENDED: *mut c_void = std::ptr::without_provenance_mut(usize::MAX);

constants! {
    numbers ibv_node_type: c_int { IBV_NODE_CA = 1, IBV_NODE_RNIC = 4 }
    numbers ibv_transport_type: c_int { IBV_TRANSPORT_IB = 0, IBV_TRANSPORT_IWARP = 1 }
}
