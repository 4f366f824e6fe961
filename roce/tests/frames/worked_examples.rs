//! Packets whose bytes are known.

use std::net::{Ipv4Addr, Ipv6Addr};

use verbs_api::lab::{PacketOpcode, Syndrome};
use verbs_roce::{
    Aeth, Bth, Extended, Feth, Frame, Ip, Ipv4, Ipv6, Operation, ReadError, Reth, icrc,
};

/// An acknowledgement of soft-RoCE.
const ACK_V4: [u8; 48] = [
    0x45, 0x00, 0x00, 0x30, 0x40, 0xeb, 0x40, 0x00, 0x40, 0x11, 0xe5, 0xcd, 10, 1, 0, 1, 10, 1, 0,
    2, // IPv4
    0xc1, 0x21, 0x12, 0xb7, 0x00, 0x1c, 0x00, 0x00, // UDP
    0x11, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0x3b, 0xa8, 0x2c, // BTH
    0x1f, 0x00, 0x00, 0x01, // AETH
    0xcd, 0x08, 0xd1, 0x53, // ICRC
];

/// An acknowledgement over IPv6.
const ACK_V6: [u8; 68] = [
    0x60, 0x00, 0x00, 0x00, 0x00, 0x1c, 0x11, 0x40, // IPv6, then its addresses
    0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
    0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, //
    0xf9, 0xb0, 0x12, 0xb7, 0x00, 0x1c, 0x00, 0x00, // UDP
    0x11, 0x00, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56, 0x00, 0x00, 0x00, 0x01, // BTH
    0x1f, 0x00, 0x00, 0x01, // AETH
    0xfc, 0xb1, 0xb2, 0x5d, // ICRC
];

fn acknowledgement(ip: Ip, source_port: u16, dest_qpn: u32, psn: u32) -> Frame<'static> {
    let bth = Bth {
        migrated: false,
        ..Bth::new(PacketOpcode::RcAcknowledge, dest_qpn, psn)
    };
    let extended = Extended {
        operation: Operation::Aeth(Aeth {
            syndrome: Syndrome::Ack,
            msn: 1,
        }),
        ..Extended::NONE
    };
    Frame::new(ip, source_port, bth, extended, &[])
}

#[test]
fn acknowledgements_of_both_versions_of_ip_are_as_known() {
    let v4 = Ipv4 {
        identification: 0x40eb,
        ..Ipv4::new([10, 1, 0, 1].into(), [10, 1, 0, 2].into())
    };
    let v6 = Ipv6::new(
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2),
    );
    for (bytes, frame, crc) in [
        (
            &ACK_V4[..],
            acknowledgement(v4.into(), 0xc121, 0x11, 0x3ba82c),
            0x53d1_08cd,
        ),
        (
            &ACK_V6[..],
            acknowledgement(v6.into(), 0xf9b0, 0x12_3456, 1),
            0x5db2_b1fc,
        ),
    ] {
        assert_eq!(icrc(bytes), Some(crc));
        assert_eq!(Frame::read(bytes).unwrap().verify(), Ok(frame));
        let mut written = Vec::new();
        frame.write(&mut written).unwrap();
        assert_eq!(written, bytes);
    }
}

/// The names of opcodes say which headers come after BTH, in this order (IBA 9.2, 9.3).
#[test]
fn extended_headers_are_as_the_names_of_opcodes_say() {
    const HEADERS: [(usize, &[&str]); 9] = [
        (8, &["UD_"]),
        (
            4,
            &[
                "XRC_SEND",
                "XRC_WRITE",
                "XRC_READ_REQUEST",
                "XRC_COMPARE",
                "XRC_FETCH",
                "XRC_FLUSH",
            ],
        ),
        (
            16,
            &["WRITE_FIRST", "WRITE_ONLY", "READ_REQUEST", "ATOMIC_WRITE"],
        ),
        (20, &["FLUSH"]),
        (28, &["COMPARE_SWAP", "FETCH_ADD"]),
        (
            4,
            &[
                "ACKNOWLEDGE",
                "RESPONSE_FIRST",
                "RESPONSE_LAST",
                "RESPONSE_ONLY",
            ],
        ),
        (8, &["ATOMIC_ACKNOWLEDGE"]),
        (4, &["_IMM"]),
        (4, &["_INV"]),
    ];
    let ip = Ipv4::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST).into();
    for opcode in PacketOpcode::ALL.iter().copied() {
        let has = |words: &[&str]| words.iter().any(|word| opcode.name().contains(word));
        let headers = HEADERS.iter().filter(|(_, words)| has(words));
        let headers: usize = headers.map(|(length, _)| length).sum();
        let extended = Extended::of(opcode).unwrap();
        let mut udp_payload = Vec::new();
        let frame = Frame::new(ip, 0, Bth::new(opcode, 0, 0), extended, &[]);
        frame.write_udp(&mut udp_payload).unwrap();
        assert_eq!(udp_payload.len(), 12 + headers + 4, "{opcode}");
    }
}

