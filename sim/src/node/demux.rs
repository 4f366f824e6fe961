//! Incoming packets: the queue pair each one is addressed to, and why a packet is dropped.

use verbs_api::lab::TraceEvent;
use verbs_api::{MULTICAST_QPN, QpType};

use verbs_roce::{Frame, Received};

use super::Node;
use crate::device::GSI_QPN;
use crate::memory::SharedMemory;
use crate::packet::{DropReason, Packet, Route, frame};

impl Node {
    /// Handles a packet that arrived.
    ///
    /// # Errors
    /// The reason if the packet is dropped.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn handle_packet(&mut self, packet: &Packet) -> Result<(), DropReason> {
        if self.device.base.is_traced() {
            self.device.base.note(TraceEvent::Received(packet.view()));
        }
        let taken = self.accept(packet);
        if let Err(why) = taken {
            self.device.base.note_dropped(packet, why);
        }
        taken
    }

    /// Handles a packet after writing it as bytes and reading them again.
    ///
    /// # Errors
    /// The reason if the packet is dropped.
    #[inline(never)]
    pub(crate) fn handle_as_bytes(
        &mut self,
        packet: &Packet,
        memory: &SharedMemory,
    ) -> Result<(), DropReason> {
        // A packet without a destination is lost on the way.
        let Some(to) = packet.route.to else {
            return Ok(());
        };
        let payload = packet.payload.bytes(&mut memory.lock());
        let bytes = match payload.map(|payload| frame::write(packet, &payload)) {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(why)) => {
                self.device.base.note_dropped(packet, why);
                return Err(why);
            }
            // The memory of the payload was deregistered or unmapped. The handler finds that when
            // it copies.
            Err(_) => return self.handle_packet(packet),
        };
        let received = Frame::read(&bytes).map_err(|_| DropReason::NotRoce);
        // The bytes carry addresses only, so the source port follows from the address.
        let packet = received.and_then(|received| {
            let sgid = frame::route(&received, to, to).sgid;
            let from = self.device.ports.port_of(&sgid);
            let from = from.ok_or(DropReason::UnknownSource)?;
            self.packet_of(received, frame::route(&received, from, to))
        });
        match packet {
            Ok(packet) => self.handle_packet(&packet),
            Err(why) => {
                self.device
                    .base
                    .note(TraceEvent::Dropped { why: why.text() });
                Err(why)
            }
        }
    }

    /// The packet in received bytes, on this route.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn packet_of(
        &self,
        received: Received<'_>,
        route: Route,
    ) -> Result<Packet, DropReason> {
        // The bytes lack the sender's QP number, but a connected receiver knows its peer.
        let peer_of = |number| {
            let qp = self.find_by_number(number).map(|index| self.qps.at(index));
            qp.map_or(0, |qp| qp.common.attr.dest_qp_num)
        };
        frame::read(received, route, peer_of)
    }

    /// Delivers a packet to the queue pair it is addressed to.
    pub(super) fn accept(&mut self, packet: &Packet) -> Result<(), DropReason> {
        let Some(to) = packet.route.to else {
            return Err(DropReason::UnownedGid);
        };
        // A dead device receives nothing, whatever its ports do (ASYNC-10).
        if self.device.base.dead {
            return Err(DropReason::DeadDevice);
        }
        if !self.device.ports.at(to.port).up {
            return Err(DropReason::PortDown);
        }
        // A receiver drops a packet with a wrong ICRC, as if it were lost.
        if packet.damaged {
            return Err(DropReason::Checksum);
        }
        let for_group = || packet.transport == QpType::Ud && packet.route.dgid.is_multicast();
        if packet.dest_qpn == MULTICAST_QPN || for_group() {
            return self.accept_for_group(to.port, packet);
        }
        let Some(index) = self.find_by_number(packet.dest_qpn) else {
            // QP 1 is not in the table: no program has created it.
            if packet.dest_qpn == GSI_QPN {
                return self.device.gsi.receive(packet);
            }
            return Err(self.missing(packet));
        };
        let qp = self.qps.at_mut(index);
        qp.receive(&mut self.device, to.port, packet)
    }

    /// Delivers a packet to a group (MCAST-04, MCAST-09). Each member accepts or drops it on its
    /// own (MCAST-07).
    fn accept_for_group(&mut self, port: u8, packet: &Packet) -> Result<(), DropReason> {
        if packet.dest_qpn != MULTICAST_QPN {
            return Err(DropReason::NotTheGroups);
        }
        let members = self.groups.get(&packet.route.dgid);
        let members = members.cloned().ok_or(DropReason::NoMember)?;
        // A message for a group has no single receiver to report to.
        for index in members {
            let qp = self.qps.at_mut(index);
            if let Err(why) = qp.receive(&mut self.device, port, packet) {
                self.device
                    .base
                    .note(TraceEvent::Dropped { why: why.text() });
            }
        }
        Ok(())
    }

    /// Why there is no QP for a packet.
    fn missing(&self, packet: &Packet) -> DropReason {
        let qp_num = packet.dest_qpn;
        if packet.op.is_answer() && self.device.base.journal.is_destroyed(qp_num) {
            return DropReason::LateAnswer;
        }
        let is_stranger = || {
            let slot = self.numbers.slot(qp_num);
            slot.is_none_or(|slot| slot >= self.qps.slots())
        };
        // If numbers are scattered, a number outside the table most likely belongs to another
        // process.
        if self.numbers.are_scattered() && !self.device.ports.network && is_stranger() {
            DropReason::OtherProcess
        } else {
            DropReason::NoQp
        }
    }
}
