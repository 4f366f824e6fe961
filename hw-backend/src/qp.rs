//! Creating and destroying queue pairs.

use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use verbs_abi::{
    IBV_QP_INIT_ATTR_PD, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, ibv_qp, ibv_qp_cap, ibv_qp_init_attr,
    ibv_qp_init_attr_ex, inline, library,
};
use verbs_api::{
    Handle, Object, Pd as PdHandle, Qp as QpHandle, QpInit, QpType, Result, Verb, Wait,
};

use crate::cm::objects::Id;
use crate::errno::of_context;
use crate::hw::Hw;
use crate::objects::Qp;
use crate::owner::Held;

impl Hw {
    /// Makes a queue pair by `create`, which gets attributes with live objects. Their mask is 0 for
    /// a plain queue pair.
    pub(crate) fn make_qp(
        &self,
        verb: Verb,
        pd: PdHandle,
        init: &QpInit,
        id: Option<Arc<Id>>,
        create: impl FnOnce(&mut ibv_qp_init_attr_ex) -> *mut ibv_qp,
    ) -> Result<QpHandle> {
        let parent = self.pd(verb, pd)?;
        let mut cqs = vec![self.cq(verb, init.send_cq)?];
        if init.qp_type != QpType::XrcSend {
            cqs.push(self.cq(verb, init.recv_cq)?);
        }
        of_context(verb, init.send_cq, pd.context())?;
        if cqs.len() > 1 {
            of_context(verb, init.recv_cq, pd.context())?;
        }
        let held_cqs = cqs.iter().map(|cq| cq.raw.hold(verb));
        let held_cqs: Vec<_> = held_cqs.collect::<Result<_>>()?;
        let srq = init.srq.map(|srq| self.srq(verb, srq)).transpose()?;
        if let Some(srq) = init.srq {
            of_context(verb, srq, pd.context())?;
        }
        let held_srq = srq.as_ref().map(|srq| srq.raw.hold(verb)).transpose()?;
        let mut attr = ibv_qp_init_attr_ex::from(ibv_qp_init_attr::to_c(
            init,
            held_cqs[0].get(),
            held_cqs.get(1).map_or(null_mut(), Held::get),
            held_srq.as_ref().map_or(null_mut(), Held::get),
        ));
        if !init.send_ops.is_empty() || init.qp_type == QpType::XrcSend {
            attr.comp_mask = IBV_QP_INIT_ATTR_PD;
        }
        if !init.send_ops.is_empty() {
            attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
            attr.send_ops_flags = init.send_ops.bits();
        }
        let create = |pd| {
            attr.pd = pd;
            create(&mut attr)
        };
        // SAFETY: the QP is new; PD, CQs and SRQ are live, since they are held.
        let raw = unsafe { parent.raw.make(verb, create) }?;
        drop((held_cqs, held_srq));
        // SAFETY: the QP is live.
        let qp_num = raw.with(verb, |qp: *mut ibv_qp| unsafe { (*qp).qp_num })?;
        let address = raw.address();
        let qp = Qp {
            raw,
            context: pd.context(),
            init: init.cap(ibv_qp_cap::from_c(&attr.cap)),
            qp_num,
            async_unacked: AtomicU32::new(0),
            connection: Mutex::new(None),
            id,
            cqs,
            srq,
            _xrcd: None,
            device: parent.device.clone(),
            pd: Some(parent),
        };
        let handle = self.insert(|t| &mut t.qps, QpHandle::from_parts, pd.context(), qp);
        self.tables.lock().qp_handles.insert(address, handle);
        Ok(handle)
    }

    /// Destroys a queue pair after its events have been acknowledged.
    pub(crate) fn remove_qp(&self, verb: Verb, qp: QpHandle, wait: Wait) -> Result<()> {
        let found = self.qp(verb, qp)?;
        let unacked = || found.async_unacked.load(Ordering::Relaxed);
        let address = found.raw.address();
        self.when_acknowledged(verb, Object::Qp, wait, unacked, || {
            let _rest = found.cqs_at_rest(verb)?;
            found.remove(verb)
        })?;
        let mut tables = self.tables.lock();
        // A new queue pair may have its address already.
        if tables.qp_handles.get(&address) == Some(&qp) {
            tables.qp_handles.remove(&address);
        }
        tables.qps.remove(qp.index());
        Ok(())
    }
}

/// `ibv_create_qp`, or `ibv_create_qp_ex` if the attributes need it.
pub(crate) fn create(attr: &mut ibv_qp_init_attr_ex) -> *mut ibv_qp {
    match attr.comp_mask {
        // SAFETY: the objects are live (`make_qp`); the plain structure is the start of the
        // extended one.
        0 => unsafe { library::ibv_create_qp(attr.pd, std::ptr::from_mut(attr).cast()) },
        // SAFETY: as above.
        _ => unsafe { inline::create_qp_ex((*attr.pd).context, attr) },
    }
}

impl Qp {
    /// Destroys it, through its id if it has one.
    pub(crate) fn remove(&self, verb: Verb) -> Result<()> {
        match &self.id {
            None => self.raw.destroy(verb, || Ok(())),
            Some(id) => self.raw.destroy_by(verb, |_| id.destroy_qp(verb)),
        }
    }
}
