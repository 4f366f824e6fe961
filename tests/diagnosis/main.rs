//! What the simulator says of a program that makes mistakes, and that it says nothing of one
//! without.

mod cases;
#[path = "../common/mod.rs"]
mod common;
mod doubtful;
mod events;
mod explored;
mod failures;
mod turns;

use std::time::Duration;

use cases::CASES;
use common::{End, pair, settle, take_events};
use verbs_api::cm::{CmEventType, ConnParam, PortSpace};
use verbs_api::site::Site;
use verbs_api::{
    Access, AhAttr, Arm, CqInit, Mtu, Qp, QpType, RcParams, Remote, SendWr, Verbs, Wait, connect,
};
use verbs_scenarios::rules;
use verbs_sim::{BlockedThread, Certainty, Class, Names, Problem, Sim, SimConfig, WaitGuard};

/// Each place has the same name.
struct Here;

impl Names for Here {
    fn place(&self, _: Site) -> String {
        "here".to_owned()
    }
}

const QKEY: u32 = 0x1111;

fn ends(sim: &Sim) -> (End<'_>, End<'_>) {
    let end = |name| End::open(sim, name, 4, 4096);
    (end("sim0"), end("sim1"))
}

/// Connected, and a message has been sent and received.
fn connected(sim: &Sim) -> (End<'_>, End<'_>, Qp, Qp) {
    let (a, b) = ends(sim);
    let (qp_a, qp_b) = pair((&a, &b), QpType::Rc, 4, &RcParams::default());
    b.recv(qp_b, 1, 0, 64);
    a.send(qp_a, 1, 0, 64);
    settle(sim);
    assert_eq!((a.drain().len(), b.drain().len()), (1, 1));
    (a, b, qp_a, qp_b)
}

/// Connects a queue pair with its peer, for this many reads under way.
fn connect_for_reads(sim: &Sim, (qp, of): (Qp, Qp), reads: u8) {
    let params = RcParams {
        max_rd_atomic: reads,
        ..RcParams::default()
    };
    let peer = connect::endpoint(sim, of, &params).unwrap();
    connect::to_endpoint(sim, qp, &peer, &params).unwrap();
}

/// A QP of `a` with a path MTU of 1024 bytes; that of its peer is 256.
fn apart(a: &End<'_>, b: &End<'_>, qp_type: QpType) -> Qp {
    let (qp, peer) = (a.qp(qp_type, 4), b.qp(qp_type, 4));
    for (qp, of, path_mtu) in [(qp, peer, Mtu::Mtu1024), (peer, qp, Mtu::Mtu256)] {
        let params = RcParams {
            path_mtu,
            ..RcParams::default()
        };
        let peer = connect::endpoint(a.verbs, of, &params).unwrap();
        connect::to_endpoint(a.verbs, qp, &peer, &params).unwrap();
    }
    qp
}

#[test]
fn a_program_that_ends_well_is_told_nothing() {
    let sim = Sim::new(SimConfig::new());
    let (a, b, qp_a, qp_b) = connected(&sim);
    sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
    b.recv(qp_b, 2, 0, 64);
    a.send(qp_a, 2, 0, 64);
    settle(&sim);
    assert_eq!(take_events(&sim, b.channel), [b.cq]);
    b.drain();
    a.drain();
    close(&a, &[qp_a]);
    close(&b, &[qp_b]);
    assert!(sim.diagnose().is_empty(), "{}", sim.diagnose());
}

/// A receive has come at the second end, and waits in its CQ.
fn received(sim: &Sim) -> (End<'_>, End<'_>, Qp, Qp) {
    let (a, b, qp_a, qp_b) = connected(sim);
    b.recv(qp_b, 2, 0, 64);
    a.send(qp_a, 2, 0, 64);
    settle(sim);
    a.drain();
    (a, b, qp_a, qp_b)
}

/// All that an end has goes, in the right order; its queue pairs first.
fn close(end: &End<'_>, qps: &[Qp]) {
    for qp in qps {
        end.verbs.destroy_qp(*qp, Wait::Poll).unwrap();
    }
    end.verbs.destroy_cq(end.cq, Wait::Poll).unwrap();
    end.verbs.destroy_comp_channel(end.channel).unwrap();
    end.verbs.dereg_mr(end.mr).unwrap();
    end.verbs.dealloc_pd(end.pd).unwrap();
    end.verbs.close_device(end.context).unwrap();
}

