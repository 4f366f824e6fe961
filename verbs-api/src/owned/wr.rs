//! Work requests: as those of the trait, but they name regions and address handles.

use super::mw::Binding;
use super::{Ah, Mw, Sge};
use crate::mr::Access;
use crate::mw::MwBindInfo;
use crate::wr::{Remote, SendFlags, SendOp};

/// A send work request. Made by one of the constructors, signaled unless said otherwise:
///
/// ```
/// use verbs_api::owned::{Mr, SendWr};
/// # fn f(mr: &Mr) {
/// let list = [mr.sge(..64)];
/// let wr = SendWr::send(7, &list).solicited().unsignaled();
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendWr<'a> {
    /// The caller's own value, given back in the completion.
    pub wr_id: u64,
    /// What to do.
    pub op: SendOp,
    /// Flags.
    pub flags: SendFlags,
    /// Local memory, gathered (or for a read, scattered) in order.
    pub sg_list: &'a [Sge<'a>],
    /// Where to.
    pub dest: Dest<'a>,
    /// What is bound: it takes the place of what `op` says of that.
    pub(super) binding: Option<Binding<'a>>,
}

/// Where a send goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dest<'a> {
    /// To the peer of the connection.
    Connected,
    /// UD: to a QP behind an address handle.
    Ud {
        /// The address handle.
        ah: &'a Ah,
        /// QP number there.
        remote_qpn: u32,
        /// Q_Key to send; with the top bit set the sending QP's own is used (UD-06).
        remote_qkey: u32,
    },
    /// XRC_SEND: to an SRQ of the peer's domain.
    Xrc {
        /// The SRQ's number, 24 bits.
        remote_srqn: u32,
    },
}

impl<'a> SendWr<'a> {
    /// Any operation, signaled, to the connected peer.
    pub const fn new(wr_id: u64, op: SendOp, sg_list: &'a [Sge<'a>]) -> Self {
        Self {
            wr_id,
            op,
            flags: SendFlags::SIGNALED,
            sg_list,
            dest: Dest::Connected,
            binding: None,
        }
    }

    /// A Send.
    pub const fn send(wr_id: u64, sg_list: &'a [Sge<'a>]) -> Self {
        Self::new(wr_id, SendOp::Send, sg_list)
    }

    /// A Send with immediate data.
    pub const fn send_with_imm(wr_id: u64, sg_list: &'a [Sge<'a>], imm_data: [u8; 4]) -> Self {
        Self::new(wr_id, SendOp::SendWithImm { imm_data }, sg_list)
    }

    /// An RDMA Write.
    pub const fn rdma_write(wr_id: u64, sg_list: &'a [Sge<'a>], remote: Remote) -> Self {
        Self::new(wr_id, SendOp::RdmaWrite { remote }, sg_list)
    }

    /// An RDMA Write with immediate data.
    pub const fn rdma_write_with_imm(
        wr_id: u64,
        sg_list: &'a [Sge<'a>],
        remote: Remote,
        imm_data: [u8; 4],
    ) -> Self {
        let op = SendOp::RdmaWriteWithImm { remote, imm_data };
        Self::new(wr_id, op, sg_list)
    }

    /// An RDMA Read.
    pub const fn rdma_read(wr_id: u64, sg_list: &'a [Sge<'a>], remote: Remote) -> Self {
        Self::new(wr_id, SendOp::RdmaRead { remote }, sg_list)
    }

    /// A compare-and-swap; `sg_list` has room for the 8 bytes that were there.
    pub const fn compare_and_swap(
        wr_id: u64,
        sg_list: &'a [Sge<'a>],
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

    /// A fetch-and-add; `sg_list` has room for the 8 bytes that were there.
    ///
    /// ```
    /// use verbs_api::Remote;
    /// use verbs_api::owned::{Mr, SendWr};
    /// # fn f(mr: &Mr, counter: Remote) {
    /// let before = [mr.sge(..8)];
    /// let wr = SendWr::fetch_and_add(1, &before, counter, 5);
    /// # }
    /// ```
    pub const fn fetch_and_add(
        wr_id: u64,
        sg_list: &'a [Sge<'a>],
        remote: Remote,
        add: u64,
    ) -> Self {
        Self::new(wr_id, SendOp::FetchAndAdd { remote, add }, sg_list)
    }

    /// A Send that invalidates a window of the receiver.
    pub const fn send_with_inv(wr_id: u64, sg_list: &'a [Sge<'a>], rkey: u32) -> Self {
        Self::new(wr_id, SendOp::SendWithInv { rkey }, sg_list)
    }

    /// An invalidation of a window of type 2, by its key.
    pub const fn local_inv(wr_id: u64, rkey: u32) -> Self {
        Self::new(wr_id, SendOp::LocalInv { rkey }, &[])
    }

    /// A bind of a window of type 2, with a key whose lower 8 bits the program chooses
    /// ([`inc_rkey`](crate::inc_rkey)).
    ///
    /// ```
    /// use verbs_api::owned::{Mr, Mw, Qp, SendWr};
    /// use verbs_api::{Access, Result, inc_rkey};
    ///
    /// /// Lets the peer of a queue pair write a region, until the window is invalidated.
    /// fn show(qp: &Qp, window: &Mw, mr: &Mr) -> Result<u32> {
    ///     let rkey = inc_rkey(window.rkey()?);
    ///     qp.post_send(&[SendWr::bind_mw(1, window, rkey, mr.sge(..), Access::REMOTE_WRITE)])?;
    ///     Ok(rkey)
    /// }
    /// ```
    pub fn bind_mw(wr_id: u64, mw: &'a Mw, rkey: u32, part: Sge<'a>, access: Access) -> Self {
        let info = MwBindInfo {
            mr: part.mr().handle(),
            addr: 0,
            length: 0,
            access,
        };
        let mw_handle = mw.handle();
        let op = SendOp::BindMw {
            mw: mw_handle,
            rkey,
            info,
        };
        Self {
            binding: Some(Binding { mw, part, access }),
            ..Self::new(wr_id, op, &[])
        }
    }

    /// With more flags.
    #[must_use]
    pub const fn flags(self, flags: SendFlags) -> Self {
        Self {
            flags: self.flags.union(flags),
            ..self
        }
    }

    /// Without a completion on success. Its regions are held until a later completion of the send
    /// queue has been polled.
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

    /// Behind all earlier RDMA Reads and atomics.
    #[must_use]
    pub const fn fence(self) -> Self {
        self.flags(SendFlags::FENCE)
    }

    /// To a UD queue pair.
    #[must_use]
    pub const fn to(self, ah: &'a Ah, remote_qpn: u32, remote_qkey: u32) -> Self {
        Self {
            dest: Dest::Ud {
                ah,
                remote_qpn,
                remote_qkey,
            },
            ..self
        }
    }

    /// To an SRQ of the peer's XRC domain, on a queue pair of XRC_SEND (XRC-04).
    #[must_use]
    pub const fn to_srq(self, remote_srqn: u32) -> Self {
        Self {
            dest: Dest::Xrc { remote_srqn },
            ..self
        }
    }
}

/// A receive work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvWr<'a> {
    /// The caller's own value, given back in the completion.
    pub wr_id: u64,
    /// Local memory, scattered to in order.
    pub sg_list: &'a [Sge<'a>],
}

impl<'a> RecvWr<'a> {
    /// A receive into `sg_list`.
    pub const fn new(wr_id: u64, sg_list: &'a [Sge<'a>]) -> Self {
        Self { wr_id, sg_list }
    }
}
