//! Outstanding steps of the ids of a channel, for a diagnosis.

use verbs_api::cm::CmChannel;

use super::Manager;
use super::conn::Phase;
use super::id::{Id, State};
use crate::diagnosis::counted;

/// The side that has to act next, the program first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Program,
    Peer,
    Neither,
    /// Any client may come.
    Client,
}

/// The reason why a channel has no event, as far as it is known: the id that has to be acted on
/// first, if there are ids, and the number of others that wait for the same side. `None` if the
/// channel has an event.
pub(crate) fn no_event(manager: &Manager, channel: CmChannel) -> Option<String> {
    let index = manager.channels.find(channel).ok()?;
    if !manager.channels.table.at(index).events.is_empty() {
        return None;
    }
    let Some(first) = ids_of(manager, index).min_by_key(|id| id.turn()) else {
        return Some("no id has this channel".to_owned());
    };
    let text = match first.phase() {
        Some(phase) => format!("{}: {phase}", first.handle),
        None => format!("{} {}", first.handle, first.state),
    };
    // One id stands for all on which the same side has to act.
    let alike = ids_of(manager, index).filter(|id| id.turn() == first.turn());
    Some(match alike.count() as u64 - 1 {
        0 => text,
        others => format!(
            "{text}, and {} likewise",
            counted(others, "more id", "more ids")
        ),
    })
}

/// Whether the channel only waits for clients that may come at any time, as a server's does.
pub(crate) fn is_idle(manager: &Manager, channel: CmChannel) -> bool {
    let Ok(index) = manager.channels.find(channel) else {
        return true;
    };
    let is_for_others = |id: &Id| match &id.conn {
        Some(conn) => conn.phase == Phase::Established,
        None => id.state == State::Listening,
    };
    let mut ids = ids_of(manager, index).peekable();
    // A channel without ids is not a server's.
    ids.peek().is_some() && ids.all(is_for_others)
}

fn ids_of(manager: &Manager, channel: u32) -> impl Iterator<Item = &Id> {
    let ids = manager.ids.table.iter().map(|(_, id)| id);
    ids.filter(move |id| id.channel == channel)
}

impl Id {
    fn turn(&self) -> Turn {
        use Phase as P;
        match self.phase() {
            Some(P::ReqReceived | P::SidrReqReceived | P::RepReceived | P::DreqReceived) => {
                Turn::Program
            }
            Some(P::ReqSent | P::SidrReqSent | P::RepSent | P::DreqSent) => Turn::Peer,
            None if self.state == State::Listening => Turn::Client,
            Some(P::Established | P::Idle | P::Timewait) | None => Turn::Neither,
        }
    }
}
