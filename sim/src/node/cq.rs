//! Completion queues: the ring, overrun, resize, acknowledgements.

use std::collections::VecDeque;

use verbs_api::behavior::{Check, Overrun, PollAfterOverrun, ResizeSupport, UndefinedFields};
use verbs_api::lab::{CqReport, Limit, TraceEvent};
use verbs_api::{
    Arm, AsyncEventType, Cause, Context, Cq as CqHandle, CqAttr, CqInit, Element, Error, ErrorKind,
    Handle, Object, QpType, Result, Verb, Wc, WcFlags, WcOpcode, WcStatus,
};

use super::cq_ex::Extended;
use super::events::Numbers;
use super::moderate::Moderation;
use super::notify::{Added, Notify};
use super::srq::Taken;
use super::{InContext, Node, in_range, in_use, invalid};
use crate::time::Time;
use verbs_api::table::Id;

/// A completion queue.
#[derive(Clone, Debug)]
pub(super) struct Cq {
    pub(super) handle: CqHandle,
    pub(super) init: CqInit,
    pub(super) channel: Option<u32>,
    /// It is an extended one.
    pub(super) extended: Option<Extended>,
    ring: Ring,
    cqe: u32,
    pub(super) notify: Notify,
    pub(super) moderation: Moderation,
    /// It has overrun and cannot be used any more.
    dead: bool,
    /// QPs that use it.
    pub(super) users: u32,
    /// SRQs of XRC that use it.
    pub(super) srqs: u32,
    /// Events on the channel that were not read yet.
    pub(super) events_unread: Numbers,
    /// Events that were read and not acknowledged.
    pub(super) events_unacked: u32,
    pub(super) async_unacked: u32,
}

/// The completions of a CQ that were not polled yet, oldest first.
#[derive(Clone, Debug, Default)]
struct Ring {
    entries: VecDeque<Entry>,
    /// How many of them would have satisfied a solicited request.
    solicited: usize,
}

impl Ring {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn has_solicited(&self) -> bool {
        self.solicited > 0
    }

    fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    fn push_back(&mut self, entry: Entry) {
        self.solicited += usize::from(entry.solicited);
        self.entries.push_back(entry);
    }

    fn pop_front(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.solicited -= usize::from(entry.solicited);
        Some(entry)
    }

    /// Takes out what is `wanted`.
    fn take_out(&mut self, wanted: impl Fn(&Entry) -> bool) -> Vec<Ticket> {
        let (mut taken, mut solicited) = (Vec::new(), 0);
        self.entries.retain(|entry| {
            let wanted = wanted(entry);
            if wanted {
                taken.push(entry.ticket);
            } else {
                solicited += usize::from(entry.solicited);
            }
            !wanted
        });
        self.solicited = solicited;
        taken
    }
}

/// A completion in the ring, with what polling it gives back to the QP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) wc: Wc,
    pub(super) ticket: Ticket,
    /// It would have satisfied a solicited request.
    solicited: bool,
    /// When it was added.
    pub(super) at: Time,
}

/// Which work request a completion is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) qp: u32,
    pub(super) qp_generation: u32,
    pub(super) queue: Queue,
    /// Number of the work request in its queue.
    pub(super) seq: u64,
}

/// The queue that a work request was in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// The QP's send queue.
    Send,
    /// The QP's receive queue.
    Recv,
    /// An SRQ.
    Shared(Id),
}

impl Ticket {
    pub(super) fn is_recv(&self) -> bool {
        self.queue != Queue::Send
    }
}

/// What became of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It was made as it should be.
    Made,
    /// A fault rule made it an error.
    Failed,
    /// The CQ had no room for it.
    Lost,
}

impl InContext for Cq {
    fn context(&self) -> Context {
        self.handle.context()
    }
}

impl Cq {
    pub(super) fn report(&self) -> CqReport {
        let mut report = CqReport::default();
        report.cq = self.handle;
        report.armed = self.notify.state();
        report.unpolled = self.ring.len() as u32;
        report.cqe = self.cqe;
        report.overrun = self.dead;
        report
    }

    /// A completion waits in it that would satisfy a solicited request.
    pub(super) fn has_solicited(&self) -> bool {
        self.ring.has_solicited()
    }

