//! Which bits are fields, and in which order their bits stand.

use core::ops::Range;

use verbs_roce::mad::{CmAttribute, CmMad, CmMessage, MAD};

const DATA: usize = 24;

/// Each bit alone is kept, or is one of those that are reserved or belong to the reliable datagram
/// transport.
#[test]
fn every_bit_is_kept_but_those_without_a_field() {
    for &attribute in CmAttribute::ALL {
        let mut dropped = Vec::new();
        for bit in 0..8 * (MAD - DATA) {
            let mut bytes = zero(attribute);
            bytes[DATA + bit / 8] = 0x80 >> (bit % 8);
            let written = CmMad::read(&bytes).unwrap().write();
            if written != bytes {
                assert_eq!(written, zero(attribute), "{attribute} bit {bit}");
                dropped.push(bit);
            }
        }
        let expected: Vec<_> = without_field(attribute).into_iter().flatten().collect();
        assert_eq!(dropped, expected, "{attribute}");
    }
}

/// Of fields that are not whole bytes, in bits from the start of the data.
fn without_field(attribute: CmAttribute) -> Vec<Range<usize>> {
    let bits = |byte: usize, bits: Range<usize>| 8 * byte + bits.start..8 * byte + bits.end;
    match attribute {
        CmAttribute::Req => vec![
            bits(4, 0..8),
            bits(24, 0..32),
            // Local and remote EE context, and whether there is an RDC.
            bits(36, 0..24),
            bits(40, 0..24),
            bits(50, 4..5),
            bits(88, 20..26),
            bits(94, 5..8),
            bits(95, 5..8),
            bits(132, 20..26),
            bits(138, 5..8),
            bits(139, 5..8),
        ],
        CmAttribute::Mra => vec![bits(8, 2..8), bits(9, 5..8)],
        CmAttribute::Rej => vec![bits(8, 2..8), bits(9, 7..8)],
        CmAttribute::Rep => vec![bits(27, 4..8)],
        CmAttribute::Dreq => vec![bits(11, 0..8)],
        CmAttribute::SidrReq => vec![bits(6, 0..16)],
        CmAttribute::Rtu | CmAttribute::Drep | CmAttribute::SidrRep => vec![],
    }
}

/// The vendor id of ECE is in one place, in three, and in two.
#[test]
fn vendor_ids_are_put_together() {
    let ece = |attribute, places: [usize; 3]| {
        let mut bytes = zero(attribute);
        bytes[20..24].copy_from_slice(&[1, 2, 3, 4]);
        for (place, byte) in places.into_iter().zip([0xaa, 0xbb, 0xcc]) {
            bytes[DATA + place] = byte;
        }
        let mad = CmMad::read(&bytes).unwrap();
        assert_eq!(mad.write(), bytes);
        match mad.message {
            CmMessage::Req(req) => req.ece,
            CmMessage::Rep(rep) => rep.ece,
            CmMessage::SidrRep(rep) => rep.ece,
            other => panic!("{other:?} has no ECE"),
        }
    };
    for ece in [
        ece(CmAttribute::Req, [5, 6, 7]),
        ece(CmAttribute::Rep, [15, 19, 23]),
        ece(CmAttribute::SidrRep, [6, 7, 11]),
    ] {
        assert_eq!((ece.vendor_id, ece.options), (0xaa_bbcc, 0x0102_0304));
    }
}

/// A neighbour gets none of the bits that are too many.
#[test]
fn upper_bits_without_room_are_left_out() {
    let mut bytes = zero(CmAttribute::Rep);
    let CmMessage::Rep(mut rep) = CmMad::read(&bytes).unwrap().message else {
        panic!("no REP")
    };
    rep.qpn = 0xff00_0001;
    rep.rnr_retry_count = 0x0f;
    bytes[DATA + 14] = 1;
    bytes[DATA + 27] = 7 << 5;
    let mad = CmMad {
        transaction: 0,
        message: CmMessage::Rep(rep),
    };
    assert_eq!(mad.write(), bytes);
}

/// A message of zeros.
fn zero(attribute: CmAttribute) -> [u8; MAD] {
    let mut bytes = [0; MAD];
    bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
    bytes[17] = attribute as u8;
    bytes
}
