//! Queue pairs of ids: their states, and what they are set to.

use verbs_api::cm::{CmEventType as Kind, ConnParam, PortSpace};
use verbs_api::{Access, AsyncEventType, CqInit, ErrorKind, QpAttrMask, QpInit, QpState, QpType};

use super::link::{CmPair, Link, Side, reads, sides};
use super::listen::conn_data;
use crate::failure::{check, check_eq};
use crate::{End, OfRule, Result, Setup, expect_err};

scenario!(queue_pair_needs_an_id_that_is_bound_to_a_device: "CM-28"; needs CM);
fn queue_pair_needs_an_id_that_is_bound_to_a_device(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-28";
    let [side, _] = sides(setup)?;
    let cm = side.cm;
    let cq = setup.create_cq(side.verbs, &CqInit::new(16))?;
    let init = QpInit::new(QpType::Rc, cq, cq);
    let id = side.id(PortSpace::Tcp)?;
    let pd = setup.alloc_pd(side.verbs)?;
    for pd in [None, Some(pd)] {
        expect_err(cm.create_cm_qp(id, pd, &init), ErrorKind::Invalid, RULE)?;
    }
    cm.bind_addr(id, side.at(0))?;
    let none = || expect_err(cm.destroy_cm_qp(id, setup.wait()), ErrorKind::Invalid, RULE);
    none()?;
    let qp = cm.create_cm_qp(id, None, &init).rule(RULE)?;
    check_eq!(
        RULE,
        side.attr(id)?.qp,
        Some(qp),
        "the queue pair of the id"
    );
    expect_err(cm.create_cm_qp(id, None, &init), ErrorKind::Invalid, RULE)?;
    cm.destroy_cm_qp(id, setup.wait()).rule(RULE)?;
    check_eq!(
        RULE,
        side.attr(id)?.qp,
        None,
        "the queue pair when it is destroyed"
    );
    none().map(drop)
}

scenario!(queue_pair_is_of_the_domain_that_is_named: "CM-29"; needs CM);
fn queue_pair_is_of_the_domain_that_is_named(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-29";
    let cm_pair = CmPair::new(setup)?;
    let CmPair { client, id, .. } = cm_pair;
    let cq = setup.create_cq(client.verbs, &CqInit::new(16))?;
    let init = QpInit::new(QpType::Rc, cq, cq);
    let foreign = setup.alloc_pd(setup.ctx_a())?;
    let made = client.cm.create_cm_qp(id, Some(foreign), &init);
    expect_err(made, ErrorKind::Invalid, RULE)?;
    // Memory of a queue pair is of its domain.
    let own = setup.alloc_pd(client.verbs)?;
    let from = client.end_in(id, Some(own)).rule(RULE)?;
    let request = cm_pair.ask_without(&ConnParam::new())?;
    let link = cm_pair.accept(from, request.id, &ConnParam::new())?;
    link.established(RULE)?;
    link.works(RULE)
}

scenario!(queue_pair_follows_the_events_of_its_id: "CM-30", "CM-31", "CM-33"; needs CM, MODIFY_CONNECT);
fn queue_pair_follows_the_events_of_its_id(setup: &Setup<'_>) -> Result {
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    let from = client.end(id)?;
    let state = |end: &End<'_>| setup.state(end.qp);
    check_eq!(
        "CM-30",
        state(&from)?,
        QpState::Init,
        "the state of a new queue pair"
    );
    let attr = setup.query_qp(from.qp, QpAttrMask::PORT)?.attr;
    check_eq!("CM-30", attr.port_num, setup.port());
    from.recv(1, 8)?;
    let request = cm_pair.ask_without(&ConnParam::new())?;
    check_eq!(
        "CM-33",
        state(&from)?,
        QpState::Init,
        "the client's while it asks"
    );
    let to = server.end(request.id)?;
    check_eq!(
        "CM-30",
        state(&to)?,
        QpState::Init,
        "the state of the server's"
    );
    server.cm.accept(request.id, &ConnParam::new())?;
    check_eq!(
        "CM-31",
        state(&to)?,
        QpState::Rts,
        "the server's when it has accepted"
    );
    check_eq!(
        "CM-33",
        state(&from)?,
        QpState::Init,
        "the client's until it hears"
    );
    let link = Link {
        cm_pair,
        accepted: request.id,
        pair: setup.introduce(from, to)?,
    };
    // The server may send at once: the client takes it when it is ready.
    link.pair.b.send(2, 8).rule("CM-31")?;
    client.expect(Kind::Established, id, "CM-33")?;
    check_eq!(
        "CM-33",
        state(&from)?,
        QpState::Rts,
        "the client's when it hears"
    );
    server.expect(Kind::Established, request.id, "CM-31")?;
    setup.successes(from.recv_cq, 1).rule("CM-31")?;
    setup.successes(to.send_cq, 1).rule("CM-31")?;
    check_eq!("CM-33", link.states()?, [QpState::Rts; 2], "the states");
    link.works("CM-33")
}

