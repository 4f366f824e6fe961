//! All ids: lookups, and calls on one id alone.

use core::mem;
use core::net::IpAddr;

use verbs_api::Handle;
use verbs_api::cm::{CmId, CmOption, PortSpace};
use verbs_api::table::Table;

use super::bind::Bindings;
use super::host::Exchange;
use super::id::{Id, OwnQp, ReadEvent, State, wrong_state};
use crate::device::{Result, find, in_context, invalid};
use crate::hosts::Lost;
use crate::rng::Random;

in_context!(Id, handle.context());

/// The ids.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    pub(super) table: Table<Id>,
    pub(super) bindings: Bindings,
    /// The number of listeners.
    pub(super) listening: u32,
    pub(super) random: Random,
    pub(super) lost: Lost,
}

impl Ids {
    pub(super) fn new(random: Random) -> Self {
        Self {
            table: Table::default(),
            bindings: Bindings::default(),
            listening: 0,
            random,
            lost: Lost::default(),
        }
    }

    pub(super) fn at(&self, index: u32) -> &Id {
        self.table.at(index)
    }

    pub(super) fn at_mut(&mut self, index: u32) -> &mut Id {
        self.table.at_mut(index)
    }

    pub(super) fn find(&self, id: CmId) -> Result<u32> {
        find(&self.table, id).map_err(|refusal| self.lost.explain(id, refusal))
    }

    /// Changes the state of an id, and counts the listeners.
    pub(super) fn set_state(&mut self, index: u32, state: State) {
        let old = mem::replace(&mut self.at_mut(index).state, state);
        self.listening += u32::from(state == State::Listening);
        self.listening -= u32::from(old == State::Listening);
    }

    /// The node of an id.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn node_of(&self, id: CmId) -> Option<u32> {
        let index = self.find(id).ok()?;
        self.at(index).port.map(|local| local.id.node)
    }

    /// Events of an id that were read but not acknowledged: their number, and the last one.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn unacknowledged(&self, id: CmId) -> Option<(u32, Option<ReadEvent>)> {
        let index = self.find(id).ok()?;
        let id = self.at(index);
        (id.unacked > 0).then_some((id.unacked, id.last_read))
    }

    /// Sets or removes the queue pair of an id.
    pub(crate) fn set_qp(&mut self, id: CmId, qp: Option<OwnQp>) -> Result<()> {
        let index = self.find(id)?;
        self.at_mut(index).qp = qp;
        Ok(())
    }

    /// The queue pair of an id.
    pub(crate) fn qp_of(&self, id: CmId) -> Result<Option<OwnQp>> {
        Ok(self.at(self.find(id)?).qp)
    }

    /// `rdma_set_option`
    pub(crate) fn set_option(&mut self, id: CmId, option: CmOption) -> Result<()> {
        let index = self.find(id)?;
        let id = self.at_mut(index);
        let is_early = matches!(id.state, State::Idle | State::Bound);
        match option {
            CmOption::Tos(tos) => id.tos = tos,
            CmOption::ReuseAddr(reuse) if id.state != State::Listening => id.reuse_addr = reuse,
            CmOption::AfOnly(only) if is_early => id.af_only = Some(only),
            CmOption::AckTimeout(_) if id.ps.is_datagram() => {
                return Err(invalid(
                    "optname",
                    "is of connections, and the id is of datagrams",
                ));
            }
            CmOption::AckTimeout(code) => id.ack_timeout = Some(code & 31),
            _ => return Err(wrong_state(id.handle, id.state)),
        }
        Ok(())
    }

    /// The id that listens for a service, at an address of the port where the request arrived.
    pub(super) fn listener(
        &self,
        arrival: Exchange,
        service_id: u64,
        address: IpAddr,
    ) -> Option<u32> {
        let (ps, port) = verbs_roce::mad::service_port(service_id)?;
        let ids = self.bindings.at(PortSpace::from(u32::from(ps)), port);
        let takes = |index: &&u32| {
            let id = self.at(**index);
            let Some(bound) = id.local else { return false };
            let listens = id.state == State::Listening;
            let is_for_it = match bound.ip() {
                // An IPv6 wildcard also takes IPv4, unless the program has forbidden it.
                any if any.is_unspecified() => {
                    bound.is_ipv4() == address.is_ipv4() || bound.is_ipv6() && !id.is_af_only(bound)
                }
                own => own == address,
            };
            let has_port = id.port.is_none_or(|local| local.id == arrival.local.id);
            let is_home = id
                .home
                .is_none_or(|home| home.contains(arrival.local.id.node));
            listens && is_for_it && has_port && is_home
        };
        ids.iter().find(takes).copied()
    }
}
