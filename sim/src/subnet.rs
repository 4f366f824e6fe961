//! An InfiniBand fabric: the LIDs of ports.

use std::net::{IpAddr, Ipv4Addr};

use verbs_api::Gid;

use crate::address::{ip_of, local_gid_of};
use crate::packet::PortId;

/// The number of unicast LIDs, which limits the number of ports.
pub(crate) const MAX_PORTS: u32 = 0xbfff;

/// The LID of the subnet manager: that of the first port. It answers no queries.
pub(crate) const MANAGER: u16 = 1;

/// The bits of a loopback address that number the ports of its network.
pub(crate) const HOST_BITS: u32 = 12;

/// Whether a LID is for groups.
pub(crate) fn is_multicast(lid: u16) -> bool {
    (0xc000..0xffff).contains(&lid)
}

/// The LIDs of a fabric.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subnet {
    /// LIDs within one process: 1 for the first port of the first node, and so on.
    Counted { nodes: u32, ports: u8 },
    /// LIDs of all processes on a loopback network: the last bits of the ports' addresses. The
    /// value is the address with all of these bits 0, which no port has.
    Addressed(Ipv4Addr),
}

impl Subnet {
    /// The LID of a port that has this GID.
    pub(crate) fn lid(self, PortId { node, port }: PortId, gid: Gid) -> u16 {
        match (self, ip_of(gid)) {
            (Self::Counted { ports, .. }, _) => (node * u32::from(ports) + u32::from(port)) as u16,
            (Self::Addressed(_), IpAddr::V4(address)) => {
                (u32::from(address) & ((1 << HOST_BITS) - 1)) as u16
            }
            // Its port has no address yet.
            (Self::Addressed(_), IpAddr::V6(_)) => 0,
        }
    }

    /// The port with a LID, if LIDs are counted.
    pub(crate) fn port(self, lid: u16) -> Option<PortId> {
        let Self::Counted { nodes, ports } = self else {
            return None;
        };
        let number = u32::from(lid).checked_sub(1)?;
        let ports = u32::from(ports);
        let (node, port) = (number / ports, (number % ports) as u8 + 1);
        (node < nodes).then_some(PortId { node, port })
    }

    /// The GID of the port with a LID, if LIDs are those of addresses.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn gid(self, lid: u16) -> Option<Gid> {
        let Self::Addressed(first) = self else {
            return None;
        };
        // The last address of a network is for broadcasts.
        let is_of_port = (1..(1 << HOST_BITS) - 1).contains(&lid);
        let address = Ipv4Addr::from(u32::from(first) | u32::from(lid));
        is_of_port.then(|| local_gid_of(address.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_has_a_lid_of_its_own() {
        let subnet = Subnet::Counted { nodes: 3, ports: 2 };
        let ids = (0..3).flat_map(|node| (1..=2).map(move |port| PortId { node, port }));
        for (lid, id) in (1..).zip(ids) {
            let found = (subnet.lid(id, Gid::default()), subnet.port(lid));
            assert_eq!(found, (lid, Some(id)));
        }
        for none in [0, 7, 8, 0xbfff, 0xc000, 0xffff] {
            assert_eq!(subnet.port(none), None);
        }
    }

    #[test]
    fn a_full_subnet_has_no_lid_of_groups() {
        let subnet = Subnet::Counted {
            nodes: MAX_PORTS,
            ports: 1,
        };
        let last = PortId {
            node: MAX_PORTS - 1,
            port: 1,
        };
        assert_eq!(
            (subnet.lid(last, Gid::default()), subnet.port(0xbfff)),
            (0xbfff, Some(last))
        );
        assert_eq!(subnet.port(0xc000), None);
        let groups = [0xbfff, 0xc000, 0xfffe, 0xffff].map(is_multicast);
        assert_eq!(groups, [false, true, true, false]);
    }

    #[test]
    fn a_lid_of_a_network_leads_to_the_address_that_has_it() {
        let subnet = Subnet::Addressed(Ipv4Addr::new(127, 2, 0x80, 0));
        let any = PortId::default();
        for lid in [1, 0x123, 0xffe] {
            let gid = subnet.gid(lid).unwrap();
            let [high, low] = lid.to_be_bytes();
            assert_eq!(ip_of(gid), IpAddr::from([127, 2, 0x80 | high, low]));
            assert_eq!((subnet.lid(any, gid), subnet.port(lid)), (lid, None));
        }
        for none in [0, 0xfff, 0x1000, 0xc000, 0xffff] {
            assert_eq!(subnet.gid(none), None);
        }
        assert_eq!(subnet.lid(any, Gid::default()), 0);
    }
}
