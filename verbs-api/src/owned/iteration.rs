//! Iterations over extended completion queues.

use core::fmt;

use super::Completion;
use super::cq::{Cq, Position};
use crate::cq_ex::WcEx;
use crate::error::{ErrorKind, Result};

/// An iteration over an extended CQ ([`Cq::iterate`]): its completions, oldest first, with the
/// fields that the CQ was made with. Dropping it ends it (`ibv_end_poll`).
///
/// An error is its last item.
#[must_use = "completions come out when it is iterated"]
pub struct Iteration<'a> {
    cq: &'a Cq,
    position: Position,
}

impl Cq {
    /// Starts an iteration over the present completions. While it lives, other polls of the CQ fail
    /// with `Usage`, and its QPs are not destroyed: those that are dropped are destroyed later.
    ///
    /// ```
    /// # use verbs_api::{Result, owned::Cq};
    /// # fn f(cq: &Cq) -> Result<()> {
    /// for wc in cq.iterate() {
    ///     let wc = wc?;
    ///     println!("{:#x}, {} at {:?}", wc.wr_id, wc.status, wc.completion_ts);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The completions are those of [`poll`](Self::poll). The first item is an error if the CQ is
    /// not [extended](super::CqBuilder::extended), or if completions of an earlier poll were not
    /// taken.
    pub fn iterate(&self) -> Iteration<'_> {
        Iteration {
            cq: self,
            position: Position::Before,
        }
    }
}

impl<'a> Iteration<'a> {
    /// The CQ it is over.
    pub fn cq(&self) -> &'a Cq {
        self.cq
    }
}

impl Iterator for Iteration<'_> {
    type Item = Result<Completion<WcEx>>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.cq.advance(&mut self.position)? {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            result => Some(result),
        }
    }
}

impl Drop for Iteration<'_> {
    fn drop(&mut self) {
        if let Position::Inside | Position::AtEnd = self.position {
            self.cq.end_iteration();
        }
    }
}

impl fmt::Debug for Iteration<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iteration")
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
