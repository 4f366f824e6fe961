//! Batches of sends, posted as a whole or not at all.

use verbs_api::{
    BatchEnd, Capabilities, Cause, Error, ErrorKind, Qp as QpHandle, QpInit, QpType, Result,
    SendOps, SendWr, Verb,
};

use super::qp::free;
use super::{Node, invalid};
use crate::time::Time;

impl Node {
    /// `ibv_wr_start` to `ibv_wr_complete` or `ibv_wr_abort`.
    pub fn post_batch(
        &mut self,
        now: Time,
        qp: QpHandle,
        list: &[SendWr<'_>],
        end: BatchEnd,
    ) -> Result<()> {
        let verb = Verb::PostBatch;
        let index = self.find_qp(verb, qp)?;
        let has = self.qps.at(index).init.send_ops;
        if has.is_empty() {
            return Err(invalid(verb, "qp", "was made without batches"));
        }
        if !list.iter().all(|wr| has.contains(SendOps::of(&wr.op))) {
            let problem = "is not among those that the qp was made with";
            return Err(invalid(verb, "operation", problem));
        }
        if end == BatchEnd::Abort {
            return Ok(());
        }
        let before = self.qps.at(index).sq.end();
        if let Err(error) = list
            .iter()
            .try_for_each(|wr| self.push_send(verb, index, wr))
        {
            let qp = self.qps.at_mut(index);
            let dropped = qp.sq.take_back(before, free(&mut self.ahs));
            self.pds.at_mut(qp.pd).posted -= dropped;
            return Err(error);
        }
        list.iter().for_each(|wr| self.note_bind(&wr.op));
        self.run_sends(now, index);
        Ok(())
    }
}

/// Whether transport and device have the operations that batches are to have (SQ-28).
pub(super) fn check(verb: Verb, init: &QpInit, lacks: Capabilities) -> Result<()> {
    let datagrams = SendOps::SEND | SendOps::SEND_WITH_IMM;
    let writes = SendOps::RDMA_WRITE | SendOps::RDMA_WRITE_WITH_IMM;
    let windows = SendOps::BIND_MW | SendOps::LOCAL_INV | SendOps::SEND_WITH_INV;
    let atomics = SendOps::ATOMIC_CMP_AND_SWP | SendOps::ATOMIC_FETCH_AND_ADD;
    let without = |capability, ops| match lacks.contains(capability) {
        true => SendOps::empty(),
        false => ops,
    };
    let windows = without(Capabilities::MW, windows);
    let atomics = without(Capabilities::ATOMICS, atomics);
    let has = match init.qp_type {
        QpType::Rc | QpType::XrcSend => datagrams | writes | windows | atomics | SendOps::RDMA_READ,
        QpType::Uc => datagrams | writes | windows,
        _ => datagrams,
    };
    if has.contains(init.send_ops) {
        return Ok(());
    }
    let cause = Cause::Argument {
        what: "send_ops",
        problem: "has some that the transport or the device has not",
    };
    Err(Error::new(verb, ErrorKind::NotSupported, cause))
}
