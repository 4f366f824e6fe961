//! A packet for a queue pair: which side handles it, and with what result.

use std::sync::Arc;

use verbs_api::lab::Syndrome;
use verbs_api::{Access, AsyncEventType, QpState, QpType, WcStatus};

use super::datagram::Head;
use super::responder::Order;
use super::verdict::Refusal;
use super::{Qp, datagram, failed_receive, grh, sum, why};
use crate::device::{Delivery, Device, NoReceive, pkeys_match, touch};
use crate::diagnosis::FailureCause;
use crate::packet::payload::Payload;
use crate::packet::{Deth, DropReason, Op, Packet};

/// The most packets of other processes that are kept if they arrive too early.
const EARLY: usize = 64;

/// The transport of the peer of a queue pair.
fn counterpart(qp_type: QpType) -> QpType {
    match qp_type {
        QpType::XrcSend => QpType::XrcRecv,
        QpType::XrcRecv => QpType::XrcSend,
        same => same,
    }
}

impl Qp {
    /// Handles a packet that arrived through this port. The error is why it was dropped.
    pub(crate) fn receive(
        &mut self,
        device: &mut Device,
        port: u8,
        packet: &Packet,
    ) -> Result<(), DropReason> {
        let qp = &self.common;
        let qp_type = qp.init.qp_type;
        // A packet of another transport is dropped before anything else of it is looked at.
        if qp_type != counterpart(packet.transport) {
            return Err(DropReason::OtherTransport);
        }
        let keeps = qp_type == QpType::Rc && device.base.behavior.buffer_when_not_ready;
        // Another process may send any number of packets, so only some are kept.
        let has_room = !packet.route.from.is_outside() || self.early.len() < EARLY;
        // Some devices keep packets until the queue pair can handle them.
        if qp.state() == QpState::Init && keeps && has_room {
            self.early.push(packet.clone());
            return Err(DropReason::Kept);
        }
        if !qp.takes_packets() {
            // Only a queue pair that has sent gets answers.
            let is_late = packet.op.is_answer() && (qp.state() == QpState::Err || self.was_reset);
            return Err(if is_late {
                DropReason::LateAnswer
            } else {
                DropReason::NotReady
            });
        }
        if qp.attr.port_num != port {
            return Err(DropReason::OtherPort);
        }
        // Bad P_Keys count at the port, which programs can query (TMR-15).
        if !pkeys_match(qp.pkey(device), packet.pkey) {
            device.ports.at_mut(port).bad_pkeys += 1;
            return Err(DropReason::Pkey);
        }
        if qp_type != QpType::Ud {
            let route = qp.route.as_ref();
            let Some(route) = route.filter(|route| route.is_back_along(&packet.route)) else {
                return Err(DropReason::OtherPeer);
            };
            // Both versions of RoCE are different protocols for the network.
            if route.network_type != packet.route.network_type {
                return Err(DropReason::OtherVersion);
            }
        }
        if device.base.behavior.comm_est {
            self.establish(device);
        }
        // Where memory is checked, any message may answer earlier sends.
        sum::note_message(&mut self.requester, device, packet);
        match (qp_type, packet.op) {
            // Responses go to the requester, and all other packets to the responder.
            (QpType::Rc | QpType::XrcSend, Op::Acknowledge(syndrome)) => {
                if device.base.is_end(syndrome) && !self.is_of_peer(packet) {
                    return Err(DropReason::OtherPeer);
                }
                self.request(device, |requester, qp, device| {
                    requester.receive_ack(qp, device, packet.psn, syndrome)
                });
                Ok(())
            }
            (QpType::Rc | QpType::XrcSend, Op::ReadResponse | Op::AtomicResponse) => {
                self.request(device, |requester, qp, device| {
                    requester.take_held_ack(qp, device)?;
                    requester.take_response(qp, device, packet)
                });
                Ok(())
            }
            (QpType::Rc | QpType::XrcRecv, _) => self.respond(device, packet),
            (QpType::Uc, _) => self.receive_unreliable(device, packet),
            (_, Op::Datagram(deth)) => self.receive_datagram(device, packet, deth),
            _ => Err(DropReason::Malformed),
        }
    }

    /// Records that the peer of a connected QP in RTR is ready to send (QP-STATE-24).
    fn establish(&mut self, device: &mut Device) {
        let is_connected = self.qp_type() != QpType::Ud;
        let in_rtr = self.common.state() == QpState::Rtr && is_connected;
        if in_rtr && !std::mem::replace(&mut self.comm_est, true) {
            self.raise(device, AsyncEventType::CommEst);
        }
    }

    /// Handles a request for a QP of a reliable connection. This decides whether it is
    /// acknowledged.
    fn respond(&mut self, device: &mut Device, packet: &Packet) -> Result<(), DropReason> {
        // Answers leave in the order of the requests, so this one waits behind the read.
        if !self.responder.reads.are_answered() {
            let completed = self.responder.sequence.completed;
            let reads = &mut self.responder.reads;
            return reads.wait(&self.common, device, packet, completed);
        }
        // The network gives turns to reads of other processes.
        if !packet.route.from.is_outside() {
            device.turns.begin();
        }
        self.respond_now(device, packet)
    }

