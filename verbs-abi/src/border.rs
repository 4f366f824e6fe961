//! What numbers and texts of C are in `verbs-api`.

use std::ffi::{c_char, c_int};

use verbs_api::cm::PortSpace;
use verbs_api::{
    Access, AtomicCap, GidType, LinkLayer, LinkWidth, MigState, Mtu, PortState, QpState, SendFlags,
    WcFlags, WcOpcode, WcStatus,
};

/// A type of C, and the one it stands for.
pub(crate) trait Border<T> {
    fn from_c(raw: &Self) -> T;
    fn to_c(api: &T) -> Self;
}

macro_rules! border {
    ($( $raw:ty { $($api:ty),* } = |$from:ident| $from_c:expr, |$to:ident| $to_c:expr; )*) => { $( $(
        impl Border<$api> for $raw {
            fn from_c(raw: &Self) -> $api {
                let $from = *raw;
                $from_c
            }

            fn to_c(api: &$api) -> Self {
                let $to = *api;
                $to_c
            }
        }
    )* )* };
}

border! {
    u8 { u8 } = |raw| raw, |api| api;
    u16 { u16 } = |raw| raw, |api| api;
    u32 { u32 } = |raw| raw, |api| api;
    u64 { u64 } = |raw| raw, |api| api;
    u8 { bool } = |raw| raw != 0, |api| api.into();
    u8 { LinkLayer, LinkWidth } = |raw| u32::from(raw).into(), |api| u32::from(api) as u8;
    // Counts, which cannot be negative here.
    c_int { u8 } = |raw| raw.clamp(0, 255) as u8, |api| api.into();
    c_int { u32 } = |raw| raw.max(0) as u32, |api| int(api);
    u32 { AtomicCap, GidType, MigState, Mtu, PortSpace, PortState, QpState, WcOpcode, WcStatus } =
        |raw| raw.into(), |api| api.into();
    u32 { Access } = |raw| Access::from_bits_retain(raw), |api| api.bits();
    u32 { SendFlags } = |raw| SendFlags::from_bits_retain(raw), |api| api.bits();
    u32 { WcFlags } = |raw| WcFlags::from_bits_retain(raw), |api| api.bits();
    // Immediate data, as on the wire.
    u32 { [u8; 4] } = |raw| raw.to_ne_bytes(), |api| u32::from_ne_bytes(api);
}

/// A count for C, which has no room for more than half of them.
pub fn int(count: u32) -> c_int {
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

impl<const N: usize> Border<String> for [c_char; N] {
    /// The text up to the first bytes that are not valid.
    fn from_c(raw: &Self) -> String {
        let bytes = raw[..N - 1].iter().map(|byte| *byte as u8);
        let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
        let start = bytes.utf8_chunks().next();
        start.map_or("", |start| start.valid()).to_owned()
    }

    fn to_c(api: &String) -> Self {
        text(api)
    }
}

/// A text of C with an end, cut where it is too long.
pub fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes[..N - 1].iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
    bytes
}

/// A number of the caller's own, as C takes it.
pub fn token(value: u64) -> *mut std::ffi::c_void {
    std::ptr::without_provenance_mut(value as usize)
}

/// Values that C passes by the address of the first and a count; an empty slice if the count is 0.
/// `None` if Rust cannot have such a slice: the address is null or not aligned, or the last value
/// would lie beyond the memory of a process.
///
/// # Safety
/// If the result is a slice, the values are there, and do not change while it is used.
#[inline]
pub unsafe fn slice<'a, T>(first: *const T, count: usize) -> Option<&'a [T]> {
    if count == 0 {
        return Some(&[]);
    }
    const MOST: usize = isize::MAX as usize;
    let size = count
        .checked_mul(size_of::<T>())
        .filter(|size| *size <= MOST)?;
    // Null is the largest number here.
    let is_there = first.addr().wrapping_sub(1) < MOST - size;
    let is_valid = is_there && first.is_aligned();
    // SAFETY: the address is one that a slice may have, with room for its size; the caller promises
    // the rest.
    is_valid.then(|| unsafe { std::slice::from_raw_parts(first, count) })
}

/// A structure that has these bytes.
#[cfg(test)]
pub(crate) fn of_bytes<T: Copy>(bytes: &[u8]) -> T {
    assert_eq!(bytes.len(), size_of::<T>());
    // SAFETY: structures of C that are converted are numbers and pointers, for which any bytes are
    // a value.
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slice_is_made_only_of_what_rust_can_have() {
        let here = [1u64, 2, 3];
        let first = here.as_ptr();
        let at = |addr: usize| std::ptr::without_provenance::<u64>(addr);
        // SAFETY: what is there is `here`; of the other places no slice with values is made.
        unsafe {
            assert_eq!(slice(first, 3), Some(&here[..]));
            for nowhere in [at(0), at(1), at(usize::MAX)] {
                assert_eq!(slice(nowhere, 0), Some(&[][..]));
                assert_eq!(slice(nowhere, 1), None);
            }
            assert_eq!(slice(first.wrapping_byte_add(1), 1), None);
            for too_many in [usize::MAX, usize::MAX / 8 + 1, isize::MAX as usize / 8 + 1] {
                assert_eq!(slice(first, too_many), None);
            }
            assert_eq!(slice(at(isize::MAX as usize - 7), 1), None);
        }
    }
}
