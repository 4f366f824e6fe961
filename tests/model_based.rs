//! Long random sequences on several CQs of one channel, compared with a reference model.
//!
//! It is the same on every run; `PROPTEST_RNG_SEED` takes another seed and `PROPTEST_CASES` more
//! cases. A failure is shrunk, and stored next to this file to be tried first from then on.

mod common;
#[path = "../sim/src/exhaustive/model.rs"]
mod model;

use common::{End, checked, pair, property_config};
use model::{Completion, Model};
use proptest::prelude::*;
use verbs_api::{
    Arm, AsyncEventType, Cq, CqInit, Element, Error, ErrorKind, Qp, QpState, QpType, RcParams,
    RecvWr, SendOp, SendWr, Sge, Verbs, Wait, Wc, WcOpcode, WcStatus,
};
use verbs_sim::{Mode, SimConfig};

const CQS: usize = 3;

/// What a program does. Numbers of CQs and of events are small, so that they coincide often.
#[derive(Clone, Debug)]
enum Action {
    Arm { cq: usize, solicited_only: i32 },
    Work { cq: usize, work: Work },
    Poll { cq: usize, n: usize },
    GetEvent,
    Ack { cq: usize, n: u32 },
    Resize { cq: usize, size: i32 },
    Destroy { cq: usize },
    Create { cq: usize, size: usize },
}

/// Work whose completion, if there is one, goes to the CQ.
#[derive(Clone, Copy, Debug)]
enum Work {
    Send,
    SendUnsignaled,
    SendSolicited,
    SendError,
    Write,
    Read,
    Recv {
        solicited: bool,
    },
    RecvImm {
        solicited: bool,
    },
    RecvError {
        solicited: bool,
    },
    /// As many receives as this are flushed.
    Flush(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let cq = || 0..CQS;
    let size = prop_oneof![4 => 1..8_i32, 1 => Just(0), 1 => Just(-1)];
    prop_oneof![
        6 => (cq(), prop_oneof![Just(0), Just(1), any::<i32>()])
            .prop_map(|(cq, solicited_only)| Action::Arm { cq, solicited_only }),
        12 => (cq(), work()).prop_map(|(cq, work)| Action::Work { cq, work }),
        8 => (cq(), 0..4_usize).prop_map(|(cq, n)| Action::Poll { cq, n }),
        4 => Just(Action::GetEvent),
        4 => (cq(), 0..4_u32).prop_map(|(cq, n)| Action::Ack { cq, n }),
        3 => (cq(), size).prop_map(|(cq, size)| Action::Resize { cq, size }),
        1 => cq().prop_map(|cq| Action::Destroy { cq }),
        2 => (cq(), 1..8_usize).prop_map(|(cq, size)| Action::Create { cq, size }),
    ]
}

fn work() -> impl Strategy<Value = Work> {
    prop_oneof![
        Just(Work::Send),
        Just(Work::SendUnsignaled),
        Just(Work::SendSolicited),
        Just(Work::SendError),
        Just(Work::Write),
        Just(Work::Read),
        any::<bool>().prop_map(|solicited| Work::Recv { solicited }),
        any::<bool>().prop_map(|solicited| Work::RecvImm { solicited }),
        any::<bool>().prop_map(|solicited| Work::RecvError { solicited }),
        (0..3_usize).prop_map(Work::Flush),
    ]
}

proptest! {
    #![proptest_config(property_config())]

    /// CQ-ARM-01 to -17, -29, -36, -39, -49, -50, -52, -53, CHAN-33 to -37, CQ-OVR-01 to -07,
    /// CQ-RESIZE-01 to -09, -22 to -30, CQ-DESTROY-04: several CQs on one channel do what the model
    /// does, in either mode.
    #[test]
    fn cqs_on_one_channel_do_what_the_model_does(
        inline: bool,
        actions in prop::collection::vec(action(), 1..200),
    ) {
        let mode = if inline { Mode::Inline } else { Mode::Stepped };
        let sim = checked(SimConfig::new().mode(mode));
        let mut cqs = Cqs::new(&sim);
        for (step, action) in actions.iter().enumerate() {
            let expected = cqs.expect(action, step as u64);
            let seen = cqs.perform(action, step as u64);
            prop_assert_eq!(seen, expected, "step {}: {:?}", step, action);
        }
        let (expected, seen) = cqs.rest();
        prop_assert_eq!(seen, expected, "what is left");
    }
}

/// What an action gives: nothing, completions, the number of a CQ, or a refusal.
#[derive(Debug, PartialEq)]
enum Outcome {
    Done,
    Completions(Vec<Completion>),
    Event(usize),
    Refused(ErrorKind),
    /// The size of a CQ.
    Size(usize),
    /// How often a CQ reported an overrun.
    Overruns(u32),
}

fn outcome<T>(result: Result<T, ErrorKind>, of: impl FnOnce(T) -> Outcome) -> Outcome {
    result.map_or_else(Outcome::Refused, of)
}

/// The CQs on the simulator, and in the model.
struct Cqs<'v> {
    verbs: &'v dyn Verbs,
    near: End<'v>,
    far: End<'v>,
    slots: Vec<Slot>,
    model: Model,
}

