//! Which posted work owns which bytes: until its completion is polled, a program may not read what the
//! device may write, nor write what it may read.
//!
//! Only programs that reach memory through the simulator pay for this. Posting notes that a queue has
//! something new. Who asks sorts it in, each work request once, and finds those that name some bytes
//! however many others there are.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use verbs_api::Sge;

/// What posted work names. Of work that is done some is still here, until it is met or makes up half.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    /// Queues with work that is not here yet.
    fresh: BTreeSet<ClaimedQueue>,
    work: BTreeMap<Claim, Vec<Work>>,
    /// The sizes that occur, a bit each.
    sizes: u32,
    count: usize,
    /// When there is more, what is done is thrown out.
    room: usize,
}

/// A scatter/gather entry. Those of about the same size stand together, so that all that may reach to some
/// address begin in a short range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    /// The device writes it.
    writes: bool,
    lkey: u32,
    /// Of the length: the logarithm.
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
    /// A queue has work that was not sorted in.
    #[cold]
    pub(crate) fn has_fresh(&mut self, queue: ClaimedQueue) {
        self.fresh.insert(queue);
    }

    /// The queues that have work which was not sorted in; from now on they have not.
    pub(crate) fn take_fresh(&mut self) -> BTreeSet<ClaimedQueue> {
        std::mem::take(&mut self.fresh)
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
            self.sizes |= 1 << claim.size;
            self.count += 1;
        }
    }

    /// What is done goes, if there may be much of it.
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
        self.room = 2 * self.count + FEW;
    }

    /// What `visit` finds in the work whose entries of this key lie over some of these addresses.
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
            let longest = (2_u64 << size) - 1;
            let range = at(addrs.start.saturating_sub(longest))..at(addrs.end);
            for (claim, works) in self.work.range_mut(range) {
                if claim.addr.saturating_add(claim.length.into()) <= addrs.start {
                    continue;
                }
                found = visit(works);
                if found.is_some() {
                    return found;
                }
                empty.extend(works.is_empty().then_some(*claim));
            }
        }
        for claim in empty {
            self.work.remove(&claim);
        }
        found
    }
}
