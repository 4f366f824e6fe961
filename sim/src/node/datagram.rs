//! Unreliable datagrams.

use std::sync::Arc;
use verbs_api::behavior::{Check, RouteFields, UdSl};
use verbs_api::{
    Access, Ah as AhHandle, AhAttr, Dest, Grh, QpType, Verb, Wc, WcFlags, WcOpcode, WcStatus,
};

use super::Node;
use super::grh;
use super::history::reason;
use super::qp::Send;
use super::requester::{Address, OutPacket};
use super::srq::NoReceive;
use crate::memory::{Gone, Payload, Scatter, SharedMemory};
use crate::packet::{Deth, Op, Packet};
use crate::subnet::Subnet;

/// With this bit set in the Q_Key of a work request the QP's own is used (UD-06).
pub(super) const QKEY_OF_QP: u32 = 1 << 31;

impl Node {
    /// What makes a datagram fail at the sender (UD-10, UD-12).
    pub(super) fn check_datagram(&self, index: u32, send: &Send) -> Result<(), WcStatus> {
        let Dest::Ud { ah, .. } = send.dest else {
            return Err(WcStatus::LocQpOpErr);
        };
        let of_pd = Self::find(&self.ahs, Verb::PostSend, ah).is_ok_and(|ah| {
            let unchecked = self.behavior.ah_pd_check == Check::Accepted;
            unchecked || self.ahs.at(ah).pd == self.qps.at(index).pd
        });
        if !of_pd {
            return Err(WcStatus::LocQpOpErr);
        }
        if send.length > self.mtu(index) && self.behavior.ud_over_mtu == Check::Refused {
            return Err(WcStatus::LocLenErr);
        }
        Ok(())
    }

    /// Sends a datagram. One that is longer than the MTU is not sent.
    pub(super) fn send_datagram(
        &mut self,
        index: u32,
        (packet, payload): (OutPacket, Payload),
        ah: AhHandle,
        remote_qpn: u32,
        remote_qkey: u32,
    ) {
        let Ok(ah) = Self::find(&self.ahs, Verb::PostSend, ah) else {
            return;
        };
        if !packet.first || !packet.last || payload.len() > self.mtu(index) {
            return;
        }
        let qp = self.qps.at(index);
        let ah = self.ahs.at(ah);
        let qkey = if remote_qkey & QKEY_OF_QP == 0 {
            remote_qkey
        } else {
            qp.attr.qkey
        };
        let op = Op::Datagram(self.deth(&ah.attr, qp.qp_num, qkey));
        let packet = OutPacket {
            op,
            ack_req: false,
            ..packet
        };
        let is_for_group = ah.route.dgid.is_multicast();
        let up = self.port(ah.route.from.port).up;
        let address = Address {
            route: &ah.route,
            transport: QpType::Ud,
            src_qpn: qp.qp_num,
            dest_qpn: remote_qpn,
            pkey: self.pkey_of(qp),
        };
        packet.put(address, payload, self.outbox.push());
        if is_for_group {
            self.sent_to_group(up);
        } else {
            self.sent(up);
        }
    }

    fn deth(&self, attr: &AhAttr, src_qpn: u32, qkey: u32) -> Deth {
        /// Of a route to a peer in the same network, in Linux.
        const HOP_LIMIT: u8 = 64;
        let (traffic_class, flow_label, hop_limit) = match (&attr.grh, self.behavior.route_fields) {
            (None, _) => (0, 0, 0),
            (Some(grh), RouteFields::TrafficClass) => (grh.traffic_class, 0, HOP_LIMIT),
            (Some(grh), RouteFields::All | _) => (grh.traffic_class, grh.flow_label, grh.hop_limit),
        };
        Deth {
            qkey,
            src_qpn,
            sl: attr.sl,
            traffic_class,
            hop_limit,
            flow_label,
        }
    }

