//! Resolving: from an address to a device and a path.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use verbs_api::cm::{CmEventType, CmId};
use verbs_api::{Cause, Error, ErrorKind, Result, Verb};

use super::bind::{unspecified, with_ip};
use super::events::status_of;
use super::host::{Host, Local, Peer};
use super::id::{State, wrong_state};
use super::{Manager, invalid};
use crate::address::gid_of;

impl Manager {
    /// `rdma_resolve_addr`. `leads_to` is the address of a device that `dst` stands for, if it is of the machine, and
    /// `is_of_machine` says whether `src` is.
    pub(crate) fn resolve_addr(
        &mut self,
        host: &dyn Host,
        id: CmId,
        (src, is_of_machine): (Option<SocketAddr>, bool),
        (dst, leads_to): (SocketAddr, Option<IpAddr>),
        timeout: Duration,
    ) -> Result<()> {
        let verb = Verb::CmResolveAddr;
        let index = self.ids.find(verb, id)?;
        let state = self.ids.at(index).state;
        match state {
            State::Idle => {
                let src = src.unwrap_or_else(|| unspecified(dst));
                if src.is_ipv4() != dst.is_ipv4() {
                    return Err(invalid(
                        verb,
                        "src_addr",
                        "is of another family than dst_addr",
                    ));
                }
                self.ids.bind(host, verb, index, (src, is_of_machine))?;
            }
            State::Bound => {}
            _ => return Err(wrong_state(verb, id, state)),
        }
        let id = self.ids.at_mut(index);
        if id
            .local
            .is_some_and(|local| local.is_ipv4() != dst.is_ipv4())
        {
            return Err(invalid(
                verb,
                "dst_addr",
                "is of another family than the id's address",
            ));
        }
        id.peer = Some(dst);
        let target = leads_to.unwrap_or_else(|| dst.ip());
        match path(host, id.port, target) {
            Some((local, to)) => {
                (id.port, id.to) = (Some(local), Some(to));
                let own = match leads_to.is_some() || dst.ip().is_loopback() {
                    true => dst.ip(),
                    false => local.address,
                };
                let bound = id.local.filter(|bound| bound.ip().is_unspecified());
                id.local = bound.map(|bound| with_ip(bound, own)).or(id.local);
                id.state = State::AddrResolved;
                self.raise(index, CmEventType::AddrResolved, 0);
            }
            None if host.is_on_network(target) => {
                id.state = State::Resolving;
                self.timers.set(index, Some(self.now.after(timeout)));
            }
            None => {
                let cause = Cause::Text(format!("no network leads to {target}").into());
                return Err(Error::new(verb, ErrorKind::NetworkUnreachable, cause));
            }
        }
        Ok(())
    }

    /// The address that an id has resolved is of the machine, and leads to another device by now: who has its port may
    /// have come since.
    pub(crate) fn lead_to(&mut self, host: &dyn Host, id: CmId, target: IpAddr) -> Result<()> {
        let index = self.ids.find(Verb::CmConnect, id)?;
        let id = self.ids.at_mut(index);
        if id.state == State::RouteResolved {
            id.to = path(host, id.port, target).map(|(_, to)| to).or(id.to);
        }
        Ok(())
    }

    /// The time to resolve an address is over.
    pub(super) fn give_up_resolving(&mut self, index: u32) {
        self.ids.at_mut(index).state = State::Bound;
        let status = status_of(ErrorKind::TimedOut);
        self.raise(index, CmEventType::AddrError, status);
    }

    /// `rdma_resolve_route`
    pub(crate) fn resolve_route(&mut self, id: CmId) -> Result<()> {
        let verb = Verb::CmResolveRoute;
        let index = self.ids.find(verb, id)?;
        let of = self.ids.at_mut(index);
        if of.state != State::AddrResolved {
            return Err(wrong_state(verb, id, of.state));
        }
        of.state = State::RouteResolved;
        of.num_paths = 1;
        self.raise(index, CmEventType::RouteResolved, 0);
        Ok(())
    }
}

/// From which port to where a path leads to an address.
fn path(host: &dyn Host, bound: Option<Local>, target: IpAddr) -> Option<(Local, Peer)> {
    let own = || host.port_at(target);
    let local = bound.or_else(own).or_else(|| host.loopback())?;
    if target.is_multicast() {
        let gid = gid_of(target);
        let lid = host.group_lid(gid);
        return Some((local, Peer { gid, lid }));
    }
    let is_own = target.is_unspecified() || target.is_loopback();
    let to_itself = || host.peer_at(&local, local.address).filter(|_| is_own);
    let to = host.peer_at(&local, target).or_else(to_itself)?;
    Some((local, to))
}
