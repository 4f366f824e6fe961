//! Memory that devices read and write. It has almost all unsafe code of the simulator.
//!
//! The nodes of a fabric share one memory, because a packet refers to the bytes of its sender until
//! it is delivered. The memory has a lock of its own, held for one copy. No other lock is taken
//! during that time.
//!
//! A device may place the data of a message [late](late). It is placed before the program may rely
//! on it or reuse its memory (`Device::flush_deferred_writes`), and before a device reads it.
//!
//! The lock is parking_lot's and not the facade's on purpose: a model checker has no reason to
//! switch threads while it is held.
#![allow(unsafe_code)]

mod late;
#[cfg_attr(
    not(all(feature = "fd", target_os = "linux")),
    path = "mapping/none.rs"
)]
mod mapping;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod process;
mod span;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::Range;
use std::sync::Arc;

pub(crate) use late::{Late, Placing};
pub(crate) use mapping::Mapping;
#[cfg(unix)]
pub(crate) use mapping::export;
use parking_lot::Mutex;
pub(crate) use process::is_permitted;
pub(crate) use span::{Gathered, Span, move_bytes};
use verbs_api::ErrorKind;
use verbs_api::table::{Id, Table};

/// The memory that the nodes of a fabric share.
pub(crate) type SharedMemory = Arc<Mutex<Memory>>;

/// The bytes of all regions.
#[derive(Debug)]
pub(crate) struct Memory {
    regions: Table<Region>,
    /// Data that is not placed yet. `None` if nothing is ever late.
    late: Option<Late>,
    /// Whether every region of the caller's memory is [checked](Region::checked).
    pub(crate) checks_mapping: bool,
    /// Whether there was a checked region.
    has_checked: bool,
}

#[derive(Debug)]
struct Region {
    /// The number of users.
    users: u32,
    /// Its bytes. `None` for endless zeros, where writes are discarded.
    span: Option<Span>,
    /// Whether copies may fail, so that memory that is not mapped is an error and not a crash. The
    /// kernel copies what is not the allocator's.
    checked: bool,
    /// Whether its memory was taken away: the simulator's unmapped, or that of an exporter
    /// withdrawn.
    gone: bool,
    own: Own,
}

/// Memory that goes with its region.
#[derive(Debug)]
#[expect(dead_code, reason = "its memory is only dropped")]
enum Own {
    /// The memory is not the simulator's.
    Nothing,
    Block(Block),
    Mapping(Mapping),
}

/// Why a descriptor cannot be mapped: the kind of error, the argument, and what is wrong with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoMapping(
    pub(crate) ErrorKind,
    pub(crate) &'static str,
    pub(crate) &'static str,
);

/// Names a region. A removed region is never confused with a later one.
pub(crate) type RegionId = Id;

/// Memory of the allocator.
#[derive(Debug)]
struct Block {
    first: *mut u8,
    layout: Layout,
}

// SAFETY: nothing else has the pointer, and any thread may return a block to the allocator.
unsafe impl Send for Block {}

impl Drop for Block {
    #[cfg_attr(any(), mutants::skip)] // cost
    fn drop(&mut self) {
        // SAFETY: `first` came from the allocator with this layout, and its region was removed.
        unsafe { dealloc(self.first, self.layout) };
    }
}

/// Why bytes cannot be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// Their region was deregistered.
    Deregistered,
    /// The caller has unmapped some of them, or removed the permission, or their exporter has
    /// withdrawn them. Detected only where mapping is checked.
    Unmapped(Slice),
}

/// Owned regions start on a cache line. Some machines copy many times slower if the target's offset
/// in its page is a few bytes greater than the source's.
const ALIGNMENT: usize = 64;
/// No system has smaller pages.
const PAGE: usize = 4096;

impl Memory {
    /// A memory without regions.
    pub(crate) fn new(late: Option<Late>) -> Self {
        Self {
            // No key is made from these indices, so a slot may be used again at once.
            regions: Table::without_quarantine(),
            late,
            checks_mapping: false,
            has_checked: false,
        }
    }

