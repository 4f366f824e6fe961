//! A packet as RoCEv2 bytes, and back.
//!
//! The bytes do not name the source QP of a connected packet. The receiver knows it as its peer.

use std::net::IpAddr;

use verbs_api::lab::{PacketOpcode, Syndrome};
use verbs_api::{Gid, PlacementType, QpType, SelectivityLevel};
use verbs_roce::{Aeth, Bth, Data, Extended, Feth, Frame, Ip, Operation, Received, Transport};

use super::payload::Payload;
use super::{
    AtomicEth, AtomicOp, Deth, DropReason, Flush, HOP_LIMIT, NetworkFields, NetworkType, Op,
    Packet, PortId, Psn, Route,
};
use crate::address::{gid_of, group_of, ip_of, local_gid_of};

/// Source ports are in the upper quarter (RFC 7942).
const PORTS: u16 = 0xc000;

/// The bytes of a packet with its payload, from the IP header to the ICRC.
///
/// # Errors
/// If an IP header cannot have both addresses, or the packet is too long for one.
pub(crate) fn write(packet: &Packet, payload: &[u8]) -> Result<Vec<u8>, DropReason> {
    let mut bytes = Vec::with_capacity(128 + payload.len());
    let source_port = source_port(packet);
    // A GRH has the layout of an IPv6 header.
    let ip = if packet.route.network_type == NetworkType::RoceV1 {
        let gids = [packet.route.sgid, packet.route.dgid];
        ip_between(packet, gids.map(|gid| IpAddr::V6(gid.0.into())))?
    } else {
        ip(packet)?
    };
    let written = frame(packet, ip, source_port, payload).write(&mut bytes);
    written.map_err(|_| DropReason::TooLong)?;
    damage(packet, &mut bytes);
    Ok(bytes)
}

/// Appends the bytes of a packet from the BTH on, as a socket sends them. `identification` is that
/// of the IPv4 header.
pub(crate) fn write_udp(
    packet: &Packet,
    payload: &[u8],
    identification: u16,
    bytes: &mut Vec<u8>,
) -> Result<(), DropReason> {
    let mut ip = ip(packet)?;
    if let Ip::V4(ip) = &mut ip {
        ip.identification = identification;
    }
    let frame = frame(packet, ip, verbs_roce::PORT, payload);
    frame.write_udp(bytes).map_err(|_| DropReason::TooLong)?;
    damage(packet, bytes);
    Ok(())
}

/// The UDP source port: as in Linux, it differs with the flow label, or without one with the QPs at
/// both ends, so that switches choose paths by it (ROCE-01).
fn source_port(packet: &Packet) -> u16 {
    let label = match packet.route.fields.flow_label {
        0 => label_between(packet.src_qpn, packet.dest_qpn),
        label => label,
    };
    PORTS | (label ^ label >> 14) as u16 & !PORTS
}

/// A flow label of 20 bits, the same in both directions.
fn label_between(one: u32, other: u32) -> u32 {
    let product = u64::from(one) * u64::from(other);
    let folded = product ^ product >> 20;
    (folded ^ folded >> 40) as u32 & 0x000f_ffff
}

/// The IP header of a packet.
///
/// # Errors
/// If an IP header cannot have both addresses.
pub(crate) fn ip(packet: &Packet) -> Result<Ip, DropReason> {
    ip_between(packet, addresses(&packet.route))
}

fn ip_between(packet: &Packet, [from, to]: [IpAddr; 2]) -> Result<Ip, DropReason> {
    let ip = Ip::new(from, to).ok_or(DropReason::MixedAddresses)?;
    let mut fields = packet.route.fields;
    if !packet.route.global {
        // Only a GRH has the fields.
        fields.hop_limit = HOP_LIMIT;
    }
    let mut ip = ip
        .with_traffic_class(fields.traffic_class)
        .with_hop_limit(fields.hop_limit);
    if let Ip::V6(ip) = &mut ip {
        ip.flow_label = fields.flow_label;
    }
    Ok(ip)
}