    /// Takes the oldest completion.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        self.ring.pop_front()
    }

    /// It has overrun, and what it held was polled.
    pub(super) fn has_died_empty(&self) -> bool {
        self.dead && self.ring.is_empty()
    }

    /// Entries in use.
    fn used(&self) -> usize {
        self.ring.len() + self.extended.map_or(0, |extended| extended.held() as usize)
    }
}

impl Node {
    /// `ibv_create_cq`
    pub fn create_cq(&mut self, context: Context, init: &CqInit) -> Result<CqHandle> {
        self.make_cq(Verb::CreateCq, context, init, None)
    }

    /// Makes a CQ, which may be an extended one.
    pub(super) fn make_cq(
        &mut self,
        verb: Verb,
        context: Context,
        init: &CqInit,
        extended: Option<Extended>,
    ) -> Result<CqHandle> {
        self.find_context(verb, context)?;
        in_range(
            verb,
            "cqe",
            i64::from(init.cqe),
            1,
            i64::from(self.attr.max_cqe),
        )?;
        let vectors = i64::from(self.attr.num_comp_vectors);
        in_range(
            verb,
            "comp_vector",
            i64::from(init.comp_vector),
            0,
            vectors - 1,
        )?;
        let channel = match init.channel {
            Some(channel) => Some(Self::find_in(&self.channels, verb, context, channel)?),
            None => None,
        };
        self.check_room(verb, "completion queues", self.cqs.len(), self.attr.max_cq)?;
        let cqe = self.behavior.cqe_rounding.up(init.cqe as u32);
        self.check_limit(
            verb,
            Limit::CqEntries,
            "CQ entries",
            self.cq_entries + u64::from(cqe),
        )?;
        self.cq_entries += u64::from(cqe);
        if let Some(channel) = channel {
            self.channels.at_mut(channel).cqs += 1;
        }
        let id = self.cqs.insert(|id| Cq {
            handle: CqHandle::from_parts(context, id.index, id.generation),
            init: *init,
            channel,
            extended,
            ring: Ring::default(),
            cqe,
            notify: Notify::default(),
            moderation: Moderation::default(),
            dead: false,
            users: 0,
            srqs: 0,
            events_unread: Numbers::new(),
            events_unacked: 0,
            async_unacked: 0,
        });
        self.add_object(context, Object::Cq, id.index);
        self.show(id.index);
        Ok(CqHandle::from_parts(context, id.index, id.generation))
    }

    /// The fields of `struct ibv_cq`.
    pub fn query_cq(&self, cq: CqHandle) -> Result<CqAttr> {
        let cq = self.cqs.at(Self::find(&self.cqs, Verb::QueryCq, cq)?);
        let mut attr = CqAttr::default();
        attr.cqe = cq.cqe;
        attr.cq_context = cq.init.cq_context;
        attr.channel = cq.init.channel;
        attr.comp_vector = cq.init.comp_vector as u32;
        Ok(attr)
    }

    /// `ibv_resize_cq`
    pub fn resize_cq(&mut self, cq: CqHandle, cqe: i32) -> Result<()> {
        let verb = Verb::ResizeCq;
        let index = Self::find(&self.cqs, verb, cq)?;
        let refusal = match self.behavior.resize_errno {
            ResizeSupport::Enosys => Some(ErrorKind::NotImplemented),
            ResizeSupport::Eopnotsupp => Some(ErrorKind::NotSupported),
            ResizeSupport::Supported | _ => None,
        };
        if let Some(kind) = refusal {
            let cause = Cause::Argument {
                what: "the device",
                problem: "cannot resize CQs",
            };
            return Err(Error::new(verb, kind, cause));
        }
        in_range(verb, "cqe", i64::from(cqe), 1, i64::from(self.attr.max_cqe))?;
        self.check_no_iteration(verb, index)?;
        let found = self.cqs.at(index);
        if found.dead {
            return Err(Error::new(verb, ErrorKind::Invalid, Cause::CqOverrun));
        }
        let present = found.ring.len() as u32;
        let mut new = self.behavior.cqe_rounding.up(cqe as u32);
        if (cqe as u32) < present {
            if self.behavior.shrink_below == Check::Refused {
                let (value, min) = (i64::from(cqe), i64::from(present));
                let max = i64::from(self.attr.max_cqe);
                let cause = Cause::OutOfRange {
                    what: "cqe",
                    value,
                    min,
                    max,
                };
                return Err(Error::new(verb, ErrorKind::Invalid, cause));
            }
            new = self.behavior.cqe_rounding.up(present);
        }
        if new < found.cqe && !self.behavior.shrink {
            new = found.cqe;
        }
        let entries = self.cq_entries - u64::from(found.cqe) + u64::from(new);
        if new > found.cqe {
            self.check_limit(verb, Limit::CqEntries, "CQ entries", entries)?;
        }
        self.cq_entries = entries;
        self.cqs.at_mut(index).cqe = new;
        Ok(())
    }

