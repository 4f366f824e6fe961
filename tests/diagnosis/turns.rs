//! What only a layer over the verbs knows: batches that are not posted, and threads that wait for
//! their turn.

use std::time::Duration;

use verbs_api::lab::Lab;
use verbs_api::site::Site;
use verbs_api::{Handle, Verbs, Wait};
use verbs_sim::{BlockedThread, Certainty, Class, Misuse, Sim, SimConfig, Unposted, WaitGuard};

use super::connected;

fn said(sim: &Sim, unposted: Vec<Unposted>, stopped: Option<&[BlockedThread]>) -> Vec<String> {
    let mistakes = BlockedThread::diagnose(sim, unposted, stopped).mistakes;
    mistakes.iter().map(ToString::to_string).collect()
}

/// SQ-26: nothing is executed before the batch is completed.
#[test]
fn a_batch_that_is_not_completed_is_told_with_its_requests() {
    let sim = Sim::new(SimConfig::new());
    let (a, b, qp, _) = connected(&sim);
    let batch = Unposted {
        qp,
        qp_num: 0x11,
        requests: 2,
        begun_at: None,
        is_certain: true,
    };
    let text = "a batch of 2 work requests on qp 0x11 was begun, and neither completed nor aborted";
    let found = said(&sim, vec![batch.clone()], None);
    assert_eq!(found, [format!("sim0: VS-SQ-05: {text}")]);

    let polls = |cq| [BlockedThread::polls(cq, 20, None)];
    let may_come = Unposted {
        is_certain: false,
        ..batch.clone()
    };
    let found = said(&sim, vec![may_come.clone()], Some(&polls(a.cq)));
    assert_eq!(found[0], format!("sim0: VS-SQ-05: hint: {text}"));
    let requests = "; 2 work requests are in a batch that is not completed (ibv_wr_complete)";
    assert!(found[1].ends_with(requests), "{}", found[1]);
    let found = said(&sim, vec![may_come], Some(&polls(b.cq)));
    assert!(
        !found[1].ends_with(requests),
        "its sends complete elsewhere"
    );
    assert!(said(&sim, Vec::new(), None).is_empty());

    sim.destroy_qp(qp, Wait::Poll).unwrap();
    batch.note(&sim);
    let [found] = &sim.diagnose().mistakes[..] else {
        panic!("one mistake");
    };
    assert_eq!((found.node, found.class()), (0, Class::Batched));
    assert_eq!(found.certainty, Certainty::Certain);
}

/// Threads take turns: only a wait that is too long for that is reported.
#[test]
fn a_wait_for_a_turn_is_told_when_it_is_long() {
    let sim = Sim::new(SimConfig::new());
    let (a, _, qp, _) = connected(&sim);
    let place = Site::here();
    let is_told = |sleeping: WaitGuard<'_>, what: &str| {
        assert!(
            sim.diagnose().mistakes.is_empty(),
            "it may be its turn soon"
        );
        sim.advance(Duration::from_millis(100)).unwrap();
        let found = said(&sim, Vec::new(), None);
        assert!(found[0].contains(what), "{}", found[0]);
        drop(sleeping);
        assert!(sim.diagnose().mistakes.is_empty());
    };
    let batch = WaitGuard::for_batch(&sim, "ibv_wr_start", qp, 0x11, Some(place));
    let text = format!(
        "sim0: VS-WAIT-01: hint: a thread waits in ibv_wr_start for the end of a batch on qp 0x11, for 0.1 s now: another thread has begun it, at {place}"
    );
    is_told(batch, &text);
    let iteration = WaitGuard::for_iteration(&sim, "ibv_start_poll", a.cq);
    let text = "a thread waits in ibv_start_poll for the end of an iteration over cq#0, for 0.1 s now: another thread has begun it";
    is_told(iteration, text);
}

/// A misuse is of the device of its object, and may speak of a place.
#[test]
fn a_misuse_is_told_with_what_came_before() {
    let sim = Sim::new(SimConfig::new());
    let (_, b, _, _) = connected(&sim);
    let place = Site::here();
    let misuse = Misuse {
        context: Some(b.pd.context()),
        class: Class::Batched,
        fact: [""; 2],
        text: "it is out of place".to_owned(),
        place: Some(("begun at", place)),
    };
    misuse.note(&sim);
    let found = sim.diagnose().mistakes[0].to_string();
    let expected = format!("sim1: VS-SQ-05: it is out of place, begun at {place} ");
    assert!(found.starts_with(&expected), "{found}");
}

/// A program that probes with other arguments gets one finding, and another for another errno value
/// at the same place.
#[test]
fn misuses_at_one_place_are_counted_by_their_fact() {
    let sim = Sim::new(SimConfig::new());
    for (symbol, value) in [("EOPNOTSUPP", 1), ("EFAULT", 2), ("EOPNOTSUPP", 3)] {
        let misuse = Misuse {
            context: None,
            class: Class::Refused,
            fact: ["ibv_reg_mr", symbol],
            text: format!("{symbol} of {value}"),
            place: None,
        };
        misuse.note(&sim);
    }
    let found = sim.diagnose().mistakes;
    let found: Vec<_> = found.iter().map(|of| (of.to_string(), of.more)).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].0.contains("EOPNOTSUPP of 1") && found[0].1 == 1,
        "{found:?}"
    );
    assert!(
        found[1].0.contains("EFAULT of 2") && found[1].1 == 0,
        "{found:?}"
    );
}
