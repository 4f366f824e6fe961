//! The end of a connection.

use verbs_api::behavior::RemoteFaults;
use verbs_api::cm::{CmEventType as Kind, ConnParam, PortSpace};
use verbs_api::{ErrorKind, QpState, SendWr, WcStatus};

use super::link::{CmPair, Link};
use crate::failure::{check, check_eq, in_case};
use crate::{Claim, OfRule, Pair, Result, Setup, expect_err};

scenario!(peer_keeps_its_queue_pair_until_it_disconnects_too: "CM-40", "CM-41"; needs CM);
fn peer_keeps_its_queue_pair_until_it_disconnects_too(setup: &Setup<'_>) -> Result {
    for client_first in [true, false] {
        let link = Link::new(setup)?;
        let (mut ends, mut queues) = (link.ends(), [link.pair.a, link.pair.b]);
        if !client_first {
            ends.reverse();
            queues.reverse();
        }
        let [(own, id), (peer, other)] = ends;
        for queue in &queues {
            queue.recv(5, 8)?;
        }
        own.cm.disconnect(id).rule("CM-41")?;
        check_eq!(
            "CM-41",
            setup.state(queues[0].qp)?,
            QpState::Err,
            "the own state"
        );
        setup.one_with(queues[0].recv_cq, WcStatus::WrFlushErr, "CM-41")?;
        peer.expect(Kind::Disconnected, other, "CM-40")?;
        check_eq!(
            "CM-40",
            setup.state(queues[1].qp)?,
            QpState::Rts,
            "the state of the peer"
        );
        setup.no_completion_meanwhile(queues[1].recv_cq, "CM-40")?;
        peer.cm.disconnect(other).rule("CM-40")?;
        check_eq!(
            "CM-40",
            setup.state(queues[1].qp)?,
            QpState::Err,
            "the state in the end"
        );
        setup.one_with(queues[1].recv_cq, WcStatus::WrFlushErr, "CM-40")?;
        own.expect(Kind::Disconnected, id, "CM-41")?;
    }
    Ok(())
}

scenario!(what_was_never_connected_cannot_be_disconnected: "CM-42"; needs CM);
fn what_was_never_connected_cannot_be_disconnected(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-42";
    let cm_pair = CmPair::new(setup)?;
    let client = cm_pair.client;
    for (what, id) in [
        ("a new id", client.id(PortSpace::Tcp)?),
        ("a bound id", client.bound(PortSpace::Tcp)?.0),
        ("an id with a route", cm_pair.id),
    ] {
        let ended = expect_err(client.cm.disconnect(id), ErrorKind::Invalid, RULE);
        in_case(what, ended.map(drop))?;
    }
    let param = ConnParam::new();
    cm_pair.link(&param, &param)?.works(RULE)
}

scenario!(connection_ends_once: "CM-43"; needs CM);
fn connection_ends_once(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-43";
    let link = Link::new(setup)?;
    link.disconnect(RULE)?;
    for (side, id) in link.ends() {
        side.cm.disconnect(id).rule(RULE)?;
    }
    check_eq!(RULE, link.states()?, [QpState::Err; 2], "the states");
    for (side, _) in link.ends() {
        side.no_event(RULE)?;
    }
    Ok(())
}

scenario!(refused_request_is_answered_or_ends_the_connection: "RDMA-30"; needs CM, RDMA_READ);
fn refused_request_is_answered_or_ends_the_connection(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-30";
    let declared = setup.behavior()?.remote_faults;
    for (is_read, without_status) in [(false, WcStatus::Success), (true, WcStatus::WrFlushErr)] {
        let link = Link::new(setup)?;
        let Pair { a, b } = link.pair;
        b.recv(5, 8)?;
        let (remote, local) = (a.bad_remote(), [a.sge(a.landing(), 8)]);
        a.post(if is_read {
            SendWr::rdma_read(1, &local, remote)
        } else {
            SendWr::rdma_write(1, &local, remote)
        })?;
        let wc = setup.one(a.send_cq)?;
        let seen = match wc.status {
            WcStatus::RemAccessErr => RemoteFaults::Answered,
            status => {
                let expected = format!("REM_ACCESS_ERR or {without_status}");
                check!(RULE, status == without_status, expected, "{wc}");
                RemoteFaults::EndsConnection
            }
        };
        setup.as_declared(RULE, declared, seen)?;
        // The responder of a read may keep its receives, as that of siw.
        if is_read {
            continue;
        }
        if seen == RemoteFaults::EndsConnection {
            setup.one_with(b.recv_cq, WcStatus::WrFlushErr, RULE)?;
        }
        for (side, id) in link.ends() {
            match seen {
                RemoteFaults::EndsConnection => side.expect(Kind::Disconnected, id, RULE).map(drop),
                _ => side.no_event(RULE),
            }?;
        }
    }
    Ok(())
}

