//! Programs as they are printed: what is printed compiles, and does what it says.
//!
//! `VERBSIM_BLESS=1` prints them again.

use std::path::Path;
use std::{env, fs};

use verbs_explore::program::{Pace, Program, print, run};
use verbs_sim::{Sim, SimConfig};

include!("printed/free.rs");
include!("printed/settled.rs");

/// The programs of each file: together they have most kinds of calls.
const SEEDS: [u64; 5] = [89, 105, 123, 131, 245];

#[test]
fn programs_are_printed_as_they_were() {
    for (pace, name) in [(Pace::Free, "free"), (Pace::Settled, "settled")] {
        let one = |seed| {
            let program = Program::of_seed(seed, pace);
            let outcome = run(&program, &Sim::new(SimConfig::new().nodes(4)));
            let simulation = "Sim::new(SimConfig::new().nodes(4))";
            print(
                &program,
                &outcome,
                &format!("{name}_program_{seed}"),
                simulation,
                4,
            )
        };
        let text: String = SEEDS.into_iter().map(one).collect();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/printed/{name}.rs"));
        if env::var_os("VERBSIM_BLESS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            text,
            "VERBSIM_BLESS=1 prints them again"
        );
    }
}
