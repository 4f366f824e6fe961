//! Posting on a queue pair.

use verbs_api::behavior::{Behavior, Check, Errno, FlushPostInErr, IllegalOpcode, PostWrongState};
use verbs_api::{
    BatchEnd, Capabilities, Cause, Dest, ErrorKind, FullQueue, Mw, MwBind, QpCap, QpInit, QpState,
    QpType, RecvWr, SendFlags, SendOps, SendWr, Verb, WcStatus,
};

use super::common::Common;
use super::requester::Requester;
use super::send::{self, hold_ah, release_each};
use super::{Qp, atomic, sum};
use crate::device::{
    ClaimedQueue, Device, MAX_MSG_SZ, PostRefusal, Refusal, Result, argument, check_sges, find_in,
    in_range, invalid, post_each,
};

impl Qp {
    /// `ibv_post_send`, without starting anything yet.
    #[inline]
    pub(crate) fn push_sends(
        &mut self,
        device: &mut Device,
        list: &[SendWr<'_>],
    ) -> Result<(), PostRefusal> {
        let posted = post_each(list, |wr| self.push_send(device, Verb::PostSend, wr));
        // An empty list is accepted in every state.
        let posted = match list {
            [] => posted,
            _ => self.check_ready(device, posted),
        };
        posted.map_err(|refusal| device.base.as_returned(refusal))
    }

    /// Refuses a list as a whole if it was queued too early. The bad work request is the first one
    /// that was not queued. If all were queued, the first one is named.
    fn check_ready(
        &self,
        device: &Device,
        posted: Result<(), PostRefusal>,
    ) -> Result<(), PostRefusal> {
        let state = self.common.state();
        let refused = device.base.behavior.post_wrong_state == PostWrongState::Refused;
        if !is_too_early(state) || refused {
            return posted;
        }
        let bad_wr = posted.map_or_else(|refusal| refusal.bad_wr, |()| 0);
        Err(PostRefusal::new(bad_wr, too_early(state)))
    }

    /// Starts what was posted, or flushes it.
    pub(crate) fn run_sends(&mut self, device: &mut Device) {
        self.note_post_in_error(device);
        match self.common.state() {
            // Some drivers never complete work that is posted in ERR.
            QpState::Err if device.base.behavior.flush_post_in_err == FlushPostInErr::None => {}
            QpState::Sqe | QpState::Err => self.flush_sends(device),
            _ => self.request(device, Requester::pump),
        }
    }

    /// `ibv_wr_start` to `ibv_wr_complete` or `ibv_wr_abort`, without starting anything yet. Posts
    /// all requests or none.
    pub(crate) fn push_batch(
        &mut self,
        device: &mut Device,
        list: &[SendWr<'_>],
        end: BatchEnd,
    ) -> Result<()> {
        let has = self.common.init.send_ops;
        if has.is_empty() {
            return Err(invalid("qp", "was made without batches"));
        }
        if !list.iter().all(|wr| has.contains(SendOps::of(&wr.op))) {
            let problem = "is not among those that the qp was made with";
            return Err(invalid("operation", problem));
        }
        let Some(before) = self.requester.as_ref().map(|own| own.sq.end()) else {
            return Err(no_send_queue());
        };
        // The batch was checked above, so an abort of a wrong batch still fails.
        if end == BatchEnd::Abort {
            return Ok(());
        }
        // Requests are queued one by one and removed again if one is refused.
        let posted = list
            .iter()
            .try_for_each(|wr| self.push_send(device, Verb::PostBatch, wr));
        if let Err(error) = posted {
            if let Some(own) = &mut self.requester {
                let free = release_each(&mut device.domains.ahs);
                let dropped = own.sq.take_back(before, &mut device.places.sends, free);
                device.domains.pds.at_mut(own.pd).posted -= dropped;
            }
            return Err(error);
        }
        list.iter().for_each(|wr| device.note_bind(&wr.op));
        Ok(())
    }

    /// `ibv_bind_mw`, after window and region have been checked.
    pub(crate) fn post_bind(
        &mut self,
        device: &mut Device,
        mw: Mw,
        rkey: u32,
        bind: &MwBind,
    ) -> Result<()> {
        let wr = SendWr::bind_mw(bind.wr_id, mw, rkey, bind.info).labeled(bind.label());
        let wr = wr.unsignaled().flags(bind.flags);
        let posted = self.push_send(device, Verb::BindMw, &wr);
        self.run_sends(device);
        posted
    }

    /// `ibv_post_recv`
    pub(crate) fn post_recv(
        &mut self,
        device: &mut Device,
        list: &[RecvWr<'_>],
    ) -> Result<(), PostRefusal> {
        let posted = post_each(list, |wr| self.push_recv(device, wr));
        let posted = posted.map_err(|refusal| device.base.as_returned(refusal));
        // Receives that are posted in ERR are flushed immediately (QP-STATE-21).
        if self.common.state() == QpState::Err
            && device.base.behavior.flush_post_in_err == FlushPostInErr::All
        {
            self.flush_recvs(device);
        }
        posted
    }

    /// Posts a send of `verb`, which decides what is checked.
    fn push_send(&mut self, device: &mut Device, verb: Verb, wr: &SendWr<'_>) -> Result<()> {
        let qp = &self.common;
        let Some(requester) = &mut self.requester else {
            return Err(no_send_queue());
        };
        let (qp_type, state, cap) = (qp.init.qp_type, qp.state(), qp.init.cap);
        let behavior = &device.base.behavior;
        if is_too_early(state) && behavior.post_wrong_state != PostWrongState::Queued {
            return Err(too_early(state));
        }
        if wr.op.is_for_batches() && verb != Verb::PostBatch {
            return Err(invalid("opcode", "is for batches alone"));
        }
        // A wrong operation fails when it is posted or when it is carried out, as drivers differ.
        let has = operations(qp_type, device.base.lacks);
        let failed = if has.contains(SendOps::of(&wr.op)) {
            None
        } else if behavior.illegal_opcode == IllegalOpcode::LocQpOpErr {
            Some(WcStatus::LocQpOpErr)
        } else {
            return Err(invalid("opcode", "is not one of the qp's transport"));
        };
        // Binds and invalidations move no data, and an atomic write brings its own.
        let has_list = !send::is_local(&wr.op) && !wr.op.is_for_batches();
        if !has_list && (!wr.sg_list.is_empty() || wr.inline_data.is_some()) {
            return Err(invalid("sg_list", "is for work that moves data"));
        }
        check_sges(wr.sg_list, cap.max_send_sge, sge_errno(behavior))?;
        check_destination(device, qp_type, qp.context(), wr)?;
        let length = wr.length();
        check_data(behavior, &cap, wr, length)?;
        // The order of the checks decides which error a program sees. Drivers look at the queue
        // last.
        if requester.sq.is_full() {
            return Err(full(qp, requester));
        }
        device.check_bind(verb, qp.context(), &wr.op)?;
        let (send, is_first) = requester.sq.push(&mut device.places.sends);
        if let Some(bytes) = wr.inline_data {
            send.inline.clear();
            send.inline.extend_from_slice(bytes);
        // Inline bytes are copied now: the program may reuse its memory when the call returns.
        } else if wr.flags.contains(SendFlags::INLINE)
            && device
                .domains
                .take_inline(wr.sg_list, &mut send.inline)
                .is_err()
        {
            let (sq, spare) = (&mut requester.sq, &mut device.places.sends);
            sq.take_back(sq.end() - 1, spare, |_| ());
            let (kind, what) = (ErrorKind::Fault, argument::INLINE_DATA);
            return Err(Refusal::argument(kind, what, "is in no memory region"));
        }
        send.put(wr, length as u32, failed);
        send.site = device.base.site;
        // The bytes belong to the device from now on.
        if device.base.checks_memory {
            sum::note_posted(&device.domains, requester.pd, send);
        }
        if is_first {
            device.claims.mark_unsorted(ClaimedQueue::Send(qp.index()));
        }
        requester.note_posted(qp, device, wr);
        // A batch announces its binds after all of it was accepted.
        if verb != Verb::PostBatch {
            device.note_bind(&wr.op);
        }
        hold_ah(&mut device.domains.ahs, &wr.dest);
        device.domains.pds.at_mut(requester.pd).posted += 1;
        // A batch reports the wrong state only now: it checks each request first.
        if is_too_early(state) && verb == Verb::PostBatch {
            return Err(too_early(state));
        }
        Ok(())
    }

    fn push_recv(&mut self, device: &mut Device, wr: &RecvWr<'_>) -> Result<()> {
        let qp = &self.common;
        if let QpType::XrcSend | QpType::XrcRecv = qp.init.qp_type {
            return Err(invalid("qp", "is of XRC, and has no receive queue"));
        }
        let receives = &mut self.responder.receives;
        let (Some(pd), Some(rq)) = (receives.pd(), receives.rq_mut()) else {
            return Err(invalid("qp", "takes its receives from an SRQ"));
        };
        let state = qp.state();
        if state == QpState::Reset && device.base.behavior.post_recv_reset == Check::Refused {
            let cause = Cause::QpState { state };
            return Err(Refusal::new(ErrorKind::Invalid, cause));
        }
        // As in drivers: a receive checks the queue first, a send the work request.
        if rq.is_full() {
            return Err(Refusal::full(FullQueue::Receive, rq.capacity));
        }
        let max = qp.init.cap.max_recv_sge;
        check_sges(wr.sg_list, max, ErrorKind::Invalid)?;
        // Counts the work of the domain, so that memory accesses can skip the search for owners.
        device.domains.pds.at_mut(pd).posted += 1;
        let (recv, is_first) = rq.push(&mut device.places.recvs);
        recv.put(wr);
        recv.site = device.base.site;
        if is_first {
            device.claims.mark_unsorted(ClaimedQueue::Recv(qp.index()));
        }
        Ok(())
    }
}

/// Checks the destination of a send, which UD and XRC name in each.
fn check_destination(
    device: &Device,
    qp_type: QpType,
    context: verbs_api::Context,
    wr: &SendWr<'_>,
) -> Result<()> {
    if qp_type == QpType::Ud {
        let Dest::Ud { ah, .. } = wr.dest else {
            let problem = "is missing: a UD send names its destination";
            return Err(invalid("ah", problem));
        };
        find_in(&device.domains.ahs, context, ah)?;
    }
    let names_no_srq = !matches!(wr.dest, Dest::Xrc { .. }) && !send::is_local(&wr.op);
    if qp_type == QpType::XrcSend && names_no_srq {
        let problem = "is missing: work of XRC names an SRQ of the peer";
        return Err(invalid("remote_srqn", problem));
    }
    Ok(())
}

/// Refuses a work request because of its data: their length, their alignment, and where they are.
/// The fast path calls it too, so that both paths refuse the same.
#[inline(always)]
pub(crate) fn check_data(
    behavior: &Behavior,
    cap: &QpCap,
    wr: &SendWr<'_>,
    length: u64,
) -> Result<()> {
    // The cheap check comes first, since it runs for each post.
    in_range("message length", length as i64, 0, MAX_MSG_SZ.into())?;
    if let Some(problem) = atomic::problem(behavior.atomic_check, wr, length) {
        return Err(invalid("atomic", problem));
    }
    if !wr.flags.contains(SendFlags::INLINE) {
        // Bytes without the flag would be silently ignored.
        if wr.inline_data.is_some() {
            return Err(invalid(argument::INLINE_DATA, "is without INLINE"));
        }
        return Ok(());
    }
    if wr.op.reads() {
        return Err(invalid(argument::INLINE, "is for Send and RDMA Write"));
    }
    if length > u64::from(cap.max_inline_data) {
        let (kind, what) = (sge_errno(behavior), argument::INLINE_DATA);
        let (length, max) = (length as i64, cap.max_inline_data.into());
        return Err(Refusal::out_of_range(kind, what, length, 0, max));
    }
    Ok(())
}

/// The error for too many SGEs or too much inline data.
fn sge_errno(behavior: &Behavior) -> ErrorKind {
    match behavior.sge_errno {
        Errno::Enomem => ErrorKind::NoMemory,
        Errno::Einval | _ => ErrorKind::Invalid,
    }
}

/// Whether the state is one in which a queue pair does not send yet (QP-STATE-18).
fn is_too_early(state: QpState) -> bool {
    matches!(state, QpState::Reset | QpState::Init | QpState::Rtr)
}

fn too_early(state: QpState) -> Refusal {
    Refusal::new(ErrorKind::Invalid, Cause::QpState { state })
}

fn no_send_queue() -> Refusal {
    invalid("qp", "is of XRC_RECV, and has no send queue")
}

/// The operations of a transport (SQ-18), without those for which the device lacks a capability
/// (ATOM-10).
fn operations(qp_type: QpType, lacks: Capabilities) -> SendOps {
    let datagrams = SendOps::SEND | SendOps::SEND_WITH_IMM;
    let writes = SendOps::RDMA_WRITE | SendOps::RDMA_WRITE_WITH_IMM;
    let windows = SendOps::BIND_MW | SendOps::LOCAL_INV | SendOps::SEND_WITH_INV;
    let atomics = SendOps::ATOMIC_CMP_AND_SWP | SendOps::ATOMIC_FETCH_AND_ADD;
    let reliable = datagrams | writes | windows | atomics | SendOps::RDMA_READ | SendOps::FLUSH;
    let all = match qp_type {
        QpType::Rc => reliable | SendOps::ATOMIC_WRITE,
        QpType::XrcSend => reliable,
        QpType::Uc => datagrams | writes | windows,
        _ => datagrams,
    };
    // The common case, for each post.
    if lacks.is_empty() {
        return all;
    }
    let needs = [
        (Capabilities::SEND_WITH_IMM, SendOps::SEND_WITH_IMM),
        (Capabilities::WRITE_WITH_IMM, SendOps::RDMA_WRITE_WITH_IMM),
        (Capabilities::RDMA_READ, SendOps::RDMA_READ),
        (Capabilities::MW, windows),
        (Capabilities::ATOMICS, atomics),
        (Capabilities::FLUSH, SendOps::FLUSH),
        (Capabilities::ATOMIC_WRITE, SendOps::ATOMIC_WRITE),
    ];
    let lacking = needs.into_iter().filter(|(need, _)| lacks.contains(*need));
    lacking.fold(all, |has, (_, ops)| has - ops)
}

/// Checks that transport and device have the operations requested for batches (SQ-28).
pub(crate) fn check_batches(init: &QpInit, lacks: Capabilities) -> Result<()> {
    // Posts refuse the other operations that the device lacks.
    let checked = lacks
        & (Capabilities::MW
            | Capabilities::ATOMICS
            | Capabilities::FLUSH
            | Capabilities::ATOMIC_WRITE);
    let has = if lacks.contains(Capabilities::BATCHES) {
        SendOps::empty()
    } else {
        operations(init.qp_type, checked)
    };
    if has.contains(init.send_ops) {
        return Ok(());
    }
    let problem = "has some that the transport or the device has not";
    let kind = ErrorKind::NotSupported;
    Err(Refusal::argument(kind, "send_ops", problem))
}

/// The error for a send queue that is full.
#[cold]
#[cfg_attr(any(), mutants::skip)] // texts
fn full(qp: &Common, requester: &Requester) -> Refusal {
    let mut sends = requester.sq.iter();
    // If no send is signaled, none of the slots will ever be free, which the error names.
    let queue = if sends.any(|send| qp.signals(send.flags)) {
        FullQueue::Send
    } else {
        FullQueue::UnsignaledSend
    };
    Refusal::full(queue, requester.sq.capacity)
}
