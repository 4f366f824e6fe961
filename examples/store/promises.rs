//! What the store promises, and the search for runs in which it does not keep it.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use verbs_api::lab::Partition;
use verbs_explore::{Exploration, World};
use verbs_faults::Plan;
use verbs_sim::rt::{self, Order};
use verbs_sim::{SimConfig, Suppressions};

use crate::store::{Bug, Entry, Log, REPLICAS};
use crate::{HOSTS, run, simulated};

pub(crate) const BUGS: [Bug; 5] = [
    Bug::LostWakeup,
    Bug::Credits,
    Bug::Double,
    Bug::Deregister,
    Bug::SplitBrain,
];

/// Each entry is once in each log, in order, and in a majority of the logs soon after it was
/// appended. Now and then two machines do not reach each other for a while.
pub(crate) fn keeps_its_promises(
    world: &World,
    order: Order,
    bug: Option<Bug>,
) -> Result<(), String> {
    let in_words = |error: verbs_api::Error| error.to_string();
    let lab = world.lab();
    let hosts = simulated(lab).map_err(in_words)?;
    let early = RefCell::new(None);
    let acked = |client, seq, logs: &[Log; REPLICAS]| {
        let is_it = |entry: &Entry| (entry.client, entry.seq) == (client, seq);
        let having = logs
            .iter()
            .filter(|log| log.borrow().iter().any(is_it))
            .count();
        if having < 2 {
            let text = format!("entry {seq} of {client} is appended, and in {having} logs");
            early.borrow_mut().get_or_insert(text);
        }
    };
    let logs = rt::block_on(&*world.verbs(), order, async |rt| {
        if let Order::Seed(seed) = order {
            let cut = rt.clone();
            drop(rt.spawn("partition", async move {
                let [(host, _), (other, _)] = [seed % 3, seed / 3 % 3].map(|at| HOSTS[at as usize]);
                cut.sleep(Duration::from_micros(seed % 50 * 70)).await;
                // Some runs have no partition.
                let partition = (host != other)
                    .then(|| Partition::new(lab, &[host], &[other]).expect("both exist"));
                cut.sleep(Duration::from_secs(seed % 4 * 5)).await;
                drop(partition);
            }));
        }
        run(rt, hosts, bug, acked).await
    });
    let logs = logs.map_err(in_words)?;
    for log in logs.iter().map(|log| log.borrow()) {
        for (client, entries) in [(0, 4), (1, 3)] {
            let its = log.iter().filter(|entry| entry.client == client);
            let seen: Vec<_> = its.map(|entry| (entry.seq, entry.value)).collect();
            let right: Vec<_> = (1..=entries).map(|seq| (seq, 100 * client + seq)).collect();
            if seen != right {
                return Err(format!("of client {client} there are {seen:?}"));
            }
        }
    }
    early.into_inner().map_or(Ok(()), Err)
}

pub(crate) fn exploration() -> Exploration {
    let config = SimConfig::new().hosts(&HOSTS);
    let exploration = Exploration::new("store").config(config);
    exploration.strict(Suppressions::default())
}

pub(crate) fn explored(world: &World, bug: Option<Bug>) -> Result<(), String> {
    keeps_its_promises(world, Order::Seed(world.seed()), bug)
}

/// The trace of a seed, which is the same in each of some runs.
pub(crate) fn trace(seed: u64, runs: u32) -> String {
    let test = |world: &World| explored(world, None);
    let run = || exploration().trial(seed, &Plan::standard(), true, test);
    let first = run();
    for _ in 1..runs {
        assert_eq!(run(), first, "each run of a seed is the same");
    }
    first
        .trace
        .iter()
        .map(|record| format!("{record}\n"))
        .collect()
}

/// Looks for each planted mistake, and tries the store without one under `seeds`.
pub(crate) fn report(seeds: u64) {
    for bug in BUGS {
        let test = |world: &World| explored(world, Some(bug));
        let found = exploration()
            .seeds(0..200)
            .run(test)
            .expect_err("a planted mistake is found");
        let (seed, faults) = (found.seed, found.faults.parts().len());
        println!("{bug:?}: found by seed {seed}, with {faults} faults");
        let calm = |world: &World| keeps_its_promises(world, Order::Fifo, Some(bug));
        let runs = exploration()
            .faults(Default::default())
            .seeds(0..1000)
            .run(calm);
        println!(
            "    in {} runs without faults, first come first served: not found",
            runs.unwrap().tried
        );
    }
    let start = Instant::now();
    let passed = exploration()
        .seeds(0..seeds)
        .run(|world| explored(world, None));
    let (passed, took) = (passed.unwrap(), start.elapsed().as_secs_f64());
    println!(
        "no mistake: {:.0} seeds a second; {passed}",
        passed.tried as f64 / took
    );
}
