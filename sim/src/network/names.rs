//! Which process of the machine has a port: ids publish names by which other processes find them.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::{io, thread};

use rustix::process::Uid;
use verbs_api::cm::{Cm, CmId};
use verbs_api::{Cause, Error, ErrorKind, Result, Verb};

use super::service::{Reply, Service};
use super::sockets::Sockets;
use super::verbs::refused;
use crate::config::Mode;
use crate::device::Answer;
use crate::verbs::Sim;

/// Attempts to find a port that is free in this process and in the others.
const TRIES: u32 = 16;

/// Attempts of a client to find a listener before the connection is refused.
const LOOKS: u32 = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// The process that listens at a port.
enum Listener {
    /// There is none, or it has not said its address yet.
    Absent,
    /// It does not answer: it may be stopped.
    Silent,
    At(IpAddr),
}

/// The names of each id.
type Services = BTreeMap<CmId, Vec<Arc<Service>>>;

impl Sim {
    /// Whether an address belongs to the machine but to no device. It leads to the first port.
    pub(crate) fn is_of_machine(&self, address: IpAddr) -> bool {
        let is_of_machine = match &self.runtime.sockets {
            Some(sockets) => sockets.network.is_of_machine(address),
            None => is_of_program(self.runtime.config.mode, address),
        };
        is_of_machine && !self.look_at(|_, host| host.port_at(address).is_some())
    }

    /// The device address that an address of the machine leads to: that of the process that listens
    /// at the port, or the local one.
    pub(crate) fn leads_to(&self, id: CmId, dst: SocketAddr) -> Option<IpAddr> {
        if self.runtime.sockets.is_none() {
            let first = self.look_at(|_, host| host.loopback())?;
            return self.is_of_machine(dst.ip()).then_some(first.address());
        }
        match self.who_listens(id, dst)? {
            (_, Listener::At(address)) => Some(address),
            (own, _) => own,
        }
    }

    /// The local address that an address of the machine leads to, and the listener at the port.
    /// `None` if the address leads to one process, which needs no name.
    fn who_listens(&self, id: CmId, dst: SocketAddr) -> Option<(Option<IpAddr>, Listener)> {
        let network = self.runtime.sockets.as_ref()?.network;
        let is_own = self.look_at(|_, host| host.port_at(dst.ip()).is_some());
        let is_shared = is_own && network.given().is_some();
        // Only one process can have an address that is not shared, so no other needs to be asked.
        if !is_shared && (is_own || !network.is_of_machine(dst.ip())) {
            return None;
        }
        let ps = self.query_id(id).ok()?.ps;
        let (own, listens) = self.look_at(|manager, host| {
            let own = if is_own {
                host.port_at(dst.ip())
            } else {
                host.loopback()
            };
            (
                own.map(|local| local.address()),
                manager.ids.listens(ps, dst.port()),
            )
        });
        if listens {
            return Some((own, own.map_or(Listener::Absent, Listener::At)));
        }
        let names = network.services(dst.ip(), ps.into(), dst.port());
        let trusts = |user| network.trusts(user);
        Some((own, Listener::called(&names, trusts)))
    }

    /// Updates the address that an id has resolved, because the listener may have started since or
    /// be about to. Two local processes that agree on a port connect sooner here than over a
    /// network. Returns whether the listener exists and does not answer.
    pub(crate) fn follow_name(&self, id: CmId) -> bool {
        let peer = self.query_id(id).ok().and_then(|id| id.peer_addr);
        let Some(peer) = peer else { return false };
        for _ in 0..LOOKS {
            match self.who_listens(id, peer) {
                None => return false,
                Some((_, Listener::Silent)) => return true,
                Some((_, Listener::At(target))) => {
                    // If the id was destroyed in the meantime, the next call on it fails.
                    let _ = self.look_at(|manager, host| manager.lead_to(host, id, target));
                    return false;
                }
                Some((_, Listener::Absent)) => thread::sleep(BETWEEN_LOOKS),
            }
        }
        false
    }

    /// Asks for the listener of an id until it answers or ends, or the id no longer connects. Then
    /// its request leaves. A thread asks, because the call returns at once on Linux.
    pub(crate) fn await_listener(&self, id: CmId) {
        let Some(network) = self.runtime.sockets.as_ref().map(|of| of.network) else {
            return;
        };
        let attr = self.query_id(id).ok();
        let Some((ps, dst)) = attr.and_then(|attr| Some((attr.ps, attr.peer_addr?))) else {
            return;
        };
        let names = network.services(dst.ip(), ps.into(), dst.port());
        let runtime = Arc::downgrade(&self.runtime);
        let ask = move || {
            loop {
                let listener = Listener::called(&names, |user| network.trusts(user));
                // The simulation may have ended.
                let Some(runtime) = runtime.upgrade() else {
                    return;
                };
                let is_held = runtime.with(|fabric| {
                    fabric.manage(|manager, host| {
                        let target = match listener {
                            Listener::Silent => return manager.is_held(id),
                            Listener::At(target) => Some(target),
                            Listener::Absent => None,
                        };
                        manager.release(host, id, target);
                        false
                    })
                });
                if !is_held {
                    return;
                }
            }
        };
        let named = thread::Builder::new().name("verbs-sim names".to_owned());
        // Without a thread, the request fails as one that is never answered.
        let _ = named.spawn(ask);
    }

