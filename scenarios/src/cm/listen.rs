//! Listeners, and the ids of their requests.

use std::collections::BTreeSet;

use verbs_api::cm::{CmParam, ConnData, ConnParam, PortSpace};
use verbs_api::{ErrorKind, Wait};

use super::link::{CmPair, sides};
use super::refuse::{finds_no_listener, refused};
use crate::failure::{check, check_eq};
use crate::{Failure, OfRule, Result, Setup, expect_err};

/// What the peer says in a request or an answer.
pub(super) fn conn_data(param: &CmParam) -> Result<&ConnData> {
    match param {
        CmParam::Conn(data) => Ok(data),
        other => Err(Failure::assertion(
            "what a connection has",
            format!("{other:?}"),
        )),
    }
}

scenario!(listening_binds_an_id_that_is_not_bound: "CM-18"; needs CM);
fn listening_binds_an_id_that_is_not_bound(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-18";
    let [server, client] = sides(setup)?;
    let listener = server.id(PortSpace::Tcp)?;
    server.cm.listen(listener, 0).rule(RULE)?;
    let local = server.local(listener)?;
    let good = local.ip().is_unspecified() && local.port() != 0;
    check!(RULE, good, "no address, and a port", "{local}");
    let id = client.routed(PortSpace::Tcp, server.at(local.port()))?;
    client.ask(id)?;
    server.request(listener, RULE)?;
    server.no_event(RULE)
}

scenario!(each_request_is_an_id_of_its_own: "CM-19", "CM-20"; needs CM);
fn each_request_is_an_id_of_its_own(setup: &Setup<'_>) -> Result {
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server,
        client,
        listener,
        ..
    } = cm_pair;
    // One is connected, and the listener goes on.
    let link = cm_pair.link(&ConnParam::new(), &ConnParam::new())?;
    link.works("CM-19")?;
    let mut ids = BTreeSet::from([listener, link.accepted]);
    for id in [cm_pair.another()?, cm_pair.another()?, cm_pair.another()?] {
        client.ask(id)?;
        let request = server.request(listener, "CM-19")?;
        check!(
            "CM-20",
            ids.insert(request.id),
            "a new id",
            "{}",
            request.id
        );
        let attr = server.attr(request.id).rule("CM-20")?;
        let made = (attr.channel, attr.ps, attr.qp);
        check_eq!(
            "CM-20",
            made,
            (server.channel, PortSpace::Tcp, None),
            "its channel, ps and qp"
        );
    }
    check_eq!(
        "CM-19",
        server.attr(listener)?.qp,
        None,
        "the queue pair of the listener"
    );
    server.no_event("CM-19")
}

scenario!(id_of_a_request_is_bound_to_where_it_came: "CM-21"; needs CM);
fn id_of_a_request_is_bound_to_where_it_came(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-21";
    let cm_pair = CmPair::new(setup)?;
    let CmPair { server, client, .. } = cm_pair;
    let (_, request) = cm_pair.ask(&ConnParam::new())?;
    let (theirs, own) = (client.attr(cm_pair.id)?, server.attr(request.id)?);
    check_eq!(RULE, own.verbs, Some(server.verbs));
    check_eq!(RULE, own.pd, server.attr(cm_pair.listener)?.pd);
    check_eq!(RULE, own.port_num, setup.port());
    check_eq!(RULE, own.local_addr, Some(cm_pair.at));
    check_eq!(RULE, own.peer_addr, theirs.local_addr);
    check_eq!(
        RULE,
        (own.sgid, own.dgid),
        (theirs.dgid, theirs.sgid),
        "both GIDs"
    );
    Ok(())
}

