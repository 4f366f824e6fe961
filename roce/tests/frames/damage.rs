//! Random bytes: nothing panics, and damage is never taken for a good packet.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use verbs_roce::{Frame, Ip, ReadError, Reserved, icrc};

use crate::arbitrary::{config, frames};
use crate::captured::ip_packets;

/// Reads bytes in every way. What is good is written back to the same bytes.
fn read_all_ways(bytes: &[u8]) -> bool {
    let _ = icrc(bytes);
    if let Ok(received) = Frame::read(bytes) {
        let mut written = Vec::new();
        received.frame().write(&mut written).unwrap();
        assert_eq!(icrc(&written), icrc(&bytes[..written.len()]));
        let icrc = written.len() - 4;
        assert_eq!(written[..icrc], bytes[..icrc]);
        let verified = received.verify();
        assert_eq!(verified.is_ok(), bytes.starts_with(&written));
        return verified.is_ok();
    }
    false
}

/// Whether a UDP payload is read as a good packet.
fn read_as_udp(ip: Ip, source_port: u16, bytes: &[u8]) -> bool {
    let received = Frame::read_udp(ip, source_port, bytes);
    let verified = received.and_then(|received| received.verify());
    if let Ok(frame) = verified {
        let mut written = Vec::new();
        frame.write_udp(&mut written).unwrap();
        assert_eq!(written, bytes);
    }
    verified.is_ok()
}

/// Where BTH begins.
fn bth(frame: &Frame<'_>) -> usize {
    match frame.ip {
        Ip::V4(_) => 28,
        Ip::V6(_) => 48,
    }
}

/// A change of some bytes.
#[derive(Clone, Debug)]
enum Change {
    Set(Index, u8),
    Turn(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Cut(Index),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let Some(last) = bytes.len().checked_sub(1) else {
            return;
        };
        match self {
            Self::Set(at, value) => bytes[at.index(last + 1)] = *value,
            Self::Turn(at, bit) => bytes[at.index(last + 1)] ^= 1 << bit,
            Self::Insert(at, value) => bytes.insert(at.index(last + 2), *value),
            Self::Remove(at) => drop(bytes.remove(at.index(last + 1))),
            Self::Cut(at) => bytes.truncate(at.index(last + 1)),
        }
    }
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = any::<Index>;
    let change = prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, value)| Change::Set(at, value)),
        (at(), 0..8u8).prop_map(|(at, bit)| Change::Turn(at, bit)),
        (at(), any::<u8>()).prop_map(|(at, value)| Change::Insert(at, value)),
        at().prop_map(Change::Remove),
        at().prop_map(Change::Cut),
    ];
    proptest::collection::vec(change, 0..6)
}

/// Makes lengths, header checksum and ICRC right again, so that changes behind them are reached.
fn mend(packet: &mut [u8]) {
    let (length, header) = (
        packet.len() as u16,
        if packet.first() == Some(&0x45) {
            20
        } else {
            40
        },
    );
    if packet.len() < header + 8 {
        return;
    }
    let (field, ip_length) = if header == 20 {
        (2, length)
    } else {
        (4, length - 40)
    };
    packet[field..field + 2].copy_from_slice(&ip_length.to_be_bytes());
    packet[header + 4..header + 6].copy_from_slice(&(length - header as u16).to_be_bytes());
    mend_checksum(packet);
    if let Some(icrc) = icrc(packet) {
        let at = packet.len() - 4;
        packet[at..].copy_from_slice(&icrc.to_le_bytes());
    }
}

fn mend_checksum(packet: &mut [u8]) {
    if let Err(ReadError::HeaderChecksum { computed, .. }) = Frame::read(packet) {
        packet[10..12].copy_from_slice(&computed.to_be_bytes());
    }
}

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn arbitrary_bytes_do_not_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        first in select(vec![0x45, 0x60]),
    ) {
        read_all_ways(&bytes);
        if let Some(byte) = bytes.first_mut() {
            *byte = first;
        }
        mend(&mut bytes);
        read_all_ways(&bytes);
    }

    #[test]
    fn arbitrary_udp_payloads_do_not_panic(
        frame in frames(0),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        read_as_udp(frame.frame().ip, 0xc000, &bytes);
    }

    /// Frames with all bits but version and opcode at random: what reserved bits hold is kept.
    #[test]
    fn reserved_bits_are_kept(frame in frames(40), noise in proptest::collection::vec(any::<u8>(), 80)) {
        let mut packet = Vec::new();
        frame.frame().write(&mut packet).unwrap();
        let (bth, end) = (bth(&frame.frame()), packet.len() - 4);
        if bth == 28 {
            packet[6] ^= noise[0] & 0x80;
        }
        packet[bth + 1] ^= noise[1] & 0xc0;
        for (byte, noise) in packet[bth + 2..end].iter_mut().zip(&noise) {
            *byte ^= noise;
        }
        mend(&mut packet);
        prop_assert!(read_all_ways(&packet));
    }
}

