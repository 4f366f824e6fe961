//! The packets that a send becomes.

use verbs_api::behavior::SendDone;
use verbs_api::{Dest, QpType, SendFlags, SendOp, WcStatus};

use super::common::Common;
use super::requester::Requester;
use super::verdict::Stop;
use super::{atomic, datagram};
use crate::device::{Device, OutPacket, Send};
use crate::packet::payload::Payload;
use crate::packet::{Op, Psn, Reth};

/// So many packets may be unacknowledged before a reliable connection sends another: what the buffer of a peer's
/// socket holds. A message that travels as one packet is delivered at once.
const WINDOW: u32 = 32;
/// An acknowledgement is asked for behind so many packets of a message, so that the window moves on.
const ACK_EVERY: u32 = WINDOW / 2;
/// Another process is asked for so many packets at a time: it sends what it is asked for without a pause, and this
/// process has room for a window of packets.
const READ_PART: u32 = WINDOW / 2;

impl Requester {
    /// Whether the peer has to acknowledge something before the next packet may leave.
    pub(super) fn is_window_full(&self, qp: &Common, device: &Device) -> bool {
        if qp.sends_whole_messages(device) || !qp.is_reliable() {
            return false;
        }
        let under_way = self.at_psn().distance(self.una);
        match qp.is_connected_outside() {
            true => self.is_part_held_back(qp, under_way),
            false => under_way >= WINDOW,
        }
    }

    /// The same for a peer in another process, which is asked for reads in parts.
    fn is_part_held_back(&self, qp: &Common, under_way: u32) -> bool {
        if self.at == self.sq.end() || !self.sq.get(self.at).is_read() {
            return under_way >= WINDOW;
        }
        let is_first = self.at_packet == 0;
        let most = u32::from(qp.attr.max_rd_atomic);
        let reads = u32::from(self.reads) + under_way.div_ceil(READ_PART);
        under_way + READ_PART > WINDOW || !is_first && reads > most
    }

    /// Requests of reads and atomics that the peer has, or more: those to another process are of several parts.
    pub(super) fn reads_under_way(&self, qp: &Common) -> u32 {
        let parts = match qp.is_connected_outside() && self.reads > 0 {
            true => self.at_psn().distance(self.una) / READ_PART,
            false => 0,
        };
        u32::from(self.reads) + parts
    }

    /// Sends the next packet of a started send, or all that is left of it at once.
    pub(super) fn transmit(
        &mut self,
        qp: &Common,
        device: &mut Device,
        seq: u64,
    ) -> Result<(), Stop> {
        let mtu = qp.mtu(device);
        let send = self.sq.get(seq);
        let is_read = send.is_read();
        let packet = match is_read {
            true => self.at_packet.max(send.answered),
            false => self.at_packet,
        };
        let left = send.span - packet;
        let span = match qp.is_connected_outside() {
            true => part(is_read, packet, left),
            false if is_read || device.base.whole_messages => left,
            false => 1,
        };
        let last = span == left;
        let payload = match is_read {
            true => Payload::default(),
            false => {
                let start = packet * mtu;
                let length = if last {
                    send.length - start
                } else {
                    span * mtu
                };
                send.payload.part(start, length)
            }
        };
        let (out, dest) = (out_packet(send, packet, (span, mtu), last), send.dest);
        let site = send.site;
        (self.at, self.at_packet) = match last {
            true => (seq + 1, 0),
            false => (seq, packet + span),
        };
        match dest {
            Dest::Ud { .. } if qp.init.qp_type == QpType::Ud => {
                datagram::send(qp, device, (out, payload), (dest, site));
            }
            _ => qp.send_to_peer(device, out, payload),
        }
        let is_done = match qp.is_reliable() {
            true => {
                let early = device.base.behavior.send_done == SendDone::Sent && !is_read;
                early && self.sq.oldest() == seq
            }
            false => true,
        };
        match last && is_done {
            true => self.finish(qp, device, WcStatus::Success),
            false => Ok(()),
        }
    }
}

/// How much is sent to another process, or asked for, at a time. A part of a read begins where it began the first time: a
/// peer that has answered it knows its end.
fn part(is_read: bool, packet: u32, left: u32) -> u32 {
    match is_read {
        true => left.min(READ_PART - packet % READ_PART),
        false => 1,
    }
}

/// The packet of a send that stands `packet` sequence numbers behind its first.
#[inline(always)]
fn out_packet(send: &Send, packet: u32, (span, mtu): (u32, u32), last: bool) -> OutPacket {
    let imm = match send.op {
        SendOp::SendWithImm { imm_data } | SendOp::RdmaWriteWithImm { imm_data, .. } => {
            Some(imm_data)
        }
        _ => None,
    };
    let is_read = send.is_read();
    let (psn, span, op) = match is_read {
        true => (
            send.first.plus(packet),
            1,
            request(send, packet, (span, mtu), last),
        ),
        false => operation(send, packet, span, last),
    };
    let tells = imm.is_some() || matches!(op, Op::Send | Op::SendWithInv(_));
    OutPacket {
        op,
        first: packet == 0 || is_read,
        last: last || is_read,
        psn,
        span,
        ack_req: last || is_read || (packet + 1).is_multiple_of(ACK_EVERY),
        solicited: send.flags.contains(SendFlags::SOLICITED) && last && !is_read && tells,
        imm: imm.filter(|_| last),
        srqn: match send.dest {
            Dest::Xrc { remote_srqn } => remote_srqn,
            _ => 0,
        },
        msn: 0,
    }
}

/// What a read or an atomic asks for, from this packet of the answer on.
#[inline(always)]
fn request(send: &Send, packet: u32, (span, mtu): (u32, u32), last: bool) -> Op {
    if let Some(eth) = atomic::header(&send.op) {
        return Op::AtomicRequest(eth);
    }
    let SendOp::RdmaRead { remote } = send.op else {
        return Op::Send;
    };
    let start = send.got + (packet - send.answered) * mtu;
    Op::ReadRequest(Reth {
        addr: remote.addr.wrapping_add(start.into()),
        rkey: remote.rkey,
        length: if last {
            send.length - start
        } else {
            span * mtu
        },
    })
}

/// Sequence number, how many of them, and what is sent.
#[inline(always)]
fn operation(send: &Send, packet: u32, span: u32, last: bool) -> (Psn, u32, Op) {
    let psn = send.first.plus(packet);
    match send.op {
        SendOp::RdmaWrite { remote } | SendOp::RdmaWriteWithImm { remote, .. } => {
            let reth = Reth {
                addr: remote.addr,
                rkey: remote.rkey,
                length: send.length,
            };
            let reth = (packet == 0).then_some(reth);
            (psn, span, Op::Write(reth))
        }
        SendOp::SendWithInv { rkey } if last => (psn, span, Op::SendWithInv(rkey)),
        _ => (psn, span, Op::Send),
    }
}
