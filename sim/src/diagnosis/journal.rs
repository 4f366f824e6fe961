//! What went wrong on a node. A journal outlives the objects that its entries are about.

use std::collections::{BTreeMap, VecDeque};

use verbs_api::site::Site;
use verbs_api::{Cq as CqHandle, QpState, WcStatus};

use super::fact::{DropDetails, FailedWork, QpAt, Reached};
use super::news::{Fresh, News};
use super::recovery::Recovery;
use super::{Class, FailureCause, Noted, Problem, Why};
use crate::packet::{DropReason, Packet, PortId, Psn};
use crate::time::Time;

/// What went wrong on a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    pub(super) failures: Vec<FailedWork>,
    pub(crate) recovery: Recovery,
    /// Mistakes that were seen when they happened, in that order.
    noted: Vec<Noted>,
    /// Where those are, by class, fact and place.
    places: BTreeMap<(Class, [&'static str; 2], Option<Site>), usize>,
    refusals: Vec<Refusal>,
    /// By sender, receiver and reason.
    dropped: BTreeMap<(QpAt, u32, DropReason), Dropped>,
    /// Entries, and completions lost.
    overruns: BTreeMap<CqHandle, Overrun>,
    /// Datagrams of the network, by what they were.
    garbage: BTreeMap<DropReason, u64>,
    /// The newest queue pairs that were destroyed.
    gone: VecDeque<GoneQp>,
    /// Of queue pairs that have posted no read, by their numbers: they may have more reads under way
    /// than their peers take.
    excess: BTreeMap<u32, Noted>,
    /// What contexts had when they were closed.
    pub(crate) left: Vec<Problem>,
    /// What of it is new.
    pub(crate) news: News,
}

/// Of each kind so many are kept, so that a program that goes on failing costs no more.
const MOST: usize = 1000;

/// What was lost in a CQ.
#[derive(Clone, Debug, Default)]
struct Overrun {
    cqe: u32,
    lost: u64,
    /// Where the CQ was made.
    made_at: Option<Site>,
    /// The numbers of the queue pairs whose completions were lost.
    qps: Vec<u32>,
}

/// So many queue pairs are named.
const NAMED: usize = 8;

/// A request that was answered with a NAK.
#[derive(Clone, Debug)]
struct Refusal {
    from: QpAt,
    /// The number of the QP that refused it.
    by: u32,
    psn: u32,
    why: Why,
    at: Time,
}

/// A QP that was destroyed.
#[derive(Clone, Copy, Debug)]
struct GoneQp {
    qp_num: u32,
    last: Reached,
    /// Where it was destroyed.
    site: Option<Site>,
    /// Where what it took receives from was made.
    made_at: Option<Site>,
}

/// How many queue pairs that are gone are remembered, for as long as their peers try again.
const GONE: usize = 1000;

/// Packets that were not taken.
#[derive(Clone, Debug, Default)]
struct Dropped {
    /// How often that happened, each time that one came again too.
    tries: u64,
    /// Without those that came again.
    count: u64,
    newest: Option<Psn>,
    last: Time,
    /// More of the reason, as it was for the first.
    details: Option<DropDetails>,
}

impl Dropped {
    /// One more, at this time; what comes again has no newer number.
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

    pub(crate) fn refused(&mut self, at: Time, packet: &Packet, why: Why) {
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

    /// A packet is not taken; if it is the first from there for this reason, there is more to be said of it.
    #[cold]
    pub(crate) fn drops(
        &mut self,
        packet: &Packet,
        why: DropReason,
        details: impl FnOnce() -> DropDetails,
    ) {
        if let Some(dropped) = self.dropped_for(packet, why) {
            dropped.details.get_or_insert_with(details);
        }
    }

    fn dropped_for(&mut self, packet: &Packet, why: DropReason) -> Option<&mut Dropped> {
        // A connected sender is known by the one who takes its packets.
        let is_unknown = why == DropReason::OtherPeer && packet.route.from.is_outside();
        let src_qpn = if is_unknown { 0 } else { packet.src_qpn };
        let from = (packet.route.from.node, src_qpn);
        let place = (from, packet.dest_qpn, why);
        let has_room = self.dropped.len() < MOST || self.dropped.contains_key(&place);
        has_room.then(|| self.dropped.entry(place).or_default())
    }

    /// A queue pair is destroyed.
    pub(crate) fn gone(
        &mut self,
        qp_num: u32,
        last: Reached,
        (made_at, site): (Option<Site>, Option<Site>),
    ) {
        self.forget_reads(qp_num);
        if self.gone.len() == GONE {
            self.gone.pop_front();
        }
        self.gone.push_back(GoneQp {
            qp_num,
            last,
            site,
            made_at,
        });
    }

    /// A datagram came from the network, and was not taken.
    pub(crate) fn garbage(&mut self, why: DropReason) {
        *self.garbage.entry(why).or_default() += 1;
    }

    pub(crate) fn lost(&mut self, cq: CqHandle, cqe: u32, (qp_num, made_at): (u32, Option<Site>)) {
        if self.overruns.len() < MOST || self.overruns.contains_key(&cq) {
            let overrun = self.overruns.entry(cq).or_default();
            if overrun.lost == 0 {
                self.news.add(Fresh::Overrun(cq));
            }
            (overrun.cqe, overrun.lost) = (cqe, overrun.lost + 1);
            overrun.made_at = made_at;
            if overrun.qps.len() < NAMED && !overrun.qps.contains(&qp_num) {
                overrun.qps.push(qp_num);
            }
        }
    }

    /// A mistake is seen. One of the same class and place is only counted.
    #[cold]
    pub(crate) fn note(&mut self, problem: Problem, site: Option<Site>) {
        let place = (problem.class(), problem.fact(), site);
        if let Some(index) = self.places.get(&place) {
            self.noted[*index].more += 1;
        } else if self.noted.len() < MOST {
            self.places.insert(place, self.noted.len());
            self.news.add(Fresh::Noted(self.noted.len()));
            let more = 0;
            self.noted.push(Noted {
                problem,
                site: site.map(Site::with_calls),
                more,
            });
        }
    }

    /// A queue pair may have more reads under way than its peer takes: a mistake once it reads.
    #[cold]
    pub(crate) fn reads_exceed(&mut self, qp_num: u32, noted: Noted, has_read: bool) {
        if has_read {
            self.note(noted.problem, noted.site);
        } else {
            self.excess.insert(qp_num, noted);
        }
    }

    /// A queue pair posts its first read.
    #[cold]
    pub(crate) fn first_read(&mut self, qp_num: u32) {
        if let Some(noted) = self.excess.remove(&qp_num) {
            self.note(noted.problem, noted.site);
        }
    }

    /// A queue pair is not connected any more.
    pub(crate) fn forget_reads(&mut self, qp_num: u32) {
        self.excess.remove(&qp_num);
    }

    /// The work that failed, oldest first.
    pub(super) fn failures(&self) -> &[FailedWork] {
        &self.failures
    }

    /// What was seen when it happened.
    pub(crate) fn noted(&self) -> &[Noted] {
        &self.noted
    }

    /// Whether completions of a CQ were lost.
    pub(crate) fn has_overrun(&self, cq: CqHandle) -> bool {
        self.overruns.contains_key(&cq)
    }

    /// Whether completions of a queue pair were lost.
    pub(crate) fn has_lost(&self, qp_num: u32) -> bool {
        let mut overruns = self.overruns.values();
        overruns.any(|overrun| overrun.qps.contains(&qp_num))
    }

    pub(crate) fn left(&mut self, problem: Problem) {
        if self.left.len() < MOST {
            self.left.push(problem);
        }
    }

    /// Completions that were lost.
    pub(crate) fn overruns(&self) -> impl Iterator<Item = Noted> {
        self.overruns.iter().map(|(cq, overrun)| {
            let problem = Problem::Overrun {
                cq: *cq,
                cqe: overrun.cqe,
                lost: overrun.lost,
                qps: overrun.qps.clone(),
            };
            Noted::at(problem, overrun.made_at)
        })
    }

    /// Packets that were not taken; `of_qp` knows the queue pairs that are there.
    pub(crate) fn not_taken(
        &self,
        of_qp: impl Fn(u32) -> Option<Reached>,
    ) -> impl Iterator<Item = Noted> {
        // Of one for a group only its members know more.
        let dropped = self.dropped.iter().filter(|(_, of)| of.tries > 0);
        let dropped = dropped.filter_map(move |((from, qp_num, why), dropped)| {
            let (why, site) = self.why_not_taken(*qp_num, (*why, dropped), of_qp(*qp_num))?;
            let node = Some(from.0).filter(|node| *node != PortId::OUTSIDE.node);
            let problem = Problem::Dropped {
                from: (node, from.1),
                qp_num: *qp_num,
                why,
                details: dropped.details.as_ref().map(ToString::to_string),
                count: dropped.count,
                tries: dropped.tries,
            };
            let posted_at = dropped.details.and_then(|details| details.posted_at());
            Some(Noted::at(problem, site.or(posted_at)))
        });
        let garbage = self.garbage.iter();
        let garbage = garbage.map(|(why, count)| Problem::Garbage {
            why: *why,
            count: *count,
        });
        dropped.chain(garbage.map(Noted::from))
    }

    /// Why packets for a queue pair were not taken, and where it was destroyed, if that is why. `None` if there is nothing
    /// wrong, or a finding says so.
    fn why_not_taken(
        &self,
        qp_num: u32,
        (why, dropped): (DropReason, &Dropped),
        present: Option<Reached>,
    ) -> Option<(DropReason, Option<Site>)> {
        let gone = self.of_gone(qp_num);
        let site = gone.and_then(|gone| gone.site);
        let last = present.or_else(|| gone.map(|gone| gone.last));
        let never_ready = self.was_never_ready(qp_num, present);
        let has_refused = || {
            let of_qp = |refusal: &Refusal| refusal.by == qp_num && refusal.at <= dropped.last;
            self.refusals.iter().any(of_qp)
        };
        match why {
            // It has failed by that.
            DropReason::NoQp | DropReason::NotReady if has_refused() => None,
            DropReason::NoQp if never_ready && present.is_none() => {
                Some((DropReason::NeverReady, site))
            }
            DropReason::NoQp if gone.is_some() => Some((DropReason::DestroyedQp, site)),
            // They came too early, or one before them was lost, and then all went well.
            DropReason::Kept if !never_ready => None,
            DropReason::FirstPsn if self.refusals.iter().any(|refusal| refusal.by == qp_num) => {
                None
            }
            DropReason::FirstPsn if last.is_none_or(|last| last.has_taken) => None,
            _ => is_of_program(why).then_some((why, None)),
        }
    }

    /// Where was made what a queue pair that is gone took receives from.
    pub(crate) fn receiver_made_at(&self, qp_num: u32) -> Option<Site> {
        self.of_gone(qp_num)?.made_at
    }

    /// Whether a fault rule or the laboratory had stopped the queue pair of this number, which is gone.
    pub(crate) fn was_harmed(&self, qp_num: u32) -> bool {
        self.of_gone(qp_num).is_some_and(|gone| gone.last.is_harmed)
    }

    fn of_gone(&self, qp_num: u32) -> Option<&GoneQp> {
        self.gone.iter().rev().find(|gone| gone.qp_num == qp_num)
    }

    /// Whether the queue pair that has or had this number was never ready to receive.
    pub(crate) fn was_never_ready(&self, qp_num: u32, present: Option<Reached>) -> bool {
        let last = present.or_else(|| self.of_gone(qp_num).map(|gone| gone.last));
        last.is_some_and(|last| {
            matches!(last.state, QpState::Reset | QpState::Init) && !last.has_taken
        })
    }

    /// Why a request of a peer was refused or found nobody.
    pub(crate) fn answer(&self, from: QpAt, psn: u32, failure: &FailedWork) -> Option<Why> {
        if failure.status == WcStatus::RetryExcErr {
            // A receiver that is not ready says so: that is an answer.
            let silent = |((of, _, why), _): &(&(QpAt, u32, DropReason), &Dropped)| {
                *of == from && *why != DropReason::NoReceive
            };
            let dropped = self.dropped.iter().filter(silent);
            let (&(_, qp_num, why), _) = dropped.max_by_key(|(_, dropped)| dropped.last)?;
            let gone = self.of_gone(qp_num).filter(|_| why == DropReason::NoQp);
            return Some(match gone {
                None => FailureCause::Dropped { qp_num, why }.into(),
                Some(gone) => {
                    let why = DropReason::DestroyedQp;
                    Why::from(FailureCause::Dropped { qp_num, why }).at("at", gone.site)
                }
            });
        }
        // A number comes again with the next connection.
        let found = |refusal: &&Refusal| {
            refusal.from == from && refusal.psn == psn && refusal.at <= failure.at
        };
        Some(self.refusals.iter().rev().find(found)?.why.clone())
    }
}

/// Whether the program may be why packets are not taken. The rest is loss, or what comes of it.
fn is_of_program(why: DropReason) -> bool {
    matches!(
        why,
        DropReason::NoReceive
            | DropReason::NoQp
            | DropReason::OtherProcess
            | DropReason::NotReady
            | DropReason::Kept
            | DropReason::FirstPsn
            | DropReason::OtherTransport
            | DropReason::OtherPort
            | DropReason::OtherPeer
            | DropReason::OtherVersion
            | DropReason::Pkey
            | DropReason::Qkey
            | DropReason::PathMtu
            | DropReason::ShortReceive
            | DropReason::BadMessage
    )
}
