//! What was noted last, for who is told of each mistake at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use verbs_api::Cq as CqHandle;

/// Something new in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// A mistake, by its number.
    Noted(usize),
    /// A work request that failed, by its number.
    Failed(usize),
    /// The first completion of this CQ was lost.
    Overrun(CqHandle),
}

/// What is new in the journal of a node. Nothing, if nobody is told.
#[derive(Clone, Debug, Default)]
pub(crate) struct News(Option<Kept>);

#[derive(Clone, Debug)]
struct Kept {
    /// One for all nodes, written under the simulator's lock.
    is_any: Arc<AtomicBool>,
    fresh: Vec<Fresh>,
}

impl News {
    /// From now on it is kept; `is_any` says that a node has some.
    pub(crate) fn keep(&mut self, is_any: Arc<AtomicBool>) {
        let fresh = Vec::new();
        self.0 = Some(Kept { is_any, fresh });
    }

    pub(crate) fn add(&mut self, fresh: Fresh) {
        if let Some(kept) = &mut self.0 {
            kept.fresh.push(fresh);
            kept.is_any.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Fresh> {
        let kept = self.0.as_mut();
        kept.map(|kept| std::mem::take(&mut kept.fresh))
            .unwrap_or_default()
    }
}
