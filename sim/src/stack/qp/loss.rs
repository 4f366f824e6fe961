//! Why a request was not answered, as far as the fabric knows.

use super::Qp;
use crate::packet::Psn;

/// A packet was lost that was a request, or the answer to one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    /// The last sequence number of the request.
    last: Psn,
    /// Why the first try was lost.
    why: &'static str,
}

/// The oldest request that is not answered, when its send fails.
pub(super) struct Unanswered {
    pub(super) psn: Psn,
    /// Why it was lost, or a newer one was.
    pub(super) why: Option<&'static str>,
}

impl Unanswered {
    pub(super) fn new(psn: Psn, loss: Option<Loss>) -> Self {
        let is_answered = |loss: &Loss| loss.last.after(psn) < 0;
        let loss = loss.filter(|loss| !is_answered(loss));
        Self {
            psn,
            why: loss.map(|loss| loss.why),
        }
    }
}

impl Qp {
    /// A request up to this number was lost, or its answer. The first loss of the newest request counts: what comes of
    /// later tries follows from it.
    pub(crate) fn note_unanswered(&mut self, last: Psn, why: &'static str) {
        if let Some(requester) = &mut self.requester {
            let newest = requester.loss.as_ref();
            if newest.is_none_or(|newest| last.after(newest.last) > 0) {
                requester.loss = Some(Loss { last, why });
            }
        }
    }

    /// Whether a fault rule or the laboratory has let a piece of its work fail.
    pub(crate) fn is_harmed(&self) -> bool {
        let sends = self.requester.as_ref().map(|own| own.is_harmed);
        self.common.is_harmed || sends == Some(true)
    }
}
