//! Ids, and the events of each.

use core::fmt;
use core::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use super::super::event::in_time;
use super::super::tasks::{Tasks, from_here};
use super::{Cm, Context, failed};
use crate::cm::{CmEvent, CmEventType, CmIdAttr, CmOption, CmParam, PortSpace, UdData};
use crate::error::{Cause, Error, ErrorKind, Result, Verb};
use crate::event::EventSource;
use crate::handle;
use crate::site::{Site, Standing};
use crate::verbs::Wait;

/// An id of rdma_cm, with an event channel of its own. What [`Listener`](super::Listener),
/// [`Request`](super::Request), [`Route`](super::Route) and [`Connection`](super::Connection) have
/// in common: each dereferences to its id.
///
/// The id is removed when its last clone and its queue pair are dropped. A peer that is connected
/// then is notified that the connection has ended, and one that waits for an answer is refused.
#[derive(Clone)]
pub struct CmId(Arc<Inner>);

struct Inner {
    cm: Cm,
    channel: handle::CmChannel,
    handle: handle::CmId,
    context: OnceLock<Context>,
    tasks: Tasks,
}

impl CmId {
    /// An id that is bound to an address and no more, for multicast groups
    /// ([`cm::Cm::bind_addr`](crate::cm::Cm::bind_addr)).
    ///
    /// # Errors
    /// `AddressNotAvailable` for an address that no device here has; `AddressInUse`;
    /// `TooManyFiles`.
    #[track_caller]
    pub fn bind(cm: &Cm, ps: PortSpace, addr: SocketAddr) -> Result<Self> {
        let _standing = Standing::at(Site::here());
        let id = Self::create(cm, ps)?;
        cm.raw().bind_addr(id.handle(), addr)?;
        Ok(id)
    }

    pub(super) fn create(cm: &Cm, ps: PortSpace) -> Result<Self> {
        Self::on_channel(cm, |channel| cm.raw().create_id(channel, 0, ps))
    }

    /// Takes an id over, with a channel of its own.
    pub(super) fn adopt(cm: &Cm, handle: handle::CmId) -> Result<Self> {
        let adopt = |channel| cm.raw().migrate_id(handle, channel, Wait::Poll);
        Self::on_channel(cm, |channel| adopt(channel).map(|()| handle)).inspect_err(|_| {
            // No other thread knows the id.
            let _ = cm.raw().destroy_id(handle, Wait::Poll);
        })
    }

    fn on_channel(
        cm: &Cm,
        id: impl FnOnce(handle::CmChannel) -> Result<handle::CmId>,
    ) -> Result<Self> {
        let channel = cm.raw().create_event_channel()?;
        let handle = id(channel).inspect_err(|_| {
            let _ = cm.raw().destroy_event_channel(channel);
        })?;
        Ok(Self(Arc::new(Inner {
            cm: cm.clone(),
            channel,
            handle,
            context: OnceLock::new(),
            tasks: Tasks::new(EventSource::CmChannel(channel)),
        })))
    }

    /// The raw handle, for [`cm::Cm`](crate::cm::Cm). It owns nothing; the
    /// [module](crate::owned#raw-access) says what raw calls can spoil.
    pub fn handle(&self) -> handle::CmId {
        self.0.handle
    }

    /// The [`Cm`](super::Cm) it was created from.
    pub fn cm(&self) -> &Cm {
        &self.0.cm
    }

    /// The context of its device: all that its queue pair needs is made from that.
    ///
    /// # Errors
    /// `NotConnected` if it is bound to no device, as a listener on all addresses is.
    pub fn context(&self) -> Result<&Context> {
        if let Some(context) = self.0.context.get() {
            return Ok(context);
        }
        let raw = self.attr()?.verbs;
        let raw = raw.ok_or_else(|| self.lacks("is bound to no device"))?;
        Ok(self.0.context.get_or_init(|| self.cm().context(raw)))
    }

    /// The attributes of the id ([`cm::Cm::query_id`](crate::cm::Cm::query_id)).
    pub fn attr(&self) -> Result<CmIdAttr> {
        self.cm().raw().query_id(self.handle())
    }

