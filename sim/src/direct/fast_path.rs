//! The fast path from one node to another (see `conditions`).
#![expect(unsafe_code, reason = "bytes are moved from region to region")]

use std::mem;

use verbs_api::site::Site;
use verbs_api::{
    BatchEnd, Handle, Qp as QpHandle, QpType, SendFlags, SendOp, SendOps, SendWr, Verb,
};

use super::conditions::{End, EndMut, PreparedSend, SlowPath, ensure};
#[cfg(test)]
use super::tally::Tally;
use crate::device::Wakeup;
use crate::memory::{Gathered, Span, move_bytes};
use crate::node::{Node, NodeSlot};
use crate::qp::{CachedPath, Kinds, atomic};
use crate::time::Time;

/// State of the fast path.
#[derive(Default)]
pub(crate) struct Direct {
    /// No observer can see packets.
    pub(crate) is_allowed: bool,
    /// Cached paths are valid for one epoch.
    pub(crate) epoch: u64,
    /// The memory that the current message names at both ends.
    local: Vec<Span>,
    remote: Vec<Span>,
    /// A datagram with its header.
    bytes: Vec<u8>,
    #[cfg(test)]
    pub(crate) tally: Tally,
}

/// The fast path, for one call.
pub(crate) struct FastPath<'f> {
    pub(crate) slots: &'f mut [NodeSlot],
    pub(crate) direct: &'f mut Direct,
    pub(crate) wakeups: &'f mut Vec<Wakeup>,
    pub(crate) now: Time,
    pub(crate) site: Option<Site>,
}

