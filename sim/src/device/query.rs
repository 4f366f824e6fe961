//! What verbs report of a device, its ports and its contexts.

use core::time::Duration;

use verbs_api::lab::Limit;
use verbs_api::profile::Reported;
use verbs_api::{
    AsyncEvent, Capabilities, Cause, Context, DeviceAttr, DeviceAttrEx, Element, ErrorKind,
    GidEntry,
};

use super::check::{find_in, in_range, invalid};
use super::refusal::{Refusal, Result};
use super::{Device, dm, moderate};

/// A time on the device's clock, which counts nanoseconds.
pub(crate) fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Device {
    /// `ibv_open_device`
    pub(crate) fn open_device(&mut self) -> Result<Context> {
        self.cqs.check_files(&self.base)?;
        self.base.add_context()
    }

    /// `ibv_query_device`
    pub(crate) fn query_device(&self) -> DeviceAttr {
        let limit = self.base.rules.limit(Limit::QueuePairs);
        // A limit of the test controls shows in the attributes.
        let limit = limit.map_or(u32::MAX, |limit| limit.try_into().unwrap_or(u32::MAX));
        let mut attr = self.base.attr.clone();
        attr.max_qp = attr.max_qp.min(limit);
        attr
    }

    /// Sets what it reports and no call depends on.
    pub(crate) fn report(&mut self, reported: &Reported) {
        let attr = &mut self.base.attr;
        attr.fw_ver = reported.fw_ver.to_owned();
        attr.vendor_id = reported.vendor_id;
        attr.vendor_part_id = reported.vendor_part_id;
        self.ports.report(*reported);
    }

    /// `ibv_query_device_ex`. The device's clock counts nanoseconds.
    pub(crate) fn query_device_ex(&self) -> DeviceAttrEx {
        let has = |capability| !self.base.lacks.contains(capability);
        let mut attr = DeviceAttrEx::default();
        attr.orig_attr = self.query_device();
        if has(Capabilities::WC_TIMESTAMP) {
            attr.completion_timestamp_mask = u64::MAX;
        }
        if has(Capabilities::WC_TIMESTAMP) || has(Capabilities::RT_VALUES) {
            attr.hca_core_clock = 1_000_000;
        }
        if has(Capabilities::CQ_MODERATION) {
            attr.cq_moderation = moderate::LIMITS;
        }
        attr.flush_global = has(Capabilities::FLUSH);
        attr.flush_persistent = has(Capabilities::FLUSH);
        attr.atomic_write = has(Capabilities::ATOMIC_WRITE);
        attr.odp = self.domains.regions.odp;
        if has(Capabilities::DEVICE_MEMORY) {
            attr.max_dm_size = dm::SIZE;
        }
        attr
    }

    /// `ibv_query_gid_ex`
    pub(crate) fn query_gid_ex(&self, port: u8, index: u32) -> Result<GidEntry> {
        let gid = self.ports.gid(port, index)?;
        // The kernel reports empty entries as missing data.
        let cause = || Cause::Text("the entry is empty".into());
        let entry = self.ports.entry(port, index, gid);
        entry.ok_or_else(|| Refusal::new(ErrorKind::NoData, cause()))
    }

    /// `ibv_query_gid_table`
    pub(crate) fn query_gid_table(&self, entries: &mut [GidEntry]) -> Result<usize> {
        let all = self.ports.entries();
        // A buffer that is too small is refused, and not filled partly.
        let Some(room) = entries.get_mut(..all.len()) else {
            let problem = "has no room for all that there are";
            return Err(invalid("entries", problem));
        };
        room.copy_from_slice(&all);
        Ok(all.len())
    }

    /// `ibv_query_pkey`
    pub(crate) fn query_pkey(&self, port: u8, index: u16) -> Result<u16> {
        let pkeys = &self.ports.check(port)?.pkeys;
        let last = pkeys.len() as i64 - 1;
        in_range("index", i64::from(index), 0, last)?;
        Ok(pkeys[usize::from(index)])
    }

    /// `ibv_ack_async_event`, in an existing context. If the event is about a queue pair, that
    /// exists too.
    pub(crate) fn ack_async_event(&mut self, context: Context, event: &AsyncEvent) -> Result<()> {
        match event.element {
            Element::Cq(cq) => find_in(&self.cqs.table, context, cq).map(drop)?,
            Element::Srq(srq) => find_in(&self.srqs, context, srq).map(drop)?,
            Element::Qp(_) | Element::Device | Element::Port(_) => {}
            _ => {
                let problem = "is of a kind this device does not have";
                return Err(invalid("element", problem));
            }
        }
        self.base.acknowledge(context, event)
    }
}
