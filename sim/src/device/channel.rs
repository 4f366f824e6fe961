//! Completion channels.

use verbs_api::lab::{Limit, TraceEvent};
use verbs_api::site::Site;
use verbs_api::{Cause, CompChannel as ChannelHandle, Context, CqEvent, ErrorKind, Handle, Object};

use super::base::Base;
use super::check::{InContext, find, in_use};
use super::cq::Cqs;
use super::events::{EventQueue, Events};
use super::refusal::{Refusal, Result};
use crate::diagnosis::ChannelSeen;

/// A completion channel.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(super) handle: ChannelHandle,
    /// The number of attached CQs.
    pub(crate) cqs: u32,
    /// Unread events, by the index of their CQ, oldest first (CHAN-33).
    pub(super) events: Events<u32>,
    /// The number of waiting threads, which the runtime updates.
    pub(crate) waiters: u32,
    /// Whether more events remained when the last one was read.
    pub(super) was_left: bool,
    /// Where the last event was read.
    pub(super) read_at: Option<Site>,
}

impl InContext for Channel {
    fn context(&self) -> Context {
        self.handle.context()
    }
}

impl Channel {
    /// The facts about the channel that a diagnosis uses.
    pub(crate) fn seen(&self) -> ChannelSeen {
        ChannelSeen {
            channel: self.handle,
            events_unread: self.events.len() as u32,
            was_left: self.was_left,
            read_at: self.read_at,
        }
    }
}

impl Cqs {
    /// `ibv_create_comp_channel`
    pub(crate) fn create_comp_channel(
        &mut self,
        base: &mut Base,
        context: Context,
    ) -> Result<ChannelHandle> {
        self.check_files(base)?;
        base.check_room("completion channels", self.channels.len(), u32::MAX)?;
        let id = self.channels.insert(|id| Channel {
            handle: ChannelHandle::from_parts(context, id.index, id.generation),
            cqs: 0,
            events: Events::default(),
            waiters: 0,
            was_left: false,
            read_at: None,
        });
        base.add_object(context, Object::CompChannel, id.index);
        Ok(ChannelHandle::from_parts(context, id.index, id.generation))
    }

    /// Refuses another open file, a context or a channel, at the limit.
    pub(super) fn check_files(&self, base: &Base) -> Result<()> {
        let files = u64::from(base.open_contexts()) + u64::from(self.channels.len());
        base.rules.check(Limit::Files, "open files", files + 1)
    }

    /// `ibv_destroy_comp_channel`
    pub(crate) fn destroy_comp_channel(
        &mut self,
        base: &mut Base,
        channel: ChannelHandle,
    ) -> Result<()> {
        let index = find(&self.channels, channel)?;
        let found = self.channels.at(index);
        // CQs would queue their events on it.
        if found.cqs > 0 {
            return Err(in_use(Object::CompChannel, Object::Cq, found.cqs));
        }
        // A driver would free memory that the waiting threads use.
        if found.waiters > 0 {
            let text = format!("{} threads wait on {channel}", found.waiters);
            return Err(Refusal::usage(text));
        }
        self.remove_channel(base, index);
        Ok(())
    }

    /// Queues an event of a CQ on its channel.
    pub(super) fn queue_event(&mut self, base: &mut Base, index: u32) {
        let found = self.table.at_mut(index);
        let merges = base.behavior.merge_unread_events;
        // Without a channel the request is fulfilled without an event.
        let Some(channel) = found.channel else {
            return;
        };
        // Such a driver keeps one event for a CQ until it is read.
        if merges && !found.events_unread.is_empty() {
            return;
        }
        let channel = self.channels.at_mut(channel);
        found.events_unread.push(channel.events.push(index));
        let (cq, channel, watched) = (found.handle, channel.handle, channel.events.watched);
        base.news = true;
        base.queue_changed(EventQueue::Channel(channel), watched);
        base.note(TraceEvent::CqEvent { channel, cq });
    }

