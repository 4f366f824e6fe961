//! Creating completion queues.

use std::ptr::null_mut;
use std::sync::atomic::AtomicU32;

use parking_lot::Mutex;
use verbs_abi::{ibv_comp_channel, ibv_context, ibv_cq};
use verbs_api::{Context, Cq as CqHandle, CqInit, Result, Verb, WcFields};

use crate::errno::of_context;
use crate::hw::Hw;
use crate::objects::Cq;

impl Hw {
    /// Makes a CQ by `create`, which gets the context, and the channel or null.
    ///
    /// `create` returns a new CQ, or null.
    pub(crate) unsafe fn make_cq(
        &self,
        verb: Verb,
        context: Context,
        init: &CqInit,
        extended: Option<WcFields>,
        create: impl FnOnce(*mut ibv_context, *mut ibv_comp_channel) -> *mut ibv_cq,
    ) -> Result<CqHandle> {
        let device = self.device(verb, context)?;
        let channel = match init.channel {
            Some(channel) => Some((channel, self.channel(verb, channel)?)),
            None => None,
        };
        // A CQ and a channel of different contexts would mix two command files.
        if let Some(channel) = init.channel {
            of_context(verb, channel, context)?;
        }
        let held = channel
            .as_ref()
            .map(|(_, channel)| channel.raw.hold(verb))
            .transpose()?;
        let raw_channel = held.as_ref().map_or(null_mut(), |channel| channel.get());
        // SAFETY: the caller's promise.
        let raw = unsafe {
            device
                .raw
                .make(verb, |context| create(context, raw_channel))
        }?;
        drop(held);
        let address = raw.address();
        let cq = Cq {
            raw,
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
        let handle = self.insert(|t| &mut t.cqs, CqHandle::from_parts, context, cq);
        self.tables.lock().cq_handles.insert(address, handle);
        Ok(handle)
    }
}
