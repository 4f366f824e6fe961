//! The responder side of connected QPs, and the door through which all packets come.

use verbs_api::behavior::{Check, QpAccessStatus, SendInvalAnswer, ShortStatus};
use verbs_api::lab::{Syndrome, TraceEvent};
use verbs_api::{
    Access, AsyncEventType, MULTICAST_QPN, QpState, QpType, Wc, WcFlags, WcOpcode, WcStatus,
};

use super::Node;
use super::cq::Delivery;
use super::history::reason;
use super::qp::Recv;
use super::region::check_empty;
use super::requester::OutPacket;
use super::srq::NoReceive;
use super::tables::pkeys_match;
use super::xrc::{counterpart, is_reliable};
use crate::memory::{Gone, Payload, Scatter};
use crate::packet::{Op, Packet, PortId, Psn, Reth, packets};
use crate::time::Time;

/// State of the responder side of a QP.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Responder {
    /// The sequence number of the next request.
    expected: Psn,
    /// How many it has seen: what lies further back is no duplicate, but was never expected.
    taken: u32,
    /// A NAK is out for the expected request: what comes out of order meanwhile is ignored.
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

/// Why a request was not carried out.
pub(super) enum Refusal {
    /// No receive is posted.
    NotReady,
    /// Its memory went away on the way: as if the packet were lost.
    Lost,
    /// It cannot be done. The receive it would have consumed completes with this status, if there
    /// is one.
    Fault {
        /// How the requester learns of it, if it does.
        syndrome: Option<Syndrome>,
        recv: Option<WcStatus>,
        event: Option<AsyncEventType>,
    },
}

const CANNOT: Refusal = Refusal::Fault {
    syndrome: Some(Syndrome::NakRemoteOperation),
    recv: None,
    event: None,
};

pub(super) const INVALID: Refusal = Refusal::Fault {
    syndrome: Some(Syndrome::NakInvalidRequest),
    recv: None,
    event: None,
};

impl Responder {
    /// Bytes of the present message that have come.
    pub(super) fn got(&self) -> u32 {
        match self.message {
            Some(Message::Send { got } | Message::Write { got, .. }) => got,
            None => 0,
        }
    }

    /// INIT to RTR.
    pub(super) fn expect(&mut self, psn: Psn) {
        *self = Self {
            expected: psn,
            ..Self::default()
        };
    }
}

impl Node {
    /// A packet arrived.
    pub fn handle_packet(&mut self, now: Time, packet: &Packet) {
        self.set_now(now);
        if self.trace.is_some() {
            self.note(TraceEvent::Received(packet.view()));
        }
        if let Err(why) = self.accept(now, packet) {
            self.history.dropped(now, packet, why);
            self.note(TraceEvent::Dropped { why });
        }
    }

