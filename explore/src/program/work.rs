//! Posting what a program says, and what comes back.

use core::time::Duration;
use std::time::Instant;

use smallvec::SmallVec;
use verbs_api::{
    BatchEnd, CompChannel, Context, Cq, Element, Error, ErrorKind, Handle, PostError, RecvWr,
    Remote, Result, SendOp, SendWr, Sge, Wait, Wc, WcStatus,
};

use super::Pace;
use super::call::{self, Number, Op, Send};
use super::objects::Memory;
use super::outcome::{Completion, Seen, WrId};
use super::run::{Bytes, Posted, Runner, Undefined, wait};

type Sges = SmallVec<[Sge; 4]>;

impl Runner<'_> {
    fn sge(&self, sge: &call::Sge) -> Sge {
        let attr = self.objects.attr(sge.mr);
        Sge {
            lkey: sge.key.of(attr.lkey),
            ..attr.sge(u64::from(sge.offset), sge.length)
        }
    }

    fn sges(&self, list: &[call::Sge]) -> Sges {
        list.iter().map(|sge| self.sge(sge)).collect()
    }

    fn remote(&self, place: &call::Remote) -> Remote {
        let attr = self.objects.attr(place.mr);
        let remote = attr.remote(u64::from(place.offset));
        Remote {
            rkey: place.key.of(remote.rkey),
            ..remote
        }
    }

    fn bytes(&self, mr: Number, offset: u32, length: u32) -> Bytes {
        let (memory, first) = self.objects.mrs.get(mr).memory();
        let start = first.saturating_add(offset);
        Bytes {
            memory,
            start,
            end: start.saturating_add(length),
        }
    }

    fn bytes_of(&self, list: &[call::Sge]) -> SmallVec<[Bytes; 2]> {
        let bytes = |sge: &call::Sge| self.bytes(sge.mr, sge.offset, sge.length);
        list.iter().map(bytes).collect()
    }

    pub(super) fn post_send(&mut self, at: u32, qp: Number, list: &[Send]) -> Seen {
        let qp = self.objects.qps.get(qp).qp;
        let verbs = self.verbs;
        let posted = self.with_work(at, list, |work| verbs.post_send(qp, work));
        posted.map_or_else(refused_at, |()| Seen::Done)
    }

    pub(super) fn post_batch(&mut self, at: u32, qp: Number, list: &[Send]) -> Result<()> {
        let qp = self.objects.qps.get(qp).qp;
        let verbs = self.verbs;
        self.with_work(at, list, |work| {
            verbs.post_batch(qp, work, BatchEnd::Complete)
        })
    }

    /// Gives the device these sends.
    fn with_work<R>(&mut self, at: u32, list: &[Send], post: impl FnOnce(&[SendWr<'_>]) -> R) -> R {
        let lists = list.iter().map(|send| self.sges(&send.list));
        let lists: SmallVec<[Sges; 2]> = lists.collect();
        let mut work = SmallVec::<[_; 2]>::new();
        for (index, (send, sges)) in list.iter().zip(&lists).enumerate() {
            let wr_id = wr_id(at, index);
            let bytes = self.written(send);
            self.take_over_undefined(send, &bytes);
            self.posted.push((wr_id, Posted::send(bytes)));
            let mut wr = SendWr::new(wr_id.raw(), self.op(&send.op), sges);
            wr.flags = send.flags;
            if let Some(to) = send.to {
                let remote_qpn = self.objects.qps.get(to.qp).qp_num;
                wr = wr.to(self.objects.ahs.get(to.ah), remote_qpn, to.qkey);
            }
            work.push(wr);
        }
        post(&work)
    }

    fn op(&self, op: &Op) -> SendOp {
        match *op {
            Op::Send => SendOp::Send,
            Op::SendWithImm(imm) => SendOp::SendWithImm {
                imm_data: imm.to_be_bytes(),
            },
            Op::Write(remote) => SendOp::RdmaWrite {
                remote: self.remote(&remote),
            },
            Op::WriteWithImm(remote, imm) => SendOp::RdmaWriteWithImm {
                remote: self.remote(&remote),
                imm_data: imm.to_be_bytes(),
            },
            Op::Read(remote) => SendOp::RdmaRead {
                remote: self.remote(&remote),
            },
            Op::CompareAndSwap(remote, compare, swap) => SendOp::CompareAndSwap {
                remote: self.remote(&remote),
                compare,
                swap,
            },
            Op::FetchAndAdd(remote, add) => SendOp::FetchAndAdd {
                remote: self.remote(&remote),
                add,
            },
            Op::Flush(remote, length, placement, level) => SendOp::Flush {
                remote: self.remote(&remote),
                length,
                placement,
                level,
            },
            Op::AtomicWrite(remote, value) => SendOp::AtomicWrite {
                remote: self.remote(&remote),
                value: value.to_be_bytes(),
            },
        }
    }

    /// The memory that a send may write.
    fn written(&self, send: &Send) -> SmallVec<[Bytes; 2]> {
        if send.op.reads() {
            return self.bytes_of(&send.list);
        }
        self.at_the_peer(send).into_iter().collect()
    }

    /// The memory of the peer that a send reads or writes.
    fn at_the_peer(&self, send: &Send) -> Option<Bytes> {
        let length = match send.op {
            Op::AtomicWrite(..) => 8,
            _ => send.list.iter().map(|sge| sge.length).sum(),
        };
        let remote = send.op.remote()?;
        Some(self.bytes(remote.mr, remote.offset, length))
    }

    /// What is made of bytes that mean nothing means nothing.
    fn take_over_undefined(&mut self, send: &Send, written: &[Bytes]) {
        let source = self.at_the_peer(send).filter(|_| send.op.reads());
        let reads_undefined = match source {
            Some(source) => self.is_undefined(source),
            None => {
                let list = self.bytes_of(&send.list);
                list.into_iter().any(|bytes| self.is_undefined(bytes))
            }
        };
        if !reads_undefined {
            return;
        }
        // An atomic writes where it reads, and what depends on it.
        let changed = source.filter(|_| !matches!(send.op, Op::Read(_)));
        let bytes = written.iter().copied().chain(changed);
        are_undefined(&mut self.undefined, bytes);
    }

    fn is_undefined(&self, bytes: Bytes) -> bool {
        let mut of_memory = self.undefined_of(bytes.memory);
        of_memory.any(|(from, to)| from < bytes.end && bytes.start < to)
    }

    /// Bytes of a memory that mean nothing, as start and end. A receive that has not completed is
    /// the device's, which may have put a part of a message there.
    pub(super) fn undefined_of(&self, memory: Memory) -> impl Iterator<Item = (u32, u32)> {
        let waiting = self
            .posted
            .iter()
            .filter(|(_, work)| work.is_waiting_recv());
        let waiting = waiting
            .flat_map(|(_, work)| &work.bytes)
            .filter(move |bytes| bytes.memory == memory)
            .map(|bytes| (bytes.start, bytes.end));
        let known = self.undefined.get(&memory).into_iter().flatten().copied();
        known.chain(waiting)
    }

    /// Makes zero what means nothing of these bytes of a memory, which lie from `start` on.
    pub(super) fn blank(&self, memory: Memory, start: u32, bytes: &mut [u8]) {
        for (from, to) in self.undefined_of(memory) {
            let [from, to] = [from, to].map(|at| at.saturating_sub(start) as usize);
            let to = to.min(bytes.len());
            bytes[from.min(to)..to].fill(0);
        }
    }

    pub(super) fn post_recv(
        &mut self,
        at: u32,
        list: &[Vec<call::Sge>],
        is_ud: bool,
        post: impl FnOnce(&[RecvWr<'_>]) -> Result<(), PostError>,
    ) -> Seen {
        let lists: SmallVec<[Sges; 2]> = list.iter().map(|list| self.sges(list)).collect();
        let mut work = SmallVec::<[_; 2]>::new();
        for (index, (list, sges)) in list.iter().zip(&lists).enumerate() {
            let wr_id = wr_id(at, index);
            let bytes = self.bytes_of(list);
            if is_ud {
                header_is_undefined(&mut self.undefined, &bytes);
            }
            self.posted.push((wr_id, Posted::recv(bytes)));
            work.push(RecvWr::new(wr_id.raw(), sges));
        }
        let Err(refused) = post(&work) else {
            return Seen::Done;
        };
        let refused_work = list.len().saturating_sub(refused.bad_wr);
        self.posted.truncate(self.posted.len() - refused_work);
        refused_at(refused)
    }

    // What comes back

    pub(super) fn wait_for(&self, is_expected: bool) -> Wait {
        if is_expected && self.verbs.lab().is_none() {
            Wait::For(self.conditions.patience)
        } else {
            Wait::Poll
        }
    }

    /// Up to `max` completions. On a device, waits for `expected` of them.
    pub(super) fn poll(&mut self, cq: Cq, max: usize, expected: usize) -> Result<Vec<Completion>> {
        if self.polled.len() < max {
            self.polled.resize(max, Wc::default());
        }
        let list = &mut self.polled[..max];
        let mut count = self.verbs.poll_cq(cq, list)?;
        if self.verbs.lab().is_none() && count < expected {
            let deadline = Instant::now() + self.conditions.patience;
            while count < expected && Instant::now() < deadline {
                wait(BETWEEN_POLLS);
                count += self.verbs.poll_cq(cq, &mut list[count..])?;
            }
        }
        let device = self.objects.device_of.get(&cq.context()).copied();
        let completion = |wc| Completion::of(wc, |qp_num| self.objects.qp_of(qp_num, device));
        let mut completions: Vec<_> = self.polled[..count].iter().map(completion).collect();
        for completion in &completions {
            self.completed(completion);
        }
        if self.pace == Pace::Settled {
            // Between queues there is no order: work of several ends at the same time. The sort
            // keeps that of each.
            completions.sort_by_key(|completion| (completion.qp, self.is_recv(completion.wr_id)));
        }
        Ok(completions)
    }

    fn is_recv(&self, wr_id: WrId) -> bool {
        let found = self.posted.binary_search_by_key(&wr_id, |(of, _)| *of);
        found.is_ok_and(|at| self.posted[at].1.is_recv)
    }

    /// What failed leaves its memory undefined, and a datagram the start of its receive.
    fn completed(&mut self, completion: &Completion) {
        let of = completion.wr_id;
        let Ok(at) = self.posted.binary_search_by_key(&of, |(of, _)| *of) else {
            return;
        };
        let work = &mut self.posted[at].1;
        work.is_done = true;
        if completion.status != WcStatus::Success {
            are_undefined(&mut self.undefined, work.bytes.iter().copied());
        } else if work.is_recv
            && completion
                .qp
                .is_some_and(|qp| self.objects.qps.get(qp).is_ud)
        {
            header_is_undefined(&mut self.undefined, &work.bytes);
        }
    }

    pub(super) fn get_event(&mut self, channel: CompChannel, wait: Wait) -> Result<Seen> {
        let event = self.verbs.get_cq_event(channel, wait).map_err(no_event)?;
        *self.objects.unacked.entry(event.cq).or_default() += 1;
        let number = self.objects.cqs.number(event.cq).unwrap_or(Number::MAX);
        Ok(Seen::Event(number))
    }

    pub(super) fn get_async_event(&mut self, context: Context, wait: Wait) -> Result<Seen> {
        let event = self
            .verbs
            .get_async_event(context, wait)
            .map_err(no_event)?;
        self.objects.unacked_async.push((context, event));
        let number = match event.element {
            Element::Cq(cq) => self.objects.cqs.number(cq),
            Element::Qp(qp) => self.objects.qps.number_by(|made| made.qp == qp),
            Element::Srq(srq) => self.objects.srqs.number(srq),
            _ => None,
        };
        Ok(Seen::AsyncEvent(event.event_type, number))
    }
}

/// Notes bytes that mean nothing.
pub(super) fn are_undefined(undefined: &mut Undefined, bytes: impl IntoIterator<Item = Bytes>) {
    for Bytes { memory, start, end } in bytes {
        undefined.entry(memory).or_default().push((start, end));
    }
}

fn header_is_undefined(undefined: &mut Undefined, bytes: &[Bytes]) {
    let mut left = GRH_BYTES;
    for Bytes { memory, start, end } in bytes {
        let length = left.min(end - start);
        let header = Bytes {
            memory: *memory,
            start: *start,
            end: start + length,
        };
        are_undefined(undefined, [header]);
        left -= length;
    }
}

/// Whether a thread waited for it without result makes no difference.
fn no_event(error: Error) -> Error {
    match error.kind() {
        ErrorKind::TimedOut => {
            Error::new(error.verb(), ErrorKind::WouldBlock, error.cause().clone())
        }
        _ => error,
    }
}

fn refused_at(error: PostError) -> Seen {
    Seen::RefusedAt(error.bad_wr, error.error.kind())
}

fn wr_id(call: u32, index: usize) -> WrId {
    let index = u32::try_from(index).expect("lists are short");
    WrId { call, index }
}

/// How long one leaves a device that has not completed yet to itself.
const BETWEEN_POLLS: Duration = Duration::from_micros(50);

/// Bytes of a datagram's receive that the network header takes.
const GRH_BYTES: u32 = 40;
