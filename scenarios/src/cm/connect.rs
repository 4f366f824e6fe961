//! Connections: what goes with them, and what flows over them.

use verbs_api::cm::{
    CmEvent, CmEventType as Kind, ConnParam, RDMA_MAX_INIT_DEPTH, RDMA_MAX_RESP_RES, private_data,
};
use verbs_api::{Capabilities, ErrorKind, QpAttrMask, QpState, SendWr, WcStatus};

use super::link::{CmPair, Link, Side, reads};
use super::listen::conn_data;
use super::refuse::CONSUMER;
use crate::failure::{check, check_eq, in_case};
use crate::{Claim, OfRule, Pair, Result, Setup, expect_err, pattern};

/// The peer's bytes stand in an event: with zeros behind them as far as the message has room, or by
/// iWARP just they.
pub(super) fn check_private_data(
    side: &Side<'_>,
    event: &CmEvent,
    sent: &[u8],
    room: usize,
    rule: impl Into<Claim>,
) -> Result {
    let mut expected = sent.to_vec();
    let of_infiniband = side
        .setup
        .capabilities(side.verbs)?
        .contains(Capabilities::MODIFY_CONNECT);
    if of_infiniband || event.private_data().len() != sent.len() {
        expected.resize(room, 0);
    }
    check_eq!(
        rule,
        event.private_data(),
        expected,
        format!("private data of {event}")
    );
    Ok(())
}

scenario!(data_flows_when_both_are_connected: "CM-37"; needs CM);
fn data_flows_when_both_are_connected(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-37";
    const LEN: u32 = 3000;
    let link = Link::new(setup)?;
    link.works(RULE)?;
    let Pair { a, b } = link.pair;
    for (tag, from, to) in [(1, a, b), (2, b, a)] {
        from.fill(tag, LEN)?;
        from.write(tag.into(), LEN)?;
        setup.one_with(from.send_cq, WcStatus::Success, RULE)?;
        // What is sent behind it tells that it is there.
        to.recv_at(9, 0, 8)?;
        from.send(9, 8)?;
        setup.one_with(to.recv_cq, WcStatus::Success, RULE)?;
        setup.one_with(from.send_cq, WcStatus::Success, RULE)?;
        to.expect_data(tag, LEN, RULE)?;
    }
    Ok(())
}

scenario!(reads_and_atomics_go_both_ways: "CM-37"; needs CM, RDMA_READ, ATOMICS);
fn reads_and_atomics_go_both_ways(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-37";
    let link = Link::new(setup)?;
    let Pair { a, b } = link.pair;
    for (tag, from, to) in [(1, a, b), (2, b, a)] {
        to.fill(tag, 64)?;
        from.read(1, 64)?;
        setup.one_with(from.send_cq, WcStatus::Success, RULE)?;
        from.expect_data_at(from.landing(), tag, 64, RULE)?;
        let was = to.bytes(0, 8)?;
        let into = [from.sge(from.landing(), 8)];
        from.post(SendWr::fetch_and_add(2, &into, to.mem.remote(0), 1))?;
        setup.one_with(from.send_cq, WcStatus::Success, RULE)?;
        check_eq!(RULE, from.bytes(from.landing(), 8)?, was, "what was there");
    }
    Ok(())
}

