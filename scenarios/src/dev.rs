//! Devices, their limits and their ports.

use core::time::Duration;
use std::collections::BTreeSet;

use verbs_api::{
    Access, AhAttr, Capabilities, Context, CqInit, ErrorKind, Gid, GidEntry, GidType, LinkLayer,
    PortState, QpCap, QpInit, QpState, QpType, Transport, WcStatus,
};

use crate::end::gives_up_soon;
use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::fresh_qp::FreshQp;
use crate::{Failure, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    opened_device_outlives_the_list,
    limits_can_be_reached,
    extended_queries_agree_with_the_plain_ones,
    empty_gid_is_in_no_extended_query,
    gids_have_the_type_of_their_port,
    gids_of_roce_v1_are_as_declared_and_reach_their_own_version,
    transport_tells_how_queue_pairs_are_connected,
    only_devices_of_the_list_can_be_opened,
    port_of_ethernet_has_no_lid_and_needs_a_grh,
    active_port_has_an_mtu_that_it_can_have,
    nothing_passes_a_port_that_is_down,
    each_device_has_a_guid_of_its_own,
    clock_never_goes_back,
    clock_counts_the_ticks_of_its_rate,
];

scenario!(opened_device_outlives_the_list: "DEV-01", "DEV-02"; without RC);
fn opened_device_outlives_the_list(setup: &Setup<'_>) -> Result {
    let list = setup.devices().rule("DEV-01")?;
    check!("DEV-01", !list.is_empty(), "a device", "none");
    check_eq!("DEV-01", setup.devices()?, list, "the next list");
    let name = &list[0].name;
    let first = setup.open_device(name)?;
    drop(list);
    let second = setup
        .open_device(&setup.devices()?[0].name)
        .rule("DEV-02")?;
    check!("DEV-02", first != second, "two contexts", "{first} twice");
    let pd = setup.alloc_pd(second).rule("DEV-02")?;
    setup.close_device(first)?;
    // What is of the other context is still there.
    setup.query_device(second).rule("DEV-02")?;
    setup.dealloc_pd(pd).rule("DEV-02")?;
    Ok(setup.close_device(second)?)
}

scenario!(extended_queries_agree_with_the_plain_ones: "DEV-11"; without RC);
fn extended_queries_agree_with_the_plain_ones(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DEV-11";
    for context in [setup.ctx_a(), setup.ctx_b()] {
        let plain = setup.query_device(context)?;
        let extended = setup.query_device_ex(context).rule(RULE)?;
        check_eq!(RULE, extended.orig_attr, plain, "the device's attributes");
        let expected = gid_tables(setup, context)?;
        let mut entries = room(setup, context)?;
        let count = setup.query_gid_table(context, &mut entries).rule(RULE)?;
        check_eq!(RULE, entries[..count], expected, "the GID table");
        let mut exact = vec![GidEntry::default(); count];
        check_eq!(RULE, setup.query_gid_table(context, &mut exact)?, count);
        check_eq!(
            RULE,
            exact,
            expected,
            "the GID table in a buffer of its size"
        );
        if let Some((_, small)) = exact.split_last_mut() {
            let result = setup.query_gid_table(context, small);
            value_in_case(
                "a small buffer",
                expect_err(result, ErrorKind::Invalid, RULE),
            )?;
        }
        let len = setup.query_port(context, setup.port())?.gid_tbl_len;
        let result = setup.query_gid_ex(context, setup.port(), len);
        value_in_case(
            "beyond the table",
            expect_err(result, ErrorKind::Invalid, RULE),
        )?;
    }
    Ok(())
}

/// Room for the GIDs of all ports of a device.
fn room(setup: &Setup<'_>, context: Context) -> Result<Vec<GidEntry>> {
    let mut entries = Vec::new();
    for port in 1..=setup.query_device(context)?.phys_port_cnt {
        let len = entries.len() + setup.query_port(context, port)?.gid_tbl_len as usize;
        entries.resize(len, GidEntry::default());
    }
    Ok(entries)
}

