//! Which CQs have nothing to poll, for threads that do not hold the lock.
//!
//! A node writes here, with the lock held, when a poll finds a CQ empty and when a CQ gets its
//! first completion. A thread that polls looks here first. The answer "empty" may be outdated when
//! it is read, as with any look at a CQ that other threads fill. But if a thread knows that a
//! completion was added, it also sees that here. A CQ that is not known to be empty is polled under
//! the lock.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use verbs_api::{Cq, Handle};

/// Handles of empty CQs. If two CQs share a slot, the later one is known.
#[derive(Clone, Debug)]
pub(crate) struct EmptyCqs {
    slots: Arc<[Slot; SLOTS]>,
}

/// The handle of an empty CQ, in two words.
#[derive(Debug, Default)]
struct Slot {
    context: AtomicU64,
    own: AtomicU64,
}

const SLOTS: usize = 1024;

impl EmptyCqs {
    pub(crate) fn new() -> Self {
        // An array would be built on the stack first, and threads of a model checker have little.
        let slots: Arc<[Slot]> = iter::repeat_with(Slot::default).take(SLOTS).collect();
        let known = Self {
            slots: slots.try_into().expect("these are as many"),
        };
        known.clear();
        known
    }

    /// Whether a handle belongs to a live CQ that is known to be empty.
    #[inline]
    pub(crate) fn contains(&self, cq: Cq) -> bool {
        // Two reads are enough: a CQ that gets a completion loses its own word, and a thread that
        // knows of the completion does not read that word again.
        let slot = &self.slots[slot_of(cq)];
        let (context, own) = words(cq);
        slot.own.load(Ordering::Relaxed) == own && slot.context.load(Ordering::Relaxed) == context
    }

    /// Records whether a live CQ is empty.
    #[cfg_attr(any(), mutants::skip)] // cost
    pub(crate) fn set(&self, cq: Cq, empty: bool) {
        let slot = &self.slots[slot_of(cq)];
        let (context, own) = words(cq);
        if empty {
            // A reader that sees only one of the words finds no match.
            slot.context.store(context, Ordering::Relaxed);
            slot.own.store(own, Ordering::Relaxed);
        // Another CQ may have taken the slot.
        } else if self.contains(cq) {
            self.forget(slot_of(cq));
        }
    }

    /// Forgets all CQs.
    pub(crate) fn clear(&self) {
        (0..SLOTS).for_each(|slot| self.forget(slot));
    }

    /// Stores words that no handle of this slot has.
    fn forget(&self, slot: usize) {
        self.slots[slot].own.store(!slot as u64, Ordering::Relaxed);
        self.slots[slot].context.store(0, Ordering::Relaxed);
    }
}

/// The slot of a CQ. CQs with one index on several nodes should not collide. The node is the upper
/// half of the context.
#[cfg_attr(any(), mutants::skip)] // cost
fn slot_of(cq: Cq) -> usize {
    (cq.index() ^ cq.context().index() >> 10) as usize % SLOTS
}

fn words(cq: Cq) -> (u64, u64) {
    let word = |index: u32, generation: u32| u64::from(index) | u64::from(generation) << 32;
    let context = cq.context();
    (
        word(context.index(), context.generation()),
        word(cq.index(), cq.generation()),
    )
}

#[cfg(test)]
mod tests {
    use verbs_api::Context;

    use super::*;

    fn cq(context: (u32, u32), index: u32, generation: u32) -> Cq {
        Cq::from_parts(Context::from_parts(context.0, context.1), index, generation)
    }

    /// The handle of a destroyed CQ, or of one in another context, is not taken for that of an
    /// empty CQ.
    #[test]
    fn only_the_very_handle_is_known() {
        let known = EmptyCqs::new();
        let the_cq = cq((3, 1), 2000, 2);
        assert!(!known.contains(the_cq));
        known.set(the_cq, true);
        assert!(known.contains(the_cq));
        let others = [
            cq((4, 1), 2000, 2),
            cq((3, 2), 2000, 2),
            cq((3, 1), 2000 + SLOTS as u32, 2),
            cq((3, 1), 2000, 1),
        ];
        assert!(!others.into_iter().any(|other| known.contains(other)));
        known.set(the_cq, false);
        assert!(!known.contains(the_cq));
    }

    #[test]
    fn of_two_in_one_slot_the_later_is_known() {
        let known = EmptyCqs::new();
        let (first, second) = (cq((0, 1), 7, 1), cq((0, 1), 7 + SLOTS as u32, 1));
        known.set(first, true);
        known.set(second, true);
        assert!(!known.contains(first) && known.contains(second));
        known.set(first, false);
        assert!(known.contains(second));
        known.clear();
        assert!(!known.contains(second));
    }

    /// Handles that no backend returned are not known, even to an empty table.
    #[test]
    fn nothing_is_no_handle() {
        let known = EmptyCqs::new();
        known.set(cq((5 << 16, 1), 9, 1), true);
        known.clear();
        for index in 0..SLOTS as u32 {
            for context in [(0, 0), (0, 1), (5 << 16, 0), (5 << 16, 1)] {
                assert!(!known.contains(cq(context, index, 0)));
                assert!(!known.contains(cq(context, !index, u32::MAX)));
            }
        }
    }
}
