//! The findings of all nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use verbs_api::site::Site;
use verbs_api::{Cause, Error, Handle, Object, Verb, WcStatus};

use super::journal::Fresh;
use super::problem::{
    CutOff, DeregisteredEarly, Failed, LostWakeup, Misused, NotArmedAgain, NotDestroyed, Noted,
    Outlived, Overlaid, Problem, Refused, SolicitedOnly, TakenLate, Unacknowledged, Unfenced,
    Waits,
};
use super::{Certainty, Class, Diagnosis, FailureCause, Finding, QpAt, Unposted, Why};
use crate::cm;
use crate::device::node_of;
use crate::fabric::Fabric;
use crate::node::Node;
use crate::packet::DropReason;
use crate::verbs::diagnose::BlockedThread;

/// Whether a place is inside this crate: Rust knows no other caller of a `dyn Verbs`.
pub(crate) fn is_own(site: &Site) -> bool {
    let own = file!().trim_end_matches("diagnosis/report.rs");
    match site {
        Site::Source(location) => location.file().starts_with(own),
        _ => false,
    }
}

/// A finding without places inside this crate.
pub(super) fn finding(node: u32, noted: Noted) -> Finding {
    let mut finding = Finding {
        node,
        certainty: noted.problem.described().certainty(),
        problem: noted.problem,
        site: noted.site.filter(|site| !is_own(site)),
        more: noted.more,
    };
    // Places inside a problem are of this crate, too, if the call came through `dyn Verbs`.
    match &mut finding.problem {
        Problem::Failed(Failed { why: Some(why), .. }) => {
            why.place = why.place.filter(|(_, site)| !is_own(site));
            why.registered = why.registered.filter(|site| !is_own(site));
        }
        Problem::NotDestroyed(NotDestroyed { names, .. })
        | Problem::Refused(Refused { users: names, .. }) => {
            for (_, made_at) in names {
                *made_at = made_at.filter(|site| !is_own(site));
            }
        }
        Problem::CutOff(CutOff { place, .. })
        | Problem::Misused(Misused { place, .. })
        | Problem::Waits(Waits { place, .. }) => {
            *place = place.filter(|(_, site)| !is_own(site));
        }
        Problem::DeregisteredEarly(DeregisteredEarly { posted: place, .. })
        | Problem::Outlived(Outlived {
            reset_at: place, ..
        })
        | Problem::Overlaid(Overlaid { posted: place, .. })
        | Problem::TakenLate(TakenLate {
            destroyed_at: place,
            ..
        })
        | Problem::Unfenced(Unfenced { posted: place, .. }) => {
            *place = place.filter(|site| !is_own(site));
        }
        _ => {}
    }
    finding
}

impl Fabric {
    /// Records a mistake of the program in the current verb.
    #[cold]
    pub(crate) fn note_mistake(&mut self, node: u32, problem: impl Into<Problem>) {
        let site = self.site;
        self.node_mut(node).device.base.journal.note(problem, site);
    }

    /// Records a refused call.
    #[cold]
    pub(crate) fn note_refusal(&mut self, node: u32, error: &Error) {
        // Some refusals are normal in correct programs.
        if let Some(class) = Class::of_refusal(error) {
            let users = match error.verb() {
                Verb::CmDestroyEventChannel => cm::users_of_busy(&self.cm_bridge.manager),
                _ => Vec::new(),
            };
            let error = error.clone();
            self.note_mistake(
                node,
                Refused {
                    class,
                    error,
                    users,
                },
            );
        }
    }

