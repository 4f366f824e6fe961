//! The search itself: what it says of models that hold, fail, hang, panic, or are too large.

use std::sync::Arc;

use verbs_api::sync::Mutex;
use verbs_api::{Arm, Cq, CqInit, Error, Verbs, Wait, Wc};
use verbs_models::library::models;
use verbs_models::{CHECKER, Checker, Coverage, Harness, ModelError, Outcome, Report, Search};
use verbs_sim::SimConfig;

fn model(id: &str) -> fn(&Harness) -> Outcome {
    let found = models().find(|model| model.id == id);
    found.expect("a model of the library").body
}

fn search(id: &str, search: Search) -> Report {
    search.run(model(id))
}

/// Two threads and three completions are few interleavings: each verb is one step, and nothing else
/// is.
#[test]
fn three_completions_are_searched_completely() {
    let report = search("re_poll.after_arming", Search::new());
    assert!(report.holds(), "{report}");
    if CHECKER == Checker::Loom {
        assert_eq!(report.coverage, Coverage::All);
        assert!(report.executions < 2_000, "{}", report.executions);
    }
}

#[test]
#[cfg_attr(not(loom), ignore = "for loom: ./check models")]
fn search_that_is_cut_short_does_not_pass() {
    let all = search("re_poll.after_arming", Search::new()).executions;
    let exact = search("re_poll.after_arming", Search::new().limit(all));
    assert!(exact.holds(), "{exact}");
    let cut = search("re_poll.after_arming", Search::new().limit(all - 1));
    assert_eq!(cut.coverage, Coverage::Truncated);
    assert!(cut.counterexample.is_none() && !cut.holds());
    let message = std::panic::catch_unwind(|| cut.expect_holds()).unwrap_err();
    let message = message.downcast::<String>().expect("a message");
    assert!(message.contains("proves nothing"), "{message}");
}

/// Why the guide says to use a bound of 2 or more.
#[test]
#[cfg_attr(not(loom), ignore = "for loom: ./check models")]
fn bound_below_two_preemptions_misses_a_lost_wakeup() {
    let misses = |id, bound| search(id, Search::new().preemptions(bound)).holds();
    let id = "handler.arms_only_if_it_found_some";
    assert!(misses(id, 1));
    assert!(!misses(id, 2));
}

#[test]
fn panic_of_a_thread_is_a_counterexample() {
    let report = Search::new().run(|harness| {
        harness.spawn("thread", |harness| {
            harness.note("about to fail");
            assert_eq!(1 + 1, 3, "sums");
            Ok::<_, Error>(())
        });
        Ok(())
    });
    let found = report.counterexample.expect("it fails");
    assert_eq!(found.failure().0, "thread");
    let shown = found.to_string();
    assert!(
        shown.contains("sums") && shown.contains("about to fail"),
        "{shown}"
    );
}

/// The objects that unwinding drops use the device: that must not end the process.
#[test]
fn panic_with_owning_objects_is_a_counterexample() {
    use verbs_api::owned::Context;
    let report = Search::new().run(|harness| {
        let context = Context::open(harness.sim().clone(), "sim0")?;
        harness.spawn("thread", move |_| {
            let channel = context.create_comp_channel()?;
            let cq = context.cq(4).channel(&channel).create()?;
            let held = cq.poll()?;
            assert_eq!(held.len(), 1, "a completion");
            Ok::<_, Error>(())
        });
        let other = harness.spawn("other", |harness| harness.sim().alloc_pd(harness.context()));
        other.join()?;
        Ok(())
    });
    let found = report.counterexample.expect("it fails");
    assert!(found.to_string().contains("a completion"), "{found}");
}

/// Locks of the program, which the simulator knows nothing of.
#[test]
#[cfg_attr(not(any(loom, shuttle)), ignore = "it would hang: ./check models")]
fn deadlock_of_a_programs_locks_is_a_counterexample() {
    let report = Search::new().run(|harness| {
        let locks = Arc::new((Mutex::new(()), Mutex::new(())));
        for name in ["a", "b"] {
            let locks = locks.clone();
            harness.spawn(name, move |_| {
                let (first, second) = match name {
                    "a" => (&locks.0, &locks.1),
                    _ => (&locks.1, &locks.0),
                };
                let _first = first.lock();
                let _second = second.lock();
                Ok::<_, Error>(())
            });
        }
        Ok(())
    });
    let found = report.counterexample.expect("it fails");
    assert!(found.to_string().contains("deadlock"), "{found}");
}

