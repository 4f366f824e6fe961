//! Shared receive queues: whatever several queue pairs on two CQs do, each receive comes back with
//! the program's number, once, and holds its region until then.

use std::collections::BTreeMap;

use proptest::prelude::*;
use verbs_api::behavior::Behavior;
use verbs_api::owned::{Cq, Element, Qp, RecvWr, Srq};
use verbs_api::{AsyncEventType, ErrorKind, QpModify, QpState, QpType, RcParams, Wait, WcStatus};
use verbs_sim::SimConfig;

use crate::setup::{End, Setup, drain, send};

const PAIRS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A list of `usize` receives.
    Post(usize),
    Send(usize),
    Poll(usize),
    Settle,
    /// The receiving queue pair goes to the error state.
    Fail(usize),
    /// Both queue pairs go, and there are new ones.
    Replace(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let pair = 0..PAIRS;
    prop_oneof![
        6 => (1..4_usize).prop_map(Step::Post),
        8 => pair.clone().prop_map(Step::Send),
        4 => (0..2_usize).prop_map(Step::Poll),
        3 => Just(Step::Settle),
        1 => pair.clone().prop_map(Step::Fail),
        1 => pair.prop_map(Step::Replace),
    ]
}

struct Program {
    setup: Setup,
    near: End,
    far: End,
    srq: Srq,
    cqs: [Cq; 2],
    pairs: Vec<[Qp; 2]>,
    posted: u64,
    /// How often each number is posted and has not come back.
    out: BTreeMap<u64, usize>,
    /// The program's own value of each receiving queue pair so far, by QP number.
    contexts: BTreeMap<u32, u64>,
}

impl Program {
    fn new(behavior: Behavior) -> Self {
        let setup = Setup::new(SimConfig::new().behavior(behavior));
        let (near, far) = (End::open(&setup, "sim0"), End::open(&setup, "sim1"));
        let mut program = Self {
            srq: far.pd.srq(8).create().unwrap(),
            cqs: [far.cq.clone(), far.context.cq(64).create().unwrap()],
            setup,
            near,
            far,
            pairs: Vec::new(),
            posted: 0,
            out: BTreeMap::new(),
            contexts: BTreeMap::new(),
        };
        for index in 0..PAIRS {
            let pair = program.pair(index);
            program.pairs.push(pair);
        }
        program
    }

    fn pair(&mut self, index: usize) -> [Qp; 2] {
        let cq = &self.cqs[index % 2];
        let far = self.far.pd.qp(QpType::Rc, cq, cq).srq(&self.srq);
        let qp_context = 1000 + self.contexts.len() as u64;
        let far = far.qp_context(qp_context).create().unwrap();
        self.contexts.insert(far.num(), qp_context);
        let pair = [self.near.qp(QpType::Rc), far];
        pair[0].connect_rc(&pair[1], &RcParams::default()).unwrap();
        pair
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Post(count) => self.post(count),
            Step::Send(pair) => {
                // It may be full, or in error.
                let _ = self.pairs[pair][0].post_send(verbs_api::owned::SendWr::send(1, &[]));
            }
            Step::Poll(cq) => self.poll(cq),
            Step::Settle => self.setup.settle_a_while(),
            Step::Fail(pair) => {
                let modify = QpModify::to(QpState::Err);
                self.pairs[pair][1].modify(&modify).unwrap();
            }
            Step::Replace(index) => {
                self.pairs[index] = self.pair(index);
                drain(&self.near.cq);
            }
        }
    }

    /// Receives of few different numbers, each with a region that has no other owner.
    fn post(&mut self, count: usize) {
        let mrs: Vec<_> = (0..count).map(|_| self.far.small_mr()).collect();
        let lists: Vec<_> = mrs.iter().map(|mr| [mr.sge(..)]).collect();
        let number = |i: usize| (self.posted + i as u64) % 5;
        let list: Vec<_> = (0..count)
            .map(|i| RecvWr::new(number(i), &lists[i]))
            .collect();
        let taken = match self.srq.post_recv(&list) {
            Ok(()) => count,
            Err(full) => {
                assert_eq!(full.error.kind(), ErrorKind::NoMemory);
                full.bad_wr
            }
        };
        for wr in &list[..taken] {
            *self.out.entry(wr.wr_id).or_default() += 1;
        }
        self.posted += count as u64;
    }

    fn poll(&mut self, cq: usize) {
        for wc in drain(&self.cqs[cq]) {
            let out = self
                .out
                .get_mut(&wc.wr_id)
                .expect("a number of the program");
            assert!(*out > 0, "{} came too often", wc.wr_id);
            *out -= 1;
            assert_eq!(wc.qp_context, self.contexts[&wc.qp_num], "{wc}");
        }
    }

    /// Drops everything except the simulator.
    fn end(self) -> Setup {
        self.setup
    }

    /// The regions of the receives that are out; the end has one of its own.
    fn held(&self) -> usize {
        self.setup.live(1).mrs as usize - 1
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 150 } else { 3000 }))]

    /// SRQ-03, SRQ-14, SRQ-15, QP-FLUSH-04.
    #[test]
    fn each_receive_comes_back_once_and_holds_its_region_until_then(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut program = Program::new(Behavior::SPEC);
        for step in steps {
            program.run(step);
            prop_assert_eq!(program.held(), program.out.values().sum::<usize>());
        }
        program.end().assert_nothing_lives();
    }

    /// A device that removes completions with their queue pair: their memory is released when the
    /// SRQ is destroyed.
    #[test]
    fn nothing_is_left_where_completions_are_removed(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut behavior = Behavior::SPEC;
        behavior.cqe_purge = true;
        let mut program = Program::new(behavior);
        for step in steps {
            program.run(step);
            prop_assert!(program.held() <= program.out.values().sum::<usize>());
        }
        program.end().assert_nothing_lives();
    }
}

/// SRQ-11: a queue pair holds its SRQ, whatever is dropped first.
#[test]
fn an_srq_lives_as_long_as_its_queue_pairs() {
    let mut program = Program::new(Behavior::SPEC);
    program.post(2);
    let busy = program.srq.clone().destroy().unwrap_err();
    assert_eq!(busy.error.kind(), ErrorKind::Busy);
    drop(busy);
    let pairs = std::mem::take(&mut program.pairs);
    let setup = program.end();
    assert_eq!(setup.live(1).srqs, 1);
    send(&pairs[0][0], 1);
    setup.settle();
    let wc = pairs[0][1].recv_cq().poll().unwrap().next().unwrap();
    assert_eq!((wc.wr_id, wc.status), (0, WcStatus::Success));
    assert_eq!(pairs[0][1].srq().unwrap().query().unwrap().max_wr, 8);
    drop(pairs);
    setup.assert_nothing_lives();
}

/// SRQ-05, SRQ-18: the event of the limit names the SRQ, and holds it until it is dropped.
#[test]
fn an_event_names_its_srq_and_holds_it() {
    let mut program = Program::new(Behavior::SPEC);
    program.post(2);
    program.srq.set_limit(2).unwrap();
    send(&program.pairs[0][0], 1);
    program.setup.settle();
    let event = program
        .far
        .context
        .get_async_event(Wait::Poll)
        .unwrap()
        .unwrap();
    assert_eq!(event.event_type(), AsyncEventType::SrqLimitReached);
    assert_eq!(event.element(), &Element::Srq(program.srq.clone()));
    let setup = program.end();
    assert_eq!(setup.live(1).srqs, 1);
    drop(event);
    setup.assert_nothing_lives();
}
