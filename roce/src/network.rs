//! IP and UDP headers in bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::PORT;
use crate::ip::{Ip, Ipv4, Ipv6};
use crate::read::{ReadError, Reader};

/// What a frame says about its IP and UDP header.
pub(crate) struct Network {
    pub(crate) ip: Ip,
    /// The reserved flag of IPv4.
    pub(crate) ip_flag: bool,
    pub(crate) source_port: u16,
    pub(crate) udp_checksum: u16,
}

/// The bytes of an IP header and a UDP header.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NetworkHeaders {
    V4([u8; V4_LEN + UDP_LEN]),
    V6([u8; V6_LEN + UDP_LEN]),
}

impl NetworkHeaders {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::V4(bytes) => bytes,
            Self::V6(bytes) => bytes,
        }
    }
}

impl Network {
    /// The headers of a packet with a payload of `udp_payload` bytes. `Err` is a length that the IP
    /// header cannot hold.
    pub(crate) fn headers(&self, udp_payload: usize) -> Result<NetworkHeaders, usize> {
        let udp_length = udp_payload.saturating_add(UDP_LEN);
        let ip_length = match self.ip {
            Ip::V4(_) => udp_length.saturating_add(V4_LEN),
            Ip::V6(_) => udp_length,
        };
        // The length of UDP is not greater, so it fits if this one does.
        let length = u16::try_from(ip_length).map_err(|_| ip_length)?;
        let udp = self.udp_header(udp_length as u16);
        Ok(match &self.ip {
            Ip::V4(ip) => {
                let mut bytes = [0; V4_LEN + UDP_LEN];
                bytes[..V4_LEN].copy_from_slice(&self.v4_header(ip, length));
                bytes[V4_LEN..].copy_from_slice(&udp);
                NetworkHeaders::V4(bytes)
            }
            Ip::V6(ip) => {
                let mut bytes = [0; V6_LEN + UDP_LEN];
                bytes[..V6_LEN].copy_from_slice(&v6_header(ip, length));
                bytes[V6_LEN..].copy_from_slice(&udp);
                NetworkHeaders::V6(bytes)
            }
        })
    }

