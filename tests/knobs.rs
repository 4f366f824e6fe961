//! The knobs are the suite's planted defects: a device that declares the behavior of the
//! specification and has another is found out. And whatever they let through breaks nothing.

mod common;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{End, settle};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed};
use serde::Deserialize;
use verbs_api::behavior::{Behavior, Check, Knob, PostWrongState};
use verbs_api::profile::Profile;
use verbs_api::{
    AhAttr, Capabilities, CqInit, ErrorKind, Mtu, Qp, QpAttr, QpAttrMask, QpInit, QpModify,
    QpState, QpType, RcParams, RecvWr, SendWr, Sge, Verbs, WcStatus, connect, transition,
};
use verbs_scenarios::report::{BackendInfo, Outcome};
use verbs_scenarios::{Backend, Fixture, Scenario, run};
use verbs_sim::{Mode, Sim, SimConfig};

/// The simulator with this behavior, that declares another or the same.
#[derive(Clone, Copy)]
struct Turned {
    behavior: Behavior,
    declared: Behavior,
    lacks: Capabilities,
}

/// The values of iWARP: who has them lacks what iWARP lacks.
const IWARP: &[(&str, &str)] = &[
    ("remote_faults", "ends_connection"),
    ("rnr", "no"),
    ("send_done", "sent"),
];

impl Backend for Turned {
    fn info(&self) -> BackendInfo {
        let text = |text: &str| text.to_string();
        BackendInfo {
            version: text(""),
            backend: text("sim"),
            device: text("sim0"),
            driver: text("sim"),
            kernel: None,
            rdma_core: None,
            link_layer: text("ethernet"),
            profile: text("turned"),
            seed: 0,
        }
    }

    fn start(&self, threads: bool) -> verbs_api::Result<Fixture> {
        let mode = if threads { Mode::Inline } else { Mode::Stepped };
        let config = SimConfig::new()
            .behavior(self.behavior)
            .declare(self.declared)
            .lacks(self.lacks)
            .mode(mode);
        let verbs: Box<dyn Verbs> = Box::new(Sim::new(config));
        Ok(Fixture::new(verbs))
    }

    fn lacking(&self, lacks: Capabilities) -> Option<Box<dyn Backend + '_>> {
        Some(Box::new(Self { lacks, ..*self }))
    }

    fn lacks(&self) -> Option<Capabilities> {
        Some(self.lacks)
    }

    fn replay(&self, _scenario: &Scenario) -> String {
        String::new()
    }
}

#[test]
fn every_value_of_every_knob_is_noticed_when_the_specification_is_declared() {
    let unnoticed = of_values(|knob, _, behavior| {
        let liar = Turned {
            behavior,
            declared: Behavior::SPEC,
            lacks: Capabilities::empty(),
        };
        if is_noticed(knob, &liar) {
            Vec::new()
        } else {
            vec!["no scenario notices it".to_string()]
        }
    });
    assert!(unnoticed.is_empty(), "{}", unnoticed.join("\n"));
}

/// What a value breaks when it is declared.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    /// `knob = value`
    of: String,
    /// What the device does, in a sentence.
    because: String,
    /// What is seen where a rule does not hold: each failure has one of these texts.
    seen: Vec<String>,
    rules: BTreeSet<String>,
}

/// What is in `tests/knobs.toml`.
fn recorded() -> Vec<Recorded> {
    #[derive(Deserialize)]
    struct Record {
        value: Vec<Recorded>,
    }
    let record: Record = toml::from_str(include_str!("knobs.toml")).unwrap();
    record.value
}