/// A CQ without a channel, where nothing else is.
fn lonely(end: &End<'_>, cqe: i32) -> verbs_api::Cq {
    end.verbs.create_cq(end.context, &CqInit::new(cqe)).unwrap()
}

/// What is found in each program; what is merely still there is left out.
#[test]
fn mistakes_are_named_with_their_cause() {
    for (what, program, expected) in [CASES, doubtful::CASES, events::CASES]
        .into_iter()
        .flatten()
    {
        let sim = Sim::new(SimConfig::new());
        program(&sim);
        let mut diagnosis = sim.diagnose();
        let was_closed = |problem: &Problem| {
            matches!(
                problem,
                Problem::NotDestroyed(objects) if objects.closed
            )
        };
        diagnosis
            .leftovers
            .retain(|finding| was_closed(&finding.problem));
        let text = diagnosis.with_names(&Here);
        let found: Vec<_> = text
            .lines()
            .filter(|line| !line.starts_with("help: "))
            .collect();
        assert_eq!(found, *expected, "{what}");
    }
}

/// Where a finding of a class is, if there is just one.
fn place(sim: &Sim, class: Class) -> String {
    let diagnosis = sim.diagnose();
    let mut found = diagnosis
        .mistakes
        .iter()
        .filter(|found| found.class() == class);
    let site = found.next().expect("it is found").site;
    assert!(found.next().is_none(), "{diagnosis}");
    site.expect("it has a place").to_string()
}

/// The call that was refused, the post of work that failed, the request of an event that never
/// comes.
#[test]
fn findings_name_lines_of_the_program() {
    let sim = Sim::new(SimConfig::new());
    let here = |line: u32| format!("{}:{line}", file!());
    let (a, b, qp_a, qp_b) = connected(&sim);

    sim.dealloc_pd(a.pd).unwrap_err();
    assert_eq!(place(&sim, Class::Busy), here(line!() - 1));

    b.recv(qp_b, 2, 0, 64);
    a.send(qp_a, 2, 0, 64);
    settle(&sim);
    sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
    assert_eq!(place(&sim, Class::LostWakeup), here(line!() - 1));

    let list = [a.mem.sge(0, 8)];
    let wr = SendWr::rdma_write(3, &list, Remote { addr: 1, rkey: 1 });
    sim.post_send(qp_a, &[wr]).unwrap();
    settle(&sim);
    assert_eq!(place(&sim, Class::RemoteAccess), here(line!() - 2));

    let mut bytes = [0; 8];
    // SAFETY: the memory outlives the call, which is refused.
    let refused = unsafe { sim.reg_mr(a.pd, bytes.as_mut_ptr(), 8, Access::REMOTE_WRITE) };
    refused.unwrap_err();
    assert_eq!(place(&sim, Class::Rights), here(line!() - 2));
}

/// TMR-01: no retry and no failure will end the wait.
#[test]
fn a_send_that_is_never_given_up_is_named_with_its_timeout() {
    for (timeout, is_named) in [(0, true), (14, false)] {
        let sim = Sim::new(SimConfig::new());
        let (a, b) = ends(&sim);
        let params = RcParams {
            timeout,
            ..RcParams::default()
        };
        let (qp_a, qp_b) = pair((&a, &b), QpType::Rc, 4, &params);
        sim.destroy_qp(qp_b, Wait::Poll).unwrap();
        a.send(qp_a, 2, 0, 64);
        let polls = [BlockedThread::polls(a.cq, 20, None)];
        let found = BlockedThread::diagnose(&sim, Vec::new(), Some(&polls)).to_string();
        assert_eq!(
            found.contains("the timeout of qp 0x2 is 0"),
            is_named,
            "{found}"
        );
    }
}

/// UD-08: who has lost a datagram learns which one it was, also if the send has completed.
#[test]
fn a_datagram_that_is_dropped_is_named_with_its_post() {
    let sim = Sim::new(SimConfig::new());
    let (a, b) = ends(&sim);
    let (from, to) = (a.qp(QpType::Ud, 4), b.qp(QpType::Ud, 4));
    connect::ud_to_rts(&sim, from, 1, QKEY).unwrap();
    connect::ud_to_rts(&sim, to, 1, QKEY).unwrap();
    let gid = sim.query_gid(b.context, 1, 0).unwrap();
    let ah = sim.create_ah(a.pd, &AhAttr::global(1, 0, gid)).unwrap();
    let (list, qp_num) = ([a.mem.sge(0, 8)], sim.qp_num(to).unwrap());
    let wr = SendWr::send(1, &list).to(ah, qp_num, QKEY);
    sim.post_send(from, &[wr]).unwrap();
    let here = format!("{}:{}", file!(), line!() - 1);
    settle(&sim);
    assert_eq!(a.drain().len(), 1);
    assert_eq!(place(&sim, Class::LateReceive), here);
}

