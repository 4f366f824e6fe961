//! Events of channels and contexts: read, waited for, counted until they are acknowledged.

use std::ffi::c_int;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::MutexGuard;
use verbs_api::{
    AsyncEvent, Cause, CompChannel as ChannelHandle, Context, Cq as CqHandle, CqEvent, Element,
    Error, ErrorKind, Handle, Object, Result, Verb, Wait,
};

use crate::errno::{destroyed, errno};
use crate::hw::Hw;
use crate::owner::Owned;
use crate::sys;
use crate::wait::{Deadline, wait_readable};

impl Hw {
    pub(crate) fn next_cq_event(&self, channel: ChannelHandle, wait: Wait) -> Result<CqEvent> {
        let verb = Verb::GetCqEvent;
        let found = self.channel(verb, channel)?;
        // With the channel held, so that it is not destroyed before the count is seen.
        let waiting = found.raw.with(|_| Waiting::new(&found.waiters));
        let _waiting = waiting.map_err(destroyed(verb, Object::CompChannel))?;
        let mut cq = std::ptr::null_mut();
        let mut token = std::ptr::null_mut();
        let read = |channel: *mut sys::ibv_comp_channel| {
            // SAFETY: the channel is live.
            let result = unsafe { sys::ibv_get_cq_event(channel, &mut cq, &mut token) };
            // SAFETY: the channel is live.
            (result, errno(), unsafe { (*channel).fd })
        };
        let _reading = self.next_event((verb, Object::CompChannel), &found.raw, wait, read)?;
        let tables = self.tables.lock();
        let handle = tables.cq_handles.get(&(cq as usize)).copied();
        let live =
            handle.and_then(|cq| Some((cq, tables.cqs.get(cq.index(), cq.generation()).ok()?)));
        let Some((cq, found)) = live else {
            let cause = Cause::Text("the event names a CQ that does not exist".into());
            return Err(Error::new(verb, ErrorKind::Io, cause));
        };
        found.unacked.fetch_add(1, Ordering::Relaxed);
        Ok(CqEvent {
            cq,
            cq_context: found.cq_context,
        })
    }

    pub(crate) fn acknowledge_cq_events(&self, cq: CqHandle, nevents: u32) -> Result<()> {
        let verb = Verb::AckCqEvents;
        let found = self.cq(verb, cq)?;
        self.acknowledge(verb, &found.unacked, nevents, cq, || {
            // SAFETY: the CQ is live, and so many events were read.
            let told = found
                .raw
                .with(|cq| unsafe { sys::ibv_ack_cq_events(cq, nevents) });
            told.map_err(destroyed(verb, Object::Cq))
        })
    }

    pub(crate) fn next_async_event(&self, context: Context, wait: Wait) -> Result<AsyncEvent> {
        let verb = Verb::GetAsyncEvent;
        let device = self.device(verb, context)?;
        let mut event = sys::AsyncEvent {
            element: 0,
            event_type: 0,
        };
        let read = |context: *mut sys::ibv_context| {
            let event = std::ptr::from_mut(&mut event).cast();
            // SAFETY: the context is live; the structure has the layout of C's.
            let result = unsafe { sys::ibv_get_async_event(context, event) };
            // SAFETY: the context is live.
            (result, errno(), unsafe { (*context).async_fd })
        };
        let _reading = self.next_event((verb, Object::Context), &device.raw, wait, read)?;
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
        Ok(AsyncEvent {
            event_type: event.event_type.into(),
            element,
        })
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
            let mut event = sys::AsyncEvent {
                element,
                event_type,
            };
            // SAFETY: the structure has the layout of C's, and names a live object of which an
            // event was read, or none.
            unsafe { sys::ibv_ack_async_event(std::ptr::from_mut(&mut event).cast()) };
            Ok(())
        };
        let of_another = |object, of: Context| {
            let cause = Cause::Mismatch {
                object,
                must_share: "context",
            };
            let error = Error::new(verb, ErrorKind::Invalid, cause);
            if of == context { Ok(()) } else { Err(error) }
        };
        match event.element {
            Element::Cq(cq) => {
                let found = self.cq(verb, cq)?;
                of_another(Object::Cq, found.context)?;
                let address = found.raw.address();
                self.acknowledge(verb, &found.async_unacked, 1, cq, || tell(address))
            }
            Element::Qp(qp) => {
                let found = self.qp(verb, qp)?;
                of_another(Object::Qp, found.context)?;
                let address = found.raw.address();
                self.acknowledge(verb, &found.async_unacked, 1, qp, || tell(address))
            }
            Element::Srq(srq) => {
                let found = self.srq(verb, srq)?;
                of_another(Object::Srq, found.pd.context)?;
                let address = found.raw.address();
                self.acknowledge(verb, &found.async_unacked, 1, srq, || tell(address))
            }
            Element::Port(port) => tell(usize::from(port)),
            _ => tell(0),
        }
    }

    /// Reads an event from an object, or waits for one. What is returned keeps others from reading and
    /// from destroying what the event is of, until it is counted.
    fn next_event<T>(
        &self,
        (verb, object): (Verb, Object),
        raw: &Owned<T>,
        wait: Wait,
        mut read: impl FnMut(*mut T) -> (c_int, c_int, RawFd),
    ) -> Result<MutexGuard<'_, ()>> {
        let deadline = Deadline::new(wait);
        loop {
            let reading = self.reading.lock();
            let (result, errno, fd) = raw.with(&mut read).map_err(destroyed(verb, object))?;
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

/// A thread that waits, counted as long as it does.
struct Waiting<'a>(&'a AtomicU32);

impl<'a> Waiting<'a> {
    fn new(waiters: &'a AtomicU32) -> Self {
        waiters.fetch_add(1, Ordering::Relaxed);
        Self(waiters)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
