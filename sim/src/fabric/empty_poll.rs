//! Empty polls in stepped mode: how far they move the clock.
//!
//! An empty poll delivers the next packet. It moves the clock to a timer, or to a change of a port,
//! only if nothing has happened since the last empty poll of the same CQ: no packet arrived, no
//! timer fired, the time did not change, and no party made a call that changes something, except to
//! arm and to acknowledge. So parties that take turns on one thread have each had a turn by then,
//! and nothing to do. Unread completions and events do not hold time back.
//!
//! A program polls, arms and polls again: the second poll is part of the first, and moves nothing.
//! While an executor holds the clock, no poll moves it.

use verbs_api::{Cq, Verb};

use super::Fabric;
use super::schedule::Due;
use crate::device::Moment;
use crate::time::Time;

impl Fabric {
    /// Moves the clock for a program that polls a CQ and finds nothing.
    pub(crate) fn empty_poll(&mut self, node: u32, cq: Cq) {
        if self.is_held {
            return;
        }
        let before = self.moment();
        let cqs = &mut self.node_mut(node).device.cqs;
        let Some(is_still) = cqs.look_mut(cq).begin(before) else {
            return;
        };
        self.step_for_poll(is_still);
        let after = self.moment();
        self.node_mut(node).device.cqs.look_mut(cq).end(after);
    }

    /// Takes the next step if it is a packet, or if nothing else moves the clock.
    pub(super) fn step_for_poll(&mut self, is_still: bool) {
        let (now, horizon) = (self.now(), self.horizon());
        let limit = match self.next_due(horizon) {
            Some((at, Due::Packet | Due::DelayedPacket)) => at,
            _ if is_still => horizon,
            _ => now,
        };
        self.step(limit);
    }

    /// How far polls and tasks that wait move the clock at most.
    pub(crate) fn horizon(&self) -> Time {
        self.now().after(self.config.horizon)
    }

    /// Notes that a call has succeeded. Polls are counted where they find something.
    #[inline(always)]
    pub(crate) fn note_call(&mut self, verb: Verb) {
        use Verb::{AckAsyncEvent, AckCqEvents, CmAckEvent, PollCq, ReadMr, ReqNotifyCq, WriteMr};
        let is_idle = matches!(
            verb,
            PollCq | ReqNotifyCq | AckCqEvents | AckAsyncEvent | CmAckEvent | ReadMr | WriteMr
        );
        if !is_idle {
            self.activity += 1;
        }
    }

    pub(crate) fn moment(&self) -> Moment {
        (self.activity, self.now())
    }
}
