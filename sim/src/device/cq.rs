//! Completion queues: the ring, overrun, resize, acknowledgements.

use verbs_api::behavior::{Check, Overrun, PollAfterOverrun, UndefinedFields};
use verbs_api::lab::{CqReport, Limit, TraceEvent};
use verbs_api::table::Table;
use verbs_api::{
    Arm, AsyncEventType, Capabilities, Cause, CompChannel as ChannelHandle, Context,
    Cq as CqHandle, CqAttr, CqInit, Element, ErrorKind, Handle, Object, Qp, Wc, WcStatus,
};

use super::Device;
use super::base::Base;
use super::channel::CompChannel;
use super::check::{
    check_acknowledged, check_unused, find, find_in, find_unchecked, in_context, in_range, invalid,
};
use super::completion::{Completion, CompletionRing, Delivery, Entry, Ticket};
use super::cq_ex::Extended;
use super::empty::EmptyCqs;
use super::event_queue::Numbers;
use super::look::Look;
use super::moderate::Moderation;
use super::notify::{Notify, is_solicited};
use super::refusal::{Refusal, Result};
use super::undefined::undefine;
use super::wakeup::Wakeup;
use crate::diagnosis::problem::ArmedWithoutChannel;
use crate::diagnosis::{CqSeen, CqUse, FailedWork, LabCause, Standing};
use crate::time::Timers;

/// A completion queue.
#[derive(Clone, Debug)]
pub(crate) struct Cq {
    pub(crate) handle: CqHandle,
    pub(crate) init: CqInit,
    pub(crate) channel: Option<u32>,
    /// Set if it is an extended CQ.
    pub(crate) extended: Option<Extended>,
    pub(super) ring: CompletionRing,
    pub(super) cqe: u32,
    pub(crate) notify: Notify,
    pub(crate) moderation: Moderation,
    /// Whether it has overrun and can no longer be used.
    pub(crate) dead: bool,
    /// The number of QPs that use it.
    pub(crate) users: u32,
    /// The number of XRC SRQs that use it.
    pub(crate) srqs: u32,
    /// Unread events on the channel.
    pub(crate) events_unread: Numbers,
    /// The number of events that were read and not acknowledged.
    pub(crate) events_unacked: u32,
    pub(crate) usage: CqUse,
    look: Look,
}

/// The CQs of a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cqs {
    pub(crate) table: Table<Cq>,
    pub(crate) channels: Table<CompChannel>,
    /// A timer for each CQ, for an event that moderation delays.
    pub(crate) moderated: Timers,
    /// The number of entries of all CQs.
    entries: u64,
    /// Unpolled completions by the slot of their queue pair, with its generation. Kept on a device
    /// that removes them when the queue pair is destroyed.
    unpolled: Vec<(u32, u32)>,
    /// Where the device shows which CQs are empty, if it does. A clone shows them there, too, so
    /// nodes of a fabric are not cloned.
    pub(crate) shown: Option<EmptyCqs>,
}

in_context!(Cq, handle.context());

impl Cq {
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn report(&self) -> CqReport {
        let mut report = CqReport::default();
        report.cq = self.handle;
        report.armed = self.notify.state;
        report.unpolled = self.ring.len() as u32;
        report.cqe = self.cqe;
        report.overrun = self.dead;
        report
    }

    /// Records that it was armed.
    fn note_armed(&mut self, base: &mut Base) {
        self.usage.armed_at = base.site;
        self.usage.is_disarmed = false;
        self.usage.failure_was_seen = false;
        // A program that armed without emptying the CQ may miss the rest.
        self.usage.was_armed_over = self.usage.is_partly_polled;
        if self.channel.is_none() {
            let problem = ArmedWithoutChannel { cq: self.handle };
            base.journal.note(problem, base.site);
        }
    }

    /// Whether it has overrun and all its completions were polled.
    pub(crate) fn has_died_empty(&self) -> bool {
        self.dead && self.ring.is_empty()
    }

