//! New entries of a journal, for a program that reports each mistake when it happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use verbs_api::Cq as CqHandle;

/// A new entry of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// A mistake, by its number.
    Noted(usize),
    /// A failed work request, by its number.
    Failed(usize),
    /// The first lost completion of this CQ.
    Overrun(CqHandle),
}

/// The new entries of the journal of a node. Not kept unless they are reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct News(Option<Kept>);

#[derive(Clone, Debug)]
struct Kept {
    /// One flag for all nodes, written under the simulator's lock.
    is_any: Arc<AtomicBool>,
    fresh: Vec<Fresh>,
}

impl News {
    /// From now on keeps new entries. `is_any` is set when a node has some.
    pub(crate) fn keep(&mut self, is_any: Arc<AtomicBool>) {
        let fresh = Vec::new();
        self.0 = Some(Kept { is_any, fresh });
    }

    pub(crate) fn add(&mut self, fresh: Fresh) {
        if let Some(kept) = &mut self.0 {
            kept.fresh.push(fresh);
            // The flag is read without the lock, after each call.
            kept.is_any.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Fresh> {
        let kept = self.0.as_mut();
        kept.map(|kept| std::mem::take(&mut kept.fresh))
            .unwrap_or_default()
    }
}
