//! Memory windows.

use std::sync::Arc;

use verbs_api::{
    Cause, Context, Error, ErrorKind, Handle, Mw as MwHandle, MwAttr, MwBind, MwBindInfo, MwType,
    Object, Pd as PdHandle, Qp as QpHandle, Result, SendOp, Verb,
};

use crate::errno::{check, destroyed, made};
use crate::hw::{Hw, destroy};
use crate::objects::{Mr, Mw};
use crate::owner::{Held, Owned};
use crate::sys;

/// The window and the region that a bind names.
pub(crate) struct Binds {
    mw: Arc<Mw>,
    mr: Arc<Mr>,
}

/// The same, with destruction kept out.
pub(crate) struct HeldBinds<'a> {
    mw: Held<'a, sys::ibv_mw>,
    mr: Held<'a, sys::ibv_mr>,
}

impl Hw {
    /// `ibv_alloc_mw`
    pub(crate) fn alloc_window(&self, pd: PdHandle, mw_type: MwType) -> Result<MwHandle> {
        let verb = Verb::AllocMw;
        let parent = self.pd(verb, pd)?;
        // SAFETY: the PD is live.
        let alloc = |pd| made(verb, || unsafe { sys::alloc_mw(pd, mw_type.into()) });
        let raw = parent.raw.with(alloc);
        let raw = raw.map_err(destroyed(verb, Object::Pd))??;
        // SAFETY: just made, and ours.
        let raw = unsafe { Owned::new(raw, sys::dealloc_mw) };
        let context = pd.context();
        let mw = Mw {
            raw,
            mw_type,
            context,
            _pd: parent,
        };
        Ok(self.insert(|t| &mut t.mws, context, mw))
    }

    /// `ibv_dealloc_mw`
    pub(crate) fn dealloc_window(&self, mw: MwHandle) -> Result<()> {
        let found = self.mw(Verb::DeallocMw, mw)?;
        destroy(Verb::DeallocMw, Object::Mw, &found.raw)?;
        self.tables.lock().mws.remove(mw.index());
        Ok(())
    }

    /// The fields of `struct ibv_mw`.
    pub(crate) fn window_attr(&self, mw: MwHandle) -> Result<MwAttr> {
        let found = self.mw(Verb::QueryMw, mw)?;
        // SAFETY: the window is live.
        let rkey = found
            .raw
            .with(|mw| unsafe { sys::mw_rkey(mw) }.load(sys::RELAXED));
        Ok(MwAttr {
            mw_type: found.mw_type,
            rkey: rkey.map_err(destroyed(Verb::QueryMw, Object::Mw))?,
        })
    }

    /// `ibv_bind_mw`
    pub(crate) fn bind_window(&self, qp: QpHandle, mw: MwHandle, bind: &MwBind) -> Result<()> {
        let verb = Verb::BindMw;
        let qp = self.qp(verb, qp)?;
        crate::xrc::check_has_queues(verb, &qp)?;
        let binds = self.binds(verb, qp.context, mw, &bind.info)?;
        let held = binds.hold(verb)?;
        let mut bind = sys::ibv_mw_bind {
            wr_id: bind.wr_id,
            send_flags: bind.flags.bits(),
            bind_info: held.info(&bind.info),
        };
        let call = |qp| {
            // SAFETY: the QP is live, and window and region are held.
            unsafe { sys::bind_mw(qp, held.mw.get(), &mut bind) }
        };
        let result = qp.raw.with(call);
        check(verb, result.map_err(destroyed(verb, Object::Qp))?)
    }

    /// What a work request binds, if it does.
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
        let (mw, mr) = (self.mw(verb, mw)?, self.mr(verb, info.mr)?);
        for (object, of) in [(Object::Mw, mw.context), (Object::Mr, mr.context)] {
            if of != context {
                let must_share = "context";
                let cause = Cause::Mismatch { object, must_share };
                return Err(Error::new(verb, ErrorKind::Invalid, cause));
            }
        }
        Ok(Binds { mw, mr })
    }
}

impl Binds {
    pub(crate) fn hold(&self, verb: Verb) -> Result<HeldBinds<'_>> {
        let (mw, mr) = (self.mw.raw.hold(), self.mr.raw.hold());
        Ok(HeldBinds {
            mw: mw.map_err(destroyed(verb, Object::Mw))?,
            mr: mr.map_err(destroyed(verb, Object::Mr))?,
        })
    }
}

impl HeldBinds<'_> {
    /// Fills the part of a work request for binds.
    pub(crate) fn fill(&self, wr: &mut sys::ibv_send_wr, op: &SendOp) {
        if let SendOp::BindMw { rkey, info, .. } = op {
            sys::set_bind(wr, self.mw.get(), *rkey, self.info(info));
        }
    }

    /// The bind has been posted. The library keeps the key of its own binds; for those of work
    /// requests it is the program that does.
    pub(crate) fn was_posted(&self, op: &SendOp) {
        if let SendOp::BindMw { rkey, .. } = op {
            // SAFETY: the window is live.
            let own = unsafe { sys::mw_rkey(self.mw.get()) };
            let kept = own.load(sys::RELAXED) & !0xff;
            own.store(kept | rkey & 0xff, sys::RELAXED);
        }
    }

    /// What a bind of a batch names.
    pub(crate) fn parts(&self, info: &MwBindInfo) -> (*mut sys::ibv_mw, sys::ibv_mw_bind_info) {
        (self.mw.get(), self.info(info))
    }

    fn info(&self, info: &MwBindInfo) -> sys::ibv_mw_bind_info {
        sys::ibv_mw_bind_info {
            mr: self.mr.get(),
            addr: info.addr,
            length: info.length,
            mw_access_flags: info.access.bits(),
        }
    }
}
