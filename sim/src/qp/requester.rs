//! The requester side: starts sends in order, handles acknowledgements and read responses, and
//! retries.
//!
//! The send queue of an RC QP, in sequence numbers:
//!
//! ```text
//!     | done | acknowledged up to `una` ... | sent up to `at` ... | waiting |
//! ```
//!
//! After a loss `at` goes back (go-back-N). Started sends keep their sequence numbers.
//!
//! An example: three sends of two packets each start at sequence number 10, and a fourth has not
//! started. An ACK of 11 arrives, then a NAK that reports 13 as missing:
//!
//! ```text
//!     numbers     10 11 | 12 13 | 14 15 |
//!     at first    A  A  | B  B  | C  C  | D       una 10, next 16, at D
//!     ACK 11      done  | B  B  | C  C  | D       una 12: A completes, the retries are full again
//!     NAK 13      done  | B  B  | C  C  | D       una 13: 12 is acknowledged, too
//!                          ^ at                   one retry less; 13, 14, 15 leave again, then D
//! ```

use verbs_api::behavior::{Check, Retry7, SendByteLen, SendDone};
use verbs_api::lab::Syndrome;
use verbs_api::{
    Access, AsyncEventType, Element, QpAttr, QpState, QpType, SendFlags, SendOp, SendWr, Wc,
    WcStatus,
};

use super::atomic;
use super::cached_path::CachedPath;
use super::common::Common;
use super::datagram;
use super::loss::Known;
use super::phase::Phase;
use super::queue::WorkQueue;
use super::send::{hold_ah, release_each, taken};
use super::sum;
use super::verdict::Stop;
use super::wait::{ack_timeout, rnr_wait};
use crate::device::{ClaimedQueue, Completion, Delivery, Device, Queue, Send, odp_need, touch};
use crate::packet::payload::Payload;
use crate::packet::{Packet, Psn, packets};
use crate::time::Time;

/// The requester side of a QP.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requester {
    pub(crate) pd: u32,
    /// The index of the CQ of its sends.
    pub(crate) cq: u32,
    pub(crate) sq: WorkQueue<Send>,
    /// The sequence number of the next send to start.
    pub(crate) next: Psn,
    /// The oldest number that is not acknowledged.
    pub(super) una: Psn,
    pub(crate) path: CachedPath,
    /// The send to transmit next, and its next packet.
    pub(super) at: u64,
    pub(super) at_packet: u32,
    /// The first send that has never started.
    fresh: u64,
    /// RDMA Reads, atomics and atomic writes in progress.
    pub(super) reads: u8,
    retries: u8,
    rnr_retries: u8,
    /// When the wait for a slow peer began, if there was no progress since.
    pub(super) slow_since: Option<Time>,
    pub(super) phase: Phase,
    /// The number of an acknowledgement that has arrived and does not count yet.
    pub(super) held_ack: Option<Psn>,
    /// In SQD: `SQ_DRAINED` is to be raised once.
    pub(super) notifies_drained: bool,
    pub(super) known: Known,
    /// The number after the last read or atomic that was posted, or given to a batch that was
    /// refused. 0 before the first one.
    pub(super) reads_end: u64,
    /// The number of the last fenced send: it and all later ones start after the reads before it.
    pub(super) fenced: u64,
    /// The peer may have answered the sends posted before this number. Kept only where memory is
    /// checked.
    pub(super) answered: u64,
}

impl Requester {
    /// A requester of this protection domain and CQ that has started nothing of its queue.
    pub(super) fn new(pd: u32, cq: u32, sq: WorkQueue<Send>) -> Self {
        Self {
            pd,
            cq,
            sq,
            ..Self::default()
        }
    }

    /// The transition from RTR to RTS: `psn` is the first sequence number.
    pub(super) fn start_at(&mut self, psn: Psn, attr: &QpAttr) {
        (self.next, self.una) = (psn, psn);
        self.at = self.sq.oldest();
        self.fresh = self.at;
        (self.retries, self.rnr_retries) = (attr.retry_cnt, attr.rnr_retry);
    }

    /// Skips the sends before this one, which are done.
    pub(super) fn skip_to(&mut self, seq: u64) {
        (self.at, self.at_packet) = (seq, 0);
        self.fresh = seq;
    }

