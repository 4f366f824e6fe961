//! Egress: a packet gets its address and leaves through a port.

use std::collections::BTreeSet;
use std::mem;

use verbs_api::QpType;
use verbs_api::lab::TraceEvent;

use super::Device;
use super::base::Base;
use crate::packet::payload::Payload;
use crate::packet::{DropReason, Op, Packet, PortId, Psn, Route};
use crate::storage::Ring;
use crate::time::Time;

/// The destination of a packet.
#[derive(Clone, Copy)]
pub(crate) struct Address<'a> {
    pub(crate) route: &'a Route,
    pub(crate) transport: QpType,
    pub(crate) src_qpn: u32,
    pub(crate) dest_qpn: u32,
    pub(crate) pkey: u16,
}

/// A packet without its address and its payload.
#[derive(Clone, Copy)]
pub(crate) struct OutPacket {
    pub(crate) op: Op,
    pub(crate) first: bool,
    pub(crate) last: bool,
    pub(crate) psn: Psn,
    pub(crate) span: u32,
    pub(crate) ack_req: bool,
    pub(crate) solicited: bool,
    pub(crate) imm: Option<[u8; 4]>,
    /// The SRQ of an XRC request.
    pub(crate) srqn: u32,
    /// The number of completed requests, in a response.
    pub(crate) msn: u32,
}

impl OutPacket {
    /// An answer of one packet, with `msn` completed requests.
    pub(crate) fn answer(op: Op, psn: Psn, msn: u32) -> Self {
        Self {
            op,
            first: true,
            last: true,
            psn,
            span: 1,
            ack_req: false,
            solicited: false,
            imm: None,
            srqn: 0,
            msn,
        }
    }

    /// Writes the whole packet into its place, field by field, so that it is not built elsewhere
    /// and moved.
    #[inline(always)]
    fn put(self, to: Address<'_>, payload: Payload, place: &mut Packet) {
        place.route = *to.route;
        place.transport = to.transport;
        place.op = self.op;
        place.first = self.first;
        place.last = self.last;
        place.src_qpn = to.src_qpn;
        place.dest_qpn = to.dest_qpn;
        place.psn = self.psn;
        place.span = self.span;
        place.pkey = to.pkey;
        place.ack_req = self.ack_req;
        place.solicited = self.solicited;
        place.imm = self.imm;
        place.srqn = self.srqn;
        place.msn = self.msn;
        place.payload = payload;
        place.arrives = Time::ZERO;
        place.damaged = false;
    }
}

/// Packets that wait for the fabric.
#[derive(Clone, Debug, Default)]
pub(crate) struct Egress {
    /// In a box, so that it can be exchanged for an empty one.
    packets: Box<Ring<Packet>>,
}

impl Device {
    /// Sends a packet, if its port is up.
    #[inline(always)]
    pub(crate) fn send(&mut self, to: Address<'_>, packet: OutPacket, payload: Payload) {
        let up = self.ports.at(to.route.from.port).up;
        packet.put(to, payload, self.egress.packets.push());
        self.egress.sent(&mut self.base, up);
    }

    /// Sends a packet to a group. As in a switch, each port of the fabric gets a copy. Other
    /// processes get one.
    pub(crate) fn send_to_group(&mut self, to: Address<'_>, packet: OutPacket, payload: Payload) {
        let mut all: BTreeSet<PortId> = self.ports.gids.values().copied().collect();
        if self.ports.network {
            // The network delivers its copy to all other processes.
            all.insert(PortId::OUTSIDE);
        }
        for port in all {
            let route = &Route {
                to: Some(port),
                ..*to.route
            };
            self.send(Address { route, ..to }, packet, payload.clone());
        }
    }
}

impl Egress {
    /// Records that the newest packet has left, or drops it if its port is down.
    #[inline(always)]
    fn sent(&mut self, base: &mut Base, up: bool) {
        if !up || base.is_traced() {
            self.note_sent(base, up);
        }
    }

    #[cold]
    fn note_sent(&mut self, base: &mut Base, up: bool) {
        let Some(packet) = self.packets.back().map(Packet::view) else {
            return;
        };
        base.note(TraceEvent::Sent(packet));
        if !up {
            // The sender does not notice: a packet on a dead link is lost.
            self.packets.pop_back();
            let why = DropReason::PortDown.text();
            base.note(TraceEvent::Lost { packet, why });
        }
    }

    /// The next packet to send, oldest first.
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        self.packets.pop().map(mem::take)
    }

    /// Moves all waiting packets to the end of a queue.
    #[inline(always)]
    pub(crate) fn move_to(&mut self, queue: &mut Box<Ring<Packet>>) {
        if self.packets.is_empty() {
            return;
        }
        if queue.is_empty() {
            // Exchanging the boxes moves no packet.
            mem::swap(queue, &mut self.packets);
        } else {
            queue.append(&mut self.packets);
        }
    }
}
