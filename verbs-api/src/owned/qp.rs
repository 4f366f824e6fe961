//! Queue pairs.

use std::collections::BTreeSet;
use std::sync::Arc;

use smallvec::SmallVec;

use super::ledger::{Holds, Posted, Queue};
use super::life::{self, Owner, Parts as _, object};
use super::mr::{regions, resolve};
use super::mw::{Mw, MwBind};
use super::wr::{RecvWr, SendWr};
use super::{CmId, Context, Cq, Pd, Srq};
use crate::batch::{BatchEnd, SendOps};
use crate::connect::{self, Endpoint};
use crate::cq::WcOpcode;
use crate::device::Gid;
use crate::error::{Cause, Error, ErrorKind, PostError, Result, Verb};
use crate::handle::{self, Object};
use crate::in_order::{InOrder, InOrderQuery, WrOpcode};
use crate::qp::{QpAttrMask, QpCap, QpInit, QpModify, QpQuery, QpState, QpType};
use crate::rc::RcParams;
use crate::site::{Site, Standing};
use crate::sync::Mutex;
use crate::verbs::Wait;
use crate::{Dest, SendOp, Sge};

/// A queue pair. Any number of threads may post on it.
///
/// Posted work holds the regions and address handles it uses until its completion has been polled,
/// or the QP is reset or destroyed. An unsignaled send holds them until a later completion of the
/// send queue is polled.
///
/// Destroying it, or dropping the last handle, ends its outstanding work without completions. The
/// device chooses whether completions that are in the CQ already come out, with the program's
/// `wr_id`, or are removed (CQ-DESTROY-08).
///
/// ```compile_fail,E0382
/// # use verbs_api::owned::{Qp, RecvWr};
/// # fn f(qp: Qp) {
/// qp.destroy().unwrap();
/// qp.post_recv(&[RecvWr::new(1, &[])]).unwrap(); // borrow of moved value
/// # }
/// ```
///
/// A thread that may outlive the function gets a clone, not a borrow:
///
/// ```compile_fail,E0373
/// # use verbs_api::owned::{Qp, RecvWr};
/// # fn f(qp: Qp) {
/// std::thread::spawn(|| qp.post_recv(&[])); // closure may outlive `f`, and borrows `qp`
/// # drop(qp);
/// # }
/// ```
#[derive(Clone)]
pub struct Qp(pub(super) Arc<Owner<Parts>>);

pub(super) struct Parts {
    pub(super) handle: handle::Qp,
    num: u32,
    qp_type: QpType,
    qp_context: u64,
    pd: Pd,
    /// What it was made for. The id goes after it.
    id: Option<CmId>,
    send: Side,
    recv: Side,
    groups: Mutex<BTreeSet<(Gid, u16)>>,
    srq: Option<Srq>,
}

/// One of the two queues, and where its completions go.
struct Side {
    queue: Arc<Queue>,
    cq: Cq,
}

object!(Qp, "ibv_destroy_qp");

impl life::Parts for Parts {
    const VERB: Verb = Verb::DestroyQp;
    type Handle = handle::Qp;

    fn handle(&self) -> handle::Qp {
        self.handle
    }

    fn context(&self) -> &Context {
        self.pd.context()
    }

    fn destroy(&self) -> Result<()> {
        self.leave_groups();
        match &self.id {
            Some(id) => id.cm().raw().destroy_cm_qp(id.handle(), Wait::Poll),
            None => self.context().verbs().destroy_qp(self.handle, Wait::Poll),
        }
    }
}

impl Parts {
    /// In a group it could not be destroyed.
    fn leave_groups(&self) {
        for (group, lid) in self.groups.lock().iter().copied() {
            let verbs = self.context().verbs();
            // The destruction that follows reports any obstacle.
            let _ = verbs.detach_mcast(self.handle, group, lid);
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.context().leave(self.handle);
        for side in [&self.send, &self.recv] {
            let (_, holds) = side.queue.lock().release();
            drop(holds);
            side.cq.queue_is_gone(&side.queue);
        }
    }
}

/// Creates a queue pair: [`Pd::qp`].
#[derive(Clone, Debug)]
#[must_use = "nothing is made before `create`"]
pub struct QpBuilder<'a> {
    pd: &'a Pd,
    send_cq: &'a Cq,
    recv_cq: &'a Cq,
    qp_type: QpType,
    srq: Option<&'a Srq>,
    cap: QpCap,
    sq_sig_all: bool,
    qp_context: u64,
    send_ops: SendOps,
}