scenario!(queue_pairs_are_set_to_what_was_agreed: "CM-32"; needs CM, MODIFY_CONNECT);
fn queue_pairs_are_set_to_what_was_agreed(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-32";
    let (asked, answer) = (
        ConnParam {
            retry_count: 5,
            rnr_retry_count: 3,
            ..ConnParam::new()
        },
        ConnParam {
            retry_count: 1,
            rnr_retry_count: 4,
            ..ConnParam::new()
        },
    );
    let link = CmPair::new(setup)?.link(&asked, &answer)?;
    let [own, theirs] = link.qps(
        QpAttrMask::DEST_QPN
            | QpAttrMask::RQ_PSN
            | QpAttrMask::SQ_PSN
            | QpAttrMask::PATH_MTU
            | QpAttrMask::RETRY_CNT
            | QpAttrMask::RNR_RETRY,
    )?;
    let (a, b) = (link.pair.a, link.pair.b);
    let peers = (own.dest_qp_num, theirs.dest_qp_num);
    check_eq!(RULE, peers, (b.qp_num, a.qp_num), "the peers");
    let psns = (own.sq_psn, theirs.sq_psn);
    check_eq!(RULE, psns, (theirs.rq_psn, own.rq_psn), "the first PSNs");
    check_eq!(RULE, own.path_mtu, theirs.path_mtu);
    // The request has both counts, the answer one.
    check_eq!(
        RULE,
        (own.retry_cnt, own.rnr_retry),
        (5, 4),
        "the client's retries"
    );
    check_eq!(
        RULE,
        (theirs.retry_cnt, theirs.rnr_retry),
        (5, 3),
        "the server's retries"
    );
    link.works(RULE)
}

/// A queue pair of the program's own on the device of an id.
fn own_end<'b>(side: &Side<'b>, id: verbs_api::cm::CmId) -> Result<End<'b>> {
    let options = crate::PairOptions::default();
    let end = side.setup.end(side.verbs, options)?;
    set(side, id, end, QpState::Init)?;
    Ok(end)
}

/// Sets a queue pair to what an id says of a state.
fn set(side: &Side<'_>, id: verbs_api::cm::CmId, end: End<'_>, state: QpState) -> Result {
    let (attr, mask) = side.cm.init_qp_attr(id, state).rule("CM-36")?;
    side.setup.modify_qp(end.qp, &attr, mask).rule("CM-36")
}

scenario!(program_connects_queue_pairs_of_its_own: "CM-34", "CM-36"; needs CM, MODIFY_CONNECT);
fn program_connects_queue_pairs_of_its_own(setup: &Setup<'_>) -> Result {
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    let from = own_end(&client, id)?;
    let param = |end: &End<'_>| ConnParam {
        qp_num: end.qp_num,
        ..ConnParam::new()
    };
    let request = cm_pair.ask_without(&param(&from))?;
    let to = own_end(&server, request.id)?;
    for state in [QpState::Rtr, QpState::Rts] {
        set(&server, request.id, to, state)?;
    }
    server.cm.accept(request.id, &param(&to)).rule("CM-34")?;
    let answer = client.expect(Kind::ConnectResponse, id, "CM-34")?;
    let reported = conn_data(&answer.param)?.qp_num;
    check_eq!(
        "CM-34",
        reported,
        to.qp_num,
        "the number of the server's queue pair"
    );
    for state in [QpState::Rtr, QpState::Rts] {
        set(&client, id, from, state)?;
    }
    server.no_event("CM-34")?;
    client.cm.establish(id).rule("CM-34")?;
    server.expect(Kind::Established, request.id, "CM-34")?;
    client.no_event("CM-34")?;
    expect_err(client.cm.establish(id), ErrorKind::Invalid, "CM-34")?;
    let link = Link {
        cm_pair,
        accepted: request.id,
        pair: setup.introduce(from, to)?,
    };
    link.works("CM-36")
}

