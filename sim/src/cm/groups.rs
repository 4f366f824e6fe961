//! Multicast groups of ids.

use core::net::{IpAddr, SocketAddr};

use verbs_api::cm::{CmEventType, CmId, CmParam, RDMA_UDP_QKEY, UdData};
use verbs_api::{AhAttr, Cause, Error, ErrorKind, Gid, MULTICAST_QPN, Result, Verb};

use super::host::Host;
use super::id::{State, wrong_state};
use super::{Manager, invalid};
use crate::address::gid_of;

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
        host: &dyn Host,
        id: CmId,
        group: SocketAddr,
        context: u64,
    ) -> Result<()> {
        let verb = Verb::CmJoinMulticast;
        let index = self.ids.find(verb, id)?;
        let of = self.ids.at_mut(index);
        let may = matches!(of.state, State::Bound | State::AddrResolved);
        let Some(local) = of.port.filter(|_| may) else {
            return Err(wrong_state(verb, id, of.state));
        };
        if !of.ps.is_datagram() {
            return Err(invalid(verb, "id", "is of a port space without datagrams"));
        }
        if of
            .local
            .is_some_and(|local| local.is_ipv4() != group.is_ipv4())
        {
            let cause = Cause::Text(format!("{group} is of another family than {id}").into());
            return Err(Error::new(verb, NOT_SUPPORTED, cause));
        }
        let gid = gid_of(group.ip());
        let lid = host.group_lid(gid);
        of.groups.push(Joined {
            address: group.ip(),
            gid,
            lid,
        });
        let mut data = UdData::default();
        data.context = context;
        data.ah_attr = AhAttr {
            dlid: lid,
            ..AhAttr::global(local.id.port, local.gid_index, gid)
        };
        (data.qp_num, data.qkey) = (MULTICAST_QPN, RDMA_UDP_QKEY);
        self.raise_with(index, CmEventType::MulticastJoin, 0, CmParam::Ud(data));
        Ok(())
    }
}

/// `ENOTSUPP`, which headers for programs do not define.
const NOT_SUPPORTED: ErrorKind = ErrorKind::Os(524);
