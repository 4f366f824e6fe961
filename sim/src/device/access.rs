//! Access to memory: the bytes that scatter/gather lists and remote addresses name.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use verbs_api::behavior::Check;
use verbs_api::{Access, Remote, SelectivityLevel, Sge};

use super::base::Base;
use super::domain::{Domains, Peer};
use super::key::{Regions, is_window_key};
use super::region::{Mr, ProtectionFault, RKEY};
use crate::memory::{Gathered, Slice, Span};
use crate::packet::payload::Scatter;
use crate::packet::{Flush, Reth};

/// The access flags that a registration accepts.
pub(super) const KNOWN: Access = Access::ALL_RDMA
    .union(Access::REMOTE_ATOMIC)
    .union(Access::MW_BIND)
    .union(Access::ZERO_BASED)
    .union(Access::ON_DEMAND)
    .union(Access::HUGETLB);

/// The first bytes of a scatter/gather list.
#[derive(Clone, Copy)]
pub(crate) struct FirstBytes<'a> {
    list: &'a [Sge],
    length: u64,
}

impl<'a> FirstBytes<'a> {
    pub(crate) fn new(list: &'a [Sge], length: impl Into<u64>) -> Self {
        let length = length.into();
        Self { list, length }
    }
}

impl Domains {
    /// The part of a region that the peer of a queue pair names (RDMA-03, -05, -06, -07).
    pub(crate) fn touch_remote(
        &self,
        base: &Base,
        peer: Peer,
        rkey: u32,
        addr: u64,
        length: u64,
        need: Access,
    ) -> Result<Slice, ProtectionFault> {
        let pd = peer.pd.ok_or(ProtectionFault::Key)?;
        // The bits of a key tell windows from regions, so no table is searched twice.
        if is_window_key(rkey) {
            return self.touch_window(base, peer, rkey, addr, length, need);
        }
        let mr = self.regions.of_rkey(rkey).ok_or(ProtectionFault::Key)?;
        peer.check_pages(mr, need)?;
        mr.slice(pd, addr, length, need)
    }

    /// The address and the length of the bytes that a flush is for (MPE-05).
    pub(crate) fn flushed(&self, flush: &Flush) -> (u64, u64) {
        let Reth { va, rkey, length } = flush.reth;
        let whole = match flush.level {
            SelectivityLevel::Range => None,
            SelectivityLevel::Mr if is_window_key(rkey) => self.shown_by(rkey),
            SelectivityLevel::Mr => {
                let mr = self.regions.of_rkey(rkey);
                mr.map(|mr| (mr.attr.addr, mr.attr.length))
            }
        };
        // A key that names nothing is refused, whatever the bytes are.
        whole.unwrap_or((va, length.into()))
    }

    /// Copies the bytes of an inline work request when it is posted. Its lkeys are not checked
    /// (SQ-08), but the addresses must be in some region, since the simulator has no other memory.
    pub(crate) fn take_inline(
        &self,
        list: &[Sge],
        into: &mut Vec<u8>,
    ) -> Result<(), ProtectionFault> {
        let length: usize = list.iter().map(|sge| sge.length as usize).sum();
        into.resize(length, 0);
        let mut rest = &mut into[..];
        for sge in list.iter().filter(|sge| sge.length > 0) {
            let (now, later) = rest.split_at_mut(sge.length as usize);
            let part = |mr: &Mr| mr.part(sge.addr, sge.length.into()).ok();
            // The region of the lkey is preferred, since regions may overlap.
            let by_key = self.regions.of_key(sge.lkey).into_iter();
            let all = by_key.chain(self.regions.table.iter().map(|(_, mr)| mr));
            // The simulator has no other memory to read the bytes from. Where a region covers
            // addresses without memory, another one may have it.
            let mut parts = all.filter_map(part);
            let is_read = parts.any(|from| self.memory.lock().read(&from, now).is_ok());
            if !is_read {
                return Err(ProtectionFault::Range);
            }
            rest = later;
        }
        Ok(())
    }

