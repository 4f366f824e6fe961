//! What another implementation sent is read, and written back byte for byte.

use std::collections::BTreeSet;

use verbs_roce::{Frame, Ip, Ipv4, ReadError, icrc};

use crate::captured::ip_packets;

#[test]
fn captured_packets_are_written_back_byte_for_byte() {
    let (mut v4, mut v6, mut wrong) = (0, 0, 0);
    let mut opcodes = BTreeSet::new();
    for packet in ip_packets() {
        let received = match Frame::read(&packet) {
            Ok(received) => received,
            Err(ReadError::NotUdp(_) | ReadError::Port(_)) => continue,
            Err(error) => panic!("{error}: {packet:02x?}"),
        };
        let frame = received.frame();
        match frame.ip {
            Ip::V4(_) => v4 += 1,
            Ip::V6(_) => v6 += 1,
        }
        opcodes.insert(u32::from(frame.bth.opcode));
        let mut written = Vec::new();
        frame.write(&mut written).unwrap();
        match received.verify() {
            Ok(verified) => {
                assert_eq!(verified, frame);
                assert_eq!(written, packet);
            }
            Err(error) => {
                wrong += 1;
                assert!(matches!(error, ReadError::Icrc { .. }), "{error}");
                let icrc = packet.len() - 4;
                assert_eq!(written[..icrc], packet[..icrc]);
                assert_ne!(written[icrc..], packet[icrc..]);
            }
        }
        let icrc = icrc(&packet).unwrap();
        assert!(written.ends_with(&icrc.to_le_bytes()));
    }
    assert_eq!((v4, v6, wrong), (509, 19, 1));
    let seen = [
        0x00..=0x02,
        0x04..=0x04,
        0x06..=0x08,
        0x0a..=0x0a,
        0x0c..=0x14,
        0x20..=0x22,
        0x26..=0x28,
        0x64..=0x65,
    ];
    assert!(opcodes.into_iter().eq(seen.into_iter().flatten()));
}

/// A socket does not tell the identification, and it is found from the ICRC.
#[test]
fn identifications_of_captured_packets_are_found() {
    let (mut found, mut not_zero, mut wrong) = (0, 0, 0);
    for packet in ip_packets() {
        let whole = Frame::read(&packet).unwrap();
        let frame = whole.frame();
        let Ip::V4(ip) = frame.ip else { continue };
        let reported = Ipv4 {
            identification: 0x5a5a,
            ..ip
        };
        let received = Frame::read_udp(reported.into(), frame.source_port, &packet[28..]).unwrap();
        match whole.verify() {
            Ok(verified) => {
                assert_eq!(received.verify().unwrap().ip, verified.ip);
                found += 1;
                not_zero += u32::from(ip.identification != 0);
            }
            Err(_) => {
                assert!(received.verify().is_err());
                wrong += 1;
            }
        }
    }
    assert_eq!((found, wrong), (508, 1));
    assert!(not_zero > 400, "{not_zero}");
}
