//! Messages that are lost or come twice, and devices that go.

use core::time::Duration;

use verbs_api::ErrorKind;
use verbs_api::cm::{CmEventType as Kind, ConnParam, PortSpace};
use verbs_api::lab::{CmMessage, Fault, FaultGuard, PacketFilter};

use super::link::{CmPair, Link};
use super::resolve::TIMED_OUT;
use crate::failure::{check, check_eq, value_in_case};
use crate::{Claim, Failure, OfRule, Result, Setup, expect_err};

/// The longest wait for the answer to a message: the response times of both sides that Linux sends.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is sent again (max CM retries).
const RETRIES: u64 = 15;

const fn of(message: CmMessage) -> PacketFilter {
    PacketFilter::EVERY.cm(message)
}

scenario!(message_that_is_lost_is_sent_again: "CM-67", "CM-68", "CM-69"; needs CM, MODIFY_CONNECT, LAB);
fn message_that_is_lost_is_sent_again(setup: &Setup<'_>) -> Result {
    let lab = setup.lab();
    for (message, rule) in [
        (CmMessage::Req, "CM-67"),
        (CmMessage::Rep, "CM-68"),
        (CmMessage::Rtu, "CM-69"),
    ] {
        for times in [1, 3] {
            let lost = FaultGuard::new(lab, Fault::drop(of(message)).first(times))?;
            let (start, param) = (lab.now(), ConnParam::new());
            let met = CmPair::new(setup)?.link(&param, &param).rule(rule);
            let link = value_in_case(&format!("{message} lost {times} times"), met)?;
            check_eq!(
                rule,
                lost.fired(),
                times,
                format!("how many {message} are lost")
            );
            let took = lab.now() - start;
            let longest = PATIENCE * times as u32;
            check!(
                rule,
                took < longest,
                format!("less than {longest:?}"),
                "{took:?}"
            );
            link.works(rule)?;
            for (side, _) in link.ends() {
                side.no_event(rule)?;
            }
        }
    }
    Ok(())
}

/// Lets the time go by until there is an event.
fn later(side: &super::link::Side<'_>, rule: &'static str) -> Result<verbs_api::cm::CmEvent> {
    for _ in 0..=RETRIES {
        if let Some(event) = side.rest()?.pop() {
            return Ok(event);
        }
        side.setup.lab().advance(PATIENCE)?;
    }
    Err(Failure::hang("an event", "none came")).rule(rule)
}

scenario!(nobody_answers_in_the_end: "CM-70"; needs CM, MODIFY_CONNECT, LAB);
fn nobody_answers_in_the_end(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-70";
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    let lost = FaultGuard::new(setup.lab(), Fault::drop(of(CmMessage::Req)))?;
    let end = client.end(id)?;
    client.cm.connect(id, &ConnParam::new())?;
    let event = later(&client, RULE)?;
    let seen = (event.event, event.id, event.status);
    check_eq!(RULE, seen, (Kind::Unreachable, id, TIMED_OUT), "the event");
    check_eq!(RULE, lost.fired(), RETRIES + 1, "how often it asks");
    drop(lost);
    // It has given up.
    server.no_event(RULE)?;
    expect_err(
        client.cm.connect(id, &ConnParam::new()),
        ErrorKind::Invalid,
        RULE,
    )?;
    check_eq!(RULE, client.attr(id)?.qp, Some(end.qp), "its queue pair");
    client.destroy(id).rule(RULE)
}

scenario!(server_gives_up_a_client_that_confirms_nothing: "CM-70"; needs CM, MODIFY_CONNECT, LAB);
/// No confirmation comes.
fn server_gives_up_a_client_that_confirms_nothing(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-70";
    let cm_pair = CmPair::new(setup)?;
    let (from, request) = cm_pair.ask(&ConnParam::new())?;
    let lost = FaultGuard::new(setup.lab(), Fault::drop(of(CmMessage::Rtu)))?;
    let link = cm_pair.accept(from, request.id, &ConnParam::new())?;
    cm_pair.client.expect(Kind::Established, cm_pair.id, RULE)?;
    let event = later(&cm_pair.server, RULE)?;
    let seen = (event.event, event.id, event.status);
    let expected = (Kind::Unreachable, link.accepted, TIMED_OUT);
    check_eq!(RULE, seen, expected, "the event");
    check_eq!(
        RULE,
        lost.fired(),
        RETRIES + 1,
        "how often its answer is confirmed"
    );
    Ok(())
}