impl Pd {
    /// Starts to make a queue pair, with these CQs for its sends and its receives; they may be one.
    pub fn qp<'a>(&'a self, qp_type: QpType, send_cq: &'a Cq, recv_cq: &'a Cq) -> QpBuilder<'a> {
        QpBuilder {
            pd: self,
            send_cq,
            recv_cq,
            qp_type,
            srq: None,
            cap: QpCap::default(),
            sq_sig_all: false,
            qp_context: 0,
            send_ops: SendOps::empty(),
        }
    }
}

impl<'a> QpBuilder<'a> {
    /// Takes receives from an SRQ (RC and UD). Default: a receive queue of its own.
    pub fn srq(self, srq: &'a Srq) -> Self {
        Self {
            srq: Some(srq),
            ..self
        }
    }

    /// Allows batches of these operations ([`Qp::post_batch`]). Default: no batches.
    pub fn send_ops(self, send_ops: SendOps) -> Self {
        Self { send_ops, ..self }
    }

    /// Sets all sizes at once. Defaults: those of the methods below.
    pub fn cap(self, cap: QpCap) -> Self {
        Self { cap, ..self }
    }

    /// The number of work requests in the send queue. Default: 16.
    pub fn max_send_wr(mut self, max_send_wr: u32) -> Self {
        self.cap.max_send_wr = max_send_wr;
        self
    }

    /// The number of work requests in the receive queue. Default: 16.
    pub fn max_recv_wr(mut self, max_recv_wr: u32) -> Self {
        self.cap.max_recv_wr = max_recv_wr;
        self
    }

    /// The number of entries in the list of a send. Default: 1.
    pub fn max_send_sge(mut self, max_send_sge: u32) -> Self {
        self.cap.max_send_sge = max_send_sge;
        self
    }

    /// With this many entries in the list of a receive. Default: 1.
    pub fn max_recv_sge(mut self, max_recv_sge: u32) -> Self {
        self.cap.max_recv_sge = max_recv_sge;
        self
    }

    /// With this many bytes of inline data. Default: 0.
    pub fn max_inline_data(mut self, max_inline_data: u32) -> Self {
        self.cap.max_inline_data = max_inline_data;
        self
    }

    /// With a completion for every send. Default: for signaled ones, and those that fail.
    pub fn sq_sig_all(self) -> Self {
        Self {
            sq_sig_all: true,
            ..self
        }
    }

    /// With a value of the program's own, such as an index in a table of peers. Completions of the
    /// queue pair have it ([`Completion::qp_context`](super::Completion::qp_context)), and so has
    /// the queue pair of an event ([`Qp::qp_context`]). Default: 0.
    pub fn qp_context(self, qp_context: u64) -> Self {
        Self { qp_context, ..self }
    }

    /// Creates it, in RESET ([`Verbs::create_qp`](crate::Verbs::create_qp)).
    ///
    /// # Errors
    /// `Invalid` for sizes above the device's, a CQ or an SRQ of another context, or an SRQ where
    /// the transport has none; `NotSupported` for a transport the device does not have; `NoMemory`.
    #[track_caller]
    pub fn create(self) -> Result<Qp> {
        let _standing = Standing::at(Site::here());
        self.make(Verb::CreateQp, None)
    }

    /// Creates it for an id of rdma_cm that is bound to a device: in INIT, or in RTS if it is of UD
    /// ([`cm::Cm::create_cm_qp`](crate::cm::Cm::create_cm_qp)). From then on rdma_cm changes its
    /// state.
    ///
    /// # Errors
    /// As for [`create`](Self::create); `Invalid` also for an id of another context, and one that
    /// has a queue pair.
    #[track_caller]
    pub fn create_for(self, id: &CmId) -> Result<Qp> {
        let _standing = Standing::at(Site::here());
        self.make(Verb::CmCreateQp, Some(id))
    }

