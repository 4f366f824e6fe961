//! The names of the library, each with its version.
//!
//! Rust cannot export a symbol with a version. Each symbol is a jump to the function ([`jump`]),
//! written in assembly, where the assembler adds the version. `versions.map` lists the versions.

/// `@@` makes the version the one that programs are linked with, `@` another one.
macro_rules! symbol {
    ($at:literal, $version:literal, $name:ident, $function:path) => {
        symbol!($at, $version, "", $name, $function);
    };
    ($at:literal, $version:literal, $prefix:literal, $name:ident, $function:path) => {
        std::arch::global_asm!(
            concat!(".globl __", $prefix, stringify!($name), "_", $version),
            concat!(".type __", $prefix, stringify!($name), "_", $version, ", @function"),
            concat!("__", $prefix, stringify!($name), "_", $version, ":"),
            jump!(),
            concat!(
                ".symver __", $prefix, stringify!($name), "_", $version, ", ",
                $prefix, stringify!($name), $at, $version, ", remove"
            ),
            function = sym $function,
        );
    };
}

/// Functions of modules. Each is exported under its own name after a prefix.
macro_rules! named {
    ($version:literal, $prefix:literal; $( $module:ident { $( $name:ident )* } )*) => { $( $(
        symbol!("@@", $version, $prefix, $name, $module::$name);
    )* )* };
}

/// Functions under other names.
macro_rules! export {
    ($version:literal; $( $name:ident = $function:path; )*) => {
        $( symbol!("@@", $version, $name, $function); )*
    };
}

/// Several names of one function.
macro_rules! same {
    ($at:literal, $version:literal, $function:path { $( $name:ident )* }) => {
        $( symbol!($at, $version, $name, $function); )*
    };
}

/// Functions by which libibverbs and its drivers call each other. They are the same in each
/// release, under a version of that release.
macro_rules! private {
    ($at:literal, $version:literal, $register:ident) => {
        same!($at, $version, nothing {
            $register __verbs_log verbs_allow_disassociate_destroy verbs_init_cq verbs_set_ops
            verbs_uninit_context ibv_dmabuf_heap_destroy ibv_dmabuf_heap_free
        });
        symbol!($at, $version, ibv_query_gid_type, query::query_gid_type);
        same!($at, $version, none {
            _verbs_init_and_alloc_context verbs_open_device ibv_dmabuf_heap_alloc
            ibv_dmabuf_heap_cc_shared_init ibv_wr_opcode_str
        });
        same!($at, $version, unsupported {
            __ioctl_final_num_attrs execute_ioctl ibv_cmd_advise_mr ibv_cmd_alloc_dm
            ibv_cmd_alloc_mw ibv_cmd_alloc_pd ibv_cmd_attach_mcast ibv_cmd_close_xrcd
            ibv_cmd_create_ah ibv_cmd_create_counters ibv_cmd_create_cq ibv_cmd_create_cq_ex
            ibv_cmd_create_flow ibv_cmd_create_flow_action_esp ibv_cmd_create_qp
            ibv_cmd_create_qp_ex ibv_cmd_create_qp_ex2 ibv_cmd_create_rwq_ind_table
            ibv_cmd_create_srq ibv_cmd_create_srq_ex ibv_cmd_create_wq ibv_cmd_dealloc_mw
            ibv_cmd_dealloc_pd ibv_cmd_dereg_mr ibv_cmd_destroy_ah ibv_cmd_destroy_counters
            ibv_cmd_destroy_cq ibv_cmd_destroy_flow ibv_cmd_destroy_flow_action ibv_cmd_destroy_qp
            ibv_cmd_destroy_rwq_ind_table ibv_cmd_destroy_srq ibv_cmd_destroy_wq
            ibv_cmd_detach_mcast ibv_cmd_free_dm ibv_cmd_get_context ibv_cmd_modify_cq
            ibv_cmd_modify_flow_action_esp ibv_cmd_modify_qp ibv_cmd_modify_qp_ex ibv_cmd_modify_srq
            ibv_cmd_modify_wq ibv_cmd_open_qp ibv_cmd_open_xrcd ibv_cmd_poll_cq ibv_cmd_post_recv
            ibv_cmd_post_send ibv_cmd_post_srq_recv ibv_cmd_query_context ibv_cmd_query_device_any
            ibv_cmd_query_mr ibv_cmd_query_port ibv_cmd_query_qp ibv_cmd_query_srq
            ibv_cmd_read_counters ibv_cmd_reg_dm_mr ibv_cmd_reg_dmabuf_mr ibv_cmd_reg_mr
            ibv_cmd_req_notify_cq ibv_cmd_rereg_mr ibv_cmd_resize_cq ibv_read_ibdev_sysfs_file
            ibv_cmd_alloc_dmah ibv_cmd_free_dmah ibv_cmd_create_cq_ex2 ibv_cmd_reg_mr_ex
            ibv_cmd_create_comp_cntr ibv_cmd_destroy_comp_cntr ibv_cmd_export_dmabuf_fd
            ibv_cmd_inc_comp_cntr ibv_cmd_inc_err_comp_cntr ibv_cmd_qp_attach_comp_cntr
            ibv_cmd_query_comp_cntr_caps ibv_cmd_query_port_speed ibv_cmd_read_comp_cntr
            ibv_cmd_read_err_comp_cntr ibv_cmd_set_comp_cntr ibv_cmd_set_err_comp_cntr
        });
    };
}

