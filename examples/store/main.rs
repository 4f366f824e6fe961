//! A replicated log that is written once, and runs on tokio in real time, on tokio in virtual time,
//! on the executor of the simulator and on the devices of this machine. Its tests look for five
//! planted mistakes under many orders of tasks, faults and partitions.
//!
//! ```sh
//! cargo run --release --example store              # tokio, virtual time
//! cargo run --release --example store own          # the simulator's executor
//! cargo run --release --example store real         # tokio, real time
//! cargo run --release --example store 192.168.1.7  # real devices, by an address of one
//! cargo run --release --example store explore      # looks for the mistakes, 10,000 seeds
//! cargo run --release --example store trace 33     # 100 runs of seed 33, which are the same
//! cargo test --release --example store
//! ```

mod promises;
mod store;

use std::cell::RefCell;
use std::env;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::{JoinSet, LocalSet};
use verbs_api::Result;
use verbs_api::lab::Lab;
use verbs_api::owned::Cm;
use verbs_sim::rt::{self, Executor, Order};
use verbs_sim::{Mode, Sim, SimConfig};

use store::{Bug, Client, Log, REPLICAS, Runtime, serve};

impl<'a> Runtime<'a> for Executor<'a> {
    async fn sleep(&self, time: Duration) {
        Executor::sleep(self, time).await;
    }

    fn spawn(&self, name: String, task: impl Future<Output = Result<()>> + 'a) {
        let ended = async { task.await.expect("a task goes on") };
        drop(Executor::spawn(self, name, ended));
    }
}

#[derive(Clone, Default)]
struct Tokio(Rc<RefCell<JoinSet<Result<()>>>>);

impl Runtime<'static> for Tokio {
    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn spawn(&self, _: String, task: impl Future<Output = Result<()>> + 'static) {
        self.0.borrow_mut().spawn_local(task);
    }
}

/// Between two entries of a client.
const REST: Duration = Duration::from_millis(1);

/// A machine, and the address of its replica.
type Host = (Cm, SocketAddr);

/// The machines of a simulation, with one device each.
const HOSTS: [(&str, u32); REPLICAS] = [("ada", 1), ("bob", 1), ("eve", 1)];

/// A simulation's machines.
fn simulated(lab: &dyn Lab) -> Result<[Host; REPLICAS]> {
    let host = |number: usize| {
        let address = SocketAddr::from(([10, 0, number as u8, 1], 7471));
        Ok::<_, verbs_api::Error>((Cm::new(lab.host(HOSTS[number].0)?)?, address))
    };
    Ok([host(0)?, host(1)?, host(2)?])
}

/// Starts the replicas and two clients, and appends some entries. Returns the logs.
async fn run<'a, R: Runtime<'a>>(
    rt: R,
    hosts: [Host; REPLICAS],
    bug: Option<Bug>,
    acked: impl Fn(u64, u64, &[Log; REPLICAS]),
) -> Result<[Log; REPLICAS]> {
    let logs = [(); REPLICAS].map(|()| Log::default());
    let addresses = [0, 1, 2].map(|number: usize| hosts[number].1);
    for (number, (cm, address)) in hosts.iter().enumerate() {
        let replica = serve(rt.clone(), cm.clone(), *address, logs[number].clone(), bug);
        rt.spawn(format!("replica {number}"), replica);
    }
    let client = |id: u64, entries: u64| {
        let (rt, cm) = (rt.clone(), hosts[id as usize].0.clone());
        let (logs, acked) = (&logs, &acked);
        async move {
            let client = Client::open(rt.clone(), cm, id, addresses, bug).await?;
            for seq in 1..=entries {
                client.append(100 * id + seq).await?;
                rt.sleep(REST).await;
                acked(id, seq, logs);
            }
            client.settle().await;
            Ok::<_, verbs_api::Error>(())
        }
    };
    let (first, second) = tokio::join!(client(0, 4), client(1, 3));
    first.and(second)?;
    Ok(logs)
}

/// As tasks of the runtime of tokio that runs this, until one of them fails.
async fn on_tokio(hosts: [Host; REPLICAS]) -> Result<[Log; REPLICAS]> {
    let tokio = Tokio::default();
    let program = run(tokio.clone(), hosts, None, |_, _, _| ());
    let failed = poll_fn(|context| {
        while let Poll::Ready(Some(ended)) = tokio.0.borrow_mut().poll_join_next(context) {
            if let Err(error) = ended.expect("no task panics") {
                return Poll::Ready(error);
            }
        }
        Poll::Pending
    });
    let either = async {
        tokio::select! {
            biased;
            logs = program => logs,
            error = failed => Err(error),
        }
    };
    LocalSet::new().run_until(either).await
}

