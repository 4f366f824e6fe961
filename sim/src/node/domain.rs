//! Protection domains and address handles.

use verbs_api::{
    Ah as AhHandle, AhAttr, Cause, Context, Error, ErrorKind, Gid, Handle, Object, Pd as PdHandle,
    Result, Verb,
};

use super::{Gids, InContext, Node, in_range, in_use, invalid};
use crate::packet::{PortId, Route};
use crate::subnet::Subnet;

/// A protection domain.
#[derive(Clone, Debug)]
pub(super) struct Pd {
    context: Context,
    pub(super) mrs: u32,
    pub(super) mws: u32,
    pub(super) qps: u32,
    pub(super) ahs: u32,
    pub(super) srqs: u32,
    /// Work requests in the queues of its QPs and SRQs: their bytes belong to the device.
    pub(super) posted: u32,
    /// Not a program's: no diagnosis has it or its regions.
    pub(super) hidden: bool,
}

/// An address handle.
#[derive(Clone, Debug)]
pub(super) struct Ah {
    context: Context,
    pub(super) pd: u32,
    pub(super) attr: AhAttr,
    pub(super) route: Route,
    /// Sends whose slot is taken that go over it.
    pub(super) sends: u32,
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

impl Node {
    /// `ibv_alloc_pd`
    pub fn alloc_pd(&mut self, context: Context) -> Result<PdHandle> {
        self.find_context(Verb::AllocPd, context)?;
        self.check_room(
            Verb::AllocPd,
            "protection domains",
            self.pds.len(),
            self.attr.max_pd,
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
        self.add_object(context, Object::Pd, id.index);
        Ok(PdHandle::from_parts(context, id.index, id.generation))
    }

    /// As [`Sim::hide_pd`](crate::Sim::hide_pd).
    pub(crate) fn hide_pd(&mut self, pd: PdHandle) -> Result<()> {
        let index = Self::find(&self.pds, Verb::AllocPd, pd)?;
        self.pds.at_mut(index).hidden = true;
        Ok(())
    }

    /// `ibv_dealloc_pd`
    pub fn dealloc_pd(&mut self, pd: PdHandle) -> Result<()> {
        let index = Self::find(&self.pds, Verb::DeallocPd, pd)?;
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
        self.remove_object(pd.context(), Object::Pd, index);
        Ok(())
    }

    /// `ibv_create_ah`
    pub fn create_ah(&mut self, pd: PdHandle, attr: &AhAttr) -> Result<AhHandle> {
        let index = Self::find(&self.pds, Verb::CreateAh, pd)?;
        let route = self.route(Verb::CreateAh, attr)?;
        self.check_room(
            Verb::CreateAh,
            "address handles",
            self.ahs.len(),
            self.attr.max_ah,
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
        self.add_object(context, Object::Ah, id.index);
        Ok(AhHandle::from_parts(context, id.index, id.generation))
    }

    /// `ibv_destroy_ah`. Not while posted work names it (UD-16).
    pub fn destroy_ah(&mut self, ah: AhHandle) -> Result<()> {
        let verb = Verb::DestroyAh;
        let index = Self::find(&self.ahs, verb, ah)?;
        if self.ahs.at(index).sends > 0
            && let Some((qp, wr_id)) = self.user_of_ah(ah)
        {
            let text = format!(
                "work request {wr_id:#x} of {qp} needs {ah} until its completion has been polled"
            );
            let cause = Cause::Usage(text.into());
            return Err(Error::new(verb, ErrorKind::Usage, cause));
        }
        let own = self.ahs.remove(index);
        self.pds.at_mut(own.pd).ahs -= 1;
        self.remove_object(ah.context(), Object::Ah, index);
        Ok(())
    }

    pub(super) fn remove_domains_of(&mut self, context: Context) {
        for index in self.objects(context, Object::Ah) {
            self.ahs.remove(index);
        }
        for index in self.objects(context, Object::Pd) {
            self.pds.remove(index);
        }
    }

    /// Checks an address vector and looks up where it leads (AH-01, QP-STATE-29).
    pub(super) fn route(&self, verb: Verb, attr: &AhAttr) -> Result<Route> {
        let port = self.check_port(verb, attr.port_num)?;
        in_range(verb, "sl", i64::from(attr.sl), 0, 15)?;
        let from = PortId {
            node: self.id,
            port: attr.port_num,
        };
        let to = destination(self.subnet, &self.gids, attr);
        let Some(grh) = attr.grh else {
            if self.subnet.is_none() {
                let problem = "must be global: the port requires a GRH";
                return Err(invalid(verb, "ah_attr", problem));
            }
            return Ok(Route {
                from,
                to,
                sgid: port.gids[0],
                dgid: Gid::default(),
                global: false,
            });
        };
        let last = port.gids.len() as i64 - 1;
        in_range(verb, "sgid_index", i64::from(grh.sgid_index), 0, last)?;
        Ok(Route {
            from,
            to,
            sgid: port.gids[usize::from(grh.sgid_index)],
            dgid: grh.dgid,
            global: true,
        })
    }
}

/// The port to which an address leads. On InfiniBand that is the LID's, which looks whether the GID is
/// its own.
pub(super) fn destination(subnet: Option<Subnet>, gids: &Gids, attr: &AhAttr) -> Option<PortId> {
    let of_gid = attr.grh.map(|grh| gids.get(&grh.dgid).copied());
    match (subnet, of_gid) {
        (None, of_gid) => of_gid.flatten(),
        (Some(subnet), None) => subnet.port(attr.dlid),
        (Some(subnet), Some(of_gid)) => subnet.port(attr.dlid).filter(|to| Some(*to) == of_gid),
    }
}
