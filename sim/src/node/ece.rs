//! Enhanced connection establishment: `ibv_query_ece` and `ibv_set_ece`.

use verbs_api::{Capabilities, Ece, Qp as QpHandle};

use super::Node;
use crate::device::Result;

impl Node {
    /// `ibv_query_ece`
    pub(crate) fn query_ece(&self, qp: QpHandle) -> Result<Ece> {
        let index = self.find_qp(qp)?;
        self.check_has_ece()?;
        Ok(self.qps.at(index).common.ece.query(self.device.ece))
    }

    /// `ibv_set_ece`
    pub(crate) fn set_ece(&mut self, qp: QpHandle, ece: &Ece) -> Result<()> {
        let index = self.find_qp(qp)?;
        self.check_has_ece()?;
        let own = self.device.ece;
        self.qps.at_mut(index).common.ece.set(own, ece)
    }

    fn check_has_ece(&self) -> Result<()> {
        let problem = "has no enhanced connection establishment";
        self.device.base.check_has(Capabilities::ECE, problem)
    }
}
