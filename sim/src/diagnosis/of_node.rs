//! What a program left undone on a node.

use std::collections::BTreeMap;

use verbs_api::site::Site;
use verbs_api::table::Table;
use verbs_api::{AsyncEventType, Context, Element, Handle, Object, QpState};

use super::fact::CqSeen;
use super::fact::{FailedWork, Standing};
use super::problem::{Failed, NotDestroyed, Noted, Unacknowledged, UnreadAsync};
use super::{Certainty, Why, counted};
use crate::device::{Device, InContext};
use crate::node::Node;
use crate::packet::{DropReason, Packet};
use crate::qp::Qp;

/// The findings of a node.
pub(super) fn findings(node: &Node) -> Findings<'_> {
    let closed = None;
    Findings { node, closed }
}

/// The facts about a CQ, unless it has overrun, which is the better finding.
pub(super) fn cq_seen(device: &Device, index: u32) -> Option<CqSeen> {
    let seen = device.cqs.seen(&device.base, index);
    (!device.base.journal.has_overrun(seen.cq)).then_some(seen)
}

/// Records the objects of a context that is about to be closed (DEV-03).
pub(crate) fn note_closing(node: &mut Node, context: Context) {
    let closed = Some(context);
    let of_context = Findings { node, closed };
    let (unread, names) = (of_context.unread_async(), of_context.objects());
    for problem in unread {
        node.device
            .base
            .journal
            .note(problem, node.device.base.site);
    }
    // The context itself is closed, so only its objects count.
    if !names.is_empty() {
        let (contexts, closed) = (0, true);
        let problem = NotDestroyed {
            names,
            contexts,
            closed,
        };
        node.device.base.journal.left(problem);
    }
}

/// Records a packet of another process that is not read. It counts if its queue pair has never been
/// ready to receive.
pub(crate) fn note_unread(node: &mut Node, packet: &Packet) {
    let (number, now) = (packet.dest_qpn, node.device.base.now);
    let present = node.find_by_number(number);
    let present = present.map(|index| node.qps.at(index).reached());
    let journal = &mut node.device.base.journal;
    // A damaged packet is lost for any receiver.
    if !packet.damaged && journal.was_never_ready(number, present) {
        let why = match present {
            Some(_) => DropReason::NotReady,
            None => DropReason::NoQp,
        };
        journal.dropped(now, packet, why);
    }
}

/// The findings of a node, or of one context that is being closed.
pub(super) struct Findings<'n> {
    node: &'n Node,
    closed: Option<Context>,
}

