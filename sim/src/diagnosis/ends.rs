//! Compares the two ends of a connection, which a queue pair alone cannot do.

use verbs_api::site::Site;
use verbs_api::{Qp as QpHandle, QpState, QpType};

use super::fact::QpAt;
use super::problem::{Difference, EndsDiffer, Noted};
use crate::fabric::Fabric;
use crate::qp::Qp;

impl Fabric {
    /// A queue pair has entered RTR or RTS: records what does not match its peer. Each attribute is
    /// compared when the later of the two ends has it.
    pub(crate) fn compare_ends(&mut self, node: u32, qp: QpHandle, to: QpState) {
        let Some((own_at, peer_at, Facts { differ, reads })) = self.mismatches(node, qp, to) else {
            return;
        };
        for (what, own, others) in differ {
            let problem = problem(own_at.1, peer_at, what, own, others);
            self.note_mistake(node, problem);
        }
        if let Some((reader, most, taken)) = reads {
            let ((node, qp_num), peer) = match reader {
                Reader::Own => (own_at, peer_at),
                Reader::Peer => (peer_at, own_at),
            };
            let problem = problem(qp_num, peer, Difference::Reads, most, taken);
            let noted = Noted::at(problem, self.site.map(Site::with_calls));
            let node = self.node_mut(node);
            let reader = node.find_by_number(qp_num);
            let has_read = reader.is_some_and(|index| node.qps.at(index).has_read());
            // The mistake belongs to the end that reads, once it does.
            let journal = &mut node.device.base.journal;
            journal.reads_exceed(qp_num, noted, has_read);
        }
    }

    /// The two queue pairs and their mismatches.
    fn mismatches(&self, node: u32, qp: QpHandle, to: QpState) -> Option<(QpAt, QpAt, Facts)> {
        let slot = self.node(node);
        let own = slot.qps.at(slot.find_qp(qp).ok()?);
        let peer_at = own.common.route?.to.filter(|to| !to.is_outside())?;
        let other = self.node(peer_at.node);
        let peer = other
            .qps
            .at(other.find_by_number(own.common.attr.dest_qp_num)?);
        let (qp_num, peer_num) = (own.common.qp_num, peer.common.qp_num);
        // After a reset an end may still have attributes of its earlier connection.
        let is_fresh = !own.was_reset && !peer.was_reset;
        let is_pair = is_fresh && is_connected(own) && peer.common.attr.dest_qp_num == qp_num;
        is_pair.then(|| {
            (
                (node, qp_num),
                (peer_at.node, peer_num),
                differences(own, peer, to),
            )
        })
    }
}

fn problem(qp_num: u32, peer: QpAt, what: Difference, own: u64, others: u64) -> EndsDiffer {
    EndsDiffer {
        qp_num,
        peer,
        what,
        own,
        others,
    }
}

/// The mismatches of two ends.
#[derive(Default)]
struct Facts {
    /// The attributes that differ, with the values of the end that changed its state and of its
    /// peer.
    differ: Vec<(Difference, u64, u64)>,
    /// The end that may have more reads in progress than the other accepts, with both numbers.
    /// Without reads this does no harm, so it counts from the first read on.
    reads: Option<(Reader, u64, u64)>,
}

enum Reader {
    Own,
    Peer,
}

fn is_connected(qp: &Qp) -> bool {
    matches!(qp.common.init.qp_type, QpType::Rc | QpType::Uc)
}

fn is_reliable(qp: &Qp) -> bool {
    qp.common.init.qp_type == QpType::Rc
}

fn differences(own: &Qp, peer: &Qp, to: QpState) -> Facts {
    let (attr, other) = (&own.common.attr, &peer.common.attr);
    let receives = |qp: &Qp| matches!(qp.common.attr.qp_state, QpState::Rtr | QpState::Rts);
    // The peer is compared when it enters RTR itself.
    if !receives(peer) {
        return Facts::default();
    }
    // Before RTS the first sequence number of the peer is not known.
    let sends = peer.common.attr.qp_state == QpState::Rts;
    let mut differ = Vec::new();
    let mut reads = None;
    // RTR sets the attributes of the receiver, RTS those of the sender.
    if to == QpState::Rtr {
        if attr.path_mtu != other.path_mtu {
            let bytes = |mtu: verbs_api::Mtu| u64::from(mtu.bytes().unwrap_or_default());
            differ.push((
                Difference::PathMtu,
                bytes(attr.path_mtu),
                bytes(other.path_mtu),
            ));
        }
        if sends && other.sq_psn != attr.rq_psn {
            let (own, others) = (attr.rq_psn.into(), other.sq_psn.into());
            differ.push((Difference::RqPsn, own, others));
        }
        if sends && is_reliable(own) && other.max_rd_atomic > attr.max_dest_rd_atomic {
            let (most, taken) = (other.max_rd_atomic, attr.max_dest_rd_atomic);
            reads = Some((Reader::Peer, most.into(), taken.into()));
        }
    } else {
        if attr.sq_psn != other.rq_psn {
            let (own, others) = (attr.sq_psn.into(), other.rq_psn.into());
            differ.push((Difference::SqPsn, own, others));
        }
        if is_reliable(own) && attr.max_rd_atomic > other.max_dest_rd_atomic {
            let (most, taken) = (attr.max_rd_atomic, other.max_dest_rd_atomic);
            reads = Some((Reader::Own, most.into(), taken.into()));
        }
    }
    Facts { differ, reads }
}