/// The GID tables of all ports, entry by entry: each is what the plain query gives, and those that
/// are empty are so by both.
fn gid_tables(setup: &Setup<'_>, context: Context) -> Result<Vec<GidEntry>> {
    const RULE: &str = "DEV-11";
    let mut all = Vec::new();
    for port in 1..=setup.query_device(context)?.phys_port_cnt {
        for index in 0..setup.query_port(context, port)?.gid_tbl_len {
            // Drivers may have no word for an entry that is empty.
            let gid = setup.query_gid(context, port, index).unwrap_or_default();
            if gid == Gid::default() {
                let entry = setup.query_gid_ex(context, port, index);
                value_in_case(
                    &format!("GID {index}"),
                    expect_err(entry, ErrorKind::NoData, RULE),
                )?;
                continue;
            }
            let entry = setup.query_gid_ex(context, port, index).rule(RULE)?;
            check_eq!(RULE, entry.gid, gid);
            check_eq!(
                RULE,
                (entry.port_num, entry.gid_index),
                (port.into(), index)
            );
            all.push(entry);
        }
    }
    Ok(all)
}

scenario!(empty_gid_is_in_no_extended_query: "DEV-11"; needs LAB);
fn empty_gid_is_in_no_extended_query(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DEV-11";
    let (context, port) = (setup.ctx_a(), setup.port());
    let before = gid_tables(setup, context)?;
    // It may be there for each version of RoCE.
    let gone = setup.query_gid(context, port, 0)?;
    setup.lab().set_gid(context, port, 0, Gid::default())?;
    let after = gid_tables(setup, context)?;
    let other = |entry: &&GidEntry| (entry.port_num, entry.gid) != (port.into(), gone);
    let expected: Vec<_> = before.iter().filter(other).copied().collect();
    check_eq!(RULE, after, expected, "the entries one by one");
    let mut entries = room(setup, context)?;
    let count = setup.query_gid_table(context, &mut entries).rule(RULE)?;
    check_eq!(RULE, entries[..count], expected, "the table");
    Ok(())
}

scenario!(gids_have_the_type_of_their_port: "DEV-14"; without RC);
fn gids_have_the_type_of_their_port(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DEV-14";
    let transport = setup.devices()?.first().map(|device| device.transport);
    let mut entries = room(setup, setup.ctx_a())?;
    let count = setup.query_gid_table(setup.ctx_a(), &mut entries)?;
    for entry in &entries[..count] {
        let port = u8::try_from(entry.port_num).unwrap_or_default();
        let types: &[GidType] = match setup.query_port(setup.ctx_a(), port)?.link_layer {
            LinkLayer::InfiniBand => &[GidType::Ib],
            LinkLayer::Ethernet if transport == Some(Transport::Ib) => {
                &[GidType::RoceV1, GidType::RoceV2]
            }
            // iWARP uses no GIDs.
            _ => continue,
        };
        let (seen, index) = (entry.gid_type, entry.gid_index);
        check!(
            RULE,
            types.contains(&seen),
            format!("one of {types:?} for GID {index}"),
            "{seen:?}"
        );
    }
    Ok(())
}

scenario!(gids_of_roce_v1_are_as_declared_and_reach_their_own_version:
    "DEV-18"; needs MODIFY_CONNECT);
fn gids_of_roce_v1_are_as_declared_and_reach_their_own_version(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DEV-18";
    let port = setup.query_port(setup.ctx_a(), setup.port())?;
    if port.link_layer != LinkLayer::Ethernet {
        return Ok(());
    }
    let entry = |index| setup.query_gid_ex(setup.ctx_a(), setup.port(), index);
    let has_type = |index, gid_type| entry(index).is_ok_and(|of| of.gid_type == gid_type);
    let indices = 0..port.gid_tbl_len.min(8);
    let v1: Vec<_> = indices
        .filter(|index| has_type(*index, GidType::RoceV1))
        .collect();
    setup.as_declared(RULE, setup.behavior()?.roce_v1, !v1.is_empty())?;
    for first in v1 {
        let second = first + 1;
        let [of_v1, of_v2] = [entry(first)?, entry(second)?];
        check_eq!(RULE, of_v2.gid_type, GidType::RoceV2, "the next type");
        check_eq!(RULE, of_v2.gid, of_v1.gid, "the next GID");
        for (of_a, of_b) in [
            (first, first),
            (second, second),
            (first, second),
            (second, first),
        ] {
            let (mut a, mut b) = FreshQp::pair(setup, QpType::Rc)?;
            for (end, from, to, peer) in [
                (&mut a, of_a, of_b, setup.ctx_b()),
                (&mut b, of_b, of_a, setup.ctx_a()),
            ] {
                let gid = setup.query_gid(peer, setup.port(), to)?;
                end.attr.ah_attr = Some(AhAttr::global(setup.port(), from as u8, gid));
                end.gives_up_soon();
                end.reach(QpState::Rts)?;
            }
            b.end.recv(1, 8)?;
            a.end.send(2, 8)?;
            let status = if of_a == of_b {
                WcStatus::Success
            } else {
                WcStatus::RetryExcErr
            };
            let sent = setup.one_with(a.end.send_cq, status, RULE);
            in_case(&format!("GID {of_a} to GID {of_b}"), sent.map(drop))?;
        }
    }
    Ok(())
}

