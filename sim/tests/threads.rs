//! Threads in virtual time: `Sim::threads`.

mod side;

use core::pin::pin;
use core::task::Waker;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use side::{Side, sim};
use verbs_api::lab::{Fault, Lab, PacketFilter};
use verbs_api::{Arm, ErrorKind, Result, Verbs, Wait, WcStatus};
use verbs_sim::{Class, Mode, Sim, SimConfig, Suppressions};

/// The acknowledgement timeout of a [`Side`].
const TIMEOUT: Duration = Duration::from_nanos(4_096 << 14);

impl Side {
    /// Waits until a message has arrived, and skips completions of sends.
    fn receive(&self) -> Result<u64> {
        loop {
            let waited = self.cq.wait(Wait::Forever)?;
            let mut completions = waited.expect("it waits forever");
            if let Some(wc) = completions.find(|wc| wc.opcode.is_recv()) {
                assert_eq!(wc.status, WcStatus::Success);
                return Ok(wc.wr_id);
            }
        }
    }

    /// Sends a message and receives one, or the other way round.
    fn exchange(&self, rounds: u64, is_first: bool) {
        for round in 0..rounds {
            if is_first {
                self.send(round).unwrap();
            }
            assert_eq!(self.receive().unwrap(), round);
            self.expect(round + 1).unwrap();
            if !is_first {
                self.send(round).unwrap();
            }
        }
    }
}

/// Two sides that expect a message each.
fn pair(sim: &Arc<Sim>) -> [Side; 2] {
    let sides = Side::pair(sim).unwrap();
    for side in &sides {
        side.expect(0).unwrap();
    }
    sides
}

/// A lost packet is sent again after its timeout, by the clock of the simulation.
#[test]
fn a_lost_packet_is_sent_again_when_every_thread_waits() -> Result<()> {
    let sim = sim(Mode::Inline);
    let [client, server] = pair(&sim);
    sim.inject(Fault::drop(PacketFilter::EVERY.to(1)).nth(3))?;
    sim.threads(|threads| {
        let serving = threads.spawn("server", || server.exchange(8, false));
        client.exchange(8, true);
        serving.join().expect("it has not panicked");
    })?;
    let took = sim.now();
    assert!((TIMEOUT..2 * TIMEOUT).contains(&took), "{took:?}");
    Ok(())
}

/// Pairs of threads that talk under loss all end: no wake-up is lost, and the clock moves whenever
/// it must.
#[test]
fn threads_that_talk_under_loss_all_end() -> Result<()> {
    for seed in 0..40 {
        let config = SimConfig::new().mode(Mode::Inline).seed(seed);
        let sim = Arc::new(Sim::new(config));
        let pairs = [(); 3].map(|()| pair(&sim));
        sim.inject(Fault::drop(PacketFilter::EVERY).per_million(100_000))?;
        let late = Fault::duplicate(PacketFilter::EVERY, TIMEOUT);
        sim.inject(late.per_million(100_000))?;
        sim.threads(|threads| {
            for [client, server] in &pairs {
                threads.spawn("client", || client.exchange(20, true));
                threads.spawn("server", || server.exchange(20, false));
            }
        })?;
        assert!(sim.now() > TIMEOUT, "a packet was lost");
        let mistakes = sim.diagnose().check(&Suppressions::default());
        assert_eq!(mistakes, Ok(()));
    }
    Ok(())
}

/// Bounded waits end one after the other, each at its time.
#[test]
fn bounded_waits_end_by_the_clock_of_the_simulation() -> Result<()> {
    let sim = sim(Mode::Inline);
    let sides = Side::pair(&sim)?;
    let hours = |count: u64| Duration::from_secs(3_600 * count);
    sim.threads(|threads| {
        for (side, each) in sides.iter().zip(1..) {
            let sim = &sim;
            threads.spawn("waits", move || {
                for round in 1..=4 {
                    let event = side.channel.get_event(Wait::For(hours(each)));
                    assert!(event.unwrap().is_none());
                    assert!(sim.now() >= hours(round * each));
                }
            });
        }
    })?;
    assert_eq!(sim.now(), hours(8));
    Ok(())
}

