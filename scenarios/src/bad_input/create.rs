//! Creating with bad arguments, or beyond a limit; bad table indices.

use std::fmt::Debug;

use verbs_api::lab::Limit;
use verbs_api::{
    Access, AhAttr, CqInit, DeviceAttr, Error, ErrorKind, GlobalRoute, QpCap, QpInit, QpType,
    SrqInit,
};

use super::refused;
use crate::failure::{in_case, value_in_case};
use crate::{Failure, OfRule, PairOptions, Result, Setup};

const INVALID: [ErrorKind; 1] = [ErrorKind::Invalid];
const UNSUPPORTED: [ErrorKind; 2] = [ErrorKind::Invalid, ErrorKind::NotSupported];

scenario!(qp_sizes_above_the_limits_are_refused: "QP-CREATE-02");
fn qp_sizes_above_the_limits_are_refused(setup: &Setup<'_>) -> Result {
    type Size = (&'static str, fn(&DeviceAttr) -> u32, fn(&mut QpCap, u32));
    const SIZES: [Size; 5] = [
        ("max_send_wr", |d| d.max_qp_wr, |cap, n| cap.max_send_wr = n),
        ("max_recv_wr", |d| d.max_qp_wr, |cap, n| cap.max_recv_wr = n),
        ("max_send_sge", |d| d.max_sge, |cap, n| cap.max_send_sge = n),
        ("max_recv_sge", |d| d.max_sge, |cap, n| cap.max_recv_sge = n),
        (
            "max_inline_data",
            |d| d.max_inline_data,
            |cap, n| cap.max_inline_data = n,
        ),
    ];
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let device = setup.query_device(end.context)?;
    let create = |set: fn(&mut QpCap, u32), size| {
        let mut cap = QpCap {
            max_send_wr: 1,
            max_recv_wr: 1,
            ..QpCap::default()
        };
        set(&mut cap, size);
        let init = QpInit::new(QpType::Rc, end.send_cq, end.recv_cq).cap(cap);
        setup.create_qp(end.pd, &init)
    };
    for (what, limit, set) in SIZES {
        let limit = limit(&device);
        if limit == 0 {
            // The device does not say.
            continue;
        }
        for size in [limit + 1, u32::MAX] {
            let kinds = [ErrorKind::Invalid, ErrorKind::NoMemory];
            let result = refused(setup, &kinds, "QP-CREATE-02", || create(set, size));
            in_case(&format!("{what} {size}"), result.map(drop))?;
        }
        let created = value_in_case(what, create(set, limit).rule("QP-CREATE-02"))?;
        setup.destroy_qp(created, setup.wait())?;
    }
    Ok(())
}

scenario!(unknown_qp_type_is_refused: "QP-CREATE-03");
fn unknown_qp_type_is_refused(setup: &Setup<'_>) -> Result {
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    for raw in [0xfe, 0x7fff_ffff] {
        let init = QpInit::new(QpType::from(raw), end.send_cq, end.recv_cq);
        refused(setup, &UNSUPPORTED, "QP-CREATE-03", || {
            setup.create_qp(end.pd, &init)
        })?;
    }
    Ok(())
}

scenario!(remote_write_without_local_write_is_refused: "MR-01"; without RC);
fn remote_write_without_local_write_is_refused(setup: &Setup<'_>) -> Result {
    let pd = setup.alloc_pd(setup.ctx_a())?;
    for access in [
        Access::REMOTE_WRITE,
        Access::REMOTE_ATOMIC,
        Access::REMOTE_WRITE | Access::REMOTE_READ,
        Access::REMOTE_WRITE | Access::REMOTE_ATOMIC,
    ] {
        refused(setup, &INVALID, "MR-01", || setup.alloc_mr(pd, 64, access))?;
    }
    for access in [Access::REMOTE_READ, Access::empty(), Access::ALL_RDMA] {
        setup.alloc_mr(pd, 64, access).rule("MR-01")?;
    }
    Ok(())
}

scenario!(unknown_access_bits_are_refused: "MR-04"; without RC);
fn unknown_access_bits_are_refused(setup: &Setup<'_>) -> Result {
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let with = |bit: u32| Access::LOCAL_WRITE | Access::from_bits_retain(1 << bit);
    for bit in [18, 19, 30, 31] {
        let result = refused(setup, &UNSUPPORTED, "MR-04", || {
            setup.alloc_mr(pd, 64, with(bit))
        });
        in_case(&format!("bit {bit}"), result.map(drop))?;
    }
    // Optional bits may be unknown.
    for bit in [20, 29] {
        let created = setup.alloc_mr(pd, 64, with(bit)).rule("MR-04");
        in_case(&format!("bit {bit}"), created.map(drop))?;
    }
    Ok(())
}

scenario!(region_above_the_limit_is_refused: "MR-15", "LIFE-06"; without RC);
fn region_above_the_limit_is_refused(setup: &Setup<'_>) -> Result {
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let most = setup.query_device(setup.ctx_a())?.max_mr_size;
    let above = usize::try_from(most.saturating_add(1)).unwrap_or(usize::MAX);
    for length in [above, usize::MAX] {
        // The machine's memory may end before the device's limit does.
        let kinds = [ErrorKind::Invalid, ErrorKind::NoMemory];
        refused(setup, &kinds, "MR-15", || {
            setup.alloc_mr(pd, length, Access::empty())
        })?;
    }
    setup.dealloc_pd(pd).rule("LIFE-06")
}

scenario!(address_vector_that_leads_nowhere_is_refused: "AH-01", "LIFE-06"; needs UD);
fn address_vector_that_leads_nowhere_is_refused(setup: &Setup<'_>) -> Result {
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let good = setup.route_to(setup.ctx_a())?;
    for attr in bad_addresses(setup, &good)? {
        let result = refused(setup, &INVALID, "AH-01", || setup.create_ah(pd, &attr));
        in_case(&format!("{attr:?}"), result.map(drop))?;
    }
    let ah = setup.create_ah(pd, &good).rule("AH-01")?;
    setup.destroy_ah(ah)?;
    setup.dealloc_pd(pd).rule("LIFE-06")
}

/// Address vectors that side A must refuse, made from a good one.
pub(super) fn bad_addresses(setup: &Setup<'_>, good: &AhAttr) -> Result<Vec<AhAttr>> {
    let port = setup.query_port(setup.ctx_a(), setup.port())?;
    let mut bad = Vec::new();
    for port_num in bad_ports(setup)? {
        bad.push(AhAttr { port_num, ..*good });
    }
    if port.grh_required {
        bad.push(AhAttr { grh: None, ..*good });
    }
    if let (Some(grh), Ok(sgid_index)) = (good.grh, u8::try_from(port.gid_tbl_len)) {
        let grh = Some(GlobalRoute { sgid_index, ..grh });
        bad.push(AhAttr { grh, ..*good });
    }
    Ok(bad)
}

/// Port numbers that no port of side A has.
pub(super) fn bad_ports(setup: &Setup<'_>) -> Result<Vec<u8>> {
    let count = setup.query_device(setup.ctx_a())?.phys_port_cnt;
    Ok(std::iter::once(0).chain(count.checked_add(1)).collect())
}

scenario!(port_out_of_range_is_refused: "DEV-05"; without RC);
fn port_out_of_range_is_refused(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_a();
    for port in bad_ports(setup)? {
        refused(setup, &INVALID, "DEV-05", || {
            setup.query_port(context, port)
        })?;
        any_error(setup.query_gid(context, port, 0), "DEV-05")?;
        any_error(setup.query_pkey(context, port, 0), "DEV-05")?;
    }
    for port in 1..=setup.query_device(context)?.phys_port_cnt {
        setup.query_port(context, port).rule("DEV-05")?;
    }
    Ok(())
}

scenario!(table_index_out_of_range_is_refused: "DEV-06"; without RC);
fn table_index_out_of_range_is_refused(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_a();
    let port = setup.query_port(context, setup.port())?;
    for index in [port.gid_tbl_len, u32::MAX] {
        any_error(setup.query_gid(context, 1, index), "DEV-06")?;
    }
    for index in [port.pkey_tbl_len, u16::MAX] {
        any_error(setup.query_pkey(context, 1, index), "DEV-06")?;
    }
    setup.query_gid(context, 1, 0).rule("DEV-06")?;
    // iWARP has no P_Keys.
    let Some(last) = port.pkey_tbl_len.checked_sub(1) else {
        return Ok(());
    };
    for index in [0, last] {
        setup.query_pkey(context, 1, index).rule("DEV-06")?;
    }
    Ok(())
}

/// The verb fails; no errno is laid down.
fn any_error<T: Debug>(result: Result<T, Error>, rule: &'static str) -> Result {
    match result {
        Err(_) => Ok(()),
        Ok(value) => Err(Failure::assertion("an error", format!("{value:?}"))).rule(rule),
    }
}

scenario!(failed_creation_leaves_no_reference: "LIFE-06", "CQ-CREATE-13");
fn failed_creation_leaves_no_reference(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_a();
    let channel = setup.create_comp_channel(context)?;
    let cq = setup.create_cq(context, &CqInit::new(4))?;
    let pd = setup.alloc_pd(context)?;
    for init in [
        CqInit::new(0).channel(channel),
        CqInit::new(i32::MAX).channel(channel),
        CqInit::new(4).channel(channel).comp_vector(-1),
    ] {
        refused(setup, &INVALID, "CQ-CREATE-13", || {
            setup.create_cq(context, &init)
        })?;
    }
    let too_large = QpCap {
        max_send_wr: u32::MAX,
        ..QpCap::default()
    };
    refused(
        setup,
        &[ErrorKind::Invalid, ErrorKind::NoMemory],
        "LIFE-06",
        || setup.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq).cap(too_large)),
    )?;
    refused(setup, &INVALID, "LIFE-06", || {
        setup.alloc_mr(pd, 64, Access::REMOTE_WRITE)
    })?;
    setup.destroy_comp_channel(channel).rule("CQ-CREATE-13")?;
    setup.destroy_cq(cq, setup.wait()).rule("LIFE-06")?;
    setup.dealloc_pd(pd).rule("LIFE-06")
}

