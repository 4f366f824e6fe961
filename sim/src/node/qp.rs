//! Queue pairs: life, completion of work, errors.

use std::collections::BTreeSet;

use smallvec::SmallVec;
use verbs_api::behavior::{Check, SendByteLen, SqRelease};
use verbs_api::lab::{Limit, TraceEvent};
use verbs_api::profile::DeviceLimits;
use verbs_api::{
    Ah as AhHandle, AsyncEventType, Capabilities, Cause, Context, Dest, Element, Error, ErrorKind,
    Handle, Object, Pd as PdHandle, Qp as QpHandle, QpAttr, QpAttrMask, QpCap, QpInit, QpQuery,
    QpState, QpType, Result, SendFlags, SendOp, Sge, Verb, Wc, WcOpcode, WcStatus,
};

use super::atomic::Replies;
use super::context::PORT_MTU_BYTES;
use super::cq::{Delivery, Queue, Ticket};
use super::domain::Ah;
use super::queue::WorkQueue;
use super::requester::Requester;
use super::responder::Responder;
use super::srq::Taken;
use super::xrc::is_reliable;
use super::{InContext, Node, in_range, invalid};
use crate::memory::Payload;
use crate::packet::{Packet, Psn, Route};
use verbs_api::table::{Id, Table};

/// A queue pair.
#[derive(Clone, Debug)]
pub(super) struct Qp {
    pub(super) handle: QpHandle,
    /// Of XRC_RECV: that of the SRQ.
    pub(super) pd: u32,
    pub(super) qp_num: u32,
    pub(super) init: QpInit,
    pub(super) attr: QpAttr,
    pub(super) send_cq: u32,
    pub(super) recv_cq: u32,
    /// Of XRC_RECV: the one that the present request names. It may have gone since.
    pub(super) srq: Option<u32>,
    /// Payload bytes of one packet.
    pub(super) mtu: u32,
    /// To the peer, of a connected QP.
    pub(super) route: Option<Route>,
    pub(super) sq: WorkQueue<Send>,
    pub(super) rq: WorkQueue<Recv>,
    /// The receive of an SRQ into which the present message goes.
    pub(super) taken: Option<Taken>,
    pub(super) requester: Requester,
    pub(super) responder: Responder,
    pub(super) replies: Replies,
    pub(super) async_unacked: u32,
    /// In SQD: `SQ_DRAINED` is to be raised once.
    pub(super) tells_when_drained: bool,
    /// `COMM_EST` has been raised, for this connection.
    pub(super) comm_est: bool,
    /// Packets that came before RTR, on a device that keeps them.
    pub(super) early: Vec<Packet>,
    /// Windows of type 2 that were bound on it.
    pub(super) windows: BTreeSet<u32>,
    /// Its completions in CQs, on a device that takes them out when the QP goes.
    unpolled: u32,
    /// `QP_FATAL` has been raised.
    fatal: bool,
}

/// A send in its queue.
#[derive(Clone, Debug)]
pub(super) struct Send {
    pub(super) wr_id: u64,
    pub(super) op: SendOp,
    pub(super) flags: SendFlags,
    pub(super) list: SmallVec<[Sge; 1]>,
    pub(super) dest: Dest,
    pub(super) length: u32,
    /// Set when it starts; of inline data, when it is posted.
    pub(super) payload: Payload,
    pub(super) first: Psn,
    pub(super) span: u32,
    /// Bytes of an RDMA Read that have come.
    pub(super) got: u32,
    /// The sequence numbers of those.
    pub(super) answered: u32,
    /// It cannot be done; it completes with this status when its turn comes.
    pub(super) failed: Option<WcStatus>,
}

/// A receive in its queue.
#[derive(Clone, Debug)]
pub(super) struct Recv {
    pub(super) wr_id: u64,
    pub(super) list: SmallVec<[Sge; 1]>,
}

/// QP numbers are 24 bits: the slot plus 2 (0 and 1 are reserved) in the lower 17, and above them a
/// tag that changes each time the slot is used.
const INDEX_BITS: u32 = 17;
/// Leaves room for slots that rest before they are used again.
pub(super) const MAX_QP: u32 = (1 << INDEX_BITS) - 2 - 2 * verbs_api::table::QUARANTINE as u32;
const _: () = assert!(DeviceLimits::SPEC.max_qp == MAX_QP);

