//! An acknowledgement that counts later than it arrives, as the rules allow (CQ-POLL-13).
//!
//! The peer's answer may so complete before the send that it answers, and the sends of several
//! queue pairs in another order than they were posted. Within a queue pair everything keeps its
//! order. The timer of the queue pair ends the wait, at the latest when the time-out of the send
//! would be over: nothing is sent again for it.

use verbs_api::behavior::AckEffect;
use verbs_api::lab::Syndrome;

use super::common::Common;
use super::requester::Requester;
use super::verdict::Stop;
use crate::device::Device;
use crate::packet::Psn;

/// The longest wait in microseconds.
const LONGEST: u64 = 8;

impl Requester {
    /// Receives an acknowledgement or a NAK for an RC QP. It counts now or later.
    #[inline]
    pub(super) fn receive_ack(
        &mut self,
        qp: &Common,
        device: &mut Device,
        psn: Psn,
        syndrome: Syndrome,
    ) -> Result<(), Stop> {
        if device.base.behavior.ack_effect == AckEffect::Late {
            // Behind a read, it may show that a response is lost. While the peer is not ready, the
            // timer is in use.
            let may_wait = syndrome == Syndrome::Ack && self.reads == 0 && !self.phase.waits;
            if may_wait && self.expects(qp, psn) && self.holds_back(qp, device, psn) {
                return Ok(());
            }
            self.take_held_ack(qp, device)?;
        }
        self.acknowledge(qp, device, psn, syndrome)
    }

    /// Lets an acknowledgement wait with one that is held back, or draws its own wait. Returns
    /// whether it waits.
    fn holds_back(&mut self, qp: &Common, device: &mut Device, psn: Psn) -> bool {
        if let Some(held) = self.held_ack {
            // One acknowledgement covers those before it.
            if psn.after(held) > 0 {
                self.held_ack = Some(psn);
            }
            return true;
        }
        let Some(wait) = device.base.draw_wait(LONGEST) else {
            return false;
        };
        let end = device.base.now.after(wait);
        let time_out = device.timers.get(qp.index());
        let end = time_out.map_or(end, |at| at.min(end));
        device.timers.set(qp.index(), Some(end));
        self.held_ack = Some(psn);
        true
    }

    /// Lets the acknowledgement that is held back count now, before any later packet.
    pub(super) fn take_held_ack(&mut self, qp: &Common, device: &mut Device) -> Result<(), Stop> {
        match self.held_ack.take() {
            Some(psn) => self.acknowledge(qp, device, psn, Syndrome::Ack),
            None => Ok(()),
        }
    }
}