scenario!(reads_under_way_are_as_many_as_was_agreed: "CM-38", "CM-61"; needs CM, MODIFY_CONNECT, RDMA_READ);
fn reads_under_way_are_as_many_as_was_agreed(setup: &Setup<'_>) -> Result {
    let cm_pair = CmPair::new(setup)?;
    let (four, two) = (reads(setup, 4)?, reads(setup, 2)?);
    let asked = ConnParam {
        initiator_depth: four,
        responder_resources: two,
        ..ConnParam::new()
    };
    let (from, request) = cm_pair.ask(&asked)?;
    let data = conn_data(&request.param).rule("CM-61")?;
    let reported = (data.responder_resources, data.initiator_depth);
    check_eq!(
        "CM-61",
        reported,
        (four, two),
        "what the server is to have, and to ask for"
    );
    let answer = ConnParam {
        responder_resources: reported.0,
        initiator_depth: 1,
        ..ConnParam::new()
    };
    let link = cm_pair.accept(from, request.id, &answer)?;
    let [at_client, _] = link.established("CM-61")?;
    let data = conn_data(&at_client.param).rule("CM-61")?;
    let reported = (data.responder_resources, data.initiator_depth);
    check_eq!(
        "CM-61",
        reported,
        (1, four),
        "what the client is to have, and to ask for"
    );
    let limits = QpAttrMask::MAX_QP_RD_ATOMIC | QpAttrMask::MAX_DEST_RD_ATOMIC;
    let [own, theirs] = link.qps(limits)?;
    let own = (own.max_rd_atomic, own.max_dest_rd_atomic);
    let theirs = (theirs.max_rd_atomic, theirs.max_dest_rd_atomic);
    check_eq!(
        "CM-38",
        own,
        (four, 1),
        "what the client asks for and answers"
    );
    check_eq!(
        "CM-38",
        theirs,
        (1, four),
        "what the server asks for and answers"
    );
    let Pair { a, b } = link.pair;
    for (from, to) in [(a, b), (b, a)] {
        to.fill(7, 64)?;
        for wr_id in 0..8 {
            from.read(wr_id, 64)?;
        }
        setup.successes(from.send_cq, 8).rule("CM-38")?;
        from.expect_data_at(from.landing(), 7, 64, "CM-38")?;
    }
    Ok(())
}

scenario!(client_hears_what_the_server_says_and_the_server_nothing: "CM-39"; needs CM);
fn client_hears_what_the_server_says_and_the_server_nothing(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-39";
    let cm_pair = CmPair::new(setup)?;
    let (from, request) = cm_pair.ask(&ConnParam::new())?;
    let answer = ConnParam {
        rnr_retry_count: 4,
        ..ConnParam::new().private_data(b"welcome")
    };
    let link = cm_pair.accept(from, request.id, &answer)?;
    let [at_client, at_server] = link.established(RULE)?;
    check_private_data(
        &cm_pair.client,
        &at_client,
        b"welcome",
        private_data::REP,
        RULE,
    )?;
    check_eq!(
        RULE,
        at_server.private_data(),
        [0; 0],
        "private data of the server's event"
    );
    if setup
        .capabilities(from.context)?
        .contains(Capabilities::MODIFY_CONNECT)
    {
        let data = conn_data(&at_client.param).rule(RULE)?;
        let said = (data.qp_num, data.rnr_retry_count);
        let own = link.pair.b.qp_num;
        check_eq!(RULE, said, (own, 4), "the server's queue pair and retries");
    }
    Ok(())
}

scenario!(private_data_has_the_length_of_its_message: "CM-60"; needs CM);
fn private_data_has_the_length_of_its_message(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-60";
    let first = CmPair::new(setup)?;
    for length in [0, 1, 20, private_data::REQ] {
        let cm_pair = first.with_another()?;
        let sent = pattern(3, length as u32);
        let param = ConnParam::new().private_data(&sent);
        let (from, request) = cm_pair.ask(&param)?;
        let checked = check_private_data(&cm_pair.server, &request, &sent, private_data::REQ, RULE);
        in_case(&format!("{length} B in a request"), checked)?;
        let answer = pattern(4, (length * 196 / 56) as u32);
        let param = ConnParam::new().private_data(&answer);
        let link = cm_pair.accept(from, request.id, &param)?;
        let [event, _] = link.established(Claim::NONE)?;
        let checked = check_private_data(&cm_pair.client, &event, &answer, private_data::REP, RULE);
        in_case(&format!("{} B in an answer", answer.len()), checked)?;
    }
    Ok(())
}

