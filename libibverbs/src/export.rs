//! The names of the library, each with its version.
//!
//! A symbol with a version is more than Rust can export by itself. Each is a jump to the function ([`jump`]),
//! written in assembly, where the assembler gives the version; `versions.map` says which there are.

macro_rules! export {
    ($( $version:literal { $( $name:ident = $function:path; )* } )*) => { $( $(
        symbol!("@@", $version, $name, $function);
    )* )* };
}

/// `@@` makes the version the one that programs are linked with, `@` one more.
macro_rules! symbol {
    ($at:literal, $version:literal, $name:ident, $function:path) => {
        std::arch::global_asm!(
            concat!(".globl __", stringify!($name), "_", $version),
            concat!(".type __", stringify!($name), "_", $version, ", @function"),
            concat!("__", stringify!($name), "_", $version, ":"),
            jump!(),
            concat!(
                ".symver __", stringify!($name), "_", $version, ", ",
                stringify!($name), $at, $version, ", remove"
            ),
            function = sym $function,
        );
    };
}

/// What libibverbs and its drivers have among themselves: the same in each release, under a version
/// that is the release's.
macro_rules! private {
    ($at:literal, $version:literal, $register:ident) => {
        private! { $at, $version;
            $register = nothing;
            ibv_query_gid_type = query::query_gid_type;
            __verbs_log = nothing;
            verbs_allow_disassociate_destroy = nothing;
            verbs_init_cq = nothing;
            verbs_set_ops = nothing;
            verbs_uninit_context = nothing;
            _verbs_init_and_alloc_context = none;
            verbs_open_device = none;
            __ioctl_final_num_attrs = unsupported;
            execute_ioctl = unsupported;
            ibv_cmd_advise_mr = unsupported;
            ibv_cmd_alloc_dm = unsupported;
            ibv_cmd_alloc_mw = unsupported;
            ibv_cmd_alloc_pd = unsupported;
            ibv_cmd_attach_mcast = unsupported;
            ibv_cmd_close_xrcd = unsupported;
            ibv_cmd_create_ah = unsupported;
            ibv_cmd_create_counters = unsupported;
            ibv_cmd_create_cq = unsupported;
            ibv_cmd_create_cq_ex = unsupported;
            ibv_cmd_create_flow = unsupported;
            ibv_cmd_create_flow_action_esp = unsupported;
            ibv_cmd_create_qp = unsupported;
            ibv_cmd_create_qp_ex = unsupported;
            ibv_cmd_create_qp_ex2 = unsupported;
            ibv_cmd_create_rwq_ind_table = unsupported;
            ibv_cmd_create_srq = unsupported;
            ibv_cmd_create_srq_ex = unsupported;
            ibv_cmd_create_wq = unsupported;
            ibv_cmd_dealloc_mw = unsupported;
            ibv_cmd_dealloc_pd = unsupported;
            ibv_cmd_dereg_mr = unsupported;
            ibv_cmd_destroy_ah = unsupported;
            ibv_cmd_destroy_counters = unsupported;
            ibv_cmd_destroy_cq = unsupported;
            ibv_cmd_destroy_flow = unsupported;
            ibv_cmd_destroy_flow_action = unsupported;
            ibv_cmd_destroy_qp = unsupported;
            ibv_cmd_destroy_rwq_ind_table = unsupported;
            ibv_cmd_destroy_srq = unsupported;
            ibv_cmd_destroy_wq = unsupported;
            ibv_cmd_detach_mcast = unsupported;
            ibv_cmd_free_dm = unsupported;
            ibv_cmd_get_context = unsupported;
            ibv_cmd_modify_cq = unsupported;
            ibv_cmd_modify_flow_action_esp = unsupported;
            ibv_cmd_modify_qp = unsupported;
            ibv_cmd_modify_qp_ex = unsupported;
            ibv_cmd_modify_srq = unsupported;
            ibv_cmd_modify_wq = unsupported;
            ibv_cmd_open_qp = unsupported;
            ibv_cmd_open_xrcd = unsupported;
            ibv_cmd_poll_cq = unsupported;
            ibv_cmd_post_recv = unsupported;
            ibv_cmd_post_send = unsupported;
            ibv_cmd_post_srq_recv = unsupported;
            ibv_cmd_query_context = unsupported;
            ibv_cmd_query_device_any = unsupported;
            ibv_cmd_query_mr = unsupported;
            ibv_cmd_query_port = unsupported;
            ibv_cmd_query_qp = unsupported;
            ibv_cmd_query_srq = unsupported;
            ibv_cmd_read_counters = unsupported;
            ibv_cmd_reg_dm_mr = unsupported;
            ibv_cmd_reg_dmabuf_mr = unsupported;
            ibv_cmd_reg_mr = unsupported;
            ibv_cmd_req_notify_cq = unsupported;
            ibv_cmd_rereg_mr = unsupported;
            ibv_cmd_resize_cq = unsupported;
            ibv_read_ibdev_sysfs_file = unsupported;
            ibv_cmd_alloc_dmah = unsupported;
            ibv_cmd_free_dmah = unsupported;
            ibv_cmd_create_cq_ex2 = unsupported;
            ibv_cmd_reg_mr_ex = unsupported;
            ibv_cmd_create_comp_cntr = unsupported;
            ibv_cmd_destroy_comp_cntr = unsupported;
            ibv_cmd_export_dmabuf_fd = unsupported;
            ibv_cmd_inc_comp_cntr = unsupported;
            ibv_cmd_inc_err_comp_cntr = unsupported;
            ibv_cmd_qp_attach_comp_cntr = unsupported;
            ibv_cmd_query_comp_cntr_caps = unsupported;
            ibv_cmd_query_port_speed = unsupported;
            ibv_cmd_read_comp_cntr = unsupported;
            ibv_cmd_read_err_comp_cntr = unsupported;
            ibv_cmd_set_comp_cntr = unsupported;
            ibv_cmd_set_err_comp_cntr = unsupported;
            ibv_dmabuf_heap_alloc = none;
            ibv_dmabuf_heap_cc_shared_init = none;
            ibv_dmabuf_heap_destroy = nothing;
            ibv_dmabuf_heap_free = nothing;
            ibv_wr_opcode_str = none;
        }
    };
    ($at:literal, $version:literal; $( $name:ident = $function:path; )*) => {
        $( symbol!($at, $version, $name, $function); )*
    };
}

