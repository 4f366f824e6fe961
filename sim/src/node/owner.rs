//! Which posted work owns which bytes. Until a completion is polled, the program may not read bytes
//! that the device may write, nor write bytes that it may read.

use std::fmt;
use std::ops::Range;

use verbs_api::site::Site;
use verbs_api::{
    BadHandle, Cause, ErrorKind, Handle, Mr as MrHandle, MrChange, Object, Qp as QpHandle, QpState,
    SendFlags, Sge, Srq as SrqHandle,
};

use super::Node;
use crate::device::{ClaimedQueue, Claims, Refusal, Result, Work, bad_handle, find};
use crate::diagnosis::problem::{DeregisteredEarly, PostedTo};
use crate::memory::{Gone, Slice};
use crate::qp::WorkQueue;

/// A work request in its queue.
struct Request<'a> {
    owner: Owner,
    pd: u32,
    list: &'a [Sge],
}

/// The owner of bytes.
pub(super) struct Owner {
    queue: OwnersQueue,
    pub(super) label: u64,
    /// Where it was posted.
    site: Option<Site>,
}

enum OwnersQueue {
    Send(QpHandle),
    Recv(QpHandle),
    Shared(SrqHandle),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "work request {:#x} of ", self.label)?;
        match self.queue {
            OwnersQueue::Send(qp) => write!(f, "the send queue of {qp}"),
            OwnersQueue::Recv(qp) => write!(f, "the receive queue of {qp}"),
            OwnersQueue::Shared(srq) => write!(f, "{srq}"),
        }
    }
}

