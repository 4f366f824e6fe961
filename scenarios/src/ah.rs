//! Address handles.

use std::net::{Ipv4Addr, Ipv6Addr};

use verbs_api::behavior::{Check, SqRelease};
use verbs_api::{
    AhAttr, ErrorKind, Gid, GidType, LinkLayer, QpModify, QpState, QpType, SendWr, WcStatus,
};

use crate::failure::{check_eq, expect_err_among, value_in_case};
use crate::mcast::all_hosts;
use crate::{OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    serves_all_queue_pairs_of_its_domain,
    every_gid_of_the_port_is_a_source,
    address_that_no_device_has_is_as_declared,
    with_work_outstanding_cannot_be_destroyed,
    there_are_as_many_as_the_device_says,
];

scenario!(serves_all_queue_pairs_of_its_domain: "AH-03"; needs UD);
fn serves_all_queue_pairs_of_its_domain(setup: &Setup<'_>) -> Result {
    const RULE: &str = "AH-03";
    let Pair { a, b } = setup.pair(PairOptions::of(QpType::Ud))?;
    let ah = setup.create_ah(a.pd, &setup.route_to(b.context)?)?;
    let init = verbs_api::QpInit::new(QpType::Ud, a.send_cq, a.recv_cq);
    let second = setup.create_qp(a.pd, &init)?;
    verbs_api::connect::ud_to_rts(setup.verbs(), second, setup.port(), setup.qkey())?;
    for round in 0..5 {
        for (qp, number) in [(a.qp, a.qp_num), (second, setup.qp_num(second)?)] {
            b.recv(round, 8)?;
            let data = [a.sge(0, 8)];
            let send = SendWr::send(round, &data).to(ah, b.qp_num, setup.qkey());
            setup.post_send(qp, &[send]).rule(RULE)?;
            let result = setup.one_with(b.recv_cq, WcStatus::Success, RULE);
            let wc = value_in_case(&format!("round {round}"), result)?;
            check_eq!(RULE, wc.src_qp, number);
            setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        }
    }
    Ok(setup.destroy_ah(ah)?)
}

scenario!(every_gid_of_the_port_is_a_source: "AH-01"; needs UD, LAB);
/// From the first of the table to the last. On a real port some have no network behind them.
fn every_gid_of_the_port_is_a_source(setup: &Setup<'_>) -> Result {
    const RULE: &str = "AH-01";
    let Pair { a, b } = setup.pair(PairOptions::of(QpType::Ud))?;
    let gids = setup.query_port(a.context, setup.port())?.gid_tbl_len;
    let to_b = setup.route_to(b.context)?;
    for index in 0..gids {
        for side in [a.context, b.context] {
            if setup.query_gid(side, setup.port(), index)? == Gid::default() {
                let mut gid = setup.query_gid(side, setup.port(), 0)?;
                gid.0[8] ^= 0x40;
                setup.lab().set_gid(side, setup.port(), index, gid)?;
            }
        }
        let dgid = setup.query_gid(b.context, setup.port(), index)?;
        let way = AhAttr {
            dlid: to_b.dlid,
            ..AhAttr::global(setup.port(), index as u8, dgid)
        };
        let ah = value_in_case(
            &format!("GID {index}"),
            setup.create_ah(a.pd, &way).rule(RULE),
        )?;
        a.fill(3, 8)?;
        b.recv(1, 8)?;
        let data = [a.sge(0, 8)];
        setup.post_send(
            a.qp,
            &[SendWr::send(1, &data).to(ah, b.qp_num, setup.qkey())],
        )?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
        b.expect_data(3, 8, RULE)?;
        setup.destroy_ah(ah)?;
    }
    Ok(())
}

/// How the resolution of an address fails.
pub(crate) const UNRESOLVED: [ErrorKind; 3] = [
    ErrorKind::TimedOut,
    ErrorKind::NetworkUnreachable,
    ErrorKind::HostUnreachable,
];

