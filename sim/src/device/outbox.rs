//! The way out: a packet gets its address, and leaves through a port.

use std::collections::BTreeSet;

use verbs_api::QpType;
use verbs_api::lab::TraceEvent;

use super::Device;
use crate::memory::Payload;
use crate::packet::{Op, Packet, PortId, Psn, Route};
use crate::time::Time;

/// Where a packet goes to.
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
    /// Of a request of XRC: the SRQ it is for.
    pub(crate) srqn: u32,
}

impl OutPacket {
    /// An answer of one packet.
    pub(crate) fn answer(op: Op, psn: Psn) -> Self {
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
        }
    }

    /// Writes the whole of the packet into its place, field by field: it is not made elsewhere and
    /// moved there.
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
        place.payload = payload;
        place.arrives = Time::ZERO;
        place.damaged = false;
    }
}

impl Device {
    /// Sends a packet, if its port is up.
    #[inline(always)]
    pub(crate) fn send(&mut self, to: Address<'_>, packet: OutPacket, payload: Payload) {
        let up = self.ports.at(to.route.from.port).up;
        packet.put(to, payload, self.outbox.push());
        self.sent(up);
    }

    /// Sends a packet to a group: one for each port of the fabric, as a switch makes them.
    pub(crate) fn send_to_group(&mut self, to: Address<'_>, packet: OutPacket, payload: Payload) {
        let up = self.ports.at(to.route.from.port).up;
        let ports: BTreeSet<PortId> = self.ports.gids().values().copied().collect();
        for port in ports {
            let place = self.outbox.push();
            packet.put(to, payload.clone(), place);
            place.route.to = Some(port);
            self.sent(up);
        }
    }

    /// The newest packet has left, or is lost if its port is down.
    #[inline(always)]
    fn sent(&mut self, up: bool) {
        if !up || self.base.is_traced() {
            self.note_sent(up);
        }
    }

    #[cold]
    fn note_sent(&mut self, up: bool) {
        let Some(packet) = self.outbox.back().map(Packet::view) else {
            return;
        };
        self.base.note(TraceEvent::Sent(packet));
        if !up {
            self.outbox.pop_back();
            let why = "the port is down";
            self.base.note(TraceEvent::Lost { packet, why });
        }
    }
}
