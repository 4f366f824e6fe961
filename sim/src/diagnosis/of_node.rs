//! What a program left undone on a node.

use std::collections::BTreeMap;

use verbs_api::site::Site;
use verbs_api::table::Table;
use verbs_api::{
    AsyncEvent, AsyncEventType, Context, Element, Handle, Object, Qp as QpHandle, QpState,
    Srq as SrqHandle,
};

use super::fact::{CqSeen, FailedWork, Reached, Standing};
use super::problem::{Failed, NotDestroyed, Noted, Unacknowledged, UnreadAsync};
use super::{Certainty, Why, counted};
use crate::device::{Device, InContext, Parent, index_of};
use crate::node::Node;
use crate::packet::{DropReason, Packet};
use crate::qp::Qp;

/// The facts about a CQ, unless it has overrun, which is the better finding.
pub(super) fn cq_seen(device: &Device, index: u32) -> Option<CqSeen> {
    let seen = device.cqs.seen(&device.base, index);
    (!device.base.journal.has_overrun(seen.cq)).then_some(seen)
}

impl Node {
    /// Records the objects of a context that is about to be closed (DEV-03).
    pub(crate) fn note_closing(&mut self, context: Context) {
        let of_context = self.device.base.unread_async(Some(context));
        let unread = self.unread(of_context.filter(|event| self.is_missed(event)));
        let names = self.objects(Some(context));
        let base = &mut self.device.base;
        for noted in unread {
            base.journal.note(noted.problem, noted.site.or(base.site));
        }
        // The context itself is closed, so only its objects count.
        if !names.is_empty() {
            let (contexts, closed) = (0, true);
            base.journal.left(NotDestroyed {
                names,
                contexts,
                closed,
            });
        }
    }

    /// Records a packet of another process that is not read. It counts if its queue pair has never
    /// been ready to receive.
    pub(crate) fn note_unread(&mut self, packet: &Packet) {
        let present = self.reached(packet.dest_qpn);
        let base = &mut self.device.base;
        // A damaged packet is lost for any receiver.
        if !packet.damaged && base.journal.was_never_ready(packet.dest_qpn, present) {
            let why = match present {
                Some(_) => DropReason::NotReady,
                None => DropReason::NoQp,
            };
            base.journal.dropped(base.now, packet, why);
        }
    }

    /// The progress of the queue pair with this number, if it exists.
    fn reached(&self, qp_num: u32) -> Option<Reached> {
        let index = self.find_by_number(qp_num)?;
        Some(self.qps.at(index).reached())
    }