/// The way from the port of side A to an address that no device has; `None` on InfiniBand, which
/// does not resolve addresses. It is of the port's own link if the port has a link-local address:
/// behind a router every address may be one that somebody has. Otherwise it is one that is kept for
/// documentation.
pub(crate) fn way_to_no_device(setup: &Setup<'_>) -> Result<Option<AhAttr>> {
    let (context, port_num) = (setup.ctx_a(), setup.port());
    let port = setup.query_port(context, port_num)?;
    if port.link_layer != LinkLayer::Ethernet {
        return Ok(None);
    }
    // Version 1 of RoCE finds the MAC address in a link-local GID.
    let is_of_link = |index: &u32| {
        let entry = setup.query_gid_ex(context, port_num, *index);
        entry.is_ok_and(|of| of.gid_type == GidType::RoceV2 && of.gid.is_link_local())
    };
    let of_link = (0..port.gid_tbl_len.min(8)).find(is_of_link);
    let index = of_link.unwrap_or_else(|| setup.place().sgid_index.into());
    let own = setup.query_gid(context, port_num, index)?;
    let unused = match own.ipv4() {
        Some(_) => Ipv4Addr::new(192, 0, 2, 77).to_ipv6_mapped(),
        None if of_link.is_some() => Ipv6Addr::new(0xfe80, 0, 0, 0, 0x0bad, 0, 0, 77),
        None => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0x0bad, 0, 0, 77),
    };
    let way = AhAttr::global(port_num, index as u8, Gid(unused.octets()));
    Ok(Some(way))
}

scenario!(address_that_no_device_has_is_as_declared: "AH-07"; needs UD);
fn address_that_no_device_has_is_as_declared(setup: &Setup<'_>) -> Result {
    const RULE: &str = "AH-07";
    let Some(way) = way_to_no_device(setup)? else {
        return Ok(());
    };
    let pd = setup.alloc_pd(setup.ctx_a())?;
    match setup.behavior()?.unowned_gid {
        Some(Check::Refused) => {
            expect_err_among(setup.create_ah(pd, &way), &UNRESOLVED, RULE)?;
        }
        Some(_) => setup.destroy_ah(setup.create_ah(pd, &way).rule(RULE)?)?,
        None => {}
    }
    // The address of the device itself has an owner, and that of a group needs none.
    let own = setup.query_gid(setup.ctx_a(), setup.port(), setup.place().sgid_index.into())?;
    for dgid in [own, all_hosts(setup)?] {
        let way = AhAttr::global(setup.port(), setup.place().sgid_index, dgid);
        let ah = value_in_case(&dgid.to_string(), setup.create_ah(pd, &way).rule(RULE))?;
        setup.destroy_ah(ah)?;
    }
    Ok(())
}

scenario!(with_work_outstanding_cannot_be_destroyed: "AH-04", "UD-16"; needs UD, LAB);
/// A mistake of the program: the simulator reports it, a device may do anything.
fn with_work_outstanding_cannot_be_destroyed(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(PairOptions::of(QpType::Ud))?;
    let ah = setup.create_ah(a.pd, &setup.route_to(b.context)?)?;
    let data = [a.sge(0, 8)];
    let send = SendWr::send(1, &data).to(ah, b.qp_num, setup.qkey());
    // There the send waits.
    setup.modify(a.qp, QpModify::to(QpState::Sqd))?;
    setup.post_send(a.qp, &[send])?;
    expect_err(setup.destroy_ah(ah), ErrorKind::Usage, "UD-16")?;
    setup.modify(a.qp, QpModify::to(QpState::Rts))?;
    // Some devices go on with what waited only at the next post.
    setup.post_send(a.qp, &[send])?;
    setup.settle()?;
    setup.successes(a.send_cq, 1).rule("AH-04")?;
    // Until the second is polled, it may not be done.
    if setup.behavior()?.sq_release == Some(SqRelease::Poll) {
        expect_err(setup.destroy_ah(ah), ErrorKind::Usage, "UD-16")?;
    }
    setup.successes(a.send_cq, 1).rule("AH-04")?;
    setup.destroy_ah(ah).rule("AH-04")
}

scenario!(there_are_as_many_as_the_device_says: "AH-05"; needs UD, LAB);
fn there_are_as_many_as_the_device_says(setup: &Setup<'_>) -> Result {
    const RULE: &str = "AH-05";
    let context = setup.ctx_a();
    let most = setup.query_device(context)?.max_ah;
    let pd = setup.alloc_pd(context)?;
    let to = setup.route_to(context)?;
    let all: Vec<_> = (0..most)
        .map(|_| setup.create_ah(pd, &to).rule(RULE))
        .collect::<Result<_>>()?;
    expect_err(setup.create_ah(pd, &to), ErrorKind::NoMemory, RULE)?;
    setup.destroy_ah(all[0])?;
    setup.create_ah(pd, &to).rule(RULE).map(drop)
}