/// Each waits for a message of the other. Both errors name every thread, its line and its CQs, and
/// so does the diagnosis. Then calls wait again.
#[test]
fn a_deadlock_names_each_thread_its_line_and_its_queues() -> Result<()> {
    let sim = sim(Mode::Inline);
    let [client, server] = Side::pair(&sim)?;
    let wait = |side: &Side| side.cq.wait(Wait::Forever).map(drop).unwrap_err();
    let line = line!() - 1;
    let errors = sim.threads(|threads| {
        let other = threads.spawn("server", || wait(&server));
        let mine = threads.spawn("client", || wait(&client));
        let errors = [mine, other].map(|thread| thread.join().expect("it has not panicked"));
        // Further waits fail at once.
        assert_eq!(wait(&client).kind(), ErrorKind::Stalled);
        errors
    })?;
    let own = thread::current();
    let own = own.name().expect("tests have names");
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Stalled);
        let text = error.to_string();
        let (first, threads) = text.split_once('\n').expect("a line for each thread");
        assert!(
            first.contains(": deadlock: a thread waits on channel#0"),
            "{text}"
        );
        let waits = |name, node| {
            format!(
                "  {name}, since 0ns: an event on channel#0 of sim{node} \
                 (sim/tests/threads.rs:{line}), 0 queued; cq#0 is armed next, holds 0 of 64"
            )
        };
        let expected = [
            format!("  {own}: the end of client"),
            waits("server", 1),
            waits("client", 0),
        ];
        assert_eq!(threads, expected.join("\n"));
    }
    let found = sim.diagnose().mistakes;
    let waits = found
        .iter()
        .filter(|found| found.class() == Class::EndlessWait);
    assert_eq!(waits.count(), 2, "{found:?}");
    let event = client
        .channel
        .get_event(Wait::For(Duration::from_millis(1)))?;
    assert!(event.is_none());
    Ok(())
}

/// A completion is there, but it came before the arming (CQ-ARM-03).
#[test]
fn a_lost_wake_up_is_called_that() -> Result<()> {
    let sim = sim(Mode::Inline);
    let [client, server] = pair(&sim);
    client.send(0)?;
    let waited = sim.threads(|_| {
        sim.req_notify_cq(server.cq.handle(), Arm::NEXT)?;
        server.channel.get_event(Wait::Forever).map(drop)
    })?;
    let text = waited.unwrap_err().to_string();
    assert!(text.contains(": lost wake-up: a thread waits"), "{text}");
    Ok(())
}

/// A loop that polls gets to each timer, while another thread sleeps.
#[test]
fn a_thread_that_polls_gets_to_each_timer() -> Result<()> {
    let sim = sim(Mode::Inline);
    let [client, server] = pair(&sim);
    sim.inject(Fault::drop(PacketFilter::EVERY.to(1)))?;
    sim.threads(|threads| {
        let serving = threads.spawn("server", || server.receive().unwrap_err());
        client.send(0)?;
        let failed = loop {
            if let Some(wc) = client.cq.poll()?.next() {
                break wc.status;
            }
        };
        assert_eq!(failed, WcStatus::RetryExcErr);
        assert!(sim.now() > 7 * TIMEOUT, "{:?}", sim.now());
        let error = serving.join().expect("it has not panicked");
        assert_eq!(error.kind(), ErrorKind::Stalled);
        Ok(())
    })?
}

/// Polls move the clock on the fast path too, but never past a message that has arrived; a bounded
/// wait ends by its own time, although it polls twice before.
#[test]
fn a_thread_that_polls_does_not_end_the_waits_of_others_early() -> Result<()> {
    const SOON: Duration = Duration::from_millis(1);
    for _ in 0..50 {
        let sim = sim(Mode::Inline);
        let [client, server] = pair(&sim);
        sim.threads(|threads| {
            let polls = || loop {
                if let Some(wc) = server.cq.poll().unwrap().next() {
                    break wc;
                }
            };
            let asks = threads.spawn("asks", || {
                assert!(client.cq.wait(Wait::For(SOON)).unwrap().is_none());
                client.exchange(1, true);
            });
            assert!(polls().opcode.is_recv());
            server.send(0).unwrap();
            asks.join().unwrap();
        })?;
        assert_eq!(sim.now(), SOON);
        sim.inject(Fault::drop(PacketFilter::EVERY.to(1)).nth(1))?;
        server.expect(1)?;
        client.send(1)?;
        let early =
            sim.threads(|_| client.cq.wait(Wait::For(SOON)).map(|found| found.is_none()))?;
        assert!(early?, "the message is sent again later");
        assert_eq!(sim.now(), 2 * SOON);
    }
    Ok(())
}