scenario!(request_tells_what_the_client_has: "CM-22", "CM-23"; needs CM, MODIFY_CONNECT);
fn request_tells_what_the_client_has(setup: &Setup<'_>) -> Result {
    let cm_pair = CmPair::new(setup)?;
    let end = cm_pair.client.end(cm_pair.id)?;
    let param = ConnParam {
        retry_count: 5,
        rnr_retry_count: 3,
        flow_control: 1,
        srq: 1,
        qp_num: end.qp_num ^ 0xff,
        ..ConnParam::new()
    };
    let request = cm_pair.ask_without(&param)?;
    let data = conn_data(&request.param).rule("CM-22")?;
    let retries = (data.retry_count, data.rnr_retry_count);
    check_eq!("CM-22", retries, (5, 3), "both retry counts");
    check_eq!("CM-22", data.flow_control, 1, "flow control");
    // The options of a queue pair are for ids without one.
    check_eq!(
        "CM-23",
        data.qp_num,
        end.qp_num,
        "the number of the queue pair"
    );
    check_eq!("CM-23", data.srq, 0, "whether it has an SRQ");
    let without = cm_pair.with_another()?;
    let request = without.ask_without(&param)?;
    let data = conn_data(&request.param)?;
    let said = (data.qp_num, data.srq);
    check_eq!(
        "CM-23",
        said,
        (param.qp_num, 1),
        "number and SRQ of one of its own"
    );
    Ok(())
}

scenario!(context_of_a_request_is_that_of_its_listener: "CM-24"; needs CM);
fn context_of_a_request_is_that_of_its_listener(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-24";
    let [server, client] = sides(setup)?;
    for context in [0, 0x1234_5678_9abc_def0] {
        let listener = server
            .cm
            .create_id(server.channel, context, PortSpace::Tcp)?;
        server.cm.bind_addr(listener, server.at(0))?;
        server.cm.listen(listener, 0)?;
        let id = client.routed(PortSpace::Tcp, server.local(listener)?)?;
        client.ask(id)?;
        let request = server.request(listener, RULE)?;
        check_eq!(
            RULE,
            server.attr(request.id)?.context,
            context,
            "the context"
        );
        check_eq!(RULE, client.attr(id)?.context, 0, "the client's");
    }
    Ok(())
}

scenario!(listener_takes_what_comes_to_its_port: "CM-26", "CM-25"; needs CM);
fn listener_takes_what_comes_to_its_port(setup: &Setup<'_>) -> Result {
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server, client, at, ..
    } = cm_pair;
    let (other, other_at) = server.listener(PortSpace::Tcp)?;
    let (_, bound_at) = server.bound(PortSpace::Tcp)?;
    // Who is bound does not listen.
    let unserved = client.routed(PortSpace::Tcp, bound_at)?;
    client.end(unserved)?;
    finds_no_listener(&client, unserved)?;
    for (listener, to) in [(other, other_at), (cm_pair.listener, at)] {
        let id = client.routed(PortSpace::Tcp, to)?;
        client.ask(id)?;
        server.request(listener, "CM-26")?;
    }
    server.destroy(cm_pair.listener)?;
    client.end(cm_pair.id)?;
    finds_no_listener(&client, cm_pair.id)?;
    server.no_event("CM-26")
}

scenario!(no_more_requests_wait_than_the_backlog: "CM-27"; needs CM);
fn no_more_requests_wait_than_the_backlog(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-27";
    const BACKLOG: usize = 2;
    let [server, client] = sides(setup)?;
    let (listener, at) = server.bound(PortSpace::Tcp)?;
    server.cm.listen(listener, BACKLOG as i32).rule(RULE)?;
    for _ in 0..BACKLOG {
        client.ask(client.routed(PortSpace::Tcp, at)?)?;
        client.no_event(RULE)?;
    }
    let beyond = client.routed(PortSpace::Tcp, at)?;
    client.ask(beyond)?;
    let is_refused = client.is_iwarp()?;
    if is_refused {
        refused(&client, beyond, 0, RULE)?;
    }
    client.no_event(RULE)?;
    for _ in 0..BACKLOG {
        server.request(listener, RULE)?;
    }
    let late = server.cm.get_cm_event(server.channel, Wait::Poll);
    expect_err(late, ErrorKind::WouldBlock, RULE)?;
    if !is_refused {
        // It asks again.
        server.request(listener, RULE)?;
    }
    client.no_event(RULE)?;
    server.no_event(RULE)
}
