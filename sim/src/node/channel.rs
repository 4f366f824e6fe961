//! Completion channels.

use verbs_api::lab::{CqReport, Limit, TraceEvent};
use verbs_api::{
    Cause, CompChannel as ChannelHandle, Context, CqEvent, Error, ErrorKind, Handle, Object,
    Result, Verb,
};

use super::events::{EventQueue, Events};
#[cfg(feature = "fd")]
use super::slot_of;
use super::{InContext, Node, in_use};
use crate::diagnosis::Problem;

/// A completion channel.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    handle: ChannelHandle,
    /// CQs attached.
    pub(super) cqs: u32,
    /// Events not read yet, by the index of their CQ, oldest first (CHAN-33).
    events: Events<u32>,
    /// Threads that wait; kept by the shell.
    pub(super) waiters: u32,
}

impl InContext for Channel {
    fn context(&self) -> Context {
        self.handle.context()
    }
}

impl Channel {
    pub(super) fn events_left(&self) -> Option<Problem> {
        let (channel, events) = (self.handle, self.events.len() as u32);
        (events > 0).then_some(Problem::Unread { channel, events })
    }
}

impl Node {
    /// `ibv_create_comp_channel`
    pub fn create_comp_channel(&mut self, context: Context) -> Result<ChannelHandle> {
        let verb = Verb::CreateCompChannel;
        self.find_context(verb, context)?;
        self.check_limit(verb, Limit::Files, "open files", self.files() + 1)?;
        self.check_room(verb, "completion channels", self.channels.len(), u32::MAX)?;
        let id = self.channels.insert(|id| Channel {
            handle: ChannelHandle::from_parts(context, id.index, id.generation),
            cqs: 0,
            events: Events::default(),
            waiters: 0,
        });
        self.add_object(context, Object::CompChannel, id.index);
        Ok(ChannelHandle::from_parts(context, id.index, id.generation))
    }

    /// `ibv_destroy_comp_channel`
    pub fn destroy_comp_channel(&mut self, channel: ChannelHandle) -> Result<()> {
        let verb = Verb::DestroyCompChannel;
        let index = Self::find(&self.channels, verb, channel)?;
        let found = self.channels.at(index);
        if found.cqs > 0 {
            return Err(in_use(verb, Object::CompChannel, Object::Cq, found.cqs));
        }
        if found.waiters > 0 {
            let text = format!("{} threads wait on {channel}", found.waiters);
            return Err(Error::new(
                verb,
                ErrorKind::Usage,
                Cause::Usage(text.into()),
            ));
        }
        self.remove_channel(index);
        Ok(())
    }

    fn remove_channel(&mut self, index: u32) {
        let channel = self.channels.remove(index);
        self.remove_object(channel.handle.context(), Object::CompChannel, index);
        self.queue_changed(EventQueue::Channel(channel.handle), channel.events.watched);
    }

    /// `ibv_get_cq_event` that does not wait.
    pub fn get_cq_event(&mut self, channel: ChannelHandle) -> Result<CqEvent> {
        let index = Self::find(&self.channels, Verb::GetCqEvent, channel)?;
        let events = &mut self.channels.at_mut(index).events;
        let Some(cq) = events.pop() else {
            return Err(Error::new(
                Verb::GetCqEvent,
                ErrorKind::WouldBlock,
                Cause::NoEvent,
            ));
        };
        let watched = events.watched;
        let cq = self.cqs.at_mut(cq);
        cq.events_unread.remove(0);
        cq.events_unacked += 1;
        let event = CqEvent::new(cq.handle, cq.init.cq_context);
        self.queue_changed(EventQueue::Channel(channel), watched);
        Ok(event)
    }

    /// A thread starts or stops to wait on a channel.
    pub(crate) fn count_waiter(&mut self, channel: ChannelHandle, starts: bool) {
        if let Ok(index) = Self::find(&self.channels, Verb::GetCqEvent, channel) {
            let waiters = &mut self.channels.at_mut(index).waiters;
            *waiters = if starts { *waiters + 1 } else { *waiters - 1 };
        }
    }

