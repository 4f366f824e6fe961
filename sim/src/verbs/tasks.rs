//! Waking tasks.

use std::task::Waker;

use verbs_api::{EventSource, Object, Result};

use super::sim::Sim;
use crate::device::{self, Answer, EventQueue};
use crate::fabric::{Fabric, WaitFor};

impl Sim {
    /// Wakes a task when the next event is queued.
    pub(super) fn wake_task(&self, source: EventSource, waker: &Waker) -> Result<()> {
        let verb = source.verb();
        let (place, wait_for) = match source {
            EventSource::CompChannel(of) => (self.node(verb, of)?, WaitFor::Event(of)),
            EventSource::Async(of) => {
                let node = self.node_of(verb, Object::Context, of)?;
                (node, WaitFor::AsyncEvent(of))
            }
            EventSource::CmChannel(of) => {
                self.runtime.check_thread(verb)?;
                (self.runtime.config.nodes, WaitFor::CmEvent(of))
            }
        };
        let replaced = self.runtime.with(|fabric| {
            let is_due = fabric.has_unread(source, place).by(verb)?;
            if is_due || fabric.step_for_task(wait_for.ended_by()) {
                fabric.call_waker(waker.clone());
                return Ok(None);
            }
            if fabric.closed {
                return Err(self.runtime.stalled(fabric, place, verb, wait_for));
            }
            Ok(fabric.keep_waker(wait_for.ended_by(), place, waker.clone()))
        })?;
        // The lock is free: a task may end with its last waker.
        drop(replaced);
        Ok(())
    }
}

impl Fabric {
    /// Whether an event of a source is queued. `place` is its node.
    fn has_unread(&self, source: EventSource, place: u32) -> device::Result<bool> {
        let of = match source {
            EventSource::CompChannel(of) => EventQueue::Channel(of),
            EventSource::Async(of) => EventQueue::Async(of),
            EventSource::CmChannel(of) => {
                let (unread, _) = self.cm_bridge.manager.channels.queue(of)?;
                return Ok(unread > 0);
            }
        };
        let device = &self.node(place).device;
        device.base.check_alive(source.verb())?;
        let (unread, _) = device.cqs.event_queue(&device.base, of)?;
        Ok(unread > 0)
    }
}
