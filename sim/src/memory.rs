//! Memory that devices read and write: all unsafe of the simulator.
//!
//! The bytes of a region are behind a lock of their own, because packets carry references to them
//! and are delivered with no lock of a node held. The lock is held for one copy and never while
//! another lock is taken, except a second region's, in the order of their numbers.
//!
//! It is parking_lot's and not the facade's on purpose: nothing that a model checker could switch
//! at happens while it is held.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use smallvec::SmallVec;

/// The bytes of a memory region.
#[derive(Debug)]
pub(crate) struct Region {
    /// Orders the locks of two regions; nothing a run decides or prints depends on it.
    lock_order: u64,
    bytes: RwLock<Bytes>,
}

#[derive(Debug)]
enum Bytes {
    /// The simulator's own.
    Owned(Box<[u8]>),
    /// The caller's, registered by `reg_mr`.
    Caller { addr: *mut u8, length: usize },
    /// Deregistered.
    Gone,
}

// SAFETY: the pointer of `Bytes::Caller` is only used while the region is registered, and the
// caller of `reg_mr` promised that the memory may then be read and written at any time, which
// includes from any thread. Accesses through this type exclude each other by the lock.
unsafe impl Send for Bytes {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Bytes {}

/// The region was deregistered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

static NEXT_LOCK_ORDER: AtomicU64 = AtomicU64::new(0);

impl Region {
    fn new(bytes: Bytes) -> Arc<Self> {
        let lock_order = NEXT_LOCK_ORDER.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            lock_order,
            bytes: RwLock::new(bytes),
        })
    }

    /// Zero bytes of the simulator's own; `None` if there is no memory for them. The machine gives
    /// them when they are first touched, so that a large region costs nothing until it is used.
    pub(crate) fn owned(length: usize) -> Option<Arc<Self>> {
        let layout = Layout::array::<u8>(length).ok()?;
        if length == 0 {
            return Some(Self::new(Bytes::Owned(Box::default())));
        }
        // SAFETY: the layout has a size above zero.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        if start.is_null() {
            return None;
        }
        let bytes = std::ptr::slice_from_raw_parts_mut(start, length);
        // SAFETY: just allocated by the global allocator with the layout of this slice, and zero is
        // a value of its items; nothing else has the pointer.
        Some(Self::new(Bytes::Owned(unsafe { Box::from_raw(bytes) })))
    }

    /// The caller's memory.
    ///
    /// # Safety
    /// Until [`retire`](Self::retire) returned, the memory must be valid for reads, and for writes
    /// if anything is copied to this region, and nothing else may write to bytes that are copied.
    pub(crate) unsafe fn of_caller(addr: *mut u8, length: usize) -> Arc<Self> {
        Self::new(Bytes::Caller { addr, length })
    }

    /// Lets go of the bytes. No copy touches them afterwards.
    pub(crate) fn retire(&self) {
        *self.bytes.write() = Bytes::Gone;
    }

    /// Copies bytes out. The range must lie within the region.
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), Gone> {
        let from = self.bytes.read();
        let from = &from.as_slice()?[offset..offset + into.len()];
        into.copy_from_slice(from);
        Ok(())
    }

    /// Copies bytes in. The range must lie within the region.
    pub(crate) fn write(&self, offset: usize, from: &[u8]) -> Result<(), Gone> {
        let mut into = self.bytes.write();
        into.as_mut_slice()?[offset..offset + from.len()].copy_from_slice(from);
        Ok(())
    }
}

impl Bytes {
    fn as_slice(&self) -> Result<&[u8], Gone> {
        match self {
            Self::Owned(bytes) => Ok(bytes),
            // SAFETY: the region is registered (not `Gone`), so `of_caller`'s promise holds: the
            // memory is valid and nothing else writes what is being copied.
            Self::Caller { addr, length } => unsafe {
                Ok(std::slice::from_raw_parts(*addr, *length))
            },
            Self::Gone => Err(Gone),
        }
    }

    fn as_mut_slice(&mut self) -> Result<&mut [u8], Gone> {
        match self {
            Self::Owned(bytes) => Ok(bytes),
            // SAFETY: as in `as_slice`, and the lock is held for writing. The promise covers
            // writes, since only regions with LOCAL_WRITE are copied to.
            Self::Caller { addr, length } => unsafe {
                Ok(std::slice::from_raw_parts_mut(*addr, *length))
            },
            Self::Gone => Err(Gone),
        }
    }
}

