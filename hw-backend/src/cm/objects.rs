//! Event channels and ids.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use parking_lot::Mutex;
use verbs_abi::{ibv_context, library, rdma_cm_event, rdma_cm_id, rdma_event_channel};
use verbs_api::cm::PortSpace;
use verbs_api::table::Table;
use verbs_api::{
    Cause, CmChannel, CmId, Context, Error, ErrorKind, Pd as PdHandle, Qp as QpHandle, Result, Verb,
};

use crate::errno::made;
use crate::owner::Owned;
use crate::reactor::Source;
use crate::wait::{duplicate, set_nonblocking};

/// The objects of rdma_cm. Fields are dropped in this order.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(super) ids: Table<Arc<Id>>,
    pub(super) channels: Table<Arc<EventChannel>>,
    /// Ids by the address of their C object, for events.
    pub(super) handles: BTreeMap<usize, CmId>,
    pub(super) contexts: Contexts,
    /// Lists that keep a context open.
    pub(super) lists: Vec<DeviceList>,
    /// The number of events that were read.
    pub(super) events: u64,
}

/// Contexts by their addresses, each with the domain of its ids, once it is known.
pub(super) type Contexts = BTreeMap<usize, (Context, Option<PdHandle>)>;

#[derive(Debug)]
pub(crate) struct EventChannel {
    pub(super) raw: Owned<rdma_event_channel>,
    pub(super) waiters: AtomicU32,
    pub(crate) events: Source,
}

impl EventChannel {
    /// A duplicate of its descriptor.
    pub(crate) fn fd(&self, verb: Verb) -> Result<OwnedFd> {
        // SAFETY: the channel is live.
        let fd = |channel: *mut rdma_event_channel| duplicate(verb, unsafe { (*channel).fd });
        self.raw.with(verb, fd)?
    }

    /// `rdma_create_event_channel`
    pub(super) fn new(verb: Verb) -> Result<Self> {
        open(verb)?;
        // SAFETY: makes a new object.
        let made = made(verb, || unsafe { library::rdma_create_event_channel() });
        let raw = made.map_err(|error| match error.errno() {
            libc::ENOENT => {
                let text = "there is no /dev/infiniband/rdma_cm: `modprobe rdma_ucm`";
                Error::new(verb, ErrorKind::NoDevice, Cause::Text(text.into()))
            }
            _ => error,
        })?;
        let channel = Self {
            // SAFETY: it is new.
            raw: unsafe { Owned::new(raw) },
            waiters: AtomicU32::new(0),
            events: Source::default(),
        };
        // SAFETY: the channel is live.
        set_nonblocking(verb, unsafe { (*raw).fd })?;
        Ok(channel)
    }
}

/// An id. C changes its fields as events are read. Code that reads them or calls C holds
/// [`Hw::reading`].
#[derive(Debug)]
pub(crate) struct Id {
    pub(super) raw: Owned<rdma_cm_id>,
    pub(super) ps: PortSpace,
    pub(super) qp: Mutex<Option<QpHandle>>,
    /// Events that were read and not acknowledged, by their tokens. A request counts as its
    /// listener's.
    pub(super) unacked: Mutex<BTreeMap<u64, Unacked>>,
    pub(super) channel: Mutex<(CmChannel, Arc<EventChannel>)>,
}

impl Id {
    /// # Safety
    /// `raw` is a live id on `channel`, which has this `handle`. Nothing else destroys the id.
    pub(super) unsafe fn new(
        raw: *mut rdma_cm_id,
        ps: PortSpace,
        handle: CmChannel,
        channel: Arc<EventChannel>,
    ) -> Self {
        Self {
            // SAFETY: the caller's promise.
            raw: unsafe { Owned::new(raw) },
            ps,
            qp: Mutex::default(),
            unacked: Mutex::default(),
            channel: Mutex::new((handle, channel)),
        }
    }

    pub(super) fn unacked(&self) -> u32 {
        self.unacked.lock().len() as u32
    }

    /// `rdma_destroy_qp`
    pub(crate) fn destroy_qp(&self, verb: Verb) -> Result<()> {
        // SAFETY: the id is live, and so is its QP.
        self.raw
            .with(verb, |id| unsafe { library::rdma_destroy_qp(id) })
    }
}

impl Drop for Id {
    /// Acknowledges its events, for which the library would wait.
    fn drop(&mut self) {
        for event in std::mem::take(self.unacked.get_mut()).into_values() {
            event.acknowledge();
        }
    }
}

/// An event that was read and not acknowledged.
#[derive(Debug)]
pub(super) struct Unacked {
    event: *mut rdma_cm_event,
    /// The event is of a group. Leaving the group waits for it.
    pub(super) is_group: bool,
}

// SAFETY: events of librdmacm may be used from any thread.
unsafe impl Send for Unacked {}

impl Unacked {
    /// # Safety
    /// `event` was read, and nothing else acknowledges it.
    pub(super) unsafe fn new(event: *mut rdma_cm_event, is_group: bool) -> Self {
        Self { event, is_group }
    }

    pub(super) fn acknowledge(self) {
        // SAFETY: it was read and not acknowledged (`new`). The result is 0 for an event.
        unsafe { library::rdma_ack_cm_event(self.event) };
    }
}

/// A list of contexts. The library keeps them open, with domains of its own.
#[derive(Debug)]
pub(super) struct DeviceList(pub(super) *mut *mut ibv_context);

// SAFETY: the list is only freed, which any thread may do.
unsafe impl Send for DeviceList {}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: the list came from `rdma_get_devices`, and goes with the last context of it.
        unsafe { library::rdma_free_devices(self.0) };
    }
}

/// An established connection. Dropping it ends the connection.
#[derive(Debug)]
pub(crate) struct Connection {
    // Fields are dropped in order: ids before their channel.
    pub(super) _ids: Vec<Arc<Id>>,
    pub(super) _channel: Option<Arc<EventChannel>>,
}

/// Opens the library, unless it is open.
pub(super) fn open(verb: Verb) -> Result<()> {
    library::open_librdmacm().map_err(|why| {
        let cause = Cause::Text(why.to_string().into());
        Error::new(verb, ErrorKind::NoDevice, cause)
    })
}

/// Whether this machine has rdma_cm.
pub(crate) fn is_here() -> bool {
    EventChannel::new(Verb::CmCreateEventChannel).is_ok()
}
