//! Outstanding steps of the ids of a channel, for a diagnosis.

use core::fmt;

use verbs_api::cm::{CmChannel, CmId};

use super::Manager;
use super::conn::Phase;
use super::id::{Id, State};
use crate::diagnosis::counted;

/// The side that has to act next, the program first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Program,
    Peer,
    Neither,
    /// Any client may come.
    Client,
}

/// What an id waits for: a step that is named, or else one that its state names.
#[derive(Clone, Copy)]
enum Step {
    Named(&'static str),
    Of(State),
}

/// Why a channel has no event: the id that has to be acted on first, if there are ids, and the
/// number of others that wait for the same side.
pub(crate) struct NoEvent {
    first: Option<(CmId, Step)>,
    others: u64,
}

/// The reason why a channel has no event, as far as it is known. `None` if it has one.
pub(crate) fn no_event(manager: &Manager, channel: CmChannel) -> Option<NoEvent> {
    let index = manager.channels.find(channel).ok()?;
    if manager.channels.has_event(index) {
        return None;
    }
    let ids = manager.ids.iter().map(|(_, id)| id);
    let ids = ids.filter(|id| id.channel == index);
    let mut pending: Vec<_> = ids.map(|id| (id.pending(), id.handle)).collect();
    pending.sort_by_key(|((turn, _), _)| *turn);
    // One id stands for all on which the same side has to act.
    let alike = pending
        .iter()
        .take_while(|((turn, _), _)| *turn == pending[0].0.0);
    Some(NoEvent {
        others: (alike.count() as u64).saturating_sub(1),
        first: pending.first().map(|((_, step), id)| (*id, *step)),
    })
}

/// Whether the channel only waits for clients that may come at any time, as a server's does.
pub(crate) fn is_idle(manager: &Manager, channel: CmChannel) -> bool {
    let Ok(index) = manager.channels.find(channel) else {
        return true;
    };
    let mut ids = manager.ids.iter().filter(|(_, id)| id.channel == index);
    let is_for_others = |id: &Id| match &id.conn {
        Some(conn) => conn.phase == Phase::Established,
        None => matches!(id.state, State::Listening),
    };
    // A channel without ids is not a server's.
    let first = ids.next();
    first.is_some_and(|(_, id)| is_for_others(id)) && ids.all(|(_, id)| is_for_others(id))
}

impl Id {
    fn pending(&self) -> (Turn, Step) {
        let (turn, what) = match self.phase() {
            Some(Phase::ReqReceived | Phase::SidrReqReceived) => (
                Turn::Program,
                "the request was read, and is neither accepted nor rejected",
            ),
            Some(Phase::RepReceived) => (
                Turn::Program,
                "the request was accepted, and rdma_establish was not called",
            ),
            Some(Phase::DreqReceived) => (
                Turn::Program,
                "the other side has disconnected, and rdma_disconnect was not called",
            ),
            Some(Phase::ReqSent | Phase::SidrReqSent) => (
                Turn::Peer,
                "the other side has not answered the request for a connection",
            ),
            Some(Phase::RepSent) => (
                Turn::Peer,
                "the other side has not confirmed that its request was accepted",
            ),
            Some(Phase::DreqSent) => (
                Turn::Peer,
                "the other side has not answered rdma_disconnect",
            ),
            Some(Phase::Established) => (Turn::Neither, "it is connected, and no side disconnects"),
            Some(Phase::Idle | Phase::Timewait) => (Turn::Neither, "its connection is over"),
            None if self.state == State::Listening => return (Turn::Client, Step::Of(self.state)),
            None => return (Turn::Neither, Step::Of(self.state)),
        };
        (turn, Step::Named(what))
    }
}

impl fmt::Display for NoEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first {
            None => f.write_str("no id has this channel"),
            Some((id, Step::Named(what))) => write!(f, "{id}: {what}"),
            Some((id, Step::Of(state))) => write!(f, "{id} {state}"),
        }?;
        if self.others > 0 {
            let others = counted(self.others, "more id", "more ids");
            write!(f, ", and {others} likewise")?;
        }
        Ok(())
    }
}
