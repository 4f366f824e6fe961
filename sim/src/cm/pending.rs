//! Outstanding steps of the ids of a channel, and unread events, for a diagnosis.

use std::collections::BTreeMap;

use verbs_api::Handle;
use verbs_api::cm::{CmChannel, CmEvent, CmEventType, CmId};
use verbs_api::site::Site;

use super::Manager;
use super::conn::Phase;
use super::event_channel::owner_of;
use super::id::{Id, OwnQp, State};
use crate::diagnosis::{CmUnread, counted};

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
/// first, if there are ids, and the number of others that wait for the same side. It comes with the
/// place where the program has read that the id is connected, if that was its last event. `None` if
/// the channel has an event.
pub(crate) fn no_event(manager: &Manager, channel: CmChannel) -> Option<(String, Option<Site>)> {
    let index = manager.channels.find(channel).ok()?;
    if !manager.channels.table.at(index).events.is_empty() {
        return None;
    }
    let Some(first) = ids_of(manager, index).min_by_key(|id| id.turn()) else {
        return Some(("no id has this channel".to_owned(), None));
    };
    let text = match first.phase() {
        Some(phase) => format!("{}: {phase}", first.handle),
        None => format!("{} {}", first.handle, first.state),
    };
    // One id stands for all on which the same side has to act.
    let alike = ids_of(manager, index).filter(|id| id.turn() == first.turn());
    let text = match alike.count() as u64 - 1 {
        0 => text,
        others => format!(
            "{text}, and {} likewise",
            counted(others, "more id", "more ids")
        ),
    };
    let connected = first
        .last_read
        .filter(|_| first.phase() == Some(Phase::Established));
    let read_at = connected.and_then(|(event, site)| match event {
        CmEventType::Established | CmEventType::ConnectResponse => site,
        _ => None,
    });
    Some((text, read_at))
}

/// Whether nothing can come on the channel but the end of a connection.
pub(crate) fn is_connected(manager: &Manager, channel: CmChannel) -> bool {
    let listens = |index| ids_of(manager, index).any(|id| id.state == State::Listening);
    let index = manager.channels.find(channel);
    is_idle(manager, channel) && index.is_ok_and(|index| !listens(index))
}

/// Whether the channel only waits for clients and for the ends of connections, which may come at
/// any time, as a server's does.
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

/// The unread events of all ids. Equal events of an id are one entry.
pub(crate) fn unread(manager: &Manager) -> impl Iterator<Item = CmUnread> {
    let mut found = BTreeMap::new();
    let channels = manager.channels.table.iter();
    for event in channels.flat_map(|(_, channel)| channel.events.iter()) {
        let id = manager.ids.at(owner_of(event).index());
        let as_read = as_read(id, event);
        let new = || CmUnread {
            id: id.handle,
            event: as_read,
            events: 0,
            made_at: id.made_at,
        };
        let place = (id.handle.index(), u32::from(as_read));
        found.entry(place).or_insert_with(new).events += 1;
    }
    found.into_values()
}

/// The type that a program reads: librdmacm ends the handshake of an id that has a queue pair.
fn as_read(id: &Id, event: &CmEvent) -> CmEventType {
    match event.event {
        CmEventType::ConnectResponse if id.qp.is_some() => CmEventType::Established,
        other => other,
    }
}

/// The ids of the channel that could not be destroyed, each with where the program created it or
/// read its request.
pub(crate) fn users_of_busy(manager: &Manager) -> Vec<(String, Option<Site>)> {
    let busy = manager.channels.busy;
    let busy = busy.and_then(|channel| manager.channels.find(channel).ok());
    let named = |id: &Id| {
        let of = |listener| format!(", of a CONNECT_REQUEST to {listener}");
        let of = id.listener.map(of).unwrap_or_default();
        (format!("{}{of}", id.handle), id.made_at)
    };
    let ids = busy
        .into_iter()
        .flat_map(|channel| ids_of(manager, channel));
    ids.map(named).collect()
}

/// The queue pair of an id whose peer has disconnected first, if the program has not answered.
pub(crate) fn ended_by_peer(manager: &Manager, id: CmId) -> Option<OwnQp> {
    let id = manager.ids.at(manager.ids.find(id).ok()?);
    id.qp.filter(|_| id.phase() == Some(Phase::DreqReceived))
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
