//! Packets that did not get through. The queue pair that waits for an answer learns the reason, so
//! a diagnosis can tell mistakes of the program from effects of test controls.

use super::NodeSlot;
use crate::diagnosis::{LabCause, LossCause, QpAt};
use crate::packet::{DropReason, Nature, Packet};
use crate::qp::Qp;

/// The sender and the receiver of a packet, each if it is in this process.
type Ends = [Option<QpAt>; 2];

/// Notes a packet that did not get through at the queue pair whose request, or whose answer, was
/// lost.
#[cold]
pub(super) fn note(slots: &mut [NodeSlot], packet: &Packet, what: DropReason) {
    let from = Some(packet.route.from).filter(|from| !from.is_outside());
    let to = packet.route.to.filter(|to| !to.is_outside());
    let sender = from.map(|from| (from.node, packet.src_qpn));
    let receiver = to.map(|to| (to.node, packet.dest_qpn));
    note_post(slots, packet, [sender, receiver], what);
    let why = why(slots, [sender, receiver], what);
    // A lost answer fails the work of its receiver.
    let requester = if packet.op.is_answer() {
        receiver
    } else {
        sender
    };
    if let (Some(why), Some(at)) = (why, requester)
        && let node = &mut slots[at.0 as usize].node
        && let Some(index) = node.find_by_number(at.1)
    {
        // The last sequence number that it carries or answers.
        let last = packet.psn.plus(packet.span.saturating_sub(1));
        node.qps.at_mut(index).note_unanswered(last, why);
    }
}

/// Notes at the receiver of a request where it was posted, which only its sender knows. A datagram
/// has completed there already, but its slot is not free before its completion is polled.
fn note_post(slots: &mut [NodeSlot], packet: &Packet, ends: Ends, what: DropReason) {
    let journal_of = |to: QpAt| &slots[to.0 as usize].node.device.base.journal;
    if let [Some(from), Some(to)] = ends
        && !packet.op.is_answer()
        && journal_of(to).lacks_post(packet, what)
    {
        let sender = &slots[from.0 as usize].node;
        let qp = sender
            .find_by_number(from.1)
            .map(|index| sender.qps.at(index));
        let site = qp.and_then(|qp| qp.posted_at(packet.psn));
        let journal = &mut slots[to.0 as usize].node.device.base.journal;
        journal.posted(packet, what, site);
    }
}

/// The cause of a failure if this packet was the last attempt: a test control, or a state that
/// resending cannot mend. `None` if a later attempt may get through, or the cause is unknown.
fn why(slots: &[NodeSlot], ends: Ends, what: DropReason) -> Option<LossCause> {
    let node = |at: QpAt| &slots[at.0 as usize].node;
    let qp = |at: QpAt| -> Option<&Qp> {
        let node = node(at);
        Some(node.qps.at(node.find_by_number(at.1)?))
    };
    let [sender, receiver] = ends;
    // If a test control has changed the tables of an end, the program made no mistake.
    let is_moved = || {
        let mut ends = ends.into_iter().flatten().filter_map(qp);
        ends.any(|end| end.common.is_moved)
    };
    let was_affected = |at: QpAt| match qp(at) {
        Some(present) => present.is_affected(),
        None => node(at).device.base.journal.was_affected(at.1),
    };
    match what {
        DropReason::UnownedGid | DropReason::Pkey | DropReason::OtherPeer if is_moved() => {
            Some(LossCause::Lab(LabCause::Tables))
        }
        DropReason::NoQp | DropReason::NotReady | DropReason::LateAnswer
            if receiver.is_some_and(was_affected) =>
        {
            Some(LossCause::Lab(LabCause::Peer))
        }
        what if what.is(Nature::Lasting) => sender.map(|_| LossCause::Lasting),
        what => LabCause::of_drop(what).map(LossCause::Lab),
    }
}
