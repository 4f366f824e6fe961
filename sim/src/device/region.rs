//! Memory regions: life, change, and access by the program itself.

mod dmabuf;

use std::ops::Range;

use verbs_api::behavior::{Behavior, DeregBound, MrKeys, ZeroLength};
use verbs_api::lab::Limit;
use verbs_api::table::Id;
use verbs_api::{
    Access, Capabilities, Cause, Dm as DmHandle, ErrorKind, Handle, Mr as MrHandle, MrAttr,
    MrChange, MrInit, MrMemory, Object, Pd as PdHandle,
};

use super::Device;
use super::access::KNOWN;
use super::base::Base;
use super::check::{find, find_in, in_context, in_range, invalid, lacks, same_context};
use super::dm::Dm;
use super::domain::Domains;
use super::key::{Keys, Regions};
use super::odp::check_mapping_is_seen;
use super::refusal::{Refusal, Result};
use crate::diagnosis::{FailureCause, LabCause};
use crate::memory::{RegionId, Slice, Span};

/// A memory region.
#[derive(Clone, Debug)]
pub(crate) struct Mr {
    pub(super) handle: MrHandle,
    pub(crate) pd: u32,
    pub(super) backing: Backing,
    pub(crate) attr: MrAttr,
    pub(super) access: Access,
    /// The number of windows bound to it.
    pub(super) windows: u32,
    /// Whether the memory was registered for writing.
    writable: bool,
    /// The last bytes that were found unmapped, where memory is checked: their offset and number.
    pub(super) unmapped: Option<Box<(u64, u64)>>,
}

/// The memory of a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backing {
    pub(super) region: RegionId,
    /// All of that memory, which exists as long as the region. None for a null region, and for one
    /// whose memory may be gone.
    pub(super) whole: Option<Span>,
    /// Where the region starts in that memory.
    start: usize,
    /// The address of the memory.
    addr: u64,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The simulator's memory, used by this region only.
    Own,
    /// The simulator's memory, used by this region only, which the process may only read.
    ReadOnly,
    /// The simulator's memory, which other regions may use, too.
    Shared,
    /// The caller's memory.
    Caller,
    /// A device memory, in this slot.
    Device(u32),
    /// The memory of a dma-buf.
    Dmabuf,
    /// The memory of a dma-buf, which a test control has withdrawn.
    Revoked,
    /// A null region: reads return zeros, and writes are discarded.
    Null,
}

in_context!(Mr, handle.context());

/// Why the memory that a work request names is not valid for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtectionFault {
    /// Its key is invalid, of another domain, or does not allow the access.
    Key,
    /// It is outside the region of its key.
    Range,
}

/// Owned regions start on a page, and an unused page follows each.
const PAGE: u64 = 4096;
/// Remote keys have this bit and local keys do not, so that one used instead of the other is
/// noticed, unless a device makes both the same.
pub(super) const RKEY: u32 = 1 << 31;

/// The keys of a region: its slot, and a tag that changes each time the slot is used, unless the
/// device reuses keys immediately.
fn keys(keys: Keys, id: Id, behavior: &Behavior, access: Access) -> (u32, u32) {
    let generation = if behavior.key_reuse { 0 } else { id.generation };
    let key = keys.key(id.index, generation);
    // Some drivers give remote keys only to regions with remote access.
    let is_remote =
        access.intersects(Access::ALL_RDMA.difference(Access::LOCAL_WRITE) | Access::REMOTE_ATOMIC);
    let rkey = match behavior.mr_keys {
        MrKeys::SameIfRemote if !is_remote => 0,
        MrKeys::Same | MrKeys::SameIfRemote => key,
        MrKeys::Apart | _ => key | RKEY,
    };
    (key, rkey)
}

