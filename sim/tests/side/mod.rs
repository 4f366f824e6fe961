//! One side of a connection, for tests of several parties.

use std::sync::Arc;

use verbs_api::owned::{CompChannel, Context, Cq, Mr, Qp, RecvWr, SendWr};
use verbs_api::{Access, QpType, RcParams, Result};
use verbs_sim::{Mode, Sim, SimConfig};

pub(crate) fn sim(mode: Mode) -> Arc<Sim> {
    Arc::new(Sim::new(SimConfig::new().mode(mode)))
}

/// One side of a connection, with a channel of its own.
#[derive(Clone)]
pub(crate) struct Side {
    pub(crate) channel: CompChannel,
    pub(crate) cq: Cq,
    pub(crate) qp: Qp,
    pub(crate) mr: Mr,
}

impl Side {
    pub(crate) fn open(sim: &Arc<Sim>, device: &str) -> Result<Self> {
        let pd = Context::open(sim.clone(), device)?.alloc_pd()?;
        let channel = pd.context().create_comp_channel()?;
        let cq = pd.context().cq(64).channel(&channel).create()?;
        let qp = pd.qp(QpType::Rc, &cq, &cq);
        let qp = qp.max_send_wr(64).max_recv_wr(64).create()?;
        let mr = pd.alloc_mr(8, Access::LOCAL_WRITE)?;
        Ok(Self {
            channel,
            cq,
            qp,
            mr,
        })
    }

    /// Two sides, on two nodes. Lost packets are sent again after 4.096 us * 2^14, 67 ms.
    pub(crate) fn pair(sim: &Arc<Sim>) -> Result<[Self; 2]> {
        let sides = [Self::open(sim, "sim0")?, Self::open(sim, "sim1")?];
        let params = RcParams {
            timeout: 14,
            ..RcParams::default()
        };
        sides[0].qp.connect_rc(&sides[1].qp, &params)?;
        Ok(sides)
    }

    pub(crate) fn expect(&self, wr_id: u64) -> Result<()> {
        let list = [self.mr.sge(..)];
        Ok(self.qp.post_recv(RecvWr::new(wr_id, &list))?)
    }

    pub(crate) fn send(&self, wr_id: u64) -> Result<()> {
        Ok(self.qp.post_send(SendWr::send(wr_id, &[]))?)
    }
}