    /// The bytes that the peer of a queue pair names, like [`touch_remote`](Self::touch_remote).
    /// None also if each copy of them is checked.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn remote_span(
        &self,
        base: &Base,
        peer: Peer,
        place: Remote,
        length: u32,
        need: Access,
    ) -> Option<Span> {
        let Remote { addr, rkey } = place;
        // Regions come first: windows need more checks and are rarer.
        if let Some(mr) = self.regions.of_rkey(rkey) {
            return mr.span(peer.pd?, addr, length, need);
        }
        let slice = self.touch_remote(base, peer, rkey, addr, length.into(), need);
        self.memory.lock().plain_span(&slice.ok()?)
    }

    /// Whether some of these bytes may be gone. They are then copied when work starts, because only
    /// that end of the work can fail.
    #[inline]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn may_be_gone(&self, slices: &[Slice]) -> bool {
        self.regions.checks && self.memory.lock().may_be_gone(slices)
    }
}

impl Regions {
    /// The region of an rkey.
    #[inline(always)]
    pub(crate) fn of_rkey(&self, rkey: u32) -> Option<&Mr> {
        let mr = self.of_key(rkey & !RKEY)?;
        (mr.attr.rkey == rkey).then_some(mr)
    }

    /// The keys and addresses that name these bytes of a region's memory.
    pub(crate) fn places_of(
        &self,
        of: &Mr,
        bytes: &Range<u64>,
    ) -> SmallVec<[(u32, Range<u64>); 1]> {
        // Memory of one region only has one name, so no search is needed.
        if of.only_domain().is_some() {
            return SmallVec::from_iter([of.place(bytes)]);
        }
        let all = self.table.iter().map(|(_, mr)| mr);
        let same = all.filter(|mr| mr.shares_memory(of));
        same.map(|mr| mr.place(bytes)).collect()
    }

    /// Whether a list names one of these bytes of a region's memory.
    pub(crate) fn names(&self, list: &[Sge], of: &Mr, bytes: &Range<u64>) -> bool {
        list.iter().filter(|sge| sge.length > 0).any(|sge| {
            let named = self.of_key(sge.lkey);
            // Keys of other regions may name the same memory.
            let Some(mr) = named.filter(|mr| mr.shares_memory(of)) else {
                return false;
            };
            let start = sge.addr.wrapping_sub(mr.attr.addr);
            let named = mr.bytes(start..start.saturating_add(sge.length.into()));
            named.start < bytes.end && bytes.start < named.end
        })
    }
}

#[cfg_attr(any(), mutants::skip)] // texts
impl Regions {
    /// Whether two lists name a common byte. Several regions may have the same memory.
    pub(crate) fn overlap(&self, one: FirstBytes<'_>, other: FirstBytes<'_>) -> bool {
        self.memory_of(one).any(|bytes| {
            let mut others = self.memory_of(other);
            others.any(|other| bytes.start < other.end && other.start < bytes.end)
        })
    }

    /// The addresses of the memory that a list names.
    fn memory_of<'a>(&'a self, named: FirstBytes<'a>) -> impl Iterator<Item = Range<u64>> + 'a {
        let mut left = named.length;
        let bytes = named.list.iter().filter_map(move |sge| {
            let length = left.min(sge.length.into());
            left -= length;
            let start = match self.of_key(sge.lkey) {
                Some(mr) if mr.range(sge.addr, length).is_some() => mr.memory_at(sge.addr)?,
                // Inline data needs no key, and its address is that of the memory.
                _ => sge.addr,
            };
            Some(start..start.saturating_add(length))
        });
        bytes.filter(|bytes| !bytes.is_empty())
    }
}

