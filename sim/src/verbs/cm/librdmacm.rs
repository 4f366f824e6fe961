//! The work of librdmacm in addition to the kernel's: it opens the devices, and moves queue pairs
//! to the states that connections need.

use core::net::SocketAddr;

use verbs_api::cm::{Cm, CmEvent, CmEventType, CmId, CmParam, ConnParam};
use verbs_api::{
    Cause, Context, Error, ErrorKind, Handle, Pd, Qp, QpAttr, QpAttrMask, QpInit, QpState, QpType,
    Result, Verb, Verbs, Wait,
};

use crate::cm::OwnQp;
use crate::device::{self, Answer, Refusal, node_of, same_context};
use crate::node::Node;
use crate::verbs::Sim;

impl Sim {
    /// A context and a protection domain of each node, for all ids that are bound to it.
    pub(crate) fn cm_contexts(&self, verb: Verb) -> Result<Vec<(Context, Pd)>> {
        self.runtime.check_thread(verb)?;
        let known = self.look_at(|manager, _| manager.contexts.clone());
        if !known.is_empty() {
            return Ok(known);
        }
        for node in 0..self.runtime.config.nodes {
            self.prepare_node(verb, node)?;
        }
        self.runtime.with(|fabric| {
            // Another thread may have opened them first.
            if fabric.cm_bridge.manager.contexts.is_empty() {
                let nodes = 0..fabric.nodes();
                let open = |node| fabric.work(node, Node::open_for_ids);
                let opened: device::Result<_> = nodes.map(open).collect();
                fabric.cm_bridge.manager.contexts = opened.by(verb)?;
            }
            Ok(fabric.cm_bridge.manager.contexts.clone())
        })
    }

    pub(crate) fn make_qp(&self, id: CmId, pd: Option<Pd>, init: &QpInit) -> Result<Qp> {
        let verb = Verb::CmCreateQp;
        let attr = self.query_id(id)?;
        let (Some(verbs), Some(own_pd)) = (attr.verbs, attr.pd) else {
            return Err(refused(verb, format!("{id} is bound to no device")));
        };
        if let Some(qp) = attr.qp {
            return Err(refused(verb, format!("{id} has {qp} already")));
        }
        let pd = pd.unwrap_or(own_pd);
        same_context(verbs, pd).by(verb)?;
        let plain = self.unobserved();
        let qp = plain.create_qp(pd, init)?;
        let ready = || match init.qp_type {
            QpType::Ud => self.ready_datagrams(id, qp),
            _ => self.set_qp_state(id, qp, QpState::Init),
        };
        let kept = self.start_ece(id, qp);
        let kept = kept.and_then(|()| ready());
        let kept = kept.and_then(|()| self.settle_ece(id, qp));
        let kept = kept.and_then(|()| self.assign_qp(verb, id, Some(qp)));
        if let Err(error) = kept {
            plain.destroy_qp(qp, Wait::Poll)?;
            return Err(error);
        }
        Ok(qp)
    }

    /// Sets or removes the queue pair of an id.
    pub(crate) fn assign_qp(&self, verb: Verb, id: CmId, qp: Option<Qp>) -> Result<()> {
        let own = qp.map(|qp| self.own_qp(qp)).transpose()?;
        self.look_at(|manager, _| manager.ids.set_qp(id, own))
            .by(verb)
    }

    fn own_qp(&self, qp: Qp) -> Result<OwnQp> {
        let found = self.unobserved().query_qp(qp, QpAttrMask::CAP)?;
        Ok(OwnQp {
            qp,
            qp_num: found.qp_num,
            has_srq: found.init.srq.is_some(),
        })
    }

    pub(crate) fn remove_qp(&self, id: CmId, wait: Wait) -> Result<()> {
        let verb = Verb::CmDestroyQp;
        let own = self.look_at(|manager, _| manager.ids.qp_of(id)).by(verb)?;
        let own = own.ok_or_else(|| refused(verb, format!("{id} has no qp")))?;
        self.unobserved().destroy_qp(own.qp, wait)?;
        self.assign_qp(verb, id, None)
    }

    pub(crate) fn accept_request(&self, id: CmId, param: &ConnParam<'_>) -> Result<()> {
        let asked = self.look_at(|manager, host| {
            manager.check_accept(host, id, param)?;
            // Only a connection has reads whose limits the queue pair needs before it can receive.
            let is_datagram = manager.query_id(id)?.ps.is_datagram();
            if !is_datagram {
                manager.settle_reads(host, id, param);
            }
            Ok::<_, Refusal>((manager.ids.qp_of(id)?, is_datagram))
        });
        let (own, is_datagram) = asked.by(Verb::CmAccept)?;
        if let Some(own) = own.filter(|_| !is_datagram) {
            self.ready_qp(id, own.qp)?;
        }
        let accepted = self.look_at(|manager, host| manager.accept(host, id, param));
        // The peer learns of the refusal, and its queue pair may never receive.
        if accepted.is_err() {
            self.stop_qp(own);
        }
        accepted.by(Verb::CmAccept)
    }

