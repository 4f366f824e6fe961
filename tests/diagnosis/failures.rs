//! Failed work that is not a mistake of the program: the test caused it, or the program handles it.

use std::time::Duration;

use verbs_api::lab::{Fault, Lab, PacketFilter};
use verbs_api::{
    Access, Gid, OdpCaps, OdpOps, Qp, QpCap, QpInit, QpModify, QpState, QpType, RcParams, RecvWr,
    Remote, SendWr, SrqInit, Verbs, Wait, WcStatus, connect,
};
use verbs_sim::{Certainty, Class, Mode, Problem, Sim, SimConfig, Watch};

use super::common::{End, pair, settle};
use super::{connected, ends};

/// Work that failed: its class, its level, and the finding in words.
fn failures(sim: &Sim) -> Vec<(Class, Certainty, String)> {
    let mistakes = sim.diagnose().mistakes.into_iter();
    let failed = mistakes.filter(|found| matches!(found.problem, Problem::Failed(_)));
    failed
        .map(|found| (found.class(), found.certainty, found.to_string()))
        .collect()
}

/// A send of the first end fails, since `cause` did something to a connection that works.
fn send_fails(sim: &Sim, cause: fn(&Sim, [&End<'_>; 2])) {
    let (a, b, qp_a, qp_b) = connected(sim);
    b.recv(qp_b, 2, 0, 64);
    cause(sim, [&a, &b]);
    a.send(qp_a, 2, 0, 64);
    settle(sim);
    a.drain();
}

/// What the test does to a connection, and the words for it.
type LabCause = (fn(&Sim, [&End<'_>; 2]), &'static str);

const LAB: &[LabCause] = &[
    (
        |sim, _| {
            _ = sim
                .inject(Fault::drop(PacketFilter::EVERY.from(0)))
                .unwrap()
        },
        "a fault rule lost the request or its answer",
    ),
    (
        |sim, _| {
            _ = sim
                .inject(Fault::drop(PacketFilter::EVERY.from(1)))
                .unwrap()
        },
        "a fault rule lost the request or its answer",
    ),
    (
        |sim, _| {
            _ = sim
                .inject(Fault::corrupt(PacketFilter::EVERY.from(0)))
                .unwrap()
        },
        "a fault rule damaged the request or its answer",
    ),
    (
        |sim, _| {
            let (packets, by) = (PacketFilter::EVERY.from(1), Duration::from_secs(100));
            sim.inject(Fault::delay(packets, by)).unwrap();
        },
        "a fault rule held back the request or its answer",
    ),
    (
        |sim, _| {
            let down = Fault::link_down(0).peer(1);
            sim.inject(down).unwrap();
        },
        "a fault rule cut the link to its peer",
    ),
    (
        |sim, _| {
            let down = Fault::port_down(1, 1);
            sim.inject(down).unwrap();
        },
        "a port on the way to its peer was down",
    ),
    (
        |sim, [a, _]| sim.set_port(a.context, 1, false).unwrap(),
        "a port on the way to its peer was down",
    ),
    (
        |sim, [_, b]| sim.set_port(b.context, 1, false).unwrap(),
        "a port on the way to its peer was down",
    ),
    (
        |sim, [_, b]| sim.kill_device(b.context).unwrap(),
        "the device of its peer was dead",
    ),
    (
        |sim, [_, b]| sim.set_gid(b.context, 1, 0, Gid::default()).unwrap(),
        "a test control changed a GID or a P_Key",
    ),
    (
        |sim, [a, _]| sim.set_gid(a.context, 1, 0, Gid::default()).unwrap(),
        "a test control changed a GID or a P_Key",
    ),
    (
        |sim, [a, _]| sim.set_pkey(a.context, 1, 0, 0x8001).unwrap(),
        "a test control changed a GID or a P_Key",
    ),
    (
        |sim, [_, b]| sim.set_pkey(b.context, 1, 0, 0x8001).unwrap(),
        "a test control changed a GID or a P_Key",
    ),
    (
        |sim, _| {
            let fault = Fault::complete(WcStatus::LocProtErr).node(1);
            sim.inject(fault).unwrap();
        },
        "a fault rule wants it",
    ),
];

/// WC-30: the class says that nothing has to be done, at each end and also when it happens.
#[test]
fn what_the_laboratory_lets_fail_is_never_a_mistake_that_is_certain() {
    for (number, (cause, words)) in LAB.iter().enumerate() {
        for mode in [Mode::Stepped, Mode::Inline] {
            let sim = Sim::new(SimConfig::new().mode(mode)).strict();
            Watch::on(&sim, move |found| {
                assert_eq!(found.certainty, Certainty::Hint, "{number}: {found}");
            });
            send_fails(&sim, *cause);
            let failed = failures(&sim);
            assert!(!failed.is_empty(), "{number}, {mode:?}");
            for (class, _, text) in failed {
                assert_eq!(class, Class::Injected, "{number}, {mode:?}: {text}");
                assert!(text.contains(words), "{number}, {mode:?}: {text}");
            }
        }
    }
}

/// SRQ-17: the sender learns only that something is wrong with the receiver.
#[test]
fn an_srq_that_the_laboratory_lets_fail_is_no_mistake_of_the_sender() {
    let sim = Sim::new(SimConfig::new()).strict();
    let (a, b) = ends(&sim);
    let srq = sim.create_srq(b.pd, &SrqInit::new(4)).unwrap();
    let init = QpInit::new(QpType::Rc, b.cq, b.cq)
        .srq(srq)
        .cap(QpCap::default());
    let (qp_a, qp_b) = (a.qp(QpType::Rc, 4), sim.create_qp(b.pd, &init).unwrap());
    connect::by_attributes(&sim, qp_a, qp_b, &RcParams::default()).unwrap();
    let list = [b.mem.sge(0, 64)];
    sim.post_srq_recv(srq, &[RecvWr::new(1, &list)]).unwrap();
    sim.fail_srq(srq).unwrap();
    a.send(qp_a, 1, 0, 64);
    settle(&sim);
    a.drain();
    let [(class, _, text)] = &failures(&sim)[..] else {
        panic!("{}", sim.diagnose());
    };
    assert_eq!(*class, Class::Injected, "{text}");
    assert!(text.contains("let the SRQ of the receiver fail"), "{text}");
}

/// A program that learns of a failure stops using its queue pair, or destroys it; the other end
/// then gets no answer.
#[test]
fn what_comes_of_a_failure_at_the_other_end_is_the_laboratorys_too() {
    for destroys in [false, true] {
        let sim = Sim::new(SimConfig::new()).strict();
        let (a, b, qp_a, qp_b) = connected(&sim);
        let fault = sim
            .inject(Fault::drop(PacketFilter::EVERY.from(0)))
            .unwrap();
        b.recv(qp_b, 2, 0, 64);
        a.send(qp_a, 2, 0, 64);
        settle(&sim);
        a.drain();
        sim.remove(fault).unwrap();
        if destroys {
            sim.destroy_qp(qp_a, Wait::Poll).unwrap();
        }
        b.send(qp_b, 3, 0, 64);
        settle(&sim);
        b.drain();
        let failed = failures(&sim);
        assert_eq!(failed.len(), 2, "{}", sim.diagnose());
        assert!(failed.iter().all(|found| found.0 == Class::Injected));
        assert!(
            failed[1].2.contains("its peer had stopped before"),
            "{}",
            failed[1].2
        );
    }
}

/// ODP-05: the region is named, whatever its rights are.
#[test]
fn operation_without_paging_names_the_region() {
    let mut odp = OdpCaps::EVERY;
    odp.rc.remove(OdpOps::SEND);
    let sim = Sim::new(SimConfig::new().odp(odp));
    let (a, _, qp_a, _) = connected(&sim);
    let mr = sim.alloc_mr(a.pd, 64, Access::ON_DEMAND).unwrap();
    let list = [sim.query_mr(mr).unwrap().sge(0, 8)];
    a.post(qp_a, SendWr::send(1, &list));
    settle(&sim);
    a.drain();
    let [(_, _, text)] = &failures(&sim)[..] else {
        panic!("{}", sim.diagnose());
    };
    let cause = "the device cannot use the on-demand region mr#1 in this operation (odp_caps)";
    assert!(text.contains(cause), "{text}");
}

/// A rule that fires on one try is not why the others fail.
#[test]
fn a_mistake_under_a_fault_rule_is_still_one() {
    let sim = Sim::new(SimConfig::new());
    let (a, _, qp_a, qp_b) = connected(&sim);
    sim.destroy_qp(qp_b, Wait::Poll).unwrap();
    sim.inject(Fault::drop(PacketFilter::EVERY.from(0)).nth(3))
        .unwrap();
    a.send(qp_a, 2, 0, 64);
    settle(&sim);
    a.drain();
    let [(class, certainty, text)] = &failures(&sim)[..] else {
        panic!("{}", sim.diagnose());
    };
    assert_eq!(
        (*class, *certainty),
        (Class::NoAnswer, Certainty::Certain),
        "{text}"
    );
    assert!(text.contains("the qp was destroyed"), "{text}");
}

/// How the send of a program fails.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fails {
    NoAnswer,
    NotReceived,
    WrongKey,
}

/// What the program does then.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// It polls, destroys the queue pair, connects another, and sends by that.
    Reconnects,
    /// Resets the queue pair.
    Resets,
    /// It polls, destroys the queue pair, and sends by one that it has had before.
    UsesAnother,
    /// It does all but look at the completion.
    DoesNotPoll,
    /// It does all but destroy or reset the queue pair.
    Keeps,
    /// It stops when it has destroyed the queue pair.
    Ends,
    /// What it had posted on another queue pair before succeeds, and nothing more.
    HadPosted,
}

fn send_and_receive((a, qp_a): (&End<'_>, Qp), (b, qp_b): (&End<'_>, Qp)) {
    b.recv(qp_b, 8, 0, 64);
    a.send(qp_a, 8, 0, 64);
    settle(a.verbs);
    assert_eq!(a.drain().last().unwrap().status, WcStatus::Success);
    b.drain();
}

/// A program whose send fails, and what it does then: whether that is said to be a mistake for
/// certain.
fn certainty(fails: Fails, then: Then) -> Certainty {
    let sim = Sim::new(SimConfig::new());
    let (a, b) = ends(&sim);
    let params = RcParams {
        rnr_retry: 1,
        ..RcParams::default()
    };
    let (qp_a, qp_b) = pair((&a, &b), QpType::Rc, 1, &params);
    let (other_a, other_b) = pair((&a, &b), QpType::Rc, 1, &params);
    if fails == Fails::NoAnswer {
        sim.destroy_qp(qp_b, Wait::Poll).unwrap();
    }
    match fails {
        Fails::WrongKey => {
            let list = [a.mem.sge(0, 8)];
            a.post(
                qp_a,
                SendWr::rdma_write(2, &list, Remote { addr: 1, rkey: 1 }),
            );
        }
        _ => a.send(qp_a, 2, 0, 64),
    }
    if then == Then::HadPosted {
        b.recv(other_b, 3, 0, 64);
        a.send(other_a, 3, 0, 64);
    }
    settle(&sim);
    if then != Then::DoesNotPoll {
        let polled = if then == Then::HadPosted { 2 } else { 1 };
        // The failure is polled; a success that came with it lies behind.
        let mut wc = vec![verbs_api::Wc::default(); polled];
        while !wc.iter().any(|wc| wc.status != WcStatus::Success) {
            sim.poll_cq(a.cq, &mut wc[..1]).unwrap();
        }
    }
    match then {
        Then::Resets => {
            let reset = QpModify::to(QpState::Reset);
            sim.modify_qp(qp_a, &reset.attr, reset.mask).unwrap();
            let qp_b = b.qp(QpType::Rc, 1);
            connect::by_attributes(&sim, qp_a, qp_b, &params).unwrap();
            send_and_receive((&a, qp_a), (&b, qp_b));
        }
        Then::UsesAnother => {
            sim.destroy_qp(qp_a, Wait::Poll).unwrap();
            for _ in 0..3 {
                send_and_receive((&a, other_a), (&b, other_b));
            }
        }
        Then::Ends => sim.destroy_qp(qp_a, Wait::Poll).unwrap(),
        Then::HadPosted => {
            sim.destroy_qp(qp_a, Wait::Poll).unwrap();
            a.drain();
        }
        Then::Reconnects | Then::DoesNotPoll | Then::Keeps => {
            if then != Then::Keeps {
                sim.destroy_qp(qp_a, Wait::Poll).unwrap();
            }
            let (qp_a, qp_b) = pair((&a, &b), QpType::Rc, 1, &params);
            send_and_receive((&a, qp_a), (&b, qp_b));
        }
    }
    let failed = failures(&sim);
    let [(_, certainty, text)] = &failed[..] else {
        panic!("{fails:?}, {then:?}: {}", sim.diagnose());
    };
    let is_handled = text.contains("; the program went on");
    let handles = matches!(then, Then::Reconnects | Then::Resets | Then::UsesAnother);
    let is_hint = *certainty == Certainty::Hint;
    assert_eq!(
        is_handled,
        handles && is_hint,
        "{fails:?}, {then:?}: {text}"
    );
    *certainty
}

/// WC-30, RNR-03: what the other side did, the program cannot prevent; a wrong key it can.
#[test]
fn a_failure_is_handled_if_it_is_polled_and_later_work_succeeds() {
    use Then::*;
    for fails in [Fails::NoAnswer, Fails::NotReceived] {
        for then in [Reconnects, Resets, UsesAnother] {
            assert_eq!(
                certainty(fails, then),
                Certainty::Hint,
                "{fails:?}, {then:?}"
            );
        }
        for then in [DoesNotPoll, Keeps, Ends, HadPosted] {
            assert_eq!(
                certainty(fails, then),
                Certainty::Certain,
                "{fails:?}, {then:?}"
            );
        }
    }
    assert_eq!(certainty(Fails::WrongKey, Reconnects), Certainty::Certain);
}

/// It is not known yet what the program will do.
#[test]
fn a_failure_is_told_as_certain_when_it_happens() {
    let sim = Sim::new(SimConfig::new());
    let reported = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let note = reported.clone();
    Watch::on(&sim, move |found| {
        note.lock().unwrap().push(found.certainty)
    });
    let (a, _, qp_a, qp_b) = connected(&sim);
    sim.destroy_qp(qp_b, Wait::Poll).unwrap();
    a.send(qp_a, 2, 0, 64);
    settle(&sim);
    a.drain();
    assert_eq!(*reported.lock().unwrap(), [Certainty::Certain]);
}

/// The list is as that of `verbsim exec --suppressions`.
#[test]
fn what_is_allowed_passes_a_strict_simulation() {
    let refuse = |sim: &Sim| {
        let (a, _) = ends(sim);
        sim.dealloc_pd(a.pd).unwrap_err();
    };
    let panics = |sim: Sim| {
        refuse(&sim);
        assert_eq!(sim.diagnose().mistakes.len(), 1, "the diagnosis has it");
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(sim))).is_err()
    };
    let strict = || Sim::new(SimConfig::new()).strict();
    assert!(panics(strict()));
    assert!(!panics(strict().allow("VS-OBJ-01")));
    assert!(!panics(
        strict().allow("vs-obj-01:tests/diagnosis/failures.rs:*")
    ));
    assert!(panics(strict().allow("VS-OBJ-01:src/client.rs:*")));
    assert!(panics(strict().allow("VS-OBJ-02").allow("VS-KEY-01")));
}

#[test]
#[should_panic(expected = "allow(\"VS-OBJ-99:x.rs:*\"): no class of mistakes is called VS-OBJ-99")]
fn an_unknown_class_is_not_allowed() {
    let _ = Sim::new(SimConfig::new())
        .strict()
        .allow("VS-OBJ-99:x.rs:*");
}

#[test]
#[should_panic(expected = "the simulation is not strict")]
fn only_a_strict_simulation_allows() {
    let _ = Sim::new(SimConfig::new()).allow("VS-OBJ-01");
}
