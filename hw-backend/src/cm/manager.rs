//! The backend for rdma_cm, and its tables of ids and channels.

use std::ffi::c_int;
use std::ops::Deref;
use std::sync::Arc;

use verbs_abi::rdma_cm_id;
use verbs_api::{CmChannel, CmId, Handle, Result, Verb};

use super::objects::{EventChannel, Id};
use crate::errno::look_up;
use crate::hw::Hw;

/// The backend, with the calls of rdma_cm.
#[derive(Clone, Copy)]
pub(super) struct Manager<'a>(&'a Hw);

impl Deref for Manager<'_> {
    type Target = Hw;

    fn deref(&self) -> &Hw {
        self.0
    }
}

impl Hw {
    /// An event channel of rdma_cm.
    pub(crate) fn event_channel(
        &self,
        verb: Verb,
        channel: CmChannel,
    ) -> Result<Arc<EventChannel>> {
        look_up(&self.cm.lock().channels, verb, channel)
    }

    pub(super) fn manager(&self) -> Manager<'_> {
        Manager(self)
    }
}

impl Manager<'_> {
    pub(super) fn cm_id(&self, verb: Verb, id: CmId) -> Result<Arc<Id>> {
        look_up(&self.cm.lock().ids, verb, id)
    }

    pub(super) fn insert_id(&self, id: Id) -> CmId {
        let address = id.raw.address();
        let mut tables = self.cm.lock();
        let at = tables.ids.insert(|_| Arc::new(id));
        let handle = CmId::from_parts(at.index, at.generation);
        tables.handles.insert(address, handle);
        handle
    }

    /// Removes an id from the tables. It is destroyed when no call holds it any more.
    pub(super) fn take_id(&self, id: CmId) -> Option<Arc<Id>> {
        let mut tables = self.cm.lock();
        tables.ids.get(id.index(), id.generation()).ok()?;
        let found = tables.ids.remove(id.index());
        // A destroyed id has no address any more, and a new one may have its old address.
        tables.handles.retain(|_, handle| *handle != id);
        Some(found)
    }

    /// Removes a channel from the table.
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
