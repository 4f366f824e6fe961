//! Completion channels.

use verbs_api::lab::{Limit, TraceEvent};
use verbs_api::table::Id;
use verbs_api::{CompChannel as ChannelHandle, Context, CqEvent, Handle, Object};

use super::base::Base;
use super::check::find;
use super::contexts::slot_of;
use super::cq::Cqs;
use super::event_queue::{Channel, EventQueue};
use super::refusal::Result;
use super::wakeup::Wakeup;
use crate::diagnosis::ChannelSeen;

/// A completion channel. Its events are those of CQs, by their index.
pub(crate) type CompChannel = Channel<ChannelHandle, u32>;

impl CompChannel {
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
        base.check_room("completion channels", &self.channels, u32::MAX)?;
        let handle = |id: Id| ChannelHandle::from_parts(context, id.index, id.generation);
        let id = self.channels.insert(|id| CompChannel::new(handle(id)));
        Ok(base.added(context, id, ChannelHandle::from_parts))
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
        self.channels.at(index).check_unused(Object::Cq)?;
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
        base.wakeups.add(Wakeup::Event(channel));
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
        let from = self.channels.at_mut(index);
        let cq = from.read(base.site)?;
        let watched = from.events.watched;
        let cq = self.table.at_mut(cq);
        // Events of one CQ are read in order, so its oldest one is this.
        cq.events_unread.remove(0);
        cq.events_unacked += 1;
        cq.usage.event_was_read = true;
        cq.usage.is_disarmed = true;
        cq.usage.event_read_at = base.site;
        let (handle, event) = (cq.handle, CqEvent::new(cq.handle, cq.init.cq_context));
        // The program now has to poll, so its next poll must reach the CQ and be recorded.
        if let Some(shown) = &self.shown {
            shown.set(handle, false);
        }
        base.queue_changed(EventQueue::Channel(channel), watched);
        Ok(event)
    }

    pub(super) fn remove_channel(&mut self, base: &mut Base, index: u32) {
        let channel = self.channels.remove(index);
        base.remove_object(channel.handle.context(), Object::CompChannel, index);
        base.queue_changed(EventQueue::Channel(channel.handle), channel.events.watched);
        // No thread waits on it, but tasks may.
        base.wakeups.add(Wakeup::Event(channel.handle));
    }

    /// The number of unread events in a queue, and the number queued so far.
    pub(crate) fn event_queue(&self, base: &Base, of: EventQueue) -> Result<(usize, u64)> {
        Ok(match of {
            EventQueue::Channel(channel) => {
                let index = find(&self.channels, channel)?;
                self.channels.at(index).events.counts()
            }
            EventQueue::Async(context) => {
                let index = base.find_context(context)?;
                base.contexts.at(index).events.counts()
            }
        })
    }

    /// From now on changes of this queue are recorded.
    pub(crate) fn watch(&mut self, base: &mut Base, of: EventQueue) {
        let watched = match of {
            EventQueue::Channel(of) => &mut self.channels.at_mut(of.index()).events.watched,
            EventQueue::Async(of) => &mut base.contexts.at_mut(slot_of(of)).events.watched,
        };
        *watched = true;
    }

    /// Discards the unread events of a CQ that is being destroyed (CHAN-36), and detaches it from
    /// its channel.
    pub(crate) fn detach(&mut self, base: &mut Base, channel: u32, unread: &[u64]) {
        let channel = self.channels.at_mut(channel);
        for number in unread {
            // A program must not read an event of a CQ that is destroyed.
            channel.events.take_out(*number);
        }
        channel.users -= 1;
        let (handle, watched) = (channel.handle, channel.events.watched);
        base.queue_changed(EventQueue::Channel(handle), watched);
    }
}
