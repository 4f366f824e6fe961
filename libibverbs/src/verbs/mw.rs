//! Memory windows.

use std::ffi::c_int;

use verbs_abi::{ibv_mw, ibv_mw_bind, ibv_mw_bind_info, ibv_pd, ibv_qp};
use verbs_api::{MwBindInfo, Verbs};

use super::context::is_context;
use super::region::Mr;
use crate::c::{CObject, Result, kinds, new_object, passed, status};
use crate::engine::{sim, unobserved};

kinds! {
    /// Memory windows.
    Mw: ibv_mw as ibv_mw, Mw, (), numbered Mw;
}

pub(crate) extern "C" fn alloc_mw(pd: *mut ibv_pd, mw_type: u32) -> *mut ibv_mw {
    new_object("ibv_alloc_mw", pd, |found| {
        let handle = sim().alloc_mw(found.handle, mw_type.into())?;
        let rkey = unobserved().query_mw(handle)?.rkey;
        CObject::<Mw>::make(handle, (), || ibv_mw {
            context: found.context(),
            pd,
            rkey,
            handle: 0,
            mw_type,
        })
    })
}

pub(crate) extern "C" fn dealloc_mw(mw: *mut ibv_mw) -> c_int {
    status("ibv_dealloc_mw", mw, |mw| {
        sim().dealloc_mw(mw.handle)?;
        mw.retire();
        Ok(())
    })
}

/// `ibv_bind_mw`, for windows of type 1. The new key is in the structure at once.
pub(crate) extern "C" fn bind_mw(
    qp: *mut ibv_qp,
    mw: *mut ibv_mw,
    bind: *mut ibv_mw_bind,
) -> c_int {
    status("ibv_bind_mw", qp, |qp| {
        let mw = CObject::<Mw>::find(mw)?;
        // SAFETY: the program's, valid for the call (C's contract).
        let bind = unsafe { passed(bind) }?;
        // The region may be null, for unbinding.
        let asked = ibv_mw_bind::from_c(&bind, info(&bind.bind_info)?.mr);
        sim().bind_mw(qp.handle, mw.handle, &asked)?;
        let rkey = unobserved().query_mw(mw.handle)?.rkey;
        // SAFETY: one of ours, which stays for the call; the call sets the key.
        unsafe { (*mw.raw()).rkey = rkey };
        Ok(())
    })
}

/// The bytes that a window will show. Without bytes it may name no region, and the window is
/// unbound.
pub(crate) fn info(info: &ibv_mw_bind_info) -> Result<MwBindInfo> {
    let mr = CObject::<Mr>::find_some(info.mr)?.map(|mr| mr.handle);
    Ok(ibv_mw_bind_info::from_c(info, mr.unwrap_or_default()))
}
