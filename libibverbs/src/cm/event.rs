//! Events: read, kept until they are acknowledged, named.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

use verbs_abi::{RDMA_CM_EVENT_USER, rdma_cm_event, rdma_cm_id, rdma_cm_param, rdma_event_channel};
use verbs_api::cm::{CmEvent, CmEventType};
use verbs_api::{Verb, Wait};
use verbs_sim::{Class, Sleeping};

use super::channel::EventChannel;
use super::cm;
use super::id::{self, Id};
use crate::blocking::{self, Begun, Next};
use crate::engine::engine;
use crate::object::{CObject, Holding};
use crate::result::{Refusal, Result, or_minus_one, present};

/// An event that was read: the structure of the program, and what it points into.
pub(super) struct Read {
    seen: Box<rdma_cm_event>,
    told: CmEvent,
}

// SAFETY: the structure is the program's, as in C, and its pointers are those of objects, which any thread may have.
unsafe impl Send for Read {}

pub(crate) extern "C-unwind" fn get_cm_event(
    channel: *mut rdma_event_channel,
    event: *mut *mut rdma_cm_event,
) -> c_int {
    let attempt = |begun: Begun| {
        let Some(channel) = begun.find::<EventChannel>(channel)? else {
            return Ok(Next::GONE);
        };
        present(event)?;
        let cm = cm()?;
        let take = || cm.get_cm_event(channel.handle, Wait::Poll);
        let told = match blocking::look(&channel.more, take)? {
            Next::Taken(told) => told,
            Next::Sleep(fd) => return Ok(Next::Sleep(fd)),
        };
        let read = read(told)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { event.write(read) };
        Ok(Next::Taken(()))
    };
    let sleeping = || {
        let channel = CObject::<EventChannel>::find(channel).ok()?;
        let call = Verb::CmGetEvent.name();
        blocking::is_diagnosed().then(|| Sleeping::on_cm(&engine().sim, call, channel.handle))
    };
    blocking::call("rdma_get_cm_event", channel, attempt, sleeping)
}

/// The next event of a channel, in a call that waits for it.
pub(super) fn next(
    call: &'static str,
    channel: &CObject<EventChannel>,
) -> Result<*mut rdma_cm_event> {
    let cm = cm()?;
    let take = || cm.get_cm_event(channel.handle, Wait::Poll);
    let told = blocking::wait(&channel.more, take, || {
        Sleeping::on_cm(&engine().sim, call, channel.handle)
    })?;
    read(told)
}

/// An event as the program sees it, until it is acknowledged.
fn read(told: CmEvent) -> Result<*mut rdma_cm_event> {
    let cm = cm()?;
    let seen = shown(&told).inspect_err(|_| {
        let _ = cm.ack_cm_event(&told);
    })?;
    let mut read = Read {
        seen: Box::new(seen),
        told,
    };
    // The private data stays where it is when the event moves.
    read.seen.param = rdma_cm_param::to_c(&read.told.param);
    let address = &raw mut *read.seen;
    engine().cm.events.lock().insert(address as usize, read);
    Ok(address)
}

/// An event without what it points into. A new id becomes known, and all show how far they are.
fn shown(told: &CmEvent) -> Result<rdma_cm_event> {
    let listener = told.listen_id.and_then(CObject::<Id>::of);
    let id = match (CObject::<Id>::of(told.id), &listener) {
        (Some(id), _) => id,
        (None, Some(listener)) => child(told, listener)?,
        (None, None) => return Err(Refusal::expected(libc::EIO)),
    };
    id.refresh()?;
    Ok(rdma_cm_event {
        id: id.seen(),
        listen_id: listener.map_or(null_mut(), |listener| listener.seen()),
        event: told.event.into(),
        status: told.status,
        param: rdma_cm_param::default(),
    })
}

/// The id of a request. That of a listener which waits by itself does so too.
fn child(told: &CmEvent, listener: &CObject<Id>) -> Result<Holding<Id>> {
    // SAFETY: one of ours, which stays for the call; a program may change its context.
    let of = unsafe {
        let listener: *mut rdma_cm_id = listener.seen();
        ((*listener).channel, (*listener).context, (*listener).ps)
    };
    let id = id::keep(told.id, of)?;
    if listener.more.own.lock().channel.is_some() {
        id.migrate(None)?;
    }
    Ok(id)
}

