//! Batches of sends (`ibv_wr_*`), which are posted as a whole or not at all.

use bitflags::bitflags;

use crate::SendOp;

bitflags! {
    /// Operations that batches of a queue pair may have (`enum ibv_qp_create_send_ops_flags`,
    /// SQ-28). Bits without a name can be carried, so that a backend can be asked for them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct SendOps: u64 {
        /// `IBV_QP_EX_WITH_RDMA_WRITE`
        const RDMA_WRITE = 1 << 0;
        /// `IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM`
        const RDMA_WRITE_WITH_IMM = 1 << 1;
        /// `IBV_QP_EX_WITH_SEND`
        const SEND = 1 << 2;
        /// `IBV_QP_EX_WITH_SEND_WITH_IMM`
        const SEND_WITH_IMM = 1 << 3;
        /// `IBV_QP_EX_WITH_RDMA_READ`
        const RDMA_READ = 1 << 4;
        /// `IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP`
        const ATOMIC_CMP_AND_SWP = 1 << 5;
        /// `IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD`
        const ATOMIC_FETCH_AND_ADD = 1 << 6;
        /// `IBV_QP_EX_WITH_LOCAL_INV`
        const LOCAL_INV = 1 << 7;
        /// `IBV_QP_EX_WITH_BIND_MW`
        const BIND_MW = 1 << 8;
        /// `IBV_QP_EX_WITH_SEND_WITH_INV`
        const SEND_WITH_INV = 1 << 9;
        /// `IBV_QP_EX_WITH_TSO`
        const TSO = 1 << 10;
        /// `IBV_QP_EX_WITH_FLUSH`
        const FLUSH = 1 << 11;
        /// `IBV_QP_EX_WITH_ATOMIC_WRITE`
        const ATOMIC_WRITE = 1 << 12;
        const _ = !0;
    }
}

impl SendOps {
    /// The flag of this operation.
    pub const fn of(op: &SendOp) -> Self {
        match op {
            SendOp::Send => Self::SEND,
            SendOp::SendWithImm { .. } => Self::SEND_WITH_IMM,
            SendOp::RdmaWrite { .. } => Self::RDMA_WRITE,
            SendOp::RdmaWriteWithImm { .. } => Self::RDMA_WRITE_WITH_IMM,
            SendOp::RdmaRead { .. } => Self::RDMA_READ,
            SendOp::CompareAndSwap { .. } => Self::ATOMIC_CMP_AND_SWP,
            SendOp::FetchAndAdd { .. } => Self::ATOMIC_FETCH_AND_ADD,
            SendOp::Flush { .. } => Self::FLUSH,
            SendOp::AtomicWrite { .. } => Self::ATOMIC_WRITE,
            SendOp::LocalInv { .. } => Self::LOCAL_INV,
            SendOp::BindMw { .. } => Self::BIND_MW,
            SendOp::SendWithInv { .. } => Self::SEND_WITH_INV,
            SendOp::Tso { .. } => Self::TSO,
        }
    }
}

/// How a batch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchEnd {
    /// The batch is posted (`ibv_wr_complete`).
    Complete,
    /// The batch is given up (`ibv_wr_abort`).
    Abort,
}
