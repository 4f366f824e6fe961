//! Events that were read and that nobody acknowledged. The library's destroy waits for them, so what
//! goes with its context acknowledges them itself.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::objects::{Cq, Qp, Srq};
use crate::owner::Owned;
use crate::sys;

/// Types of events by which the library knows what an event is of: `IBV_EVENT_CQ_ERR`,
/// `IBV_EVENT_QP_FATAL` and `IBV_EVENT_SRQ_ERR`.
const OF_CQ: u32 = 0;
const OF_QP: u32 = 1;
const OF_SRQ: u32 = 14;

impl Drop for Cq {
    fn drop(&mut self) {
        let events = std::mem::take(self.unacked.get_mut());
        // SAFETY: the CQ is live, and so many events of it were read.
        let acknowledge = |cq| unsafe { sys::ibv_ack_cq_events(cq, events) };
        // One that was destroyed has none.
        let _ = self.raw.with(acknowledge);
        acknowledge_async(&self.raw, &self.async_unacked, OF_CQ);
    }
}

impl Drop for Srq {
    fn drop(&mut self) {
        acknowledge_async(&self.raw, &self.async_unacked, OF_SRQ);
    }
}

impl Qp {
    /// To be called when it goes.
    pub(crate) fn acknowledge_all(&self) {
        acknowledge_async(&self.raw, &self.async_unacked, OF_QP);
    }
}

fn acknowledge_async<T>(object: &Owned<T>, unacked: &AtomicU32, event_type: u32) {
    // One that was destroyed has none.
    let _ = object.with(|raw| {
        for _ in 0..unacked.swap(0, Ordering::Relaxed) {
            let mut event = sys::AsyncEvent {
                element: raw as usize,
                event_type,
            };
            // SAFETY: the structure has the layout of C's, and names a live object of which an event
            // was read.
            unsafe { sys::ibv_ack_async_event(std::ptr::from_mut(&mut event).cast()) };
        }
    });
}
