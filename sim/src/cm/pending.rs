//! Outstanding steps of the ids of a channel, for a diagnosis.

use verbs_api::cm::CmChannel;

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

/// The reason why a channel has no event, as far as it is known. `None` if it has one.
pub(crate) fn no_event(manager: &Manager, channel: CmChannel) -> Option<String> {
    let index = manager.channels.find(channel).ok()?;
    if manager.channels.has_event(index) {
        return None;
    }
    let ids = manager.ids.iter().map(|(_, id)| id);
    let ids = ids.filter(|id| id.channel == index);
    let mut pending: Vec<_> = ids.map(Id::pending).collect();
    pending.sort_by_key(|(turn, _)| *turn);
    let Some((turn, first)) = pending.first() else {
        return Some("no id has this channel".to_owned());
    };
    // One id stands for all on which the same side has to act.
    let others = pending[1..].iter().filter(|(other, _)| other == turn);
    Some(match others.count() {
        0 => first.clone(),
        others => {
            let others = counted(others as u64, "id more", "ids more");
            format!("{first}, and {others} likewise")
        }
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
    fn pending(&self) -> (Turn, String) {
        let id = self.handle;
        let phase = self.conn.as_ref().map(|conn| conn.phase);
        let (turn, what) = match phase {
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
            Some(Phase::Established) => (Turn::Neither, "it is connected, and nobody disconnects"),
            Some(Phase::Idle | Phase::Timewait) => (Turn::Neither, "its connection is over"),
            None => {
                let turn = match self.state {
                    State::Listening => Turn::Client,
                    _ => Turn::Neither,
                };
                return (turn, format!("{id} {}", self.state));
            }
        };
        (turn, format!("{id}: {what}"))
    }
}
