//! What librdmacm does beside the kernel: it opens the devices, and brings queue pairs to the states that connections
//! need.

use core::net::SocketAddr;

use verbs_api::cm::{CmEvent, CmEventType, CmId, CmParam, ConnParam};
use verbs_api::{
    Cause, Context, Error, ErrorKind, Handle, Object, Pd, Qp, QpAttr, QpAttrMask, QpInit, QpState,
    QpType, Result, Verb, Verbs, Wait,
};

use crate::cm::OwnQp;
use crate::verbs::Sim;

/// The library around a simulation.
pub(crate) struct Library<'s>(pub(crate) &'s Sim);

impl Library<'_> {
    /// By node, a context and a protection domain for all ids that are bound to it.
    pub(crate) fn contexts(&self, verb: Verb) -> Result<Vec<(Context, Pd)>> {
        self.0.runtime.check_thread(verb)?;
        let known = self.0.look_at(|manager, _| manager.contexts.clone());
        if !known.is_empty() {
            return Ok(known);
        }
        let plain = self.0.unobserved();
        let open = |node| {
            let context = plain.open_device(&format!("sim{node}"))?;
            Ok((context, plain.alloc_pd(context)?))
        };
        let opened: Result<Vec<_>> = (0..self.0.runtime.config.nodes).map(open).collect();
        let opened = opened?;
        let first = self.0.runtime.with(|fabric| {
            let (first, is_new) = fabric.manage(|manager, _| {
                let is_new = manager.contexts.is_empty();
                if is_new {
                    manager.contexts.clone_from(&opened);
                }
                (manager.contexts.clone(), is_new)
            });
            for (node, (context, pd)) in (0..).zip(&first).filter(|_| is_new) {
                fabric.work(node, |node| {
                    node.device.base.of_ids = Some((*context, pd.index()));
                });
            }
            first
        });
        // Another thread may have been first.
        if first != opened {
            for (context, _) in opened {
                plain.close_device(context)?;
            }
        }
        Ok(first)
    }

    pub(crate) fn make_qp(
        &self,
        verb: Verb,
        id: CmId,
        pd: Option<Pd>,
        init: &QpInit,
    ) -> Result<Qp> {
        let attr = self.0.look_at(|manager, _| manager.query_id(id))?;
        let (Some(verbs), Some(own_pd)) = (attr.verbs, attr.pd) else {
            return Err(refused(verb, format!("{id} is bound to no device")));
        };
        if let Some(qp) = attr.qp {
            return Err(refused(verb, format!("{id} has {qp} already")));
        }
        let pd = pd.unwrap_or(own_pd);
        if pd.context() != verbs {
            let cause = Cause::Mismatch {
                object: Object::Pd,
                must_share: "context",
            };
            return Err(Error::new(verb, ErrorKind::Invalid, cause));
        }
        let plain = self.0.unobserved();
        let qp = plain.create_qp(pd, init)?;
        let kept = match init.qp_type {
            QpType::Ud => self.ready_datagrams(id, qp),
            _ => self.set_state(id, qp, QpState::Init),
        };
        let kept = kept.and_then(|()| self.set_qp(verb, id, Some(qp)));
        if let Err(error) = kept {
            plain.destroy_qp(qp, Wait::Poll)?;
            return Err(error);
        }
        Ok(qp)
    }

    /// An id has this queue pair from now on, or none.
    pub(crate) fn set_qp(&self, verb: Verb, id: CmId, qp: Option<Qp>) -> Result<()> {
        let own = qp.map(|qp| self.own_qp(qp)).transpose()?;
        self.0
            .look_at(|manager, _| manager.ids.set_qp(verb, id, own))
    }

    fn own_qp(&self, qp: Qp) -> Result<OwnQp> {
        let found = self.0.unobserved().query_qp(qp, QpAttrMask::CAP)?;
        Ok(OwnQp {
            qp,
            qp_num: found.qp_num,
            has_srq: found.init.srq.is_some(),
        })
    }

    pub(crate) fn remove_qp(&self, verb: Verb, id: CmId, wait: Wait) -> Result<()> {
        let own = self.0.look_at(|manager, _| manager.ids.qp_of(verb, id))?;
        let own = own.ok_or_else(|| refused(verb, format!("{id} has no qp")))?;
        self.0.unobserved().destroy_qp(own.qp, wait)?;
        self.set_qp(verb, id, None)
    }

    pub(crate) fn accept_request(&self, verb: Verb, id: CmId, param: &ConnParam<'_>) -> Result<()> {
        let (own, is_datagram) = self.0.look_at(|manager, host| {
            manager.ids.check_accept(host, id, param)?;
            let is_datagram = manager.query_id(id)?.ps.is_datagram();
            if !is_datagram {
                manager.ids.settle_reads(host, id, param);
            }
            Ok::<_, Error>((manager.ids.qp_of(verb, id)?, is_datagram))
        })?;
        if let Some(own) = own.filter(|_| !is_datagram) {
            self.ready(id, own.qp)?;
        }
        let accepted = self
            .0
            .look_at(|manager, host| manager.accept(host, id, param));
        if accepted.is_err() {
            self.stop(own);
        }
        accepted
    }

    pub(crate) fn end_connection(&self, verb: Verb, id: CmId) -> Result<()> {
        let own = self.0.look_at(|manager, _| {
            manager.ids.check_connected(verb, id)?;
            manager.ids.qp_of(verb, id)
        })?;
        self.stop(own);
        self.0.look_at(|manager, _| manager.disconnect(id))
    }

    pub(crate) fn leave_group(&self, verb: Verb, id: CmId, group: SocketAddr) -> Result<()> {
        let (own, (gid, lid)) = self.0.look_at(|manager, _| {
            let group = manager.ids.leave_multicast(id, group)?;
            Ok::<_, Error>((manager.ids.qp_of(verb, id)?, group))
        })?;
        match own {
            Some(own) => self.0.unobserved().detach_mcast(own.qp, gid, lid),
            None => Ok(()),
        }
    }

    /// What an event means for the queue pair of its id, when it is read.
    pub(crate) fn process(&self, mut event: CmEvent) -> CmEvent {
        let id = event.id;
        let own = self
            .0
            .look_at(|manager, _| manager.ids.qp_of(Verb::CmGetEvent, id));
        // An id that is destroyed meanwhile has none.
        let Ok(Some(own)) = own else { return event };
        match (event.event, &event.param) {
            (CmEventType::ConnectResponse, _) => {
                let established = self
                    .ready(id, own.qp)
                    .and_then(|()| self.0.look_at(|manager, _| manager.establish(id)));
                event.event = match established {
                    Ok(()) => CmEventType::Established,
                    Err(_) => {
                        event.status = FAILED;
                        self.stop(Some(own));
                        // Nothing is to be refused if the other side has given up.
                        let _ = self.0.look_at(|manager, _| manager.reject(id, &[]));
                        CmEventType::ConnectError
                    }
                };
            }
            (CmEventType::Rejected, _) => self.stop(Some(own)),
            (CmEventType::MulticastJoin, CmParam::Ud(data)) => {
                let group = data.ah_attr.grh.map(|grh| grh.dgid).unwrap_or_default();
                let attached = self
                    .0
                    .unobserved()
                    .attach_mcast(own.qp, group, data.ah_attr.dlid);
                if attached.is_err() {
                    event.event = CmEventType::MulticastError;
                    event.status = FAILED;
                }
            }
            _ => {}
        }
        event
    }

    /// Brings a queue pair to RTS.
    fn ready(&self, id: CmId, qp: Qp) -> Result<()> {
        let states = [QpState::Init, QpState::Rtr, QpState::Rts];
        let mut states = states.into_iter();
        states.try_for_each(|state| self.set_state(id, qp, state))
    }

    /// Brings a queue pair of datagrams to RTS.
    fn ready_datagrams(&self, id: CmId, qp: Qp) -> Result<()> {
        self.set_state(id, qp, QpState::Init)?;
        let states = [
            (QpState::Rtr, QpAttrMask::STATE),
            (QpState::Rts, QpAttrMask::STATE | QpAttrMask::SQ_PSN),
        ];
        states.into_iter().try_for_each(|(qp_state, mask)| {
            let attr = QpAttr {
                qp_state,
                ..QpAttr::default()
            };
            self.0.unobserved().modify_qp(qp, &attr, mask)
        })
    }

    fn set_state(&self, id: CmId, qp: Qp, state: QpState) -> Result<()> {
        let (attr, mask) = self
            .0
            .look_at(|manager, _| manager.ids.init_qp_attr(id, state))?;
        self.0.unobserved().modify_qp(qp, &attr, mask)
    }

    /// Brings a queue pair to ERR. One that the program has destroyed by itself stays gone.
    fn stop(&self, own: Option<OwnQp>) {
        let attr = QpAttr {
            qp_state: QpState::Err,
            ..QpAttr::default()
        };
        if let Some(own) = own {
            let _ = self
                .0
                .unobserved()
                .modify_qp(own.qp, &attr, QpAttrMask::STATE);
        }
    }
}

/// The status of an event that the library itself makes of another.
const FAILED: i32 = -1;

fn refused(verb: Verb, text: String) -> Error {
    Error::new(verb, ErrorKind::Invalid, Cause::Text(text.into()))
}