impl Findings<'_> {
    /// The failed work requests, oldest first.
    pub(crate) fn failures(&self) -> &[FailedWork] {
        &self.node.device.base.journal.failures
    }

    /// A failure as a problem. `node` returns the node of the peer.
    pub(crate) fn failure<'n>(
        &self,
        failure: &FailedWork,
        node: impl FnOnce(u32) -> &'n Node,
    ) -> Noted {
        let from = (self.node.device.base.id, failure.qp_num);
        // The peer knows why it refused, if it is in this process.
        let of_peer = || {
            let (peer, psn) = failure.asked?;
            let why = node(peer).device.base.journal.answer(from, psn, failure)?;
            let node = Some(peer);
            Some(Why { node, ..why })
        };
        let problem = Failed {
            qp_num: failure.qp_num,
            receive: failure.receive,
            wr_id: failure.label,
            status: failure.status,
            why: failure.why.clone().or_else(of_peer),
            handled: failure.standing == Standing::Handled,
        };
        Noted::at(problem, failure.site)
    }

    /// Where the queue was created from which the queue pair with this number takes or took
    /// receives.
    pub(crate) fn receiver(&self, qp_num: u32) -> Option<Site> {
        match self.node.find_by_number(qp_num) {
            Some(index) => self.node.receiver_made_at(index),
            None => self.node.device.base.journal.receiver_made_at(qp_num),
        }
    }

    /// Certain mistakes that were recorded when they happened, and lost completions.
    pub(crate) fn causes(&self) -> Vec<Noted> {
        let overruns = self.node.device.base.journal.overruns();
        self.noted(Certainty::Certain).chain(overruns).collect()
    }

    /// The mistakes of this certainty that were recorded when they happened.
    fn noted(&self, certainty: Certainty) -> impl Iterator<Item = Noted> {
        let noted = self.node.device.base.journal.noted.iter();
        let is_so = move |noted: &&Noted| noted.problem.class().certainty() == certainty;
        noted.filter(is_so).cloned()
    }

    /// Signs that something is wrong: dropped packets, and unread completions and events.
    pub(crate) fn signs(&self) -> Vec<Noted> {
        let device = &self.node.device;
        let mut signs: Vec<_> = self.noted(Certainty::Hint).collect();
        let present = |number| {
            let index = self.node.find_by_number(number)?;
            Some(self.node.qps.at(index).reached())
        };
        signs.extend(device.base.journal.not_taken(present));
        // All queue pairs are read once, and not for each CQ.
        let mut outstanding = vec![0; device.cqs.table.slots() as usize];
        let mut unpolled = BTreeMap::new();
        for (_, qp) in self.node.qps.iter() {
            let work = qp.unfinished();
            for (cq, count) in work.signaled_sends().into_iter().chain(work.own_receives()) {
                outstanding[cq as usize] += count;
            }
            for (cq, posted_at) in work.unpolled() {
                unpolled.entry(cq).or_insert(posted_at);
            }
        }
        for (index, _) in device.cqs.table.iter() {
            if let Some(seen) = cq_seen(device, index) {
                signs.extend(seen.too_small(outstanding[index as usize]));
                signs.extend(seen.at_the_end(unpolled.get(&index).copied()));
            }
        }
        let channels = device.cqs.channels.iter();
        let unread = channels.filter_map(|(_, channel)| channel.seen().unread());
        signs.extend(unread);
        signs.extend(self.unacknowledged());
        signs.extend(
            self.unread_async()
                .into_iter()
                .map(|problem| Noted::at(problem, None)),
        );
        signs
    }

    /// The objects that still exist.
    pub(crate) fn leftovers(&self) -> Vec<Noted> {
        let base = &self.node.device.base;
        let of_ids = u32::from(base.of_ids.is_some());
        // The context of rdma_cm ids belongs to no program.
        let contexts = base.open_contexts() - of_ids;
        let names = self.objects();
        let left = !names.is_empty() || contexts > 0;
        let closed = false;
        let left = left.then_some(NotDestroyed {
            names,
            contexts,
            closed,
        });
        base.journal
            .left
            .iter()
            .cloned()
            .chain(left)
            .map(|problem| Noted::at(problem, None))
            .collect()
    }

    fn unread_async(&self) -> Vec<UnreadAsync> {
        let mut counts: BTreeMap<(String, u32), u32> = BTreeMap::new();
        let journal = &self.node.device.base.journal;
        let unread = self.node.device.base.unread_async(self.closed);
        for event in unread.filter(|event| is_error(event.event_type)) {
            // A finding reports the overrun already.
            let is_reported = match event.element {
                Element::Cq(cq) => journal.has_overrun(cq),
                Element::Qp(qp) if event.event_type == AsyncEventType::QpFatal => {
                    let index = self.node.find_qp(qp);
                    index.is_ok_and(|qp| journal.has_lost(self.node.qps.at(qp).common.qp_num))
                }
                _ => false,
            };
            if is_reported {
                continue;
            }
            let of = match event.element {
                Element::Qp(qp) => match self.node.find_qp(qp) {
                    Ok(index) => name_of(self.node.qps.at(index)),
                    Err(_) => qp.to_string(),
                },
                other => other.to_string(),
            };
            // Equal events of an object are one finding with a count.
            *counts.entry((of, event.event_type.into())).or_default() += 1;
        }
        let counts = counts.into_iter();
        let problem = |((of, event_type), events): ((String, u32), u32)| UnreadAsync {
            event_type: event_type.into(),
            of,
            events,
        };
        counts.map(problem).collect()
    }

    fn unacknowledged(&self) -> impl Iterator<Item = Noted> {
        let device = &self.node.device;
        let cqs = device.cqs.table.iter();
        let cqs = cqs.map(|(_, cq)| Element::Cq(cq.handle));
        let qps = self.node.qps.iter();
        let qps = qps.map(|(_, qp)| Element::Qp(qp.common.handle));
        let srqs = device.srqs.iter();
        let srqs = srqs.map(|(_, srq)| Element::Srq(srq.handle));
        let all = cqs.chain(qps).chain(srqs);
        all.filter_map(|element| self.unacknowledged_of(element))
    }

    /// Events about an object that were read and not acknowledged.
    pub(crate) fn unacknowledged_of(&self, element: Element) -> Option<Noted> {
        let Device { base, cqs, .. } = &self.node.device;
        let (of, context, own) = match element {
            Element::Cq(cq) => {
                let own = cqs.table.get(cq.index(), cq.generation()).ok();
                (cq.to_string(), cq.context(), own)
            }
            Element::Qp(qp) => {
                let index = self.node.find_qp(qp).ok();
                let name = index.map(|index| name_of(self.node.qps.at(index)));
                (name.unwrap_or_else(|| qp.to_string()), qp.context(), None)
            }
            Element::Srq(srq) => (srq.to_string(), srq.context(), None),
            _ => return None,
        };
        let of_async = base.unacked(context, element);
        let of_cq = own.map_or(0, |cq| cq.events_unacked);
        // Events of the channel have no type.
        let last = base.last_read(context, element).filter(|_| of_async > 0);
        let read_at = match (own, last) {
            (Some(cq), _) if of_cq > 0 => cq.event_read_at(),
            (_, last) => last.and_then(|(_, site)| site),
        };
        let problem = Unacknowledged {
            of,
            last: last.map(|(event, _)| event.to_string()),
            events: of_cq + of_async,
        };
        (of_cq + of_async > 0).then(|| Noted::at(problem, read_at))
    }

    /// All objects, or those of the closed context. Users come before the objects they use.
    fn objects(&self) -> Vec<(String, Option<Site>)> {
        let all = [
            self.names(Object::Qp, &self.node.qps, |_, qp| Some(standing(qp))),
            self.names(Object::Srq, &self.node.device.srqs, |_, srq| {
                let receives = counted(srq.taken() as u64, "receive", "receives");
                Some(format!("{} ({receives} outstanding)", srq.handle))
            }),
            self.names(
                Object::Mw,
                &self.node.device.domains.windows.table,
                |at, _| numbered("mw", at),
            ),
            self.names(Object::Ah, &self.node.device.domains.ahs, |at, _| {
                numbered("ah", at)
            }),
            self.names(Object::Mr, &self.node.device.domains.regions, |at, mr| {
                let (lkey, length) = (mr.attr.lkey, mr.attr.length);
                Some(format!("mr#{at} (lkey {lkey:#x}, {length} bytes)"))
            }),
            self.names(Object::Cq, &self.node.device.cqs.table, |_, cq| {
                Some(cq.handle.to_string())
            }),
            self.names(
                Object::CompChannel,
                &self.node.device.cqs.channels,
                |at, _| numbered("channel", at),
            ),
            self.names(Object::Xrcd, &self.node.device.xrcds.table, |at, _| {
                numbered("xrcd", at)
            }),
            self.names(Object::Pd, &self.node.device.domains.pds, |at, _| {
                let of_ids = self.node.device.base.of_ids.is_some_and(|(_, pd)| pd == at);
                numbered("pd", at).filter(|_| !of_ids)
            }),
        ];
        all.into_iter().flatten().collect()
    }

    /// The objects of a kind, except those without a name.
    fn names<T: InContext>(
        &self,
        kind: Object,
        table: &Table<T>,
        name: impl Fn(u32, &T) -> Option<String>,
    ) -> Vec<(String, Option<Site>)> {
        // Objects of other contexts are not closed with this one.
        let indices = match self.closed {
            Some(context) => self.node.device.base.objects(context, kind),
            None => table.indices(|_| true),
        };
        // Handles of queue pairs that several contexts have open are not in the table of queue
        // pairs.
        let named = |at: u32| {
            let object = table.peek(at)?;
            let made_at = self.node.device.base.made_at(object.context(), kind, at);
            Some((name(at, object)?, made_at))
        };
        indices.into_iter().filter_map(named).collect()
    }
}

