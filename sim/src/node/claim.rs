//! Which posted work owns which bytes: until its completion is polled, a program may not read what the
//! device may write, nor write what it may read.
//!
//! Only programs that reach memory through the simulator pay for this. Posting notes that a queue has
//! something new. Who asks sorts it in, each work request once, and finds those that name some bytes
//! however many others there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use verbs_api::{Handle, Qp as QpHandle, SendFlags, Sge, Srq as SrqHandle};

use super::Node;

/// What posted work names. Of work that is done some is still here, until it is met or makes up half.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    /// Queues with work that is not here yet.
    fresh: BTreeSet<Queue>,
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
struct Work {
    queue: Queue,
    generation: u32,
    seq: u64,
}

/// A queue, by the slot of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Queue {
    Send(u32),
    Recv(u32),
    Shared(u32),
}

/// A work request that is in its queue.
struct Request<'a> {
    owner: Owner,
    pd: u32,
    list: &'a [Sge],
}

/// Whose bytes they are.
pub(super) struct Owner {
    queue: OwnersQueue,
    pub(super) wr_id: u64,
}

enum OwnersQueue {
    Send(QpHandle),
    Recv(QpHandle),
    Shared(SrqHandle),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "work request {:#x} of ", self.wr_id)?;
        match self.queue {
            OwnersQueue::Send(qp) => write!(f, "the send queue of {qp}"),
            OwnersQueue::Recv(qp) => write!(f, "the receive queue of {qp}"),
            OwnersQueue::Shared(srq) => write!(f, "{srq}"),
        }
    }
}

impl Node {
    /// A queue has work that [`owner_of`](Self::owner_of) has not seen.
    #[cold]
    pub(super) fn has_fresh_work(&mut self, queue: Queue) {
        self.claims.fresh.insert(queue);
    }

    /// The posted work that owns some of these bytes of the memory of the region in this slot: the device
    /// may still write them, or (if the caller wants to write) read them.
    pub(super) fn owner_of(
        &mut self,
        index: u32,
        bytes: Range<u64>,
        for_write: bool,
    ) -> Option<Owner> {
        let mr = self.mrs.at(index);
        // Some devices check receives of an SRQ against the domain of the QP that takes them.
        let only = mr.only_domain().filter(|_| !self.behavior.srq_checks_qp_pd);
        if only.is_some_and(|pd| self.pds.at(pd).posted == 0) {
            return None;
        }
        let mut claims = std::mem::take(&mut self.claims);
        claims.take_fresh(self);
        let mr = self.mrs.at(index);
        let is_owner = |request: &Request<'_>| {
            only.is_none_or(|pd| request.pd == pd) && self.names(request.list, mr, &bytes)
        };
        let mut places = self.places_of(mr, &bytes).into_iter();
        let owner = places.find_map(|(lkey, addrs)| {
            let mut find = |writes| {
                claims.find(writes, lkey, &addrs, |works| {
                    self.last_owner(works, is_owner)
                })
            };
            find(true).or_else(|| for_write.then(|| find(false)).flatten())
        });
        self.claims = claims;
        owner
    }

    /// The last to be posted of those that `is_owner` says yes to. Forgets what is done behind it.
    fn last_owner(
        &self,
        works: &mut Vec<Work>,
        is_owner: impl Fn(&Request<'_>) -> bool,
    ) -> Option<Owner> {
        while let Some(last) = works.last()
            && self.request(last).is_none()
        {
            works.pop();
        }
        let mut present = works.iter().rev().filter_map(|work| self.request(work));
        present.find(is_owner).map(|found| found.owner)
    }

    /// A work request, if its slot is still taken.
    fn request(&self, work: &Work) -> Option<Request<'_>> {
        let generation = work.generation;
        let qp = |index| {
            let qp = self.qps.peek(index)?;
            (qp.handle.generation() == generation).then_some(qp)
        };
        let (queue, pd, wr_id, list) = match work.queue {
            Queue::Send(index) => {
                let qp = qp(index)?;
                let send = qp.sq.find(work.seq)?;
                let queue = OwnersQueue::Send(qp.handle);
                (queue, qp.pd, send.wr_id, &send.list[..])
            }
            Queue::Recv(index) => {
                let qp = qp(index)?;
                let recv = qp.rq.find(work.seq)?;
                let queue = OwnersQueue::Recv(qp.handle);
                (queue, qp.pd, recv.wr_id, &recv.list[..])
            }
            Queue::Shared(index) => {
                let srq = self.srqs.peek(index)?;
                let recv = srq.find(work.seq)?;
                let queue = OwnersQueue::Shared(srq.handle);
                let is_it = srq.handle.generation() == generation;
                is_it.then_some((queue, srq.pd, recv.wr_id, &recv.list[..]))?
            }
        };
        let owner = Owner { queue, wr_id };
        Some(Request { owner, pd, list })
    }
}

impl Claims {
    fn take_fresh(&mut self, node: &mut Node) {
        for queue in std::mem::take(&mut self.fresh) {
            match queue {
                Queue::Send(index) | Queue::Recv(index) if node.qps.peek(index).is_some() => {
                    let qp = node.qps.at_mut(index);
                    let generation = qp.handle.generation();
                    let work = |seq| Work {
                        queue,
                        generation,
                        seq,
                    };
                    if let Queue::Recv(_) = queue {
                        for (seq, recv) in qp.rq.fresh() {
                            self.add(true, &recv.list, work(seq));
                        }
                        continue;
                    }
                    for (seq, send) in qp.sq.fresh() {
                        // The bytes of inline sends have been taken.
                        if !send.flags.contains(SendFlags::INLINE) {
                            self.add(send.is_read(), &send.list, work(seq));
                        }
                    }
                }
                Queue::Shared(index) if node.srqs.peek(index).is_some() => {
                    let srq = node.srqs.at_mut(index);
                    let generation = srq.handle.generation();
                    for (seq, recv) in srq.fresh() {
                        let work = Work {
                            queue,
                            generation,
                            seq,
                        };
                        self.add(true, &recv.list, work);
                    }
                }
                _ => {}
            }
        }
        if self.count > self.room {
            self.throw_out(node);
        }
    }

    fn add(&mut self, writes: bool, list: &[Sge], work: Work) {
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

    /// What is done goes.
    fn throw_out(&mut self, node: &Node) {
        const FEW: usize = 64;
        (self.count, self.sizes) = (0, 0);
        self.work.retain(|claim, works| {
            works.retain(|work| node.request(work).is_some());
            self.count += works.len();
            self.sizes |= u32::from(!works.is_empty()) << claim.size;
            !works.is_empty()
        });
        self.room = 2 * self.count + FEW;
    }

    /// What `visit` finds in the work whose entries of this key lie over some of these addresses.
    fn find<R>(
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
