//! rdma_cm: listeners, requests, routes and connections.

mod client;
mod connection;
mod id;
mod server;

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Context;
use crate::cm;
use crate::error::{Cause, Error, ErrorKind, Result, Verb};
use crate::handle;
use crate::sync::Mutex;
use crate::verbs::Verbs;

pub use client::{Resolving, Route, RouteBuilder};
pub use connection::Connection;
pub use id::CmId;
pub use server::{Listener, Request};

/// Connection management of a backend ([`crate::cm::Cm`]), with the contexts of its devices.
///
/// Ids bring the context of their device with them. Queue pairs of ids, and what these use, are
/// made from that. Use clones of one value all over a program: the contexts of two values do not
/// know each other's objects.
///
/// ```no_run
/// use std::net::SocketAddr;
/// use std::sync::Arc;
/// use verbs_api::cm::{ConnParam, PortSpace};
/// use verbs_api::owned::{Cm, Cq, Listener, Qp};
/// use verbs_api::{QpType, Result, Verbs, Wait};
///
/// /// Takes the next client of a listener.
/// fn serve(listener: &Listener) -> Result<()> {
///     let Some(request) = listener.get_request(Wait::Forever)? else { return Ok(()) };
///     let pd = request.context()?.alloc_pd()?;
///     let cq = request.context()?.cq(16).create()?;
///     let qp = pd.qp(QpType::Rc, &cq, &cq).create_for(&request)?;
///     // The first receives belong here.
///     let connection = request.accept(&ConnParam::new())?;
///     connection.established(Wait::Forever)?;
///     // ...
///     connection.disconnect()
/// }
///
/// /// Connects with a server.
/// fn call(cm: &Cm, server: SocketAddr) -> Result<()> {
///     let mut resolving = cm.route(PortSpace::Tcp, server).resolve()?;
///     let Some(route) = resolving.wait(Wait::Forever)? else { return Ok(()) };
///     let pd = route.context()?.alloc_pd()?;
///     let cq = route.context()?.cq(16).create()?;
///     let qp = pd.qp(QpType::Rc, &cq, &cq).create_for(&route)?;
///     let connection = route.connect(&ConnParam::new().private_data(b"hello"))?;
///     connection.established(Wait::Forever)?;
///     // ...
///     connection.disconnect()
/// }
/// ```
#[derive(Clone)]
pub struct Cm(Arc<Inner>);

struct Inner {
    verbs: Arc<dyn Verbs>,
    contexts: Mutex<BTreeMap<handle::Context, Context>>,
}

impl Cm {
    /// The connection management of a backend.
    ///
    /// # Errors
    /// `NotSupported` without [`Capabilities::CM`](crate::Capabilities::CM).
    pub fn new(verbs: Arc<dyn Verbs>) -> Result<Self> {
        if verbs.cm().is_none() {
            let cause = Cause::Text("the backend has no rdma_cm".into());
            let kind = ErrorKind::NotSupported;
            return Err(Error::new(Verb::CmCreateEventChannel, kind, cause));
        }
        let contexts = Mutex::default();
        Ok(Self(Arc::new(Inner { verbs, contexts })))
    }

    /// The backend. The [module](super#raw-access) says what raw calls can spoil.
    pub fn verbs(&self) -> &Arc<dyn Verbs> {
        &self.0.verbs
    }

    /// A context of each device, those that ids of the device have ([`cm::Cm::cm_devices`]). They
    /// stay open as long as the backend.
    pub fn contexts(&self) -> Result<Vec<Context>> {
        let devices = self.raw().cm_devices()?;
        Ok(devices.into_iter().map(|raw| self.context(raw)).collect())
    }

    pub(super) fn raw(&self) -> &dyn cm::Cm {
        self.0.verbs.cm().expect("`new` saw that it has one")
    }

    /// The one value for a context of ids.
    fn context(&self, raw: handle::Context) -> Context {
        let mut contexts = self.0.contexts.lock();
        let new = || Context::of_ids(self.0.verbs.clone(), raw);
        contexts.entry(raw).or_insert_with(new).clone()
    }
}

impl fmt::Debug for Cm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rdma_cm")
    }
}

/// The error of an event that ends what `verb` began.
fn failed(verb: Verb, event: cm::CmEvent) -> Error {
    let kind = match event.event {
        cm::CmEventType::Rejected => ErrorKind::ConnectionRefused,
        cm::CmEventType::DeviceRemoval => ErrorKind::NoDevice,
        _ if event.status == 0 => ErrorKind::NotConnected,
        _ => ErrorKind::from_errno(event.status.saturating_abs()),
    };
    Error::new(verb, kind, Cause::CmEvent(Box::new(event)))
}