/// Captured packets with some bytes changed, also with lengths and ICRC made right again.
#[test]
fn damaged_captures_do_not_panic() {
    let packets = ip_packets();
    let strategy = (select(packets), changes());
    let mut runner = proptest::test_runner::TestRunner::new(config(8000));
    let good = std::cell::Cell::new(0);
    let result = runner.run(&strategy, |(mut packet, changes)| {
        for change in &changes {
            change.apply(&mut packet);
        }
        read_all_ways(&packet);
        mend(&mut packet);
        if read_all_ways(&packet) {
            let frame = Frame::read(&packet).unwrap().frame();
            let udp_payload = &packet[bth(&frame)..];
            // No socket tells the reserved flag of IPv4.
            let flag = packet[0] == 0x45 && packet[6] & 0x80 != 0;
            assert!(read_as_udp(frame.ip, frame.source_port, udp_payload) || flag);
            good.set(good.get() + 1);
        }
        Ok(())
    });
    result.unwrap();
    assert!(good.get() > 1000, "only {} were good again", good.get());
}

proptest! {
    #![proptest_config(config(100))]

    /// Each single bit: what the ICRC covers is found out, and what it masks shows in the frame.
    #[test]
    fn every_bit_that_is_turned_is_noticed(frame in frames(9)) {
        let frame = frame.frame();
        let mut packet = Vec::new();
        frame.write(&mut packet).unwrap();
        let bth = bth(&frame);
        for bit in 0..packet.len() * 8 {
            let (byte, mask) = (bit / 8, 0x80 >> (bit % 8));
            packet[byte] ^= mask;
            let mut read = Frame::read(&packet).map(|received| received.verify());
            // The bytes that the header checksum covers in addition to the ICRC, and the checksum
            // itself.
            let original = [packet[10], packet[11]];
            if bth == 28 && (1..20).contains(&byte) {
                prop_assert!(
                    matches!(read, Err(ReadError::HeaderChecksum { .. })), "bit {}: {:?}", bit, read
                );
                if !(10..12).contains(&byte) {
                    mend_checksum(&mut packet);
                    read = Frame::read(&packet).map(|received| received.verify());
                }
            }
            let masked = match (bth, byte) {
                (28, 1 | 8) | (48, 1..=3 | 7) => true,
                (48, 0) => mask & 0x0f != 0,
                _ => byte == bth + 4 || (bth - 2..bth).contains(&byte),
            };
            match read {
                Ok(Ok(changed)) if masked => {
                    let expected = with_turned(frame, bth, byte, mask);
                    prop_assert_eq!(without_reserved(changed), expected, "bit {}", bit);
                    prop_assert_ne!(changed, frame, "bit {}", bit);
                    let mut written = Vec::new();
                    changed.write(&mut written).unwrap();
                    prop_assert_eq!(&written, &packet);
                }
                Ok(Err(ReadError::Icrc { .. })) | Err(_) => prop_assert!(!masked, "bit {}", bit),
                _ => prop_assert!(false, "bit {}: {:?}", bit, read),
            }
            packet[10..12].copy_from_slice(&original);
            packet[byte] ^= mask;
        }
    }
}

/// The frame with a bit turned of those that the ICRC masks; reserved ones are in no field.
fn with_turned(mut frame: Frame<'_>, bth: usize, byte: usize, mask: u8) -> Frame<'_> {
    match &mut frame.ip {
        Ip::V4(ip) if byte == 1 => ip.tos ^= mask,
        Ip::V4(ip) if byte == 8 => ip.ttl ^= mask,
        Ip::V6(ip) if byte < 4 => {
            let word = u32::from(mask) << (24 - 8 * byte);
            ip.traffic_class ^= (word >> 20) as u8;
            ip.flow_label ^= word & 0xf_ffff;
        }
        Ip::V6(ip) if byte == 7 => ip.hop_limit ^= mask,
        _ if byte + 2 == bth => frame.udp_checksum ^= u16::from(mask) << 8,
        _ if byte + 1 == bth => frame.udp_checksum ^= u16::from(mask),
        _ => {
            frame.bth.fecn ^= mask == 0x80;
            frame.bth.becn ^= mask == 0x40;
        }
    }
    frame
}

fn without_reserved(frame: Frame<'_>) -> Frame<'_> {
    Frame {
        reserved: Reserved::ZERO,
        ..frame
    }
}