    /// The number of entries in use.
    fn used(&self) -> usize {
        self.ring.len() + self.extended.map_or(0, |extended| extended.held() as usize)
    }
}

impl Device {
    /// `ibv_create_cq`, and `ibv_create_cq_ex` for an extended CQ.
    pub(crate) fn create_cq(
        &mut self,
        context: Context,
        init: &CqInit,
        extended: Option<Extended>,
    ) -> Result<CqHandle> {
        let Self { base, cqs, .. } = self;
        in_range("cqe", i64::from(init.cqe), 1, i64::from(base.attr.max_cqe))?;
        let vectors = i64::from(base.attr.num_comp_vectors);
        in_range("comp_vector", i64::from(init.comp_vector), 0, vectors - 1)?;
        let find = |channel| find_in(&cqs.channels, context, channel);
        let channel = init.channel.map(find).transpose()?;
        base.check_room("completion queues", &cqs.table, base.attr.max_cq)?;
        let cqe = base.behavior.cqe_rounding.up(init.cqe as u32);
        base.rules
            .check(Limit::CqEntries, "CQ entries", cqs.entries + u64::from(cqe))?;
        // Everything that may fail is above.
        cqs.entries += u64::from(cqe);
        if let Some(channel) = channel {
            cqs.channels.at_mut(channel).users += 1;
        }
        let id = cqs.table.insert(|id| Cq {
            handle: CqHandle::from_parts(context, id.index, id.generation),
            init: *init,
            channel,
            extended,
            ring: CompletionRing::default(),
            cqe,
            notify: Notify::default(),
            moderation: Moderation::default(),
            dead: false,
            users: 0,
            srqs: 0,
            events_unread: Numbers::new(),
            events_unacked: 0,
            usage: CqUse::default(),
            look: Look::default(),
        });
        Ok(base.added(context, id, CqHandle::from_parts))
    }

    /// The fields of `struct ibv_cq`.
    pub(crate) fn query_cq(&self, cq: CqHandle) -> Result<CqAttr> {
        let cq = self.cqs.table.at(find(&self.cqs.table, cq)?);
        let mut attr = CqAttr::default();
        attr.cqe = cq.cqe;
        attr.cq_context = cq.init.cq_context;
        attr.channel = cq.init.channel;
        attr.comp_vector = cq.init.comp_vector as u32;
        Ok(attr)
    }

    /// `ibv_resize_cq`
    pub(crate) fn resize_cq(&mut self, cq: CqHandle, cqe: i32) -> Result<()> {
        let Self { base, cqs, .. } = self;
        let index = find(&cqs.table, cq)?;
        base.check_has(Capabilities::RESIZE_CQ, "cannot resize CQs")?;
        in_range("cqe", i64::from(cqe), 1, i64::from(base.attr.max_cqe))?;
        // The open iteration holds entries of the ring.
        cqs.check_no_iteration(index)?;
        let found = cqs.table.at(index);
        if found.dead {
            return Err(Refusal::new(ErrorKind::Invalid, Cause::CqOverrun));
        }
        let present = found.ring.len() as u32;
        let mut new = base.behavior.cqe_rounding.up(cqe as u32);
        if (cqe as u32) < present {
            // Completions in the CQ must keep their entries.
            if base.behavior.shrink_below == Check::Refused {
                in_range("cqe", cqe.into(), present.into(), base.attr.max_cqe.into())?;
            }
            new = base.behavior.cqe_rounding.up(present);
        }
        // The kernel's driver rounds up, and some never shrink.
        if new < found.cqe && !base.behavior.shrink {
            new = found.cqe;
        }
        let entries = cqs.entries - u64::from(found.cqe) + u64::from(new);
        // A smaller CQ needs no more memory, so a limit does not matter.
        if new > found.cqe {
            base.rules.check(Limit::CqEntries, "CQ entries", entries)?;
        }
        cqs.entries = entries;
        cqs.table.at_mut(index).cqe = new;
        Ok(())
    }

