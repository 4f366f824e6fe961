//! A batch of completions.

use core::fmt;

use super::Cq;
use crate::cq::Wc;

/// How many completions one batch can hold.
const BATCH: usize = 16;

/// A batch of completions of one CQ, oldest first: at most 16, without an allocation.
///
/// What is not taken from it goes back when it is dropped, and comes again with the next poll; a
/// loop that ends early, or panics, loses nothing.
pub struct Completions {
    cq: Cq,
    wcs: [Wc; BATCH],
    next: usize,
    end: usize,
}

impl Completions {
    /// A batch filled by `poll`, which says how many it wrote.
    pub(super) fn fill<E>(
        cq: &Cq,
        poll: impl FnOnce(&mut [Wc]) -> Result<usize, E>,
    ) -> Result<Self, E> {
        let mut wcs = [Wc::default(); BATCH];
        let end = poll(&mut wcs)?;
        let cq = cq.clone();
        Ok(Self {
            cq,
            wcs,
            next: 0,
            end,
        })
    }

    /// The CQ they are from.
    pub fn cq(&self) -> &Cq {
        &self.cq
    }

    /// Those not taken yet.
    pub fn as_slice(&self) -> &[Wc] {
        &self.wcs[self.next..self.end]
    }
}

impl Iterator for Completions {
    type Item = Wc;

    fn next(&mut self) -> Option<Wc> {
        let wc = *self.as_slice().first()?;
        self.next += 1;
        Some(wc)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.as_slice().len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for Completions {}

impl Drop for Completions {
    fn drop(&mut self) {
        if self.len() > 0 {
            self.cq.give_back(self.as_slice());
        }
    }
}

impl fmt::Debug for Completions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}
