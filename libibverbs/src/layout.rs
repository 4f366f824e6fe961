//! Sizes and offsets of the structures, compared with those of the header of this machine.

use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;
use std::{env, fs};

use crate::c;

macro_rules! layout {
    ($list:ident; $( $name:ident { $($field:ident $(= $theirs:literal)?),* } )*) => { $(
        $list.push((stringify!($name), None, size_of::<c::$name>()));
        $( $list.push((
            stringify!($name),
            Some([$($theirs,)? stringify!($field)][0]),
            offset_of!(c::$name, $field),
        )); )*
    )* };
}

/// Structure, field as C calls it or none for the size, bytes.
type Row = (&'static str, Option<&'static str>, usize);

fn ours() -> Vec<Row> {
    let mut list = Vec::new();
    layout! { list;
        ibv_ah { context, pd, handle }
        ibv_ah_attr { grh, dlid, sl, src_path_bits, static_rate, is_global, port_num }
        ibv_alloc_dm_attr { length, log_align_req, comp_mask }
        ibv_async_event { element, event_type }
        ibv_comp_channel { context, fd, refcnt }
        ibv_context { device, ops, cmd_fd, async_fd, num_comp_vectors, mutex, abi_compat }
        ibv_context_ops { alloc_mw, bind_mw, dealloc_mw, poll_cq, req_notify_cq, post_srq_recv, post_send, post_recv }
        ibv_cq {
            context, channel, cq_context, handle, cqe, mutex, cond, comp_events_completed,
            async_events_completed
        }
        ibv_cq_ex {
            comp_mask, status, wr_id, start_poll, next_poll, end_poll, read_opcode, read_vendor_err,
            read_byte_len, read_imm_data, read_qp_num, read_src_qp, read_wc_flags, read_slid, read_sl,
            read_dlid_path_bits, read_completion_ts, read_cvlan, read_flow_tag, read_tm_info,
            read_completion_wallclock_ns
        }
        ibv_cq_init_attr_ex {
            cqe, cq_context, channel, comp_vector, wc_flags, comp_mask, flags, parent_domain
        }
        ibv_data_buf { addr, length }
        ibv_device { node_type, transport_type, name, dev_name, dev_path, ibdev_path }
        ibv_device_attr {
            fw_ver, node_guid, sys_image_guid, max_mr_size, page_size_cap, vendor_id,
            vendor_part_id, hw_ver, max_qp, max_qp_wr, device_cap_flags, max_sge, max_sge_rd,
            max_cq, max_cqe, max_mr, max_pd, max_qp_rd_atom, max_res_rd_atom, max_qp_init_rd_atom,
            atomic_cap, max_mw, max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach,
            max_ah, max_srq, max_srq_wr, max_srq_sge, max_pkeys, local_ca_ack_delay, phys_port_cnt
        }
        ibv_dm { context, memcpy_to_dm, memcpy_from_dm, comp_mask, handle }
        ibv_gid_entry { gid, gid_index, port_num, gid_type, ndev_ifindex }
        ibv_global_route { dgid, flow_label, sgid_index, hop_limit, traffic_class }
        ibv_grh { version_tclass_flow, paylen, next_hdr, hop_limit, sgid, dgid }
        ibv_modify_cq_attr {
            attr_mask, cq_count = "moderate.cq_count", cq_period = "moderate.cq_period"
        }
        ibv_mr { context, pd, addr, length, handle, lkey, rkey }
        ibv_mw { context, pd, rkey, handle, mw_type = "type" }
        ibv_mw_bind { wr_id, send_flags, bind_info }
        ibv_mw_bind_info { mr, addr, length, mw_access_flags }
        ibv_parent_domain_init_attr { pd, td, comp_mask, alloc, free, pd_context }
        ibv_pd { context, handle }
        ibv_qp {
            context, qp_context, pd, send_cq, recv_cq, srq, handle, qp_num, state, qp_type, mutex,
            cond, events_completed
        }
        ibv_qp_attr {
            qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qp_num,
            qp_access_flags, cap, ah_attr, alt_ah_attr, pkey_index, alt_pkey_index,
            en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer,
            port_num, timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout, rate_limit
        }
        ibv_qp_cap { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data }
        ibv_qp_init_attr { qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all }
        ibv_qp_init_attr_ex {
            qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all, comp_mask, pd, xrcd,
            create_flags, max_tso_header, rwq_ind_tbl, rx_hash_conf, source_qpn, send_ops_flags
        }
        ibv_qp_open_attr { comp_mask, qp_num, xrcd, qp_context, qp_type }
        ibv_recv_wr { wr_id, next, sg_list, num_sge }
        ibv_send_wr {
            wr_id, next, sg_list, num_sge, opcode, send_flags, imm_data, wr,
            remote_srqn = "qp_type.xrc.remote_srqn", bind_mw
        }
        ibv_sge { addr, length, lkey }
        ibv_srq { context, srq_context, pd, handle, mutex, cond, events_completed }
        ibv_srq_attr { max_wr, max_sge, srq_limit }
        ibv_srq_init_attr { srq_context, attr }
        ibv_srq_init_attr_ex {
            srq_context, attr, comp_mask, srq_type, pd, xrcd, cq, tm_cap
        }
        ibv_td { context }
        ibv_td_init_attr { comp_mask }
        ibv_values_ex { comp_mask, raw_clock }
        ibv_wc {
            wr_id, status, opcode, vendor_err, byte_len, imm_data, qp_num, src_qp, wc_flags,
            pkey_index, slid, sl, dlid_path_bits
        }
        ibv_xrcd { context }
        ibv_xrcd_init_attr { comp_mask, fd, oflags }
    }
    // These grow from release to release, at the end that old programs do not look at.
    macro_rules! growing {
        ($( $name:ident { $($field:ident),* } )*) => { $( $(
            list.push((stringify!($name), Some(stringify!($field)), offset_of!(c::$name, $field)));
        )* )* };
    }
    growing! {
        ibv_port_attr {
            state, max_mtu, active_mtu, gid_tbl_len, port_cap_flags, max_msg_sz, bad_pkey_cntr,
            qkey_viol_cntr, pkey_tbl_len, lid, sm_lid, lmc, max_vl_num, sm_sl, subnet_timeout,
            init_type_reply, active_width, active_speed, phys_state, link_layer, flags,
            port_cap_flags2
        }
        ibv_qp_ex {
            comp_mask, wr_id, wr_flags, wr_atomic_cmp_swp, wr_atomic_fetch_add, wr_bind_mw,
            wr_local_inv, wr_rdma_read, wr_rdma_write, wr_rdma_write_imm, wr_send, wr_send_imm,
            wr_send_inv, wr_send_tso, wr_set_ud_addr, wr_set_xrc_srqn, wr_set_inline_data,
            wr_set_inline_data_list, wr_set_sge, wr_set_sge_list, wr_start, wr_complete, wr_abort,
            wr_atomic_write
        }
    }
    list
}

