//! Work that may still complete in a CQ.

use core::fmt;
use std::collections::BTreeSet;

use super::{Unposted, counted};
use crate::node::Node;

/// The work that has not completed in a CQ.
#[derive(Default)]
pub(crate) struct Outstanding {
    /// Signaled sends, started or not.
    sends: u64,
    /// Receives. Those of SRQs may complete in other CQs, too.
    receives: u64,
    /// Sends that make no completion if they succeed, and still hold their slots.
    unsignaled: u64,
    /// Work requests of batches that are not posted.
    unposted: usize,
    /// The number of the first QP whose unanswered sends are never given up.
    patient: Option<u32>,
}

impl Outstanding {
    /// The work of the CQ with this index.
    pub(crate) fn of(node: &Node, cq: u32) -> Self {
        let mut found = Self::default();
        let of_xrc = node.device.srqs.iter();
        let of_xrc = of_xrc.filter(|(_, srq)| srq.xrc.as_ref().is_some_and(|xrc| xrc.cq == cq));
        let mut srqs: BTreeSet<u32> = of_xrc.map(|(index, _)| index).collect();
        for (_, qp) in node.qps.iter() {
            let here = |of: Option<(u32, u64)>| of.filter(|(at, _)| *at == cq).map_or(0, |of| of.1);
            found.sends += here(qp.signaled_sends());
            found.receives += here(qp.own_receives());
            found.unsignaled += here(qp.unsignaled_sends());
            if qp.signaled_sends().is_some_and(|(at, _)| at == cq) && qp.waits_without_limit() {
                found.patient.get_or_insert(qp.common.qp_num);
            }
            // Several queue pairs may share an SRQ, whose receives count once.
            srqs.extend(qp.srq_into(cq));
        }
        let taken = |srq: u32| node.device.srqs.at(srq).recvs.len() as u64;
        found.receives += srqs.into_iter().map(taken).sum::<u64>();
        found
    }

    /// Adds the unposted batches of the queue pairs whose sends complete in this CQ.
    pub(crate) fn with_unposted(mut self, node: &Node, cq: u32, batches: &[Unposted]) -> Self {
        let completes_here = |batch: &&Unposted| {
            let qp = node.qp(batch.qp);
            let sends = qp.and_then(|qp| qp.signaled_sends());
            sends.is_some_and(|(at, _)| at == cq)
        };
        let batches = batches.iter().filter(completes_here);
        self.unposted = batches.map(|batch| batch.requests).sum();
        self
    }

    /// Whether nothing can complete in it.
    pub(crate) fn is_none(&self) -> bool {
        (self.sends, self.receives, self.unsignaled) == (0, 0, 0)
    }
}

impl fmt::Display for Outstanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sends = counted(self.sends, "send", "sends");
        let receives = counted(self.receives, "receive", "receives");
        let are = |count| if count == 1 { "is" } else { "are" };
        match (self.sends, self.receives) {
            (0, 0) => write!(f, "no work is outstanding that would complete in it"),
            (count, 0) => write!(f, "{sends} {} outstanding", are(count)),
            (0, count) => write!(f, "{receives} {} outstanding", are(count)),
            _ => write!(f, "{sends} and {receives} are outstanding"),
        }?;
        if self.sends + self.receives == 0 && self.unsignaled > 0 {
            let sends = counted(self.unsignaled, "send was", "sends were");
            write!(f, "; {sends} not signaled")?;
        }
        if let Some(qp_num) = self.patient {
            write!(
                f,
                "; the timeout of qp {qp_num:#x} is 0, so a send that gets no answer is neither \
                 repeated nor given up"
            )?;
        }
        if self.unposted > 0 {
            let requests = counted(self.unposted, "work request is", "work requests are");
            let batch = "a batch that is not completed (ibv_wr_complete)";
            write!(f, "; {requests} in {batch}")?;
        }
        Ok(())
    }
}
