//! The bytes of the consumers.

use core::fmt;
use core::ops::{Deref, DerefMut};

use super::field::{Field, Place};
use super::{MAD, MadError};

/// The private data of a message: `N` bytes, the rest zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PrivateData<const N: usize>([u8; N]);

impl<const N: usize> PrivateData<N> {
    /// These bytes, and zeros.
    ///
    /// # Errors
    /// [`MadError::PrivateData`] if there are more than `N`.
    pub fn new(data: &[u8]) -> Result<Self, MadError> {
        let mut all = Self::default();
        let too_long = MadError::PrivateData {
            length: data.len(),
            room: N,
        };
        all.get_mut(..data.len())
            .ok_or(too_long)?
            .copy_from_slice(data);
        Ok(all)
    }
}

impl<const N: usize> Default for PrivateData<N> {
    /// Zeros.
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> From<[u8; N]> for PrivateData<N> {
    fn from(data: [u8; N]) -> Self {
        Self(data)
    }
}

impl<const N: usize> Deref for PrivateData<N> {
    type Target = [u8; N];

    fn deref(&self) -> &[u8; N] {
        &self.0
    }
}

impl<const N: usize> DerefMut for PrivateData<N> {
    fn deref_mut(&mut self) -> &mut [u8; N] {
        &mut self.0
    }
}

impl<const N: usize> Field for PrivateData<N> {
    fn get(bytes: &[u8; MAD], at: &[Place]) -> Self {
        Self(Field::get(bytes, at))
    }

    fn put(&self, bytes: &mut [u8; MAD], at: &[Place]) {
        self.0.put(bytes, at);
    }
}

/// In hexadecimal, without the zeros that end them.
impl<const N: usize> fmt::Debug for PrivateData<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        write!(f, "PrivateData<{N}>(")?;
        self[..length]
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}
