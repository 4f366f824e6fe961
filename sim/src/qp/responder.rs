//! The responder side of connected QPs: what a request does to memory and receives, and its answer.

use std::mem;

use verbs_api::behavior::{Check, QpAccessStatus, SendInvalAnswer, ShortStatus, UnknownSrq};
use verbs_api::lab::Syndrome;
use verbs_api::{Access, AsyncEventType, QpType, Wc, WcFlags, WcOpcode, WcStatus};

use super::atomic;
use super::common::Common;
use super::reading::{Reading, Reads};
use super::receives::Receives;
use super::resources::Resource;
use super::verdict::Refusal;
use crate::device::{Device, NoReceive, OutPacket, Peer, check_empty, touch};
use crate::memory::{Gone, Placing, Slice};
use crate::packet::payload::{Payload, Scatter};
use crate::packet::{AtomicEth, DropReason, Op, Packet, Psn, Reth, packets};

/// The responder side of a QP.
#[derive(Clone, Debug)]
pub(crate) struct Responder {
    pub(crate) receives: Receives,
    pub(super) sequence: Sequence,
    pub(crate) reads: Reads,
}

/// What arrived in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence {
    /// The sequence number of the next request.
    pub(super) expected: Psn,
    /// The number of sequence numbers it has accepted. A request further back is not a duplicate,
    /// but was never expected.
    taken: u32,
    /// The number of completed requests (MSN), modulo 2^24.
    pub(super) completed: Psn,
    /// Whether a NAK was sent for the expected request. Requests out of order are ignored until
    /// that one arrives.
    nak_is_out: bool,
    /// The message that is arriving.
    message: Option<Message>,
}

/// A message of several packets that is arriving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    Send { got: u32 },
    Write { reth: Reth, got: u32 },
}

/// The order of a request, compared with the expected one.
pub(super) enum Order {
    Expected,
    /// An earlier one is missing.
    Ahead,
    /// It was carried out before: an acknowledgement or a response was lost.
    Duplicate,
    NeverExpected,
}

impl Responder {
    pub(super) fn new(receives: Receives) -> Self {
        Self {
            receives,
            sequence: Sequence::default(),
            reads: Reads::default(),
        }
    }

    /// The transition from INIT to RTR.
    pub(super) fn expect(&mut self, psn: Psn) {
        self.sequence = Sequence {
            expected: psn,
            ..Sequence::default()
        };
    }

    /// The connection has ended.
    pub(super) fn reset(&mut self) {
        self.sequence = Sequence::default();
        self.reads = Reads::default();
    }

