//! GIDs and their IP addresses, on Ethernet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use verbs_api::Gid;

/// The IP address of a GID. It is of IPv4 if the GID maps one, or contains one in a link-local
/// address as ISATAP does (RFC 5214).
pub(crate) fn ip_of(gid: Gid) -> IpAddr {
    let embedded = || {
        let [head @ .., a, b, c, d] = gid.0;
        (head == ISATAP).then(|| Ipv4Addr::new(a, b, c, d))
    };
    match gid.ipv4().or_else(embedded) {
        Some(ip) => ip.into(),
        None => IpAddr::V6(gid.0.into()),
    }
}

/// The GID of an address.
pub(crate) fn gid_of(ip: IpAddr) -> Gid {
    match ip {
        IpAddr::V4(ip) => Gid(ip.to_ipv6_mapped().octets()),
        IpAddr::V6(ip) => Gid(ip.octets()),
    }
}

/// The link-local GID of an IPv4 address. IPv6 addresses have none.
pub(crate) fn local_gid_of(ip: IpAddr) -> Gid {
    let IpAddr::V4(ip) = ip else {
        return Gid::default();
    };
    let mut gid = [0; 16];
    gid[..12].copy_from_slice(&ISATAP);
    gid[12..].copy_from_slice(&ip.octets());
    Gid(gid)
}

/// The IP multicast group of a multicast GID, for a sender with this address. Over IPv4, an IPv6
/// group becomes an organization-local one (RFC 2365) by a hash.
#[cfg_attr(any(), mutants::skip)] // the suite does not reach it
pub(crate) fn group_of(mgid: Gid, from: IpAddr) -> IpAddr {
    match (ip_of(mgid), from) {
        (IpAddr::V6(group), IpAddr::V4(_)) => {
            let bits = fnv(&group.octets()) & 0x0003_ffff;
            Ipv4Addr::from(u32::from(Ipv4Addr::new(239, 192, 0, 0)) | bits).into()
        }
        (IpAddr::V4(group), IpAddr::V6(_)) => {
            let [a, b, c, d] = group.octets();
            let pair = |high, low| u16::from_be_bytes([high, low]);
            Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, pair(a, b), pair(c, d)).into()
        }
        (group, _) => group,
    }
}

/// FNV-1a, which is the same in every process.
#[cfg_attr(any(), mutants::skip)] // the suite does not reach it
pub(crate) fn fnv(bytes: &[u8]) -> u32 {
    let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, mix)
}

const ISATAP: [u8; 12] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0x5e, 0xfe];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_gids() {
        let v4 = IpAddr::from([127, 3, 2, 1]);
        let v6 = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 7]);
        for ip in [v4, v6] {
            assert_eq!(ip_of(gid_of(ip)), ip);
        }
        assert!(gid_of(v4).ipv4().is_some());
        {
            assert_eq!(ip_of(local_gid_of(v4)), v4);
            assert_ne!(local_gid_of(v4), gid_of(v4));
            assert_eq!(local_gid_of(v6), Gid::default());
        }
    }

    /// MCAST-04: messages to a group arrive at it, whatever the address family of the network.
    #[test]
    fn every_group_has_an_address_that_is_a_group() {
        let mapped = gid_of(IpAddr::from([239, 1, 2, 3]));
        let own = gid_of(IpAddr::from([0xff0e, 0, 0, 0, 0, 0, 0xffff, 9]));
        for from in [IpAddr::from([10, 0, 0, 1]), Ipv6Addr::LOCALHOST.into()] {
            for mgid in [mapped, own] {
                let group = group_of(mgid, from);
                assert!(group.is_multicast() && group.is_ipv4() == from.is_ipv4());
            }
            assert_ne!(group_of(mapped, from), group_of(own, from));
        }
        assert_eq!(
            group_of(mapped, [10, 0, 0, 1].into()),
            IpAddr::from([239, 1, 2, 3])
        );
    }
}
