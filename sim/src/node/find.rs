//! Finding queue pairs by a handle or a number.

use verbs_api::lab::Limit;
use verbs_api::site::Site;
use verbs_api::{Handle, Object, Qp as QpHandle};

use super::Node;
use crate::device::{Device, InContext, Result, find, opening};
use crate::qp::Qp;

impl Node {
    /// The slot of the queue pair that a handle names, directly or by an opening.
    #[inline]
    pub(crate) fn find_qp(&self, qp: QpHandle) -> Result<u32> {
        match opening(qp) {
            None => find(&self.qps, qp),
            Some(opening) => {
                let openings = &self.device.xrcds.openings;
                Ok(openings.at(find(openings, opening)?).qp)
            }
        }
    }

    /// The queue pair that a handle names, and the device.
    #[inline]
    pub(super) fn qp_mut(&mut self, qp: QpHandle) -> Result<(&mut Qp, &mut Device)> {
        let index = self.find_qp(qp)?;
        Ok((self.qps.at_mut(index), &mut self.device))
    }

    /// The slot of the queue pair with this number.
    pub(crate) fn find_by_number(&self, qp_num: u32) -> Option<u32> {
        let index = self.numbers.slot(qp_num)?;
        let qp = self.qps.peek(index)?;
        // The tag of the number may be that of an earlier queue pair.
        (qp.common.qp_num == qp_num).then_some(index)
    }

    /// Where the SRQ of a queue pair was created, or else the queue pair itself.
    pub(crate) fn receiver_made_at(&self, index: u32) -> Option<Site> {
        let (base, qp) = (&self.device.base, self.qps.at(index));
        match qp.responder.receives.made_with() {
            Some(srq) => {
                let context = self.device.srqs.at(srq).handle.context();
                base.made_at(context, Object::Srq, srq)
            }
            None => base.made_at(qp.context(), Object::Qp, index),
        }
    }

    /// Refuses another queue pair at the limit.
    pub(super) fn check_qp_room(&self) -> Result<()> {
        let base = &self.device.base;
        base.check_room("queue pairs", &self.qps, base.attr.max_qp)?;
        // Test controls may allow fewer queue pairs than the device.
        let count = u64::from(self.qps.len()) + 1;
        base.rules.check(Limit::QueuePairs, "queue pairs", count)
    }
}