fn qp_num(id: Id, number_reuse: bool) -> u32 {
    let tag = if number_reuse { 0 } else { id.generation - 1 };
    (tag & 0x7f) << INDEX_BITS | (id.index + 2)
}

impl InContext for Qp {
    fn context(&self) -> Context {
        self.handle.context()
    }
}

impl Qp {
    /// One in RESET, of this protection domain, these CQs and perhaps an SRQ.
    pub(super) fn new(
        handle: QpHandle,
        number_reuse: bool,
        init: QpInit,
        (pd, send_cq, recv_cq): (u32, u32, u32),
        srq: Option<u32>,
    ) -> Self {
        let id = Id {
            index: handle.index(),
            generation: handle.generation(),
        };
        Self {
            handle,
            pd,
            qp_num: qp_num(id, number_reuse),
            init,
            attr: QpAttr {
                cap: init.cap,
                ..QpAttr::default()
            },
            send_cq,
            recv_cq,
            srq,
            mtu: PORT_MTU_BYTES,
            route: None,
            sq: WorkQueue::new(init.cap.max_send_wr),
            rq: WorkQueue::new(init.cap.max_recv_wr),
            taken: None,
            requester: Requester::default(),
            responder: Responder::default(),
            replies: Replies::default(),
            async_unacked: 0,
            tells_when_drained: false,
            comm_est: false,
            early: Vec::new(),
            windows: BTreeSet::new(),
            unpolled: 0,
            fatal: false,
        }
    }

    pub(super) fn timer_name(&self) -> &'static str {
        if self.requester.waits_for_receiver() {
            "RNR timer"
        } else {
            "ack timeout"
        }
    }

    /// The CQs it uses: one or two, or none if it is of XRC_RECV.
    fn cqs(&self) -> SmallVec<[u32; 2]> {
        if self.init.qp_type == QpType::XrcRecv {
            return SmallVec::new();
        }
        let mut cqs = SmallVec::from([self.send_cq, self.recv_cq]);
        cqs.dedup();
        cqs
    }

    fn ticket(&self, index: u32, queue: Queue, seq: u64) -> Ticket {
        Ticket {
            qp: index,
            qp_generation: self.handle.generation(),
            queue,
            seq,
        }
    }
}

impl Recv {
    pub(super) fn length(&self) -> u64 {
        self.list.iter().map(|sge| u64::from(sge.length)).sum()
    }
}

impl Node {
    /// `ibv_create_qp`
    pub fn create_qp(&mut self, pd: PdHandle, init: &QpInit) -> Result<QpHandle> {
        let verb = Verb::CreateQp;
        let pd_index = Self::find(&self.pds, verb, pd)?;
        let context = pd.context();
        let send_cq = Self::find_in(&self.cqs, verb, context, init.send_cq)?;
        let recv_cq = match init.qp_type {
            QpType::XrcSend => send_cq,
            _ => Self::find_in(&self.cqs, verb, context, init.recv_cq)?,
        };
        let has = match init.qp_type {
            QpType::Rc => true,
            QpType::Uc => !self.lacks.contains(Capabilities::UC),
            QpType::Ud => !self.lacks.contains(Capabilities::UD),
            QpType::XrcSend => !self.lacks.contains(Capabilities::XRC),
            _ => false,
        };
        if !has {
            let cause = Cause::Argument {
                what: "qp_type",
                problem: "is not supported",
            };
            return Err(Error::new(verb, ErrorKind::NotSupported, cause));
        }
        let srq = self.check_srq(verb, context, init)?;
        let asked = init.cap;
        let init = &init.cap(own_queues(init));
        let checked = match self.behavior.srq_recv_sizes {
            Check::Refused => asked,
            Check::Accepted | _ => init.cap,
        };
        self.check_cap(verb, &checked)?;
        super::batch::check(verb, init, self.lacks)?;
        let rounding = self.behavior.wr_rounding;
        let init = &init.cap(QpCap {
            max_send_wr: rounding.up(init.cap.max_send_wr),
            max_recv_wr: rounding.up(init.cap.max_recv_wr),
            ..init.cap
        });
        self.check_qp_room(verb)?;
        let number_reuse = self.behavior.number_reuse;
        let id = self.qps.insert(|id| {
            let handle = QpHandle::from_parts(context, id.index, id.generation);
            Qp::new(
                handle,
                number_reuse,
                *init,
                (pd_index, send_cq, recv_cq),
                srq,
            )
        });
        self.add_object(context, Object::Qp, id.index);
        self.pds.at_mut(pd_index).qps += 1;
        for cq in self.qps.at(id.index).cqs() {
            self.cqs.at_mut(cq).users += 1;
        }
        if let Some(srq) = srq {
            self.srqs.at_mut(srq).users += 1;
        }
        Ok(QpHandle::from_parts(context, id.index, id.generation))
    }