impl Device {
    /// Creates a region of the simulator's memory with the properties of `init`.
    pub(crate) fn alloc_mr(&mut self, pd: PdHandle, init: &MrInit) -> Result<MrHandle> {
        self.check_new_mr(pd, init.length, init.access)?;
        self.check_bytes(init.length, 0)?;
        let may_write = init.access.contains(Access::LOCAL_WRITE);
        let on_demand = init.access.contains(Access::ON_DEMAND);
        let shared = match init.memory {
            // Fails like a pointer to unmapped memory.
            MrMemory::Unmapped => return Err(not_mapped()),
            MrMemory::ReadOnly if may_write => {
                let problem = "asks for writes, and the memory is read-only";
                return Err(Refusal::argument(ErrorKind::Fault, "access", problem));
            }
            MrMemory::Of(of, offset) => Some(self.part_of(of, offset, init.length)?),
            _ => None,
        };
        // New memory starts on a page.
        let memory = shared.as_ref().map_or(0, |part| part.1.addr);
        check_iova(init.iova, memory, init.length)?;
        let backing = match shared {
            Some((of, part)) => {
                self.domains.regions.table.at_mut(of).backing.kind = Kind::Shared;
                self.domains.memory.lock().share(part.region);
                // The fast path does not look at what transports can do.
                let whole = part.whole.filter(|_| !on_demand);
                Backing { whole, ..part }
            }
            None => {
                let (region, addr) = self.new_memory(init.length, on_demand)?;
                let kind = match init.memory {
                    MrMemory::ReadOnly => Kind::ReadOnly,
                    _ => Kind::Own,
                };
                self.domains.backing(region, addr, kind)
            }
        };
        let addr = first_byte(&self.base, init.iova, init.access, &backing);
        self.insert_mr(pd, backing, addr, init.length as u64, init.access)
    }

    /// A part of a region's memory for another region, and the index of the first region.
    fn part_of(&self, of: MrHandle, offset: usize, length: usize) -> Result<(u32, Backing)> {
        let index = find(&self.domains.regions.table, of)?;
        let mr = self.domains.regions.table.at(index);
        let Mr { backing, attr, .. } = mr;
        // Only the simulator's own writable memory can be shared, and only if it stays.
        if !matches!(backing.kind, Kind::Own | Kind::Shared) || mr.is_on_demand() {
            return Err(invalid("memory", "cannot be shared"));
        }
        check_part(attr, offset, length)?;
        let addr = backing.addr + offset as u64;
        check_length(&self.base, length, addr)?;
        let part = Backing {
            start: backing.start + offset,
            addr,
            kind: Kind::Shared,
            ..*backing
        };
        Ok((index, part))
    }

    /// `ibv_alloc_null_mr`
    pub(crate) fn alloc_null_mr(&mut self, pd: PdHandle) -> Result<MrHandle> {
        let access = Access::LOCAL_WRITE;
        self.check_new_mr(pd, 1, access)?;
        self.base
            .check_has(Capabilities::NULL_MR, "has no null regions")?;
        let region = self.domains.memory.lock().add_null();
        let backing = self.domains.backing(region, 0, Kind::Null);
        self.insert_mr(pd, backing, 0, u64::MAX, access)
    }

    /// `ibv_reg_dm_mr`
    pub(crate) fn reg_dm_mr(
        &mut self,
        pd: PdHandle,
        dm: DmHandle,
        offset: u64,
        length: usize,
        access: Access,
    ) -> Result<MrHandle> {
        let index = find_in(&self.domains.dms, pd.context(), dm)?;
        self.check_new_mr(pd, length, access)?;
        self.check_bytes(length, 0)?;
        if !access.contains(Access::ZERO_BASED) {
            return Err(invalid("access", "lacks ZERO_BASED"));
        }
        // It has no pages, and drivers open it to no window (DM-12).
        if access.intersects(Access::MW_BIND | Access::HUGETLB | Access::ON_DEMAND) {
            return Err(invalid("access", "is more than that of device memory"));
        }
        let of = self.domains.dms.at_mut(index);
        let start = of.part(ErrorKind::Invalid, offset, length)?;
        let Dm { region, addr, .. } = *of;
        let addr = addr + offset;
        check_length(&self.base, length, addr)?;
        of.mrs += 1;
        self.domains.memory.lock().share(region);
        let kind = Kind::Device(index);
        let backing = Backing {
            start,
            ..self.domains.backing(region, addr, kind)
        };
        self.insert_mr(pd, backing, 0, length as u64, access)
    }

