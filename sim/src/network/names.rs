//! Which process of the machine has a port: ids publish names by which other processes find them.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::{io, thread};

use verbs_api::cm::{Cm, CmId};
use verbs_api::{Cause, Error, ErrorKind, Result, Verb};

use super::service::Service;
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
        let (own, listening) = self.who_listens(id, dst)?;
        listening.or(own)
    }

    /// The local address that an address of the machine leads to, and the address at which a
    /// process listens at the port, if any.
    fn who_listens(&self, id: CmId, dst: SocketAddr) -> Option<(Option<IpAddr>, Option<IpAddr>)> {
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
            return Some((own, own));
        }
        let names = network.services(dst.ip(), ps.into(), dst.port());
        let answer = names
            .iter()
            .find_map(|name| Service::ask(name, |user| network.trusts(user)));
        let other = answer.and_then(|answer| answer.split_whitespace().next()?.parse().ok());
        Some((own, other))
    }

    /// Updates the address that an id has resolved, because the listener may have started since or
    /// be about to. Two local processes that agree on a port connect sooner here than over a
    /// network.
    pub(crate) fn follow_name(&self, id: CmId) {
        let peer = self.query_id(id).ok().and_then(|id| id.peer_addr);
        let Some(peer) = peer else { return };
        for _ in 0..LOOKS {
            match self.who_listens(id, peer) {
                None => return,
                Some((_, Some(target))) => {
                    // If the id was destroyed in the meantime, the next call on it fails.
                    let _ = self.look_at(|manager, host| manager.lead_to(host, id, target));
                    return;
                }
                Some((_, None)) => thread::sleep(BETWEEN_LOOKS),
            }
        }
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
