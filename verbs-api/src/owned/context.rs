//! The context: an open device.

use core::any::Any;
use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::ledger::Clock;
use super::life::{DestroyError, Owner, Parts, Remains, still_held};
use super::tasks::Tasks;
use crate::capability::Capabilities;
use crate::device::{DeviceAttr, Gid, PortAttr, RtValues};
use crate::error::{Cause, Error, ErrorKind, Result, Verb};
use crate::event::EventSource;
use crate::handle::{self, Handle, Object};
use crate::site::{Site, Standing};
use crate::sync::Mutex;
use crate::verbs::Verbs;

/// An open device, and the backend it belongs to. It is closed when its last clone and the last
/// object created from it are dropped, unless it belongs to a [`Cm`](super::Cm).
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    verbs: Arc<dyn Verbs>,
    handle: handle::Context,
    /// It is that of the ids of a device, which stays open.
    of_ids: bool,
    /// The objects that events can be about.
    objects: Mutex<BTreeMap<Key, Weak<dyn Any + Send + Sync>>>,
    /// How many SRQs were made so far.
    srqs_made: Mutex<u32>,
    clock: Clock,
    /// Objects that could not be destroyed when they were dropped. They hold this context: an
    /// object that can never be destroyed leaks, with all it was made from.
    kept: Mutex<Vec<Box<dyn Remains>>>,
    tasks: Tasks,
}

/// An object in [`Inner::objects`]: what it is, and the index and generation of its handle.
type Key = (Object, u32, u32);

fn key<H: Handle>(handle: H) -> Key {
    (H::OBJECT, handle.index(), handle.generation())
}

impl Context {
    /// Opens the device with this name ([`Verbs::open_device`]).
    ///
    /// # Errors
    /// `NoDevice` if there is none of that name; `TooManyFiles`.
    #[track_caller]
    pub fn open(verbs: Arc<dyn Verbs>, name: &str) -> Result<Self> {
        let _standing = Standing::at(Site::here());
        let handle = verbs.open_device(name)?;
        Ok(Self::new(verbs, handle, false))
    }

    /// The context of the ids of a device, which rdma_cm has opened.
    pub(super) fn of_ids(verbs: Arc<dyn Verbs>, handle: handle::Context) -> Self {
        Self::new(verbs, handle, true)
    }

    fn new(verbs: Arc<dyn Verbs>, handle: handle::Context, of_ids: bool) -> Self {
        Self(Arc::new(Inner {
            verbs,
            handle,
            of_ids,
            objects: Mutex::default(),
            srqs_made: Mutex::default(),
            clock: Clock::default(),
            kept: Mutex::default(),
            tasks: Tasks::new(EventSource::Async(handle)),
        }))
    }

    /// Limits of the device ([`Verbs::query_device`]).
    pub fn query_device(&self) -> Result<DeviceAttr> {
        self.verbs().query_device(self.handle())
    }

    /// State of a port, from 1 ([`Verbs::query_port`]).
    #[track_caller]
    pub fn query_port(&self, port: u8) -> Result<PortAttr> {
        let _standing = Standing::at(Site::here());
        self.verbs().query_port(self.handle(), port)
    }

    /// An entry of a port's GID table ([`Verbs::query_gid`]).
    #[track_caller]
    pub fn query_gid(&self, port: u8, index: u32) -> Result<Gid> {
        let _standing = Standing::at(Site::here());
        self.verbs().query_gid(self.handle(), port, index)
    }

    /// An entry of a port's P_Key table ([`Verbs::query_pkey`]).
    #[track_caller]
    pub fn query_pkey(&self, port: u8, index: u16) -> Result<u16> {
        let _standing = Standing::at(Site::here());
        self.verbs().query_pkey(self.handle(), port, index)
    }

    /// The device's clock ([`Verbs::query_rt_values`]).
    #[track_caller]
    pub fn query_rt_values(&self) -> Result<RtValues> {
        let _standing = Standing::at(Site::here());
        self.verbs().query_rt_values(self.handle())
    }

    /// The capabilities of the device ([`Verbs::capabilities`]).
    pub fn capabilities(&self) -> Result<Capabilities> {
        self.verbs().capabilities(self.handle())
    }

    /// The backend. The [module](super#raw-access) says what raw calls can spoil.
    pub fn verbs(&self) -> &Arc<dyn Verbs> {
        &self.0.verbs
    }

    /// The raw handle, for [`Verbs`].
    pub fn handle(&self) -> handle::Context {
        self.0.handle
    }

    /// Closes the device (`ibv_close_device`). Unlike dropping, it returns an error on failure.
    ///
    /// # Errors
    /// `Busy` while a clone or an object of it exists, and for a context of [`Cm`](super::Cm),
    /// which stays open; the errors of the verb. The error returns the context.
    #[track_caller]
    pub fn close(self) -> Result<(), DestroyError<Self>> {
        let _standing = Standing::at(Site::here());
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

    /// The tasks that wait for asynchronous events.
    pub(super) fn tasks(&self) -> &Tasks {
        &self.0.tasks
    }

    /// Lets events find an object by its handle, until it [leaves](Self::leave).
    pub(super) fn enter<P: Parts>(&self, object: &Arc<Owner<P>>) {
        let weak = Arc::downgrade(object);
        let key = key(object.handle());
        self.0.objects.lock().insert(key, weak);
    }

    pub(super) fn leave(&self, object: impl Handle) {
        self.0.objects.lock().remove(&key(object));
    }

    /// The object of this handle. `None` if it was dropped, if it is of another type, or if it is
    /// not of this layer.
    pub(super) fn find<P: Parts>(&self, object: P::Handle) -> Option<Arc<Owner<P>>> {
        // The lock is free by the end of this line: dropping the object would take it.
        let found = self.0.objects.lock().get(&key(object))?.upgrade()?;
        found.downcast().ok()
    }

    /// A number for a new SRQ, of 30 bits.
    pub(super) fn next_srq(&self) -> u32 {
        let mut made = self.0.srqs_made.lock();
        *made = made.wrapping_add(1);
        *made & ((1 << 30) - 1)
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
    pub(super) fn check(&self, verb: Verb, object: Object, of: &Self) -> Result<()> {
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
