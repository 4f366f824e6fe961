//! Creating completion queues.

use std::ptr::null_mut;
use std::sync::atomic::AtomicU32;

use parking_lot::Mutex;
use verbs_abi::{ibv_comp_channel, ibv_context, ibv_cq, ibv_pd};
use verbs_api::{Context, Cq as CqHandle, CqInit, CqInitEx, Result, Verb};

use crate::errno::of_context;
use crate::hw::Hw;
use crate::objects::Cq;

impl Hw {
    /// Makes a CQ by `create`, which gets the context, and the channel and the parent domain or
    /// null.
    ///
    /// `create` returns a new CQ, or null.
    pub(crate) unsafe fn make_cq(
        &self,
        verb: Verb,
        context: Context,
        init: &CqInit,
        extended: Option<&CqInitEx>,
        create: impl FnOnce(*mut ibv_context, *mut ibv_comp_channel, *mut ibv_pd) -> *mut ibv_cq,
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
        let pd = extended.and_then(|init| init.parent_domain);
        let parent = pd.map(|pd| self.pd(verb, pd)).transpose()?;
        if let Some(pd) = pd {
            of_context(verb, pd, context)?;
        }
        let of = parent.as_ref().map(|pd| pd.raw.hold(verb)).transpose()?;
        let raw_parent = of.as_ref().map_or(null_mut(), |pd| pd.get());
        let held = channel
            .as_ref()
            .map(|(_, channel)| channel.raw.hold(verb))
            .transpose()?;
        let raw_channel = held.as_ref().map_or(null_mut(), |channel| channel.get());
        // SAFETY: the caller's promise.
        let raw = unsafe {
            device
                .raw
                .make(verb, |context| create(context, raw_channel, raw_parent))
        }?;
        drop((held, of));
        let address = raw.address();
        let cq = Cq {
            raw,
            context,
            cq_context: init.cq_context,
            comp_vector: init.comp_vector as u32,
            channel,
            extended: extended.map(|init| init.wc_flags),
            iteration: Mutex::default(),
            unacked: AtomicU32::new(0),
            async_unacked: AtomicU32::new(0),
            _parent: parent,
            device,
        };
        let handle = self.insert(|t| &mut t.cqs, CqHandle::from_parts, context, cq);
        self.tables.lock().cq_handles.insert(address, handle);
        Ok(handle)
    }
}
