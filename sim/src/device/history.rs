//! What went wrong on a device, for a diagnosis: it outlives the objects that it happened to.

use std::collections::{BTreeMap, VecDeque};

use verbs_api::site::Site;
use verbs_api::{Cq as CqHandle, QpState, WcStatus};

use super::fresh::{Fresh, News};
use super::recovery::{Recovery, Standing};
use crate::diagnosis::Class;
use crate::diagnosis::{Noted, Problem};
use crate::packet::{DropReason, Packet, PortId, Psn};
use crate::time::Time;

/// Why packets are not taken that came for want of care on a program's side.
pub(crate) mod reason {
    /// The address that a program names, for rdma_cm, follows.
    pub(crate) const NO_ADDRESS: &str = "no device here has ";
    /// The queue that is full.
    pub(crate) const SENDS: &str = "send queue";
    /// The same, if nothing can ever free a slot of it.
    pub(crate) const UNSIGNALED: &str = "send queue, in which no send is signaled,";
    /// How reasons of failures begin that come of path MTUs.
    pub(crate) const OTHER_CUT: &str = "cut for another path MTU";
    /// Of a request that was taken for the first, and is a part of another.
    pub(crate) const NO_BEGINNING: &str = "the qp waits for another PSN first (rq_psn): it is the rest of a message whose beginning was not taken";
    /// How reasons end of work on memory that is not there.
    pub(crate) const NOT_MAPPED: &str = "are not all mapped";
    pub(crate) const INJECTED: &str = "a fault rule wants it";
    /// How the reason ends for which a peer's message has no completion.
    pub(crate) const OVERRUN: &str = "has overrun: the completion is lost";

    /// Why work fails that a fault rule or the laboratory let fail: no mistake of the program.
    pub(crate) mod lab {
        use super::*;
        use crate::packet::DropReason;

        pub(crate) const LOST: &str = "a fault rule lost the request or its answer";
        pub(crate) const DAMAGED: &str = "a fault rule damaged the request or its answer";
        pub(crate) const LATE: &str = "a fault rule held back the request or its answer";
        pub(crate) const LINK: &str = "a fault rule cut the link to its peer";
        pub(crate) const PORT: &str = "a port on the way to its peer was down";
        pub(crate) const DEVICE: &str = "the device of its peer was dead";
        pub(crate) const PEER: &str =
            "its peer had stopped before, since a fault rule or the laboratory let it fail";
        pub(crate) const TABLES: &str =
            "the laboratory changed a GID or a P_Key that the connection needs";
        pub(crate) const SRQ: &str = "the laboratory let the SRQ of the receiver fail";

        const ALL: [&str; 10] = [
            INJECTED, LOST, DAMAGED, LATE, LINK, PORT, DEVICE, PEER, TABLES, SRQ,
        ];

        /// Whether a failure for this reason is none of the program's.
        pub(crate) fn has_done(why: &str) -> bool {
            ALL.contains(&why)
        }

        /// Why work fails whose packets have this fate.
        pub(crate) fn of_fate(fate: DropReason) -> Option<&'static str> {
            Some(match fate {
                DropReason::FaultRule => LOST,
                DropReason::Checksum => DAMAGED,
                DropReason::HeldBack => LATE,
                DropReason::LinkDown => LINK,
                DropReason::PortDown => PORT,
                DropReason::DeadDevice => DEVICE,
                _ => return None,
            })
        }
    }
}

/// Why something failed, in words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reason {
    pub(crate) text: String,
    /// Where what it speaks of was made or destroyed, behind a word that says which.
    pub(crate) place: Option<(&'static str, Site)>,
}

impl<T: Into<String>> From<T> for Reason {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            place: None,
        }
    }
}

impl Reason {
    /// With the place, if it is known.
    pub(crate) fn at(self, what: &'static str, site: Option<Site>) -> Self {
        let place = site.map(|site| (what, site));
        Self { place, ..self }
    }

    /// The same of a part of something.
    pub(crate) fn of(self, whole: &str) -> Self {
        let text = format!("{whole}, {}", self.text);
        Self { text, ..self }
    }
}

/// A QP, by its node and its number there.
pub(crate) type QpAt = (u32, u32);

#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) failures: Vec<FailedWork>,
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
    /// What contexts had when they were closed.
    pub(crate) left: Vec<Problem>,
    /// What of it is new.
    pub(crate) news: News,
}

/// Of each kind so many are kept, so that a program that goes on failing costs no more.
const MOST: usize = 1000;

/// A work request that failed.
#[derive(Clone, Debug)]
pub(crate) struct FailedWork {
    pub(crate) qp_num: u32,
    pub(crate) receive: bool,
    pub(crate) label: u64,
    pub(crate) status: WcStatus,
    /// As far as this node knows.
    pub(crate) why: Option<Reason>,
    /// The node of the peer, and the number of the request that it had to answer.
    pub(crate) asked: Option<(u32, u32)>,
    pub(crate) at: Time,
    /// Where it was posted.
    pub(crate) site: Option<Site>,
    pub(crate) standing: Standing,
}

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
    why: Reason,
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

/// How far a QP has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reached {
    pub(crate) state: QpState,
    /// It has carried out a request, or may have on a connection before.
    pub(crate) has_taken: bool,
    /// A fault rule or the laboratory has stopped it.
    pub(crate) is_harmed: bool,
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
    details: Option<Reason>,
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

impl History {
    pub(crate) fn failed(&mut self, failure: FailedWork) {
        if self.failures.len() < MOST {
            self.news.add(Fresh::Failed(self.failures.len()));
            self.failures.push(failure);
        }
    }

    pub(crate) fn refused(&mut self, at: Time, packet: &Packet, why: Reason) {
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
        details: impl FnOnce() -> Reason,
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
                details: dropped.details.as_ref().map(|more| more.text.clone()),
                count: dropped.count,
                tries: dropped.tries,
            };
            let place = dropped.details.as_ref().and_then(|more| more.place);
            Some(Noted::at(problem, site.or(place.map(|(_, site)| site))))
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
    pub(crate) fn answer(&self, from: QpAt, psn: u32, failure: &FailedWork) -> Option<Reason> {
        if failure.status == WcStatus::RetryExcErr {
            // A receiver that is not ready says so: that is an answer.
            let silent = |((of, _, why), _): &(&(QpAt, u32, DropReason), &Dropped)| {
                *of == from && *why != DropReason::NoReceive
            };
            let dropped = self.dropped.iter().filter(silent);
            let ((_, qp_num, why), _) = dropped.max_by_key(|(_, dropped)| dropped.last)?;
            let gone = self.of_gone(*qp_num).filter(|_| *why == DropReason::NoQp);
            return Some(match gone {
                None => format!("for qp {qp_num:#x}, {why}").into(),
                Some(gone) => {
                    let why = DropReason::DestroyedQp;
                    Reason::from(format!("for qp {qp_num:#x}, {why}")).at("at", gone.site)
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
