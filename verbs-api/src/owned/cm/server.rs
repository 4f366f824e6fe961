//! The side that listens.

use core::net::SocketAddr;

use super::super::tasks::from_here;
use super::id::is_id;
use super::{Cm, CmId, Connection, failed};
use crate::cm::{CmEventType, CmParam, ConnParam, PortSpace};
use crate::error::{Result, Verb};
use crate::site::{Site, Standing};
use crate::verbs::Wait;

/// Takes requests for connections ([`PortSpace::Tcp`]), or for the queue pair that datagrams go to
/// ([`PortSpace::Udp`]).
///
/// When it is dropped, clients with unread requests are refused.
pub struct Listener {
    id: CmId,
}

is_id!(Listener);

impl Listener {
    /// Listens on an address ([`cm::Cm::listen`](crate::cm::Cm::listen)): of a device, or the
    /// unspecified one for all. With port 0 one is chosen: [`local_addr`](CmId::local_addr) tells
    /// it. At most 1024 requests wait to be read.
    ///
    /// # Errors
    /// `AddressNotAvailable` for an address that no device here has, or where another listens on
    /// all addresses with this port; `AddressInUse`; `TooManyFiles`.
    #[track_caller]
    pub fn bind(cm: &Cm, ps: PortSpace, addr: SocketAddr) -> Result<Self> {
        let _standing = Standing::at(Site::here());
        let id = CmId::bind(cm, ps, addr)?;
        cm.raw().listen(id.handle(), 0)?;
        Ok(Self { id })
    }

    /// Takes the oldest request; `None` if none comes in the time that `wait` gives.
    ///
    /// # Errors
    /// `NoDevice` if the device is dead; `TooManyFiles`, and the request is refused; in the
    /// simulator `Stalled` if nothing can bring a request any more.
    #[track_caller]
    pub fn get_request(&self, wait: Wait) -> Result<Option<Request>> {
        let _standing = Standing::at(Site::here());
        while let Some(event) = self.get_event(wait)? {
            match event.event {
                CmEventType::ConnectRequest => {
                    return Ok(Some(Request {
                        id: CmId::adopt(self.cm(), event.id)?,
                        param: event.param,
                    }));
                }
                CmEventType::DeviceRemoval => return Err(failed(Verb::CmListen, event)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// The next request: [`get_request`](Self::get_request) for a task of any executor.
    ///
    /// # Errors
    /// The errors of `get_request` and of [`Verbs::wake_on`](crate::Verbs::wake_on).
    #[track_caller]
    pub fn next_request(&self) -> impl Future<Output = Result<Request>> {
        from_here(self.id.until(|| self.get_request(Wait::Poll)))
    }
}

/// A client that asks. It is [accepted](Self::accept), or refused: dropping it refuses it, too.
#[must_use = "dropping it refuses the client"]
pub struct Request {
    id: CmId,
    param: CmParam,
}

is_id!(Request);

impl Request {
    /// The client's parameters.
    pub fn param(&self) -> &CmParam {
        &self.param
    }

    /// The client's own bytes. Except on iWARP there are always as many as its message has room for
    /// ([`private_data`](crate::cm::private_data)), the rest zero (CM-60).
    pub fn private_data(&self) -> &[u8] {
        self.param.private_data()
    }

    /// Accepts it ([`cm::Cm::accept`](crate::cm::Cm::accept)), with the queue pair that was made
    /// for it ([`QpBuilder::create_for`](super::super::QpBuilder::create_for)). Post the first
    /// receives before. A request for datagrams needs none: it can name one that many clients
    /// share, by [`ConnParam::qp_num`], which then has the Q_Key
    /// [`RDMA_UDP_QKEY`](crate::cm::RDMA_UDP_QKEY).
    ///
    /// # Errors
    /// `Invalid` without a queue pair that iWARP or the queue pair's transport needs, for too much
    /// private data, or if the client has ended. The client is refused then.
    #[track_caller]
    pub fn accept(self, param: &ConnParam<'_>) -> Result<Connection> {
        let _standing = Standing::at(Site::here());
        self.cm().raw().accept(self.handle(), param)?;
        Connection::new(self.id, Verb::CmAccept)
    }

    /// Refuses it, with bytes for the client ([`cm::Cm::reject`](crate::cm::Cm::reject)).
    ///
    /// # Errors
    /// `Invalid` for too much private data, or if the client has ended.
    #[track_caller]
    pub fn reject(self, private_data: &[u8]) -> Result<()> {
        let _standing = Standing::at(Site::here());
        self.cm().raw().reject(self.handle(), private_data)
    }
}
