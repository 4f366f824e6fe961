//! The bytes of regions and device memories: what they must be, and which may change.
//!
//! A byte may change while posted work may write it: receives, the lists of reads and atomics, and
//! whatever a write or an atomic of any QP has named. The bytes of work that is over are taken as
//! they are the next time somebody reads them, and must then stay. What peers write is never known
//! to be over, since data may be placed late; there it may always change.

use core::fmt;
use core::iter::zip;
use core::ops::Range;
use smallvec::SmallVec;
use verbs_api::{Access, Context, Dm, Handle, Mr, MrAttr, MrInit, MrMemory, Remote, Sge};

use super::atomics::{Add, Counters, value_at};
use super::map::Map;
use super::ranges::Ranges;

/// A device, by number.
pub(crate) type Device = usize;

/// All regions that a backend owns the memory of, and all device memories.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    regions: Regions,
    dms: Map<Dm, u64>,
    bytes: Map<u64, Bytes>,
    next: u64,
    /// What writes and atomics have named, by key.
    targets: Map<u32, Ranges>,
}

/// Regions, and which of them keys name.
#[derive(Debug, Default)]
struct Regions {
    all: Map<Mr, Region>,
    by_lkey: Map<(Device, u32), SmallVec<[Mr; 1]>>,
    by_rkey: Map<u32, SmallVec<[Mr; 1]>>,
}

#[derive(Clone, Debug)]
struct Region {
    device: Device,
    /// Its memory, and where in it the region starts.
    bytes: u64,
    start: u64,
    attr: MrAttr,
    live: bool,
    /// A window was bound to it, so that it is reached with other keys.
    windows: bool,
    /// A window that has addresses of its own.
    zero_based_windows: bool,
}

/// Memory that regions share.
#[derive(Debug, Default)]
struct Bytes {
    known: Vec<u8>,
    /// Work has ended that may have changed them.
    loose: Ranges,
    counters: Counters,
}

/// What programs read bytes of, and write them to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Readable {
    Mr(Mr),
    Dm(Dm),
}

impl fmt::Display for Readable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mr(mr) => mr.fmt(f),
            Self::Dm(dm) => dm.fmt(f),
        }
    }
}

impl Memory {
    /// A region was made. `attr` is what it got.
    pub(crate) fn made(&mut self, mr: Mr, device: Device, attr: MrAttr, init: &MrInit) {
        let (bytes, start) = match init.memory {
            MrMemory::New | MrMemory::ReadOnly => match self.fresh(attr.length) {
                Some(bytes) => (bytes, 0),
                None => return,
            },
            MrMemory::Of(other, offset) => match self.regions.all.get(&other) {
                Some(other) => (other.bytes, other.start + offset as u64),
                None => return,
            },
            _ => return,
        };
        self.regions
            .enter(mr, Region::new(device, bytes, start, attr));
    }

    /// A device memory was made. What it holds at first is open.
    pub(crate) fn made_dm(&mut self, dm: Dm, length: u64) {
        let Some(id) = self.fresh(length) else { return };
        if let Some(bytes) = self.bytes.get_mut(&id) {
            bytes.loose.add(0..length);
        }
        self.dms.insert(dm, id);
    }

    /// A region of a device memory was made, from `start` on.
    pub(crate) fn made_of_dm(&mut self, mr: Mr, device: Device, attr: MrAttr, dm: Dm, start: u64) {
        if let Some(bytes) = self.dms.get(&dm) {
            let region = Region::new(device, *bytes, start, attr);
            self.regions.enter(mr, region);
        }
    }

    /// A region was changed. `attr` is what it has now, and `new_bytes` says whether it has other
    /// memory; without `attr` it is not followed any more.
    pub(crate) fn changed(&mut self, mr: Mr, attr: Option<MrAttr>, new_bytes: bool) {
        let Some(old) = self.regions.all.get(&mr).cloned() else {
            return;
        };
        self.regions.remove(mr);
        let Some(attr) = attr else { return };
        let (bytes, start) = if new_bytes {
            match self.fresh(attr.length) {
                Some(bytes) => (bytes, 0),
                None => return,
            }
        } else {
            (old.bytes, old.start)
        };
        if !self.bytes.contains_key(&bytes) {
            return;
        }
        let region = Region {
            bytes,
            start,
            attr,
            ..old
        };
        self.regions.enter(mr, region);
    }

    /// A region was deregistered. Others may still show the effects of work through it.
    pub(crate) fn gone(&mut self, mr: Mr) {
        let Some(region) = self.regions.all.get_mut(&mr) else {
            return;
        };
        region.live = false;
        let bytes = region.bytes;
        self.unused(bytes);
    }

