//! Compares the two ends of a connection, which a queue pair alone cannot do.

use verbs_api::site::Site;
use verbs_api::{Mtu, Qp as QpHandle, QpState, QpType};

use super::problem::{Difference, EndsDiffer, Noted};
use crate::fabric::Fabric;
use crate::qp::Qp;

impl Fabric {
    /// A queue pair has entered RTR or RTS: records what does not match its peer. Each attribute is
    /// compared when the later of the two ends has it.
    pub(crate) fn compare_ends(&mut self, node: u32, qp: QpHandle, to: QpState) {
        for (node, problem) in self.mismatches(node, qp, to).unwrap_or_default() {
            // The mistake belongs to the end that reads, once it does.
            if problem.what == Difference::Reads {
                let qp_num = problem.qp_num;
                let noted = Noted::at(problem, self.site.map(Site::with_calls));
                let node = self.node_mut(node);
                let reader = node.find_by_number(qp_num);
                let has_read = reader.is_some_and(|index| node.qps.at(index).has_read());
                let journal = &mut node.device.base.journal;
                journal.reads_exceed(qp_num, noted, has_read);
            } else {
                self.note_mistake(node, problem);
            }
        }
    }

    /// The mismatches of a queue pair and its peer, each with the node of the end that it is about.
    fn mismatches(&self, node: u32, qp: QpHandle, to: QpState) -> Option<Vec<(u32, EndsDiffer)>> {
        let slot = self.node(node);
        let own = End {
            node,
            qp: slot.qp(qp)?,
        };
        let to_peer = own.qp.common.route?.to.filter(|to| !to.is_outside())?;
        let slot = self.node(to_peer.node);
        let index = slot.find_by_number(own.qp.common.attr.dest_qp_num)?;
        let peer = End {
            node: to_peer.node,
            qp: slot.qps.at(index),
        };
        // After a reset an end may still have attributes of its earlier connection.
        let is_fresh = !own.qp.was_reset && !peer.qp.was_reset;
        let is_connected = matches!(own.qp.qp_type(), QpType::Rc | QpType::Uc);
        let is_mutual = peer.qp.common.attr.dest_qp_num == own.qp.common.qp_num;
        (is_fresh && is_connected && is_mutual).then(|| differences(own, peer, to))
    }
}

/// An end of a connection.
#[derive(Clone, Copy)]
struct End<'f> {
    node: u32,
    qp: &'f Qp,
}

impl End<'_> {
    /// A mismatch that is about this end, if the values do not match.
    fn differs(
        self,
        peer: Self,
        what: Difference,
        own: impl Into<u64>,
        others: impl Into<u64>,
    ) -> Option<(u32, EndsDiffer)> {
        let (own, others) = (own.into(), others.into());
        let problem = EndsDiffer {
            qp_num: self.qp.common.qp_num,
            peer: (peer.node, peer.qp.common.qp_num),
            what,
            own,
            others,
        };
        // An end may accept more reads than the other starts.
        let is_wrong = own > others || own < others && what != Difference::Reads;
        is_wrong.then_some((self.node, problem))
    }
}

fn differences(own: End<'_>, peer: End<'_>, to: QpState) -> Vec<(u32, EndsDiffer)> {
    use Difference as D;
    let (attr, other) = (&own.qp.common.attr, &peer.qp.common.attr);
    // The peer is compared when it enters RTR itself.
    if !matches!(other.qp_state, QpState::Rtr | QpState::Rts) {
        return Vec::new();
    }
    let is_reliable = own.qp.qp_type() == QpType::Rc;
    // RTR sets the attributes of the receiver, RTS those of the sender.
    let found = if to == QpState::Rtr {
        let mtu = |mtu: Mtu| mtu.bytes().unwrap_or_default();
        // Before RTS the first sequence number of the peer is not known.
        let sends = other.qp_state == QpState::Rts;
        [
            own.differs(peer, D::PathMtu, mtu(attr.path_mtu), mtu(other.path_mtu)),
            own.differs(peer, D::RqPsn, attr.rq_psn, other.sq_psn)
                .filter(|_| sends),
            peer.differs(own, D::Reads, other.max_rd_atomic, attr.max_dest_rd_atomic)
                .filter(|_| sends && is_reliable),
        ]
    } else {
        [
            own.differs(peer, D::SqPsn, attr.sq_psn, other.rq_psn),
            // Without reads this changes nothing, so it counts from the first read on.
            own.differs(peer, D::Reads, attr.max_rd_atomic, other.max_dest_rd_atomic)
                .filter(|_| is_reliable),
            None,
        ]
    };
    found.into_iter().flatten().collect()
}