    /// `ibv_req_notify_cq`
    pub fn req_notify_cq(&mut self, cq: CqHandle, arm: Arm) -> Result<()> {
        let verb = Verb::ReqNotifyCq;
        let index = match self.behavior.arm_bad_handle {
            Check::Accepted => Self::find_unchecked(&self.cqs, verb, cq)?,
            Check::Refused | _ => Self::find(&self.cqs, verb, cq)?,
        };
        let found = self.cqs.at_mut(index);
        if found.dead {
            return Err(Error::new(verb, ErrorKind::Invalid, Cause::CqOverrun));
        }
        if found.channel.is_none() && self.behavior.arm_no_channel == Check::Refused {
            return Err(invalid(verb, "cq", "has no completion channel"));
        }
        let before = found.notify.state();
        found.notify.arm(arm, &self.behavior);
        let armed = found.notify.state();
        let unpolled = match arm.solicited_only() {
            true => found.ring.has_solicited(),
            false => !found.ring.is_empty(),
        };
        if before != armed {
            self.note(TraceEvent::Armed { cq, armed });
        }
        if self.behavior.arm_sees_unpolled && unpolled {
            self.end_moderation(index);
        }
        Ok(())
    }

    /// `ibv_poll_cq`
    #[inline]
    pub fn poll_cq(&mut self, cq: CqHandle, wc: &mut [Wc]) -> Result<usize> {
        let index = Self::find(&self.cqs, Verb::PollCq, cq)?;
        let found = self.cqs.at(index);
        if found.has_died_empty()
            && !wc.is_empty()
            && self.behavior.poll_after_overrun == PollAfterOverrun::Error
        {
            return Err(Error::new(Verb::PollCq, ErrorKind::Io, Cause::CqOverrun));
        }
        if found.extended.is_some() {
            self.check_no_iteration(Verb::PollCq, index)?;
        }
        let mut count = 0;
        while count < wc.len()
            && let Some(entry) = self.cqs.at_mut(index).ring.pop_front()
        {
            wc[count] = entry.wc;
            count += 1;
            self.release(entry.ticket);
        }
        self.show(index);
        if count > 0 {
            self.place_late();
        }
        Ok(count)
    }

    /// `ibv_ack_cq_events`
    pub fn ack_cq_events(&mut self, cq: CqHandle, nevents: u32) -> Result<()> {
        let verb = Verb::AckCqEvents;
        let index = Self::find(&self.cqs, verb, cq)?;
        let unacked = &mut self.cqs.at_mut(index).events_unacked;
        if nevents > *unacked {
            let text = format!(
                "{nevents} events of {cq} are acknowledged, but only {unacked} were read and not \
                 acknowledged yet"
            );
            return Err(Error::new(
                verb,
                ErrorKind::Usage,
                Cause::Usage(text.into()),
            ));
        }
        *unacked -= nevents;
        self.news = true;
        Ok(())
    }

    /// `ibv_destroy_cq` that does not wait.
    pub fn destroy_cq(&mut self, cq: CqHandle) -> Result<()> {
        let verb = Verb::DestroyCq;
        let index = Self::find(&self.cqs, verb, cq)?;
        let found = self.cqs.at(index);
        for (by, count) in [(Object::Qp, found.users), (Object::Srq, found.srqs)] {
            if count > 0 {
                return Err(in_use(verb, Object::Cq, by, count));
            }
        }
        self.check_no_iteration(verb, index)?;
        let events = found.events_unacked + found.async_unacked;
        if events > 0 {
            let cause = Cause::Unacknowledged {
                object: Object::Cq,
                events,
            };
            return Err(Error::new(verb, ErrorKind::WouldBlock, cause));
        }
        self.remove_cq(index);
        Ok(())
    }

