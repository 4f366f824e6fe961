//! The ledger of posted work against a model: whatever a program does with several queue pairs on
//! one CQ, each completion comes with the program's numbers of work and queue pair, and exactly the
//! work that is not known to be done holds its region.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use verbs_api::behavior::{Behavior, UndefinedFields};
use verbs_api::owned::{Qp, RecvWr, SendWr};
use verbs_api::{QpModify, QpState, QpType, RcParams, WcStatus};
use verbs_sim::SimConfig;

use crate::setup::{End, Setup};

const PAIRS: usize = 3;

/// One step of a program; `usize` is a pair, `bool` one of its two ends.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send {
        pair: usize,
        end: bool,
        signaled: bool,
    },
    Recv {
        pair: usize,
        end: bool,
    },
    Poll {
        end: bool,
        count: usize,
    },
    Settle,
    Fail {
        pair: usize,
        end: bool,
    },
    Reset {
        pair: usize,
    },
    Replace {
        pair: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (pair, end) = (0..PAIRS, any::<bool>());
    prop_oneof![
        8 => (pair.clone(), end, any::<bool>())
            .prop_map(|(pair, end, signaled)| Step::Send { pair, end, signaled }),
        8 => (pair.clone(), end).prop_map(|(pair, end)| Step::Recv { pair, end }),
        5 => (end, 1..6_usize).prop_map(|(end, count)| Step::Poll { end, count }),
        3 => Just(Step::Settle),
        1 => (pair.clone(), end).prop_map(|(pair, end)| Step::Fail { pair, end }),
        1 => pair.clone().prop_map(|pair| Step::Reset { pair }),
        1 => pair.prop_map(|pair| Step::Replace { pair }),
    ]
}

/// What the model knows of one queue. Numbers count from 0 in every queue, so that equal ones
/// coincide on the CQ all the time.
#[derive(Default)]
struct Queue {
    next: u64,
    posted: VecDeque<Posted>,
}

struct Posted {
    wr_id: u64,
    signaled: bool,
    /// Work from before a reset or the end of the QP: it holds nothing, and its completion may not
    /// come.
    over: bool,
}

impl Queue {
    fn post(&mut self, signaled: bool) -> u64 {
        let wr_id = self.next;
        self.next += 1;
        self.posted.push_back(Posted {
            wr_id,
            signaled,
            over: false,
        });
        wr_id
    }

    fn complete(&mut self, wr_id: u64) {
        loop {
            let first = self
                .posted
                .pop_front()
                .expect("it was posted and is not done");
            if first.wr_id == wr_id {
                return;
            }
            assert!(
                !first.signaled || first.over,
                "{} came before {}",
                wr_id,
                first.wr_id
            );
        }
    }

    fn end(&mut self) {
        self.posted.iter_mut().for_each(|posted| posted.over = true);
    }

    fn held(&self) -> usize {
        self.posted.iter().filter(|posted| !posted.over).count()
    }
}

/// The program, and the model of its queues by end, QP number and whether it is that of receives.
struct Program {
    setup: Setup,
    ends: [End; 2],
    pairs: Vec<[Qp; 2]>,
    queues: BTreeMap<(usize, u32, bool), Queue>,
    /// The program's own value of each queue pair so far, by end and QP number.
    contexts: BTreeMap<(usize, u32), u64>,
}

impl Program {
    fn new(behavior: Behavior) -> Self {
        let setup = Setup::new(SimConfig::new().behavior(behavior));
        let ends = [End::open(&setup, "sim0"), End::open(&setup, "sim1")];
        let mut program = Self {
            setup,
            ends,
            pairs: Vec::new(),
            queues: BTreeMap::new(),
            contexts: BTreeMap::new(),
        };
        for _ in 0..PAIRS {
            let pair = program.connect();
            program.pairs.push(pair);
        }
        program
    }

