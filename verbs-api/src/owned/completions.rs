//! Batches of completions.

use core::fmt;

use super::{Completion, Cq};
use crate::error::Result;

/// How many completions one batch can hold.
const BATCH: usize = 16;

/// A batch of completions of one CQ, oldest first: at most 16, without an allocation.
///
/// Completions that are not taken go back when it is dropped, and come again with the next poll. So
/// a loop that ends early, or panics, loses nothing.
pub struct Completions {
    cq: Cq,
    all: [Completion; BATCH],
    next: usize,
    end: usize,
}

impl Cq {
    /// Takes the oldest completions (`ibv_poll_cq`), at most 16. The result is empty if there are
    /// none.
    ///
    /// ```
    /// # use verbs_api::{Result, WcStatus, owned::Cq};
    /// # fn f(cq: &Cq) -> Result<()> {
    /// for wc in cq.poll()? {
    ///     assert_eq!(wc.status, WcStatus::Success, "{wc}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// `wr_id` is what the program posted. `opcode` is right even if the work request failed; the
    /// other fields are then undefined, as they are in verbs (WC-01). What the work request held is
    /// released. A completion of work posted by a raw handle is passed on unchanged.
    ///
    /// # Errors
    /// The errors of [`Verbs::poll_cq`](crate::Verbs::poll_cq): after an overrun, for instance.
    pub fn poll(&self) -> Result<Completions> {
        Completions::fill(self, |wcs| self.poll_into(wcs))
    }
}

impl Completions {
    /// A batch filled by `poll`, which says how many it wrote.
    pub(super) fn fill(
        cq: &Cq,
        poll: impl FnOnce(&mut [Completion]) -> Result<usize>,
    ) -> Result<Self> {
        let mut all = [Completion::default(); BATCH];
        let end = poll(&mut all)?;
        let cq = cq.clone();
        Ok(Self {
            cq,
            all,
            next: 0,
            end,
        })
    }

    /// The CQ they are from.
    pub fn cq(&self) -> &Cq {
        &self.cq
    }

    /// The completions that were not taken yet.
    pub fn as_slice(&self) -> &[Completion] {
        &self.all[self.next..self.end]
    }
}

impl Iterator for Completions {
    type Item = Completion;

    fn next(&mut self) -> Option<Completion> {
        let completion = *self.as_slice().first()?;
        self.next += 1;
        Some(completion)
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