/// `tests/knobs.toml` has the rules that a value breaks, and how it shows; where it has none, the
/// suite passes. Optimized, the whole suite runs under each value; in the dev profile, the
/// scenarios of the knob's rules.
#[test]
fn a_value_that_is_declared_breaks_what_is_recorded_and_nothing_else() {
    let whole = !cfg!(debug_assertions);
    let record = recorded();
    let wrong = of_values(|knob, value, behavior| {
        let of = format!("{} = {value}", knob.name);
        let recorded = record.iter().find(|recorded| recorded.of == of);
        let turned = Turned {
            behavior,
            declared: behavior,
            lacks: if IWARP.contains(&(knob.name, value)) {
                Profile::SIW.lacks
            } else {
                Capabilities::empty()
            },
        };
        let of_knob = |scenario: &&Scenario| whole || bears_on(knob, scenario);
        let scenarios: Vec<_> = verbs_scenarios::all().filter(of_knob).collect();
        let run =
            run(&turned, &scenarios, |_| ControlFlow::Continue(())).expect("the backend starts");
        let (mut broken, mut wrong) = (BTreeSet::new(), Vec::new());
        for failure in run
            .scenarios
            .iter()
            .filter_map(|entry| entry.failure.as_ref())
        {
            let rule = failure.rule.unwrap_or("set-up");
            let is_recorded = recorded.is_some_and(|recorded| {
                let shows = |text: &String| failure.seen.contains(text.as_str());
                recorded.rules.contains(rule) && recorded.seen.iter().any(shows)
            });
            if !is_recorded {
                wrong.push(format!("{rule}: {}", failure.seen));
            }
            broken.insert(rule);
        }
        let holds = |rule: &&String| whole && !broken.contains(rule.as_str());
        let rules = recorded.iter().flat_map(|recorded| &recorded.rules);
        wrong.extend(rules.filter(holds).map(|rule| format!("{rule} holds")));
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A record of a knob or value that does not exist would never be used.
#[test]
fn what_is_recorded_is_of_a_knob_and_its_value() {
    for Recorded { of, because, .. } in recorded() {
        assert!(!because.is_empty(), "{of}");
        let (knob, value) = of.split_once(" = ").unwrap();
        let mut behavior = Behavior::SPEC;
        behavior.set(knob, value).unwrap();
        assert_ne!(behavior, Behavior::SPEC, "{of}");
    }
}

fn bears_on(knob: &Knob, scenario: &Scenario) -> bool {
    scenario.rules.iter().any(|id| knob.rules.contains(id))
}

/// What `judge` says of each value of each knob but that of the specification, from as many threads
/// as help.
fn of_values(judge: impl Fn(&Knob, &str, Behavior) -> Vec<String> + Sync) -> Vec<String> {
    let turned = |knob: &'static Knob| {
        let own = Behavior::SPEC.get(knob.name);
        let others = knob
            .values()
            .into_iter()
            .filter(move |value| Some(*value) != own);
        others.map(move |value| (knob, value))
    };
    let all: Vec<_> = Knob::ALL.iter().flat_map(turned).collect();
    let (next, said) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((knob, value)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut behavior = Behavior::SPEC;
            behavior.set(knob.name, value).unwrap();
            let of_value = judge(knob, value, behavior);
            let lines = of_value
                .into_iter()
                .map(|line| format!("{} = {value}: {line}", knob.name));
            said.lock().unwrap().extend(lines);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut said = said.into_inner().unwrap();
    said.sort();
    said
}

/// Tries the scenarios of the knob's rules first, since one of them should do.
fn is_noticed(knob: &Knob, liar: &Turned) -> bool {
    let of_knob = |scenario: &&Scenario| bears_on(knob, scenario);
    let (likely, rest): (Vec<_>, Vec<_>) = verbs_scenarios::all().partition(of_knob);
    let fails = |scenario: &&'static Scenario| {
        let run =
            run(liar, &[*scenario], |_| ControlFlow::Continue(())).expect("the backend starts");
        run.scenarios[0].outcome == Outcome::Failed
    };
    likely.iter().any(fails) || rest.iter().any(fails)
}

/// What a program does to a queue pair.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Asks for a state, and may say in which it is.
    Change(QpState, Option<QpState>),
    /// From good memory or bad.
    Send(bool),
    Recv,
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    let up = [QpState::Init, QpState::Rtr, QpState::Rts];
    let to = [QpState::Reset, QpState::Rts, QpState::Sqd];
    let says = [QpState::Rtr, QpState::Rts, QpState::Sqd, QpState::Sqe];
    prop_oneof![
        4 => select(up.to_vec()).prop_map(|to| Step::Change(to, None)),
        1 => select(to.to_vec()).prop_map(|to| Step::Change(to, None)),
        3 => (select(to.to_vec()), select(says.to_vec())).prop_map(|(to, says)| Step::Change(to, Some(says))),
        3 => prop::bool::weighted(0.8).prop_map(Step::Send),
        1 => Just(Step::Recv),
        1 => Just(Step::Settle),
    ]
}

/// QP-STATE-18: with `post_wrong_state` a send is refused, and runs before the next one all the
/// same.
#[test]
fn a_send_that_is_refused_and_queued_runs_in_rts() {
    let mut behavior = Behavior::SPEC;
    behavior.post_wrong_state = PostWrongState::Queued;
    let sim = Sim::new(SimConfig::new().behavior(behavior));
    let [a, b] = ["sim0", "sim1"].map(|name| End::open(&sim, name, 16, 64));
    let qps = [a.qp(QpType::Rc, 4), b.qp(QpType::Rc, 4)];
    let refused = sim.post_send(qps[0], &[SendWr::send(1, &[a.mem.sge(0, 7)])]);
    assert_eq!(refused.unwrap_err().error.kind(), ErrorKind::Invalid);
    connect::by_attributes(&sim, qps[0], qps[1], &RcParams::default()).unwrap();
    for wr_id in [1, 2] {
        b.recv(qps[1], wr_id, 0, 64);
    }
    settle(&sim);
    assert_eq!(b.drain(), [], "it waits for the next send");
    a.send(qps[0], 2, 0, 8);
    settle(&sim);
    let lengths: Vec<_> = b.drain().iter().map(|wc| wc.byte_len).collect();
    assert_eq!(lengths, [7, 8]);
    let sent: Vec<_> = a.drain().iter().map(|wc| (wc.wr_id, wc.status)).collect();
    assert_eq!(sent, [(1, WcStatus::Success), (2, WcStatus::Success)]);
}

/// QP-STATE-18: with `post_wrong_state` a list is queued up to its first bad work request, which is
/// the one that is refused.
#[test]
fn a_list_that_is_refused_and_queued_is_queued_up_to_a_bad_work_request() {
    let mut behavior = Behavior::SPEC;
    behavior.post_wrong_state = PostWrongState::Queued;
    let sim = Sim::new(SimConfig::new().behavior(behavior));
    let [a, b] = ["sim0", "sim1"].map(|name| End::open(&sim, name, 16, 64));
    let qps = [a.qp(QpType::Rc, 3), b.qp(QpType::Rc, 8)];
    let data = [a.mem.sge(0, 8)];
    let list: Vec<_> = (0..5).map(|wr_id| SendWr::send(wr_id, &data)).collect();
    for (list, bad_wr) in [(&list[..2], 0), (&list[2..], 1)] {
        let refused = sim.post_send(qps[0], list).unwrap_err();
        let seen = (refused.bad_wr, refused.error.kind());
        assert_eq!(
            seen,
            (bad_wr, ErrorKind::Invalid),
            "there is room for three"
        );
    }
    connect::by_attributes(&sim, qps[0], qps[1], &RcParams::default()).unwrap();
    for wr_id in 0..4 {
        b.recv(qps[1], wr_id, 0, 64);
    }
    let full = sim.post_send(qps[0], &list[3..]).unwrap_err();
    assert_eq!((full.bad_wr, full.error.kind()), (0, ErrorKind::NoMemory));
    settle(&sim);
    let sent: Vec<_> = a.drain().iter().map(|wc| (wc.wr_id, wc.status)).collect();
    assert_eq!(sent, [0, 1, 2].map(|wr_id| (wr_id, WcStatus::Success)));
}

/// CQ-OVR-04: with `overrun_nak` the requester learns of a completion that is lost at the
/// responder, be it of a success or a failure, and otherwise it gets nothing.
#[test]
fn a_completion_lost_at_the_responder_is_answered_as_the_knob_says() {
    for overrun_nak in [true, false] {
        for is_short in [false, true] {
            let mut behavior = Behavior::SPEC;
            behavior.overrun_nak = overrun_nak;
            let sim = Sim::new(SimConfig::new().behavior(behavior));
            let [a, b] = ["sim0", "sim1"].map(|name| End::open(&sim, name, 16, 64));
            let tiny = sim.create_cq(b.context, &CqInit::new(1)).unwrap();
            let init = QpInit::new(QpType::Rc, b.cq, tiny);
            let qps = [a.qp(QpType::Rc, 4), sim.create_qp(b.pd, &init).unwrap()];
            connect::by_attributes(&sim, qps[0], qps[1], &RcParams::default()).unwrap();
            b.recv(qps[1], 0, 0, 8);
            b.recv(qps[1], 1, 0, if is_short { 4 } else { 8 });
            a.send(qps[0], 0, 0, 8);
            a.send(qps[0], 1, 0, 8);
            settle(&sim);
            let status = match (overrun_nak, is_short) {
                (false, _) => WcStatus::RetryExcErr,
                (true, false) => WcStatus::RemOpErr,
                (true, true) => WcStatus::RemInvReqErr,
            };
            let sent: Vec<_> = a.drain().iter().map(|wc| (wc.wr_id, wc.status)).collect();
            assert_eq!(sent, [(0, WcStatus::Success), (1, status)]);
            assert_eq!(b.state(qps[1]), QpState::Err);
        }
    }
}

proptest! {
    #![proptest_config(Config {
        cases: 4096,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..Config::default()
    })]

    /// QP-STATE-09, QP-STATE-18, QP-STATE-25: a device that trusts the state it is given, and
    /// queues work that it should refuse, completes nothing twice, and works again after RESET.
    #[test]
    fn a_device_without_checks_works_again_after_reset(
        profile in select(&[Profile::RXE, Profile::SIW][..]),
        qp_type in select(&[QpType::Rc, QpType::Uc][..]),
        sqe: bool,
        steps in prop::collection::vec(step(), 0..40),
    ) {
        let mut behavior = profile.behavior;
        behavior.wrong_cur_state = Check::Accepted;
        behavior.bad_pkey_index = Check::Accepted;
        behavior.sqe = sqe;
        let sim = Sim::new(SimConfig::new().behavior(behavior));
        let ends = [End::open(&sim, "sim0", 256, 4096), End::open(&sim, "sim1", 256, 4096)];
        let qps = ends.map(|end| end.qp(qp_type, 64));
        let attr = attr(&ends[1], qps[1]);
        for (wr_id, step) in (0..).zip(steps) {
            take(&ends[0], qps[0], attr, wr_id, step);
        }
        settle(&sim);
        let seen = ends[0].drain();
        let wr_ids: BTreeSet<_> = seen.iter().map(|wc| wc.wr_id).collect();
        prop_assert_eq!(wr_ids.len(), seen.len(), "{:?}", seen);

        let reset = QpModify::to(QpState::Reset);
        sim.modify_qp(qps[0], &reset.attr, reset.mask).unwrap();
        connect::by_attributes(&sim, qps[0], qps[1], &RcParams::default()).unwrap();
        ends[1].recv(qps[1], 1, 0, 8);
        ends[0].send(qps[0], 2, 0, 8);
        settle(&sim);
        for end in ends {
            let seen: Vec<_> = end.drain().iter().map(|wc| wc.status).collect();
            prop_assert_eq!(seen, [WcStatus::Success]);
        }
    }
}

