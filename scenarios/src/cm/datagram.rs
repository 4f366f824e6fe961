//! Queue pairs of datagrams, and groups.

use core::net::{Ipv4Addr, SocketAddr};

use verbs_api::cm::{
    CmEvent, CmEventType as Kind, CmParam, ConnParam, PortSpace, RDMA_UDP_QKEY, UdData,
    private_data,
};
use verbs_api::lab::{CmMessage, Fault, FaultGuard, PacketFilter};
use verbs_api::{
    CqInit, ErrorKind, MULTICAST_QPN, QpAttrMask, QpInit, QpState, QpType, SendWr, WcStatus,
};

use super::connect::check_private_data;
use super::link::{CmPair, sides};
use crate::failure::{check, check_eq, in_case};
use crate::{End, Failure, OfRule, Result, Setup, expect_err, pattern};

const LEN: u32 = 8;

/// The group that every machine is in.
const GROUP: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::new(224, 0, 0, 1)), 0);
const OTHER_GROUP: SocketAddr =
    SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::new(239, 7, 1, 1)), 0);

/// Statuses of an answer to a request for datagrams (IBA 12.11.2).
const UNSUPPORTED: i32 = 1;
const REFUSED: i32 = 2;

fn ud_data(event: &CmEvent) -> Result<&UdData> {
    match &event.param {
        CmParam::Ud(data) => Ok(data),
        other => Err(Failure::assertion(
            "what datagrams have",
            format!("{other:?}"),
        )),
    }
}

scenario!(queue_pair_of_datagrams_is_ready_at_once: "CM-30", "CM-28"; needs CM, UD);
fn queue_pair_of_datagrams_is_ready_at_once(setup: &Setup<'_>) -> Result {
    let [side, _] = sides(setup)?;
    let cq = setup.create_cq(side.verbs, &CqInit::new(16))?;
    for (ps, other) in [(PortSpace::Udp, QpType::Rc), (PortSpace::Tcp, QpType::Ud)] {
        let (id, _) = side.bound(ps)?;
        let made = side.cm.create_cm_qp(id, None, &QpInit::new(other, cq, cq));
        let refused = expect_err(made, ErrorKind::Invalid, "CM-28");
        in_case(&format!("{other} of {ps}"), refused.map(drop))?;
    }
    let (id, _) = side.bound(PortSpace::Udp)?;
    let end = side.end(id).rule("CM-30")?;
    let attr = setup
        .query_qp(end.qp, QpAttrMask::STATE | QpAttrMask::QKEY)?
        .attr;
    let seen = (attr.qp_state, attr.qkey);
    check_eq!(
        "CM-30",
        seen,
        (QpState::Rts, RDMA_UDP_QKEY),
        "state and Q_Key"
    );
    Ok(())
}

/// The client sends a datagram to where an event says.
fn send(setup: &Setup<'_>, from: &End<'_>, to: &UdData) -> Result {
    let ah = setup.create_ah(from.pd, &to.ah_attr)?;
    let data = [from.sge(0, LEN)];
    let send = SendWr::send(3, &data).to(ah, to.qp_num, to.qkey);
    setup.post_send(from.qp, &[send])?;
    setup.successes(from.send_cq, 1).map(drop)
}

scenario!(client_hears_where_datagrams_go: "CM-74"; needs CM, UD);
fn client_hears_where_datagrams_go(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-74";
    let cm_pair = CmPair::of(setup, PortSpace::Udp)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    let (from, request) = cm_pair.ask(&ConnParam::new())?;
    let to = server.end(request.id)?;
    server.cm.accept(request.id, &ConnParam::new()).rule(RULE)?;
    let event = client.expect(Kind::Established, id, RULE)?;
    let data = ud_data(&event).rule(RULE)?;
    let reported = (data.qp_num, data.qkey, data.ah_attr.port_num);
    let expected = (to.qp_num, RDMA_UDP_QKEY, setup.port());
    check_eq!(RULE, reported, expected, "number, Q_Key and port");
    for tag in 0..3 {
        from.fill(tag, LEN)?;
        to.recv(tag.into(), LEN)?;
        send(setup, &from, data)?;
        let wc = setup.one_with(to.recv_cq, WcStatus::Success, RULE)?;
        check_eq!(RULE, (wc.wr_id, wc.src_qp), (tag.into(), from.qp_num));
        to.expect_data(tag, LEN, RULE)?;
    }
    check_eq!(
        RULE,
        setup.state(from.qp)?,
        QpState::Rts,
        "the client's state"
    );
    Ok(())
}

