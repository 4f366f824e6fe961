//! Packets: BTH fields, extended headers, payload.

mod drop_reason;
pub(crate) mod frame;
pub(crate) mod payload;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod pcap;

pub use drop_reason::DropReason;
pub(crate) use drop_reason::Nature;
pub use pcap::Pcap;

use verbs_api::lab::{CmMessage, PacketOpcode, PacketView, Syndrome};
use verbs_api::{Access, Gid, PlacementType, QpType, SelectivityLevel};
pub(crate) use verbs_roce::Reth;
use verbs_roce::mad;

use crate::address::ip_of;
use crate::time::Time;
use payload::Payload;

/// A port of the fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PortId {
    pub(crate) node: u32,
    pub(crate) port: u8,
}

/// What is between BTH and wire. The field's term is the kernel's (`rdma_network_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NetworkType {
    /// UDP over IP.
    #[default]
    RoceV2,
    /// A GRH.
    RoceV1,
    /// An LRH, and a GRH if the route is global.
    InfiniBand,
}

/// The source and the destination of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) from: PortId,
    /// `None` if no port of the fabric has the destination GID or LID, and there is no network.
    pub(crate) to: Option<PortId>,
    pub(crate) sgid: Gid,
    pub(crate) dgid: Gid,
    /// Whether it has a GRH. Without one, the GIDs are not in the packet.
    pub(crate) global: bool,
    pub(crate) network_type: NetworkType,
    /// Whether no device had the destination when the route was found.
    pub(crate) was_unowned: bool,
    pub(crate) fields: NetworkFields,
}

/// Fields of the network header: an IP header or a GRH.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NetworkFields {
    /// The upper six bits are the DSCP of IP, the others its ECN.
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    /// 20 bits, in the header of IPv6 and in a GRH.
    pub(crate) flow_label: u32,
}

/// The hop limit of a route to a peer in the same network, as in Linux.
pub(crate) const HOP_LIMIT: u8 = 64;

impl PortId {
    /// All ports of other processes, which their addresses distinguish.
    pub(crate) const OUTSIDE: Self = Self {
        node: u32::MAX,
        port: 0,
    };

    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn is_outside(self) -> bool {
        self.node == Self::OUTSIDE.node
    }
}

impl Route {
    /// Whether it leads to another process.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn leads_outside(&self) -> bool {
        self.to.is_some_and(PortId::is_outside)
    }

    /// Whether a packet with that route comes from the other end of this route.
    pub(crate) fn is_back_along(&self, packet: &Self) -> bool {
        let ends = |route: &Self| [route.sgid, route.dgid].map(ip_of);
        let [from, to] = ends(packet);
        self.to == Some(packet.from) && (!packet.from.is_outside() || ends(self) == [to, from])
    }

    /// The nodes at both ends.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn link(&self) -> (u32, Option<u32>) {
        (self.from.node, self.to.map(|to| to.node))
    }
}

/// A packet in flight.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) route: Route,
    pub(crate) transport: QpType,
    pub(crate) op: Op,
    /// The first packet of its message.
    pub(crate) first: bool,
    /// The last packet of its message.
    pub(crate) last: bool,
    /// For fault rules. Only datagrams carry it on the wire.
    pub(crate) src_qpn: u32,
    pub(crate) dest_qpn: u32,
    pub(crate) psn: Psn,
    /// The number of sequence numbers: more than one if a whole message travels as one packet.
    pub(crate) span: u32,
    pub(crate) pkey: u16,
    pub(crate) ack_req: bool,
    pub(crate) solicited: bool,
    pub(crate) imm: Option<[u8; 4]>,
    /// The SRQ of an XRC request (XRC extended header). Otherwise 0.
    pub(crate) srqn: u32,
    /// In a response, the number of requests that the responder has completed (AETH), 24 bits.
    pub(crate) msn: u32,
    pub(crate) payload: Payload,
    /// Set by the fabric when the packet leaves. Unused in inline mode.
    pub(crate) arrives: Time,
    /// Whether its ICRC is wrong.
    pub(crate) damaged: bool,
}

/// The operation of a packet, with its extended header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Send,
    /// The last packet of a Send, with the key to invalidate.
    SendWithInv(u32),
    /// Only the first packet has the header.
    Write(Option<Reth>),
    ReadRequest(Reth),
    ReadResponse,
    Acknowledge(Syndrome),
    AtomicRequest(AtomicEth),
    /// The payload is the original value.
    AtomicResponse,
    Flush(Flush),
    /// The payload has 8 bytes.
    AtomicWrite(Reth),
    /// A datagram.
    Datagram(Deth),
}