    /// A channel that a thread waits on although an event is queued there.
    pub(crate) fn waited_for_and_queued(&self) -> Option<ChannelHandle> {
        let missed = |channel: &&Channel| channel.waiters > 0 && !channel.events.is_empty();
        let mut channels = self.channels.iter().map(|(_, channel)| channel);
        channels.find(missed).map(|channel| channel.handle)
    }

    /// How many events were queued on a channel so far.
    pub(crate) fn events_queued(&self, verb: Verb, channel: ChannelHandle) -> Result<u64> {
        let channel = self.channels.at(Self::find(&self.channels, verb, channel)?);
        Ok(channel.events.queued())
    }

    /// How many events wait to be read in a queue, and how many were put in so far.
    #[cfg(feature = "fd")]
    pub(crate) fn event_queue(&self, verb: Verb, of: EventQueue) -> Result<(usize, u64)> {
        match of {
            EventQueue::Channel(channel) => {
                let channel = self.channels.at(Self::find(&self.channels, verb, channel)?);
                Ok((channel.events.len(), channel.events.queued()))
            }
            EventQueue::Async(context) => {
                let open = self.contexts.at(self.find_context(verb, context)?);
                Ok((open.events.len(), open.events.queued()))
            }
        }
    }

    /// From now on changes of a queue that is there are noted.
    #[cfg(feature = "fd")]
    pub(crate) fn watch(&mut self, of: EventQueue) {
        match of {
            EventQueue::Channel(channel) => {
                self.channels.at_mut(channel.index()).events.watched = true;
            }
            EventQueue::Async(context) => {
                self.contexts.at_mut(slot_of(context)).events.watched = true;
            }
        }
    }

    /// A watched queue that has changed since it was last given here.
    #[cfg(feature = "fd")]
    #[inline]
    pub(crate) fn changed_queue(&mut self) -> Option<EventQueue> {
        self.changed_queues.pop()
    }

    /// Notes that a queue has changed, or is gone.
    pub(super) fn queue_changed(&mut self, of: EventQueue, watched: bool) {
        if watched && self.changed_queues.last() != Some(&of) {
            self.changed_queues.push(of);
        }
    }

    /// How a channel stands: events queued, and the CQs attached to it.
    pub(crate) fn channel_report(&self, channel: ChannelHandle) -> (u32, Vec<CqReport>) {
        let Ok(index) = Self::find(&self.channels, Verb::GetCqEvent, channel) else {
            return (0, Vec::new());
        };
        let attached = self.cqs.iter().filter(|(_, cq)| cq.channel == Some(index));
        let queued = self.channels.at(index).events.len() as u32;
        (queued, attached.map(|(_, cq)| cq.report()).collect())
    }

    /// Queues an event of a CQ on its channel.
    pub(super) fn queue_event(&mut self, cq: u32) {
        let Some(index) = self.cqs.at(cq).channel else {
            return;
        };
        let found = self.cqs.at_mut(cq);
        if self.behavior.merge_unread_events && !found.events_unread.is_empty() {
            return;
        }
        let channel = self.channels.at_mut(index);
        found.events_unread.push(channel.events.push(cq));
        let (cq, channel, watched) = (found.handle, channel.handle, channel.events.watched);
        self.news = true;
        self.queue_changed(EventQueue::Channel(channel), watched);
        self.note(TraceEvent::CqEvent { channel, cq });
    }

    /// Discards the unread events of a CQ that goes away (CHAN-36), and lets go of its channel.
    pub(super) fn detach(&mut self, channel: u32, unread: &[u64]) {
        let channel = self.channels.at_mut(channel);
        for number in unread {
            channel.events.take_out(*number);
        }
        channel.cqs -= 1;
        let (handle, watched) = (channel.handle, channel.events.watched);
        self.queue_changed(EventQueue::Channel(handle), watched);
    }

    pub(super) fn remove_channels_of(&mut self, context: Context) {
        for index in self.objects(context, Object::CompChannel) {
            self.remove_channel(index);
        }
    }
}