scenario!(server_hears_no_more_of_datagrams: "CM-75"; needs CM, UD);
fn server_hears_no_more_of_datagrams(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-75";
    let cm_pair = CmPair::of(setup, PortSpace::Udp)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    let (_, request) = cm_pair.ask(&ConnParam::new())?;
    let to = server.end(request.id)?;
    server.cm.accept(request.id, &ConnParam::new())?;
    client.expect(Kind::Established, id, RULE)?;
    server.no_event(RULE)?;
    // Nothing holds the two together.
    client.destroy(id).rule(RULE)?;
    server.no_event(RULE)?;
    check_eq!(
        RULE,
        setup.state(to.qp)?,
        QpState::Rts,
        "the server's state"
    );
    let again = server.cm.accept(request.id, &ConnParam::new());
    expect_err(again, ErrorKind::Invalid, RULE)?;
    server.destroy(request.id).rule(RULE)
}

scenario!(private_data_of_datagrams_has_the_length_of_its_message: "CM-60", "CM-62"; needs CM, UD);
fn private_data_of_datagrams_has_the_length_of_its_message(setup: &Setup<'_>) -> Result {
    let first = CmPair::of(setup, PortSpace::Udp)?;
    for length in [0, 5, private_data::SIDR_REQ] {
        let cm_pair = first.with_another()?;
        let CmPair {
            server, client, id, ..
        } = cm_pair;
        let sent = pattern(3, length as u32);
        let (_, request) = cm_pair.ask(&ConnParam::new().private_data(&sent))?;
        check_private_data(
            &cm_pair.server,
            &request,
            &sent,
            private_data::SIDR_REQ,
            "CM-60",
        )?;
        server.end(request.id)?;
        let answer = &sent[..length.min(private_data::SIDR_REP)];
        server
            .cm
            .accept(request.id, &ConnParam::new().private_data(answer))?;
        let event = client.expect(Kind::Established, id, "CM-60")?;
        check_private_data(
            &cm_pair.client,
            &event,
            answer,
            private_data::SIDR_REP,
            "CM-60",
        )?;
    }
    let too_much = [7; private_data::SIDR_REQ + 1];
    let param = ConnParam::new().private_data(&too_much);
    expect_err(
        first.client.cm.connect(first.id, &param),
        ErrorKind::Invalid,
        "CM-62",
    )?;
    first.server.no_event("CM-62")?;
    first.ask(&ConnParam::new()).rule("CM-62")?;
    Ok(())
}

scenario!(request_for_datagrams_is_refused: "CM-76"; needs CM, UD);
fn request_for_datagrams_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-76";
    let cm_pair = CmPair::of(setup, PortSpace::Udp)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    let hears = |id, status: i32, own: &[u8]| {
        let event = client.expect(Kind::Unreachable, id, RULE)?;
        check_eq!(RULE, event.status, status, "the status");
        check_private_data(&cm_pair.client, &event, own, private_data::SIDR_REP, RULE)
    };
    let (from, request) = cm_pair.ask(&ConnParam::new())?;
    server.cm.reject(request.id, b"no").rule(RULE)?;
    hears(id, REFUSED, b"no")?;
    check_eq!(
        RULE,
        setup.state(from.qp)?,
        QpState::Rts,
        "the client's state"
    );
    let other = cm_pair.with_another()?;
    let (_, request) = other.ask(&ConnParam::new())?;
    server.destroy(request.id)?;
    hears(other.id, REFUSED, &[])?;
    // Who listens for connections takes none for datagrams.
    let (_, at) = server.listener(PortSpace::Tcp)?;
    let unserved = client.routed(PortSpace::Udp, at)?;
    client.ask(unserved)?;
    hears(unserved, UNSUPPORTED, &[])?;
    client.no_event(RULE)
}

scenario!(lost_request_for_datagrams_is_sent_again: "CM-67"; needs CM, UD, LAB);
fn lost_request_for_datagrams_is_sent_again(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-67";
    let lost = Fault::drop(PacketFilter::EVERY.cm(CmMessage::SidrReq)).nth(1);
    let lost = FaultGuard::new(setup.lab(), lost)?;
    let cm_pair = CmPair::of(setup, PortSpace::Udp)?;
    let (_, request) = cm_pair.ask(&ConnParam::new()).rule(RULE)?;
    check_eq!(RULE, lost.fired(), 1, "how many are lost");
    cm_pair.server.end(request.id)?;
    cm_pair.server.cm.accept(request.id, &ConnParam::new())?;
    cm_pair.client.expect(Kind::Established, cm_pair.id, RULE)?;
    cm_pair.server.no_event(RULE)
}

