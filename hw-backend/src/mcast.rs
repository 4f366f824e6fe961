//! Multicast groups.

use std::ffi::c_int;

use verbs_api::{Gid, Object, Qp as QpHandle, Result, Verb};

use crate::errno::{check, destroyed};
use crate::hw::Hw;
use crate::sys;

impl Hw {
    /// Attaches a QP to a group, or detaches it: that is up to `change`.
    pub(crate) fn change_group(
        &self,
        verb: Verb,
        change: unsafe extern "C" fn(*mut sys::ibv_qp, *const sys::ibv_gid, u16) -> c_int,
        qp: QpHandle,
        group: Gid,
        lid: u16,
    ) -> Result<()> {
        let found = self.qp(verb, qp)?;
        let group = sys::ibv_gid { raw: group.0 };
        // SAFETY: the QP is live; C copies the GID.
        let result = found.raw.with(|qp| unsafe { change(qp, &group, lid) });
        check(verb, result.map_err(destroyed(verb, Object::Qp))?)
    }
}
