//! Completion queues: creation, arming, work completions.

use bitflags::bitflags;
use core::fmt;

use crate::c_enum::c_enum;
use crate::handle::{CompChannel, Cq};
use crate::shown::debug_is_display;

/// What `ibv_create_cq` takes.
///
/// `cqe` and `comp_vector` are the signed numbers of the C call, so that a program can ask for a
/// negative size (and be refused).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CqInit {
    /// Least number of entries, 1 to [`DeviceAttr::max_cqe`](crate::DeviceAttr::max_cqe).
    pub cqe: i32,
    /// The caller's own value, returned with every event (CQ-CREATE-06).
    pub cq_context: u64,
    /// Where events go; `None` for a CQ that is only polled (CQ-CREATE-05).
    pub channel: Option<CompChannel>,
    /// Completion vector, from 0 to below
    /// [`DeviceAttr::num_comp_vectors`](crate::DeviceAttr::num_comp_vectors) (CQ-CREATE-07).
    pub comp_vector: i32,
}

impl CqInit {
    /// A CQ of at least `cqe` entries without a channel, context 0, vector 0.
    pub const fn new(cqe: i32) -> Self {
        Self {
            cqe,
            cq_context: 0,
            channel: None,
            comp_vector: 0,
        }
    }

    /// With events delivered on `channel`.
    #[must_use]
    pub const fn channel(self, channel: CompChannel) -> Self {
        Self {
            channel: Some(channel),
            ..self
        }
    }

    /// With the caller's own value.
    #[must_use]
    pub const fn context(self, cq_context: u64) -> Self {
        Self { cq_context, ..self }
    }

    /// With a completion vector.
    #[must_use]
    pub const fn comp_vector(self, comp_vector: i32) -> Self {
        Self {
            comp_vector,
            ..self
        }
    }
}

/// The fields of `struct ibv_cq` that a program reads. The default, for backends to fill in, is all
/// zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CqAttr {
    /// Entries the CQ really has: at least what was asked for (CQ-CREATE-01).
    pub cqe: u32,
    /// The caller's own value.
    pub cq_context: u64,
    /// The channel attached at creation.
    pub channel: Option<CompChannel>,
    /// The completion vector.
    pub comp_vector: u32,
}

/// The argument `solicited_only` of `ibv_req_notify_cq`: which completion makes an event.
///
/// It is the C `int`: 0 is [`Arm::NEXT`], any other value means solicited-only (CQ-ARM-19).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arm(pub i32);

impl Arm {
    /// Any next completion.
    pub const NEXT: Self = Self(0);
    /// The next solicited or unsuccessful completion.
    pub const SOLICITED: Self = Self(1);

    /// Whether the request is for solicited or unsuccessful completions only.
    pub const fn solicited_only(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("next"),
            1 => f.write_str("solicited"),
            other => write!(f, "solicited({other})"),
        }
    }
}

debug_is_display!(Arm);

/// What `ibv_get_cq_event` gives: the CQ and its context value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CqEvent {
    /// The CQ that got the event.
    pub cq: Cq,
    /// The value given at its creation.
    pub cq_context: u64,
}

impl CqEvent {
    /// An event, for backends.
    pub const fn new(cq: Cq, cq_context: u64) -> Self {
        Self { cq, cq_context }
    }
}

/// A work completion (`struct ibv_wc`).
///
/// When `status` is not success, only `wr_id`, `status`, `qp_num` and `vendor_err` mean anything
/// (WC-01). Each other field says when it is valid. The default is a value to fill a buffer for
/// `poll_cq` with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wc {
    /// The value of the work request.
    pub wr_id: u64,
    /// How it ended.
    pub status: WcStatus,
    /// What completed.
    pub opcode: WcOpcode,
    /// The vendor's own code; no portable meaning (WC-16).
    pub vendor_err: u32,
    /// Payload bytes of a receive (a UD receive counts its 40 bytes of GRH space), or of an RDMA
    /// Read. For other sends see
    /// [`Behavior::send_byte_len`](crate::behavior::Behavior::send_byte_len).
    pub byte_len: u32,
    /// Immediate data as on the wire; valid with [`WcFlags::WITH_IMM`].
    pub imm_data: [u8; 4],
    /// The local QP.
    pub qp_num: u32,
    /// The sender's QP number; UD receives only.
    pub src_qp: u32,
    /// Which other fields are valid.
    pub wc_flags: WcFlags,
    /// P_Key index; GSI QPs only.
    pub pkey_index: u16,
    /// Source LID; UD receives only.
    pub slid: u16,
    /// Service level; UD receives only.
    pub sl: u8,
    /// Destination LID path bits; UD receives only.
    pub dlid_path_bits: u8,
}

