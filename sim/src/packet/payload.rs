//! The payload of a packet: parts of regions, or bytes. It is copied only at delivery.

use std::iter;
use std::ops::Deref;
use std::slice;
use std::sync::Arc;

use crate::memory::{Gone, Memory, Placing, SharedMemory, Slice};

/// Parts of regions, in order. The usual single part needs no memory on the heap.
#[derive(Clone, Debug, Default)]
pub(crate) enum Scatter {
    #[default]
    Nothing,
    One(Slice),
    Many(Arc<[Slice]>),
}

impl Deref for Scatter {
    type Target = [Slice];

    fn deref(&self) -> &[Slice] {
        match self {
            Self::Nothing => &[],
            Self::One(slice) => slice::from_ref(slice),
            Self::Many(slices) => slices,
        }
    }
}

impl Scatter {
    /// `count` bytes from `first` on, which must be within the list.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // cost
    fn part(&self, first: u32, count: u32) -> Self {
        match self {
            Self::One(slice) => Self::One(slice.part(first as usize, count as usize)),
            slices => Self::Many(cut(slices, first, count)),
        }
    }
}

/// The payload of a packet. It is copied only at delivery.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    /// Parts of regions.
    Slices(Scatter),
    /// Bytes copied when the work was posted.
    Inline {
        /// All bytes that were copied.
        bytes: Arc<[u8]>,
        /// The first byte of the payload.
        start: u32,
        /// The length of the payload.
        length: u32,
    },
}

impl Default for Payload {
    fn default() -> Self {
        Self::Slices(Scatter::Nothing)
    }
}

impl Payload {
    /// A copy of the current bytes of parts of regions, in order.
    pub(crate) fn copied(memory: &SharedMemory, slices: &Scatter) -> Result<Self, Gone> {
        let mut bytes: Arc<[u8]> = iter::repeat_n(0, length_of(slices) as usize).collect();
        let into = Arc::get_mut(&mut bytes).expect("it is not shared yet");
        gather(&mut memory.lock(), slices, into)?;
        Ok(Self::inline(bytes))
    }

    /// A payload with a copy of the bytes that the parts of regions have now.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn taken_along(&self, memory: &SharedMemory) -> Result<Self, Gone> {
        match self {
            Self::Slices(slices) if !slices.is_empty() => Self::copied(memory, slices),
            other => Ok(other.clone()),
        }
    }

    /// A payload of bytes.
    pub(crate) fn inline(bytes: Arc<[u8]>) -> Self {
        Self::Inline {
            start: 0,
            length: bytes.len() as u32,
            bytes,
        }
    }

    /// Whether it has memory on the heap.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // cost
    pub(crate) fn holds_memory(&self) -> bool {
        matches!(self, Self::Inline { .. } | Self::Slices(Scatter::Many(_)))
    }

    /// The bytes, if they are not those of regions.
    pub(crate) fn own(&self) -> Option<&[u8]> {
        match self {
            Self::Slices(_) => None,
            Self::Inline {
                bytes,
                start,
                length,
            } => Some(&bytes[*start as usize..(*start + *length) as usize]),
        }
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> u32 {
        match self {
            Self::Slices(slices) => length_of(slices),
            Self::Inline { length, .. } => *length,
        }
    }

    /// `count` bytes from `first` on, which must be within the payload.
    #[inline(always)]
    pub(crate) fn part(&self, first: u32, count: u32) -> Self {
        match self {
            Self::Slices(slices) => Self::Slices(slices.part(first, count)),
            Self::Inline { bytes, start, .. } => Self::Inline {
                bytes: bytes.clone(),
                start: start + first,
                length: count,
            },
        }
    }

    /// The current bytes.
    pub(crate) fn bytes(&self, memory: &mut Memory) -> Result<Vec<u8>, Gone> {
        let Self::Slices(slices) = self else {
            return Ok(self.own().unwrap_or_default().to_vec());
        };
        let mut bytes = vec![0; self.len() as usize];
        gather(memory, slices, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies all bytes, which belong to the message of `placing`, to the target, which must have
    /// the same length.
    pub(crate) fn copy_to(
        &self,
        memory: &SharedMemory,
        target: &[Slice],
        placing: Placing,
    ) -> Result<(), Gone> {
        let mut memory = memory.lock();
        // A part of the message waits, and its source may change until then.
        if memory.places_late() {
            let data = self.bytes(&mut memory)?;
            return memory.place_late(&data, target, placing);
        }
        match self {
            Self::Slices(slices) => memory.copy_all(slices, target),
            Self::Inline { .. } => memory.write_all(self.own().unwrap_or_default(), target),
        }
    }
}

fn length_of(slices: &[Slice]) -> u32 {
    slices.iter().map(|slice| slice.length as u32).sum()
}

/// Copies the current bytes of parts of regions to a buffer of the same length.
fn gather(memory: &mut Memory, slices: &[Slice], into: &mut [u8]) -> Result<(), Gone> {
    let mut rest = into;
    for slice in slices {
        let (now, later) = rest.split_at_mut(slice.length);
        memory.read(slice, now)?;
        rest = later;
    }
    Ok(())
}

/// `count` bytes from `first` on, which must be within the list.
fn cut(slices: &[Slice], first: u32, count: u32) -> Arc<[Slice]> {
    let (mut skip, mut left) = (first as usize, count as usize);
    let parts = slices.iter().map(|slice| {
        let start = skip.min(slice.length);
        let take = left.min(slice.length - start);
        (skip, left) = (skip - start, left - take);
        slice.part(start, take)
    });
    parts.filter(|part| part.length > 0).collect()
}
