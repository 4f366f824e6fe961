//! Shared receive queues.

use std::sync::Arc;

use smallvec::SmallVec;

use super::ledger::Posted;
use super::life::{self, Owner, Parts as _, object};
use super::mr::{regions, resolve};
use super::shared::Shared;
use super::wr::RecvWr;
use super::{Context, Cq, Pd, Xrcd};
use crate::cq::WcOpcode;
use crate::error::{PostError, Result, Verb};
use crate::handle::{self, Object};
use crate::site::{Site, Standing};
use crate::srq::{SrqAttr, SrqAttrMask, SrqInit};
use crate::verbs::Wait;

/// A shared receive queue: [`Pd::srq`]. Queue pairs made with it take their receives from it
/// ([`QpBuilder::srq`](super::QpBuilder::srq)). Any number of threads may post on it.
///
/// Receives are taken in the order of posting. Their completions come in any order, each with the
/// number of the queue pair that took it, from the CQ of that queue pair; those of an XRC SRQ come
/// from its own CQ. A posted receive holds its regions until its completion has been polled. If
/// that never comes (the queue pair was reset or destroyed while the message arrived, or the device
/// removed the completion with it), it holds them until the SRQ is destroyed.
///
/// ```no_run
/// use verbs_api::owned::{Cq, Mr, Pd, Qp, RecvWr, Srq};
/// use verbs_api::{QpType, Result};
///
/// /// Queue pairs for many peers, with receives for all of them.
/// fn serve(pd: &Pd, cq: &Cq, mr: &Mr, peers: usize) -> Result<(Srq, Vec<Qp>)> {
///     let srq = pd.srq(64).create()?;
///     for slot in 0..64 {
///         let room = [mr.sge(slot * 512..(slot + 1) * 512)];
///         srq.post_recv(&[RecvWr::new(slot as u64, &room)])?;
///     }
///     let qp = |_| pd.qp(QpType::Rc, cq, cq).srq(&srq).create();
///     let qps = (0..peers).map(qp).collect::<Result<_>>()?;
///     Ok((srq, qps))
/// }
/// ```
#[derive(Clone)]
pub struct Srq(pub(super) Arc<Owner<Parts>>);

pub(super) struct Parts {
    pub(super) handle: handle::Srq,
    srq_context: u64,
    pd: Pd,
    xrc: Option<(Xrcd, Cq)>,
    pub(super) shared: Arc<Shared>,
}

object!(Srq, "ibv_destroy_srq");

impl life::Parts for Parts {
    const VERB: Verb = Verb::DestroySrq;
    type Handle = handle::Srq;

    fn handle(&self) -> handle::Srq {
        self.handle
    }

    fn context(&self) -> &Context {
        self.pd.context()
    }

    fn destroy(&self) -> Result<()> {
        self.context().verbs().destroy_srq(self.handle, Wait::Poll)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.context().leave(self.handle);
        drop(self.shared.release());
        if let Some((_, cq)) = &self.xrc {
            cq.xrc_is_gone(&self.shared);
        }
    }
}

/// The attributes of a new shared receive queue ([`Pd::srq`]).
#[derive(Clone, Debug)]
#[must_use = "`create` makes the queue"]
pub struct SrqBuilder<'a> {
    pd: &'a Pd,
    init: SrqInit,
    xrc: Option<(&'a Xrcd, &'a Cq)>,
}

impl Pd {
    /// Begins to create a shared receive queue of at least `max_wr` receives.
    pub fn srq(&self, max_wr: u32) -> SrqBuilder<'_> {
        SrqBuilder {
            pd: self,
            init: SrqInit::new(max_wr),
            xrc: None,
        }
    }
}

impl<'a> SrqBuilder<'a> {
    /// Scatter/gather entries of a receive, at least. Default: 1.
    pub fn max_sge(mut self, max_sge: u32) -> Self {
        self.init = self.init.max_sge(max_sge);
        self
    }

    /// A value of the program: [`Srq::srq_context`]. Default: 0.
    pub fn srq_context(mut self, srq_context: u64) -> Self {
        self.init = self.init.context(srq_context);
        self
    }

    /// Makes it a queue of XRC, in a domain and with a CQ of its own, both of this context. It
    /// holds both. Default: a plain queue.
    pub fn xrc(self, xrcd: &'a Xrcd, cq: &'a Cq) -> Self {
        let xrc = Some((xrcd, cq));
        Self { xrc, ..self }
    }