    fn remove_cq(&mut self, index: u32) {
        self.forget_moderation(index);
        let cq = self.cqs.remove(index);
        self.remove_object(cq.handle.context(), Object::Cq, index);
        for entry in cq.ring.iter() {
            self.release(entry.ticket);
        }
        if let Some(shown) = &self.shown.0 {
            shown.set(cq.handle, false);
        }
        self.cq_entries -= u64::from(cq.cqe);
        if let Some(channel) = cq.channel {
            self.detach(channel, &cq.events_unread);
        }
        self.discard_async(cq.handle.context(), Element::Cq(cq.handle));
        self.news = true;
    }

    pub(super) fn remove_cqs_and_channels_of(&mut self, context: Context) {
        for index in self.objects(context, Object::Cq) {
            self.remove_cq(index);
        }
        self.remove_channels_of(context);
    }

    /// Removes the unpolled completions of a QP, where the device does so (CQ-DESTROY-08).
    pub(super) fn purge(&mut self, cq: u32, qp: u32, qp_generation: u32) {
        if self.behavior.cqe_purge {
            let of = |ticket: &Ticket| ticket.qp == qp && ticket.qp_generation == qp_generation;
            let purged = self.cqs.at_mut(cq).ring.take_out(|entry| of(&entry.ticket));
            self.show(cq);
            for ticket in purged {
                self.release(ticket);
            }
        }
    }

    /// Shows whether a CQ is empty. One that has overrun has more to say than that.
    pub(super) fn show(&self, index: u32) {
        if let Some(shown) = &self.shown.0 {
            let cq = self.cqs.at(index);
            let nothing_to_say = cq.ring.is_empty() && !cq.dead && !cq.is_iterated();
            shown.set(cq.handle, nothing_to_say);
        }
    }

    /// Shows of no CQ any more that it is empty: polls are to fail.
    pub(super) fn hide_empty_cqs(&mut self) {
        if let Some(shown) = std::mem::take(&mut self.shown).0 {
            for (_, cq) in self.cqs.iter() {
                shown.set(cq.handle, false);
            }
        }
    }

    /// Adds a completion. If it is lost, or a fault rule makes it an error, its queue has stopped
    /// when this returns, and what was left there is flushed: the caller finds it so.
    #[inline(always)]
    pub(super) fn complete(
        &mut self,
        index: u32,
        mut wc: Wc,
        ticket: Ticket,
        solicited: bool,
    ) -> Delivery {
        let mut delivery = Delivery::Made;
        if wc.status == WcStatus::Success
            && let Some(status) = self.strike(ticket.qp)
        {
            wc.status = status;
            delivery = Delivery::Failed;
            self.note_injected(ticket, wc.wr_id, status);
        }
        let has_garbage = self.behavior.undefined_wc_fields == UndefinedFields::Garbage;
        if wc.status != WcStatus::Success || has_garbage {
            wc = self.undefine(wc, ticket);
        }
        let cq = self.cqs.at_mut(index);
        let handle = cq.handle;
        if (cq.dead || cq.used() >= cq.cqe as usize) && !self.overwrite(index) {
            self.overrun(index, wc, ticket, solicited);
            return Delivery::Lost;
        }
        let cq = self.cqs.at_mut(index);
        let recv = ticket.is_recv();
        let added = Added {
            recv,
            success: wc.status == WcStatus::Success,
            flushed: wc.status == WcStatus::WrFlushErr,
            solicited,
        };
        let solicited = added.is_solicited(&self.behavior);
        cq.ring.push_back(Entry {
            wc,
            ticket,
            solicited,
            at: self.now,
        });
        let is_first = cq.ring.len() == 1;
        let fires = match cq.moderation.is_on() {
            false => cq.notify.added(added, &self.behavior),
            true => self.moderate(index, added),
        };
        if is_first {
            self.show(index);
        }
        self.count_unpolled(&ticket, true);
        self.news = true;
        if self.trace.is_some() {
            self.note(TraceEvent::Completion { cq: handle, wc });
        }
        if fires {
            self.queue_event(index);
        }
        if delivery == Delivery::Failed {
            self.stop(ticket);
        }
        delivery
    }

