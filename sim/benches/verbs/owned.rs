//! Messages of objects that own what they need.

use std::sync::Arc;

use verbs_api::owned::{Completion, Context, Cq, Mr, Qp, RecvWr, SendWr};
use verbs_api::{Access, QpType, RcParams, Verbs, WcStatus};
use verbs_sim::{Mode, Sim, SimConfig};

/// Two connected queue pairs on two devices.
pub(crate) struct Pair {
    near: End,
    far: End,
}

struct End {
    qp: Qp,
    cq: Cq,
    mr: Mr,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let sim: Arc<dyn Verbs> = Arc::new(Sim::new(SimConfig::new().mode(Mode::Inline)));
        let [near, far] = ["sim0", "sim1"].map(|device| {
            let context = Context::open(sim.clone(), device).unwrap();
            let pd = context.alloc_pd().unwrap();
            let cq = context.cq(64).create().unwrap();
            End {
                qp: pd.qp(QpType::Rc, &cq, &cq).create().unwrap(),
                cq,
                mr: pd.alloc_mr(4096, Access::ALL_RDMA).unwrap(),
            }
        });
        near.qp.connect_rc(&far.qp, &RcParams::default()).unwrap();
        Self { near, far }
    }

    /// RDMA Write of 64 bytes.
    pub(crate) fn write(&self) {
        let list = [self.near.mr.sge(..64)];
        let wr = SendWr::rdma_write(1, &list, self.far.mr.remote(0));
        self.near.qp.post_send(wr).unwrap();
        self.near.poll();
    }

    /// A receive and a Send of 64 bytes.
    pub(crate) fn send(&self) {
        let list = [self.far.mr.sge(..64)];
        self.far.qp.post_recv(RecvWr::new(1, &list)).unwrap();
        let list = [self.near.mr.sge(..64)];
        self.near.qp.post_send(SendWr::send(1, &list)).unwrap();
        self.far.poll();
        self.near.poll();
    }
}

impl End {
    fn poll(&self) {
        let mut completions = [Completion::default()];
        assert_eq!(self.cq.poll_into(&mut completions).unwrap(), 1);
        assert_eq!(completions[0].status, WcStatus::Success);
    }
}
