//! Work requests. They are the same for the trait and for owning objects, except how they name
//! memory, address handles and windows: [`Names`].

use core::fmt::Debug;

use bitflags::bitflags;

use crate::cq::WcOpcode;
use crate::error::Result;
use crate::flush::{PlacementType, SelectivityLevel};
use crate::handle::{Ah, Mw};
use crate::mr::Sge;
use crate::mw::MwBindInfo;

/// The way in which work requests name objects: [`Handles`], or
/// [`owned::Objects`](crate::owned::Objects).
pub trait Names: Copy + Debug + Eq {
    /// Local memory.
    type Sge: Copy + Debug + Eq;
    /// An address handle.
    type Ah: Copy + Debug + Eq;
    /// A memory window.
    type Mw: Copy + Debug + Eq;
    /// What a window is to show.
    type BindInfo: Copy + Debug + Eq;
}

/// Naming by handles, as in the trait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handles {}

impl Names for Handles {
    type Sge = Sge;
    type Ah = Ah;
    type Mw = Mw;
    type BindInfo = MwBindInfo;
}

bitflags! {
    /// Flags of a send work request (`enum ibv_send_flags`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct SendFlags: u32 {
        /// Not started before all earlier RDMA Reads, atomics and atomic writes of the queue are
        /// done (SQ-12).
        const FENCE = 1 << 0;
        /// Make a completion on success too (WC-18).
        const SIGNALED = 1 << 1;
        /// Ask for a solicited event at the receiver. Means something for Send and RDMA Write with
        /// immediate (CQ-ARM-43).
        const SOLICITED = 1 << 2;
        /// Take the data at post time; lkeys are not looked at (SQ-08).
        const INLINE = 1 << 3;
        /// Let the device fill in the IP checksum.
        const IP_CSUM = 1 << 4;
        const _ = !0;
    }
}

/// A place in a peer's memory (`wr.rdma`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// Address of the first byte.
    pub addr: u64,
    /// The peer's rkey.
    pub rkey: u32,
}

/// The operation of a send work request (`enum ibv_wr_opcode`, with the fields each needs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendOp<N: Names> {
    /// `IBV_WR_SEND`
    Send,
    /// `IBV_WR_SEND_WITH_IMM`
    SendWithImm {
        /// Immediate data as on the wire.
        imm_data: [u8; 4],
    },
    /// `IBV_WR_RDMA_WRITE`
    RdmaWrite {
        /// Where to.
        remote: Remote,
    },
    /// `IBV_WR_RDMA_WRITE_WITH_IMM`
    RdmaWriteWithImm {
        /// Where to.
        remote: Remote,
        /// Immediate data as on the wire.
        imm_data: [u8; 4],
    },
    /// `IBV_WR_RDMA_READ`
    RdmaRead {
        /// Where from.
        remote: Remote,
    },
    /// `IBV_WR_ATOMIC_CMP_AND_SWP`: stores `swap` if the value is `compare`. What was there lands
    /// in the scatter list, 8 bytes in the machine's order (ATOM-02, ATOM-12).
    CompareAndSwap {
        /// Where the 8 bytes are; a multiple of 8 (ATOM-04).
        remote: Remote,
        /// What has to be there.
        compare: u64,
        /// What is put there then.
        swap: u64,
    },
    /// `IBV_WR_ATOMIC_FETCH_AND_ADD`: adds, modulo 2^64. What was there lands in the scatter list,
    /// 8 bytes in the machine's order (ATOM-01, ATOM-12).
    FetchAndAdd {
        /// Where the 8 bytes are; a multiple of 8 (ATOM-04).
        remote: Remote,
        /// What is added.
        add: u64,
    },
    /// `IBV_WR_FLUSH`: makes the writes before it visible or persistent at the peer (MPE-01). No
    /// list. In batches only (MPE-02), on devices with
    /// [`Capabilities::FLUSH`](crate::Capabilities::FLUSH).
    Flush {
        /// Where the bytes are. [`SelectivityLevel::Mr`] ignores the address.
        remote: Remote,
        /// How many bytes. [`SelectivityLevel::Mr`] ignores it.
        length: u32,
        /// What is to be true of the bytes. The region and the queue pair must allow it (MPE-04).
        placement: PlacementType,
        /// Whether it is for these bytes or for the whole region.
        level: SelectivityLevel,
    },
    /// `IBV_WR_ATOMIC_WRITE`: writes 8 bytes at once (MPE-07). No list. In batches only (MPE-02),
    /// on devices with [`Capabilities::ATOMIC_WRITE`](crate::Capabilities::ATOMIC_WRITE).
    AtomicWrite {
        /// Where the 8 bytes go; a multiple of 8 (MPE-08).
        remote: Remote,
        /// The bytes, in the order of memory.
        value: [u8; 8],
    },
    /// `IBV_WR_SEND_WITH_INV`: a Send that invalidates a window of the receiver before its receive
    /// completes (MW-17).
    SendWithInv {
        /// The window's key.
        rkey: u32,
    },
    /// `IBV_WR_LOCAL_INV`: invalidates a window of type 2, so that it can be bound again (MW-15).
    /// No list.
    LocalInv {
        /// The window's key.
        rkey: u32,
    },
    /// `IBV_WR_BIND_MW`: binds a window of type 2 (MW-04). No list.
    BindMw {
        /// The window.
        mw: N::Mw,
        /// The key it gets: the window's, with lower 8 bits of the caller's choice
        /// ([`inc_rkey`](crate::inc_rkey)).
        rkey: u32,
        /// What it is to show.
        info: N::BindInfo,
    },
    /// `IBV_WR_TSO`: a long message that the device cuts into datagrams, for UD and raw packets
    /// only (SQ-18), on devices with [`Capabilities::TSO`](crate::Capabilities::TSO). The header
    /// that each datagram gets in C is missing: this operation is here so that it can be refused.
    Tso {
        /// Bytes of each datagram.
        mss: u16,
    },
}