scenario!(lost_answer_to_datagrams_brings_another_request: "CM-81"; needs CM, UD, LAB);
fn lost_answer_to_datagrams_brings_another_request(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-81";
    let lost = Fault::drop(PacketFilter::EVERY.cm(CmMessage::SidrRep)).nth(1);
    let lost = FaultGuard::new(setup.lab(), lost)?;
    let cm_pair = CmPair::of(setup, PortSpace::Udp)?;
    let CmPair { server, client, .. } = cm_pair;
    let (_, first) = cm_pair.ask(&ConnParam::new())?;
    server.end(first.id)?;
    server.cm.accept(first.id, &ConnParam::new())?;
    let second = server.request(cm_pair.listener, RULE)?;
    check_eq!(RULE, lost.fired(), 1, "how many are lost");
    check!(RULE, second.id != first.id, "a new id", "{}", second.id);
    server.end(second.id)?;
    server.cm.accept(second.id, &ConnParam::new()).rule(RULE)?;
    client.expect(Kind::Established, cm_pair.id, RULE)?;
    server.no_event(RULE)
}

scenario!(joined_group_reaches_the_queue_pair: "CM-77"; needs CM, UD, MCAST);
fn joined_group_reaches_the_queue_pair(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-77";
    const CONTEXT: u64 = 0x5555_aaaa_5555;
    let [server, client] = sides(setup)?;
    let mut ends = Vec::new();
    for side in [server, client] {
        let (id, _) = side.bound(PortSpace::Udp)?;
        ends.push((side, id, side.end(id)?));
    }
    let mut ways = Vec::new();
    for (side, id, _) in &ends {
        side.cm.join_multicast(*id, GROUP, CONTEXT).rule(RULE)?;
        let event = side.expect(Kind::MulticastJoin, *id, RULE)?;
        let data = ud_data(&event).rule(RULE)?.clone();
        check_eq!(RULE, event.status, 0, "the status");
        let reported = (data.qp_num, data.qkey, data.context);
        check_eq!(
            RULE,
            reported,
            (MULTICAST_QPN, RDMA_UDP_QKEY, CONTEXT),
            "number, Q_Key, context"
        );
        check!(
            RULE,
            data.private_data.is_empty(),
            "no private data",
            "{:?}",
            data.private_data
        );
        ways.push(data);
    }
    let [(_, _, to), (side, id, from)] = &ends[..] else {
        return Ok(());
    };
    to.recv(1, LEN)?;
    from.fill(9, LEN)?;
    send(setup, from, &ways[1])?;
    setup.one_with(to.recv_cq, WcStatus::Success, RULE)?;
    to.expect_data(9, LEN, RULE)?;
    // Who has left sends still, and gets nothing.
    side.cm.leave_multicast(*id, GROUP).rule(RULE)?;
    from.recv(2, LEN)?;
    to.recv(3, LEN)?;
    send(setup, from, &ways[1])?;
    setup.one_with(to.recv_cq, WcStatus::Success, RULE)?;
    setup.no_completion_meanwhile(from.recv_cq, RULE)
}

scenario!(group_is_left_as_often_as_it_was_joined: "CM-78"; needs CM, UD, MCAST);
fn group_is_left_as_often_as_it_was_joined(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-78";
    let [side, _] = sides(setup)?;
    let cm = side.cm;
    let (id, _) = side.bound(PortSpace::Udp)?;
    let not_joined = |group| {
        let left = cm.leave_multicast(id, group);
        expect_err(left, ErrorKind::AddressNotAvailable, RULE).map(drop)
    };
    not_joined(GROUP)?;
    for context in [1, 2] {
        cm.join_multicast(id, GROUP, context).rule(RULE)?;
        let event = side.expect(Kind::MulticastJoin, id, RULE)?;
        check_eq!(RULE, ud_data(&event)?.context, context, "the context");
    }
    not_joined(OTHER_GROUP)?;
    for _ in 0..2 {
        cm.leave_multicast(id, GROUP).rule(RULE)?;
    }
    not_joined(GROUP)?;
    // Its id may go without leaving.
    cm.join_multicast(id, GROUP, 3).rule(RULE)?;
    side.expect(Kind::MulticastJoin, id, RULE)?;
    side.destroy(id).rule(RULE)
}

scenario!(group_is_joined_by_an_id_of_datagrams_on_a_device: "CM-79"; needs CM, UD, MCAST);
fn group_is_joined_by_an_id_of_datagrams_on_a_device(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-79";
    let [side, _] = sides(setup)?;
    let refused = |what: &str, id| {
        let joined = side.cm.join_multicast(id, GROUP, 1);
        in_case(what, expect_err(joined, ErrorKind::Invalid, RULE).map(drop))
    };
    let id = side.id(PortSpace::Udp)?;
    refused("a new id", id)?;
    refused("an id of connections", side.bound(PortSpace::Tcp)?.0)?;
    let (_, at) = side.listener(PortSpace::Udp)?;
    refused("an id with a route", side.routed(PortSpace::Udp, at)?)?;
    side.no_event(RULE)?;
    side.cm.bind_addr(id, side.at(0))?;
    side.cm.join_multicast(id, GROUP, 1).rule(RULE)?;
    side.expect(Kind::MulticastJoin, id, RULE)?;
    Ok(())
}
