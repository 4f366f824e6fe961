//! Random programs on the simulator.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use proptest::prelude::*;
use verbs_api::lab::{Fault, Lab, Live, TraceRecord};
use verbs_api::profile::Profile;
use verbs_api::{ErrorKind, Verb, Verbs};
use verbs_explore::Checked;
use verbs_explore::program::{Outcome, Pace, Program, print, run, shrink};
use verbs_faults::{Part, Plan};
use verbs_sim::{Mode, Sim, SimConfig};

/// A simulation of four nodes under a profile.
fn config(profile: Profile, mode: Mode) -> SimConfig {
    SimConfig::new().nodes(4).mode(mode).profile(profile)
}

/// Runs a program, and looks whether the simulator is well after it.
fn run_well(program: &Program, profile: Profile, mode: Mode) -> (Outcome, String) {
    let sim = Sim::new(config(profile, mode).trace(true));
    let outcome = run(program, &sim);
    assert!(outcome.faults.is_empty(), "{profile}: {:?}", outcome.faults);
    let trace = sim
        .trace()
        .iter()
        .map(|record| format!("{record}\n"))
        .collect();
    for device in sim.devices().unwrap() {
        let context = sim.open_device(&device.name).unwrap();
        let mut nothing = Live::default();
        nothing.contexts = 1;
        assert_eq!(
            sim.live(context).unwrap(),
            nothing,
            "{profile}: {}",
            device.name
        );
    }
    (outcome, trace)
}

fn check(program: &Program) {
    for &profile in Profile::ALL {
        for mode in [Mode::Stepped, Mode::Inline] {
            run_well(program, profile, mode);
        }
    }
}

/// Checks the program of a seed. One that fails is made short, and printed.
fn check_seed(seed: u64, pace: Pace, check: impl Fn(&Program)) {
    let fails = |program: &Program| catch_unwind(AssertUnwindSafe(|| check(program))).is_err();
    let program = Program::of_seed(seed, pace);
    if !fails(&program) {
        return;
    }
    let shortest = shrink(program, 1000, fails);
    let outcome = catch_unwind(|| run(&shortest, &Sim::new(config(Profile::SPEC, Mode::Stepped))));
    let outcome = outcome.unwrap_or_default();
    let name = format!("program_of_seed_{seed}");
    let simulation = "Sim::new(SimConfig::new().nodes(4))";
    println!("{}", print(&shortest, &outcome, &name, simulation, 4));
    check(&shortest);
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(0),
        ..ProptestConfig::default()
    })]

    /// No program makes the simulator panic or stall, and nothing is left of it at the end.
    #[test]
    fn any_program_runs_to_its_end(seed in any::<u64>().no_shrink()) {
        check_seed(seed, Pace::Free, check);
    }

    /// The same program gives the same trace if its work does not race.
    #[test]
    fn any_settled_program_runs_to_its_end(seed in any::<u64>().no_shrink()) {
        check_seed(seed, Pace::Settled, check);
    }

    /// The same program on the same simulation does the same, packet by packet.
    #[test]
    fn a_program_does_the_same_again(seed in any::<u64>().no_shrink()) {
        check_seed(seed, Pace::Free, |program| {
            for &profile in Profile::ALL {
                let first = run_well(program, profile, Mode::Stepped);
                assert_eq!(first, run_well(program, profile, Mode::Stepped));
            }
        });
    }

    /// Rules for calls fire on the calls of the program alone: the same ones whether invariants are
    /// checked or not.
    #[test]
    fn rules_fire_on_the_same_calls_under_checked_invariants(
        of_program in any::<u64>().no_shrink(),
        of_sim in any::<u64>().no_shrink(),
    ) {
        check_seed(of_program, Pace::Free, |program| {
            let plain = run_fired(program, of_sim, |sim| sim);
            let checked = run_fired(program, of_sim, |sim| Arc::new(Checked::new(sim)));
            assert_eq!(plain, checked);
        });
    }
}

/// Runs a program with a rule for each verb in force: the outcome, the trace, and what the rules
/// have fired until all is over.
fn run_fired(
    program: &Program,
    seed: u64,
    around: impl FnOnce(Arc<dyn Verbs>) -> Arc<dyn Verbs>,
) -> (Outcome, Vec<TraceRecord>, Vec<Part>) {
    let rule = |verb: &Verb| Fault::fail(*verb, ErrorKind::Io).per_million(100_000);
    let verbs = Verb::ALL.iter().filter(|verb| **verb != Verb::Lab);
    let plan = Plan::new(verbs.map(rule).collect()).unwrap();
    let config = config(Profile::SPEC, Mode::Stepped);
    let sim = Arc::new(Sim::new(config.seed(seed).trace(true)));
    let in_force = plan.inject(&*sim).unwrap();
    let verbs = around(sim.clone());
    let outcome = run(program, &*verbs);
    let trace = sim.trace();
    drop(verbs);
    (outcome, trace, in_force.fired())
}