    /// Creates a region of the caller's memory, with an address of the caller's choice.
    ///
    /// # Safety
    /// The promise of [`Verbs::reg_mr`](verbs_api::Verbs::reg_mr).
    #[expect(unsafe_code, reason = "passes on the promise of the trait's method")]
    pub(crate) unsafe fn reg_mr(
        &mut self,
        pd: PdHandle,
        addr: *mut u8,
        length: usize,
        iova: Option<u64>,
        access: Access,
    ) -> Result<MrHandle> {
        if access.contains(Access::ON_DEMAND) && addr.is_null() && length == usize::MAX {
            // SAFETY: the same promise.
            return unsafe { self.reg_all(pd, iova, access) };
        }
        self.check_new_mr(pd, length, access)?;
        self.check_bytes(length, 0)?;
        check_iova(iova, addr as u64, length)?;
        // SAFETY: the same promise.
        let backing = unsafe { self.memory_of_caller(addr, length, access) }?;
        let addr = first_byte(&self.base, iova, access, &backing);
        self.insert_mr(pd, backing, addr, length as u64, access)
    }

    /// The caller's memory, as that of a region.
    ///
    /// # Safety
    /// The promise of [`Verbs::reg_mr`](verbs_api::Verbs::reg_mr).
    #[expect(unsafe_code, reason = "passes on the promise of the trait's method")]
    unsafe fn memory_of_caller(
        &mut self,
        addr: *mut u8,
        length: usize,
        access: Access,
    ) -> Result<Backing> {
        let on_demand = access.contains(Access::ON_DEMAND);
        check_length(&self.base, length, addr as u64)?;
        if on_demand {
            check_mapping_is_seen()?;
        // A null pointer is the one address that is surely unmapped.
        } else if addr.is_null() {
            return Err(not_mapped());
        }
        if (addr as u64).checked_add(length as u64).is_none() {
            return Err(invalid("addr", "and length wrap around"));
        }
        // SAFETY: the caller's promise covers the time until `dereg_mr`, which removes the region.
        let region = unsafe {
            self.domains
                .memory
                .lock()
                .add_of_caller(addr, length, on_demand)
        };
        Ok(self.domains.backing(region, addr as u64, Kind::Caller))
    }

    /// New zero bytes of the simulator's own memory, and their address. On demand they can be
    /// unmapped.
    pub(super) fn new_memory(&mut self, length: usize, on_demand: bool) -> Result<(RegionId, u64)> {
        check_length(&self.base, length, self.domains.regions.next_addr)?;
        // Large allocations may fail on small machines.
        let region = self.domains.memory.lock().add_owned(length, on_demand);
        let region = region.ok_or_else(no_memory)?;
        Ok((region, self.domains.regions.new_addr(length)))
    }

    /// Checks whether a region may be created.
    pub(super) fn check_new_mr(&self, pd: PdHandle, length: usize, access: Access) -> Result<()> {
        let Self { base, domains, .. } = self;
        domains.find_pd(base, pd)?;
        check_access(base, access)?;
        check_max(base, length)?;
        base.check_room("memory regions", &domains.regions.table, base.attr.max_mr)
    }