/// An early end of a thread that takes no part any more counts for those that wait.
#[test]
fn wait_that_nothing_can_end_is_told_so_whatever_ends_first() {
    let report = Search::new().run(|harness| {
        let cq = harness.cq(4)?;
        harness.sim().req_notify_cq(cq, Arm::NEXT)?;
        let wait = |harness: &Harness| harness.sim().get_cq_event(harness.channel(), Wait::Forever);
        let waiting = [harness.spawn("a", wait), harness.spawn("b", wait)];
        harness.spawn("short", |harness| {
            harness.sim().query_device(harness.context())
        });
        for thread in waiting {
            thread.join()?;
        }
        Ok(())
    });
    let found = report.counterexample.expect("it fails");
    assert!(found.to_string().contains("deadlock"), "{found}");
}

/// The guide shows this counterexample.
#[test]
#[cfg_attr(not(loom), ignore = "for loom: ./check models")]
fn counterexample_is_the_one_in_the_guide() {
    let report = Search::new().run(|harness| {
        let cq = harness.cq(4)?;
        let link = harness.link(cq, 2)?;
        harness.spawn("loop", move |harness| receive(harness, cq, 2));
        harness.spawn("peer", move |harness| {
            link.send(harness, 1)?;
            link.send(harness, 2)
        });
        Ok(())
    });
    let guide = include_str!("../../docs/model-checking.md");
    let found = report.counterexample.expect("it fails").to_string();
    for line in found.lines().map(str::trim_end) {
        assert!(
            guide.contains(line),
            "the guide lacks {line:?} of:\n{found}"
        );
    }
}

/// The wrong loop of the guide.
fn receive(harness: &Harness, cq: Cq, mut left: usize) -> Result<(), ModelError> {
    let verbs = harness.sim();
    while left > 0 {
        let polled = verbs.poll_cq(cq, &mut [Wc::default(); 4])?;
        left -= polled;
        if polled == 0 {
            verbs.req_notify_cq(cq, Arm::NEXT)?;
            let event = verbs.get_cq_event(harness.channel(), Wait::Forever)?;
            verbs.ack_cq_events(event.cq, 1)?;
        }
    }
    Ok(())
}

/// What a thread does on its way out is not what it failed by: its objects are dropped, in the
/// order of their locals.
#[test]
fn fatal_step_is_the_wait_and_not_what_the_thread_does_when_it_is_woken() {
    use verbs_api::owned::Context;
    let report = Search::new().run(|harness| {
        harness.spawn("thread", |harness| -> Result<(), Error> {
            let context = Context::open(harness.sim().clone(), "sim0")?;
            let channel = context.create_comp_channel()?;
            let _cq = context.cq(4).channel(&channel).create()?;
            let sim = harness.sim();
            sim.get_cq_event(channel.handle(), Wait::Forever)?;
            Ok(())
        });
        Ok(())
    });
    let found = report.counterexample.expect("it fails").to_string();
    if CHECKER != Checker::None {
        let fatal: Vec<&str> = found
            .lines()
            .filter(|line| line.starts_with(">>"))
            .collect();
        assert_eq!(fatal.len(), 1, "{found}");
        assert!(
            fatal[0].contains("ibv_get_cq_event(channel#1, Forever)"),
            "{found}"
        );
        assert!(found.contains("ibv_close_device"), "{found}");
        assert_eq!(found.matches("failed: ").count(), 0, "{found}");
    }
}

/// Each device numbers its objects from 0.
#[test]
fn objects_of_two_devices_have_two_names() {
    let search = Search::new().config(SimConfig::new().nodes(2));
    let report = search.run(|harness| {
        let sim = harness.sim();
        let other = sim.open_device("sim1")?;
        let channel = sim.create_comp_channel(other)?;
        let near = harness.cq(4)?;
        let far = sim.create_cq(other, &CqInit::new(4).channel(channel))?;
        harness.spawn("thread", move |harness| -> Result<(), Error> {
            let sim = harness.sim();
            sim.poll_cq(near, &mut [Wc::default(); 4])?;
            sim.req_notify_cq(far, Arm::NEXT)?;
            sim.get_cq_event(channel, Wait::Forever).map(drop)
        });
        Ok(())
    });
    let found = report.counterexample.expect("it fails").to_string();
    if CHECKER != Checker::None {
        for words in [
            "a thread waits on sim1.channel#0",
            "ibv_poll_cq(sim0.cq#0, 4) = 0",
            "ibv_req_notify_cq(sim1.cq#0, next)",
            "sim1.cq#0 armed next",
            ">> ibv_get_cq_event(sim1.channel#0, Forever)",
        ] {
            assert!(found.contains(words), "no {words:?} in:\n{found}");
        }
    }
}