/// FETH comes first, with the placement type in its lowest bits (`rxe_hdr.h` of Linux 6.12).
#[test]
fn flush_is_laid_out_as_linux_does() {
    let reth = Reth {
        va: 0x0102_0304_0506_0708,
        rkey: 0x1112_1314,
        length: 0x2122_2324,
    };
    let feth = Feth {
        selectivity: 1,
        placement: 2,
        ..Feth::default()
    };
    let extended = Extended {
        operation: Operation::Flush { feth, reth },
        ..Extended::NONE
    };
    let ip = Ipv4::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST).into();
    let bth = Bth::new(PacketOpcode::RcFlush, 0, 0);
    let mut bytes = Vec::new();
    let frame = Frame::new(ip, 0, bth, extended, &[]);
    frame.write_udp(&mut bytes).unwrap();
    let headers = [
        0, 0, 0, 0x12, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24,
    ];
    assert_eq!((bytes[0], &bytes[12..32]), (0x1c, &headers[..]));
}

/// All numbers without a name are refused, and a congestion notification has an error of its own.
#[test]
fn opcodes_without_a_name_are_refused() {
    let known = |raw: u8| PacketOpcode::ALL.contains(&PacketOpcode::from(u32::from(raw)));
    for raw in (0..=0xff).filter(|raw| !known(*raw)) {
        assert_eq!(Extended::of(PacketOpcode::from(u32::from(raw))), None);
        let mut packet = ACK_V4;
        packet[28] = raw;
        let expected = match raw {
            0x81 => ReadError::Cnp,
            raw => ReadError::UnknownOpcode(raw),
        };
        assert_eq!(Frame::read(&packet).unwrap_err(), expected);
    }
}

/// Each error of reading has its fact.
#[test]
fn errors_name_what_is_wrong() {
    let with = |bytes: &[u8], changes: &[(usize, u8)]| {
        let mut packet = bytes.to_vec();
        for (at, value) in changes {
            packet[*at] = *value;
        }
        Frame::read(&packet).unwrap_err()
    };
    // For changes of the IPv4 header, with the checksum that it then has.
    let checked = |changes: &[(usize, u8)]| {
        let ReadError::HeaderChecksum { computed, .. } = with(&ACK_V4, changes) else {
            panic!("checksum is not looked at first");
        };
        let [high, low] = computed.to_be_bytes();
        with(&ACK_V4, &[changes, &[(10, high), (11, low)]].concat())
    };
    assert_eq!(Frame::read(&[]).unwrap_err(), ReadError::TooShort);
    assert_eq!(with(&ACK_V4[..47], &[]), ReadError::TooShort);
    assert_eq!(with(&ACK_V6[..67], &[]), ReadError::TooShort);
    assert_eq!(with(&ACK_V4, &[(0, 0x55)]), ReadError::IpVersion(5));
    assert_eq!(with(&ACK_V4, &[(0, 0x46)]), ReadError::IpHeaderLength(24));
    let (found, computed) = (0xe5cc, 0xe5cd);
    let checksum = ReadError::HeaderChecksum { found, computed };
    assert_eq!(with(&ACK_V4, &[(11, 0xcc)]), checksum);
    assert_eq!(checked(&[(6, 0x60)]), ReadError::Fragment);
    assert_eq!(checked(&[(7, 1)]), ReadError::Fragment);
    assert_eq!(checked(&[(9, 6)]), ReadError::NotUdp(6));
    assert_eq!(with(&ACK_V6, &[(6, 44)]), ReadError::NotUdp(44));
    assert_eq!(with(&ACK_V4, &[(23, 0xb8)]), ReadError::Port(4792));
    let (udp, ip) = (27, 28);
    assert_eq!(with(&ACK_V4, &[(25, 27)]), ReadError::UdpLength { udp, ip });
    assert_eq!(with(&ACK_V4, &[(29, 1)]), ReadError::TransportVersion(1));
    let (pad, left) = (1, 0);
    assert_eq!(with(&ACK_V4, &[(29, 0x10)]), ReadError::Pad { pad, left });
    let (found, computed) = (0x52d1_08cd, 0x53d1_08cd);
    let mut packet = ACK_V4;
    packet[47] = 0x52;
    let wrong = Frame::read(&packet).unwrap().verify();
    assert_eq!(wrong, Err(ReadError::Icrc { found, computed }));
}

/// What only a UDP payload can have.
#[test]
fn errors_of_udp_payloads_name_what_is_wrong() {
    let ip = Ipv4::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST).into();
    let read = |bytes: &[u8]| Frame::read_udp(ip, 0xc000, bytes).unwrap_err();
    assert_eq!(read(&[0; 15]), ReadError::TooShort);
    assert_eq!(read(&[0; 19]), ReadError::Alignment(3));
    assert_eq!(read(&[0; 65_508]), ReadError::TooLong);
    assert!(Frame::read_udp(ip, 0xc000, &[0; 65_504]).is_ok());
}

/// Too short for an ICRC, or no IP.
#[test]
fn icrc_needs_a_whole_header() {
    assert_eq!(icrc(&[]), None);
    assert_eq!(icrc(&ACK_V4[..43]), None);
    assert!(icrc(&ACK_V4[..44]).is_some());
    assert_eq!(icrc(&ACK_V6[..63]), None);
    assert!(icrc(&ACK_V6[..64]).is_some());
    assert_eq!(icrc(&[0x46; 60]), None);
    assert_eq!(icrc(&[0; 60]), None);
}
