//! Multicast groups.

use std::ffi::c_int;

use verbs_abi::{ibv_gid, ibv_qp};
use verbs_api::{Gid, Qp as QpHandle, Result, Verb};

use crate::hw::Hw;

/// Attaches a QP to a group or detaches it, by `change`.
pub(crate) fn change_group(
    hw: &Hw,
    verb: Verb,
    change: unsafe extern "C" fn(*mut ibv_qp, *const ibv_gid, u16) -> c_int,
    qp: QpHandle,
    group: Gid,
    lid: u16,
) -> Result<()> {
    let found = hw.qp(verb, qp)?;
    let group = ibv_gid { raw: group.0 };
    // SAFETY: the QP is live; C copies the GID.
    found
        .raw
        .call(verb, |qp| unsafe { change(qp, &group, lid) })
}