    /// Refuses to exceed the limit of registered bytes. `fewer` bytes are deregistered at the same
    /// time.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn check_bytes(&self, length: usize, fewer: u64) -> Result<()> {
        // Without a limit the sum over all regions is not needed.
        let rules = &self.base.rules;
        if rules.limit(Limit::Bytes).is_none() {
            return Ok(());
        }
        let all = self.domains.regions.table.iter();
        let present: u64 = all.map(|(_, mr)| mr.registered_bytes()).sum();
        let bytes = (present - fewer).saturating_add(length as u64);
        rules.check(Limit::Bytes, "registered bytes", bytes)
    }

    pub(super) fn insert_mr(
        &mut self,
        pd: PdHandle,
        backing: Backing,
        addr: u64,
        length: u64,
        access: Access,
    ) -> Result<MrHandle> {
        let Self { base, domains, .. } = self;
        let (context, named) = (pd.context(), pd);
        let pd = domains.find_pd(base, pd)?;
        let behavior = base.behavior;
        let of_slots = domains.regions.keys;
        let id = domains.regions.table.insert(|id| {
            let (lkey, rkey) = keys(of_slots, id, &behavior, access);
            let mut attr = MrAttr::default();
            (attr.addr, attr.length, attr.lkey) = (addr, length, lkey);
            // A null region cannot be named by a peer.
            attr.rkey = if backing.kind == Kind::Null { 0 } else { rkey };
            Mr {
                handle: MrHandle::from_parts(context, id.index, id.generation),
                pd,
                backing,
                attr,
                access,
                windows: 0,
                writable: access.contains(Access::LOCAL_WRITE),
                unmapped: None,
            }
        });
        domains.pds.at_mut(pd).mrs += 1;
        Ok(base.added_in(named, id, MrHandle::from_parts))
    }

    /// `ibv_rereg_mr` for a region that no posted work names. Everything is checked before anything
    /// changes, so that a failure leaves the region as it was (MR-09).
    pub(crate) fn rereg_mr(&mut self, mr: MrHandle, change: &MrChange) -> Result<()> {
        self.rereg_with(mr, change, |device, length, access| {
            let on_demand = access.contains(Access::ON_DEMAND);
            let (region, addr) = device.new_memory(length, on_demand)?;
            Ok(device.domains.backing(region, addr, Kind::Own))
        })
    }

    /// Like [`rereg_mr`](Self::rereg_mr), but with the caller's memory from `addr` on instead of
    /// new memory. Posted work that names the old memory fails when it is executed.
    ///
    /// # Safety
    /// For a change of the memory, the promise of [`Verbs::reg_mr`](verbs_api::Verbs::reg_mr).
    #[expect(unsafe_code, reason = "passes on the promise of the trait's method")]
    pub(crate) unsafe fn rereg_mr_as(
        &mut self,
        mr: MrHandle,
        change: &MrChange,
        addr: *mut u8,
    ) -> Result<()> {
        self.rereg_with(mr, change, |device, length, access| {
            // SAFETY: the same promise.
            unsafe { device.memory_of_caller(addr, length, access) }
        })
    }

    fn rereg_with(
        &mut self,
        mr: MrHandle,
        change: &MrChange,
        new_memory: impl FnOnce(&mut Self, usize, Access) -> Result<Backing>,
    ) -> Result<()> {
        let index = find(&self.domains.regions.table, mr)?;
        self.base
            .check_has(Capabilities::REREG_MR, "changes no regions")?;
        if *change == MrChange::default() {
            return Err(invalid("change", "names nothing"));
        }
        // A window would keep access to the old memory.
        self.check_unbound(index)?;
        let of_pd = |pd| -> Result<_> {
            let found = self.domains.find_pd(&self.base, pd)?;
            same_context(mr.context(), pd)?;
            Ok((pd, found))
        };
        let pd = change.pd.map(of_pd).transpose()?;
        let old = self.domains.regions.table.at(index);
        match old.backing.kind {
            // It has no memory to change.
            Kind::Null => return Err(invalid("mr", "is a null region")),
            // The kernel changes no region of device memory (DM-11).
            Kind::Device(_) => return Err(invalid("mr", "is of device memory")),
            // Its memory is another device's.
            Kind::Dmabuf | Kind::Revoked => return Err(invalid("mr", "is of a dma-buf")),
            _ => {}
        }
        let mut access = change.access.unwrap_or(old.access);
        check_access(&self.base, access)?;
        if change.length.is_none() {
            if old.is_on_demand() && !access.contains(Access::ON_DEMAND) {
                return Err(lacks("cannot pin the memory of an on-demand region"));
            }
            // Memory that is pinned stays so.
            access.set(Access::ON_DEMAND, old.is_on_demand());
        }
        let writes = access.contains(Access::LOCAL_WRITE);
        // The kernel has pinned the pages for reading only.
        if writes && !old.writable && change.length.is_none() {
            let problem = "asks for writes, and the memory was registered for reading";
            return Err(Refusal::argument(ErrorKind::Access, "access", problem));
        }
        let memory = match change.length {
            Some(length) => {
                check_max(&self.base, length)?;
                self.check_bytes(length, old.registered_bytes())?;
                Some((new_memory(self, length, access)?, length))
            }
            None => None,
        };
        let own = self.domains.regions.table.at_mut(index);
        if let Some((backing, length)) = memory {
            own.attr.addr = backing.addr;
            own.attr.length = length as u64;
            own.writable = writes;
            let before = std::mem::replace(&mut own.backing, backing);
            // The old memory is removed last, after nothing can fail.
            self.domains.memory.lock().remove(before.region);
        }
        own.access = access;
        if let Some((named, pd)) = pd {
            let before = std::mem::replace(&mut own.pd, pd);
            self.base.parents.leave(Object::Mr, index);
            self.base.parents.enter(named, Object::Mr, index);
            self.domains.pds.at_mut(before).mrs -= 1;
            self.domains.pds.at_mut(pd).mrs += 1;
        }
        self.flush_deferred_writes();
        Ok(())
    }

    /// `ibv_dereg_mr`
    pub(crate) fn dereg_mr(&mut self, mr: MrHandle) -> Result<()> {
        let index = find(&self.domains.regions.table, mr)?;
        self.check_unbound(index)?;
        self.remove_region(index);
        Ok(())
    }

    pub(super) fn remove_region(&mut self, index: u32) {
        let mr = self.domains.regions.table.remove(index);
        // A diagnosis explains later uses of the key.
        self.domains.regions.remember(&self.base, &mr, index);
        self.domains.memory.lock().remove(mr.backing.region);
        if let Kind::Device(dm) = mr.backing.kind {
            self.domains.dms.at_mut(dm).mrs -= 1;
        }
        self.domains.pds.at_mut(mr.pd).mrs -= 1;
        let context = mr.handle.context();
        self.base.remove_object(context, Object::Mr, index);
    }

    /// Refuses to deregister or change a region to which windows are bound (MR-07).
    fn check_unbound(&self, mr: u32) -> Result<()> {
        let kind = match self.base.behavior.dereg_bound {
            DeregBound::Einval => ErrorKind::Invalid,
            // Windows of such a device lose their region.
            DeregBound::Orphan => return Ok(()),
            DeregBound::Ebusy | _ => ErrorKind::Busy,
        };
        let count = self.domains.regions.table.at(mr).windows;
        if count == 0 {
            return Ok(());
        }
        let cause = Cause::InUse {
            object: Object::Mr,
            by: Object::Mw,
            count,
        };
        Err(Refusal::new(kind, cause))
    }

    /// The fields of `struct ibv_mr`.
    pub(crate) fn query_mr(&self, mr: MrHandle) -> Result<MrAttr> {
        let index = find(&self.domains.regions.table, mr)?;
        Ok(self.domains.regions.table.at(index).attr)
    }

    /// The index of an owned region, and a range of it, for `read_mr` or `write_mr`.
    pub(crate) fn own_bytes(
        &self,
        mr: MrHandle,
        offset: usize,
        length: usize,
        writes: bool,
    ) -> Result<(u32, Slice)> {
        let index = find(&self.domains.regions.table, mr)?;
        let found = self.domains.regions.table.at(index);
        // The simulator reads and writes only memory that it owns.
        let problem = match found.backing.kind {
            Kind::Caller => Some("is the caller's own memory"),
            Kind::Null => Some("is a null region"),
            Kind::Device(_) => Some("is of device memory, which has its own copies"),
            Kind::ReadOnly if writes => Some("is read-only memory"),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(invalid("mr", problem));
        }
        check_part(&found.attr, offset, length)?;
        let Backing { region, start, .. } = found.backing;
        let offset = start + offset;
        let slice = Slice {
            region,
            offset,
            length,
            is_relaxed: false,
        };
        Ok((index, slice))
    }
}

