//! Channels and their events.

use core::time::Duration;

use verbs_api::cm::{CmEventType as Kind, ConnParam, PortSpace};
use verbs_api::{ErrorKind, Wait};

use super::link::{CmPair, Link, SOON, Side, sides};
#[cfg(target_os = "linux")]
use crate::failure::check;
use crate::failure::check_eq;
use crate::{OfRule, Result, Setup, expect_err, expect_err_among};

scenario!(id_stays_while_its_events_are_unacknowledged: "CM-50", "CM-53"; needs CM);
fn id_stays_while_its_events_are_unacknowledged(setup: &Setup<'_>) -> Result {
    let [server, client] = sides(setup)?;
    let cm = client.cm;
    let id = client.id(PortSpace::Tcp)?;
    cm.resolve_addr(id, Some(client.at(0)), server.at(4711), SOON)?;
    let event = client.take()?;
    let elsewhere = cm.create_event_channel()?;
    let waits = |result, rule| expect_err(result, ErrorKind::WouldBlock, rule).map(drop);
    waits(cm.destroy_id(id, Wait::Poll), "CM-50")?;
    waits(cm.migrate_id(id, elsewhere, Wait::Poll), "CM-53")?;
    let late = cm.destroy_id(id, Wait::For(Duration::from_millis(20)));
    expect_err_among(late, &[ErrorKind::TimedOut], "CM-50")?;
    check_eq!(
        "CM-50",
        client.attr(id)?.channel,
        client.channel,
        "its channel"
    );
    cm.ack_cm_event(&event)?;
    cm.migrate_id(id, elsewhere, Wait::Poll).rule("CM-53")?;
    cm.destroy_id(id, Wait::Poll).rule("CM-50")
}

scenario!(destruction_waits_until_events_are_acknowledged: "CM-50"; needs CM, THREADS; hazards MAY_HANG);
fn destruction_waits_until_events_are_acknowledged(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-50";
    let [server, client] = sides(setup)?;
    let (cm, verbs) = (client.cm, setup.verbs());
    let id = client.id(PortSpace::Tcp)?;
    cm.resolve_addr(id, Some(client.at(0)), server.at(4711), SOON)?;
    let event = client.take()?;
    let wait = setup.wait();
    let destroy = || verbs.cm().map(|cm| cm.destroy_id(id, wait));
    let destroyed = setup.waits_until(RULE, destroy, || Ok(cm.ack_cm_event(&event)?))?;
    destroyed.unwrap_or(Ok(())).rule(RULE)?;
    expect_err(cm.query_id(id), ErrorKind::Invalid, RULE).map(drop)
}

scenario!(waiting_thread_is_woken_by_an_event: "CM-55"; needs CM, THREADS; hazards MAY_HANG);
fn waiting_thread_is_woken_by_an_event(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-55";
    let cm_pair = CmPair::new(setup)?;
    let CmPair { server, client, .. } = cm_pair;
    client.end(cm_pair.id)?;
    let (verbs, channel, wait) = (setup.verbs(), server.channel, setup.wait());
    let next = || verbs.cm().map(|cm| cm.get_cm_event(channel, wait));
    let got = setup.waits_until(RULE, next, || {
        Ok(client.cm.connect(cm_pair.id, &ConnParam::new())?)
    })?;
    let event = got.transpose().rule(RULE)?;
    let kind = event.as_ref().map(|event| event.event);
    check_eq!(RULE, kind, Some(Kind::ConnectRequest), "the event");
    event.map_or(Ok(()), |event| Ok(server.cm.ack_cm_event(&event)?))
}

scenario!(events_that_nobody_reads_go_with_their_id: "CM-51"; needs CM);
fn events_that_nobody_reads_go_with_their_id(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-51";
    let [server, client] = sides(setup)?;
    let resolving = || {
        let id = client.id(PortSpace::Tcp)?;
        let (src, to) = (Some(client.at(0)), server.at(4711));
        client.cm.resolve_addr(id, src, to, SOON)?;
        Ok::<_, crate::Failure>(id)
    };
    let ids = [resolving()?, resolving()?, resolving()?];
    for id in [ids[0], ids[2]] {
        client.cm.destroy_id(id, Wait::Poll).rule(RULE)?;
    }
    client.expect(Kind::AddrResolved, ids[1], RULE)?;
    client.no_event(RULE)
}