/// Owning objects have places too, although their verbs are behind `dyn Verbs`.
#[test]
fn findings_name_lines_of_a_program_with_owning_objects() {
    let sim = std::sync::Arc::new(Sim::new(SimConfig::new()));
    let context = verbs_api::owned::Context::open(sim.clone(), "sim0").unwrap();
    let cq = context.cq(4).create().unwrap();
    cq.req_notify(Arm::NEXT).unwrap();
    let line = line!() - 1;
    let place = place(&sim, Class::ArmedWithoutChannel);
    assert_eq!(place, format!("{}:{line}", file!()));
}

#[test]
fn each_class_breaks_a_rule_and_has_a_name_of_its_own() {
    for class in Class::ALL {
        let rule = class.rule();
        assert!(rules().iter().any(|of| of.id == rule), "{class}: {rule}");
        assert_eq!(class.name().to_lowercase().parse(), Ok(*class));
    }
    let certain = Class::ALL
        .iter()
        .filter(|class| class.certainty() == Certainty::Certain);
    assert!(certain.count() >= 26);
    assert!("VS-ARM-00".parse::<Class>().is_err());
}

/// CQ-POLL-10, CHAN-30: what would end a wait is work that completes.
#[test]
fn a_program_that_is_stopped_is_told_what_its_threads_wait_for() {
    let sim = Sim::new(SimConfig::new());
    let (a, b, qp_a, qp_b) = connected(&sim);
    let said = |stuck: BlockedThread| {
        let of_waits = [Class::EndlessWait, Class::BusyPoll, Class::NotArmed];
        let mut mistakes = BlockedThread::diagnose(&sim, Vec::new(), Some(&[stuck]))
            .mistakes
            .into_iter();
        let found = mistakes.find(|found| of_waits.contains(&found.class()));
        found.map(|found| found.to_string()).unwrap_or_default()
    };
    let polls = |cq| said(BlockedThread::polls(cq, 20, None));
    assert!(polls(a.cq).ends_with("no work is outstanding that would complete in it"));
    a.send(qp_a, 1, 0, 64);
    assert!(
        polls(a.cq).ends_with("1 send is outstanding"),
        "{}",
        polls(a.cq)
    );
    b.recv(qp_b, 1, 0, 64);
    settle(&sim);
    b.recv(qp_b, 2, 0, 64);
    b.recv(qp_b, 3, 0, 64);
    assert!(polls(b.cq).starts_with("sim1: VS-WAIT-02: hint: cq#0 was polled 20 times"));
    assert!(polls(b.cq).ends_with("2 receives are outstanding"));

    let sleeps = |or| said(BlockedThread::asleep("poll", b.channel, or));
    assert!(sleeps(None).contains(
        "VS-ARM-03: a thread waits in poll for an event on channel#0: cq#0 is not armed"
    ));
    assert!(sleeps(Some("until its time is over")).contains(
        "VS-ARM-03: hint: a thread waits in poll for an event on channel#0, or until its time is over: cq#0"
    ));
    b.drain();
    sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
    let place = format!("({}:{})", file!(), line!() - 1);
    assert!(sleeps(None).contains("since it was armed, and 2 receives are outstanding"));
    assert!(sleeps(None).ends_with(&place));

    sim.destroy_qp(qp_b, Wait::Poll).unwrap();
    sim.destroy_cq(b.cq, Wait::Poll).unwrap();
    assert_eq!(polls(b.cq), "", "it is destroyed");
    let nowhere = verbs_api::Context::from_parts(u32::MAX, 0);
    assert_eq!(polls(verbs_api::Cq::from_parts(nowhere, 0, 0)), "");
}