    fn make(self, verb: Verb, id: Option<&CmId>) -> Result<Qp> {
        let context = self.pd.context();
        if let Some(id) = id {
            context.check(verb, Object::Pd, id.context()?)?;
        }
        for cq in [self.send_cq, self.recv_cq] {
            context.check(verb, Object::Cq, cq.context())?;
        }
        if let Some(srq) = self.srq {
            context.check(verb, Object::Srq, srq.pd().context())?;
        }
        let (send_cq, recv_cq) = (self.send_cq.handle(), self.recv_cq.handle());
        let mut init = QpInit::new(self.qp_type, send_cq, recv_cq).cap(self.cap);
        init.sq_sig_all = self.sq_sig_all;
        init.qp_context = self.qp_context;
        init.srq = self.srq.map(Srq::handle);
        init.send_ops = self.send_ops;
        let verbs = context.verbs();
        let handle = match id {
            Some(id) => {
                let pd = Some(self.pd.handle());
                id.cm().raw().create_cm_qp(id.handle(), pd, &init)?
            }
            None => verbs.create_qp(self.pd.handle(), &init)?,
        };
        let num = verbs.qp_num(handle).inspect_err(|_| {
            let _ = match id {
                Some(id) => id.cm().raw().destroy_cm_qp(id.handle(), Wait::Poll),
                None => verbs.destroy_qp(handle, Wait::Poll),
            };
        })?;
        let side = |cq: &Cq| Side {
            queue: cq.add_queue(num, self.qp_context),
            cq: cq.clone(),
        };
        let qp = Qp(Owner::new(Parts {
            handle,
            num,
            qp_type: self.qp_type,
            qp_context: self.qp_context,
            pd: self.pd.clone(),
            id: id.cloned(),
            send: side(self.send_cq),
            recv: side(self.recv_cq),
            groups: Mutex::new(BTreeSet::new()),
            srq: self.srq.cloned(),
        }));
        if let Some(srq) = self.srq {
            qp.0.recv.cq.add_shared(&qp.0.recv.queue, &srq.0.shared);
        }
        context.enter(&qp.0);
        Ok(qp)
    }
}

impl Qp {
    /// The protection domain it was made from.
    pub fn pd(&self) -> &Pd {
        &self.0.pd
    }

    /// The CQ of its sends.
    pub fn send_cq(&self) -> &Cq {
        &self.0.send.cq
    }

    /// The CQ of its receives.
    pub fn recv_cq(&self) -> &Cq {
        &self.0.recv.cq
    }

    /// The SRQ that its receives come from, if any.
    pub fn srq(&self) -> Option<&Srq> {
        self.0.srq.as_ref()
    }

    /// The QP number.
    pub fn num(&self) -> u32 {
        self.0.num
    }

    /// The transport.
    pub fn qp_type(&self) -> QpType {
        self.0.qp_type
    }

    /// The program's own value.
    pub fn qp_context(&self) -> u64 {
        self.0.qp_context
    }

    /// Attributes ([`Verbs::query_qp`](crate::Verbs::query_qp)).
    #[track_caller]
    pub fn query(&self, mask: QpAttrMask) -> Result<QpQuery> {
        let _standing = Standing::at(Site::here());
        self.0.context().verbs().query_qp(self.handle(), mask)
    }

    /// Whether the bytes of a message become visible in order
    /// ([`Verbs::query_qp_data_in_order`](crate::Verbs::query_qp_data_in_order)).
    #[track_caller]
    pub fn query_data_in_order(&self, opcode: WrOpcode, flags: InOrderQuery) -> Result<InOrder> {
        let _standing = Standing::at(Site::here());
        let verbs = self.0.context().verbs();
        verbs.query_qp_data_in_order(self.handle(), opcode, flags)
    }

    /// The state of the queue pair.
    pub fn state(&self) -> Result<QpState> {
        Ok(self.query(QpAttrMask::STATE)?.attr.qp_state)
    }

