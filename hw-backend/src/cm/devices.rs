//! The contexts of rdma_cm. The library opens one for each device, and keeps it open.

use std::sync::Arc;

use verbs_abi::{ibv_context, library, rdma_cm_id, slice};
use verbs_api::{Cause, Context, Error, ErrorKind, Pd as PdHandle, Result, Verb};

use super::manager::Manager;
use super::objects::{Contexts, DeviceList, Id, open};
use crate::devices;
use crate::errno::{invalid, made};
use crate::objects::Pd;
use crate::owner::Owned;
use crate::wait::set_nonblocking;

impl Manager<'_> {
    /// `rdma_get_devices`
    pub(super) fn contexts(&self, verb: Verb) -> Result<Vec<Context>> {
        open(verb)?;
        let mut count = 0;
        // SAFETY: the count is ours to write.
        let list = made(verb, || unsafe { library::rdma_get_devices(&mut count) })?;
        let list = DeviceList(list);
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the library returned this number of entries.
        let entries = unsafe { slice(list.0, count) }.unwrap_or_default();
        let mut known = self.cm.lock();
        let is_new = |raw: &*mut ibv_context| !known.contexts.contains_key(&(*raw as usize));
        // Only a list with a new context is kept. Another one is freed at the end.
        let mut list = Some(list);
        if entries.iter().any(is_new) {
            known.lists.extend(list.take());
        }
        let mut contexts = Vec::new();
        for raw in entries {
            let (context, name) = self.borrow(verb, &mut known.contexts, *raw)?;
            let is_listed = |only: &Vec<String>| only.contains(&name);
            if self.only.as_ref().is_none_or(is_listed) {
                contexts.push(context);
            }
        }
        Ok(contexts)
    }

    /// The device that an id is bound to, and the library's own domain.
    ///
    /// The id is not bound to a device.
    pub(super) fn bound(&self, verb: Verb, id: &Id) -> Result<(Context, PdHandle)> {
        self.bound_or_not(verb, id)?
            .ok_or_else(|| invalid(verb, "id", "is bound to no device"))
    }

    pub(super) fn bound_or_not(&self, verb: Verb, id: &Id) -> Result<Option<(Context, PdHandle)>> {
        // SAFETY: the id is live, and nothing changes it (`Id`).
        let read = |id: *mut rdma_cm_id| unsafe { ((*id).verbs, (*id).pd) };
        let (raw, pd) = id.raw.with(verb, read)?;
        if raw.is_null() || pd.is_null() {
            return Ok(None);
        }
        if !self.cm.lock().contexts.contains_key(&(raw as usize)) {
            self.contexts(verb)?;
        }
        let mut known = self.cm.lock();
        let Some((context, own)) = known.contexts.get_mut(&(raw as usize)) else {
            let cause = Cause::Text("the id has a device that rdma_cm does not list".into());
            return Err(Error::new(verb, ErrorKind::Io, cause));
        };
        if let Some(own) = own {
            return Ok(Some((*context, *own)));
        }
        // Later the id may have the domain of its queue pair. Here it still has the library's own.
        let found = Pd {
            // SAFETY: the library keeps its domain as long as a list of the device.
            raw: unsafe { Owned::borrowed(pd) },
            context: *context,
            device: self.device(verb, *context)?,
            _of: None,
        };
        let pd = self.insert(|t| &mut t.pds, PdHandle::from_parts, *context, found);
        *own = Some(pd);
        Ok(Some((*context, pd)))
    }

    /// The context of a list, with the name of its device.
    fn borrow(
        &self,
        verb: Verb,
        known: &mut Contexts,
        raw: *mut ibv_context,
    ) -> Result<(Context, String)> {
        if let Some((context, _)) = known.get(&(raw as usize)) {
            return Ok((*context, self.device(verb, *context)?.name.clone()));
        }
        // SAFETY: the library keeps a context open as long as a list of its device.
        let (device, fd) = unsafe { (devices::borrowed(raw), (*raw).async_fd) };
        set_nonblocking(verb, fd)?;
        let name = device.name.clone();
        let id = self.tables.lock().contexts.insert(|_| Arc::new(device));
        let context = Context::from_parts(id.index, id.generation);
        known.insert(raw as usize, (context, None));
        Ok((context, name))
    }
}
