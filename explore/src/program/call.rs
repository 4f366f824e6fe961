//! What a program can do: one call each, on objects that have numbers.

use verbs_api::{
    Access, Advice, AdviseFlags, InOrderQuery, Mtu, PlacementType, QpCap, QpState, QpType,
    SelectivityLevel, SendFlags, SendOps, WrOpcode,
};

/// The number of an object. Each kind has numbers of its own.
pub type Number = u8;

/// A call. A call that makes an object gives it a number; an object that had the number before
/// loses it, and lives until the end of the program.
///
/// Any number may be used: a number that no object ever had means the zero handle, and the number
/// of a destroyed object its stale handle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "fields are called as the arguments of the verbs are"
)]
pub enum Call {
    /// `ibv_open_device`, on this node.
    OpenDevice { context: Number, node: u8 },
    /// `ibv_close_device`
    CloseDevice { context: Number },
    /// `ibv_query_rt_values_ex`
    QueryRtValues { context: Number },
    /// `ibv_alloc_pd`
    AllocPd { pd: Number, context: Number },
    /// `ibv_dealloc_pd`
    DeallocPd { pd: Number },
    /// `ibv_alloc_td`
    AllocTd { td: Number, context: Number },
    /// `ibv_dealloc_td`
    DeallocTd { td: Number },
    /// `ibv_alloc_parent_domain`; without a thread domain if there never was one of this number.
    AllocParentDomain {
        parent: Number,
        pd: Number,
        td: Option<Number>,
    },
    /// `alloc_mr`; the region is filled with bytes that tell regions and places apart.
    AllocMr {
        mr: Number,
        pd: Number,
        length: u32,
        access: Access,
    },
    /// `ibv_reg_dmabuf_mr` of a dma-buf that is exported for it, filled as by `AllocMr`.
    RegDmabufMr {
        mr: Number,
        pd: Number,
        length: u32,
        access: Access,
    },
    /// `ibv_dereg_mr`
    DeregMr { mr: Number },
    /// `write_mr`: this many bytes of one value.
    WriteMr {
        mr: Number,
        offset: u32,
        length: u32,
        value: u8,
    },
    /// `read_mr`
    ReadMr {
        mr: Number,
        offset: u32,
        length: u32,
    },
    /// `map_mr`
    MapMr { mr: Number, mapped: bool },
    /// `ibv_advise_mr`, about bytes of one region
    AdviseMr {
        pd: Number,
        mr: Number,
        offset: u32,
        length: u32,
        advice: Advice,
        flags: AdviseFlags,
    },
    /// `ibv_alloc_dm`, aligned for atomics, filled as by `AllocMr`.
    AllocDm {
        dm: Number,
        context: Number,
        length: u32,
    },
    /// `ibv_free_dm`
    FreeDm { dm: Number },
    /// `ibv_reg_dm_mr`
    RegDmMr {
        mr: Number,
        pd: Number,
        dm: Number,
        offset: u32,
        length: u32,
        access: Access,
    },
    /// `ibv_memcpy_to_dm`: this many bytes of one value.
    CopyToDm {
        dm: Number,
        offset: u32,
        length: u32,
        value: u8,
    },
    /// `ibv_memcpy_from_dm`
    CopyFromDm {
        dm: Number,
        offset: u32,
        length: u32,
    },
    /// `ibv_create_comp_channel`
    CreateChannel { channel: Number, context: Number },
    /// `ibv_destroy_comp_channel`
    DestroyChannel { channel: Number },
    /// `ibv_get_cq_event`, without waiting
    GetEvent { channel: Number },
    /// `ibv_create_cq`
    CreateCq {
        cq: Number,
        context: Number,
        cqe: i32,
        channel: Option<Number>,
    },
    /// `ibv_resize_cq`
    ResizeCq { cq: Number, cqe: i32 },
    /// Reads the size of a CQ.
    QueryCq { cq: Number },
    /// `ibv_req_notify_cq`
    Arm { cq: Number, solicited: bool },
    /// `ibv_poll_cq`
    Poll { cq: Number, max: u8 },
    /// `ibv_ack_cq_events`
    Ack { cq: Number, events: u32 },
    /// `ibv_destroy_cq`, without waiting
    DestroyCq { cq: Number },
    /// `ibv_create_srq`
    CreateSrq {
        srq: Number,
        pd: Number,
        max_wr: u32,
        max_sge: u32,
    },
    /// `ibv_modify_srq` of the limit
    LimitSrq { srq: Number, limit: u32 },
    /// `ibv_post_srq_recv`
    PostSrqRecv { srq: Number, list: Vec<Vec<Sge>> },
    /// `ibv_destroy_srq`, without waiting
    DestroySrq { srq: Number },
    /// `ibv_create_qp`
    CreateQp { qp: Number, make: QpMake },
    /// Connects two RC or UC QPs by attributes.
    Connect { a: Number, b: Number, link: Link },
    /// Brings an RC or UC QP from RESET as far as INIT, RTR or RTS, towards a peer.
    Toward {
        qp: Number,
        peer: Number,
        to: QpState,
        link: Link,
    },
    /// Brings a UD QP from RESET to RTS, with the Q_Key [`QKEY`].
    StartUd { qp: Number },
    /// `ibv_modify_qp` of the state and nothing else
    ModifyQp { qp: Number, to: QpState },
    /// `ibv_query_qp`: the state.
    QueryQp { qp: Number },
    /// `ibv_query_qp_data_in_order`
    QueryInOrder {
        qp: Number,
        opcode: WrOpcode,
        flags: InOrderQuery,
    },
    /// `ibv_query_ece`: the options.
    QueryEce { qp: Number },
    /// `ibv_set_ece`: these options, of the vendor that a query names.
    SetEce { qp: Number, options: u32 },
    /// `ibv_post_send`
    PostSend { qp: Number, list: Vec<Send> },
    /// `ibv_wr_start` to `ibv_wr_complete`
    PostBatch { qp: Number, list: Vec<Send> },
    /// `ibv_post_recv`
    PostRecv { qp: Number, list: Vec<Vec<Sge>> },
    /// `ibv_destroy_qp`, without waiting
    DestroyQp { qp: Number },
    /// `ibv_create_ah`, to the port of a context
    CreateAh { ah: Number, pd: Number, to: Number },
    /// `ibv_destroy_ah`
    DestroyAh { ah: Number },
    /// `ibv_get_async_event`, without waiting
    GetAsyncEvent { context: Number },
    /// `ibv_ack_async_event`, of the oldest that was read and not acknowledged.
    AckAsyncEvent { context: Number },
    /// Everything that is under way comes to its end.
    Settle,
}

