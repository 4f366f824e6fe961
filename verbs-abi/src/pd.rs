//! Protection domains, parent domains and thread domains.

use std::ffi::c_void;

use crate::ibv_context;

structures! {
    ibv_pd { context: *mut ibv_context, handle: u32 }

    /// Which of the fields behind `comp_mask` are there it says itself.
    ibv_parent_domain_init_attr {
        pd: *mut ibv_pd,
        td: *mut ibv_td,
        comp_mask: u32,
        alloc: *mut c_void,
        free: *mut c_void,
        pd_context: *mut c_void,
    }

    ibv_td { context: *mut ibv_context }
    ibv_td_init_attr { comp_mask: u32 }
}

constants! {
    flags ibv_parent_domain_init_attr_mask: u32 {
        IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS = 1 << 0,
        IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT = 1 << 1,
    }
    unseen ibv_parent_domain_init_attr_mask: u32 {
        IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC = 1 << 2,
    }
}