impl Op {
    /// Whether it answers a request.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(
            self,
            Self::ReadResponse | Self::Acknowledge(_) | Self::AtomicResponse
        )
    }

    /// Whether a response answers it, which also acknowledges it (MPE-11).
    pub(crate) fn is_answered_by_response(&self) -> bool {
        self.takes_depth() || matches!(self, Self::Flush(_))
    }

    /// Whether it counts among those of which a responder accepts only some at a time.
    pub(crate) fn takes_depth(&self) -> bool {
        matches!(
            self,
            Self::ReadRequest(_) | Self::AtomicRequest(_) | Self::AtomicWrite(_)
        )
    }
}

/// Flush extended header, and the bytes that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flush {
    pub(crate) reth: Reth,
    pub(crate) placement: PlacementType,
    pub(crate) level: SelectivityLevel,
}

impl Flush {
    /// The rights that the region and the queue pair must give (MPE-04).
    pub(crate) fn needs(&self) -> Access {
        let mut needs = Access::empty();
        for (of, right) in [
            (PlacementType::GLOBAL, Access::FLUSH_GLOBAL),
            (PlacementType::PERSISTENT, Access::FLUSH_PERSISTENT),
        ] {
            needs.set(right, self.placement.contains(of));
        }
        needs
    }
}

/// Atomic extended header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtomicEth {
    pub(crate) addr: u64,
    pub(crate) rkey: u32,
    pub(crate) op: AtomicOp,
}

/// The operation of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicOp {
    CompareAndSwap { compare: u64, swap: u64 },
    FetchAndAdd { add: u64 },
}

/// Datagram extended header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deth {
    pub(crate) qkey: u32,
    pub(crate) src_qpn: u32,
    /// Service level of the path, for the completion. Only on InfiniBand.
    pub(crate) sl: u8,
}

/// The value of a fresh slot of a queue. It cannot be sent.
impl Default for Packet {
    fn default() -> Self {
        Self {
            route: Route::default(),
            transport: QpType::Rc,
            op: Op::Send,
            first: false,
            last: false,
            src_qpn: 0,
            dest_qpn: 0,
            psn: Psn::default(),
            span: 0,
            pkey: 0,
            ack_req: false,
            solicited: false,
            imm: None,
            srqn: 0,
            msn: 0,
            payload: Payload::default(),
            arrives: Time::ZERO,
            damaged: false,
        }
    }
}

/// The number of sequence numbers of a message with `length` bytes.
pub(crate) fn packets(length: u32, mtu: u32) -> u32 {
    // Most messages are short, and division is slow.
    if length <= mtu {
        1
    } else {
        length.div_ceil(mtu)
    }
}

impl Packet {
    /// Whether its length fits its place in a message with this path MTU (IBA C9-92). All packets
    /// except the last are full, the only packet has at most one MTU, and the last has at least one
    /// byte. For a whole message in one packet, the sequence numbers show the same.
    pub(crate) fn fits(&self, mtu: u32) -> bool {
        let length = self.payload.len();
        if self.last {
            packets(length, mtu) == self.span && (self.first || length > 0)
        } else {
            length == mtu
        }
    }

    /// Whether it has an AETH. All answers do, except the middle of a long one.
    pub(crate) fn has_aeth(&self) -> bool {
        match self.op {
            Op::Acknowledge(_) | Op::AtomicResponse => true,
            Op::ReadResponse => self.first || self.last,
            _ => false,
        }
    }

    /// The packet as the test controls show it.
    pub(crate) fn view(&self) -> PacketView {
        let mut view = PacketView::default();
        (view.sgid, view.dgid) = (self.route.sgid, self.route.dgid);
        view.opcode = self.opcode();
        view.dest_qpn = self.dest_qpn;
        (view.psn, view.psn_span) = (self.psn.value(), self.span);
        view.pkey = self.pkey;
        view.ack_req = self.ack_req;
        view.solicited = self.solicited;
        view.payload = self.payload.len().into();
        view.msn = self.has_aeth().then_some(self.msn);
        view.syndrome = match self.op {
            Op::Acknowledge(syndrome) => Some(syndrome),
            _ => None,
        };
        view.src_qpn = match self.op {
            Op::Datagram(deth) => Some(deth.src_qpn),
            _ => None,
        };
        view.srqn = (self.transport == QpType::XrcSend).then_some(self.srqn);
        view.cm = match (self.op, self.dest_qpn) {
            (Op::Datagram(_), 1) => self.payload.own().and_then(mad::attribute),
            _ => None,
        }
        .map(|message| CmMessage::from(message as u32));
        view
    }