fn numbered(kind: &str, at: u32) -> Option<String> {
    Some(format!("{kind}#{at}"))
}

fn name_of(qp: &Qp) -> String {
    format!("qp {:#x}", qp.common.qp_num)
}

/// A QP with its state, unless it was never used, and its outstanding work.
fn standing(qp: &Qp) -> String {
    let state = qp.common.attr.qp_state;
    let mut text = name_of(qp);
    // A queue pair in RESET was never used.
    if state != QpState::Reset {
        text += &format!(" in {state}");
    }
    let (sends, receives) = qp.unfinished().counts();
    let outstanding = [(sends, "send", "sends"), (receives, "receive", "receives")];
    let waiting = outstanding.into_iter().filter(|(count, ..)| *count > 0);
    let waiting: Vec<_> = waiting
        .map(|(count, one, many)| counted(count, one, many))
        .collect();
    if !waiting.is_empty() {
        text += &format!(" ({} outstanding)", waiting.join(", "));
    }
    text
}

/// Whether an event reports that something went wrong.
fn is_error(event: AsyncEventType) -> bool {
    use AsyncEventType as E;
    matches!(
        event,
        E::CqErr
            | E::QpFatal
            | E::QpReqErr
            | E::QpAccessErr
            | E::SrqErr
            | E::DeviceFatal
            | E::PortErr
    )
}