    /// Makes room in a full CQ that may overrun: its oldest completion is lost.
    #[cold]
    fn overwrite(&mut self, index: u32) -> bool {
        let cq = self.cqs.at_mut(index);
        let Some(extended) = cq
            .extended
            .as_mut()
            .filter(|extended| extended.overwrites())
        else {
            return false;
        };
        let Some(Entry { wc, ticket, .. }) = cq.ring.pop_front() else {
            extended.lose_held();
            return true;
        };
        self.count_unpolled(&ticket, false);
        // No later completion covers it.
        if let Queue::Shared(srq) = ticket.queue {
            let seq = ticket.seq;
            self.release_shared(Taken { srq, seq });
        }
        self.note_lost(index, wc);
        true
    }

    fn note_lost(&mut self, index: u32, wc: Wc) {
        let found = self.cqs.at(index);
        let (cq, cqe) = (found.handle, found.cqe);
        self.history.lost(cq, cqe);
        self.note(TraceEvent::Overrun { cq, wc });
    }

    #[cold]
    fn overrun(&mut self, index: u32, wc: Wc, ticket: Ticket, solicited: bool) {
        let cq = self.cqs.at_mut(index);
        let handle = cq.handle;
        let was_dead = cq.dead;
        let added = Added {
            recv: ticket.is_recv(),
            success: wc.status == WcStatus::Success,
            flushed: wc.status == WcStatus::WrFlushErr,
            solicited,
        };
        let fires = self.behavior.spurious_events && cq.notify.added(added, &self.behavior);
        if self.behavior.overrun == Overrun::Dead {
            cq.dead = true;
            cq.notify = Notify::default();
            self.forget_moderation(index);
            self.show(index);
        }
        // No completion of it will be polled, nor one that covers it.
        if let Queue::Shared(srq) = ticket.queue {
            let seq = ticket.seq;
            self.release_shared(Taken { srq, seq });
        }
        self.note_lost(index, wc);
        if fires {
            self.queue_event(index);
        }
        if !was_dead {
            self.raise(handle.context(), AsyncEventType::CqErr, Element::Cq(handle));
        }
        match self.behavior.overrun {
            Overrun::DropNew if ticket.is_recv() => self.stop(ticket),
            Overrun::DropNew => {}
            Overrun::Dead | _ => self.fail_fatally(ticket.qp),
        }
    }

    /// Fills the fields that mean nothing: most of those of an error (WC-01), and of a success those
    /// that its kind does not have.
    #[cold]
    fn undefine(&mut self, mut wc: Wc, ticket: Ticket) -> Wc {
        let of_datagram = ticket.is_recv() && self.qps.at(ticket.qp).init.qp_type == QpType::Ud;
        let garbage = match self.behavior.undefined_wc_fields {
            UndefinedFields::Garbage => self.random.any(),
            UndefinedFields::Zero | _ => 0,
        };
        let failed = wc.status != WcStatus::Success;
        if failed
            || !wc
                .wc_flags
                .intersects(WcFlags::WITH_IMM | WcFlags::WITH_INV)
        {
            wc.imm_data = ((garbage >> 32) as u32).to_be_bytes();
        }
        if failed || !of_datagram {
            wc.src_qp = (garbage >> 8) as u32;
            wc.sl = (garbage >> 40) as u8;
            wc.slid = (garbage >> 24) as u16;
            wc.dlid_path_bits = (garbage >> 48) as u8;
        }
        wc.pkey_index = (garbage >> 4) as u16;
        if failed {
            if garbage != 0 {
                wc.opcode = WcOpcode::from((garbage >> 12) as u32);
            }
            wc.byte_len = garbage as u32;
            wc.wc_flags = WcFlags::from_bits_retain((garbage >> 16) as u32);
        }
        wc
    }
}
