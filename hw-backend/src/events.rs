//! Events of channels and contexts: reading them, waiting for them, counting them until they are
//! acknowledged.

use std::ffi::c_int;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;

use parking_lot::MutexGuard;
use verbs_abi::{ElementType, ibv_async_event, ibv_comp_channel, ibv_context, library};
use verbs_api::{
    AsyncEvent, Cause, CompChannel as ChannelHandle, Context, Cq as CqHandle, CqEvent, Element,
    Error, ErrorKind, EventSource, Handle, Result, Verb, Wait,
};

use crate::errno::{errno, of_context};
use crate::hw::Hw;
use crate::owner::{Kind, Owned};
use crate::wait::{Deadline, wait_readable};

impl Hw {
    pub(crate) fn next_cq_event(&self, channel: ChannelHandle, wait: Wait) -> Result<CqEvent> {
        let verb = Verb::GetCqEvent;
        let found = self.channel(verb, channel)?;
        // The channel is held, so it is not destroyed before the count is seen.
        let _waiting = found.raw.with(verb, |_| Waiting::new(&found.waiters))?;
        let mut cq = std::ptr::null_mut();
        let mut token = std::ptr::null_mut();
        let read = |channel: *mut ibv_comp_channel| {
            // SAFETY: the channel is live.
            let result = unsafe { library::ibv_get_cq_event(channel, &mut cq, &mut token) };
            // SAFETY: the channel is live.
            (result, errno(), unsafe { (*channel).fd })
        };
        let _reading = self.next_event(verb, &found.raw, wait, read)?;
        let tables = self.tables.lock();
        let handle = tables.cq_handles.get(&(cq as usize)).copied();
        let live =
            handle.and_then(|cq| Some((cq, tables.cqs.get(cq.index(), cq.generation()).ok()?)));
        let Some((cq, found)) = live else {
            let cause = Cause::Text("the event names a CQ that does not exist".into());
            return Err(Error::new(verb, ErrorKind::Io, cause));
        };
        found.unacked.fetch_add(1, Ordering::Relaxed);
        Ok(CqEvent::new(cq, found.cq_context))
    }

    pub(crate) fn acknowledge_cq_events(&self, cq: CqHandle, nevents: u32) -> Result<()> {
        let verb = Verb::AckCqEvents;
        let found = self.cq(verb, cq)?;
        self.acknowledge(verb, &found.unacked, nevents, cq, || {
            // SAFETY: the CQ is live, and this number of events was read.
            let tell = |cq| unsafe { library::ibv_ack_cq_events(cq, nevents) };
            found.raw.with(verb, tell)
        })
    }

    pub(crate) fn next_async_event(&self, context: Context, wait: Wait) -> Result<AsyncEvent> {
        let verb = Verb::GetAsyncEvent;
        let device = self.device(verb, context)?;
        let mut event = ibv_async_event::default();
        let read = |context: *mut ibv_context| {
            // SAFETY: the context is live.
            let result = unsafe { library::ibv_get_async_event(context, &mut event) };
            // SAFETY: the context is live.
            (result, errno(), unsafe { (*context).async_fd })
        };
        let _reading = self.next_event(verb, &device.raw, wait, read)?;
        let Some(element) = self.element(&event) else {
            let cause = Cause::Text("the event names an object that does not exist".into());
            return Err(Error::new(verb, ErrorKind::Io, cause));
        };
        let count = |unacked: &AtomicU32| unacked.fetch_add(1, Ordering::Relaxed);
        match element {
            Element::Cq(cq) => _ = count(&self.cq(verb, cq)?.async_unacked),
            Element::Qp(qp) => _ = count(&self.qp(verb, qp)?.async_unacked),
            Element::Srq(srq) => _ = count(&self.srq(verb, srq)?.async_unacked),
            _ => {}
        }
        Ok(AsyncEvent::new(event.event_type.into(), element))
    }

