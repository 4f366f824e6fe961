//! Fields, and the table that a struct of them is written as.

use core::ops::Range;

use super::MAD;

/// The bits of a MAD that hold a field, or a part of it. Bit 0 is the most significant bit of byte
/// 0.
pub(super) type Place = Range<usize>;

/// These bits, from byte `byte` on.
pub(super) const fn place(byte: usize, bits: Range<usize>) -> Place {
    8 * byte + bits.start..8 * byte + bits.end
}

/// What can stand in a MAD. Places follow from tables, so they are never outside of it.
pub(super) trait Field {
    /// Reads it from these places; the first has its upper bits.
    fn get(bytes: &[u8; MAD], at: &[Place]) -> Self;

    /// Writes it to where all bits are still 0. Upper bits for which there is no room are left out.
    fn put(&self, bytes: &mut [u8; MAD], at: &[Place]);
}

macro_rules! number {
    ($($number:ty)*) => {$(
        impl Field for $number {
            fn get(bytes: &[u8; MAD], at: &[Place]) -> Self {
                let bits = at.iter().cloned().flatten();
                let bits = bits.map(|bit| bytes[bit / 8] >> (7 - bit % 8) & 1);
                bits.fold(0, |number, bit| number << 1 | Self::from(bit))
            }

            fn put(&self, bytes: &mut [u8; MAD], at: &[Place]) {
                let bits = at.iter().cloned().flatten();
                for (place, bit) in bits.rev().zip(0..Self::BITS) {
                    bytes[place / 8] |= ((self >> bit & 1) as u8) << (7 - place % 8);
                }
            }
        }
    )*};
}

number!(u8 u16 u32 u64);

impl Field for bool {
    fn get(bytes: &[u8; MAD], at: &[Place]) -> Self {
        u8::get(bytes, at) != 0
    }

    fn put(&self, bytes: &mut [u8; MAD], at: &[Place]) {
        u8::from(*self).put(bytes, at);
    }
}

impl<const N: usize> Field for [u8; N] {
    fn get(bytes: &[u8; MAD], at: &[Place]) -> Self {
        let first = at[0].start / 8;
        core::array::from_fn(|index| bytes[first + index])
    }

    fn put(&self, bytes: &mut [u8; MAD], at: &[Place]) {
        let first = at[0].start / 8;
        bytes[first..first + N].copy_from_slice(self);
    }
}

impl<T: Field> Field for Box<T> {
    fn get(bytes: &[u8; MAD], at: &[Place]) -> Self {
        Box::new(T::get(bytes, at))
    }

    fn put(&self, bytes: &mut [u8; MAD], at: &[Place]) {
        T::put(self, bytes, at);
    }
}

/// Defines a struct whose fields stand at `byte[bits]`, or at `byte` with all their bits. Bytes
/// count from the start of the struct, bits from the most significant one of that byte. A field in
/// several places has `|` between them.
macro_rules! fields {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$fmeta:meta])* $field:ident: $type:ty = $($byte:literal $([$bits:expr])?)|+; )*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$fmeta])* pub $field: $type, )*
        }

        impl Field for $name {
            fn get(bytes: &[u8; MAD], at: &[Place]) -> Self {
                let start = at[0].start / 8;
                Self {
                    $( $field: <$type>::get(
                        bytes,
                        &[$( place(start + $byte, fields!(@bits $type $(, $bits)?)) ),+],
                    ), )*
                }
            }

            fn put(&self, bytes: &mut [u8; MAD], at: &[Place]) {
                let start = at[0].start / 8;
                $( self.$field.put(
                    bytes,
                    &[$( place(start + $byte, fields!(@bits $type $(, $bits)?)) ),+],
                ); )*
            }
        }
    )*};
    (@bits $type:ty) => { 0..8 * size_of::<$type>() };
    (@bits $type:ty, $bits:expr) => { $bits };
}

pub(super) use fields;
