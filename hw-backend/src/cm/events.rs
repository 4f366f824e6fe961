//! Reading, waiting for and acknowledging events.

use std::ptr::null_mut;

use verbs_abi::{
    RDMA_CM_EVENT_MULTICAST_ERROR, RDMA_CM_EVENT_MULTICAST_JOIN, library, rdma_cm_event,
    rdma_cm_param, rdma_event_channel,
};
use verbs_api::cm::{CmEvent, CmEventType};
use verbs_api::{Cause, CmChannel, CmId, Error, ErrorKind, Result, Verb, Wait};

use super::manager::Manager;
use super::objects::{Id, Unacked};
use crate::errno::{errno, misuse};
use crate::events::Waiting;

impl Manager<'_> {
    /// `rdma_get_cm_event`
    pub(super) fn next_cm_event(&self, channel: CmChannel, wait: Wait) -> Result<CmEvent> {
        let verb = Verb::CmGetEvent;
        let found = self.event_channel(verb, channel)?;
        // The channel is held, so it is not destroyed before the count is seen.
        let _waiting = found.raw.with(verb, |_| Waiting::new(&found.waiters))?;
        let mut event: *mut rdma_cm_event = null_mut();
        let read = |channel: *mut rdma_event_channel| {
            // SAFETY: the channel is live.
            let result = unsafe { library::rdma_get_cm_event(channel, &mut event) };
            // SAFETY: the channel is live.
            (result, errno(), unsafe { (*channel).fd })
        };
        let _reading = self.next_event(verb, &found.raw, wait, read)?;
        // SAFETY: just read, and not acknowledged yet.
        let raw = unsafe { *event };
        let kind = CmEventType::from(raw.event);
        let is_request = kind == CmEventType::ConnectRequest;
        let counted = if is_request { raw.listen_id } else { raw.id };
        let Some(counted) = self.known(counted as usize) else {
            // SAFETY: as above; it is not used afterwards.
            unsafe { library::rdma_ack_cm_event(event) };
            let cause = Cause::Text("the event names an id that does not exist".into());
            return Err(Error::new(verb, ErrorKind::Io, cause));
        };
        let of = self.cm_id(verb, counted)?;
        let id = if is_request {
            // SAFETY: the id came with the request, on the channel of its listener.
            self.insert_id(unsafe { Id::new(raw.id, of.ps, channel, found.clone()) })
        } else {
            counted
        };
        let token = {
            let mut tables = self.cm.lock();
            tables.events += 1;
            tables.events
        };
        let is_group = matches!(
            raw.event,
            RDMA_CM_EVENT_MULTICAST_JOIN | RDMA_CM_EVENT_MULTICAST_ERROR
        );
        // SAFETY: nothing but the token acknowledges it.
        let unacked = unsafe { Unacked::new(event, is_group) };
        of.unacked.lock().insert(token, unacked);
        let mut event = CmEvent::new(id, kind, token);
        event.listen_id = self.known(raw.listen_id as usize);
        event.status = raw.status;
        // SAFETY: the event is not acknowledged yet.
        event.param = unsafe { rdma_cm_param::from_c(&raw.param, raw.event, of.ps.is_datagram()) };
        Ok(event)
    }

    fn known(&self, address: usize) -> Option<CmId> {
        self.cm.lock().handles.get(&address).copied()
    }

    /// `rdma_ack_cm_event`
    pub(super) fn acknowledge_cm_event(&self, event: &CmEvent) -> Result<()> {
        let verb = Verb::CmAckEvent;
        let found = self.cm_id(verb, event.listen_id.unwrap_or(event.id))?;
        // A thread that waits for the acknowledgement counts under this lock.
        let _tables = self.tables.lock();
        let mut unacked = found.unacked.lock();
        let Some(read) = unacked.remove(&event.token) else {
            let text = format!("the event {event} is acknowledged already");
            return Err(misuse(verb, text));
        };
        read.acknowledge();
        self.acknowledged.notify_all();
        Ok(())
    }
}
