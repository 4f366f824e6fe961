//! The structures of `infiniband/verbs.h`, as programs see them.
//!
//! Written out rather than taken from a header, so that the workspace builds on a machine that has
//! none. Their layout is that of rdma-core 44 to 60, where structures only grew at an end that old
//! programs do not look at; `layout` compares it with C where there is a header.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `pthread_mutex_t`: all zero is one that is ready, and no program touches those of verbs.
pub(crate) type Mutex = [u64; 5];
/// `pthread_cond_t`, as above.
pub(crate) type Cond = [u64; 6];

/// An operation that is there or not.
type Op<F> = Option<F>;
/// An operation that this library never fills.
type NoOp = usize;

/// `struct ibv_device`
#[repr(C)]
pub(crate) struct ibv_device {
    pub(crate) ops: [usize; 2],
    pub(crate) node_type: c_int,
    pub(crate) transport_type: c_int,
    pub(crate) name: [c_char; 64],
    pub(crate) dev_name: [c_char; 64],
    pub(crate) dev_path: [c_char; 256],
    pub(crate) ibdev_path: [c_char; 256],
}

/// A device with room behind it: libraries of vendors look there whether it is theirs.
#[repr(C)]
pub(crate) struct Device {
    pub(crate) device: ibv_device,
    pub(crate) nobodys: [u64; 8],
}

