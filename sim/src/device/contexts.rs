//! Contexts: their objects and their asynchronous events.

use std::collections::BTreeMap;

use verbs_api::lab::TraceEvent;
use verbs_api::site::Site;
use verbs_api::table::Id;
use verbs_api::{AsyncEvent, AsyncEventType, Cause, Context, Element, ErrorKind, Handle, Object};

use super::base::Base;
use super::check::bad_handle;
use super::event_queue::{EventQueue, Events, Numbers};
use super::refusal::{Refusal, Result};

/// An open context.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenDevice {
    handle: Context,
    pub(super) events: Events<AsyncEvent>,
    /// The unread and unacknowledged events about each object.
    events_of: BTreeMap<Element, Pending>,
    /// The kinds and indices of its objects, and where each was created.
    objects: BTreeMap<(Object, u32), Option<Site>>,
    /// Events of the device or a port that were read and not acknowledged.
    unacked: u32,
}

/// Events about one object.
#[derive(Clone, Debug, Default)]
struct Pending {
    unread: Numbers,
    /// The number of events that were read and not acknowledged.
    unacked: u32,
    /// The last event that was read, and where.
    last_read: Option<(AsyncEventType, Option<Site>)>,
}

/// The slot of a context has 16 bits in its handle. Some slots are in quarantine before they are
/// used again.
const MAX_CONTEXTS: u32 = 65_000;

/// The slot of a context within its node. The rest of the index is the node.
pub(crate) fn slot_of(context: Context) -> u32 {
    context.index() & 0xffff
}

/// The node of a context.
pub(crate) fn node_of(context: Context) -> u32 {
    context.index() >> 16
}

fn context_of(node: u32, id: Id) -> Context {
    Context::from_parts(node << 16 | id.index, id.generation)
}

/// Whether an event is about an object, and not about the device or a port.
fn is_about_object(element: Element) -> bool {
    !matches!(element, Element::Device | Element::Port(_))
}

impl Base {
    fn find_context(&self, context: Context) -> Result<u32> {
        let index = slot_of(context);
        match self.contexts.get(index, context.generation()) {
            Ok(_) => Ok(index),
            Err(problem) => Err(bad_handle(Object::Context, problem)),
        }
    }

    /// Refuses a handle of a context that does not exist.
    pub(crate) fn check_context<H: Handle>(&self, handle: H) -> Result<()> {
        // An object of another kind is found together with its context.
        if H::OBJECT == Object::Context {
            self.find_context(handle.context())?;
        }
        Ok(())
    }

    pub(super) fn add_context(&mut self) -> Result<Context> {
        self.check_room("contexts", self.contexts.len(), MAX_CONTEXTS)?;
        let node = self.id;
        let id = self.contexts.insert(|id| OpenDevice {
            handle: context_of(node, id),
            ..OpenDevice::default()
        });
        Ok(context_of(node, id))
    }

    /// Closes a context that has no more objects.
    pub(crate) fn remove_context(&mut self, context: Context) {
        let open = self.contexts.remove(slot_of(context));
        self.queue_changed(EventQueue::Async(context), open.events.watched);
        self.news = true;
    }

    pub(crate) fn open_contexts(&self) -> u32 {
        self.contexts.len()
    }

    /// Records an object that was created in a context.
    pub(crate) fn add_object(&mut self, context: Context, object: Object, index: u32) {
        let open = self.contexts.at_mut(slot_of(context));
        open.objects.insert((object, index), self.site);
        self.objects += 1;
    }

    /// Removes an object that was destroyed from its context.
    pub(crate) fn remove_object(&mut self, context: Context, object: Object, index: u32) {
        let open = self.contexts.at_mut(slot_of(context));
        open.objects.remove(&(object, index));
        self.objects -= 1;
    }

    /// Records an object that was created. Returns its handle, made by `handle`.
    pub(crate) fn added<H: Handle>(
        &mut self,
        context: Context,
        id: Id,
        handle: fn(Context, u32, u32) -> H,
    ) -> H {
        self.add_object(context, H::OBJECT, id.index);
        handle(context, id.index, id.generation)
    }

    /// The number of objects of one kind, in all contexts.
    pub(super) fn count(&self, object: Object) -> u32 {
        let all = self
            .contexts
            .iter()
            .flat_map(|(_, open)| open.objects.keys());
        all.filter(|(of, _)| *of == object).count() as u32
    }

    /// The indices of a context's objects of one kind, in order.
    pub(crate) fn objects(&self, context: Context, object: Object) -> Vec<u32> {
        let open = self.contexts.at(slot_of(context));
        let of_kind = open.objects.range((object, 0)..=(object, u32::MAX));
        of_kind.map(|((_, index), _)| *index).collect()
    }

