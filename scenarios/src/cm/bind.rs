//! Devices, and the addresses and ports of ids.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::BTreeSet;

use verbs_api::cm::{CmId, CmOption, PortSpace};
use verbs_api::{Access, Capabilities, ErrorKind, QpAttrMask};

use super::link::{CmPair, SOON, Side, manager, sides};
use crate::failure::{check, check_eq};
use crate::{Claim, OfRule, Result, Setup, expect_err, expect_err_among};

const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// An address of a documentation network, which no machine has (RFC 5737).
const OF_NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

scenario!(each_device_has_a_context_that_stays: "CM-01"; needs CM);
fn each_device_has_a_context_that_stays(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-01";
    let cm = manager(setup);
    let contexts = cm.cm_devices().rule(RULE)?;
    // A suite may have one of them for both sides.
    let mut devices = setup.devices()?;
    let mut names = BTreeSet::new();
    devices.retain(|device| names.insert(device.name.clone()));
    check_eq!(RULE, contexts.len(), devices.len(), "the number of devices");
    let [server, client] = sides(setup)?;
    for side in [server, client] {
        let (id, _) = side.bound(PortSpace::Tcp)?;
        let verbs = side.attr(id)?.verbs;
        let is_one = verbs.is_some_and(|verbs| contexts.contains(&verbs));
        check!(RULE, is_one, "one of the contexts", "{verbs:?}");
        cm.destroy_id(id, setup.wait())?;
        cm.destroy_event_channel(side.channel)?;
    }
    check_eq!(RULE, cm.cm_devices()?, contexts, "the contexts, once more");
    for (context, device) in contexts.into_iter().zip(devices) {
        let guid = setup.query_device(context).rule(RULE)?.node_guid;
        let opened = setup.open_device(&device.name)?;
        let expected = setup.query_device(opened)?.node_guid;
        check_eq!(RULE, guid, expected, format!("the GUID of {}", device.name));
        setup.close_device(opened)?;
    }
    Ok(())
}

scenario!(address_of_a_device_binds_to_the_device_at_once: "CM-02"; needs CM);
fn address_of_a_device_binds_to_the_device_at_once(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-02";
    let [side, _] = sides(setup)?;
    let other = side
        .cm
        .create_id(side.channel, 7, PortSpace::Unknown(0x999));
    expect_err(other, ErrorKind::Invalid, RULE)?;
    let id = side.cm.create_id(side.channel, 7, PortSpace::Tcp)?;
    let attr = side.attr(id)?;
    check_eq!(RULE, (attr.channel, attr.context), (side.channel, 7));
    let device = (attr.verbs, attr.pd, attr.port_num, attr.local_addr);
    check_eq!(RULE, device, (None, None, 0, None), "what a new id has");
    side.cm.bind_addr(id, side.at(0)).rule(RULE)?;
    let attr = side.attr(id)?;
    check_eq!(RULE, attr.verbs, Some(side.verbs));
    check_eq!(RULE, attr.port_num, setup.port());
    check_eq!(RULE, attr.local_addr.map(|at| at.ip()), Some(side.ip));
    check!(
        RULE,
        has_gid(&side, attr.sgid)?,
        "a GID of the port",
        "{}",
        attr.sgid
    );
    // The domain can be used, and is that of all ids of the device.
    let pd = attr.pd.unwrap_or_default();
    check_eq!(RULE, verbs_api::Handle::context(pd), side.verbs);
    let mr = setup.alloc_mr(pd, 64, Access::empty()).rule(RULE)?;
    setup.dereg_mr(mr).rule(RULE)?;
    let (other, _) = side.bound(PortSpace::Tcp)?;
    check_eq!(
        RULE,
        side.attr(other)?.pd,
        Some(pd),
        "the domain of another"
    );
    side.no_event(RULE)
}

/// Whether the port has this GID.
pub(super) fn has_gid(side: &Side<'_>, gid: verbs_api::Gid) -> Result<bool> {
    let (setup, port) = (side.setup, side.setup.port());
    let table = setup.query_port(side.verbs, port)?.gid_tbl_len;
    let mut gids = (0..table).map(|index| setup.query_gid(side.verbs, port, index));
    Ok(gids.any(|of| of.is_ok_and(|of| of == gid)))
}

