//! The kinds of work for a send queue.

use verbs_api::{Remote, SendOp, SendWr, Sge};

use crate::End;

/// A kind of work for the send queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Send,
    SendImm,
    Write,
    WriteImm,
    Read,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [
        Self::Send,
        Self::SendImm,
        Self::Write,
        Self::WriteImm,
        Self::Read,
    ];

    /// Work of this kind from `a` to its peer's landing place, signaled.
    pub(crate) fn work<'s>(self, a: &End<'_>, wr_id: u64, sges: &'s [Sge]) -> SendWr<'s> {
        self.work_with(a, wr_id, sges, [1, 2, 3, 4])
    }

    /// The same, with this immediate data if it has any.
    pub(crate) fn work_with<'s>(
        self,
        a: &End<'_>,
        wr_id: u64,
        sges: &'s [Sge],
        imm_data: [u8; 4],
    ) -> SendWr<'s> {
        SendWr::new(wr_id, self.op(a.remote(), imm_data), sges)
    }

    /// The operation, with this place at the peer and this immediate data if it has any.
    pub(crate) fn op(self, remote: Remote, imm_data: [u8; 4]) -> SendOp {
        match self {
            Self::Send => SendOp::Send,
            Self::SendImm => SendOp::SendWithImm { imm_data },
            Self::Write => SendOp::RdmaWrite { remote },
            Self::WriteImm => SendOp::RdmaWriteWithImm { remote, imm_data },
            Self::Read => SendOp::RdmaRead { remote },
        }
    }

    pub(crate) fn has_imm(self) -> bool {
        matches!(self, Self::SendImm | Self::WriteImm)
    }

    pub(crate) fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::WriteImm)
    }

    /// The peer needs a receive for it.
    pub(crate) fn takes_a_receive(self) -> bool {
        !matches!(self, Self::Write | Self::Read)
    }
}