    /// A failure as a problem. `node` returns the node of the peer.
    pub(super) fn failure<'n>(
        &self,
        failure: &FailedWork,
        node: impl FnOnce(u32) -> &'n Self,
    ) -> Noted {
        let from = (self.device.base.id, failure.qp_num);
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
    pub(super) fn receives_from(&self, qp_num: u32) -> Option<Site> {
        match self.find_by_number(qp_num) {
            Some(index) => self.receiver_made_at(index),
            None => self.device.base.journal.destroyed_qp(qp_num)?.made_at,
        }
    }

    /// Certain mistakes that were recorded when they happened, and lost completions.
    pub(super) fn causes(&self) -> Vec<Noted> {
        let overruns = self.device.base.journal.overruns();
        self.noted(Certainty::Certain).chain(overruns).collect()
    }

    /// The mistakes of this certainty that were recorded when they happened.
    fn noted(&self, certainty: Certainty) -> impl Iterator<Item = Noted> {
        let noted = self.device.base.journal.noted.iter();
        let is_so = move |noted: &&Noted| noted.problem.class().certainty() == certainty;
        noted.filter(is_so).cloned()
    }

    /// Signs that something is wrong: dropped packets, and unread completions and events.
    pub(super) fn signs(&self) -> Vec<Noted> {
        let device = &self.device;
        let mut signs: Vec<_> = self.noted(Certainty::Hint).collect();
        signs.extend(device.base.journal.not_taken(|number| self.reached(number)));
        // All queue pairs are read once, and not for each CQ.
        let mut outstanding = vec![0; device.cqs.table.slots() as usize];
        let mut unpolled = BTreeMap::new();
        for (_, qp) in self.qps.iter() {
            for (cq, count) in qp.signaled_sends().into_iter().chain(qp.own_receives()) {
                outstanding[cq as usize] += count;
            }
            for (cq, posted_at) in qp.unpolled() {
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
        signs.extend(channels.filter_map(|(_, channel)| channel.seen().unread()));
        signs.extend(self.unacknowledged());
        let all = device.base.unread_async(None);
        signs.extend(self.unread(all.filter(|event| self.is_missed(event))));
        signs
    }

    /// Unread asynchronous events that may be what a program that hangs waits for, in addition to
    /// those that are mistakes in any program.
    pub(super) fn unread_in_a_hang(&self) -> Vec<Noted> {
        let all = self.device.base.unread_async(None);
        self.unread(all.filter(|event| !self.is_missed(event) && self.is_due(event)))
    }

    /// The program destroys an SRQ: records that it ran dry while the event of its limit was
    /// unread.
    #[cold]
    pub(crate) fn note_dry(&mut self, srq: SrqHandle) {
        let of_context = self.device.base.unread_async(Some(srq.context()));
        let of_srq = of_context.filter(|event| event.element == Element::Srq(srq));
        for noted in self.unread(of_srq.filter(|event| self.is_missed(event))) {
            self.device.base.journal.note(noted.problem, noted.site);
            // A destroy that waits or is refused is called again.
            self.device.srqs.at_mut(srq.index()).is_dry = false;
        }
    }

    /// The objects that still exist, and those of contexts that were closed before.
    pub(super) fn leftovers(&self) -> Vec<Noted> {
        let base = &self.device.base;
        // The context of rdma_cm ids belongs to no program.
        let contexts = base.open_contexts() - u32::from(base.of_ids.is_some());
        let (names, closed) = (self.objects(None), false);
        let left = !names.is_empty() || contexts > 0;
        let left = left.then_some(NotDestroyed {
            names,
            contexts,
            closed,
        });
        let all = base.journal.left.iter().cloned().chain(left);
        all.map(|problem| Noted::at(problem, None)).collect()
    }

    /// Which events of its objects a context cannot get. `None` if it has no objects that raise
    /// events that a program asks for, as that of a program that watches the ports.
    pub(super) fn no_async_event(&self, context: Context) -> Option<String> {
        let qps = || {
            let qps = self.qps.iter().map(|(_, qp)| qp);
            qps.filter(|qp| qp.common.handle.context() == context)
        };
        let srqs = self.device.srqs.iter().map(|(_, srq)| srq);
        let mut srqs = srqs.filter(|srq| srq.handle.context() == context);
        qps().next()?;
        let has_srq = |qp: &Qp| qp.responder.receives.made_with().is_some();
        let last = match qps().filter(|qp| has_srq(qp)).count() {
            0 => "no qp has an SRQ, so LAST_WQE_REACHED does not come",
            _ => "a qp with an SRQ raises LAST_WQE_REACHED once, after it has entered ERR",
        };
        let mut why = vec![last];
        if !qps().any(|qp| qp.common.attr.en_sqd_async_notify) {
            why.push("no qp was asked for SQ_DRAINED (en_sqd_async_notify)");
        }
        if !srqs.any(|srq| srq.is_armed()) {
            why.push("no SRQ has a limit, so SRQ_LIMIT_REACHED does not come");
        }
        Some(why.join("; "))
    }

    /// Unread asynchronous events as problems, at the places of their objects.
    fn unread<'e>(&self, events: impl Iterator<Item = &'e AsyncEvent>) -> Vec<Noted> {
        let mut counts: BTreeMap<(String, u32), (u32, Element)> = BTreeMap::new();
        for event in events {
            let place = (self.name_of(event.element), event.event_type.into());
            // Equal events of an object are one finding with a count.
            counts.entry(place).or_insert((0, event.element)).0 += 1;
        }
        let noted = |((of, event_type), (events, element)): ((String, u32), (u32, Element))| {
            let event_type = event_type.into();
            let problem = UnreadAsync {
                event_type,
                of,
                events,
            };
            Noted::at(problem, self.place_of(element, event_type))
        };
        counts.into_iter().map(noted).collect()
    }

    /// Whether it is a mistake not to read an event, however the program ends: it reports an error
    /// that no finding reports, or asked for receives before an SRQ ran dry.
    fn is_missed(&self, event: &AsyncEvent) -> bool {
        let journal = &self.device.base.journal;
        match event.element {
            Element::Cq(cq) if journal.has_overrun(cq) => false,
            Element::Qp(qp) if event.event_type == AsyncEventType::QpFatal => {
                let found = self.qp(qp);
                !found.is_some_and(|qp| journal.has_lost(qp.common.qp_num))
            }
            Element::Srq(srq) if event.event_type == AsyncEventType::SrqLimitReached => {
                self.device.srqs.at(srq.index()).is_dry
            }
            _ => is_error(event.event_type),
        }
    }

    /// Whether an event asks for a step that the program has not taken.
    fn is_due(&self, event: &AsyncEvent) -> bool {
        let is_in = |state| match event.element {
            Element::Qp(qp) => self.qp(qp).is_some_and(|qp| qp.common.state() == state),
            _ => false,
        };
        match event.event_type {
            AsyncEventType::CommEst => is_in(QpState::Rtr),
            AsyncEventType::SqDrained => is_in(QpState::Sqd),
            // The SRQ has receives.
            AsyncEventType::SrqLimitReached => false,
            event_type => !is_error(event_type),
        }
    }

    /// Where the object of an event was created, or the event was asked for.
    fn place_of(&self, element: Element, event: AsyncEventType) -> Option<Site> {
        let (context, object, index) = match element {
            Element::Srq(srq) if event == AsyncEventType::SrqLimitReached => {
                return self.device.srqs.at(srq.index()).limit_site;
            }
            Element::Cq(cq) => (cq.context(), Object::Cq, cq.index()),
            Element::Qp(qp) => (qp.context(), Object::Qp, qp.index()),
            Element::Srq(srq) => (srq.context(), Object::Srq, srq.index()),
            _ => return None,
        };
        self.device.base.made_at(context, object, index)
    }

    /// The queue pair of a handle, if it exists.
    pub(super) fn qp(&self, qp: QpHandle) -> Option<&Qp> {
        let index = self.find_qp(qp).ok()?;
        Some(self.qps.at(index))
    }

    /// The name of an object in a finding.
    fn name_of(&self, element: Element) -> String {
        match element {
            Element::Qp(qp) => self.qp(qp).map_or_else(|| qp.to_string(), name_of),
            other => other.to_string(),
        }
    }

    fn unacknowledged(&self) -> impl Iterator<Item = Noted> {
        let Device { cqs, srqs, .. } = &self.device;
        let cqs = cqs.table.iter().map(|(_, cq)| Element::Cq(cq.handle));
        let qps = self.qps.iter();
        let qps = qps.map(|(_, qp)| Element::Qp(qp.common.handle));
        let srqs = srqs.iter().map(|(_, srq)| Element::Srq(srq.handle));
        let all = cqs.chain(qps).chain(srqs);
        all.filter_map(|element| self.unacknowledged_of(element))
    }

    /// Events about an object that were read and not acknowledged.
    pub(super) fn unacknowledged_of(&self, element: Element) -> Option<Noted> {
        let Device { base, cqs, .. } = &self.device;
        let cq = match element {
            Element::Cq(cq) => cqs.table.get(cq.index(), cq.generation()).ok(),
            _ => None,
        };
        let of_async = base.unacked(element);
        let of_cq = cq.map_or(0, |cq| cq.events_unacked);
        // Events of the channel have no type.
        let last = base.last_read(element).filter(|_| of_async > 0);
        let read_at = match (cq, last) {
            (Some(cq), _) if of_cq > 0 => cq.usage.event_read_at,
            (_, last) => last.and_then(|(_, site)| site),
        };
        let events = of_cq + of_async;
        let problem = || Unacknowledged {
            of: self.name_of(element),
            last: last.map(|(event, _)| event.to_string()),
            events,
        };
        (events > 0).then(|| Noted::at(problem(), read_at))
    }

    /// All objects, or those of a context that is being closed. Users come before the objects they
    /// use.
    fn objects(&self, of: Option<Context>) -> Vec<(String, Option<Site>)> {
        let device = &self.device;
        let of_ids = device.base.of_ids.map(|(_, pd)| pd);
        let (domains, cqs) = (&device.domains, &device.cqs);
        let all = [
            self.named(of, Object::Qp, &self.qps, |_, qp| Some(standing(qp))),
            self.named(of, Object::Srq, &device.srqs, |_, srq| {
                let receives = counted(srq.recvs.len(), "receive", "receives");
                Some(format!("{} ({receives} outstanding)", srq.handle))
            }),
            self.named(of, Object::Mw, &domains.windows.table, numbered("mw")),
            self.named(of, Object::Ah, &domains.ahs, numbered("ah")),
            self.named(of, Object::Mr, &domains.regions.table, |at, mr| {
                let (lkey, length) = (mr.attr.lkey, mr.attr.length);
                Some(format!("mr#{at} (lkey {lkey:#x}, {length} bytes)"))
            }),
            self.named(of, Object::Dm, &domains.dms, |at, dm| {
                Some(format!("dm#{at} ({} bytes)", dm.length))
            }),
            self.named(of, Object::Cq, &cqs.table, |_, cq| {
                Some(cq.handle.to_string())
            }),
            self.named(of, Object::CompChannel, &cqs.channels, numbered("channel")),
            self.named(of, Object::Xrcd, &device.xrcds.table, numbered("xrcd")),
            self.parent_domains(of),
            self.named(of, Object::Td, &device.base.parents.tds, numbered("td")),
            // The domain of rdma_cm ids belongs to no program.
            self.named(of, Object::Pd, &domains.pds, |at, _| {
                (of_ids != Some(at)).then(|| format!("pd#{at}"))
            }),
        ];
        all.into_iter().flatten().collect()
    }

    /// The parent domains, whose handles are those of protection domains.
    fn parent_domains(&self, of: Option<Context>) -> Vec<(String, Option<Site>)> {
        let base = &self.device.base;
        let all = base.parents.table.iter();
        let meant = all.filter(|(_, parent)| of.is_none_or(|of| of == parent.context()));
        let made = |(slot, parent): (u32, &Parent)| {
            let index = index_of(slot);
            let made_at = base.made_at(parent.context(), Object::Pd, index);
            (format!("pd#{index}"), made_at)
        };
        meant.map(made).collect()
    }

    /// The objects of a kind, except those without a name.
    fn named<T: InContext>(
        &self,
        of: Option<Context>,
        kind: Object,
        table: &Table<T>,
        name: impl Fn(u32, &T) -> Option<String>,
    ) -> Vec<(String, Option<Site>)> {
        // Objects of other contexts are not closed with this one.
        let indices = match of {
            Some(context) => self.device.base.objects(context, kind),
            None => table.indices(|_| true),
        };
        // Handles of queue pairs that several contexts have open are not in the table of queue
        // pairs.
        let named = |at: u32| {
            let object = table.peek(at)?;
            let made_at = self.device.base.made_at(object.context(), kind, at);
            Some((name(at, object)?, made_at))
        };
        indices.into_iter().filter_map(named).collect()
    }
}

fn numbered<T>(kind: &'static str) -> impl Fn(u32, &T) -> Option<String> {
    move |at, _| Some(format!("{kind}#{at}"))
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
    let (sends, receives) = qp.unfinished();
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