    /// The findings: causes first, then consequences, and the waits of threads if the program is
    /// stopped.
    pub(crate) fn diagnose(&self, stopped: Option<&[BlockedThread]>) -> Diagnosis {
        let mut diagnosis = Diagnosis::default();
        let of_nodes = |found: &dyn Fn(&Node) -> Vec<Noted>| {
            let numbers = 0..self.nodes();
            let findings = numbers.flat_map(|number| {
                let found = found(self.node(number)).into_iter();
                found.map(move |noted| self.found(number, noted))
            });
            findings.collect::<Vec<_>>()
        };
        let mistakes = &mut diagnosis.mistakes;
        mistakes.extend(of_nodes(&Node::causes));
        let mut failed = of_nodes(&|node| self.failures(node));
        // A failed receive explains the failed send of its peer, so it comes first.
        failed.sort_by_key(|finding| is_of_receive_there(&finding.problem));
        mistakes.extend(failed);
        let mut signs = of_nodes(&Node::signs);
        let mut waits = self.waiting_threads();
        if let Some(stuck) = stopped {
            waits.extend(self.stopped_threads(stuck));
            let nodes_of = |is: fn(&Finding) -> bool| -> BTreeSet<u32> {
                let waits = waits.iter().filter(|wait| is(wait));
                waits.map(|wait| wait.node).collect()
            };
            let certain = nodes_of(|wait| wait.certainty == Certainty::Certain);
            // A program that does not sleep may have been about to look.
            for sign in signs
                .iter_mut()
                .filter(|sign| !certain.contains(&sign.node))
            {
                sign.certainty = Certainty::Hint;
            }
            // The thread that would have looked may sleep at another device.
            let asleep = nodes_of(|wait| matches!(wait.problem, Problem::Waits(_)));
            if !asleep.is_empty() {
                signs.retain(|sign| !is_left(&sign.problem) || asleep.contains(&sign.node));
            }
        }
        let never_posted = |batch| never_posted(batch, stopped.is_some());
        mistakes.extend(self.unposted.iter().map(never_posted));
        mistakes.extend(signs);
        // Threads of a program that ends by itself may wait for more work.
        let hung = waits.iter().filter(|_| stopped.is_some());
        if hung.chain(&*mistakes).any(is_wait) {
            mistakes.extend(of_nodes(&Node::unread_in_a_hang));
            mistakes.extend(self.unread_of_cm());
        }
        mistakes.extend(waits);
        drop_consequences(mistakes);
        // Unpolled completions may be a consequence of any other mistake.
        mistakes.sort_by_key(|finding| is_left(&finding.problem));
        diagnosis.leftovers = of_nodes(&Node::leftovers);
        if stopped.is_some() {
            // A stopped program had no time to destroy its objects.
            let was_closed = |left: &Finding| matches!(&left.problem, Problem::NotDestroyed(left) if left.closed);
            diagnosis.leftovers.retain(was_closed);
        }
        diagnosis
    }

    /// A finding of a node, with what only other nodes know.
    fn found(&self, number: u32, mut noted: Noted) -> Finding {
        match &mut noted.problem {
            Problem::Failed(Failed { why: Some(why), .. }) => {
                self.name_owner(why.node.unwrap_or(number), why);
            }
            Problem::RequestRefused(refused) => {
                self.name_owner(number, &mut refused.why);
                noted.site = noted.site.or(refused.why.place.map(|(_, site)| site));
            }
            Problem::Dropped(dropped) => {
                // The post is named once, and is the best place if there is no other.
                let (other, sent_at) = (noted.site, &mut dropped.sent_at);
                *sent_at = sent_at.filter(|site| !is_own(site));
                let receiver = || self.node(number).receives_from(dropped.qp_num);
                noted.site = other.or_else(|| sent_at.take()).or_else(receiver);
            }
            _ => {}
        }
        finding(number, noted)
    }

    /// Names the device of the process whose key it is, if no region of a node has a key.
    fn name_owner(&self, number: u32, why: &mut Why) {
        let FailureCause::NoRegion { kind, key } = why.cause else {
            return;
        };
        let mut others = (0..self.nodes()).filter(|other| *other != number);
        let found = others.find_map(|other| {
            let device = &self.node(other).device;
            let regions = &device.domains.regions;
            let found = regions.why_not_elsewhere(&device.base, kind, key)?;
            Some((other, found))
        });
        if let Some((owner, Why { cause, place, .. })) = found {
            let owner = Some(owner);
            *why = Why {
                cause,
                place,
                owner,
                ..*why
            };
        }
    }

