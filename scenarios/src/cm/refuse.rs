//! Requests that are refused.

use verbs_api::cm::{CmEvent, CmEventType as Kind, CmId, ConnParam, PortSpace, private_data};
use verbs_api::{ErrorKind, QpState};

use super::connect::check_private_data;
use super::link::{CmPair, Link, Side, sides};
use crate::claim;
use crate::failure::{check, check_eq, in_case};
use crate::{Claim, OfRule, Result, Setup, expect_err};

/// The reason of a refusal: the consumer does not want it (IBA 12.6.7.2).
pub(super) const CONSUMER: i32 = 28;
/// No id listens there.
const INVALID_SERVICE_ID: i32 = 8;

/// The next event of a client: its request is refused for this reason. On iWARP a refusal has none,
/// and its status is an errno.
pub(super) fn refused(
    client: &Side<'_>,
    id: CmId,
    reason: i32,
    rule: impl Into<Claim>,
) -> Result<CmEvent> {
    let rule = claim::record(rule);
    let event = client.expect(Kind::Rejected, id, rule)?;
    if client.is_iwarp()? {
        check!(
            rule,
            event.status < 0,
            "a status below 0",
            "{}",
            event.status
        );
    } else {
        check_eq!(rule, event.status, reason, "the status");
    }
    Ok(event)
}

/// Lets a client ask where no id listens, which refuses it. On iWARP rdma_connect may do so itself.
pub(super) fn finds_no_listener(client: &Side<'_>, id: CmId) -> Result<Option<CmEvent>> {
    const RULE: &str = "CM-25";
    match client.cm.connect(id, &ConnParam::new()) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused && client.is_iwarp()? => {
            Ok(None)
        }
        asked => {
            asked.rule(RULE)?;
            refused(client, id, INVALID_SERVICE_ID, RULE).map(Some)
        }
    }
}

scenario!(request_where_nobody_listens_is_refused: "CM-25", "CM-64"; needs CM);
fn request_where_nobody_listens_is_refused(setup: &Setup<'_>) -> Result {
    let [server, client] = sides(setup)?;
    let id = client.routed(PortSpace::Tcp, server.at(4711))?;
    let end = client.end(id)?;
    if finds_no_listener(&client, id)?.is_some() {
        check_eq!(
            "CM-64",
            setup.state(end.qp)?,
            QpState::Err,
            "the state of the queue pair"
        );
    }
    client.no_event("CM-25")
}

scenario!(refused_client_hears_why: "CM-63", "CM-64"; needs CM);
/// Its queue pair is in ERR when the event is read, and not before.
fn refused_client_hears_why(setup: &Setup<'_>) -> Result {
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    let (end, request) = cm_pair.ask(&ConnParam::new())?;
    end.recv(5, 8)?;
    server.cm.reject(request.id, b"full up").rule("CM-63")?;
    check_eq!(
        "CM-64",
        setup.state(end.qp)?,
        QpState::Init,
        "the state before it is read"
    );
    let event = refused(&client, id, CONSUMER, "CM-63")?;
    check_private_data(
        &cm_pair.client,
        &event,
        b"full up",
        private_data::REJ,
        "CM-63",
    )?;
    check_eq!(
        "CM-64",
        setup.state(end.qp)?,
        QpState::Err,
        "the state of the queue pair"
    );
    let flushed = setup.one_with(end.recv_cq, verbs_api::WcStatus::WrFlushErr, "CM-64")?;
    check_eq!("CM-64", flushed.wr_id, 5);
    client.no_event("CM-63")?;
    server.no_event("CM-63")
}

scenario!(request_that_is_destroyed_is_refused: "CM-48"; needs CM);
fn request_that_is_destroyed_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-48";
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    let (_, request) = cm_pair.ask(&ConnParam::new())?;
    server.destroy(request.id).rule(RULE)?;
    refused(&client, id, CONSUMER, RULE)?;
    // The listener goes on.
    cm_pair.with_another()?.ask(&ConnParam::new()).rule(RULE)?;
    Ok(())
}

scenario!(request_of_a_client_that_is_gone_cannot_be_answered: "CM-82"; needs CM, MODIFY_CONNECT);
fn request_of_a_client_that_is_gone_cannot_be_answered(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-82";
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    let (_, request) = cm_pair.ask(&ConnParam::new())?;
    client.destroy(id)?;
    server.no_event(RULE)?;
    let answer = server.cm.accept(request.id, &ConnParam::new());
    expect_err(answer, ErrorKind::Invalid, RULE)?;
    expect_err(server.cm.reject(request.id, &[]), ErrorKind::Invalid, RULE)?;
    server.destroy(request.id).rule(RULE)?;
    // The listener goes on.
    let (_, next) = cm_pair.with_another()?.ask(&ConnParam::new()).rule(RULE)?;
    server.cm.reject(next.id, &[]).rule(RULE)
}

scenario!(requests_that_nobody_reads_go_with_their_listener: "CM-49"; needs CM);
fn requests_that_nobody_reads_go_with_their_listener(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-49";
    let cm_pair = CmPair::new(setup)?;
    let CmPair { server, client, .. } = cm_pair;
    let ids = [cm_pair.id, cm_pair.another()?];
    for id in ids {
        client.ask(id)?;
    }
    // They have come.
    client.no_event(RULE)?;
    server.destroy(cm_pair.listener).rule(RULE)?;
    for id in ids {
        refused(&client, id, CONSUMER, RULE)?;
    }
    server.no_event(RULE)
}

scenario!(only_a_request_can_be_answered: "CM-65", "CM-10"; needs CM);
fn only_a_request_can_be_answered(setup: &Setup<'_>) -> Result {
    const RULE: Claim = Claim::two("CM-65", "CM-10");
    let link = Link::new(setup)?;
    let [(client, id), (server, accepted)] = link.ends();
    let cm_pair = link.cm_pair;
    let refused = |what: &str, id: CmId| {
        let rejected = expect_err(client.cm.reject(id, &[]), ErrorKind::Invalid, RULE);
        let accepted = || {
            let accepted = client.cm.accept(id, &ConnParam::new());
            expect_err(accepted, ErrorKind::Invalid, RULE)
        };
        in_case(what, rejected.and_then(|_| accepted()).map(drop))
    };
    refused("a new id", client.id(PortSpace::Tcp)?)?;
    refused("a bound id", client.bound(PortSpace::Tcp)?.0)?;
    refused("a client with a route", cm_pair.another()?)?;
    for (what, id) in [("a client", id), ("a server", accepted)] {
        refused(&format!("{what} that is connected"), id)?;
    }
    let other = cm_pair.with_another()?;
    let (_, request) = other.ask(&ConnParam::new())?;
    server.cm.reject(request.id, &[])?;
    refused("a request that is refused", request.id)?;
    client.expect(Kind::Rejected, other.id, RULE)?;
    link.works("CM-65")
}