    pub(crate) fn opcode(&self) -> PacketOpcode {
        // Only, First, Middle, Last, with immediate data after Last and Only.
        let position = match (self.first, self.last, self.imm.is_some()) {
            (true, false, _) => 0,
            (false, false, _) => 1,
            (false, true, false) => 2,
            (false, true, true) => 3,
            (true, true, false) => 4,
            (true, true, true) => 5,
        };
        let transport = match self.transport {
            QpType::Uc => 0x20,
            QpType::Ud => 0x60,
            QpType::XrcSend | QpType::XrcRecv => 0xa0,
            _ => 0x00,
        };
        let operation = match self.op {
            Op::Send | Op::Datagram(_) => position,
            Op::SendWithInv(_) => 0x16 + u32::from(self.first),
            Op::Write(_) => 6 + position,
            Op::ReadRequest(_) => 0x0c,
            Op::ReadResponse if self.first && self.last => 0x10,
            Op::ReadResponse => 0x0d + position,
            Op::Acknowledge(_) => 0x11,
            Op::AtomicResponse => 0x12,
            Op::AtomicRequest(eth) => match eth.op {
                AtomicOp::CompareAndSwap { .. } => 0x13,
                AtomicOp::FetchAndAdd { .. } => 0x14,
            },
            Op::Flush(_) => 0x1c,
            Op::AtomicWrite(_) => 0x1d,
        };
        PacketOpcode::from(transport | operation)
    }
}

/// A packet sequence number: 24 bits, arithmetic modulo 2^24 (TMR-13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Psn(u32);

impl Psn {
    const BITS: u32 = 24;
    /// The greatest number.
    pub(crate) const MAX: u32 = (1 << Self::BITS) - 1;
    /// The limit of outstanding numbers. With more, old and new would be ambiguous.
    pub(crate) const WINDOW: u32 = 1 << (Self::BITS - 1);

    pub(crate) fn new(value: u32) -> Self {
        Self(value & Self::MAX)
    }

    pub(crate) fn value(self) -> u32 {
        self.0
    }

    /// The number `by` after this one.
    pub(crate) fn plus(self, by: u32) -> Self {
        Self::new(self.0.wrapping_add(by))
    }

    /// The number before this one.
    pub(crate) fn previous(self) -> Self {
        Self::new(self.0.wrapping_sub(1))
    }

    /// How many numbers lie between `start` and this one, counting up.
    pub(crate) fn distance(self, start: Self) -> u32 {
        self.0.wrapping_sub(start.0) & Self::MAX
    }

    /// How far this number is after `other`, or negative if it is before it, within half the
    /// circle.
    pub(crate) fn after(self, other: Self) -> i32 {
        let shift = 32 - Self::BITS;
        ((self.0.wrapping_sub(other.0) << shift) as i32) >> shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RQ-14: a message that was cut for another path MTU is detected, both packet by packet and as
    /// a whole.
    #[test]
    fn whole_messages_fit_a_path_mtu_as_their_packets_do() {
        let packet = |length: u32, (first, last), span| Packet {
            first,
            last,
            span,
            payload: Payload::inline(vec![0; length as usize].into()),
            ..Packet::default()
        };
        let sizes = [256, 512, 1024, 2048, 4096];
        for (of_sender, of_receiver) in sizes.iter().flat_map(|a| sizes.map(|b| (*a, b))) {
            let around = |n: u32| n.saturating_sub(2)..n + 2;
            for length in sizes
                .into_iter()
                .chain([0, 600, 9000, 12288])
                .flat_map(around)
            {
                let count = packets(length, of_sender);
                let whole = packet(length, (true, true), count);
                let each = (0..count).map(|n| {
                    let left = length - n * of_sender;
                    packet(left.min(of_sender), (n == 0, n + 1 == count), 1)
                });
                let fits = each.into_iter().all(|packet| packet.fits(of_receiver));
                let case = format!("{length} bytes, {of_sender} to {of_receiver}");
                assert_eq!(whole.fits(of_receiver), fits, "{case}");
                let smaller = of_sender.min(of_receiver);
                assert_eq!(
                    fits,
                    of_sender == of_receiver || length <= smaller,
                    "{case}"
                );
            }
        }
        assert!(
            !packet(0, (false, true), 1).fits(256),
            "a last one without bytes"
        );
    }

    /// TMR-13: sequence numbers wrap at 24 bits.
    #[test]
    fn sequence_numbers_compare_around_the_wrap() {
        let last = Psn::new(Psn::MAX);
        assert_eq!(last.plus(1), Psn::new(0));
        assert_eq!(last.plus(3).after(last), 3);
        assert_eq!(last.after(last.plus(3)), -3);
        assert_eq!(Psn::new(0).previous(), last);
        assert_eq!(Psn::new(1 << 23).after(Psn::new(0)), -(1 << 23));
    }
}
