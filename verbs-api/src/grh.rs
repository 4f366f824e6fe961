//! The network header in front of a datagram.

use core::net::Ipv4Addr;

use crate::ah::GlobalRoute;
use crate::device::Gid;

/// The header in the 40 bytes in front of a datagram (`struct ibv_grh`): a global route header, or
/// over IPv4 an IPv4 header, in the last 20 of them (UD-03).
///
/// It is there if the completion has [`WcFlags::GRH`](crate::WcFlags::GRH).
///
/// ```
/// use verbs_api::Grh;
///
/// let mut bytes = [0; Grh::BYTES];
/// bytes[20] = 0x45;
/// bytes[21] = 0xb8;
/// bytes[32..].copy_from_slice(&[10, 0, 0, 1, 10, 0, 1, 1]);
/// let grh = Grh::read(&bytes).unwrap();
/// assert_eq!(grh.sgid.to_string(), "::ffff:10.0.0.1");
/// assert_eq!(grh.traffic_class, 0xb8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grh {
    /// GID of the sender. An IPv4 address is mapped to an IPv6 one.
    pub sgid: Gid,
    /// GID of the receiver.
    pub dgid: Gid,
    /// Traffic class, or type of service of IPv4.
    pub traffic_class: u8,
    /// Flow label, 20 bits; 0 over IPv4.
    pub flow_label: u32,
    /// Hop limit, or time to live of IPv4.
    pub hop_limit: u8,
    /// What follows: [`Grh::UDP`] on RoCE version 2, [`Grh::IBA`] on InfiniBand and RoCE version 1.
    pub next_header: u8,
    /// Bytes that followed on the wire.
    pub length: u16,
}

impl Grh {
    /// Bytes in front of the data of a UD receive (UD-02).
    pub const BYTES: usize = 40;
    /// The next header is that of UDP.
    pub const UDP: u8 = 17;
    /// The next header is the transport's.
    pub const IBA: u8 = 0x1b;

    /// Reads a header. `None` if it is of neither version of IP.
    pub fn read(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (_, ipv4) = bytes.split_at(20);
        match bytes[0] >> 4 {
            // The first 20 bytes may be left from something else.
            6 if ipv4[0] == 0x45 && sum(ipv4) == 0xffff => Some(Self::read_ipv4(ipv4)),
            6 => Some(Self::read_ipv6(bytes)),
            _ => (ipv4[0] >> 4 == 4).then(|| Self::read_ipv4(ipv4)),
        }
    }

    /// The route back to the sender from the receiver's GID of this index: with the same traffic
    /// class, flow label and hop limit (`ibv_init_ah_from_wc`, UD-13).
    pub const fn back(&self, sgid_index: u8) -> GlobalRoute {
        GlobalRoute {
            dgid: self.sgid,
            flow_label: self.flow_label,
            sgid_index,
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
        }
    }

    fn read_ipv6(bytes: &[u8; Self::BYTES]) -> Self {
        let first = u32::from_be_bytes(array(bytes, 0));
        Self {
            sgid: Gid(array(bytes, 8)),
            dgid: Gid(array(bytes, 24)),
            traffic_class: (first >> 20) as u8,
            flow_label: first & 0x000f_ffff,
            hop_limit: bytes[7],
            next_header: bytes[6],
            length: u16::from_be_bytes(array(bytes, 4)),
        }
    }

    fn read_ipv4(header: &[u8]) -> Self {
        let mapped = |from| {
            Gid(Ipv4Addr::from(array(header, from))
                .to_ipv6_mapped()
                .octets())
        };
        Self {
            sgid: mapped(12),
            dgid: mapped(16),
            traffic_class: header[1],
            flow_label: 0,
            hop_limit: header[8],
            next_header: header[9],
            length: u16::from_be_bytes(array(header, 2)).saturating_sub(20),
        }
    }
}

fn array<const N: usize>(bytes: &[u8], from: usize) -> [u8; N] {
    bytes[from..from + N].try_into().expect("N bytes")
}

/// The sum of IPv4 over a header: 0xffff if its checksum is right.
fn sum(header: &[u8]) -> u16 {
    let words = header
        .chunks_exact(2)
        .map(|word| u16::from_be_bytes([word[0], word[1]]));
    let sum: u32 = words.map(u32::from).sum();
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071's sum over an IPv4 header in front of which something else is left.
    #[test]
    fn header_of_ipv4_is_believed_behind_what_looks_like_ipv6_if_its_checksum_is_right() {
        let mut bytes = [0; Grh::BYTES];
        bytes[0] = 0x60;
        let header = [
            0x45, 0xb8, 0x00, 0x3c, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x24, 0xf8, 0x0a, 0x00,
            0x00, 0x01, 0x0a, 0x00, 0x01, 0x01,
        ];
        bytes[20..].copy_from_slice(&header);
        let grh = Grh::read(&bytes).unwrap();
        assert_eq!((grh.length, grh.next_header), (40, Grh::UDP));
        assert_eq!(grh.dgid.to_string(), "::ffff:10.0.1.1");
        bytes[30] ^= 1;
        assert_eq!(Grh::read(&bytes).unwrap().length, 0, "a GRH");
        bytes[0] = 0;
        assert_eq!(
            Grh::read(&bytes).unwrap(),
            grh,
            "nothing else that it could be"
        );
        bytes[20] = 0x55;
        assert_eq!(Grh::read(&bytes), None);
    }
}