    /// A device memory was freed.
    pub(crate) fn gone_dm(&mut self, dm: Dm) {
        if let Some(bytes) = self.dms.remove(&dm) {
            self.unused(bytes);
        }
    }

    /// Forgets memory that nothing live has.
    fn unused(&mut self, bytes: u64) {
        let of_bytes = |region: &Region| region.bytes == bytes;
        let shared = self
            .regions
            .all
            .values()
            .any(|region| of_bytes(region) && region.live);
        if !shared && self.dms.values().all(|of| *of != bytes) {
            let all = self.regions.all.iter();
            let dead: SmallVec<[Mr; 1]> = all
                .filter(|(_, r)| of_bytes(r))
                .map(|(mr, _)| *mr)
                .collect();
            for mr in dead {
                self.regions.remove(mr);
            }
            self.bytes.remove(&bytes);
        }
    }

    /// A context was closed, with all its regions.
    pub(crate) fn closed(&mut self, context: Context) {
        let all = self.regions.all.keys();
        let gone: Vec<Mr> = all.filter(|mr| mr.context() == context).copied().collect();
        for mr in gone {
            self.gone(mr);
        }
        let all = self.dms.keys();
        let gone: Vec<Dm> = all.filter(|dm| dm.context() == context).copied().collect();
        for dm in gone {
            self.gone_dm(dm);
        }
    }

    /// A window will be bound to a region.
    pub(crate) fn bound(&mut self, mr: Mr, access: Access) {
        if let Some(region) = self.regions.all.get_mut(&mr) {
            region.windows = true;
            region.zero_based_windows |= access.contains(Access::ZERO_BASED);
            if let Some(bytes) = self.bytes.get_mut(&region.bytes) {
                bytes.counters.forget(&(0..u64::MAX));
            }
        }
    }

    /// Work that may write these bytes was posted.
    pub(crate) fn local(&mut self, device: Device, writes: &[Sge]) {
        for (bytes, range) in self.regions.resolve(device, writes) {
            if let Some(bytes) = self.bytes.get_mut(&bytes) {
                bytes.counters.forget(&range);
            }
        }
    }

    /// Work that may have written these bytes is over; it wrote no more than the first `most` of
    /// them.
    pub(crate) fn released(&mut self, device: Device, writes: &[Sge], mut most: u64) {
        for sge in writes {
            let length = u64::from(sge.length).min(most);
            most -= length;
            let Ok(length) = u32::try_from(length) else {
                continue;
            };
            let written = Sge { length, ..*sge };
            for (bytes, range) in self.regions.resolve(device, &[written]) {
                if let Some(bytes) = self.bytes.get_mut(&bytes) {
                    bytes.loose.add(range);
                }
            }
        }
    }

    /// A write, or an atomic other than fetch-and-add, was posted.
    pub(crate) fn remote(&mut self, remote: Remote, length: u64) {
        let range = remote.addr..remote.addr.saturating_add(length);
        for (bytes, range) in self.regions.named(None, remote.rkey, &range) {
            if let Some(bytes) = self.bytes.get_mut(&bytes) {
                bytes.counters.forget(&range);
            }
        }
        self.targets.or_default(remote.rkey).add(range);
    }

    /// A fetch-and-add was posted to `peer`, if that is known. `work` is what is outstanding.
    pub(crate) fn add(
        &mut self,
        peer: Option<Device>,
        remote: Remote,
        add: u64,
        work: impl Iterator<Item = (Device, Sge)>,
    ) -> Option<Add> {
        let addresses = remote.addr..remote.addr.saturating_add(8);
        let named = |device| self.regions.named(device, remote.rkey, &addresses);
        let at_peer: Vec<_> = peer
            .into_iter()
            .flat_map(|peer| named(Some(peer)))
            .collect();
        let counter = match &at_peer[..] {
            [(bytes, range)] if range.end - range.start == 8 => Some((*bytes, range.clone())),
            _ => None,
        };
        for (bytes, range) in named(None) {
            let followed = counter.as_ref() == Some(&(bytes, range.clone()));
            if !followed && let Some(bytes) = self.bytes.get_mut(&bytes) {
                bytes.counters.forget(&range);
            }
        }
        let followed = counter.and_then(|(id, range)| {
            if !self.bytes.get(&id)?.counters.has(range.start) {
                let mut may_change = Ranges::default();
                self.may_change(id, work, |part| may_change.add(part));
                let bytes = self.bytes.get_mut(&id)?;
                if may_change.overlaps(&range) || bytes.loose.overlaps(&range) {
                    return None;
                }
                let value = value_at(&bytes.known, range.start)?;
                bytes.counters.start(range.start, value);
            }
            self.bytes.get_mut(&id)?.counters.add(id, range.start, add)
        });
        self.targets.or_default(remote.rkey).add(addresses);
        followed
    }

