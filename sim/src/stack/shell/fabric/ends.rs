//! Whether the two ends of a connection fit together, which a queue pair alone cannot see.

use verbs_api::{Qp as QpHandle, QpState, QpType};

use super::Fabric;
use crate::diagnosis::Problem;
use crate::stack::qp::Qp;

impl Fabric {
    /// A queue pair has come to RTR or RTS: notes what does not fit with its peer. Each fact is compared when the later
    /// of the two ends knows it.
    pub(in crate::stack::shell) fn compare_ends(&mut self, node: u32, qp: QpHandle, to: QpState) {
        let Some(own) = self.node(node).queue_pair(qp) else {
            return;
        };
        let Some(peer_at) = own.common.route.and_then(|route| route.to) else {
            return;
        };
        if peer_at.is_outside() || !is_connected(own) {
            return;
        }
        let number = own.common.attr.dest_qp_num;
        let Some(peer) = self.node(peer_at.node).queue_pair_by_number(number) else {
            return;
        };
        if peer.common.attr.dest_qp_num != own.common.qp_num {
            return;
        }
        let facts = differences(own, peer, to);
        let qp_num = own.common.qp_num;
        let peer = (peer_at.node, peer.common.qp_num);
        let base = &mut self.node_mut(node).device.base;
        for (what, own, others) in facts {
            base.note_mistake(Problem::EndsDiffer {
                qp_num,
                peer,
                what,
                own,
                others,
            });
        }
    }
}

fn is_connected(qp: &Qp) -> bool {
    matches!(qp.common.init.qp_type, QpType::Rc | QpType::Uc)
}

fn is_reliable(qp: &Qp) -> bool {
    qp.common.init.qp_type == QpType::Rc
}

/// What differs, at the one that has come to a state, and at its peer.
fn differences(own: &Qp, peer: &Qp, to: QpState) -> Vec<(&'static str, u64, u64)> {
    let (attr, other) = (&own.common.attr, &peer.common.attr);
    let receives = |qp: &Qp| matches!(qp.common.attr.qp_state, QpState::Rtr | QpState::Rts);
    if !receives(peer) {
        return Vec::new();
    }
    let sends = peer.common.attr.qp_state == QpState::Rts;
    let mut found = Vec::new();
    if to == QpState::Rtr {
        if attr.path_mtu != other.path_mtu {
            let bytes = |mtu: verbs_api::Mtu| u64::from(mtu.bytes().unwrap_or_default());
            found.push((
                "the path MTUs differ",
                bytes(attr.path_mtu),
                bytes(other.path_mtu),
            ));
        }
        if sends && other.sq_psn != attr.rq_psn {
            let (own, others) = (attr.rq_psn.into(), other.sq_psn.into());
            found.push((
                "the PSN that is waited for is not the one that comes",
                own,
                others,
            ));
        }
        if sends && is_reliable(own) && other.max_rd_atomic > attr.max_dest_rd_atomic {
            let (own, others) = (attr.max_dest_rd_atomic.into(), other.max_rd_atomic.into());
            found.push((READS, own, others));
        }
    } else {
        if attr.sq_psn != other.rq_psn {
            let (own, others) = (attr.sq_psn.into(), other.rq_psn.into());
            found.push((
                "the PSN that comes is not the one that is waited for",
                own,
                others,
            ));
        }
        if is_reliable(own) && attr.max_rd_atomic > other.max_dest_rd_atomic {
            let (own, others) = (attr.max_rd_atomic.into(), other.max_dest_rd_atomic.into());
            found.push((READS, own, others));
        }
    }
    found
}

const READS: &str =
    "more reads may be under way (max_rd_atomic) than the other end takes (max_dest_rd_atomic)";
