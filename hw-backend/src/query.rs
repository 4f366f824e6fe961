//! Attributes of newer devices, and GID tables.

use std::ffi::c_int;

use verbs_abi::{
    IBV_VALUES_MASK_RAW_CLOCK, ibv_device_attr_ex, ibv_gid_entry, ibv_values_ex, inline, library,
};
use verbs_api::{Context, DeviceAttrEx, GidEntry, Result, RtValues, Verb};

use crate::errno::{check, missing};
use crate::hw::Hw;

/// The size of an entry that this program knows.
const ENTRY: usize = size_of::<ibv_gid_entry>();

impl Hw {
    /// `ibv_query_device_ex`
    pub(crate) fn device_attr_ex(&self, context: Context) -> Result<DeviceAttrEx> {
        let verb = Verb::QueryDeviceEx;
        let device = self.device(verb, context)?;
        let mut attr = ibv_device_attr_ex::default();
        // SAFETY: the context is live.
        let query = |context| unsafe { inline::query_device_ex(context, &mut attr) };
        device.raw.call(verb, query)?;
        let mut found = ibv_device_attr_ex::from_c(&attr);
        found.orig_attr.num_comp_vectors = device.num_comp_vectors;
        Ok(found)
    }

    /// `ibv_query_rt_values_ex`
    pub(crate) fn clock(&self, context: Context) -> Result<RtValues> {
        let verb = Verb::QueryRtValues;
        let device = self.device(verb, context)?;
        let mut values = ibv_values_ex {
            comp_mask: IBV_VALUES_MASK_RAW_CLOCK,
            ..ibv_values_ex::default()
        };
        // SAFETY: the context is live.
        let query = |context| unsafe { inline::query_rt_values(context, &mut values) };
        device.raw.call(verb, query)?;
        // Libraries write ticks to the field for nanoseconds.
        let [seconds, ticks] = values.raw_clock.map(i64::cast_unsigned);
        let ticks = seconds.wrapping_mul(1_000_000_000).wrapping_add(ticks);
        Ok(RtValues::new(ticks))
    }

    /// `ibv_query_gid_ex`
    pub(crate) fn gid_entry(&self, context: Context, port: u8, index: u32) -> Result<GidEntry> {
        let verb = Verb::QueryGidEx;
        let device = self.device(verb, context)?;
        let mut entry = ibv_gid_entry::default();
        let query = library::_ibv_query_gid_ex().map_err(missing(verb))?;
        // SAFETY: the context is live.
        let query = |context| unsafe { query(context, port.into(), index, &mut entry, 0, ENTRY) };
        device.raw.call(verb, query)?;
        Ok(ibv_gid_entry::from_c(&entry))
    }

    /// `ibv_query_gid_table`
    pub(crate) fn gid_table(&self, context: Context, entries: &mut [GidEntry]) -> Result<usize> {
        let verb = Verb::QueryGidTable;
        let device = self.device(verb, context)?;
        let mut raw = vec![ibv_gid_entry::default(); entries.len()];
        let query = library::_ibv_query_gid_table().map_err(missing(verb))?;
        // SAFETY: the context is live.
        let query = |context| unsafe { query(context, raw.as_mut_ptr(), raw.len(), 0, ENTRY) };
        let count = device.raw.with(verb, query)?;
        let Ok(count) = usize::try_from(count) else {
            check(verb, c_int::try_from(count).unwrap_or(c_int::MIN))?;
            return Ok(0);
        };
        for (to, from) in entries.iter_mut().zip(&raw[..count.min(raw.len())]) {
            *to = ibv_gid_entry::from_c(from);
        }
        Ok(count)
    }
}