    /// Binds an id with `bind` to `port`, or to a chosen port if it is 0. Then publishes the id's
    /// name for other processes, unless its device has an address of its own.
    pub(crate) fn with_name(
        &self,
        verb: Verb,
        id: CmId,
        port: u16,
        mut bind: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let Some(sockets) = &self.runtime.sockets else {
            return bind();
        };
        let mut tries = 0;
        loop {
            bind()?;
            let mut services = sockets.services.lock();
            // The id was bound before.
            if services.contains_key(&id) {
                return Ok(());
            }
            match self.take_names(sockets, id, &services) {
                Ok(names) => {
                    if !names.is_empty() {
                        services.insert(id, names);
                    }
                    return Ok(());
                }
                Err(error) => {
                    drop(services);
                    let undone = self.look_at(|manager, _| manager.ids.undo_binding(id));
                    undone.by(Verb::CmBindAddr)?;
                    tries += 1;
                    // A port that the program asked for is taken; a chosen one may be replaced by
                    // the next.
                    if port != 0 || tries == TRIES {
                        return Err(name_taken(verb, &error));
                    }
                }
            }
        }
    }

    /// The names of an id. It shares names with other ids of the process that have the same port.
    fn take_names(
        &self,
        sockets: &Sockets,
        id: CmId,
        services: &Services,
    ) -> io::Result<Vec<Arc<Service>>> {
        let attr = self.query_id(id).ok();
        let bound = attr.and_then(|attr| Some((attr.ps, attr.local_addr?)));
        let Some((ps, local)) = bound else {
            return Ok(Vec::new());
        };
        let network = sockets.network;
        let (of_device, first) = self.look_at(|_, host| {
            let of_device = host.port_at(local.ip()).is_some();
            (of_device, host.loopback().map(|local| local.address()))
        });
        let Some(first) = first.filter(|_| !of_device || network.given().is_some()) else {
            return Ok(Vec::new());
        };
        let names = network.services(local.ip(), ps.into(), local.port());
        let addresses = match network.given() {
            _ if of_device => vec![local.ip()],
            Some(given) => given.to_vec(),
            None => vec![first],
        };
        // A client connects to the address, and messages there are passed on to the tenant with the
        // number.
        let tenant = sockets.tenant().map(|number| format!(" {number}"));
        let others: Vec<_> =
            self.look_at(|manager, _| manager.ids.bound_to(ps, local.port()).collect());
        let take = |(name, address): (&String, IpAddr)| {
            let known = others.iter().filter_map(|other| services.get(other));
            if let Some(service) = known.flatten().find(|service| service.is_called(name)) {
                return Ok(service.clone());
            }
            let answer = format!("{address}{}", tenant.as_deref().unwrap_or_default());
            Service::start(name, answer).map(Arc::new)
        };
        names.iter().zip(addresses).map(take).collect()
    }

    /// Opens the names of an id that listens: clients that look for its port find it. A port that
    /// is only bound refuses connections.
    pub(crate) fn open_names(&self, id: CmId) {
        let Some(sockets) = &self.runtime.sockets else {
            return;
        };
        for service in sockets.services.lock().get(&id).into_iter().flatten() {
            service.open();
        }
    }

    /// Removes the names of a destroyed id.
    pub(crate) fn drop_names(&self, id: CmId) {
        let Some(sockets) = &self.runtime.sockets else {
            return;
        };
        // Dropping a name waits for a thread, so it happens without the lock.
        let names = sockets.services.lock().remove(&id);
        drop(names);
    }
}

impl Listener {
    /// The process that has one of these names.
    fn called(names: &[String], trusts: impl Fn(Uid) -> bool) -> Self {
        let mut found = Self::Absent;
        for name in names {
            match Service::ask(name, &trusts) {
                Reply::Answer(answer) => {
                    let address = answer.split_whitespace().next();
                    if let Some(address) = address.and_then(|address| address.parse().ok()) {
                        return Self::At(address);
                    }
                }
                Reply::Silent => found = Self::Silent,
                Reply::Absent => {}
            }
        }
        found
    }
}

/// Whether an address belongs to the machine, for a simulation without a network. Loopback
/// addresses lead each id to its own port there, and virtual time has no machine.
fn is_of_program(mode: Mode, address: IpAddr) -> bool {
    mode == Mode::RealTime && !address.is_loopback() && super::is_of_machine(address)
}

fn name_taken(verb: Verb, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::AddrInUse {
        let text = "another process has the port";
        return Error::new(verb, ErrorKind::AddressInUse, Cause::Text(text.into()));
    }
    refused(verb, error)
}