scenario!(both_may_disconnect_at_once: "CM-44"; needs CM);
fn both_may_disconnect_at_once(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-44";
    let link = Link::new(setup)?;
    for (side, id) in link.ends() {
        side.cm.disconnect(id).rule(RULE)?;
    }
    for (side, id) in link.ends() {
        side.expect(Kind::Disconnected, id, RULE)?;
    }
    check_eq!(RULE, link.states()?, [QpState::Err; 2], "the states");
    for (side, _) in link.ends() {
        side.no_event(RULE)?;
    }
    Ok(())
}

scenario!(each_side_hears_when_nothing_is_under_way_any_more: "CM-45"; needs CM, MODIFY_CONNECT);
fn each_side_hears_when_nothing_is_under_way_any_more(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-45";
    let link = Link::new(setup)?;
    link.disconnect(Claim::NONE)?;
    for (side, id) in link.ends() {
        let event = side.take().rule(RULE)?;
        side.cm.ack_cm_event(&event)?;
        let is_it = event.event == Kind::TimewaitExit && event.id == id;
        check!(RULE, is_it, format!("TIMEWAIT_EXIT {id}"), "{event}");
    }
    for (side, _) in link.ends() {
        side.no_event(RULE)?;
    }
    Ok(())
}

scenario!(connection_ends_with_its_id: "CM-46"; needs CM);
fn connection_ends_with_its_id(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-46";
    for client_goes in [true, false] {
        let link = Link::new(setup)?;
        let mut ends = link.ends();
        if !client_goes {
            ends.reverse();
        }
        let [(side, id), (peer, stays)] = ends;
        side.destroy(id).rule(RULE)?;
        peer.expect(Kind::Disconnected, stays, RULE)?;
        peer.cm.disconnect(stays).rule(RULE)?;
        side.no_event(RULE)?;
        peer.destroy(stays).rule(RULE)?;
    }
    Ok(())
}

scenario!(id_that_goes_answers_the_end: "CM-46"; needs CM);
/// Without disconnecting itself.
fn id_that_goes_answers_the_end(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-46";
    let link = Link::new(setup)?;
    let [(client, id), (server, accepted)] = link.ends();
    client.cm.disconnect(id)?;
    server.expect(Kind::Disconnected, accepted, RULE)?;
    server.destroy(accepted).rule(RULE)?;
    client.expect(Kind::Disconnected, id, RULE)?;
    client.no_event(RULE)
}

scenario!(queue_pair_that_is_connected_cannot_ask_again: "CM-83"; needs CM, MODIFY_CONNECT);
/// By another id, as after a restart with the same number. The connection that was is over.
fn queue_pair_that_is_connected_cannot_ask_again(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-83";
    /// Stale connection (IBA 12.6.7.2).
    const STALE: i32 = 10;
    let link = Link::new(setup)?;
    let [(client, id), (server, accepted)] = link.ends();
    let again = link.cm_pair.another()?;
    let param = ConnParam {
        qp_num: link.pair.a.qp_num,
        ..ConnParam::new()
    };
    client.cm.connect(again, &param).rule(RULE)?;
    let mut heard = [client.next().rule(RULE)?, client.next().rule(RULE)?];
    heard.sort_by_key(|event| event.id != again);
    let seen = heard
        .each_ref()
        .map(|event| (event.event, event.id, event.status));
    let expected = [(Kind::Rejected, again, STALE), (Kind::Disconnected, id, 0)];
    check_eq!(RULE, seen, expected, "what the client hears");
    client.cm.disconnect(id)?;
    server.expect(Kind::Disconnected, accepted, RULE)?;
    server.no_event(RULE)
}

scenario!(sides_meet_again_and_again: "CM-47"; needs CM);
/// By the same listener, with and without destroying what was.
fn sides_meet_again_and_again(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-47";
    let first = CmPair::new(setup)?;
    let param = ConnParam::new();
    for round in 0..6 {
        let cm_pair = CmPair {
            id: first.another()?,
            ..first
        };
        let link = cm_pair.link(&param, &param).rule(RULE)?;
        link.works(RULE)?;
        if round % 3 == 0 {
            continue;
        }
        link.disconnect(RULE)?;
        if round % 3 == 1 {
            for (side, id) in link.ends() {
                side.destroy(id).rule(RULE)?;
            }
        }
    }
    Ok(())
}