    /// Uses a turn: continues the read that it answers, and then carries out the requests behind
    /// it.
    pub(crate) fn go_on(&mut self, device: &mut Device) {
        let peer = self.responder.peer(&self.common, device);
        let reads = &mut self.responder.reads;
        if let Some((request, refusal)) = reads.go_on(&self.common, device, peer)
            && let Err(why) = self.refuse(device, &request, refusal)
        {
            device.base.note_dropped(&request, why);
        }
        // Requests that came behind the read are next, in their order.
        while let Some(packet) = self.responder.reads.next_waiting() {
            if let Err(why) = self.respond_now(device, &packet) {
                device.base.note_dropped(&packet, why);
            }
        }
    }

    /// Handles a request that has no unanswered read before it, like [`respond`](Self::respond).
    fn respond_now(&mut self, device: &mut Device, packet: &Packet) -> Result<(), DropReason> {
        let (qp, responder) = (&self.common, &mut self.responder);
        match responder.order(packet.psn) {
            Order::Expected => {}
            Order::Ahead => {
                responder.send_seq_nak(qp, device);
                why::note_other_psn(responder, device, packet);
                return Err(DropReason::PsnAhead);
            }
            Order::NeverExpected => {
                why::note_other_psn(responder, device, packet);
                return Err(DropReason::PsnNeverExpected);
            }
            // A duplicate changes nothing, so it is answered out of order.
            Order::Duplicate => return responder.answer_duplicate(qp, device, packet),
        }
        match self.execute(device, packet) {
            Ok(()) => {
                // A response acknowledges its request.
                if packet.ack_req && !packet.op.is_answered_by_response() {
                    let last = packet.psn.plus(packet.span - 1);
                    self.responder
                        .answer(&self.common, device, last, Syndrome::Ack);
                }
                Ok(())
            }
            Err(refusal) => self.refuse(device, packet, refusal),
        }
    }

    /// Refuses the expected request.
    fn refuse(
        &mut self,
        device: &mut Device,
        packet: &Packet,
        refusal: Refusal,
    ) -> Result<(), DropReason> {
        let (why, syndrome, recv, event) = match refusal {
            Refusal::Lost => return Err(DropReason::MemoryGone),
            // The requester will try again, so nothing changes here.
            Refusal::NotReady if device.base.behavior.rnr => {
                let (qp, responder) = (&self.common, &mut self.responder);
                responder.send_rnr_nak(qp, device, packet.psn);
                qp.note_long_wait(device, packet);
                return Err(DropReason::NoReceive);
            }
            Refusal::NotReady => {
                let why = FailureCause::NoReceive.into();
                (why, Some(Syndrome::NakRemoteOperation), None, None)
            }
            Refusal::Fault {
                syndrome,
                recv,
                event,
            } => {
                let why = self.common.refused(&self.responder, device, packet);
                (why, syndrome, recv, event)
            }
        };
        // A failure that a fault rule caused is not a mistake of the program.
        self.common.is_affected |= matches!(why.cause, FailureCause::Lab(_));
        let base = &mut device.base;
        base.journal.refused(base.now, packet, why, syndrome, recv);
        let delivery = recv.map_or(Delivery::Made, |status| {
            self.fail_recv(device, status, packet.solicited)
        });
        // A queue pair whose completion was lost may stop without an answer. Where errors end
        // connections, the NAK of the end follows.
        if let Some(syndrome) = syndrome
            && !device.base.ends_connections()
            && !is_silent_about(device, delivery)
        {
            self.responder
                .answer(&self.common, device, packet.psn, syndrome);
        }
        // Only an invalid request without a receive raises the event; other causes have their own.
        let is_invalid = syndrome == Some(Syndrome::NakInvalidRequest) && recv.is_none();
        let invalid = is_invalid && device.base.behavior.qp_req_event;
        let event = event.or(invalid.then_some(AsyncEventType::QpReqErr));
        if let Some(event) = event {
            self.raise(device, event);
        }
        // The answer has left before the flush, as the peer must learn the cause.
        self.enter_error(device);
        Ok(())
    }

    /// Carries out the expected request, and completes its receive.
    fn execute(&mut self, device: &mut Device, packet: &Packet) -> Result<(), Refusal> {
        let (qp, responder) = (&self.common, &mut self.responder);
        if let Some(wc) = responder.execute(qp, device, packet)? {
            // The receive completes before the request is acknowledged.
            let delivery = self.complete_recv(device, wc, packet.solicited);
            if delivery != Delivery::Made {
                // The QP is in the error state. The requester must not take the request for done.
                return Err(if is_silent_about(device, delivery) {
                    Refusal::SILENT
                } else {
                    Refusal::CANNOT
                });
            }
        }
        let span = self.common.span_of(device, packet);
        self.responder.advance(packet.psn, span, packet.last);
        Ok(())
    }

