//! Shared receive queues.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use verbs_api::{
    Cause, Error, ErrorKind, Handle, Object, Pd as PdHandle, PostError, RecvWr, Result,
    Srq as SrqHandle, SrqAttr, SrqAttrMask, SrqInit, Verb, Wait, XrcSrq,
};

use crate::errno::{check, destroyed, made};
use crate::hw::{Hw, destroy};
use crate::objects::{Qp, Srq};
use crate::owner::Owned;
use crate::post::{post, recv_list};
use crate::{convert, sys};

impl Hw {
    pub(crate) fn srq(&self, verb: Verb, srq: SrqHandle) -> Result<Arc<Srq>> {
        self.find(|tables| &tables.srqs, verb, srq)
    }

    /// `ibv_create_srq`
    pub(crate) fn make_srq(&self, pd: PdHandle, init: &SrqInit) -> Result<SrqHandle> {
        let verb = Verb::CreateSrq;
        let parent = self.pd(verb, pd)?;
        let find =
            |xrc: XrcSrq| -> Result<_> { Ok((self.xrcd(verb, xrc.xrcd)?, self.cq(verb, xrc.cq)?)) };
        let xrc = init.xrc.map(find).transpose()?;
        let context = pd.context();
        for (object, of) in xrc
            .iter()
            .flat_map(|(xrcd, cq)| [(Object::Xrcd, xrcd.context), (Object::Cq, cq.context)])
        {
            if of != context {
                let must_share = "context";
                let cause = Cause::Mismatch { object, must_share };
                return Err(Error::new(verb, ErrorKind::Invalid, cause));
            }
        }
        let held = match &xrc {
            None => None,
            Some((xrcd, cq)) => Some((
                xrcd.raw.hold().map_err(destroyed(verb, Object::Xrcd))?,
                cq.raw.hold().map_err(destroyed(verb, Object::Cq))?,
            )),
        };
        let mut attr = sys::ibv_srq_init_attr {
            srq_context: sys::token(init.srq_context),
            attr: convert::srq_attr(&init.attr),
        };
        let create = |pd| {
            made(verb, || match &held {
                // SAFETY: the PD is live.
                None => unsafe { sys::ibv_create_srq(pd, &mut attr) },
                // SAFETY: as above, and so are domain and CQ, which are held.
                Some((xrcd, cq)) => unsafe {
                    sys::create_xrc_srq(pd, &mut attr, xrcd.get(), cq.get())
                },
            })
        };
        let raw = parent.raw.with(create);
        let raw = raw.map_err(destroyed(verb, Object::Pd))??;
        drop(held);
        let mut init = *init;
        init.attr = SrqAttr {
            srq_limit: init.attr.srq_limit,
            ..convert::srq_attr_back(&attr.attr)
        };
        let srq = Srq {
            // SAFETY: just made, and ours.
            raw: unsafe { Owned::new(raw, sys::ibv_destroy_srq) },
            init,
            async_unacked: AtomicU32::new(0),
            _xrc: xrc,
            pd: parent,
        };
        let handle = self.insert(|t| &mut t.srqs, pd.context(), srq);
        self.tables.lock().srq_handles.insert(raw as usize, handle);
        Ok(handle)
    }

    /// `ibv_query_srq`
    pub(crate) fn srq_attr(&self, srq: SrqHandle) -> Result<SrqAttr> {
        let verb = Verb::QuerySrq;
        let found = self.srq(verb, srq)?;
        let mut attr = convert::srq_attr(&SrqAttr::default());
        // SAFETY: the SRQ is live.
        let query = |srq| unsafe { sys::ibv_query_srq(srq, &mut attr) };
        let result = found.raw.with(query);
        check(verb, result.map_err(destroyed(verb, Object::Srq))?)?;
        Ok(convert::srq_attr_back(&attr))
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
        let mut attr = convert::srq_attr(attr);
        let mask = mask.bits() as c_int;
        // A resize gives the queue another place, which nobody may be posting to.
        // SAFETY: the SRQ is live.
        let modify = |srq| unsafe { sys::ibv_modify_srq(srq, &mut attr, mask) };
        let result = found.raw.alone(modify);
        check(verb, result.map_err(destroyed(verb, Object::Srq))?)
    }

    /// `ibv_destroy_srq`
    pub(crate) fn remove_srq(&self, srq: SrqHandle, wait: Wait) -> Result<()> {
        let verb = Verb::DestroySrq;
        let found = self.srq(verb, srq)?;
        let unacked = || found.async_unacked.load(Ordering::Relaxed);
        // With a QP on it the driver refuses at once; otherwise the library would wait.
        let users = |qp: &Arc<Qp>| qp.init.srq == Some(srq);
        let busy = self.tables.lock().qps.iter().any(|(_, qp)| users(qp));
        let address = found.raw.address();
        if busy {
            destroy(verb, Object::Srq, &found.raw)?;
        } else {
            let rest = || Ok(());
            self.destroy_acknowledged((verb, Object::Srq), &found.raw, wait, unacked, rest)?;
        }
        let mut tables = self.tables.lock();
        // A new one may be at its address already.
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
            post((verb, Object::Srq), &srq.raw, wrs, 0, |srq, first, bad| {
                // SAFETY: the SRQ is live; the list is valid until the call returns (`recv_list`).
                unsafe { sys::post_srq_recv(srq, first, bad) }
            })
        })
    }
}