    fn connect(&mut self) -> [Qp; 2] {
        let qps = [0, 1].map(|at| {
            let (end, qp_context) = (&self.ends[at], 1000 + self.contexts.len() as u64);
            let qp = end.pd.qp(QpType::Rc, &end.cq, &end.cq);
            let qp = qp.qp_context(qp_context).create().unwrap();
            self.contexts.insert((at, qp.num()), qp_context);
            qp
        });
        qps[0].connect_rc(&qps[1], &RcParams::default()).unwrap();
        qps
    }

    fn queue(&mut self, end: usize, qp_num: u32, recv: bool) -> &mut Queue {
        self.queues.entry((end, qp_num, recv)).or_default()
    }

    fn end_pair(&mut self, pair: usize) {
        for end in 0..2 {
            let qp_num = self.pairs[pair][end].num();
            for recv in [false, true] {
                self.queue(end, qp_num, recv).end();
            }
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Send {
                pair,
                end,
                signaled,
            } => {
                let qp = self.pairs[pair][usize::from(end)].clone();
                let mr = self.ends[usize::from(end)].small_mr();
                let queue = self.queue(end.into(), qp.num(), false);
                let list = [mr.sge(..)];
                let wr = SendWr::send(queue.next, &list);
                let wr = if signaled { wr } else { wr.unsignaled() };
                if qp.post_send(wr).is_ok() {
                    queue.post(signaled);
                }
            }
            Step::Recv { pair, end } => {
                let qp = self.pairs[pair][usize::from(end)].clone();
                let mr = self.ends[usize::from(end)].small_mr();
                let queue = self.queue(end.into(), qp.num(), true);
                let list = [mr.sge(..)];
                if qp.post_recv(RecvWr::new(queue.next, &list)).is_ok() {
                    queue.post(true);
                }
            }
            Step::Poll { end, count } => {
                let end = usize::from(end);
                let mut wcs = vec![Default::default(); count];
                let count = self.ends[end].cq.poll_into(&mut wcs).unwrap();
                for wc in &wcs[..count] {
                    // Right for failed ones too, though their fields are garbage on the device.
                    let recv = wc.opcode.is_recv();
                    self.queue(end, wc.qp_num, recv).complete(wc.wr_id);
                    assert_eq!(wc.qp_context, self.contexts[&(end, wc.qp_num)], "{wc}");
                    let status = [WcStatus::Success, WcStatus::WrFlushErr];
                    let retry = WcStatus::RetryExcErr;
                    assert!(status.contains(&wc.status) || wc.status == retry, "{wc}");
                }
            }
            Step::Settle => self.setup.settle_a_while(),
            Step::Fail { pair, end } => {
                let qp = &self.pairs[pair][usize::from(end)];
                qp.modify(&QpModify::to(QpState::Err)).unwrap();
            }
            Step::Reset { pair } => {
                let qps = self.pairs[pair].clone();
                for qp in &qps {
                    qp.modify(&QpModify::to(QpState::Reset)).unwrap();
                }
                self.end_pair(pair);
                qps[0].connect_rc(&qps[1], &RcParams::default()).unwrap();
            }
            Step::Replace { pair } => {
                self.end_pair(pair);
                let new = self.connect();
                for qp in std::mem::replace(&mut self.pairs[pair], new) {
                    qp.destroy().unwrap();
                }
            }
        }
    }

    fn check(&self) {
        for end in 0..2 {
            let queues = self.queues.iter().filter(|((of, ..), _)| *of == end);
            let held: usize = queues.map(|(_, queue)| queue.held()).sum();
            // One more is that of the end itself.
            assert_eq!(self.setup.live(end).mrs as usize, held + 1, "on sim{end}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 150 } else { 3000 }))]

    /// WC-19, CQ-POLL-07, QP-FLUSH-02, CQ-DESTROY-08, WC-01.
    #[test]
    fn numbers_and_regions_follow_the_model(
        purges in any::<bool>(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut behavior = Behavior::SPEC;
        behavior.cqe_purge = purges;
        behavior.undefined_wc_fields = UndefinedFields::Garbage;
        let mut program = Program::new(behavior);
        for step in steps {
            program.run(step);
            program.check();
        }
        let Program { setup, ends, pairs, .. } = program;
        drop((ends, pairs));
        setup.assert_nothing_lives();
    }
}
