//! Connections.

use super::super::tasks::from_here;
use super::id::is_id;
use super::{CmId, failed};
use crate::cm::{CmEvent, CmEventType, CmParam};
use crate::error::{Result, Verb};
use crate::site::{Site, Standing};
use crate::sync::Mutex;
use crate::verbs::Wait;

/// A connection of rdma_cm, established or about to be. A client gets it from
/// [`Route::connect`](super::Route::connect), a server from
/// [`Request::accept`](super::Request::accept). [`established`](Self::established) waits until it
/// can be used.
///
/// With [`PortSpace::Udp`](crate::cm::PortSpace::Udp) it is only a request: the client asks for the
/// queue pair that its datagrams go to, and the server answers.
///
/// Only one thread may wait at a time: a second one could wait for an event that the first has
/// read. Any number of tasks may wait. Dropping the connection and its queue pair disconnects;
/// dropping one of them does not.
///
/// [`Cm`](super::Cm) has an example of both sides.
pub struct Connection {
    id: CmId,
    /// The verb that errors name: `CmConnect` or `CmAccept`.
    verb: Verb,
    known: Mutex<Known>,
}

/// The facts from its events.
#[derive(Default)]
struct Known {
    /// The peer's parameters, once the connection is established.
    established: Option<CmParam>,
    /// The event by which the connection failed or ended.
    ended: Option<CmEvent>,
}

is_id!(Connection);

impl Connection {
    pub(super) fn new(id: CmId, verb: Verb) -> Result<Self> {
        let mut known = Known::default();
        if verb == Verb::CmAccept && id.attr()?.ps.is_datagram() {
            // The client does not confirm the answer to a request for datagrams, so no event comes.
            known.established = Some(CmParam::None);
        }
        let known = Mutex::new(known);
        Ok(Self { id, verb, known })
    }

    /// Waits until the connection is established; `None` on time-out. Later calls return the same
    /// value or error without waiting.
    ///
    /// A client gets the server's parameters, with its private data. For datagrams they have the
    /// address of the server's queue pair ([`CmParam::Ud`]). A server gets no private data here
    /// (CM-39): it has the client's parameters from [`Request::param`](super::Request::param). A
    /// server that has accepted a request for datagrams does not wait.
    ///
    /// A client whose id has no queue pair gets the parameters before the connection is
    /// established. It then brings its own queue pair to RTR and RTS with the attributes from
    /// [`cm::Cm::init_qp_attr`](crate::cm::Cm::init_qp_attr), and calls
    /// [`cm::Cm::establish`](crate::cm::Cm::establish).
    ///
    /// # Errors
    /// `ConnectionRefused` if the peer has refused, `TimedOut` if it does not answer, and others.
    /// The error's cause is the event ([`Cause::CmEvent`](crate::Cause::CmEvent)), with the peer's
    /// private data. In the simulator `Stalled` if no event can come any more.
    #[track_caller]
    pub fn established(&self, wait: Wait) -> Result<Option<CmParam>> {
        let _standing = Standing::at(Site::here());
        self.until(wait, |known| {
            let ended = known.ended.clone();
            match (&known.established, ended) {
                (Some(param), _) => Some(Ok(param.clone())),
                (None, Some(event)) => Some(Err(failed(self.verb, event))),
                (None, None) => None,
            }
        })
    }

    /// The peer's parameters, once the connection is established:
    /// [`established`](Self::established) for a task of any executor.
    ///
    /// # Errors
    /// The errors of `established` and of [`Verbs::wake_on`](crate::Verbs::wake_on).
    #[track_caller]
    pub fn until_established(&self) -> impl Future<Output = Result<CmParam>> {
        from_here(self.id.until(|| self.established(Wait::Poll)))
    }

    /// Disconnects ([`cm::Cm::disconnect`](crate::cm::Cm::disconnect)). This queue pair goes to
    /// ERR, and its outstanding work is flushed. The peer's queue pair stays in RTS until the peer
    /// disconnects too (CM-40).
    ///
    /// # Errors
    /// `Invalid` if the connection was never established, or is for datagrams.
    #[track_caller]
    pub fn disconnect(&self) -> Result<()> {
        let _standing = Standing::at(Site::here());
        self.cm().raw().disconnect(self.handle())
    }

    /// Waits until the connection ends, and returns the event that reports the end; `None` on
    /// time-out. Later calls return the same event without waiting.
    ///
    /// An established connection ends with `DISCONNECTED`, or with `DEVICE_REMOVAL`. The side that
    /// disconnects first gets its event when the peer has disconnected too, or does not answer. If
    /// the connection could not be established, the event is the cause of the error that
    /// [`established`](Self::established) returns.
    ///
    /// # Errors
    /// In the simulator `Stalled` if no event can come any more.
    #[track_caller]
    pub fn disconnected(&self, wait: Wait) -> Result<Option<CmEvent>> {
        let _standing = Standing::at(Site::here());
        self.until(wait, |known| known.ended.clone().map(Ok))
    }

    /// The event by which the connection ends: [`disconnected`](Self::disconnected) for a task.
    ///
    /// # Errors
    /// The errors of `disconnected` and of [`Verbs::wake_on`](crate::Verbs::wake_on).
    #[track_caller]
    pub fn until_disconnected(&self) -> impl Future<Output = Result<CmEvent>> {
        from_here(self.id.until(|| self.disconnected(Wait::Poll)))
    }

    /// Takes events until `look` finds an answer in the facts.
    fn until<T>(
        &self,
        wait: Wait,
        look: impl Fn(&Known) -> Option<Result<T>>,
    ) -> Result<Option<T>> {
        loop {
            if let Some(found) = look(&self.known.lock()) {
                return found.map(Some);
            }
            let Some(event) = self.get_event(wait)? else {
                return Ok(None);
            };
            let mut known = self.known.lock();
            match event.event {
                CmEventType::Established | CmEventType::ConnectResponse => {
                    known.established = Some(event.param);
                }
                CmEventType::Disconnected
                | CmEventType::Rejected
                | CmEventType::Unreachable
                | CmEventType::ConnectError
                | CmEventType::DeviceRemoval => known.ended = Some(event),
                _ => {}
            }
            drop(known);
            self.id.wake_tasks();
        }
    }
}
