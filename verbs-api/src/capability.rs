//! Capabilities: what a device can do.

use bitflags::bitflags;
use core::fmt;

use crate::QpType;

bitflags! {
    /// The capabilities of a device, or of its backend. A scenario that needs more is skipped and
    /// says what is missing.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Capabilities: u64 {
        /// RC queue pairs.
        const RC = 1 << 0;
        /// UC queue pairs.
        const UC = 1 << 1;
        /// UD queue pairs.
        const UD = 1 << 2;
        /// Several queue pairs of one process can be connected by attributes alone, so single
        /// transitions can be made (not iWARP).
        const MODIFY_CONNECT = 1 << 3;
        /// Send with immediate.
        const SEND_WITH_IMM = 1 << 4;
        /// RDMA Write with immediate.
        const WRITE_WITH_IMM = 1 << 5;
        /// RDMA Read.
        const RDMA_READ = 1 << 6;
        /// `ibv_resize_cq`.
        const RESIZE_CQ = 1 << 7;
        /// RNR NAK instead of a broken connection when no receive is posted.
        const RNR = 1 << 8;
        /// More than one completion vector.
        const COMP_VECTORS = 1 << 9;
        /// `ibv_rereg_mr`.
        const REREG_MR = 1 << 10;
        /// Multicast groups: `ibv_attach_mcast`.
        const MCAST = 1 << 16;
        /// Compare-and-swap and fetch-and-add.
        const ATOMICS = 1 << 17;
        /// Memory windows of type 1.
        const MW_TYPE_1 = 1 << 18;
        /// Memory windows of type 2B, with local invalidate and Send with invalidate.
        const MW_TYPE_2 = 1 << 19;
        /// Regions with addresses of the program's choice: `ibv_reg_mr_iova`.
        const REG_MR_IOVA = 1 << 21;
        /// `ibv_alloc_null_mr`.
        const NULL_MR = 1 << 22;
        /// Shared receive queues (`max_srq` above 0).
        const SRQ = 1 << 23;
        /// `ibv_modify_srq` changes the size (`IBV_DEVICE_SRQ_RESIZE`).
        const SRQ_RESIZE = 1 << 24;
        /// Queue pairs that take batches of sends: `ibv_wr_*`.
        const BATCHES = 1 << 25;
        /// Extended reliable connections (`IBV_DEVICE_XRC`).
        const XRC = 1 << 26;
        /// Extended CQs: `ibv_create_cq_ex`.
        const CQ_EX = 1 << 27;
        /// Moderation of completion events: `ibv_modify_cq`.
        const CQ_MODERATION = 1 << 28;
        /// Automatic path migration: alternate paths and their events (ASYNC-17). The simulator has
        /// none.
        const PATH_MIG = 1 << 29;
        /// Segmented sends: [`SendOp::Tso`](crate::SendOp::Tso). The simulator has none.
        const TSO = 1 << 30;
        /// The backend has [`Lab`](crate::lab::Lab): time, faults, limits, leak counts.
        const LAB = 1 << 32;
        /// Verbs may be called from several threads, and blocking waits block.
        const THREADS = 1 << 33;
        /// The number by which the driver knows an object can be corrupted
        /// ([`Verbs::corrupt_handle`](crate::Verbs::corrupt_handle)).
        const CORRUPT_HANDLE = 1 << 34;
        /// Channels and contexts have file descriptors ([`Verbs::channel_fd`](crate::Verbs)).
        const FD = 1 << 35;
        /// Extended CQs that may overrun: [`CqFlags::IGNORE_OVERRUN`](crate::CqFlags).
        const IGNORE_OVERRUN = 1 << 36;
        /// Extended CQs tell when a completion was added:
        /// [`WcFields::TIMESTAMPS`](crate::WcFields).
        const WC_TIMESTAMP = 1 << 37;
        /// Connection management by rdma_cm ([`Verbs::cm`](crate::Verbs::cm)).
        const CM = 1 << 38;
        /// Regions of a dma-buf: [`Verbs::reg_dmabuf_mr`](crate::Verbs::reg_dmabuf_mr).
        const DMABUF = 1 << 39;
        /// On-demand regions ([`Access::ON_DEMAND`](crate::Access::ON_DEMAND)) and advice about
        /// them.
        const ODP = 1 << 40;
        /// On-demand regions of all memory of the process.
        const ODP_IMPLICIT = 1 << 41;
        /// Enhanced connection establishment: [`Verbs::query_ece`](crate::Verbs::query_ece).
        const ECE = 1 << 42;
        /// Device memory: `ibv_alloc_dm`.
        const DEVICE_MEMORY = 1 << 43;
        /// Parent domains and thread domains: `ibv_alloc_parent_domain`, `ibv_alloc_td`.
        const PARENT_DOMAIN = 1 << 44;
        /// The device's clock can be read: `ibv_query_rt_values_ex`.
        const RT_VALUES = 1 << 45;
        /// Flushes: [`SendOp::Flush`](crate::SendOp::Flush).
        const FLUSH = 1 << 46;
        /// Atomic writes: [`SendOp::AtomicWrite`](crate::SendOp::AtomicWrite).
        const ATOMIC_WRITE = 1 << 47;
    }
}

impl Capabilities {
    /// What [`Verbs::create_qp`](crate::Verbs::create_qp) needs for a queue pair of this type.
    /// Empty for the types that it does not make.
    pub const fn of_qp_type(qp_type: QpType) -> Self {
        match qp_type {
            QpType::Rc => Self::RC,
            QpType::Uc => Self::UC,
            QpType::Ud => Self::UD,
            QpType::XrcSend => Self::XRC,
            _ => Self::empty(),
        }
    }

    /// The capabilities that iWARP devices lack: connecting by attributes, since rdma_cm connects
    /// them; immediate data of Sends and RDMA Writes; and waiting for a missing receive, which ends
    /// the connection.
    pub const IWARP_LACKS: Self = Self::UC
        .union(Self::UD)
        .union(Self::MCAST)
        .union(Self::MODIFY_CONNECT)
        .union(Self::SEND_WITH_IMM)
        .union(Self::WRITE_WITH_IMM)
        .union(Self::RNR);

    /// Memory windows of any type.
    pub const MW: Self = Self::MW_TYPE_1.union(Self::MW_TYPE_2);
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, _)) in self.iter_names().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{}", name.to_ascii_lowercase())?;
        }
        Ok(())
    }
}