/// In real time, on tokio's runtime alone.
fn real_time(hosts: [Host; REPLICAS]) -> Result<[Log; REPLICAS]> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let program = on_tokio(hosts);
    runtime.expect("a runtime").block_on(program)
}

fn main() -> Result<()> {
    let sim = |mode| Arc::new(Sim::new(SimConfig::new().hosts(&HOSTS).mode(mode)).strict());
    let logs = match env::args().nth(1).as_deref() {
        None => {
            let sim = sim(Mode::Stepped);
            let hosts = simulated(&*sim)?;
            verbs_sim::tokio::block_on(sim, on_tokio(hosts))
        }
        Some("own") => {
            let sim = sim(Mode::Stepped);
            let hosts = simulated(&*sim)?;
            rt::block_on(&*sim, Order::Fifo, async |rt| {
                run(rt, hosts, None, |_, _, _| ()).await
            })
        }
        Some("explore") => {
            promises::report(10_000);
            return Ok(());
        }
        Some("trace") => {
            let seed = env::args().nth(2).and_then(|seed| seed.parse().ok());
            print!("{}", promises::trace(seed.expect("a seed"), 100));
            return Ok(());
        }
        Some("real") => real_time(simulated(&*sim(Mode::RealTime))?),
        #[cfg(target_os = "linux")]
        Some(address) => {
            let address: IpAddr = address.parse().expect("an address of a device");
            let cm = Cm::new(Arc::new(verbs_hw::Hw::new()))?;
            let host = |port| (cm.clone(), SocketAddr::new(address, port));
            real_time([7471, 7472, 7473].map(host))
        }
        #[cfg(not(target_os = "linux"))]
        Some(_) => panic!("devices of this machine can be used on Linux alone"),
    }?;
    for (number, log) in logs.iter().enumerate() {
        println!("replica {number}: {} entries", log.borrow().len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use verbs_explore::World;

    use super::promises::{BUGS, exploration, explored, keeps_its_promises};
    use super::*;

    #[test]
    fn each_planted_mistake_is_found_and_replayed() {
        for bug in BUGS {
            let test = |world: &World| explored(world, Some(bug));
            let found = exploration().seeds(0..200).run(test).unwrap_err();
            let again = exploration().replay(&found.replay, test).unwrap();
            let again = again.expect("it fails again");
            assert_eq!((again.failure, again.trace), (found.failure, found.trace));
        }
    }

    #[test]
    fn without_faults_and_in_one_order_no_mistake_shows() {
        for bug in BUGS {
            let test = |world: &World| keeps_its_promises(world, Order::Fifo, Some(bug));
            let calm = exploration().faults(Default::default()).seeds(0..20);
            calm.run(test).unwrap();
        }
    }

    #[test]
    fn a_seed_runs_the_same_twice() {
        let same = exploration().twice().seeds(0..20);
        same.run(|world| explored(world, None)).unwrap();
    }

    #[test]
    fn the_store_keeps_its_promises() {
        let passed = exploration()
            .seeds(0..300)
            .run(|world| explored(world, None));
        passed.unwrap();
    }

    /// The program takes an executor, and does not notice which.
    #[test]
    fn every_executor_runs_the_store() -> Result<()> {
        let sim = || Arc::new(Sim::new(SimConfig::new().hosts(&HOSTS)).strict());
        let own = sim();
        let hosts = simulated(&*own)?;
        let program = async |rt| run(rt, hosts, None, |_, _, _| ()).await;
        let own = rt::block_on(&*own, Order::Fifo, program)?;
        let of_tokio = sim();
        let hosts = simulated(&*of_tokio)?;
        let of_tokio = verbs_sim::tokio::block_on(of_tokio, on_tokio(hosts))?;
        let config = SimConfig::new().hosts(&HOSTS);
        let real = real_time(simulated(&Sim::new(config.mode(Mode::RealTime)))?)?;
        for logs in [own, of_tokio, real] {
            assert_eq!(logs.map(|log| log.borrow().len()), [7; REPLICAS]);
        }
        Ok(())
    }
}