impl Wc {
    /// The key that was invalidated, if the message did that (MW-17).
    pub fn invalidated_rkey(&self) -> Option<u32> {
        let is_there = self.wc_flags.contains(WcFlags::WITH_INV);
        is_there.then(|| u32::from_ne_bytes(self.imm_data))
    }
}

impl fmt::Display for Wc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "wr_id {:#x} {} qp_num {:#x}",
            self.wr_id, self.status, self.qp_num
        )?;
        if self.status != WcStatus::Success {
            return Ok(());
        }
        write!(f, " {} {} B", self.opcode, self.byte_len)?;
        if self.wc_flags.contains(WcFlags::WITH_IMM) {
            write!(f, " imm {:02x?}", self.imm_data)?;
        }
        Ok(())
    }
}

c_enum! {
    /// Status of a work completion (`enum ibv_wc_status`).
    WcStatus {
        /// It was done.
        Success = 0, "SUCCESS";
        /// Local length error: a receive too small, or a message too long (WC-22).
        LocLenErr = 1, "LOC_LEN_ERR";
        /// Local QP operation error (WC-23).
        LocQpOpErr = 2, "LOC_QP_OP_ERR";
        /// Local EE context operation error.
        LocEecOpErr = 3, "LOC_EEC_OP_ERR";
        /// A local SGE does not refer to memory valid for the operation (WC-24).
        LocProtErr = 4, "LOC_PROT_ERR";
        /// Flushed: outstanding or posted while the QP was in the error state (WC-25).
        WrFlushErr = 5, "WR_FLUSH_ERR";
        /// A memory window bind failed its checks (WC-26).
        MwBindErr = 6, "MW_BIND_ERR";
        /// A response that was not expected.
        BadRespErr = 7, "BAD_RESP_ERR";
        /// Local protection error while a remote write with immediate arrived.
        LocAccessErr = 8, "LOC_ACCESS_ERR";
        /// The responder found the request invalid (WC-27).
        RemInvReqErr = 9, "REM_INV_REQ_ERR";
        /// Protection error on remote memory (WC-28).
        RemAccessErr = 10, "REM_ACCESS_ERR";
        /// The responder could not do it for a reason of its own (WC-29).
        RemOpErr = 11, "REM_OP_ERR";
        /// No acknowledgement after all retries (WC-30).
        RetryExcErr = 12, "RETRY_EXC_ERR";
        /// Receiver not ready, retries used up (WC-31).
        RnrRetryExcErr = 13, "RNR_RETRY_EXC_ERR";
        /// Local RDD violation.
        LocRddViolErr = 14, "LOC_RDD_VIOL_ERR";
        /// Remote invalid RD request.
        RemInvRdReqErr = 15, "REM_INV_RD_REQ_ERR";
        /// Remote abort.
        RemAbortErr = 16, "REM_ABORT_ERR";
        /// Invalid EE context number.
        InvEecnErr = 17, "INV_EECN_ERR";
        /// Invalid EE context state.
        InvEecStateErr = 18, "INV_EEC_STATE_ERR";
        /// The QP is dead.
        FatalErr = 19, "FATAL_ERR";
        /// Response timeout.
        RespTimeoutErr = 20, "RESP_TIMEOUT_ERR";
        /// Another error.
        GeneralErr = 21, "GENERAL_ERR";
        /// Tag matching error.
        TmErr = 22, "TM_ERR";
        /// Tag matching rendezvous is incomplete.
        TmRndvIncomplete = 23, "TM_RNDV_INCOMPLETE";
    }
}

