//! Extended reliable connections: each receive comes back with the program's number, from the CQ of
//! its SRQ, and holds its region until then; domains outlive what is in them.

use std::path::Path;

use proptest::prelude::*;
use verbs_api::owned::{Cq, Element, Qp, RecvWr, SendWr, Srq, XrcRecvQp, Xrcd};
use verbs_api::{
    AsyncEventType, ErrorKind, QpModify, QpState, QpType, RcParams, Remote, Wait, WcStatus,
    XrcdInit,
};
use verbs_sim::SimConfig;

use crate::setup::{End, Setup, drain};

const SRQS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    Post(usize),
    Send(usize),
    Poll(usize),
    Settle,
    /// The SRQ goes, with what is posted on it, and there is a new one.
    Replace(usize),
    /// The connection fails, and there is a new one.
    Fail,
}

fn step() -> impl Strategy<Value = Step> {
    let srq = 0..SRQS;
    prop_oneof![
        6 => srq.clone().prop_map(Step::Post),
        8 => srq.clone().prop_map(Step::Send),
        4 => srq.clone().prop_map(Step::Poll),
        3 => Just(Step::Settle),
        1 => srq.prop_map(Step::Replace),
        1 => Just(Step::Fail),
    ]
}

struct Program {
    setup: Setup,
    near: End,
    far: End,
    domain: Xrcd,
    connection: (Qp, XrcRecvQp),
    /// The first two share a CQ.
    srqs: Vec<Srq>,
    cqs: [Cq; 2],
    posted: u64,
}

fn connect(near: &End, domain: &Xrcd) -> (Qp, XrcRecvQp) {
    let params = RcParams::default();
    let (sender, target) = (near.qp(QpType::XrcSend), domain.create_recv_qp().unwrap());
    let ends = (
        sender.endpoint(&params).unwrap(),
        target.endpoint(&params).unwrap(),
    );
    target.connect(&ends.0, &params).unwrap();
    sender.connect(&ends.1, &params).unwrap();
    (sender, target)
}

impl Program {
    fn new() -> Self {
        let setup = Setup::new(SimConfig::new());
        let (near, far) = (End::open(&setup, "sim0"), End::open(&setup, "sim1"));
        let domain = far.context.open_xrcd(&XrcdInit::private()).unwrap();
        let mut program = Self {
            connection: connect(&near, &domain),
            cqs: [far.cq.clone(), far.context.cq(1024).create().unwrap()],
            setup,
            near,
            far,
            domain,
            srqs: Vec::new(),
            posted: 0,
        };
        for index in 0..SRQS {
            let srq = program.srq(index);
            program.srqs.push(srq);
        }
        program
    }

    fn srq(&self, index: usize) -> Srq {
        let cq = &self.cqs[index / 2];
        let srq = self.far.pd.srq(8).xrc(&self.domain, cq).create();
        srq.unwrap()
    }

    /// Drops everything except the simulator.
    fn end(self) -> Setup {
        self.setup
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Post(srq) => {
                let mr = self.far.small_mr();
                let number = self.posted << 8 | srq as u64;
                let posted = self.srqs[srq].post_recv(RecvWr::new(number, &[mr.sge(..)]));
                match posted {
                    Ok(()) => self.posted += 1,
                    Err(full) => assert_eq!(full.error.kind(), ErrorKind::NoMemory),
                }
            }
            Step::Send(srq) => {
                let number = self.srqs[srq].num().unwrap();
                // It may be full, or in error.
                let _ = (self.connection.0).post_send(SendWr::send(1, &[]).to_srq(number));
            }
            Step::Poll(cq) => {
                for wc in drain(&self.cqs[cq / 2]) {
                    let srq = (wc.wr_id & 0xff) as usize;
                    assert!(srq < SRQS && srq / 2 == cq / 2, "{wc}: of another CQ");
                    assert!(wc.wr_id >> 8 < self.posted, "{wc}: never posted");
                }
                drain(&self.near.cq);
            }
            Step::Settle => self.setup.settle_a_while(),
            Step::Replace(srq) => self.srqs[srq] = self.srq(srq),
            Step::Fail => {
                let to_err = QpModify::to(QpState::Err);
                self.connection.1.modify(&to_err).unwrap();
                self.connection = connect(&self.near, &self.domain);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 100 } else { 2000 }))]

    /// XRC-02, XRC-04: whatever is done, numbers come back where they belong, and nothing is left.
    #[test]
    fn receives_come_back_from_the_cq_of_their_srq(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut program = Program::new();
        for step in steps {
            program.run(step);
        }
        program.end().assert_nothing_lives();
    }
}

/// XRC-04: a posted receive holds its region until its completion has been polled.
#[test]
fn a_receive_holds_its_region_until_it_is_polled() {
    let mut program = Program::new();
    let before = program.setup.live(1).mrs;
    program.run(Step::Post(0));
    assert_eq!(program.setup.live(1).mrs, before + 1);
    program.run(Step::Send(0));
    program.setup.settle();
    assert_eq!(program.setup.live(1).mrs, before + 1);
    let wc = program.cqs[0].poll().unwrap().next().unwrap();
    assert_eq!((wc.wr_id, wc.status), (0, WcStatus::Success));
    assert_eq!(program.setup.live(1).mrs, before);
}

/// XRC-01, XRC-02, XRC-05: a target that another context has opened stays when its maker drops it,
/// and its events name it; domain, CQ and SRQ are held by what was made from them.
#[test]
fn what_is_shared_lives_as_long_as_somebody_has_it() {
    let program = Program::new();
    let file = XrcdInit::of(Path::new("shared")).create();
    let other = End::open(&program.setup, "sim1");
    let own = program.far.context.open_xrcd(&file).unwrap();
    let theirs = other.context.open_xrcd(&file).unwrap();
    let (sender, target) = connect(&program.near, &own);
    let opened = theirs.open_qp(target.num()).unwrap();
    let busy = own.clone().destroy().unwrap_err();
    assert_eq!(busy.error.kind(), ErrorKind::Busy);
    drop(busy);
    drop((own, target));
    let srq = other.pd.srq(4).xrc(&theirs, &other.cq).create();
    let srq = srq.unwrap();
    let number = srq.num().unwrap();
    drop(theirs);
    srq.post_recv(RecvWr::new(5, &[other.mr.sge(..8)])).unwrap();
    let text = [program.near.mr.sge(..4)];
    sender
        .post_send(SendWr::send(1, &text).to_srq(number))
        .unwrap();
    program.setup.settle();
    let wc = other.cq.poll().unwrap().next().unwrap();
    assert_eq!((wc.wr_id, wc.qp_num), (5, opened.num()));
    let bad = SendWr::rdma_write(2, &text, Remote::default()).to_srq(number);
    sender.post_send(bad).unwrap();
    program.setup.settle();
    let event = other.context.get_async_event(Wait::Poll).unwrap().unwrap();
    assert_eq!(event.event_type(), AsyncEventType::QpAccessErr);
    assert_eq!(event.element(), &Element::XrcRecvQp(opened.clone()));
    assert_eq!(opened.state().unwrap(), QpState::Err);
    drop((opened, srq));
    // The event holds the queue pair, and that the domain.
    assert_eq!(program.setup.live(1).xrcds, 2);
    drop(event);
    assert_eq!(program.setup.live(1).xrcds, 1);
}