    pub(crate) fn end_connection(&self, id: CmId) -> Result<()> {
        let verb = Verb::CmDisconnect;
        let own = self.look_at(|manager, _| {
            manager.check_connected(id)?;
            manager.ids.qp_of(id)
        });
        let own = own.by(verb)?;
        self.runtime.with(|fabric| fabric.note_disconnect(id));
        self.stop_qp(own);
        self.look_at(|manager, _| manager.disconnect(id)).by(verb)
    }

    pub(crate) fn leave_group(&self, id: CmId, group: SocketAddr) -> Result<()> {
        let left = self.look_at(|manager, _| {
            let group = manager.leave_multicast(id, group)?;
            Ok::<_, Refusal>((manager.ids.qp_of(id)?, group))
        });
        let (own, (gid, lid)) = left.by(Verb::CmLeaveMulticast)?;
        match own {
            Some(own) => self.unobserved().detach_mcast(own.qp, gid, lid),
            None => Ok(()),
        }
    }

    /// Moves the queue pair of an id as an event requires, when the event is read.
    pub(crate) fn process_event(&self, mut event: CmEvent) -> CmEvent {
        let id = event.id;
        let own = self.look_at(|manager, _| manager.ids.qp_of(id));
        // An id that was destroyed in the meantime has no queue pair.
        let Ok(Some(own)) = own else { return event };
        match (event.event, &event.param) {
            (CmEventType::ConnectResponse, _) => {
                let establish = || self.look_at(|manager, _| manager.establish(id));
                let agreed = self.take_ece(id, own.qp);
                let ready = agreed.and_then(|()| self.ready_qp(id, own.qp));
                if ready.is_ok() && establish().is_ok() {
                    event.event = CmEventType::Established;
                } else {
                    (event.event, event.status) = (CmEventType::ConnectError, FAILED);
                    self.stop_qp(Some(own));
                    // A rejection is not possible if the other side has given up.
                    let _ = self.look_at(|manager, _| manager.reject(id, &[]));
                }
            }
            (CmEventType::Rejected, _) => self.stop_qp(Some(own)),
            (CmEventType::MulticastJoin, CmParam::Ud(data)) => {
                let group = data.ah_attr.grh.map(|grh| grh.dgid).unwrap_or_default();
                let attached = self
                    .unobserved()
                    .attach_mcast(own.qp, group, data.ah_attr.dlid);
                if attached.is_err() {
                    (event.event, event.status) = (CmEventType::MulticastError, FAILED);
                }
            }
            _ => {}
        }
        event
    }

    /// Moves a queue pair to RTS.
    fn ready_qp(&self, id: CmId, qp: Qp) -> Result<()> {
        let mut states = [QpState::Init, QpState::Rtr, QpState::Rts].into_iter();
        states.try_for_each(|state| self.set_qp_state(id, qp, state))?;
        self.runtime.with(|fabric| {
            let origin = fabric.cm_bridge.manager.ids.origin(id);
            let node = fabric.node_mut(node_of(qp.context()));
            if let Ok(index) = node.find_qp(qp) {
                node.qps.at_mut(index).common.by_cm = origin;
            }
        });
        Ok(())
    }

    /// Moves a datagram queue pair to RTS.
    fn ready_datagrams(&self, id: CmId, qp: Qp) -> Result<()> {
        self.set_qp_state(id, qp, QpState::Init)?;
        self.move_qp(qp, QpState::Rtr, QpAttrMask::STATE)?;
        self.move_qp(qp, QpState::Rts, QpAttrMask::STATE | QpAttrMask::SQ_PSN)
    }

    fn set_qp_state(&self, id: CmId, qp: Qp, state: QpState) -> Result<()> {
        let (attr, mask) = self.init_qp_attr(id, state)?;
        self.unobserved().modify_qp(qp, &attr, mask)
    }

    /// Moves a queue pair to ERR. One that the program destroyed itself stays destroyed.
    fn stop_qp(&self, own: Option<OwnQp>) {
        if let Some(own) = own {
            let _ = self.move_qp(own.qp, QpState::Err, QpAttrMask::STATE);
        }
    }

    fn move_qp(&self, qp: Qp, qp_state: QpState, mask: QpAttrMask) -> Result<()> {
        let attr = QpAttr {
            qp_state,
            ..QpAttr::default()
        };
        self.unobserved().modify_qp(qp, &attr, mask)
    }
}

/// The status of an event that the library itself makes from another.
const FAILED: i32 = -1;

fn refused(verb: Verb, text: String) -> Error {
    Error::new(verb, ErrorKind::Invalid, Cause::Text(text.into()))
}