use crate::base::thread::jump;
use crate::cm::{
    address, addrinfo, channel, connect, device as cm_device, event as cm_event, group, id,
    qp as cm_qp, resolved, rsocket, sync,
};
use crate::process::control;
use crate::verbs::absent::{none, nothing, unsupported};
use crate::verbs::{
    absent, ah, buffer, cq, device, dm, domain, event, open, qp, query, region, srq, text, wr,
};

export! {
    "IBVERBS_1.0" {
        ibv_create_comp_channel = cq::create_comp_channel;
        ibv_destroy_comp_channel = cq::destroy_comp_channel;
        ibv_get_sysfs_path = text::get_sysfs_path;
        ibv_read_sysfs_file = text::read_sysfs_file;
        ibv_rate_to_mult = text::rate_to_mult;
        mult_to_ibv_rate = text::mult_to_rate;
        ibv_copy_path_rec_from_kern = nothing;
        ibv_copy_path_rec_to_kern = nothing;
        ibv_copy_qp_attr_from_kern = nothing;
    }
    "IBVERBS_1.1" {
        ibv_get_device_list = device::get_device_list;
        ibv_free_device_list = device::free_device_list;
        ibv_get_device_name = device::get_device_name;
        ibv_get_device_guid = device::get_device_guid;
        ibv_open_device = open::open_device;
        ibv_close_device = open::close_device;
        ibv_query_device = query::query_device;
        ibv_query_port = query::query_port;
        ibv_query_gid = query::query_gid;
        ibv_query_pkey = query::query_pkey;
        ibv_alloc_pd = domain::alloc_pd;
        ibv_dealloc_pd = domain::dealloc_pd;
        ibv_reg_mr = region::reg_mr;
        ibv_rereg_mr = region::rereg_mr;
        ibv_dereg_mr = region::dereg_mr;
        ibv_create_cq = cq::create_cq;
        ibv_resize_cq = cq::resize_cq;
        ibv_destroy_cq = cq::destroy_cq;
        ibv_get_cq_event = cq::get_cq_event;
        ibv_ack_cq_events = cq::ack_cq_events;
        ibv_get_async_event = event::get_async_event;
        ibv_ack_async_event = event::ack_async_event;
        ibv_create_srq = srq::create_srq;
        ibv_modify_srq = srq::modify_srq;
        ibv_query_srq = srq::query_srq;
        ibv_destroy_srq = srq::destroy_srq;
        ibv_create_qp = qp::create_qp;
        ibv_query_qp = qp::query_qp;
        ibv_modify_qp = qp::modify_qp;
        ibv_destroy_qp = qp::destroy_qp;
        ibv_attach_mcast = qp::attach_mcast;
        ibv_detach_mcast = qp::detach_mcast;
        ibv_create_ah = ah::create_ah;
        ibv_create_ah_from_wc = ah::create_ah_from_wc;
        ibv_init_ah_from_wc = ah::init_ah_from_wc;
        ibv_destroy_ah = ah::destroy_ah;
        ibv_fork_init = text::fork_init;
        ibv_dontfork_range = text::fork_range;
        ibv_dofork_range = text::fork_range;
        ibv_wc_status_str = text::wc_status_str;
        ibv_node_type_str = text::node_type_str;
        ibv_port_state_str = text::port_state_str;
        ibv_event_type_str = text::event_type_str;
        ibv_rate_to_mbps = text::rate_to_mbps;
        mbps_to_ibv_rate = text::mbps_to_rate;
        ibv_resolve_eth_l2_from_gid = absent::resolve_eth_l2_from_gid;
        ibv_copy_ah_attr_from_kern = nothing;
    }
    "IBVERBS_1.5" {
        ibv_get_pkey_index = query::get_pkey_index;
    }
    "IBVERBS_1.6" {
        ibv_qp_to_qp_ex = wr::qp_to_qp_ex;
    }
    "IBVERBS_1.7" {
        ibv_reg_mr_iova = region::reg_mr_iova;
    }
    "IBVERBS_1.8" {
        ibv_reg_mr_iova2 = region::reg_mr_iova2;
    }
    "IBVERBS_1.9" {
        ibv_get_device_index = device::get_device_index;
    }
    "IBVERBS_1.10" {
        ibv_import_device = open::import_device;
        ibv_import_mr = region::import_mr;
        ibv_import_pd = domain::import_pd;
        ibv_query_ece = absent::query_ece;
        ibv_set_ece = absent::set_ece;
        ibv_unimport_mr = region::unimport_mr;
        ibv_unimport_pd = domain::unimport_pd;
    }
    "IBVERBS_1.11" {
        _ibv_query_gid_ex = query::query_gid_ex;
        _ibv_query_gid_table = query::query_gid_table;
    }
    "IBVERBS_1.12" {
        ibv_reg_dmabuf_mr = absent::reg_dmabuf_mr;
    }
    "IBVERBS_1.13" {
        ibv_import_dm = dm::import_dm;
        ibv_is_fork_initialized = text::is_fork_initialized;
        ibv_unimport_dm = dm::unimport_dm;
    }
    "IBVERBS_1.14" {
        ibv_query_qp_data_in_order = qp::query_qp_data_in_order;
    }
    "IBVERBS_1.15" {
        ibv_alloc_dmah = absent::alloc_dmah;
        ibv_dealloc_dmah = absent::dealloc_dmah;
        ibv_reg_mr_ex = region::reg_mr_ex;
    }
    "IBVERBS_1.16" {
        ibv_dm_export_dmabuf_fd = absent::dm_export_dmabuf_fd;
        ibv_query_port_speed = query::query_port_speed;
    }
    "IBVERBS_1.17" {
        ibv_alloc_buf = buffer::alloc_buf;
        ibv_free_buf = buffer::free_buf;
        ibv_reg_buf_mr = region::reg_buf_mr;
    }
    "IBVERBS_1.18" {
        _ibv_query_comp_cntr_caps = query::query_comp_cntr_caps;
        ibv_create_comp_cntr = absent::create_comp_cntr;
        ibv_destroy_comp_cntr = absent::destroy_comp_cntr;
        ibv_export_buf_dmabuf_fd = buffer::export_buf_dmabuf_fd;
        ibv_inc_comp_cntr = absent::inc_comp_cntr;
        ibv_inc_err_comp_cntr = absent::inc_err_comp_cntr;
        ibv_qp_attach_comp_cntr = absent::qp_attach_comp_cntr;
        ibv_read_comp_cntr = absent::read_comp_cntr;
        ibv_read_err_comp_cntr = absent::read_err_comp_cntr;
        ibv_set_comp_cntr = absent::set_comp_cntr;
        ibv_set_err_comp_cntr = absent::set_err_comp_cntr;
    }
}

