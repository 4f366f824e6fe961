//! Why memory cannot be used as a work request or a peer wants it, in words.

use verbs_api::{Access, Dest, Handle, QpType, SendOp, Sge, WcStatus};

use super::Node;
use super::mw::is_window_key;
use super::qp::{Recv, Send};
use super::region::{Mr, RKEY};
use crate::packet::{Op, Packet, Reth};

/// What lies further from a region is not told in relation to it: it would depend on where the machine
/// has put things.
const NEAR: u64 = 1 << 20;

impl Node {
    /// Why a send cannot be carried out.
    pub(super) fn why_not_sent(&self, index: u32, send: &Send, status: WcStatus) -> Option<String> {
        let qp = self.qps.at(index);
        if let Dest::Ud { ah, .. } = send.dest
            && qp.init.qp_type == QpType::Ud
        {
            let Ok(ah) = self.ahs.get(ah.index(), ah.generation()) else {
                return Some("its address handle is gone".to_owned());
            };
            if ah.pd != qp.pd {
                return Some("its address handle is of another protection domain".to_owned());
            }
            let mtu = self.mtu(index);
            if send.length > mtu {
                let length = send.length;
                return Some(format!("{length} bytes are more than the MTU, {mtu}"));
            }
        }
        if status == WcStatus::LocLenErr && matches!(send.op, SendOp::RdmaRead { .. }) {
            let mtu = self.mtu(index);
            return Some(format!(
                "the data were cut for another path MTU than {mtu} bytes"
            ));
        }
        if send.is_read() && qp.attr.max_rd_atomic == 0 {
            return Some("max_rd_atomic is 0".to_owned());
        }
        if super::atomic::header(&send.op).is_some() && send.length != super::atomic::BYTES {
            let length = send.length;
            return Some(format!("an atomic takes 8 bytes, and not {length}"));
        }
        let need = match send.is_read() {
            true => Access::LOCAL_WRITE,
            false => Access::empty(),
        };
        self.why_not(qp.pd, &send.list, need)
    }

    /// Why nothing can be put into a receive.
    pub(super) fn why_not_received(&self, pd: u32, recv: &Recv) -> Option<String> {
        self.why_not(pd, &recv.list, Access::LOCAL_WRITE)
    }

    /// Why a request of a peer cannot be carried out.
    pub(super) fn why_refused(&self, index: u32, packet: &Packet) -> String {
        if !self.has_path_mtu(index, packet) {
            let mtu = self.mtu(index);
            return format!("the message was cut for another path MTU than {mtu} bytes");
        }
        let (reth, need) = match packet.op {
            Op::Write(Some(reth)) => (reth, Access::REMOTE_WRITE),
            Op::ReadRequest(reth) => (reth, Access::REMOTE_READ),
            Op::AtomicRequest(eth) => {
                if !eth.is_aligned() {
                    return "the address is not a multiple of 8".to_owned();
                }
                let (addr, rkey) = (eth.addr, eth.rkey);
                let length = super::atomic::BYTES;
                (Reth { addr, rkey, length }, Access::REMOTE_ATOMIC)
            }
            _ => return self.why_not_taken(index, packet),
        };
        let qp = self.qps.at(index);
        if packet.op.is_answered_with_data() && qp.attr.max_dest_rd_atomic == 0 {
            return "max_dest_rd_atomic is 0".to_owned();
        }
        if !qp.attr.qp_access_flags.contains(need) {
            let (needed, number) = (names(need), qp.qp_num);
            return format!("qp {number:#x} does not allow {needed}");
        }
        let rkey = reth.rkey;
        if is_window_key(rkey) {
            return format!("no window of rkey {rkey:#x} opens that");
        }
        let of_key = self.mrs.of_key(rkey & !RKEY);
        match of_key {
            None => format!("no region has the rkey {rkey:#x}"),
            Some(mr) if mr.attr().rkey != rkey && mr.attr().lkey == rkey => {
                format!(
                    "{rkey:#x} is the lkey of {}, not its rkey",
                    self.name_of_key(rkey)
                )
            }
            Some(mr) => {
                let place = (reth.addr, u64::from(reth.length));
                let name = self.name_of_key(rkey);
                let why = why_not_in(mr, &name, qp.pd, place, need);
                why.unwrap_or_else(|| format!("{name} cannot be used so"))
            }
        }
    }

    /// Why a message cannot be put into the receive that it takes.
    fn why_not_taken(&self, index: u32, packet: &Packet) -> String {
        if let Some((pd, recv)) = self.present_receive(index) {
            let bytes = u64::from(self.qps.at(index).responder.got() + packet.payload.len());
            let (wr_id, room) = (recv.wr_id, recv.length());
            if bytes > room {
                return format!(
                    "the message is longer than the {room} bytes of receive {wr_id:#x}"
                );
            }
            if let Some(why) = self.why_not_received(pd, recv) {
                return format!("for receive {wr_id:#x}, {why}");
            }
        }
        match packet.op {
            Op::SendWithInv(rkey) => format!("the rkey {rkey:#x} cannot be invalidated"),
            _ => "the request makes no sense there".to_owned(),
        }
    }

    fn why_not(&self, pd: u32, list: &[Sge], need: Access) -> Option<String> {
        list.iter().find_map(|sge| {
            let Some(mr) = self.mrs.of_key(sge.lkey) else {
                let is_rkey = sge.lkey & RKEY != 0;
                let of_key = self.mrs.of_key(sge.lkey & !RKEY).filter(|_| is_rkey);
                let (lkey, name) = (sge.lkey, self.name_of_key(sge.lkey));
                return Some(match of_key {
                    Some(_) => format!("{lkey:#x} is the rkey of {name}, not its lkey"),
                    None => format!("no region has the lkey {lkey:#x}"),
                });
            };
            let place = (sge.addr, u64::from(sge.length));
            why_not_in(mr, &self.name_of_key(sge.lkey), pd, place, need)
        })
    }

    /// The region of a key, as handles are printed.
    fn name_of_key(&self, key: u32) -> String {
        format!("mr#{}", self.mrs.keys().slot(key).unwrap_or_default())
    }
}

fn names(access: Access) -> String {
    let names: Vec<_> = access.iter_names().map(|(name, _)| name).collect();
    names.join(" and ")
}

fn why_not_in(
    mr: &Mr,
    name: &str,
    pd: u32,
    (addr, length): (u64, u64),
    need: Access,
) -> Option<String> {
    if mr.pd() != pd {
        return Some(format!("{name} is of another protection domain"));
    }
    let missing = need - mr.access();
    if !missing.is_empty() {
        return Some(format!("{name} does not allow {}", names(missing)));
    }
    if mr.part(addr, length).is_ok() {
        return None;
    }
    let (start, bytes) = (mr.attr().addr, mr.attr().length);
    Some(match addr.checked_sub(start) {
        Some(offset) if offset <= bytes + NEAR => {
            format!("{length} bytes from {offset:#x} on are not in {name}, which has {bytes}")
        }
        _ => format!("the address is not in {name}"),
    })
}