impl Domains {
    /// All bytes of a region of the memory.
    pub(super) fn backing(&mut self, region: RegionId, addr: u64, kind: Kind) -> Backing {
        let whole = self.memory.lock().whole(region);
        self.regions.checks |= whole.is_none() && kind != Kind::Null;
        Backing {
            region,
            whole,
            start: 0,
            addr,
            kind,
        }
    }
}

impl Regions {
    /// The address of new memory of this length.
    fn new_addr(&mut self, length: usize) -> u64 {
        let addr = self.next_addr;
        self.next_addr += (length as u64).div_ceil(PAGE) * PAGE + PAGE;
        addr
    }
}

impl Mr {
    /// The bytes that count towards [`Limit::Bytes`]. A null region has none, and a region of all
    /// memory pins none.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn registered_bytes(&self) -> u64 {
        match self.attr.length {
            u64::MAX => 0,
            length => length,
        }
    }

    /// The position of a range in the memory, if it is inside the region.
    pub(super) fn range(&self, addr: u64, length: u64) -> Option<usize> {
        let offset = addr.checked_sub(self.attr.addr)?;
        let end = offset.checked_add(length)?;
        (end <= self.attr.length).then_some(self.backing.start + offset as usize)
    }

    /// The address in its memory of an address in the region. None for a null region.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(super) fn memory_at(&self, addr: u64) -> Option<u64> {
        let offset = addr - self.attr.addr;
        (self.backing.kind != Kind::Null).then_some(self.backing.addr + offset)
    }

    /// The position of bytes of the region in its memory.
    pub(crate) fn bytes(&self, offsets: Range<u64>) -> Range<u64> {
        let start = self.backing.start as u64;
        offsets.start.saturating_add(start)..offsets.end.saturating_add(start)
    }

    /// The domain whose work can access its memory. None if several regions share the memory.
    pub(crate) fn only_domain(&self) -> Option<u32> {
        // Regions of several domains may share this memory.
        (!matches!(self.backing.kind, Kind::Shared | Kind::Device(_))).then_some(self.pd)
    }

    /// Why the last bytes that were found unmapped are not there, if there were some.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(super) fn why_unmapped(&self) -> Option<FailureCause> {
        let ((offset, length), mr) = (**self.unmapped.as_ref()?, self.handle);
        Some(match self.backing.kind {
            Kind::Revoked => FailureCause::Lab(LabCause::Exporter),
            Kind::Dmabuf => FailureCause::Withdrawn { mr, offset, length },
            _ => FailureCause::NotMapped { mr, offset, length },
        })
    }

    /// Whether it has the same memory as another region.
    pub(super) fn shares_memory(&self, other: &Self) -> bool {
        self.backing.region == other.backing.region
    }

    /// The offset in the region of bytes of its memory. None if they belong to another region.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(super) fn offset_of(&self, bytes: &Slice) -> Option<u64> {
        let offset = bytes.offset.checked_sub(self.backing.start)?;
        (bytes.region == self.backing.region).then_some(offset as u64)
    }

    /// The key and the addresses that name these bytes of its memory.
    pub(super) fn place(&self, bytes: &Range<u64>) -> (u32, Range<u64>) {
        let start = self.backing.start as u64;
        let addr = |at: u64| self.attr.addr.saturating_add(at.saturating_sub(start));
        (self.attr.lkey, addr(bytes.start)..addr(bytes.end))
    }

    /// The bytes that work names, if it has the rights.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn span(&self, pd: u32, addr: u64, length: u32, need: Access) -> Option<Span> {
        if self.pd == pd && self.access.contains(need) {
            self.any_span(addr, length)
        } else {
            None
        }
    }

    /// The bytes at an address, without a check of rights.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn any_span(&self, addr: u64, length: u32) -> Option<Span> {
        let offset = addr.wrapping_sub(self.attr.addr);
        let fits =
            u64::from(length) <= self.attr.length && offset <= self.attr.length - u64::from(length);
        let whole = self.backing.whole.filter(|_| fits)?;
        Some(whole.part(self.backing.start + offset as usize, length as usize))
    }

    /// Whether its pages are looked for when work uses them.
    pub(crate) fn is_on_demand(&self) -> bool {
        self.access.contains(Access::ON_DEMAND)
    }

    #[inline]
    pub(super) fn slice(
        &self,
        pd: u32,
        addr: u64,
        length: u64,
        need: Access,
    ) -> Result<Slice, ProtectionFault> {
        if self.pd != pd || !self.access.contains(need) {
            return Err(ProtectionFault::Key);
        }
        self.part(addr, length)
    }

    /// A part of the region, without a check of rights.
    pub(super) fn part(&self, addr: u64, length: u64) -> Result<Slice, ProtectionFault> {
        let offset = self.range(addr, length).ok_or(ProtectionFault::Range)?;
        Ok(Slice {
            region: self.backing.region,
            offset,
            length: length as usize,
            is_relaxed: self.access.contains(Access::RELAXED_ORDERING),
        })
    }
}

