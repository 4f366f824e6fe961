//! Multicast groups.

use std::ffi::{c_int, c_void};

use libc::sockaddr;
use verbs_abi::{RDMA_CM_JOIN_MC_ATTR_ADDRESS, rdma_cm_id, rdma_cm_join_mc_attr_ex};
use verbs_api::Verb;
use verbs_api::cm::Cm;

use super::address::address;
use super::id::Id;
use crate::c::{CObject, Held, Later, Refusal, Result, passed, zero_or_minus_one};
use crate::engine::sim;

pub(crate) extern "C" fn join_multicast(
    id: *mut rdma_cm_id,
    addr: *mut sockaddr,
    context: *mut c_void,
) -> c_int {
    zero_or_minus_one("rdma_join_multicast", id, |id| {
        join(id.held(), addr, context)
    })
}

/// `rdma_join_multicast_ex`. An id that only sends is a full member here.
pub(crate) extern "C" fn join_multicast_ex(
    id: *mut rdma_cm_id,
    attr: *mut rdma_cm_join_mc_attr_ex,
    context: *mut c_void,
) -> c_int {
    zero_or_minus_one("rdma_join_multicast_ex", Later(id), |()| {
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = unsafe { passed(attr) }?;
        if attr.comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS == 0 {
            return Err(Refusal::invalid("comp_mask does not name the address"));
        }
        join(CObject::<Id>::find(id)?.held(), attr.addr, context)
    })
}

fn join(id: Held<Id>, addr: *mut sockaddr, context: *mut c_void) -> Result<()> {
    sim().join_multicast(id.handle, address(addr)?, context as u64)?;
    id.complete(Verb::CmJoinMulticast)
}

pub(crate) extern "C" fn leave_multicast(id: *mut rdma_cm_id, addr: *mut sockaddr) -> c_int {
    zero_or_minus_one("rdma_leave_multicast", id, |id| {
        Ok(sim().leave_multicast(id.handle, address(addr)?)?)
    })
}