/// A CQ, which may be gone, and a pair of queue pairs with one of them on it.
#[derive(Clone, Copy)]
struct Slot {
    cq: Cq,
    pair: Option<(Qp, Qp)>,
    /// Overruns reported so far.
    overruns: u32,
}

impl<'v> Cqs<'v> {
    fn new(verbs: &'v dyn Verbs) -> Self {
        let mut cqs = Self {
            verbs,
            near: End::open(verbs, "sim0", 1, 64),
            far: End::open(verbs, "sim1", 4096, 64),
            slots: Vec::new(),
            model: Model::default(),
        };
        for cq in 0..CQS {
            let slot = Slot {
                cq: cqs.new_cq(4, cq),
                pair: None,
                overruns: 0,
            };
            cqs.slots.push(slot);
            cqs.model.create(cq, 4);
        }
        cqs
    }

    fn new_cq(&self, size: i32, number: usize) -> Cq {
        let init = CqInit::new(size)
            .channel(self.near.channel)
            .context(number as u64);
        self.verbs.create_cq(self.near.context, &init).unwrap()
    }

    // The model

    fn expect(&mut self, action: &Action, wr_id: u64) -> Outcome {
        let model = &mut self.model;
        let done = |()| Outcome::Done;
        match *action {
            Action::Arm { cq, solicited_only } => outcome(model.arm(cq, solicited_only != 0), done),
            Action::Work { cq, work } => {
                if model.lives(cq) {
                    let (completions, solicited) = completions(work, wr_id);
                    for completion in completions {
                        model.add(cq, completion, solicited);
                    }
                }
                Outcome::Done
            }
            Action::Poll { cq, n } => outcome(model.poll(cq, n), Outcome::Completions),
            Action::GetEvent => outcome(model.get_event(), Outcome::Event),
            Action::Ack { cq, n } => outcome(model.ack(cq, n), done),
            Action::Resize { cq, size } => outcome(model.resize(cq, size), done),
            Action::Destroy { cq } => outcome(model.destroy(cq), done),
            Action::Create { cq, size } => {
                if !model.lives(cq) {
                    model.create(cq, size);
                }
                Outcome::Done
            }
        }
    }

    // The simulator

    fn perform(&mut self, action: &Action, wr_id: u64) -> Outcome {
        let verbs = self.verbs;
        match *action {
            Action::Arm { cq, solicited_only } => {
                done(verbs.req_notify_cq(self.slots[cq].cq, Arm(solicited_only)))
            }
            Action::Work { cq, work } => {
                if verbs.query_cq(self.slots[cq].cq).is_ok() {
                    self.work(cq, work, wr_id);
                }
                Outcome::Done
            }
            Action::Poll { cq, n } => self.poll(cq, n),
            Action::GetEvent => self.get_event(),
            Action::Ack { cq, n } => done(verbs.ack_cq_events(self.slots[cq].cq, n)),
            Action::Resize { cq, size } => done(verbs.resize_cq(self.slots[cq].cq, size)),
            Action::Destroy { cq } => self.destroy(cq),
            Action::Create { cq, size } => {
                if verbs.query_cq(self.slots[cq].cq).is_err() {
                    self.slots[cq].cq = self.new_cq(size as i32, cq);
                    self.slots[cq].overruns = 0;
                }
                Outcome::Done
            }
        }
    }