scenario!(unspecified_address_binds_to_no_device: "CM-03"; needs CM);
/// Who listens there takes what comes to any.
fn unspecified_address_binds_to_no_device(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-03";
    let [server, client] = sides(setup)?;
    let listener = server.id(PortSpace::Tcp)?;
    server
        .cm
        .bind_addr(listener, SocketAddr::new(ANY, 0))
        .rule(RULE)?;
    let local = server.local(listener)?;
    check!(
        RULE,
        local.ip() == ANY && local.port() != 0,
        "no address, a port",
        "{local}"
    );
    let unbound = |when: &str| {
        let attr = server.attr(listener)?;
        let device = (attr.verbs, attr.pd, attr.port_num);
        check_eq!(RULE, device, (None, None, 0), format!("the device {when}"));
        Ok::<_, crate::Failure>(())
    };
    unbound("of a bound id")?;
    server.cm.listen(listener, 0).rule(RULE)?;
    unbound("of a listener")?;
    let id = client.routed(PortSpace::Tcp, server.at(local.port()))?;
    client.ask(id)?;
    let request = server.request(listener, RULE)?;
    check_eq!(
        RULE,
        server.attr(request.id)?.verbs,
        Some(server.verbs),
        "the device of a request"
    );
    unbound("after a request")
}

scenario!(port_0_is_one_that_nobody_has: "CM-04"; needs CM);
fn port_0_is_one_that_nobody_has(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-04";
    let [side, _] = sides(setup)?;
    let mut ports = Vec::new();
    for n in 0..8 {
        let id = side.id(PortSpace::Tcp)?;
        let ip = if n % 2 == 0 { side.ip } else { ANY };
        side.cm.bind_addr(id, SocketAddr::new(ip, 0)).rule(RULE)?;
        ports.push(side.local(id)?.port());
    }
    let mut distinct = ports.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let good = distinct.len() == ports.len() && !ports.contains(&0);
    check!(RULE, good, "a port of its own for each", "{ports:?}");
    Ok(())
}

scenario!(address_and_port_are_for_one_id:
    "CM-05"; needs CM; alone "it takes a port again that it has released");
fn address_and_port_are_for_one_id(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-05";
    let [side, _] = sides(setup)?;
    let (first, at) = side.bound(PortSpace::Tcp)?;
    let second = side.id(PortSpace::Tcp)?;
    let taken = || {
        let bound = side.cm.bind_addr(second, at);
        expect_err(bound, ErrorKind::AddressInUse, RULE).map(drop)
    };
    taken()?;
    side.cm.listen(first, 0)?;
    taken()?;
    // Datagrams have ports of their own.
    if setup.capabilities(side.verbs)?.contains(Capabilities::UD) {
        let other_space = side.id(PortSpace::Udp)?;
        side.cm.bind_addr(other_space, at).rule(RULE)?;
    }
    side.destroy(first)?;
    side.cm.bind_addr(second, at).rule(RULE)?;
    check_eq!(RULE, side.local(second)?, at);
    Ok(())
}

scenario!(unspecified_address_shares_its_port_with_none: "CM-06"; needs CM);
fn unspecified_address_shares_its_port_with_none(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-06";
    let [side, _] = sides(setup)?;
    for (first, second) in [(side.ip, ANY), (ANY, side.ip), (ANY, ANY)] {
        let [has, wants] = [side.id(PortSpace::Tcp)?, side.id(PortSpace::Tcp)?];
        side.cm.bind_addr(has, SocketAddr::new(first, 0))?;
        let port = side.local(has)?.port();
        let bound = side.cm.bind_addr(wants, SocketAddr::new(second, port));
        let refused = expect_err(bound, ErrorKind::AddressNotAvailable, RULE);
        crate::failure::in_case(&format!("{second} after {first}"), refused.map(drop))?;
    }
    Ok(())
}

scenario!(ids_of_two_families_share_a_port_where_each_keeps_to_its_own:
    "CM-85"; needs CM; alone "it takes a port that others may have");
fn ids_of_two_families_share_a_port_where_each_keeps_to_its_own(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-85";
    const ANY_V6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let [server, client] = sides(setup)?;
    let id_with = |af_only: Option<bool>| -> Result<CmId> {
        let id = server.id(PortSpace::Tcp)?;
        let option = af_only.map(CmOption::AfOnly);
        option.map_or(Ok(()), |option| server.cm.set_option(id, option))?;
        Ok(id)
    };
    // By default an id of IPv4 keeps to its family, and one of IPv6 does not.
    for (of_v4, of_v6, share) in [
        (None, Some(true), true),
        (Some(true), Some(true), true),
        (Some(false), Some(true), false),
        (None, None, false),
        (None, Some(false), false),
        (Some(true), None, false),
    ] {
        for is_v4_first in [true, false] {
            let [v4, v6] = [(id_with(of_v4)?, ANY), (id_with(of_v6)?, ANY_V6)];
            let [first, second] = if is_v4_first { [v4, v6] } else { [v6, v4] };
            server.cm.bind_addr(first.0, SocketAddr::new(first.1, 0))?;
            let port = server.local(first.0)?.port();
            let bound = server
                .cm
                .bind_addr(second.0, SocketAddr::new(second.1, port));
            if share {
                bound.rule(RULE)?;
                for (id, _) in [first, second] {
                    server.cm.listen(id, 0).rule(RULE)?;
                }
                // Each gets the requests to addresses of its family.
                let asking = client.routed(PortSpace::Tcp, server.at(port))?;
                client.ask(asking)?;
                server.request(v4.0, RULE)?;
            } else {
                let refused = expect_err(bound, ErrorKind::AddressNotAvailable, RULE);
                let case = format!("{of_v4:?} of IPv4, {of_v6:?} of IPv6");
                crate::failure::in_case(&case, refused.map(drop))?;
            }
        }
    }
    Ok(())
}

