//! Multicast groups.

use std::ffi::{c_int, c_void};

use libc::sockaddr;
use verbs_abi::{RDMA_CM_JOIN_MC_ATTR_ADDRESS, rdma_cm_id, rdma_cm_join_mc_attr_ex};
use verbs_api::Verb;

use super::address::address;
use super::calls::cm;
use super::id::Id;
use crate::c::object::CObject;
use crate::c::result::{Refusal, Result, or_minus_one, present};

pub(crate) extern "C" fn join_multicast(
    id: *mut rdma_cm_id,
    addr: *mut sockaddr,
    context: *mut c_void,
) -> c_int {
    or_minus_one("rdma_join_multicast", id, || {
        join(id, addr, context)?;
        Ok(0)
    })
}

/// `rdma_join_multicast_ex`. An id that only sends is a full member here.
pub(crate) extern "C" fn join_multicast_ex(
    id: *mut rdma_cm_id,
    attr: *mut rdma_cm_join_mc_attr_ex,
    context: *mut c_void,
) -> c_int {
    or_minus_one("rdma_join_multicast_ex", id, || {
        present(attr)?;
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = unsafe { attr.read() };
        if attr.comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS == 0 {
            let what = "comp_mask does not name the address";
            return Err(Refusal::new(libc::EINVAL, what));
        }
        join(id, attr.addr, context)?;
        Ok(0)
    })
}

fn join(id: *mut rdma_cm_id, addr: *mut sockaddr, context: *mut c_void) -> Result<()> {
    let id = CObject::<Id>::find(id)?.hold();
    cm()?.join_multicast(id.handle, address(addr)?, context as u64)?;
    id.complete(Verb::CmJoinMulticast)
}

pub(crate) extern "C" fn leave_multicast(id: *mut rdma_cm_id, addr: *mut sockaddr) -> c_int {
    or_minus_one("rdma_leave_multicast", id, || {
        let id = CObject::<Id>::find(id)?;
        cm()?.leave_multicast(id.handle, address(addr)?)?;
        Ok(0)
    })
}
