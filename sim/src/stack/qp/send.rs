//! A send in its queue.

use smallvec::SmallVec;
use verbs_api::table::Table;
use verbs_api::{Dest, Handle, SendFlags, SendOp, SendWr, Sge, WcStatus};

use super::atomic;
use crate::device::Ah;
use crate::packet::{Op, Packet, Psn};
use crate::payload::Payload;

/// A send in its queue.
#[derive(Clone, Debug)]
pub(crate) struct Send {
    pub(crate) wr_id: u64,
    /// What is shown for it.
    pub(crate) label: u64,
    pub(crate) op: SendOp,
    pub(crate) flags: SendFlags,
    pub(crate) list: SmallVec<[Sge; 1]>,
    pub(crate) dest: Dest,
    pub(super) length: u32,
    /// Set when it starts; of inline data, when it is posted.
    pub(super) payload: Payload,
    pub(super) first: Psn,
    pub(super) span: u32,
    /// Bytes of an RDMA Read that have come.
    pub(super) got: u32,
    /// The sequence numbers of those.
    pub(super) answered: u32,
    /// It cannot be done; it completes with this status when its turn comes.
    pub(super) failed: Option<WcStatus>,
}

impl Send {
    /// One that was just posted.
    pub(super) fn new(
        wr: &SendWr<'_>,
        length: u32,
        payload: Payload,
        failed: Option<WcStatus>,
    ) -> Self {
        Self {
            wr_id: wr.wr_id,
            label: wr.label(),
            op: wr.op,
            flags: wr.flags,
            list: SmallVec::from_slice(wr.sg_list),
            dest: wr.dest,
            length,
            payload,
            first: Psn::default(),
            span: 0,
            got: 0,
            answered: 0,
            failed,
        }
    }

    pub(crate) fn is_read(&self) -> bool {
        self.op.reads()
    }

    /// Whether no peer has a part in it.
    pub(super) fn is_local(&self) -> bool {
        is_local(&self.op)
    }

    /// The number of the first response of a read that has not come.
    pub(super) fn next_response(&self) -> Psn {
        self.first.plus(self.answered)
    }

    pub(super) fn is_answered_in_kind_by(&self, packet: &Packet) -> bool {
        atomic::header(&self.op).is_some() == (packet.op == Op::AtomicResponse)
    }

    /// Whether the next response is as long as it must be.
    pub(super) fn is_answered_in_length_by(&self, packet: &Packet, mtu: u32) -> bool {
        let most = u64::from(packet.span) * u64::from(mtu);
        let length = most.min((self.length - self.got).into());
        length == u64::from(packet.payload.len())
    }

    /// The number after its last one.
    pub(super) fn end(&self) -> Psn {
        self.first.plus(self.span)
    }
}

/// Work that no peer has a part in.
pub(super) fn is_local(op: &SendOp) -> bool {
    matches!(op, SendOp::BindMw { .. } | SendOp::LocalInv { .. })
}

/// Lets go of the address handle of each send whose slot becomes free.
pub(super) fn let_go_of_ah(ahs: &mut Table<Ah>) -> impl FnMut(&Send) {
    |send| {
        if let Dest::Ud { ah, .. } = send.dest
            && let Some(ah) = ahs.live_mut(ah.index(), ah.generation())
        {
            ah.sends -= 1;
        }
    }
}