#[cfg_attr(any(), mutants::skip)] // the suite does not reach it
impl Regions {
    #[inline(always)]
    fn span(&self, as_of: Option<(u32, Access)>, sge: &Sge, length: u32) -> Option<Span> {
        let mr = self.of_key(sge.lkey)?;
        match as_of {
            Some((pd, need)) => mr.span(pd, sge.addr, length, need),
            None => mr.any_span(sge.addr, length),
        }
    }

    /// The first `length` bytes of a list. None if the access is not allowed, or if some bytes are
    /// in a null region. `as_of` is the protection domain and the access of the work. It is `None`
    /// for inline data, which needs no rights (SQ-08).
    #[inline(always)]
    pub(crate) fn spans(
        &self,
        as_of: Option<(u32, Access)>,
        list: &[Sge],
        length: u32,
        parts: &mut Vec<Span>,
    ) -> Option<Gathered> {
        // Almost all lists have one entry, which needs no list of parts.
        if let ([sge], true) = (list, length > 0) {
            return (length <= sge.length)
                .then(|| self.span(as_of, sge, length))?
                .map(Gathered::One);
        }
        parts.clear();
        let mut left = length;
        for sge in list {
            let now = left.min(sge.length);
            if now > 0 {
                parts.push(self.span(as_of, sge, now)?);
                left -= now;
            }
        }
        (left == 0).then_some(Gathered::Parts)
    }
}

/// Checks the keys of entries with no bytes, on a device that does so (SQ-23).
pub(crate) fn check_empty(
    mrs: &Regions,
    unknown: Check,
    pd: u32,
    list: &[Sge],
) -> Result<(), ProtectionFault> {
    let is_good = |sge: &Sge| mrs.of_key(sge.lkey).is_some_and(|mr| mr.pd == pd);
    if unknown == Check::Refused && !list.iter().all(|sge| sge.length > 0 || is_good(sge)) {
        return Err(ProtectionFault::Key);
    }
    Ok(())
}

/// The parts of regions that `length` bytes from `start` of a scatter/gather list touch (SQ-22,
/// RQ-07). Only these are checked. An entry of length 0 may name anything (SQ-23), and a receive
/// may be larger than its region (RQ-08).
#[inline(always)]
pub(crate) fn touch(
    mrs: &Regions,
    pd: u32,
    list: &[Sge],
    start: u64,
    length: u64,
    need: Access,
) -> Result<Scatter, ProtectionFault> {
    if length == 0 {
        return Ok(Scatter::Nothing);
    }
    // One entry is the common case, and allocates nothing.
    let [sge] = list else {
        return touch_each(mrs, pd, list, start, length, need).map(Scatter::Many);
    };
    let end = start.checked_add(length).ok_or(ProtectionFault::Range)?;
    let addr = sge.addr.checked_add(start).ok_or(ProtectionFault::Range)?;
    if end > u64::from(sge.length) {
        return Err(ProtectionFault::Range);
    }
    let mr = mrs.of_key(sge.lkey).ok_or(ProtectionFault::Key)?;
    mr.slice(pd, addr, length, need).map(Scatter::One)
}

#[inline(never)]
fn touch_each(
    mrs: &Regions,
    pd: u32,
    list: &[Sge],
    start: u64,
    length: u64,
    need: Access,
) -> Result<Arc<[Slice]>, ProtectionFault> {
    let mut slices = Vec::new();
    let (mut skip, mut left) = (start, length);
    for sge in list {
        if left == 0 {
            break;
        }
        let here = u64::from(sge.length);
        // Earlier packets of the message filled this entry.
        if skip >= here {
            skip -= here;
            continue;
        }
        let take = left.min(here - skip);
        let addr = sge.addr.checked_add(skip).ok_or(ProtectionFault::Range)?;
        let mr = mrs.of_key(sge.lkey).ok_or(ProtectionFault::Key)?;
        slices.push(mr.slice(pd, addr, take, need)?);
        skip = 0;
        left -= take;
    }
    match left {
        0 => Ok(slices.into()),
        _ => Err(ProtectionFault::Range),
    }
}
