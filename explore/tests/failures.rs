//! The report of a failure is a snapshot of the moment of the failure, not of the program's end.

use std::sync::Arc;

use verbs_api::owned::{Context, Cq, RecvWr, SendWr};
use verbs_api::{Arm, CqInit, QpType, RcParams, Verbs, Wait};
use verbs_explore::{Exploration, Found, World};
use verbs_faults::Plan;
use verbs_sim::{Class, SimConfig};

fn explore(test: impl Fn(&World) -> Result<(), String> + Sync) -> Found {
    let exploration = Exploration::new("fails")
        .seeds(3..5)
        .faults(Plan::default());
    *exploration.run(test).unwrap_err()
}

fn said<T, E: ToString>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

/// A CQ with a channel, which are destroyed when it is dropped.
fn cq(world: &World) -> Cq {
    let context = Context::open(world.verbs(), "sim0").unwrap();
    let channel = context.create_comp_channel().unwrap();
    context.cq(4).channel(&channel).create().unwrap()
}

/// Arms nothing, and waits.
fn waits(world: &World) -> Result<(), String> {
    let cq = cq(world);
    let channel = cq.channel().expect("it has one").handle();
    said(world.verbs().get_cq_event(channel, Wait::Forever)).map(drop)
}

/// The last records of the trace, without times and nodes.
fn last(found: &Found, count: usize) -> Vec<String> {
    let last = found.trace.len() - count;
    let records = found.trace[last..].iter();
    records.map(|record| record.event.to_string()).collect()
}

fn shows_the_wait(found: &Found) {
    let mistakes = &found.diagnosis.mistakes;
    let classes: Vec<Class> = mistakes.iter().map(|finding| finding.class()).collect();
    assert_eq!(classes, [Class::NotArmed], "{found}");
    let left = found.diagnosis.leftovers.iter().map(ToString::to_string);
    assert_eq!(
        left.collect::<Vec<_>>(),
        [
            "sim0: VS-OBJ-03: hint: not destroyed: cq#0 (explore/tests/failures.rs:26), \
             channel#0 (explore/tests/failures.rs:25); 1 context not closed"
        ]
    );
    let [call, returned] = &last(found, 2)[..] else {
        panic!("{found}")
    };
    assert_eq!(call, "ibv_get_cq_event(channel#0, Forever)");
    assert!(returned.starts_with("  = "), "{found}");
}

#[test]
fn an_error_shows_what_was_there_before_objects_were_dropped() {
    let found = explore(waits);
    shows_the_wait(&found);
    let text = found.to_string();
    let mistakes = text.find("mistakes before the failure:\n    sim0: VS-ARM-03: ");
    let left = text.find("objects alive at the failure:\n    sim0: VS-OBJ-03: ");
    assert!(mistakes.is_some() && mistakes < left, "{text}");
}

#[test]
fn a_panic_shows_what_was_there_before_it_dropped_objects() {
    let found = explore(|world| {
        let cq = cq(world);
        let channel = cq.channel().expect("it has one").handle();
        let event = world.verbs().get_cq_event(channel, Wait::Forever);
        event.expect("an event");
        Ok(())
    });
    assert!(found.failure.contains("an event"), "{found}");
    shows_the_wait(&found);
}

#[test]
fn the_same_seed_gives_the_same_text() {
    let (one, other) = (explore(waits), explore(waits));
    assert_eq!(one.to_string(), other.to_string());
    let exploration = Exploration::new("fails").faults(Plan::default());
    let replayed = exploration.replay(&one.replay, waits).unwrap().unwrap();
    assert_eq!(one.to_string(), replayed.to_string());
}

#[test]
fn polls_in_vain_are_one_record() {
    let found = explore(|world| {
        let cq = cq(world);
        for _ in 0..57 {
            assert_eq!(cq.poll().unwrap().len(), 0);
        }
        cq.req_notify(Arm::NEXT).unwrap();
        assert_eq!(cq.poll().unwrap().len(), 0);
        Err("nothing came".to_owned())
    });
    let [polls, arms @ ..] = &last(&found, 3)[..] else {
        panic!("{found}")
    };
    assert!(polls.starts_with("ibv_poll_cq(cq#0, "), "{polls}");
    assert!(polls.ends_with(") = 0, 57 times"), "{polls}");
    assert_eq!(arms[0], "ibv_req_notify_cq(cq#0, next)");
}