impl Node {
    /// The posted work that owns some of these bytes of a region's memory: the device may still
    /// write them, or, if the caller wants to write, read them.
    pub(super) fn owner_of(
        &mut self,
        index: u32,
        bytes: Range<u64>,
        for_write: bool,
    ) -> Option<Owner> {
        let device = &self.device;
        let mr = device.domains.regions.table.at(index);
        // Some devices check receives of an SRQ against the domain of the QP that takes them.
        let only = mr
            .only_domain()
            .filter(|_| !device.base.behavior.srq_checks_qp_pd);
        // The common case needs no search.
        if only.is_some_and(|pd| device.domains.pds.at(pd).posted == 0) {
            return None;
        }
        // The search needs the queue pairs while it changes the claims.
        let mut claims = std::mem::take(&mut self.device.claims);
        self.sort_in(&mut claims);
        let regions = &self.device.domains.regions;
        let mr = regions.table.at(index);
        let is_owner = |request: &Request<'_>| {
            only.is_none_or(|pd| request.pd == pd) && regions.names(request.list, mr, &bytes)
        };
        let mut places = regions.places_of(mr, &bytes).into_iter();
        let owner = places.find_map(|(lkey, addrs)| {
            let mut find = |writes| {
                claims.find(writes, lkey, &addrs, |works| {
                    self.last_owner(works, is_owner)
                })
            };
            // A program may read what the device only reads.
            find(true).or_else(|| for_write.then(|| find(false)).flatten())
        });
        self.device.claims = claims;
        owner
    }

    /// The newest request for which `is_owner` is true. Removes finished requests at the end of the
    /// list.
    fn last_owner(
        &self,
        works: &mut Vec<Work>,
        is_owner: impl Fn(&Request<'_>) -> bool,
    ) -> Option<Owner> {
        while let Some(last) = works.last() {
            match self.request(last) {
                // Its completion was polled, so it owns nothing any more.
                None => works.pop(),
                Some(found) if is_owner(&found) => return Some(found.owner),
                Some(_) => break,
            };
        }
        let before = works.iter().rev().skip(1);
        let mut present = before.filter_map(|work| self.request(work));
        present.find(is_owner).map(|found| found.owner)
    }

    /// A work request, if its slot is still in use.
    fn request(&self, work: &Work) -> Option<Request<'_>> {
        let generation = work.generation;
        let qp = |index| {
            let qp = self.qps.peek(index)?;
            (qp.common.handle.generation() == generation).then_some(qp)
        };
        let (queue, pd, label, site, list) = match work.queue {
            ClaimedQueue::Send(index) => {
                let qp = qp(index)?;
                let requester = qp.requester.as_ref()?;
                let send = requester.sq.find(work.seq)?;
                let queue = OwnersQueue::Send(qp.common.handle);
                (queue, requester.pd, send.label, send.site, &send.list[..])
            }
            ClaimedQueue::Recv(index) => {
                let qp = qp(index)?;
                let receives = &qp.responder.receives;
                let recv = receives.rq()?.find(work.seq)?;
                let queue = OwnersQueue::Recv(qp.common.handle);
                (queue, receives.pd()?, recv.label, recv.site, &recv.list[..])
            }
            ClaimedQueue::Shared(index) => {
                let srq = self.device.srqs.peek(index)?;
                let recv = srq.recvs.get(&work.seq)?;
                let queue = OwnersQueue::Shared(srq.handle);
                let is_it = srq.handle.generation() == generation;
                is_it.then_some((queue, srq.pd, recv.label, recv.site, &recv.list[..]))?
            }
        };
        let owner = Owner { queue, label, site };
        Some(Request { owner, pd, list })
    }

    /// Sorts in the work that was posted since the last time.
    fn sort_in(&mut self, claims: &mut Claims) {
        for queue in claims.take_unsorted() {
            self.sort_in_queue(claims, queue);
        }
        claims.throw_out(|work| self.request(work).is_some());
    }

    fn sort_in_queue(&mut self, claims: &mut Claims, queue: ClaimedQueue) {
        let work = |generation, seq| Work {
            queue,
            generation,
            seq,
        };
        match queue {
            ClaimedQueue::Send(index) if self.qps.peek(index).is_some() => {
                let qp = self.qps.at_mut(index);
                let generation = qp.common.handle.generation();
                let requester = qp.requester.as_mut();
                let fresh = requester.into_iter().flat_map(|own| own.sq.fresh());
                // The bytes of inline sends were copied when they were posted.
                for (seq, send) in fresh.filter(|(_, send)| !send.flags.contains(SendFlags::INLINE))
                {
                    claims.add(send.is_read(), &send.list, work(generation, seq));
                }
            }
            ClaimedQueue::Recv(index) if self.qps.peek(index).is_some() => {
                let qp = self.qps.at_mut(index);
                let generation = qp.common.handle.generation();
                let rq = qp.responder.receives.rq_mut();
                for (seq, recv) in rq.into_iter().flat_map(WorkQueue::fresh) {
                    claims.add(true, &recv.list, work(generation, seq));
                }
            }
            ClaimedQueue::Shared(index) if self.device.srqs.peek(index).is_some() => {
                let srq = self.device.srqs.at_mut(index);
                let generation = srq.handle.generation();
                for (seq, recv) in srq.fresh() {
                    claims.add(true, &recv.list, work(generation, seq));
                }
            }
            _ => {}
        }
    }

    /// Copies bytes out of an owned region.
    pub(crate) fn read_mr(&mut self, mr: MrHandle, offset: usize, bytes: &mut [u8]) -> Result<()> {
        let from = self.own_bytes(mr, offset, bytes.len(), false)?;
        let copied = self.device.domains.memory.lock().peek(&from, bytes);
        copied.map_err(unreachable_bytes)
    }

    /// Copies bytes into an owned region.
    pub(crate) fn write_mr(&mut self, mr: MrHandle, offset: usize, bytes: &[u8]) -> Result<()> {
        let into = self.own_bytes(mr, offset, bytes.len(), true)?;
        let copied = self.device.domains.memory.lock().write(&into, bytes);
        copied.map_err(unreachable_bytes)
    }

    /// A range of an owned region. Refuses a range with a byte that posted work owns.
    fn own_bytes(
        &mut self,
        mr: MrHandle,
        offset: usize,
        length: usize,
        writes: bool,
    ) -> Result<Slice> {
        let (index, slice) = self.device.own_bytes(mr, offset, length, writes)?;
        let Range { start, end } = slice.range();
        // Only unowned bytes are accessed, since the device may use the others at any time (SQ-17).
        let Some(owner) = self.owner_of(index, start as u64..end as u64, writes) else {
            return Ok(slice);
        };
        let text = format!(
            "{mr}+{offset:#x}, {length} bytes, belongs to {owner} until its completion has \
             been polled"
        );
        Err(Refusal::usage(text))
    }

    /// `ibv_dereg_mr`
    pub(crate) fn dereg_mr(&mut self, mr: MrHandle) -> Result<()> {
        let early = if self.device.base.checks_memory {
            self.deregistered_early(mr)?
        } else {
            None
        };
        self.device.dereg_mr(mr)?;
        if let Some(early) = early {
            let base = &mut self.device.base;
            base.journal.note(early, base.site);
        }
        Ok(())
    }

    /// `ibv_rereg_mr`, which is refused if posted work names the memory.
    pub(crate) fn rereg_mr(&mut self, mr: MrHandle, change: &MrChange) -> Result<()> {
        // Rights and domain can change while work is posted, the memory cannot.
        if change.length.is_some()
            && let Some(owner) = self.user_of(mr)?
        {
            let text = format!("{owner} uses {mr}");
            let cause = Cause::Text(text.into());
            return Err(Refusal::new(ErrorKind::Busy, cause));
        }
        self.device.rereg_mr(mr, change)
    }

    /// The posted work that owns some bytes of a region.
    fn user_of(&mut self, mr: MrHandle) -> Result<Option<Owner>> {
        let index = find(&self.device.domains.regions.table, mr)?;
        let own = self.device.domains.regions.table.at(index);
        let all = own.bytes(0..own.attr.length);
        Ok(self.owner_of(index, all, true))
    }

    /// Work that names a region and whose completion has not been polled.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn deregistered_early(&mut self, mr: MrHandle) -> Result<Option<DeregisteredEarly>> {
        let Some(owner) = self.user_of(mr)? else {
            return Ok(None);
        };
        // Flushed work no longer accesses memory.
        if let OwnersQueue::Send(qp) | OwnersQueue::Recv(qp) = owner.queue
            && self.qps.at(qp.index()).common.state() == QpState::Err
        {
            return Ok(None);
        }
        let number = |qp: QpHandle| self.qps.at(qp.index()).common.qp_num;
        let queue = match owner.queue {
            OwnersQueue::Send(qp) => PostedTo::Send(number(qp)),
            OwnersQueue::Recv(qp) => PostedTo::Recv(number(qp)),
            OwnersQueue::Shared(srq) => PostedTo::Srq(srq),
        };
        Ok(Some(DeregisteredEarly {
            mr,
            wr_id: owner.label,
            queue,
            posted: owner.site,
        }))
    }
}

/// The refusal of an access of the program to bytes that cannot be copied.
fn unreachable_bytes(gone: Gone) -> Refusal {
    match gone {
        Gone::Deregistered => bad_handle(Object::Mr, BadHandle::Stale),
        Gone::Unmapped(_) => {
            let problem = "is of a dma-buf whose memory was withdrawn";
            Refusal::argument(ErrorKind::Fault, "mr", problem)
        }
    }
}
