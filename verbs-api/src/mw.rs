//! Memory windows.

use crate::c_enum::c_enum;
use crate::handle::Mr;
use crate::mr::Access;
use crate::wr::{Remote, SendFlags};

c_enum! {
    /// How a memory window is bound, and which queue pairs may use it (`enum ibv_mw_type`).
    MwType {
        /// Bound by [`Verbs::bind_mw`](crate::Verbs::bind_mw); opens for any QP of its PD (MW-12).
        Type1 = 1, "TYPE_1";
        /// Bound by a work request, with a key of the caller's choice; opens for the QP on which it
        /// was bound (type 2B), until it is invalidated (MW-12, MW-13).
        Type2 = 2, "TYPE_2";
    }
}

/// The fields of `struct ibv_mw` that a program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MwAttr {
    /// Its type.
    pub mw_type: MwType,
    /// Key for peers, from the last bind that was posted. It opens nothing before that bind is done
    /// (MW-02), nor if the bind failed: then the device still has the previous key (MW-23).
    pub rkey: u32,
}

impl MwAttr {
    /// Type and key of a window, for backends.
    pub const fn new(mw_type: MwType, rkey: u32) -> Self {
        Self { mw_type, rkey }
    }

    /// A place in the window, for a peer's RDMA work request: an address of the region, or in a
    /// zero-based window an offset.
    pub const fn remote(&self, addr: u64) -> Remote {
        let rkey = self.rkey;
        Remote { addr, rkey }
    }
}

/// What a window is to show (`struct ibv_mw_bind_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MwBindInfo {
    /// The region. It needs [`Access::MW_BIND`] (MW-06), and no remote rights (MW-10).
    pub mr: Mr,
    /// Address of the first byte; the window lies within the region (MW-08).
    pub addr: u64,
    /// Bytes. 0 unbinds a window of type 1 (MW-03) and is an error for type 2 (MW-21).
    pub length: u64,
    /// What the window allows its peers. Writes and atomics need `LOCAL_WRITE` of the region
    /// (MW-07); [`Access::ZERO_BASED`] is for type 2 (MW-20).
    pub access: Access,
}

/// A bind of a window of type 1 (`struct ibv_mw_bind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MwBind {
    /// The caller's own value, returned in the completion.
    pub wr_id: u64,
    /// Flags, as of any work request.
    pub flags: SendFlags,
    /// What the window is to show.
    pub info: MwBindInfo,
    /// See [`label`](Self::label).
    pub(crate) label: Option<u64>,
}

impl MwBind {
    /// A signaled bind.
    pub const fn new(wr_id: u64, info: MwBindInfo) -> Self {
        Self {
            wr_id,
            flags: SendFlags::SIGNALED,
            info,
            label: None,
        }
    }

    /// With the number to show, as [`SendWr::labeled`](crate::SendWr::labeled).
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

/// The next key for a window: its lower 8 bits, which are the caller's, go up by 1
/// (`ibv_inc_rkey`).
pub const fn inc_rkey(rkey: u32) -> u32 {
    rkey & !0xff | rkey.wrapping_add(1) & 0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MW-04: the index of a key stays, whatever the caller's part does.
    #[test]
    fn the_next_key_differs_in_the_callers_part_alone() {
        for (rkey, next) in [
            (0, 1),
            (0x12fe, 0x12ff),
            (0x12ff, 0x1200),
            (u32::MAX, 0xffff_ff00),
        ] {
            assert_eq!(inc_rkey(rkey), next);
        }
    }
}
