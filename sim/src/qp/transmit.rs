//! The packets of a send.

use verbs_api::behavior::SendDone;
use verbs_api::{Dest, QpType, SendFlags, SendOp, WcStatus};

use super::common::Common;
use super::requester::Requester;
use super::verdict::Stop;
use super::{atomic, datagram, extension};
use crate::device::{Device, OutPacket, Send};
use crate::packet::payload::Payload;
use crate::packet::{Op, Reth};

/// The most unacknowledged packets of a reliable connection to another process, or with packets of
/// the MTU: what the socket buffer of a peer holds. A message that travels as one packet is
/// delivered at once.
const WINDOW: u32 = 32;
/// The distance between packets that ask for an acknowledgement, so that the window moves on.
const ACK_EVERY: u32 = WINDOW / 2;
/// The most packets of a read that another process is asked for at a time. It sends them without a
/// pause, and this process has room for a window of packets.
const READ_PART: u32 = WINDOW / 2;

impl Requester {
    /// Whether the peer must acknowledge something before the next packet may leave.
    pub(super) fn is_window_full(&self, qp: &Common, device: &Device) -> bool {
        // Such messages are delivered at once, so no buffer can overflow.
        if qp.sends_whole_messages(device) || !qp.is_reliable() {
            return false;
        }
        let under_way = self.at_psn().distance(self.una);
        if qp.is_connected_outside() {
            self.is_part_held_back(qp, under_way)
        } else {
            under_way >= WINDOW
        }
    }

    /// Whether the window is full for a peer in another process, which is asked for reads in parts.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn is_part_held_back(&self, qp: &Common, under_way: u32) -> bool {
        if self.at == self.sq.end() || !self.sq.get(self.at).is_read() {
            return under_way >= WINDOW;
        }
        // The first part is always sent, so that a read makes progress.
        let most = u32::from(qp.attr.max_rd_atomic);
        let reads = u32::from(self.reads) + under_way.div_ceil(READ_PART);
        under_way + READ_PART > WINDOW || self.at_packet != 0 && reads > most
    }

    /// An upper bound for the reads and atomics that the peer has. To another process a read is
    /// several requests.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(super) fn reads_under_way(&self, qp: &Common) -> u32 {
        let parts = if qp.is_connected_outside() && self.reads > 0 {
            self.at_psn().distance(self.una) / READ_PART
        } else {
            0
        };
        u32::from(self.reads) + parts
    }

    /// Sends the next packet of a started send, or all its remaining packets at once.
    pub(super) fn transmit(
        &mut self,
        qp: &Common,
        device: &mut Device,
        seq: u64,
    ) -> Result<(), Stop> {
        let mtu = qp.mtu(device);
        let send = self.sq.get(seq);
        let is_read = send.is_read();
        // A read continues with the first missing response.
        let packet = self.at_packet.max(send.answered);
        let left = send.span - packet;
        let span = if qp.is_connected_outside() {
            part(is_read, packet, left)
        } else if is_read || device.base.whole_messages {
            left
        } else {
            1
        };
        let last = span == left;
        let payload = if is_read {
            Payload::default()
        } else {
            let start = packet * mtu;
            send.payload
                .part(start, (send.length - start).min(span * mtu))
        };
        let (out, dest) = (out_packet(send, packet, span, mtu, last), send.dest);
        let site = send.site;
        (self.at, self.at_packet) = if last {
            (seq + 1, 0)
        } else {
            (seq, packet + span)
        };
        match dest {
            Dest::Ud { .. } if qp.init.qp_type == QpType::Ud => {
                datagram::send(qp, device, out, payload, dest, site);
            }
            _ => qp.send_to_peer(device, out, payload),
        }
        // UC and UD have no acknowledgement: a send is done when it has left.
        let is_early =
            device.base.behavior.send_done == SendDone::Sent && !self.sq.get(seq).awaits_response();
        let is_done = !qp.is_reliable() || is_early && self.sq.oldest() == seq;
        if last && is_done {
            self.finish(qp, device, WcStatus::Success)
        } else {
            Ok(())
        }
    }
}

/// The number of packets that are sent to another process, or requested from it, at a time. A part
/// of a read begins where it began the first time, since a peer that has answered it knows its end.
#[cfg_attr(any(), mutants::skip)] // the suite does not reach it
fn part(is_read: bool, packet: u32, left: u32) -> u32 {
    // Sends and writes leave packet by packet, because a socket takes datagrams of one MTU.
    if is_read {
        left.min(READ_PART - packet % READ_PART)
    } else {
        1
    }
}

/// The packet of a send that is `packet` sequence numbers after its first.
#[inline(always)]
fn out_packet(send: &Send, packet: u32, span: u32, mtu: u32, last: bool) -> OutPacket {
    let imm = match send.op {
        SendOp::SendWithImm { imm_data } | SendOp::RdmaWriteWithImm { imm_data, .. } => {
            Some(imm_data)
        }
        _ => None,
    };
    let is_read = send.is_read();
    let (span, op) = if is_read {
        (1, request(send, packet, span, mtu))
    } else {
        (span, operation(send, packet, last))
    };
    // Only messages that consume a receive can request an event there.
    let tells = imm.is_some() || matches!(op, Op::Send | Op::SendWithInv(_));
    OutPacket {
        op,
        first: packet == 0 || is_read,
        last: last || is_read,
        psn: send.first.plus(packet),
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

/// The request of a read or an atomic, from this packet of the answer on.
#[inline(always)]
#[cfg_attr(any(), mutants::skip)] // the suite does not reach it
fn request(send: &Send, packet: u32, span: u32, mtu: u32) -> Op {
    if let Some(eth) = atomic::header(&send.op) {
        return Op::AtomicRequest(eth);
    }
    let SendOp::RdmaRead { remote } = send.op else {
        return Op::Send;
    };
    // The data received so far are not requested again.
    let start = send.got + (packet - send.answered) * mtu;
    Op::ReadRequest(Reth {
        va: remote.addr.wrapping_add(start.into()),
        rkey: remote.rkey,
        // The last request asks for all that is missing, because a peer with another path MTU may
        // have brought more or less with each packet.
        length: if packet + span == send.span {
            send.length - start
        } else {
            span * mtu
        },
    })
}

/// The operation of a packet that asks for no data.
#[inline(always)]
fn operation(send: &Send, packet: u32, last: bool) -> Op {
    match send.op {
        SendOp::RdmaWrite { remote } | SendOp::RdmaWriteWithImm { remote, .. } => {
            let reth = Reth {
                va: remote.addr,
                rkey: remote.rkey,
                length: send.length,
            };
            Op::Write((packet == 0).then_some(reth))
        }
        SendOp::SendWithInv { rkey } if last => Op::SendWithInv(rkey),
        _ => extension::request(&send.op).unwrap_or(Op::Send),
    }
}