    /// Fails the receive that a message would have consumed, if there is one.
    fn fail_recv(&mut self, device: &mut Device, status: WcStatus, solicited: bool) -> Delivery {
        if !self.responder.receives.has_one() {
            return Delivery::Made;
        }
        self.complete_recv(device, failed_receive(status), solicited)
    }

    /// Handles a request for a UC QP. Wrong or incomplete requests are dropped silently
    /// (UC-03..06).
    fn receive_unreliable(
        &mut self,
        device: &mut Device,
        packet: &Packet,
    ) -> Result<(), DropReason> {
        if !self.responder.takes_unreliable(packet) {
            return Err(DropReason::Duplicate);
        }
        let Err(refusal) = self.execute(device, packet) else {
            return Ok(());
        };
        // The receive of a dropped message is used for the next one.
        self.responder.abandon_message();
        // Some devices complete a receive that is too short with an error, which stops the queue
        // pair.
        if let Refusal::Fault {
            recv: Some(status), ..
        } = refusal
            && device.base.behavior.ud_short_recv.status() == Some(status)
        {
            self.fail_recv(device, status, packet.solicited);
            self.enter_error(device);
            return Ok(());
        }
        Err(match refusal {
            Refusal::NotReady => DropReason::NoReceive,
            Refusal::Lost => DropReason::MemoryGone,
            Refusal::Fault { .. } if !self.common.has_path_mtu(device, packet) => {
                DropReason::PathMtu
            }
            Refusal::Fault { .. } => DropReason::BadMessage,
        })
    }

    /// Handles a datagram for a UD QP. One that does not fit is dropped silently (UD-05, -08, -09).
    fn receive_datagram(
        &mut self,
        device: &mut Device,
        packet: &Packet,
        deth: Deth,
    ) -> Result<(), DropReason> {
        let attr = &self.common.attr;
        if deth.qkey != attr.qkey {
            device.ports.at_mut(attr.port_num).bad_qkeys += 1;
            self.common.note_other_qkey(device, packet, deth.qkey);
            return Err(DropReason::Qkey);
        }
        let (pd, recv) = match self.responder.receives.next(device) {
            Ok(found) => found,
            Err(NoReceive::Empty) => {
                if let Some(srq) = self.responder.receives.made_with() {
                    device.srqs.at_mut(srq).is_dry = true;
                }
                return Err(DropReason::NoReceive);
            }
            Err(NoReceive::Failed) => {
                self.enter_error(device);
                return Err(DropReason::FailedSrq);
            }
        };
        // The header takes 40 bytes of the receive, whether there is one or not (UD-02).
        let length = packet.payload.len() + grh::BYTES;
        let is_short = u64::from(length) > recv.length();
        let behavior = &device.base.behavior;
        let part = |start: u32, length: u32| {
            let (start, length) = (start.into(), length.into());
            let need = Access::LOCAL_WRITE;
            touch(&device.domains.regions, pd, &recv.list, start, length, need)
        };
        let target = (part(0, grh::BYTES), part(grh::BYTES, length - grh::BYTES));
        let need = self.responder.receives.odp_need();
        let regions = &device.domains.regions;
        let may_page = regions.may_page(QpType::Ud, need, &recv.list, length.into());
        let wc = match target {
            // The length is checked before the memory of the receive.
            _ if is_short => match behavior.ud_short_recv.status() {
                Some(status) => failed_receive(status),
                None => {
                    let (room, site) = (recv.length(), recv.site);
                    why::note_short(device, packet, room, site);
                    return Err(DropReason::ShortReceive);
                }
            },
            (Ok(grh), Ok(data)) if may_page => {
                let head = Head {
                    route: &packet.route,
                    deth,
                    imm: packet.imm,
                    length: packet.payload.len(),
                };
                let header = (packet.route.global).then(|| grh::bytes(&head));
                let memory = &device.domains.memory;
                let placing = self.common.placing(packet);
                let placed = header.map_or(Ok(()), |header| {
                    Payload::inline(Arc::new(header)).copy_to(memory, &grh, placing)
                });
                let placed = placed.and_then(|()| packet.payload.copy_to(memory, &data, placing));
                let (sl, fault) = (behavior.ud_sl, behavior.recv_fault_status);
                match placed {
                    Ok(()) => datagram::completion(&head, &device.ports, sl),
                    Err(gone) if device.note_unmapped(gone) => failed_receive(fault.status()),
                    Err(_) => return Err(DropReason::MemoryGone),
                }
            }
            _ => failed_receive(behavior.recv_fault_status.status()),
        };
        // The receive exists, since `next` has found it.
        let _ = self.responder.receives.need(device);
        self.complete_recv(device, wc, packet.solicited);
        // A receive that fails stops the queue pair (UD-09).
        if wc.status != WcStatus::Success {
            self.enter_error(device);
        }
        Ok(())
    }
}

/// Whether the requester gets no answer, because the completion of its message was lost.
fn is_silent_about(device: &Device, delivery: Delivery) -> bool {
    delivery.is_lost() && !device.base.behavior.overrun_nak
}
