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

    /// Which of the fields behind `comp_mask` are there it says itself.
    ibv_mr_init_attr [72] (grows) {
        length = (length): usize,
        access = (access): c_int,
        comp_mask = (comp_mask): u64,
        iova = (iova): u64,
        addr = (addr): *mut c_void,
        fd = (fd): c_int,
        fd_offset = (fd_offset): u64,
        dmah = (dmah): *mut c_void,
        buf = (buf): *mut ibv_buf,
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

/// A buffer of `ibv_alloc_buf`, which only libraries of drivers look into.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the fields are those of C")]
pub struct ibv_buf {
    pub addr: *mut c_void,
    pub size: usize,
    pub pd: *mut ibv_pd,
    pub dmabuf_fd: c_int,
}

constants! {
    unseen ibv_mr_init_attr_mask: u64 {
        IBV_REG_MR_MASK_IOVA = 1 << 0,
        IBV_REG_MR_MASK_ADDR = 1 << 1,
        IBV_REG_MR_MASK_FD = 1 << 2,
        IBV_REG_MR_MASK_FD_OFFSET = 1 << 3,
        IBV_REG_MR_MASK_DMAH = 1 << 4,
        IBV_REG_MR_MASK_BUF = 1 << 5,
    }
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
    /// It has `count` entries, which do not change while the list is used.
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
