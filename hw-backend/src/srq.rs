//! Shared receive queues.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use verbs_abi::{
    IBV_SRQ_INIT_ATTR_CQ, IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQ_INIT_ATTR_XRCD,
    IBV_SRQT_XRC, ibv_pd, ibv_srq_attr, ibv_srq_init_attr_ex, inline, library, token,
};
use verbs_api::{
    Handle, Pd as PdHandle, PostError, RecvWr, Result, Srq as SrqHandle, SrqAttr, SrqAttrMask,
    SrqInit, Verb, Wait, XrcSrq,
};

use crate::errno::{check, of_context};
use crate::hw::{Hw, destroy};
use crate::objects::{Qp, Srq};
use crate::post::{post, recv_list};

impl Hw {
    /// `ibv_create_srq`
    pub(crate) fn make_srq(&self, pd: PdHandle, init: &SrqInit) -> Result<SrqHandle> {
        let verb = Verb::CreateSrq;
        let parent = self.pd(verb, pd)?;
        let find =
            |xrc: XrcSrq| -> Result<_> { Ok((self.xrcd(verb, xrc.xrcd)?, self.cq(verb, xrc.cq)?)) };
        let xrc = init.xrc.map(find).transpose()?;
        if let Some(XrcSrq { xrcd, cq }) = init.xrc {
            of_context(verb, xrcd, pd.context())?;
            of_context(verb, cq, pd.context())?;
        }
        let held = match &xrc {
            None => None,
            Some((xrcd, cq)) => Some((xrcd.raw.hold(verb)?, cq.raw.hold(verb)?)),
        };
        let mut attr = ibv_srq_init_attr_ex {
            srq_context: token(init.srq_context),
            attr: ibv_srq_attr::to_c(&init.attr),
            ..ibv_srq_init_attr_ex::default()
        };
        let create = |pd: *mut ibv_pd| match &held {
            // SAFETY: the PD is live; the plain structure is the start of the extended one.
            None => unsafe { library::ibv_create_srq(pd, (&raw mut attr).cast()) },
            Some((xrcd, cq)) => {
                attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE
                    | IBV_SRQ_INIT_ATTR_PD
                    | IBV_SRQ_INIT_ATTR_XRCD
                    | IBV_SRQ_INIT_ATTR_CQ;
                attr.srq_type = IBV_SRQT_XRC;
                (attr.pd, attr.xrcd, attr.cq) = (pd, xrcd.get(), cq.get());
                // SAFETY: the PD is live, and so are domain and CQ, which are held.
                unsafe { inline::create_srq_ex((*pd).context, &mut attr) }
            }
        };
        // SAFETY: the SRQ is new.
        let raw = unsafe { parent.raw.make(verb, create) }?;
        drop(held);
        let mut init = *init;
        init.attr = SrqAttr {
            srq_limit: init.attr.srq_limit,
            ..ibv_srq_attr::from_c(&attr.attr)
        };
        let address = raw.address();
        let srq = Srq {
            raw,
            init,
            async_unacked: AtomicU32::new(0),
            _xrc: xrc,
            pd: parent,
        };
        let handle = self.insert(|t| &mut t.srqs, SrqHandle::from_parts, pd.context(), srq);
        self.tables.lock().srq_handles.insert(address, handle);
        Ok(handle)
    }

    /// `ibv_query_srq`
    pub(crate) fn srq_attr(&self, srq: SrqHandle) -> Result<SrqAttr> {
        let verb = Verb::QuerySrq;
        let found = self.srq(verb, srq)?;
        found.check_fields(verb)?;
        let mut attr = ibv_srq_attr::default();
        // SAFETY: the SRQ is live.
        let query = |srq| unsafe { library::ibv_query_srq(srq, &mut attr) };
        found.raw.call(verb, query)?;
        Ok(ibv_srq_attr::from_c(&attr))
    }

    /// `ibv_modify_srq`
    pub(crate) fn change_srq(
        &self,
        srq: SrqHandle,
        attr: &SrqAttr,
        mask: SrqAttrMask,
    ) -> Result<()> {
        let verb = Verb::ModifySrq;
        let found = self.srq(verb, srq)?;
        let mut attr = ibv_srq_attr::to_c(attr);
        let mask = mask.bits() as c_int;
        // A resize moves the queue, so no thread may be posting to it.
        // SAFETY: the SRQ is live.
        let modify = |srq| unsafe { library::ibv_modify_srq(srq, &mut attr, mask) };
        check(verb, found.raw.alone(verb, modify)?)
    }

    /// `ibv_destroy_srq`
    pub(crate) fn remove_srq(&self, srq: SrqHandle, wait: Wait) -> Result<()> {
        let verb = Verb::DestroySrq;
        let found = self.srq(verb, srq)?;
        let unacked = || found.async_unacked.load(Ordering::Relaxed);
        // The driver refuses at once if a QP uses it. Otherwise the library would wait.
        let users = |qp: &Arc<Qp>| qp.init.srq == Some(srq);
        let busy = self.tables.lock().qps.iter().any(|(_, qp)| users(qp));
        let address = found.raw.address();
        if busy {
            destroy(verb, &found.raw)?;
        } else {
            let rest = || Ok(());
            self.destroy_acknowledged(verb, &found.raw, wait, unacked, rest)?;
        }
        let mut tables = self.tables.lock();
        // A new SRQ may have its address already.
        if tables.srq_handles.get(&address) == Some(&srq) {
            tables.srq_handles.remove(&address);
        }
        tables.srqs.remove(srq.index());
        Ok(())
    }

    /// `ibv_post_srq_recv`
    pub(crate) fn post_shared_recvs(
        &self,
        srq: SrqHandle,
        list: &[RecvWr<'_>],
    ) -> Result<(), PostError> {
        let verb = Verb::PostSrqRecv;
        let srq = self.srq(verb, srq)?;
        recv_list(list, |wrs| {
            post(verb, &srq.raw, wrs, 0, |srq, first, bad| {
                // SAFETY: the SRQ is live; the list is valid until the call returns (`recv_list`).
                unsafe { inline::post_srq_recv(srq, first, bad) }
            })
        })
    }
}
