//! Parent domains and thread domains.

use std::ptr::null_mut;

use verbs_abi::{ibv_parent_domain_init_attr, ibv_pd, ibv_td_init_attr, inline};
use verbs_api::{Context, Handle, Pd as PdHandle, Result, Td as TdHandle, Verb};

use crate::errno::of_context;
use crate::hw::{Hw, destroy};
use crate::objects::{Pd, Td};

impl Hw {
    /// `ibv_alloc_td`
    pub(crate) fn alloc_thread(&self, context: Context) -> Result<TdHandle> {
        let verb = Verb::AllocTd;
        let device = self.device(verb, context)?;
        let mut attr = ibv_td_init_attr::default();
        // SAFETY: the context is live, and the thread domain new.
        let raw = unsafe {
            let alloc = |context| inline::alloc_td(context, &mut attr);
            device.raw.make(verb, alloc)
        }?;
        let td = Td {
            raw,
            context,
            _device: device,
        };
        Ok(self.insert(|t| &mut t.tds, TdHandle::from_parts, context, td))
    }

    /// `ibv_dealloc_td`
    pub(crate) fn dealloc_thread(&self, td: TdHandle) -> Result<()> {
        destroy(Verb::DeallocTd, &self.td(Verb::DeallocTd, td)?.raw)?;
        self.tables.lock().tds.remove(td.index());
        Ok(())
    }

    /// `ibv_alloc_parent_domain`
    pub(crate) fn alloc_parent(&self, pd: PdHandle, td: Option<TdHandle>) -> Result<PdHandle> {
        let verb = Verb::AllocParentDomain;
        let context = pd.context();
        let from = self.pd(verb, pd)?;
        let thread = td.map(|td| self.td(verb, td)).transpose()?;
        // Libraries do not compare the contexts.
        if let Some(td) = td {
            of_context(verb, td, context)?;
        }
        let held = thread.as_ref().map(|td| td.raw.hold(verb)).transpose()?;
        let raw_td = held.as_ref().map_or(null_mut(), |td| td.get());
        let make = |pd: *mut ibv_pd| {
            let mut attr = ibv_parent_domain_init_attr {
                pd,
                td: raw_td,
                ..ibv_parent_domain_init_attr::default()
            };
            // SAFETY: the domains are live, and so is their context.
            unsafe { inline::alloc_parent_domain((*pd).context, &mut attr) }
        };
        // SAFETY: the parent domain is new.
        let raw = unsafe { from.raw.make(verb, make) }?;
        drop(held);
        let parent = Pd {
            raw,
            context,
            device: from.device.clone(),
            _of: Some((from, thread)),
        };
        Ok(self.insert(|t| &mut t.pds, PdHandle::from_parts, context, parent))
    }
}
