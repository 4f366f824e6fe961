//! Which posted work owns which bytes. Until a completion is polled, the program may not read bytes
//! that the device may write, nor write bytes that it may read.
//!
//! Only programs that access memory through the simulator pay for this. Posting only marks that a
//! queue has new work. A memory access sorts each new work request in, once, and finds the requests
//! that name its bytes, no matter how many requests there are.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use verbs_api::Sge;

/// The bytes that posted work names. Finished work is removed when a search meets it, or when it
/// may be half of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    /// Queues with work that is not sorted in yet.
    unsorted: BTreeSet<ClaimedQueue>,
    work: BTreeMap<Claim, Vec<Work>>,
    /// The size classes that occur, a bit for each.
    sizes: u32,
    count: usize,
    /// The count above which finished work is removed.
    room: usize,
}

/// A scatter/gather entry. Entries of about the same size are neighbors, so that all entries that
/// may reach an address begin in a short range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    /// Whether the device writes these bytes.
    writes: bool,
    lkey: u32,
    /// The logarithm of the length.
    size: u32,
    addr: u64,
    length: u32,
}

/// A work request that was posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) queue: ClaimedQueue,
    pub(crate) generation: u32,
    pub(crate) seq: u64,
}

/// A queue, by the slot of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClaimedQueue {
    Send(u32),
    Recv(u32),
    Shared(u32),
}

impl Claims {
    /// Marks a queue that has work which is not sorted in.
    #[cold]
    pub(crate) fn mark_unsorted(&mut self, queue: ClaimedQueue) {
        self.unsorted.insert(queue);
    }

    /// Takes the queues that have work which is not sorted in.
    pub(crate) fn take_unsorted(&mut self) -> BTreeSet<ClaimedQueue> {
        std::mem::take(&mut self.unsorted)
    }

    /// Sorts in a work request.
    pub(crate) fn add(&mut self, writes: bool, list: &[Sge], work: Work) {
        for sge in list.iter().filter(|sge| sge.length > 0) {
            let claim = Claim {
                writes,
                lkey: sge.lkey,
                size: sge.length.ilog2(),
                addr: sge.addr,
                length: sge.length,
            };
            self.work.entry(claim).or_default().push(work);
            // A search skips size classes that do not occur.
            self.sizes |= 1 << claim.size;
            self.count += 1;
        }
    }

    /// Removes finished work, if there may be much of it.
    #[cfg_attr(any(), mutants::skip)] // cost
    pub(crate) fn throw_out(&mut self, is_present: impl Fn(&Work) -> bool) {
        const FEW: usize = 64;
        if self.count <= self.room {
            return;
        }
        (self.count, self.sizes) = (0, 0);
        self.work.retain(|claim, works| {
            works.retain(&is_present);
            self.count += works.len();
            self.sizes |= u32::from(!works.is_empty()) << claim.size;
            !works.is_empty()
        });
        // The limit doubles with the live work, so each request pays for its removal once.
        self.room = 2 * self.count + FEW;
    }

    /// The first result of `visit`, over the work whose entries with this key overlap these
    /// addresses.
    pub(crate) fn find<R>(
        &mut self,
        writes: bool,
        lkey: u32,
        addrs: &Range<u64>,
        mut visit: impl FnMut(&mut Vec<Work>) -> Option<R>,
    ) -> Option<R> {
        let sizes = self.sizes;
        let (mut found, mut empty) = (None, Vec::new());
        for size in (0..u32::BITS).filter(|size| sizes & 1 << size != 0) {
            let at = |addr| Claim {
                writes,
                lkey,
                size,
                addr,
                length: 0,
            };
            // An entry of this size class is at most this long, so it begins at most this far
            // before the addresses.
            let longest = (2_u64 << size) - 1;
            let range = at(addrs.start.saturating_sub(longest))..at(addrs.end);
            for (claim, works) in self.work.range_mut(range) {
                // It ends before the addresses.
                if claim.addr.saturating_add(claim.length.into()) <= addrs.start {
                    continue;
                }
                found = visit(works);
                if found.is_some() {
                    return found;
                }
                // The map cannot be changed while it is iterated.
                empty.extend(works.is_empty().then_some(*claim));
            }
        }
        for claim in empty {
            self.work.remove(&claim);
        }
        found
    }
}