pub(super) fn no_memory() -> Refusal {
    let cause = Cause::Text("the machine has no memory for the region".into());
    Refusal::new(ErrorKind::NoMemory, cause)
}

fn check_access(base: &Base, access: Access) -> Result<()> {
    let known = KNOWN | base.flushes() | Access::OPTIONAL;
    if !access.difference(known).is_empty() {
        return Err(invalid(
            "access",
            "has bits that the device does not support",
        ));
    }
    // Remote writes change local memory, so they need local write access (MR-01).
    if access.intersects(Access::REMOTE_WRITE | Access::REMOTE_ATOMIC)
        && !access.contains(Access::LOCAL_WRITE)
    {
        return Err(Refusal::new(ErrorKind::Invalid, Cause::NoLocalWrite));
    }
    if access.contains(Access::ON_DEMAND) {
        base.check_has(Capabilities::ODP, "has no on-demand regions")?;
    }
    Ok(())
}

fn check_max(base: &Base, length: usize) -> Result<()> {
    let max = i64::try_from(base.attr.max_mr_size).unwrap_or(i64::MAX);
    in_range("length", i64::try_from(length).unwrap_or(i64::MAX), 0, max)
}

/// The address of a region's first byte.
fn first_byte(base: &Base, iova: Option<u64>, access: Access, backing: &Backing) -> u64 {
    let is_zero_based = access.contains(Access::ZERO_BASED) && base.behavior.zero_based_mr;
    iova.or(is_zero_based.then_some(0)).unwrap_or(backing.addr)
}