    /// The transition to RESET clears the queue without completions.
    pub(super) fn reset(&mut self, device: &mut Device) {
        let free = release_each(&mut device.domains.ahs);
        let dropped = self.sq.clear(&mut device.places.sends, free);
        let sq = std::mem::take(&mut self.sq);
        *self = Self::new(self.pd, self.cq, sq);
        device.domains.pds.at_mut(self.pd).posted -= dropped;
    }

    /// Whether nothing is in progress, so that the next send may start.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn is_at_rest(&self, qp: &Common) -> bool {
        let oldest = self.sq.oldest();
        !self.sq.has_undone()
            && (self.at, self.at_packet, self.fresh) == (oldest, 0, oldest)
            // UC and UD have no acknowledgements, so `una` does not follow.
            && (self.una == self.next || !qp.is_reliable())
            && self.reads == 0
            && self.phase == Phase::default()
    }

    /// Records a send that the fast path has carried out: it enters the queue as done, with `span`
    /// sequence numbers and `length` bytes.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn record_sent(
        &mut self,
        qp: &Common,
        device: &mut Device,
        wr: &SendWr<'_>,
        span: u32,
        length: u32,
    ) {
        let (send, is_first) = self.sq.push(&mut device.places.sends);
        send.put(wr, length, None);
        send.site = device.base.site;
        (send.first, send.span) = (self.next, span);
        let is_read = send.is_read();
        // The fast path moves the data of a read before it records it, so all of it is answered.
        if is_read {
            (send.got, send.answered) = (length, span);
        }
        self.note_posted(qp, device, wr);
        if is_first {
            device.claims.mark_unsorted(ClaimedQueue::Send(qp.index()));
        }
        // The address handle is in use until the slot is free, as with packets.
        hold_ah(&mut device.domains.ahs, &wr.dest);
        device.domains.pds.at_mut(self.pd).posted += 1;
        let seq = self.sq.finish();
        (self.at, self.fresh) = (seq + 1, seq + 1);
        self.next = self.next.plus(span);
        // The fast path delivers before it records, so nothing is left to acknowledge.
        if qp.is_reliable() {
            self.una = self.next;
            (self.retries, self.rnr_retries) = (qp.attr.retry_cnt, qp.attr.rnr_retry);
        }
        if device.releases_at_completion() {
            self.release(device, seq);
        }
        if !qp.signals(wr.flags) {
            return;
        }
        let mut wc = Wc::default();
        wc.wr_id = wr.wr_id;
        wc.opcode = wr.op.wc_opcode();
        wc.byte_len = match device.base.behavior.send_byte_len {
            SendByteLen::Reads if !is_read => 0,
            _ => length,
        };
        wc.qp_num = qp.qp_num;
        let ticket = qp.ticket(Queue::Send, seq, wr.label());
        let solicited = wr.flags.contains(SendFlags::SOLICITED);
        device
            .cqs
            .add_success(&mut device.base, self.cq, wc, ticket, solicited);
    }

    /// The sequence number of the packet to transmit next.
    pub(super) fn at_psn(&self) -> Psn {
        if self.at == self.fresh {
            return self.next;
        }
        let send = self.sq.get(self.at);
        // Only reads have answers, which continue with the first missing one.
        send.first.plus(self.at_packet.max(send.answered))
    }

    /// Whether started work is not done.
    pub(crate) fn is_busy(&self) -> bool {
        self.sq.oldest() < self.fresh
    }

    /// Starts and transmits as much as it may.
    #[inline]
    pub(super) fn pump(&mut self, qp: &Common, device: &mut Device) -> Result<(), Stop> {
        if self.at == self.sq.end() {
            Ok(())
        } else {
            self.pump_waiting(qp, device)
        }
    }

    /// Like [`pump`](Self::pump), for a queue that may have packets to transmit.
    fn pump_waiting(&mut self, qp: &Common, device: &mut Device) -> Result<(), Stop> {
        let may_start = match qp.state() {
            QpState::Rts => true,
            // SQD finishes started sends and starts no more (QP-STATE-10).
            QpState::Sqd => false,
            _ => return Ok(()),
        };
        let mut transmits = false;
        while !self.phase.waits && self.at != self.sq.end() {
            // An acknowledgement continues this loop.
            if self.is_window_full(qp, device) {
                break;
            }
            let seq = self.at;
            if seq == self.fresh {
                if !may_start {
                    break;
                }
                // Sends that cannot succeed fail in their turn, so `start` handles them.
                let send = self.sq.get(seq);
                if send.is_local() && send.failed.is_none() {
                    // Local work runs in order: after all earlier sends are done.
                    if self.sq.oldest() != seq {
                        break;
                    }
                    self.run_locally(qp, device, seq)?;
                    continue;
                }
                match self.start(qp, device, seq) {
                    Ok(true) => {}
                    // Earlier work must be done first.
                    Ok(false) => break,
                    // Sends complete in order, so this failure waits until the earlier sends are
                    // done.
                    Err(_) if self.sq.oldest() < seq => break,
                    Err(status) => return self.finish(qp, device, status),
                }
            }
            // Sends one packet if the window counts packets, so that it is checked again.
            self.transmit(qp, device, seq)?;
            transmits = true;
        }
        // A send that only waits must not push back the deadline of the earlier ones.
        if transmits {
            self.keep_timer(qp, device, false);
        }
        Ok(())
    }

    /// Carries out work that does not involve a peer.
    fn run_locally(&mut self, qp: &Common, device: &mut Device, seq: u64) -> Result<(), Stop> {
        let (done, failure) = match self.sq.get(seq).op {
            SendOp::BindMw { mw, rkey, info } => {
                let done = device.bind(qp.handle, self.pd, mw, rkey, info);
                (done, WcStatus::MwBindErr)
            }
            SendOp::LocalInv { rkey } => (
                device.domains.invalidate(&device.base, qp.handle, rkey),
                WcStatus::LocQpOpErr,
            ),
            _ => (None, WcStatus::LocQpOpErr),
        };
        // Local work has no packets to transmit.
        self.skip_to(seq + 1);
        self.finish(qp, device, done.map_or(failure, |()| WcStatus::Success))
    }

    /// Assigns the next send its sequence numbers and its payload. Returns whether it could be
    /// started now. The error is the status it fails with.
    fn start(&mut self, qp: &Common, device: &mut Device, seq: u64) -> Result<bool, WcStatus> {
        let mtu = qp.mtu(device);
        // The check needs the queue, which is borrowed mutably below.
        let datagram = match qp.init.qp_type {
            QpType::Ud => {
                let send = self.sq.get(seq);
                datagram::check(device, self.pd, mtu, send.dest, send.length)
            }
            _ => Ok(()),
        };
        let is_busy = self.is_busy();
        let (reads, under_way) = (self.reads, self.reads_under_way(qp));
        let send = self.sq.get_mut(seq);
        if let Some(status) = send.failed {
            return Err(status);
        }
        // A fenced send may take bytes that an earlier read still writes.
        if send.flags.contains(SendFlags::FENCE) && reads > 0 {
            return Ok(false);
        }
        let behavior = &device.base.behavior;
        if send.op.takes_depth() {
            // Without a depth at the peer no read may be sent, on devices that check it.
            match qp.attr.max_rd_atomic {
                0 if behavior.read_without_depth == Check::Refused => {
                    return Err(WcStatus::LocQpOpErr);
                }
                most if under_way >= most.into() => return Ok(false),
                _ => {}
            }
        }
        let regions = &device.domains.regions;
        if !regions.may_page(
            qp.init.qp_type,
            odp_need(send),
            &send.list,
            send.length.into(),
        ) {
            return Err(behavior.send_key_status.status());
        }
        let mut length = send.length;
        if atomic::header(&send.op).is_some() {
            length = atomic::length(behavior.atomic_check, length)?;
        }
        // The local memory of a read is checked when the response arrives (RDMA-15).
        if let SendOp::AtomicWrite { value, .. } = send.op {
            send.payload = Payload::inline(value[..].into());
            length = atomic::BYTES;
        } else if send.flags.contains(SendFlags::INLINE) {
            send.payload = Payload::inline(send.inline[..].into());
        } else if !send.is_read() {
            // A reliable send keeps its bytes in place until the acknowledgement, so a retry reads
            // them again.
            let stays = behavior.send_done == SendDone::Acknowledged && qp.is_reliable();
            send.payload = taken(device, self.pd, send, stays)?;
        }
        // The memory of a datagram is checked before its destination.
        datagram?;
        let span = packets(length, mtu);
        // Beyond half the range, new numbers could not be distinguished from old ones.
        let reach = self.next.distance(self.una) + span;
        if reach > Psn::WINDOW && is_busy {
            return Ok(false);
        }
        send.length = length;
        send.first = self.next;
        send.span = span;
        self.next = send.end();
        self.fresh = seq + 1;
        self.reads += u8::from(send.op.takes_depth());
        Ok(true)
    }

    /// Completes the oldest send that is not done. The queue goes on.
    pub(super) fn complete(
        &mut self,
        qp: &Common,
        device: &mut Device,
        status: WcStatus,
    ) -> Delivery {
        let behavior = &device.base.behavior;
        let releases = device.releases_at_completion();
        let silent = status == WcStatus::MwBindErr && !behavior.bind_err_wc;
        let seq = self.sq.finish();
        // A failed send may not have been read by the device.
        sum::forget_failed(self, seq, status);
        let send = self.sq.get(seq);
        let is_read = send.is_read();
        // A send that never started is not counted among the reads in progress.
        if send.op.takes_depth() && seq < self.fresh {
            self.reads -= 1;
        }
        let signaled = qp.signals(send.flags);
        let mut wc = Wc::default();
        wc.wr_id = send.wr_id;
        let label = send.label;
        wc.status = status;
        wc.opcode = send.op.wc_opcode();
        // Most drivers report a length for reads and atomics only.
        wc.byte_len = match behavior.send_byte_len {
            SendByteLen::Reads if !is_read => 0,
            _ => send.length,
        };
        wc.qp_num = qp.qp_num;
        let solicited = send.flags.contains(SendFlags::SOLICITED);
        if releases {
            sum::compare(self, qp, device, seq);
            self.release(device, seq);
        }
        // Failed sends complete even if they are unsignaled.
        if !signaled && (status == WcStatus::Success || silent) {
            return Delivery::Made;
        }
        let completion = Completion {
            wc,
            ticket: qp.ticket(Queue::Send, seq, label),
            solicited,
            of_datagram: false,
        };
        device.complete(self.cq, completion)
    }

    /// Frees the slots of done sends up to this one.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // cost
    pub(crate) fn release(&mut self, device: &mut Device, seq: u64) {
        let free = release_each(&mut device.domains.ahs);
        let released = self.sq.release(seq, &mut device.places.sends, free);
        device.domains.pds.at_mut(self.pd).posted -= released;
    }

    /// Sets or stops the ack timer, which runs while started work of an RC QP is not done.
    /// `restart` is for progress.
    pub(super) fn keep_timer(&self, qp: &Common, device: &mut Device, restart: bool) {
        // While the peer is not ready, or an acknowledgement waits, the timer measures that wait.
        if !qp.is_reliable() || self.phase.waits || self.held_ack.is_some() {
            return;
        }
        let timeout = ack_timeout(qp.attr.timeout).filter(|_| self.is_busy());
        let (index, timers) = (qp.index(), &mut device.timers);
        match timeout {
            // Without progress a running timer keeps its deadline.
            Some(nanos) if restart || timers.get(index).is_none() => {
                let at = device.base.now.as_nanos().saturating_add(nanos);
                timers.set(index, Some(Time::from_nanos(at)));
            }
            Some(_) => {}
            None => timers.set(index, None),
        }
    }

    /// Handles an acknowledgement for an RC QP, which counts now.
    pub(super) fn acknowledge(
        &mut self,
        qp: &Common,
        device: &mut Device,
        psn: Psn,
        syndrome: Syndrome,
    ) -> Result<(), Stop> {
        let is_end = device.base.is_end(syndrome);
        // The end of the connection concerns a requester without work under way too.
        if !(self.expects(qp, psn) || is_end && self.is_next(qp, psn)) {
            return Ok(());
        }
        if syndrome == Syndrome::Ack {
            self.progress(qp, device, psn.plus(1))?;
            return self.pump(qp, device);
        }
        // A NAK acknowledges everything before its number.
        let is_acknowledged = self.progress(qp, device, psn)?;
        if is_end {
            return self.hear_end(qp, device);
        }
        if !is_acknowledged {
            return self.pump(qp, device);
        }
        // The request was not carried out for want of a receive, so it is sent again later.
        if let Some(code) = syndrome.rnr_timer() {
            return self.start_rnr_timer(qp, device, psn, code);
        }
        // All other NAKs end the send.
        let status = match syndrome {
            Syndrome::NakPsnSequence => return self.retry(qp, device, psn),
            Syndrome::NakInvalidRequest => WcStatus::RemInvReqErr,
            Syndrome::NakRemoteAccess => WcStatus::RemAccessErr,
            Syndrome::NakRemoteOperation => WcStatus::RemOpErr,
            _ => WcStatus::BadRespErr,
        };
        self.fail(qp, device, status)
    }

    /// Whether this is the number of the next send to start.
    fn is_next(&self, qp: &Common, psn: Psn) -> bool {
        matches!(qp.state(), QpState::Rts | QpState::Sqd) && psn == self.next
    }

    /// Whether an answer with this number can be for something in progress.
    pub(super) fn expects(&self, qp: &Common, psn: Psn) -> bool {
        // Sequence numbers wrap, so their distance from `una` is compared.
        matches!(qp.state(), QpState::Rts | QpState::Sqd)
            && psn.distance(self.una) < self.next.distance(self.una)
    }

    /// Everything before `upto` is acknowledged: completes these sends. Returns false if a response
    /// before it is missing. Its request is retried.
    fn progress(&mut self, qp: &Common, device: &mut Device, upto: Psn) -> Result<bool, Stop> {
        let una = self.una;
        let mut reached = upto;
        let mut lost_response = None;
        while self.is_busy() {
            let send = self.sq.get(self.sq.oldest());
            if send.awaits_response() {
                let missing = send.next_response();
                // A later answer overtakes a response: the response is lost. What follows its
                // request is not acknowledged until the request is answered.
                if upto.distance(una) > missing.distance(una) {
                    reached = missing;
                    lost_response = Some(missing);
                }
                break;
            }
            if upto.distance(una) < send.end().distance(una) {
                break;
            }
            self.finish(qp, device, WcStatus::Success)?;
        }
        if reached != una {
            self.reach(qp, device, reached);
        }
        let Some(missing) = lost_response else {
            return Ok(true);
        };
        // Several later answers may report the same loss, which costs one retry.
        if self.phase.response_lost() {
            self.retry(qp, device, missing)?;
        }
        Ok(false)
    }

    /// Moves on the oldest number that is not acknowledged. Progress restores all retries.
    fn reach(&mut self, qp: &Common, device: &mut Device, una: Psn) {
        self.una = una;
        (self.retries, self.rnr_retries) = (qp.attr.retry_cnt, qp.attr.rnr_retry);
        self.slow_since = None;
        self.phase.progress();
        self.catch_up();
        self.keep_timer(qp, device, true);
        // The last answer in SQD may be this one.
        self.check_drained(qp, device);
    }

    /// Skips acknowledged packets that were to be transmitted again.
    fn catch_up(&mut self) {
        let oldest = self.sq.oldest();
        if self.at < oldest || (self.at == oldest && oldest < self.fresh) {
            self.rewind(self.una, false);
        }
    }

    /// Continues transmitting at `psn`, only forward unless `back`.
    pub(super) fn rewind(&mut self, psn: Psn, back: bool) {
        let mut seq = self.sq.oldest();
        let una = self.una;
        let is_before = |send: &Send| send.end().distance(una) <= psn.distance(una);
        while seq < self.fresh && is_before(self.sq.get(seq)) {
            seq += 1;
        }
        let mut packet = 0;
        if seq < self.fresh {
            let send = self.sq.get(seq);
            let offset = psn.distance(send.first);
            // A read restarts with its first missing response, which `answered` knows.
            if !send.is_read() && offset < send.span {
                packet = offset;
            }
        }
        // An acknowledgement never moves transmission back: its packets may be on the way.
        if back || (seq, packet) > (self.at, self.at_packet) {
            (self.at, self.at_packet) = (seq, packet);
        }
    }

    /// Retries from `psn` (TMR-03), after a timeout or an answer that reports a loss.
    pub(super) fn retry(&mut self, qp: &Common, device: &mut Device, psn: Psn) -> Result<(), Stop> {
        let behavior = &device.base.behavior;
        // A device that completes sends when they leave does not keep their bytes, so it cannot
        // send them again.
        if behavior.send_done == SendDone::Sent {
            return self.fail(qp, device, WcStatus::RetryExcErr);
        }
        let endless = behavior.retry7 == Retry7::Unlimited;
        match self.retries {
            0 => return self.fail(qp, device, WcStatus::RetryExcErr),
            7.. if endless => {}
            _ => self.retries -= 1,
        }
        self.rewind(psn, true);
        self.keep_timer(qp, device, true);
        self.pump(qp, device)
    }

    /// The receiver is not ready (RNR-01): waits for the time that it asked for.
    fn start_rnr_timer(
        &mut self,
        qp: &Common,
        device: &mut Device,
        psn: Psn,
        code: u8,
    ) -> Result<(), Stop> {
        match self.rnr_retries {
            0 => return self.fail(qp, device, WcStatus::RnrRetryExcErr),
            // 7 stands for an unlimited number.
            7 => {}
            _ => self.rnr_retries -= 1,
        }
        // The later requests were dropped by the peer, so all are sent again.
        self.phase.wait();
        self.rewind(psn, true);
        let at = device.base.now.after(rnr_wait(code));
        device.timers.set(qp.index(), Some(at));
        Ok(())
    }

    /// Fails the oldest send.
    fn fail(&mut self, qp: &Common, device: &mut Device, status: WcStatus) -> Result<(), Stop> {
        let sq = &self.sq;
        // All sends may be done, on a device that completes them when they leave.
        let oldest = sq.has_undone().then(|| sq.get(sq.oldest()));
        let is_early = device.base.behavior.send_done == SendDone::Sent;
        match oldest {
            Some(oldest) if !is_early || oldest.awaits_response() => {
                self.finish(qp, device, status)
            }
            // The send that failed has long been completed with success, so only the queue pair can
            // fail.
            _ if is_early => Err(Stop::All),
            _ => Ok(()),
        }
    }

    /// Handles a read response for an RC QP.
    pub(super) fn take_response(
        &mut self,
        qp: &Common,
        device: &mut Device,
        packet: &Packet,
    ) -> Result<(), Stop> {
        if !self.expects(qp, packet.psn) {
            return self.pump(qp, device);
        }
        // A response acknowledges everything before it.
        if !self.progress(qp, device, packet.psn)? {
            return self.pump(qp, device);
        }
        // The response of an earlier try completed the read.
        if !self.is_busy() {
            return Ok(());
        }
        let seq = self.sq.oldest();
        let send = self.sq.get(seq);
        // It is a duplicate, or responses before it are missing.
        if !send.awaits_response() || send.next_response() != packet.psn {
            return Ok(());
        }
        let behavior = &device.base.behavior;
        let mtu = qp.mtu(device);
        let failure = match behavior.read_mtu {
            _ if !send.is_answered_in_kind_by(packet) => Some(WcStatus::BadRespErr),
            Check::Refused if !packet.fits(mtu) => Some(WcStatus::LocLenErr),
            Check::Refused if !send.is_answered_in_length_by(packet, mtu) => {
                Some(WcStatus::BadRespErr)
            }
            // It covers sequence numbers that the read does not have.
            Check::Accepted if packet.span > send.span - send.answered => return Ok(()),
            _ => None,
        };
        if let Some(status) = failure {
            return self.fail(qp, device, status);
        }
        // The memory of the read is checked now, because its region may have changed (RDMA-15).
        let (got, length) = (send.got.into(), u64::from(packet.payload.len()));
        let (regions, need) = (&device.domains.regions, Access::LOCAL_WRITE);
        let fault = behavior.read_fault_status.status();
        let Ok(target) = touch(regions, self.pd, &send.list, got, length, need) else {
            return self.fail(qp, device, fault);
        };
        if let Err(gone) = qp.place(device, packet, &target) {
            // If the memory was deregistered while the packet was on its way, the packet counts
            // as lost.
            return if device.note_unmapped(gone) {
                self.fail(qp, device, fault)
            } else {
                Ok(())
            };
        }
        let send = self.sq.get_mut(seq);
        send.got += length as u32;
        send.answered += packet.span;
        // The read completes before `una` moves on, so that the next sends do not overtake it.
        if send.got >= send.brings() {
            self.finish(qp, device, WcStatus::Success)?;
        }
        self.reach(qp, device, packet.psn.plus(packet.span));
        self.pump(qp, device)
    }

    /// The queue has entered SQD. `tells` is whether the program asked for an event when it has
    /// drained.
    pub(super) fn drain(&mut self, qp: &Common, device: &mut Device, tells: bool) {
        self.notifies_drained = tells;
        self.check_drained(qp, device);
    }

    /// Raises `SQ_DRAINED` once when a queue in SQD that asked for it has drained (QP-STATE-11).
    fn check_drained(&mut self, qp: &Common, device: &mut Device) {
        if qp.state() == QpState::Sqd && self.notifies_drained && !self.is_busy() {
            // The event is raised once for each transition to SQD.
            self.notifies_drained = false;
            let element = Element::Qp(qp.handle);
            device.base.raise(AsyncEventType::SqDrained, element);
        }
    }
}
