//! The memory placement extensions: flushes and atomic writes, at both ends.

use verbs_api::{Access, OdpOps, PlacementType, SendOp};

use super::atomic;
use super::common::Common;
use super::responder::Responder;
use super::verdict::Refusal;
use crate::device::{Device, OutPacket};
use crate::packet::payload::Payload;
use crate::packet::{Flush, Op, Packet, Psn, Reth};

/// The operation of their request, or `None` for other work.
pub(super) fn request(op: &SendOp) -> Option<Op> {
    match *op {
        SendOp::Flush {
            remote,
            length,
            placement,
            level,
        } => Some(Op::Flush(Flush {
            reth: Reth {
                va: remote.addr,
                rkey: remote.rkey,
                length,
            },
            placement,
            level,
        })),
        SendOp::AtomicWrite { remote, .. } => Some(Op::AtomicWrite(Reth {
            va: remote.addr,
            rkey: remote.rkey,
            length: atomic::BYTES,
        })),
        _ => None,
    }
}

impl Responder {
    /// Places the data that a flush is for. Earlier requests have been carried out.
    pub(super) fn execute_flush(
        &self,
        qp: &Common,
        device: &mut Device,
        flush: Flush,
    ) -> Result<(), Refusal> {
        let need = flush.needs();
        qp.check_enabled(device, need, None)?;
        let (domains, peer, rkey) = (&device.domains, self.peer(qp, device), flush.reth.rkey);
        let (va, length) = domains.flushed(&flush);
        // The key is checked even for no bytes (MPE-05).
        let flushed = domains
            .touch_remote(&device.base, peer, rkey, va, length, need)
            .map_err(|_| Refusal::access_fault(device, None))?;
        let mut memory = device.domains.memory.lock();
        memory.place(&flushed);
        // As in Linux, a flush for visibility needs no memory, and one for persistence does.
        let persists = length > 0 && flush.placement.contains(PlacementType::PERSISTENT);
        let present = if persists {
            memory.fault_in(&flushed)
        } else {
            Ok(())
        };
        drop(memory);
        present.map_err(|gone| Refusal::lost(device, gone, None))
    }

    /// Writes 8 bytes at once.
    pub(super) fn execute_atomic_write(
        &self,
        qp: &Common,
        device: &mut Device,
        packet: &Packet,
        reth: Reth,
    ) -> Result<(), Refusal> {
        let Some(value) = packet.payload.own() else {
            return Err(Refusal::INVALID);
        };
        let is_whole = (reth.length, value.len()) == (atomic::BYTES, atomic::BYTES as usize);
        if !is_whole || !atomic::is_aligned(reth.va) {
            return Err(Refusal::INVALID);
        }
        let need = Access::REMOTE_WRITE;
        qp.check_enabled(device, need, None)?;
        let mut peer = self.peer(qp, device);
        // The right is that of a write, but on-demand regions tell the two apart.
        let may_page = peer.odp.contains(OdpOps::ATOMIC_WRITE);
        peer.odp.set(OdpOps::WRITE, may_page);
        let place = device
            .domains
            .touch_remote(
                &device.base,
                peer,
                reth.rkey,
                reth.va,
                atomic::BYTES.into(),
                need,
            )
            .map_err(|_| Refusal::access_fault(device, None))?;
        // One write, which is never placed late, is atomic among all devices.
        let mut memory = device.domains.memory.lock();
        memory.settle_of(qp.handle);
        let written = memory.write(&place, value);
        drop(memory);
        written.map_err(|gone| Refusal::lost(device, gone, None))
    }
}

impl Common {
    /// Answers a request whose response brings no data.
    pub(super) fn answer_without_data(&self, device: &mut Device, psn: Psn, completed: Psn) {
        let packet = OutPacket::answer(Op::ReadResponse, psn, completed.value());
        self.send_to_peer(device, packet, Payload::default());
    }
}