    /// The bytes of the current message that have arrived.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(super) fn got(&self) -> u32 {
        match self.sequence.message {
            Some(Message::Send { got } | Message::Write { got, .. }) => got,
            None => 0,
        }
    }

    /// Discards the part of the current message that has arrived. Its receive is used again.
    pub(super) fn abandon_message(&mut self) {
        self.sequence.message = None;
    }

    /// Whether it has carried out a request of this connection.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(super) fn has_taken(&self) -> bool {
        self.sequence.taken > 0
    }

    /// Compares the number of a request of a reliable connection with the expected one.
    pub(super) fn order(&mut self, psn: Psn) -> Order {
        match psn.after(self.sequence.expected) {
            0 => {
                self.sequence.nak_is_out = false;
                Order::Expected
            }
            1.. => Order::Ahead,
            // Numbers wrap, so a number from before the connection may look like a duplicate.
            behind if behind.unsigned_abs() > self.sequence.taken => Order::NeverExpected,
            _ => Order::Duplicate,
        }
    }

    /// A request is missing: only the first request ahead of it is answered.
    pub(super) fn send_seq_nak(&mut self, qp: &Common, device: &mut Device) {
        // The requester goes back once, and a second NAK would only repeat the loss.
        if !mem::replace(&mut self.sequence.nak_is_out, true) {
            self.answer(qp, device, self.sequence.expected, Syndrome::NakPsnSequence);
        }
    }

    /// There is no receive for the expected request (RNR-01).
    pub(super) fn send_rnr_nak(&mut self, qp: &Common, device: &mut Device, psn: Psn) {
        self.sequence.nak_is_out = true;
        self.answer(qp, device, psn, Syndrome::rnr(qp.attr.min_rnr_timer));
    }

    /// Whether it accepts a packet for a UC QP, which is not a duplicate. Packets missing before it
    /// stay missing.
    pub(super) fn takes_unreliable(&mut self, packet: &Packet) -> bool {
        let offset = packet.psn.after(self.sequence.expected);
        if offset < 0 {
            return false;
        }
        // A new message replaces an unfinished one, and a gap ends one.
        if packet.first || offset != 0 {
            self.abandon_message();
        }
        // UC has no retries, so the receiver follows the sender.
        self.sequence.expected = packet.psn.plus(packet.span);
        true
    }

    /// Advances past the expected request, which has been carried out and takes `span` sequence
    /// numbers.
    #[inline(always)]
    pub(crate) fn advance(&mut self, psn: Psn, span: u32, is_last: bool) {
        let sequence = &mut self.sequence;
        sequence.nak_is_out = false;
        sequence.expected = psn.plus(span);
        // Half the range of numbers is enough to identify duplicates.
        sequence.taken = (sequence.taken + span).min(Psn::WINDOW);
        sequence.completed = sequence.completed.plus(is_last.into());
    }

    /// Whether nothing of the next message has arrived.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn is_between_messages(&self) -> bool {
        self.sequence.message.is_none() && self.receives.taken.is_none()
    }

    /// Whether this is the sequence number of the next request.
    #[inline]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn expects(&self, psn: Psn) -> bool {
        self.sequence.expected == psn
    }

    /// Answers the next request of a reliable connection, whatever it is.
    pub(super) fn answer_next(&self, qp: &Common, device: &mut Device, syndrome: Syndrome) {
        self.answer(qp, device, self.sequence.expected, syndrome);
    }

    /// Answers a request of a reliable connection.
    pub(super) fn answer(&self, qp: &Common, device: &mut Device, psn: Psn, syndrome: Syndrome) {
        qp.acknowledge(device, psn, syndrome, self.sequence.completed);
    }

    /// Answers a request that was carried out before and arrives again.
    pub(super) fn answer_duplicate(
        &mut self,
        qp: &Common,
        device: &mut Device,
        packet: &Packet,
    ) -> Result<(), DropReason> {
        // The SRQ may have been destroyed since the request was carried out.
        if self.steer(device, packet).is_err() {
            return Err(DropReason::DuplicateForSrq);
        }
        let completed = self.sequence.completed;
        match packet.op {
            // A read is carried out again, because its answer was not kept.
            Op::ReadRequest(reth) => {
                let again = Reading::again(packet.psn, reth, completed);
                let peer = self.peer(qp, device);
                return Err(self.reads.answer_again(qp, device, peer, packet, again));
            }
            // An atomic is not carried out twice: its answer was kept (ATOM-09).
            Op::AtomicRequest(_) => {
                if let Some(original) = self.reads.resources.original(packet.psn) {
                    qp.answer_atomic(device, packet.psn, completed, original);
                }
            }
            // The bytes of an atomic write may have changed since, so it is not carried out twice
            // (MPE-12).
            Op::Flush(_) | Op::AtomicWrite(_) => {
                qp.answer_without_data(device, packet.psn, completed);
            }
            // Other requests are acknowledged once, for all that was carried out.
            _ if packet.ack_req => {
                let last = self.sequence.expected.previous();
                self.answer(qp, device, last, Syndrome::Ack);
            }
            _ => {}
        }
        Err(DropReason::Duplicate)
    }

    /// Carries out the expected request. Returns the completion of a receive, if the message is
    /// whole and consumes one.
    pub(super) fn execute(
        &mut self,
        qp: &Common,
        device: &mut Device,
        packet: &Packet,
    ) -> Result<Option<Wc>, Refusal> {
        self.steer(device, packet)?;
        let message = self.sequence.message;
        // A message is whole, without gaps or other requests in it.
        if packet.first != message.is_none() || !qp.has_path_mtu(device, packet) {
            return Err(Refusal::INVALID);
        }
        // The MSN of the answer includes the request that it answers.
        let completed = self.sequence.completed.plus(1);
        match (packet.op, message) {
            (Op::Send | Op::SendWithInv(_), None) => self.take_send(qp, device, packet, 0),
            (Op::Send | Op::SendWithInv(_), Some(Message::Send { got })) => {
                self.take_send(qp, device, packet, got)
            }
            (Op::Write(Some(reth)), None) => self.take_write(qp, device, packet, reth, 0),
            (Op::Write(None), Some(Message::Write { reth, got })) => {
                self.take_write(qp, device, packet, reth, got)
            }
            // Without responder resources no read or atomic is accepted.
            (op, None) if op.takes_depth() && qp.attr.max_dest_rd_atomic == 0 => {
                Err(Refusal::INVALID)
            }
            (Op::ReadRequest(reth), None) => {
                let reading = Reading::new(packet.psn, reth, completed);
                let peer = self.peer(qp, device);
                self.reads.answer(qp, device, peer, packet, reading)?;
                let resource = Resource::read(packet.psn, qp.span_of(device, packet), reth);
                // The peer may ask again for any part of the answer.
                self.reads
                    .resources
                    .keep(resource, qp.attr.max_dest_rd_atomic);
                Ok(None)
            }
            (Op::AtomicRequest(eth), None) => {
                self.execute_atomic(qp, device, packet.psn, completed, eth)
            }
            (Op::Flush(flush), None) => {
                self.execute_flush(qp, device, flush)?;
                qp.answer_without_data(device, packet.psn, completed);
                Ok(None)
            }
            (Op::AtomicWrite(reth), None) => {
                self.execute_atomic_write(qp, device, packet, reth)?;
                qp.answer_without_data(device, packet.psn, completed);
                Ok(None)
            }
            _ => Err(Refusal::INVALID),
        }
    }

    /// Selects the SRQ that an XRC request names (XRC-04, XRC-06).
    #[inline]
    fn steer(&mut self, device: &Device, packet: &Packet) -> Result<(), Refusal> {
        if packet.transport != QpType::XrcSend || self.receives.steer(device, packet.srqn) {
            return Ok(());
        }
        Err(match device.base.behavior.xrc_unknown_srq {
            UnknownSrq::RemOpErr => Refusal::CANNOT,
            UnknownSrq::RemInvReqErr | _ => Refusal::INVALID,
        })
    }

    /// Makes sure that there is a receive for the message.
    fn need_receive(&mut self, device: &mut Device) -> Result<(), Refusal> {
        self.receives.need(device).map_err(|none| match none {
            NoReceive::Empty => Refusal::NotReady,
            NoReceive::Failed => Refusal::CANNOT,
        })
    }

    /// Puts the data of a Send into the current receive, from `got` on.
    fn take_send(
        &mut self,
        qp: &Common,
        device: &mut Device,
        packet: &Packet,
        got: u32,
    ) -> Result<Option<Wc>, Refusal> {
        self.need_receive(device)?;
        // Each packet checks the receive, since its region may be deregistered in between.
        let target = self.receive_target(qp, device, packet, got)?;
        let copied = qp.place(device, packet, &target);
        copied.map_err(|gone| {
            if device.note_unmapped(gone) {
                Refusal::bad_receive(device)
            } else {
                Refusal::Lost
            }
        })?;
        let got = got + packet.payload.len();
        if !packet.last {
            self.sequence.message = Some(Message::Send { got });
            return Ok(None);
        }
        // The message is complete, so its receive completes, even if the key is not invalidated.
        self.sequence.message = None;
        let key = match packet.op {
            Op::SendWithInv(rkey) => Some(rkey),
            _ => None,
        };
        if let Some(rkey) = key {
            let done = device.domains.invalidate(&device.base, qp.handle, rkey);
            done.ok_or_else(|| self.bad_invalidation(qp, device, packet))?;
        }
        let wc = completion(device, packet.imm, key, WcOpcode::Recv, got);
        Ok(Some(wc))
    }

    /// Refuses a Send that arrived whole but names a key that it cannot invalidate (MW-18).
    fn bad_invalidation(&self, qp: &Common, device: &mut Device, packet: &Packet) -> Refusal {
        let syndrome = match device.base.behavior.nak_send_inval {
            _ if !qp.is_reliable() => None,
            SendInvalAnswer::Nak => Some(Syndrome::NakRemoteAccess),
            // Such a driver acknowledges the data before it looks at the key.
            SendInvalAnswer::Ack => {
                let last = packet.psn.plus(packet.span - 1);
                let completed = self.sequence.completed.plus(1);
                qp.acknowledge(device, last, Syndrome::Ack, completed);
                None
            }
            SendInvalAnswer::Nothing | _ => None,
        };
        Refusal::fault(syndrome, Some(WcStatus::LocAccessErr))
    }

    fn receive_target(
        &self,
        qp: &Common,
        device: &Device,
        packet: &Packet,
        got: u32,
    ) -> Result<Scatter, Refusal> {
        let (pd, recv) = self.receives.present(device).ok_or(Refusal::CANNOT)?;
        let length = u64::from(packet.payload.len());
        let (behavior, regions) = (&device.base.behavior, &device.domains.regions);
        if u64::from(got) + length > recv.length() {
            // UC does not answer: the message is dropped, or its receive fails.
            if qp.init.qp_type == QpType::Uc {
                let status = behavior.ud_short_recv.status();
                let fault = |status| Refusal::fault(Some(Syndrome::Ack), Some(status));
                return Err(status.map_or(Refusal::INVALID, fault));
            }
            // Drivers differ in which side is at fault for a receive that is too short.
            let (syndrome, status) = match behavior.recv_short_status {
                ShortStatus::LocQpOpErr => (Syndrome::NakRemoteOperation, WcStatus::LocQpOpErr),
                ShortStatus::LocLenErr | _ => (Syndrome::NakInvalidRequest, WcStatus::LocLenErr),
            };
            return Err(Refusal::fault(Some(syndrome), Some(status)));
        }
        let (need, touched) = (self.receives.odp_need(), u64::from(got) + length);
        if !regions.may_page(qp.init.qp_type, need, &recv.list, touched) {
            return Err(Refusal::bad_receive(device));
        }
        let writes = Access::LOCAL_WRITE;
        // Some drivers check the whole receive, and some only the bytes that the message writes.
        let all = match behavior.recv_sgl_overhang {
            Check::Refused => touch(regions, pd, &recv.list, 0, recv.length(), writes),
            Check::Accepted | _ => Ok(Scatter::Nothing),
        };
        all.and_then(|_| check_empty(regions, behavior.zero_len_sge_check, pd, &recv.list))
            .and_then(|()| touch(regions, pd, &recv.list, got.into(), length, writes))
            .map_err(|_| Refusal::bad_receive(device))
    }

    /// Puts the data of an RDMA Write into memory, from `got` on.
    fn take_write(
        &mut self,
        qp: &Common,
        device: &mut Device,
        packet: &Packet,
        reth: Reth,
        got: u32,
    ) -> Result<Option<Wc>, Refusal> {
        let recv = packet.imm.map(|_| WcStatus::LocAccessErr);
        // The rights of the queue pair are checked first, and even for writes of no bytes
        // (RDMA-04).
        qp.check_enabled(device, Access::REMOTE_WRITE, recv)?;
        // Immediate data needs a receive. Without one nothing is written.
        if packet.imm.is_some() {
            self.need_receive(device)?;
        }
        // The first packet checks the whole range. Each further packet checks the rest again, since
        // the region may be deregistered in between. A write of no bytes names no memory (RDMA-10).
        let left = reth.length - got.min(reth.length);
        let length = packet.payload.len();
        if length > left {
            return Err(Refusal::INVALID);
        }
        if left > 0 {
            let denied = || Refusal::access_fault(device, recv);
            let addr = reth.va.checked_add(got.into()).ok_or_else(denied)?;
            let peer = self.peer(qp, device);
            let mut target = device
                .domains
                .touch_remote(
                    &device.base,
                    peer,
                    reth.rkey,
                    addr,
                    left.into(),
                    Access::REMOTE_WRITE,
                )
                .map_err(|_| denied())?;
            // The check covers the rest of the message, the copy only this packet.
            target.length = length as usize;
            let copied = qp.place(device, packet, &[target]);
            copied.map_err(|gone| Refusal::lost(device, gone, recv))?;
        }
        let got = got + length;
        if !packet.last {
            self.sequence.message = Some(Message::Write { reth, got });
            return Ok(None);
        }
        self.sequence.message = None;
        // The packets bring fewer bytes than the first one announced.
        if got != reth.length {
            return Err(Refusal::INVALID);
        }
        let wc = |imm| completion(device, Some(imm), None, WcOpcode::RecvRdmaWithImm, got);
        Ok(packet.imm.map(wc))
    }

    /// The queue pair and domain for which the peer accesses memory.
    pub(super) fn peer(&self, qp: &Common, device: &Device) -> Peer {
        Peer {
            qp: qp.handle,
            pd: self.receives.pd(),
            odp: device.domains.regions.odp.of(qp.init.qp_type),
        }
    }

    /// Carries out an atomic, and answers with the value that was there.
    fn execute_atomic(
        &mut self,
        qp: &Common,
        device: &mut Device,
        psn: Psn,
        completed: Psn,
        eth: AtomicEth,
    ) -> Result<Option<Wc>, Refusal> {
        // The alignment is checked before the key (ATOM-04).
        if !atomic::is_aligned(eth.addr) {
            return Err(Refusal::INVALID);
        }
        let need = Access::REMOTE_ATOMIC;
        qp.check_enabled(device, need, None)?;
        let place = device
            .domains
            .touch_remote(
                &device.base,
                self.peer(qp, device),
                eth.rkey,
                eth.addr,
                atomic::BYTES.into(),
                need,
            )
            .map_err(|_| Refusal::access_fault(device, None))?;
        let mut bytes = [0; atomic::BYTES as usize];
        // One lock for reading and writing makes the operation atomic among all devices.
        let mut memory = device.domains.memory.lock();
        // Data of earlier messages does not come after it, in whatever region it is (RO-04).
        memory.settle_of(qp.handle);
        let done = memory.read(&place, &mut bytes).and_then(|()| {
            let value = eth.op.applied_to(u64::from_ne_bytes(bytes)).to_ne_bytes();
            memory.write(&place, &value)
        });
        drop(memory);
        done.map_err(|gone| Refusal::lost(device, gone, None))?;
        let original = u64::from_ne_bytes(bytes);
        // Kept before it is answered, since the answer may be lost.
        let resource = Resource::atomic(psn, original);
        self.reads
            .resources
            .keep(resource, qp.attr.max_dest_rd_atomic);
        qp.answer_atomic(device, psn, completed, original);
        Ok(None)
    }
}

