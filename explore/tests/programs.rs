//! Random programs on the simulator.

use proptest::prelude::*;
use verbs_api::{Lab, Live, Profile, Verbs};
use verbs_explore::program::{Outcome, Pace, Program, programs, run};
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

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(0),
        ..ProptestConfig::default()
    })]

    /// No program makes the simulator panic or stall, and nothing is left of it at the end.
    #[test]
    fn any_program_runs_to_its_end(program in programs(Pace::Free)) {
        check(&program);
    }

    /// The same of programs whose work does not meet.
    #[test]
    fn any_settled_program_runs_to_its_end(program in programs(Pace::Settled)) {
        check(&program);
    }

    /// The same program on the same simulation does the same, packet by packet.
    #[test]
    fn a_program_does_the_same_again(program in programs(Pace::Free)) {
        for &profile in Profile::ALL {
            let (first, trace) = run_well(&program, profile, Mode::Stepped);
            let (second, again) = run_well(&program, profile, Mode::Stepped);
            prop_assert_eq!(first, second);
            prop_assert_eq!(trace, again);
        }
    }
}