    /// A fetch-and-add has succeeded.
    pub(crate) fn added(&mut self, add: &Add) {
        if let Some(bytes) = self.bytes.get_mut(&add.memory) {
            bytes.counters.done(add);
        }
    }

    /// A QP was reset or destroyed: packets of it may be taken for those of another connection.
    pub(crate) fn forget_counters(&mut self) {
        for bytes in self.bytes.values_mut() {
            bytes.counters.forget(&(0..u64::MAX));
        }
    }

    /// The program wrote.
    pub(crate) fn wrote(&mut self, to: Readable, offset: usize, new: &[u8]) {
        if let Some((bytes, range)) = self.part(to, offset, new.len())
            && let Some(bytes) = self.bytes.get_mut(&bytes)
        {
            bytes.counters.forget(&range);
            bytes.learn(range, new);
        }
    }

    /// The program has mapped new memory.
    pub(crate) fn zeroed(&mut self, mr: Mr) {
        let region = Readable::Mr(mr);
        if let Some(length) = self.length(region) {
            self.wrote(region, 0, &vec![0; length]);
        }
    }

    /// Bytes were read: what is wrong with them. `work` is what is outstanding.
    pub(crate) fn check(
        &mut self,
        of: Readable,
        offset: usize,
        read: &[u8],
        work: impl Iterator<Item = (Device, Sge)>,
    ) -> Result<(), Wrong> {
        let Some((id, range)) = self.part(of, offset, read.len()) else {
            return Ok(());
        };
        let Some(bytes) = self.bytes.get(&id) else {
            return Ok(());
        };
        let known = &bytes.known[range.start as usize..range.end as usize];
        if known != read {
            let mut fixed = Ranges::default();
            fixed.add(range.clone());
            self.may_change(id, work, |part| fixed.remove(part));
            bytes.loose.iter().for_each(|part| fixed.remove(part));
            let wrong = fixed.iter().find_map(|part| {
                let part = (part.start - range.start) as usize..(part.end - range.start) as usize;
                differs(&known[part.clone()], &read[part.clone()]).map(|at| part.start + at)
            });
            if let Some(at) = wrong {
                return Err(Wrong::Byte(format!(
                    "the byte at {of}+{:#x} is {:#04x}; it was {:#04x}, and no work that was posted may \
                     write it",
                    offset + at,
                    read[at],
                    known[at]
                )));
            }
        }
        let counters = bytes.counters.check(range.start, read);
        if let Some(bytes) = self.bytes.get_mut(&id) {
            bytes.learn(range, read);
        }
        counters.map_err(|facts| Wrong::Counter(format!("{of}: {facts}")))
    }

    /// How long a region or device memory is, if it is followed and can be read.
    pub(crate) fn length(&self, of: Readable) -> Option<usize> {
        match of {
            Readable::Mr(mr) => {
                let region = self.regions.all.get(&mr).filter(|region| region.live)?;
                // The bytes of device memory are read there.
                let is_of_dm = self.dms.values().any(|bytes| *bytes == region.bytes);
                usize::try_from(region.attr.length)
                    .ok()
                    .filter(|_| !is_of_dm)
            }
            Readable::Dm(dm) => Some(self.bytes.get(self.dms.get(&dm)?)?.known.len()),
        }
    }

    /// The regions and device memories there are.
    pub(crate) fn all(&self) -> Vec<Readable> {
        let mrs = self.regions.all.keys().map(|mr| Readable::Mr(*mr));
        mrs.chain(self.dms.keys().map(|dm| Readable::Dm(*dm)))
            .collect()
    }

    fn fresh(&mut self, length: u64) -> Option<u64> {
        let length = usize::try_from(length).ok().filter(|n| *n <= LONGEST)?;
        let id = self.next;
        self.next += 1;
        let bytes = Bytes {
            known: vec![0; length],
            ..Bytes::default()
        };
        self.bytes.insert(id, bytes);
        Some(id)
    }