scenario!(attributes_of_a_state_are_known_in_time: "CM-36"; needs CM, MODIFY_CONNECT);
fn attributes_of_a_state_are_known_in_time(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-36";
    const OF_INIT: QpAttrMask = QpAttrMask::STATE
        .union(QpAttrMask::PORT)
        .union(QpAttrMask::PKEY_INDEX)
        .union(QpAttrMask::ACCESS_FLAGS);
    const OF_RTR: QpAttrMask = QpAttrMask::from_bits_retain(0x0012_9181);
    const OF_RTS: QpAttrMask = QpAttrMask::STATE
        .union(QpAttrMask::SQ_PSN)
        .union(QpAttrMask::TIMEOUT)
        .union(QpAttrMask::RETRY_CNT)
        .union(QpAttrMask::RNR_RETRY)
        .union(QpAttrMask::MAX_QP_RD_ATOMIC);
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    let asks = |side: &Side<'_>, id, state| side.cm.init_qp_attr(id, state);
    let unbound = client.id(PortSpace::Tcp)?;
    expect_err(
        asks(&client, unbound, QpState::Init),
        ErrorKind::Invalid,
        RULE,
    )?;
    let (attr, mask) = asks(&client, id, QpState::Init).rule(RULE)?;
    check_eq!(RULE, mask, OF_INIT, "what INIT needs");
    check_eq!(
        RULE,
        (attr.qp_state, attr.port_num),
        (QpState::Init, setup.port())
    );
    let request = cm_pair.ask_without(&ConnParam {
        qp_num: 0x1234,
        ..ConnParam::new()
    })?;
    for state in [QpState::Rtr, QpState::Rts] {
        expect_err(asks(&client, id, state), ErrorKind::Invalid, RULE)?;
    }
    let (attr, mask) = asks(&server, request.id, QpState::Rtr).rule(RULE)?;
    check_eq!(RULE, mask, OF_RTR, "what RTR needs");
    check_eq!(
        RULE,
        (attr.qp_state, attr.dest_qp_num),
        (QpState::Rtr, 0x1234)
    );
    let dgid = attr.ah_attr.and_then(|way| way.grh).map(|grh| grh.dgid);
    let theirs = client.attr(id)?.sgid;
    check_eq!(RULE, dgid, Some(theirs), "where it leads");
    let (attr, mask) = asks(&server, request.id, QpState::Rts).rule(RULE)?;
    check_eq!(RULE, mask, OF_RTS, "what RTS needs");
    check_eq!(RULE, (attr.qp_state, attr.retry_cnt), (QpState::Rts, 7));
    Ok(())
}

scenario!(peers_that_may_read_may_flush: "MPE-13"; needs CM, FLUSH, MODIFY_CONNECT);
fn peers_that_may_read_may_flush(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MPE-13";
    const FLUSHES: Access = Access::FLUSH_GLOBAL.union(Access::FLUSH_PERSISTENT);
    for depth in [0, reads(setup, 4)?] {
        let cm_pair = CmPair::new(setup)?;
        let request = cm_pair.ask_without(&ConnParam {
            initiator_depth: depth,
            responder_resources: depth,
            // A second connection of the same queue pair would be refused.
            qp_num: 0x1234 + u32::from(depth),
            ..ConnParam::new()
        })?;
        let cm = cm_pair.server.cm;
        let (attr, _) = cm.init_qp_attr(request.id, QpState::Init).rule(RULE)?;
        let allows = |right| attr.qp_access_flags.contains(right);
        let seen = [allows(Access::REMOTE_READ), allows(FLUSHES)];
        check_eq!(RULE, seen, [depth > 0; 2], "reads, flushes");
    }
    Ok(())
}

scenario!(server_that_is_told_of_data_is_connected: "CM-35"; needs CM, LAB);
/// The last message of the three is lost.
fn server_that_is_told_of_data_is_connected(setup: &Setup<'_>) -> Result {
    use verbs_api::lab::{CmMessage, Fault, FaultGuard, PacketFilter};
    const RULE: &str = "CM-35";
    const COMM_EST: AsyncEventType = AsyncEventType::CommEst;
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    expect_err(client.cm.notify(id, COMM_EST), ErrorKind::Invalid, RULE)?;
    let lost = Fault::drop(PacketFilter::EVERY.cm(CmMessage::Rtu));
    let lost = FaultGuard::new(setup.lab(), lost)?;
    let (from, request) = cm_pair.ask(&ConnParam::new())?;
    let link = cm_pair.accept(from, request.id, &ConnParam::new())?;
    client.expect(Kind::Established, id, RULE)?;
    server.no_event(RULE)?;
    check!(RULE, lost.fired() > 0, "a message is lost", "none");
    // It is connected: data arrive.
    link.pair.b.recv(1, 8)?;
    link.pair.a.send(2, 8)?;
    setup.successes(link.pair.b.recv_cq, 1)?;
    setup.successes(link.pair.a.send_cq, 1)?;
    server.cm.notify(request.id, COMM_EST).rule(RULE)?;
    server.expect(Kind::Established, request.id, RULE)?;
    drop(lost);
    let again = server.cm.notify(request.id, COMM_EST);
    expect_err(again, ErrorKind::Os(106), RULE)?;
    server.no_event(RULE)?;
    link.works(RULE)
}
