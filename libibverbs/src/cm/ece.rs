//! Enhanced connection establishment: the options that messages carry.

use std::ffi::{c_int, c_void};

use verbs_abi::{ibv_ece, rdma_cm_id};
use verbs_api::cm::Cm;

use super::connect::{on, private_data};
use crate::c::{passed, present, zero_or_minus_one};
use crate::engine::sim;

pub(crate) extern "C" fn set_local_ece(id: *mut rdma_cm_id, ece: *mut ibv_ece) -> c_int {
    zero_or_minus_one("rdma_set_local_ece", id, |id| {
        let id = id.held();
        id.follow_qp()?;
        // SAFETY: the program's, valid for the call (C's contract).
        let ece = unsafe { passed(ece) }?;
        Ok(sim().set_local_ece(id.handle, &ibv_ece::from_c(&ece))?)
    })
}

pub(crate) extern "C" fn get_remote_ece(id: *mut rdma_cm_id, ece: *mut ibv_ece) -> c_int {
    zero_or_minus_one("rdma_get_remote_ece", id, |id| {
        let id = id.held();
        id.follow_qp()?;
        present(ece)?;
        let found = sim().get_remote_ece(id.handle)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { ece.write(ibv_ece::to_c(&found)) };
        Ok(())
    })
}

pub(crate) extern "C" fn reject_ece(id: *mut rdma_cm_id, data: *const c_void, length: u8) -> c_int {
    // SAFETY: the program's, valid for the call, of this length (C's contract).
    let data = unsafe { private_data(data, length) };
    on("rdma_reject_ece", id, |cm, id| cm.reject_ece(id, data))
}
