//! tokio on the clock of a simulation: `verbs_sim::tokio`.

mod side;

use core::time::Duration;
use std::sync::{Arc, Mutex};

use side::{Side, sim};
use tokio::runtime::Builder;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use verbs_api::lab::{Fault, Lab, PacketFilter};
use verbs_api::owned::SendWr;
use verbs_api::{Arm, ErrorKind, Result, Wait};
use verbs_sim::rt::{self, Order};
use verbs_sim::tokio::block_on;
use verbs_sim::{Mode, Sim, SimConfig};

const fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

impl Side {
    /// Sends a message, and waits for its completion.
    async fn send_one(&self) -> Result<()> {
        self.send(1)?;
        self.next().await
    }

    /// Waits for completions.
    async fn next(&self) -> Result<()> {
        assert_ne!(self.cq.next().await?.count(), 0);
        Ok(())
    }
}

/// The time of tokio since a start, which is that of the simulation whenever a task runs.
#[derive(Clone)]
struct Times(Arc<Sim>, Duration, Instant);

impl Times {
    fn start(sim: &Arc<Sim>) -> Self {
        Self(sim.clone(), sim.now(), Instant::now())
    }

    #[track_caller]
    fn now(&self) -> Duration {
        let now = self.2.elapsed();
        assert_eq!(self.0.now() - self.1, now, "of the simulation, of tokio");
        now
    }
}

/// Messages take their microseconds and a lost one its timeout; a timer of tokio fires at the first
/// whole millisecond that is not too early. None moves the other.
#[test]
fn each_thing_happens_at_its_time() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let [client, server] = Side::pair(&sim)?;
    (0..3).try_for_each(|_| server.expect(0))?;
    let seen = block_on(sim.clone(), async {
        let times = Times::start(&sim);
        let ticks = tokio::spawn({
            let times = times.clone();
            async move {
                let mut seen = Vec::new();
                for _ in 0..3 {
                    sleep(micros(300)).await;
                    seen.push(times.now());
                }
                seen
            }
        });
        let mut seen = Vec::new();
        client.send_one().await?;
        seen.push(times.now());
        // The acknowledgement timeout is 4.096 us * 2^14.
        let lost = Fault::drop(PacketFilter::EVERY.to(1)).nth(1);
        sim.inject(lost)?;
        client.send_one().await?;
        seen.push(times.now());
        let ticks = ticks.await.expect("it has not panicked");
        assert_eq!(ticks, [1, 2, 3].map(Duration::from_millis));
        sleep(Duration::from_secs(3600)).await;
        client.send_one().await?;
        seen.push(times.now());
        Ok(seen)
    })?;
    let lost = micros(2) + Duration::from_nanos(4096 << 14) + micros(2);
    let rounded = Duration::from_millis(3600 * 1000 + 68);
    assert_eq!(seen[..2], [micros(2), lost]);
    assert_eq!(seen[2], rounded + micros(2), "{lost:?}");
    Ok(())
}

/// Draws numbers below a limit.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Whatever tasks do, both clocks agree when one runs, and a second run is the same.
#[test]
fn both_clocks_are_one_and_a_run_repeats() -> Result<()> {
    let run = |seed: u64| -> Result<_> {
        let sim = sim(Mode::Stepped);
        let pairs = (0..3)
            .map(|_| Side::pair(&sim))
            .collect::<Result<Vec<_>>>()?;
        let late = Fault::delay(PacketFilter::EVERY, micros(777)).per_million(300_000);
        sim.inject(late)?;
        let log = Arc::new(Mutex::new(Vec::new()));
        block_on(sim.clone(), async {
            let times = Times::start(&sim);
            let mut tasks: Vec<JoinHandle<Result<()>>> = Vec::new();
            for (number, [client, server]) in (0_u64..).zip(pairs) {
                let (times, log) = (times.clone(), log.clone());
                let mut draw = Draw(seed * 3 + number);
                tasks.push(tokio::spawn(async move {
                    for round in 0..20 {
                        match draw.below(4) {
                            0 => sleep(micros(draw.below(5000))).await,
                            1 => tokio::task::yield_now().await,
                            2 => {
                                let wait = timeout(micros(draw.below(3000)), server.next());
                                wait.await.unwrap_or(Ok(()))?;
                            }
                            _ => {
                                server.expect(round)?;
                                client.send_one().await?;
                            }
                        }
                        log.lock().unwrap().push((times.now(), number, round));
                    }
                    Ok(())
                }));
            }
            for task in tasks {
                task.await.expect("it has not panicked")?;
            }
            Ok(())
        })?;
        let log = log.lock().unwrap().clone();
        assert_eq!(log.len(), 60);
        Ok(log)
    };
    for seed in 0..50 {
        assert_eq!(run(seed)?, run(seed)?, "seed {seed}");
    }
    Ok(())
}

