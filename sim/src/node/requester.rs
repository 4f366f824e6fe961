//! The requester side: starts sends in order, transmits, takes acknowledgements and read responses,
//! tries again.
//!
//! The send queue of an RC QP, in sequence numbers:
//!
//! ```text
//!     | done | acknowledged up to `una` ... | sent up to `at` ... | waiting |
//! ```
//!
//! After a loss `at` goes back (go-back-N); what was started keeps its numbers.

use core::time::Duration;

use verbs_api::behavior::{Check, Retry7, SendDone};
use verbs_api::lab::{Syndrome, TraceEvent};
use verbs_api::{Access, Dest, QpAttr, QpState, QpType, SendFlags, SendOp, WcStatus};

use super::context::DEFAULT_PKEY;
use super::context::PORT_MTU_BYTES;
use super::qp::{Qp, Send};
use super::queue::WorkQueue;
use super::region::{ProtectionFault, check_empty, touch};
use super::xrc::is_reliable;
use super::{Node, atomic};
use crate::memory::{Gone, Payload};
use crate::packet::{Op, Packet, Psn, Reth, Route, packets};
use crate::time::Time;

/// State of the requester side of a QP.
#[derive(Clone, Debug, Default)]
pub(super) struct Requester {
    /// The number the next send to start gets.
    next: Psn,
    /// The oldest number not acknowledged.
    una: Psn,
    /// The send to transmit next, and its packet.
    at: u64,
    at_packet: u32,
    /// The first send that was never started.
    fresh: u64,
    /// RDMA Reads and atomics under way.
    reads: u8,
    retries: u8,
    rnr_retries: u8,
    waits_for_receiver: bool,
    /// A read is tried again, and no response of the new try has come: what else is missing is
    /// missing for the same loss.
    recovers: bool,
}

/// Whether the next send could be started.
enum Start {
    Started,
    /// Earlier work must be done first.
    Blocked,
    Failed(WcStatus),
}

/// The wait that a receiver-not-ready NAK asks for, by its code, in units of 10 us (TMR-06).
const RNR_WAIT: [u64; 32] = [
    65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024,
    1_536, 2_048, 3_072, 4_096, 6_144, 8_192, 12_288, 16_384, 24_576, 32_768, 49_152,
];

fn rnr_wait(code: u8) -> Duration {
    Duration::from_micros(RNR_WAIT[usize::from(code & 31)] * 10)
}

/// The wait for an acknowledgement, in nanoseconds: 4.096 us times 2 to the power of the code; 0 is
/// for ever.
fn ack_timeout(code: u8) -> Option<u64> {
    (code != 0).then(|| 4_096 << (code & 31))
}

impl Requester {
    /// RTR to RTS.
    pub(super) fn start_at(&mut self, psn: Psn, first: u64, attr: &QpAttr) {
        let (retries, rnr_retries) = (attr.retry_cnt, attr.rnr_retry);
        *self = Self {
            next: psn,
            una: psn,
            at: first,
            fresh: first,
            retries,
            rnr_retries,
            ..*self
        };
    }

    /// Leaves out what was flushed.
    pub(super) fn skip_to(&mut self, seq: u64) {
        *self = Self {
            at: seq,
            at_packet: 0,
            fresh: seq,
            ..*self
        };
    }

    /// The QP goes to the error state.
    pub(super) fn stop(&mut self) {
        self.waits_for_receiver = false;
    }

    pub(super) fn oldest_unanswered(&self) -> Psn {
        self.una
    }

    pub(super) fn waits_for_receiver(&self) -> bool {
        self.waits_for_receiver
    }

    /// Whether started work is not done.
    pub(super) fn is_busy(&self, sq: &WorkQueue<Send>) -> bool {
        sq.oldest() < self.fresh
    }

    /// An RDMA Read or an atomic is done, one way or the other.
    pub(super) fn read_is_done(&mut self, seq: u64) {
        if seq < self.fresh {
            self.reads -= 1;
        }
    }

    fn restore_retries(&mut self, attr: &QpAttr) {
        self.retries = attr.retry_cnt;
        self.rnr_retries = attr.rnr_retry;
        self.recovers = false;
    }
}

impl Send {
    pub(super) fn is_read(&self) -> bool {
        self.op.reads()
    }

