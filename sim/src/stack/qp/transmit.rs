//! The packets that a send becomes.

use verbs_api::behavior::SendDone;
use verbs_api::{Dest, QpType, SendFlags, SendOp, WcStatus};

use super::common::Common;
use super::requester::Requester;
use super::send::Send;
use super::verdict::Stop;
use super::{atomic, datagram};
use crate::device::{Device, OutPacket};
use crate::packet::{Op, Psn, Reth};
use crate::payload::Payload;

/// So many packets may be unacknowledged before a reliable connection sends another: what the buffer of a peer's
/// socket holds. A message that travels as one packet is delivered at once.
const WINDOW: u32 = 32;
/// An acknowledgement is asked for behind so many packets of a message, so that the window moves on.
const ACK_EVERY: u32 = WINDOW / 2;

impl Requester {
    /// Whether the peer has to acknowledge something before the next packet may leave.
    pub(super) fn is_window_full(&self, qp: &Common, device: &Device) -> bool {
        if device.base.whole_messages || !qp.is_reliable() {
            return false;
        }
        self.at_psn().distance(self.una) >= WINDOW
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
        let packet = self.at_packet;
        let left = send.span - packet;
        let is_read = send.is_read();
        let span = match device.base.whole_messages || is_read {
            true => left,
            false => 1,
        };
        let last = span == left;
        let start = packet * mtu;
        let length = match last {
            true => send.length - start,
            false => span * mtu,
        };
        let payload = match is_read {
            true => Payload::default(),
            false => send.payload.part(start, length),
        };
        let (out, dest) = (out_packet(send, packet, span, last), send.dest);
        (self.at, self.at_packet) = match last {
            true => (seq + 1, 0),
            false => (seq, packet + span),
        };
        match dest {
            Dest::Ud { .. } if qp.init.qp_type == QpType::Ud => {
                datagram::send(qp, device, (out, payload), dest);
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

/// The packet of a send that stands `packet` sequence numbers behind its first.
#[inline(always)]
fn out_packet(send: &Send, packet: u32, span: u32, last: bool) -> OutPacket {
    let imm = match send.op {
        SendOp::SendWithImm { imm_data } | SendOp::RdmaWriteWithImm { imm_data, .. } => {
            Some(imm_data)
        }
        _ => None,
    };
    let (psn, span, op) = operation(send, packet, span, last);
    let is_read = send.is_read();
    let tells = imm.is_some() || matches!(op, Op::Send | Op::SendWithInv(_));
    OutPacket {
        op,
        first: packet == 0 || is_read,
        last,
        psn,
        span,
        ack_req: last || (packet + 1).is_multiple_of(ACK_EVERY),
        solicited: send.flags.contains(SendFlags::SOLICITED) && last && !is_read && tells,
        imm: imm.filter(|_| last),
        srqn: match send.dest {
            Dest::Xrc { remote_srqn } => remote_srqn,
            _ => 0,
        },
        msn: 0,
    }
}

/// Sequence number, how many of them, and what is asked for.
#[inline(always)]
fn operation(send: &Send, packet: u32, span: u32, last: bool) -> (Psn, u32, Op) {
    let psn = send.first.plus(packet);
    match (send.op, atomic::header(&send.op)) {
        (_, Some(eth)) => (psn, span, Op::AtomicRequest(eth)),
        (SendOp::RdmaRead { remote }, _) => {
            let reth = Reth {
                addr: remote.addr.wrapping_add(send.got.into()),
                rkey: remote.rkey,
                length: send.length - send.got,
            };
            (send.next_response(), 1, Op::ReadRequest(reth))
        }
        (SendOp::RdmaWrite { remote } | SendOp::RdmaWriteWithImm { remote, .. }, _) => {
            let reth = Reth {
                addr: remote.addr,
                rkey: remote.rkey,
                length: send.length,
            };
            let reth = (packet == 0).then_some(reth);
            (psn, span, Op::Write(reth))
        }
        (SendOp::SendWithInv { rkey }, _) if last => (psn, span, Op::SendWithInv(rkey)),
        _ => (psn, span, Op::Send),
    }
}
