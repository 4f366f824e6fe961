//! Every short sequence of actions on a CQ, compared step by step with a reference model.
//!
//! The node is a plain value: the search goes depth first, and clones the node and the model at
//! each branch. What is compared: the result of each action, and at the end of each sequence all
//! that is still there.

mod alone;
mod model;

use std::collections::BTreeMap;

use verbs_api::behavior::Behavior;
use verbs_api::{
    Access, AhAttr, Arm, AsyncEventType, CompChannel, Context, Cq, CqInit, Error, ErrorKind,
    MrAttr, Qp, QpAttr, QpAttrMask, QpInit, QpState, QpType, RecvWr, SendWr, Sge, Wc, WcOpcode,
    WcStatus, transition,
};

use alone::Alone;
use model::{Completion, Model};

/// Length of the sequences.
const DEPTH: usize = if cfg!(debug_assertions) { 4 } else { 6 };
/// Entries of the CQ: it overruns within the depth. One resize in two asks for less.
const SIZE: i32 = 3;
const SMALL: i32 = 1;
const THE_CQ: usize = 0;

/// What is tried at each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    ArmNext,
    ArmSolicited,
    Send,
    SendError,
    Recv,
    RecvSolicited,
    RecvError,
    Poll,
    GetEvent,
    Ack,
    Resize,
}

use Action::{
    Ack, ArmNext, ArmSolicited, GetEvent, Poll, Recv, RecvError, RecvSolicited, Resize, Send,
    SendError,
};

const ACTIONS: [Action; 11] = [
    ArmNext,
    ArmSolicited,
    Send,
    SendError,
    Recv,
    RecvSolicited,
    RecvError,
    Poll,
    GetEvent,
    Ack,
    Resize,
];

/// CQ-ARM-01 to -17, -36, -39, CQ-OVR-02, -03, CQ-RESIZE-02 to -06, -24 to -26, CHAN-33, -37: every
/// sequence of actions gives what the model gives.
#[test]
fn every_sequence_of_actions_does_what_the_model_does() {
    let mut search = Search::default();
    search.go(State::new(), &mut Vec::new());
    println!("{search:#?}");
    let sequences = ACTIONS.len().pow(DEPTH as u32);
    assert_eq!(search.sequences, sequences);
    assert_eq!(
        search.steps,
        (1..=DEPTH)
            .map(|n| ACTIONS.len().pow(n as u32))
            .sum::<usize>()
    );
    assert_eq!(search.outcomes.into_iter().collect::<Vec<_>>(), OUTCOMES);
}

/// How many steps end how. A search that does not get to some state would show here.
#[cfg(debug_assertions)]
const OUTCOMES: &[(&str, usize)] = &[
    ("ack: done", 8),
    ("ack: none to acknowledge", 1_456),
    ("arm: done", 2_828),
    ("arm: the cq is dead", 100),
    ("get event: an event", 216),
    ("get event: none", 1_248),
    ("poll: a completion", 1_115),
    ("poll: nothing", 349),
    ("resize: done", 939),
    ("resize: refused", 525),
    ("work: done", 7_320),
];
#[cfg(not(debug_assertions))]
const OUTCOMES: &[(&str, usize)] = &[
    ("ack: done", 6_662),
    ("ack: none to acknowledge", 170_494),
    ("arm: done", 272_412),
    ("arm: the cq is dead", 81_900),
    ("get event: an event", 51_874),
    ("get event: none", 125_282),
    ("poll: a completion", 154_475),
    ("poll: nothing", 20_906),
    ("poll: the cq is dead", 1_775),
    ("resize: done", 74_356),
    ("resize: refused", 102_800),
    ("work: done", 885_780),
];

/// What the search has seen.
#[derive(Debug, Default)]
struct Search {
    sequences: usize,
    steps: usize,
    /// How many steps ended how.
    outcomes: BTreeMap<&'static str, usize>,
}

impl Search {
    fn go(&mut self, mut state: State, path: &mut Vec<Action>) {
        if path.len() == DEPTH {
            self.sequences += 1;
            state.check_the_rest(path);
            return;
        }
        for action in ACTIONS {
            path.push(action);
            let mut next = state.clone();
            let (expected, seen) = next.step(action, path.len() as u64);
            assert_eq!(seen, expected, "after {path:?}");
            self.steps += 1;
            *self.outcomes.entry(expected.name(action)).or_default() += 1;
            self.go(next, path);
            path.pop();
        }
    }
}

/// What an action gave.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Completion(Option<Completion>),
    Event(Option<Cq>),
    Refused(ErrorKind),
}

