//! RDMA Reads that are being answered. A long one takes several turns, and later requests wait
//! behind it.

use std::collections::VecDeque;

use verbs_api::Access;

use super::common::Common;
use super::resources::Resources;
use super::verdict::Refusal;
use crate::device::{Device, OutPacket, Peer};
use crate::packet::payload::{Payload, Scatter};
use crate::packet::{DropReason, Op, Packet, Psn, Reth, packets};

/// The most requests that wait behind a read. More are dropped, as if they were lost.
const WAITING: usize = 64;

/// The reads of a responder, and its resources.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    pub(crate) resources: Resources,
    /// A read that is not answered completely yet.
    answering: Option<Box<Answering>>,
}

impl Reads {
    /// Answers the read of this packet. What does not leave in this turn leaves in later ones.
    pub(super) fn answer(
        &mut self,
        qp: &Common,
        device: &mut Device,
        peer: Peer,
        packet: &Packet,
        mut reading: Reading,
    ) -> Result<(), Refusal> {
        if !reading.go_on(qp, device, peer)? {
            let answering = self.answering.get_or_insert_default();
            answering.reading = Some((reading, packet.clone()));
            // A long answer must not hold up other queue pairs.
            device.turns.ask(qp.handle);
        }
        Ok(())
    }

    /// Answers a duplicate, if the read was made and is kept. Returns why the packet is dropped
    /// otherwise.
    pub(super) fn answer_again(
        &mut self,
        qp: &Common,
        device: &mut Device,
        peer: Peer,
        packet: &Packet,
        again: Reading,
    ) -> DropReason {
        let mtu = qp.mtu(device);
        if self.resources.read(again.psn, &again.reth, mtu).is_none() {
            return DropReason::UnknownRead;
        }
        // The access rights may have been revoked. Then there is no answer.
        let _ = self.answer(qp, device, peer, packet, again);
        DropReason::Duplicate
    }

    /// Whether all reads are answered, so that a request need not wait.
    pub(super) fn are_answered(&self) -> bool {
        self.answering.is_none()
    }

    /// Ends the answer to the current read, and drops the requests behind it.
    pub(super) fn stop(&mut self) {
        self.answering = None;
    }

    /// A request arrived behind a read that is being answered. If the peer asks for that read
    /// again, it has gone back, and so does the answer.
    #[cold]
    pub(super) fn wait(
        &mut self,
        qp: &Common,
        device: &Device,
        packet: &Packet,
        completed: Psn,
    ) -> Result<(), DropReason> {
        let Some(answering) = &mut self.answering else {
            return Ok(());
        };
        // Only the current read can be repeated here; earlier ones are answered completely.
        if let (Op::ReadRequest(reth), Some((reading, _))) = (packet.op, &mut answering.reading)
            && let Some(made) = self.resources.read(packet.psn, &reth, qp.mtu(device))
            && made.contains(reading.psn)
        {
            *reading = Reading::again(packet.psn, reth, completed);
            return Err(DropReason::Duplicate);
        }
        // A peer must not make the queue grow without a limit.
        if answering.waiting.len() >= WAITING {
            return Err(DropReason::TooManyWaiting);
        }
        answering.waiting.push_back(packet.clone());
        Ok(())
    }

    /// Continues the read that is being answered. If it must be refused, returns the request for
    /// the rest, and the refusal.
    pub(super) fn go_on(
        &mut self,
        qp: &Common,
        device: &mut Device,
        peer: Peer,
    ) -> Option<(Packet, Refusal)> {
        let answering = self.answering.as_mut()?;
        let (reading, _) = answering.reading.as_mut()?;
        let refusal = match reading.go_on(qp, device, peer) {
            Ok(false) => {
                device.turns.ask(qp.handle);
                return None;
            }
            Ok(true) => None,
            Err(refusal) => Some(refusal),
        };
        let (reading, came) = answering.reading.take()?;
        // A duplicate is not refused. Its answer ends, as if the rest were lost.
        let refusal = refusal.filter(|_| !reading.is_again)?;
        Some((reading.request(came), refusal))
    }