    /// Where an object of a context was created.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn made_at(&self, context: Context, object: Object, index: u32) -> Option<Site> {
        let open = self.contexts.peek(slot_of(context))?;
        open.objects.get(&(object, index)).copied().flatten()
    }

    /// Raises an event of the device or a port in every context (ASYNC-13).
    pub(crate) fn tell_all(&mut self, event_type: AsyncEventType, element: Element) {
        for index in self.contexts.indices(|_| true) {
            self.queue_async(index, event_type, element);
        }
    }

    /// Raises an event about an object of a context.
    pub(crate) fn raise(&mut self, context: Context, event_type: AsyncEventType, element: Element) {
        self.queue_async(slot_of(context), event_type, element);
    }

    fn queue_async(&mut self, index: u32, event_type: AsyncEventType, element: Element) {
        let event = AsyncEvent::new(event_type, element);
        let open = self.contexts.at_mut(index);
        let number = open.events.push(event);
        // Only objects can be destroyed while events about them are unread.
        if is_about_object(element) {
            let of = open.events_of.entry(element).or_default();
            of.unread.push(number);
        }
        self.async_changed(index);
        self.news = true;
        self.note(TraceEvent::Async(event));
    }

    /// `ibv_get_async_event` without waiting.
    pub(crate) fn get_async_event(&mut self, context: Context) -> Result<AsyncEvent> {
        let index = self.find_context(context)?;
        let open = self.contexts.at_mut(index);
        let Some(event) = open.events.pop() else {
            return Err(Refusal::new(ErrorKind::WouldBlock, Cause::NoEvent));
        };
        if is_about_object(event.element) {
            let of = open.events_of.entry(event.element).or_default();
            // Events of one object are read in order, so its oldest one is this.
            of.unread.remove(0);
            of.unacked += 1;
            of.last_read = Some((event.event_type, self.site));
        } else {
            open.unacked += 1;
        }
        self.async_changed(index);
        Ok(event)
    }

    /// `ibv_ack_async_event` for an object that exists.
    pub(super) fn acknowledge(&mut self, context: Context, event: &AsyncEvent) -> Result<()> {
        let open = self.contexts.at_mut(slot_of(context));
        let unacked = match event.element {
            Element::Device | Element::Port(_) => Some(&mut open.unacked),
            element => open.events_of.get_mut(&element).map(|of| &mut of.unacked),
        };
        let Some(unacked) = unacked.filter(|unacked| **unacked > 0) else {
            let text = format!("no event of {} waits to be acknowledged", event.element);
            return Err(Refusal::usage(text));
        };
        *unacked -= 1;
        // A destroy may wait for this acknowledgement.
        self.news = true;
        Ok(())
    }

    /// The number of events about an object that were read and not acknowledged.
    pub(crate) fn unacked(&self, context: Context, element: Element) -> u32 {
        let open = self.contexts.peek(slot_of(context));
        let of = open.and_then(|open| open.events_of.get(&element));
        of.map_or(0, |of| of.unacked)
    }

    /// The last event about an object that was read, and where.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn last_read(
        &self,
        context: Context,
        element: Element,
    ) -> Option<(AsyncEventType, Option<Site>)> {
        let open = self.contexts.peek(slot_of(context))?;
        open.events_of.get(&element)?.last_read
    }

    /// Discards the unread events of an object that is being destroyed (ASYNC-06).
    pub(crate) fn discard_async(&mut self, context: Context, element: Element) {
        let index = slot_of(context);
        let open = self.contexts.at_mut(index);
        let Some(of) = open.events_of.remove(&element) else {
            return;
        };
        if !of.unread.is_empty() {
            for number in of.unread {
                open.events.take_out(number);
            }
            self.async_changed(index);
        }
    }

    /// The unread events of one context or of all.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn unread_async(&self, of: Option<Context>) -> impl Iterator<Item = &AsyncEvent> {
        let is_meant = move |index| of.is_none_or(|of| slot_of(of) == index);
        let contexts = self
            .contexts
            .iter()
            .filter(move |(index, _)| is_meant(*index));
        contexts.flat_map(|(_, open)| open.events.iter())
    }

    /// The number of unread events of a context, and the number queued so far.
    pub(super) fn async_events(&self, context: Context) -> Result<(usize, u64)> {
        let open = self.contexts.at(self.find_context(context)?);
        Ok((open.events.len(), open.events.queued()))
    }

    /// From now on changes of the events of a context are recorded.
    pub(super) fn watch_async(&mut self, context: Context) {
        self.contexts.at_mut(slot_of(context)).events.watched = true;
    }

    /// Takes a watched queue that has changed.
    #[inline]
    pub(crate) fn changed_queue(&mut self) -> Option<EventQueue> {
        self.changed_queues.pop()
    }

    #[inline]
    pub(crate) fn has_changed_queue(&self) -> bool {
        !self.changed_queues.is_empty()
    }

    /// Records that a queue has changed or was destroyed.
    #[cfg_attr(any(), mutants::skip)] // cost
    pub(super) fn queue_changed(&mut self, of: EventQueue, watched: bool) {
        // A queue that changes several times in a call is reported once.
        if watched && self.changed_queues.last() != Some(&of) {
            self.changed_queues.push(of);
        }
    }

    fn async_changed(&mut self, index: u32) {
        let open = self.contexts.at(index);
        let (of, watched) = (EventQueue::Async(open.handle), open.events.watched);
        self.queue_changed(of, watched);
    }
}
