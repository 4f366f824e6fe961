//! Queue pairs of ids.

use std::ptr::null_mut;

use verbs_abi::{ibv_qp, ibv_qp_attr, ibv_qp_init_attr_ex, library, rdma_cm_id};
use verbs_api::{
    CmId, Pd as PdHandle, Qp as QpHandle, QpAttr, QpAttrMask, QpInit, QpState, Result, Verb, Wait,
};

use super::manager::Manager;
use crate::errno::{invalid, missing};

impl Manager<'_> {
    /// `rdma_create_qp`, or `rdma_create_qp_ex` if the attributes need it.
    pub(super) fn make_qp_of(
        &self,
        id: CmId,
        pd: Option<PdHandle>,
        init: &QpInit,
    ) -> Result<QpHandle> {
        let verb = Verb::CmCreateQp;
        let found = self.cm_id(verb, id)?;
        let _reading = self.reading.lock();
        // Without a domain the library would crash.
        let (_, own) = self.bound(verb, &found)?;
        let held = found.raw.hold(verb)?;
        let create = |attr: &mut ibv_qp_init_attr_ex| {
            let id: *mut rdma_cm_id = held.get();
            let given = pd.map_or(null_mut(), |_| attr.pd);
            let result = match attr.comp_mask {
                // SAFETY: id, PD, CQs and SRQ are live; the plain structure is the start of the
                // extended one.
                0 => unsafe { library::rdma_create_qp(id, given, std::ptr::from_mut(attr).cast()) },
                _ => {
                    attr.pd = given;
                    // SAFETY: as above.
                    unsafe { library::rdma_create_qp_ex(id, attr) }
                }
            };
            match result {
                // SAFETY: the id is live, and nothing else changes it (`Id`).
                0 => unsafe { (*id).qp },
                _ => null_mut::<ibv_qp>(),
            }
        };
        let qp = self.make_qp(verb, pd.unwrap_or(own), init, Some(found.clone()), create)?;
        *found.qp.lock() = Some(qp);
        Ok(qp)
    }

    /// `rdma_destroy_qp`
    pub(super) fn remove_qp_of(&self, id: CmId, wait: Wait) -> Result<()> {
        let verb = Verb::CmDestroyQp;
        let found = self.cm_id(verb, id)?;
        let qp = *found.qp.lock();
        let qp = qp.ok_or_else(|| invalid(verb, "id", "has no qp"))?;
        self.remove_qp(verb, qp, wait)?;
        // The id may have another queue pair already.
        found.qp.lock().take_if(|own| *own == qp);
        Ok(())
    }

    /// `rdma_init_qp_attr`
    pub(super) fn qp_attr_of(&self, id: CmId, state: QpState) -> Result<(QpAttr, QpAttrMask)> {
        let verb = Verb::CmInitQpAttr;
        let call = library::rdma_init_qp_attr().map_err(missing(verb))?;
        let mut mask = 0;
        let mut attr = ibv_qp_attr {
            qp_state: state.into(),
            ..ibv_qp_attr::default()
        };
        // SAFETY: the id is live.
        self.on_id(verb, id, |id| unsafe { call(id, &mut attr, &mut mask) })?;
        let mask = QpAttrMask::from_bits_retain(mask as u32);
        let mut attr = ibv_qp_attr::from_c(&attr);
        attr.ah_attr = attr.ah_attr.filter(|_| mask.contains(QpAttrMask::AV));
        attr.alt_ah_attr = None;
        Ok((attr, mask))
    }
}
