//! Unreliable datagrams.

use verbs_api::behavior::{Check, UdSl};
use verbs_api::site::Site;
use verbs_api::{Dest, QpType, Wc, WcFlags, WcOpcode, WcStatus};

use super::common::Common;
use super::grh;
use crate::device::{Address, Device, OutPacket, Ports, QKEY_OF_QP, find};
use crate::diagnosis::problem::UnownedGid;
use crate::packet::payload::Payload;
use crate::packet::{Deth, NetworkType, Op, Route};

/// Checks what makes a datagram fail at the sender (UD-10, UD-12).
pub(crate) fn check(
    device: &Device,
    pd: u32,
    mtu: u32,
    dest: Dest,
    length: u32,
) -> Result<(), WcStatus> {
    let Dest::Ud { ah, .. } = dest else {
        return Err(WcStatus::LocQpOpErr);
    };
    let behavior = &device.base.behavior;
    let of_pd = find(&device.domains.ahs, ah).is_ok_and(|ah| {
        // Some drivers accept an address handle of any domain (UD-12).
        let unchecked = behavior.ah_pd_check == Check::Accepted;
        unchecked || device.domains.ahs.at(ah).pd == pd
    });
    if !of_pd {
        return Err(WcStatus::LocQpOpErr);
    }
    if length > mtu && behavior.ud_over_mtu == Check::Refused {
        return Err(WcStatus::LocLenErr);
    }
    Ok(())
}

/// The path of a datagram.
pub(crate) struct DatagramPath {
    pub(crate) route: Route,
    pub(crate) dest_qpn: u32,
    pub(crate) deth: Deth,
    pub(crate) to_group: bool,
}

/// What the receiver of a datagram sees, except its payload.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) route: &'a Route,
    pub(crate) deth: Deth,
    pub(crate) imm: Option<[u8; 4]>,
    /// The length of the payload in bytes.
    pub(crate) length: u32,
}

/// The path to a destination, if its address handle exists.
pub(crate) fn path(qp: &Common, device: &Device, dest: Dest) -> Option<DatagramPath> {
    let Dest::Ud {
        ah,
        remote_qpn: dest_qpn,
        remote_qkey,
    } = dest
    else {
        return None;
    };
    let ah = find(&device.domains.ahs, ah).ok()?;
    let ah = device.domains.ahs.at(ah);
    // A Q_Key with the highest bit set stands for that of the queue pair.
    let qkey = match remote_qkey & QKEY_OF_QP {
        0 => remote_qkey,
        _ => qp.attr.qkey,
    };
    let fields = device.base.behavior.route_fields;
    Some(DatagramPath {
        route: Route {
            to: device.ports.with_qp(ah.route.to, dest_qpn),
            fields: grh::fields(&ah.attr, fields),
            ..ah.route
        },
        dest_qpn,
        deth: Deth {
            qkey,
            src_qpn: qp.qp_num,
            sl: ah.attr.sl,
        },
        to_group: device.ports.is_of_group(&ah.attr),
    })
}

/// Sends a datagram. One that is longer than the MTU is not sent.
pub(super) fn send(
    qp: &Common,
    device: &mut Device,
    packet: OutPacket,
    payload: Payload,
    dest: Dest,
    site: Option<Site>,
) {
    let Some(path) = path(qp, device, dest) else {
        return;
    };
    // Such a message does not fit into one packet, and nothing reports it (UD-10).
    if !packet.first || !packet.last || payload.len() > qp.mtu(device) {
        return;
    }
    // In one process the address belongs to no port, so the datagram can only be lost. On a
    // network the peer may exist since, and with LIDs it may exist anyway.
    let is_lost = path.route.to.is_none() && !path.to_group && device.ports.subnet.is_none();
    if is_lost || path.route.was_unowned {
        let unowned = UnownedGid {
            qp_num: qp.qp_num,
            gid: path.route.dgid,
            is_lost,
        };
        // It is lost without an error, so the program cannot notice.
        device.base.journal.note(unowned, site);
    }
    let packet = OutPacket {
        op: Op::Datagram(path.deth),
        ack_req: false,
        ..packet
    };
    let address = Address {
        route: &path.route,
        transport: QpType::Ud,
        src_qpn: qp.qp_num,
        dest_qpn: path.dest_qpn,
        pkey: qp.pkey(device),
    };
    if path.to_group {
        device.send_to_group(address, packet, payload)
    } else {
        device.send(address, packet, payload)
    }
}

/// The completion of a datagram that was placed.
pub(crate) fn completion(head: &Head<'_>, ports: &Ports, sl: UdSl) -> Wc {
    let mut wc_flags = WcFlags::empty();
    wc_flags.set(WcFlags::WITH_IMM, head.imm.is_some());
    wc_flags.set(WcFlags::GRH, head.route.global);
    let mut wc = Wc::default();
    wc.opcode = WcOpcode::Recv;
    wc.byte_len = head.length + grh::BYTES;
    wc.imm_data = head.imm.unwrap_or_default();
    wc.src_qp = head.deth.src_qpn;
    wc.sl = service_level(head, sl);
    wc.slid = ports.lid_of(head.route.from, head.route.sgid);
    wc.wc_flags = wc_flags;
    wc
}

/// The service level in the completion of a datagram (WC-15).
fn service_level(head: &Head<'_>, sl: UdSl) -> u8 {
    /// As mlx5 reports them: with a GRH; with UDP, over IPv6 or IPv4.
    const GRH: u8 = 0;
    const UDP_IPV6: u8 = 0x9;
    const UDP_IPV4: u8 = 0xa;
    match sl {
        _ if head.route.network_type == NetworkType::InfiniBand => head.deth.sl,
        UdSl::PacketType if head.route.network_type == NetworkType::RoceV1 => GRH,
        UdSl::PacketType if grh::ipv4(head.route).is_some() => UDP_IPV4,
        UdSl::PacketType => UDP_IPV6,
        UdSl::Zero | _ => 0,
    }
}