/// `struct ibv_context_ops`
#[repr(C)]
pub(crate) struct ibv_context_ops {
    pub(crate) compat_to_dereg_mr: [NoOp; 7],
    pub(crate) alloc_mw: Op<extern "C" fn(*mut ibv_pd, u32) -> *mut ibv_mw>,
    pub(crate) bind_mw: Op<extern "C" fn(*mut ibv_qp, *mut ibv_mw, *mut ibv_mw_bind) -> c_int>,
    pub(crate) dealloc_mw: Op<extern "C" fn(*mut ibv_mw) -> c_int>,
    pub(crate) compat_create_cq: NoOp,
    pub(crate) poll_cq: Op<extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int>,
    pub(crate) req_notify_cq: Op<extern "C" fn(*mut ibv_cq, c_int) -> c_int>,
    pub(crate) compat_to_destroy_srq: [NoOp; 7],
    pub(crate) post_srq_recv:
        Op<extern "C" fn(*mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int>,
    pub(crate) compat_to_destroy_qp: [NoOp; 4],
    pub(crate) post_send:
        Op<extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int>,
    pub(crate) post_recv:
        Op<extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int>,
    pub(crate) compat_to_async_event: [NoOp; 5],
}

/// `struct ibv_context`
#[repr(C)]
pub(crate) struct ibv_context {
    pub(crate) device: *mut ibv_device,
    pub(crate) ops: ibv_context_ops,
    pub(crate) cmd_fd: c_int,
    pub(crate) async_fd: c_int,
    pub(crate) num_comp_vectors: c_int,
    pub(crate) mutex: Mutex,
    pub(crate) abi_compat: *mut c_void,
}

/// `struct verbs_context`: it grows at its front, so this one serves all programs. A program that
/// knows of more sees by `sz` that it is not there.
#[repr(C)]
pub(crate) struct verbs_context {
    pub(crate) newest: [NoOp; 6],
    pub(crate) query_port:
        Op<extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr, usize) -> c_int>,
    pub(crate) advise_mr: NoOp,
    pub(crate) alloc_null_mr: Op<extern "C" fn(*mut ibv_pd) -> *mut ibv_mr>,
    pub(crate) counters: [NoOp; 4],
    pub(crate) reg_dm_mr:
        Op<extern "C" fn(*mut ibv_pd, *mut ibv_dm, u64, usize, c_uint) -> *mut ibv_mr>,
    pub(crate) alloc_dm: Op<extern "C" fn(*mut ibv_context, *mut ibv_alloc_dm_attr) -> *mut ibv_dm>,
    pub(crate) free_dm: Op<extern "C" fn(*mut ibv_dm) -> c_int>,
    pub(crate) flow_actions: [NoOp; 3],
    pub(crate) modify_qp_rate_limit: NoOp,
    pub(crate) alloc_parent_domain:
        Op<extern "C" fn(*mut ibv_context, *mut ibv_parent_domain_init_attr) -> *mut ibv_pd>,
    pub(crate) dealloc_td: Op<extern "C" fn(*mut ibv_td) -> c_int>,
    pub(crate) alloc_td: Op<extern "C" fn(*mut ibv_context, *mut ibv_td_init_attr) -> *mut ibv_td>,
    pub(crate) modify_cq: Op<extern "C" fn(*mut ibv_cq, *mut ibv_modify_cq_attr) -> c_int>,
    pub(crate) post_srq_ops: NoOp,
    pub(crate) work_queues: [NoOp; 5],
    pub(crate) query_rt_values: Op<extern "C" fn(*mut ibv_context, *mut ibv_values_ex) -> c_int>,
    pub(crate) create_cq_ex:
        Op<extern "C" fn(*mut ibv_context, *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex>,
    pub(crate) own: *mut c_void,
    pub(crate) query_device_ex:
        Op<extern "C" fn(*mut ibv_context, *const u32, *mut ibv_device_attr, usize) -> c_int>,
    pub(crate) destroy_flow: NoOp,
    pub(crate) placeholder2: NoOp,
    pub(crate) create_flow: NoOp,
    pub(crate) placeholder1: NoOp,
    pub(crate) open_qp: Op<extern "C" fn(*mut ibv_context, *mut ibv_qp_open_attr) -> *mut ibv_qp>,
    pub(crate) create_qp_ex:
        Op<extern "C" fn(*mut ibv_context, *mut ibv_qp_init_attr_ex) -> *mut ibv_qp>,
    pub(crate) get_srq_num: Op<extern "C" fn(*mut ibv_srq, *mut u32) -> c_int>,
    pub(crate) create_srq_ex:
        Op<extern "C" fn(*mut ibv_context, *mut ibv_srq_init_attr_ex) -> *mut ibv_srq>,
    pub(crate) open_xrcd:
        Op<extern "C" fn(*mut ibv_context, *mut ibv_xrcd_init_attr) -> *mut ibv_xrcd>,
    /// Programs call it without a look whether it is there.
    pub(crate) close_xrcd: Op<extern "C" fn(*mut ibv_xrcd) -> c_int>,
    pub(crate) placeholder3: u64,
    pub(crate) sz: usize,
    pub(crate) context: ibv_context,
}

/// `struct ibv_device_attr`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_device_attr {
    pub(crate) fw_ver: [c_char; 64],
    pub(crate) node_guid: u64,
    pub(crate) sys_image_guid: u64,
    pub(crate) max_mr_size: u64,
    pub(crate) page_size_cap: u64,
    pub(crate) vendor_id: u32,
    pub(crate) vendor_part_id: u32,
    pub(crate) hw_ver: u32,
    pub(crate) max_qp: c_int,
    pub(crate) max_qp_wr: c_int,
    pub(crate) device_cap_flags: c_uint,
    pub(crate) max_sge: c_int,
    pub(crate) max_sge_rd: c_int,
    pub(crate) max_cq: c_int,
    pub(crate) max_cqe: c_int,
    pub(crate) max_mr: c_int,
    pub(crate) max_pd: c_int,
    pub(crate) max_qp_rd_atom: c_int,
    pub(crate) max_ee_rd_atom: c_int,
    pub(crate) max_res_rd_atom: c_int,
    pub(crate) max_qp_init_rd_atom: c_int,
    pub(crate) max_ee_init_rd_atom: c_int,
    pub(crate) atomic_cap: c_int,
    pub(crate) max_ee: c_int,
    pub(crate) max_rdd: c_int,
    pub(crate) max_mw: c_int,
    pub(crate) max_raw_ipv6_qp: c_int,
    pub(crate) max_raw_ethy_qp: c_int,
    pub(crate) max_mcast_grp: c_int,
    pub(crate) max_mcast_qp_attach: c_int,
    pub(crate) max_total_mcast_qp_attach: c_int,
    pub(crate) max_ah: c_int,
    pub(crate) max_fmr: c_int,
    pub(crate) max_map_per_fmr: c_int,
    pub(crate) max_srq: c_int,
    pub(crate) max_srq_wr: c_int,
    pub(crate) max_srq_sge: c_int,
    pub(crate) max_pkeys: u16,
    pub(crate) local_ca_ack_delay: u8,
    pub(crate) phys_port_cnt: u8,
}