/// The same program takes the same time on the project's own executor.
#[test]
fn a_program_takes_as_long_as_on_the_other_executor() -> Result<()> {
    async fn program([client, server]: [Side; 2]) -> Result<()> {
        for round in 0..10 {
            server.expect(round)?;
            client.send_one().await?;
            server.next().await?;
        }
        Ok(())
    }
    let own = sim(Mode::Stepped);
    let pair = Side::pair(&own)?;
    rt::block_on(&*own, Order::Fifo, async |_| program(pair).await)?;
    let of_tokio = sim(Mode::Stepped);
    let pair = Side::pair(&of_tokio)?;
    block_on(of_tokio.clone(), program(pair))?;
    assert_eq!(own.now(), of_tokio.now());
    // The clock is free again.
    own.advance(micros(1))?;
    let [_, server] = Side::pair(&of_tokio)?;
    assert!(server.cq.wait(Wait::For(micros(5)))?.is_none());
    // A task that moves the clock itself takes that of tokio along.
    block_on(own.clone(), async {
        let times = Times::start(&own);
        own.advance(micros(2500))?;
        sleep(micros(1)).await;
        assert_eq!(times.now(), micros(2500));
        Ok(())
    })
}

#[test]
fn tasks_that_wait_in_vain_are_named_with_their_queues() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let [client, server] = Side::pair(&sim)?;
    server.expect(0)?;
    let error = block_on(sim.clone(), async {
        // The server's event is lost: the completion comes before it arms the CQ.
        let waits = tokio::spawn(async move {
            sleep(Duration::from_millis(5)).await;
            server.cq.req_notify(Arm::NEXT)?;
            server.channel.next_event().await.map(drop)
        });
        client.send_one().await?;
        waits.await.expect("it has not panicked")
    });
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stalled);
    let text = error.to_string();
    for part in [
        "lost wake-up:",
        "nothing is in flight since 1ms",
        "tokio.rs:",
        "holds 1 of 64",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let nothing = block_on(
        self::sim(Mode::Stepped),
        std::future::pending::<Result<()>>(),
    );
    let text = nothing.unwrap_err().to_string();
    assert!(text.contains("no task waits for something"), "{text}");
    Ok(())
}

/// Retries without an end, and a task that does nothing but sleep, keep no run alive forever.
#[test]
fn what_goes_on_without_a_task_ends_the_run() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let [client, _server] = Side::pair(&sim)?;
    // The peer has no receive, and receiver-not-ready is retried without an end.
    let error = block_on(sim.clone(), client.send_one()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stalled);
    assert!(
        error.to_string().contains("while timers still run"),
        "{error}"
    );

    let [_, server] = Side::pair(&sim)?;
    let error = block_on(sim.clone(), async {
        tokio::spawn(async {
            loop {
                sleep(Duration::from_millis(10)).await;
            }
        });
        server.next().await
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Stalled);
    Ok(())
}

/// The clock is free after a run, whatever the program keeps of it.
#[test]
fn handle_of_a_task_does_not_hold_the_clock() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let [client, server] = Side::pair(&sim)?;
    let _kept = block_on(sim.clone(), async {
        Ok(tokio::spawn(std::future::pending::<()>()))
    })?;
    server.expect(0)?;
    client.qp.post_send(SendWr::send(0, &[]))?;
    assert!(client.cq.wait(Wait::Forever)?.is_some());
    block_on(sim, async { Ok(()) })
}

/// Without an executor that knows of the clock, tasks that wait move it. In the end one of them
/// would hang.
#[test]
fn wait_in_vain_on_a_plain_runtime_is_an_error() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let [client, server] = Side::pair(&sim)?;
    (0..10).try_for_each(|_| server.expect(0))?;
    let runtime = Builder::new_current_thread().build().unwrap();
    let waits = runtime.block_on(async {
        let waits = tokio::spawn(async move {
            let mut count = 0;
            loop {
                match server.cq.next().await {
                    Ok(completions) => count += completions.count(),
                    Err(error) => return (count, error),
                }
            }
        });
        for _ in 0..10 {
            client.send_one().await.unwrap();
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        }
        waits.await.expect("it has not panicked")
    });
    let (count, error) = waits;
    assert_eq!((count, error.kind()), (10, ErrorKind::Stalled), "{error}");
    assert!(
        error.to_string().contains("an event on channel#0"),
        "{error}"
    );
    Ok(())
}

#[test]
fn what_cannot_run_here_is_refused_with_the_reason() -> Result<()> {
    let refused = |verbs: Arc<Sim>, main: fn(Arc<Sim>) -> Result<()>| {
        let refused = block_on(verbs.clone(), async { main(verbs) });
        refused.unwrap_err()
    };
    let nested = refused(sim(Mode::Stepped), |sim| block_on(sim, async { Ok(()) }));
    assert_eq!(nested.kind(), ErrorKind::Usage);
    assert!(nested.to_string().contains("within a runtime"), "{nested}");
    let waits = refused(sim(Mode::Stepped), |sim| {
        let [client, _] = Side::pair(&sim)?;
        client.cq.wait(Wait::Forever).map(drop)
    });
    assert_eq!(waits.kind(), ErrorKind::Usage);
    let inline = Arc::new(Sim::new(SimConfig::new().mode(Mode::Inline)));
    let inline = refused(inline, |_| Ok(()));
    assert_eq!(inline.kind(), ErrorKind::NotSupported);
    Ok(())
}
