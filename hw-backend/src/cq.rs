//! Making completion queues.

use std::sync::atomic::AtomicU32;

use parking_lot::Mutex;
use verbs_api::{
    Cause, Context, Cq as CqHandle, CqInit, Error, ErrorKind, Handle, Object, Result, Verb,
    WcFields,
};

use crate::errno::destroyed;
use crate::hw::Hw;
use crate::objects::Cq;
use crate::owner::Owned;
use crate::sys;

impl Hw {
    /// Makes a CQ by `create`, which gets its context, and its channel or null.
    pub(crate) fn make_cq(
        &self,
        verb: Verb,
        context: Context,
        init: &CqInit,
        extended: Option<WcFields>,
        create: impl FnOnce(
            *mut sys::ibv_context,
            *mut sys::ibv_comp_channel,
        ) -> Result<*mut sys::ibv_cq>,
    ) -> Result<CqHandle> {
        let device = self.device(verb, context)?;
        let channel = match init.channel {
            Some(channel) => Some((channel, self.channel(verb, channel)?)),
            None => None,
        };
        // A CQ of one context on a channel of another would mix two command files.
        if init
            .channel
            .is_some_and(|channel| channel.context() != context)
        {
            let cause = Cause::Mismatch {
                object: Object::CompChannel,
                must_share: "context",
            };
            return Err(Error::new(verb, ErrorKind::Invalid, cause));
        }
        let create = |context| match &channel {
            Some((_, channel)) => channel.raw.with(|channel| create(context, channel)),
            None => Ok(create(context, std::ptr::null_mut())),
        };
        let raw = device
            .raw
            .with(create)
            .map_err(destroyed(verb, Object::Context))?;
        let raw = raw.map_err(destroyed(verb, Object::CompChannel))??;
        let cq = Cq {
            // SAFETY: just made, and ours.
            raw: unsafe { Owned::new(raw, sys::ibv_destroy_cq) },
            context,
            cq_context: init.cq_context,
            comp_vector: init.comp_vector as u32,
            channel,
            extended,
            iteration: Mutex::default(),
            unacked: AtomicU32::new(0),
            async_unacked: AtomicU32::new(0),
            _device: device,
        };
        let handle = self.insert(|t| &mut t.cqs, context, cq);
        self.tables.lock().cq_handles.insert(raw as usize, handle);
        Ok(handle)
    }
}