    /// Wakes a task once a source has an event.
    pub(crate) fn wake_task(&self, source: EventSource, waker: &Waker) -> Result<()> {
        let (verb, reactor) = (source.verb(), &self.reactor);
        match source {
            EventSource::CompChannel(channel) => {
                let found = self.channel(verb, channel)?;
                found
                    .events
                    .wake_on(reactor, verb, || found.fd(verb), waker)
            }
            EventSource::Async(context) => {
                let found = self.device(verb, context)?;
                found
                    .events
                    .wake_on(reactor, verb, || found.fd(verb), waker)
            }
            EventSource::CmChannel(channel) => {
                let found = self.event_channel(verb, channel)?;
                found
                    .events
                    .wake_on(reactor, verb, || found.fd(verb), waker)
            }
        }
    }

    fn element(&self, event: &ibv_async_event) -> Option<Element> {
        let (tables, at) = (self.tables.lock(), &event.element);
        match ElementType::of(event.event_type.into()) {
            ElementType::Cq => tables.cq_handles.get(at).copied().map(Element::Cq),
            ElementType::Qp => tables.qp_handles.get(at).copied().map(Element::Qp),
            ElementType::Srq => tables.srq_handles.get(at).copied().map(Element::Srq),
            ElementType::Port => Some(Element::Port(*at as c_int as u8)),
            ElementType::Device => Some(Element::Device),
        }
    }

    pub(crate) fn acknowledge_async_event(
        &self,
        context: Context,
        event: &AsyncEvent,
    ) -> Result<()> {
        let verb = Verb::AckAsyncEvent;
        self.device(verb, context)?;
        let event_type = event.event_type.into();
        let tell = |element| {
            let mut event = ibv_async_event {
                element,
                event_type,
            };
            // SAFETY: it names a live object of which an event was read, or none.
            unsafe { library::ibv_ack_async_event(&mut event) };
            Ok(())
        };
        match event.element {
            Element::Cq(cq) => {
                let found = self.cq(verb, cq)?;
                of_context(verb, cq, context)?;
                let address = found.raw.address();
                self.acknowledge(verb, &found.async_unacked, 1, cq, || tell(address))
            }
            Element::Qp(qp) => {
                let found = self.qp(verb, qp)?;
                of_context(verb, qp, context)?;
                let address = found.raw.address();
                self.acknowledge(verb, &found.async_unacked, 1, qp, || tell(address))
            }
            Element::Srq(srq) => {
                let found = self.srq(verb, srq)?;
                of_context(verb, srq, context)?;
                let address = found.raw.address();
                self.acknowledge(verb, &found.async_unacked, 1, srq, || tell(address))
            }
            Element::Port(port) => tell(usize::from(port)),
            _ => tell(0),
        }
    }

    /// Reads an event from an object, or waits for one. The returned guard keeps other threads from
    /// reading, and from destroying the object of the event, until the event is counted.
    pub(crate) fn next_event<T: Kind>(
        &self,
        verb: Verb,
        raw: &Owned<T>,
        wait: Wait,
        mut read: impl FnMut(*mut T) -> (c_int, c_int, RawFd),
    ) -> Result<MutexGuard<'_, ()>> {
        let deadline = Deadline::new(wait);
        loop {
            let reading = self.reading.lock();
            let (result, errno, fd) = raw.with(verb, &mut read)?;
            if result == 0 {
                return Ok(reading);
            }
            drop(reading);
            match errno {
                libc::EAGAIN => wait_readable(verb, fd, &deadline)?,
                libc::EINTR => {}
                errno => return Err(Error::from_raw(verb, errno)),
            }
        }
    }
}

/// Counts a thread that waits.
pub(crate) struct Waiting<'a>(&'a AtomicU32);

impl<'a> Waiting<'a> {
    pub(crate) fn new(waiters: &'a AtomicU32) -> Self {
        waiters.fetch_add(1, Ordering::Relaxed);
        Self(waiters)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