fn addresses(route: &Route) -> [IpAddr; 2] {
    let from = ip_of(route.sgid);
    if route.dgid.is_multicast() {
        [from, group_of(route.dgid, from)]
    } else {
        [from, ip_of(route.dgid)]
    }
}

fn frame<'p>(packet: &Packet, ip: Ip, source_port: u16, payload: &'p [u8]) -> Frame<'p> {
    let bth = Bth {
        solicited: packet.solicited,
        pkey: packet.pkey,
        ack_req: packet.ack_req,
        ..Bth::new(packet.opcode(), packet.dest_qpn, packet.psn.value())
    };
    // The answer of an atomic is a number in a header.
    let (extended, payload) = match packet.op {
        Op::AtomicResponse => (extended(packet, payload), &[][..]),
        _ => (extended(packet, &[]), payload),
    };
    let frame = Frame::new(ip, source_port, bth, extended, payload);
    let reserved = frame
        .reserved
        .with_bth8(network_bits(&packet.route, packet.op));
    Frame { reserved, ..frame }
}

/// What other networks have instead of an IP header, which a socket cannot send. Such a packet
/// travels as one of RoCE version 2 with reserved bits of the BTH, which no device sets.
fn network_bits(route: &Route, op: Op) -> u8 {
    match (route.network_type, op) {
        (NetworkType::RoceV2, _) => 0,
        (NetworkType::RoceV1, _) => ROCE_V1,
        (NetworkType::InfiniBand, op) => {
            let grh = if route.global { GRH } else { 0 };
            let sl = match op {
                Op::Datagram(deth) => deth.sl << SL_SHIFT,
                _ => 0,
            };
            INFINIBAND | grh | sl
        }
    }
}

const ROCE_V1: u8 = 1;
/// An InfiniBand packet with a GRH.
const GRH: u8 = 1 << 1;
/// The service level of an InfiniBand packet, four bits.
const SL_SHIFT: u8 = 2;
const INFINIBAND: u8 = 1 << 6;

/// Changes the ICRC of a packet that a fault has damaged.
fn damage(packet: &Packet, bytes: &mut [u8]) {
    if packet.damaged
        && let Some(last) = bytes.last_mut()
    {
        *last ^= 1;
    }
}

/// The route of a received packet, by its addresses and the port where it arrived.
pub(crate) fn route(received: &Received<'_>, from: PortId, to: PortId) -> Route {
    let (ip, bits) = (received.frame().ip, received.frame().reserved.bth8());
    let (network_type, gid): (_, fn(IpAddr) -> Gid) = match bits {
        _ if bits & INFINIBAND != 0 => (NetworkType::InfiniBand, local_gid_of),
        _ if bits & ROCE_V1 != 0 => (NetworkType::RoceV1, gid_of),
        _ => (NetworkType::RoceV2, gid_of),
    };
    let global = network_type != NetworkType::InfiniBand || bits & GRH != 0;
    Route {
        from,
        to: Some(to),
        sgid: gid(ip.source()),
        dgid: gid(ip.destination()),
        global,
        network_type,
        was_unowned: false,
        fields: if global {
            fields(ip)
        } else {
            NetworkFields::default()
        },
    }
}

fn fields(ip: Ip) -> NetworkFields {
    NetworkFields {
        traffic_class: ip.traffic_class(),
        hop_limit: ip.hop_limit(),
        flow_label: match ip {
            Ip::V6(ip) => ip.flow_label,
            Ip::V4(_) => 0,
        },
    }
}