/// A part of a region.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(crate) region: Arc<Region>,
    pub(crate) offset: usize,
    pub(crate) length: usize,
}

/// The target of a copy, part by part.
pub(crate) type Scatter = SmallVec<[Slice; 1]>;

/// What a packet carries: parts of regions, or bytes taken at post time. Nothing is copied until
/// it is delivered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Payload {
    parts: SmallVec<[Part; 1]>,
    length: usize,
}

#[derive(Clone, Debug)]
enum Part {
    Slice(Slice),
    Bytes {
        bytes: Arc<[u8]>,
        offset: usize,
        length: usize,
    },
}

impl Part {
    fn length(&self) -> usize {
        match self {
            Self::Slice(slice) => slice.length,
            Self::Bytes { length, .. } => *length,
        }
    }

    fn part(&self, start: usize, length: usize) -> Self {
        match self {
            Self::Slice(slice) => Self::Slice(slice.part(start, length)),
            Self::Bytes { bytes, offset, .. } => Self::Bytes {
                bytes: bytes.clone(),
                offset: offset + start,
                length,
            },
        }
    }

    fn copy_to(&self, into: &Slice) -> Result<(), Gone> {
        match self {
            Self::Slice(from) => copy(from, into),
            Self::Bytes {
                bytes,
                offset,
                length,
            } => into
                .region
                .write(into.offset, &bytes[*offset..*offset + *length]),
        }
    }
}

impl Slice {
    fn part(&self, start: usize, length: usize) -> Self {
        Self {
            region: self.region.clone(),
            offset: self.offset + start,
            length,
        }
    }
}

impl Payload {
    /// Parts of regions, in order.
    pub(crate) fn gather(slices: Scatter) -> Self {
        let length = slices.iter().map(|slice| slice.length).sum();
        Self {
            parts: slices.into_iter().map(Part::Slice).collect(),
            length,
        }
    }

