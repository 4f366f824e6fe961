//! Enhanced connection establishment.

use verbs_abi::{ibv_ece, library};
use verbs_api::{Ece, Result, Verb};

use crate::errno::missing;
use crate::objects::Qp;

impl Qp {
    /// `ibv_query_ece`
    pub(crate) fn query_ece(&self) -> Result<Ece> {
        let verb = Verb::QueryEce;
        let query = library::ibv_query_ece().map_err(missing(verb))?;
        let mut ece = ibv_ece::default();
        // SAFETY: the QP is live.
        self.raw.call(verb, |qp| unsafe { query(qp, &mut ece) })?;
        Ok(ibv_ece::from_c(&ece))
    }

    /// `ibv_set_ece`
    pub(crate) fn set_ece(&self, ece: &Ece) -> Result<()> {
        let verb = Verb::SetEce;
        let set = library::ibv_set_ece().map_err(missing(verb))?;
        let mut ece = ibv_ece::to_c(ece);
        // SAFETY: the QP is live.
        self.raw.call(verb, |qp| unsafe { set(qp, &mut ece) })
    }
}