impl Common {
    /// The number of sequence numbers that a request takes. A read takes those of its answer.
    pub(super) fn span_of(&self, device: &Device, packet: &Packet) -> u32 {
        match packet.op {
            Op::ReadRequest(reth) => packets(reth.length, self.mtu(device)),
            _ => packet.span,
        }
    }

    fn acknowledge(&self, device: &mut Device, psn: Psn, syndrome: Syndrome, completed: Psn) {
        let packet = OutPacket::answer(Op::Acknowledge(syndrome), psn, completed.value());
        self.send_to_peer(device, packet, Payload::default());
    }

    fn answer_atomic(&self, device: &mut Device, psn: Psn, completed: Psn, original: u64) {
        let packet = OutPacket::answer(Op::AtomicResponse, psn, completed.value());
        let payload = Payload::inline(original.to_ne_bytes()[..].into());
        self.send_to_peer(device, packet, payload);
    }

    /// Copies the data of a packet to the memory of its message.
    pub(super) fn place(
        &self,
        device: &Device,
        packet: &Packet,
        target: &[Slice],
    ) -> Result<(), Gone> {
        let placing = self.placing(packet);
        packet
            .payload
            .copy_to(&device.domains.memory, target, placing)
    }

    /// The message whose data a packet brings.
    pub(super) fn placing(&self, packet: &Packet) -> Placing {
        Placing {
            qp: self.handle,
            starts: packet.first,
        }
    }