    /// There may be one more.
    pub(super) fn check_qp_room(&self, verb: Verb) -> Result<()> {
        self.check_room(verb, "queue pairs", self.qps.len(), self.attr.max_qp)?;
        let count = u64::from(self.qps.len()) + 1;
        self.check_limit(verb, Limit::QueuePairs, "queue pairs", count)
    }

    /// The SRQ that a QP is to be made with; only RC and UD may have one (QP-CREATE-04).
    fn check_srq(&self, verb: Verb, context: Context, init: &QpInit) -> Result<Option<u32>> {
        let Some(srq) = init.srq else {
            return Ok(None);
        };
        if init.qp_type == QpType::Uc && self.behavior.uc_srq == Check::Refused {
            return Err(invalid(verb, "srq", "is for RC and UD"));
        }
        let srq = Self::find_in(&self.srqs, verb, context, srq)?;
        if init.qp_type == QpType::XrcSend || self.srqs.at(srq).xrc.is_some() {
            let problem = "and the qp: messages of XRC name an SRQ, those of others cannot";
            return Err(invalid(verb, "srq", problem));
        }
        Ok(Some(srq))
    }

    fn check_cap(&self, verb: Verb, cap: &QpCap) -> Result<()> {
        let (wr, sge) = (i64::from(self.attr.max_qp_wr), i64::from(self.attr.max_sge));
        in_range(verb, "max_send_wr", i64::from(cap.max_send_wr), 0, wr)?;
        in_range(verb, "max_recv_wr", i64::from(cap.max_recv_wr), 0, wr)?;
        in_range(verb, "max_send_sge", i64::from(cap.max_send_sge), 0, sge)?;
        in_range(verb, "max_recv_sge", i64::from(cap.max_recv_sge), 0, sge)?;
        let inline = i64::from(self.attr.max_inline_data);
        in_range(
            verb,
            "max_inline_data",
            i64::from(cap.max_inline_data),
            0,
            inline,
        )
    }

    /// The QP number.
    pub fn qp_num(&self, qp: QpHandle) -> Result<u32> {
        Ok(self.qps.at(self.find_qp(Verb::QueryQp, qp)?).qp_num)
    }

    /// `ibv_query_qp`: everything, whatever the mask.
    pub fn query_qp(&self, qp: QpHandle, _mask: QpAttrMask) -> Result<QpQuery> {
        let qp = self.qps.at(self.find_qp(Verb::QueryQp, qp)?);
        let state = qp.attr.qp_state;
        let sq_draining = state == QpState::Sqd && qp.requester.is_busy(&qp.sq);
        let attr = QpAttr {
            cur_qp_state: state,
            sq_draining,
            ..qp.attr
        };
        Ok(QpQuery::new(qp.qp_num, attr, qp.init))
    }

    /// `ibv_destroy_qp` that does not wait.
    pub fn destroy_qp(&mut self, qp: QpHandle) -> Result<()> {
        let verb = Verb::DestroyQp;
        if let Some(opening) = super::xrc::opening(qp) {
            return self.destroy_opening(verb, opening);
        }
        let index = Self::find(&self.qps, verb, qp)?;
        self.check_no_iterations(verb, index)?;
        self.check_detached(verb, index)?;
        let events = self.qps.at(index).async_unacked;
        if events > 0 {
            let cause = Cause::Unacknowledged {
                object: Object::Qp,
                events,
            };
            return Err(Error::new(verb, ErrorKind::WouldBlock, cause));
        }
        self.remove_qp(index);
        Ok(())
    }

