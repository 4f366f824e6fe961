//! A record of what went wrong on a node. It outlives the objects that its entries are about.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use verbs_api::site::Site;
use verbs_api::{Cq as CqHandle, Handle, Qp as QpHandle, QpState, WcStatus};

use super::fact::{DropDetails, FailedWork, QpAt, Reached};
use super::problem::{NotDestroyed, Noted, Overrun, Problem};
use super::recovery::Recovery;
use super::{Class, FailureCause, Why};
use crate::packet::{DropReason, Packet, Psn};
use crate::time::Time;

/// A record of what went wrong on a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    /// The failed work requests, oldest first.
    pub(super) failures: Vec<FailedWork>,
    pub(crate) recovery: Recovery,
    /// Whether completions of a queue pair have stayed in a CQ after its RESET.
    pub(crate) has_outlived: bool,
    /// Mistakes that were recorded when they happened, in that order.
    pub(super) noted: Vec<Noted>,
    /// The positions of these mistakes, by class, key and place.
    places: BTreeMap<(Class, [&'static str; 2], Option<Site>), usize>,
    pub(super) refusals: Vec<Refusal>,
    /// Dropped packets by sender, receiver and reason.
    pub(super) dropped: BTreeMap<(QpAt, u32, DropReason), Dropped>,
    /// Lost completions, and where their CQ was created.
    pub(super) overruns: BTreeMap<CqHandle, (Overrun, Option<Site>)>,
    /// Datagrams of the network that were not packets for the device, by the reason.
    pub(super) garbage: BTreeMap<DropReason, u64>,
    /// The newest destroyed queue pairs.
    gone: VecDeque<DestroyedQp>,
    /// Queue pairs that may have more reads in progress than their peers accept, but have posted
    /// none, by number.
    pub(super) excess: BTreeMap<u32, Noted>,
    /// The objects of contexts when these were closed.
    pub(super) left: Vec<NotDestroyed>,
    /// The entries since the last report.
    pub(super) news: News,
}

/// The most entries of each kind, so that a program that keeps failing needs no more memory.
pub(super) const MOST: usize = 1000;

/// A request that was answered with a NAK.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) from: QpAt,
    /// The number of the QP that refused it.
    pub(super) by: u32,
    pub(super) psn: u32,
    pub(super) why: Why,
    pub(super) at: Time,
}

/// A QP that was destroyed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestroyedQp {
    pub(crate) handle: QpHandle,
    pub(crate) qp_num: u32,
    pub(crate) last: Reached,
    /// Where it was destroyed.
    pub(crate) site: Option<Site>,
    /// Where the queue was created from which it took receives.
    pub(crate) made_at: Option<Site>,
}

/// The most destroyed queue pairs that are remembered. Their peers may retry for some time.
const GONE: usize = 1000;

/// Packets that were dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct Dropped {
    /// The number of dropped packets, including retries.
    pub(super) tries: u64,
    /// The number of dropped packets without retries.
    pub(super) count: u64,
    pub(super) newest: Option<Psn>,
    pub(super) last: Time,
    /// Details of the first one.
    pub(super) details: Option<DropDetails>,
    /// Where one of them was posted, if its sender is in this process.
    pub(super) sent_at: Option<Site>,
}

impl Dropped {
    /// Counts a packet. A retry does not have a newer number.
    fn add(&mut self, at: Time, psn: Psn) {
        let is_newer = |newest: Psn| psn.after(newest) > 0;
        if self.newest.is_none_or(is_newer) {
            self.newest = Some(psn);
            self.count += 1;
        }
        self.tries += 1;
        self.last = at;
    }
}

impl Journal {
    pub(crate) fn failed(&mut self, failure: FailedWork) {
        if self.failures.len() < MOST {
            self.news.add(Fresh::Failed(self.failures.len()));
            self.failures.push(failure);
        }
    }

