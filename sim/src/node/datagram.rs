//! Unreliable datagrams.

use std::sync::Arc;
use verbs_api::{
    Access, Ah as AhHandle, Check, Dest, Gid, QpType, Verb, Wc, WcFlags, WcOpcode, WcStatus,
};

use super::Node;
use super::history::reason;
use super::qp::Send;
use super::requester::{Address, OutPacket};
use super::srq::NoReceive;
use crate::memory::{Gone, Payload, Scatter, SharedMemory};
use crate::packet::{Deth, Op, Packet, Route};
use crate::subnet::Subnet;

/// Bytes in front of every datagram in its receive buffer (UD-02).
const GRH_BYTES: u32 = 40;
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
        let op = Op::Datagram(Deth {
            qkey,
            src_qpn: qp.qp_num,
            sl: ah.attr.sl,
        });
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
        let length = packet.payload.len() + GRH_BYTES;
        let failed = |status| Wc {
            opcode: WcOpcode::Recv,
            status,
            ..Wc::default()
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
        let target = (touch(0, GRH_BYTES), touch(GRH_BYTES, length - GRH_BYTES));
        let wc = match target {
            _ if is_short => match self.behavior.ud_short_recv.status() {
                Some(status) => failed(status),
                None => return Err(reason::SHORT_RECEIVE),
            },
            (Ok(grh), Ok(data)) => {
                let behind = match self.subnet {
                    Some(_) => Behind::Transport,
                    None => Behind::Udp,
                };
                let bytes = packet.payload.len() as u16;
                let header = (packet.route.global).then(|| grh_bytes(&packet.route, bytes, behind));
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
                Wc {
                    opcode: WcOpcode::Recv,
                    byte_len: length,
                    imm_data: packet.imm.unwrap_or_default(),
                    src_qp: deth.src_qpn,
                    sl: deth.sl,
                    slid: self.subnet.map_or(0, lid),
                    wc_flags: grh | imm,
                    ..Wc::default()
                }
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
    header: Option<[u8; GRH_BYTES as usize]>,
    (grh, data): (&Scatter, &Scatter),
) -> Result<(), Gone> {
    if let Some(header) = header {
        Payload::inline(Arc::new(header)).copy_to(memory, grh)?;
    }
    packet.payload.copy_to(memory, data)
}

/// What stands behind a global route header.
#[derive(Clone, Copy)]
enum Behind {
    /// UDP (8), BTH (12), DETH (8), ICRC (4).
    Udp,
    /// BTH, DETH, ICRC.
    Transport,
}

/// The 40 bytes: a GRH, or for IPv4 its header in the last 20 of them (UD-03).
fn grh_bytes(route: &Route, payload: u16, behind: Behind) -> [u8; GRH_BYTES as usize] {
    const HOP_LIMIT: u8 = 64;
    const UDP: u8 = 17;
    let (length, next) = match behind {
        Behind::Udp => (payload + 32, UDP),
        Behind::Transport => (payload + 24, 0x1b),
    };
    let mut bytes = [0; GRH_BYTES as usize];
    if let (Some(from), Some(to)) = (ipv4(route.sgid), ipv4(route.dgid)) {
        let header = &mut bytes[20..];
        header[0] = 0x45;
        header[2..4].copy_from_slice(&(20 + length).to_be_bytes());
        header[8] = HOP_LIMIT;
        header[9] = UDP;
        header[12..16].copy_from_slice(&from);
        header[16..20].copy_from_slice(&to);
        return bytes;
    }
    bytes[0] = 0x60;
    bytes[4..6].copy_from_slice(&length.to_be_bytes());
    bytes[6] = next;
    bytes[7] = HOP_LIMIT;
    bytes[8..24].copy_from_slice(&route.sgid.0);
    bytes[24..40].copy_from_slice(&route.dgid.0);
    bytes
}

/// The IPv4 address that a GID maps.
fn ipv4(gid: Gid) -> Option<[u8; 4]> {
    std::net::Ipv6Addr::from(gid.0)
        .to_ipv4_mapped()
        .map(|addr| addr.octets())
}