impl Outcome {
    /// Names what the counts are kept of.
    fn name(&self, action: Action) -> &'static str {
        match (self, action) {
            (Self::Completion(Some(_)), _) => "poll: a completion",
            (Self::Completion(None), _) => "poll: nothing",
            (Self::Event(Some(_)), _) => "get event: an event",
            (Self::Event(None), _) => "get event: none",
            (Self::Refused(_), Ack) => "ack: none to acknowledge",
            (Self::Refused(_), Resize) => "resize: refused",
            (Self::Refused(_), Poll) => "poll: the cq is dead",
            (Self::Refused(_), _) => "arm: the cq is dead",
            (Self::Done, Ack) => "ack: done",
            (Self::Done, Resize) => "resize: done",
            (Self::Done, ArmNext | ArmSolicited) => "arm: done",
            (Self::Done, _) => "work: done",
        }
    }
}

/// A node in its start state, and the model of its CQ.
#[derive(Clone)]
struct State {
    node: Alone,
    model: Model,
    setup: &'static Setup,
    errors: usize,
    resizes: usize,
}

/// The handles, which are the same in all clones.
struct Setup {
    context: Context,
    channel: CompChannel,
    cq: Cq,
    mem: MrAttr,
    /// The pair that works.
    good: (Qp, Qp),
    /// One for each error of a sequence, and one for the error at its end.
    bad: [(Qp, Qp); DEPTH + 1],
}

