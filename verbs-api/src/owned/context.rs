//! The context: an open device.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::cq::{self, Cq, CqBuilder};
use super::ledger::Clock;
use super::life::{DestroyError, Owner, Remains, still_held};
use super::qp::{self, Qp};
use super::srq::{self, Srq};
use super::xrc::{self, XrcRecvQp, Xrcd};
use super::{CompChannel, Pd};
use crate::capability::Capabilities;
use crate::device::{DeviceAttr, Gid, PortAttr};
use crate::error::{Cause, Error, ErrorKind, Result, Verb};
use crate::handle;
use crate::sync::Mutex;
use crate::verbs::Verbs;
use crate::xrc::XrcdInit;

/// An open device, and the backend it belongs to. It is closed when its last clone and the last
/// object made from it are gone, unless it is one of [`Cm`](super::Cm).
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    verbs: Arc<dyn Verbs>,
    handle: handle::Context,
    /// It is that of the ids of a device, which stays open.
    of_ids: bool,
    objects: Mutex<Objects>,
    clock: Clock,
    /// Objects that could not be destroyed when they were dropped. They hold this context: an
    /// object that can never be destroyed leaks, with all it was made from.
    kept: Mutex<Vec<Box<dyn Remains>>>,
}

/// Which object the handle in an event names.
#[derive(Default)]
struct Objects {
    cqs: BTreeMap<handle::Cq, Weak<Owner<cq::Parts>>>,
    qps: BTreeMap<handle::Qp, Weak<Owner<qp::Parts>>>,
    srqs: BTreeMap<handle::Srq, Weak<Owner<srq::Parts>>>,
    xrc_recv_qps: BTreeMap<handle::Qp, Weak<Owner<xrc::TargetParts>>>,
    /// How many SRQs were made so far.
    srqs_made: u32,
}

impl Context {
    /// Opens the device called `name` ([`Verbs::open_device`]).
    ///
    /// # Errors
    /// `NoDevice` if there is none of that name; `TooManyFiles`.
    pub fn open(verbs: Arc<dyn Verbs>, name: &str) -> Result<Self> {
        let handle = verbs.open_device(name)?;
        Ok(Self::new(verbs, handle, false))
    }

    /// That of the ids of a device, which rdma_cm has opened.
    pub(super) fn of_ids(verbs: Arc<dyn Verbs>, handle: handle::Context) -> Self {
        Self::new(verbs, handle, true)
    }

    fn new(verbs: Arc<dyn Verbs>, handle: handle::Context, of_ids: bool) -> Self {
        Self(Arc::new(Inner {
            verbs,
            handle,
            of_ids,
            objects: Mutex::default(),
            clock: Clock::default(),
            kept: Mutex::default(),
        }))
    }

    /// Limits of the device ([`Verbs::query_device`]).
    pub fn query_device(&self) -> Result<DeviceAttr> {
        self.verbs().query_device(self.handle())
    }

    /// State of a port, from 1 ([`Verbs::query_port`]).
    pub fn query_port(&self, port: u8) -> Result<PortAttr> {
        self.verbs().query_port(self.handle(), port)
    }

    /// An entry of a port's GID table ([`Verbs::query_gid`]).
    pub fn query_gid(&self, port: u8, index: u32) -> Result<Gid> {
        self.verbs().query_gid(self.handle(), port, index)
    }

    /// An entry of a port's P_Key table ([`Verbs::query_pkey`]).
    pub fn query_pkey(&self, port: u8, index: u16) -> Result<u16> {
        self.verbs().query_pkey(self.handle(), port, index)
    }

    /// What the device can do ([`Verbs::capabilities`]).
    pub fn capabilities(&self) -> Result<Capabilities> {
        self.verbs().capabilities(self.handle())
    }

    /// Makes a protection domain ([`Verbs::alloc_pd`]).
    pub fn alloc_pd(&self) -> Result<Pd> {
        Pd::alloc(self)
    }

    /// Makes a completion channel ([`Verbs::create_comp_channel`]).
    ///
    /// # Errors
    /// `TooManyFiles`, `NoMemory`.
    pub fn create_comp_channel(&self) -> Result<CompChannel> {
        CompChannel::create(self)
    }