    /// Refuses what looks through the CQs of a QP, while that would wait for an iteration.
    pub(super) fn check_no_iterations(&self, verb: Verb, index: u32) -> Result<()> {
        let cqs = self.qps.at(index).cqs();
        cqs.into_iter()
            .try_for_each(|cq| self.check_no_iteration(verb, cq))
    }

    fn remove_qp(&mut self, index: u32) {
        self.timers.set(index, None);
        self.leave_groups(index);
        let mut qp = self.qps.remove(index);
        self.remove_object(qp.handle.context(), Object::Qp, index);
        for cq in qp.cqs() {
            if qp.unpolled > 0 {
                self.purge(cq, index, qp.handle.generation());
            }
            self.cqs.at_mut(cq).users -= 1;
        }
        if let Some(srq) = qp.srq {
            self.srqs.at_mut(srq).users -= 1;
        }
        if let Some(taken) = qp.taken {
            self.release_shared(taken);
        }
        let dropped = qp.sq.clear(free(&mut self.ahs)) + qp.rq.clear(|_| ());
        let pd = self.pds.at_mut(qp.pd);
        pd.qps -= 1;
        pd.posted -= dropped;
        self.free_windows(&qp.windows);
        self.discard_async(qp.handle.context(), Element::Qp(qp.handle));
        self.place_late();
        self.news = true;
    }

    /// With those of XRC_RECV that the context has open.
    pub(super) fn remove_qps_of(&mut self, context: Context) {
        for index in self.objects(context, Object::Qp) {
            match super::xrc::opening_at(index) {
                None => self.remove_qp(index),
                Some(opening) => self.close_target(opening),
            }
        }
    }

    /// The QP with a number.
    pub(super) fn qp_of_number(&self, qp_num: u32) -> Option<u32> {
        let index = (qp_num & ((1 << INDEX_BITS) - 1)).checked_sub(2)?;
        self.qps
            .peek(index)
            .filter(|qp| qp.qp_num == qp_num)
            .map(|_| index)
    }

    /// The only writer of a QP's state.
    pub(super) fn set_state(&mut self, index: u32, to: QpState) {
        let qp = self.qps.at_mut(index);
        let from = std::mem::replace(&mut qp.attr.qp_state, to);
        let qp = qp.handle;
        if from != to {
            self.note(TraceEvent::QpState { qp, from, to });
        }
    }

    /// Back to RESET: the queues are cleared without completions (QP-STATE-25).
    pub(super) fn reset(&mut self, index: u32) {
        self.timers.set(index, None);
        self.set_state(index, QpState::Reset);
        let qp = self.qps.at_mut(index);
        qp.attr = QpAttr {
            cap: qp.init.cap,
            ..QpAttr::default()
        };
        qp.route = None;
        let dropped = qp.sq.clear(free(&mut self.ahs)) + qp.rq.clear(|_| ());
        let (pd, taken) = (qp.pd, qp.taken.take());
        qp.requester = Requester::default();
        qp.responder = Responder::default();
        qp.replies.clear();
        qp.tells_when_drained = false;
        qp.comm_est = false;
        qp.early.clear();
        qp.fatal = false;
        let (cqs, generation) = (qp.cqs(), qp.handle.generation());
        if qp.unpolled > 0 {
            for cq in cqs {
                self.purge(cq, index, generation);
            }
        }
        if dropped > 0 {
            self.pds.at_mut(pd).posted -= dropped;
        }
        if let Some(taken) = taken {
            self.release_shared(taken);
        }
    }

    /// The oldest send that is not done completes. A failure stops the queue: RC and XRC go to ERR, UC
    /// and UD to SQE if the device has it (QP-STATE-15, -17).
    pub(super) fn finish_send(&mut self, index: u32, status: WcStatus) {
        if status == WcStatus::Success {
            return self.complete_send(index, status);
        }
        self.note_failed_send(index, status);
        self.complete_send(index, status);
        self.stop_sends(index);
    }

