//! Multicast groups of ids.

use core::net::{IpAddr, SocketAddr};

use verbs_api::cm::{CmEventType, CmId, CmParam, RDMA_UDP_QKEY, UdData};
use verbs_api::{Cause, ErrorKind, Gid, MULTICAST_QPN};

use super::Manager;
use super::host::{Host, Peer};
use super::id::{State, wrong_state};
use crate::address::gid_of;
use crate::device::{Refusal, Result, invalid};

/// A group that an id has joined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joined {
    pub(super) address: IpAddr,
    pub(super) gid: Gid,
    pub(super) lid: u16,
}

impl Manager {
    /// `rdma_join_multicast`
    pub(crate) fn join_multicast(
        &mut self,
        host: Host<'_>,
        id: CmId,
        group: SocketAddr,
        context: u64,
    ) -> Result<()> {
        let index = self.ids.find(id)?;
        let of = self.ids.at_mut(index);
        let may = matches!(of.state, State::Bound | State::AddrResolved);
        let Some(local) = of.port.filter(|_| may) else {
            return Err(wrong_state(id, of.state));
        };
        if !of.ps.is_datagram() {
            return Err(invalid("id", "is of a port space without datagrams"));
        }
        if of
            .local
            .is_some_and(|local| local.is_ipv4() != group.is_ipv4())
        {
            let cause = Cause::Text(format!("{group} is of another family than {id}").into());
            return Err(Refusal::new(NOT_SUPPORTED, cause));
        }
        let gid = gid_of(group.ip());
        let lid = host.group_lid(gid);
        let address = group.ip();
        of.groups.push(Joined { address, gid, lid });
        let mut data = UdData::default();
        data.context = context;
        data.ah_attr = local.ah_attr(Peer { gid, lid });
        (data.qp_num, data.qkey) = (MULTICAST_QPN, RDMA_UDP_QKEY);
        self.raise_with(index, CmEventType::MulticastJoin, 0, CmParam::Ud(data));
        Ok(())
    }

    /// `rdma_leave_multicast`. Returns the group from which to detach the queue pair.
    pub(crate) fn leave_multicast(&mut self, id: CmId, group: SocketAddr) -> Result<(Gid, u16)> {
        let index = self.ids.find(id)?;
        let groups = &mut self.ids.at_mut(index).groups;
        let Some(place) = groups.iter().position(|of| of.address == group.ip()) else {
            let text = format!("{id} has not joined {}", group.ip());
            let kind = ErrorKind::AddressNotAvailable;
            return Err(Refusal::new(kind, Cause::Text(text.into())));
        };
        let joined = groups.remove(place);
        Ok((joined.gid, joined.lid))
    }
}

/// `ENOTSUPP`, which headers for programs do not define.
const NOT_SUPPORTED: ErrorKind = ErrorKind::Os(524);
