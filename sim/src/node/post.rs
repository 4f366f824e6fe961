//! Posting.

use smallvec::SmallVec;
use verbs_api::behavior::{Check, Errno, FlushPostInErr, IllegalOpcode, PostWrongState};
use verbs_api::{
    Capabilities, Cause, Dest, Error, ErrorKind, Handle, PostError, Qp as QpHandle, QpState,
    QpType, RecvWr, Result, SendFlags, SendOp, SendWr, Sge, Verb, WcStatus,
};

use super::claim::Queue;
use super::context::MAX_MSG_SZ;
use super::qp::{Recv, Send};
use super::{Node, atomic, in_range, invalid};
use crate::memory::Payload;
use crate::packet::Psn;
use crate::time::Time;

impl Node {
    /// `ibv_post_send`
    pub fn post_send(
        &mut self,
        now: Time,
        qp: QpHandle,
        list: &[SendWr<'_>],
    ) -> Result<(), PostError> {
        let index = self
            .find_qp(Verb::PostSend, qp)
            .map_err(|error| PostError::new(0, error))?;
        let posted = post_each(list, |wr| self.push_send(Verb::PostSend, index, wr));
        let posted = match list {
            [] => posted,
            _ => self.check_ready(index, posted),
        };
        let posted = posted.map_err(|error| self.as_returned(error));
        self.run_sends(now, index);
        posted
    }

    /// A list that was queued too early is refused as a whole, whatever became of it. The work request
    /// that is called bad is the first that was not queued, or none: the first then stands for it.
    fn check_ready(&self, index: u32, posted: Result<(), PostError>) -> Result<(), PostError> {
        let state = self.qps.at(index).attr.qp_state;
        if !is_too_early(state) || self.behavior.post_wrong_state == PostWrongState::Refused {
            return posted;
        }
        let bad_wr = posted.map_or_else(|error| error.bad_wr, |()| 0);
        let error = too_early(Verb::PostSend, state);
        Err(PostError::new(bad_wr, error))
    }

    /// Starts what was posted, or flushes it.
    pub(super) fn run_sends(&mut self, now: Time, index: u32) {
        match self.qps.at(index).attr.qp_state {
            QpState::Err if self.behavior.flush_post_in_err == FlushPostInErr::None => {}
            QpState::Sqe | QpState::Err => self.flush_sends(index),
            _ => self.pump(now, index),
        }
    }

    /// `ibv_post_recv`
    pub fn post_recv(&mut self, qp: QpHandle, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let index = self
            .find_qp(Verb::PostRecv, qp)
            .map_err(|error| PostError::new(0, error))?;
        let posted = post_each(list, |wr| self.push_recv(index, wr));
        let posted = posted.map_err(|error| self.as_returned(error));
        if self.qps.at(index).attr.qp_state == QpState::Err
            && self.behavior.flush_post_in_err == FlushPostInErr::All
        {
            self.flush_recvs(index);
        }
        posted
    }

    pub(super) fn push_send(&mut self, verb: Verb, index: u32, wr: &SendWr<'_>) -> Result<()> {
        let qp = self.qps.at(index);
        if qp.init.qp_type == QpType::XrcRecv {
            return Err(invalid(verb, "qp", "is of XRC_RECV, and has no send queue"));
        }
        let state = qp.attr.qp_state;
        let is_queued = self.behavior.post_wrong_state == PostWrongState::Queued;
        if is_too_early(state) && !is_queued {
            return Err(too_early(verb, state));
        }
        let failed = match self.has_operation(qp.init.qp_type, &wr.op) {
            true => None,
            false if self.behavior.illegal_opcode == IllegalOpcode::LocQpOpErr => {
                Some(WcStatus::LocQpOpErr)
            }
            false => return Err(invalid(verb, "opcode", "is not one of the qp's transport")),
        };
        if is_local(&wr.op) && !wr.sg_list.is_empty() {
            return Err(invalid(verb, "sg_list", "is for work that moves data"));
        }
        let cap = qp.init.cap;
        check_sges(verb, wr.sg_list, cap.max_send_sge, self.sge_errno())?;
        if qp.init.qp_type == QpType::Ud {
            let Dest::Ud { ah, .. } = wr.dest else {
                return Err(invalid(
                    verb,
                    "ah",
                    "is missing: a UD send names its destination",
                ));
            };
            Self::find_in(&self.ahs, verb, qp.handle.context(), ah)?;
        }
        let names_no_srq = !matches!(wr.dest, Dest::Xrc { .. }) && !is_local(&wr.op);
        if qp.init.qp_type == QpType::XrcSend && names_no_srq {
            let problem = "is missing: work of XRC names an SRQ of the peer";
            return Err(invalid(verb, "remote_srqn", problem));
        }
        let length: u64 = wr.sg_list.iter().map(|sge| u64::from(sge.length)).sum();
        in_range(verb, "message length", length as i64, 0, MAX_MSG_SZ.into())?;
        if let Some(problem) = self.refuses_atomic(wr, length) {
            return Err(invalid(verb, "atomic", problem));
        }
        let mut payload = Payload::default();
        if wr.flags.contains(SendFlags::INLINE) {
            if wr.op.reads() {
                return Err(invalid(verb, "INLINE", "is for Send and RDMA Write"));
            }
            if length > u64::from(cap.max_inline_data) {
                let (value, max) = (length as i64, cap.max_inline_data.into());
                let cause = Cause::OutOfRange {
                    what: "inline data",
                    value,
                    min: 0,
                    max,
                };
                return Err(Error::new(verb, self.sge_errno(), cause));
            }
        }
        if qp.sq.is_full() {
            let cause = Cause::QueueFull {
                queue: "send queue",
                capacity: qp.sq.capacity(),
            };
            return Err(Error::new(verb, ErrorKind::NoMemory, cause));
        }
        if wr.flags.contains(SendFlags::INLINE) {
            let bytes = self.take_inline(wr.sg_list).map_err(|_| {
                let cause = Cause::Argument {
                    what: "inline data",
                    problem: "is in no memory region",
                };
                Error::new(verb, ErrorKind::Fault, cause)
            })?;
            payload = Payload::inline(bytes);
        }
        self.check_bind(verb, self.qps.at(index).handle.context(), &wr.op)?;
        if verb != Verb::PostBatch {
            self.note_bind(&wr.op);
        }
        if let Dest::Ud { ah, .. } = wr.dest
            && let Some(ah) = self.ahs.live_mut(ah.index(), ah.generation())
        {
            ah.sends += 1;
        }
        let qp = self.qps.at_mut(index);
        self.pds.at_mut(qp.pd).posted += 1;
        let is_fresh = qp.sq.push(Send {
            wr_id: wr.wr_id,
            op: wr.op,
            flags: wr.flags,
            list: SmallVec::from_slice(wr.sg_list),
            dest: wr.dest,
            length: length as u32,
            payload,
            first: Psn::default(),
            span: 0,
            got: 0,
            answered: 0,
            failed,
        });
        if is_fresh {
            self.has_fresh_work(Queue::Send(index));
        }
        if is_too_early(state) && verb == Verb::PostBatch {
            return Err(too_early(verb, state));
        }
        Ok(())
    }

    fn push_recv(&mut self, index: u32, wr: &RecvWr<'_>) -> Result<()> {
        let verb = Verb::PostRecv;
        let qp = self.qps.at(index);
        if let QpType::XrcSend | QpType::XrcRecv = qp.init.qp_type {
            return Err(invalid(verb, "qp", "is of XRC, and has no receive queue"));
        }
        if qp.srq.is_some() {
            return Err(invalid(verb, "qp", "takes its receives from an SRQ"));
        }
        let state = qp.attr.qp_state;
        if state == QpState::Reset && self.behavior.post_recv_reset == Check::Refused {
            return Err(Error::new(
                verb,
                ErrorKind::Invalid,
                Cause::QpState { state },
            ));
        }
        // As drivers do: for a receive they look at the queue first, for a send at the work request.
        if qp.rq.is_full() {
            let cause = Cause::QueueFull {
                queue: "receive queue",
                capacity: qp.rq.capacity(),
            };
            return Err(Error::new(verb, ErrorKind::NoMemory, cause));
        }
        check_sges(
            verb,
            wr.sg_list,
            qp.init.cap.max_recv_sge,
            ErrorKind::Invalid,
        )?;
        let qp = self.qps.at_mut(index);
        self.pds.at_mut(qp.pd).posted += 1;
        let is_fresh = qp.rq.push(Recv {
            wr_id: wr.wr_id,
            list: SmallVec::from_slice(wr.sg_list),
        });
        if is_fresh {
            self.has_fresh_work(Queue::Recv(index));
        }
        Ok(())
    }

    /// Whether work can be asked of a queue pair of this transport (SQ-18, ATOM-10).
    fn has_operation(&self, qp_type: QpType, op: &SendOp) -> bool {
        let lacks_atomics = self.lacks.contains(Capabilities::ATOMICS);
        let lacks_windows = self.lacks.contains(Capabilities::MW);
        legal(qp_type, op)
            && !(lacks_atomics && atomic::header(op).is_some())
            && !(lacks_windows && is_of_windows(op))
    }

    /// With the number that a C call would have returned, where that is of the wrong sign.
    pub(super) fn as_returned(&self, failed: PostError) -> PostError {
        if !self.behavior.negative_errno {
            return failed;
        }
        let raw = -failed.error.kind().errno();
        PostError::new(failed.bad_wr, failed.error.with_raw(raw))
    }

    fn sge_errno(&self) -> ErrorKind {
        match self.behavior.sge_errno {
            Errno::Enomem => ErrorKind::NoMemory,
            Errno::Einval | _ => ErrorKind::Invalid,
        }
    }
}

/// Whether a QP in this state does not send yet (QP-STATE-18).
fn is_too_early(state: QpState) -> bool {
    matches!(state, QpState::Reset | QpState::Init | QpState::Rtr)
}

fn too_early(verb: Verb, state: QpState) -> Error {
    Error::new(verb, ErrorKind::Invalid, Cause::QpState { state })
}

pub(super) fn check_sges(verb: Verb, list: &[Sge], max: u32, kind: ErrorKind) -> Result<()> {
    if list.len() <= max as usize {
        return Ok(());
    }
    let (value, max) = (list.len() as i64, i64::from(max));
    Err(Error::new(
        verb,
        kind,
        Cause::OutOfRange {
            what: "num_sge",
            value,
            min: 0,
            max,
        },
    ))
}

pub(super) fn post_each<W>(
    list: &[W],
    mut post: impl FnMut(&W) -> Result<()>,
) -> Result<(), PostError> {
    for (bad_wr, wr) in list.iter().enumerate() {
        post(wr).map_err(|error| PostError::new(bad_wr, error))?;
    }
    Ok(())
}

/// Which operations a transport has (SQ-18).
fn legal(qp_type: QpType, op: &SendOp) -> bool {
    match op {
        SendOp::Send | SendOp::SendWithImm { .. } => true,
        SendOp::RdmaWrite { .. } | SendOp::RdmaWriteWithImm { .. } => qp_type != QpType::Ud,
        op if is_of_windows(op) => qp_type != QpType::Ud,
        SendOp::RdmaRead { .. } | SendOp::CompareAndSwap { .. } | SendOp::FetchAndAdd { .. } => {
            matches!(qp_type, QpType::Rc | QpType::XrcSend)
        }
        _ => false,
    }
}

/// Work that no peer has a part in.
fn is_local(op: &SendOp) -> bool {
    matches!(op, SendOp::BindMw { .. } | SendOp::LocalInv { .. })
}

fn is_of_windows(op: &SendOp) -> bool {
    matches!(
        op,
        SendOp::SendWithInv { .. } | SendOp::LocalInv { .. } | SendOp::BindMw { .. }
    )
}

#[cfg(test)]
mod tests {
    use verbs_api::{CqInit, QpCap, QpInit, SrqInit, Verbs, connect};