    /// The next request behind a read, once the read is answered.
    pub(super) fn next_waiting(&mut self) -> Option<Packet> {
        let answering = self.answering.as_mut()?;
        if answering.reading.is_some() {
            return None;
        }
        let next = answering.waiting.pop_front();
        // Nothing waits any more, so requests are answered directly again.
        if next.is_none() {
            self.answering = None;
        }
        next
    }
}

/// A read that takes several turns, and the requests behind it.
#[derive(Clone, Debug, Default)]
struct Answering {
    /// The rest of the read, and its packet. None while the requests behind it are carried out.
    reading: Option<(Reading, Packet)>,
    waiting: VecDeque<Packet>,
}

/// The part of a read that is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    psn: Psn,
    reth: Reth,
    /// The number of completed requests (MSN), including the read.
    completed: Psn,
    /// Whether nothing of the answer has left.
    is_first: bool,
    /// Whether the request is a duplicate.
    is_again: bool,
}

impl Reading {
    /// A request that was expected.
    pub(super) fn new(psn: Psn, reth: Reth, completed: Psn) -> Self {
        Self {
            psn,
            reth,
            completed,
            is_first: true,
            is_again: false,
        }
    }

    /// A duplicate.
    pub(super) fn again(psn: Psn, reth: Reth, completed: Psn) -> Self {
        Self {
            is_again: true,
            ..Self::new(psn, reth, completed)
        }
    }

    /// Sends as much of the answer as may leave in this turn. `peer` identifies who accesses the
    /// memory. Returns whether the answer is complete.
    fn go_on(&mut self, qp: &Common, device: &mut Device, peer: Peer) -> Result<bool, Refusal> {
        let (mtu, length) = (qp.mtu(device), self.reth.length);
        // Rights and memory may change between two turns.
        qp.check_enabled(device, Access::REMOTE_READ, None)?;
        let source = match length {
            0 => Scatter::Nothing,
            _ => {
                let Reth { va, rkey, .. } = self.reth;
                let (length, need) = (length.into(), Access::REMOTE_READ);
                let domains = &device.domains;
                let source = domains.touch_remote(&device.base, peer, rkey, va, length, need);
                Scatter::One(source.map_err(|_| Refusal::access_fault(device, None))?)
            }
        };
        let span = packets(length, mtu);
        // Whole messages are one packet each, so they use one turn.
        let step = if qp.sends_whole_messages(device) {
            span
        } else {
            1
        };
        let now = device.turns.take(span / step) * step;
        let is_all = now == span;
        // The rest of a read begins at a packet boundary.
        let bytes = if is_all { length } else { now * mtu };
        let payload = match &source {
            Scatter::Nothing => Payload::default(),
            _ if bytes == 0 => Payload::default(),
            // A later copy could not be answered with a fault any more.
            slices if device.domains.may_be_gone(slices) => {
                let part = Payload::Slices(source).part(0, bytes);
                let taken = part.taken_along(&device.domains.memory);
                taken.map_err(|gone| Refusal::lost(device, gone, None))?
            }
            _ => Payload::Slices(source),
        };
        let mut packet = 0;
        while packet < now {
            let last = packet + step == span;
            let start = packet * mtu;
            let length = if last { length - start } else { step * mtu };
            let (psn, msn) = (self.psn.plus(packet), self.completed.value());
            let response = OutPacket {
                first: self.is_first && packet == 0,
                last,
                span: step,
                ..OutPacket::answer(Op::ReadResponse, psn, msn)
            };
            qp.send_to_peer(device, response, payload.part(start, length));
            packet += step;
        }
        self.psn = self.psn.plus(now);
        self.reth.va = self.reth.va.wrapping_add(bytes.into());
        self.reth.length -= bytes;
        self.is_first &= now == 0;
        Ok(is_all)
    }

    /// The request for the rest, instead of the one that arrived.
    fn request(&self, came: Packet) -> Packet {
        Packet {
            psn: self.psn,
            op: Op::ReadRequest(self.reth),
            ..came
        }
    }
}