    /// Creates it ([`Verbs::create_srq`](crate::Verbs::create_srq)).
    ///
    /// # Errors
    /// `Invalid` for sizes above the device's, a size of 0, and a domain or a CQ of another
    /// context; `NoMemory`; `NotSupported` for XRC on a device without it.
    #[track_caller]
    pub fn create(self) -> Result<Srq> {
        let _standing = Standing::at(Site::here());
        let Self { pd, mut init, xrc } = self;
        let context = pd.context();
        let verb = Verb::CreateSrq;
        if let Some((xrcd, cq)) = xrc {
            context.check(verb, Object::Xrcd, xrcd.context())?;
            context.check(verb, Object::Cq, cq.context())?;
            init = init.xrc(xrcd.handle(), cq.handle());
        }
        let handle = context.verbs().create_srq(pd.handle(), &init)?;
        let srq = Srq(Owner::new(Parts {
            handle,
            srq_context: init.srq_context,
            pd: pd.clone(),
            xrc: xrc.map(|(xrcd, cq)| (xrcd.clone(), cq.clone())),
            shared: Arc::new(Shared::new(context.next_srq(), context.clock().clone())),
        }));
        if let Some((_, cq)) = xrc {
            cq.add_xrc(&srq.0.shared);
        }
        context.enter(&srq.0);
        Ok(srq)
    }
}

impl Srq {
    /// The protection domain it was made from, to which the regions of its receives must belong
    /// (SRQ-12).
    pub fn pd(&self) -> &Pd {
        &self.0.pd
    }

    /// The program's own value ([`SrqBuilder::srq_context`]).
    pub fn srq_context(&self) -> u64 {
        self.0.srq_context
    }

    /// The XRC domain it was made in, and the CQ of its receives, if it is of XRC.
    pub fn xrc(&self) -> Option<(&Xrcd, &Cq)> {
        self.0.xrc.as_ref().map(|(xrcd, cq)| (xrcd, cq))
    }

    /// The number by which senders name an XRC SRQ ([`Verbs::srq_num`](crate::Verbs::srq_num)).
    ///
    /// # Errors
    /// `Invalid` for a plain SRQ.
    pub fn num(&self) -> Result<u32> {
        self.0.context().verbs().srq_num(self.handle())
    }

    /// Sizes and limit ([`Verbs::query_srq`](crate::Verbs::query_srq)).
    pub fn query(&self) -> Result<SrqAttr> {
        self.0.context().verbs().query_srq(self.handle())
    }

    /// Changes it ([`Verbs::modify_srq`](crate::Verbs::modify_srq)); a failure changes nothing.
    ///
    /// # Errors
    /// `Invalid` for a limit above the size, a size above the device's or below what is posted;
    /// `NotSupported` for a size on a device that cannot change it; `NoMemory`.
    #[track_caller]
    pub fn modify(&self, attr: &SrqAttr, mask: SrqAttrMask) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let verbs = self.0.context().verbs();
        verbs.modify_srq(self.handle(), attr, mask)
    }

    /// Asks for one event `SRQ_LIMIT_REACHED` when fewer receives than this are left, or with 0 for
    /// none ([`Context::get_async_event`]).
    ///
    /// # Errors
    /// `Invalid` for a limit above the size.
    #[track_caller]
    pub fn set_limit(&self, srq_limit: u32) -> Result<()> {
        let attr = SrqAttr {
            srq_limit,
            ..SrqAttr::default()
        };
        self.modify(&attr, SrqAttrMask::LIMIT)
    }

    /// Posts one receive, or several in order
    /// ([`Verbs::post_srq_recv`](crate::Verbs::post_srq_recv)); stops at the first that cannot be
    /// posted.
    ///
    /// # Errors
    /// `Invalid` for bytes that a region does not have, a region of another protection domain, or
    /// too many SGEs; `NoMemory` when the queue is full.
    #[track_caller]
    pub fn post_recv<'w>(&self, list: impl AsRef<[RecvWr<'w>]>) -> Result<(), PostError> {
        let _standing = Standing::at(Site::here());
        let list = list.as_ref();
        let verb = Verb::PostSrqRecv;
        let (sges, bad) = resolve(self.pd(), verb, list, |wr| wr.sg_list, |_| Ok(()));
        let list = &list[..bad.as_ref().map_or(list.len(), |bad| bad.bad_wr)];
        let entries = list.iter().map(|wr| {
            let posted = Posted {
                wr_id: wr.wr_id,
                opcode: WcOpcode::Recv,
            };
            (posted, regions(wr.sg_list))
        });
        self.0.shared.post(entries, |wr_ids| {
            let mut sges = &sges[..];
            let raw = list.iter().zip(wr_ids).map(|(wr, wr_id)| {
                let (now, later) = sges.split_at(wr.sg_list.len());
                sges = later;
                crate::RecvWr::new(*wr_id, now).labeled(wr.label())
            });
            let raw: SmallVec<[_; 4]> = raw.collect();
            let verbs = self.0.context().verbs();
            verbs.post_srq_recv(self.handle(), &raw)
        })?;
        bad.map_or(Ok(()), Err)
    }
}
