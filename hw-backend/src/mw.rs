//! Memory windows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use verbs_abi::{bind_mw_t, ibv_mr, ibv_mw, ibv_mw_bind, ibv_mw_bind_info, inline};
use verbs_api::{
    Context, Handle, Mw as MwHandle, MwAttr, MwBind, MwBindInfo, MwType, Pd as PdHandle,
    Qp as QpHandle, Result, SendOp, Verb,
};

use crate::errno::of_context;
use crate::hw::{Hw, destroy};
use crate::objects::{Mr, Mw};
use crate::owner::Held;

/// The window and the region that a bind names.
pub(crate) struct Binds {
    mw: Arc<Mw>,
    mr: Arc<Mr>,
}

/// The window and the region of a bind. They cannot be destroyed while this exists.
pub(crate) struct HeldBinds<'a> {
    mw: Held<'a, ibv_mw>,
    mr: Held<'a, ibv_mr>,
}

impl Hw {
    /// `ibv_alloc_mw`
    pub(crate) fn alloc_window(&self, pd: PdHandle, mw_type: MwType) -> Result<MwHandle> {
        let verb = Verb::AllocMw;
        let parent = self.pd(verb, pd)?;
        // SAFETY: the PD is live, and the window new.
        let raw = unsafe {
            parent
                .raw
                .make(verb, |pd| inline::alloc_mw(pd, mw_type.into()))
        }?;
        let context = pd.context();
        let mw = Mw {
            raw,
            mw_type,
            context,
            pd: parent,
        };
        Ok(self.insert(|t| &mut t.mws, MwHandle::from_parts, context, mw))
    }

    /// `ibv_dealloc_mw`
    pub(crate) fn dealloc_window(&self, mw: MwHandle) -> Result<()> {
        let found = self.mw(Verb::DeallocMw, mw)?;
        destroy(Verb::DeallocMw, &found.raw)?;
        self.tables.lock().mws.remove(mw.index());
        Ok(())
    }

    /// The fields of `struct ibv_mw`.
    pub(crate) fn window_attr(&self, mw: MwHandle) -> Result<MwAttr> {
        let found = self.mw(Verb::QueryMw, mw)?;
        found.check_fields(Verb::QueryMw)?;
        // SAFETY: the window is live.
        let read = |mw| unsafe { rkey_of(mw) }.load(Ordering::Relaxed);
        let rkey = found.raw.with(Verb::QueryMw, read)?;
        Ok(MwAttr::new(found.mw_type, rkey))
    }

    /// `ibv_bind_mw`
    pub(crate) fn bind_window(&self, qp: QpHandle, mw: MwHandle, bind: &MwBind) -> Result<()> {
        let verb = Verb::BindMw;
        let qp = self.qp(verb, qp)?;
        qp.check_has_queues(verb)?;
        let binds = self.binds(verb, qp.context, mw, &bind.info)?;
        let held = binds.hold(verb)?;
        let mut bind = ibv_mw_bind::to_c(bind, held.mr.get());
        // SAFETY: the QP is live, and window and region are held.
        let call = |qp| unsafe { inline::bind_mw(qp, held.mw.get(), &mut bind) };
        qp.raw.call(verb, call)
    }

    /// The bind of a work request, if it is one.
    pub(crate) fn bound_by(
        &self,
        verb: Verb,
        context: Context,
        op: &SendOp,
    ) -> Result<Option<Binds>> {
        match op {
            SendOp::BindMw { mw, info, .. } => self.binds(verb, context, *mw, info).map(Some),
            _ => Ok(None),
        }
    }

    fn mw(&self, verb: Verb, mw: MwHandle) -> Result<Arc<Mw>> {
        self.find(|tables| &tables.mws, verb, mw)
    }

    fn binds(
        &self,
        verb: Verb,
        context: Context,
        mw: MwHandle,
        info: &MwBindInfo,
    ) -> Result<Binds> {
        let binds = Binds {
            mw: self.mw(verb, mw)?,
            mr: self.mr(verb, info.mr)?,
        };
        of_context(verb, mw, context)?;
        of_context(verb, info.mr, context)?;
        Ok(binds)
    }
}

impl Binds {
    pub(crate) fn hold(&self, verb: Verb) -> Result<HeldBinds<'_>> {
        let (mw, mr) = (self.mw.raw.hold(verb)?, self.mr.raw.hold(verb)?);
        Ok(HeldBinds { mw, mr })
    }
}

impl HeldBinds<'_> {
    /// The bind of a work request.
    pub(crate) fn of(&self, op: &SendOp) -> Option<bind_mw_t> {
        let SendOp::BindMw { rkey, info, .. } = op else {
            return None;
        };
        let bind_info = ibv_mw_bind_info::to_c(info, self.mr.get());
        Some(bind_mw_t {
            mw: self.mw.get(),
            rkey: *rkey,
            bind_info,
        })
    }

    /// Keeps the new key of a window whose bind has been posted. The library keeps the keys of
    /// `ibv_bind_mw`, but not those of work requests.
    pub(crate) fn was_posted(&self, op: &SendOp) {
        if let SendOp::BindMw { rkey, .. } = op {
            // SAFETY: the window is live.
            let own = unsafe { rkey_of(self.mw.get()) };
            let kept = own.load(Ordering::Relaxed) & !0xff;
            own.store(kept | rkey & 0xff, Ordering::Relaxed);
        }
    }
}

/// The key of a window, which programs write too.
///
/// `mw` is a live window as long as the result is used.
unsafe fn rkey_of<'a>(mw: *mut ibv_mw) -> &'a AtomicU32 {
    // SAFETY: the field is aligned and lives as long as the window. This program accesses it by
    // atomics only.
    unsafe { AtomicU32::from_ptr(&raw mut (*mw).rkey) }
}