scenario!(transport_tells_how_queue_pairs_are_connected: "DEV-15"; without RC);
fn transport_tells_how_queue_pairs_are_connected(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DEV-15";
    for device in setup.devices()? {
        let context = setup.open_device(&device.name)?;
        let has = setup.capabilities(context)?;
        let by_attributes = has.contains(Capabilities::MODIFY_CONNECT);
        let is_ib = device.transport == Transport::Ib;
        check_eq!(RULE, is_ib, by_attributes, device.name);
        setup.close_device(context)?;
    }
    Ok(())
}

scenario!(only_devices_of_the_list_can_be_opened: "DEV-16"; without RC);
/// Names that do not exist, and variations of the names of devices.
fn only_devices_of_the_list_can_be_opened(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DEV-16";
    let names: Vec<_> = setup.devices()?.into_iter().map(|d| d.name).collect();
    let mut others = vec![String::new(), "no such device".to_owned()];
    for name in &names {
        others.push(format!("{name}x"));
        let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
        others.push(word.to_owned());
        others.extend((0..=names.len()).map(|number| format!("{word}{number}")));
    }
    let before = setup.live()?;
    for other in others.iter().filter(|other| !names.contains(other)) {
        let refused = expect_err(setup.open_device(other), ErrorKind::NoDevice, RULE);
        in_case(&format!("{other:?}"), refused.map(drop))?;
    }
    setup.expect_live(before, RULE)
}

scenario!(limits_can_be_reached: "DEV-04"; alone "it takes as much as there is");
/// Each limit by itself. The machine may have no memory for it.
fn limits_can_be_reached(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DEV-04";
    let context = setup.ctx_a();
    let limits = setup.query_device(context)?;
    let reached = |what: &str, result: verbs_api::Result<()>| match result {
        Err(error) if error.kind() == ErrorKind::NoMemory && setup.verbs().lab().is_none() => {
            Ok(())
        }
        result => in_case(what, result.map_err(Failure::from)).rule(RULE),
    };
    let cqe = i32::try_from(limits.max_cqe).unwrap_or(i32::MAX);
    reached(
        "max_cqe",
        setup
            .create_cq(context, &CqInit::new(cqe))
            .and_then(|cq| setup.destroy_cq(cq, setup.wait())),
    )?;
    let vector = limits.num_comp_vectors as i32 - 1;
    reached(
        "num_comp_vectors",
        setup
            .create_cq(context, &CqInit::new(4).comp_vector(vector))
            .map(drop),
    )?;
    let end = setup.end(context, PairOptions::default())?;
    let least = QpCap::default();
    let (max_send_wr, max_send_sge) = (limits.max_qp_wr, limits.max_sge);
    for (what, cap) in [
        (
            "max_qp_wr of sends",
            QpCap {
                max_send_wr,
                ..least
            },
        ),
        (
            "max_qp_wr of receives",
            QpCap {
                max_recv_wr: max_send_wr,
                ..least
            },
        ),
        (
            "max_sge of sends",
            QpCap {
                max_send_sge,
                ..least
            },
        ),
        (
            "max_sge of receives",
            QpCap {
                max_recv_sge: max_send_sge,
                ..least
            },
        ),
    ] {
        let init = QpInit::new(QpType::Rc, end.send_cq, end.recv_cq).cap(cap);
        let made = setup.create_qp(end.pd, &init);
        reached(what, made.and_then(|qp| setup.destroy_qp(qp, setup.wait())))?;
    }
    for (what, count) in [
        ("max_qp", limits.max_qp),
        ("max_cq", limits.max_cq),
        ("max_mr", limits.max_mr),
        ("max_pd", limits.max_pd),
        ("phys_port_cnt", limits.phys_port_cnt.into()),
    ] {
        check!(RULE, count > 0, "a limit", "{what} is 0");
    }
    let mr = setup.alloc_mr(end.pd, 1, Access::empty()).rule(RULE)?;
    Ok(setup.dereg_mr(mr)?)
}

