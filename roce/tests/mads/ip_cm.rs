//! IP addresses and ports in messages.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use verbs_roce::mad::{IP_CM, IpCm, MadError, service_id, service_port};

use crate::arbitrary::config;

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn headers_are_read_as_they_were_written(
        version in any::<u8>(),
        source_port in any::<u16>(),
        (source, destination) in prop_oneof![
            any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b))),
            any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(a, b)| (IpAddr::from(a), IpAddr::from(b))),
        ],
        behind in any::<[u8; 4]>(),
    ) {
        let header = IpCm { version, source_port, source, destination };
        let mut bytes = header.write().to_vec();
        prop_assert_eq!(IpCm::read(&bytes), Ok(header));
        bytes.extend_from_slice(&behind);
        prop_assert_eq!(IpCm::read(&bytes), Ok(header));
        prop_assert_eq!(IpCm::read(&bytes[..IP_CM - 1]), Err(MadError::Length(IP_CM - 1)));
    }

    #[test]
    fn service_ids_are_ports_of_port_spaces(ps in any::<u16>(), port in any::<u16>(), upper in 1..=u32::MAX) {
        let id = service_id(ps, port);
        prop_assert_eq!(service_port(id), Some((ps, port)));
        prop_assert_eq!(service_port(u64::from(upper) << 32 | id), None);
    }
}

#[test]
fn addresses_of_ipv4_stand_behind_zeros() {
    let header = IpCm {
        version: 0,
        source_port: 0x1234,
        source: [10, 1, 0, 2].into(),
        destination: [10, 1, 0, 1].into(),
    };
    let mut expected = [0; IP_CM];
    expected[1..4].copy_from_slice(&[0x40, 0x12, 0x34]);
    expected[16..20].copy_from_slice(&[10, 1, 0, 2]);
    expected[32..].copy_from_slice(&[10, 1, 0, 1]);
    assert_eq!(header.write(), expected);
}

#[test]
fn addresses_of_two_families_are_those_of_ipv6() {
    let (v4, v6) = (Ipv4Addr::new(10, 1, 0, 2), Ipv6Addr::LOCALHOST);
    let header = IpCm {
        version: 0,
        source_port: 1,
        source: v4.into(),
        destination: v6.into(),
    };
    let expected = IpCm {
        source: v4.to_ipv6_mapped().into(),
        ..header
    };
    assert_eq!(IpCm::read(&header.write()), Ok(expected));
}

#[test]
fn other_versions_of_ip_are_told() {
    let mut bytes = [0; IP_CM];
    for version in (0..16).filter(|version| ![4, 6].contains(version)) {
        bytes[1] = version << 4 | 4;
        assert_eq!(IpCm::read(&bytes), Err(MadError::IpVersion(version)));
    }
}

#[test]
fn service_id_of_rping_is_as_captured() {
    assert_eq!(service_id(0x0106, 7174), 0x0000_0000_0106_1c06);
}
