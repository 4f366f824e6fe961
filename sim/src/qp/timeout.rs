//! What happens when the timer of a requester fires.
//!
//! The peer may be another process of this machine, and only be slow: stopped by a debugger, or
//! without a processor. A retry would not make it answer sooner, so none is used up.

use core::time::Duration;

use super::Qp;
use super::common::Common;
use super::requester::Requester;
use super::verdict::Stop;
use crate::address::ip_of;
use crate::device::{Device, Doubt};
use crate::time::Time;

/// The least time between two looks at a slow peer, which take system calls.
const LEAST: Duration = Duration::from_millis(10);

impl Requester {
    /// Handles the timer of an RC QP.
    fn timeout(&mut self, qp: &Common, device: &mut Device) -> Result<(), Stop> {
        if self.held_ack.is_some() {
            return self.take_held_ack(qp, device);
        }
        if self.doubts(qp, device) {
            return Ok(());
        }
        self.repeat(qp, device)
    }

    /// Transmits again what may be lost, or what the peer was not ready for.
    fn repeat(&mut self, qp: &Common, device: &mut Device) -> Result<(), Stop> {
        if self.phase.timer_fired() {
            return self.retry(qp, device, self.una);
        }
        self.pump(qp, device)?;
        // An answer may be missing although there is nothing to transmit again.
        self.keep_timer(qp, device, false);
        Ok(())
    }

    /// Asks whether the peer is only slow, unless it was waited for too long. Returns whether the
    /// answer has to come before anything else happens.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn doubts(&self, qp: &Common, device: &mut Device) -> bool {
        let since = |since: Time| device.base.now.as_nanos() - since.as_nanos();
        let waited = self.slow_since.map_or(0, since);
        // A peer that asked to wait has read what was sent to it.
        if self.phase.waits || waited >= device.doubts.patience {
            return false;
        }
        let Some(route) = qp.route.filter(|route| route.leads_outside()) else {
            return false;
        };
        device.doubts.raise(qp.handle, ip_of(route.dgid), self.una);
        true
    }

    /// Goes on after a doubt, unless an answer has arrived since.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn settle(
        &mut self,
        qp: &Common,
        device: &mut Device,
        doubt: &Doubt,
        is_slow: bool,
    ) -> Result<(), Stop> {
        let is_open = doubt.una == self.una && self.expects(qp, self.una) && self.is_busy();
        if !is_open || self.phase.waits || self.held_ack.is_some() {
            return Ok(());
        }
        if is_slow {
            let now = device.base.now;
            self.slow_since.get_or_insert(now);
            // What the peer has not read may be of others, and this have found no room.
            self.rewind(self.una, true);
            self.pump(qp, device)?;
            self.keep_timer(qp, device, true);
            let least = now.after(LEAST);
            if device.timers.get(qp.index()).is_some_and(|at| at < least) {
                device.timers.set(qp.index(), Some(least));
            }
            return Ok(());
        }
        self.repeat(qp, device)
    }
}

impl Qp {
    /// Handles its timer.
    pub(crate) fn timeout(&mut self, device: &mut Device) {
        self.request(device, |requester, qp, device| {
            requester.timeout(qp, device)
        });
    }

    /// Settles a doubt: the peer is slow, or what may be lost is transmitted again.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn settle(&mut self, device: &mut Device, doubt: &Doubt, is_slow: bool) {
        self.request(device, |requester, qp, device| {
            requester.settle(qp, device, doubt, is_slow)
        });
    }
}