/// `struct ibv_device_attr_ex` behind the plain structure that it starts with.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Later {
    pub(crate) comp_mask: u32,
    pub(crate) odp_caps: [u64; 3],
    pub(crate) completion_timestamp_mask: u64,
    pub(crate) hca_core_clock: u64,
    pub(crate) device_cap_flags_ex: u64,
    pub(crate) packets_and_tags: [u64; 10],
    pub(crate) max_cq_count: u16,
    pub(crate) max_cq_period: u16,
    pub(crate) max_dm_size: u64,
    pub(crate) pci_atomic_caps: [u16; 3],
    pub(crate) xrc_odp_caps: u32,
    pub(crate) phys_port_cnt_ex: u32,
}

/// `struct ibv_port_attr` of today. Programs pass how much of it they know; the exported
/// `ibv_query_port` writes the first [`OLD_PORT_ATTR`] bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_port_attr {
    pub(crate) state: u32,
    pub(crate) max_mtu: u32,
    pub(crate) active_mtu: u32,
    pub(crate) gid_tbl_len: c_int,
    pub(crate) port_cap_flags: u32,
    pub(crate) max_msg_sz: u32,
    pub(crate) bad_pkey_cntr: u32,
    pub(crate) qkey_viol_cntr: u32,
    pub(crate) pkey_tbl_len: u16,
    pub(crate) lid: u16,
    pub(crate) sm_lid: u16,
    pub(crate) lmc: u8,
    pub(crate) max_vl_num: u8,
    pub(crate) sm_sl: u8,
    pub(crate) subnet_timeout: u8,
    pub(crate) init_type_reply: u8,
    pub(crate) active_width: u8,
    pub(crate) active_speed: u8,
    pub(crate) phys_state: u8,
    pub(crate) link_layer: u8,
    pub(crate) flags: u8,
    pub(crate) port_cap_flags2: u16,
    pub(crate) active_speed_ex: u32,
}

/// Bytes of the port attributes that the oldest programs know.
pub(crate) const OLD_PORT_ATTR: usize = 48;

/// `union ibv_gid`, in wire order. C aligns it for its 64-bit members.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct ibv_gid {
    pub(crate) raw: [u8; 16],
}

/// `struct ibv_gid_entry`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_gid_entry {
    pub(crate) gid: ibv_gid,
    pub(crate) gid_index: u32,
    pub(crate) port_num: u32,
    pub(crate) gid_type: u32,
    pub(crate) ndev_ifindex: u32,
}

/// `struct ibv_pd`
#[repr(C)]
pub(crate) struct ibv_pd {
    pub(crate) context: *mut ibv_context,
    pub(crate) handle: u32,
}

/// `struct ibv_parent_domain_init_attr`. Which of the fields behind `comp_mask` are there it says itself.
#[repr(C)]
pub(crate) struct ibv_parent_domain_init_attr {
    pub(crate) pd: *mut ibv_pd,
    pub(crate) td: *mut ibv_td,
    pub(crate) comp_mask: u32,
    pub(crate) alloc: *mut c_void,
    pub(crate) free: *mut c_void,
    pub(crate) pd_context: *mut c_void,
}

/// `struct ibv_td`
#[repr(C)]
pub(crate) struct ibv_td {
    pub(crate) context: *mut ibv_context,
}

/// `struct ibv_td_init_attr`
#[repr(C)]
pub(crate) struct ibv_td_init_attr {
    pub(crate) comp_mask: u32,
}

/// `struct ibv_values_ex`, with `struct timespec` as its two numbers.
#[repr(C)]
pub(crate) struct ibv_values_ex {
    pub(crate) comp_mask: u32,
    pub(crate) raw_clock: [i64; 2],
}

/// `struct ibv_mr`
#[repr(C)]
pub(crate) struct ibv_mr {
    pub(crate) context: *mut ibv_context,
    pub(crate) pd: *mut ibv_pd,
    pub(crate) addr: *mut c_void,
    pub(crate) length: usize,
    pub(crate) handle: u32,
    pub(crate) lkey: u32,
    pub(crate) rkey: u32,
}

