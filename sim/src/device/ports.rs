//! The ports of a device: their tables, and the routes of addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use verbs_api::behavior::Check;
use verbs_api::profile::Reported;
use verbs_api::{
    AhAttr, Cause, ErrorKind, Gid, GidEntry, GidType, LinkLayer, Mtu, PortAttr, PortState,
};

use super::check::{in_range, invalid};
use super::refusal::{Refusal, Result};
use crate::address::{gid_of, local_gid_of};
use crate::packet::{NetworkType, PortId, Route};
use crate::subnet::{self, Subnet};

/// The GIDs of a fabric and the ports that have them.
pub(crate) type Gids = BTreeMap<Gid, PortId>;

/// Why no other process has the destination of an address vector. `None` if one may have it.
pub(crate) type Outside = Option<ErrorKind>;

/// The ports of a device, and what it knows of other ports.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    node: u32,
    ports: Vec<Port>,
    reported: Reported,
    pub(super) gids: Arc<Gids>,
    /// The LIDs, on InfiniBand.
    pub(crate) subnet: Option<Subnet>,
    /// Whether each GID is in the tables twice, first for RoCE version 1.
    roce_v1: bool,
    /// Whether addresses that no port here has belong to other processes.
    pub(crate) network: bool,
    /// The number of this process among those that share its addresses.
    pub(crate) tenant: Option<u8>,
}

/// A port of the device.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) gids: Vec<Gid>,
    pub(crate) pkeys: Vec<u16>,
    pub(crate) up: bool,
    /// Whether it has ever been down.
    pub(crate) was_down: bool,
    pub(crate) mtu: Mtu,
    pub(crate) bad_pkeys: u32,
    pub(crate) bad_qkeys: u32,
}

/// The largest MTU of every port, and its initial active MTU.
pub(crate) const PORT_MTU: Mtu = Mtu::Mtu4096;
/// The bytes of [`PORT_MTU`].
pub(crate) const PORT_MTU_BYTES: u32 = 4096;
/// The length of the longest message, in bytes.
pub(crate) const MAX_MSG_SZ: u32 = 1 << 31;
const DEFAULT_PKEY: u16 = 0xffff;

impl Port {
    pub(super) fn new(id: PortId) -> Self {
        Self {
            gids: port_gids(id, false).into(),
            pkeys: vec![DEFAULT_PKEY],
            up: true,
            was_down: false,
            mtu: PORT_MTU,
            bad_pkeys: 0,
            bad_qkeys: 0,
        }
    }
}

/// The number of bits of a QP number below those of the tenant: the slot of the queue pair.
pub(crate) const QP_INDEX_BITS: u32 = 17;

/// The tenant that a QP number belongs to. QPs 0 and 1, and the number of all multicast QPs, belong
/// to no tenant.
fn tenant_of(qp_num: u32) -> Option<u8> {
    (2..0xff_ffff)
        .contains(&qp_num)
        .then_some((qp_num >> QP_INDEX_BITS) as u8)
}

impl Ports {
    pub(super) fn new(node: u32, ports: u8, gids: Arc<Gids>) -> Self {
        let port = |port| Port::new(PortId { node, port });
        Self {
            node,
            ports: (1..=ports).map(port).collect(),
            reported: Reported::SPEC,
            gids,
            subnet: None,
            roce_v1: false,
            network: false,
            tenant: None,
        }
    }

    /// Sets what the ports report, and gives them their table of P_Keys.
    pub(super) fn report(&mut self, reported: Reported) {
        self.reported = reported;
        for port in &mut self.ports {
            port.pkeys.resize(usize::from(reported.pkey_tbl_len), 0);
        }
    }

    /// Puts the device on InfiniBand.
    pub(crate) fn join(&mut self, subnet: Subnet) {
        self.subnet = Some(subnet);
        let node = self.node;
        for (port, own) in (1..).zip(&mut self.ports) {
            own.gids = port_gids(PortId { node, port }, true).into();
        }
    }

    /// Adds version 1 of RoCE to the device.
    pub(crate) fn offer_roce_v1(&mut self) {
        self.roce_v1 = true;
        for port in &mut self.ports {
            port.gids = twice(&port.gids);
        }
    }

    fn id(&self, port: u8) -> PortId {
        let node = self.node;
        PortId { node, port }
    }

    /// The network of the GID at an index.
    fn network_type(&self, index: usize) -> NetworkType {
        match self.subnet {
            Some(_) => NetworkType::InfiniBand,
            None if self.roce_v1 && index.is_multiple_of(2) => NetworkType::RoceV1,
            None => NetworkType::RoceV2,
        }
    }