    use super::*;
    use crate::{Sim, SimConfig};

    /// RQ-01, SRQ-04: of a list that is too long, on a queue that is full, the queue is seen first.
    #[test]
    fn a_full_receive_queue_is_seen_before_a_list_that_is_too_long() {
        let sim = Sim::new(SimConfig::new());
        let context = sim.open_device("sim0").unwrap();
        let pd = sim.alloc_pd(context).unwrap();
        let cq = sim.create_cq(context, &CqInit::new(4)).unwrap();
        let srq = sim.create_srq(pd, &SrqInit::new(1)).unwrap();
        let cap = QpCap {
            max_recv_wr: 1,
            ..QpCap::default()
        };
        let init = QpInit::new(QpType::Ud, cq, cq).cap(cap);
        let qp = sim.create_qp(pd, &init).unwrap();
        connect::ud_to_rts(&sim, qp, 1, 0).unwrap();
        let too_long = vec![Sge::default(); 200];
        let (long, good) = ([RecvWr::new(1, &too_long)], [RecvWr::new(0, &[])]);
        let on_qp = |list: &[RecvWr<'_>]| sim.post_recv(qp, list);
        let on_srq = |list: &[RecvWr<'_>]| sim.post_srq_recv(srq, list);
        for post in [&on_qp as &dyn Fn(&[RecvWr<'_>]) -> _, &on_srq] {
            let kind = |list| post(list).map_err(|refused| refused.error.kind());
            assert_eq!(kind(&long), Err(ErrorKind::Invalid));
            assert_eq!(kind(&good), Ok(()));
            assert_eq!(kind(&long), Err(ErrorKind::NoMemory));
        }
    }
}
