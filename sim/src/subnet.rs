//! An InfiniBand fabric: the LIDs of ports.

use crate::packet::PortId;

/// The number of unicast LIDs, which limits the number of ports.
pub(crate) const MAX_PORTS: u32 = 0xbfff;

/// The LID of the subnet manager: that of the first port. It answers no queries.
pub(crate) const MANAGER: u16 = 1;

/// Whether a LID is for groups.
pub(crate) fn is_multicast(lid: u16) -> bool {
    (0xc000..0xffff).contains(&lid)
}

/// The LIDs of a fabric: 1 for the first port of the first node, and so on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subnet {
    pub(crate) nodes: u32,
    pub(crate) ports: u8,
}

impl Subnet {
    /// The LID of a port.
    pub(crate) fn lid(self, PortId { node, port }: PortId) -> u16 {
        (node * u32::from(self.ports) + u32::from(port)) as u16
    }

    /// The port with a LID.
    pub(crate) fn port(self, lid: u16) -> Option<PortId> {
        let number = u32::from(lid).checked_sub(1)?;
        let ports = u32::from(self.ports);
        let (node, port) = (number / ports, (number % ports) as u8 + 1);
        (node < self.nodes).then_some(PortId { node, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_has_a_lid_of_its_own() {
        let subnet = Subnet { nodes: 3, ports: 2 };
        let ids = (0..3).flat_map(|node| (1..=2).map(move |port| PortId { node, port }));
        for (lid, id) in (1..).zip(ids) {
            assert_eq!((subnet.lid(id), subnet.port(lid)), (lid, Some(id)));
        }
        for none in [0, 7, 8, 0xbfff, 0xc000, 0xffff] {
            assert_eq!(subnet.port(none), None);
        }
    }

    #[test]
    fn a_full_subnet_has_no_lid_of_groups() {
        let subnet = Subnet {
            nodes: MAX_PORTS,
            ports: 1,
        };
        let last = PortId {
            node: MAX_PORTS - 1,
            port: 1,
        };
        assert_eq!(
            (subnet.lid(last), subnet.port(0xbfff)),
            (0xbfff, Some(last))
        );
        assert_eq!(subnet.port(0xc000), None);
        let groups = [0xbfff, 0xc000, 0xfffe, 0xffff].map(is_multicast);
        assert_eq!(groups, [false, true, true, false]);
    }
}
