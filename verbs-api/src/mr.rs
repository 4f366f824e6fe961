//! Memory regions.

use bitflags::bitflags;

bitflags! {
    /// What a region or a QP allows (`enum ibv_access_flags`).
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
        const _ = !0;
    }
}

impl Access {
    /// Local write, remote read and remote write: what most programs want.
    pub const ALL_RDMA: Self = Self::LOCAL_WRITE
        .union(Self::REMOTE_WRITE)
        .union(Self::REMOTE_READ);

    /// The optional bits (`IBV_ACCESS_OPTIONAL_RANGE`): a device that does not know one ignores it.
    pub const OPTIONAL: Self = Self::from_bits_retain(0x3ff0_0000);
}

/// The fields of `struct ibv_mr` that a program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A scatter/gather entry (`struct ibv_sge`): absolute address, length in bytes, lkey.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sge {
    /// Address of the first byte.
    pub addr: u64,
    /// Bytes.
    pub length: u32,
    /// The region's lkey.
    pub lkey: u32,
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