pub(crate) extern "C" fn ack_cm_event(event: *mut rdma_cm_event) -> c_int {
    or_minus_one("rdma_ack_cm_event", (), || {
        acknowledge(event)?;
        Ok(0)
    })
}

/// Acknowledges an event: its memory is gone then.
pub(super) fn acknowledge(event: *mut rdma_cm_event) -> Result<()> {
    let read = engine().cm.events.lock().remove(&(event as usize));
    let read = read.ok_or_else(|| not_there(event))?;
    Ok(cm()?.ack_cm_event(&read.told)?)
}

/// What is acknowledged was acknowledged before, or never read.
#[cold]
fn not_there(event: *mut rdma_cm_event) -> Refusal {
    let (class, what) = match event.is_null() {
        true => (Class::Refused, "the pointer to the event is NULL"),
        false => (
            Class::OverAcknowledged,
            "the event was acknowledged before, or never read",
        ),
    };
    Refusal::of(class, libc::EINVAL, what)
}

impl CObject<Id> {
    /// Acknowledges the event that an id keeps which waits by itself.
    pub(super) fn let_go_of_event(&self) -> Result<()> {
        // SAFETY: one of ours, which stays for the call; calls set the event.
        let event = unsafe { std::mem::replace(&mut (*self.seen()).event, null_mut()) };
        match event.is_null() {
            true => Ok(()),
            false => acknowledge(event),
        }
    }
}

/// Queues an event of the program's own.
pub(crate) extern "C" fn write_cm_event(
    id: *mut rdma_cm_id,
    event: u32,
    status: c_int,
    arg: u64,
) -> c_int {
    or_minus_one("rdma_write_cm_event", id, || {
        let id = CObject::<Id>::find(id)?;
        if event != RDMA_CM_EVENT_USER {
            let event = CmEventType::from(event);
            let what = format!("the event is {event}, and programs may only write USER");
            return Err(Refusal::new(libc::EINVAL, what));
        }
        cm()?.write_event(id.handle, CmEventType::User, status, arg)?;
        Ok(0)
    })
}

/// Events of a program have no name, as in librdmacm.
pub(crate) extern "C" fn event_str(event: u32) -> *const c_char {
    let name = match CmEventType::from(event) {
        CmEventType::AddrResolved => c"RDMA_CM_EVENT_ADDR_RESOLVED",
        CmEventType::AddrError => c"RDMA_CM_EVENT_ADDR_ERROR",
        CmEventType::RouteResolved => c"RDMA_CM_EVENT_ROUTE_RESOLVED",
        CmEventType::RouteError => c"RDMA_CM_EVENT_ROUTE_ERROR",
        CmEventType::ConnectRequest => c"RDMA_CM_EVENT_CONNECT_REQUEST",
        CmEventType::ConnectResponse => c"RDMA_CM_EVENT_CONNECT_RESPONSE",
        CmEventType::ConnectError => c"RDMA_CM_EVENT_CONNECT_ERROR",
        CmEventType::Unreachable => c"RDMA_CM_EVENT_UNREACHABLE",
        CmEventType::Rejected => c"RDMA_CM_EVENT_REJECTED",
        CmEventType::Established => c"RDMA_CM_EVENT_ESTABLISHED",
        CmEventType::Disconnected => c"RDMA_CM_EVENT_DISCONNECTED",
        CmEventType::DeviceRemoval => c"RDMA_CM_EVENT_DEVICE_REMOVAL",
        CmEventType::MulticastJoin => c"RDMA_CM_EVENT_MULTICAST_JOIN",
        CmEventType::MulticastError => c"RDMA_CM_EVENT_MULTICAST_ERROR",
        CmEventType::AddrChange => c"RDMA_CM_EVENT_ADDR_CHANGE",
        CmEventType::TimewaitExit => c"RDMA_CM_EVENT_TIMEWAIT_EXIT",
        CmEventType::AddrinfoResolved => c"RDMA_CM_EVENT_ADDRINFO_RESOLVED",
        CmEventType::AddrinfoError => c"RDMA_CM_EVENT_ADDRINFO_ERROR",
        _ => c"UNKNOWN EVENT",
    };
    name.as_ptr()
}