    /// The number of the first response of a read that has not come.
    fn next_response(&self) -> Psn {
        self.first.plus(self.answered)
    }

    fn is_answered_in_kind_by(&self, packet: &Packet) -> bool {
        atomic::header(&self.op).is_some() == (packet.op == Op::AtomicResponse)
    }

    /// Whether the next response is as long as it must be.
    fn is_answered_in_length_by(&self, packet: &Packet, mtu: u32) -> bool {
        let most = u64::from(packet.span) * u64::from(mtu);
        let length = most.min((self.length - self.got).into());
        length == packet.payload.len().into()
    }

    fn end(&self) -> Psn {
        self.first.plus(self.span)
    }
}

impl Node {
    /// Starts and transmits what can be.
    #[inline]
    pub(super) fn pump(&mut self, now: Time, index: u32) {
        let qp = self.qps.at(index);
        if qp.requester.at != qp.sq.end() {
            self.pump_waiting(now, index);
        }
    }

    /// As above, where something may wait to be transmitted.
    fn pump_waiting(&mut self, now: Time, index: u32) {
        let mut transmits = false;
        loop {
            let qp = self.qps.at(index);
            let may_start = match qp.attr.qp_state {
                QpState::Rts => true,
                QpState::Sqd => false,
                _ => return,
            };
            let seq = qp.requester.at;
            if qp.requester.waits_for_receiver || seq == qp.sq.end() {
                break;
            }
            if seq == qp.requester.fresh {
                if !may_start {
                    break;
                }
                if self.run_locally(index, seq) {
                    if self.qps.at(index).requester.at == seq {
                        break;
                    }
                    continue;
                }
                match self.start(index, seq) {
                    Start::Started => {}
                    Start::Blocked => break,
                    Start::Failed(status) => {
                        if self.qps.at(index).sq.oldest() < seq {
                            break;
                        }
                        self.finish_send(index, status);
                        continue;
                    }
                }
            }
            self.transmit(index, seq);
            transmits = true;
        }
        if transmits {
            self.keep_timer(now, index, false);
        }
    }

    /// Carries out work that no peer has a part in, once all before it is done; whether it is of
    /// that kind.
    fn run_locally(&mut self, index: u32, seq: u64) -> bool {
        let qp = self.qps.at(index);
        let send = qp.sq.get(seq);
        if !matches!(send.op, SendOp::BindMw { .. } | SendOp::LocalInv { .. })
            || send.failed.is_some()
        {
            return false;
        }
        let op = send.op;
        if qp.sq.oldest() == seq
            && let Some(status) = self.execute_locally(index, op)
        {
            self.qps.at_mut(index).requester.skip_to(seq + 1);
            self.finish_send(index, status);
        }
        true
    }

    /// Gives the next send its sequence numbers and its payload.
    fn start(&mut self, index: u32, seq: u64) -> Start {
        let mtu = self.mtu(index);
        let qp = self.qps.at(index);
        let datagram = match qp.init.qp_type {
            QpType::Ud => self.check_datagram(index, qp.sq.get(seq)),
            _ => Ok(()),
        };
        let qp = self.qps.at_mut(index);
        let is_busy = qp.requester.is_busy(&qp.sq);
        let send = qp.sq.get_mut(seq);
        if let Some(status) = send.failed {
            return Start::Failed(status);
        }
        let reads = qp.requester.reads;
        if send.flags.contains(SendFlags::FENCE) && reads > 0 {
            return Start::Blocked;
        }
        if send.is_read() {
            match qp.attr.max_rd_atomic {
                0 if self.behavior.read_without_depth == Check::Refused => {
                    return Start::Failed(WcStatus::LocQpOpErr);
                }
                most if reads >= most => return Start::Blocked,
                _ => {}
            }
        }
        let mut length = send.length;
        if atomic::header(&send.op).is_some() {
            match atomic::length(self.behavior.atomic_check, length) {
                Ok(taken) => length = taken,
                Err(status) => return Start::Failed(status),
            }
        }
        // Local memory of a read is looked at when the response comes (RDMA-15); inline data has
        // been taken.
        let is_there = send.is_read() || send.flags.contains(SendFlags::INLINE);
        if !is_there {
            let length = send.length.into();
            let checks = self.behavior.zero_len_sge_check;
            let found = check_empty(&self.mrs, checks, qp.pd, &send.list)
                .and_then(|()| touch(&self.mrs, qp.pd, &send.list, 0, length, Access::empty()));
            let stays = self.behavior.send_done == SendDone::Acknowledged;
            let taken = match (found, qp.init.qp_type) {
                (Err(fault), _) => Err(fault),
                (Ok(slices), qp_type) if stays && is_reliable(qp_type) => {
                    send.payload = Payload::Slices(slices);
                    Ok(())
                }
                // The send is done, and its memory the program's again, before this arrives.
                (Ok(slices), _) => Payload::copied(&self.memory, &slices)
                    .map(|payload| send.payload = payload)
                    .map_err(|Gone| ProtectionFault::Key),
            };
            if let Err(fault) = taken {
                return Start::Failed(self.status_of(fault));
            }
        }
        if let Err(status) = datagram {
            return Start::Failed(status);
        }
        let span = packets(length, mtu);
        let reach = qp.requester.next.distance(qp.requester.una) + span;
        if reach > Psn::WINDOW && is_busy {
            return Start::Blocked;
        }
        send.length = length;
        send.first = qp.requester.next;
        send.span = span;
        qp.requester.next = send.end();
        qp.requester.fresh = seq + 1;
        qp.requester.reads += u8::from(send.is_read());
        Start::Started
    }