    fn stop_sends(&mut self, index: u32) {
        let qp = self.qps.at(index);
        if is_reliable(qp.init.qp_type) || !self.behavior.sqe {
            self.fail_qp(index);
        } else if qp.attr.qp_state != QpState::Err {
            self.set_state(index, QpState::Sqe);
            self.flush_sends(index);
        }
    }

    /// A completion is not what it should be: the queue that it is of stops, as after a failure.
    #[cold]
    pub(super) fn stop(&mut self, ticket: Ticket) {
        match ticket.is_recv() {
            true => self.fail_qp(ticket.qp),
            false => self.stop_sends(ticket.qp),
        }
    }

    /// To the error state for want of a completion, which `QP_FATAL` stands for (CQ-OVR-04).
    pub(super) fn fail_fatally(&mut self, index: u32) {
        if !std::mem::replace(&mut self.qps.at_mut(index).fatal, true) {
            self.raise_of_qp(index, AsyncEventType::QpFatal);
        }
        self.fail_qp(index);
    }

    /// To the error state, if it is not there yet.
    fn fail_qp(&mut self, index: u32) {
        if self.qps.at(index).attr.qp_state != QpState::Err {
            self.enter_error(index);
        }
    }

    fn complete_send(&mut self, index: u32, status: WcStatus) {
        let behavior = &self.behavior;
        let qp = self.qps.at_mut(index);
        let seq = qp.sq.finish();
        let send = qp.sq.get(seq);
        let is_read = send.is_read();
        if is_read {
            qp.requester.read_is_done(seq);
        }
        let signaled = qp.init.sq_sig_all || send.flags.contains(SendFlags::SIGNALED);
        let mut wc = Wc::default();
        wc.wr_id = send.wr_id;
        wc.status = status;
        wc.opcode = send.op.wc_opcode();
        wc.byte_len = match behavior.send_byte_len {
            SendByteLen::Reads if !is_read => 0,
            _ => send.length,
        };
        wc.qp_num = qp.qp_num;
        let solicited = send.flags.contains(SendFlags::SOLICITED);
        let (cq, ticket) = (qp.send_cq, qp.ticket(index, Queue::Send, seq));
        if behavior.sq_release == SqRelease::Completion {
            let released = qp.sq.release(seq, free(&mut self.ahs));
            self.pds.at_mut(qp.pd).posted -= released;
        }
        let silent = status == WcStatus::MwBindErr && !self.behavior.bind_err_wc;
        if signaled || status != WcStatus::Success && !silent {
            self.complete(cq, wc, ticket, solicited);
        }
    }

    /// The oldest receive completes. `wc` has status, opcode and what the message brought.
    pub(super) fn complete_recv(&mut self, index: u32, mut wc: Wc, solicited: bool) -> Delivery {
        let release_now = self.behavior.sq_release == SqRelease::Completion;
        if wc.status != WcStatus::Success {
            self.note_failed_recv(index, wc.status);
        }
        let qp = self.qps.at_mut(index);
        if let Some(taken) = qp.taken.take() {
            return self.complete_shared(index, taken, wc, solicited);
        }
        let seq = qp.rq.finish();
        wc.wr_id = qp.rq.get(seq).wr_id;
        wc.qp_num = qp.qp_num;
        let (cq, ticket) = (qp.recv_cq, qp.ticket(index, Queue::Recv, seq));
        if release_now {
            let released = qp.rq.release(seq, |_| ());
            self.pds.at_mut(qp.pd).posted -= released;
        }
        self.complete(cq, wc, ticket, solicited)
    }

    /// A receive of an SRQ completes, on the QP that took it.
    fn complete_shared(
        &mut self,
        index: u32,
        taken: Taken,
        mut wc: Wc,
        solicited: bool,
    ) -> Delivery {
        let Some(srq) = self.srq_of(taken) else {
            return Delivery::Made;
        };
        let qp = self.qps.at(index);
        wc.wr_id = srq.get(taken.seq).wr_id;
        wc.qp_num = qp.qp_num;
        let queue = Queue::Shared(taken.srq);
        let cq = srq.xrc.map_or(qp.recv_cq, |xrc| xrc.cq);
        let ticket = qp.ticket(index, queue, taken.seq);
        if self.behavior.sq_release == SqRelease::Completion {
            self.release_shared(taken);
        }
        self.complete(cq, wc, ticket, solicited)
    }