/// Reads a packet that arrived on this route. `peer` returns the peer of a local QP number, if it
/// is connected.
///
/// # Errors
/// If the packet is not one that the simulator understands.
pub(crate) fn read(
    received: Received<'_>,
    route: Route,
    peer: impl Fn(u32) -> u32,
) -> Result<Packet, DropReason> {
    let frame = received.frame();
    let opcode = u32::from(frame.bth.opcode);
    let (op, msn) = op(&frame).ok_or(DropReason::UnknownOperation)?;
    let payload = match frame.extended.operation {
        Operation::AtomicAck { original, .. } => Payload::inline(original.to_ne_bytes()[..].into()),
        _ => Payload::inline(frame.payload.into()),
    };
    let (first, last) = place(opcode & OPERATION);
    Ok(Packet {
        route,
        transport: transport(opcode, &frame.extended).ok_or(DropReason::UnknownTransport)?,
        op,
        first,
        last,
        // Only datagrams name their source.
        src_qpn: match op {
            Op::Datagram(deth) => deth.src_qpn,
            _ => peer(frame.bth.dest_qpn),
        },
        dest_qpn: frame.bth.dest_qpn,
        psn: Psn::new(frame.bth.psn),
        span: 1,
        pkey: frame.bth.pkey,
        ack_req: frame.bth.ack_req,
        solicited: frame.bth.solicited,
        imm: match frame.extended.data {
            Data::ImmDt(bytes) => Some(bytes),
            _ => None,
        },
        srqn: match frame.extended.transport {
            Transport::Xrceth { srqn } => srqn,
            _ => 0,
        },
        msn,
        payload,
        damaged: received.verify().is_err(),
        ..Packet::default()
    })
}

/// The bits of a placement type that are on the wire.
const PLACEMENT: u8 = 0xf;

/// The bits of an opcode for the operation. The others are the transport.
const OPERATION: u32 = 0x1f;

fn extended(packet: &Packet, original: &[u8]) -> Extended {
    let msn = packet.msn;
    let aeth = |syndrome| Aeth { syndrome, msn };
    let operation = match packet.op {
        Op::Write(Some(reth)) | Op::ReadRequest(reth) | Op::AtomicWrite(reth) => {
            Operation::Reth(reth)
        }
        Op::Flush(Flush {
            reth,
            placement,
            level,
        }) => Operation::Flush {
            feth: Feth {
                selectivity: level.raw(),
                placement: placement.bits() & PLACEMENT,
                ..Feth::default()
            },
            reth,
        },
        Op::AtomicRequest(eth) => {
            let (swap_or_add, compare) = match eth.op {
                AtomicOp::CompareAndSwap { compare, swap } => (swap, compare),
                AtomicOp::FetchAndAdd { add } => (add, 0),
            };
            Operation::AtomicEth(verbs_roce::AtomicEth {
                va: eth.addr,
                rkey: eth.rkey,
                swap_or_add,
                compare,
            })
        }
        Op::Acknowledge(syndrome) => Operation::Aeth(aeth(syndrome)),
        Op::ReadResponse if packet.has_aeth() => Operation::Aeth(aeth(Syndrome::Ack)),
        Op::AtomicResponse => Operation::AtomicAck {
            aeth: aeth(Syndrome::Ack),
            original: original.try_into().map_or(0, u64::from_ne_bytes),
        },
        _ => Operation::None,
    };
    Extended {
        transport: match packet.op {
            Op::Datagram(deth) => Transport::Deth(verbs_roce::Deth {
                qkey: deth.qkey,
                src_qpn: deth.src_qpn,
            }),
            _ if packet.transport == QpType::XrcSend => Transport::Xrceth { srqn: packet.srqn },
            _ => Transport::None,
        },
        operation,
        data: match (packet.op, packet.imm) {
            (Op::SendWithInv(rkey), _) => Data::Ieth(rkey),
            (_, Some(imm)) => Data::ImmDt(imm),
            _ => Data::None,
        },
    }
}