    /// The local address.
    ///
    /// # Errors
    /// `NotConnected` before it has one.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        let addr = self.attr()?.local_addr;
        addr.ok_or_else(|| self.lacks("has no address"))
    }

    /// The address of the peer.
    ///
    /// # Errors
    /// `NotConnected` for a listener.
    pub fn peer_addr(&self) -> Result<SocketAddr> {
        let addr = self.attr()?.peer_addr;
        addr.ok_or_else(|| self.lacks("has no peer"))
    }

    fn lacks(&self, what: &str) -> Error {
        let cause = Cause::Text(format!("{self} {what}").into());
        Error::new(Verb::CmQueryId, ErrorKind::NotConnected, cause)
    }

    /// Sets an option ([`cm::Cm::set_option`](crate::cm::Cm::set_option)).
    ///
    /// # Errors
    /// `Invalid` in a state in which it can no longer take effect.
    #[track_caller]
    pub fn set_option(&self, option: CmOption) -> Result<()> {
        let _standing = Standing::at(Site::here());
        self.cm().raw().set_option(self.handle(), option)
    }

    /// Joins a multicast group (CM-77); the queue pair of the id is attached.
    /// [`joined`](Self::joined) tells where to send.
    ///
    /// # Errors
    /// `Invalid` if the id is bound to no device, or has a route (CM-79).
    #[track_caller]
    pub fn join_multicast(&self, group: SocketAddr) -> Result<()> {
        let _standing = Standing::at(Site::here());
        self.cm().raw().join_multicast(self.handle(), group, 0)
    }

    /// Waits until a group is joined: where to send; `None` if it takes longer than `wait` gives.
    ///
    /// # Errors
    /// What the network says, with the event.
    #[track_caller]
    pub fn joined(&self, wait: Wait) -> Result<Option<UdData>> {
        let _standing = Standing::at(Site::here());
        while let Some(event) = self.get_event(wait)? {
            match (event.event, event.param) {
                (CmEventType::MulticastJoin, CmParam::Ud(data)) => return Ok(Some(data)),
                (CmEventType::MulticastError | CmEventType::DeviceRemoval, param) => {
                    let event = CmEvent { param, ..event };
                    return Err(failed(Verb::CmJoinMulticast, event));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Where to send, once a group is joined: [`joined`](Self::joined) for a task.
    ///
    /// # Errors
    /// The errors of `joined` and of [`Verbs::wake_on`](crate::Verbs::wake_on).
    #[track_caller]
    pub fn until_joined(&self) -> impl Future<Output = Result<UdData>> {
        from_here(self.until(|| self.joined(Wait::Poll)))
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// `AddressNotAvailable` if it was not joined.
    #[track_caller]
    pub fn leave_multicast(&self, group: SocketAddr) -> Result<()> {
        let _standing = Standing::at(Site::here());
        self.cm().raw().leave_multicast(self.handle(), group)
    }

    /// Takes the oldest event, for programs that handle events themselves; `None` if none comes in
    /// the time that `wait` gives. It has been acknowledged. The waits of the other types take
    /// events too, and skip those that say nothing to them.
    ///
    /// # Errors
    /// In the simulator `Stalled` if nothing can bring an event any more.
    #[track_caller]
    pub fn get_event(&self, wait: Wait) -> Result<Option<CmEvent>> {
        let _standing = Standing::at(Site::here());
        let raw = self.cm().raw();
        let event = in_time(raw.get_cm_event(self.0.channel, wait))?;
        if let Some(event) = &event {
            raw.ack_cm_event(event)?;
        }
        Ok(event)
    }

    /// The next event: [`get_event`](Self::get_event) for a task.
    ///
    /// # Errors
    /// The errors of `get_event` and of [`Verbs::wake_on`](crate::Verbs::wake_on).
    #[track_caller]
    pub fn next_event(&self) -> impl Future<Output = Result<CmEvent>> {
        from_here(self.until(|| self.get_event(Wait::Poll)))
    }

    /// What `look` finds in events, for a task.
    pub(super) async fn until<T>(&self, look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        let verbs = self.cm().verbs();
        self.0.tasks.until(&**verbs, look).await
    }

    /// Wakes the tasks that wait: what was read may be what they wait for.
    pub(super) fn wake_tasks(&self) {
        self.0.tasks.wake();
    }

    /// A descriptor that is readable exactly while an event is queued
    /// ([`cm::Cm::event_channel_fd`](crate::cm::Cm::event_channel_fd)), for `poll`, `epoll` and
    /// async runtimes. When it is readable, wait with [`Wait::Poll`].
    ///
    /// # Errors
    /// `NotSupported` on a backend without [`Capabilities::FD`](crate::Capabilities::FD);
    /// `TooManyFiles`.
    #[cfg(unix)]
    pub fn fd(&self) -> Result<OwnedFd> {
        self.cm().raw().event_channel_fd(self.0.channel)
    }
}

impl Drop for Inner {
    /// Its events have been acknowledged and its queue pair is destroyed, so the removal succeeds.
    fn drop(&mut self) {
        let raw = self.cm.raw();
        let _ = raw.destroy_id(self.handle, Wait::Poll);
        let _ = raw.destroy_event_channel(self.channel);
    }
}

impl PartialEq for CmId {
    /// Whether both are handles of one id.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CmId {}

impl fmt::Debug for CmId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for CmId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.handle, f)
    }
}

/// What is an id with more to it.
macro_rules! is_id {
    ($name:ident) => {
        impl core::ops::Deref for $name {
            type Target = super::CmId;

            fn deref(&self) -> &super::CmId {
                &self.id
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(&self.id, f)
            }
        }
    };
}

pub(super) use is_id;
