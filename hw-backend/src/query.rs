//! What newer devices and GID tables say of themselves.

use std::ffi::c_int;

use verbs_api::{
    Context, CqModeration, DeviceAttrEx, Gid, GidEntry, Object, Result, TsoCaps, Verb,
};

use crate::errno::{check, destroyed};
use crate::hw::Hw;
use crate::{convert, sys};

impl Hw {
    /// `ibv_query_device_ex`
    pub(crate) fn device_attr_ex(&self, context: Context) -> Result<DeviceAttrEx> {
        let verb = Verb::QueryDeviceEx;
        let device = self.device(verb, context)?;
        // SAFETY: the structure is plain numbers, for which zero is a value.
        let mut attr: sys::ibv_device_attr_ex = unsafe { std::mem::zeroed() };
        let query = |context: *mut sys::ibv_context| {
            // SAFETY: the context is live.
            let result = unsafe { sys::query_device_ex(context, &mut attr) };
            // SAFETY: as above.
            (result, unsafe { (*context).num_comp_vectors })
        };
        let queried = device.raw.with(query);
        let (result, vectors) = queried.map_err(destroyed(verb, Object::Context))?;
        check(verb, result)?;
        Ok(DeviceAttrEx {
            orig_attr: convert::device_attr(&attr.orig_attr, vectors),
            completion_timestamp_mask: attr.completion_timestamp_mask,
            hca_core_clock: attr.hca_core_clock,
            cq_moderation: CqModeration {
                cq_count: attr.cq_mod_caps.max_cq_count,
                cq_period: attr.cq_mod_caps.max_cq_period,
            },
            tso_caps: TsoCaps {
                max_tso: attr.tso_caps.max_tso,
                supported_qpts: attr.tso_caps.supported_qpts,
            },
        })
    }

    /// `ibv_query_gid_ex`
    pub(crate) fn gid_entry(&self, context: Context, port: u8, index: u32) -> Result<GidEntry> {
        let verb = Verb::QueryGidEx;
        let device = self.device(verb, context)?;
        let mut entry = empty();
        // SAFETY: the context is live.
        let query = |context| unsafe { sys::query_gid_ex(context, port.into(), index, &mut entry) };
        let result = device.raw.with(query);
        check(verb, result.map_err(destroyed(verb, Object::Context))?)?;
        Ok(entry_of(&entry))
    }

    /// `ibv_query_gid_table`
    pub(crate) fn gid_table(&self, context: Context, entries: &mut [GidEntry]) -> Result<usize> {
        let verb = Verb::QueryGidTable;
        let device = self.device(verb, context)?;
        let mut raw: Vec<_> = std::iter::repeat_with(empty).take(entries.len()).collect();
        // SAFETY: the context is live.
        let query = |context| unsafe { sys::query_gid_table(context, &mut raw) };
        let result = device.raw.with(query);
        let count = result.map_err(destroyed(verb, Object::Context))?;
        let Ok(count) = usize::try_from(count) else {
            check(verb, c_int::try_from(count).unwrap_or(c_int::MIN))?;
            return Ok(0);
        };
        for (to, from) in entries.iter_mut().zip(&raw[..count.min(raw.len())]) {
            *to = entry_of(from);
        }
        Ok(count)
    }
}

fn empty() -> sys::ibv_gid_entry {
    // SAFETY: the structure is plain numbers, for which zero is a value.
    unsafe { std::mem::zeroed() }
}

fn entry_of(entry: &sys::ibv_gid_entry) -> GidEntry {
    GidEntry {
        // SAFETY: every member of the union is plain bytes.
        gid: Gid(unsafe { entry.gid.raw }),
        gid_index: entry.gid_index,
        port_num: entry.port_num,
        gid_type: entry.gid_type.into(),
        ndev_ifindex: entry.ndev_ifindex,
    }
}