    /// With which status a send or write fails whose memory is bad.
    fn status_of(&self, fault: ProtectionFault) -> WcStatus {
        let status = match fault {
            ProtectionFault::Key => self.behavior.send_key_status,
            ProtectionFault::Range => self.behavior.send_range_status,
        };
        status.status()
    }

    /// Payload bytes of one packet of a QP.
    pub(super) fn mtu(&self, index: u32) -> u32 {
        let qp = self.qps.at(index);
        match qp.init.qp_type {
            QpType::Ud => self
                .port(qp.attr.port_num)
                .mtu
                .bytes()
                .unwrap_or(PORT_MTU_BYTES),
            _ => qp.mtu,
        }
    }

    /// Sends the next packet of a started send, or all that is left of it at once.
    fn transmit(&mut self, index: u32, seq: u64) {
        let mtu = self.mtu(index);
        let whole = self.whole_messages;
        let qp = self.qps.at_mut(index);
        let qp_type = qp.init.qp_type;
        let send = qp.sq.get(seq);
        let packet = qp.requester.at_packet;
        let left = send.span - packet;
        let span = if whole || send.is_read() { left } else { 1 };
        let last = span == left;
        let psn = send.first.plus(packet);
        let imm = match send.op {
            SendOp::SendWithImm { imm_data } | SendOp::RdmaWriteWithImm { imm_data, .. } => {
                Some(imm_data)
            }
            _ => None,
        };
        let start = packet * mtu;
        let length = if last {
            send.length - start
        } else {
            span * mtu
        };
        let (psn, span, op) = match (send.op, atomic::header(&send.op)) {
            (_, Some(eth)) => (psn, span, Op::AtomicRequest(eth)),
            (SendOp::RdmaRead { remote }, _) => {
                let addr = remote.addr.wrapping_add(send.got.into());
                let reth = Reth {
                    addr,
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
        };
        let (solicited, dest, is_read) = (
            send.flags.contains(SendFlags::SOLICITED),
            send.dest,
            send.is_read(),
        );
        if last {
            qp.requester.at = seq + 1;
            qp.requester.at_packet = 0;
        } else {
            qp.requester.at_packet = packet + span;
        }
        let packet = OutPacket {
            op,
            first: packet == 0 || is_read,
            last,
            psn,
            span,
            ack_req: last,
            solicited: solicited
                && last
                && !is_read
                && (imm.is_some() || matches!(op, Op::Send | Op::SendWithInv(_))),
            imm: imm.filter(|_| last),
            srqn: match dest {
                Dest::Xrc { remote_srqn } => remote_srqn,
                _ => 0,
            },
        };
        let payload = |send: &Send| match is_read {
            true => Payload::default(),
            false => send.payload.part(start, length),
        };
        match dest {
            Dest::Ud {
                ah,
                remote_qpn,
                remote_qkey,
            } if qp_type == QpType::Ud => {
                let payload = payload(self.qps.at(index).sq.get(seq));
                self.send_datagram(index, (packet, payload), ah, remote_qpn, remote_qkey);
            }
            _ => {
                let payload = payload(self.qps.at(index).sq.get(seq));
                self.send_to_peer(index, packet, payload);
            }
        }
        let is_done = match is_reliable(qp_type) {
            true => {
                let early = self.behavior.send_done == SendDone::Sent && !is_read;
                early && self.qps.at(index).sq.oldest() == seq
            }
            false => true,
        };
        if last && is_done {
            self.finish_send(index, WcStatus::Success);
        }
    }

    /// Sends a packet to the peer of a connected QP.
    #[inline(always)]
    pub(super) fn send_to_peer(&mut self, index: u32, packet: OutPacket, payload: Payload) {
        let qp = self.qps.at(index);
        let Some(route) = &qp.route else { return };
        let up = self.port(route.from.port).up;
        let address = Address {
            route,
            transport: qp.init.qp_type,
            src_qpn: qp.qp_num,
            dest_qpn: qp.attr.dest_qp_num,
            pkey: self.pkey_of(qp),
        };
        packet.put(address, payload, self.outbox.push());
        self.sent(up);
    }

    /// Hands the newest packet to the fabric, if its port is up.
    #[inline(always)]
    pub(super) fn sent(&mut self, up: bool) {
        if !up || self.trace.is_some() {
            self.note_sent(up);
        }
    }

    #[cold]
    fn note_sent(&mut self, up: bool) {
        let Some(packet) = self.outbox.back().map(Packet::view) else {
            return;
        };
        self.note(TraceEvent::Sent(packet));
        if !up {
            self.outbox.pop_back();
            self.note(TraceEvent::Lost {
                packet,
                why: "the port is down",
            });
        }
    }

    #[inline(always)]
    pub(super) fn pkey_of(&self, qp: &Qp) -> u16 {
        let pkeys = &self.port(qp.attr.port_num).pkeys;
        let pkey = pkeys.get(usize::from(qp.attr.pkey_index));
        pkey.copied().unwrap_or(DEFAULT_PKEY)
    }

    /// The ack timer runs while started work of an RC QP is not done. `restart` after progress.
    fn keep_timer(&mut self, now: Time, index: u32, restart: bool) {
        let qp = self.qps.at(index);
        if !is_reliable(qp.init.qp_type) || qp.requester.waits_for_receiver {
            return;
        }
        let timeout = match qp.requester.is_busy(&qp.sq) {
            true => ack_timeout(qp.attr.timeout),
            false => None,
        };
        match timeout {
            Some(nanos) if restart || self.timers.get(index).is_none() => {
                let at = now.as_nanos().saturating_add(nanos);
                self.timers.set(index, Some(Time::from_nanos(at)));
            }
            Some(_) => {}
            None => self.timers.set(index, None),
        }
    }

    /// An acknowledgement for an RC QP.
    pub(super) fn acknowledge(&mut self, now: Time, index: u32, psn: Psn, syndrome: Syndrome) {
        if !self.expects(index, psn) {
            return;
        }
        if syndrome == Syndrome::Ack {
            self.progress(now, index, psn.plus(1));
            return self.pump(now, index);
        }
        // A NAK acknowledges all before it.
        if !self.progress(now, index, psn) {
            return self.pump(now, index);
        }
        if let Some(code) = syndrome.rnr_timer() {
            return self.wait_for_receiver(now, index, psn, code);
        }
        match syndrome {
            Syndrome::NakPsnSequence => self.retry(now, index, psn),
            Syndrome::NakInvalidRequest => self.fail(index, WcStatus::RemInvReqErr),
            Syndrome::NakRemoteAccess => self.fail(index, WcStatus::RemAccessErr),
            Syndrome::NakRemoteOperation => self.fail(index, WcStatus::RemOpErr),
            _ => self.fail(index, WcStatus::BadRespErr),
        }
    }

    /// Whether an answer with this number can be for something under way.
    fn expects(&self, index: u32, psn: Psn) -> bool {
        let requester = &self.qps.at(index).requester;
        let una = requester.una;
        self.is_sending(index) && psn.distance(una) < requester.next.distance(una)
    }

    fn is_sending(&self, index: u32) -> bool {
        let state = self.qps.at(index).attr.qp_state;
        matches!(state, QpState::Rts | QpState::Sqd)
    }

    /// All before `upto` is acknowledged. False if that is the end of it: a completion stopped the
    /// queue, or a read response was found missing, and the read is tried again.
    fn progress(&mut self, now: Time, index: u32, upto: Psn) -> bool {
        let una = self.qps.at(index).requester.una;
        let mut reached = upto;
        let mut lost_response = None;
        loop {
            let qp = self.qps.at(index);
            if !qp.requester.is_busy(&qp.sq) {
                break;
            }
            let send = qp.sq.get(qp.sq.oldest());
            if send.is_read() {
                let missing = send.next_response();
                if upto.distance(una) > missing.distance(una) {
                    reached = missing;
                    lost_response = Some(missing);
                }
                break;
            }
            if upto.distance(una) < send.end().distance(una) {
                break;
            }
            self.finish_send(index, WcStatus::Success);
            if !self.is_sending(index) {
                return false;
            }
        }
        let qp = self.qps.at_mut(index);
        if reached != una {
            qp.requester.una = reached;
            qp.requester.restore_retries(&qp.attr);
            self.catch_up(index);
            self.keep_timer(now, index, true);
            self.check_drained(index);
        }
        if let Some(missing) = lost_response
            && !std::mem::replace(&mut self.qps.at_mut(index).requester.recovers, true)
        {
            self.retry(now, index, missing);
        }
        lost_response.is_none()
    }

    /// What was acknowledged is not transmitted again.
    fn catch_up(&mut self, index: u32) {
        let qp = self.qps.at(index);
        let (oldest, una) = (qp.sq.oldest(), qp.requester.una);
        if qp.requester.at < oldest || (qp.requester.at == oldest && oldest < qp.requester.fresh) {
            self.rewind(index, una, false);
        }
    }

    /// Goes on transmitting at `psn`; only forward unless `back`.
    fn rewind(&mut self, index: u32, psn: Psn, back: bool) {
        let qp = self.qps.at_mut(index);
        let mut seq = qp.sq.oldest();
        let una = qp.requester.una;
        let is_before = |send: &Send| send.end().distance(una) <= psn.distance(una);
        while seq < qp.requester.fresh && is_before(qp.sq.get(seq)) {
            seq += 1;
        }
        let mut packet = 0;
        if seq < qp.requester.fresh {
            let send = qp.sq.get(seq);
            let offset = psn.distance(send.first);
            if !send.is_read() && offset < send.span {
                packet = offset;
            }
        }
        let requester = &mut qp.requester;
        if back || (seq, packet) > (requester.at, requester.at_packet) {
            (requester.at, requester.at_packet) = (seq, packet);
        }
    }

    /// Tries again from `psn` (TMR-03): a time-out, or an answer that says something was lost.
    fn retry(&mut self, now: Time, index: u32, psn: Psn) {
        if self.behavior.send_done == SendDone::Sent {
            return self.fail(index, WcStatus::RetryExcErr);
        }
        let endless = self.behavior.retry7 == Retry7::Unlimited;
        let qp = self.qps.at_mut(index);
        match qp.requester.retries {
            0 => return self.fail(index, WcStatus::RetryExcErr),
            7.. if endless => {}
            _ => qp.requester.retries -= 1,
        }
        self.rewind(index, psn, true);
        self.keep_timer(now, index, true);
        self.pump(now, index);
    }

    /// The receiver is not ready (RNR-01): wait as long as it asked for.
    fn wait_for_receiver(&mut self, now: Time, index: u32, psn: Psn, code: u8) {
        let qp = self.qps.at_mut(index);
        match qp.requester.rnr_retries {
            0 => return self.fail(index, WcStatus::RnrRetryExcErr),
            7 => {}
            _ => qp.requester.rnr_retries -= 1,
        }
        qp.requester.waits_for_receiver = true;
        self.rewind(index, psn, true);
        self.timers.set(index, Some(now.after(rnr_wait(code))));
    }

    /// The oldest send fails.
    fn fail(&mut self, index: u32, status: WcStatus) {
        let sq = &self.qps.at(index).sq;
        let oldest = sq.has_undone().then(|| sq.get(sq.oldest()));
        let is_early = self.behavior.send_done == SendDone::Sent;
        match oldest {
            Some(oldest) if !is_early || oldest.is_read() => self.finish_send(index, status),
            // What failed has completed long ago.
            _ if is_early => self.enter_error(index),
            _ => {}
        }
    }

    /// A read response for an RC QP.
    pub(super) fn take_response(&mut self, now: Time, index: u32, packet: &Packet) {
        // It acknowledges all before it.
        if !self.expects(index, packet.psn) || !self.progress(now, index, packet.psn) {
            return self.pump(now, index);
        }
        let mtu = self.mtu(index);
        let qp = self.qps.at(index);
        if !qp.requester.is_busy(&qp.sq) {
            return;
        }
        let seq = qp.sq.oldest();
        let send = qp.sq.get(seq);
        if !send.is_read() || send.next_response() != packet.psn {
            return;
        }
        if !send.is_answered_in_kind_by(packet) {
            return self.fail(index, WcStatus::BadRespErr);
        }
        match self.behavior.read_mtu {
            Check::Refused if !packet.fits(mtu) => {
                return self.fail(index, WcStatus::LocLenErr);
            }
            Check::Refused if !send.is_answered_in_length_by(packet, mtu) => {
                return self.fail(index, WcStatus::BadRespErr);
            }
            // It is for sequence numbers that the read does not have.
            Check::Accepted if packet.span > send.span - send.answered => return,
            _ => {}
        }
        let length = u64::from(packet.payload.len());
        let target = self.touch(
            qp.pd,
            &send.list,
            send.got.into(),
            length,
            Access::LOCAL_WRITE,
        );
        let Ok(target) = target else {
            return self.fail(index, self.behavior.read_fault_status.status());
        };
        if packet.payload.copy_to(&self.memory, &target) == Err(Gone) {
            // The memory went away while the packet was on its way: it is lost.
            return;
        }
        let qp = self.qps.at_mut(index);
        let send = qp.sq.get_mut(seq);
        send.got += length as u32;
        send.answered += packet.span;
        let complete = send.got >= send.length;
        qp.requester.una = packet.psn.plus(packet.span);
        qp.requester.restore_retries(&qp.attr);
        if complete {
            self.finish_send(index, WcStatus::Success);
        }
        self.catch_up(index);
        self.keep_timer(now, index, true);
        self.check_drained(index);
        self.pump(now, index);
    }

    /// The timer of an RC QP fired.
    pub(super) fn timeout(&mut self, now: Time, index: u32) {
        let requester = &mut self.qps.at_mut(index).requester;
        if std::mem::take(&mut requester.waits_for_receiver) {
            self.pump(now, index);
            // An answer may be missing though there is nothing to transmit again.
            return self.keep_timer(now, index, false);
        }
        requester.recovers = false;
        let una = requester.una;
        self.retry(now, index, una);
    }
}

/// Where a packet goes to.
#[derive(Clone, Copy)]
pub(super) struct Address<'a> {
    pub(super) route: &'a Route,
    pub(super) transport: QpType,
    pub(super) src_qpn: u32,
    pub(super) dest_qpn: u32,
    pub(super) pkey: u16,
}

/// A packet without its address and its payload.
#[derive(Clone, Copy)]
pub(super) struct OutPacket {
    pub(super) op: Op,
    pub(super) first: bool,
    pub(super) last: bool,
    pub(super) psn: Psn,
    pub(super) span: u32,
    pub(super) ack_req: bool,
    pub(super) solicited: bool,
    pub(super) imm: Option<[u8; 4]>,
    /// Of a request of XRC: the SRQ it is for.
    pub(super) srqn: u32,
}

impl OutPacket {
    /// An answer of one packet.
    pub(super) fn answer(op: Op, psn: Psn) -> Self {
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
    pub(super) fn put(self, to: Address<'_>, payload: Payload, place: &mut Packet) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// TMR-06, TMR-01: the tables of waits.
    #[test]
    fn waits_by_code() {
        assert_eq!(rnr_wait(0), Duration::from_micros(655_360));
        assert_eq!(rnr_wait(1), Duration::from_micros(10));
        assert_eq!(rnr_wait(12), Duration::from_micros(640));
        assert_eq!(rnr_wait(31), Duration::from_micros(491_520));
        assert_eq!(ack_timeout(0), None);
        assert_eq!(ack_timeout(1), Some(8_192));
        assert_eq!(ack_timeout(31), Some(4_096 << 31));
    }
}