scenario!(destroyed_id_is_no_id: "CM-52"; needs CM);
fn destroyed_id_is_no_id(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-52";
    let [server, client] = sides(setup)?;
    let cm = client.cm;
    let (id, at) = client.bound(PortSpace::Tcp)?;
    client.destroy(id)?;
    let new = client.id(PortSpace::Tcp)?;
    cm.bind_addr(new, at).rule(RULE)?;
    let calls = [
        cm.query_id(id).map(drop),
        cm.bind_addr(id, client.at(0)),
        cm.listen(id, 0),
        cm.resolve_addr(id, None, server.at(4711), SOON),
        cm.resolve_route(id, SOON),
        cm.connect(id, &ConnParam::new()),
        cm.accept(id, &ConnParam::new()),
        cm.reject(id, &[]),
        cm.disconnect(id),
        cm.migrate_id(id, client.channel, Wait::Poll),
        cm.destroy_id(id, Wait::Poll),
    ];
    for call in calls {
        expect_err(call, ErrorKind::Invalid, RULE)?;
    }
    check_eq!(RULE, client.local(new)?, at, "the address of the new one");
    client.no_event(RULE)
}

scenario!(events_that_nobody_has_read_move_with_their_id: "CM-53"; needs CM);
fn events_that_nobody_has_read_move_with_their_id(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-53";
    let [server, client] = sides(setup)?;
    let cm = client.cm;
    let elsewhere = Side {
        channel: cm.create_event_channel()?,
        ..client
    };
    let (_, to) = server.listener(PortSpace::Tcp)?;
    let id = client.id(PortSpace::Tcp)?;
    cm.resolve_addr(id, Some(client.at(0)), to, SOON)?;
    cm.migrate_id(id, elsewhere.channel, setup.wait())
        .rule(RULE)?;
    check_eq!(
        RULE,
        client.attr(id)?.channel,
        elsewhere.channel,
        "its channel"
    );
    elsewhere.expect(Kind::AddrResolved, id, RULE)?;
    cm.resolve_route(id, SOON)?;
    elsewhere.expect(Kind::RouteResolved, id, RULE)?;
    client.no_event(RULE)?;
    // The one that it has left can go.
    cm.destroy_event_channel(client.channel).rule(RULE)
}

scenario!(events_are_in_the_channel_of_their_id: "CM-54"; needs CM);
fn events_are_in_the_channel_of_their_id(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-54";
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server,
        client,
        listener,
        ..
    } = cm_pair;
    let other = Side {
        channel: client.cm.create_event_channel()?,
        ..client
    };
    let second = other.routed(PortSpace::Tcp, cm_pair.at)?;
    let ids = [(client, cm_pair.id), (other, second)];
    for (side, id) in ids {
        side.ask(id)?;
        let request = server.request(listener, RULE)?;
        server.cm.reject(request.id, &[])?;
    }
    for (side, id) in ids {
        side.expect(Kind::Rejected, id, RULE)?;
        side.no_event(RULE)?;
    }
    Ok(())
}

scenario!(events_come_in_the_order_in_which_they_happened: "CM-54"; needs CM, LAB);
fn events_come_in_the_order_in_which_they_happened(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-54";
    let first = CmPair::new(setup)?;
    let CmPair {
        server,
        client,
        listener,
        ..
    } = first;
    let mut order = Vec::new();
    for _ in 0..5 {
        let id = first.another()?;
        client.ask(id)?;
        order.push(client.attr(id)?.local_addr);
    }
    for (n, from) in order.into_iter().enumerate() {
        let request = server.request(listener, RULE)?;
        let peer = server.attr(request.id)?.peer_addr;
        check_eq!(RULE, peer, from, format!("who asks as number {n}"));
    }
    Ok(())
}

