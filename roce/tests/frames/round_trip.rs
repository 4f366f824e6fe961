//! What is written is read as it was.

use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

use verbs_api::lab::PacketOpcode;
use verbs_roce::{Bth, Extended, Frame, Ip, Ipv4, Ipv6, icrc};

use crate::arbitrary::{config, frames};

proptest! {
    #![proptest_config(config(2000))]

    /// Frames are the same when they are read, and bytes when they are written again.
    #[test]
    fn frames_are_read_as_they_were_written(frame in frames(300)) {
        let frame = frame.frame();
        let mut packet = Vec::new();
        frame.write(&mut packet).unwrap();
        let read = Frame::read(&packet).unwrap();
        prop_assert_eq!(read.frame(), frame);
        prop_assert_eq!(read.verify().unwrap(), frame);
        prop_assert!(packet.ends_with(&icrc(&packet).unwrap().to_le_bytes()));

        let mut again = Vec::new();
        read.frame().write(&mut again).unwrap();
        prop_assert_eq!(again, packet);
    }

    /// A socket tells all but identification and UDP checksum; the identification is found.
    #[test]
    fn udp_payloads_are_read_as_they_were_written(frame in frames(300), reported in any::<u16>()) {
        let frame = Frame { udp_checksum: 0, ..frame.frame() };
        let (mut packet, mut udp_payload) = (Vec::new(), Vec::new());
        frame.write(&mut packet).unwrap();
        frame.write_udp(&mut udp_payload).unwrap();
        prop_assert!(packet.ends_with(&udp_payload));

        let mut ip = frame.ip;
        if let Ip::V4(ip) = &mut ip {
            ip.identification = reported;
        }
        let read = Frame::read_udp(ip, frame.source_port, &udp_payload).unwrap();
        prop_assert_eq!(read.verify().unwrap(), frame);
    }

    /// Written after other bytes, which stay; read with the padding of Ethernet behind it.
    #[test]
    fn other_bytes_around_a_packet_do_not_matter(frame in frames(8), around in any::<[u8; 5]>()) {
        let frame = frame.frame();
        let mut bytes = around.to_vec();
        frame.write(&mut bytes).unwrap();
        prop_assert!(bytes.starts_with(&around));
        bytes.extend_from_slice(&around);
        prop_assert_eq!(Frame::read(&bytes[around.len()..]).unwrap().verify().unwrap(), frame);
    }
}

/// Each opcode with each pad, over both versions of IP.
#[test]
fn every_opcode_has_a_frame() {
    let ips = [
        Ip::V4(Ipv4::new(Ipv4Addr::LOCALHOST, Ipv4Addr::BROADCAST)),
        Ip::V6(Ipv6::new(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED)),
    ];
    for (opcode, ip) in PacketOpcode::ALL
        .iter()
        .flat_map(|op| ips.map(|ip| (*op, ip)))
    {
        for payload in 0..=5 {
            let payload = &b"hello"[..payload];
            let extended = Extended::of(opcode).unwrap();
            let frame = Frame::new(ip, 0xc000, Bth::new(opcode, 1, 2), extended, payload);
            let mut packet = Vec::new();
            frame.write(&mut packet).unwrap();
            assert_eq!(Frame::read(&packet).unwrap().verify().unwrap(), frame);
        }
    }
}
