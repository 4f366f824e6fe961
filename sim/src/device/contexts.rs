//! Contexts: their objects and their asynchronous events.

use std::collections::BTreeMap;

use verbs_api::lab::TraceEvent;
use verbs_api::site::Site;
use verbs_api::table::Id;
use verbs_api::{AsyncEvent, AsyncEventType, Context, Element, Handle, Object, Pd};

use super::base::Base;
use super::check::bad_handle;
use super::event_queue::{EventQueue, Events, Numbers};
use super::refusal::{Refusal, Result};
use super::wakeup::Wakeup;

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

/// The slot of the context of the object that an event is about. `None` if it is about the device
/// or a port.
fn home_of(element: Element) -> Option<u32> {
    let context = match element {
        Element::Cq(cq) => cq.context(),
        Element::Qp(qp) => qp.context(),
        Element::Srq(srq) => srq.context(),
        _ => return None,
    };
    Some(slot_of(context))
}

impl OpenDevice {
    /// The number of its objects.
    pub(super) fn objects(&self) -> u64 {
        self.objects.len() as u64
    }
}

impl Base {
    pub(super) fn find_context(&self, context: Context) -> Result<u32> {
        let index = slot_of(context);
        let found = self.contexts.get(index, context.generation());
        found.map_err(|problem| bad_handle(Object::Context, problem))?;
        Ok(index)
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
        self.check_room("contexts", &self.contexts, MAX_CONTEXTS)?;
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
        self.wakeups.add(Wakeup::Anything);
    }

    /// The open contexts.
    #[cfg_attr(any(), mutants::skip)] // controls of tests
    pub(crate) fn contexts(&self) -> Vec<Context> {
        let indices = self.contexts.indices(|_| true).into_iter();
        indices
            .map(|index| self.contexts.at(index).handle)
            .collect()
    }

    pub(crate) fn open_contexts(&self) -> u32 {
        self.contexts.len()
    }

    /// Records an object that was created in a context.
    pub(crate) fn add_object(&mut self, context: Context, object: Object, index: u32) {
        let open = self.contexts.at_mut(slot_of(context));
        open.objects.insert((object, index), self.site);
    }

    /// Removes an object that was destroyed from its context.
    pub(crate) fn remove_object(&mut self, context: Context, object: Object, index: u32) {
        let open = self.contexts.at_mut(slot_of(context));
        open.objects.remove(&(object, index));
        self.parents.leave(object, index);
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

    /// Like [`added`](Self::added), for an object that was created in a domain.
    pub(crate) fn added_in<H: Handle>(
        &mut self,
        pd: Pd,
        id: Id,
        handle: fn(Context, u32, u32) -> H,
    ) -> H {
        self.parents.enter(pd, H::OBJECT, id.index);
        self.added(pd.context(), id, handle)
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

    /// Raises an event: about an object in its context, about the device or a port in every context
    /// (ASYNC-13).
    pub(crate) fn raise(&mut self, event_type: AsyncEventType, element: Element) {
        let event = AsyncEvent::new(event_type, element);
        let home = home_of(element);
        let all = || self.contexts.indices(|_| true);
        for index in home.map_or_else(all, |home| vec![home]) {
            let open = self.contexts.at_mut(index);
            let number = open.events.push(event);
            // Only objects can be destroyed while events about them are unread.
            if home.is_some() {
                let of = open.events_of.entry(element).or_default();
                of.unread.push(number);
            }
            let context = open.handle;
            self.async_changed(index);
            self.wakeups.add(Wakeup::AsyncEvent(context));
            self.note(TraceEvent::Async(event));
        }
    }

    /// `ibv_get_async_event` without waiting.
    pub(crate) fn get_async_event(&mut self, context: Context) -> Result<AsyncEvent> {
        let index = self.find_context(context)?;
        let open = self.contexts.at_mut(index);
        let event = open.events.pop()?;
        if home_of(event.element).is_some() {
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
        self.wakeups.add(Wakeup::Acknowledged(event.element));
        Ok(())
    }

    /// The number of events about an object that were read and not acknowledged.
    pub(crate) fn unacked(&self, element: Element) -> u32 {
        self.pending(element).map_or(0, |of| of.unacked)
    }

    /// The last event about an object that was read, and where.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn last_read(&self, element: Element) -> Option<(AsyncEventType, Option<Site>)> {
        self.pending(element)?.last_read
    }

    fn pending(&self, element: Element) -> Option<&Pending> {
        let open = self.contexts.peek(home_of(element)?)?;
        open.events_of.get(&element)
    }

    /// Discards the unread events of an object that is being destroyed (ASYNC-06).
    pub(crate) fn discard_async(&mut self, element: Element) {
        let Some(index) = home_of(element) else {
            return;
        };
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
        let contexts = self.contexts.iter().map(|(_, open)| open);
        let meant = contexts.filter(move |open| of.is_none_or(|of| of == open.handle));
        meant.flat_map(|open| open.events.iter())
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