/// `struct ibv_alloc_dm_attr`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_alloc_dm_attr {
    pub(crate) length: usize,
    pub(crate) log_align_req: u32,
    pub(crate) comp_mask: u32,
}

/// `struct ibv_dm`
#[repr(C)]
pub(crate) struct ibv_dm {
    pub(crate) context: *mut ibv_context,
    pub(crate) memcpy_to_dm: Op<extern "C" fn(*mut ibv_dm, u64, *const c_void, usize) -> c_int>,
    pub(crate) memcpy_from_dm: Op<extern "C" fn(*mut c_void, *mut ibv_dm, u64, usize) -> c_int>,
    pub(crate) comp_mask: u32,
    pub(crate) handle: u32,
}

/// `struct ibv_mw`
#[repr(C)]
pub(crate) struct ibv_mw {
    pub(crate) context: *mut ibv_context,
    pub(crate) pd: *mut ibv_pd,
    pub(crate) rkey: u32,
    pub(crate) handle: u32,
    pub(crate) mw_type: u32,
}

/// `struct ibv_mw_bind_info`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_mw_bind_info {
    pub(crate) mr: *mut ibv_mr,
    pub(crate) addr: u64,
    pub(crate) length: u64,
    pub(crate) mw_access_flags: c_uint,
}

/// `struct ibv_mw_bind`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_mw_bind {
    pub(crate) wr_id: u64,
    pub(crate) send_flags: c_uint,
    pub(crate) bind_info: ibv_mw_bind_info,
}

/// `struct ibv_comp_channel`
#[repr(C)]
pub(crate) struct ibv_comp_channel {
    pub(crate) context: *mut ibv_context,
    pub(crate) fd: c_int,
    pub(crate) refcnt: c_int,
}

/// `struct ibv_cq`
#[repr(C)]
pub(crate) struct ibv_cq {
    pub(crate) context: *mut ibv_context,
    pub(crate) channel: *mut ibv_comp_channel,
    pub(crate) cq_context: *mut c_void,
    pub(crate) handle: u32,
    pub(crate) cqe: c_int,
    pub(crate) mutex: Mutex,
    pub(crate) cond: Cond,
    pub(crate) comp_events_completed: u32,
    pub(crate) async_events_completed: u32,
}

/// `struct ibv_cq_init_attr_ex`. Which of the fields behind `comp_mask` are there it says itself.
#[repr(C)]
pub(crate) struct ibv_cq_init_attr_ex {
    pub(crate) cqe: u32,
    pub(crate) cq_context: *mut c_void,
    pub(crate) channel: *mut ibv_comp_channel,
    pub(crate) comp_vector: u32,
    pub(crate) wc_flags: u64,
    pub(crate) comp_mask: u32,
    pub(crate) flags: u32,
    pub(crate) parent_domain: *mut ibv_pd,
}

/// `struct ibv_cq_ex`
#[repr(C)]
pub(crate) struct ibv_cq_ex {
    pub(crate) cq_base: ibv_cq,
    pub(crate) comp_mask: u32,
    pub(crate) status: u32,
    pub(crate) wr_id: u64,
    pub(crate) start_poll: Op<extern "C" fn(*mut ibv_cq_ex, *mut u32) -> c_int>,
    pub(crate) next_poll: Op<extern "C" fn(*mut ibv_cq_ex) -> c_int>,
    pub(crate) end_poll: Op<extern "C" fn(*mut ibv_cq_ex)>,
    pub(crate) read_opcode: Op<extern "C" fn(*mut ibv_cq_ex) -> u32>,
    pub(crate) read_vendor_err: Op<extern "C" fn(*mut ibv_cq_ex) -> u32>,
    pub(crate) read_byte_len: Op<extern "C" fn(*mut ibv_cq_ex) -> u32>,
    /// Immediate data as on the wire, or the key that was invalidated.
    pub(crate) read_imm_data: Op<extern "C" fn(*mut ibv_cq_ex) -> u32>,
    pub(crate) read_qp_num: Op<extern "C" fn(*mut ibv_cq_ex) -> u32>,
    pub(crate) read_src_qp: Op<extern "C" fn(*mut ibv_cq_ex) -> u32>,
    pub(crate) read_wc_flags: Op<extern "C" fn(*mut ibv_cq_ex) -> c_uint>,
    pub(crate) read_slid: Op<extern "C" fn(*mut ibv_cq_ex) -> u32>,
    pub(crate) read_sl: Op<extern "C" fn(*mut ibv_cq_ex) -> u8>,
    pub(crate) read_dlid_path_bits: Op<extern "C" fn(*mut ibv_cq_ex) -> u8>,
    pub(crate) read_completion_ts: Op<extern "C" fn(*mut ibv_cq_ex) -> u64>,
    pub(crate) read_cvlan: NoOp,
    pub(crate) read_flow_tag: NoOp,
    pub(crate) read_tm_info: NoOp,
    pub(crate) read_completion_wallclock_ns: Op<extern "C" fn(*mut ibv_cq_ex) -> u64>,
}