    fn poll(&self, cq: usize, n: usize) -> Outcome {
        let mut wc = [Wc::default(); 8];
        let polled = self.verbs.poll_cq(self.slots[cq].cq, &mut wc[..n]);
        outcome(kind(polled), |n| {
            Outcome::Completions(wc[..n].iter().map(Completion::from).collect())
        })
    }

    fn get_event(&self) -> Outcome {
        let event = self.verbs.get_cq_event(self.near.channel, Wait::Poll);
        outcome(kind(event), |event| {
            let number = event.cq_context as usize;
            assert_eq!(
                event.cq, self.slots[number].cq,
                "cq and context of an event"
            );
            Outcome::Event(number)
        })
    }

    /// CQ-DESTROY-04: with a queue pair on it the CQ is busy, whatever else is the matter.
    fn destroy(&mut self, number: usize) -> Outcome {
        let slot = &mut self.slots[number];
        if let Some((qp, peer)) = slot.pair.take() {
            let busy = kind(self.verbs.destroy_cq(slot.cq, Wait::Poll));
            assert_eq!(busy, Err(ErrorKind::Busy));
            self.remove(qp, peer);
        }
        done(self.verbs.destroy_cq(self.slots[number].cq, Wait::Poll))
    }

    /// Does work on the queue pair of a CQ, and lets it complete.
    fn work(&mut self, number: usize, work: Work, wr_id: u64) {
        let (qp, peer) = self.pair_of(number);
        let (near, far) = (&self.near, &self.far);
        let (mine, theirs) = ([near.mem.sge(0, 8)], [far.mem.sge(0, 8)]);
        let remote = near.mem.remote(0);
        match work {
            Work::Send | Work::SendUnsignaled | Work::SendSolicited => {
                far.recv(peer, wr_id, 0, 8);
                let wr = SendWr::send(wr_id, &mine);
                near.post(
                    qp,
                    match work {
                        Work::SendUnsignaled => wr.unsignaled(),
                        Work::SendSolicited => wr.solicited(),
                        _ => wr,
                    },
                );
            }
            Work::SendError => {
                let list = [Sge {
                    lkey: !near.mem.lkey,
                    ..mine[0]
                }];
                near.post(qp, SendWr::send(wr_id, &list).unsignaled());
            }
            Work::Write => near.post(qp, SendWr::rdma_write(wr_id, &mine, far.mem.remote(0))),
            Work::Read => near.post(qp, SendWr::rdma_read(wr_id, &mine, far.mem.remote(0))),
            Work::Recv { solicited } => {
                near.recv(qp, wr_id, 0, 8);
                far.post(peer, mark(SendWr::send(wr_id, &[]), solicited));
            }
            Work::RecvImm { solicited } => {
                near.recv(qp, wr_id, 0, 8);
                let imm_data = [0; 4];
                let op = SendOp::RdmaWriteWithImm { remote, imm_data };
                far.post(peer, mark(SendWr::new(wr_id, op, &[]), solicited));
            }
            Work::RecvError { solicited } => {
                near.recv(qp, wr_id, 0, 7);
                let wr = SendWr::send(wr_id, &theirs);
                far.post(peer, mark(wr, solicited));
            }
            Work::Flush(n) => {
                let wrs = vec![RecvWr::new(wr_id, &[]); n];
                self.verbs.post_recv(qp, &wrs).unwrap();
                near.fail(qp);
            }
        }
        common::settle(self.verbs);
    }