impl State {
    fn new() -> Self {
        let mut node = Alone::new(Behavior::SPEC, 0);
        let context = node.open_device().unwrap();
        let pd = node.alloc_pd(context).unwrap();
        let mr = node.alloc_mr(pd, 8, Access::LOCAL_WRITE).unwrap();
        let mem = node.query_mr(mr).unwrap();
        let channel = node.create_comp_channel(context).unwrap();
        let cq = node
            .create_cq(context, &CqInit::new(SIZE).channel(channel))
            .unwrap();
        // Takes the completions of the peers.
        let other = node.create_cq(context, &CqInit::new(64)).unwrap();
        let mut pair = || {
            let qp = |node: &mut Alone, cq| {
                node.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq))
                    .unwrap()
            };
            let (a, b) = (qp(&mut node, cq), qp(&mut node, other));
            connect(&mut node, context, a, b);
            connect(&mut node, context, b, a);
            (a, b)
        };
        let setup = Setup {
            context,
            channel,
            cq,
            mem,
            good: pair(),
            bad: std::array::from_fn(|_| pair()),
        };
        let mut model = Model::default();
        model.create(THE_CQ, SIZE as usize);
        Self {
            node,
            model,
            setup: Box::leak(Box::new(setup)),
            errors: 0,
            resizes: 0,
        }
    }

    /// Does it on the model and on the node.
    fn step(&mut self, action: Action, wr_id: u64) -> (Outcome, Outcome) {
        let Setup {
            channel, cq, good, ..
        } = *self.setup;
        match action {
            ArmNext => self.arm(Arm::NEXT),
            ArmSolicited => self.arm(Arm::SOLICITED),
            Send => {
                let done = Completion::success(wr_id, WcOpcode::Send);
                self.model.add(THE_CQ, done, false);
                self.recv(good.1, wr_id);
                self.send(good.0, SendWr::send(wr_id, &[]))
            }
            Recv | RecvSolicited => {
                let done = Completion::success(wr_id, WcOpcode::Recv);
                let solicited = action == RecvSolicited;
                self.model.add(THE_CQ, done, solicited);
                self.recv(good.0, wr_id);
                let wr = SendWr::send(wr_id, &[]);
                self.send(good.1, if solicited { wr.solicited() } else { wr })
            }
            SendError => {
                let status = WcStatus::LocProtErr;
                self.model
                    .add(THE_CQ, Completion::failure(wr_id, status), false);
                let qp = self.next_bad_pair().0;
                let lkey = !self.setup.mem.lkey;
                let list = [Sge {
                    lkey,
                    ..self.setup.mem.sge(0, 8)
                }];
                self.send(qp, SendWr::send(wr_id, &list))
            }
            RecvError => {
                let status = WcStatus::LocLenErr;
                self.model
                    .add(THE_CQ, Completion::failure(wr_id, status), false);
                let (qp, peer) = self.next_bad_pair();
                self.recv(qp, wr_id);
                self.send(peer, SendWr::send(wr_id, &[self.setup.mem.sge(0, 8)]))
            }
            Poll => {
                let expected = self.model.poll(THE_CQ, 1);
                let mut wc = [Wc::default()];
                let seen = self.node.poll_cq(cq, &mut wc);
                let completion =
                    |n| Outcome::Completion((n == 1).then(|| Completion::from(&wc[0])));
                (
                    either(expected.map(|list| Outcome::Completion(list.first().copied()))),
                    either(kind(seen).map(completion)),
                )
            }
            GetEvent => {
                let event = |event: Result<Cq, ErrorKind>| match event {
                    Err(ErrorKind::WouldBlock) => Outcome::Event(None),
                    other => either(other.map(|cq| Outcome::Event(Some(cq)))),
                };
                let expected = self.model.get_event().map(|_| cq);
                let seen = self.node.get_cq_event(channel).map(|event| event.cq);
                (event(expected), event(kind(seen)))
            }
            Ack => (
                done(self.model.ack(THE_CQ, 1)),
                done(kind(self.node.ack_cq_events(cq, 1))),
            ),
            Resize => {
                self.resizes += 1;
                let size = if self.resizes % 2 == 1 { SMALL } else { SIZE };
                (
                    done(self.model.resize(THE_CQ, size)),
                    done(kind(self.node.resize_cq(cq, size))),
                )
            }
        }
    }

    fn arm(&mut self, arm: Arm) -> (Outcome, Outcome) {
        (
            done(self.model.arm(THE_CQ, arm.solicited_only())),
            done(kind(self.node.req_notify_cq(self.setup.cq, arm))),
        )
    }

    /// Posting works whatever became of the CQ.
    fn send(&mut self, qp: Qp, wr: SendWr<'_>) -> (Outcome, Outcome) {
        let posted = self.node.post_send(qp, &[wr]);
        self.node.run();
        (Outcome::Done, done(kind(posted.map_err(Error::from))))
    }

    fn recv(&mut self, qp: Qp, wr_id: u64) {
        self.node.post_recv(qp, &[RecvWr::new(wr_id, &[])]).unwrap();
    }

    fn next_bad_pair(&mut self) -> (Qp, Qp) {
        self.errors += 1;
        self.setup.bad[self.errors - 1]
    }

    /// What is there at the end: the size, completions, events, which request is pending, and
    /// whether the CQ overran.
    fn check_the_rest(&mut self, path: &[Action]) {
        let size = self.node.query_cq(self.setup.cq).unwrap().cqe as usize;
        assert_eq!(Ok(size), self.model.size(THE_CQ), "after {path:?}");
        self.drain(path);
        for probe in [Recv, RecvError] {
            self.step(probe, 0);
            self.drain(path);
        }
        // CQ-OVR-01, CQ-OVR-05: once.
        let mut overruns = 0;
        while let Ok(event) = self.node.get_async_event(self.setup.context) {
            overruns += usize::from(event.event_type == AsyncEventType::CqErr);
        }
        let expected = usize::from(self.model.is_dead(THE_CQ));
        assert_eq!(overruns, expected, "CQ_ERR after {path:?}");
    }
    fn drain(&mut self, path: &[Action]) {
        for action in [Poll, GetEvent] {
            loop {
                let (expected, seen) = self.step(action, 0);
                assert_eq!(seen, expected, "{action:?} at the end of {path:?}");
                if !matches!(
                    expected,
                    Outcome::Completion(Some(_)) | Outcome::Event(Some(_))
                ) {
                    break;
                }
            }
        }
    }
}

fn kind<T>(result: Result<T, Error>) -> Result<T, ErrorKind> {
    result.map_err(|error| error.kind())
}

fn done(result: Result<(), ErrorKind>) -> Outcome {
    either(result.map(|()| Outcome::Done))
}

fn either(result: Result<Outcome, ErrorKind>) -> Outcome {
    result.unwrap_or_else(Outcome::Refused)
}

/// Brings an RC queue pair to RTS, connected to `peer` of the same node.
fn connect(node: &mut Alone, context: Context, qp: Qp, peer: Qp) {
    let mut attr = QpAttr {
        path_mtu: verbs_api::Mtu::Mtu256,
        dest_qp_num: node.qp_num(peer).unwrap(),
        ah_attr: Some(AhAttr::global(1, 0, node.query_gid(context, 1, 0).unwrap())),
        port_num: 1,
        ..QpAttr::default()
    };
    let states = [QpState::Reset, QpState::Init, QpState::Rtr, QpState::Rts];
    for step in states.windows(2) {
        attr.qp_state = step[1];
        let row = transition::attributes(QpType::Rc, step[0], step[1]).unwrap();
        let mask = QpAttrMask::STATE | row.required;
        node.modify_qp(qp, &attr, mask).unwrap();
    }
}
