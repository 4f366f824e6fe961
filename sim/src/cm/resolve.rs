//! Resolves an address to a device and a path.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use verbs_api::cm::{CmEventType, CmId};
use verbs_api::{Cause, ErrorKind};

use super::Manager;
use super::bind::unspecified;
use super::host::Host;
use super::id::{State, wrong_state};
use crate::device::{Refusal, Result, invalid};

/// The destination of `rdma_resolve_addr`.
#[derive(Clone, Copy)]
pub(crate) struct Destination {
    pub(crate) addr: SocketAddr,
    /// The device address that it leads to, if it is an address of the machine.
    pub(crate) leads_to: Option<IpAddr>,
}

impl Manager {
    /// `rdma_resolve_addr`. `is_of_machine` tells whether `src` is an address of the machine.
    pub(crate) fn resolve_addr(
        &mut self,
        host: Host<'_>,
        id: CmId,
        src: Option<SocketAddr>,
        is_of_machine: bool,
        dst: Destination,
        timeout: Duration,
    ) -> Result<()> {
        let (dst, leads_to) = (dst.addr, dst.leads_to);
        let index = self.ids.find(id)?;
        let state = self.ids.at(index).state;
        match state {
            State::Idle => {
                let src = src.unwrap_or_else(|| unspecified(dst));
                if src.is_ipv4() != dst.is_ipv4() {
                    return Err(invalid("src_addr", "is of another family than dst_addr"));
                }
                self.ids.bind(host, index, src, is_of_machine)?;
            }
            State::Bound => {}
            _ => return Err(wrong_state(id, state)),
        }
        let id = self.ids.at_mut(index);
        if id
            .local
            .is_some_and(|local| local.is_ipv4() != dst.is_ipv4())
        {
            return Err(invalid(
                "dst_addr",
                "is of another family than the id's address",
            ));
        }
        id.peer = Some(dst);
        let target = leads_to.unwrap_or_else(|| dst.ip());
        match host.seen_by(id).path(id.port, target) {
            Some((local, to)) => {
                (id.port, id.to) = (Some(local), Some(to));
                let own = if leads_to.is_some() || dst.ip().is_loopback() {
                    dst.ip()
                } else {
                    local.address()
                };
                // Only a wildcard is replaced: a given address stays.
                if let Some(bound) = &mut id.local
                    && bound.ip().is_unspecified()
                {
                    bound.set_ip(own);
                }
                id.state = State::AddrResolved;
                self.raise(index, CmEventType::AddrResolved, 0);
            }
            // On the devices' network an address may have no owner yet, so the program waits as
            // with Linux.
            None if host.is_on_network(target) => {
                id.state = State::Resolving;
                self.timers.set(index, Some(self.now.after(timeout)));
            }
            None => {
                let cause = Cause::Text(format!("no network leads to {target}").into());
                return Err(Refusal::new(ErrorKind::NetworkUnreachable, cause));
            }
        }
        Ok(())
    }

    /// Updates the destination of an id that has resolved an address of the machine, because the
    /// listener at its port may have started since.
    pub(crate) fn lead_to(&mut self, host: Host<'_>, id: CmId, target: IpAddr) -> Result<()> {
        let index = self.ids.find(id)?;
        let id = self.ids.at_mut(index);
        if id.state == State::RouteResolved {
            id.to = host
                .seen_by(id)
                .path(id.port, target)
                .map(|(_, to)| to)
                .or(id.to);
        }
        Ok(())
    }

    /// `rdma_resolve_route`
    pub(crate) fn resolve_route(&mut self, id: CmId) -> Result<()> {
        let index = self.ids.find(id)?;
        let of = self.ids.at_mut(index);
        if of.state != State::AddrResolved {
            return Err(wrong_state(id, of.state));
        }
        of.state = State::RouteResolved;
        of.num_paths = 1;
        self.raise(index, CmEventType::RouteResolved, 0);
        Ok(())
    }
}
