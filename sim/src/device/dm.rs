//! Device memory. Regions of it and the memory itself share their bytes.

use verbs_api::{
    BadHandle, Capabilities, Cause, Context, Dm as DmHandle, DmInit, ErrorKind, Object,
};

use super::Device;
use super::check::{bad_handle, check_unused, find, in_context, in_range, invalid};
use super::refusal::{Refusal, Result};
use crate::memory::{RegionId, Slice};

/// A device memory.
#[derive(Clone, Debug)]
pub(crate) struct Dm {
    context: Context,
    pub(super) region: RegionId,
    /// The address of the memory, which no work request names.
    pub(super) addr: u64,
    pub(crate) length: usize,
    /// The number of regions.
    pub(super) mrs: u32,
}

in_context!(Dm, context);

/// Bytes of device memory that a device has.
pub(super) const SIZE: u64 = 128 << 10;
/// The greatest alignment, as a power of 2: each memory starts on a page.
const MAX_LOG_ALIGN: u32 = 12;
/// The unit of copies in bytes, as NICs have it.
const UNIT: u64 = 4;

impl Device {
    /// `ibv_alloc_dm`
    pub(crate) fn alloc_dm(&mut self, context: Context, init: &DmInit) -> Result<DmHandle> {
        self.base
            .check_has(Capabilities::DEVICE_MEMORY, "has no memory of its own")?;
        let length = i64::try_from(init.length).unwrap_or(i64::MAX);
        in_range("length", length, 1, SIZE as i64)?;
        let (align, max_align) = (i64::from(init.log_align), i64::from(MAX_LOG_ALIGN));
        in_range("log_align_req", align, 0, max_align)?;
        let dms = &self.domains.dms;
        self.base.check_room("device memories", dms, u32::MAX)?;
        // All contexts share the memory of the device.
        let taken: u64 = dms.iter().map(|(_, dm)| dm.length as u64).sum();
        if init.length as u64 > SIZE - taken {
            let cause = Cause::Limit {
                what: "bytes of device memory",
                limit: SIZE,
            };
            return Err(Refusal::new(ErrorKind::NoMemory, cause));
        }
        let (region, addr) = self.new_memory(init.length, false)?;
        let id = self.domains.dms.insert(|_| Dm {
            context,
            region,
            addr,
            length: init.length,
            mrs: 0,
        });
        Ok(self.base.added(context, id, DmHandle::from_parts))
    }

    /// `ibv_free_dm`
    pub(crate) fn free_dm(&mut self, dm: DmHandle) -> Result<()> {
        let index = find(&self.domains.dms, dm)?;
        check_unused(Object::Dm, &[(Object::Mr, self.domains.dms.at(index).mrs)])?;
        self.remove_dm(index);
        Ok(())
    }

    pub(super) fn remove_dm(&mut self, index: u32) {
        let dm = self.domains.dms.remove(index);
        self.domains.memory.lock().remove(dm.region);
        self.base.remove_object(dm.context, Object::Dm, index);
    }

    /// `ibv_memcpy_to_dm`
    pub(crate) fn copy_to_dm(&mut self, dm: DmHandle, offset: u64, bytes: &[u8]) -> Result<()> {
        let into = self.copied(dm, offset, bytes.len())?;
        let copied = self.domains.memory.lock().write(&into, bytes);
        copied.map_err(|_| bad_handle(Object::Dm, BadHandle::Stale))
    }

    /// `ibv_memcpy_from_dm`
    pub(crate) fn copy_from_dm(&self, dm: DmHandle, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let from = self.copied(dm, offset, bytes.len())?;
        let copied = self.domains.memory.lock().peek(&from, bytes);
        copied.map_err(|_| bad_handle(Object::Dm, BadHandle::Stale))
    }

    /// The bytes of a copy.
    fn copied(&self, dm: DmHandle, offset: u64, length: usize) -> Result<Slice> {
        let own = self.domains.dms.at(find(&self.domains.dms, dm)?);
        let start = own.part(ErrorKind::Fault, offset, length)?;
        if !(offset | length as u64).is_multiple_of(UNIT) {
            return Err(invalid("offset or length", "is not a multiple of 4"));
        }
        Ok(Slice {
            region: own.region,
            offset: start,
            length,
            is_relaxed: false,
        })
    }
}

impl Dm {
    /// Where a part of the memory starts in it. `kind` is the error for other bytes.
    pub(super) fn part(&self, kind: ErrorKind, offset: u64, length: usize) -> Result<usize> {
        let end = offset.checked_add(length as u64);
        if end.is_some_and(|end| end <= self.length as u64) {
            return Ok(offset as usize);
        }
        let end = i64::try_from(end.unwrap_or(u64::MAX)).unwrap_or(i64::MAX);
        let max = self.length as i64;
        Err(Refusal::out_of_range(kind, "offset + length", end, 0, max))
    }
}