    /// Adds a region of zeros, owned by the simulator. `None` if the machine has too little
    /// memory. The system provides the memory on first use, so a large region costs nothing until
    /// then. If `checked`, it can be [unmapped](Self::map).
    pub(crate) fn add_owned(&mut self, length: usize, checked: bool) -> Option<RegionId> {
        let (span, own) = zeros(length)?;
        Some(self.add(Some(span), checked, own))
    }

    /// Adds a region of the caller's memory. If `checked`, some of it may be unmapped.
    ///
    /// # Safety
    /// Until [`remove`](Self::remove) has returned, the memory must be valid for reads, and for
    /// writes if anything is copied to this region. Nothing else may write to bytes that are being
    /// copied. Memory of a checked region need not be mapped.
    pub(crate) unsafe fn add_of_caller(
        &mut self,
        addr: *mut u8,
        length: usize,
        checked: bool,
    ) -> RegionId {
        let start = addr;
        let checked = checked || self.checks_mapping;
        self.add(Some(Span { start, length }), checked, Own::Nothing)
    }

    /// Adds a region of a file. Another process may shorten the file.
    pub(crate) fn add_mapped(&mut self, mapping: Mapping) -> RegionId {
        let (span, checked) = (mapping.span(), mapping.is_checked());
        self.add(Some(span), checked, Own::Mapping(mapping))
    }

    /// Takes the memory of a region away, which stays.
    pub(crate) fn withdraw(&mut self, region: RegionId) {
        self.settle_region(region);
        if let Some(found) = self.regions.live_mut(region.index, region.generation) {
            (found.gone, found.checked) = (true, true);
            self.has_checked = true;
        }
    }

    /// Adds a null region.
    pub(crate) fn add_null(&mut self) -> RegionId {
        self.add(None, false, Own::Nothing)
    }

    /// Adds a user to a region, which stays until all users have removed it.
    pub(crate) fn share(&mut self, region: RegionId) {
        if let Some(found) = self.regions.live_mut(region.index, region.generation) {
            found.users += 1;
        }
    }

    fn add(&mut self, span: Option<Span>, checked: bool, own: Own) -> RegionId {
        self.has_checked |= checked;
        self.regions.insert(|_| Region {
            users: 1,
            span,
            checked,
            gone: false,
            own,
        })
    }

    /// Takes away the memory of a checked region that the simulator owns, or gives it zeros. `None`
    /// if the machine has too little memory.
    pub(crate) fn map(&mut self, region: RegionId, mapped: bool) -> Option<()> {
        self.settle_region(region);
        let found = self.regions.live_mut(region.index, region.generation)?;
        if let Some(all) = found.span.filter(|_| mapped) {
            let (span, own) = zeros(all.length)?;
            (found.span, found.own) = (Some(span), own);
        }
        found.gone = !mapped;
        Some(())
    }

    /// Removes a user from a region. After the last removal no copy touches its bytes.
    pub(crate) fn remove(&mut self, region: RegionId) {
        self.settle_region(region);
        if let Some(found) = self.regions.live_mut(region.index, region.generation) {
            found.users -= 1;
            if found.users == 0 {
                self.regions.remove(region.index);
            }
        }
    }

    /// Copies a part of a region to a buffer of its length, without placing late data.
    pub(crate) fn peek(&self, from: &Slice, into: &mut [u8]) -> Result<(), Gone> {
        match self.span(from)? {
            Some(source) if self.asks_kernel(from.region) => {
                process::read(source, into).map_err(|_| Gone::Unmapped(*from))?;
            }
            // SAFETY: the span belongs to a region that exists.
            Some(source) => unsafe { source.copy_to(Span::of(into)) },
            None => into.fill(0),
        }
        Ok(())
    }

    /// Makes the pages of a slice present. Those of a whole process cannot all be, so they are left
    /// as they are.
    pub(crate) fn fault_in(&self, slice: &Slice) -> Result<(), Gone> {
        self.span(slice)?;
        if !self.asks_kernel(slice.region) || slice.length == usize::MAX {
            return Ok(());
        }
        // One byte of each page is enough.
        let last = slice.length.checked_sub(1);
        for at in (0..slice.length).step_by(PAGE).chain(last) {
            self.peek(&slice.part(at, 1), &mut [0])?;
        }
        Ok(())
    }