/// Retries without end reach the horizon, and the error reports that.
#[test]
fn a_stall_at_the_horizon_is_called_that() -> Result<()> {
    let sim = sim(Mode::Inline);
    let [client, server] = Side::pair(&sim)?;
    client.send(0)?;
    let error = sim.threads(|_| server.cq.wait(Wait::Forever).map(drop).unwrap_err())?;
    let text = error.to_string();
    assert!(
        text.ends_with("the horizon is reached while timers still run"),
        "{text}"
    );
    Ok(())
}

/// A waker that is not used any more does not keep the clock from moving.
#[test]
fn a_stale_waker_does_not_stop_the_clock() -> Result<()> {
    let sim = sim(Mode::Inline);
    let [client, server] = pair(&sim);
    let mut context = core::task::Context::from_waker(Waker::noop());
    assert!(pin!(client.cq.next()).poll(&mut context).is_pending());
    sim.inject(Fault::drop(PacketFilter::EVERY.to(1)).nth(1))?;
    client.send(0)?;
    sim.threads(|_| server.receive().map(drop))?
}

/// Nothing is called a deadlock while a thread that can go on has not begun, waits for the end of
/// one that has just ended, or waits for a channel of std.
#[test]
fn a_thread_that_can_go_on_keeps_the_others_from_an_error() -> Result<()> {
    for _ in 0..50 {
        let sim = sim(Mode::Inline);
        let [client, server] = pair(&sim);
        let (sender, receiver) = mpsc::channel();
        sim.threads(|threads| {
            // It waits before there is another one.
            threads.spawn("server", || {
                assert_eq!(server.receive().unwrap(), 0);
                sender.send(()).unwrap();
            });
            let short = threads.spawn("short", || {
                let waited = client.cq.wait(Wait::For(Duration::from_nanos(1)));
                assert!(waited.unwrap().is_none());
            });
            let inner = threads.clone();
            let starts = threads.spawn("starts", move || {
                let joins = inner.spawn("joins", move || short.join().unwrap());
                joins.join().unwrap();
            });
            starts.join().unwrap();
            client.send(0).unwrap();
            // The body ends while threads wait.
            threads.spawn("receiver", move || receiver.recv().unwrap());
        })?;
    }
    Ok(())
}

/// A panic of a thread ends it, and the waits of the others. After the scope, calls wait again.
#[test]
fn a_thread_that_panics_has_ended() -> Result<()> {
    let sim = sim(Mode::Inline);
    let [client, server] = Side::pair(&sim)?;
    sim.threads(|threads| {
        let panics = threads.spawn("panics", || {
            let waited = client.cq.wait(Wait::For(Duration::from_secs(1)));
            waited.unwrap().map(drop).expect("a message");
        });
        let error = server.receive().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Stalled);
        panics.join().unwrap_err();
    })?;
    let scope = || sim.threads(|_| server.receive().unwrap());
    catch_unwind(AssertUnwindSafe(scope)).unwrap_err();
    let waited = sim.threads(|_| {
        server
            .cq
            .wait(Wait::For(TIMEOUT))
            .map(|found| found.is_none())
    });
    assert!(waited??);
    Ok(())
}

/// In real time the threads run by the clock of the machine.
#[test]
fn in_real_time_threads_run_as_they_are() -> Result<()> {
    let sim = sim(Mode::RealTime);
    let [client, server] = pair(&sim);
    let ended = AtomicU64::new(0);
    sim.threads(|threads| {
        threads.spawn("server", || {
            server.exchange(10, false);
            ended.fetch_add(1, Ordering::Relaxed);
        });
        client.exchange(10, true);
        ended.fetch_add(1, Ordering::Relaxed);
    })?;
    assert_eq!(ended.into_inner(), 2);
    Ok(())
}

/// A scope within a scope, and one in the mode for one thread, are refused, each with its reason.
#[test]
fn a_scope_that_cannot_move_the_clock_is_refused() -> Result<()> {
    let refused = |result: Result<()>, part: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(part), "{error}");
    };
    let stepped = sim(Mode::Stepped);
    refused(stepped.threads(|_| ()), "choose Mode::Inline");
    thread::scope(|scope| {
        let second = || stepped.open_device("sim1").map(drop);
        stepped.open_device("sim0").unwrap();
        scope.spawn(move || refused(second(), "Sim::threads"));
    });
    let sim = sim(Mode::Inline);
    let again = || sim.threads(|_| ());
    sim.threads(|threads| {
        refused(again(), "in such a scope already");
        threads.spawn("other", || refused(again(), "in such a scope already"));
    })?;
    again()
}