    /// Whether a request was segmented for the path MTU of the QP (RQ-14).
    pub(super) fn has_path_mtu(&self, device: &Device, packet: &Packet) -> bool {
        let is_send = matches!(packet.op, Op::Send | Op::SendWithInv(_));
        let unchecked = is_send && device.base.behavior.send_mtu == Check::Accepted;
        unchecked || packet.fits(self.mtu(device))
    }

    /// Whether the queue pair allows the operation, regardless of the memory it names (RDMA-04).
    pub(super) fn check_enabled(
        &self,
        device: &Device,
        operation: Access,
        recv: Option<WcStatus>,
    ) -> Result<(), Refusal> {
        if self.attr.qp_access_flags.contains(operation) {
            return Ok(());
        }
        // Drivers differ in the status of this refusal.
        Err(match device.base.behavior.qp_access_status {
            QpAccessStatus::RemInvReqErr => Refusal::INVALID,
            QpAccessStatus::RemAccessErr | _ => Refusal::access_fault(device, recv),
        })
    }
}

impl Refusal {
    /// The refusal of a request whose memory does not allow the access (RDMA-03, RDMA-09).
    pub(super) fn access_fault(device: &Device, recv: Option<WcStatus>) -> Self {
        let tells = device.base.behavior.qp_access_event;
        Self::Fault {
            syndrome: Some(Syndrome::NakRemoteAccess),
            recv,
            event: tells.then_some(AsyncEventType::QpAccessErr),
        }
    }