    /// Puts the device on a network. Its ports have no addresses yet.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn join_network(&mut self) {
        self.network = true;
        for port in &mut self.ports {
            port.gids.fill(Gid::default());
        }
    }

    /// Whether a QP number belongs to a process that shares an address with this one.
    pub(crate) fn is_of_other_tenant(&self, qp_num: u32) -> bool {
        let of_number = self.tenant.zip(tenant_of(qp_num));
        of_number.is_some_and(|(own, of)| own != of)
    }

    /// The destination of a packet for a QP number, if its address leads to `to`. If another
    /// process has the number, it shares the address.
    #[inline(always)]
    pub(crate) fn with_qp(&self, to: Option<PortId>, qp_num: u32) -> Option<PortId> {
        // A shared address does not tell the process, but the number does.
        if to.is_some() && self.is_of_other_tenant(qp_num) {
            return Some(PortId::OUTSIDE);
        }
        to
    }

    /// Gives a port an address, through which IP packets of `mtu` bytes can be sent. Returns the
    /// new table of all GIDs.
    pub(crate) fn set_address(&mut self, port: u8, address: IpAddr, mtu: usize) -> Arc<Gids> {
        /// The bytes of all headers that a packet may have.
        const HEADERS: usize = 88;
        let mut own = match self.subnet {
            Some(_) => vec![self.gid_of(address), Gid::default()],
            None => vec![self.gid_of(address), local_gid_of(address)],
        };
        let mut gids = Gids::clone(&self.gids);
        gids.extend(own.iter().map(|gid| (*gid, self.id(port))));
        // An empty entry belongs to no port.
        gids.remove(&Gid::default());
        let has_room = |bytes| bytes as usize + HEADERS <= mtu;
        let fits = |of: &Mtu| of.bytes().is_some_and(has_room);
        if self.roce_v1 {
            // Link-local addresses come first, if there are some.
            own.sort_by_key(|gid| (*gid == Gid::default(), gid.ipv4().is_some()));
            own = twice(&own);
        }
        let all = [Mtu::Mtu4096, Mtu::Mtu2048, Mtu::Mtu1024, Mtu::Mtu512];
        let port = self.at_mut(port);
        port.mtu = all.into_iter().find(fits).unwrap_or(Mtu::Mtu256);
        port.gids = own;
        Arc::new(gids)
    }

    /// Refuses the number of a port that does not exist.
    pub(crate) fn check(&self, port: u8) -> Result<&Port> {
        let last = self.ports.len() as i64;
        in_range("port_num", i64::from(port), 1, last)?;
        Ok(self.at(port))
    }

    /// A port by a number that has been checked.
    pub(crate) fn at(&self, port: u8) -> &Port {
        &self.ports[usize::from(port) - 1]
    }

    pub(crate) fn at_mut(&mut self, port: u8) -> &mut Port {
        &mut self.ports[usize::from(port) - 1]
    }

    /// The P_Key at an index of a port's table.
    #[inline(always)]
    pub(crate) fn pkey(&self, port: u8, index: u16) -> u16 {
        let pkeys = &self.at(port).pkeys;
        let pkey = pkeys.get(usize::from(index));
        pkey.copied().unwrap_or(DEFAULT_PKEY)
    }

    /// The result of `ibv_query_port`.
    pub(crate) fn query(&self, port: u8) -> Result<PortAttr> {
        let found = self.check(port)?;
        let mut attr = PortAttr::default();
        attr.state = if found.up {
            PortState::Active
        } else {
            PortState::Down
        };
        (attr.max_mtu, attr.active_mtu) = (PORT_MTU, found.mtu);
        attr.gid_tbl_len = found.gids.len() as u32;
        attr.pkey_tbl_len = found.pkeys.len() as u16;
        attr.max_msg_sz = self.reported.max_msg_sz;
        attr.lid = self.lid(port);
        attr.sm_lid = self.subnet.map_or(0, |_| subnet::MANAGER);
        attr.link_layer = match self.subnet {
            Some(_) => LinkLayer::InfiniBand,
            None => LinkLayer::Ethernet,
        };
        attr.active_width = self.reported.active_width;
        attr.active_speed = self.reported.active_speed;
        attr.grh_required = self.subnet.is_none();
        attr.bad_pkey_cntr = found.bad_pkeys;
        attr.qkey_viol_cntr = found.bad_qkeys;
        Ok(attr)
    }

    /// The LID of a port of this device. 0 on Ethernet.
    pub(crate) fn lid(&self, port: u8) -> u16 {
        self.lid_of(self.id(port), self.at(port).gids[0])
    }

    /// The LID of any port that has this GID. 0 on Ethernet.
    pub(crate) fn lid_of(&self, port: PortId, gid: Gid) -> u16 {
        self.subnet.map_or(0, |subnet| subnet.lid(port, gid))
    }

    /// The GID of the port with an address of the network.
    pub(crate) fn gid_of(&self, address: IpAddr) -> Gid {
        match self.subnet {
            // An InfiniBand port has a link-local GID instead of an IP address.
            Some(_) => local_gid_of(address),
            None => gid_of(address),
        }
    }

    /// The GID at an index of a port's table.
    pub(crate) fn gid(&self, port: u8, index: u32) -> Result<Gid> {
        let gids = &self.check(port)?.gids;
        in_range("index", index.into(), 0, gids.len() as i64 - 1)?;
        Ok(gids[index as usize])
    }

    /// An entry of a GID table that is not empty.
    pub(super) fn entry(&self, port: u8, gid_index: u32, gid: Gid) -> Option<GidEntry> {
        let mut entry = GidEntry::default();
        (entry.gid, entry.gid_index, entry.port_num) = (gid, gid_index, port.into());
        entry.gid_type = match self.network_type(gid_index as usize) {
            NetworkType::InfiniBand => GidType::Ib,
            NetworkType::RoceV1 => GidType::RoceV1,
            NetworkType::RoceV2 => GidType::RoceV2,
        };
        (gid != Gid::default()).then_some(entry)
    }

    /// All entries that are not empty.
    pub(super) fn entries(&self) -> Vec<GidEntry> {
        let of_port = |(port, found): (u8, &Port)| {
            let gids = (0..).zip(found.gids.clone());
            gids.filter_map(move |(index, gid)| self.entry(port, index, gid))
        };
        (1..).zip(&self.ports).flat_map(of_port).collect()
    }

    /// Puts a GID into the table of a port, for both versions of RoCE (ASYNC-20, DEV-18). Returns
    /// the new table of all GIDs of the fabric.
    pub(super) fn set_gid(&mut self, port: u8, index: u32, gid: Gid) -> Result<Arc<Gids>> {
        let old = self.gid(port, index)?;
        // Two ports with one address would make routes ambiguous.
        if gid != old && self.gids.contains_key(&gid) {
            return Err(invalid("gid", "is in another entry of the fabric"));
        }
        let mut gids = Gids::clone(&self.gids);
        gids.remove(&old);
        if gid != Gid::default() {
            gids.insert(gid, self.id(port));
        }
        let index = index as usize;
        // Both versions of a GID are neighbors in the table.
        let entries = if self.roce_v1 {
            index & !1..=index | 1
        } else {
            index..=index
        };
        self.at_mut(port).gids[entries].fill(gid);
        Ok(Arc::new(gids))
    }

    /// The port that has a GID.
    pub(crate) fn port_of(&self, gid: &Gid) -> Option<PortId> {
        self.gids.get(gid).copied()
    }

    /// Checks an address vector and finds its destination (AH-01, QP-STATE-29).
    pub(crate) fn route(&self, attr: &AhAttr) -> Result<Route> {
        let port = self.check(attr.port_num)?;
        in_range("sl", i64::from(attr.sl), 0, 15)?;
        let (from, to) = (self.id(attr.port_num), self.destination(attr));
        // Only InfiniBand can address without a GRH.
        let Some(grh) = attr.grh else {
            if self.subnet.is_none() {
                let problem = "must be global: the port requires a GRH";
                return Err(invalid("ah_attr", problem));
            }
            let dgid = self.subnet.and_then(|subnet| subnet.gid(attr.dlid));
            return Ok(Route {
                from,
                to,
                sgid: port.gids[0],
                dgid: dgid.unwrap_or_default(),
                network_type: NetworkType::InfiniBand,
                ..Route::default()
            });
        };
        let last = port.gids.len() as i64 - 1;
        in_range("sgid_index", i64::from(grh.sgid_index), 0, last)?;
        // The port may get its address later.
        if self.network && port.gids[usize::from(grh.sgid_index)] == Gid::default() {
            return Err(invalid("sgid_index", "is of an empty entry"));
        }
        Ok(Route {
            from,
            to,
            sgid: port.gids[usize::from(grh.sgid_index)],
            dgid: grh.dgid,
            global: true,
            network_type: self.network_type(grh.sgid_index.into()),
            ..Route::default()
        })
    }

    /// Checks an address vector like [`route`](Self::route), and refuses a GID that no device has
    /// (AH-07). `outside` is why no other process has it.
    pub(crate) fn resolve(
        &self,
        attr: &AhAttr,
        unowned_gid: Check,
        outside: Outside,
    ) -> Result<Route> {
        let route = self.route(attr)?;
        // InfiniBand does not resolve addresses. In version 1 of RoCE a link-local address contains
        // the MAC address, which Linux uses directly.
        let is_resolved = self.subnet.is_none()
            && !route.dgid.is_multicast()
            && !(route.network_type == NetworkType::RoceV1 && route.dgid.is_link_local());
        // The kinds are those of the kernel's address resolution.
        let unreachable = match route.to {
            None => Some(ErrorKind::TimedOut),
            Some(to) if to.is_outside() => outside,
            Some(_) => None,
        };
        match unreachable.filter(|_| is_resolved) {
            // Linux does not resolve the address that stands for none.
            Some(_) if unowned_gid == Check::Refused && route.dgid == Gid::default() => {
                Err(invalid("dgid", "is empty"))
            }
            Some(kind) if unowned_gid == Check::Refused => {
                let cause = Cause::UnownedGid { gid: route.dgid };
                Err(Refusal::new(kind, cause))
            }
            unreachable => Ok(Route {
                was_unowned: unreachable.is_some(),
                ..route
            }),
        }
    }

    /// Refuses a LID that no group can have (LID-08). On Ethernet groups have no LIDs.
    pub(crate) fn check_group_lid(&self, lid: u16) -> Result<()> {
        match self.subnet {
            Some(_) if !subnet::is_multicast(lid) => Err(invalid("lid", "is of no group")),
            _ => Ok(()),
        }
    }

    /// Whether an address leads to a group.
    pub(crate) fn is_of_group(&self, attr: &AhAttr) -> bool {
        (self.subnet.is_none() || subnet::is_multicast(attr.dlid))
            && attr.grh.is_some_and(|grh| grh.dgid.is_multicast())
    }

    /// The port to which an address leads. On InfiniBand that is the port of the LID, which accepts
    /// only its own GID.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn destination(&self, attr: &AhAttr) -> Option<PortId> {
        let of_gid = attr.grh.map(|grh| self.port_of(&grh.dgid));
        match (self.subnet, of_gid) {
            // On a network an unknown address may belong to another process.
            (None, of_gid) => {
                let outside = (self.network && of_gid.is_some()).then_some(PortId::OUTSIDE);
                of_gid.flatten().or(outside)
            }
            (Some(subnet), of_gid) => match subnet.gid(attr.dlid) {
                Some(gid) => {
                    let is_its = attr.grh.is_none_or(|grh| grh.dgid == gid);
                    is_its.then(|| self.port_of(&gid).unwrap_or(PortId::OUTSIDE))
                }
                None => {
                    let to = subnet.port(attr.dlid);
                    to.filter(|_| of_gid.is_none_or(|of_gid| of_gid == to))
                }
            },
        }
    }
}

