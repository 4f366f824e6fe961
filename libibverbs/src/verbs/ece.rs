//! Enhanced connection establishment: the options of queue pairs.

use std::ffi::c_int;

use verbs_abi::{ibv_ece, ibv_qp};
use verbs_api::Verbs;

use crate::c::{passed, present, status};
use crate::engine::sim;

pub(crate) extern "C" fn query_ece(qp: *mut ibv_qp, ece: *mut ibv_ece) -> c_int {
    status("ibv_query_ece", qp, |qp| {
        present(ece)?;
        let found = sim().query_ece(qp.handle)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { ece.write(ibv_ece::to_c(&found)) };
        Ok(())
    })
}

/// `ibv_set_ece`. As with mlx5 the structure stays as it is: a query after the next
/// `ibv_modify_qp` has the options that were accepted.
pub(crate) extern "C" fn set_ece(qp: *mut ibv_qp, ece: *mut ibv_ece) -> c_int {
    status("ibv_set_ece", qp, |qp| {
        // SAFETY: the program's, valid for the call (C's contract).
        let ece = unsafe { passed(ece) }?;
        Ok(sim().set_ece(qp.handle, &ibv_ece::from_c(&ece))?)
    })
}
