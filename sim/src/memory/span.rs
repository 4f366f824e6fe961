//! Contiguous bytes, and how they are copied.
#![allow(unsafe_code)]

use std::fmt;
use std::slice;
use std::sync::atomic::{AtomicU8, Ordering};

/// Contiguous bytes. No Rust reference to them ever exists: the program may use the bytes that no
/// work touches at the same time, and regions may overlap (MR-13).
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(super) start: *mut u8,
    pub(crate) length: usize,
}

/// Without the address, because no output depends on addresses.
impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.length)
    }
}

// SAFETY: a span of a region is only used while the region exists. The caller of `reg_mr` promised
// that its memory may then be read and written at any time, and so from any thread.
unsafe impl Send for Span {}
// SAFETY: a shared span has no state. Copies through it have the promise of `reg_mr`, which covers
// all threads.
unsafe impl Sync for Span {}

/// The bytes that a scatter/gather list names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gathered {
    One(Span),
    /// Those in a separate list.
    Parts,
}

impl Gathered {
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn spans<'s>(&'s self, parts: &'s [Span]) -> &'s [Span] {
        match self {
            Self::One(span) => slice::from_ref(span),
            Self::Parts => parts,
        }
    }
}

/// Copies bytes between two ranges of the same length. Each may have several parts.
///
/// # Safety
/// All bytes belong to regions that exist, or to values that live. Nothing else writes to them
/// during the call.
#[inline(always)]
#[cfg_attr(any(), mutants::skip)] // the suite does not reach it
pub(crate) unsafe fn move_bytes(from: (Gathered, &[Span]), into: (Gathered, &[Span])) {
    match (from, into) {
        // SAFETY: the caller's promise.
        ((Gathered::One(from), _), (Gathered::One(into), _)) => unsafe { from.copy_to(into) },
        // SAFETY: the caller's promise, for each part.
        (from, into) => unsafe { move_parts(from.0.spans(from.1), into.0.spans(into.1)) },
    }
}

/// Copies like [`move_bytes`], for any number of spans.
///
/// # Safety
/// The promise of [`move_bytes`], for every span.
#[inline(never)]
#[cfg_attr(any(), mutants::skip)] // the suite does not reach it
unsafe fn move_parts(from: &[Span], into: &[Span]) {
    let mut targets = into.iter();
    let mut into = Span::NONE;
    for from in from {
        let mut rest = *from;
        while rest.length > 0 {
            if into.length == 0 {
                into = *targets.next().expect("both have the same length");
                continue;
            }
            let now = into.length.min(rest.length);
            // SAFETY: parts of the bytes that the caller promised.
            unsafe { rest.part(0, now).copy_to(into.part(0, now)) };
            rest = rest.part(now, rest.length - now);
            into = into.part(now, into.length - now);
        }
    }
}

impl Span {
    /// No bytes.
    pub(crate) const NONE: Self = Self {
        start: std::ptr::null_mut(),
        length: 0,
    };

    /// `length` bytes from `first` on, which must be within the span.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn part(self, first: usize, length: usize) -> Self {
        assert!(
            first <= self.length && length <= self.length - first,
            "bytes of a span lie within it"
        );
        Self {
            start: self.start.wrapping_add(first),
            length,
        }
    }

    /// Bytes that are only read.
    pub(crate) fn of_shared(bytes: &[u8]) -> Self {
        Self {
            start: bytes.as_ptr().cast_mut(),
            length: bytes.len(),
        }
    }

    pub(crate) fn of(bytes: &mut [u8]) -> Self {
        Self {
            start: bytes.as_mut_ptr(),
            length: bytes.len(),
        }
    }

    /// Copies all bytes to a span of the same length, which may overlap. The last bytes are written
    /// last.
    ///
    /// # Safety
    /// The memory is valid for reads, and that of `into` for writes; nothing else writes to either.
    #[inline]
    pub(super) unsafe fn copy_to(self, into: Self) {
        assert!(self.length == into.length, "a copy keeps the length");
        let distance = self.start.addr().abs_diff(into.start.addr());
        if distance >= self.length {
            // SAFETY: as promised, and the two do not overlap.
            unsafe { copy_in_order(self.start, into.start, self.length) };
        } else if distance > 0 {
            let mut between = vec![0; self.length];
            // SAFETY: as promised, and the new buffer overlaps with nothing.
            unsafe {
                copy_in_order(self.start, between.as_mut_ptr(), self.length);
                copy_in_order(between.as_ptr(), into.start, self.length);
            }
        }
    }
}

/// Bytes per step of a forward copy. Steps end at multiples of it in the target.
const CHUNK: usize = 16 << 10;

/// Copies bytes forwards, chunk by chunk, because programs wait for the last byte of a write and
/// then read those before it. `memcpy` alone may copy backwards.
///
/// # Safety
/// `from` is valid for reads of `length` bytes, and `into` for writes; they do not overlap.
#[inline]
unsafe fn copy_in_order(mut from: *const u8, mut into: *mut u8, mut length: usize) {
    while length > 0 {
        let now = length.min(CHUNK - into.addr() % CHUNK);
        // SAFETY: a part of the promised bytes.
        unsafe {
            copy_chunk(from, into, now);
            (from, into) = (from.add(now), into.add(now));
        }
        length -= now;
    }
}

/// Copies at least one byte. The last aligned eight bytes become visible together and after all
/// others, and the bytes after them later. So a program that reads the last byte with acquire
/// semantics sees all of them.
///
/// Never inlined, so the compiler cannot reason about bytes that the program reads at the same
/// time.
///
/// # Safety
/// The caller keeps the promise of [`copy_in_order`].
#[cfg(not(any(miri, sanitize_thread)))]
#[inline(never)]
unsafe fn copy_chunk(from: *const u8, into: *mut u8, length: usize) {
    use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};
    const WORD: usize = size_of::<u64>();
    macro_rules! store {
        ($atomic:ty, $number:ty, $at:expr) => {
            // SAFETY: within the promised bytes, and aligned.
            unsafe {
                let bytes = from.add($at).cast::<$number>().read_unaligned();
                <$atomic>::from_ptr(into.add($at).cast()).store(bytes, Ordering::Release);
            }
        };
    }
    let behind = (into.addr() + length) % WORD;
    if behind == 0 && length >= WORD {
        // SAFETY: as promised.
        unsafe { std::ptr::copy_nonoverlapping(from, into, length - WORD) };
        store!(AtomicU64, u64, length - WORD);
        return;
    }
    let last = length.min(if behind == 0 { WORD } else { behind });
    let mut done = length - last;
    // SAFETY: as promised.
    unsafe { std::ptr::copy_nonoverlapping(from, into, done) };
    while done < length {
        let aligned = 1 << into.addr().wrapping_add(done).trailing_zeros().min(3);
        let fits = 1 << (length - done).ilog2();
        let size = WORD.min(aligned).min(fits);
        match size {
            WORD => store!(AtomicU64, u64, done),
            4 => store!(AtomicU32, u32, done),
            2 => store!(AtomicU16, u16, done),
            _ => store!(AtomicU8, u8, done),
        }
        done += size;
    }
}

/// Copies with atomic bytes, for tools that detect data races.
///
/// # Safety
/// The caller keeps the promise of [`copy_in_order`].
#[cfg(any(miri, sanitize_thread))]
unsafe fn copy_chunk(from: *const u8, into: *mut u8, length: usize) {
    for at in 0..length {
        // SAFETY: within the promised bytes.
        unsafe { AtomicU8::from_ptr(into.add(at)).store(from.add(at).read(), Ordering::Release) };
    }
}