    /// Bytes taken at post time.
    pub(crate) fn inline(bytes: Arc<[u8]>) -> Self {
        let length = bytes.len();
        let mut parts = SmallVec::new();
        if length > 0 {
            parts.push(Part::Bytes {
                bytes,
                offset: 0,
                length,
            });
        }
        Self { parts, length }
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The bytes from `start`, `length` of them; the range must lie within the payload.
    pub(crate) fn part(&self, start: usize, length: usize) -> Self {
        let mut parts = SmallVec::new();
        let (mut skip, mut left) = (start, length);
        for part in &self.parts {
            if left == 0 {
                break;
            }
            let here = part.length();
            if skip >= here {
                skip -= here;
                continue;
            }
            let take = left.min(here - skip);
            parts.push(part.part(skip, take));
            skip = 0;
            left -= take;
        }
        Self { parts, length }
    }

    /// Copies all of it to the target, which must have the same length.
    pub(crate) fn copy_to(&self, target: &[Slice]) -> Result<(), Gone> {
        if let ([part], [into]) = (&self.parts[..], target)
            && part.length() == into.length
        {
            return part.copy_to(into);
        }
        let mut targets = target.iter();
        let mut into: Option<Slice> = None;
        for part in &self.parts {
            let mut done = 0;
            while done < part.length() {
                let slot = match into.take().filter(|slot| slot.length > 0) {
                    Some(slot) => slot,
                    None => targets.next().expect("the target is long enough").clone(),
                };
                let take = slot.length.min(part.length() - done);
                part.part(done, take).copy_to(&slot.part(0, take))?;
                done += take;
                into = Some(slot.part(take, slot.length - take));
            }
        }
        Ok(())
    }
}

/// Copies `from` to `into`, of the same length; they may overlap.
fn copy(from: &Slice, into: &Slice) -> Result<(), Gone> {
    let (source, target) = (&*from.region, &*into.region);
    if source.lock_order == target.lock_order {
        let mut bytes = target.bytes.write();
        let range = from.offset..from.offset + from.length;
        bytes.as_mut_slice()?.copy_within(range, into.offset);
        return Ok(());
    }
    let (read, mut write) = lock_both(source, target);
    if let (
        Bytes::Caller {
            addr: from_addr, ..
        },
        Bytes::Caller {
            addr: into_addr, ..
        },
    ) = (&*read, &*write)
    {
        // Two registrations may cover the same memory (MR-13), so no references are made here.
        // SAFETY: both regions are registered, so `of_caller`'s promise holds for both, and the
        // ranges lie within them; `ptr::copy` allows overlap.
        unsafe {
            std::ptr::copy(
                from_addr.add(from.offset),
                into_addr.add(into.offset),
                from.length,
            );
        }
        return Ok(());
    }
    let bytes = &read.as_slice()?[from.offset..from.offset + from.length];
    write.as_mut_slice()?[into.offset..into.offset + into.length].copy_from_slice(bytes);
    Ok(())
}

fn lock_both<'a>(
    source: &'a Region,
    target: &'a Region,
) -> (RwLockReadGuard<'a, Bytes>, RwLockWriteGuard<'a, Bytes>) {
    if source.lock_order < target.lock_order {
        let read = source.bytes.read();
        (read, target.bytes.write())
    } else {
        let write = target.bytes.write();
        (source.bytes.read(), write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(region: &Arc<Region>, offset: usize, length: usize) -> Slice {
        Slice {
            region: region.clone(),
            offset,
            length,
        }
    }

    /// WC-35: parts of any sizes add up, whatever the sizes of the target's parts.
    #[test]
    fn scatter_and_gather_cut_at_different_places() {
        let from = Region::owned(100).unwrap();
        let into = Region::owned(100).unwrap();
        let bytes: Vec<u8> = (0..100).collect();
        from.write(0, &bytes).unwrap();
        let payload = Payload::gather(
            [
                slice(&from, 50, 7),
                slice(&from, 0, 20),
                slice(&from, 90, 3),
            ]
            .into_iter()
            .collect(),
        );
        let target = [
            slice(&into, 1, 2),
            slice(&into, 10, 26),
            slice(&into, 80, 2),
        ];
        payload.copy_to(&target).unwrap();
        let mut seen = vec![0; 100];
        into.read(0, &mut seen).unwrap();
        let sent: Vec<u8> = (50..57).chain(0..20).chain(90..93).collect();
        let got: Vec<u8> = [&seen[1..3], &seen[10..36], &seen[80..82]].concat();
        assert_eq!(got, sent);
        assert_eq!(payload.part(5, 10).length, 10);
    }

    #[test]
    fn a_copy_within_one_region_may_overlap() {
        let region = Region::owned(10).unwrap();
        region.write(0, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
        let payload = Payload::gather([slice(&region, 0, 8)].into_iter().collect());
        payload.copy_to(&[slice(&region, 2, 8)]).unwrap();
        let mut seen = [0; 10];
        region.read(0, &mut seen).unwrap();
        assert_eq!(seen, [0, 1, 0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_large_region_costs_nothing_until_it_is_used() {
        assert!(Region::owned(usize::MAX / 2).is_none());
        let region = Region::owned(8 << 30).unwrap();
        region.write((8 << 30) - 1, &[7]).unwrap();
        let mut seen = [0; 2];
        region.read((8 << 30) - 2, &mut seen).unwrap();
        assert_eq!(seen, [0, 7]);
        assert!(Region::owned(0).is_some());
    }

    #[test]
    fn a_retired_region_is_never_touched() {
        let mut memory = [7u8; 16];
        // SAFETY: the array outlives the region's registration, which ends at `retire`.
        let region = unsafe { Region::of_caller(memory.as_mut_ptr(), memory.len()) };
        let owned = Region::owned(16).unwrap();
        let payload = Payload::gather([slice(&region, 0, 16)].into_iter().collect());
        payload.copy_to(&[slice(&owned, 0, 16)]).unwrap();
        region.retire();
        assert_eq!(payload.copy_to(&[slice(&owned, 0, 16)]), Err(Gone));
        assert_eq!(region.write(0, &[0]), Err(Gone));
        let mut seen = [0];
        owned.read(3, &mut seen).unwrap();
        assert_eq!(seen, [7]);
    }
}