    fn failures(&self, node: &Node) -> Vec<Noted> {
        let failures = node.device.base.journal.failures.iter();
        let noted = failures.map(|failure| node.failure(failure, |peer| self.node(peer)));
        noted.collect()
    }

    /// From now on keeps new findings for [`take_fresh`](Self::take_fresh). `is_any` is set when
    /// there are some.
    pub(crate) fn keep_fresh(&mut self, is_any: &Arc<AtomicBool>) {
        for number in 0..self.nodes() {
            let journal = &mut self.node_mut(number).device.base.journal;
            journal.news.is_any = Some(is_any.clone());
        }
    }

    /// The findings since the last call.
    pub(crate) fn take_fresh(&mut self) -> Vec<Finding> {
        let mut found = Vec::new();
        for number in 0..self.nodes() {
            let news = &mut self.node_mut(number).device.base.journal.news;
            let fresh = std::mem::take(&mut news.fresh);
            let of_node = |fresh| {
                let noted = self.new_entry(self.node(number), fresh)?;
                Some(self.found(number, noted))
            };
            found.extend(fresh.into_iter().filter_map(of_node));
        }
        drop_consequences(&mut found);
        found
    }

    fn new_entry(&self, node: &Node, fresh: Fresh) -> Option<Noted> {
        let journal = &node.device.base.journal;
        match fresh {
            Fresh::Noted(number) => journal.noted.get(number).cloned(),
            Fresh::Failed(number) => {
                let failure = journal.failures.get(number)?;
                Some(node.failure(failure, |peer| self.node(peer)))
            }
            Fresh::Overrun(cq) => {
                let (overrun, made_at) = journal.overruns.get(&cq)?;
                Some(Noted::at(overrun.clone(), *made_at))
            }
        }
    }
}

/// The finding of a batch that is not completed. A stopped program might have completed it.
fn never_posted(batch: &Unposted, is_stopped: bool) -> Finding {
    let noted = Noted::at(batch.clone(), batch.begun_at);
    let mut found = finding(node_of(batch.qp.context()), noted);
    if is_stopped || !batch.is_certain {
        found.certainty = Certainty::Hint;
    }
    found
}

/// Whether a thread waits or polls for nothing that comes.
fn is_wait(finding: &Finding) -> bool {
    matches!(finding.problem, Problem::Waits(_) | Problem::BusyPoll(_))
}

fn is_left(problem: &Problem) -> bool {
    matches!(problem, Problem::NeverPolled(_) | Problem::Unpolled { .. })
}

/// The object of the problem, if a finding about a waiting thread may include the problem.
fn waited_for(problem: &Problem) -> Option<String> {
    match problem {
        Problem::LostWakeup(LostWakeup { cq, .. })
        | Problem::SolicitedOnly(SolicitedOnly { cq, .. })
        | Problem::NotArmedAgain(NotArmedAgain { cq, .. }) => Some(cq.to_string()),
        Problem::Unacknowledged(Unacknowledged { of, .. }) => Some(of.clone()),
        _ => None,
    }
}

/// Whether work failed because of a receive of its peer, which fails, too.
fn is_of_receive_there(problem: &Problem) -> bool {
    let Problem::Failed(failed) = problem else {
        return false;
    };
    // The receive fails at the other node, with its own finding.
    let is_there = failed.why.as_ref().is_some_and(|why| why.node.is_some());
    is_there && matches!(failed.status, WcStatus::RemOpErr | WcStatus::RemInvReqErr)
}

/// The kind of object that a program wanted to destroy but could not.
fn not_destroyed(error: &Error) -> Option<Object> {
    Some(match error.verb() {
        // A stale handle names no object that is still in use.
        _ if matches!(error.cause(), Cause::Handle { .. }) => return None,
        Verb::DestroyQp => Object::Qp,
        Verb::DestroySrq => Object::Srq,
        Verb::DestroyAh => Object::Ah,
        Verb::DeallocMw => Object::Mw,
        Verb::DeregMr => Object::Mr,
        Verb::FreeDm => Object::Dm,
        Verb::DeallocTd => Object::Td,
        Verb::DestroyCq => Object::Cq,
        Verb::CloseXrcd => Object::Xrcd,
        _ => return None,
    })
}