    /// Copies a part of a region to a buffer of its length.
    pub(crate) fn read(&mut self, from: &Slice, into: &mut [u8]) -> Result<(), Gone> {
        self.settle_region(from.region);
        self.peek(from, into)
    }

    /// Copies bytes to a part of a region, which has their length.
    pub(crate) fn write(&mut self, into: &Slice, from: &[u8]) -> Result<(), Gone> {
        self.settle_region(into.region);
        self.put(into, from)
    }

    /// Copies bytes to a part of a region, without placing late data first.
    fn put(&mut self, into: &Slice, from: &[u8]) -> Result<(), Gone> {
        if let Some(target) = self.span(into)? {
            if self.asks_kernel(into.region) {
                return process::write(from, target).map_err(|_| Gone::Unmapped(*into));
            }
            let from = Span::of_shared(from);
            // SAFETY: the span belongs to a region that exists; the source is only read.
            unsafe { from.copy_to(target) };
        }
        Ok(())
    }

    /// Copies `from` to `into`. They may overlap.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn copy(&mut self, from: &Slice, into: &Slice) -> Result<(), Gone> {
        if self.checks(from.region) || self.checks(into.region) {
            let mut bytes = vec![0; from.length];
            self.peek(from, &mut bytes)?;
            return self.put(into, &bytes);
        }
        match (self.span(from)?, self.span(into)?) {
            // SAFETY: both spans belong to regions that exist.
            (Some(source), Some(target)) => unsafe { source.copy_to(target) },
            (None, Some(_)) => self.put(into, &vec![0; into.length])?,
            (_, None) => {}
        }
        Ok(())
    }

    /// Whether some of these bytes may be gone.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn may_be_gone(&self, slices: &[Slice]) -> bool {
        slices.iter().any(|slice| self.checks(slice.region))
    }

    /// Whether copies of a region's bytes can fail.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn checks(&self, region: RegionId) -> bool {
        self.checked(region).is_some()
    }

    /// Whether the kernel copies the bytes of a region: those of the caller or of a file, if that
    /// is checked.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn asks_kernel(&self, region: RegionId) -> bool {
        let found = self.checked(region);
        found.is_some_and(|found| !matches!(found.own, Own::Block(_)))
    }

    /// A region, if it is checked.
    #[inline]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn checked(&self, region: RegionId) -> Option<&Region> {
        // Most programs have none, and need no search for each copy.
        if !self.has_checked {
            return None;
        }
        let found = self.regions.peek(region.index);
        found.filter(|found| found.checked)
    }

    /// All bytes of a region. `None` for a null region, and for one whose memory may be gone. They
    /// are valid while the region exists.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn whole(&self, region: RegionId) -> Option<Span> {
        let found = self.regions.peek(region.index)?;
        found.span.filter(|_| !found.checked)
    }

    /// The bytes of a slice for a plain copy. `None` like [`whole`](Self::whole).
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn plain_span(&self, slice: &Slice) -> Option<Span> {
        let Slice {
            region,
            offset,
            length,
            ..
        } = *slice;
        let found = self.regions.get(region.index, region.generation).ok()?;
        let whole = found.span.filter(|_| !found.checked)?;
        Some(whole.part(offset, length))
    }

    /// Copies slices, in order, to others of the same total length.
    #[inline]
    pub(crate) fn copy_all(&mut self, from: &[Slice], into: &[Slice]) -> Result<(), Gone> {
        if let ([from], [into]) = (from, into) {
            return self.copy(from, into);
        }
        let Some(first) = into.first() else {
            return Ok(());
        };
        let mut targets = into.iter();
        let mut into = first.part(0, 0);
        for from in from {
            let mut done = 0;
            while done < from.length {
                if into.length == 0 {
                    into = *targets.next().expect("both have the same length");
                    continue;
                }
                let now = into.length.min(from.length - done);
                self.copy(&from.part(done, now), &into.part(0, now))?;
                into = into.part(now, into.length - now);
                done += now;
            }
        }
        Ok(())
    }

    /// Copies bytes into slices of the same total length.
    pub(crate) fn write_all(&mut self, bytes: &[u8], into: &[Slice]) -> Result<(), Gone> {
        let mut rest = bytes;
        for into in into {
            let (now, later) = rest.split_at(into.length);
            self.write(into, now)?;
            rest = later;
        }
        Ok(())
    }

    /// The bytes of a slice. `None` for a null region. Each access goes
    /// through a span, and [`Span::part`] checks the range.
    #[inline]
    fn span(&self, slice: &Slice) -> Result<Option<Span>, Gone> {
        let Slice { region, offset, .. } = *slice;
        let found = self.regions.get(region.index, region.generation);
        let found = found.map_err(|_| Gone::Deregistered)?;
        if found.gone {
            return Err(Gone::Unmapped(*slice));
        }
        Ok(found.span.map(|whole| whole.part(offset, slice.length)))
    }
}