use crate::base::thread::jump;
use crate::cm::{
    address, addrinfo, channel, connect, device as cm_device, ece as cm_ece, event as cm_event,
    group, id, qp as cm_qp, resolved, rsocket, sync,
};
use crate::process::control;
use crate::verbs::absent::{none, nothing, unsupported};
use crate::verbs::{
    absent, ah, buffer, cq, device, dm, domain, ece, event, open, qp, query, region, srq, text, wr,
};

// libibverbs.
named! { "IBVERBS_1.0", "ibv_";
    cq { create_comp_channel destroy_comp_channel }
    text { get_sysfs_path read_sysfs_file rate_to_mult }
}
export! { "IBVERBS_1.0";
    mult_to_ibv_rate = text::mult_to_rate;
    ibv_copy_path_rec_from_kern = nothing;
    ibv_copy_path_rec_to_kern = nothing;
    ibv_copy_qp_attr_from_kern = nothing;
}
named! { "IBVERBS_1.1", "ibv_";
    device { get_device_list get_device_name get_device_guid }
    open { open_device close_device }
    query { query_device query_port query_gid query_pkey }
    domain { alloc_pd dealloc_pd }
    region { reg_mr rereg_mr dereg_mr }
    cq { create_cq resize_cq destroy_cq get_cq_event ack_cq_events }
    event { get_async_event ack_async_event }
    srq { create_srq modify_srq query_srq destroy_srq }
    qp { create_qp query_qp modify_qp destroy_qp attach_mcast detach_mcast }
    ah { create_ah create_ah_from_wc init_ah_from_wc destroy_ah }
    text { fork_init wc_status_str node_type_str port_state_str event_type_str rate_to_mbps }
    absent { resolve_eth_l2_from_gid }
}
export! { "IBVERBS_1.1";
    // `calloc` allocates the lists.
    ibv_free_device_list = libc::free;
    ibv_dontfork_range = text::fork_range;
    ibv_dofork_range = text::fork_range;
    mbps_to_ibv_rate = text::mbps_to_rate;
    ibv_copy_ah_attr_from_kern = nothing;
}
named! { "IBVERBS_1.5", "ibv_";
    query { get_pkey_index }
}
named! { "IBVERBS_1.6", "ibv_";
    wr { qp_to_qp_ex }
}
export! { "IBVERBS_1.7"; ibv_reg_mr_iova = region::reg_mr_iova2; }
named! { "IBVERBS_1.8", "ibv_";
    region { reg_mr_iova2 }
}
named! { "IBVERBS_1.9", "ibv_";
    device { get_device_index }
}
named! { "IBVERBS_1.10", "ibv_";
    open { import_device }
    region { import_mr unimport_mr }
    domain { import_pd unimport_pd }
    ece { query_ece set_ece }
}
export! { "IBVERBS_1.11";
    _ibv_query_gid_ex = query::query_gid_ex;
    _ibv_query_gid_table = query::query_gid_table;
}
named! { "IBVERBS_1.12", "ibv_";
    region { reg_dmabuf_mr }
}
named! { "IBVERBS_1.13", "ibv_";
    dm { import_dm unimport_dm }
    text { is_fork_initialized }
}
named! { "IBVERBS_1.14", "ibv_";
    qp { query_qp_data_in_order }
}
named! { "IBVERBS_1.15", "ibv_";
    absent { alloc_dmah dealloc_dmah }
    region { reg_mr_ex }
}
named! { "IBVERBS_1.16", "ibv_";
    absent { dm_export_dmabuf_fd }
    query { query_port_speed }
}
named! { "IBVERBS_1.17", "ibv_";
    buffer { alloc_buf free_buf }
    region { reg_buf_mr }
}
named! { "IBVERBS_1.18", "ibv_";
    absent {
        create_comp_cntr destroy_comp_cntr inc_comp_cntr inc_err_comp_cntr qp_attach_comp_cntr
        read_comp_cntr read_err_comp_cntr set_comp_cntr set_err_comp_cntr
    }
    buffer { export_buf_dmabuf_fd }
}
export! { "IBVERBS_1.18"; _ibv_query_comp_cntr_caps = query::query_comp_cntr_caps; }

