//! Memory regions.

use core::fmt;

use bitflags::bitflags;

use crate::error::Error;
use crate::handle::{Mr, Pd};
use crate::shown::debug_is_display;

bitflags! {
    /// The access that a region or a QP allows (`enum ibv_access_flags`).
    ///
    /// Local read is always allowed (MR-02). Bits without a name can be carried, so that a backend
    /// can be asked for them and refuse (MR-04).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Access: u32 {
        /// The device may write for local work requests.
        const LOCAL_WRITE = 1 << 0;
        /// Peers may write. Needs `LOCAL_WRITE` (MR-01).
        const REMOTE_WRITE = 1 << 1;
        /// Peers may read.
        const REMOTE_READ = 1 << 2;
        /// Peers may do atomics. Needs `LOCAL_WRITE` (MR-01).
        const REMOTE_ATOMIC = 1 << 3;
        /// Memory windows may be bound.
        const MW_BIND = 1 << 4;
        /// Addresses are offsets from the start of the region.
        const ZERO_BASED = 1 << 5;
        /// The memory need not be mapped now. Work that finds it unmapped fails (ODP-03, ODP-04).
        const ON_DEMAND = 1 << 6;
        /// The memory is of huge pages. Drivers take the hint whatever the pages are (MR-26).
        const HUGETLB = 1 << 7;
        /// Peers may flush, so that the data is visible to all of the machine (MPE-04).
        const FLUSH_GLOBAL = 1 << 8;
        /// Peers may flush, so that the data outlasts a loss of power (MPE-04). Drivers want
        /// persistent memory for it; the simulator takes any.
        const FLUSH_PERSISTENT = 1 << 9;
        /// The device may place data in this memory in any order, until a completion says that it
        /// is there (RO-02, RO-03). Devices that do not know it ignore it (MR-19).
        const RELAXED_ORDERING = 1 << 20;
        const _ = !0;
    }
}

impl Access {
    /// Local write, remote read and remote write: what most programs want.
    pub const ALL_RDMA: Self = Self::LOCAL_WRITE
        .union(Self::REMOTE_WRITE)
        .union(Self::REMOTE_READ);

    /// The optional bits (`IBV_ACCESS_OPTIONAL_RANGE`): a device ignores those that it does not
    /// know.
    pub const OPTIONAL: Self = Self::from_bits_retain(0x3ff0_0000);
}

/// The fields of `struct ibv_mr` that a program reads. The default, for backends to fill in, is all
/// zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MrAttr {
    /// Address of the first byte, as SGEs and remote addresses name it.
    pub addr: u64,
    /// Bytes.
    pub length: u64,
    /// Key for local SGEs.
    pub lkey: u32,
    /// Key for peers.
    pub rkey: u32,
}

/// A scatter/gather entry: absolute address, length in bytes, lkey. It lies in memory as
/// `struct ibv_sge` does.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sge {
    /// Address of the first byte.
    pub addr: u64,
    /// Bytes.
    pub length: u32,
    /// The region's lkey.
    pub lkey: u32,
}

/// The parameters of [`Verbs::alloc_mr_as`](crate::Verbs::alloc_mr_as).
///
/// ```
/// use verbs_api::{Access, MrInit, MrMemory};
///
/// // Peers name the first byte by the address 0.
/// let init = MrInit::new(4096, Access::ALL_RDMA | Access::ZERO_BASED);
/// assert_eq!((init.iova, init.memory), (None, MrMemory::New));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MrInit {
    /// Bytes.
    pub length: usize,
    /// The access that it allows.
    pub access: Access,
    /// The address by which work requests name its first byte (`ibv_reg_mr_iova`, RDMA-22). Its
    /// offset in its page must be that of the memory; new memory starts on a page. Default: where
    /// the memory is, or 0 with [`Access::ZERO_BASED`] (RDMA-21).
    pub iova: Option<u64>,
    /// The memory. Default: new.
    pub memory: MrMemory,
}

/// The memory of a region. It is the backend's, which keeps it as long as a region uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MrMemory {
    /// Zero bytes of its own.
    #[default]
    New,
    /// Zero bytes of its own that the process may only read (MR-12).
    ReadOnly,
    /// No memory: the addresses from 0 on, which no process maps (MR-11). At most a page.
    Unmapped,
    /// Bytes of another region, from this offset in it on (MR-13).
    Of(Mr, usize),
}

impl MrInit {
    /// New memory, named by its own addresses.
    pub const fn new(length: usize, access: Access) -> Self {
        Self {
            length,
            access,
            iova: None,
            memory: MrMemory::New,
        }
    }

    /// With this address of its first byte.
    pub const fn iova(mut self, iova: u64) -> Self {
        self.iova = Some(iova);
        self
    }

    /// With this memory.
    pub const fn memory(mut self, memory: MrMemory) -> Self {
        self.memory = memory;
        self
    }
}

/// The changes of `ibv_rereg_mr`; `None` leaves a part as it is. The default changes nothing, which
/// is refused.
///
/// ```
/// use verbs_api::{Access, MrChange};
///
/// let read_only = MrChange { access: Some(Access::empty()), ..MrChange::default() };
/// assert_eq!(read_only.length, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MrChange {
    /// `CHANGE_PD`: the domain it goes to.
    pub pd: Option<Pd>,
    /// `CHANGE_ACCESS`: what it allows.
    pub access: Option<Access>,
    /// `CHANGE_TRANSLATION`: the length of new zero bytes, which the backend owns, instead of the
    /// old ones.
    pub length: Option<usize>,
}

/// A failed change of a region.
#[derive(Clone)]
#[non_exhaustive]
pub struct ReregError {
    /// The state of the region.
    pub region: AfterRereg,
    /// The error.
    pub error: Error,
}

impl ReregError {
    /// An error, and what it left of the region; for backends.
    pub const fn new(region: AfterRereg, error: Error) -> Self {
        Self { region, error }
    }
}

impl fmt::Display for ReregError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

debug_is_display!(ReregError);

impl core::error::Error for ReregError {}

impl From<Error> for ReregError {
    /// An error raised before the device was asked.
    fn from(error: Error) -> Self {
        Self::new(AfterRereg::Old, error)
    }
}

/// The state of a region whose change failed (`enum ibv_rereg_mr_err_code`, MR-09).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterRereg {
    /// The region is unchanged: `ERR_INPUT`, `ERR_DONT_FORK_NEW`.
    Old,
    /// The region is changed, but the old memory is in a bad state for `fork`: `ERR_DO_FORK_OLD`.
    New,
    /// The region must not be used any more, only removed: `ERR_CMD`, `ERR_CMD_AND_DO_FORK_NEW`.
    Unusable,
}

impl MrAttr {
    /// The entry for `length` bytes at `offset` of the region. Offsets outside the region make an
    /// entry that the device refuses; arithmetic wraps.
    pub const fn sge(&self, offset: u64, length: u32) -> Sge {
        Sge {
            addr: self.addr.wrapping_add(offset),
            length,
            lkey: self.lkey,
        }
    }

    /// The place at `offset` of the region, for a peer's RDMA work request.
    pub const fn remote(&self, offset: u64) -> crate::wr::Remote {
        crate::wr::Remote {
            addr: self.addr.wrapping_add(offset),
            rkey: self.rkey,
        }
    }
}
