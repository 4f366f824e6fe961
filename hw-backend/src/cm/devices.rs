//! The contexts of rdma_cm: opened by the library, one for each device, and kept by it.

use std::sync::Arc;

use verbs_abi::{ibv_context, library, rdma_cm_id};
use verbs_api::{Cause, Context, Error, ErrorKind, Handle, Pd as PdHandle, Result, Verb};

use super::objects::{DeviceList, EventChannel, Id};
use crate::devices;
use crate::errno::{invalid, made};
use crate::hw::Hw;
use crate::objects::{Device, Pd};
use crate::owner::Owned;
use crate::wait::set_nonblocking;

impl Hw {
    /// `rdma_get_devices`
    pub(super) fn contexts(&self, verb: Verb) -> Result<Vec<Context>> {
        open(verb)?;
        let mut count = 0;
        // SAFETY: the count is ours to write.
        let list = made(verb, || unsafe { library::rdma_get_devices(&mut count) })?;
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the library says so many entries.
        let raw = unsafe { std::slice::from_raw_parts(list, count) }.to_vec();
        // With a list of its device a context stays open, and so does its domain.
        let before = self.cm.lock().devices.replace(DeviceList(list));
        drop(before);
        let mut contexts = Vec::new();
        for context in raw {
            let (handle, device) = self.context_of(verb, context)?;
            let only = self.only.as_ref();
            if only.is_none_or(|only| only.contains(&device.name)) {
                contexts.push(handle);
            }
        }
        Ok(contexts)
    }

    /// The device that an id is bound to, and the domain of the library's own.
    ///
    /// # Errors
    /// It is bound to none.
    pub(super) fn bound(&self, verb: Verb, id: &Id) -> Result<(Context, PdHandle)> {
        self.bound_or_not(verb, id)?
            .ok_or_else(|| invalid(verb, "id", "is bound to no device"))
    }

    pub(super) fn bound_or_not(&self, verb: Verb, id: &Id) -> Result<Option<(Context, PdHandle)>> {
        // SAFETY: the id is live, and nothing changes it (`Id`).
        let read = |id: *mut rdma_cm_id| unsafe { ((*id).verbs, (*id).pd) };
        let (context, pd) = id.raw.with(verb, read)?;
        if context.is_null() || pd.is_null() {
            return Ok(None);
        }
        if self.cm.lock().devices.is_none() {
            self.contexts(verb)?;
        }
        let (handle, device) = self.context_of(verb, context)?;
        // Later the id may have that of its queue pair; this is the first look.
        let known = self.cm.lock().contexts[&(context as usize)].1;
        if let Some(known) = known {
            return Ok(Some((handle, known)));
        }
        let pd = Pd {
            // SAFETY: the library keeps its domain as long as the list of devices.
            raw: unsafe { Owned::borrowed(pd) },
            context: handle,
            device,
        };
        let pd = self.insert(|t| &mut t.pds, PdHandle::from_parts, handle, pd);
        let at = (context as usize, (handle, Some(pd)));
        self.cm.lock().contexts.extend([at]);
        Ok(Some((handle, pd)))
    }

    fn context_of(&self, verb: Verb, raw: *mut ibv_context) -> Result<(Context, Arc<Device>)> {
        let mut known = self.cm.lock();
        let mut tables = self.tables.lock();
        if let Some((context, _)) = known.contexts.get(&(raw as usize)) {
            let device = tables.contexts.at(context.index()).clone();
            return Ok((*context, device));
        }
        // SAFETY: the library keeps a context open as long as a list of its device.
        let (device, fd) = unsafe { (Arc::new(devices::borrowed(raw)), (*raw).async_fd) };
        set_nonblocking(verb, fd)?;
        let id = tables.contexts.insert(|_| device.clone());
        let context = Context::from_parts(id.index, id.generation);
        known.contexts.insert(raw as usize, (context, None));
        Ok((context, device))
    }
}

/// Opens the library, if it is not open yet.
pub(super) fn open(verb: Verb) -> Result<()> {
    library::open_librdmacm().map_err(|why| {
        let cause = Cause::Text(why.to_string().into());
        Error::new(verb, ErrorKind::NoDevice, cause)
    })
}

/// Whether this machine has rdma_cm.
pub(crate) fn is_here() -> bool {
    EventChannel::new(Verb::CmCreateEventChannel).is_ok()
}