/// Operations of the extended context: how far below the context that programs point to.
fn below_the_context() -> Vec<(&'static str, usize)> {
    macro_rules! below {
        ($($field:ident $(= $theirs:literal)?),*) => {
            vec![$((
                [$($theirs,)? stringify!($field)][0],
                offset_of!(c::verbs_context, context) - offset_of!(c::verbs_context, $field),
            )),*]
        };
    }
    below![
        query_port,
        advise_mr,
        alloc_null_mr,
        reg_dm_mr,
        alloc_dm,
        free_dm,
        modify_qp_rate_limit,
        alloc_parent_domain,
        dealloc_td,
        alloc_td,
        modify_cq,
        post_srq_ops,
        query_rt_values,
        create_cq_ex,
        own = "priv",
        query_device_ex,
        destroy_flow = "ibv_destroy_flow",
        create_flow = "ibv_create_flow",
        open_qp,
        create_qp_ex,
        get_srq_num,
        create_srq_ex,
        open_xrcd,
        close_xrcd,
        sz
    ]
}

/// What the C compiler says of these expressions.
fn of_c(expressions: &[String]) -> Vec<usize> {
    let mut program = String::from(
        "#include <infiniband/verbs.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n",
    );
    for expression in expressions {
        writeln!(program, "printf(\"%zu\\n\", (size_t)({expression}));").unwrap();
    }
    program.push_str("return 0;\n}\n");
    let dir = env::temp_dir().join(format!("verbsim-layout-abi-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let (source, binary) = (dir.join("layout.c"), dir.join("layout"));
    fs::write(&source, program).unwrap();
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut compile = Command::new(compiler);
    let compiled = compile
        .arg(&source)
        .arg("-o")
        .arg(&binary)
        .status()
        .unwrap();
    assert!(compiled.success());
    let output = Command::new(&binary).output().unwrap();
    fs::remove_dir_all(&dir).unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    output.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
#[ignore = "needs a C compiler and the header of libibverbs"]
fn structures_have_the_layout_of_c() {
    let mut all: Vec<(String, usize)> = Vec::new();
    for (name, field, bytes) in ours() {
        let expression = match field {
            None => format!("sizeof(struct {name})"),
            Some(field) => format!("offsetof(struct {name}, {field})"),
        };
        all.push((expression, bytes));
    }
    for (field, below) in below_the_context() {
        let [context, field] =
            ["context", field].map(|of| format!("offsetof(struct verbs_context, {of})"));
        all.push((format!("{context} - {field}"), below));
    }
    macro_rules! later {
        ($($field:ident $(= $theirs:literal)?),*) => { $(
            let field = [$($theirs,)? stringify!($field)][0];
            let at = size_of::<c::ibv_device_attr>() + offset_of!(c::Later, $field);
            all.push((format!("offsetof(struct ibv_device_attr_ex, {field})"), at));
        )* };
    }
    later! {
        comp_mask, odp_caps, completion_timestamp_mask, hca_core_clock, device_cap_flags_ex,
        packets_and_tags = "tso_caps", max_cq_count = "cq_mod_caps.max_cq_count",
        max_cq_period = "cq_mod_caps.max_cq_period", max_dm_size, pci_atomic_caps, xrc_odp_caps,
        phys_port_cnt_ex
    }
    let expressions: Vec<String> = all
        .iter()
        .map(|(expression, _)| expression.clone())
        .collect();
    let theirs = of_c(&expressions);
    assert_eq!(theirs.len(), all.len());
    for ((expression, ours), theirs) in all.into_iter().zip(theirs) {
        assert_eq!(ours, theirs, "{expression}");
    }
}
