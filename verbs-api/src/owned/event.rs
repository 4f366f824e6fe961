//! Asynchronous events.

use core::fmt;

use super::tasks::from_here;
use super::{Context, Cq, Qp, Srq, XrcRecvQp};
use crate::error::{ErrorKind, Result};
use crate::event::{self, AsyncEventType};
use crate::site::{Site, Standing};
use crate::verbs::Wait;

/// An asynchronous event that was read. It is acknowledged when it is dropped, and until then holds
/// the object it is about.
///
/// An event that is never dropped ([`core::mem::forget`]) is never acknowledged: its object and
/// everything that the object was created from stay forever, and nothing waits for them.
#[must_use = "dropping it acknowledges the event"]
pub struct AsyncEvent {
    raw: event::AsyncEvent,
    element: Element,
    context: Context,
}

/// The subject of an asynchronous event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Element {
    /// The device.
    Device,
    /// A port, from 1.
    Port(u8),
    /// A completion queue.
    Cq(Cq),
    /// A queue pair.
    Qp(Qp),
    /// A shared receive queue.
    Srq(Srq),
    /// A queue pair of an XRC domain.
    XrcRecvQp(XrcRecvQp),
}

impl AsyncEvent {
    /// The kind of event.
    pub fn event_type(&self) -> AsyncEventType {
        self.raw.event_type
    }

    /// The object, port or device that it is about.
    pub fn element(&self) -> &Element {
        &self.element
    }
}

impl Context {
    /// Takes the oldest asynchronous event (`ibv_get_async_event`); `None` if none comes in the
    /// time that `wait` gives. It is acknowledged when the guard is dropped.
    ///
    /// An event of an object that was dropped before the event was read is skipped, and the wait
    /// starts over. So is an event of an object that was made by raw handles.
    ///
    /// # Errors
    /// In the simulator `Stalled` if nothing can bring an event any more.
    #[track_caller]
    pub fn get_async_event(&self, wait: Wait) -> Result<Option<AsyncEvent>> {
        let _standing = Standing::at(Site::here());
        let verbs = self.verbs();
        loop {
            let Some(raw) = in_time(verbs.get_async_event(self.handle(), wait))? else {
                return Ok(None);
            };
            let element = match raw.element {
                event::Element::Device => Some(Element::Device),
                event::Element::Port(port) => Some(Element::Port(port)),
                event::Element::Cq(cq) => self.find(cq).map(Cq).map(Element::Cq),
                event::Element::Qp(qp) => {
                    let target = || self.find(qp).map(XrcRecvQp).map(Element::XrcRecvQp);
                    self.find(qp).map(Qp).map(Element::Qp).or_else(target)
                }
                event::Element::Srq(srq) => self.find(srq).map(Srq).map(Element::Srq),
            };
            if let Some(element) = element {
                let context = self.clone();
                return Ok(Some(AsyncEvent {
                    raw,
                    element,
                    context,
                }));
            }
            verbs.ack_async_event(self.handle(), &raw)?;
            // It may have been in the way of the object's destruction.
            self.try_kept_again();
        }
    }

    /// The next asynchronous event: [`get_async_event`](Self::get_async_event) for a task of any
    /// executor. An event is taken only as the future returns it.
    ///
    /// # Errors
    /// The errors of `get_async_event` and of [`Verbs::wake_on`](crate::Verbs::wake_on).
    #[track_caller]
    pub fn next_async_event(&self) -> impl Future<Output = Result<AsyncEvent>> {
        from_here(async move {
            let look = || self.get_async_event(Wait::Poll);
            self.tasks().until(&**self.verbs(), look).await
        })
    }

    /// A descriptor that is readable exactly while an asynchronous event is queued
    /// ([`Verbs::async_fd`](crate::Verbs::async_fd)).
    ///
    /// # Errors
    /// `NotSupported` on a backend without [`Capabilities::FD`](crate::Capabilities::FD);
    /// `TooManyFiles`.
    #[cfg(unix)]
    pub fn async_fd(&self) -> Result<std::os::fd::OwnedFd> {
        self.verbs().async_fd(self.handle())
    }
}

/// What a wait brought; `None` if its time is over.
pub(super) fn in_time<T>(waited: Result<T>) -> Result<Option<T>> {
    match waited {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Ok(None)
        }
        waited => waited.map(Some),
    }
}

impl Drop for AsyncEvent {
    fn drop(&mut self) {
        let verbs = self.context.verbs();
        // It fails only if the object was destroyed, or the event acknowledged, by raw handles.
        let _ = verbs.ack_async_event(self.context.handle(), &self.raw);
    }
}

impl fmt::Debug for AsyncEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.raw, f)
    }
}

impl fmt::Display for AsyncEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.raw, f)
    }
}