// librdmacm.
export! {
    "RDMACM_1.0" {
        rdma_accept = connect::accept;
        rdma_ack_cm_event = cm_event::ack_cm_event;
        rdma_bind_addr = address::bind_addr;
        rdma_connect = connect::connect;
        rdma_create_ep = sync::create_ep;
        rdma_create_event_channel = channel::create_event_channel;
        rdma_create_id = id::create_id;
        rdma_create_qp = cm_qp::create_qp;
        rdma_create_qp_ex = cm_qp::create_qp_ex;
        rdma_create_srq = cm_qp::create_srq;
        rdma_create_srq_ex = cm_qp::create_srq_ex;
        rdma_destroy_ep = sync::destroy_ep;
        rdma_destroy_event_channel = channel::destroy_event_channel;
        rdma_destroy_id = id::destroy_id;
        rdma_destroy_qp = cm_qp::destroy_qp;
        rdma_destroy_srq = cm_qp::destroy_srq;
        rdma_disconnect = connect::disconnect;
        rdma_event_str = cm_event::event_str;
        rdma_free_devices = cm_device::free_devices;
        rdma_freeaddrinfo = addrinfo::freeaddrinfo;
        rdma_get_cm_event = cm_event::get_cm_event;
        rdma_get_devices = cm_device::get_devices;
        rdma_get_dst_port = address::get_dst_port;
        rdma_get_request = sync::get_request;
        rdma_get_src_port = address::get_src_port;
        rdma_getaddrinfo = addrinfo::getaddrinfo;
        rdma_join_multicast = group::join_multicast;
        rdma_leave_multicast = group::leave_multicast;
        rdma_listen = connect::listen;
        rdma_migrate_id = id::migrate_id;
        rdma_notify = connect::notify;
        rdma_reject = connect::reject;
        rdma_resolve_addr = address::resolve_addr;
        rdma_resolve_route = address::resolve_route;
        rdma_set_option = address::set_option;
        raccept = rsocket::minus_one;
        rbind = rsocket::minus_one;
        rclose = rsocket::close;
        rconnect = rsocket::minus_one;
        rfcntl = rsocket::minus_one;
        rgetpeername = rsocket::minus_one;
        rgetsockname = rsocket::minus_one;
        rgetsockopt = rsocket::minus_one;
        riounmap = rsocket::minus_one;
        rlisten = rsocket::minus_one;
        rsetsockopt = rsocket::minus_one;
        rshutdown = rsocket::minus_one;
        rsocket = rsocket::minus_one;
        riomap = rsocket::minus_one_wide;
        riowrite = rsocket::minus_one_wide;
        rread = rsocket::minus_one_wide;
        rreadv = rsocket::minus_one_wide;
        rrecv = rsocket::minus_one_wide;
        rrecvfrom = rsocket::minus_one_wide;
        rrecvmsg = rsocket::minus_one_wide;
        rsend = rsocket::minus_one_wide;
        rsendmsg = rsocket::minus_one_wide;
        rsendto = rsocket::minus_one_wide;
        rwrite = rsocket::minus_one_wide;
        rwritev = rsocket::minus_one_wide;
        rpoll = rsocket::poll;
        rselect = rsocket::select;
    }
    "RDMACM_1.1" { rdma_join_multicast_ex = group::join_multicast_ex; }
    "RDMACM_1.2" {
        rdma_establish = connect::establish;
        rdma_init_qp_attr = connect::init_qp_attr;
    }
    "RDMACM_1.3" {
        rdma_get_remote_ece = connect::get_remote_ece;
        rdma_reject_ece = connect::reject_ece;
        rdma_set_local_ece = connect::set_local_ece;
    }
    "RDMACM_1.4" {
        rdma_query_addrinfo = resolved::query_addrinfo;
        rdma_resolve_addrinfo = resolved::resolve_addrinfo;
        rdma_write_cm_event = cm_event::write_cm_event;
    }
    "RDMACM_1.5" {
        repoll_create = rsocket::repoll_create;
        repoll_ctl = rsocket::repoll_ctl;
        repoll_wait = rsocket::repoll_wait;
    }
}

