//! Shared by the tests: an end of a connection, and ways to see the results.
#![allow(dead_code, reason = "each test uses a part of it")]

use proptest::test_runner::{Config, FileFailurePersistence, RngSeed};
use verbs_api::{
    Access, CompChannel, Context, Cq, CqInit, ErrorKind, Mr, MrAttr, Pd, Qp, QpCap, QpInit,
    QpModify, QpState, QpType, RcParams, RecvWr, SendWr, Verbs, Wait, Wc, connect,
};
use verbs_explore::Checked;
use verbs_sim::{Sim, SimConfig};

/// A simulation whose invariants are checked: if one is broken, its drop panics.
pub(crate) fn checked(config: SimConfig) -> Checked {
    let sim: Box<dyn Verbs> = Box::new(Sim::new(config));
    Checked::new(sim)
}

/// An open device with one of everything that a queue pair needs.
#[derive(Clone, Copy)]
pub(crate) struct End<'v> {
    pub(crate) verbs: &'v dyn Verbs,
    pub(crate) context: Context,
    pub(crate) pd: Pd,
    pub(crate) mr: Mr,
    pub(crate) mem: MrAttr,
    pub(crate) channel: CompChannel,
    pub(crate) cq: Cq,
}

impl<'v> End<'v> {
    /// On the device called `name`, with a CQ of `cqe` entries and `bytes` of memory.
    pub(crate) fn open(verbs: &'v dyn Verbs, name: &str, cqe: i32, bytes: usize) -> Self {
        let context = verbs.open_device(name).unwrap();
        let pd = verbs.alloc_pd(context).unwrap();
        let mr = verbs.alloc_mr(pd, bytes, Access::ALL_RDMA).unwrap();
        let mem = verbs.query_mr(mr).unwrap();
        let channel = verbs.create_comp_channel(context).unwrap();
        let cq = verbs
            .create_cq(context, &CqInit::new(cqe).channel(channel))
            .unwrap();
        Self {
            verbs,
            context,
            pd,
            mr,
            mem,
            channel,
            cq,
        }
    }

    /// A queue pair in RESET on the CQ of this end.
    pub(crate) fn qp(&self, qp_type: QpType, depth: u32) -> Qp {
        self.qp_on(self.cq, qp_type, depth)
    }

    /// A queue pair in RESET on this CQ.
    pub(crate) fn qp_on(&self, cq: Cq, qp_type: QpType, depth: u32) -> Qp {
        let cap = QpCap {
            max_send_wr: depth,
            max_recv_wr: depth,
            ..QpCap::default()
        };
        let init = QpInit::new(qp_type, cq, cq).cap(cap);
        self.verbs.create_qp(self.pd, &init).unwrap()
    }

    /// Posts a signaled send of `length` bytes at `offset`.
    pub(crate) fn send(&self, qp: Qp, wr_id: u64, offset: u64, length: u32) {
        let list = [self.mem.sge(offset, length)];
        self.post(qp, SendWr::send(wr_id, &list));
    }

    pub(crate) fn post(&self, qp: Qp, wr: SendWr<'_>) {
        self.verbs.post_send(qp, &[wr]).unwrap();
    }

    /// Posts a receive of `length` bytes at `offset`.
    pub(crate) fn recv(&self, qp: Qp, wr_id: u64, offset: u64, length: u32) {
        let list = [self.mem.sge(offset, length)];
        self.verbs
            .post_recv(qp, &[RecvWr::new(wr_id, &list)])
            .unwrap();
    }

    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        self.verbs.write_mr(self.mr, offset, bytes).unwrap();
    }

    pub(crate) fn read(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.verbs.read_mr(self.mr, offset, &mut bytes).unwrap();
        bytes
    }

    /// All completions there are.
    pub(crate) fn drain(&self) -> Vec<Wc> {
        drain(self.verbs, self.cq)
    }

    /// The state of a queue pair.
    pub(crate) fn state(&self, qp: Qp) -> QpState {
        let query = self.verbs.query_qp(qp, verbs_api::QpAttrMask::STATE);
        query.unwrap().attr.qp_state
    }

    /// Brings a queue pair to the error state.
    pub(crate) fn fail(&self, qp: Qp) {
        let modify = QpModify::to(QpState::Err);
        self.verbs.modify_qp(qp, &modify.attr, modify.mask).unwrap();
    }
}

/// A queue pair of this type at each end, connected with each other, on the CQs of the ends.
pub(crate) fn pair(
    (a, b): (&End<'_>, &End<'_>),
    qp_type: QpType,
    depth: u32,
    params: &RcParams,
) -> (Qp, Qp) {
    let (qp_a, qp_b) = (a.qp(qp_type, depth), b.qp(qp_type, depth));
    connect::by_attributes(a.verbs, qp_a, qp_b, params).unwrap();
    (qp_a, qp_b)
}

/// Polls until the CQ is empty at this moment.
pub(crate) fn drain(verbs: &dyn Verbs, cq: Cq) -> Vec<Wc> {
    let mut all = Vec::new();
    let mut some = [Wc::default(); 16];
    loop {
        match verbs.poll_cq(cq, &mut some).unwrap() {
            0 => return all,
            n => all.extend_from_slice(&some[..n]),
        }
    }
}

/// Reads and acknowledges the events that are queued; of which CQs they were.
pub(crate) fn take_events(verbs: &dyn Verbs, channel: CompChannel) -> Vec<Cq> {
    let mut cqs = Vec::new();
    loop {
        match verbs.get_cq_event(channel, Wait::Poll) {
            Ok(event) => {
                verbs.ack_cq_events(event.cq, 1).unwrap();
                cqs.push(event.cq);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                return cqs;
            }
        }
    }
}

/// Lets everything happen that is under way.
pub(crate) fn settle(verbs: &dyn Verbs) {
    verbs.lab().unwrap().settle().unwrap();
}

/// How properties are run: from one seed unless another is given, so that all runs are alike;
/// failures are stored next to the test.
pub(crate) fn property_config() -> Config {
    let given = Config::default();
    Config {
        rng_seed: match given.rng_seed {
            RngSeed::Random => RngSeed::Fixed(0),
            fixed => fixed,
        },
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..given
    }
}
