//! Addresses and ports of ids.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::BTreeMap;

use verbs_api::cm::{CmId, PortSpace};
use verbs_api::{Cause, ErrorKind};

use super::host::{Host, Local};
use super::id::{Id, State, wrong_state};
use super::ids::Ids;
use crate::device::{Refusal, Result};

/// The indices of the ids that have a port, by port space and number.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings(BTreeMap<(PortSpace, u16), Vec<u32>>);

/// The range of chosen ports, as in Linux.
const EPHEMERAL: core::ops::RangeInclusive<u16> = 32_768..=60_999;

impl Bindings {
    pub(super) fn at(&self, ps: PortSpace, port: u16) -> &[u32] {
        self.0.get(&(ps, port)).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, ps: PortSpace, port: u16, id: u32) {
        self.0.entry((ps, port)).or_default().push(id);
    }

    pub(super) fn remove(&mut self, ps: PortSpace, port: u16, id: u32) {
        if let Some(ids) = self.0.get_mut(&(ps, port)) {
            ids.retain(|of| *of != id);
            if ids.is_empty() {
                self.0.remove(&(ps, port));
            }
        }
    }
}

impl Ids {
    /// `rdma_bind_addr`. Addresses of the machine that no device has lead to its first port.
    pub(crate) fn bind_addr(
        &mut self,
        host: Host<'_>,
        id: CmId,
        addr: SocketAddr,
        is_of_machine: bool,
    ) -> Result<()> {
        let index = self.find(id)?;
        let state = self.at(index).state;
        if state != State::Idle {
            return Err(wrong_state(id, state));
        }
        self.bind(host, index, addr, is_of_machine)
    }

    /// Binds an idle id to an address. Port 0 chooses a port.
    pub(super) fn bind(
        &mut self,
        host: Host<'_>,
        index: u32,
        mut addr: SocketAddr,
        is_of_machine: bool,
    ) -> Result<()> {
        let host = host.seen_by(self.at(index));
        let local = local_port(host, addr.ip(), is_of_machine)?;
        let ps = self.at(index).ps;
        if addr.port() == 0 {
            addr.set_port(self.free_port(ps)?);
        } else {
            self.check_port(self.at(index), addr, false)?;
        }
        self.bindings.add(ps, addr.port(), index);
        let id = self.at_mut(index);
        id.local = Some(addr);
        id.port = local;
        id.state = State::Bound;
        Ok(())
    }

    /// Refuses an address that conflicts with those of other ids with the same port, as Linux does.
    pub(super) fn check_port(&self, id: &Id, addr: SocketAddr, is_listener: bool) -> Result<()> {
        let others = self.bindings.at(id.ps, addr.port()).iter();
        for other in others.map(|index| self.at(*index)) {
            // An id that begins to listen has its port already.
            if other.handle == id.handle {
                continue;
            }
            let Some(theirs) = other.local else { continue };
            // A listener needs the port for itself.
            let may_share = id.reuse_addr && other.reuse_addr && !is_listener;
            let families = addr.is_ipv4() != theirs.is_ipv4();
            let are_apart = families && id.is_af_only(addr) && other.is_af_only(theirs);
            // Each host has all ports.
            let homes = id.home.zip(other.home);
            let on_hosts = homes.is_some_and(|(ours, theirs)| ours != theirs);
            if may_share || are_apart || on_hosts {
                continue;
            }
            let kind = if addr.ip().is_unspecified() || theirs.ip().is_unspecified() {
                ErrorKind::AddressNotAvailable
            } else if addr.ip() == theirs.ip() {
                ErrorKind::AddressInUse
            } else {
                continue;
            };
            let text = format!("{addr} is taken: {} has {theirs}", other.handle);
            return Err(Refusal::new(kind, Cause::Text(text.into())));
        }
        Ok(())
    }

    /// A port that no id has.
    fn free_port(&mut self, ps: PortSpace) -> Result<u16> {
        let count = EPHEMERAL.len() as u64;
        let start = self.random.any() % count;
        // A random start makes collisions with other processes rare.
        let numbers = (0..count).map(|n| EPHEMERAL.start() + ((start + n) % count) as u16);
        let mut free = numbers.filter(|port| self.bindings.at(ps, *port).is_empty());
        free.next().ok_or_else(|| {
            let cause = Cause::Text("no port is free".into());
            Refusal::new(ErrorKind::AddressNotAvailable, cause)
        })
    }

    /// Removes the binding of an id.
    pub(super) fn unbind(&mut self, index: u32) {
        let id = self.at_mut(index);
        let (ps, local) = (id.ps, id.local.take());
        if let Some(local) = local {
            self.bindings.remove(ps, local.port(), index);
        }
    }

    /// Undoes the binding of an id, because another process has its port.
    pub(crate) fn undo_binding(&mut self, id: CmId) -> Result<()> {
        let index = self.find(id)?;
        self.unbind(index);
        self.at_mut(index).port = None;
        self.set_state(index, State::Idle);
        Ok(())
    }

    /// The ids that have a port.
    pub(crate) fn bound_to(&self, ps: PortSpace, port: u16) -> impl Iterator<Item = CmId> {
        let ids = self.bindings.at(ps, port).iter();
        ids.map(|index| self.at(*index).handle)
    }

    /// Whether an id listens at a port.
    pub(crate) fn listens(&self, ps: PortSpace, port: u16) -> bool {
        let mut ids = self.bindings.at(ps, port).iter();
        ids.any(|index| self.at(*index).state == State::Listening)
    }
}

/// The port of an address of this machine. `None` for the unspecified address and those of
/// loopback, which belong to all ports.
fn local_port(host: Host<'_>, ip: IpAddr, is_of_machine: bool) -> Result<Option<Local>> {
    let of_device = host.port_at(ip);
    // These addresses are valid even if they belong to no single port.
    if of_device.is_some() || ip.is_unspecified() || ip.is_loopback() {
        return Ok(of_device);
    }
    let local = host.loopback().filter(|_| is_of_machine);
    local
        .map(Some)
        .ok_or_else(|| Refusal::new(ErrorKind::AddressNotAvailable, Cause::NoAddress { ip }))
}

/// The unspecified address of a family, with port 0.
pub(super) fn unspecified(like: SocketAddr) -> SocketAddr {
    match like {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (core::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}