/// The operation of a frame, and its MSN.
fn op(frame: &Frame<'_>) -> Option<(Op, u32)> {
    let extended = &frame.extended;
    if let Transport::Deth(deth) = extended.transport {
        // Ethernet has no service level.
        let sl = match frame.reserved.bth8() {
            bits if bits & INFINIBAND != 0 => bits >> SL_SHIFT & 0xf,
            _ => 0,
        };
        return Some((Op::Datagram(datagram(deth, sl)), 0));
    }
    let opcode = PacketOpcode::from(u32::from(frame.bth.opcode) & OPERATION);
    let operation = match (opcode, extended.operation) {
        (PacketOpcode::RcAcknowledge, Operation::Aeth(aeth)) => {
            return Some((Op::Acknowledge(aeth.syndrome), aeth.msn));
        }
        (_, Operation::Aeth(aeth)) => return Some((Op::ReadResponse, aeth.msn)),
        (_, Operation::AtomicAck { aeth, .. }) => return Some((Op::AtomicResponse, aeth.msn)),
        (PacketOpcode::RcReadRequest, Operation::Reth(reth)) => Op::ReadRequest(reth),
        (PacketOpcode::RcAtomicWrite, Operation::Reth(reth)) => Op::AtomicWrite(reth),
        (_, Operation::Reth(reth)) => Op::Write(Some(reth)),
        (_, Operation::Flush { feth, reth }) => Op::Flush(Flush {
            reth,
            placement: PlacementType::from_bits_retain(feth.placement),
            level: SelectivityLevel::from_raw(feth.selectivity)?,
        }),
        (opcode, Operation::AtomicEth(eth)) => Op::AtomicRequest(AtomicEth {
            addr: eth.va,
            rkey: eth.rkey,
            op: match opcode {
                PacketOpcode::RcCompareSwap => AtomicOp::CompareAndSwap {
                    compare: eth.compare,
                    swap: eth.swap_or_add,
                },
                _ => AtomicOp::FetchAndAdd {
                    add: eth.swap_or_add,
                },
            },
        }),
        // It has no AETH by which to recognize it.
        (PacketOpcode::RcReadResponseMiddle, Operation::None) => Op::ReadResponse,
        (
            PacketOpcode::RcWriteMiddle | PacketOpcode::RcWriteLast | PacketOpcode::RcWriteLastImm,
            Operation::None,
        ) => Op::Write(None),
        (_, Operation::None) => match extended.data {
            Data::Ieth(rkey) => Op::SendWithInv(rkey),
            _ => Op::Send,
        },
    };
    Some((operation, 0))
}

fn datagram(deth: verbs_roce::Deth, sl: u8) -> Deth {
    Deth {
        qkey: deth.qkey,
        src_qpn: deth.src_qpn,
        sl,
    }
}

/// The transport of a packet. XRC requests have a header of their own.
fn transport(opcode: u32, extended: &Extended) -> Option<QpType> {
    match (opcode & !OPERATION, extended.transport) {
        (0x00, _) => Some(QpType::Rc),
        (0x20, _) => Some(QpType::Uc),
        (0x60, _) => Some(QpType::Ud),
        (0xa0, Transport::Xrceth { .. }) => Some(QpType::XrcSend),
        (0xa0, _) => Some(QpType::XrcRecv),
        _ => None,
    }
}

/// Whether it is the first packet of its message, and whether it is the last.
fn place(operation: u32) -> (bool, bool) {
    use PacketOpcode as Code;
    match PacketOpcode::from(operation) {
        Code::RcSendFirst | Code::RcWriteFirst | Code::RcReadResponseFirst => (true, false),
        Code::RcSendMiddle | Code::RcWriteMiddle | Code::RcReadResponseMiddle => (false, false),
        Code::RcSendLast
        | Code::RcSendLastImm
        | Code::RcSendLastInv
        | Code::RcWriteLast
        | Code::RcWriteLastImm
        | Code::RcReadResponseLast => (false, true),
        _ => (true, true),
    }
}

#[cfg(test)]
mod tests {
    use verbs_roce::Reth;

    use super::*;