/// Destroying objects before the program continues is not its end.
#[test]
fn what_the_program_destroys_on_its_way_is_in_the_trace() {
    let found = explore(|world| {
        drop(cq(world));
        let verbs = world.verbs();
        let context = said(verbs.open_device("sim1"))?;
        said(verbs.create_cq(context, &CqInit::new(4)))?;
        Err("the end".to_owned())
    });
    let trace = found.to_string();
    assert!(trace.contains("ibv_destroy_cq(cq#0"), "{trace}");
    let left = found.diagnosis.leftovers;
    assert!(left[0].to_string().starts_with("sim1: "), "{left:?}");
    assert_eq!(left.len(), 1);
}

#[test]
fn a_destroy_that_is_refused_is_a_failure_and_no_end() {
    let found = explore(|world| {
        let verbs: Arc<dyn Verbs> = world.verbs();
        let context = said(verbs.open_device("sim0"))?;
        let channel = said(verbs.create_comp_channel(context))?;
        let cq = said(verbs.create_cq(context, &CqInit::new(4).channel(channel)))?;
        let destroyed = said(verbs.destroy_comp_channel(channel));
        said(verbs.destroy_cq(cq, Wait::Poll))?;
        destroyed
    });
    let mistakes = &found.diagnosis.mistakes;
    assert_eq!(mistakes[0].class(), Class::Busy, "{found}");
    assert_eq!(last(&found, 2)[0], "ibv_destroy_comp_channel(channel#0)");
}

/// A run that is not shown, or that passes, is not looked at.
#[test]
fn no_diagnosis_is_made_of_other_runs() {
    let exploration = Exploration::new("fails");
    let unseen = exploration.trial(3, &Plan::default(), false, waits);
    assert!(unseen.failure.is_some() && unseen.diagnosis.is_empty());
    let passes = |world: &World| {
        drop(cq(world));
        Ok::<(), String>(())
    };
    let passed = exploration.trial(3, &Plan::default(), true, passes);
    assert!(passed.failure.is_none() && passed.diagnosis.is_empty());
    let last = passed.trace.last().unwrap().event.to_string();
    assert_eq!(last, "ibv_close_device(ctx#0)");
}

/// The program goes on and takes everything apart; the device was wrong before that.
#[test]
fn a_broken_invariant_shows_what_was_there_when_it_broke() {
    let lost = "[[rule]]\nkind = \"packet\"\neffect = \"drop\"\nnth = 1\n";
    let exploration = Exploration::new("fails")
        .seeds(0..1)
        .config(SimConfig::new().planted_defect(true))
        .faults(Plan::parse("lost", lost).unwrap());
    let found = exploration.run(|world| {
        let side = |device| {
            let context = Context::open(world.verbs(), device)?;
            let (pd, cq) = (context.alloc_pd()?, context.cq(4).create()?);
            let qp = pd.qp(QpType::Rc, &cq, &cq).create()?;
            Ok::<_, verbs_api::Error>((qp, cq))
        };
        let run = || -> verbs_api::Result<()> {
            let ((near, _), (far, cq)) = (side("sim0")?, side("sim1")?);
            near.connect_rc(&far, &RcParams::default())?;
            far.post_recv(RecvWr::new(1, &[]))?;
            near.post_send(SendWr::send_with_imm(1, &[], [7; 4]))?;
            while cq.poll()?.next().is_none() {}
            near.send_cq().req_notify(Arm::NEXT)
        };
        run()
    });
    let found = found.unwrap_err();
    assert!(found.failure.starts_with("invariant "), "{found}");
    assert_eq!(found.diagnosis.leftovers.len(), 2, "{found}");
    let [call, returned] = &last(&found, 2)[..] else {
        panic!("{found}")
    };
    assert!(call.starts_with("ibv_poll_cq("), "{found}");
    assert_eq!(returned, "  = 1");
}