    /// Whether the QP has a receive that can complete.
    pub(super) fn has_receive(&self, index: u32) -> bool {
        let qp = self.qps.at(index);
        qp.taken.is_some() || qp.rq.has_undone()
    }

    /// A completion is in a CQ, or is there no more.
    #[inline]
    pub(super) fn count_unpolled(&mut self, ticket: &Ticket, is_there: bool) {
        if self.behavior.cqe_purge
            && let Some(qp) = self.qps.live_mut(ticket.qp, ticket.qp_generation)
        {
            let unpolled = &mut qp.unpolled;
            *unpolled = if is_there {
                *unpolled + 1
            } else {
                *unpolled - 1
            };
        }
    }

    /// A completion was polled: its slot is free, and in a queue of the QP those before it.
    pub(super) fn release(&mut self, ticket: Ticket) {
        self.count_unpolled(&ticket, false);
        if let Queue::Shared(srq) = ticket.queue {
            let seq = ticket.seq;
            return self.release_shared(Taken { srq, seq });
        }
        let alive = self.qps.get(ticket.qp, ticket.qp_generation).is_ok();
        if alive {
            let qp = self.qps.at_mut(ticket.qp);
            let released = if ticket.queue == Queue::Recv {
                qp.rq.release(ticket.seq, |_| ())
            } else {
                qp.sq.release(ticket.seq, free(&mut self.ahs))
            };
            self.pds.at_mut(qp.pd).posted -= released;
        }
    }

    pub(super) fn flush_sends(&mut self, index: u32) {
        while self.qps.at(index).sq.has_undone() {
            self.complete_send(index, WcStatus::WrFlushErr);
        }
    }

    pub(super) fn flush_recvs(&mut self, index: u32) {
        let mut wc = Wc::default();
        wc.status = WcStatus::WrFlushErr;
        wc.opcode = WcOpcode::Recv;
        while self.has_receive(index) {
            self.complete_recv(index, wc, false);
        }
    }

    /// To the error state: all that is outstanding is flushed, in order (QP-FLUSH-01, -02). Receives
    /// that wait in an SRQ stay there, and the QP will take none any more (QP-FLUSH-04, -05).
    pub(super) fn enter_error(&mut self, index: u32) {
        self.timers.set(index, None);
        let was_in_error = self.qps.at(index).attr.qp_state == QpState::Err;
        self.set_state(index, QpState::Err);
        let qp = self.qps.at_mut(index);
        qp.requester.stop();
        qp.responder = Responder::default();
        self.place_late();
        self.flush_sends(index);
        self.flush_recvs(index);
        let qp = self.qps.at(index);
        let has_srq = qp.srq.is_some() && qp.init.qp_type != QpType::XrcRecv;
        if has_srq && !was_in_error && self.behavior.last_wqe {
            self.raise_of_qp(index, AsyncEventType::QpLastWqeReached);
        }
    }

    /// A send whose slot is taken and that goes over an address handle.
    pub(super) fn user_of_ah(&self, ah: AhHandle) -> Option<(QpHandle, u64)> {
        let uses = |send: &&Send| matches!(send.dest, Dest::Ud { ah: of, .. } if of == ah);
        self.qps.iter().find_map(|(_, qp)| {
            let send = qp.sq.iter().find(uses)?;
            Some((qp.handle, send.wr_id))
        })
    }
}

/// Lets go of what sends name whose slots become free.
pub(super) fn free(ahs: &mut Table<Ah>) -> impl FnMut(&Send) {
    |send| {
        if let Dest::Ud { ah, .. } = send.dest
            && let Some(ah) = ahs.live_mut(ah.index(), ah.generation())
        {
            ah.sends -= 1;
        }
    }
}

/// The sizes of a QP's own queues: it has no receives beside those of an SRQ, and of XRC none at all.
fn own_queues(init: &QpInit) -> QpCap {
    if init.srq.is_none() && init.qp_type != QpType::XrcSend {
        return init.cap;
    }
    QpCap {
        max_recv_wr: 0,
        max_recv_sge: 0,
        ..init.cap
    }
}