    /// Starts to make a CQ of at least `cqe` entries.
    pub fn cq(&self, cqe: u32) -> CqBuilder<'_> {
        CqBuilder::new(self, cqe)
    }

    /// Opens an XRC domain ([`Verbs::open_xrcd`]).
    ///
    /// # Errors
    /// `NotFound` if the file, or the domain that it names, does not exist and creating was not
    /// asked for; `Invalid` if the domain has to be new and exists; `NotSupported` on a device
    /// without XRC; `NoMemory`.
    pub fn open_xrcd(&self, init: &XrcdInit<'_>) -> Result<Xrcd> {
        Xrcd::open(self, init)
    }

    /// The backend. The [module](super#raw-access) says what raw calls can spoil.
    pub fn verbs(&self) -> &Arc<dyn Verbs> {
        &self.0.verbs
    }

    /// The raw handle, for [`Verbs`].
    pub fn handle(&self) -> handle::Context {
        self.0.handle
    }

    /// Closes the device (`ibv_close_device`). Unlike dropping, it reports why if it cannot.
    ///
    /// # Errors
    /// `Busy` while a clone or an object of it lives, and for a context of [`Cm`](super::Cm), which
    /// stays open; those of the verb. The context comes back with the error.
    pub fn close(self) -> Result<(), DestroyError<Self>> {
        let closed = match Arc::strong_count(&self.0) {
            1 if self.0.of_ids => {
                let cause = Cause::Text(format!("{self:?} is that of all ids of rdma_cm").into());
                Err(Error::new(Verb::CloseDevice, ErrorKind::Busy, cause))
            }
            1 => self.verbs().close_device(self.handle()),
            held => Err(still_held(Verb::CloseDevice, self.handle(), held - 1)),
        };
        // Once closed, closing it again in `Drop` does nothing: its handle is stale.
        closed.map_err(|error| DestroyError {
            object: self,
            error,
        })
    }

    /// The time of what is posted, and of what is forgotten.
    pub(super) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(super) fn enter_cq(&self, cq: &Arc<Owner<cq::Parts>>) {
        let mut objects = self.0.objects.lock();
        objects.cqs.insert(cq.handle, Arc::downgrade(cq));
    }

    pub(super) fn enter_qp(&self, qp: &Arc<Owner<qp::Parts>>) {
        let mut objects = self.0.objects.lock();
        objects.qps.insert(qp.handle, Arc::downgrade(qp));
    }

    pub(super) fn enter_srq(&self, srq: &Arc<Owner<srq::Parts>>) {
        let mut objects = self.0.objects.lock();
        objects.srqs.insert(srq.handle, Arc::downgrade(srq));
    }

    pub(super) fn leave_srq(&self, srq: handle::Srq) {
        self.0.objects.lock().srqs.remove(&srq);
    }

    pub(super) fn enter_xrc_recv_qp(&self, qp: &Arc<Owner<xrc::TargetParts>>) {
        let mut objects = self.0.objects.lock();
        objects.xrc_recv_qps.insert(qp.handle, Arc::downgrade(qp));
    }

    pub(super) fn leave_xrc_recv_qp(&self, qp: handle::Qp) {
        self.0.objects.lock().xrc_recv_qps.remove(&qp);
    }

    /// A number for a new SRQ, of 30 bits.
    pub(super) fn next_srq(&self) -> u32 {
        let mut objects = self.0.objects.lock();
        objects.srqs_made += 1;
        objects.srqs_made & ((1 << 30) - 1)
    }

    pub(super) fn leave_cq(&self, cq: handle::Cq) {
        self.0.objects.lock().cqs.remove(&cq);
    }

    pub(super) fn leave_qp(&self, qp: handle::Qp) {
        self.0.objects.lock().qps.remove(&qp);
    }

    /// The CQ of this handle, unless it has been dropped or is not of this layer.
    pub(super) fn find_cq(&self, cq: handle::Cq) -> Option<Cq> {
        self.0.objects.lock().cqs.get(&cq)?.upgrade().map(Cq)
    }

    /// The QP of this handle, unless it has been dropped or is not of this layer.
    pub(super) fn find_qp(&self, qp: handle::Qp) -> Option<Qp> {
        self.0.objects.lock().qps.get(&qp)?.upgrade().map(Qp)
    }

    /// The SRQ of this handle, unless it has been dropped or is not of this layer.
    pub(super) fn find_srq(&self, srq: handle::Srq) -> Option<Srq> {
        self.0.objects.lock().srqs.get(&srq)?.upgrade().map(Srq)
    }

    /// The XRC_RECV QP of this handle, as above.
    pub(super) fn find_xrc_recv_qp(&self, qp: handle::Qp) -> Option<XrcRecvQp> {
        let objects = self.0.objects.lock();
        objects.xrc_recv_qps.get(&qp)?.upgrade().map(XrcRecvQp)
    }

    /// Keeps an object that could not be destroyed when it was dropped.
    pub(super) fn keep(&self, remains: Box<dyn Remains>) {
        self.0.kept.lock().push(remains);
    }

    /// Tries again to destroy what was kept.
    pub(super) fn try_kept_again(&self) {
        let gone = |remains: &mut Box<dyn Remains>| remains.is_gone();
        let gone: Vec<_> = self.0.kept.lock().extract_if(.., gone).collect();
        // With the lock free: their parents may go now, and may have to be kept.
        drop(gone);
    }

    /// Refuses an object of another context. Handles alone do not tell: those of two backends may
    /// be equal.
    pub(super) fn check(&self, verb: Verb, object: handle::Object, of: &Self) -> Result<()> {
        if self == of {
            return Ok(());
        }
        let cause = Cause::Mismatch {
            object,
            must_share: "context",
        };
        Err(Error::new(verb, ErrorKind::Invalid, cause))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.of_ids {
            // Nothing is left that could tell the error to anybody.
            let _ = self.verbs.close_device(self.handle);
        }
    }
}

impl PartialEq for Context {
    /// Whether both are handles of one context.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Context {}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.handle.fmt(f)
    }
}