    fn v4_header(&self, ip: &Ipv4, total_length: u16) -> [u8; V4_LEN] {
        let dont_fragment = if ip.dont_fragment { DONT_FRAGMENT } else { 0 };
        let reserved = if self.ip_flag { RESERVED_FLAG } else { 0 };
        let mut bytes = [0; V4_LEN];
        (bytes[0], bytes[1]) = (V4_FIRST, ip.tos);
        bytes[2..4].copy_from_slice(&total_length.to_be_bytes());
        bytes[4..6].copy_from_slice(&ip.identification.to_be_bytes());
        bytes[6..8].copy_from_slice(&(dont_fragment | reserved).to_be_bytes());
        (bytes[8], bytes[9]) = (ip.ttl, UDP);
        bytes[12..16].copy_from_slice(&ip.source.octets());
        bytes[16..20].copy_from_slice(&ip.destination.octets());
        let checksum = v4_checksum(&bytes);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    fn udp_header(&self, length: u16) -> [u8; UDP_LEN] {
        let mut bytes = [0; UDP_LEN];
        bytes[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        bytes[2..4].copy_from_slice(&PORT.to_be_bytes());
        bytes[4..6].copy_from_slice(&length.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.udp_checksum.to_be_bytes());
        bytes
    }

    /// The headers of an IP packet, and the UDP payload. Bytes behind the end of the packet are
    /// ignored.
    pub(crate) fn read(packet: &[u8]) -> Result<(Self, NetworkHeaders, &[u8]), ReadError> {
        let version = packet.first().ok_or(ReadError::TooShort)? >> 4;
        let (ip, ip_flag, headers, datagram) = match version {
            4 => {
                let (ip, ip_flag, datagram) = read_v4(packet)?;
                let headers = packet.first_chunk().ok_or(ReadError::TooShort)?;
                (Ip::V4(ip), ip_flag, NetworkHeaders::V4(*headers), datagram)
            }
            6 => {
                let (ip, datagram) = read_v6(packet)?;
                let headers = packet.first_chunk().ok_or(ReadError::TooShort)?;
                (Ip::V6(ip), false, NetworkHeaders::V6(*headers), datagram)
            }
            version => return Err(ReadError::IpVersion(version)),
        };
        let mut reader = Reader(datagram);
        let source_port = reader.u16()?;
        let destination_port = reader.u16()?;
        let length = reader.u16()?;
        let udp_checksum = reader.u16()?;
        if destination_port != PORT {
            return Err(ReadError::Port(destination_port));
        }
        if usize::from(length) != datagram.len() {
            return Err(ReadError::UdpLength {
                udp: length.into(),
                ip: datagram.len(),
            });
        }
        let network = Self {
            ip,
            ip_flag,
            source_port,
            udp_checksum,
        };
        Ok((network, headers, reader.0))
    }
}

fn v6_header(ip: &Ipv6, payload_length: u16) -> [u8; V6_LEN] {
    let first = 6 << 28 | u32::from(ip.traffic_class) << FLOW_LABEL_BITS | ip.flow_label;
    let mut bytes = [0; V6_LEN];
    bytes[0..4].copy_from_slice(&first.to_be_bytes());
    bytes[4..6].copy_from_slice(&payload_length.to_be_bytes());
    (bytes[6], bytes[7]) = (UDP, ip.hop_limit);
    bytes[8..24].copy_from_slice(&ip.source.octets());
    bytes[24..40].copy_from_slice(&ip.destination.octets());
    bytes
}

/// The header, its reserved flag, and what it carries.
fn read_v4(packet: &[u8]) -> Result<(Ipv4, bool, &[u8]), ReadError> {
    let header = packet.first_chunk().ok_or(ReadError::TooShort)?;
    let mut reader = Reader(header);
    let [first, tos] = reader.array()?;
    let total_length = reader.u16()?;
    let identification = reader.u16()?;
    let flags = reader.u16()?;
    let [ttl, protocol] = reader.array()?;
    let found = reader.u16()?;
    let source = Ipv4Addr::from(reader.array::<4>()?);
    let destination = Ipv4Addr::from(reader.array::<4>()?);
    if first != V4_FIRST {
        return Err(ReadError::IpHeaderLength(4 * (first & 0xf)));
    }
    // Compared, not summed: a sum also takes 0xffff for 0, which no sender computes.
    let computed = v4_checksum(header);
    if found != computed {
        return Err(ReadError::HeaderChecksum { found, computed });
    }
    if flags & !(DONT_FRAGMENT | RESERVED_FLAG) != 0 {
        return Err(ReadError::Fragment);
    }
    if protocol != UDP {
        return Err(ReadError::NotUdp(protocol));
    }
    let datagram = packet.get(V4_LEN..total_length.into());
    let ip = Ipv4 {
        source,
        destination,
        tos,
        ttl,
        identification,
        dont_fragment: flags & DONT_FRAGMENT != 0,
    };
    let reserved = flags & RESERVED_FLAG != 0;
    Ok((ip, reserved, datagram.ok_or(ReadError::TooShort)?))
}

/// The header, and what it carries.
fn read_v6(packet: &[u8]) -> Result<(Ipv6, &[u8]), ReadError> {
    let mut reader = Reader(packet);
    let first = reader.u32()?;
    let payload_length = reader.u16()?;
    let [next_header, hop_limit] = reader.array()?;
    let source = Ipv6Addr::from(reader.array::<16>()?);
    let destination = Ipv6Addr::from(reader.array::<16>()?);
    if next_header != UDP {
        return Err(ReadError::NotUdp(next_header));
    }
    let datagram = reader.0.get(..payload_length.into());
    let ip = Ipv6 {
        source,
        destination,
        traffic_class: (first >> FLOW_LABEL_BITS) as u8,
        flow_label: first & ((1 << FLOW_LABEL_BITS) - 1),
        hop_limit,
    };
    Ok((ip, datagram.ok_or(ReadError::TooShort)?))
}

/// The checksum of an IPv4 header, whose own field does not count (RFC 791).
fn v4_checksum(header: &[u8; V4_LEN]) -> u16 {
    let words = header.chunks_exact(2).enumerate();
    let sum: u32 = words
        .filter(|(word, _)| *word != 5)
        .map(|(_, bytes)| u32::from(u16::from_be_bytes([bytes[0], bytes[1]])))
        .sum();
    // The sum of nine words carries at most 8. Adding that carries at most 1.
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) as u16 + (sum >> 16) as u16)
}

/// Bytes of an IPv4 header without options.
const V4_LEN: usize = 20;
/// The first byte of one: the version and the length in words.
pub(crate) const V4_FIRST: u8 = 0x45;
/// The flags DF and "reserved", which are in the same word as MF and the fragment offset.
const DONT_FRAGMENT: u16 = 1 << 14;
const RESERVED_FLAG: u16 = 1 << 15;
/// Bytes of an IPv6 header.
const V6_LEN: usize = 40;
pub(crate) const FLOW_LABEL_BITS: u32 = 20;
/// Bytes of a UDP header.
const UDP_LEN: usize = 8;
/// The protocol, or next header, UDP.
const UDP: u8 = 17;