/// The Q_Key of UD QPs.
pub const QKEY: u32 = 0x1111_1111;

/// The parameters of a QP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpMake {
    /// The protection domain.
    pub pd: Number,
    /// The transport.
    pub qp_type: QpType,
    /// The CQ of its sends.
    pub send_cq: Number,
    /// The CQ of its receives.
    pub recv_cq: Number,
    /// The SRQ of its receives; `None` for a receive queue of its own.
    pub srq: Option<Number>,
    /// The sizes.
    pub cap: QpCap,
    /// Whether every send makes a completion.
    pub sq_sig_all: bool,
    /// The operations of its batches.
    pub send_ops: SendOps,
}

/// The parameters of a connection between two QPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Payload bytes of a packet.
    pub path_mtu: Mtu,
    /// The access that each end allows its peer.
    pub access: Access,
    /// Retries, without an answer and without a receive.
    pub retries: u8,
    /// RDMA Reads and atomics outstanding.
    pub depth: u8,
}

/// A send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Send {
    /// The operation.
    pub op: Op,
    /// The flags.
    pub flags: SendFlags,
    /// The scatter/gather list.
    pub list: Vec<Sge>,
    /// The destination, on a UD QP.
    pub to: Option<Target>,
}

/// The operation of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A Send.
    Send,
    /// A Send with immediate data.
    SendWithImm(u32),
    /// An RDMA Write.
    Write(Remote),
    /// An RDMA Write with immediate data.
    WriteWithImm(Remote, u32),
    /// An RDMA Read.
    Read(Remote),
    /// A compare-and-swap, with what has to be there and what comes there.
    CompareAndSwap(Remote, u64, u64),
    /// A fetch-and-add.
    FetchAndAdd(Remote, u64),
    /// A flush of this many bytes, or of their region.
    Flush(Remote, u32, PlacementType, SelectivityLevel),
    /// An atomic write.
    AtomicWrite(Remote, u64),
}

/// The destination of a datagram: an address handle, a QP and a Q_Key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The address handle.
    pub ah: Number,
    /// The QP there.
    pub qp: Number,
    /// The Q_Key.
    pub qkey: u32,
}

/// An element of a scatter/gather list: bytes of a region, and the key that names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sge {
    /// The region.
    pub mr: Number,
    /// The first byte.
    pub offset: u32,
    /// The number of bytes.
    pub length: u32,
    /// The key.
    pub key: Key,
}

/// A place in a region of the peer, and the key that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The region.
    pub mr: Number,
    /// The offset in it.
    pub offset: u32,
    /// The key.
    pub key: Key,
}

/// A key of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The one it has.
    Right,
    /// A key that no region has.
    Wrong,
}

impl Key {
    /// The key to use instead of the key `right`.
    pub const fn of(self, right: u32) -> u32 {
        match self {
            Self::Right => right,
            Self::Wrong => right ^ WRONG,
        }
    }
}

/// What makes a key wrong: bits that the keys of the first millions of regions do not have.
pub(super) const WRONG: u32 = 0x5a5a_5a00;

impl Op {
    /// The place in the peer's memory, if it has one.
    pub const fn remote(&self) -> Option<&Remote> {
        match self {
            Self::Send | Self::SendWithImm(_) => None,
            Self::Write(remote)
            | Self::WriteWithImm(remote, _)
            | Self::Read(remote)
            | Self::CompareAndSwap(remote, ..)
            | Self::FetchAndAdd(remote, _)
            | Self::Flush(remote, ..)
            | Self::AtomicWrite(remote, _) => Some(remote),
        }
    }

    /// Whether its list is written, by what comes from the peer.
    pub const fn reads(&self) -> bool {
        matches!(
            self,
            Self::Read(_) | Self::CompareAndSwap(..) | Self::FetchAndAdd(..)
        )
    }
}