// `verbsim.h`.
export! {
    "VERBSIM_1.0" {
        verbsim_inject = control::inject;
        verbsim_drop_packets_at = control::drop_packets;
        verbsim_delay_packets_at = control::delay_packets;
        verbsim_fail_calls_at = control::fail_calls;
        verbsim_fail_completions_at = control::fail_completions;
        verbsim_port_down_at = control::port_down;
        verbsim_kill_device_at = control::kill_device;
        verbsim_struck = control::struck;
        verbsim_remove = control::remove;
        verbsim_mark = control::mark;
        verbsim_count_findings = control::count_findings;
        verbsim_findings = control::findings_since;
    }
}

// No program is linked with it any more.
symbol!("@", "IBVERBS_1.1", ibv_register_driver, nothing);

private!("@", "IBVERBS_PRIVATE_34", verbs_register_driver_34);
private!("@", "IBVERBS_PRIVATE_57", verbs_register_driver_57);
private!("@", "IBVERBS_PRIVATE_59", verbs_register_driver_59);
private!("@@", "IBVERBS_PRIVATE_65", verbs_register_driver_65);

/// By this `verbsim exec` tells the drop-in from other libraries, and from one that was built empty.
#[unsafe(no_mangle)]
pub(crate) static VERBSIM_DROP_IN: u8 = 1;