/// Removes findings that another finding explains.
fn drop_consequences(mistakes: &mut Vec<Finding>) {
    let mut explained = Explained::default();
    for finding in &*mistakes {
        explained.by(finding);
    }
    mistakes.retain(|finding| !explained.has(finding));
}

/// What the findings of a report explain. Most of it is on a node.
#[derive(Default)]
struct Explained {
    /// The packets of queue pairs whose work failed.
    failed: BTreeSet<QpAt>,
    /// The packets of the wrong size of queue pairs whose ends differ.
    differ: BTreeSet<QpAt>,
    /// The failed receives of nodes that refused a request.
    refusing: BTreeSet<u32>,
    /// The unpolled completions of nodes with a thread that waits for an event.
    waiting: BTreeSet<u32>,
    /// The problems of objects that are part of the wait of a thread.
    waited_for: BTreeSet<(u32, String)>,
    /// The objects that are in use by objects of this kind: how often those could not be destroyed.
    in_use: BTreeMap<(u32, Object), u64>,
}

impl Explained {
    /// Adds what a finding explains.
    fn by(&mut self, finding: &Finding) {
        let node = finding.node;
        match &finding.problem {
            Problem::Failed(failed) => {
                self.failed.insert((node, failed.qp_num));
                // The node that refused the access has a failed receive.
                if failed.status == WcStatus::RemAccessErr {
                    let refused_at = failed.why.as_ref().and_then(|why| why.node);
                    self.refusing.extend(refused_at);
                }
            }
            Problem::RequestRefused(_) => self.refusing.extend([node]),
            Problem::EndsDiffer(ends) => self.differ.extend([(node, ends.qp_num)]),
            Problem::Waits(waits) => {
                // An endless wait has no reason that explains completions.
                if waits.class != Class::EndlessWait {
                    self.waiting.insert(node);
                }
                let of = waits.of.as_deref().and_then(waited_for);
                self.waited_for.extend(of.map(|of| (node, of)));
            }
            Problem::Refused(refused) => {
                if let Some(object) = not_destroyed(&refused.error) {
                    *self.in_use.entry((node, object)).or_default() += 1 + finding.more;
                }
            }
            _ => {}
        }
    }

    /// Whether another finding explains this one.
    fn has(&self, finding: &Finding) -> bool {
        let node = finding.node;
        let is_waited_for = |of| self.waited_for.contains(&(node, of));
        match &finding.problem {
            problem if waited_for(problem).is_some_and(is_waited_for) => true,
            problem if is_left(problem) => self.waiting.contains(&node),
            Problem::Refused(refused) => match refused.error.cause() {
                // If all users of an object could not be destroyed, the object itself is not
                // another mistake.
                Cause::InUse { by, count, .. } => {
                    let users = self.in_use.get(&(node, *by)).copied();
                    users.unwrap_or_default() >= (*count).into()
                }
                _ => false,
            },
            Problem::Dropped(dropped) => {
                let (to, from) = ((node, dropped.qp_num), dropped.from);
                // The failed work of the sender explains its dropped packets.
                let of_sender = from
                    .0
                    .is_some_and(|node| self.failed.contains(&(node, from.1)));
                // The mismatch of the ends explains packets of the wrong size.
                let is_cut = dropped.why == DropReason::PathMtu && self.differ.contains(&to);
                of_sender || is_cut || self.failed.contains(&to)
            }
            Problem::Failed(failed) => match failed.status {
                WcStatus::LocAccessErr => failed.receive && self.refusing.contains(&node),
                // The peer's CQ has overrun, which is a finding.
                WcStatus::RemOpErr => {
                    let cause = failed.why.as_ref().map(|why| &why.cause);
                    matches!(cause, Some(FailureCause::Overrun { .. }))
                }
                _ => false,
            },
            _ => false,
        }
    }
}