scenario!(empty_channel_gives_nothing: "CM-55"; needs CM);
fn empty_channel_gives_nothing(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-55";
    let [side, _] = sides(setup)?;
    let get = |wait| side.cm.get_cm_event(side.channel, wait);
    expect_err(get(Wait::Poll), ErrorKind::WouldBlock, RULE)?;
    let late = get(Wait::For(Duration::from_millis(20)));
    expect_err(late, ErrorKind::TimedOut, RULE)?;
    // Neither do ids that have nothing under way.
    side.listener(PortSpace::Tcp)?;
    expect_err(get(Wait::Poll), ErrorKind::WouldBlock, RULE).map(drop)
}

scenario!(event_is_acknowledged_once: "CM-56"; needs CM);
fn event_is_acknowledged_once(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-56";
    let [server, client] = sides(setup)?;
    let cm = client.cm;
    let id = client.id(PortSpace::Tcp)?;
    cm.resolve_addr(id, Some(client.at(0)), server.at(4711), SOON)?;
    let first = client.take()?;
    cm.ack_cm_event(&first).rule(RULE)?;
    let again = || expect_err(cm.ack_cm_event(&first), ErrorKind::Usage, RULE);
    again()?;
    // Nor does it count for the next.
    cm.resolve_route(id, SOON)?;
    let second = client.take()?;
    again()?;
    expect_err(cm.destroy_id(id, Wait::Poll), ErrorKind::WouldBlock, RULE)?;
    cm.ack_cm_event(&second).rule(RULE)?;
    cm.destroy_id(id, Wait::Poll).rule(RULE)
}

#[cfg(target_os = "linux")]
scenario!(descriptor_is_readable_while_an_event_is_unread: "CM-57"; needs CM, FD);
#[cfg(target_os = "linux")]
fn descriptor_is_readable_while_an_event_is_unread(setup: &Setup<'_>) -> Result {
    use crate::chan::descriptor::is_readable;
    const RULE: &str = "CM-57";
    let [server, client] = sides(setup)?;
    let cm = client.cm;
    let fd = cm.event_channel_fd(client.channel).rule(RULE)?;
    let readable = |expected, when| is_readable(setup, &fd, expected, RULE, when);
    readable(false, "before any event")?;
    let resolving = || {
        let id = client.id(PortSpace::Tcp)?;
        let (src, to) = (Some(client.at(0)), server.at(4711));
        cm.resolve_addr(id, src, to, SOON)?;
        Ok::<_, crate::Failure>(id)
    };
    let first = resolving()?;
    readable(true, "with an event unread")?;
    resolving()?;
    let event = client.take()?;
    check!(
        RULE,
        event.id == first,
        format!("an event of {first}"),
        "{event}"
    );
    readable(true, "with one of two events read")?;
    cm.ack_cm_event(&client.take()?)?;
    readable(false, "with both read, one of them not acknowledged")?;
    cm.ack_cm_event(&event)?;
    let third = resolving()?;
    readable(true, "with a third event")?;
    let later = cm.event_channel_fd(client.channel).rule(RULE)?;
    is_readable(setup, &later, true, RULE, "a second descriptor")?;
    cm.destroy_id(third, Wait::Poll)?;
    readable(false, "with the id of the event gone")?;
    is_readable(setup, &later, false, RULE, "a second descriptor")
}

scenario!(channel_stays_while_an_id_has_it: "CM-58"; needs CM);
fn channel_stays_while_an_id_has_it(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-58";
    let link = Link::new(setup)?;
    let CmPair {
        server,
        client,
        listener,
        ..
    } = link.cm_pair;
    let busy = |side: &Side<'_>| {
        let destroyed = side.cm.destroy_event_channel(side.channel);
        expect_err(destroyed, ErrorKind::Busy, RULE).map(drop)
    };
    busy(&client)?;
    client.destroy(link.cm_pair.id)?;
    client.cm.destroy_event_channel(client.channel).rule(RULE)?;
    let gone = client.cm.create_id(client.channel, 0, PortSpace::Tcp);
    expect_err(gone, ErrorKind::Invalid, RULE)?;
    server.expect(Kind::Disconnected, link.accepted, RULE)?;
    // The ids of requests count too.
    server.destroy(listener)?;
    busy(&server)?;
    server.destroy(link.accepted)?;
    server.cm.destroy_event_channel(server.channel).rule(RULE)
}