    /// A packet of each kind, over IPv4 and IPv6.
    fn packets() -> Vec<(Packet, Vec<u8>)> {
        let reth = Reth {
            va: 0x0123_4567_89ab_cdef,
            rkey: 0x1122_3344,
            length: 3000,
        };
        let eth = |op| AtomicEth {
            addr: 0x1000,
            rkey: 7,
            op,
        };
        let flush = Flush {
            reth,
            placement: PlacementType::PERSISTENT,
            level: SelectivityLevel::Mr,
        };
        let swap = AtomicOp::CompareAndSwap {
            compare: 1 << 40,
            swap: 5,
        };
        let deth = Deth {
            qkey: 0x1111,
            src_qpn: 9,
            sl: 0,
        };
        let fields = NetworkFields {
            traffic_class: 8,
            hop_limit: 3,
            flow_label: 0,
        };
        let imm = Some([1, 2, 3, 4]);
        let whole = |op| (QpType::Rc, op, (true, true), None);
        let kinds = [
            whole(Op::Send),
            (QpType::Uc, Op::Send, (true, false), None),
            (QpType::Rc, Op::Send, (false, true), imm),
            (QpType::XrcSend, Op::SendWithInv(0x99), (false, true), None),
            (QpType::Rc, Op::Write(Some(reth)), (true, true), imm),
            (QpType::Uc, Op::Write(None), (false, true), imm),
            (QpType::XrcSend, Op::Write(None), (false, false), None),
            whole(Op::ReadRequest(reth)),
            (QpType::Rc, Op::ReadResponse, (true, false), None),
            (QpType::Rc, Op::ReadResponse, (false, false), None),
            (QpType::XrcRecv, Op::ReadResponse, (false, true), None),
            whole(Op::Acknowledge(Syndrome::rnr(12))),
            whole(Op::AtomicRequest(eth(swap))),
            whole(Op::AtomicRequest(eth(AtomicOp::FetchAndAdd { add: 3 }))),
            whole(Op::AtomicResponse),
            whole(Op::Flush(flush)),
            (QpType::XrcSend, Op::Flush(flush), (true, true), None),
            whole(Op::AtomicWrite(reth)),
            (QpType::Ud, Op::Datagram(deth), (true, true), imm),
        ];
        let v6 = |host| Gid(std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host).octets());
        let v4 = |host| gid_of(std::net::Ipv4Addr::new(10, 0, 0, host).into());
        let lid = |host| local_gid_of(std::net::Ipv4Addr::new(10, 0, 0, host).into());
        let (v1, v2) = (NetworkType::RoceV1, NetworkType::RoceV2);
        let ways = [
            (v2, [v4(1), v4(2)]),
            (v1, [v4(1), v4(2)]),
            (v2, [v6(1), v6(2)]),
            (NetworkType::InfiniBand, [lid(1), lid(2)]),
        ];
        let made = kinds
            .into_iter()
            .flat_map(|(transport, op, (first, last), imm)| {
                ways.map(|(network_type, [sgid, dgid])| {
                    let infiniband = network_type == NetworkType::InfiniBand;
                    let global = !infiniband || first;
                    let op = match op {
                        Op::Datagram(deth) if infiniband => Op::Datagram(Deth { sl: 11, ..deth }),
                        op => op,
                    };
                    let payload: &[u8] = match op {
                        Op::AtomicResponse => &[1, 2, 3, 4, 5, 6, 7, 8],
                        Op::ReadRequest(_)
                        | Op::Acknowledge(_)
                        | Op::AtomicRequest(_)
                        | Op::Flush(_) => &[],
                        _ => b"five!",
                    };
                    let packet = Packet {
                        route: Route {
                            sgid,
                            dgid,
                            global,
                            network_type,
                            fields: if global {
                                fields
                            } else {
                                NetworkFields::default()
                            },
                            ..Route::default()
                        },
                        transport,
                        op,
                        first,
                        last,
                        src_qpn: 9,
                        dest_qpn: 0x0012_3456,
                        psn: Psn::new(0x00ab_cdef),
                        span: 1,
                        pkey: 0x8001,
                        ack_req: last,
                        solicited: last,
                        imm,
                        srqn: if transport == QpType::XrcSend {
                            0x77
                        } else {
                            0
                        },
                        msn: 0,
                        payload: Payload::inline(payload.into()),
                        ..Packet::default()
                    };
                    let msn = if packet.has_aeth() { 0x0055_aa33 } else { 0 };
                    (Packet { msn, ..packet }, payload.to_vec())
                })
            });
        made.collect()
    }

    /// The packet at the receiver, without the ports of the fabric.
    fn read_back(bytes: &[u8]) -> Option<String> {
        let to = PortId::default();
        let received = Frame::read(bytes).ok()?;
        let packet = read(received, route(&received, to, to), |_| 9).ok()?;
        let route = Route {
            to: None,
            ..packet.route
        };
        (!packet.damaged).then(|| format!("{:?}", Packet { route, ..packet }))
    }

    /// ROCE-01, with numbers that Linux computes (`rdma_get_udp_sport`).
    #[test]
    fn source_ports_are_those_of_linux() {
        for (flow_label, src_qpn, dest_qpn, port) in [
            (0x12345, 9, 9, 0xe341),
            (0xfffff, 1, 2, 0xffc0),
            (0, 9, 0x0012_3456, 0xd703),
            (0, 0x00ff_ffff, 0x00ff_fffe, 0xff12),
        ] {
            let fields = NetworkFields {
                flow_label,
                ..NetworkFields::default()
            };
            let route = Route {
                fields,
                ..Route::default()
            };
            for (src_qpn, dest_qpn) in [(src_qpn, dest_qpn), (dest_qpn, src_qpn)] {
                let packet = Packet {
                    route,
                    src_qpn,
                    dest_qpn,
                    ..Packet::default()
                };
                assert_eq!(source_port(&packet), port, "{flow_label:#x}");
            }
        }
    }

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        for (packet, payload) in packets() {
            let bytes = write(&packet, &payload).unwrap();
            assert_eq!(read_back(&bytes), Some(format!("{packet:?}")));
        }
    }

    /// A codec that inverted a bit of a header, with a correct ICRC, would be detected: the result
    /// is another packet or an error. Bits without a meaning for the receiver are exceptions.
    #[test]
    fn each_bit_of_the_headers_means_something() {
        for (packet, payload) in packets() {
            let bytes = write(&packet, &payload).unwrap();
            let ip = if bytes[0] >> 4 == 4 { 20 } else { 40 };
            let bth = ip + 8;
            let end = bytes.len() - 4;
            for bit in bth * 8..end * 8 {
                let mut turned = bytes.clone();
                turned[bit / 8] ^= 0x80 >> (bit % 8);
                let icrc = verbs_roce::icrc(&turned).unwrap();
                turned[end..].copy_from_slice(&icrc.to_le_bytes());
                let seen = read_back(&turned);
                let same = seen == Some(format!("{packet:?}"));
                assert_eq!(
                    same,
                    is_ignored(&packet, bit - bth * 8, &bytes[bth..end]),
                    "{packet:?}, bit {}",
                    bit - bth * 8
                );
            }
        }
    }

    /// Bits, counted from the BTH, that a receiver ignores.
    fn is_ignored(packet: &Packet, bit: usize, from_bth: &[u8]) -> bool {
        const MIGRATED: usize = 9;
        let byte = bit / 8;
        // The bits after the acknowledgement request: InfiniBand, its service level and GRH, and
        // version 1 of RoCE.
        let is_network_bit = match (packet.route.network_type, bit) {
            (_, 65) => true,
            (NetworkType::InfiniBand, 66..=69) => matches!(packet.op, Op::Datagram(_)),
            (NetworkType::InfiniBand, 70) => true,
            (NetworkType::RoceV1 | NetworkType::RoceV2, 71) => true,
            _ => false,
        };
        let pad = usize::from(from_bth[1] >> 4 & 3);
        bit == MIGRATED
            // FECN, BECN and reserved bits.
            || byte == 4
            || ((65..72).contains(&bit) && !is_network_bit)
            || byte >= from_bth.len() - pad
            || match packet.op {
                // An addition has no compare value, and a read response has only one syndrome.
                Op::AtomicRequest(AtomicEth { op: AtomicOp::FetchAndAdd { .. }, .. }) => (32..40).contains(&byte),
                Op::ReadResponse | Op::AtomicResponse => packet.has_aeth() && byte == 12,
                Op::Datagram(_) => byte == 16,
                // The reserved bits of FETH.
                Op::Flush(_) => match packet.transport {
                    QpType::XrcSend => byte == 12 || (128..154).contains(&bit),
                    _ => (96..122).contains(&bit),
                },
                _ => packet.transport == QpType::XrcSend && byte == 12,
            }
    }
}