    /// Records that a request was answered with a NAK.
    pub(super) fn keep_refusal(&mut self, at: Time, packet: &Packet, why: Why) {
        if self.refusals.len() < MOST {
            self.refusals.push(Refusal {
                from: (packet.route.from.node, packet.src_qpn),
                by: packet.dest_qpn,
                psn: packet.psn.value(),
                why,
                at,
            });
        }
    }

    pub(crate) fn dropped(&mut self, at: Time, packet: &Packet, why: DropReason) {
        if let Some(dropped) = self.dropped_for(packet, why) {
            dropped.add(at, packet.psn);
        }
    }

    /// Records details of a packet that is dropped, if it is the first one of its sender for this
    /// reason.
    #[cold]
    pub(crate) fn drops(&mut self, packet: &Packet, why: DropReason, details: DropDetails) {
        if let Some(dropped) = self.dropped_for(packet, why) {
            dropped.details.get_or_insert(details);
        }
    }

    /// Whether a dropped packet is recorded, and not where it or an earlier one was posted.
    pub(crate) fn lacks_post(&self, packet: &Packet, why: DropReason) -> bool {
        let dropped = self.dropped.get(&Self::place_of(packet, why));
        dropped.is_some_and(|dropped| dropped.sent_at.is_none())
    }

    /// Records where a dropped packet was posted.
    #[cold]
    pub(crate) fn posted(&mut self, packet: &Packet, why: DropReason, site: Option<Site>) {
        if let Some(dropped) = self.dropped.get_mut(&Self::place_of(packet, why)) {
            dropped.sent_at = site;
        }
    }

    fn dropped_for(&mut self, packet: &Packet, why: DropReason) -> Option<&mut Dropped> {
        let place = Self::place_of(packet, why);
        // Entries that exist are still counted at the limit.
        (self.dropped.len() < MOST || self.dropped.contains_key(&place))
            .then(|| self.dropped.entry(place).or_default())
    }

    /// The entry of a dropped packet.
    fn place_of(packet: &Packet, why: DropReason) -> (QpAt, u32, DropReason) {
        // Connected packets of another process carry no source QP number, and their receiver knows
        // only its own peer.
        let is_unknown = why == DropReason::OtherPeer && packet.route.from.is_outside();
        let src_qpn = if is_unknown { 0 } else { packet.src_qpn };
        let from = (packet.route.from.node, src_qpn);
        (from, packet.dest_qpn, why)
    }

    /// Records that a queue pair is destroyed.
    pub(crate) fn gone(&mut self, qp: DestroyedQp) {
        // A destroyed queue pair cannot read any more.
        self.forget_reads(qp.qp_num);
        if self.gone.len() == GONE {
            self.gone.pop_front();
        }
        self.gone.push_back(qp);
    }

    /// Counts a datagram of the network that was dropped.
    pub(crate) fn garbage(&mut self, why: DropReason) {
        *self.garbage.entry(why).or_default() += 1;
    }

    /// Records a mistake. One of the same class, key and place is only counted.
    #[cold]
    pub(crate) fn note(&mut self, problem: impl Into<Problem>, site: Option<Site>) {
        let problem = problem.into();
        let place = (problem.class(), problem.described().key(), site);
        if let Some(index) = self.places.get(&place) {
            // The same mistake in a loop is one finding with a count.
            self.noted[*index].more += 1;
        } else if self.noted.len() < MOST {
            self.places.insert(place, self.noted.len());
            self.news.add(Fresh::Noted(self.noted.len()));
            // The stack is only walked for new findings, since that takes time.
            let site = site.map(Site::with_calls);
            self.noted.push(Noted::at(problem, site));
        }
    }

    /// Whether completions of a CQ were lost.
    pub(super) fn has_overrun(&self, cq: CqHandle) -> bool {
        self.overruns.contains_key(&cq)
    }