// librdmacm.
named! { "RDMACM_1.0", "rdma_";
    connect { accept connect disconnect listen notify reject }
    cm_event { ack_cm_event event_str get_cm_event }
    address { bind_addr get_dst_port get_src_port resolve_addr resolve_route set_option }
    sync { create_ep destroy_ep get_request }
    channel { create_event_channel destroy_event_channel }
    id { create_id destroy_id migrate_id }
    cm_qp { create_qp create_qp_ex create_srq create_srq_ex destroy_qp destroy_srq }
    cm_device { get_devices }
    addrinfo { freeaddrinfo getaddrinfo }
    group { join_multicast leave_multicast }
}
export! { "RDMACM_1.0";
    rdma_free_devices = libc::free;
    rclose = rsocket::close;
    // No descriptor is a socket over RDMA.
    rpoll = libc::poll;
    rselect = libc::select;
}
named! { "RDMACM_1.1", "rdma_";
    group { join_multicast_ex }
}
named! { "RDMACM_1.2", "rdma_";
    connect { establish init_qp_attr }
}
named! { "RDMACM_1.3", "rdma_";
    cm_ece { get_remote_ece reject_ece set_local_ece }
}
named! { "RDMACM_1.4", "rdma_";
    resolved { query_addrinfo resolve_addrinfo }
    cm_event { write_cm_event }
}
export! { "RDMACM_1.5";
    repoll_create = rsocket::repoll_create;
    repoll_ctl = rsocket::repoll_ctl;
    repoll_wait = rsocket::repoll_wait;
}
same!("@@", "RDMACM_1.0", rsocket::minus_one {
    raccept rbind rconnect rfcntl rgetpeername rgetsockname rgetsockopt riounmap rlisten rsetsockopt
    rshutdown rsocket
});
same!("@@", "RDMACM_1.0", rsocket::minus_one_wide {
    riomap riowrite rread rreadv rrecv rrecvfrom rrecvmsg rsend rsendmsg rsendto rwrite rwritev
});

// `verbsim.h`.
export! { "VERBSIM_1.0";
    verbsim_inject = control::inject;
    verbsim_drop_packets_at = control::drop_packets;
    verbsim_delay_packets_at = control::delay_packets;
    verbsim_fail_calls_at = control::fail_calls;
    verbsim_fail_completions_at = control::fail_completions;
    verbsim_port_down_at = control::port_down;
    verbsim_kill_device_at = control::kill_device;
    verbsim_fired = control::fired;
    verbsim_remove = control::remove;
    verbsim_mark = control::mark;
    verbsim_count_findings = control::count_findings;
    verbsim_findings = control::findings_since;
}

// No program is linked with it any more.
symbol!("@", "IBVERBS_1.1", ibv_register_driver, nothing);

private!("@", "IBVERBS_PRIVATE_34", verbs_register_driver_34);
private!("@", "IBVERBS_PRIVATE_57", verbs_register_driver_57);
private!("@", "IBVERBS_PRIVATE_59", verbs_register_driver_59);
private!("@@", "IBVERBS_PRIVATE_65", verbs_register_driver_65);

/// `verbsim exec` looks for this name to recognize the drop-in. Other libraries lack it, and so
/// does a drop-in that was built empty.
#[unsafe(no_mangle)]
pub(crate) static VERBSIM_DROP_IN: u8 = 1;
