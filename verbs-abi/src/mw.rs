//! Memory windows.

use std::ffi::c_uint;

use verbs_api::{Access, Mr, MwBind, MwBindInfo, SendFlags};

use crate::{ibv_context, ibv_mr, ibv_pd};

structures! {
    ibv_mw [32] {
        context: *mut ibv_context,
        pd: *mut ibv_pd,
        rkey: u32,
        handle: u32,
        mw_type = type_: u32,
    }

    ibv_mw_bind_info { mr: *mut ibv_mr, addr: u64, length: u64, mw_access_flags: c_uint }
    ibv_mw_bind { wr_id: u64, send_flags: c_uint, bind_info: ibv_mw_bind_info }
}

impl ibv_mw_bind_info {
    /// All of it, of this region.
    pub fn from_c(info: &Self, mr: Mr) -> MwBindInfo {
        MwBindInfo {
            mr,
            addr: info.addr,
            length: info.length,
            access: Access::from_bits_retain(info.mw_access_flags),
        }
    }

    /// All of it, of this region.
    pub fn to_c(info: &MwBindInfo, mr: *mut ibv_mr) -> Self {
        Self {
            mr,
            addr: info.addr,
            length: info.length,
            mw_access_flags: info.access.bits(),
        }
    }
}

impl ibv_mw_bind {
    /// All of it, of this region.
    pub fn from_c(bind: &Self, mr: Mr) -> MwBind {
        let info = ibv_mw_bind_info::from_c(&bind.bind_info, mr);
        let mut made = MwBind::new(bind.wr_id, info);
        made.flags = SendFlags::from_bits_retain(bind.send_flags);
        made
    }

    /// All of it, of this region.
    pub fn to_c(bind: &MwBind, mr: *mut ibv_mr) -> Self {
        Self {
            wr_id: bind.wr_id,
            send_flags: bind.flags.bits(),
            bind_info: ibv_mw_bind_info::to_c(&bind.info, mr),
        }
    }
}