/// Good for any change, towards this peer. What cannot be done fails soon.
fn attr(peer: &End<'_>, qp: Qp) -> QpAttr {
    let dgid = peer.verbs.query_gid(peer.context, 1, 0).unwrap();
    QpAttr {
        path_mtu: Mtu::Mtu1024,
        dest_qp_num: peer.verbs.qp_num(qp).unwrap(),
        ah_attr: Some(AhAttr::global(1, 0, dgid)),
        port_num: 1,
        pkey_index: 1,
        timeout: 8,
        retry_cnt: 1,
        rnr_retry: 1,
        ..QpAttr::default()
    }
}

/// Takes a step. It may be refused.
fn take(end: &End<'_>, qp: Qp, attr: QpAttr, wr_id: u64, step: Step) {
    let list = [end.mem.sge(0, 8)];
    match step {
        Step::Change(to, says) => {
            let attr = QpAttr {
                qp_state: to,
                cur_qp_state: says.unwrap_or(to),
                ..attr
            };
            let qp_type = end
                .verbs
                .query_qp(qp, QpAttrMask::CAP)
                .unwrap()
                .init
                .qp_type;
            let from = says.unwrap_or(end.state(qp));
            let required = transition::attributes(qp_type, from, to).map(|of| of.required);
            let mut mask = QpAttrMask::STATE | required.unwrap_or(QpAttrMask::empty());
            mask.set(QpAttrMask::CUR_STATE, says.is_some());
            let _ = end.verbs.modify_qp(qp, &attr, mask);
        }
        Step::Send(good) => {
            let bad = [Sge { lkey: 0, ..list[0] }];
            let list = if good { list } else { bad };
            let _ = end.verbs.post_send(qp, &[SendWr::send(wr_id, &list)]);
        }
        Step::Recv => {
            let _ = end.verbs.post_recv(qp, &[RecvWr::new(wr_id, &list)]);
        }
        Step::Settle => settle(end.verbs),
    }
}
