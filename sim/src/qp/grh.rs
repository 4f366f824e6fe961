//! The network header before a datagram, as its receiver finds it.

use std::net::Ipv4Addr;

use verbs_api::behavior::RouteFields;
use verbs_api::{AhAttr, Grh};

use super::datagram::Head;
use crate::packet::{HOP_LIMIT, NetworkFields, NetworkType, Route};

/// The number of bytes before every datagram in its receive buffer (UD-02).
pub(crate) const BYTES: u32 = Grh::BYTES as u32;

/// The fields of packets to an address (UD-20, ROCE-02).
pub(super) fn fields(to: &AhAttr, of: RouteFields) -> NetworkFields {
    let Some(grh) = &to.grh else {
        return NetworkFields::default();
    };
    let all = NetworkFields {
        traffic_class: grh.traffic_class,
        hop_limit: grh.hop_limit,
        flow_label: grh.flow_label & 0x000f_ffff,
    };
    match of {
        // Linux fills some fields by itself, depending on the driver.
        RouteFields::TrafficClass => NetworkFields {
            traffic_class: grh.traffic_class,
            hop_limit: HOP_LIMIT,
            flow_label: 0,
        },
        RouteFields::All | _ => all,
    }
}

/// A GRH, or over IPv4 its header in the last 20 bytes (UD-03, UD-20, UD-21).
pub(crate) fn bytes(head: &Head<'_>) -> [u8; Grh::BYTES] {
    const UDP_BYTES: u32 = 8;
    // BTH, DETH, immediate data, the payload in whole words, ICRC.
    let immediate = if head.imm.is_some() { 4 } else { 0 };
    let transport = 12 + 8 + immediate + head.length.next_multiple_of(4) + 4;
    let has_grh = head.route.network_type != NetworkType::RoceV2;
    let (length, next_header) = if has_grh {
        (transport, Grh::IBA)
    } else {
        (UDP_BYTES + transport, Grh::UDP)
    };
    let (length, route) = (length as u16, head.route);
    let fields = &route.fields;
    let mut bytes = [0; Grh::BYTES];
    if let (false, Some((from, to))) = (has_grh, ipv4(route)) {
        bytes[20..].copy_from_slice(&ipv4_header(length, fields, from, to));
        return bytes;
    }
    let first = 6 << 28 | u32::from(fields.traffic_class) << 20 | fields.flow_label;
    bytes[0..4].copy_from_slice(&first.to_be_bytes());
    bytes[4..6].copy_from_slice(&length.to_be_bytes());
    bytes[6] = next_header;
    bytes[7] = fields.hop_limit;
    bytes[8..24].copy_from_slice(&route.sgid.0);
    bytes[24..40].copy_from_slice(&route.dgid.0);
    bytes
}

/// The source and the destination of a route over IPv4.
pub(super) fn ipv4(route: &Route) -> Option<(Ipv4Addr, Ipv4Addr)> {
    route.sgid.ipv4().zip(route.dgid.ipv4())
}

/// The IPv4 header of a packet that must not be fragmented, and so needs no identification.
fn ipv4_header(length: u16, fields: &NetworkFields, from: Ipv4Addr, to: Ipv4Addr) -> [u8; 20] {
    const DO_NOT_FRAGMENT: u8 = 0x40;
    let mut header = [0; 20];
    header[0] = 0x45;
    header[1] = fields.traffic_class;
    header[2..4].copy_from_slice(&(length + 20).to_be_bytes());
    header[6] = DO_NOT_FRAGMENT;
    header[8] = fields.hop_limit;
    header[9] = Grh::UDP;
    header[12..16].copy_from_slice(&from.octets());
    header[16..20].copy_from_slice(&to.octets());
    let words = header
        .chunks_exact(2)
        .map(|word| u16::from_be_bytes([word[0], word[1]]));
    let sum: u32 = words.map(u32::from).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    // This addition may carry, too.
    let checksum = !(folded + (folded >> 16)) as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UD-22: the sum of all words, with its carry, is all ones.
    #[test]
    fn ipv4_checksum_has_the_carry_of_its_carry() {
        let [from, to] = [1, 2].map(|host| Ipv4Addr::new(192, 168, 1, host));
        for (traffic_class, hop_limit) in (0..=255).flat_map(|a| (0..=255).map(move |b| (a, b))) {
            let fields = NetworkFields {
                traffic_class,
                hop_limit,
                flow_label: 0,
            };
            let header = ipv4_header(60, &fields, from, to);
            let words = header.chunks_exact(2);
            let mut sum: u32 = words
                .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
                .sum();
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            assert_eq!(sum, 0xffff, "{traffic_class} {hop_limit}");
        }
    }
}