impl<N: Names> SendOp<N> {
    /// The name in C without its prefix, such as `RDMA_WRITE`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Send => "SEND",
            Self::SendWithImm { .. } => "SEND_WITH_IMM",
            Self::RdmaWrite { .. } => "RDMA_WRITE",
            Self::RdmaWriteWithImm { .. } => "RDMA_WRITE_WITH_IMM",
            Self::RdmaRead { .. } => "RDMA_READ",
            Self::CompareAndSwap { .. } => "ATOMIC_CMP_AND_SWP",
            Self::FetchAndAdd { .. } => "ATOMIC_FETCH_AND_ADD",
            Self::Flush { .. } => "FLUSH",
            Self::AtomicWrite { .. } => "ATOMIC_WRITE",
            Self::SendWithInv { .. } => "SEND_WITH_INV",
            Self::LocalInv { .. } => "LOCAL_INV",
            Self::BindMw { .. } => "BIND_MW",
            Self::Tso { .. } => "TSO",
        }
    }

    /// The same operation with other names. Only a bind has any: `bind` gets the window, the key
    /// and what it is to show.
    pub(crate) fn renamed<M: Names>(
        self,
        bind: impl FnOnce(N::Mw, u32, N::BindInfo) -> Result<SendOp<M>>,
    ) -> Result<SendOp<M>> {
        Ok(match self {
            Self::Send => SendOp::Send,
            Self::SendWithImm { imm_data } => SendOp::SendWithImm { imm_data },
            Self::RdmaWrite { remote } => SendOp::RdmaWrite { remote },
            Self::RdmaWriteWithImm { remote, imm_data } => {
                SendOp::RdmaWriteWithImm { remote, imm_data }
            }
            Self::RdmaRead { remote } => SendOp::RdmaRead { remote },
            Self::CompareAndSwap {
                remote,
                compare,
                swap,
            } => SendOp::CompareAndSwap {
                remote,
                compare,
                swap,
            },
            Self::FetchAndAdd { remote, add } => SendOp::FetchAndAdd { remote, add },
            Self::Flush {
                remote,
                length,
                placement,
                level,
            } => SendOp::Flush {
                remote,
                length,
                placement,
                level,
            },
            Self::AtomicWrite { remote, value } => SendOp::AtomicWrite { remote, value },
            Self::SendWithInv { rkey } => SendOp::SendWithInv { rkey },
            Self::LocalInv { rkey } => SendOp::LocalInv { rkey },
            Self::BindMw { mw, rkey, info } => bind(mw, rkey, info)?,
            Self::Tso { mss } => SendOp::Tso { mss },
        })
    }

    /// Whether it brings data back from the peer: an RDMA Read or an atomic. Their list is written.
    pub const fn reads(&self) -> bool {
        matches!(
            self,
            Self::RdmaRead { .. } | Self::CompareAndSwap { .. } | Self::FetchAndAdd { .. }
        )
    }

    /// Whether it counts towards `max_rd_atomic`: an RDMA Read, an atomic or an atomic write
    /// (RDMA-18, ATOM-13, MPE-10). A fenced send waits for these (SQ-12).
    pub const fn takes_depth(&self) -> bool {
        self.reads() || matches!(self, Self::AtomicWrite { .. })
    }

    /// Whether it exists in batches only: a flush or an atomic write (MPE-02).
    pub const fn is_for_batches(&self) -> bool {
        matches!(self, Self::Flush { .. } | Self::AtomicWrite { .. })
    }

    /// The opcode of its completion (WC-04).
    pub const fn wc_opcode(&self) -> WcOpcode {
        match self {
            Self::Send | Self::SendWithImm { .. } | Self::SendWithInv { .. } => WcOpcode::Send,
            Self::RdmaWrite { .. } | Self::RdmaWriteWithImm { .. } => WcOpcode::RdmaWrite,
            Self::RdmaRead { .. } => WcOpcode::RdmaRead,
            Self::CompareAndSwap { .. } => WcOpcode::CompSwap,
            Self::FetchAndAdd { .. } => WcOpcode::FetchAdd,
            Self::Flush { .. } => WcOpcode::Flush,
            Self::AtomicWrite { .. } => WcOpcode::AtomicWrite,
            Self::LocalInv { .. } => WcOpcode::LocalInv,
            Self::BindMw { .. } => WcOpcode::BindMw,
            Self::Tso { .. } => WcOpcode::Tso,
        }
    }
}