impl FastPath<'_> {
    /// Sends work requests, from the first on. Returns how many took the fast path.
    #[inline(always)]
    pub(crate) fn send(&mut self, index: u32, qp: QpHandle, list: &[SendWr<'_>]) -> usize {
        match list {
            _ if !self.direct.is_allowed => 0,
            [wr] => self.try_send(index, qp, wr, 1).into(),
            list => self.send_list(index, qp, list),
        }
    }

    /// Sends a batch of one work request, if it may take the fast path. Returns whether it did. A
    /// larger batch is posted as a whole or not at all.
    pub(crate) fn send_batch(
        &mut self,
        index: u32,
        qp: QpHandle,
        list: &[SendWr<'_>],
        end: BatchEnd,
    ) -> bool {
        let ([wr], BatchEnd::Complete, true) = (list, end, self.direct.is_allowed) else {
            return false;
        };
        self.has_in_batches(index, qp, wr) && self.try_send_in_list(index, qp, wr, 1)
    }

    fn has_in_batches(&self, index: u32, qp: QpHandle, wr: &SendWr<'_>) -> bool {
        let qps = &self.slots[index as usize].node.qps;
        let own = qps.get(qp.index(), qp.generation());
        own.is_ok_and(|own| own.common.init.send_ops.contains(SendOps::of(&wr.op)))
    }

    /// An end, for reading.
    #[inline(always)]
    fn at(&self, node: u32, qp: u32) -> End<'_> {
        let Node { qps, device, .. } = &self.slots[node as usize].node;
        let qp = qps.at(qp);
        End { qp, device }
    }

    /// An end, for writing at the current time.
    #[inline(always)]
    fn at_mut(&mut self, node: u32, qp: u32) -> EndMut<'_> {
        let node = &mut self.slots[node as usize].node;
        node.device.base.now = self.now;
        node.device.base.site = self.site;
        let qp = node.qps.at_mut(qp);
        let device = &mut node.device;
        EndMut { qp, device }
    }

    /// Sends a list of several work requests. Returns how many took the fast path.
    #[inline(never)]
    fn send_list(&mut self, index: u32, qp: QpHandle, list: &[SendWr<'_>]) -> usize {
        // The data of a read or an atomic arrives after the rest of the list has left, and a read
        // observes the effects of those requests.
        let is_read = |op: &SendOp| matches!(op, SendOp::RdmaRead { .. });
        let is_observable = |two: &[SendWr<'_>]| {
            let (first, then) = (&two[0].op, &two[1].op);
            first.reads() && !is_read(then) && (is_read(first) || !then.reads())
        };
        if list.windows(2).any(is_observable) {
            return 0;
        }
        let mut all = list.iter();
        let stopped = all.position(|wr| !self.try_send_in_list(index, qp, wr, list.len()));
        stopped.unwrap_or(list.len())
    }

    #[inline(never)]
    fn try_send_in_list(&mut self, index: u32, qp: QpHandle, wr: &SendWr<'_>, of: usize) -> bool {
        self.try_send(index, qp, wr, of)
    }

    /// Sends a work request of a list of length `of`. Returns whether it took the fast path.
    #[inline(always)]
    fn try_send(&mut self, index: u32, qp: QpHandle, wr: &SendWr<'_>, of: usize) -> bool {
        let on_fast_path = self.send_one(index, qp, wr, of);
        #[cfg(test)]
        self.direct.tally.count(on_fast_path);
        on_fast_path.is_ok()
    }

    #[inline(always)]
    fn send_one(
        &mut self,
        index: u32,
        qp: QpHandle,
        wr: &SendWr<'_>,
        of: usize,
    ) -> Result<(), SlowPath> {
        let Node { qps, device, .. } = &self.slots[index as usize].node;
        let own = qps.get(qp.index(), qp.generation());
        let own = own.map_err(|_| SlowPath::LocalTransport)?;
        let is_it = own.common.handle.context() == qp.context();
        let requester = own.requester.as_ref().filter(|_| is_it);
        let path = requester.ok_or(SlowPath::LocalTransport)?.path;
        if path.epoch != self.direct.epoch {
            return self.send_on_new_path(index, qp, wr, of);
        }
        let near = End { qp: own, device };
        let prepared = near.prepare(path, wr, &mut self.direct.local)?;
        let far = path.node;
        let Node { qps, device, .. } = &self.slots[far as usize].node;
        let qp_there = qps.at(path.peer);
        let there = End {
            qp: qp_there,
            device,
        };
        let place = there.check_receive(&prepared, &mut self.direct.remote)?;
        // Between two devices, a list of one cannot be observed half done.
        if far == index || of > 1 {
            let is_whole = matches!(
                (prepared.local, place),
                (Gathered::One(_), Gathered::One(_))
            );
            self.check_order(index, qp.index(), &prepared, wr.flags, is_whole, of)?;
        }
        let Direct { local, remote, .. } = &*self.direct;
        let (local, remote) = ((prepared.local, &local[..]), (place, &remote[..]));
        if prepared.kind.intersects(Kinds::READS) {
            move_response(&wr.op, remote, local);
        } else {
            // SAFETY: the bytes belong to regions that were looked up just now.
            unsafe { move_bytes(local, remote) };
        }
        let ends_first = prepared.path.ends_first && !prepared.kind.intersects(Kinds::READS);
        if ends_first {
            self.end(index, qp.index(), &prepared, wr);
        }
        let mut there = self.at_mut(far, path.peer);
        there.take(&prepared, wr.flags);
        self.collect(far);
        if !ends_first {
            self.end(index, qp.index(), &prepared, wr);
        }
        Ok(())
    }

    /// Finds the path to the peer, then sends a work request.
    #[cold]
    fn send_on_new_path(
        &mut self,
        index: u32,
        qp: QpHandle,
        wr: &SendWr<'_>,
        of: usize,
    ) -> Result<(), SlowPath> {
        if self.at(index, qp.index()).qp.qp_type() == QpType::Ud {
            return self.send_datagram(index, qp.index(), wr, of);
        }
        self.find_path(index, qp.index())?;
        self.send_one(index, qp, wr, of)
    }

    /// Sends a work request of a datagram queue pair.
    #[inline(never)]
    fn send_datagram(
        &mut self,
        index: u32,
        qp: u32,
        wr: &SendWr<'_>,
        of: usize,
    ) -> Result<(), SlowPath> {
        let asked = self.at(index, qp).datagram_query(wr)?;
        let node = asked.to.node;
        let peer = self.find(node, asked.path.dest_qpn)?;
        self.at(node, peer).answer_datagram(&asked)?;
        let path = CachedPath {
            epoch: self.direct.epoch,
            node,
            peer,
            kinds: asked.kinds,
            ends_first: true,
        };
        // The lists are put back when the bytes have moved.
        let mut local = mem::take(&mut self.direct.local);
        let mut remote = mem::take(&mut self.direct.remote);
        let near = self.at(index, qp);
        let prepared = near.prepare(path, wr, &mut local)?;
        let there = self.at(node, peer);
        let (place, header) = there.check_datagram_receive(&prepared, &asked, &mut remote)?;
        // The whole list would be in the queue before any of it is done.
        let is_observable = node == index || of > near.send_capacity();
        ensure(of == 1 || !is_observable, SlowPath::ForItself)?;
        let bytes = &mut self.direct.bytes;
        bytes.resize(header.len() + prepared.length as usize, 0);
        let (head, data) = bytes.split_at_mut(header.len());
        head.copy_from_slice(&header);
        // SAFETY: the bytes belong to regions that were looked up just now.
        unsafe {
            let data = (Gathered::One(Span::of(data)), &[][..]);
            move_bytes((prepared.local, &local), data);
            let all = (Gathered::One(Span::of(bytes)), &[][..]);
            move_bytes(all, (place, &remote));
        }
        (self.direct.local, self.direct.remote) = (local, remote);
        self.end(index, qp, &prepared, wr);
        let mut there = self.at_mut(node, peer);
        there.take_datagram(&prepared, &asked, wr.flags);
        self.collect(node);
        Ok(())
    }

    /// Checks that the device cannot observe the difference to packets. A device that is its own
    /// peer observes that a list is queued as a whole before any of it is done, and that bytes
    /// taken earlier are no longer those of their region.
    #[inline(never)]
    fn check_order(
        &self,
        index: u32,
        qp: u32,
        prepared: &PreparedSend,
        flags: SendFlags,
        is_whole: bool,
        of: usize,
    ) -> Result<(), SlowPath> {
        let is_for_itself = prepared.path.node == index;
        let is_taken = prepared.path.ends_first || flags.contains(SendFlags::INLINE);
        let is_observable = if is_for_itself {
            of > 1 || is_taken && !is_whole
        } else {
            of > self.at(index, qp).send_capacity()
        };
        ensure(!is_observable, SlowPath::ForItself)
    }

    #[inline(never)]
    fn end(&mut self, index: u32, qp: u32, prepared: &PreparedSend, wr: &SendWr<'_>) {
        self.at_mut(index, qp).end(prepared, wr);
        self.collect(index);
    }

    /// Like `Fabric::collect`, for a node that has sent nothing and whose deadline is unchanged.
    #[inline(always)]
    fn collect(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.node.device.base.wakeups.move_to(self.wakeups);
        slot.descriptors.update(&mut slot.node.device);
    }

    /// Finds the path of a queue pair to its peer.
    #[cold]
    fn find_path(&mut self, index: u32, qp: u32) -> Result<(), SlowPath> {
        let asked = self.at(index, qp).path_query()?;
        let node = asked.to.node;
        let peer = self.find(node, asked.dest_qpn)?;
        let kinds = self.at(node, peer).answer_path(&asked)?;
        let path = CachedPath {
            epoch: self.direct.epoch,
            node,
            peer,
            kinds: asked.kinds & kinds,
            ends_first: asked.ends_first,
        };
        if let Some(requester) = &mut self.at_mut(index, qp).qp.requester {
            requester.path = path;
        }
        Ok(())
    }

    /// The slot of the queue pair with a number.
    fn find(&self, node: u32, qp_num: u32) -> Result<u32, SlowPath> {
        let node = &self.slots[node as usize].node;
        node.find_by_number(qp_num).ok_or(SlowPath::RemoteQp)
    }
}

