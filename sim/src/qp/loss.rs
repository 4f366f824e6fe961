//! Why a request was not answered, as far as the fabric knows, and how its send ends.

use verbs_api::WcStatus;

use super::Qp;
use super::common::Common;
use super::requester::Requester;
use super::verdict::Stop;
use crate::device::{Delivery, Device};
use crate::diagnosis::LossCause;
use crate::packet::Psn;

/// What a diagnosis knows of a requester.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// The newest request that was lost, or whose answer was lost.
    loss: Option<Loss>,
    /// Whether a fault rule or the test controls have made one of its sends fail.
    is_affected: bool,
    /// The number of queue pairs with failed work that were given up, and the number of the first
    /// send posted after that.
    pub(super) begins: Option<(u32, u64)>,
}

/// A packet that was lost: a request, or the answer to one.
#[derive(Clone, Copy, Debug)]
struct Loss {
    /// The last sequence number of the request.
    last: Psn,
    /// Why the first try was lost.
    why: LossCause,
}

impl Requester {
    /// Completes the oldest send that is not done. A failure stops the queue: RC and XRC go to ERR,
    /// UC and UD to SQE if the device has it (QP-STATE-15, -17).
    pub(super) fn finish(
        &mut self,
        qp: &Common,
        device: &mut Device,
        status: WcStatus,
    ) -> Result<(), Stop> {
        if status != WcStatus::Success {
            // A loss before `una` was repaired by a retry, and does not explain this failure.
            let is_answered = |loss: &Loss| loss.last.after(self.una) < 0;
            let loss = self.known.loss.filter(|loss| !is_answered(loss));
            let loss = loss.map(|loss| loss.why);
            self.known.is_affected |= qp.note_failed_send(self, loss, device, status);
        }
        let delivery = self.complete(qp, device, status);
        self.known.is_affected |= delivery == Delivery::Failed;
        Stop::after_send(delivery, status)
    }

    /// The peer has ended the connection. Whether it has refused what left is not reported, and
    /// what waits for a response gets none.
    pub(super) fn hear_end(&mut self, qp: &Common, device: &mut Device) -> Result<(), Stop> {
        while self.sq.oldest() < self.at && !self.sq.get(self.sq.oldest()).awaits_response() {
            self.finish(qp, device, WcStatus::Success)?;
        }
        Err(Stop::Over)
    }
}

impl Qp {
    /// A request up to this number was lost, or its answer. The first loss of the newest request
    /// counts, since later retries fail as a consequence.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn note_unanswered(&mut self, last: Psn, why: LossCause) {
        if let Some(requester) = &mut self.requester {
            let newest = &mut requester.known.loss;
            if newest.is_none_or(|newest| last.after(newest.last) > 0) {
                *newest = Some(Loss { last, why });
            }
        }
    }

    /// Whether a fault rule or the test controls have made some of its work fail.
    pub(crate) fn is_affected(&self) -> bool {
        let sends = self.requester.as_ref().map(|own| own.known.is_affected);
        self.common.is_affected || sends == Some(true)
    }
}
