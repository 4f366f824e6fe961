//! The identification of IPv4, which a socket does not tell.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use verbs_api::lab::PacketOpcode;
use verbs_roce::{Bth, Extended, Frame, Ip, Ipv4, Ipv6};

fn frame(ip: Ip) -> Frame<'static> {
    let bth = Bth::new(PacketOpcode::UcSendOnly, 0x11, 1);
    Frame::new(ip, 0xc000, bth, Extended::NONE, b"some bytes")
}

/// Each identification has an ICRC of its own and a correct header checksum. All other ICRCs are
/// refused.
#[test]
fn just_the_icrcs_of_some_identification_are_taken() {
    let told = Ipv4::new([200, 1, 0, 1].into(), [200, 1, 0, 2].into());
    let mut identifications = HashMap::new();
    let mut packet = Vec::new();
    for identification in 0..=u16::MAX {
        packet.clear();
        let ip = Ipv4 {
            identification,
            ..told
        };
        frame(ip.into()).write(&mut packet).unwrap();
        let icrc = *packet.last_chunk::<4>().unwrap();
        assert_eq!(identifications.insert(icrc, identification), None);

        // The sum of a header with its checksum is a multiple of 0xffff (RFC 1071). Carries can
        // carry again: at these addresses some do.
        let words = packet[..20].chunks(2);
        let sum: u32 = words
            .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]))
            .sum();
        assert_eq!(sum % 0xffff, 0, "identification {identification:#x}");
    }

    let icrc = packet.len() - 4;
    let others = (0..20_000u32).map(|n| n.wrapping_mul(0x9e37_79b1).to_le_bytes());
    let right = identifications.keys().copied().step_by(16);
    for end in others.chain(right) {
        packet[icrc..].copy_from_slice(&end);
        let received = Frame::read_udp(told.into(), 0xc000, &packet[28..]).unwrap();
        let found = received.verify().ok().map(|frame| frame.ip);
        let expected = identifications.get(&end).map(|identification| {
            Ip::V4(Ipv4 {
                identification: *identification,
                ..told
            })
        });
        assert_eq!(found, expected);
    }
}

/// It is found for packets of every length too.
#[test]
fn identifications_are_found_at_any_distance() {
    let bytes = vec![0xa5; 65_535];
    let ip = Ipv4 {
        identification: 0xbeef,
        ..Ipv4::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST)
    };
    let lengths = (0..64).chain((6..16).map(|bit| 1 << bit)).chain([65_484]);
    for length in lengths {
        let frame = Frame {
            payload: &bytes[..length],
            ..frame(ip.into())
        };
        let mut udp_payload = Vec::new();
        frame.write_udp(&mut udp_payload).unwrap();
        let received = Frame::read_udp(ip.into(), 0xc000, &udp_payload).unwrap();
        assert_eq!(received.verify(), Ok(frame), "{length} bytes");
    }
}

/// Over IPv6, which has no identification, the check is complete. Only the 20 bits of a flow label
/// count.
#[test]
fn ipv6_has_no_identification() {
    let ip = Ipv6::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
    let mut udp_payload = Vec::new();
    frame(ip.into()).write_udp(&mut udp_payload).unwrap();
    let told = |flow_label| Ip::V6(Ipv6 { flow_label, ..ip });
    let received = Frame::read_udp(told(u32::MAX), 0xc000, &udp_payload).unwrap();
    assert_eq!(received.verify(), Ok(frame(told(0xf_ffff))));
    *udp_payload.last_mut().unwrap() ^= 1;
    let received = Frame::read_udp(ip.into(), 0xc000, &udp_payload).unwrap();
    assert!(received.verify().is_err());
}
