//! Protection domains and address handles.

use verbs_api::{Ah as AhHandle, AhAttr, Context, Handle, Object, Pd as PdHandle, Result, Verb};

use super::Device;
use super::check::{InContext, find, in_use};
use crate::packet::Route;

/// A protection domain.
#[derive(Clone, Debug)]
pub(crate) struct Pd {
    context: Context,
    pub(crate) mrs: u32,
    pub(crate) mws: u32,
    pub(crate) qps: u32,
    pub(crate) ahs: u32,
    pub(crate) srqs: u32,
    /// Work requests in the queues of its QPs and SRQs: their bytes belong to the device.
    pub(crate) posted: u32,
    /// Not a program's: no diagnosis has it or its regions.
    pub(crate) hidden: bool,
}

/// An address handle.
#[derive(Clone, Debug)]
pub(crate) struct Ah {
    context: Context,
    pub(crate) pd: u32,
    pub(crate) attr: AhAttr,
    pub(crate) route: Route,
    /// Sends whose slot is taken that go over it.
    pub(crate) sends: u32,
}

impl InContext for Pd {
    fn context(&self) -> Context {
        self.context
    }
}

impl InContext for Ah {
    fn context(&self) -> Context {
        self.context
    }
}

impl Device {
    /// `ibv_alloc_pd`
    pub(crate) fn alloc_pd(&mut self, context: Context) -> Result<PdHandle> {
        self.base.find_context(Verb::AllocPd, context)?;
        self.base.check_room(
            Verb::AllocPd,
            "protection domains",
            self.pds.len(),
            self.base.attr.max_pd,
        )?;
        let id = self.pds.insert(|_| Pd {
            context,
            mrs: 0,
            mws: 0,
            qps: 0,
            ahs: 0,
            srqs: 0,
            posted: 0,
            hidden: false,
        });
        self.base.add_object(context, Object::Pd, id.index);
        Ok(PdHandle::from_parts(context, id.index, id.generation))
    }

    /// As [`Sim::hide_pd`](crate::Sim::hide_pd).
    pub(crate) fn hide_pd(&mut self, pd: PdHandle) -> Result<()> {
        let index = find(&self.pds, Verb::AllocPd, pd)?;
        self.pds.at_mut(index).hidden = true;
        Ok(())
    }

    /// `ibv_dealloc_pd`
    pub(crate) fn dealloc_pd(&mut self, pd: PdHandle) -> Result<()> {
        let index = find(&self.pds, Verb::DeallocPd, pd)?;
        let users = self.pds.at(index);
        let users = [
            (Object::Qp, users.qps),
            (Object::Mr, users.mrs),
            (Object::Mw, users.mws),
            (Object::Ah, users.ahs),
            (Object::Srq, users.srqs),
        ];
        if let Some((by, count)) = users.into_iter().find(|(_, count)| *count > 0) {
            return Err(in_use(Verb::DeallocPd, Object::Pd, by, count));
        }
        self.pds.remove(index);
        self.base.remove_object(pd.context(), Object::Pd, index);
        Ok(())
    }

    /// `ibv_create_ah`
    pub(crate) fn create_ah(&mut self, pd: PdHandle, attr: &AhAttr) -> Result<AhHandle> {
        let index = find(&self.pds, Verb::CreateAh, pd)?;
        let route = self.ports.route(Verb::CreateAh, attr)?;
        self.base.check_room(
            Verb::CreateAh,
            "address handles",
            self.ahs.len(),
            self.base.attr.max_ah,
        )?;
        let context = pd.context();
        let id = self.ahs.insert(|_| Ah {
            context,
            pd: index,
            attr: *attr,
            route,
            sends: 0,
        });
        self.pds.at_mut(index).ahs += 1;
        self.base.add_object(context, Object::Ah, id.index);
        Ok(AhHandle::from_parts(context, id.index, id.generation))
    }

    /// `ibv_destroy_ah`, of one that no posted work names.
    pub(crate) fn destroy_ah(&mut self, index: u32) {
        let own = self.ahs.remove(index);
        self.pds.at_mut(own.pd).ahs -= 1;
        self.base.remove_object(own.context, Object::Ah, index);
    }

    pub(crate) fn remove_domains_of(&mut self, context: Context) {
        for index in self.base.objects(context, Object::Ah) {
            self.ahs.remove(index);
        }
        for index in self.base.objects(context, Object::Pd) {
            self.pds.remove(index);
        }
    }
}
