//! Channels and their events.

use std::collections::BTreeMap;

use verbs_api::cm::{CmChannel, CmEvent, CmId};
use verbs_api::site::Site;
use verbs_api::table::{Id, Table};
use verbs_api::{ErrorKind, Handle, Object};

use crate::device::{Channel, Refusal, Result, Wakeup, Wakeups, find};
use crate::hosts::{HostNodes, Lost};

/// The event channels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channels {
    pub(crate) table: Table<Channel<CmChannel, CmEvent>>,
    /// The nodes of the hosts that channels belong to.
    homes: BTreeMap<u32, HostNodes>,
    lost: Lost,
    /// Events that were read but not acknowledged, with the ids that count them.
    unacked: BTreeMap<u64, CmId>,
    last_token: u64,
    /// The channel that was to be destroyed last although ids have it.
    pub(super) busy: Option<CmChannel>,
    /// Watched channels that have changed.
    changed: Vec<CmChannel>,
    pub(crate) wakeups: Wakeups,
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
    pub(crate) fn create(&mut self, home: Option<HostNodes>) -> CmChannel {
        let handle = |id: Id| CmChannel::from_parts(id.index, id.generation);
        let id = self.table.insert(|id| Channel::new(handle(id)));
        self.homes.extend(home.map(|home| (id.index, home)));
        handle(id)
    }

    /// The host that a channel belongs to. `None` is the machine of all nodes.
    pub(super) fn home(&self, index: u32) -> Option<HostNodes> {
        self.homes.get(&index).copied()
    }

    /// Removes the channels of a host. Events of ids that were lost need no acknowledgement.
    #[cfg_attr(any(), mutants::skip)] // controls of tests
    pub(super) fn crash(&mut self, host: HostNodes, lost: &Lost) {
        self.unacked.retain(|_, owner| !lost.has(*owner));
        let of_host = self.homes.iter().filter(|(_, home)| **home == host);
        for index in of_host.map(|(index, _)| *index).collect::<Vec<_>>() {
            self.lost.add(self.handle(index));
            self.remove(index);
        }
    }

    /// `rdma_destroy_event_channel`
    pub(crate) fn destroy(&mut self, channel: CmChannel) -> Result<()> {
        self.busy = None;
        let index = self.find(channel)?;
        let unused = self.table.at(index).check_unused(Object::CmId);
        self.busy = unused.is_err().then_some(channel);
        unused?;
        self.remove(index);
        Ok(())
    }

    fn remove(&mut self, index: u32) {
        self.note_change(index);
        // Tasks may wait on it, and threads if its host has crashed.
        self.wakeups.add(Wakeup::CmEvent(self.handle(index)));
        self.table.remove(index);
        self.homes.remove(&index);
    }

    pub(super) fn find(&self, channel: CmChannel) -> Result<u32> {
        find(&self.table, channel).map_err(|refusal| self.lost.explain(channel, refusal))
    }

    pub(super) fn handle(&self, index: u32) -> CmChannel {
        self.table.at(index).handle
    }

    /// Counts an id that a channel gains or loses.
    pub(super) fn count_id(&mut self, index: u32, more: bool) {
        let ids = &mut self.table.at_mut(index).users;
        *ids = if more { *ids + 1 } else { *ids - 1 };
    }

    /// Queues an event. Returns its number.
    pub(super) fn push(&mut self, index: u32, event: CmEvent) -> u64 {
        let channel = self.table.at_mut(index);
        let number = channel.events.push(event);
        self.wakeups.add(Wakeup::CmEvent(channel.handle));
        self.note_change(index);
        number
    }

    /// Takes the oldest event of a channel. It must be acknowledged.
    pub(super) fn pop(&mut self, channel: CmChannel, site: Option<Site>) -> Result<CmEvent> {
        let index = self.find(channel)?;
        let mut event = self.table.at_mut(index).read(site)?;
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
        self.wakeups.add(Wakeup::CmAcknowledged(owner));
        Ok(owner)
    }

    /// The number of unread events of a channel, and of all events that were ever queued.
    pub(crate) fn queue(&self, channel: CmChannel) -> Result<(usize, u64)> {
        Ok(self.table.at(self.find(channel)?).events.counts())
    }

    /// Lets changes of a channel be noted from now on. The channel must exist.
    pub(crate) fn watch(&mut self, channel: CmChannel) {
        self.table.at_mut(channel.index()).events.watched = true;
    }

    /// Takes a watched channel that has changed.
    pub(crate) fn changed(&mut self) -> Option<CmChannel> {
        self.changed.pop()
    }

    #[cfg_attr(any(), mutants::skip)] // cost
    fn note_change(&mut self, index: u32) {
        let channel = self.table.at(index);
        // Several changes in a row need one update.
        if channel.events.watched && self.changed.last() != Some(&channel.handle) {
            self.changed.push(channel.handle);
        }
    }
}