    /// `ibv_req_notify_cq`
    pub(crate) fn req_notify_cq(&mut self, cq: CqHandle, arm: Arm) -> Result<()> {
        let Self { base, cqs, .. } = self;
        // Most drivers arm in user space, where the handle is not checked.
        let index = match base.behavior.arm_bad_handle {
            Check::Accepted => find_unchecked(&cqs.table, cq)?,
            Check::Refused | _ => find(&cqs.table, cq)?,
        };
        let found = cqs.table.at_mut(index);
        // A CQ that has overrun never makes an event again.
        if found.dead {
            return Err(Refusal::new(ErrorKind::Invalid, Cause::CqOverrun));
        }
        if found.channel.is_none() && base.behavior.arm_no_channel == Check::Refused {
            return Err(invalid("cq", "has no completion channel"));
        }
        let before = found.notify.state;
        found.notify.arm(arm, &base.behavior);
        found.note_armed(base);
        found.look.armed();
        let armed = found.notify.state;
        let unpolled = if arm.solicited_only() {
            found.ring.has_solicited()
        } else {
            !found.ring.is_empty()
        };
        // A second request that changes nothing is not worth a line of the trace.
        if before != armed {
            base.note(TraceEvent::Armed { cq, armed });
        }
        // On such devices a request also covers the completions that are in the CQ already.
        if base.behavior.arm_sees_unpolled && unpolled {
            cqs.end_moderation(base, index);
        }
        Ok(())
    }

    /// The checks of `ibv_poll_cq`, before it takes a completion. Returns the slot of the CQ.
    #[inline]
    pub(crate) fn check_poll(&self, cq: CqHandle, takes: bool) -> Result<u32> {
        let index = find(&self.cqs.table, cq)?;
        let found = self.cqs.table.at(index);
        if found.has_died_empty()
            && takes
            && self.base.behavior.poll_after_overrun == PollAfterOverrun::Error
        {
            return Err(Refusal::new(ErrorKind::Io, Cause::CqOverrun));
        }
        // A poll would take completions that the iteration is going to return.
        if found.extended.is_some() {
            self.cqs.check_no_iteration(index)?;
        }
        Ok(index)
    }

    /// `ibv_ack_cq_events`
    pub(crate) fn ack_cq_events(&mut self, cq: CqHandle, nevents: u32) -> Result<()> {
        let index = find(&self.cqs.table, cq)?;
        let unacked = &mut self.cqs.table.at_mut(index).events_unacked;
        if nevents > *unacked {
            let text = format!(
                "{nevents} events of {cq} are acknowledged, but only {unacked} were read and not \
                 acknowledged yet"
            );
            return Err(Refusal::usage(text));
        }
        *unacked -= nevents;
        // A thread may wait in the destroy of the CQ.
        self.base.wakeups.add(Wakeup::Acknowledged(Element::Cq(cq)));
        Ok(())
    }

    /// `ibv_destroy_cq` without waiting. Returns the work of the completions that were still in it.
    pub(crate) fn destroy_cq(&mut self, cq: CqHandle) -> Result<Vec<Ticket>> {
        let index = find(&self.cqs.table, cq)?;
        let found = self.cqs.table.at(index);
        // The users would write completions into freed memory.
        let users = [(Object::Qp, found.users), (Object::Srq, found.srqs)];
        check_unused(Object::Cq, &users)?;
        self.cqs.check_no_iteration(index)?;
        let of_async = self.base.unacked(Element::Cq(cq));
        check_acknowledged(Object::Cq, found.events_unacked + of_async)?;
        Ok(self.remove_cq(index))
    }

    /// Removes a CQ. Returns the work of the completions that were still in it.
    pub(crate) fn remove_cq(&mut self, index: u32) -> Vec<Ticket> {
        let Self { base, cqs, .. } = self;
        // The facts are lost with the CQ, so a diagnosis gets them now.
        let seen = cqs.seen(base, index);
        base.journal.cq_goes(&seen);
        cqs.forget_moderation(index);
        let cq = cqs.table.remove(index);
        base.remove_object(cq.handle.context(), Object::Cq, index);
        if let Some(shown) = &cqs.shown {
            shown.set(cq.handle, false);
        }
        cqs.entries -= u64::from(cq.cqe);
        if let Some(channel) = cq.channel {
            cqs.detach(base, channel, &cq.events_unread);
        }
        base.discard_async(Element::Cq(cq.handle));
        cq.ring.iter().map(|entry| entry.ticket).collect()
    }
}