/// The QP number of every multicast group (MCAST-09).
pub const MULTICAST_QPN: u32 = 0x00ff_ffff;

/// The destination of a send, apart from its connection (`wr.ud`, `qp_type.xrc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dest<N: Names> {
    /// To the peer of the connection.
    Connected,
    /// UD: to a QP behind an address handle.
    Ud {
        /// The address handle.
        ah: N::Ah,
        /// QP number there.
        remote_qpn: u32,
        /// Q_Key to send; with the top bit set the sending QP's own is used (UD-06).
        remote_qkey: u32,
    },
    /// XRC_SEND: to an SRQ of the peer's domain. Reads, writes and atomics name an SRQ too: they
    /// reach the memory of its protection domain.
    Xrc {
        /// The SRQ's number ([`Verbs::srq_num`](crate::Verbs::srq_num)), 24 bits.
        remote_srqn: u32,
    },
}

/// A send work request (`struct ibv_send_wr`).
///
/// The list of C is a slice here. Made by one of the constructors, signaled unless said otherwise:
///
/// ```
/// use verbs_api::{SendFlags, SendWr, Sge};
///
/// let sges = [Sge { addr: 0x1000, length: 64, lkey: 7 }];
/// let wr = SendWr::send(1, &sges).solicited();
/// assert_eq!(wr.flags, SendFlags::SIGNALED | SendFlags::SOLICITED);
/// assert!(SendWr::send(2, &[]).unsignaled().flags.is_empty());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendWr<'a, N: Names> {
    /// The caller's own value, returned in the completion.
    pub wr_id: u64,
    /// The operation.
    pub op: SendOp<N>,
    /// Flags.
    pub flags: SendFlags,
    /// Local memory, gathered (or for a read, scattered) in order.
    pub sg_list: &'a [N::Sge],
    /// The data itself, instead of the list; only with [`SendFlags::INLINE`].
    pub inline_data: Option<&'a [u8]>,
    /// The destination.
    pub dest: Dest<N>,
    /// See [`label`](Self::label).
    pub(crate) label: Option<u64>,
}

