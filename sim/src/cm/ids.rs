//! All ids: lookups, and calls on one id alone.

use core::net::{IpAddr, SocketAddr};
use core::ops::{Deref, DerefMut};

use verbs_api::cm::{CmId, CmOption, ConnParam, PortSpace, RDMA_MAX_RESP_RES, private_data};
use verbs_api::table::Table;
use verbs_api::{BadHandle, Cause, Error, ErrorKind, Gid, Handle, Object, Result, Verb};

use super::Arrival;
use super::bind::Bindings;
use super::conn::{Conn, Phase};
use super::host::Host;
use super::id::{Id, OwnQp, ReadEvent, State, wrong_state};
use super::params::check_reads;
use crate::cm::refused::{bad_handle, invalid};
use crate::rng::Random;

/// The ids.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    table: Table<Id>,
    pub(super) bindings: Bindings,
    /// The number of listeners.
    pub(super) listening: u32,
    pub(super) random: Random,
}

impl Deref for Ids {
    type Target = Table<Id>;

    fn deref(&self) -> &Table<Id> {
        &self.table
    }
}

impl DerefMut for Ids {
    fn deref_mut(&mut self) -> &mut Table<Id> {
        &mut self.table
    }
}

impl Ids {
    pub(super) fn new(random: Random) -> Self {
        Self {
            table: Table::default(),
            bindings: Bindings::default(),
            listening: 0,
            random,
        }
    }

    pub(super) fn find(&self, verb: Verb, id: CmId) -> Result<u32> {
        let found = self.table.get(id.index(), id.generation());
        found.map_err(|problem: BadHandle| bad_handle(verb, Object::CmId, problem))?;
        Ok(id.index())
    }

    /// The node of an id.
    pub(crate) fn node_of(&self, id: CmId) -> Option<u32> {
        let found = self.table.get(id.index(), id.generation()).ok()?;
        found.port.map(|local| local.id.node)
    }

    /// Events of an id that were read but not acknowledged: their number, and the last one.
    pub(crate) fn unacknowledged(&self, id: CmId) -> Option<(u32, Option<ReadEvent>)> {
        let index = self.find(Verb::CmDestroyId, id).ok()?;
        let id = self.at(index);
        (id.unacked > 0).then_some((id.unacked, id.last_read))
    }

    /// Sets or removes the queue pair of an id.
    pub(crate) fn set_qp(&mut self, verb: Verb, id: CmId, qp: Option<OwnQp>) -> Result<()> {
        let index = self.find(verb, id)?;
        self.at_mut(index).qp = qp;
        Ok(())
    }

    /// The queue pair of an id.
    pub(crate) fn qp_of(&self, verb: Verb, id: CmId) -> Result<Option<OwnQp>> {
        Ok(self.at(self.find(verb, id)?).qp)
    }

    /// `rdma_set_option`
    pub(crate) fn set_option(&mut self, id: CmId, option: CmOption) -> Result<()> {
        let verb = Verb::CmSetOption;
        let index = self.find(verb, id)?;
        let id = self.at_mut(index);
        let is_early = matches!(id.state, State::Idle | State::Bound);
        match option {
            CmOption::Tos(tos) => id.tos = tos,
            CmOption::ReuseAddr(reuse) if id.state != State::Listening => id.reuse_addr = reuse,
            CmOption::AfOnly(only) if is_early => id.af_only = Some(only),
            CmOption::AckTimeout(_) if id.ps.is_datagram() => {
                return Err(invalid(
                    verb,
                    "optname",
                    "is of connections, and the id is of datagrams",
                ));
            }
            CmOption::AckTimeout(code) => id.ack_timeout = Some(code & 31),
            _ => return Err(wrong_state(verb, id.handle, id.state)),
        }
        Ok(())
    }

    /// The id that listens for a service, at an address of the port where the request arrived.
    pub(super) fn listener(
        &self,
        arrival: Arrival,
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
            let has_port = id.port.is_none_or(|local| local.id == arrival.to.id);
            listens && is_for_it && has_port
        };
        ids.iter().find(takes).copied()
    }

    /// The checks of `rdma_accept`. Returns the room for private data.
    pub(crate) fn check_accept(
        &self,
        host: &dyn Host,
        id: CmId,
        param: &ConnParam<'_>,
    ) -> Result<usize> {
        let verb = Verb::CmAccept;
        let of = self.at(self.find(verb, id)?);
        let conn = of.conn.as_ref().filter(|_| of.state == State::Connected);
        let phase = conn.map(|conn| (conn.phase, conn.from.id.node));
        let (room, node) = match phase {
            Some((Phase::ReqReceived, node)) => (private_data::REP, node),
            Some((Phase::SidrReqReceived, node)) => (private_data::SIDR_REP, node),
            _ => return Err(wrong_state(verb, id, of.state)),
        };
        if !of.ps.is_datagram() {
            check_reads(verb, param, host.reads(node))?;
        }
        Ok(room)
    }

    /// Sets the limits of reads for the queue pair of a request, before it is moved to RTR.
    pub(crate) fn settle_reads(&mut self, host: &dyn Host, id: CmId, param: &ConnParam<'_>) {
        let Some(conn) = self.conn_mut(id) else {
            return;
        };
        let limits = host.reads(conn.from.id.node);
        let settle = |given: u8, asked: u8, most: u8| match given {
            // The program leaves the value to the request.
            RDMA_MAX_RESP_RES => asked.min(most),
            given => given,
        };
        conn.responder_resources = settle(
            param.responder_resources,
            conn.responder_resources,
            limits.responder,
        );
        conn.initiator_depth = settle(
            param.initiator_depth,
            conn.initiator_depth,
            limits.initiator,
        );
    }

    /// Refuses to end a connection that never began.
    pub(crate) fn check_connected(&self, verb: Verb, id: CmId) -> Result<()> {
        let of = self.at(self.find(verb, id)?);
        match (&of.conn, of.state) {
            // No messages come for a listener, so the call has no effect.
            (Some(_), _) | (None, State::Listening) => Ok(()),
            (None, State::Removed) => Err(Error::new(verb, NO_SUCH_DEVICE, Cause::Unspecified)),
            (None, state) => Err(wrong_state(verb, id, state)),
        }
    }

    fn conn_mut(&mut self, id: CmId) -> Option<&mut Conn> {
        let index = self.find(Verb::CmAccept, id).ok()?;
        self.at_mut(index).conn.as_deref_mut()
    }

    /// `rdma_leave_multicast`. Returns the group from which to detach the queue pair.
    pub(crate) fn leave_multicast(&mut self, id: CmId, group: SocketAddr) -> Result<(Gid, u16)> {
        let verb = Verb::CmLeaveMulticast;
        let index = self.find(verb, id)?;
        let groups = &mut self.at_mut(index).groups;
        let joined = groups.iter().position(|of| of.address == group.ip());
        let Some(joined) = joined else {
            let text = format!("{id} has not joined {}", group.ip());
            let kind = ErrorKind::AddressNotAvailable;
            return Err(Error::new(verb, kind, Cause::Text(text.into())));
        };
        let joined = groups.remove(joined);
        Ok((joined.gid, joined.lid))
    }
}

/// `ENXIO`
const NO_SUCH_DEVICE: ErrorKind = ErrorKind::Os(6);