impl Cqs {
    /// Adds a completion. The queue pair acts on the first part of the result. The second is a
    /// completion that is lost. No other completion covers its work.
    #[inline(always)]
    pub(super) fn complete(
        &mut self,
        base: &mut Base,
        index: u32,
        completion: Completion,
    ) -> (Delivery, Option<Ticket>) {
        let (mut wc, ticket) = (completion.wc, completion.ticket);
        let (mut delivery, mut lost) = (Delivery::Made, None);
        // A rule only changes successes, since an error already stops the queue.
        if wc.status == WcStatus::Success
            && let Some(status) = base.rules.fire(wc.qp_num)
        {
            note_injected(base, &wc, ticket, status);
            wc.status = status;
            delivery = Delivery::Failed;
        }
        let has_garbage = base.behavior.undefined_wc_fields == UndefinedFields::Garbage;
        if wc.status != WcStatus::Success || has_garbage {
            wc = undefine(base, wc, completion.of_datagram && ticket.is_recv());
        }
        let (recv, marked) = (ticket.is_recv(), completion.solicited);
        let solicited = is_solicited(&base.behavior, recv, wc.status, marked);
        let cq = self.table.at(index);
        if cq.dead || cq.used() >= cq.cqe as usize {
            // Such a CQ keeps its newest completions.
            if !cq.extended.is_some_and(|extended| extended.overwrites()) {
                return self.overrun(base, index, wc, ticket, solicited);
            }
            lost = self.overwrite(base, index);
        }
        // The trace shows the completion before its event.
        let event = base.is_traced().then(|| TraceEvent::Completion {
            cq: self.table.at(index).handle,
            wc: shown(wc, &ticket),
        });
        let fires = self.add(base, index, wc, ticket, solicited);
        if let Some(event) = event {
            base.note(event);
        }
        if fires {
            self.queue_event(base, index);
        }
        (delivery, lost)
    }