/// `struct ibv_modify_cq_attr`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_modify_cq_attr {
    pub(crate) attr_mask: u32,
    pub(crate) cq_count: u16,
    pub(crate) cq_period: u16,
}

/// `struct ibv_wc`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_wc {
    pub(crate) wr_id: u64,
    pub(crate) status: u32,
    pub(crate) opcode: u32,
    pub(crate) vendor_err: u32,
    pub(crate) byte_len: u32,
    /// Immediate data as on the wire, or the key that was invalidated.
    pub(crate) imm_data: [u8; 4],
    pub(crate) qp_num: u32,
    pub(crate) src_qp: u32,
    pub(crate) wc_flags: c_uint,
    pub(crate) pkey_index: u16,
    pub(crate) slid: u16,
    pub(crate) sl: u8,
    pub(crate) dlid_path_bits: u8,
}

/// `struct ibv_global_route`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_global_route {
    pub(crate) dgid: ibv_gid,
    pub(crate) flow_label: u32,
    pub(crate) sgid_index: u8,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
}

/// `struct ibv_grh`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_grh {
    pub(crate) version_tclass_flow: u32,
    pub(crate) paylen: u16,
    pub(crate) next_hdr: u8,
    pub(crate) hop_limit: u8,
    pub(crate) sgid: ibv_gid,
    pub(crate) dgid: ibv_gid,
}

/// `struct ibv_ah_attr`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_ah_attr {
    pub(crate) grh: ibv_global_route,
    pub(crate) dlid: u16,
    pub(crate) sl: u8,
    pub(crate) src_path_bits: u8,
    pub(crate) static_rate: u8,
    pub(crate) is_global: u8,
    pub(crate) port_num: u8,
}

/// `struct ibv_ah`
#[repr(C)]
pub(crate) struct ibv_ah {
    pub(crate) context: *mut ibv_context,
    pub(crate) pd: *mut ibv_pd,
    pub(crate) handle: u32,
}

/// `struct ibv_srq_attr`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_srq_attr {
    pub(crate) max_wr: u32,
    pub(crate) max_sge: u32,
    pub(crate) srq_limit: u32,
}

/// `struct ibv_srq_init_attr`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_srq_init_attr {
    pub(crate) srq_context: *mut c_void,
    pub(crate) attr: ibv_srq_attr,
}

/// `struct ibv_srq`
#[repr(C)]
pub(crate) struct ibv_srq {
    pub(crate) context: *mut ibv_context,
    pub(crate) srq_context: *mut c_void,
    pub(crate) pd: *mut ibv_pd,
    pub(crate) handle: u32,
    pub(crate) mutex: Mutex,
    pub(crate) cond: Cond,
    pub(crate) events_completed: u32,
}

/// `struct ibv_srq_init_attr_ex`. Which of the fields behind `comp_mask` are there it says itself.
#[repr(C)]
pub(crate) struct ibv_srq_init_attr_ex {
    pub(crate) srq_context: *mut c_void,
    pub(crate) attr: ibv_srq_attr,
    pub(crate) comp_mask: u32,
    pub(crate) srq_type: u32,
    pub(crate) pd: *mut ibv_pd,
    pub(crate) xrcd: *mut ibv_xrcd,
    pub(crate) cq: *mut ibv_cq,
    pub(crate) tm_cap: [u32; 2],
}

