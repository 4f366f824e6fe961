//! Protection domains and address handles.

use verbs_api::behavior::Placement;
use verbs_api::table::Table;
use verbs_api::{
    Ah as AhHandle, AhAttr, Context, Handle, Object, OdpOps, Pd as PdHandle, Qp as QpHandle,
};

use super::Device;
use super::check::{check_unused, find, in_context, numbered};
use super::dm::Dm;
use super::key::Regions;
use super::mw::Windows;
use super::parent::parent;
use super::ports::Outside;
use super::refusal::Result;
use crate::memory::SharedMemory;
use crate::packet::Route;

/// Protection domains and their address handles, memory regions and windows; device memories.
#[derive(Clone, Debug)]
pub(crate) struct Domains {
    pub(crate) memory: SharedMemory,
    pub(crate) pds: Table<Pd>,
    pub(crate) ahs: Table<Ah>,
    pub(crate) regions: Regions,
    pub(crate) windows: Windows,
    pub(crate) dms: Table<Dm>,
}

/// The queue pair and the protection domain for which its peer accesses memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) qp: QpHandle,
    /// None for an XRC queue pair, until a request names an SRQ.
    pub(crate) pd: Option<u32>,
    /// The operations for which its transport can use on-demand regions.
    pub(crate) odp: OdpOps,
}

/// A protection domain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pd {
    context: Context,
    pub(crate) mrs: u32,
    pub(crate) mws: u32,
    pub(crate) qps: u32,
    pub(crate) ahs: u32,
    pub(crate) srqs: u32,
    /// The number of parent domains that were made from it.
    pub(super) parents: u32,
    /// The number of work requests in the queues of its QPs and SRQs, whose bytes belong to the
    /// device.
    pub(crate) posted: u32,
}

/// An address handle.
#[derive(Clone, Debug)]
pub(crate) struct Ah {
    context: Context,
    pub(crate) pd: u32,
    pub(crate) attr: AhAttr,
    pub(crate) route: Route,
    /// The number of sends that hold a slot and use it.
    pub(crate) sends: u32,
}

in_context!(Pd, context);
in_context!(Ah, context);

impl Device {
    /// Completes deferred writes. The program may reuse memory that its device wrote to.
    #[inline]
    pub(crate) fn flush_deferred_writes(&self) {
        // A profile may write data late, to find programs that read too early.
        if self.base.behavior.placement == Placement::Late {
            self.domains.memory.lock().settle();
        }
    }

    /// `ibv_alloc_pd`
    pub(crate) fn alloc_pd(&mut self, context: Context) -> Result<PdHandle> {
        let Self { base, domains, .. } = self;
        base.check_room("protection domains", &domains.pds, base.attr.max_pd)?;
        let id = domains.pds.insert(|_| Pd {
            context,
            ..Pd::default()
        });
        Ok(base.added(context, id, PdHandle::from_parts))
    }

    /// `ibv_dealloc_pd`
    pub(crate) fn dealloc_pd(&mut self, pd: PdHandle) -> Result<()> {
        if let Some(parent) = parent(pd) {
            return self.dealloc_parent(parent);
        }
        let index = find(&self.domains.pds, pd)?;
        let users = self.domains.pds.at(index);
        let users = [
            (Object::Qp, users.qps),
            (Object::Mr, users.mrs),
            (Object::Mw, users.mws),
            (Object::Ah, users.ahs),
            (Object::Srq, users.srqs),
            (Object::Pd, users.parents),
        ];
        // Objects of the domain would lose their access rights.
        check_unused(Object::Pd, &users)?;
        self.remove_pd(index);
        Ok(())
    }

    pub(super) fn remove_pd(&mut self, index: u32) {
        let own = self.domains.pds.remove(index);
        self.base.remove_object(own.context, Object::Pd, index);
    }

    /// `ibv_create_ah`. `outside` is why no other process has the destination.
    pub(crate) fn create_ah(
        &mut self,
        pd: PdHandle,
        attr: &AhAttr,
        outside: Outside,
    ) -> Result<AhHandle> {
        let Self { base, domains, .. } = self;
        let index = domains.find_pd(base, pd)?;
        // The route is found once, when the handle is created (AH-07).
        let route = self
            .ports
            .resolve(attr, base.behavior.unowned_gid, outside)?;
        base.check_room("address handles", &domains.ahs, base.attr.max_ah)?;
        let context = pd.context();
        let id = domains.ahs.insert(|_| Ah {
            context,
            pd: index,
            attr: *attr,
            route,
            sends: 0,
        });
        domains.pds.at_mut(index).ahs += 1;
        Ok(base.added_in(pd, id, AhHandle::from_parts))
    }

    /// Destroys an address handle that no posted work names.
    pub(crate) fn destroy_ah(&mut self, index: u32) {
        let own = self.domains.ahs.remove(index);
        self.domains.pds.at_mut(own.pd).ahs -= 1;
        self.base.remove_object(own.context, Object::Ah, index);
    }
}

impl Domains {
    pub(super) fn new(node: u32, key_reuse: bool, memory: SharedMemory) -> Self {
        Self {
            memory,
            pds: Table::default(),
            ahs: Table::default(),
            regions: Regions::new(node, numbered(key_reuse)),
            windows: Windows::default(),
            dms: Table::default(),
        }
    }
}
