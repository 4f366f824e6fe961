//! Work requests that name owning objects.

use core::marker::PhantomData;
use core::slice;

use super::ledger::{Hold, Holds};
use super::mr::regions;
use super::{Ah, Mw, MwBindInfo, Pd, Sge};
use crate::error::{Result, Verb};
use crate::handle::Object;
use crate::mr::Access;
use crate::wr::{self, Names};

/// Naming by owning objects, which posted work holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objects<'a>(PhantomData<&'a ()>);

impl<'a> Names for Objects<'a> {
    type Sge = Sge<'a>;
    type Ah = &'a Ah;
    type Mw = &'a Mw;
    type BindInfo = MwBindInfo<'a>;
}

/// A send work request. Made by one of the constructors, signaled unless said otherwise:
///
/// ```
/// use verbs_api::Remote;
/// use verbs_api::owned::{Mr, SendWr};
/// # fn f(mr: &Mr, counter: Remote) {
/// let list = [mr.sge(..64)];
/// let send = SendWr::send(7, &list).solicited().unsignaled();
/// let before = [mr.sge(64..72)];
/// let add = SendWr::fetch_and_add(1, &before, counter, 5);
/// # }
/// ```
///
/// It names only objects with owners, and holds them as long as the device may use them. Raw
/// handles do not fit:
///
/// ```compile_fail,E0308
/// # use verbs_api::owned::SendWr;
/// # use verbs_api::{Mw, MwBindInfo, SendOp};
/// # fn f(mw: Mw, info: MwBindInfo) {
/// let bind = SendWr::new(1, SendOp::BindMw { mw, rkey: 0, info }, &[]);
/// # }
/// ```
pub type SendWr<'a> = wr::SendWr<'a, Objects<'a>>;

/// The operation of a send work request.
pub type SendOp<'a> = wr::SendOp<Objects<'a>>;

/// The destination of a send.
pub type Dest<'a> = wr::Dest<Objects<'a>>;

/// A receive work request.
pub type RecvWr<'a> = wr::RecvWr<'a, Objects<'a>>;

impl<'a> SendWr<'a> {
    /// A bind of a window of type 2, with a key whose lower 8 bits the program chooses
    /// ([`inc_rkey`](crate::inc_rkey)).
    ///
    /// ```
    /// use verbs_api::owned::{Mr, Mw, Qp, SendWr};
    /// use verbs_api::{Access, Result, inc_rkey};
    ///
    /// /// Lets the peer of a queue pair write a region, until the window is invalidated.
    /// fn show(qp: &Qp, window: &Mw, mr: &Mr) -> Result<u32> {
    ///     let rkey = inc_rkey(window.rkey()?);
    ///     qp.post_send(&[SendWr::bind_mw(1, window, rkey, mr.sge(..), Access::REMOTE_WRITE)])?;
    ///     Ok(rkey)
    /// }
    /// ```
    pub const fn bind_mw(wr_id: u64, mw: &'a Mw, rkey: u32, part: Sge<'a>, access: Access) -> Self {
        let info = MwBindInfo { part, access };
        Self::new(wr_id, SendOp::BindMw { mw, rkey, info }, &[])
    }
    /// What it does and where it goes, for the device.
    ///
    /// # Errors
    /// `Invalid` for a window, a region to bind or an address handle of another
    /// protection domain than the QP's, or bytes that the region does not have.
    pub(super) fn resolve(&self, verb: Verb, pd: &Pd) -> Result<(crate::SendOp, crate::Dest)> {
        let op = self.op.renamed(|mw, rkey, info| {
            let info = info.resolve(verb, pd, mw)?;
            let mw = mw.handle();
            Ok(crate::SendOp::BindMw { mw, rkey, info })
        })?;
        let dest = match self.dest {
            Dest::Connected => crate::Dest::Connected,
            Dest::Xrc { remote_srqn } => crate::Dest::Xrc { remote_srqn },
            Dest::Ud {
                ah,
                remote_qpn,
                remote_qkey,
            } => {
                pd.check(verb, Object::Ah, ah.pd())?;
                let ah = ah.handle();
                crate::Dest::Ud {
                    ah,
                    remote_qpn,
                    remote_qkey,
                }
            }
        };
        Ok((op, dest))
    }

    /// What it holds until it is done.
    pub(super) fn holds(&self) -> Holds {
        let mut holds = regions(self.sg_list);
        if let Dest::Ud { ah, .. } = self.dest {
            holds.push(Hold::Ah(ah.clone()));
        }
        if let SendOp::BindMw { mw, info, .. } = self.op {
            holds.extend(info.holds(mw));
        }
        holds
    }
}

/// A list of one.
impl AsRef<[Self]> for SendWr<'_> {
    fn as_ref(&self) -> &[Self] {
        slice::from_ref(self)
    }
}

/// A list of one.
impl AsRef<[Self]> for RecvWr<'_> {
    fn as_ref(&self) -> &[Self] {
        slice::from_ref(self)
    }
}