scenario!(end_that_is_lost_is_told_again: "CM-72"; needs CM, MODIFY_CONNECT, LAB);
fn end_that_is_lost_is_told_again(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-72";
    for message in [CmMessage::Dreq, CmMessage::Drep] {
        let link = Link::new(setup)?;
        let lost = FaultGuard::new(setup.lab(), Fault::drop(of(message)).nth(1))?;
        let ended = link.disconnect(RULE);
        value_in_case(&format!("{message} lost"), ended)?;
        check_eq!(
            RULE,
            lost.fired(),
            1,
            format!("how many {message} are lost")
        );
        for (side, _) in link.ends() {
            side.no_event(RULE)?;
        }
    }
    Ok(())
}

scenario!(end_that_nobody_answers_comes_all_the_same: "CM-72"; needs CM, MODIFY_CONNECT, LAB);
fn end_that_nobody_answers_comes_all_the_same(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-72";
    let link = Link::new(setup)?;
    let [(client, id), _] = link.ends();
    let lost = FaultGuard::new(setup.lab(), Fault::drop(of(CmMessage::Dreq)))?;
    client.cm.disconnect(id)?;
    let event = later(&client, RULE)?;
    let seen = (event.event, event.id);
    check_eq!(RULE, seen, (Kind::Disconnected, id), "the event");
    check_eq!(RULE, lost.fired(), RETRIES + 1, "how often it tells");
    Ok(())
}

scenario!(message_that_comes_twice_counts_once: "CM-71"; needs CM, MODIFY_CONNECT, LAB);
fn message_that_comes_twice_counts_once(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-71";
    let messages = [
        CmMessage::Req,
        CmMessage::Rep,
        CmMessage::Rtu,
        CmMessage::Dreq,
        CmMessage::Drep,
    ];
    for message in messages {
        for late in [Duration::ZERO, Duration::from_micros(50)] {
            let twice = Fault::duplicate(of(message), late);
            let twice = FaultGuard::new(setup.lab(), twice)?;
            let link = value_in_case(&format!("{message} twice"), Link::new(setup)).rule(RULE)?;
            link.works(RULE)?;
            for (side, _) in link.ends() {
                side.no_event(RULE)?;
            }
            link.disconnect(RULE)?;
            for (side, _) in link.ends() {
                side.no_event(RULE)?;
            }
            check!(
                RULE,
                twice.fired() > 0,
                format!("{message} is sent"),
                "it is not"
            );
        }
    }
    Ok(())
}

scenario!(data_waits_for_no_message: "CM-73"; needs CM, MODIFY_CONNECT, LAB);
/// The client sends at once, and its message overtakes the last one of the three.
fn data_waits_for_no_message(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-73";
    let cm_pair = CmPair::new(setup)?;
    let CmPair {
        server, client, id, ..
    } = cm_pair;
    let late = Fault::delay(of(CmMessage::Rtu), Duration::from_millis(500));
    let late = FaultGuard::new(setup.lab(), late)?;
    let (from, request) = cm_pair.ask(&ConnParam::new())?;
    let link = cm_pair.accept(from, request.id, &ConnParam::new())?;
    client.expect(Kind::Established, id, Claim::NONE)?;
    check_eq!(RULE, late.fired(), 1, "messages that are late");
    server.no_event(RULE)?;
    link.works(RULE)?;
    server.expect(Kind::Established, request.id, RULE)?;
    link.works(RULE)
}

scenario!(ids_of_a_device_that_goes_hear_of_it: "CM-59"; needs CM, LAB);
fn ids_of_a_device_that_goes_hear_of_it(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-59";
    let link = Link::new(setup)?;
    let CmPair {
        server,
        client,
        listener,
        ..
    } = link.cm_pair;
    let (bound, _) = server.bound(PortSpace::Tcp)?;
    let unbound = server.id(PortSpace::Tcp)?;
    setup.lab().kill_device(server.verbs)?;
    let mut heard = Vec::new();
    for event in server.rest()? {
        check_eq!(RULE, event.event, Kind::DeviceRemoval, "the event");
        heard.push(event.id);
    }
    let mut expected = vec![listener, link.accepted, bound];
    heard.sort_unstable();
    expected.sort_unstable();
    check_eq!(RULE, heard, expected, "the ids of the device");
    let removed = expect_err(server.cm.listen(bound, 0), ErrorKind::Invalid, RULE);
    removed.map(drop)?;
    for id in [link.accepted, listener, bound, unbound] {
        server.destroy(id).rule(RULE)?;
    }
    server.cm.destroy_event_channel(server.channel).rule(RULE)?;
    // Messages of others do not.
    let of_others = client.rest()?;
    let is_removal = |event: &verbs_api::cm::CmEvent| event.event == Kind::DeviceRemoval;
    let apart = client.verbs != server.verbs;
    check!(
        RULE,
        !apart || !of_others.iter().any(is_removal),
        "none",
        "{of_others:?}"
    );
    Ok(())
}
