//! Calls in the wrong state.

use verbs_api::cm::{Cm, CmId, ConnParam, PortSpace};
use verbs_api::{AsyncEventType, ErrorKind};

use super::link::{CmPair, SOON, Side, sides};
use crate::failure::{check_eq, in_case};
use crate::{Result, Setup, expect_err};

type Call = fn(&Side<'_>, CmId) -> verbs_api::Result<()>;

/// Each call, and the states in which it is right.
const CALLS: &[(&str, Call, &[State])] = &[
    (
        "bind_addr",
        |side, id| side.cm.bind_addr(id, side.at(0)),
        &[State::New],
    ),
    (
        "listen",
        |side, id| side.cm.listen(id, 0),
        &[State::New, State::Bound],
    ),
    (
        "resolve_addr",
        |side, id| side.cm.resolve_addr(id, None, side.at(4711), SOON),
        &[State::New, State::Bound],
    ),
    (
        "resolve_route",
        |side, id| side.cm.resolve_route(id, SOON),
        &[State::Resolved],
    ),
    (
        "connect",
        |side, id| side.cm.connect(id, &ConnParam::new()),
        &[State::Routed],
    ),
    (
        "accept",
        |side, id| side.cm.accept(id, &ConnParam::new()),
        &[],
    ),
    ("reject", |side, id| side.cm.reject(id, &[]), &[]),
    ("establish", |side, id| side.cm.establish(id), &[]),
    // A listener has nothing to disconnect; either answer is right.
    (
        "disconnect",
        |side, id| side.cm.disconnect(id),
        &[State::Listening, State::Connected],
    ),
    // The device decides whether the network has connections to establish.
    (
        "notify",
        |side, id| side.cm.notify(id, AsyncEventType::CommEst),
        &[State::Listening, State::Connected],
    ),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    New,
    Bound,
    Resolved,
    Routed,
    Listening,
    Connected,
}

scenario!(call_in_the_wrong_state_changes_nothing: "CM-10"; needs CM);
fn call_in_the_wrong_state_changes_nothing(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CM-10";
    let [_, side] = sides(setup)?;
    let wrong = |state: State, id: CmId| {
        let before = side.attr(id)?;
        for (name, call, right) in CALLS {
            if right.contains(&state) {
                continue;
            }
            let refused = expect_err(call(&side, id), ErrorKind::Invalid, RULE);
            in_case(&format!("{name}, {state:?}"), refused.map(drop))?;
            check_eq!(
                RULE,
                side.attr(id)?,
                before,
                format!("the id after {name}, {state:?}")
            );
        }
        side.no_event(RULE)
    };
    // Each works as usual.
    let cm_pair = CmPair::new(setup)?;
    let cm: &dyn Cm = side.cm;
    let id = side.id(PortSpace::Tcp)?;
    wrong(State::New, id)?;
    cm.bind_addr(id, side.at(0))?;
    wrong(State::Bound, id)?;
    cm.resolve_addr(id, None, cm_pair.at, SOON)?;
    side.expect(verbs_api::cm::CmEventType::AddrResolved, id, RULE)?;
    wrong(State::Resolved, id)?;
    cm.resolve_route(id, SOON)?;
    side.expect(verbs_api::cm::CmEventType::RouteResolved, id, RULE)?;
    wrong(State::Routed, id)?;
    wrong(State::Listening, side.listener(PortSpace::Tcp)?.0)?;
    let param = ConnParam::new();
    let cm_pair = CmPair {
        client: side,
        id,
        ..cm_pair
    };
    let link = cm_pair.link(&param, &param)?;
    wrong(State::Connected, id)?;
    link.works(RULE)?;
    link.disconnect(RULE)
}
