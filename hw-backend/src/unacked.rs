//! Events that were read and not acknowledged. The library's destroy waits for them, so an object
//! that is dropped acknowledges them itself.

use std::sync::atomic::{AtomicU32, Ordering};

use verbs_abi::{ibv_async_event, library};
use verbs_api::{AsyncEventType, Verb};

use crate::objects::{Cq, Qp, Srq};
use crate::owner::{Kind, Owned};

impl Drop for Cq {
    fn drop(&mut self) {
        let events = std::mem::take(self.unacked.get_mut());
        // SAFETY: the CQ is live, and this number of its events was read.
        let acknowledge = |cq| unsafe { library::ibv_ack_cq_events(cq, events) };
        // A destroyed object has none.
        let _ = self.raw.with(Verb::AckCqEvents, acknowledge);
        acknowledge_async(&self.raw, &self.async_unacked, AsyncEventType::CqErr);
    }
}

impl Drop for Srq {
    fn drop(&mut self) {
        acknowledge_async(&self.raw, &self.async_unacked, AsyncEventType::SrqErr);
    }
}

impl Qp {
    /// Called when the queue pair is dropped.
    pub(crate) fn acknowledge_all(&self) {
        acknowledge_async(&self.raw, &self.async_unacked, AsyncEventType::QpFatal);
    }
}

/// Acknowledges asynchronous events. The library finds the kind of the object by `event_type`.
fn acknowledge_async<T: Kind>(object: &Owned<T>, unacked: &AtomicU32, event_type: AsyncEventType) {
    // A destroyed object has none.
    let _ = object.with(Verb::AckAsyncEvent, |raw| {
        for _ in 0..unacked.swap(0, Ordering::Relaxed) {
            let (element, event_type) = (raw as usize, event_type.into());
            let mut event = ibv_async_event {
                element,
                event_type,
            };
            // SAFETY: it names a live object of which an event was read.
            unsafe { library::ibv_ack_async_event(&mut event) };
        }
    });
}