    pub(super) fn accept(&mut self, now: Time, packet: &Packet) -> Result<(), &'static str> {
        let Some(to) = packet.route.to else {
            return Err("no port has this GID");
        };
        if self.is_dead() {
            return Err("the device is dead");
        }
        if !self.port(to.port).up {
            return Err("the port is down");
        }
        if packet.damaged {
            return Err("the checksum is wrong");
        }
        let for_group = || packet.transport == QpType::Ud && packet.route.dgid.is_multicast();
        if packet.dest_qpn == MULTICAST_QPN || for_group() {
            return self.accept_for_group(now, to, packet);
        }
        let index = self.qp_of_number(packet.dest_qpn).ok_or(reason::NO_QP)?;
        self.accept_for(now, to, index, packet)
    }

    /// A packet for a QP of this node.
    pub(super) fn accept_for(
        &mut self,
        now: Time,
        to: PortId,
        index: u32,
        packet: &Packet,
    ) -> Result<(), &'static str> {
        let qp = self.qps.at(index);
        if qp.init.qp_type != counterpart(packet.transport) {
            return Err(reason::OTHER_TRANSPORT);
        }
        if qp.attr.qp_state == QpState::Init
            && qp.init.qp_type == QpType::Rc
            && self.behavior.buffer_when_not_ready
        {
            self.qps.at_mut(index).early.push(packet.clone());
            return Err("the qp is not ready to receive: it is kept");
        }
        if !matches!(
            qp.attr.qp_state,
            QpState::Rtr | QpState::Rts | QpState::Sqd | QpState::Sqe
        ) {
            return Err(reason::NOT_READY);
        }
        if qp.attr.port_num != to.port {
            return Err(reason::OTHER_PORT);
        }
        if !pkeys_match(self.pkey_of(qp), packet.pkey) {
            self.port_mut(to.port).bad_pkeys += 1;
            return Err(reason::PKEY);
        }
        if qp.init.qp_type != QpType::Ud
            && qp
                .route
                .is_none_or(|route| route.to != Some(packet.route.from))
        {
            return Err(reason::OTHER_PEER);
        }
        if self.behavior.comm_est {
            self.establish(index);
        }
        let qp = self.qps.at(index);
        match (qp.init.qp_type, packet.op) {
            (QpType::Rc | QpType::XrcSend, Op::Acknowledge(syndrome)) => {
                self.acknowledge(now, index, packet.psn, syndrome);
                Ok(())
            }
            (QpType::Rc | QpType::XrcSend, Op::ReadResponse | Op::AtomicResponse) => {
                self.take_response(now, index, packet);
                Ok(())
            }
            (QpType::Rc | QpType::XrcRecv, _) => self.respond(index, packet),
            (QpType::Uc, _) => self.receive_unreliable(index, packet),
            (_, Op::Datagram(deth)) => self.receive_datagram(index, packet, deth),
            _ => Err("the packet makes no sense"),
        }
    }

    /// A connected QP in RTR learns that its peer is ready to send (QP-STATE-24).
    fn establish(&mut self, index: u32) {
        let qp = self.qps.at_mut(index);
        let in_rtr = qp.attr.qp_state == QpState::Rtr && qp.init.qp_type != QpType::Ud;
        if in_rtr && !std::mem::replace(&mut qp.comm_est, true) {
            self.raise_of_qp(index, AsyncEventType::CommEst);
        }
    }

    /// A request for a QP of a reliable connection.
    fn respond(&mut self, index: u32, packet: &Packet) -> Result<(), &'static str> {
        let responder = &mut self.qps.at_mut(index).responder;
        let expected = responder.expected;
        match packet.psn.after(expected) {
            0 => responder.nak_is_out = false,
            1.. => {
                if !std::mem::replace(&mut responder.nak_is_out, true) {
                    self.answer(index, expected, Syndrome::NakPsnSequence);
                }
                return Err("the sequence number is ahead");
            }
            behind if behind.unsigned_abs() > responder.taken => {
                return Err("the sequence number was never expected");
            }
            _ => return self.answer_duplicate(index, packet),
        }
        match self.execute(index, packet) {
            Err(Refusal::NotReady) if !self.behavior.rnr => {
                self.answer(index, packet.psn, Syndrome::NakRemoteOperation);
                self.enter_error(index);
                Ok(())
            }
            Ok(()) => {
                if packet.ack_req && !packet.op.is_answered_with_data() {
                    self.answer(index, packet.psn.plus(packet.span - 1), Syndrome::Ack);
                }
                Ok(())
            }
            Err(Refusal::Lost) => Err("its memory went away"),
            Err(Refusal::NotReady) => {
                let qp = self.qps.at_mut(index);
                qp.responder.nak_is_out = true;
                let timer = qp.attr.min_rnr_timer;
                self.answer(index, packet.psn, Syndrome::rnr(timer));
                Err(reason::NO_RECEIVE)
            }
            Err(Refusal::Fault {
                syndrome,
                recv,
                event,
            }) => {
                let why = self.why_refused(index, packet);
                self.history.refused(self.now, packet, why);
                let told = recv.map_or(Delivery::Made, |status| {
                    self.fail_recv(index, status, packet.solicited)
                });
                if let Some(syndrome) = syndrome
                    && !self.is_silent_about(told)
                {
                    self.answer(index, packet.psn, syndrome);
                }
                let is_invalid = syndrome == Some(Syndrome::NakInvalidRequest) && recv.is_none();
                let invalid = is_invalid && self.behavior.qp_req_event;
                let event = event.or(invalid.then_some(AsyncEventType::QpReqErr));
                if let Some(event) = event {
                    self.raise_of_qp(index, event);
                }
                self.enter_error(index);
                Ok(())
            }
        }
    }

    /// The receive that a message would have consumed fails, if there is one.
    fn fail_recv(&mut self, index: u32, status: WcStatus, solicited: bool) -> Delivery {
        if !self.has_receive(index) {
            return Delivery::Made;
        }
        let mut wc = Wc::default();
        wc.status = status;
        wc.opcode = WcOpcode::Recv;
        self.complete_recv(index, wc, solicited)
    }

    /// Whether the requester is not answered, since the completion of its message was lost.
    fn is_silent_about(&self, delivery: Delivery) -> bool {
        delivery == Delivery::Lost && !self.behavior.overrun_nak
    }

    /// A request that was carried out before: an acknowledgement or a response was lost.
    fn answer_duplicate(&mut self, index: u32, packet: &Packet) -> Result<(), &'static str> {
        if self.steer_by(index, packet).is_err() {
            return Err("a duplicate, for an SRQ that is gone");
        }
        match packet.op {
            Op::ReadRequest(reth) => {
                // The rights may have gone meanwhile; then there is no answer any more.
                let _ = self.read(index, packet.psn, reth);
            }
            Op::AtomicRequest(_) => self.repeat_atomic(index, packet.psn),
            _ if packet.ack_req => {
                let last = self.qps.at(index).responder.expected.previous();
                self.answer(index, last, Syndrome::Ack);
            }
            _ => {}
        }
        Err("a duplicate")
    }

    /// Carries out the expected request.
    fn execute(&mut self, index: u32, packet: &Packet) -> Result<(), Refusal> {
        self.steer_by(index, packet)?;
        let message = self.qps.at(index).responder.message;
        if packet.first != message.is_none() || !self.has_path_mtu(index, packet) {
            return Err(INVALID);
        }
        let span = match (packet.op, message) {
            (Op::Send | Op::SendWithInv(_), None) => self.take_send(index, packet, 0)?,
            (Op::Send | Op::SendWithInv(_), Some(Message::Send { got })) => {
                self.take_send(index, packet, got)?
            }
            (Op::Write(Some(reth)), None) => self.take_write(index, packet, reth, 0)?,
            (Op::Write(None), Some(Message::Write { reth, got })) => {
                self.take_write(index, packet, reth, got)?
            }
            (Op::ReadRequest(reth), None) => {
                if self.qps.at(index).attr.max_dest_rd_atomic == 0 {
                    return Err(INVALID);
                }
                self.read(index, packet.psn, reth)?
            }
            (Op::AtomicRequest(eth), None) => self.execute_atomic(index, packet.psn, eth)?,
            _ => return Err(INVALID),
        };
        let responder = &mut self.qps.at_mut(index).responder;
        responder.expected = packet.psn.plus(span);
        responder.taken = (responder.taken + span).min(Psn::WINDOW);
        Ok(())
    }

    /// Whether a request was cut for the path MTU that the QP has (RQ-14).
    pub(super) fn has_path_mtu(&self, index: u32, packet: &Packet) -> bool {
        let is_send = matches!(packet.op, Op::Send | Op::SendWithInv(_));
        let unchecked = is_send && self.behavior.send_mtu == Check::Accepted;
        unchecked || packet.fits(self.mtu(index))
    }

    /// A request of XRC is for an SRQ that it names.
    #[inline]
    fn steer_by(&mut self, index: u32, packet: &Packet) -> Result<(), Refusal> {
        match packet.transport {
            QpType::XrcSend => self.steer(index, packet.srqn),
            _ => Ok(()),
        }
    }

    /// Makes sure that there is a receive for the message: of an SRQ the QP takes one now.
    fn need_receive(&mut self, index: u32) -> Result<(), Refusal> {
        let qp = self.qps.at(index);
        match qp.srq {
            None if qp.rq.has_undone() => Ok(()),
            None => Err(Refusal::NotReady),
            Some(srq) => self.take_shared(index, srq).map_err(|none| match none {
                NoReceive::Empty => Refusal::NotReady,
                NoReceive::Failed => CANNOT,
            }),
        }
    }

    /// The receive into which the present message goes, and the domain of its memory.
    pub(super) fn present_receive(&self, index: u32) -> Option<(u32, &Recv)> {
        let qp = self.qps.at(index);
        match qp.taken {
            Some(taken) => {
                let srq = self.srq_of(taken)?;
                Some((self.pd_of_shared(index, srq), srq.get(taken.seq)))
            }
            None if qp.rq.has_undone() => Some((qp.pd, qp.rq.get(qp.rq.oldest()))),
            None => None,
        }
    }

    /// Puts the data of a Send into the oldest receive, from `got` on.
    fn take_send(&mut self, index: u32, packet: &Packet, got: u32) -> Result<u32, Refusal> {
        self.need_receive(index)?;
        let target = self.receive_target(index, packet, got)?;
        packet
            .payload
            .copy_to(&self.memory, &target)
            .map_err(|Gone| Refusal::Lost)?;
        let got = got + packet.payload.len();
        let responder = &mut self.qps.at_mut(index).responder;
        if !packet.last {
            responder.message = Some(Message::Send { got });
            return Ok(packet.span);
        }
        responder.message = None;
        if let Op::SendWithInv(rkey) = packet.op {
            let done = self.invalidate(index, rkey);
            done.ok_or_else(|| self.bad_invalidation(index, packet))?;
        }
        self.complete_message(index, packet, WcOpcode::Recv, got)?;
        Ok(packet.span)
    }

    /// A Send came whole and names a key that it cannot invalidate (MW-18).
    fn bad_invalidation(&mut self, index: u32, packet: &Packet) -> Refusal {
        let syndrome = match self.behavior.nak_send_inval {
            _ if !is_reliable(self.qps.at(index).init.qp_type) => None,
            SendInvalAnswer::Nak => Some(Syndrome::NakRemoteAccess),
            SendInvalAnswer::Ack => {
                self.answer(index, packet.psn.plus(packet.span - 1), Syndrome::Ack);
                None
            }
            SendInvalAnswer::Nothing | _ => None,
        };
        Refusal::Fault {
            syndrome,
            recv: Some(WcStatus::LocAccessErr),
            event: None,
        }
    }

    fn receive_target(&self, index: u32, packet: &Packet, got: u32) -> Result<Scatter, Refusal> {
        let (pd, recv) = self.present_receive(index).ok_or(CANNOT)?;
        let length = u64::from(packet.payload.len());
        let fault = |syndrome, status| Refusal::Fault {
            syndrome: Some(syndrome),
            recv: Some(status),
            event: None,
        };
        if u64::from(got) + length > recv.length() {
            if self.qps.at(index).init.qp_type == QpType::Uc {
                let status = self.behavior.ud_short_recv.status();
                return Err(status.map_or(INVALID, |status| fault(Syndrome::Ack, status)));
            }
            return Err(match self.behavior.recv_short_status {
                ShortStatus::LocQpOpErr => {
                    fault(Syndrome::NakRemoteOperation, WcStatus::LocQpOpErr)
                }
                ShortStatus::LocLenErr | _ => {
                    fault(Syndrome::NakInvalidRequest, WcStatus::LocLenErr)
                }
            });
        }
        let all = match self.behavior.recv_sgl_overhang {
            Check::Refused => self.touch(pd, &recv.list, 0, recv.length(), Access::LOCAL_WRITE),
            Check::Accepted | _ => Ok(Scatter::Nothing),
        };
        let checks = self.behavior.zero_len_sge_check;
        all.and_then(|_| check_empty(&self.mrs, checks, pd, &recv.list))
            .and_then(|()| self.touch(pd, &recv.list, got.into(), length, Access::LOCAL_WRITE))
            .map_err(|_| {
                let status = self.behavior.recv_fault_status.status();
                fault(Syndrome::NakRemoteOperation, status)
            })
    }

    /// Puts the data of an RDMA Write into memory, from `got` on.
    fn take_write(
        &mut self,
        index: u32,
        packet: &Packet,
        reth: Reth,
        got: u32,
    ) -> Result<u32, Refusal> {
        let recv = packet.imm.map(|_| WcStatus::LocAccessErr);
        self.check_enabled(index, Access::REMOTE_WRITE, recv)?;
        // Immediate data needs a receive; nothing is placed before there is one.
        if packet.imm.is_some() {
            self.need_receive(index)?;
        }
        let denied = || self.access_fault(recv);
        // All of the range is checked at the start, and the rest again with each packet, since
        // the region may go in between. A write of no bytes names no memory (RDMA-10).
        let left = reth.length - got.min(reth.length);
        if left > 0 {
            let addr = reth.addr.checked_add(got.into()).ok_or_else(denied)?;
            let mut target = self
                .touch_remote(index, reth.rkey, addr, left.into(), Access::REMOTE_WRITE)
                .map_err(|_| denied())?;
            let length = packet.payload.len();
            if length > left {
                return Err(INVALID);
            }
            target.length = length;
            packet
                .payload
                .copy_to(&self.memory, &[target])
                .map_err(|Gone| Refusal::Lost)?;
        }
        let got = got + packet.payload.len();
        let responder = &mut self.qps.at_mut(index).responder;
        if !packet.last {
            responder.message = Some(Message::Write { reth, got });
            return Ok(packet.span);
        }
        responder.message = None;
        if got != reth.length {
            return Err(INVALID);
        }
        if packet.imm.is_some() {
            self.complete_message(index, packet, WcOpcode::RecvRdmaWithImm, got)?;
        }
        Ok(packet.span)
    }

    /// A peer named memory that it may not use so (RDMA-03, RDMA-09).
    pub(super) fn access_fault(&self, recv: Option<WcStatus>) -> Refusal {
        Refusal::Fault {
            syndrome: Some(Syndrome::NakRemoteAccess),
            recv,
            event: (self.behavior.qp_access_event).then_some(AsyncEventType::QpAccessErr),
        }
    }

    /// Whether the queue pair allows the operation, whatever memory it names, if any (RDMA-04).
    pub(super) fn check_enabled(
        &self,
        index: u32,
        operation: Access,
        recv: Option<WcStatus>,
    ) -> Result<(), Refusal> {
        if self.qps.at(index).attr.qp_access_flags.contains(operation) {
            return Ok(());
        }
        Err(match self.behavior.qp_access_status {
            QpAccessStatus::RemInvReqErr => INVALID,
            QpAccessStatus::RemAccessErr | _ => self.access_fault(recv),
        })
    }

    /// The last packet of a message that consumes a receive has been placed.
    fn complete_message(
        &mut self,
        index: u32,
        packet: &Packet,
        opcode: WcOpcode,
        length: u32,
    ) -> Result<(), Refusal> {
        let mut wc_flags = WcFlags::empty();
        if packet.imm.is_some() {
            wc_flags |= WcFlags::WITH_IMM;
        }
        if self.behavior.grh_flag_rc {
            wc_flags |= WcFlags::GRH;
        }
        let mut imm_data = packet.imm.unwrap_or_default();
        if let Op::SendWithInv(rkey) = packet.op {
            wc_flags |= WcFlags::WITH_INV;
            imm_data = rkey.to_ne_bytes();
        }
        let mut wc = Wc::default();
        wc.opcode = opcode;
        wc.byte_len = length;
        wc.imm_data = imm_data;
        wc.wc_flags = wc_flags;
        // The QP is in the error state; the requester must not take it for done.
        match self.complete_recv(index, wc, packet.solicited) {
            Delivery::Made => Ok(()),
            lost if self.is_silent_about(lost) => Err(Refusal::Fault {
                syndrome: None,
                recv: None,
                event: None,
            }),
            Delivery::Failed | Delivery::Lost => Err(CANNOT),
        }
    }

    /// Answers an RDMA Read; how many sequence numbers the response takes.
    fn read(&mut self, index: u32, psn: Psn, reth: Reth) -> Result<u32, Refusal> {
        let mtu = self.mtu(index);
        self.check_enabled(index, Access::REMOTE_READ, None)?;
        let payload = if reth.length == 0 {
            Payload::default()
        } else {
            let length = reth.length.into();
            let source =
                self.touch_remote(index, reth.rkey, reth.addr, length, Access::REMOTE_READ);
            Payload::Slices(Scatter::One(source.map_err(|_| self.access_fault(None))?))
        };
        let span = packets(reth.length, mtu);
        let step = if self.whole_messages { span } else { 1 };
        let mut packet = 0;
        while packet < span {
            let last = packet + step == span;
            let start = packet * mtu;
            let length = if last {
                reth.length - start
            } else {
                step * mtu
            };
            let response = OutPacket {
                op: Op::ReadResponse,
                first: packet == 0,
                last,
                psn: psn.plus(packet),
                span: step,
                ack_req: false,
                solicited: false,
                imm: None,
                srqn: 0,
            };
            self.send_to_peer(index, response, payload.part(start, length));
            packet += step;
        }
        Ok(span)
    }

    fn answer(&mut self, index: u32, psn: Psn, syndrome: Syndrome) {
        let packet = OutPacket::answer(Op::Acknowledge(syndrome), psn);
        self.send_to_peer(index, packet, Payload::default());
    }

    /// A request for a UC QP: what is wrong or incomplete is dropped without a word (UC-03..06).
    fn receive_unreliable(&mut self, index: u32, packet: &Packet) -> Result<(), &'static str> {
        let responder = &mut self.qps.at_mut(index).responder;
        let offset = packet.psn.after(responder.expected);
        if offset < 0 {
            return Err("a duplicate");
        }
        if packet.first {
            // A new message; what was left of the one before is gone, its receive is used again.
            responder.message = None;
        } else if offset != 0 {
            responder.message = None;
        }
        responder.expected = packet.psn.plus(packet.span);
        let Err(refusal) = self.execute(index, packet) else {
            return Ok(());
        };
        self.qps.at_mut(index).responder.message = None;
        if let Refusal::Fault {
            recv: Some(status), ..
        } = refusal
            && self.behavior.ud_short_recv.status() == Some(status)
        {
            self.fail_recv(index, status, packet.solicited);
            self.enter_error(index);
            return Ok(());
        }
        Err(match refusal {
            Refusal::NotReady => reason::NO_RECEIVE,
            Refusal::Lost => "its memory went away",
            Refusal::Fault { .. } if !self.has_path_mtu(index, packet) => reason::PATH_MTU,
            Refusal::Fault { .. } => reason::BAD_MESSAGE,
        })
    }
}
