//! Packets that did not get through. The queue pair that waits for an answer learns the reason, so
//! a diagnosis can tell mistakes of the program from effects of test controls.

use super::NodeSlot;
use crate::diagnosis::{LabCause, LossCause, QpAt};
use crate::packet::{DropReason, Nature, Packet, Psn};
use crate::qp::Qp;

/// A packet that did not get through.
pub(super) struct Fate {
    /// The sender and the receiver, each if it is in this process.
    ends: [Option<QpAt>; 2],
    /// Whether it answers a request of its receiver.
    is_answer: bool,
    /// The last sequence number that it carries or answers.
    last: Psn,
    /// The reason.
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

/// Notes the fate at the queue pair whose request, or whose answer, was lost.
#[cold]
pub(super) fn note(slots: &mut [NodeSlot], fate: &Fate) {
    let [sender, receiver] = fate.ends;
    let why = why(slots, fate);
    // A lost answer fails the work of its receiver.
    let requester = if fate.is_answer { receiver } else { sender };
    if let (Some(why), Some(at)) = (why, requester)
        && let node = &mut slots[at.0 as usize].node
        && let Some(index) = node.find_by_number(at.1)
    {
        node.qps.at_mut(index).note_unanswered(fate.last, why);
    }
}

/// The cause of a failure if this packet was the last attempt: a test control, or a state that
/// resending cannot mend. `None` if a later attempt may get through, or the cause is unknown.
fn why(slots: &[NodeSlot], fate: &Fate) -> Option<LossCause> {
    let node = |at: QpAt| &slots[at.0 as usize].node;
    let qp = |at: QpAt| -> Option<&Qp> {
        let node = node(at);
        Some(node.qps.at(node.find_by_number(at.1)?))
    };
    let [sender, receiver] = fate.ends;
    // If a test control has changed the tables of an end, the program made no mistake.
    let is_moved = || {
        let mut ends = fate.ends.into_iter().flatten().filter_map(qp);
        ends.any(|end| end.common.is_moved)
    };
    let was_affected = |at: QpAt| match qp(at) {
        Some(present) => present.is_affected(),
        None => node(at).device.base.journal.was_affected(at.1),
    };
    match fate.what {
        DropReason::UnownedGid | DropReason::Pkey | DropReason::OtherPeer if is_moved() => {
            Some(LossCause::Lab(LabCause::Tables))
        }
        DropReason::NoQp | DropReason::NotReady if receiver.is_some_and(was_affected) => {
            Some(LossCause::Lab(LabCause::Peer))
        }
        what if what.is(Nature::Lasting) => sender.map(|_| LossCause::Lasting),
        what => LabCause::of_drop(what).map(LossCause::Lab),
    }
}
