//! Operations of a queue pair on a send in its queue.

use verbs_api::table::Table;
use verbs_api::{Access, Dest, Handle, SendOp, WcStatus};

use super::{atomic, extension, sum};
use crate::device::{Ah, Device, ProtectionFault, Send, check_empty, touch};
use crate::packet::payload::Payload;
use crate::packet::{Op, Packet, Psn};

impl Send {
    pub(crate) fn is_read(&self) -> bool {
        self.op.reads()
    }

    /// Whether a response answers it, and no acknowledgement (MPE-11).
    pub(super) fn awaits_response(&self) -> bool {
        self.is_read() || extension::request(&self.op).is_some()
    }

    /// The bytes that its responses bring.
    pub(super) fn brings(&self) -> u32 {
        if self.is_read() { self.length } else { 0 }
    }

    /// Whether it does not involve a peer.
    pub(super) fn is_local(&self) -> bool {
        is_local(&self.op)
    }

    /// The sequence number of the first missing response of a read.
    pub(super) fn next_response(&self) -> Psn {
        self.first.plus(self.answered)
    }

    pub(super) fn is_answered_in_kind_by(&self, packet: &Packet) -> bool {
        atomic::header(&self.op).is_some() == (packet.op == Op::AtomicResponse)
    }

    /// Whether the next response has the expected length.
    pub(super) fn is_answered_in_length_by(&self, packet: &Packet, mtu: u32) -> bool {
        let most = u64::from(packet.span) * u64::from(mtu);
        let length = most.min((self.brings() - self.got).into());
        length == u64::from(packet.payload.len())
    }

    /// The number after its last one.
    pub(super) fn end(&self) -> Psn {
        self.first.plus(self.span)
    }
}

/// Whether an operation does not involve a peer.
pub(super) fn is_local(op: &SendOp) -> bool {
    matches!(op, SendOp::BindMw { .. } | SendOp::LocalInv { .. })
}

/// Counts a send at its address handle.
#[inline(always)]
pub(super) fn hold_ah(ahs: &mut Table<Ah>, dest: &Dest) {
    if let Dest::Ud { ah, .. } = dest
        && let Some(ah) = ahs.live_mut(ah.index(), ah.generation())
    {
        ah.sends += 1;
    }
}

/// Releases the address handle and the bytes of each send whose slot becomes free.
#[inline(always)]
#[cfg_attr(any(), mutants::skip)] // cost
pub(super) fn release_each(ahs: &mut Table<Ah>) -> impl FnMut(&mut Send) {
    |send| {
        send.release_payload();
        if let Dest::Ud { ah, .. } = send.dest
            && let Some(ah) = ahs.live_mut(ah.index(), ah.generation())
        {
            ah.sends -= 1;
        }
    }
}

/// Takes the bytes of a send. The error is the status it fails with. If `stays`, the bytes remain
/// in the program's memory while the send is in progress, unless that may be gone by then.
pub(super) fn taken(
    device: &mut Device,
    pd: u32,
    send: &mut Send,
    stays: bool,
) -> Result<Payload, WcStatus> {
    if device.base.checks_memory {
        sum::note_started(&device.domains, pd, send);
    }
    let (regions, behavior) = (&device.domains.regions, &device.base.behavior);
    let length = send.length.into();
    let slices = check_empty(regions, behavior.zero_len_sge_check, pd, &send.list)
        .and_then(|()| touch(regions, pd, &send.list, 0, length, Access::empty()));
    let payload = slices.and_then(|slices| {
        // The sender must notice that its memory is not mapped.
        if stays && !device.domains.may_be_gone(&slices) {
            Ok(Payload::Slices(slices))
        } else {
            // The send is done, and the program may reuse its memory, before this arrives.
            Payload::copied(&device.domains.memory, &slices).map_err(|gone| {
                device.note_unmapped(gone);
                ProtectionFault::Key
            })
        }
    });
    let behavior = &device.base.behavior;
    payload.map_err(|fault| match fault {
        ProtectionFault::Key => behavior.send_key_status.status(),
        ProtectionFault::Range => behavior.send_range_status.status(),
    })
}
