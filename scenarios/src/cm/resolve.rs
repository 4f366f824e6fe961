//! From an address to a device and a path.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use verbs_api::cm::{CmEvent, CmEventType as Kind, ConnParam, PortSpace};

use super::bind::has_gid;
use super::link::{CmPair, SOON, sides};
use crate::failure::{check, check_eq};
use crate::{OfRule, Result, Setup};

/// `-ETIMEDOUT`
pub(super) const TIMED_OUT: i32 = -110;

scenario!(resolved_address_tells_the_device_and_both_ends: "CM-11"; needs CM);
fn resolved_address_tells_the_device_and_both_ends(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-11";
    let [server, client] = sides(setup)?;
    let to = server.at(4711);
    let id = client.id(PortSpace::Tcp)?;
    let src = Some(client.at(0));
    client.cm.resolve_addr(id, src, to, SOON).rule(RULE)?;
    client.expect(Kind::AddrResolved, id, RULE)?;
    let attr = client.attr(id)?;
    check_eq!(RULE, attr.verbs, Some(client.verbs));
    check_eq!(
        RULE,
        attr.pd.map(verbs_api::Handle::context),
        Some(client.verbs)
    );
    check_eq!(RULE, attr.port_num, setup.port());
    check_eq!(RULE, attr.peer_addr, Some(to));
    let local = client.local(id)?;
    let good = local.ip() == client.ip && local.port() != 0;
    check!(RULE, good, format!("{} and a port", client.ip), "{local}");
    check!(
        RULE,
        has_gid(&client, attr.sgid)?,
        "a GID of the port",
        "{}",
        attr.sgid
    );
    check!(
        RULE,
        has_gid(&server, attr.dgid)?,
        "a GID of the peer",
        "{}",
        attr.dgid
    );
    client.no_event(RULE)
}

scenario!(who_names_no_source_gets_one: "CM-12"; needs CM);
fn who_names_no_source_gets_one(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-12";
    let [server, client] = sides(setup)?;
    let (listener, to) = server.listener(PortSpace::Tcp)?;
    let id = client.id(PortSpace::Tcp)?;
    client.cm.resolve_addr(id, None, to, SOON).rule(RULE)?;
    client.expect(Kind::AddrResolved, id, RULE)?;
    let (attr, local) = (client.attr(id)?, client.local(id)?);
    let good = !local.ip().is_unspecified() && local.port() != 0;
    check!(RULE, good, "an address and a port", "{local}");
    let devices = client.cm.cm_devices()?;
    let is_one = attr.verbs.is_some_and(|verbs| devices.contains(&verbs));
    check!(RULE, is_one, "a device", "{:?}", attr.verbs);
    // It leads there.
    client.cm.resolve_route(id, SOON).rule(RULE)?;
    client.expect(Kind::RouteResolved, id, RULE)?;
    client.ask(id).rule(RULE)?;
    let request = server.request(listener, RULE)?;
    check_eq!(
        RULE,
        server.attr(request.id)?.peer_addr,
        Some(local),
        "where it comes from"
    );
    Ok(())
}

/// An unused address of the same net.
fn neighbour(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            IpAddr::from([a, b, c, d ^ 0xf5])
        }
        v6 @ IpAddr::V6(_) => v6,
    }
}

scenario!(address_that_leads_nowhere_is_an_error_when_its_time_is_over: "CM-13"; needs CM, LAB);
fn address_that_leads_nowhere_is_an_error_when_its_time_is_over(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-13";
    let [server, client] = sides(setup)?;
    let id = client.id(PortSpace::Tcp)?;
    let nowhere = SocketAddr::new(neighbour(server.ip), 4711);
    let (src, time) = (Some(client.at(0)), Duration::from_millis(100));
    client.cm.resolve_addr(id, src, nowhere, time).rule(RULE)?;
    let event = client.expect(Kind::AddrError, id, RULE)?;
    check_eq!(RULE, event.status, TIMED_OUT, "the status");
    // It can be tried again.
    let local = client.local(id)?;
    let to = server.at(4711);
    client.cm.resolve_addr(id, None, to, SOON).rule(RULE)?;
    client.expect(Kind::AddrResolved, id, RULE)?;
    let attr = client.attr(id)?;
    let ends = (attr.local_addr, attr.peer_addr);
    check_eq!(RULE, ends, (Some(local), Some(to)), "both ends");
    Ok(())
}

scenario!(resolved_route_is_one_path: "CM-15"; needs CM);
fn resolved_route_is_one_path(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-15";
    let [server, client] = sides(setup)?;
    let id = client.id(PortSpace::Tcp)?;
    let (src, to) = (Some(client.at(0)), server.at(4711));
    client.cm.resolve_addr(id, src, to, SOON)?;
    client.expect(Kind::AddrResolved, id, RULE)?;
    check_eq!(RULE, client.attr(id)?.num_paths, 0, "paths before");
    client.cm.resolve_route(id, SOON).rule(RULE)?;
    client.expect(Kind::RouteResolved, id, RULE)?;
    check_eq!(RULE, client.attr(id)?.num_paths, 1, "paths");
    client.no_event(RULE)
}

scenario!(each_step_gives_one_event_of_its_id: "CM-16", "CM-17"; needs CM);
fn each_step_gives_one_event_of_its_id(setup: &Setup<'_>) -> Result {
    let mut heard: Vec<CmEvent> = Vec::new();
    let [server, client] = sides(setup)?;
    let (listener, to) = server.listener(PortSpace::Tcp)?;
    let id = client.id(PortSpace::Tcp)?;
    client.cm.resolve_addr(id, Some(client.at(0)), to, SOON)?;
    heard.push(client.next()?);
    client.cm.resolve_route(id, SOON)?;
    heard.push(client.next()?);
    let cm_pair = CmPair {
        server,
        client,
        listener,
        at: to,
        ps: PortSpace::Tcp,
        id,
    };
    let (from, request) = cm_pair.ask(&ConnParam::new())?;
    let link = cm_pair.accept(from, request.id, &ConnParam::new())?;
    let [at_client, at_server] = link.established("CM-16")?;
    heard.extend([at_client, request, at_server]);
    let kinds: Vec<_> = heard.iter().map(|event| event.event).collect();
    let steps = [
        Kind::AddrResolved,
        Kind::RouteResolved,
        Kind::Established,
        Kind::ConnectRequest,
        Kind::Established,
    ];
    check_eq!(
        "CM-16",
        kinds,
        steps,
        "the events of the client and the server"
    );
    for event in &heard {
        let expected = (event.event == Kind::ConnectRequest).then_some(listener);
        check_eq!(
            "CM-17",
            event.listen_id,
            expected,
            format!("the listener of {event}")
        );
        check_eq!("CM-17", event.status, 0, format!("the status of {event}"));
    }
    let ids = heard.iter().map(|event| event.id);
    let of = link.accepted;
    check!(
        "CM-17",
        ids.eq([id, id, id, of, of]),
        "each of its id",
        "{heard:?}"
    );
    client.no_event("CM-16")?;
    server.no_event("CM-16")
}