    /// The refusal of a request whose memory was deregistered on the way, or is not mapped.
    #[cold]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(super) fn lost(device: &mut Device, gone: Gone, recv: Option<WcStatus>) -> Self {
        if device.note_unmapped(gone) {
            Self::access_fault(device, recv)
        } else {
            Self::Lost
        }
    }

    /// The refusal of a request whose receive names memory that cannot be used.
    fn bad_receive(device: &Device) -> Self {
        let status = device.base.behavior.recv_fault_status.status();
        Self::fault(Some(Syndrome::NakRemoteOperation), Some(status))
    }
}

/// The completion of a message that consumes a receive. The message has immediate data, or the key
/// that it invalidates, or neither.
#[inline]
pub(crate) fn completion(
    device: &Device,
    imm: Option<[u8; 4]>,
    key: Option<u32>,
    opcode: WcOpcode,
    length: u32,
) -> Wc {
    let mut wc_flags = WcFlags::empty();
    if imm.is_some() {
        wc_flags |= WcFlags::WITH_IMM;
    }
    if device.base.behavior.grh_flag_rc {
        wc_flags |= WcFlags::GRH;
    }
    // Immediate data and the invalidated key share a field, as in `struct ibv_wc`.
    let mut imm_data = imm.unwrap_or_default();
    if let Some(rkey) = key {
        wc_flags |= WcFlags::WITH_INV;
        imm_data = rkey.to_ne_bytes();
    }
    let mut wc = Wc::default();
    wc.opcode = opcode;
    wc.byte_len = length;
    wc.imm_data = imm_data;
    wc.wc_flags = wc_flags;
    wc
}
