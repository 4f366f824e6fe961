//! What these tests share: a simulator that counts what lives, and an end of a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam::channel::{self, RecvTimeoutError};
use verbs_api::lab::{Lab, Live};
use verbs_api::owned::{CompChannel, Completion, Context, Cq, Mr, Pd, Qp, RecvWr, SendWr};
use verbs_api::{Access, QpType, RcParams, Verbs};
use verbs_sim::{Mode, Sim, SimConfig};

/// A simulator, and a view of the objects on its devices, without those of the view itself.
pub(crate) struct Setup {
    pub(crate) sim: Arc<Sim>,
    over: AtomicBool,
    looks: [verbs_api::Context; 2],
}

impl Setup {
    pub(crate) fn new(config: SimConfig) -> Self {
        let sim = Arc::new(Sim::new(config));
        let looks = ["sim0", "sim1"].map(|name| sim.open_device(name).unwrap());
        Self {
            sim,
            over: AtomicBool::new(false),
            looks,
        }
    }

    pub(crate) fn stepped() -> Self {
        Self::new(SimConfig::new())
    }

    pub(crate) fn inline() -> Self {
        Self::new(SimConfig::new().mode(Mode::Inline))
    }

    pub(crate) fn open(&self, name: &str) -> Context {
        Context::open(self.sim.clone(), name).unwrap()
    }

    /// What lives on this device.
    pub(crate) fn live(&self, node: usize) -> Live {
        let mut live = self.sim.live(self.looks[node]).unwrap();
        live.contexts -= 1;
        live
    }

    pub(crate) fn assert_nothing_lives(&self) {
        for node in 0..2 {
            assert_eq!(self.live(node), Live::default(), "on sim{node}");
        }
    }

    /// Lets everything happen that is under way.
    pub(crate) fn settle(&self) {
        self.sim.settle().unwrap();
    }

    /// Lets what is under way happen for 10 ms: a peer that is not ready is asked again often in
    /// that time, and a destroyed one is not given up yet.
    pub(crate) fn settle_a_while(&self) {
        self.sim.advance(Duration::from_millis(10)).unwrap();
    }

    /// Whether a watched body took too long.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Runs `body`. If that takes too long all waits are ended, so that a hang becomes a failure.
    pub(crate) fn watched<R>(&self, body: impl FnOnce() -> R) -> R {
        let (done, watch) = channel::bounded::<()>(0);
        thread::scope(|scope| {
            scope.spawn(move || {
                if watch.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
                    self.over.store(true, Ordering::Relaxed);
                    self.sim.close();
                }
            });
            let result = body();
            drop(done);
            result
        })
    }
}

/// An open device with one of everything that a queue pair needs.
#[derive(Clone)]
pub(crate) struct End {
    pub(crate) context: Context,
    pub(crate) pd: Pd,
    pub(crate) mr: Mr,
    pub(crate) channel: CompChannel,
    pub(crate) cq: Cq,
}

impl End {
    pub(crate) fn open(setup: &Setup, name: &str) -> Self {
        let context = setup.open(name);
        let pd = context.alloc_pd().unwrap();
        let channel = context.create_comp_channel().unwrap();
        Self {
            mr: pd.alloc_mr(4096, Access::ALL_RDMA).unwrap(),
            cq: context.cq(1024).channel(&channel).create().unwrap(),
            pd,
            channel,
            context,
        }
    }

    pub(crate) fn qp(&self, qp_type: QpType) -> Qp {
        self.pd.qp(qp_type, &self.cq, &self.cq).create().unwrap()
    }

    /// A new region of eight bytes.
    pub(crate) fn small_mr(&self) -> Mr {
        self.pd.alloc_mr(8, Access::LOCAL_WRITE).unwrap()
    }
}

/// Both ends and a queue pair at each, connected with each other.
pub(crate) fn pair(setup: &Setup) -> ([End; 2], [Qp; 2]) {
    let ends = [End::open(setup, "sim0"), End::open(setup, "sim1")];
    let qps = ends.each_ref().map(|end| end.qp(QpType::Rc));
    qps[0].connect_rc(&qps[1], &RcParams::default()).unwrap();
    (ends, qps)
}

/// Posts an empty send.
pub(crate) fn send(qp: &Qp, wr_id: u64) {
    qp.post_send(SendWr::send(wr_id, &[])).unwrap();
}

/// Posts an empty receive.
pub(crate) fn recv(qp: &Qp, wr_id: u64) {
    qp.post_recv(RecvWr::new(wr_id, &[])).unwrap();
}

/// Polls until the CQ is empty at this moment.
pub(crate) fn drain(cq: &Cq) -> Vec<Completion> {
    let mut all = Vec::new();
    let mut some = [Completion::default(); 5];
    loop {
        match cq.poll_into(&mut some).unwrap() {
            0 => return all,
            count => all.extend_from_slice(&some[..count]),
        }
    }
}

/// The numbers of the completions there are.
pub(crate) fn wr_ids(cq: &Cq) -> Vec<u64> {
    drain(cq).iter().map(|wc| wc.wr_id).collect()
}
