//! How many seeds a second one core tries, by the time that the processor gave; see
//! `docs/benchmarks.md`.

use std::ops::ControlFlow;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use verbs_explore::program::{self, Pace, Program};
use verbs_explore::{Exploration, World};
use verbs_sim::SimConfig;

const SEEDS: u64 = 4000;
const ROUNDS: usize = 10;

fn main() {
    println!("| what | seeds a second and core |");
    println!("|---|---|");
    show("random programs, four nodes", 4, random_program);
    show("a test that does nothing, two nodes", 2, nothing);
}

fn random_program(world: &World) -> Result<(), String> {
    let program = Program::of_seed(world.seed(), Pace::Free);
    let outcome = program::run(&program, &*world.verbs());
    match &outcome.faults[..] {
        [] => Ok(()),
        faults => Err(faults.join("; ")),
    }
}

fn nothing(_: &World) -> Result<(), String> {
    Ok(())
}

/// The fastest of some rounds: other load on a machine only makes them slower.
fn show(name: &str, nodes: u32, test: fn(&World) -> Result<(), String>) {
    let exploration = Exploration::new("bench")
        .config(SimConfig::new().nodes(nodes))
        .seeds(0..SEEDS);
    let round = || {
        let start = time_of_this_thread();
        let explored = exploration.search(test, || ControlFlow::Continue(()));
        assert!(explored.failure.is_none(), "{:?}", explored.failure);
        time_of_this_thread() - start
    };
    let least = (0..ROUNDS).map(|_| round()).min().unwrap_or_default();
    println!("| {name} | {:.0} |", SEEDS as f64 / least.as_secs_f64());
}

fn time_of_this_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