impl WcStatus {
    /// libibverbs' fixed text for a status, also for one without a name (`ibv_wc_status_str`,
    /// WC-32).
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::LocLenErr => "local length error",
            Self::LocQpOpErr => "local QP operation error",
            Self::LocEecOpErr => "local EE context operation error",
            Self::LocProtErr => "local protection error",
            Self::WrFlushErr => "Work Request Flushed Error",
            Self::MwBindErr => "memory management operation error",
            Self::BadRespErr => "bad response error",
            Self::LocAccessErr => "local access error",
            Self::RemInvReqErr => "remote invalid request error",
            Self::RemAccessErr => "remote access error",
            Self::RemOpErr => "remote operation error",
            Self::RetryExcErr => "transport retry counter exceeded",
            Self::RnrRetryExcErr => "RNR retry counter exceeded",
            Self::LocRddViolErr => "local RDD violation error",
            Self::RemInvRdReqErr => "remote invalid RD request",
            Self::RemAbortErr => "aborted error",
            Self::InvEecnErr => "invalid EE context number",
            Self::InvEecStateErr => "invalid EE context state",
            Self::FatalErr => "fatal error",
            Self::RespTimeoutErr => "response timeout error",
            Self::GeneralErr => "general error",
            Self::TmErr => "TM error",
            Self::TmRndvIncomplete => "TM software rendezvous",
            Self::Unknown(_) => "unknown",
        }
    }
}

c_enum! {
    /// What a work completion is of (`enum ibv_wc_opcode`).
    WcOpcode {
        /// A send of any kind.
        Send = 0, "SEND";
        /// An RDMA Write of either kind.
        RdmaWrite = 1, "RDMA_WRITE";
        /// An RDMA Read.
        RdmaRead = 2, "RDMA_READ";
        /// Compare and swap.
        CompSwap = 3, "COMP_SWAP";
        /// Fetch and add.
        FetchAdd = 4, "FETCH_ADD";
        /// A memory window bind.
        BindMw = 5, "BIND_MW";
        /// A local invalidate.
        LocalInv = 6, "LOCAL_INV";
        /// A segmented send.
        Tso = 7, "TSO";
        /// A flush.
        Flush = 8, "FLUSH";
        /// An atomic write.
        AtomicWrite = 9, "ATOMIC_WRITE";
        /// A receive of a send.
        Recv = 128, "RECV";
        /// A receive consumed by an RDMA Write with immediate.
        RecvRdmaWithImm = 129, "RECV_RDMA_WITH_IMM";
    }
}

impl WcOpcode {
    /// Bit `IBV_WC_RECV`, set in the opcodes of all receives and of no send (WC-05).
    pub const RECV_BIT: u32 = 1 << 7;

    /// Whether the completion is of a receive.
    pub fn is_recv(self) -> bool {
        u32::from(self) & Self::RECV_BIT != 0
    }
}

bitflags! {
    /// Which fields of a [`Wc`] are valid (`enum ibv_wc_flags`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct WcFlags: u32 {
        /// A GRH is present (UD).
        const GRH = 1 << 0;
        /// `imm_data` is valid.
        const WITH_IMM = 1 << 1;
        /// The IP checksum was found right.
        const IP_CSUM_OK = 1 << 2;
        /// A remote key was invalidated; `imm_data` holds it in the machine's order.
        const WITH_INV = 1 << 3;
        const _ = !0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WC-32: a text for every status and for one beyond the last.
    #[test]
    fn every_status_has_a_text() {
        for raw in 0..=WcStatus::ALL.len() as u32 {
            assert!(!WcStatus::from(raw).describe().is_empty());
            assert_eq!(u32::from(WcStatus::from(raw)), raw);
        }
        assert_eq!(WcStatus::from(24), WcStatus::Unknown(24));
    }

    /// WC-05: the receive bit tells receives from sends.
    #[test]
    fn receive_bit_is_set_in_receive_opcodes_only() {
        for opcode in WcOpcode::ALL {
            assert_eq!(
                opcode.is_recv(),
                opcode.name().starts_with("RECV"),
                "{opcode}"
            );
        }
    }
}