/// `struct ibv_xrcd`
#[repr(C)]
pub(crate) struct ibv_xrcd {
    pub(crate) context: *mut ibv_context,
}

/// `struct ibv_xrcd_init_attr`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_xrcd_init_attr {
    pub(crate) comp_mask: u32,
    pub(crate) fd: c_int,
    pub(crate) oflags: c_int,
}

/// `struct ibv_qp_open_attr`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_qp_open_attr {
    pub(crate) comp_mask: u32,
    pub(crate) qp_num: u32,
    pub(crate) xrcd: *mut ibv_xrcd,
    pub(crate) qp_context: *mut c_void,
    pub(crate) qp_type: u32,
}

/// `struct ibv_qp_cap`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_qp_cap {
    pub(crate) max_send_wr: u32,
    pub(crate) max_recv_wr: u32,
    pub(crate) max_send_sge: u32,
    pub(crate) max_recv_sge: u32,
    pub(crate) max_inline_data: u32,
}

/// `struct ibv_qp_init_attr`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_qp_init_attr {
    pub(crate) qp_context: *mut c_void,
    pub(crate) send_cq: *mut ibv_cq,
    pub(crate) recv_cq: *mut ibv_cq,
    pub(crate) srq: *mut ibv_srq,
    pub(crate) cap: ibv_qp_cap,
    pub(crate) qp_type: u32,
    pub(crate) sq_sig_all: c_int,
}

/// `struct ibv_qp_init_attr_ex`. Which of the fields behind `comp_mask` are there it says itself.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_qp_init_attr_ex {
    pub(crate) qp_context: *mut c_void,
    pub(crate) send_cq: *mut ibv_cq,
    pub(crate) recv_cq: *mut ibv_cq,
    pub(crate) srq: *mut ibv_srq,
    pub(crate) cap: ibv_qp_cap,
    pub(crate) qp_type: u32,
    pub(crate) sq_sig_all: c_int,
    pub(crate) comp_mask: u32,
    pub(crate) pd: *mut ibv_pd,
    pub(crate) xrcd: *mut ibv_xrcd,
    pub(crate) create_flags: u32,
    pub(crate) max_tso_header: u16,
    pub(crate) rwq_ind_tbl: *mut c_void,
    pub(crate) rx_hash_conf: [u64; 3],
    pub(crate) source_qpn: u32,
    pub(crate) send_ops_flags: u64,
}

/// `struct ibv_qp_attr`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_qp_attr {
    pub(crate) qp_state: u32,
    pub(crate) cur_qp_state: u32,
    pub(crate) path_mtu: u32,
    pub(crate) path_mig_state: u32,
    pub(crate) qkey: u32,
    pub(crate) rq_psn: u32,
    pub(crate) sq_psn: u32,
    pub(crate) dest_qp_num: u32,
    pub(crate) qp_access_flags: c_uint,
    pub(crate) cap: ibv_qp_cap,
    pub(crate) ah_attr: ibv_ah_attr,
    pub(crate) alt_ah_attr: ibv_ah_attr,
    pub(crate) pkey_index: u16,
    pub(crate) alt_pkey_index: u16,
    pub(crate) en_sqd_async_notify: u8,
    pub(crate) sq_draining: u8,
    pub(crate) max_rd_atomic: u8,
    pub(crate) max_dest_rd_atomic: u8,
    pub(crate) min_rnr_timer: u8,
    pub(crate) port_num: u8,
    pub(crate) timeout: u8,
    pub(crate) retry_cnt: u8,
    pub(crate) rnr_retry: u8,
    pub(crate) alt_port_num: u8,
    pub(crate) alt_timeout: u8,
    pub(crate) rate_limit: u32,
}