    /// Changes it ([`Verbs::modify_qp`](crate::Verbs::modify_qp)); a failure changes nothing. A QP
    /// that goes to RESET releases what its work requests held.
    ///
    /// # Errors
    /// `Invalid` for a transition that does not exist, a mask that does not fit it, or a value out
    /// of range.
    #[track_caller]
    pub fn modify(&self, modify: &QpModify) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let verbs = self.0.context().verbs();
        let change = || verbs.modify_qp(self.handle(), &modify.attr, modify.mask);
        let resets =
            modify.mask.contains(QpAttrMask::STATE) && modify.attr.qp_state == QpState::Reset;
        if !resets {
            return change();
        }
        let (send, recv) = (&self.0.send, &self.0.recv);
        // No thread posts in between, so everything that is released was posted before.
        let (locked_send, locked_recv) = (send.queue.lock(), recv.queue.lock());
        change()?;
        let (next_send, send_holds) = locked_send.release();
        let (next_recv, recv_holds) = locked_recv.release();
        drop((send_holds, recv_holds));
        send.cq.queue_was_reset(&send.queue, next_send);
        recv.cq.queue_was_reset(&recv.queue, next_recv);
        Ok(())
    }

    /// Connects it with another QP of this process, both RC and in RESET, and brings both to RTS
    /// ([`Verbs::connect_rc`](crate::Verbs::connect_rc)). Works on every transport.
    ///
    /// # Errors
    /// `Invalid` in another state, for a value out of range, or for a QP of another backend.
    #[track_caller]
    pub fn connect_rc(&self, peer: &Self, params: &RcParams) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let verbs = self.0.context().verbs();
        // The backends themselves, not their tables of methods, of which there may be several.
        let address = |of: &Self| Arc::as_ptr(of.0.context().verbs()).cast::<()>();
        if address(self) != address(peer) {
            let cause = Cause::Mismatch {
                object: Object::Qp,
                must_share: "backend",
            };
            return Err(Error::new(Verb::ConnectRc, ErrorKind::Invalid, cause));
        }
        verbs.connect_rc(self.handle(), peer.handle(), params)
    }

    /// The facts that a peer in another process needs to [`connect`](Self::connect) with this QP.
    #[track_caller]
    pub fn endpoint(&self, params: &RcParams) -> Result<Endpoint> {
        let _standing = Standing::at(Site::here());
        connect::endpoint(&**self.0.context().verbs(), self.handle(), params)
    }

    /// Connects it, RC, UC or XRC_SEND and in RESET, with the QP of a peer, and brings it to RTS;
    /// the peer does the same with this one's endpoint ([`connect::to_endpoint`]). Not on iWARP.
    ///
    /// ```no_run
    /// use std::io::{Read, Write};
    /// use std::net::TcpStream;
    /// use verbs_api::{RcParams, connect::Endpoint, owned::Qp};
    ///
    /// fn connect(qp: &Qp, mut peer: TcpStream) -> Result<(), Box<dyn std::error::Error>> {
    ///     let params = RcParams::default();
    ///     peer.write_all(&qp.endpoint(&params)?.to_bytes())?;
    ///     let mut bytes = [0; Endpoint::BYTES];
    ///     peer.read_exact(&mut bytes)?;
    ///     qp.connect(&Endpoint::from_bytes(bytes), &params)?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// Post receives for the first messages before the peer learns that this QP is ready; INIT and
    /// later states allow it.
    #[track_caller]
    pub fn connect(&self, peer: &Endpoint, params: &RcParams) -> Result<()> {
        let _standing = Standing::at(Site::here());
        connect::to_endpoint(&**self.0.context().verbs(), self.handle(), peer, params)
    }

    /// Brings a UD QP from RESET to RTS on this port, with P_Key index 0 and this Q_Key
    /// ([`connect::ud_to_rts`]).
    #[track_caller]
    pub fn activate(&self, port_num: u8, qkey: u32) -> Result<()> {
        let _standing = Standing::at(Site::here());
        connect::ud_to_rts(&**self.0.context().verbs(), self.handle(), port_num, qkey)
    }

    /// Attaches a UD QP to a multicast group ([`Verbs::attach_mcast`](crate::Verbs::attach_mcast)).
    /// It leaves its groups when it is destroyed, even if destroying it fails.
    ///
    /// ```no_run
    /// use verbs_api::owned::{Pd, Qp, SendWr};
    /// use verbs_api::{AhAttr, Gid, MULTICAST_QPN, Result};
    ///
    /// /// Sends an empty datagram to all who are in the group, this one among them.
    /// fn call(pd: &Pd, qp: &Qp, group: Gid, qkey: u32) -> Result<()> {
    ///     qp.attach_mcast(group, 0)?;
    ///     let ah = pd.create_ah(&AhAttr::global(1, 0, group))?;
    ///     qp.post_send(&[SendWr::send(1, &[]).to(&ah, MULTICAST_QPN, qkey)])?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// `Invalid` for another transport or a GID that names no group; `NoMemory`; `NotSupported`.
    #[track_caller]
    pub fn attach_mcast(&self, group: Gid, lid: u16) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let mut groups = self.0.groups.lock();
        let verbs = self.0.context().verbs();
        verbs.attach_mcast(self.handle(), group, lid)?;
        groups.insert((group, lid));
        Ok(())
    }

    /// Detaches it from a multicast group ([`Verbs::detach_mcast`](crate::Verbs::detach_mcast)).
    ///
    /// # Errors
    /// `Invalid` if it is not attached.
    #[track_caller]
    pub fn detach_mcast(&self, group: Gid, lid: u16) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let mut groups = self.0.groups.lock();
        let verbs = self.0.context().verbs();
        verbs.detach_mcast(self.handle(), group, lid)?;
        groups.remove(&(group, lid));
        Ok(())
    }

    /// Posts one send, or several in order ([`Verbs::post_send`](crate::Verbs::post_send)); stops
    /// at the first that cannot be posted.
    ///
    /// ```
    /// # use verbs_api::{Result, owned::{Qp, SendWr}};
    /// # fn f(qp: &Qp) -> Result<()> {
    /// qp.post_send(SendWr::send(1, &[]))?;
    /// qp.post_send([SendWr::send(2, &[]), SendWr::send(3, &[])])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` in a state that does not allow it, for bytes that a region does not have, a region
    /// or address handle of another protection domain, too many SGEs, too much inline data, or an
    /// opcode the transport does not have; `NoMemory` when the queue is full.
    #[track_caller]
    pub fn post_send<'w>(&self, list: impl AsRef<[SendWr<'w>]>) -> Result<(), PostError> {
        let _standing = Standing::at(Site::here());
        let list = list.as_ref();
        let (named, bad) = self.resolve(Verb::PostSend, list);
        let list = &list[..bad.as_ref().map_or(list.len(), |bad| bad.bad_wr)];
        let verbs = self.0.context().verbs();
        self.post_sends(list, &named, |raw| verbs.post_send(self.handle(), raw))?;
        bad.map_or(Ok(()), Err)
    }

    /// Posts a batch of sends, all of them or none
    /// ([`Verbs::post_batch`](crate::Verbs::post_batch)).
    ///
    /// # Errors
    /// As for [`post_send`](Self::post_send); `Invalid` also for an operation that the QP was not
    /// made with ([`QpBuilder::send_ops`]).
    #[track_caller]
    pub fn post_batch(&self, list: &[SendWr<'_>]) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let (named, bad) = self.resolve(Verb::PostBatch, list);
        if let Some(bad) = bad {
            return Err(bad.error);
        }
        let verbs = self.0.context().verbs();
        let post = |raw: &[crate::SendWr<'_>]| {
            let posted = verbs.post_batch(self.handle(), raw, BatchEnd::Complete);
            // The first that is not posted is the first of all.
            posted.map_err(|error| PostError { bad_wr: 0, error })
        };
        let posted = self.post_sends(list, &named, post);
        posted.map_err(|refused| refused.error)
    }

    /// What all sends up to the first that is bad name, for the device; and that one.
    fn resolve(&self, verb: Verb, list: &[SendWr<'_>]) -> (Named, Option<PostError>) {
        let mut ops = SmallVec::new();
        let check = |wr: &SendWr<'_>| {
            ops.push(wr.resolve(verb, self.pd())?);
            Ok(())
        };
        let (sges, bad) = resolve(self.pd(), verb, list, |wr| wr.sg_list, check);
        (Named { ops, sges }, bad)
    }

    /// Lets `post` post sends, and keeps what they use.
    fn post_sends(
        &self,
        list: &[SendWr<'_>],
        named: &Named,
        post: impl FnOnce(&[crate::SendWr<'_>]) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        let entries = list.iter().map(|wr| {
            let posted = Posted {
                wr_id: wr.wr_id,
                opcode: wr.op.wc_opcode(),
            };
            (posted, wr.holds())
        });
        self.0.send.queue.post(entries, |first| {
            let mut sges = &named.sges[..];
            let raw = list.iter().zip(&named.ops).enumerate();
            let raw = raw.map(|(place, (wr, &(op, dest)))| {
                let (now, later) = sges.split_at(wr.sg_list.len());
                sges = later;
                crate::SendWr {
                    flags: wr.flags,
                    inline_data: wr.inline_data,
                    dest,
                    ..crate::SendWr::new(first.wr_id(place), op, now).labeled(wr.label())
                }
            });
            let raw: SmallVec<[_; 1]> = raw.collect();
            post(&raw)
        })
    }

    /// Posts one receive, or several in order ([`Verbs::post_recv`](crate::Verbs::post_recv)); stops
    /// at the first that cannot be posted. Errors as for [`post_send`](Self::post_send).
    #[track_caller]
    pub fn post_recv<'w>(&self, list: impl AsRef<[RecvWr<'w>]>) -> Result<(), PostError> {
        let _standing = Standing::at(Site::here());
        let list = list.as_ref();
        let verb = Verb::PostRecv;
        let (sges, bad) = resolve(self.pd(), verb, list, |wr| wr.sg_list, |_| Ok(()));
        let list = &list[..bad.as_ref().map_or(list.len(), |bad| bad.bad_wr)];
        let entries = list.iter().map(|wr| {
            let posted = Posted {
                wr_id: wr.wr_id,
                opcode: WcOpcode::Recv,
            };
            (posted, regions(wr.sg_list))
        });
        self.0.recv.queue.post(entries, |first| {
            let mut sges = &sges[..];
            let raw = list.iter().enumerate().map(|(place, wr)| {
                let (now, later) = sges.split_at(wr.sg_list.len());
                sges = later;
                crate::RecvWr::new(first.wr_id(place), now).labeled(wr.label())
            });
            let raw: SmallVec<[_; 1]> = raw.collect();
            self.0.context().verbs().post_recv(self.handle(), &raw)
        })?;
        bad.map_or(Ok(()), Err)
    }

    /// Posts a bind of a window of type 1 ([`Verbs::bind_mw`](crate::Verbs::bind_mw)). It completes
    /// as a send does; until that has been polled it holds window and region.
    ///
    /// # Errors
    /// `Invalid` for a window of type 2, one of another protection domain, bytes that the region
    /// does not have, or a state that does not allow posting; `NoMemory` when the queue is full.
    #[track_caller]
    pub fn bind_mw(&self, mw: &Mw, bind: &MwBind<'_>) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let info = bind.info.resolve(Verb::BindMw, self.pd(), mw)?;
        let posted = Posted {
            wr_id: bind.wr_id,
            opcode: WcOpcode::BindMw,
        };
        let entries = std::iter::once((posted, Holds::from_iter(bind.info.holds(mw))));
        let verbs = self.0.context().verbs();
        let result = self.0.send.queue.post(entries, |first| {
            let bind = crate::MwBind {
                flags: bind.flags,
                ..crate::MwBind::new(first.wr_id(0), info).labeled(bind.wr_id)
            };
            let posted = verbs.bind_mw(self.handle(), mw.handle(), &bind);
            posted.map_err(|error| PostError { bad_wr: 0, error })
        });
        result.map_err(|refused| refused.error)
    }
}

/// What sends name, for the device: what each does and where it goes, and the entries of all.
struct Named {
    ops: SmallVec<[(SendOp, Dest); 1]>,
    sges: SmallVec<[Sge; 2]>,
}