    /// Adds the completion of work that the fast path carried out. The CQ has room and is not
    /// moderated.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn add_success(
        &mut self,
        base: &mut Base,
        index: u32,
        wc: Wc,
        ticket: Ticket,
        marked: bool,
    ) {
        let recv = ticket.is_recv();
        let solicited = is_solicited(&base.behavior, recv, WcStatus::Success, marked);
        if self.add(base, index, wc, ticket, solicited) {
            self.queue_event(base, index);
        }
    }

    /// Writes a completion into the ring. Returns whether that makes an event.
    #[inline(always)]
    fn add(&mut self, base: &Base, index: u32, wc: Wc, ticket: Ticket, solicited: bool) -> bool {
        let cq = self.table.at_mut(index);
        // Written in place, because moving an entry costs more than writing it.
        let entry = cq.ring.push(solicited);
        (entry.wc, entry.ticket, entry.at) = (wc, ticket, base.now);
        let is_first = cq.ring.len() == 1;
        let fires = if cq.moderation.is_on() {
            self.moderate(base, index, solicited)
        } else {
            cq.notify.added(solicited)
        };
        if is_first {
            // Threads that poll without the lock must see that the CQ is no longer empty.
            self.show(index);
        }
        self.count(base, &ticket, true);
        fires
    }

    /// Makes room in a full CQ. Returns its oldest completion, if that was unpolled and so is lost.
    #[cold]
    fn overwrite(&mut self, base: &mut Base, index: u32) -> Option<Ticket> {
        let cq = self.table.at_mut(index);
        // An iteration may hold the oldest entry, which the program has seen already.
        if cq.extended.as_mut().is_some_and(Extended::lose_held) {
            return None;
        }
        let Entry { wc, ticket, .. } = *cq.ring.pop()?;
        self.count(base, &ticket, false);
        // The completion was not seen by the program, so the overrun is reported.
        self.note_lost(base, index, shown(wc, &ticket));
        Some(ticket)
    }

    #[cold]
    fn overrun(
        &mut self,
        base: &mut Base,
        index: u32,
        wc: Wc,
        ticket: Ticket,
        solicited: bool,
    ) -> (Delivery, Option<Ticket>) {
        let behavior = &base.behavior;
        let cq = self.table.at_mut(index);
        let handle = cq.handle;
        let was_dead = cq.dead;
        let fires = behavior.spurious_events && cq.notify.added(solicited);
        let mut delivery = Delivery::Dropped;
        if behavior.overrun == Overrun::Dead {
            delivery = Delivery::Fatal;
            cq.dead = true;
            // No further event will come.
            cq.notify = Notify::default();
            self.forget_moderation(index);
            self.show(index);
        }
        self.note_lost(base, index, shown(wc, &ticket));
        if fires {
            self.queue_event(base, index);
        }
        // The event is raised once, although further completions are lost, too.
        if !was_dead {
            base.raise(AsyncEventType::CqErr, Element::Cq(handle));
        }
        (delivery, Some(ticket))
    }

    /// Whether `count` more completions fit in a CQ, and none needs moderation.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn has_room(&self, cq: u32, count: usize) -> bool {
        let cq = self.table.at(cq);
        // The fast path leaves overruns and moderation to packets.
        !cq.dead && cq.used() + count <= cq.cqe as usize && !cq.moderation.is_on()
    }

    /// Shows whether a CQ is empty. A poll of one that has overrun, or is iterated over, must reach
    /// the CQ.
    #[inline]
    pub(crate) fn show(&self, index: u32) {
        if let Some(shown) = &self.shown {
            let cq = self.table.at(index);
            // Otherwise a poll fails, or has to be refused.
            let nothing_to_say = cq.ring.is_empty() && !cq.dead && !cq.is_iterated();
            shown.set(cq.handle, nothing_to_say);
        }
    }

    /// Shows no CQ as empty any more, so that all polls reach the device and fail.
    pub(super) fn hide_empty(&mut self) {
        if let Some(shown) = self.shown.take() {
            for (_, cq) in self.table.iter() {
                shown.set(cq.handle, false);
            }
        }
    }

    /// Counts a completion of a QP that was added to a CQ, or removed.
    #[inline]
    pub(super) fn count(&mut self, base: &Base, ticket: &Ticket, is_there: bool) {
        if base.behavior.cqe_purge {
            self.count_unpolled(ticket, is_there);
        }
    }

    fn count_unpolled(&mut self, ticket: &Ticket, is_there: bool) {
        let slot = ticket.qp as usize;
        if slot >= self.unpolled.len() {
            // Slots grow with the queue pairs of the device.
            self.unpolled.resize(slot + 1, (0, 0));
        }
        let (generation, count) = &mut self.unpolled[slot];
        let is_same = *generation == ticket.qp_generation;
        if is_there && is_same {
            *count += 1;
        } else if is_there {
            (*generation, *count) = (ticket.qp_generation, 1);
        } else if is_same {
            // Otherwise the completion belongs to a destroyed queue pair whose slot was reused.
            *count -= 1;
        }
    }

    pub(super) fn unpolled(&self, qp: u32, generation: u32) -> u32 {
        match self.unpolled.get(qp as usize) {
            Some((of, count)) if *of == generation => *count,
            _ => 0,
        }
    }
}

#[cfg_attr(any(), mutants::skip)] // texts
impl Cqs {
    /// Takes the oldest completion of a CQ.
    #[inline(always)]
    pub(crate) fn pop(&mut self, index: u32) -> Option<&Entry> {
        let cq = self.table.at_mut(index);
        let entry = cq.ring.pop()?;
        cq.usage.failure_was_seen |= entry.wc.status != WcStatus::Success;
        Some(entry)
    }

