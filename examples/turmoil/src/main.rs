//! The replicated log of `examples/store`, over TCP on turmoil, for comparison. Its tests look for
//! those of the planted mistakes that TCP has too, under losses, delays and partitions.
//!
//! ```sh
//! cargo run --release    # looks for the mistakes, 10,000 seeds
//! cargo run --release 7  # prints what happens in the run of a seed
//! cargo test --release
//! ```

mod promises;
mod store;

use std::env;
use std::time::Duration;

use tokio::time::sleep;
use tracing_subscriber::filter::LevelFilter;
use turmoil::{Result, Sim};

use store::{Bug, Client, Log, REPLICAS, serve};

/// Between two entries of a client.
const REST: Duration = Duration::from_millis(1);

/// Starts the replicas and two clients, and appends some entries. Returns the logs.
fn run(
    sim: &mut Sim<'_>,
    bug: Option<Bug>,
    acked: impl Fn(u64, u64, &[Log; REPLICAS]) + Clone + 'static,
    between_steps: impl Fn(&Sim<'_>),
) -> Result<[Log; REPLICAS]> {
    let logs = [(); REPLICAS].map(|()| Log::default());
    let replicas = [0, 1, 2].map(|number| format!("replica-{number}"));
    for (name, log) in replicas.iter().zip(logs.clone()) {
        sim.host(&**name, move || serve(log.clone(), bug));
    }
    for (id, entries) in [(0, 4), (1, 3)] {
        let (replicas, logs, acked) = (replicas.clone(), logs.clone(), acked.clone());
        sim.client(format!("client-{id}"), async move {
            let client = Client::open(id, replicas, bug);
            for seq in 1..=entries {
                client.append(100 * id + seq).await;
                sleep(REST).await;
                acked(id, seq, &logs);
            }
            client.settle().await;
            Ok(())
        });
    }
    while !sim.step()? {
        between_steps(sim);
    }
    Ok(logs)
}

fn main() {
    match env::args().nth(1) {
        None => promises::report(10_000),
        Some(seed) => {
            let trace = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE);
            trace.without_time().with_ansi(false).init();
            let seed = seed.parse().expect("the number of a seed");
            println!("{:?}", promises::explored(seed, None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::promises::{BUGS, calm, explored, first};

    #[test]
    fn each_planted_mistake_is_found_and_replayed() {
        for bug in BUGS {
            let found = first(0..200, |seed| explored(seed, Some(bug)));
            let (seed, failure) = found.expect("it fails");
            assert_eq!(explored(seed, Some(bug)), Err(failure));
        }
    }

    #[test]
    fn without_faults_and_in_one_order_no_mistake_shows() {
        for bug in BUGS {
            assert_eq!(first(0..20, |seed| calm(seed, Some(bug))), None);
        }
    }

    #[test]
    fn the_store_keeps_its_promises() {
        assert_eq!(first(0..300, |seed| explored(seed, None)), None);
    }
}
