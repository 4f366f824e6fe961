//! Packets that did not get through: the queue pair that waits for an answer learns why, so that a diagnosis can tell a
//! mistake of the program from what a fault rule or the laboratory did.

use super::NodeSlot;
use crate::diagnosis::{LabCause, LossCause, QpAt};
use crate::packet::{DropReason, Packet, Psn};
use crate::qp::Qp;

/// A packet that did not get through.
pub(super) struct Fate {
    /// The queue pair that sent it, and the one it was for, if that is in this process.
    ends: [Option<QpAt>; 2],
    /// It answers a request of the queue pair that it was for.
    is_answer: bool,
    /// The last sequence number that it has, or answers.
    last: Psn,
    /// What became of it.
    what: DropReason,
}

impl Fate {
    #[cold]
    pub(super) fn of(packet: &Packet, what: DropReason) -> Self {
        let route = &packet.route;
        let from = Some(route.from).filter(|from| !from.is_outside());
        let to = route.to.filter(|to| !to.is_outside());
        Self {
            ends: [
                from.map(|from| (from.node, packet.src_qpn)),
                to.map(|to| (to.node, packet.dest_qpn)),
            ],
            is_answer: packet.op.is_answer(),
            last: packet.psn.plus(packet.span.saturating_sub(1)),
            what,
        }
    }
}

/// The queue pair whose request or answer that was learns it.
#[cold]
pub(super) fn note(slots: &mut [NodeSlot], fate: &Fate) {
    let [sender, receiver] = fate.ends;
    let why = why(slots, fate);
    let requester = if fate.is_answer { receiver } else { sender };
    if let (Some(why), Some(at)) = (why, requester)
        && let node = &mut slots[at.0 as usize].node
        && let Some(index) = node.find_by_number(at.1)
    {
        node.qps.at_mut(index).note_unanswered(fate.last, why);
    }
}

/// Why work fails if that packet was its last: a reason of the laboratory, or a fate that sending again cannot mend. `None`
/// where a later try may get through, or where nobody knows.
fn why(slots: &[NodeSlot], fate: &Fate) -> Option<LossCause> {
    let node = |at: QpAt| &slots[at.0 as usize].node;
    let qp = |at: QpAt| -> Option<&Qp> {
        let node = node(at);
        Some(node.qps.at(node.find_by_number(at.1)?))
    };
    let [sender, receiver] = fate.ends;
    let is_moved = || {
        let mut ends = fate.ends.into_iter().flatten().filter_map(qp);
        ends.any(|end| end.common.is_moved)
    };
    let was_harmed = |at: QpAt| match qp(at) {
        Some(present) => present.is_harmed(),
        None => node(at).device.base.journal.was_harmed(at.1),
    };
    match fate.what {
        DropReason::UnownedGid | DropReason::Pkey | DropReason::OtherPeer if is_moved() => {
            Some(LossCause::Lab(LabCause::Tables))
        }
        DropReason::NoQp | DropReason::NotReady if receiver.is_some_and(was_harmed) => {
            Some(LossCause::Lab(LabCause::Peer))
        }
        what if is_lasting(what) => sender.map(|_| LossCause::Lasting),
        what => LabCause::of_drop(what).map(LossCause::Lab),
    }
}

/// Whether sending again cannot mend it.
fn is_lasting(what: DropReason) -> bool {
    matches!(
        what,
        DropReason::NoQp
            | DropReason::OtherProcess
            | DropReason::OtherTransport
            | DropReason::OtherPort
            | DropReason::OtherPeer
            | DropReason::OtherVersion
            | DropReason::Pkey
    )
}