scenario!(creation_without_memory_changes_nothing:
    "CHAN-10", "PD-03", "LIFE-06"; needs RC, UD, SRQ, LAB);
fn creation_without_memory_changes_nothing(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_a();
    let end = setup.end(context, PairOptions::default())?;
    let ah_attr = setup.route_to(context)?;
    let with_channel = CqInit::new(4).channel(end.channel);
    let qp_init = QpInit::new(QpType::Rc, end.send_cq, end.recv_cq);
    type Creation<'c> = (&'c str, &'static str, &'c dyn Fn() -> verbs_api::Result<()>);
    let creations: [Creation<'_>; 7] = [
        ("pd", "PD-03", &|| setup.alloc_pd(context).map(drop)),
        ("mr", "LIFE-06", &|| {
            setup.alloc_mr(end.pd, 64, Access::empty()).map(drop)
        }),
        ("channel", "CHAN-10", &|| {
            setup.create_comp_channel(context).map(drop)
        }),
        ("cq", "LIFE-06", &|| {
            setup.create_cq(context, &with_channel).map(drop)
        }),
        ("qp", "LIFE-06", &|| {
            setup.create_qp(end.pd, &qp_init).map(drop)
        }),
        ("ah", "LIFE-06", &|| {
            setup.create_ah(end.pd, &ah_attr).map(drop)
        }),
        ("srq", "LIFE-06", &|| {
            setup.create_srq(end.pd, &SrqInit::new(4)).map(drop)
        }),
    ];
    setup.lab().set_limit(context, Limit::Objects, Some(0))?;
    for (what, rule, create) in creations {
        let result = refused(setup, &[ErrorKind::NoMemory], rule, create);
        in_case(what, result.map(drop))?;
    }
    setup.lab().set_limit(context, Limit::Objects, None)?;
    setup.destroy_qp(end.qp, setup.wait())?;
    for cq in [end.send_cq, end.recv_cq] {
        setup.destroy_cq(cq, setup.wait()).rule("LIFE-06")?;
    }
    setup.destroy_comp_channel(end.channel).rule("CHAN-10")?;
    setup.dereg_mr(end.mr)?;
    setup.dealloc_pd(end.pd).rule("LIFE-06")
}

scenario!(too_many_open_files_change_nothing: "CHAN-09"; needs LAB);
fn too_many_open_files_change_nothing(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_a();
    let Some(device) = setup.devices()?.into_iter().next() else {
        return Err(Failure::assertion("at least one device", "none"));
    };
    let files = setup.lab().live(context)?;
    let files = u64::from(files.contexts + files.channels);
    // Room for one more channel.
    setup
        .lab()
        .set_limit(context, Limit::Files, Some(files + 1))?;
    let channel = setup.create_comp_channel(context).rule("CHAN-09")?;
    let kinds = [ErrorKind::TooManyFiles];
    refused(setup, &kinds, "CHAN-09", || {
        setup.create_comp_channel(context)
    })?;
    refused(setup, &kinds, "CHAN-09", || setup.open_device(&device.name))?;
    let before = setup.live()?;
    setup.destroy_comp_channel(channel)?;
    setup.create_comp_channel(context).rule("CHAN-09")?;
    setup.expect_live(before, "CHAN-09")?;
    Ok(())
}
