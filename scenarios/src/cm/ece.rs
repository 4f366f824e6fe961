//! Enhanced connection establishment: the options that requests and answers carry.

use verbs_api::cm::{CmEventType as Kind, CmId, ConnParam, PortSpace, private_data};
use verbs_api::{Ece, ErrorKind, Handle};

use super::connect::check_private_data;
use super::link::{CmPair, Link, Side};
use crate::ece::lowest;
use crate::failure::{check, check_eq, in_case};
use crate::{Claim, OfRule, Result, Setup, expect_err};

/// What a program says of a queue pair of its own for an id. Each has another number: one that is
/// connected cannot be named again.
fn own_qp(id: CmId) -> ConnParam<'static> {
    ConnParam {
        qp_num: 0x1234 + id.index(),
        ..ConnParam::new()
    }
}

/// The options of the peer, as an id knows them.
fn remote(side: Side<'_>, id: CmId, rule: impl Into<Claim>) -> Result<Ece> {
    side.cm.get_remote_ece(id).rule(rule)
}

impl CmPair<'_> {
    /// The server accepts for a queue pair of the program's own, with these options.
    fn answer(&self, accepted: CmId, ece: Option<Ece>) -> Result {
        if let Some(ece) = ece {
            self.server.cm.set_local_ece(accepted, &ece)?;
        }
        Ok(self.server.cm.accept(accepted, &own_qp(accepted))?)
    }
}

scenario!(options_of_the_program_reach_its_peer: "ECE-06"; needs CM, MODIFY_CONNECT);
/// An answer has the vendor of the request, whatever the server says.
fn options_of_the_program_reach_its_peer(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-06";
    for (vendor_id, carried) in [(0x0012_3456, 0x0012_3456), (0xffed_cba9, 0x00ed_cba9)] {
        let cm_pair = CmPair::new(setup)?;
        let CmPair {
            server, client, id, ..
        } = cm_pair;
        let asked = Ece::new(vendor_id, 0x8765_4321);
        client.cm.set_local_ece(id, &asked).rule(RULE)?;
        let request = cm_pair.ask_without(&own_qp(id))?;
        let seen = remote(server, request.id, RULE)?;
        check_eq!(RULE, seen, Ece::new(carried, 0x8765_4321), "the request's");
        let answer = Ece::new(0x00aa_bbcc, 0x0f1e_2d3c);
        cm_pair.answer(request.id, Some(answer)).rule(RULE)?;
        client.expect(Kind::ConnectResponse, id, RULE)?;
        let seen = remote(client, id, RULE)?;
        check_eq!(RULE, seen, Ece::new(carried, 0x0f1e_2d3c), "the answer's");
    }
    Ok(())
}

scenario!(options_that_were_never_set_are_zeros: "ECE-06"; needs CM, MODIFY_CONNECT);
fn options_that_were_never_set_are_zeros(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-06";
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    let none = |side, id, what| {
        check_eq!(RULE, remote(side, id, RULE)?, Ece::default(), what);
        Ok::<_, crate::Failure>(())
    };
    none(client, client.id(PortSpace::Tcp)?, "those of a new id")?;
    none(client, id, "those of an id with a route")?;
    let request = cm_pair.ask_without(&own_qp(cm_pair.id))?;
    none(server, request.id, "those of a request")?;
    cm_pair.answer(request.id, None)?;
    client.expect(Kind::ConnectResponse, id, RULE)?;
    none(client, id, "those of an answer")
}

scenario!(options_are_for_ids_without_a_queue_pair: "ECE-07"; needs CM);
fn options_are_for_ids_without_a_queue_pair(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-07";
    let CmPair { client, id, .. } = CmPair::new(setup)?;
    let cm = client.cm;
    let good = Ece::new(1, 2);
    let wrong = Ece {
        comp_mask: 1,
        ..good
    };
    for ece in [Ece::default(), Ece::new(0, 2), wrong] {
        let refused = expect_err(cm.set_local_ece(id, &ece), ErrorKind::Invalid, RULE);
        in_case(&format!("{ece:?}"), refused.map(drop))?;
    }
    cm.set_local_ece(id, &good).rule(RULE)?;
    client.end(id)?;
    expect_err(cm.set_local_ece(id, &good), ErrorKind::Invalid, RULE)?;
    expect_err(cm.get_remote_ece(id), ErrorKind::Invalid, RULE)?;
    cm.destroy_cm_qp(id, setup.wait())?;
    cm.set_local_ece(id, &good).rule(RULE)?;
    cm.get_remote_ece(id).rule(RULE).map(drop)
}

scenario!(queue_pairs_of_ids_agree_on_options: "ECE-08"; needs CM, ECE, MODIFY_CONNECT);
fn queue_pairs_of_ids_agree_on_options(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-08";
    let link = Link::new(setup)?;
    let own = setup.query_ece(link.pair.a.qp).rule(RULE)?;
    let theirs = setup.query_ece(link.pair.b.qp).rule(RULE)?;
    check_eq!(RULE, own, theirs, "the options of both");
    check!(RULE, own.options != 0, "options", "{own:?}");
    link.works(RULE)
}