/// `struct ibv_qp`
#[repr(C)]
pub(crate) struct ibv_qp {
    pub(crate) context: *mut ibv_context,
    pub(crate) qp_context: *mut c_void,
    pub(crate) pd: *mut ibv_pd,
    pub(crate) send_cq: *mut ibv_cq,
    pub(crate) recv_cq: *mut ibv_cq,
    pub(crate) srq: *mut ibv_srq,
    pub(crate) handle: u32,
    pub(crate) qp_num: u32,
    pub(crate) state: u32,
    pub(crate) qp_type: u32,
    pub(crate) mutex: Mutex,
    pub(crate) cond: Cond,
    pub(crate) events_completed: u32,
}

/// `struct ibv_data_buf`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_data_buf {
    pub(crate) addr: *const c_void,
    pub(crate) length: usize,
}

/// `struct ibv_qp_ex`
#[repr(C)]
pub(crate) struct ibv_qp_ex {
    pub(crate) qp_base: ibv_qp,
    pub(crate) comp_mask: u64,
    pub(crate) wr_id: u64,
    pub(crate) wr_flags: c_uint,
    pub(crate) wr_atomic_cmp_swp: Op<extern "C" fn(*mut ibv_qp_ex, u32, u64, u64, u64)>,
    pub(crate) wr_atomic_fetch_add: Op<extern "C" fn(*mut ibv_qp_ex, u32, u64, u64)>,
    pub(crate) wr_bind_mw:
        Op<extern "C" fn(*mut ibv_qp_ex, *mut ibv_mw, u32, *const ibv_mw_bind_info)>,
    pub(crate) wr_local_inv: Op<extern "C" fn(*mut ibv_qp_ex, u32)>,
    pub(crate) wr_rdma_read: Op<extern "C" fn(*mut ibv_qp_ex, u32, u64)>,
    pub(crate) wr_rdma_write: Op<extern "C" fn(*mut ibv_qp_ex, u32, u64)>,
    pub(crate) wr_rdma_write_imm: Op<extern "C" fn(*mut ibv_qp_ex, u32, u64, u32)>,
    pub(crate) wr_send: Op<extern "C" fn(*mut ibv_qp_ex)>,
    pub(crate) wr_send_imm: Op<extern "C" fn(*mut ibv_qp_ex, u32)>,
    pub(crate) wr_send_inv: Op<extern "C" fn(*mut ibv_qp_ex, u32)>,
    pub(crate) wr_send_tso: Op<extern "C" fn(*mut ibv_qp_ex, *mut c_void, u16, u16)>,
    pub(crate) wr_set_ud_addr: Op<extern "C" fn(*mut ibv_qp_ex, *mut ibv_ah, u32, u32)>,
    pub(crate) wr_set_xrc_srqn: Op<extern "C" fn(*mut ibv_qp_ex, u32)>,
    pub(crate) wr_set_inline_data: Op<extern "C" fn(*mut ibv_qp_ex, *const c_void, usize)>,
    pub(crate) wr_set_inline_data_list:
        Op<extern "C" fn(*mut ibv_qp_ex, usize, *const ibv_data_buf)>,
    pub(crate) wr_set_sge: Op<extern "C" fn(*mut ibv_qp_ex, u32, u64, u32)>,
    pub(crate) wr_set_sge_list: Op<extern "C" fn(*mut ibv_qp_ex, usize, *const ibv_sge)>,
    pub(crate) wr_start: Op<extern "C" fn(*mut ibv_qp_ex)>,
    pub(crate) wr_complete: Op<extern "C" fn(*mut ibv_qp_ex) -> c_int>,
    pub(crate) wr_abort: Op<extern "C" fn(*mut ibv_qp_ex)>,
    pub(crate) wr_atomic_write: Op<extern "C" fn(*mut ibv_qp_ex, u32, u64, *const c_void)>,
    pub(crate) wr_flush: Op<extern "C" fn(*mut ibv_qp_ex, u32, u64, usize, u8, u8)>,
}

/// `struct ibv_sge`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_sge {
    pub(crate) addr: u64,
    pub(crate) length: u32,
    pub(crate) lkey: u32,
}

/// `struct ibv_recv_wr`
#[repr(C)]
pub(crate) struct ibv_recv_wr {
    pub(crate) wr_id: u64,
    pub(crate) next: *mut ibv_recv_wr,
    pub(crate) sg_list: *mut ibv_sge,
    pub(crate) num_sge: c_int,
}