impl<'a, N: Names> SendWr<'a, N> {
    /// Any operation, signaled, to the connected peer.
    pub const fn new(wr_id: u64, op: SendOp<N>, sg_list: &'a [N::Sge]) -> Self {
        Self {
            wr_id,
            op,
            flags: SendFlags::SIGNALED,
            sg_list,
            inline_data: None,
            dest: Dest::Connected,
            label: None,
        }
    }

    /// A Send.
    pub const fn send(wr_id: u64, sg_list: &'a [N::Sge]) -> Self {
        Self::new(wr_id, SendOp::Send, sg_list)
    }

    /// A Send with immediate data.
    pub const fn send_with_imm(wr_id: u64, sg_list: &'a [N::Sge], imm_data: [u8; 4]) -> Self {
        Self::new(wr_id, SendOp::SendWithImm { imm_data }, sg_list)
    }

    /// An RDMA Write.
    pub const fn rdma_write(wr_id: u64, sg_list: &'a [N::Sge], remote: Remote) -> Self {
        Self::new(wr_id, SendOp::RdmaWrite { remote }, sg_list)
    }

    /// An RDMA Write with immediate data.
    pub const fn rdma_write_with_imm(
        wr_id: u64,
        sg_list: &'a [N::Sge],
        remote: Remote,
        imm_data: [u8; 4],
    ) -> Self {
        Self::new(
            wr_id,
            SendOp::RdmaWriteWithImm { remote, imm_data },
            sg_list,
        )
    }

    /// An RDMA Read.
    pub const fn rdma_read(wr_id: u64, sg_list: &'a [N::Sge], remote: Remote) -> Self {
        Self::new(wr_id, SendOp::RdmaRead { remote }, sg_list)
    }

    /// A compare-and-swap; `sg_list` has room for 8 bytes.
    pub const fn compare_and_swap(
        wr_id: u64,
        sg_list: &'a [N::Sge],
        remote: Remote,
        compare: u64,
        swap: u64,
    ) -> Self {
        let op = SendOp::CompareAndSwap {
            remote,
            compare,
            swap,
        };
        Self::new(wr_id, op, sg_list)
    }

    /// A fetch-and-add; `sg_list` has room for 8 bytes.
    pub const fn fetch_and_add(
        wr_id: u64,
        sg_list: &'a [N::Sge],
        remote: Remote,
        add: u64,
    ) -> Self {
        Self::new(wr_id, SendOp::FetchAndAdd { remote, add }, sg_list)
    }

    /// A flush of `length` bytes, or of the whole region.
    pub const fn flush(
        wr_id: u64,
        remote: Remote,
        length: u32,
        placement: PlacementType,
        level: SelectivityLevel,
    ) -> Self {
        let op = SendOp::Flush {
            remote,
            length,
            placement,
            level,
        };
        Self::new(wr_id, op, &[])
    }

    /// An atomic write of these bytes.
    pub const fn atomic_write(wr_id: u64, remote: Remote, value: [u8; 8]) -> Self {
        Self::new(wr_id, SendOp::AtomicWrite { remote, value }, &[])
    }

    /// A Send that invalidates a window of the receiver.
    pub const fn send_with_inv(wr_id: u64, sg_list: &'a [N::Sge], rkey: u32) -> Self {
        Self::new(wr_id, SendOp::SendWithInv { rkey }, sg_list)
    }

    /// An invalidation of a window of type 2.
    pub const fn local_inv(wr_id: u64, rkey: u32) -> Self {
        Self::new(wr_id, SendOp::LocalInv { rkey }, &[])
    }

    /// A segmented send of datagrams of `mss` bytes.
    pub const fn tso(wr_id: u64, sg_list: &'a [N::Sge], mss: u16) -> Self {
        Self::new(wr_id, SendOp::Tso { mss }, sg_list)
    }

    /// Adds flags.
    #[must_use]
    pub const fn flags(self, flags: SendFlags) -> Self {
        Self {
            flags: self.flags.union(flags),
            ..self
        }
    }

    /// Without a completion on success. With owning objects, what the work uses is held until a
    /// later completion of the send queue is polled.
    #[must_use]
    pub const fn unsignaled(self) -> Self {
        Self {
            flags: self.flags.difference(SendFlags::SIGNALED),
            ..self
        }
    }

