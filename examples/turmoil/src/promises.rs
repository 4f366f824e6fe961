//! What the store promises, and the search for runs in which it does not keep it.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use turmoil::{Builder, Sim};

use crate::run;
use crate::store::{Bug, Entry, Log, REPLICAS};

pub(crate) const BUGS: [Bug; 2] = [Bug::Double, Bug::SplitBrain];

/// Each entry is once in each log, in order, and in a majority of the logs soon after it was
/// appended.
pub(crate) fn keeps_its_promises(
    sim: &mut Sim<'_>,
    cut: impl Fn(&Sim<'_>),
    bug: Option<Bug>,
) -> Result<(), String> {
    let early = Rc::new(RefCell::new(None));
    let noted = early.clone();
    let acked = move |client, seq, logs: &[Log; REPLICAS]| {
        let is_it = |entry: &Entry| (entry.client, entry.seq) == (client, seq);
        let having = logs
            .iter()
            .filter(|log| log.borrow().iter().any(is_it))
            .count();
        if having < 2 {
            let text = format!("entry {seq} of {client} is appended, and in {having} logs");
            noted.borrow_mut().get_or_insert(text);
        }
    };
    let logs = run(sim, bug, acked, cut).map_err(|error| error.to_string())?;
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
    early.take().map_or(Ok(()), Err)
}

fn builder(seed: u64) -> Builder {
    let mut builder = Builder::new();
    builder
        .rng_seed(seed)
        .simulation_duration(Duration::from_secs(60))
        .min_message_latency(Duration::from_millis(1));
    builder
}

/// With messages that are lost, late and in any order, hosts in any order, and a client that does
/// not reach a replica for a while.
pub(crate) fn explored(seed: u64, bug: Option<Bug>) -> Result<(), String> {
    let mut sim = builder(seed)
        .max_message_latency(Duration::from_millis(10))
        .fail_rate(0.01)
        .enable_random_order()
        .build();
    let start = Duration::from_millis(1 + seed % 50);
    let end = start + Duration::from_millis(seed % 4 * 500);
    let (client, replica) = (
        format!("client-{}", seed / 3 % 2),
        format!("replica-{}", seed % 3),
    );
    let cut = |sim: &Sim<'_>| {
        if sim.elapsed() == start {
            sim.partition(&*client, &*replica);
        }
        if sim.elapsed() == end {
            sim.repair(&*client, &*replica);
        }
    };
    keeps_its_promises(&mut sim, cut, bug)
}

/// Without any of this.
pub(crate) fn calm(seed: u64, bug: Option<Bug>) -> Result<(), String> {
    let mut sim = builder(seed)
        .max_message_latency(Duration::from_millis(1))
        .build();
    keeps_its_promises(&mut sim, |_| (), bug)
}

/// The first seed whose run fails, and how.
pub(crate) fn first(
    mut seeds: Range<u64>,
    test: impl Fn(u64) -> Result<(), String>,
) -> Option<(u64, String)> {
    seeds.find_map(|seed| Some((seed, test(seed).err()?)))
}

/// Looks for each planted mistake, and tries the store without one under `seeds`.
pub(crate) fn report(seeds: u64) {
    for bug in BUGS {
        let found = first(0..200, |seed| explored(seed, Some(bug)));
        let (seed, failure) = found.expect("a planted mistake is found");
        println!("{bug:?}: found by seed {seed}: {failure}");
        assert_eq!(first(0..1000, |seed| calm(seed, Some(bug))), None);
        println!("    in 1000 runs without faults, first come first served: not found");
    }
    let start = Instant::now();
    let failed = first(0..seeds, |seed| explored(seed, None));
    assert_eq!(failed, None);
    println!(
        "no mistake: {:.0} seeds a second; {seeds} seeds passed",
        seeds as f64 / start.elapsed().as_secs_f64()
    );
}
