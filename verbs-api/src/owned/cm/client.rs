//! The side that connects.

use core::net::SocketAddr;
use core::time::Duration;

use super::super::tasks::from_here;
use super::id::is_id;
use super::{Cm, CmId, Connection, failed};
use crate::cm::{CmEventType, ConnParam, PortSpace};
use crate::error::{Cause, Error, ErrorKind, Result, Verb};
use crate::site::{Site, Standing};
use crate::verbs::Wait;

impl Cm {
    /// Starts to look for a route to an address.
    pub fn route(&self, ps: PortSpace, dst: SocketAddr) -> RouteBuilder<'_> {
        RouteBuilder {
            cm: self,
            ps,
            src: None,
            dst,
            timeout: Duration::from_secs(2),
        }
    }
}

/// Looks for a route: [`Cm::route`].
#[derive(Clone, Debug)]
#[must_use = "nothing is looked for before `resolve`"]
pub struct RouteBuilder<'a> {
    cm: &'a Cm,
    ps: PortSpace,
    src: Option<SocketAddr>,
    dst: SocketAddr,
    timeout: Duration,
}

impl RouteBuilder<'_> {
    /// Connects from this local address. Default: an address that leads there.
    pub fn from(self, src: SocketAddr) -> Self {
        let src = Some(src);
        Self { src, ..self }
    }

    /// Time-out for address resolution and for route resolution, each. Default: 2 s.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Looks for it ([`cm::Cm::resolve_addr`](crate::cm::Cm::resolve_addr)).
    ///
    /// # Errors
    /// `NetworkUnreachable` if no network leads there; for the local address, the errors of
    /// [`Listener::bind`](super::Listener::bind).
    #[track_caller]
    pub fn resolve(self) -> Result<Resolving> {
        let _standing = Standing::at(Site::here());
        let id = CmId::create(self.cm, self.ps)?;
        let raw = self.cm.raw();
        raw.resolve_addr(id.handle(), self.src, self.dst, self.timeout)?;
        Ok(Resolving {
            id: Some(id),
            timeout: self.timeout,
        })
    }
}

/// A route that is looked for.
#[derive(Debug)]
pub struct Resolving {
    /// Until it is found.
    id: Option<CmId>,
    timeout: Duration,
}

impl Resolving {
    /// Waits for the route, which comes once; `None` if it takes longer than `wait` gives.
    ///
    /// # Errors
    /// `TimedOut` and others, with the event, if there is no route; `Invalid` after the route or an
    /// error came.
    #[track_caller]
    pub fn wait(&mut self, wait: Wait) -> Result<Option<Route>> {
        let _standing = Standing::at(Site::here());
        let id = self.id()?.clone();
        while let Some(event) = id.get_event(wait)? {
            let verb = match event.event {
                CmEventType::AddrResolved => {
                    id.cm().raw().resolve_route(id.handle(), self.timeout)?;
                    continue;
                }
                CmEventType::RouteResolved => {
                    self.id = None;
                    return Ok(Some(Route { id }));
                }
                CmEventType::AddrError => Verb::CmResolveAddr,
                CmEventType::RouteError | CmEventType::DeviceRemoval => Verb::CmResolveRoute,
                _ => continue,
            };
            self.id = None;
            return Err(failed(verb, event));
        }
        Ok(None)
    }

    /// The route: [`wait`](Self::wait) for a task of any executor.
    ///
    /// # Errors
    /// The errors of `wait` and of [`Verbs::wake_on`](crate::Verbs::wake_on).
    #[track_caller]
    pub fn until_resolved(&mut self) -> impl Future<Output = Result<Route>> {
        from_here(async move {
            let id = self.id()?.clone();
            id.until(|| self.wait(Wait::Poll)).await
        })
    }

    /// A descriptor that is readable when [`wait`](Self::wait) has something to do ([`CmId::fd`]).
    ///
    /// # Errors
    /// The errors of [`CmId::fd`]; `Invalid` after the route or an error came.
    #[cfg(unix)]
    pub fn fd(&self) -> Result<std::os::fd::OwnedFd> {
        self.id()?.fd()
    }

    fn id(&self) -> Result<&CmId> {
        let over = || {
            let cause = Cause::Text("the route was found, or cannot be".into());
            Error::new(Verb::CmResolveRoute, ErrorKind::Invalid, cause)
        };
        self.id.as_ref().ok_or_else(over)
    }
}

/// A route to an address, and the device that leads there.
pub struct Route {
    id: CmId,
}

is_id!(Route);

impl Route {
    /// Asks for a connection ([`cm::Cm::connect`](crate::cm::Cm::connect)) with the queue pair that
    /// was made for it ([`QpBuilder::create_for`](super::super::QpBuilder::create_for)), or for the
    /// queue pair that datagrams go to.
    ///
    /// # Errors
    /// `Invalid` for too much private data, or for more resources than the device has.
    #[track_caller]
    pub fn connect(self, param: &ConnParam<'_>) -> Result<Connection> {
        let _standing = Standing::at(Site::here());
        self.cm().raw().connect(self.handle(), param)?;
        Connection::new(self.id, Verb::CmConnect)
    }
}