/// Zeros of the allocator, which touches them at their first use only.
fn zeros(length: usize) -> Option<(Span, Own)> {
    // The allocator would touch aligned memory to clear it.
    let layout = Layout::array::<u8>(length.checked_add(ALIGNMENT)?).ok()?;
    // SAFETY: the layout has a size above zero.
    let first = unsafe { alloc_zeroed(layout) };
    if first.is_null() {
        return None;
    }
    let before = first.align_offset(ALIGNMENT).min(ALIGNMENT);
    let start = first.wrapping_add(before);
    Some((Span { start, length }, Own::Block(Block { first, layout })))
}

/// A part of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) region: RegionId,
    pub(crate) offset: usize,
    pub(crate) length: usize,
    /// Whether data may be placed there in any order.
    pub(crate) is_relaxed: bool,
}

impl Slice {
    pub(crate) fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.length
    }

    fn overlaps(&self, other: &Self) -> bool {
        let (own, other_range) = (self.range(), other.range());
        self.region == other.region && own.start < other_range.end && other_range.start < own.end
    }

    pub(crate) fn part(&self, start: usize, length: usize) -> Self {
        let offset = self.offset + start;
        Self {
            offset,
            length,
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use verbs_api::{Context, Qp};

    use super::*;
    use crate::packet::payload::{Payload, Scatter};

    impl Memory {
        /// The first bytes of all regions.
        pub(crate) fn all_bytes(&self) -> Vec<u8> {
            const MOST: usize = 4096;
            let mut all = Vec::new();
            for span in self.regions.iter().filter_map(|(_, region)| region.span) {
                let length = span.length.min(MOST);
                let mut bytes = vec![0; length];
                // SAFETY: the region exists and has at least this length.
                unsafe { span.part(0, length).copy_to(Span::of(&mut bytes)) };
                all.extend(bytes);
            }
            all
        }
    }

    /// Each is of one message.
    const OF_ONE: Placing = Placing {
        qp: Qp::from_parts(Context::from_parts(0, 0), 0, 0),
        starts: true,
    };

    fn slice(region: RegionId, offset: usize, length: usize) -> Slice {
        Slice {
            region,
            offset,
            length,
            is_relaxed: false,
        }
    }

    fn payload(slices: &[Slice]) -> Payload {
        Payload::Slices(Scatter::Many(slices.into()))
    }

    fn shared(memory: Memory) -> SharedMemory {
        Arc::new(Mutex::new(memory))
    }

    /// WC-35: parts of any sizes add up, whatever the sizes of the target's parts.
    #[test]
    fn scatter_and_gather_cut_at_different_places() {
        let mut memory = Memory::new(None);
        let from = memory.add_owned(100, false).unwrap();
        let into = memory.add_owned(100, false).unwrap();
        let bytes: Vec<u8> = (0..100).collect();
        memory.write(&slice(from, 0, 100), &bytes).unwrap();
        let memory = shared(memory);
        let gathered = payload(&[slice(from, 50, 7), slice(from, 0, 20), slice(from, 90, 3)]);
        let sent: Vec<u8> = (50..57).chain(0..20).chain(90..93).collect();
        let target = [slice(into, 1, 2), slice(into, 10, 26), slice(into, 80, 2)];
        for payload in [gathered, Payload::inline(sent.clone().into())] {
            let all = slice(into, 0, 100);
            memory.lock().write(&all, &[0; 100]).unwrap();
            payload.copy_to(&memory, &target, OF_ONE).unwrap();
            let mut seen = vec![0; 100];
            memory.lock().read(&all, &mut seen).unwrap();
            let got: Vec<u8> = [&seen[1..3], &seen[10..36], &seen[80..82]].concat();
            assert_eq!(got, sent);
            let part = payload.part(5, 10);
            assert_eq!(part.len(), 10);
            part.copy_to(&memory, &[slice(into, 0, 10)], OF_ONE)
                .unwrap();
            memory.lock().read(&all, &mut seen).unwrap();
            assert_eq!(seen[..10], sent[5..15]);
        }
    }

    #[test]
    fn a_copy_within_one_region_may_overlap() {
        let mut memory = Memory::new(None);
        let region = memory.add_owned(10, false).unwrap();
        let bytes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        memory.write(&slice(region, 0, 10), &bytes).unwrap();
        let memory = shared(memory);
        payload(&[slice(region, 0, 8)])
            .copy_to(&memory, &[slice(region, 2, 8)], OF_ONE)
            .unwrap();
        let mut seen = [0; 10];
        let all = slice(region, 0, 10);
        memory.lock().read(&all, &mut seen).unwrap();
        assert_eq!(seen, [0, 1, 0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_large_region_costs_nothing_until_it_is_used() {
        let mut memory = Memory::new(None);
        assert!(memory.add_owned(usize::MAX, false).is_none());
        assert!(memory.add_owned(usize::MAX / 2, false).is_none());
        // The layout is valid, but no machine has the memory. Miri would end here.
        if !cfg!(miri) {
            assert!(memory.add_owned(1 << 62, false).is_none());
        }
        let region = memory.add_owned(8 << 30, false).unwrap();
        memory
            .write(&slice(region, (8 << 30) - 1, 1), &[7])
            .unwrap();
        let mut seen = [0; 2];
        let last = slice(region, (8 << 30) - 2, 2);
        memory.read(&last, &mut seen).unwrap();
        assert_eq!(seen, [0, 7]);
        let none = memory.add_owned(0, false).unwrap();
        assert_eq!(memory.read(&slice(none, 0, 0), &mut []), Ok(()));
    }

    #[test]
    fn a_removed_region_is_never_touched() {
        let mut bytes = [7u8; 16];
        let mut memory = Memory::new(None);
        // SAFETY: the array outlives the region, which ends at `remove`.
        let region = unsafe { memory.add_of_caller(bytes.as_mut_ptr(), bytes.len(), false) };
        let owned = memory.add_owned(16, false).unwrap();
        let memory = shared(memory);
        let (there, here) = (slice(region, 0, 16), slice(owned, 0, 16));
        payload(&[there]).copy_to(&memory, &[here], OF_ONE).unwrap();
        memory.lock().remove(region);
        for is_slot_used_again in [false, true] {
            if is_slot_used_again {
                let next = memory.lock().add_owned(16, false).unwrap();
                assert_eq!(next.index, region.index);
            }
            assert_eq!(
                payload(&[there]).copy_to(&memory, &[here], OF_ONE),
                Err(Gone::Deregistered)
            );
            assert_eq!(
                payload(&[here]).copy_to(&memory, &[there], OF_ONE),
                Err(Gone::Deregistered)
            );
            assert_eq!(
                payload(&[there]).copy_to(&memory, &[there], OF_ONE),
                Err(Gone::Deregistered)
            );
            assert_eq!(
                memory.lock().write(&there.part(0, 1), &[0]),
                Err(Gone::Deregistered)
            );
        }
        let mut seen = [0];
        memory.lock().read(&here.part(3, 1), &mut seen).unwrap();
        assert_eq!(seen, [7]);
    }
}