    /// Whether completions of a queue pair were lost.
    pub(super) fn has_lost(&self, qp_num: u32) -> bool {
        let mut overruns = self.overruns.values();
        overruns.any(|(overrun, _)| overrun.qps.contains(&qp_num))
    }

    pub(super) fn left(&mut self, problem: NotDestroyed) {
        if self.left.len() < MOST {
            self.left.push(problem);
        }
    }

    /// Whether a fault rule or the test controls had stopped the destroyed queue pair with this
    /// number.
    pub(crate) fn was_affected(&self, qp_num: u32) -> bool {
        self.destroyed_qp(qp_num)
            .is_some_and(|gone| gone.last.is_affected)
    }

    /// Whether a queue pair with this number was destroyed.
    pub(crate) fn is_destroyed(&self, qp_num: u32) -> bool {
        self.destroyed_qp(qp_num).is_some()
    }

    pub(super) fn destroyed_qp(&self, qp_num: u32) -> Option<&DestroyedQp> {
        self.gone.iter().rev().find(|gone| gone.qp_num == qp_num)
    }

    /// The destroyed queue pair that had this slot.
    pub(super) fn destroyed(&self, index: u32, generation: u32) -> Option<&DestroyedQp> {
        let slot = |qp: QpHandle| (qp.index(), qp.generation());
        let mut gone = self.gone.iter().rev();
        gone.find(|gone| slot(gone.handle) == (index, generation))
    }

    /// Whether the queue pair that has or had this number was never ready to receive.
    pub(super) fn was_never_ready(&self, qp_num: u32, present: Option<Reached>) -> bool {
        // The queue pair may have been destroyed since.
        let last = present.or_else(|| self.destroyed_qp(qp_num).map(|gone| gone.last));
        last.is_some_and(|last| {
            matches!(last.state, QpState::Reset | QpState::Init) && !last.has_taken
        })
    }

    /// Why a request of a peer was refused or not answered.
    pub(super) fn answer(&self, from: QpAt, psn: u32, failure: &FailedWork) -> Option<Why> {
        if failure.status == WcStatus::RetryExcErr {
            // A receiver that is not ready sends an answer.
            let silent = |((of, _, why), _): &(&(QpAt, u32, DropReason), &Dropped)| {
                *of == from && *why != DropReason::NoReceive
            };
            // The newest drop explains why the last try failed.
            let dropped = self.dropped.iter().filter(silent);
            let (&(_, qp_num, why), _) = dropped.max_by_key(|(_, dropped)| dropped.last)?;
            return Some(match self.destroyed_qp(qp_num) {
                // For a destroyed queue pair its place is known.
                Some(gone) if why == DropReason::NoQp => {
                    let why = DropReason::DestroyedQp;
                    Why::from(FailureCause::Dropped { qp_num, why }).at("at", gone.site)
                }
                _ => FailureCause::Dropped { qp_num, why }.into(),
            });
        }
        // The next connection uses the same sequence numbers again.
        let found = |refusal: &&Refusal| {
            refusal.from == from && refusal.psn == psn && refusal.at <= failure.at
        };
        Some(self.refusals.iter().rev().find(found)?.why.clone())
    }
}

/// A new entry of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// A mistake, by its number.
    Noted(usize),
    /// A failed work request, by its number.
    Failed(usize),
    /// The first lost completion of this CQ.
    Overrun(CqHandle),
}

/// The new entries of the journal of a node. Not kept unless they are reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    /// Whether a node has some: one flag for all nodes, written under the simulator's lock. `None`
    /// if they are not kept.
    pub(super) is_any: Option<Arc<AtomicBool>>,
    pub(super) fresh: Vec<Fresh>,
}

impl News {
    pub(crate) fn add(&mut self, fresh: Fresh) {
        if let Some(is_any) = &self.is_any {
            self.fresh.push(fresh);
            // The flag is read without the lock, after each call.
            is_any.store(true, Ordering::Relaxed);
        }
    }
}