    /// `ibv_get_cq_event` without waiting.
    pub(crate) fn get_cq_event(
        &mut self,
        base: &mut Base,
        channel: ChannelHandle,
    ) -> Result<CqEvent> {
        let index = find(&self.channels, channel)?;
        let events = &mut self.channels.at_mut(index).events;
        let Some(cq) = events.pop() else {
            return Err(Refusal::new(ErrorKind::WouldBlock, Cause::NoEvent));
        };
        let watched = events.watched;
        let was_left = !events.is_empty();
        let from = self.channels.at_mut(index);
        // A program that stops reading here may wait for an edge that never comes.
        (from.was_left, from.read_at) = (was_left, base.site);
        let cq = self.table.at_mut(cq);
        // Events of one CQ are read in order, so its oldest one is this.
        cq.events_unread.remove(0);
        cq.events_unacked += 1;
        cq.usage.event_was_read = true;
        cq.usage.is_disarmed = true;
        cq.usage.event_read_at = base.site;
        let (handle, event) = (cq.handle, CqEvent::new(cq.handle, cq.init.cq_context));
        // The program now has to poll, so its next poll must reach the CQ and be recorded.
        if let Some(shown) = &self.shown.0 {
            shown.set(handle, false);
        }
        base.queue_changed(EventQueue::Channel(channel), watched);
        Ok(event)
    }

    pub(super) fn remove_channel(&mut self, base: &mut Base, index: u32) {
        let channel = self.channels.remove(index);
        base.remove_object(channel.handle.context(), Object::CompChannel, index);
        base.queue_changed(EventQueue::Channel(channel.handle), channel.events.watched);
    }

    /// Counts a thread that starts or stops waiting on a channel.
    pub(crate) fn count_waiter(&mut self, channel: ChannelHandle, starts: bool) {
        // The channel may have been destroyed by the closing of its context.
        if let Ok(index) = find(&self.channels, channel) {
            let waiters = &mut self.channels.at_mut(index).waiters;
            *waiters = if starts { *waiters + 1 } else { *waiters - 1 };
        }
    }

    /// A channel with a queued event on which a thread still waits, if there is one.
    pub(crate) fn waited_for_and_queued(&self) -> Option<ChannelHandle> {
        let missed = |channel: &&Channel| channel.waiters > 0 && !channel.events.is_empty();
        let mut channels = self.channels.iter().map(|(_, channel)| channel);
        channels.find(missed).map(|channel| channel.handle)
    }

    /// The number of events queued on a channel so far.
    pub(crate) fn events_queued(&self, channel: ChannelHandle) -> Result<u64> {
        let channel = self.channels.at(find(&self.channels, channel)?);
        Ok(channel.events.queued())
    }

    /// The number of unread events in a queue, and the number queued so far.
    pub(crate) fn event_queue(&self, base: &Base, of: EventQueue) -> Result<(usize, u64)> {
        match of {
            EventQueue::Channel(channel) => {
                let channel = self.channels.at(find(&self.channels, channel)?);
                Ok((channel.events.len(), channel.events.queued()))
            }
            EventQueue::Async(context) => base.async_events(context),
        }
    }

    /// From now on changes of this queue are recorded.
    pub(crate) fn watch(&mut self, base: &mut Base, of: EventQueue) {
        match of {
            EventQueue::Channel(channel) => {
                self.channels.at_mut(channel.index()).events.watched = true;
            }
            EventQueue::Async(context) => base.watch_async(context),
        }
    }

    /// Discards the unread events of a CQ that is being destroyed (CHAN-36), and detaches it from
    /// its channel.
    pub(crate) fn detach(&mut self, base: &mut Base, channel: u32, unread: &[u64]) {
        let channel = self.channels.at_mut(channel);
        for number in unread {
            // A program must not read an event of a CQ that is destroyed.
            channel.events.take_out(*number);
        }
        channel.cqs -= 1;
        let (handle, watched) = (channel.handle, channel.events.watched);
        base.queue_changed(EventQueue::Channel(handle), watched);
    }
}