/// Whether a verb changes nothing that cached paths depend on.
pub(crate) fn keeps_paths(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::PostRecv
            | Verb::PostSrqRecv
            | Verb::ReqNotifyCq
            | Verb::GetCqEvent
            | Verb::AckCqEvents
            | Verb::StartPoll
            | Verb::NextPoll
            | Verb::EndPoll
            | Verb::ReadMr
            | Verb::WriteMr
    )
}

/// Returns the data of a read or an atomic. An atomic changes the memory.
#[inline(never)]
fn move_response(op: &SendOp, remote: (Gathered, &[Span]), local: (Gathered, &[Span])) {
    if let SendOp::RdmaRead { .. } = op {
        // SAFETY: both are regions that `send_one` has just looked up.
        unsafe { move_bytes(remote, local) };
        return;
    }
    let mut bytes = [0; size_of::<u64>()];
    // SAFETY: the source is a region that `send_one` has just looked up; the target is a local.
    unsafe { move_bytes(remote, (Gathered::One(Span::of(&mut bytes)), &[])) };
    let original = u64::from_ne_bytes(bytes);
    let applied = atomic::header(op).map(|header| header.op.applied_to(original));
    let result = applied.unwrap_or(original).to_ne_bytes();
    for (bytes, into) in [(&result, remote), (&bytes, local)] {
        // SAFETY: the source is a local; the target is a region that `send_one` has just looked up.
        unsafe { move_bytes((Gathered::One(Span::of_shared(bytes)), &[]), into) };
    }
}
