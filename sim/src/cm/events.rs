//! Channels and their events.

use core::mem;
use std::collections::BTreeMap;

use verbs_api::cm::{CmChannel, CmEvent, CmId};
use verbs_api::table::Table;
use verbs_api::{Cause, ErrorKind, Handle, Object};

use crate::device::{Events, Refusal, Result, bad_handle, in_use};

/// The event channels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channels {
    table: Table<Channel>,
    /// Events that were read but not acknowledged, with the ids that count them.
    unacked: BTreeMap<u64, CmId>,
    last_token: u64,
    /// Watched channels that have changed.
    changed: Vec<CmChannel>,
    /// Something happened that a thread may wait for.
    pub(super) news: bool,
}

/// An event channel.
#[derive(Clone, Debug)]
struct Channel {
    handle: CmChannel,
    /// Ids that use it.
    ids: u32,
    events: Events<CmEvent>,
    /// Threads that wait, counted by the runtime.
    waiters: u32,
}

/// The status of an event for a failure.
pub(super) fn status_of(kind: ErrorKind) -> i32 {
    -kind.errno()
}

/// The id that counts an event.
pub(super) fn owner_of(event: &CmEvent) -> CmId {
    event.listen_id.unwrap_or(event.id)
}

impl Channels {
    /// `rdma_create_event_channel`
    pub(crate) fn create(&mut self) -> CmChannel {
        let id = self.table.insert(|id| Channel {
            handle: CmChannel::from_parts(id.index, id.generation),
            ids: 0,
            events: Events::default(),
            waiters: 0,
        });
        CmChannel::from_parts(id.index, id.generation)
    }

    /// `rdma_destroy_event_channel`
    pub(crate) fn destroy(&mut self, channel: CmChannel) -> Result<()> {
        let index = self.find(channel)?;
        let found = self.table.at(index);
        if found.ids > 0 {
            return Err(in_use(Object::CmChannel, Object::CmId, found.ids));
        }
        // The threads would never wake up.
        if found.waiters > 0 {
            let text = format!("{} threads wait on {channel}", found.waiters);
            return Err(Refusal::usage(text));
        }
        self.note_change(index);
        self.table.remove(index);
        Ok(())
    }

    pub(super) fn find(&self, channel: CmChannel) -> Result<u32> {
        let found = self.table.get(channel.index(), channel.generation());
        found.map_err(|problem| bad_handle(Object::CmChannel, problem))?;
        Ok(channel.index())
    }

    pub(super) fn handle(&self, index: u32) -> CmChannel {
        self.table.at(index).handle
    }

    /// Counts an id that a channel gains or loses.
    pub(super) fn count_id(&mut self, index: u32, more: bool) {
        let ids = &mut self.table.at_mut(index).ids;
        *ids = if more { *ids + 1 } else { *ids - 1 };
    }

    /// Queues an event. Returns its number.
    pub(super) fn push(&mut self, index: u32, event: CmEvent) -> u64 {
        let number = self.table.at_mut(index).events.push(event);
        self.news = true;
        self.note_change(index);
        number
    }

    /// Takes the oldest event of a channel. It must be acknowledged.
    pub(super) fn pop(&mut self, channel: CmChannel) -> Result<CmEvent> {
        let index = self.find(channel)?;
        let Some(mut event) = self.table.at_mut(index).events.pop() else {
            return Err(Refusal::new(ErrorKind::WouldBlock, Cause::NoEvent));
        };
        self.last_token += 1;
        event.token = self.last_token;
        self.unacked.insert(event.token, owner_of(&event));
        self.note_change(index);
        Ok(event)
    }

    /// Removes an event before it is read.
    pub(super) fn take_out(&mut self, index: u32, number: u64) -> Option<CmEvent> {
        let event = self.table.at_mut(index).events.take_out(number);
        self.note_change(index);
        event
    }

    /// Acknowledges an event. Returns the id that counts it.
    pub(super) fn acknowledge(&mut self, event: &CmEvent) -> Result<CmId> {
        let owner = owner_of(event);
        if self.unacked.get(&event.token) != Some(&owner) {
            let (kind, id) = (event.event, event.id);
            let text = format!("no event {kind} of {id} waits to be acknowledged");
            return Err(Refusal::usage(text));
        }
        self.unacked.remove(&event.token);
        self.news = true;
        Ok(owner)
    }

    /// Takes the note that something happened that a thread may wait for.
    pub(crate) fn take_news(&mut self) -> bool {
        mem::take(&mut self.news)
    }

    /// Counts a thread that starts or stops waiting on a channel.
    pub(crate) fn count_waiter(&mut self, channel: CmChannel, starts: bool) {
        if let Ok(index) = self.find(channel) {
            let waiters = &mut self.table.at_mut(index).waiters;
            *waiters = if starts { *waiters + 1 } else { *waiters - 1 };
        }
    }

    pub(super) fn has_event(&self, index: u32) -> bool {
        !self.table.at(index).events.is_empty()
    }

    /// A channel that has an event although a thread waits on it.
    pub(crate) fn waited_for_and_queued(&self) -> Option<CmChannel> {
        let missed = |channel: &&Channel| channel.waiters > 0 && !channel.events.is_empty();
        let mut channels = self.table.iter().map(|(_, channel)| channel);
        channels.find(missed).map(|channel| channel.handle)
    }

    /// The number of unread events of a channel, and of all events that were ever queued.
    pub(crate) fn queue(&self, channel: CmChannel) -> Result<(usize, u64)> {
        let channel = self.table.at(self.find(channel)?);
        Ok((channel.events.len(), channel.events.queued()))
    }

    /// Lets changes of a channel be noted from now on. The channel must exist.
    pub(crate) fn watch(&mut self, channel: CmChannel) {
        self.table.at_mut(channel.index()).events.watched = true;
    }

    /// Takes a watched channel that has changed.
    pub(crate) fn changed(&mut self) -> Option<CmChannel> {
        self.changed.pop()
    }

    fn note_change(&mut self, index: u32) {
        let channel = self.table.at(index);
        // Several changes in a row need one update.
        if channel.events.watched && self.changed.last() != Some(&channel.handle) {
            self.changed.push(channel.handle);
        }
    }
}