/// `wr.rdma`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Rdma {
    pub(crate) remote_addr: u64,
    pub(crate) rkey: u32,
}

/// `wr.atomic`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Atomic {
    pub(crate) remote_addr: u64,
    pub(crate) compare_add: u64,
    pub(crate) swap: u64,
    pub(crate) rkey: u32,
}

/// `wr.ud`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Ud {
    pub(crate) ah: *mut ibv_ah,
    pub(crate) remote_qpn: u32,
    pub(crate) remote_qkey: u32,
}

/// What `wr` of a send is depends on its operation.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union Target {
    pub(crate) rdma: Rdma,
    pub(crate) atomic: Atomic,
    pub(crate) ud: Ud,
}

/// `bind_mw` of a send.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Bind {
    pub(crate) mw: *mut ibv_mw,
    pub(crate) rkey: u32,
    pub(crate) bind_info: ibv_mw_bind_info,
}

/// `tso` of a send, in the place of `bind_mw`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Tso {
    pub(crate) hdr: *const c_void,
    pub(crate) hdr_sz: u16,
    pub(crate) mss: u16,
}

/// `struct ibv_send_wr`
#[repr(C)]
pub(crate) struct ibv_send_wr {
    pub(crate) wr_id: u64,
    pub(crate) next: *mut ibv_send_wr,
    pub(crate) sg_list: *mut ibv_sge,
    pub(crate) num_sge: c_int,
    pub(crate) opcode: u32,
    pub(crate) send_flags: c_uint,
    /// Immediate data as on the wire, or the key to invalidate.
    pub(crate) imm_data: u32,
    pub(crate) wr: Target,
    pub(crate) remote_srqn: u32,
    pub(crate) bind_mw: Bind,
}

/// `struct ibv_async_event`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ibv_async_event {
    /// A pointer, or a port number in its lower half.
    pub(crate) element: usize,
    pub(crate) event_type: u32,
}

// What was measured of rdma-core, which a test compares with the header where there is one.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;

    assert!(size_of::<ibv_device>() == 664);
    assert!(size_of::<ibv_context_ops>() == 256);
    assert!(size_of::<ibv_context>() == 328);
    assert!(size_of::<verbs_context>() == 696);
    assert!(offset_of!(verbs_context, context) == 368);
    assert!(offset_of!(verbs_context, create_qp_ex) == 312);
    assert!(offset_of!(verbs_context, query_device_ex) == 264);
    assert!(offset_of!(verbs_context, create_srq_ex) == 328);
    assert!(offset_of!(verbs_context, open_qp) == 304);
    assert!(offset_of!(verbs_context, modify_cq) == 184);
    assert!(offset_of!(verbs_context, alloc_parent_domain) == 160);
    assert!(offset_of!(verbs_context, alloc_null_mr) == 64);
    assert!(offset_of!(verbs_context, query_port) == 48);
    assert!(size_of::<ibv_device_attr>() == 232);
    assert!(size_of::<ibv_port_attr>() == 56);
    assert!(size_of::<ibv_gid_entry>() == 32);
    assert!(size_of::<ibv_mr>() == 48);
    assert!(size_of::<ibv_mw>() == 32);
    assert!(size_of::<ibv_comp_channel>() == 16);
    assert!(size_of::<ibv_cq>() == 128);
    assert!(size_of::<ibv_cq_ex>() == 288);
    assert!(size_of::<ibv_cq_init_attr_ex>() == 56);
    assert!(size_of::<ibv_modify_cq_attr>() == 8);
    assert!(size_of::<Later>() == 168);
    assert!(size_of::<ibv_wc>() == 48);
    assert!(size_of::<ibv_ah_attr>() == 32);
    assert!(size_of::<ibv_srq>() == 128);
    assert!(size_of::<ibv_qp>() == 160);
    assert!(size_of::<ibv_qp_ex>() == 360);
    assert!(size_of::<ibv_qp_attr>() == 144);
    assert!(size_of::<ibv_qp_init_attr>() == 64);
    assert!(size_of::<ibv_qp_init_attr_ex>() == 136);
    assert!(size_of::<ibv_send_wr>() == 128);
    assert!(size_of::<ibv_recv_wr>() == 32);
};
