//! The backend as rdma_cm sees it, and its tables of ids and channels.

use std::ffi::c_int;
use std::ops::Deref;
use std::sync::Arc;

use verbs_abi::rdma_cm_id;
use verbs_api::{CmChannel, CmId, Handle, Result, Verb};

use super::objects::{EventChannel, Id};
use crate::errno::bad_handle;
use crate::hw::Hw;

/// The calls of rdma_cm, on the objects of the backend.
#[derive(Clone, Copy)]
pub(super) struct Manager<'a>(&'a Hw);

impl Deref for Manager<'_> {
    type Target = Hw;

    fn deref(&self) -> &Hw {
        self.0
    }
}

impl Hw {
    pub(super) fn manager(&self) -> Manager<'_> {
        Manager(self)
    }
}

impl Manager<'_> {
    pub(super) fn event_channel(
        &self,
        verb: Verb,
        channel: CmChannel,
    ) -> Result<Arc<EventChannel>> {
        let tables = self.cm.lock();
        let found = tables.channels.get(channel.index(), channel.generation());
        found
            .cloned()
            .map_err(|problem| bad_handle(verb, CmChannel::OBJECT, problem))
    }

    pub(super) fn cm_id(&self, verb: Verb, id: CmId) -> Result<Arc<Id>> {
        let tables = self.cm.lock();
        let found = tables.ids.get(id.index(), id.generation());
        found
            .cloned()
            .map_err(|problem| bad_handle(verb, CmId::OBJECT, problem))
    }

    pub(super) fn insert_id(&self, id: Id) -> CmId {
        let address = id.raw.address();
        let mut tables = self.cm.lock();
        let at = tables.ids.insert(|_| Arc::new(id));
        let handle = CmId::from_parts(at.index, at.generation);
        tables.handles.insert(address, handle);
        handle
    }

    /// Takes an id out of the tables; it goes with the last who has it.
    pub(super) fn take_id(&self, id: CmId) -> Option<Arc<Id>> {
        let mut tables = self.cm.lock();
        tables.ids.get(id.index(), id.generation()).ok()?;
        let found = tables.ids.remove(id.index());
        // One that is gone has no address, and a new one may be at the old.
        tables.handles.retain(|_, handle| *handle != id);
        Some(found)
    }

    /// The same for a channel.
    pub(super) fn take_channel(&self, channel: CmChannel) -> Option<Arc<EventChannel>> {
        let mut tables = self.cm.lock();
        let (index, generation) = (channel.index(), channel.generation());
        tables.channels.get(index, generation).ok()?;
        Some(tables.channels.remove(index))
    }

    /// Calls C for an id.
    pub(super) fn on_id(
        &self,
        verb: Verb,
        id: CmId,
        call: impl FnOnce(*mut rdma_cm_id) -> c_int,
    ) -> Result<()> {
        let found = self.cm_id(verb, id)?;
        let _reading = self.reading.lock();
        found.raw.call(verb, call)
    }
}
