//! Sizes and offsets of the structures that cross the border, compared with those of C.

use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;
use std::{env, fs};

use crate::sys;

macro_rules! layout {
    ($list:ident; $( $name:ident { $($field:ident),* } )*) => { $(
        $list.push((stringify!($name).to_owned(), None, size_of::<sys::$name>()));
        $( $list.push((
            stringify!($name).to_owned(),
            Some(stringify!($field)),
            offset_of!(sys::$name, $field),
        )); )*
    )* };
}

/// Structure, field or none for its size, bytes.
type Row = (String, Option<&'static str>, usize);

fn of_bindings() -> Vec<Row> {
    let mut list = Vec::new();
    layout! { list;
        ibv_ah_attr { grh, dlid, sl, src_path_bits, static_rate, is_global, port_num }
        ibv_async_event { element, event_type }
        ibv_comp_channel { context, fd, refcnt }
        ibv_context { device, ops, cmd_fd, async_fd, num_comp_vectors, abi_compat }
        ibv_cq { context, channel, cq_context, handle, cqe }
        ibv_cq_ex {
            context, channel, cq_context, handle, cqe, status, wr_id, start_poll, next_poll, end_poll,
            read_opcode, read_vendor_err, read_byte_len, read_imm_data, read_qp_num, read_src_qp,
            read_wc_flags, read_slid, read_sl, read_dlid_path_bits, read_completion_ts,
            read_completion_wallclock_ns
        }
        ibv_cq_init_attr_ex {
            cqe, cq_context, channel, comp_vector, wc_flags, comp_mask, flags, parent_domain
        }
        ibv_device_attr {
            fw_ver, device_cap_flags, node_guid, max_mr_size, max_qp, max_qp_wr, max_sge, max_cq, max_cqe, max_mr, max_mw,
            max_pd, max_qp_rd_atom, max_qp_init_rd_atom, atomic_cap, max_ah, max_mcast_grp, max_mcast_qp_attach, phys_port_cnt,
            max_srq, max_srq_wr, max_srq_sge
        }
        ibv_device_attr_ex {
            orig_attr, completion_timestamp_mask, hca_core_clock, tso_caps, cq_mod_caps
        }
        ibv_gid { raw }
        ibv_gid_entry { gid, gid_index, port_num, gid_type, ndev_ifindex }
        ibv_global_route { dgid, flow_label, sgid_index, hop_limit, traffic_class }
        ibv_modify_cq_attr { attr_mask, moderate }
        ibv_mr { context, pd, addr, length, handle, lkey, rkey }
        ibv_mw_bind { wr_id, send_flags, bind_info }
        ibv_mw_bind_info { mr, addr, length, mw_access_flags }
        ibv_port_attr {
            state, max_mtu, active_mtu, gid_tbl_len, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr,
            pkey_tbl_len, lid, link_layer, flags
        }
        ibv_qp { context, qp_context, pd, send_cq, recv_cq, srq, handle, qp_num, state, qp_type }
        ibv_qp_attr {
            qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qp_num,
            qp_access_flags, cap, ah_attr, alt_ah_attr, pkey_index, en_sqd_async_notify,
            sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout,
            retry_cnt, rnr_retry
        }
        ibv_qp_cap { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data }
        ibv_qp_init_attr { qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all }
        ibv_qp_init_attr_ex {
            qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all, comp_mask, pd,
            xrcd, send_ops_flags
        }
        ibv_qp_ex {
            wr_id, wr_flags, wr_rdma_read, wr_rdma_write, wr_rdma_write_imm, wr_send, wr_send_imm,
            wr_set_ud_addr, wr_set_xrc_srqn, wr_set_inline_data, wr_set_inline_data_list, wr_set_sge_list, wr_start, wr_complete,
            wr_abort
        }
        ibv_data_buf { addr, length }
        ibv_recv_wr { wr_id, next, sg_list, num_sge }
        ibv_send_wr { wr_id, next, sg_list, num_sge, opcode, send_flags, wr, qp_type }
        ibv_sge { addr, length, lkey }
        ibv_srq { context, srq_context, pd, handle }
        ibv_srq_attr { max_wr, max_sge, srq_limit }
        ibv_srq_init_attr { srq_context, attr }
        ibv_srq_init_attr_ex { srq_context, attr, comp_mask, srq_type, pd, xrcd, cq }
        ibv_xrcd { context }
        ibv_xrcd_init_attr { comp_mask, fd, oflags }
        ibv_qp_open_attr { comp_mask, qp_num, xrcd, qp_context, qp_type }
        ibv_wc {
            wr_id, status, opcode, vendor_err, byte_len, qp_num, src_qp, wc_flags, pkey_index,
            slid, sl, dlid_path_bits
        }
    }
    list
}

/// What the C compiler says of the same.
fn of_c(rows: &[Row]) -> String {
    let mut program = String::from(
        "#include <infiniband/verbs.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n",
    );
    for (name, field, _) in rows {
        let c_name = match name.as_str() {
            "ibv_gid" => "union ibv_gid".to_owned(),
            name => format!("struct {name}"),
        };
        let value = match field {
            None => format!("sizeof({c_name})"),
            Some(field) => format!("offsetof({c_name}, {field})"),
        };
        writeln!(program, "printf(\"%zu\\n\", (size_t){value});").unwrap();
    }
    program.push_str("return 0;\n}\n");
    let dir = env::temp_dir().join(format!("verbsim-layout-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let (source, binary) = (dir.join("layout.c"), dir.join("layout"));
    fs::write(&source, program).unwrap();
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let compiled = Command::new(compiler)
        .arg(&source)
        .arg("-o")
        .arg(&binary)
        .status()
        .unwrap();
    assert!(compiled.success());
    let output = Command::new(&binary).output().unwrap();
    fs::remove_dir_all(&dir).unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn structures_have_the_layout_of_c() {
    let rows = of_bindings();
    let of_c: Vec<usize> = of_c(&rows)
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(of_c.len(), rows.len());
    for ((name, field, ours), theirs) in rows.into_iter().zip(of_c) {
        assert_eq!(ours, theirs, "{name} {}", field.unwrap_or("size"));
    }
}