/// The GIDs of a port: a link-local one, and on Ethernet one that maps an IPv4 address.
fn port_gids(PortId { node, port }: PortId, infiniband: bool) -> [Gid; 2] {
    let [high, low] = (node as u16).to_be_bytes();
    let mut local = [0; 16];
    local[..2].copy_from_slice(&[0xfe, 0x80]);
    local[8..].copy_from_slice(&[0x02, 0, 0, 0xff, 0xfe, high, low, port]);
    if infiniband {
        return [Gid(local), Gid::default()];
    }
    let mut mapped = [0; 16];
    mapped[10..12].copy_from_slice(&[0xff, 0xff]);
    mapped[12..].copy_from_slice(&[10, high, low, port]);
    [Gid(local), Gid(mapped)]
}

/// A table with each GID twice.
fn twice(gids: &[Gid]) -> Vec<Gid> {
    gids.iter().flat_map(|gid| [*gid; 2]).collect()
}

/// All GIDs of a fabric of `nodes` nodes with `ports` ports each.
pub(crate) fn gids(nodes: u32, ports: u8, infiniband: bool) -> Gids {
    let ids = (0..nodes).flat_map(|node| (1..=ports).map(move |port| PortId { node, port }));
    ids.flat_map(|id| port_gids(id, infiniband).map(|gid| (gid, id)))
        .filter(|(gid, _)| *gid != Gid::default())
        .collect()
}

/// The bit of a P_Key that marks a full member of the partition.
const FULL_MEMBER: u16 = 1 << 15;

/// Whether packets pass between two P_Keys (IBA 10.9.3): they have the same partition, and at least
/// one is a full member. Partition 0 does not exist: an empty entry of a table matches nothing.
pub(crate) fn pkeys_match(a: u16, b: u16) -> bool {
    let (a_partition, b_partition) = (a & !FULL_MEMBER, b & !FULL_MEMBER);
    a_partition != 0 && a_partition == b_partition && (a | b) & FULL_MEMBER != 0
}

#[cfg(test)]
mod tests {
    use super::pkeys_match;

    /// TMR-15: limited members of a partition reach full ones only.
    #[test]
    fn one_of_two_is_a_full_member() {
        assert!(pkeys_match(0xffff, 0xffff));
        assert!(pkeys_match(0x8001, 0x0001));
        assert!(!pkeys_match(0x0001, 0x0001));
        assert!(!pkeys_match(0x8001, 0x8002));
        assert!(!pkeys_match(0x8000, 0x8000));
    }
}
