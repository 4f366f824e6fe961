//! XRC domains, and the queue pairs in them.

use std::sync::Arc;

use super::Context;
use super::life::{self, Owner, object};
use crate::connect::{self, Endpoint};
use crate::error::{Result, Verb};
use crate::handle;
use crate::qp::{QpAttrMask, QpModify, QpQuery, QpState};
use crate::rc::RcParams;
use crate::site::{Site, Standing};
use crate::verbs::Wait;
use crate::xrc::XrcdInit;

/// An XRC domain: [`Context::open_xrcd`]. Its SRQs are made by
/// [`SrqBuilder::xrc`](super::SrqBuilder::xrc).
///
/// ```no_run
/// use verbs_api::connect::Endpoint;
/// use verbs_api::owned::{Context, Cq, Pd, Srq, XrcRecvQp};
/// use verbs_api::{RcParams, Result, XrcdInit};
///
/// /// One connection for all processes of this host, and an SRQ of this one: a sender names it by
/// /// its number.
/// fn serve(pd: &Pd, cq: &Cq, peer: &Endpoint) -> Result<(XrcRecvQp, Srq, u32)> {
///     let file = std::path::Path::new("/tmp/domain");
///     let domain = pd.context().open_xrcd(&XrcdInit::of(file).create())?;
///     let qp = domain.create_recv_qp()?;
///     qp.connect(peer, &RcParams::default())?;
///     let srq = pd.srq(64).xrc(&domain, cq).create()?;
///     let number = srq.num()?;
///     Ok((qp, srq, number))
/// }
/// ```
#[derive(Clone)]
pub struct Xrcd(Arc<Owner<Parts>>);

struct Parts {
    handle: handle::Xrcd,
    context: Context,
}

object!(Xrcd, "ibv_close_xrcd");

impl life::Parts for Parts {
    const VERB: Verb = Verb::CloseXrcd;
    type Handle = handle::Xrcd;

    fn handle(&self) -> handle::Xrcd {
        self.handle
    }

    fn context(&self) -> &Context {
        &self.context
    }

    fn destroy(&self) -> Result<()> {
        self.context.verbs().close_xrcd(self.handle)
    }
}

impl Context {
    /// Opens an XRC domain ([`Verbs::open_xrcd`](crate::Verbs::open_xrcd)).
    ///
    /// # Errors
    /// `NotFound` if the file, or the domain that it names, does not exist and creating was not
    /// asked for; `Invalid` if the domain has to be new and exists; `NotSupported` on a device
    /// without XRC; `NoMemory`.
    #[track_caller]
    pub fn open_xrcd(&self, init: &XrcdInit<'_>) -> Result<Xrcd> {
        let _standing = Standing::at(Site::here());
        let handle = self.verbs().open_xrcd(self.handle(), init)?;
        let context = self.clone();
        Ok(Xrcd(Owner::new(Parts { handle, context })))
    }
}

impl Xrcd {
    /// The context it was opened by.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Creates an XRC_RECV queue pair, in RESET
    /// ([`Verbs::create_xrc_recv_qp`](crate::Verbs::create_xrc_recv_qp)).
    ///
    /// # Errors
    /// `NoMemory`.
    #[track_caller]
    pub fn create_recv_qp(&self) -> Result<XrcRecvQp> {
        let _standing = Standing::at(Site::here());
        let verbs = self.context().verbs();
        XrcRecvQp::new(self, verbs.create_xrc_recv_qp(self.handle())?)
    }

    /// Opens an XRC_RECV queue pair of this domain that another process or context has made
    /// ([`Verbs::open_qp`](crate::Verbs::open_qp)).
    ///
    /// # Errors
    /// `Invalid` or `NotFound` if the domain has no such queue pair; `NoMemory`.
    #[track_caller]
    pub fn open_qp(&self, qp_num: u32) -> Result<XrcRecvQp> {
        let _standing = Standing::at(Site::here());
        let verbs = self.context().verbs();
        XrcRecvQp::new(self, verbs.open_qp(self.handle(), qp_num)?)
    }
}

/// An XRC_RECV queue pair: the receiving end of a connection, without queues of its own. It is
/// destroyed when no process has it open any more.
#[derive(Clone)]
pub struct XrcRecvQp(pub(super) Arc<Owner<TargetParts>>);

pub(super) struct TargetParts {
    pub(super) handle: handle::Qp,
    num: u32,
    xrcd: Xrcd,
}

object!(XrcRecvQp: Qp, "ibv_destroy_qp");

impl life::Parts for TargetParts {
    const VERB: Verb = Verb::DestroyQp;
    type Handle = handle::Qp;

    fn handle(&self) -> handle::Qp {
        self.handle
    }

    fn context(&self) -> &Context {
        self.xrcd.context()
    }

    fn destroy(&self) -> Result<()> {
        self.xrcd
            .context()
            .verbs()
            .destroy_qp(self.handle, Wait::Poll)
    }
}

impl Drop for TargetParts {
    fn drop(&mut self) {
        self.xrcd.context().leave(self.handle);
    }
}

impl XrcRecvQp {
    fn new(xrcd: &Xrcd, handle: handle::Qp) -> Result<Self> {
        let verbs = xrcd.context().verbs();
        let num = verbs.qp_num(handle).inspect_err(|_| {
            let _ = verbs.destroy_qp(handle, Wait::Poll);
        })?;
        let xrcd = xrcd.clone();
        let qp = Self(Owner::new(TargetParts { handle, num, xrcd }));
        qp.xrcd().context().enter(&qp.0);
        Ok(qp)
    }

    /// The domain by which it was made or opened.
    pub fn xrcd(&self) -> &Xrcd {
        &self.0.xrcd
    }

    /// The QP number.
    pub fn num(&self) -> u32 {
        self.0.num
    }

    /// Attributes ([`Verbs::query_qp`](crate::Verbs::query_qp)).
    #[track_caller]
    pub fn query(&self, mask: QpAttrMask) -> Result<QpQuery> {
        let _standing = Standing::at(Site::here());
        let verbs = self.xrcd().context().verbs();
        verbs.query_qp(self.handle(), mask)
    }

    /// The state of the queue pair.
    pub fn state(&self) -> Result<QpState> {
        Ok(self.query(QpAttrMask::STATE)?.attr.qp_state)
    }

    /// Changes it ([`Verbs::modify_qp`](crate::Verbs::modify_qp)), for all who have it open; a
    /// failure changes nothing.
    ///
    /// # Errors
    /// `Invalid` for a transition that does not exist, a mask that does not fit it, or a value out
    /// of range.
    #[track_caller]
    pub fn modify(&self, modify: &QpModify) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let verbs = self.xrcd().context().verbs();
        verbs.modify_qp(self.handle(), &modify.attr, modify.mask)
    }

    /// The facts that a sender needs to connect with it ([`Qp::connect`](super::Qp::connect)).
    #[track_caller]
    pub fn endpoint(&self, params: &RcParams) -> Result<Endpoint> {
        let _standing = Standing::at(Site::here());
        let verbs = self.xrcd().context().verbs();
        connect::endpoint(&**verbs, self.handle(), params)
    }

    /// Connects it, in RESET, with an XRC_SEND queue pair, and brings it to RTS; the sender does
    /// the same with this one's endpoint.
    #[track_caller]
    pub fn connect(&self, peer: &Endpoint, params: &RcParams) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let verbs = self.xrcd().context().verbs();
        connect::to_endpoint(&**verbs, self.handle(), peer, params)
    }
}