    /// The part of its memory that a part of a region or device memory is.
    fn part(&self, of: Readable, offset: usize, length: usize) -> Option<(u64, Range<u64>)> {
        let (id, start) = match of {
            Readable::Mr(mr) => {
                let region = self.regions.all.get(&mr)?;
                (region.bytes, region.start)
            }
            Readable::Dm(dm) => (*self.dms.get(&dm)?, 0),
        };
        let start = start + offset as u64;
        let range = start..start + length as u64;
        let bytes = self.bytes.get(&id)?;
        (range.end <= bytes.known.len() as u64).then_some((id, range))
    }

    /// What may change in a memory: what is outstanding, and what peers have named.
    fn may_change(
        &self,
        id: u64,
        work: impl Iterator<Item = (Device, Sge)>,
        mut part: impl FnMut(Range<u64>),
    ) {
        for (device, sge) in work {
            for (bytes, range) in self.regions.resolve(device, &[sge]) {
                if bytes == id {
                    part(range);
                }
            }
        }
        for region in self
            .regions
            .all
            .values()
            .filter(|region| region.bytes == id)
        {
            if region.zero_based_windows {
                part(region.start..region.start + region.attr.length);
            }
            for (rkey, ranges) in &self.targets {
                if *rkey == region.attr.rkey || region.windows {
                    let named = ranges.iter().filter_map(|range| region.at(&range));
                    named.for_each(|(_, range)| part(range));
                }
            }
        }
    }
}

/// Where bytes differ first from as many others.
fn differs(bytes: &[u8], others: &[u8]) -> Option<usize> {
    // Almost always they are the same, and that is seen many at a time.
    (bytes != others).then(|| zip(bytes, others).position(|(a, b)| a != b))?
}

/// What was found wrong.
#[derive(Clone, Debug)]
pub(crate) enum Wrong {
    Byte(String),
    Counter(String),
}

impl Regions {
    fn enter(&mut self, mr: Mr, region: Region) {
        let lkey = (region.device, region.attr.lkey);
        self.by_lkey.or_default(lkey).push(mr);
        self.by_rkey.or_default(region.attr.rkey).push(mr);
        self.all.insert(mr, region);
    }

    fn remove(&mut self, mr: Mr) {
        let Some(region) = self.all.remove(&mr) else {
            return;
        };
        if let Some(same) = self.by_lkey.get_mut(&(region.device, region.attr.lkey)) {
            same.retain(|other| *other != mr);
        }
        if let Some(same) = self.by_rkey.get_mut(&region.attr.rkey) {
            same.retain(|other| *other != mr);
        }
    }

    /// What part of which memory entries of a list mean.
    fn resolve<'a>(
        &'a self,
        device: Device,
        list: &'a [Sge],
    ) -> impl Iterator<Item = (u64, Range<u64>)> + 'a {
        list.iter().flat_map(move |sge| {
            let range = sge.addr..sge.addr.saturating_add(sge.length.into());
            let same_key = self.by_lkey.get(&(device, sge.lkey)).into_iter().flatten();
            same_key.filter_map(move |mr| self.all.get(mr)?.at(&range))
        })
    }

    /// What part of which memory an address and a key mean to peers.
    fn named<'a>(
        &'a self,
        device: Option<Device>,
        rkey: u32,
        range: &'a Range<u64>,
    ) -> impl Iterator<Item = (u64, Range<u64>)> + 'a {
        let same_key = self.by_rkey.get(&rkey).into_iter().flatten();
        let regions = same_key.filter_map(|mr| self.all.get(mr));
        regions
            .filter(move |region| {
                device.is_none_or(|device| region.device == device && region.live)
            })
            .filter_map(|region| region.at(range))
    }
}

impl Region {
    fn new(device: Device, bytes: u64, start: u64, attr: MrAttr) -> Self {
        Self {
            device,
            bytes,
            start,
            attr,
            live: true,
            windows: false,
            zero_based_windows: false,
        }
    }

    /// The part of its memory that these addresses mean.
    fn at(&self, addresses: &Range<u64>) -> Option<(u64, Range<u64>)> {
        let base = self.attr.addr;
        let from = addresses.start.max(base) - base;
        let until = addresses.end.min(base.saturating_add(self.attr.length));
        let until = until.checked_sub(base)?;
        (from < until).then(|| (self.bytes, self.start + from..self.start + until))
    }
}

impl Bytes {
    fn learn(&mut self, range: Range<u64>, new: &[u8]) {
        self.known[range.start as usize..range.end as usize].copy_from_slice(new);
        self.loose.remove(range);
    }
}

/// Longer memory is not followed.
const LONGEST: usize = 16 << 20;