scenario!(too_much_private_data_is_refused: "CM-62"; needs CM, MODIFY_CONNECT);
fn too_much_private_data_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-62";
    let first = CmPair::new(setup)?;
    let refused = |what: &str, result: verbs_api::Result<()>| {
        in_case(what, expect_err(result, ErrorKind::Invalid, RULE).map(drop))
    };
    let bytes = [7; 255];
    for rejects in [false, true] {
        let cm_pair = first.with_another()?;
        let CmPair {
            server, client, id, ..
        } = cm_pair;
        let from = client.end(id)?;
        for length in [private_data::REQ + 1, 255] {
            let param = ConnParam::new().private_data(&bytes[..length]);
            refused("a request", client.cm.connect(id, &param))?;
        }
        server.no_event(RULE)?;
        // It can be asked for with less.
        let request = cm_pair.ask_without(&ConnParam::new()).rule(RULE)?;
        let too_much = &bytes[..private_data::REJ + 1];
        refused("a refusal", server.cm.reject(request.id, too_much))?;
        client.no_event(RULE)?;
        if rejects {
            server
                .cm
                .reject(request.id, &bytes[..private_data::REJ])
                .rule(RULE)?;
            let event = client.expect(Kind::Rejected, id, RULE)?;
            check_private_data(
                &cm_pair.client,
                &event,
                &bytes[..private_data::REJ],
                private_data::REJ,
                RULE,
            )?;
            continue;
        }
        let link = cm_pair.accept(from, request.id, &ConnParam::new())?;
        link.established(RULE)?;
        link.works(RULE)?;
    }
    Ok(())
}

scenario!(answer_with_too_much_private_data_refuses_the_client: "CM-80", "CM-62"; needs CM, MODIFY_CONNECT);
fn answer_with_too_much_private_data_refuses_the_client(setup: &Setup<'_>) -> Result {
    const RULE: Claim = Claim::two("CM-80", "CM-62");
    let cm_pair = CmPair::new(setup)?;
    let CmPair { server, client, .. } = cm_pair;
    let (from, request) = cm_pair.ask(&ConnParam::new())?;
    let to = server.end(request.id)?;
    let bytes = [7; private_data::REP + 1];
    let accept = |bytes| {
        server
            .cm
            .accept(request.id, &ConnParam::new().private_data(bytes))
    };
    expect_err(accept(&bytes), ErrorKind::Invalid, RULE)?;
    let event = client.expect(Kind::Rejected, cm_pair.id, "CM-80")?;
    check_eq!("CM-80", event.status, CONSUMER, "the status");
    for end in [from, to] {
        check_eq!("CM-80", setup.state(end.qp)?, QpState::Err, "the states");
    }
    expect_err(accept(&[]), ErrorKind::Invalid, "CM-80").map(drop)
}

scenario!(most_is_as_many_as_the_device_has: "CM-66"; needs CM, MODIFY_CONNECT);
fn most_is_as_many_as_the_device_has(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-66";
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        client, server, id, ..
    } = cm_pair;
    let has = setup.query_device(client.verbs)?;
    for (most, asks_to_read) in [(has.max_qp_init_rd_atom, true), (has.max_qp_rd_atom, false)] {
        // 255 stands for the most there is.
        if most < 254 {
            let mut param = ConnParam::new();
            if asks_to_read {
                param.initiator_depth = most + 1
            } else {
                param.responder_resources = most + 1
            }
            expect_err(client.cm.connect(id, &param), ErrorKind::Invalid, RULE)?;
        }
    }
    server.no_event(RULE)?;
    let most = ConnParam {
        responder_resources: RDMA_MAX_RESP_RES,
        initiator_depth: RDMA_MAX_INIT_DEPTH,
        ..ConnParam::new()
    };
    let (end, request) = cm_pair.ask(&most).rule(RULE)?;
    let data = conn_data(&request.param)?;
    let reported = (data.initiator_depth, data.responder_resources);
    check_eq!(
        RULE,
        reported,
        (has.max_qp_rd_atom, has.max_qp_init_rd_atom),
        "what the client has"
    );
    let link = cm_pair.accept(end, request.id, &most)?;
    link.established(RULE)?;
    let [own, theirs] = link.qps(QpAttrMask::MAX_QP_RD_ATOMIC | QpAttrMask::MAX_DEST_RD_ATOMIC)?;
    let fits = own.max_rd_atomic <= theirs.max_dest_rd_atomic
        && theirs.max_rd_atomic <= own.max_dest_rd_atomic;
    check!(
        RULE,
        fits,
        "no more reads than the peer answers",
        "{own:?} and {theirs:?}"
    );
    link.works(RULE)
}