scenario!(queue_pair_has_no_option_that_its_peer_does_not_want: "ECE-08"; needs CM, ECE, MODIFY_CONNECT);
fn queue_pair_has_no_option_that_its_peer_does_not_want(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-08";
    let cm_pair = CmPair::new(setup)?;
    let CmPair { server, client, .. } = cm_pair;
    let (end, request) = cm_pair.ask(&ConnParam::new())?;
    let own = setup.query_ece(end.qp).rule(RULE)?;
    let seen = remote(server, request.id, RULE)?;
    check_eq!(RULE, seen, own, "the request's");
    let one = Ece::new(own.vendor_id, lowest(own.options));
    cm_pair.answer(request.id, Some(one))?;
    client.expect(Kind::Established, cm_pair.id, RULE)?;
    server.expect(Kind::Established, request.id, RULE)?;
    let taken = setup.query_ece(end.qp).rule(RULE)?;
    check_eq!(RULE, taken, one, "the client's");
    // The other way round.
    let cm_pair = cm_pair.with_another()?;
    let id = cm_pair.id;
    client.cm.set_local_ece(id, &one)?;
    let request = cm_pair.ask_without(&own_qp(cm_pair.id))?;
    let end = server.end(request.id)?;
    let taken = setup.query_ece(end.qp).rule(RULE)?;
    check_eq!(RULE, taken, one, "the server's before it answers");
    server.cm.accept(request.id, &ConnParam::new())?;
    client.expect(Kind::ConnectResponse, id, RULE)?;
    let seen = remote(client, id, RULE)?;
    check_eq!(RULE, seen, one, "the answer's");
    Ok(())
}

scenario!(another_vendor_ends_up_without_options: "ECE-09"; needs CM, ECE, MODIFY_CONNECT);
fn another_vendor_ends_up_without_options(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-09";
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    let foreign = Ece::new(0x0012_3456, u32::MAX);
    client.cm.set_local_ece(id, &foreign)?;
    let request = cm_pair.ask_without(&own_qp(cm_pair.id))?;
    let end = server.end(request.id)?;
    let own = setup.query_ece(end.qp).rule(RULE)?;
    check_eq!(RULE, own.options, 0, "the server's options");
    server.cm.accept(request.id, &ConnParam::new())?;
    client.expect(Kind::ConnectResponse, id, RULE)?;
    let seen = remote(client, id, RULE)?;
    check_eq!(RULE, seen, Ece::new(foreign.vendor_id, 0), "the answer's");
    // A server without options answers the vendor of the request, with none.
    let cm_pair = cm_pair.with_another()?;
    let (end, request) = cm_pair.ask(&ConnParam::new())?;
    cm_pair.answer(request.id, None)?;
    client.expect(Kind::Established, cm_pair.id, RULE)?;
    let taken = setup.query_ece(end.qp).rule(RULE)?;
    check_eq!(RULE, taken, own, "the client's options");
    Ok(())
}

scenario!(request_without_options_leaves_those_of_the_server: "ECE-09"; needs CM, ECE, MODIFY_CONNECT);
fn request_without_options_leaves_those_of_the_server(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-09";
    let cm_pair = CmPair::new(setup)?;
    let request = cm_pair.ask_without(&own_qp(cm_pair.id))?;
    let end = cm_pair.server.end(request.id)?;
    let taken = setup.query_ece(end.qp).rule(RULE)?;
    let new = cm_pair.client.end(cm_pair.another()?)?;
    let new = setup.query_ece(new.qp).rule(RULE)?;
    check_eq!(RULE, taken, new, "the server's options");
    Ok(())
}

scenario!(options_that_the_server_refuses_are_the_reason: "ECE-10"; needs CM, MODIFY_CONNECT);
fn options_that_the_server_refuses_are_the_reason(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-10";
    /// Vendor option not supported (IBA 12.6.7.2).
    const VENDOR_OPTION: i32 = 35;
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    let too_much = [1; private_data::REJ + 1];
    let new = server.id(PortSpace::Tcp)?;
    expect_err(server.cm.reject_ece(new, &[]), ErrorKind::Invalid, RULE)?;
    let request = cm_pair.ask_without(&own_qp(cm_pair.id))?;
    let refused = server.cm.reject_ece(request.id, &too_much);
    expect_err(refused, ErrorKind::Invalid, RULE)?;
    server.cm.reject_ece(request.id, b"not these").rule(RULE)?;
    let event = client.expect(Kind::Rejected, id, RULE)?;
    check_eq!(RULE, event.status, VENDOR_OPTION, "the status");
    check_private_data(&client, &event, b"not these", private_data::REJ, RULE)?;
    client.no_event(RULE)
}

scenario!(messages_of_iwarp_have_no_options: "ECE-11"; needs CM; lacks IWARP_LACKS);
fn messages_of_iwarp_have_no_options(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-11";
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    // A queue pair that the id does not know, or its own options would be sent.
    let from = setup.end(client.verbs, crate::PairOptions::default())?;
    client.cm.set_local_ece(id, &Ece::new(1, 2)).rule(RULE)?;
    let request = cm_pair.ask_without(&ConnParam {
        qp_num: from.qp_num,
        ..ConnParam::new()
    })?;
    let seen = remote(server, request.id, RULE)?;
    check_eq!(RULE, seen, Ece::default(), "the request's");
    server.cm.reject(request.id, &[])?;
    client.expect(Kind::Rejected, id, RULE).map(drop)
}
