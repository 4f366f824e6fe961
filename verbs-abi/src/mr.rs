//! Memory regions, their parts in work requests, and device memory.

use std::ffi::{c_int, c_void};

use verbs_api::{AfterRereg, Sge};

use crate::border::slice;
use crate::{ibv_context, ibv_pd};

structures! {
    ibv_mr [48] {
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        addr: *mut c_void,
        length: usize,
        handle: u32,
        lkey: u32,
        rkey: u32,
    }

    ibv_sge { addr: u64, length: u32, lkey: u32 }

    ibv_alloc_dm_attr { length: usize, log_align_req: u32, comp_mask: u32 }

    ibv_dm {
        context: *mut ibv_context,
        memcpy_to_dm: op!(*mut ibv_dm, u64, *const c_void, usize => c_int),
        memcpy_from_dm: op!(*mut c_void, *mut ibv_dm, u64, usize => c_int),
        comp_mask: u32,
        handle: u32,
    }
}

constants! {
    flags ibv_rereg_mr_flags: c_int {
        IBV_REREG_MR_CHANGE_TRANSLATION = 1 << 0,
        IBV_REREG_MR_CHANGE_PD = 1 << 1,
        IBV_REREG_MR_CHANGE_ACCESS = 1 << 2,
    }
    numbers ibv_rereg_mr_err_code: c_int {
        IBV_REREG_MR_ERR_INPUT = -1,
        IBV_REREG_MR_ERR_DONT_FORK_NEW = -2,
        IBV_REREG_MR_ERR_DO_FORK_OLD = -3,
        IBV_REREG_MR_ERR_CMD = -4,
    }
}

/// What `ibv_rereg_mr` returns says of the region.
pub fn after_rereg_from_c(result: c_int) -> AfterRereg {
    match result {
        IBV_REREG_MR_ERR_INPUT | IBV_REREG_MR_ERR_DONT_FORK_NEW => AfterRereg::Old,
        IBV_REREG_MR_ERR_DO_FORK_OLD => AfterRereg::New,
        _ => AfterRereg::Unusable,
    }
}

conversions! {
    ibv_sge, Sge { addr, length, lkey, }
}

impl ibv_sge {
    /// A list of C, where it is. `None` if none can be there ([`slice()`]).
    ///
    /// # Safety
    /// It has so many entries, which stay as they are while the list is used.
    #[inline]
    pub unsafe fn list<'a>(first: *const Self, count: usize) -> Option<&'a [Sge]> {
        const {
            assert!(
                size_of::<Self>() == size_of::<Sge>() && align_of::<Self>() == align_of::<Sge>()
            );
            assert!(std::mem::offset_of!(Self, length) == std::mem::offset_of!(Sge, length));
            assert!(std::mem::offset_of!(Self, lkey) == std::mem::offset_of!(Sge, lkey));
        }
        // SAFETY: both lie in memory in the same way, and the caller promises the rest.
        unsafe { slice(first.cast(), count) }
    }
}
