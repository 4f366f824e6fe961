//! Reading, writing and naming events.

use std::ffi::{CString, c_char, c_int};
use std::ptr::null_mut;
use std::sync::LazyLock;

use verbs_abi::{
    RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_USER, rdma_cm_event, rdma_cm_id, rdma_cm_param,
    rdma_event_channel,
};
use verbs_api::cm::{Cm, CmEvent, CmEventType};
use verbs_api::{Verb, Wait};
use verbs_sim::WaitGuard;

use super::channel::EventChannel;
use super::id::{self, Id};
use super::unacknowledged::{acknowledge, keep};
use crate::c::blocking;
use crate::c::{CObject, Held, Refusal, Result, present, zero_or_minus_one};
use crate::engine::sim;
use crate::verbs::text::pick;

pub(crate) extern "C-unwind" fn get_cm_event(
    channel: *mut rdma_event_channel,
    event: *mut *mut rdma_cm_event,
) -> c_int {
    let attempt = |channel: &CObject<EventChannel>| {
        present(event)?;
        let take = || sim().get_cm_event(channel.handle, Wait::Poll);
        blocking::look(&channel.more, take)?.give(|taken| {
            let read = read(taken)?;
            // SAFETY: the program's, to be written (C's contract).
            unsafe { event.write(read) };
            Ok(())
        })
    };
    let sleeping = |channel: &CObject<EventChannel>| {
        let call = Verb::CmGetEvent.name();
        Some(WaitGuard::on_cm(sim(), call, channel.handle))
    };
    blocking::call("rdma_get_cm_event", channel, attempt, sleeping)
}

/// The next event of a channel. The call waits for it.
pub(super) fn next(
    call: &'static str,
    channel: &CObject<EventChannel>,
) -> Result<*mut rdma_cm_event> {
    let take = || sim().get_cm_event(channel.handle, Wait::Poll);
    let taken = blocking::wait(&channel.more, take, || {
        WaitGuard::on_cm(sim(), call, channel.handle)
    })?;
    read(taken)
}

/// Shows an event to the program, which has it until it acknowledges it.
fn read(event: CmEvent) -> Result<*mut rdma_cm_event> {
    let shown = shown(&event).inspect_err(|_| {
        let _ = sim().ack_cm_event(&event);
    })?;
    Ok(keep(event, shown))
}

/// The structure of an event, without its parameters. The id of a request is new. The structures of
/// the ids are brought up to date.
fn shown(event: &CmEvent) -> Result<rdma_cm_event> {
    let listener = event.listen_id.and_then(CObject::<Id>::of);
    let id = match (CObject::<Id>::of(event.id), &listener) {
        (Some(id), _) => id,
        (None, Some(listener)) => child(event, listener)?,
        // The id was destroyed before its event was read.
        (None, None) => return Err(Refusal::expected(libc::EIO)),
    };
    id.refresh()?;
    Ok(rdma_cm_event {
        id: id.seen(),
        listen_id: listener.map_or(null_mut(), |listener| listener.seen()),
        event: event.event.into(),
        status: event.status,
        param: rdma_cm_param::default(),
    })
}

/// The id of a request. If the listener waits by itself, so does the id.
fn child(request: &CmEvent, listener: &CObject<Id>) -> Result<Held<Id>> {
    // SAFETY: one of ours, which stays for the call; a program may change its context.
    let plain = unsafe {
        let listener: *mut rdma_cm_id = listener.seen();
        rdma_cm_id {
            channel: (*listener).channel,
            context: (*listener).context,
            ps: (*listener).ps,
            ..rdma_cm_id::default()
        }
    };
    let id = id::keep(request.id, plain)?;
    // The listener waits by itself, so its new ids do, too.
    if listener.more.own.lock().channel.is_some() {
        id.migrate(None)?;
    }
    Ok(id)
}

pub(crate) extern "C" fn ack_cm_event(event: *mut rdma_cm_event) -> c_int {
    zero_or_minus_one("rdma_ack_cm_event", (), |()| acknowledge(event))
}

/// `rdma_write_cm_event`: queues an event of the program.
pub(crate) extern "C" fn write_cm_event(
    id: *mut rdma_cm_id,
    event: u32,
    status: c_int,
    arg: u64,
) -> c_int {
    zero_or_minus_one("rdma_write_cm_event", id, |id| {
        if event != RDMA_CM_EVENT_USER {
            let event = CmEventType::from(event);
            return Err(Refusal::invalid(format!(
                "the event is {event}, and programs may only write USER"
            )));
        }
        Ok(sim().write_event(id.handle, CmEventType::User, status, arg)?)
    })
}

/// `rdma_event_str`. Events of a program have no name, as in librdmacm.
pub(crate) extern "C" fn event_str(event: u32) -> *const c_char {
    static NAMES: LazyLock<Vec<CString>> = LazyLock::new(|| {
        let name = |event: CmEventType| CString::new(format!("RDMA_CM_EVENT_{event}"));
        let all = CmEventType::ALL
            .iter()
            .filter(|event| **event != CmEventType::User);
        all.map(|event| name(*event).unwrap_or_default()).collect()
    });
    pick(&NAMES, event, c"UNKNOWN EVENT")
}

/// Ids without a channel of the program wait for their events by themselves.
impl CObject<Id> {
    /// Waits for the event that ends the call of an id that waits by itself. The id keeps the
    /// event.
    pub(super) fn complete(&self, call: Verb) -> Result<()> {
        let Some(channel) = self.more.own.lock().channel.clone() else {
            return Ok(());
        };
        self.acknowledge_own()?;
        let event = next(call.name(), &channel)?;
        // SAFETY: one of ours, which stays for the call. The event has just been read.
        let (kind, status) = unsafe {
            (*self.seen()).event = event;
            ((*event).event, (*event).status)
        };
        match status {
            0 => Ok(()),
            // As in librdmacm, whatever reason the peer gave.
            _ if kind == RDMA_CM_EVENT_REJECTED => Err(Refusal::expected(libc::ECONNREFUSED)),
            status => Err(Refusal::expected(status)),
        }
    }
}
