//! Packets that were dropped.

use verbs_api::Gid;
use verbs_api::site::Site;

use super::Class;
use super::fact::{DropDetails, Reached};
use super::journal::{self, Journal, Refusal};
use super::problem::{Noted, problems};
use super::words::{counted, place_named};
use crate::packet::{DropReason, Nature, PortId};

problems! {
    /// Packets that were dropped.
    Dropped {
        /// The node and the number of the QP they came from. The node is `None` for another
        /// process, and the number is 0 if it is not known.
        from: (Option<u32>, u32),
        /// The number of the QP they were addressed to.
        qp_num: u32,
        /// The reason.
        why: DropReason,
        /// The reason with the numbers of the first packet, as a sentence.
        details: Option<String>,
        /// Where one of them was posted, if that is known and not the place of the finding.
        sent_at: Option<Site>,
        /// The number of packets without retries.
        count: u64,
        /// The number of packets with retries.
        tries: u64,
    }
    is match why {
        DropReason::NoReceive => Class::LateReceive,
        DropReason::ShortReceive => Class::ShortReceive,
        DropReason::PathMtu => Class::EndsDiffer,
        _ => Class::NotTaken,
    },
    |names| {
        let node = from.0.map(|node| names.device(node));
        let node = node.unwrap_or_else(|| "another process".to_owned());
        // The number of a sender outside may be unknown.
        let from = match from.1 {
            0 => node,
            from => format!("qp {from:#x} of {node}"),
        };
        let tries = if tries == count { String::new() } else { format!(", in {tries} tries") };
        let details = details.as_ref().map(|details| format!(": {details}"));
        let (packets, details) = (counted(*count, "packet", "packets"), details.unwrap_or_default());
        let sent_at = place_named(sent_at.map(|site| ("sent at", site)), names);
        format!("{packets} from {from} for qp {qp_num:#x} not taken{tries}: {why}{details}{sent_at}")
    };

    /// A datagram was sent to an address that no device has. The place is where it was posted.
    UnownedGid {
        /// The number of the QP that sent it.
        qp_num: u32,
        /// The destination GID.
        gid: Gid,
        /// Whether it is certainly lost. On a network a device may have got the address since the
        /// address handle was made.
        is_lost: bool,
    }
    is Class::UnownedGid,
    |_| if *is_lost {
        format!("a datagram of qp {qp_num:#x} is lost: no device has the address {gid}")
    } else {
        format!(
            "a datagram of qp {qp_num:#x} was sent to {gid}: no device had that address when the address handle was made"
        )
    };

    /// Datagrams arrived from the network that are not packets for this device.
    Garbage {
        /// The reason.
        why: DropReason,
        /// The number of datagrams.
        count: u64,
    }
    is Class::Garbage,
    |_| {
        let datagrams = counted(*count, "datagram", "datagrams");
        format!("{datagrams} from the network not taken: {why}")
    };
}

impl Journal {
    /// The dropped packets. `of_qp` returns the progress of existing queue pairs.
    pub(super) fn not_taken(
        &self,
        of_qp: impl Fn(u32) -> Option<Reached>,
    ) -> impl Iterator<Item = Noted> {
        // For a group only the members have details, and the entry has no tries.
        let dropped = self.dropped.iter().filter(|(_, of)| of.tries > 0);
        let dropped = dropped.filter_map(move |((from, qp_num, why), dropped)| {
            let (why, site) = self.why_not_taken(*qp_num, *why, dropped, of_qp(*qp_num))?;
            let node = Some(from.0).filter(|node| *node != PortId::OUTSIDE.node);
            let problem = Dropped {
                from: (node, from.1),
                qp_num: *qp_num,
                why,
                details: dropped.details.as_ref().map(ToString::to_string),
                sent_at: dropped.sent_at,
                count: dropped.count,
                tries: dropped.tries,
            };
            let posted_at = match dropped.details {
                Some(DropDetails::Short { posted_at, .. }) => posted_at,
                _ => None,
            };
            Some(Noted::at(problem, site.or(posted_at)))
        });
        let garbage = self.garbage.iter();
        dropped.chain(garbage.map(|(&why, &count)| Noted::at(Garbage { why, count }, None)))
    }

    /// Why packets for a queue pair were dropped, and where the queue pair was destroyed, if that
    /// is the reason. `None` if nothing is wrong, or another finding reports it.
    fn why_not_taken(
        &self,
        qp_num: u32,
        why: DropReason,
        dropped: &journal::Dropped,
        present: Option<Reached>,
    ) -> Option<(DropReason, Option<Site>)> {
        let gone = self.destroyed_qp(qp_num);
        let site = gone.and_then(|gone| gone.site);
        let last = present.or_else(|| gone.map(|gone| gone.last));
        // A queue pair that was never ready has a better reason than its destruction.
        let never_ready = self.was_never_ready(qp_num, present);
        let has_refused = || {
            let of_qp = |refusal: &Refusal| refusal.by == qp_num && refusal.at <= dropped.last;
            self.refusals.iter().any(of_qp)
        };
        match why {
            // The refused request made the queue pair fail, which is reported.
            DropReason::NoQp | DropReason::NotReady if has_refused() => None,
            DropReason::NoQp if never_ready && present.is_none() => {
                Some((DropReason::NeverReady, site))
            }
            DropReason::NoQp if gone.is_some() => Some((DropReason::DestroyedQp, site)),
            // They arrived too early, or one before them was lost, and then all went well.
            DropReason::Kept if !never_ready => None,
            DropReason::FirstPsn if self.refusals.iter().any(|refusal| refusal.by == qp_num) => {
                None
            }
            DropReason::FirstPsn if last.is_none_or(|last| last.has_taken) => None,
            _ => why.is(Nature::OfProgram).then_some((why, None)),
        }
    }
}