scenario!(port_of_ethernet_has_no_lid_and_needs_a_grh: "DEV-08"; without RC);
fn port_of_ethernet_has_no_lid_and_needs_a_grh(setup: &Setup<'_>) -> Result {
    let port = setup.query_port(setup.ctx_a(), setup.port())?;
    let transport = setup.devices()?.first().map(|device| device.transport);
    if port.link_layer != LinkLayer::Ethernet {
        return Ok(());
    }
    check_eq!("DEV-08", port.lid, 0, "lid");
    // iWARP has no GRH.
    if transport == Some(Transport::Ib) {
        check_eq!("DEV-08", port.grh_required, true, "grh_required");
    }
    Ok(())
}

scenario!(active_port_has_an_mtu_that_it_can_have: "DEV-09"; without RC);
fn active_port_has_an_mtu_that_it_can_have(setup: &Setup<'_>) -> Result {
    let port = setup.query_port(setup.ctx_a(), setup.port())?;
    check_eq!("DEV-09", port.state, PortState::Active);
    let (active, most) = (port.active_mtu.bytes(), port.max_mtu.bytes());
    check!(
        "DEV-09",
        active.is_some() && active <= most,
        "an MTU up to the greatest",
        "active {active:?}, greatest {most:?}"
    );
    Ok(())
}

scenario!(nothing_passes_a_port_that_is_down: "DEV-09"; needs LAB);
fn nothing_passes_a_port_that_is_down(setup: &Setup<'_>) -> Result {
    let rc = gives_up_soon();
    for down in [setup.ctx_a(), setup.ctx_b()] {
        let Pair { a, b } = setup.pair(PairOptions {
            rc,
            ..PairOptions::default()
        })?;
        b.recv(1, 8)?;
        setup.lab().set_port(down, setup.port(), false)?;
        let state = setup.query_port(down, setup.port())?.state;
        check!(
            "DEV-09",
            state != PortState::Active,
            "not ACTIVE",
            "{state}"
        );
        a.send(2, 8)?;
        setup.one_with(a.send_cq, WcStatus::RetryExcErr, "DEV-09")?;
        setup.no_completion(b.recv_cq, "DEV-09")?;
        setup.lab().set_port(down, setup.port(), true)?;
        let Pair { a, b } = setup.rc_pair()?;
        b.recv(1, 8)?;
        a.send(2, 8)?;
        setup.one_with(a.send_cq, WcStatus::Success, "DEV-09")?;
    }
    Ok(())
}

scenario!(each_device_has_a_guid_of_its_own: "DEV-17"; without RC);
fn each_device_has_a_guid_of_its_own(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DEV-17";
    // Both sides may be on one device.
    let names = setup.devices()?.into_iter().map(|device| device.name);
    let names: BTreeSet<String> = names.collect();
    let mut guids = BTreeSet::new();
    for name in &names {
        let context = setup.open_device(name)?;
        let guid = setup.query_device(context).rule(RULE)?.node_guid;
        check!(RULE, guid != 0, "a GUID", "{name}: 0");
        check!(
            RULE,
            guids.insert(guid),
            "one for each device",
            "{name}: {guid:#x} again"
        );
        setup.close_device(context)?;
    }
    Ok(())
}

scenario!(clock_never_goes_back: "DEV-19"; needs RT_VALUES);
fn clock_never_goes_back(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DEV-19";
    let context = setup.ctx_a();
    let rate = setup.query_device_ex(context)?.hca_core_clock;
    check!(RULE, rate > 0, "a rate", "{rate} kHz");
    let mut before = 0;
    for round in 0..100 {
        let now = setup.query_rt_values(context).rule(RULE)?.raw_clock;
        let expected = format!("{before} or more");
        check!(RULE, now >= before, expected, "{now}, round {round}");
        before = now;
    }
    Ok(())
}

scenario!(clock_counts_the_ticks_of_its_rate: "DEV-19"; needs RT_VALUES, LAB);
fn clock_counts_the_ticks_of_its_rate(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DEV-19";
    let context = setup.ctx_a();
    let rate = setup.query_device_ex(context)?.hca_core_clock;
    for millis in [1, 3, 250] {
        let before = setup.query_rt_values(context)?.raw_clock;
        setup.lab().advance(Duration::from_millis(millis))?;
        let after = setup.query_rt_values(context)?.raw_clock;
        check_eq!(RULE, after - before, millis * rate, "ticks");
    }
    Ok(())
}
