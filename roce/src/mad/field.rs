//! Fields of messages: where each is, in both directions.

use core::fmt;
use core::ops::Deref;

/// Something that has a place in a message: a byte, and a bit in it, from the highest.
pub(super) trait Field: Sized {
    fn get(bytes: &[u8], byte: usize, bit: usize) -> Self;
    fn put(&self, bytes: &mut [u8], byte: usize, bit: usize);
}

/// The number in so many bits.
pub(super) fn bits(bytes: &[u8], byte: usize, bit: usize, width: usize) -> u64 {
    let first = byte * 8 + bit;
    let one = |at: usize| u64::from(bytes[at / 8] >> (7 - at % 8) & 1);
    (first..first + width).fold(0, |number, at| number << 1 | one(at))
}

/// Puts a number into so many bits, which are zero.
pub(super) fn set_bits(bytes: &mut [u8], (byte, bit): (usize, usize), width: usize, number: u64) {
    let first = byte * 8 + bit;
    for place in 0..width {
        let at = first + width - 1 - place;
        bytes[at / 8] |= ((number >> place & 1) as u8) << (7 - at % 8);
    }
}

macro_rules! whole {
    ($($number:ty)*) => { $(
        impl Field for $number {
            fn get(bytes: &[u8], byte: usize, _: usize) -> Self {
                let mut own = [0; size_of::<Self>()];
                own.copy_from_slice(&bytes[byte..byte + size_of::<Self>()]);
                Self::from_be_bytes(own)
            }

            fn put(&self, bytes: &mut [u8], byte: usize, _: usize) {
                bytes[byte..byte + size_of::<Self>()].copy_from_slice(&self.to_be_bytes());
            }
        }
    )* };
}

whole!(u8 u16 u32 u64);

impl Field for bool {
    fn get(bytes: &[u8], byte: usize, bit: usize) -> Self {
        bits(bytes, byte, bit, 1) == 1
    }

    fn put(&self, bytes: &mut [u8], byte: usize, bit: usize) {
        set_bits(bytes, (byte, bit), 1, (*self).into());
    }
}

impl<const N: usize> Field for [u8; N] {
    fn get(bytes: &[u8], byte: usize, _: usize) -> Self {
        let mut own = [0; N];
        own.copy_from_slice(&bytes[byte..byte + N]);
        own
    }

    fn put(&self, bytes: &mut [u8], byte: usize, _: usize) {
        bytes[byte..byte + N].copy_from_slice(self);
    }
}

impl<T: Field> Field for Box<T> {
    fn get(bytes: &[u8], byte: usize, bit: usize) -> Self {
        Self::new(T::get(bytes, byte, bit))
    }

    fn put(&self, bytes: &mut [u8], byte: usize, bit: usize) {
        (**self).put(bytes, byte, bit);
    }
}

/// What programs add to a message, up to as many bytes as there is room for. The rest is zero, and cannot be told from
/// what was added.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PrivateData<const N: usize>([u8; N]);

impl<const N: usize> PrivateData<N> {
    /// With these bytes at the start; `None` if there are more than it has room for.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut own = [0; N];
        own.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self(own))
    }
}

impl<const N: usize> Default for PrivateData<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Deref for PrivateData<N> {
    type Target = [u8; N];

    fn deref(&self) -> &[u8; N] {
        &self.0
    }
}

impl<const N: usize> fmt::Debug for PrivateData<N> {
    /// Without the zeros at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().rposition(|byte| *byte != 0);
        f.debug_list()
            .entries(&self.0[..end.map_or(0, |last| last + 1)])
            .finish()
    }
}

impl<const N: usize> Field for PrivateData<N> {
    fn get(bytes: &[u8], byte: usize, bit: usize) -> Self {
        Self(Field::get(bytes, byte, bit))
    }

    fn put(&self, bytes: &mut [u8], byte: usize, bit: usize) {
        self.0.put(bytes, byte, bit);
    }
}
