//! Memory windows.

use std::sync::Arc;

use super::ledger::Hold;
use super::life::{self, Owner, Parts as _, object};
use super::{Context, Pd, Sge};
use crate::error::{Result, Verb};
use crate::handle::{self, Object};
use crate::mr::Access;
use crate::mw::MwType;
use crate::site::{Site, Standing};
use crate::wr::SendFlags;

/// A memory window. [`Qp::bind_mw`](super::Qp::bind_mw) binds one of type 1,
/// [`SendWr::bind_mw`](super::SendWr::bind_mw) one of type 2.
///
/// A region that is dropped while a window is bound to it is deregistered after the window is
/// unbound, invalidated or dropped: the next time that an object of its context is dropped.
///
/// ```
/// use verbs_api::owned::{Mr, MwBind, Qp};
/// use verbs_api::{Access, MwType, Remote, Result};
///
/// /// Lets peers write the first 64 bytes of a region, and no others.
/// fn show(qp: &Qp, mr: &Mr) -> Result<Remote> {
///     let window = qp.pd().alloc_mw(MwType::Type1)?;
///     qp.bind_mw(&window, &MwBind::new(1, mr.sge(..64), Access::REMOTE_WRITE))?;
///     // Good for peers when the bind has completed; a later send of this queue pair may carry it.
///     Ok(Remote { addr: mr.addr(), rkey: window.rkey()? })
/// }
/// ```
#[derive(Clone)]
pub struct Mw(Arc<Owner<Parts>>);

struct Parts {
    handle: handle::Mw,
    mw_type: MwType,
    pd: Pd,
}

object!(Mw, "ibv_dealloc_mw");

impl life::Parts for Parts {
    const VERB: Verb = Verb::DeallocMw;
    type Handle = handle::Mw;

    fn handle(&self) -> handle::Mw {
        self.handle
    }

    fn context(&self) -> &Context {
        self.pd.context()
    }

    fn destroy(&self) -> Result<()> {
        self.context().verbs().dealloc_mw(self.handle)
    }
}

impl Pd {
    /// Creates an unbound memory window ([`Verbs::alloc_mw`](crate::Verbs::alloc_mw)).
    ///
    /// # Errors
    /// `Invalid` or `NotSupported` for a type the device does not have; `NoMemory`.
    #[track_caller]
    pub fn alloc_mw(&self, mw_type: MwType) -> Result<Mw> {
        let _standing = Standing::at(Site::here());
        let handle = self.context().verbs().alloc_mw(self.handle(), mw_type)?;
        let pd = self.clone();
        Ok(Mw(Owner::new(Parts {
            handle,
            mw_type,
            pd,
        })))
    }
}

impl Mw {
    /// The protection domain it was made from.
    pub fn pd(&self) -> &Pd {
        &self.0.pd
    }

    /// The type of the window.
    pub fn mw_type(&self) -> MwType {
        self.0.mw_type
    }

    /// Key for peers, from the last bind that was posted ([`MwAttr`](crate::MwAttr)).
    pub fn rkey(&self) -> Result<u32> {
        let verbs = self.0.context().verbs();
        Ok(verbs.query_mw(self.handle())?.rkey)
    }
}

/// A bind of a window of type 1: [`Qp::bind_mw`](super::Qp::bind_mw).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MwBind<'a> {
    /// The caller's own value, returned in the completion.
    pub wr_id: u64,
    /// Flags, as of any work request.
    pub flags: SendFlags,
    /// The memory that the window opens.
    pub info: MwBindInfo<'a>,
}

impl<'a> MwBind<'a> {
    /// A signaled bind.
    pub const fn new(wr_id: u64, part: Sge<'a>, access: Access) -> Self {
        Self {
            wr_id,
            flags: SendFlags::SIGNALED,
            info: MwBindInfo { part, access },
        }
    }
}

/// The memory that a window opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MwBindInfo<'a> {
    /// The part of a region; no bytes unbind a window of type 1 (MW-03).
    pub part: Sge<'a>,
    /// The access that it allows peers.
    pub access: Access,
}

impl MwBindInfo<'_> {
    /// For the device.
    ///
    /// # Errors
    /// `Invalid` if window or region is of another protection domain than the QP, or the region
    /// does not have these bytes.
    pub(super) fn resolve(&self, verb: Verb, pd: &Pd, mw: &Mw) -> Result<crate::MwBindInfo> {
        pd.check(verb, Object::Mw, mw.pd())?;
        let (addr, length) = self.part.range(verb, pd)?;
        Ok(crate::MwBindInfo {
            mr: self.part.mr().handle(),
            addr,
            length,
            access: self.access,
        })
    }

    /// What a bind of a window holds until it is done.
    pub(super) fn holds(&self, mw: &Mw) -> [Hold; 2] {
        [Hold::Mw(mw.clone()), Hold::Mr(self.part.mr().clone())]
    }
}