    /// Records the end of a poll. `is_filled` is whether it returned as many completions as it
    /// asked for.
    #[inline(always)]
    pub(crate) fn polled(&mut self, index: u32, is_filled: bool) {
        let cq = self.table.at_mut(index);
        let is_empty = cq.ring.is_empty();
        cq.usage.was_polled = true;
        // An empty CQ cannot hide completions from a program that arms next.
        cq.usage.is_partly_polled = is_filled && !is_empty;
        cq.usage.event_was_read = false;
        if is_empty {
            cq.usage.unpolled_at = None;
            self.show(index);
        }
    }

    /// The last empty poll of a CQ that exists.
    pub(crate) fn look_mut(&mut self, cq: CqHandle) -> &mut Look {
        &mut self.table.at_mut(cq.index()).look
    }

    /// The facts about a CQ that a diagnosis uses.
    pub(crate) fn seen(&self, base: &Base, index: u32) -> CqSeen {
        let cq = self.table.at(index);
        let is_success = |entry: &&Entry| entry.wc.status == WcStatus::Success;
        CqSeen {
            cq: cq.handle,
            cqe: cq.cqe,
            armed: cq.notify.state,
            usage: cq.usage.clone(),
            unpolled: cq.ring.len() as u32,
            successes: cq.ring.iter().filter(is_success).count() as u32,
            has_solicited: cq.ring.has_solicited(),
            are_of_sends: cq.ring.iter().all(|entry| !entry.ticket.is_recv()),
            channel: cq.channel.map(|channel| self.channels.at(channel).seen()),
            events_unread: cq.events_unread.len() as u32,
            has_late_event: self.moderated.get(index).is_some(),
            made_at: base.made_at(cq.handle.context(), Object::Cq, index),
        }
    }

    /// Whether a CQ has completions of a queue pair.
    pub(crate) fn has_some_of(&self, cq: u32, qp: Qp) -> bool {
        let (index, generation) = (qp.index(), qp.generation());
        let mut tickets = self.table.at(cq).ring.iter().map(|entry| entry.ticket);
        tickets.any(|ticket| (ticket.qp, ticket.qp_generation) == (index, generation))
    }

    fn note_lost(&mut self, base: &mut Base, index: u32, wc: Wc) {
        let found = self.table.at(index);
        let (cq, cqe) = (found.handle, found.cqe);
        let made_at = base.made_at(cq.context(), Object::Cq, index);
        base.journal.lost(cq, cqe, wc.qp_num, made_at);
        base.note(TraceEvent::Overrun { cq, wc });
    }

    /// The state of a channel: the number of queued events, and the CQs attached to it.
    pub(crate) fn channel_report(&self, channel: ChannelHandle) -> (u32, Vec<CqReport>) {
        // The channel may have been destroyed.
        let Ok(index) = find(&self.channels, channel) else {
            return (0, Vec::new());
        };
        let attached = self.table.iter();
        let attached = attached.filter(|(_, cq)| cq.channel == Some(index));
        let queued = self.channels.at(index).events.len() as u32;
        (queued, attached.map(|(_, cq)| cq.report()).collect())
    }
}

/// The completion as the trace shows it.
#[cfg_attr(any(), mutants::skip)] // texts
fn shown(mut wc: Wc, ticket: &Ticket) -> Wc {
    wc.wr_id = ticket.label;
    wc
}

/// Records that a fault rule makes a completion an error.
#[cold]
#[cfg_attr(any(), mutants::skip)] // texts
fn note_injected(base: &mut Base, wc: &Wc, ticket: Ticket, status: WcStatus) {
    base.note(TraceEvent::Fault {
        what: "the completion becomes an error",
    });
    base.journal.failed(FailedWork {
        qp_num: wc.qp_num,
        receive: ticket.is_recv(),
        label: ticket.label,
        status,
        why: Some(LabCause::Injected.into()),
        asked: None,
        at: base.now,
        site: None,
        standing: Standing::Open,
    });
}
