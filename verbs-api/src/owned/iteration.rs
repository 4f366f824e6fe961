//! Iterations over extended completion queues.

use core::fmt;

use super::{Completion, Cq};
use crate::cq_ex::WcEx;
use crate::error::{ErrorKind, Result, Verb};

/// An iteration over an extended CQ ([`Cq::iterate`]): its completions, oldest first, with the
/// fields that the CQ was made with. Dropping it ends it (`ibv_end_poll`).
///
/// An error is its last item.
#[must_use = "completions come out when it is iterated"]
pub struct Iteration<'a> {
    cq: &'a Cq,
    position: Position,
}

/// The state of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// `ibv_start_poll` has not been called.
    Before,
    /// It has come to a completion.
    Inside,
    /// There was no further one, or an error; `ibv_end_poll` has to be called.
    AtEnd,
    /// Nothing is open any more.
    Over,
}

impl<'a> Iteration<'a> {
    pub(super) fn new(cq: &'a Cq) -> Self {
        Self {
            cq,
            position: Position::Before,
        }
    }

    /// The CQ it is over.
    pub fn cq(&self) -> &'a Cq {
        self.cq
    }
}

impl Position {
    /// The verb that comes to the next completion; none at the end.
    pub(super) fn verb(self) -> Option<Verb> {
        match self {
            Self::Before => Some(Verb::StartPoll),
            Self::Inside => Some(Verb::NextPoll),
            Self::AtEnd | Self::Over => None,
        }
    }

    /// The state after that verb has failed.
    pub(super) fn failed(self) -> Self {
        match self {
            Self::Inside | Self::AtEnd => Self::AtEnd,
            Self::Before | Self::Over => Self::Over,
        }
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