/// Who is stopped between arming and polling may have been about to poll.
#[test]
fn what_a_stopped_program_had_not_done_yet_is_a_hint() {
    let sim = Sim::new(SimConfig::new());
    let (a, b, qp_a, qp_b) = connected(&sim);
    b.recv(qp_b, 2, 0, 64);
    a.send(qp_a, 2, 0, 64);
    settle(&sim);
    sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
    let level = |diagnosis: verbs_sim::Diagnosis| {
        let mut mistakes = diagnosis.mistakes.into_iter();
        let found = mistakes.find(|found| found.class() == Class::LostWakeup);
        found.unwrap().certainty
    };
    assert_eq!(level(sim.diagnose()), Certainty::Certain);
    assert_eq!(
        level(BlockedThread::diagnose(&sim, Vec::new(), Some(&[]))),
        Certainty::Hint
    );
    let mistakes = BlockedThread::diagnose(
        &sim,
        Vec::new(),
        Some(&[BlockedThread::asleep("poll", b.channel, None)]),
    )
    .mistakes;
    let waits = mistakes
        .iter()
        .find(|found| matches!(found.problem, Problem::Waits(_)));
    assert_eq!(waits.unwrap().certainty, Certainty::Certain, "it sleeps");
}

/// Only of a program that is stopped: threads that wait for events of rdma_cm to the end of others
/// are right.
#[test]
fn a_wait_for_an_event_of_rdma_cm_says_who_has_to_do_something() {
    let sim = Sim::new(SimConfig::new());
    let cm = sim.cm().unwrap();
    let [channel, servers] = [(); 2].map(|()| cm.create_event_channel().unwrap());
    let said = |channel| {
        let polls = [BlockedThread::asleep_cm("poll", channel, None)];
        let by_poll = BlockedThread::diagnose(&sim, Vec::new(), Some(&polls))
            .mistakes
            .pop();
        let by_poll = by_poll.map(|found| found.to_string()).unwrap_or_default();
        let _sleeping = WaitGuard::on_cm(&sim, "rdma_get_cm_event", channel);
        assert!(sim.diagnose().mistakes.is_empty());
        let found = BlockedThread::diagnose(&sim, Vec::new(), Some(&[]))
            .mistakes
            .pop();
        let found = found.map(|found| found.to_string()).unwrap_or_default();
        let (_, why) = found.split_once(" s now: ").unwrap_or_default();
        let (why, _) = why.rsplit_once(" (").unwrap_or((why, ""));
        assert!(by_poll.ends_with(why) && by_poll.contains("poll") != why.is_empty());
        why.to_owned()
    };
    let next = |channel| {
        let event = cm.get_cm_event(channel, Wait::Forever).unwrap();
        cm.ack_cm_event(&event).unwrap();
        event
    };
    assert_eq!(said(channel), "no id has this channel");
    let listener = cm.create_id(servers, 0, PortSpace::Tcp).unwrap();
    let at = "127.0.0.1:7471".parse().unwrap();
    cm.bind_addr(listener, at).unwrap();
    cm.listen(listener, 4).unwrap();
    assert_eq!(said(servers), "", "it only listens");

    let ids = [(); 2].map(|()| {
        let id = cm.create_id(channel, 0, PortSpace::Tcp).unwrap();
        let limit = Duration::from_secs(2);
        cm.resolve_addr(id, None, at, limit).unwrap();
        assert_eq!(said(channel), "", "an event is there");
        next(channel);
        cm.resolve_route(id, limit).unwrap();
        next(channel);
        id
    });
    let idle = "cm id#1 has a resolved route, and no connection, and 1 more id likewise";
    assert_eq!(said(channel), idle);
    let param = ConnParam::default();
    let [first, _] = ids;
    cm.connect(first, &param).unwrap();
    let request = "cm id#1: the other side has not answered the request for a connection";
    assert_eq!(said(channel), request);
    let server = next(servers).id;
    let unanswered = "cm id#3: the request was read, and is neither accepted nor rejected";
    assert_eq!(said(servers), unanswered);
    cm.reject(server, &[]).unwrap();
    assert_eq!(next(channel).event, CmEventType::Rejected);
    assert_eq!(said(servers), "cm id#3: its connection is over");
}

#[test]
#[should_panic(expected = "VS-OBJ-01: ibv_dealloc_pd: EBUSY")]
fn a_strict_simulation_lets_no_mistake_pass() {
    let sim = Sim::new(SimConfig::new()).strict();
    let (a, _) = ends(&sim);
    sim.dealloc_pd(a.pd).unwrap_err();
}

/// What may be right, and what is left, is for `diagnose`.
#[test]
fn a_strict_simulation_lets_hints_pass() {
    let sim = Sim::new(SimConfig::new()).strict();
    let (a, _) = ends(&sim);
    sim.create_cq(a.context, &CqInit::new(0)).unwrap_err();
    assert_eq!(sim.diagnose().mistakes.len(), 1);
}
