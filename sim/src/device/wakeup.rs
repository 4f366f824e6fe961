//! What ends the waits of threads.

use verbs_api::{CmChannel, CmId, CompChannel, Context, Element};

/// What ends the wait of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wakeup {
    /// One more event on a channel. One thread reads it.
    Event(CompChannel),
    /// One more event on a channel. All threads that watch its descriptor for edges see it.
    Edge(CompChannel),
    /// One more asynchronous event of a context. One thread reads it.
    AsyncEvent(Context),
    /// One more event of rdma_cm on a channel. One thread reads it.
    CmEvent(CmChannel),
    /// An event about an object was acknowledged, or the object was destroyed.
    Acknowledged(Element),
    /// An event of an rdma_cm id was acknowledged, or the id was destroyed.
    CmAcknowledged(CmId),
    /// Anything: a context was closed, for example.
    Anything,
}

/// The wakeups of a node, or of the connection manager, that are to be passed on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wakeups {
    /// The number of threads that wait. Without any, no wakeup is kept.
    waiting: u32,
    new: Vec<Wakeup>,
}

impl Wakeups {
    /// Counts a thread that starts or stops waiting.
    #[cfg_attr(any(), mutants::skip)] // cost
    pub(crate) fn count_waiting(&mut self, starts: bool) {
        self.waiting = if starts {
            self.waiting + 1
        } else {
            self.waiting - 1
        };
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, wakeup: Wakeup) {
        if self.waiting > 0 {
            self.new.push(wakeup);
        }
    }

    /// Moves all wakeups to the end of a list.
    #[inline(always)]
    pub(crate) fn move_to(&mut self, all: &mut Vec<Wakeup>) {
        if !self.new.is_empty() {
            all.append(&mut self.new);
        }
    }
}