    /// The working pair of a CQ: a new one if there is none, or an error has stopped it.
    fn pair_of(&mut self, number: usize) -> (Qp, Qp) {
        if let Some((qp, peer)) = self.slots[number].pair {
            if [self.near.state(qp), self.far.state(peer)] == [QpState::Rts; 2] {
                return (qp, peer);
            }
            self.remove(qp, peer);
        }
        let on_it = End {
            cq: self.slots[number].cq,
            ..self.near
        };
        let params = RcParams::default();
        let pair = pair((&on_it, &self.far), QpType::Rc, 256, &params);
        self.slots[number].pair = Some(pair);
        pair
    }

    fn remove(&mut self, qp: Qp, peer: Qp) {
        self.count_overruns();
        for qp in [qp, peer] {
            self.verbs.destroy_qp(qp, Wait::Poll).unwrap();
        }
    }

    fn count_overruns(&mut self) {
        let context = self.near.context;
        while let Ok(event) = self.verbs.get_async_event(context, Wait::Poll) {
            self.verbs.ack_async_event(context, &event).unwrap();
            if let (AsyncEventType::CqErr, Element::Cq(cq)) = (event.event_type, event.element) {
                let slot = self.slots.iter_mut().find(|slot| slot.cq == cq);
                slot.expect("the cq lives").overruns += 1;
            }
        }
    }

    /// All that is left at the end, by the model and on the simulator.
    fn rest(&mut self) -> (Vec<Outcome>, Vec<Outcome>) {
        self.count_overruns();
        let (mut expected, mut seen) = (Vec::new(), Vec::new());
        for number in 0..CQS {
            let Slot { cq, overruns, .. } = self.slots[number];
            expected.push(outcome(self.model.size(number), Outcome::Size));
            seen.push(outcome(kind(self.verbs.query_cq(cq)), |attr| {
                Outcome::Size(attr.cqe as usize)
            }));
            // CQ-OVR-01, CQ-OVR-05.
            if self.model.lives(number) {
                expected.push(Outcome::Overruns(self.model.is_dead(number).into()));
                seen.push(Outcome::Overruns(overruns));
            }
            let poll = Action::Poll { cq: number, n: 8 };
            expected.push(self.expect(&poll, 0));
            seen.push(self.perform(&poll, 0));
        }
        loop {
            expected.push(self.expect(&Action::GetEvent, 0));
            seen.push(self.perform(&Action::GetEvent, 0));
            if !matches!(expected.last(), Some(Outcome::Event(_))) {
                return (expected, seen);
            }
        }
    }
}

/// The completions that work adds, and whether they are solicited.
fn completions(work: Work, wr_id: u64) -> (Vec<Completion>, bool) {
    let success = |opcode| vec![Completion::success(wr_id, opcode)];
    let failure = |status| vec![Completion::failure(wr_id, status)];
    match work {
        Work::Send | Work::SendSolicited => (success(WcOpcode::Send), false),
        Work::SendUnsignaled => (Vec::new(), false),
        Work::SendError => (failure(WcStatus::LocProtErr), false),
        Work::Write => (success(WcOpcode::RdmaWrite), false),
        Work::Read => (success(WcOpcode::RdmaRead), false),
        Work::Recv { solicited } => (success(WcOpcode::Recv), solicited),
        Work::RecvImm { solicited } => (success(WcOpcode::RecvRdmaWithImm), solicited),
        Work::RecvError { solicited } => (failure(WcStatus::LocLenErr), solicited),
        Work::Flush(n) => (
            vec![Completion::failure(wr_id, WcStatus::WrFlushErr); n],
            false,
        ),
    }
}

fn mark(wr: SendWr<'_>, solicited: bool) -> SendWr<'_> {
    if solicited { wr.solicited() } else { wr }
}

fn kind<T>(result: Result<T, Error>) -> Result<T, ErrorKind> {
    result.map_err(|error| error.kind())
}

fn done(result: Result<(), Error>) -> Outcome {
    outcome(kind(result), |()| Outcome::Done)
}
