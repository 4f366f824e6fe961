//! A completion, and a batch of them.

use core::fmt;
use core::ops::Deref;

use super::Cq;
use crate::cq::Wc;

/// How many completions one batch can hold.
const BATCH: usize = 16;

/// A completion, and the QP it belongs to. `W` is what the device reports, with the program's own
/// `wr_id`.
///
/// ```
/// use verbs_api::owned::{Completions, Context, Cq, Pd, Qp};
/// use verbs_api::{QpType, Result};
///
/// /// What a program knows of a peer.
/// struct Peer {
///     qp: Qp,
///     received: u64,
/// }
///
/// fn meet(peers: &mut Vec<Peer>, pd: &Pd, cq: &Cq) -> Result<()> {
///     let qp = pd.qp(QpType::Rc, cq, cq).qp_context(peers.len() as u64).create()?;
///     peers.push(Peer { qp, received: 0 });
///     Ok(())
/// }
///
/// fn count(peers: &mut [Peer], completions: Completions) {
///     for completion in completions.filter(|completion| completion.opcode.is_recv()) {
///         peers[completion.qp_context as usize].received += u64::from(completion.byte_len);
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion<W = Wc> {
    /// What the device says.
    pub wc: W,
    /// The program's own value for the queue pair
    /// ([`QpBuilder::qp_context`](super::QpBuilder::qp_context)), even if the queue pair is gone. 0
    /// for an XRC_RECV queue pair, and for work posted by a raw handle.
    ///
    /// For a receive of an SRQ it is found by the number of the queue pair. If a device gives that
    /// number to another queue pair before the completions of the destroyed one are polled, they
    /// get the value of the new one.
    pub qp_context: u64,
}

impl<W> Deref for Completion<W> {
    type Target = W;

    fn deref(&self) -> &W {
        &self.wc
    }
}

impl<W: fmt::Display> fmt::Display for Completion<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.wc.fmt(f)
    }
}

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

impl Completions {
    /// A batch filled by `poll`, which says how many it wrote.
    pub(super) fn fill<E>(
        cq: &Cq,
        poll: impl FnOnce(&mut [Completion]) -> Result<usize, E>,
    ) -> Result<Self, E> {
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

    /// Those not taken yet.
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