/// Whether a region of this length is allowed, if its memory exists (MR-10).
fn check_length(base: &Base, length: usize, addr: u64) -> Result<()> {
    let problem = match base.behavior.zero_len_mr {
        _ if length > 0 => return Ok(()),
        ZeroLength::WithinPage if addr.is_multiple_of(PAGE) => {
            "is 0, and the memory starts at a page"
        }
        ZeroLength::Refused => "is 0",
        ZeroLength::Accepted | ZeroLength::WithinPage | _ => return Ok(()),
    };
    Err(invalid("length", problem))
}

/// Whether a region may begin at an address of the caller's choice. The address must have the same
/// offset in its page as the memory, and must not wrap around.
fn check_iova(iova: Option<u64>, memory: u64, length: usize) -> Result<()> {
    let Some(iova) = iova else { return Ok(()) };
    // Devices translate addresses page by page.
    if iova % PAGE != memory % PAGE {
        return Err(invalid(
            "iova",
            "lies elsewhere in its page than the memory",
        ));
    }
    match iova.checked_add(length as u64) {
        Some(_) => Ok(()),
        None => Err(invalid("iova", "and length wrap around")),
    }
}

fn not_mapped() -> Refusal {
    Refusal::argument(ErrorKind::Fault, "addr", "is not mapped")
}

/// Checks that these bytes are in the region.
fn check_part(attr: &MrAttr, offset: usize, length: usize) -> Result<()> {
    let max = i64::try_from(attr.length).unwrap_or(i64::MAX);
    let end = i64::try_from(offset.saturating_add(length)).unwrap_or(i64::MAX);
    in_range("offset + length", end, 0, max)
}