scenario!(address_of_no_device_is_refused: "CM-07"; needs CM);
fn address_of_no_device_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-07";
    const KINDS: [ErrorKind; 2] = [ErrorKind::NoDevice, ErrorKind::AddressNotAvailable];
    let [side, _] = sides(setup)?;
    let id = side.id(PortSpace::Tcp)?;
    let unused = SocketAddr::new(OF_NOBODY, 0);
    expect_err_among(side.cm.bind_addr(id, unused), &KINDS, RULE)?;
    let resolved = side.cm.resolve_addr(id, Some(unused), side.at(1), SOON);
    expect_err_among(resolved, &KINDS, RULE)?;
    check_eq!(RULE, side.attr(id)?.local_addr, None);
    // It can still be bound.
    side.cm.bind_addr(id, side.at(0)).rule(RULE)?;
    side.no_event(RULE)
}

scenario!(bound_id_keeps_its_address: "CM-08", "CM-10"; needs CM);
fn bound_id_keeps_its_address(setup: &Setup<'_>) -> Result {
    const RULE: Claim = Claim::two("CM-08", "CM-10");
    let [server, client] = sides(setup)?;
    let (id, at) = client.bound(PortSpace::Tcp)?;
    for ip in [client.ip, ANY] {
        let again = client.cm.bind_addr(id, SocketAddr::new(ip, 0));
        expect_err(again, ErrorKind::Invalid, RULE)?;
        check_eq!(RULE, client.local(id)?, at, "the address");
    }
    // It resolves from there.
    let (_, to) = server.listener(PortSpace::Tcp)?;
    client.route(id, to)?;
    check_eq!(
        "CM-08",
        client.local(id)?,
        at,
        "the address it resolves from"
    );
    Ok(())
}

scenario!(ids_that_say_so_share_an_address_until_one_listens:
    "CM-09"; needs CM; alone "it takes a port that others may have");
fn ids_that_say_so_share_an_address_until_one_listens(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-09";
    let [side, _] = sides(setup)?;
    let shares = || -> Result<CmId> {
        let id = side.id(PortSpace::Tcp)?;
        side.cm
            .set_option(id, CmOption::ReuseAddr(true))
            .rule(RULE)?;
        Ok(id)
    };
    let (alone, taken) = side.bound(PortSpace::Tcp)?;
    let first = shares()?;
    let bound = side.cm.bind_addr(first, taken);
    expect_err(bound, ErrorKind::AddressInUse, RULE)?;
    side.destroy(alone)?;
    side.cm.bind_addr(first, taken).rule(RULE)?;
    let second = shares()?;
    side.cm.bind_addr(second, taken).rule(RULE)?;
    expect_err(side.cm.listen(first, 0), ErrorKind::AddressInUse, RULE)?;
    side.destroy(second)?;
    side.cm.listen(first, 0).rule(RULE)?;
    let third = shares()?;
    let bound = side.cm.bind_addr(third, taken);
    expect_err(bound, ErrorKind::AddressInUse, RULE).map(drop)
}

scenario!(options_are_those_of_the_queue_pair: "CM-14"; needs CM, MODIFY_CONNECT);
fn options_are_those_of_the_queue_pair(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-14";
    let [server, client] = sides(setup)?;
    let (listener, at) = server.listener(PortSpace::Tcp)?;
    let id = client.id(PortSpace::Tcp)?;
    for option in [CmOption::AckTimeout(11), CmOption::Tos(0x20)] {
        client.cm.set_option(id, option).rule(RULE)?;
    }
    client.route(id, at)?;
    let cm_pair = CmPair {
        server,
        client,
        listener,
        at,
        ps: PortSpace::Tcp,
        id,
    };
    let param = verbs_api::cm::ConnParam::new();
    let link = cm_pair.link(&param, &param)?;
    let [own, theirs] = link.qps(QpAttrMask::TIMEOUT | QpAttrMask::AV)?;
    check_eq!(RULE, own.timeout, 11, "the time-out");
    for attr in [own, theirs] {
        let grh = attr.ah_attr.and_then(|way| way.grh).unwrap_or_default();
        check_eq!(RULE, grh.traffic_class, 0x20, "the traffic class");
    }
    link.works(RULE)
}