    /// The service level in the completion of a datagram (WC-15).
    fn sl(&self, packet: &Packet, deth: &Deth) -> u8 {
        /// As mlx5 tells them: with UDP, over IPv6 or IPv4.
        const UDP_IPV6: u8 = 0x9;
        const UDP_IPV4: u8 = 0xa;
        match self.behavior.ud_sl {
            _ if self.subnet.is_some() => deth.sl,
            UdSl::Zero => 0,
            UdSl::PacketType if grh::ipv4(&packet.route).is_some() => UDP_IPV4,
            UdSl::PacketType => UDP_IPV6,
            UdSl::Path | _ => deth.sl,
        }
    }

    /// A datagram for a UD QP: what does not fit is dropped without a word (UD-05, -08, -09).
    pub(super) fn receive_datagram(
        &mut self,
        index: u32,
        packet: &Packet,
        deth: Deth,
    ) -> Result<(), &'static str> {
        let qp = self.qps.at(index);
        if deth.qkey != qp.attr.qkey {
            let port = qp.attr.port_num;
            self.port_mut(port).bad_qkeys += 1;
            return Err(reason::QKEY);
        }
        let found = match qp.srq {
            None if qp.rq.has_undone() => Ok((qp.pd, qp.rq.get(qp.rq.oldest()))),
            None => Err(NoReceive::Empty),
            Some(srq) => {
                let pd = self.pd_of_shared(index, self.srqs.at(srq));
                self.first_waiting(srq).map(|recv| (pd, recv))
            }
        };
        let (pd, recv) = match found {
            Ok(found) => found,
            Err(NoReceive::Empty) => return Err(reason::NO_RECEIVE),
            Err(NoReceive::Failed) => {
                self.enter_error(index);
                return Err("the srq has failed");
            }
        };
        let length = packet.payload.len() + grh::BYTES;
        let failed = |status| {
            let mut wc = Wc::default();
            wc.opcode = WcOpcode::Recv;
            wc.status = status;
            wc
        };
        let is_short = u64::from(length) > recv.length();
        let touch = |start: u32, length: u32| {
            self.touch(
                pd,
                &recv.list,
                start.into(),
                length.into(),
                Access::LOCAL_WRITE,
            )
        };
        let target = (touch(0, grh::BYTES), touch(grh::BYTES, length - grh::BYTES));
        let wc = match target {
            _ if is_short => match self.behavior.ud_short_recv.status() {
                Some(status) => failed(status),
                None => return Err(reason::SHORT_RECEIVE),
            },
            (Ok(grh), Ok(data)) => {
                let header = (packet.route.global).then(|| grh::bytes(packet, &deth, self.subnet));
                place(&self.memory, packet, header, (&grh, &data))
                    .map_err(|Gone| "its memory went away")?;
                let imm = if packet.imm.is_some() {
                    WcFlags::WITH_IMM
                } else {
                    WcFlags::empty()
                };
                let grh = match packet.route.global {
                    true => WcFlags::GRH,
                    false => WcFlags::empty(),
                };
                let lid = |subnet: Subnet| subnet.lid(packet.route.from);
                let mut wc = Wc::default();
                wc.opcode = WcOpcode::Recv;
                wc.byte_len = length;
                wc.imm_data = packet.imm.unwrap_or_default();
                wc.src_qp = deth.src_qpn;
                wc.sl = self.sl(packet, &deth);
                wc.slid = self.subnet.map_or(0, lid);
                wc.wc_flags = grh | imm;
                wc
            }
            _ => failed(self.behavior.recv_fault_status.status()),
        };
        if let Some(srq) = self.qps.at(index).srq {
            // It is there: it has been looked at.
            let _ = self.take_shared(index, srq);
        }
        self.complete_recv(index, wc, packet.solicited);
        if wc.status != WcStatus::Success {
            self.enter_error(index);
        }
        Ok(())
    }
}

fn place(
    memory: &SharedMemory,
    packet: &Packet,
    header: Option<[u8; Grh::BYTES]>,
    (grh, data): (&Scatter, &Scatter),
) -> Result<(), Gone> {
    if let Some(header) = header {
        Payload::inline(Arc::new(header)).copy_to(memory, grh)?;
    }
    packet.payload.copy_to(memory, data)
}
