//! Bytes in a row, and how they are copied.
#![allow(unsafe_code)]

use std::fmt;
use std::slice;
use std::sync::atomic::{AtomicU8, Ordering};

/// Bytes in a row. No reference to them is ever made: the program may use those that no work touches at
/// the same time, and regions may lie over each other (MR-13).
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(super) start: *mut u8,
    pub(super) length: usize,
}

/// Without the address, which nothing that is printed depends on.
impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.length)
    }
}

// SAFETY: a span of a region is only used while the region is there. The caller of `reg_mr` promised
// that its memory may then be read and written at any time, which includes from any thread.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

/// The bytes that a list names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gathered {
    One(Span),
    /// Those that stand in a list beside this.
    Parts,
}

impl Gathered {
    #[inline(always)]
    fn spans<'s>(&'s self, parts: &'s [Span]) -> &'s [Span] {
        match self {
            Self::One(span) => slice::from_ref(span),
            Self::Parts => parts,
        }
    }
}

/// Moves bytes to as many others, each with its parts if it has several.
///
/// # Safety
/// All are of regions that are there, or of bytes that live, and nothing else writes to them meanwhile.
#[inline(always)]
pub(crate) unsafe fn move_bytes(from: (Gathered, &[Span]), into: (Gathered, &[Span])) {
    match (from, into) {
        // SAFETY: the caller's promise.
        ((Gathered::One(from), _), (Gathered::One(into), _)) => unsafe { from.copy_to(into) },
        // SAFETY: as above.
        (from, into) => unsafe { move_parts(from.0.spans(from.1), into.0.spans(into.1)) },
    }
}

/// As [`move_bytes`], of any number of spans.
///
/// # Safety
/// As there.
#[inline(never)]
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
            // SAFETY: parts of what is promised.
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

    /// The bytes from `first`, `length` of them, which it must have.
    #[inline(always)]
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

    /// Copies all of it to as many bytes, which may overlap with it. Their last are written last.
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
            // SAFETY: as above; what is new overlaps with nothing.
            unsafe {
                copy_in_order(self.start, between.as_mut_ptr(), self.length);
                copy_in_order(between.as_ptr(), into.start, self.length);
            }
        }
    }
}

/// A copy goes forwards by so many bytes; their bounds are those of the target's addresses.
const CHUNK: usize = 16 << 10;

/// Copies bytes forwards, chunk by chunk, since programs wait for the last byte of a write and then read
/// those before it. `memcpy` alone may go backwards.
///
/// # Safety
/// `from` is valid for reads of `length` bytes, and `into` for writes; they do not overlap.
#[inline]
unsafe fn copy_in_order(mut from: *const u8, mut into: *mut u8, mut length: usize) {
    while length > 0 {
        let now = length.min(CHUNK - into.addr() % CHUNK);
        // SAFETY: a part of what is promised.
        unsafe {
            copy_chunk(from, into, now);
            (from, into) = (from.add(now), into.add(now));
        }
        length -= now;
    }
}

/// Copies at least one byte. The last aligned eight become visible as one and after all others, those
/// behind them after that: who reads the last byte with acquire semantics sees all.
///
/// Never inlined: what a program reads meanwhile, the compiler is not to reason about.
///
/// # Safety
/// That of [`copy_in_order`].
#[cfg(not(any(miri, sanitize_thread)))]
#[inline(never)]
unsafe fn copy_chunk(from: *const u8, into: *mut u8, length: usize) {
    use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};
    const WORD: usize = size_of::<u64>();
    macro_rules! store {
        ($atomic:ty, $number:ty, $at:expr) => {
            // SAFETY: within what is promised, and aligned.
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

/// The same by atomic bytes, for tools that look for data races.
///
/// # Safety
/// That of [`copy_in_order`].
#[cfg(any(miri, sanitize_thread))]
unsafe fn copy_chunk(from: *const u8, into: *mut u8, length: usize) {
    for at in 0..length {
        // SAFETY: within what is promised.
        unsafe { AtomicU8::from_ptr(into.add(at)).store(from.add(at).read(), Ordering::Release) };
    }
}
