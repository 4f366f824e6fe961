//! Connections.

use super::id::is_id;
use super::{CmId, failed};
use crate::cm::{CmEvent, CmEventType, CmParam};
use crate::error::{Result, Verb};
use crate::sync::Mutex;
use crate::verbs::Wait;

/// A connection, or one that is coming about: of a client by
/// [`Route::connect`](super::Route::connect), of a server by
/// [`Request::accept`](super::Request::accept).
///
/// Only one thread waits for it at a time: a second thread would wait for an event that the first
/// has read. Dropping it disconnects once its queue pair is dropped too.
pub struct Connection {
    id: CmId,
    /// The verb that began it.
    verb: Verb,
    known: Mutex<Known>,
}

/// What its events told.
#[derive(Default)]
struct Known {
    /// The connection is established; the peer's parameters.
    established: Option<CmParam>,
    /// It does not come about, or is over.
    ended: Option<CmEvent>,
}

is_id!(Connection);

impl Connection {
    pub(super) fn new(id: CmId, verb: Verb) -> Result<Self> {
        let mut known = Known::default();
        if verb == Verb::CmAccept && id.attr()?.ps.is_datagram() {
            // The answer to a request for datagrams is not answered.
            known.established = Some(CmParam::None);
        }
        let known = Mutex::new(known);
        Ok(Self { id, verb, known })
    }

    /// Waits until the connection is established and returns the peer's parameters, for datagrams
    /// the address of the peer's queue pair; `None` on time-out. A server that has accepted a
    /// request for datagrams does not wait. Later calls return the same.
    ///
    /// A client whose id has no queue pair gets the answer of the server here. It sets its own
    /// queue pair as [`cm::Cm::init_qp_attr`](crate::cm::Cm::init_qp_attr) says, and calls
    /// [`establish`](crate::cm::Cm::establish).
    ///
    /// # Errors
    /// `ConnectionRefused` if the peer has refused, `TimedOut` if it does not answer, and others.
    /// The cause has the event ([`Cause::CmEvent`](crate::Cause::CmEvent)), with the peer's private
    /// data.
    pub fn established(&self, wait: Wait) -> Result<Option<CmParam>> {
        self.until(wait, |known| {
            let ended = known.ended.clone();
            match (&known.established, ended) {
                (Some(param), _) => Some(Ok(param.clone())),
                (None, Some(event)) => Some(Err(failed(self.verb, event))),
                (None, None) => None,
            }
        })
    }

    /// Disconnects ([`cm::Cm::disconnect`](crate::cm::Cm::disconnect)). Outstanding work on this
    /// queue pair fails; the peer's is untouched until it disconnects too (CM-40).
    ///
    /// # Errors
    /// `Invalid` if the connection was never established, or is for datagrams.
    pub fn disconnect(&self) -> Result<()> {
        self.cm().raw().disconnect(self.handle())
    }

    /// Waits until the connection ends, and returns the event that reports it, `DISCONNECTED` for
    /// an established one; `None` on time-out. The side that disconnects first is notified when its
    /// peer has disconnected too.
    ///
    /// # Errors
    /// In the simulator `Stalled` if nothing can end it any more.
    pub fn disconnected(&self, wait: Wait) -> Result<Option<CmEvent>> {
        self.until(wait, |known| known.ended.clone().map(Ok))
    }

    /// Takes events until they tell what is looked for.
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
        }
    }
}
