//! The invariant CRC, and how to compute an unknown IPv4 identification from it.

use crc32fast::Hasher;

use crate::frame::{BTH_LEN, ICRC_LEN};
use crate::network::{NetworkHeaders, V4_FIRST};

/// The ICRC that a whole IP packet must end with, least significant byte first. The last four bytes
/// of the packet are the place for it, and do not count.
///
/// It is the CRC-32 of Ethernet over 8 bytes of ones and the packet, with ones for what may change
/// on the way: TOS, TTL and header checksum of IPv4; traffic class, flow label and hop limit of
/// IPv6; the UDP checksum; byte 4 of BTH.
///
/// `None` if the packet is neither IPv4 without options nor IPv6, or is too short to have a BTH.
/// Nothing else is checked.
pub fn icrc(ip_packet: &[u8]) -> Option<u32> {
    let covered = ip_packet.len().checked_sub(ICRC_LEN)?;
    let packet = &ip_packet[..covered];
    let (headers, body) = match packet.first()? {
        &V4_FIRST => {
            let (headers, body) = packet.split_first_chunk()?;
            (NetworkHeaders::V4(*headers), body)
        }
        first if first >> 4 == 6 => {
            let (headers, body) = packet.split_first_chunk()?;
            (NetworkHeaders::V6(*headers), body)
        }
        _ => return None,
    };
    let (bth, rest) = body.split_first_chunk()?;
    Some(
        Covered {
            headers,
            bth: *bth,
            rest,
        }
        .icrc(),
    )
}

/// What an ICRC covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Covered<'a> {
    pub(crate) headers: NetworkHeaders,
    pub(crate) bth: [u8; BTH_LEN],
    /// From the extended headers to the last byte of pad.
    pub(crate) rest: &'a [u8],
}

impl Covered<'_> {
    pub(crate) fn icrc(mut self) -> u32 {
        let headers: &mut [u8] = match &mut self.headers {
            NetworkHeaders::V4(headers) => {
                (headers[1], headers[8]) = (0xff, 0xff);
                headers[10..12].fill(0xff);
                headers
            }
            NetworkHeaders::V6(headers) => {
                headers[0] |= 0x0f;
                headers[1..4].fill(0xff);
                headers[7] = 0xff;
                headers
            }
        };
        // The checksum ends the UDP header.
        if let Some(udp_checksum) = headers.last_chunk_mut() {
            *udp_checksum = [0xff; 2];
        }
        self.bth[4] = 0xff;

        let mut crc = Hasher::new();
        // They stand for the LRH, which RoCE does not have.
        crc.update(&[0xff; 8]);
        crc.update(headers);
        crc.update(&self.bth);
        crc.update(self.rest);
        crc.finalize()
    }

    /// The one IPv4 identification for which a packet has the ICRC that it has, if there is one.
    /// These headers have identification 0, and `difference` is between their ICRC and that of the
    /// packet.
    ///
    /// A CRC is linear: the difference is the remainder of the two bytes that differ, with as many
    /// zeros behind them as bytes come after them. The register takes a bit by a multiplication by
    /// x, so dividing by x once for each bit leaves just these two bytes in it.
    pub(crate) fn identification(&self, difference: u32) -> Option<u16> {
        // No search for most peers that use sockets: these send 0.
        if difference == 0 {
            return Some(0);
        }
        let from_identification_on =
            self.headers.bytes().len() - IDENTIFICATION + self.bth.len() + self.rest.len();
        match divided(difference, from_identification_on).to_le_bytes() {
            [first, second, 0, 0] => Some(u16::from_be_bytes([first, second])),
            _ => None,
        }
    }
}

/// Where the identification is in an IPv4 header.
const IDENTIFICATION: usize = 4;

/// The polynomial of CRC-32 without x^32. As in the register, the lowest bit is for x^31 and the
/// highest for 1.
const POLYNOMIAL: u32 = 0xedb8_8320;
const ONE: u32 = 1 << 31;

/// x^(-8 * 2^n) for each bit n of a packet's length.
const INVERSES: [u32; u16::BITS as usize] = {
    let mut inverses = [0; u16::BITS as usize];
    let mut inverse = ONE;
    let mut bit = 0;
    while bit < 8 {
        inverse = divided_by_x(inverse);
        bit += 1;
    }
    let mut n = 0;
    while n < inverses.len() {
        inverses[n] = inverse;
        inverse = product(inverse, inverse);
        n += 1;
    }
    inverses
};

/// A register as it was before `bytes` bytes of zeros: a few products instead of a step for each
/// byte.
fn divided(register: u32, bytes: usize) -> u32 {
    let inverses = INVERSES.iter().enumerate();
    inverses
        .filter(|(n, _)| bytes >> n & 1 == 1)
        .fold(register, |register, (_, inverse)| {
            product(register, *inverse)
        })
}

/// The product of two polynomials, modulo that of the CRC.
const fn product(a: u32, mut b: u32) -> u32 {
    let mut sum = 0;
    let mut term = ONE;
    while term != 0 {
        if a & term != 0 {
            sum ^= b;
        }
        b = times_x(b);
        term >>= 1;
    }
    sum
}

const fn times_x(a: u32) -> u32 {
    match a & 1 {
        0 => a >> 1,
        _ => a >> 1 ^ POLYNOMIAL,
    }
}

/// The inverse of [`times_x`]: only what was reduced has the term 1.
const fn divided_by_x(a: u32) -> u32 {
    match a & ONE {
        0 => a << 1,
        _ => (a ^ POLYNOMIAL) << 1 | 1,
    }
}