    /// With a solicited event at the receiver.
    #[must_use]
    pub const fn solicited(self) -> Self {
        self.flags(SendFlags::SOLICITED)
    }

    /// With the data taken at post time.
    #[must_use]
    pub const fn inline(self) -> Self {
        self.flags(SendFlags::INLINE)
    }

    /// With these bytes as its data, instead of a list. They are copied at post time, and need no
    /// region (SQ-08).
    ///
    /// For a Send or an RDMA Write (SQ-10), and at most
    /// [`max_inline_data`](crate::QpCap::max_inline_data) bytes (SQ-09). Hardware counts them as
    /// one entry of a list.
    ///
    /// ```
    /// use verbs_api::{SendFlags, SendWr};
    ///
    /// let wr = SendWr::send(1, &[]).inline_data(b"hello");
    /// assert!(wr.flags.contains(SendFlags::INLINE));
    /// assert_eq!(wr.length(), 5);
    /// ```
    #[must_use]
    pub const fn inline_data(self, bytes: &'a [u8]) -> Self {
        Self {
            sg_list: &[],
            inline_data: Some(bytes),
            ..self.inline()
        }
    }

    /// Fenced: behind all earlier RDMA Reads, atomics and atomic writes.
    #[must_use]
    pub const fn fence(self) -> Self {
        self.flags(SendFlags::FENCE)
    }

    /// To a UD queue pair.
    #[must_use]
    pub const fn to(self, ah: N::Ah, remote_qpn: u32, remote_qkey: u32) -> Self {
        Self {
            dest: Dest::Ud {
                ah,
                remote_qpn,
                remote_qkey,
            },
            ..self
        }
    }

    /// To an SRQ of the peer's XRC domain, on an XRC_SEND queue pair (XRC-04).
    #[must_use]
    pub const fn to_srq(self, remote_srqn: u32) -> Self {
        Self {
            dest: Dest::Xrc { remote_srqn },
            ..self
        }
    }
}

impl<N: Names> SendWr<'_, N> {
    /// With the number that a simulator's trace, diagnosis and errors show instead of `wr_id`. For
    /// a layer that posts numbers of its own and knows those of the program, as
    /// [`owned`](crate::owned) does.
    #[must_use]
    pub const fn labeled(self, label: u64) -> Self {
        Self {
            label: Some(label),
            ..self
        }
    }

    /// The number to show: the one of [`labeled`](Self::labeled), or `wr_id`.
    pub const fn label(&self) -> u64 {
        match self.label {
            Some(label) => label,
            None => self.wr_id,
        }
    }
}

impl SendWr<'_, Handles> {
    /// Bytes of its inline data or its list.
    pub fn length(&self) -> u64 {
        match self.inline_data {
            Some(bytes) => bytes.len() as u64,
            None => self.sg_list.iter().map(|sge| u64::from(sge.length)).sum(),
        }
    }

    /// A bind of a window of type 2.
    pub const fn bind_mw(wr_id: u64, mw: Mw, rkey: u32, info: MwBindInfo) -> Self {
        Self::new(wr_id, SendOp::BindMw { mw, rkey, info }, &[])
    }
}

/// A receive work request (`struct ibv_recv_wr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvWr<'a, N: Names> {
    /// The caller's own value, returned in the completion.
    pub wr_id: u64,
    /// Local memory, scattered to in order.
    pub sg_list: &'a [N::Sge],
    /// See [`label`](Self::label).
    pub(crate) label: Option<u64>,
}

impl<'a, N: Names> RecvWr<'a, N> {
    /// A receive into `sg_list`.
    pub const fn new(wr_id: u64, sg_list: &'a [N::Sge]) -> Self {
        Self {
            wr_id,
            sg_list,
            label: None,
        }
    }

    /// With the number to show, as [`SendWr::labeled`].
    #[must_use]
    pub const fn labeled(self, label: u64) -> Self {
        Self {
            label: Some(label),
            ..self
        }
    }

    /// The number to show: the one of [`labeled`](Self::labeled), or `wr_id`.
    pub const fn label(&self) -> u64 {
        match self.label {
            Some(label) => label,
            None => self.wr_id,
        }
    }
}
