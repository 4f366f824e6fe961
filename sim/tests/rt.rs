//! The executor on the clock of a simulation: `verbs_sim::rt`.

mod side;

use core::cell::{Cell, RefCell};
use core::future::{pending, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use side::{Side, sim};
use verbs_api::cm::{ConnParam, PortSpace};
use verbs_api::lab::{CmMessage, Fault, Lab, PacketFilter};
use verbs_api::owned::{Cm, Cq, Listener};
use verbs_api::{Arm, Error, ErrorKind, QpType, Result, Wait, Wc, WcStatus};
use verbs_sim::rt::{self, Executor, Order};
use verbs_sim::{Class, Mode, Sim, SimConfig};

const fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

impl Side {
    /// Waits until a message has arrived, and skips completions of sends.
    async fn receive(&self) -> Result<u64> {
        loop {
            let mut completions = self.cq.next().await?;
            if let Some(wc) = completions.find(|wc| wc.opcode.is_recv()) {
                return Ok(wc.wr_id);
            }
        }
    }
}

/// What happened, and when.
type Log = RefCell<Vec<(Duration, String)>>;

/// Sends, waits for the answer and sleeps, in turns.
async fn client(rt: Executor<'_>, side: Side, rounds: u64, name: u64, log: &Log) -> Result<()> {
    for round in 0..rounds {
        side.expect(round)?;
        side.send(round)?;
        assert_eq!(side.receive().await?, round);
        let entry = (rt.now(), format!("answer {round} of {name}"));
        log.borrow_mut().push(entry);
        rt.sleep(micros(10)).await;
    }
    Ok(())
}

async fn server(side: Side, rounds: u64) -> Result<()> {
    side.expect(0)?;
    for round in 0..rounds {
        assert_eq!(side.receive().await?, round);
        side.expect(round + 1)?;
        side.send(round)?;
    }
    Ok(())
}

/// Runs pairs of a client and a server.
fn ping_pong(order: Order, pairs: u64, rounds: u64) -> Result<Vec<(Duration, String)>> {
    let (sim, log) = (sim(Mode::Stepped), Log::default());
    let mut sides = Vec::new();
    for _ in 0..pairs {
        sides.push(Side::pair(&sim)?);
    }
    rt::block_on(&*sim, order, async |rt| {
        let mut clients = Vec::new();
        for (name, [near, far]) in (0..).zip(sides) {
            let calls = client(rt.clone(), near, rounds, name, &log);
            clients.push(rt.spawn(format!("client {name}"), calls));
            let _serves = rt.spawn(format!("server {name}"), server(far, rounds));
        }
        for client in clients {
            client.await?;
        }
        Ok(())
    })?;
    Ok(log.into_inner())
}

/// A message takes a microsecond each way, and a client sleeps for ten between its calls.
#[test]
fn parties_on_one_thread_have_exact_times() -> Result<()> {
    let answers = ping_pong(Order::Fifo, 1, 3)?;
    let expected = [2, 14, 26].map(micros);
    assert_eq!(
        answers.iter().map(|(at, _)| *at).collect::<Vec<_>>(),
        expected
    );
    Ok(())
}

#[test]
fn a_seed_draws_an_order_and_always_the_same() -> Result<()> {
    let mut orders = BTreeSet::new();
    for seed in 0..50 {
        let order = Order::Seed(seed);
        let answers = ping_pong(order, 3, 2)?;
        assert_eq!(answers, ping_pong(order, 3, 2)?, "seed {seed}");
        orders.insert(answers);
    }
    assert!(orders.len() > 10, "{} orders", orders.len());
    let first = ping_pong(Order::Fifo, 3, 2)?;
    for _ in 0..100 {
        assert_eq!(ping_pong(Order::Fifo, 3, 2)?, first);
    }
    Ok(())
}

/// The text of the error of a run that is stuck.
fn stall<T>(result: Result<T>) -> String {
    let error = result.err().expect("it is stuck");
    assert_eq!(error.kind(), ErrorKind::Stalled);
    error.to_string()
}

#[test]
fn a_deadlock_names_each_task_and_what_it_waits_for() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let [near, far] = Side::pair(&sim)?;
    let text = stall(rt::block_on(&*sim, Order::Fifo, async |rt| {
        let client = rt.spawn("client", async move {
            near.expect(0)?;
            near.receive().await
        });
        let times = rt.clone();
        let server = async move {
            times.sleep(micros(5)).await;
            far.cq.next().await.map(drop)
        };
        let _server = rt.spawn("server", server);
        let _other = rt.spawn("other", pending::<()>());
        client.await
    }));
    let lines: Vec<_> = text.lines().collect();
    let [head, main, client, server, other] = lines[..] else {
        panic!("{text}");
    };
    assert!(head.contains("deadlock at 5µs: "), "{text}");
    assert!(
        main.ends_with("main, since 0ns: the end of client"),
        "{text}"
    );
    for (line, name, node) in [
        (client, "client, since 0ns", 0),
        (server, "server, since 5µs", 1),
    ] {
        let waits = format!("{name}: an event on channel#0 of sim{node} (sim/tests/rt.rs:");
        assert!(line.trim_start().starts_with(&waits), "{text}");
        let state = "), 0 queued; cq#0 is armed next, holds 0 of 64";
        assert!(line.ends_with(state), "{text}");
    }
    assert!(
        other.ends_with("since 0ns: something outside of the simulation"),
        "{text}"
    );
    let mistakes = sim.diagnose().mistakes;
    let waits = mistakes
        .iter()
        .filter(|found| found.class() == Class::EndlessWait);
    assert_eq!(waits.count(), 2, "{mistakes:?}");
    Ok(())
}

/// CQ-ARM-03: the completion comes after the poll and before the arming, so it makes no event.
#[test]
fn a_lost_wakeup_of_a_loop_by_hand_is_found() -> Result<()> {
    for polls_again in [true, false] {
        let sim = sim(Mode::Stepped);
        let [near, far] = Side::pair(&sim)?;
        near.expect(7)?;
        far.send(0)?;
        let run = rt::block_on(&*sim, Order::Fifo, async |rt| {
            let mut wc = [Default::default()];
            assert_eq!(near.cq.poll_into(&mut wc)?, 0);
            rt.sleep(micros(3)).await;
            near.cq.req_notify(Arm::NEXT)?;
            if !polls_again || near.cq.poll_into(&mut wc)? == 0 {
                drop(near.channel.next_event().await?);
            }
            Ok(())
        });
        if polls_again {
            run?;
        } else {
            let text = stall(run);
            assert!(text.contains("lost wake-up at 3µs"), "{text}");
            assert!(text.contains("cq#0 is armed next, holds 1 of 64"), "{text}");
        }
    }
    Ok(())
}

/// The request is lost, so that it is sent again: the timeouts are of virtual time, and a time that
/// is over ends no later wait.
#[test]
fn a_timeout_is_over_at_its_time() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let [near, far] = Side::pair(&sim)?;
    sim.inject(Fault::drop(PacketFilter::EVERY))?;
    rt::block_on(&*sim, Order::Fifo, async |rt| {
        near.send(0)?;
        let patience = Duration::from_millis(1);
        let in_time = rt.timeout(patience, near.cq.next()).await;
        assert!(in_time.is_none());
        assert_eq!(rt.now(), patience);
        let never = rt.timeout(micros(1), far.cq.next());
        let late = rt.timeout(Duration::from_secs(60), near.cq.next()).await;
        let wc = late.expect("it fails in time")?.next().expect("one");
        assert_eq!(wc.status, WcStatus::RetryExcErr);
        // The time counts from the call, and is long over.
        let before = rt.now();
        assert!(never.await.is_none());
        assert_eq!(rt.now(), before);
        Ok(())
    })
}

/// A wait that loses against a sleep is dropped, again and again, and takes nothing with it.
#[test]
fn a_wait_that_is_dropped_loses_nothing() -> Result<()> {
    const MESSAGES: u64 = 60;
    for seed in 0..20 {
        let sim = sim(Mode::Stepped);
        let [near, far] = Side::pair(&sim)?;
        for wr_id in 0..MESSAGES {
            near.expect(wr_id)?;
        }
        rt::block_on(&*sim, Order::Seed(seed), async |rt| {
            let times = rt.clone();
            let sends = rt.spawn("sends", async move {
                for wr_id in 0..MESSAGES {
                    far.send(wr_id)?;
                    times.sleep(micros(wr_id % 4)).await;
                }
                Ok::<_, Error>(far)
            });
            let (mut next, mut losses) = (0, 0);
            while next < MESSAGES {
                let Some(found) = rt.timeout(micros(1), near.cq.next()).await else {
                    losses += 1;
                    continue;
                };
                for wc in found? {
                    assert_eq!(wc.wr_id, next, "seed {seed}");
                    next += 1;
                }
            }
            assert!(losses > 10, "{losses}");
            sends.await.map(drop)
        })?;
    }
    Ok(())
}

/// Notes that it is dropped.
struct Dropped(Rc<Cell<bool>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

/// A task that waits, one that has not begun, one that ends itself, and those that are left when
/// the run ends: the future of each is dropped, and with it all that it has.
#[test]
fn a_task_that_is_aborted_or_left_is_dropped() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let [near, far] = Side::pair(&sim)?;
    let drops = [(); 4].map(|()| Rc::new(Cell::new(false)));
    let [waiting, fresh, own, left] = drops.each_ref().map(|drop| Dropped(drop.clone()));
    rt::block_on(&*sim, Order::Fifo, async |rt| {
        let task = rt.spawn("waiting", async move {
            let _dropped = waiting;
            far.cq.next().await.map(drop)
        });
        rt.yield_now().await;
        assert_eq!(sim.stalled_tasks().len(), 1);
        task.abort();
        assert!(drops[0].get());
        let live = sim.live(near.cq.context().handle())?;
        assert_eq!(live.qps, 1, "that of the task is destroyed");

        let task = rt.spawn("fresh", async move { drop(fresh) });
        task.abort();
        assert!(drops[1].get());

        let itself = Rc::new(RefCell::new(None));
        let handle = itself.clone();
        let task = rt.spawn("own", async move {
            let _dropped = own;
            let task: rt::Task<'_, ()> = handle.take().expect("it is set");
            task.abort();
            pending::<()>().await;
        });
        *itself.borrow_mut() = Some(task);
        rt.sleep(micros(1)).await;
        assert!(drops[2].get());

        let _left = rt.spawn("left", async move {
            let _dropped = left;
            pending::<()>().await;
        });
        rt.yield_now().await;
        assert!(!drops[3].get());
        Ok(())
    })?;
    assert!(drops[3].get());
    Ok(())
}

/// Its device takes a message. A timeout that ends in between is over when the task is resumed.
#[test]
fn a_task_that_is_paused_does_nothing_while_its_device_goes_on() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let [near, far] = Side::pair(&sim)?;
    rt::block_on(&*sim, Order::Fifo, async |rt| {
        far.expect(7)?;
        let of_task = rt.clone();
        let task = rt.spawn("server", async move {
            let late = of_task.timeout(micros(100), pending::<()>()).await;
            assert_eq!(late, None);
            Ok::<_, Error>((of_task.now(), far.receive().await?))
        });
        rt.sleep(micros(1)).await;
        task.pause();
        near.send(1)?;
        rt.sleep(Duration::from_secs(1)).await;
        let sent = near.cq.next().await?.next().expect("there is one");
        assert_eq!(sent.status, WcStatus::Success);
        task.resume();
        assert_eq!(task.await?, (Duration::from_secs(1) + micros(1), 7));
        Ok(())
    })
}

#[test]
fn a_run_that_waits_for_a_paused_task_ends_with_an_error() {
    let sim = sim(Mode::Stepped);
    let error = rt::block_on(&*sim, Order::Fifo, async |rt| {
        let of_task = rt.clone();
        let task = rt.spawn("server", async move { of_task.sleep(micros(5)).await });
        rt.yield_now().await;
        task.pause();
        task.pause();
        rt.sleep(micros(50)).await;
        task.await;
        Ok(())
    });
    let text = stall(error);
    assert!(text.contains("server, since 0ns: it is paused"), "{text}");
}

#[test]
fn a_panic_of_a_task_ends_the_run_with_its_name() {
    let sim = sim(Mode::Stepped);
    let run = || {
        rt::block_on(&*sim, Order::Fifo, async |rt| {
            let times = rt.clone();
            let _task = rt.spawn("reader", async move {
                times.sleep(micros(3)).await;
                panic!("no message {}", 7);
            });
            pending::<Result<()>>().await
        })
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    let text = panic.downcast_ref::<String>().map(String::as_str);
    assert_eq!(text, Some("task reader panicked at 3µs: no message 7"));
    assert!(
        rt::block_on(&*sim, Order::Fifo, async |_| Ok(())).is_ok(),
        "the clock is free"
    );
}

/// In a run neither polls nor waits move the clock, whatever they are of.
#[test]
fn a_task_cannot_move_the_clock_by_a_call() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let [near, far] = Side::pair(&sim)?;
    let cm = Cm::new(sim.clone())?;
    let listener = Listener::bind(&cm, PortSpace::Tcp, "10.0.0.1:0".parse().unwrap())?;
    let context = near.cq.context();
    far.expect(0)?;
    near.send(0)?;
    type Call<'c> = &'c dyn Fn(Wait) -> Result<bool>;
    let waits: [(&str, Call<'_>); 4] = [
        ("Cq::next", &|wait| Ok(near.cq.wait(wait)?.is_some())),
        ("next_event", &|wait| {
            Ok(near.channel.get_event(wait)?.is_some())
        }),
        ("next_async_event", &|wait| {
            Ok(context.get_async_event(wait)?.is_some())
        }),
        ("next_request", &|wait| {
            Ok(listener.get_request(wait)?.is_some())
        }),
    ];
    rt::block_on(&*sim, Order::Fifo, async |rt| {
        for (future, call) in waits {
            for wait in [Wait::Forever, Wait::For(micros(9))] {
                let error = call(wait).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Usage);
                assert!(error.to_string().contains(future), "{error}");
            }
            assert_eq!(call(Wait::Poll), Ok(false));
        }
        let mut wc = [Default::default()];
        for _ in 0..100 {
            assert_eq!(far.cq.poll_into(&mut wc)?, 0);
        }
        assert_eq!(rt.now(), Duration::ZERO);
        let inner = rt::block_on(&*sim, Order::Fifo, async |_| Ok(()));
        assert_eq!(inner.unwrap_err().kind(), ErrorKind::Usage);
        Ok(())
    })?;
    assert!(
        far.cq.wait(Wait::Forever)?.is_some(),
        "after the run it waits again"
    );
    assert_eq!(sim.now(), micros(1));
    for mode in [Mode::Inline, Mode::RealTime] {
        let sim = Sim::new(SimConfig::new().mode(mode));
        let refused = rt::block_on(&sim, Order::Fifo, async |_| Ok(())).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotSupported, "{mode:?}");
    }
    Ok(())
}

/// How a task spins: by the future of the executor, or by that of another one, which wakes itself.
async fn spin(rt: &Executor<'_>, by_itself: bool) {
    if !by_itself {
        return rt.yield_now().await;
    }
    let mut has_yielded = false;
    poll_fn(|context| {
        context.waker().wake_by_ref();
        let polled = if has_yielded {
            Poll::Ready(())
        } else {
            Poll::Pending
        };
        has_yielded = true;
        polled
    })
    .await;
}

async fn spin_for(rt: &Executor<'_>, cq: &Cq, by_itself: bool) -> Result<Wc> {
    loop {
        if let Some(completion) = cq.poll()?.next() {
            return Ok(completion.wc);
        }
        spin(rt, by_itself).await;
    }
}

/// A task that polls and yields sees what comes when it comes, and its turns let neither a short
/// time-out of another one pass, nor hold back a long one.
#[test]
fn tasks_that_spin_take_a_microsecond_for_each_turn() -> Result<()> {
    for by_itself in [false, true] {
        let sim = sim(Mode::Stepped);
        let [near, far] = Side::pair(&sim)?;
        far.expect(7)?;
        near.send(0)?;
        rt::block_on(&*sim, Order::Fifo, async |rt| {
            assert_eq!(spin_for(&rt, &far.cq, by_itself).await?.wr_id, 7);
            assert_eq!(rt.now(), micros(1));
            near.cq.next().await?.for_each(drop);
            let start = rt.now();
            let patient = rt.timeout(Duration::from_millis(5), pending::<()>());
            let patient = rt.spawn("patient", patient);
            for _ in 0..20 {
                spin(&rt, by_itself).await;
            }
            assert_eq!(rt.now(), start + micros(20));
            assert!(patient.await.is_none());
            assert_eq!(rt.now(), start + Duration::from_millis(5));

            sim.inject(Fault::drop(PacketFilter::EVERY))?;
            near.send(1)?;
            let failed = spin_for(&rt, &near.cq, by_itself).await?;
            assert_eq!(failed.status, WcStatus::RetryExcErr);
            Ok(())
        })?;
        let text = stall(rt::block_on(&*sim, Order::Seed(1), async |rt| {
            let naps = rt.clone();
            let _naps = rt.spawn("naps", async move {
                loop {
                    naps.sleep(micros(100)).await;
                }
            });
            spin_for(&rt, &far.cq, by_itself).await
        }));
        assert!(text.contains("do so again and again"), "{text}");
        assert!(text.contains("\n  main, since "), "{text}");
    }
    Ok(())
}

/// An endless retry ends at the horizon.
#[test]
fn a_run_in_which_only_timers_fire_ends() -> Result<()> {
    let sim = Arc::new(Sim::new(SimConfig::new().horizon(Duration::from_secs(3))));
    let [near, _far] = Side::pair(&sim)?;
    // There is no receive, and `rnr_retry` 7 has no end.
    near.send(0)?;
    let text = stall(rt::block_on(&*sim, Order::Fifo, async |rt| {
        rt.sleep(Duration::from_secs(10)).await;
        near.cq.next().await.map(drop)
    }));
    assert!(text.contains("the horizon is reached"), "{text}");
    assert!(
        text.contains("main, since 10s: an event on channel#0 of sim0"),
        "{text}"
    );
    Ok(())
}

/// CM-29: the first request is lost, and sent again while both sides wait.
#[test]
fn client_and_server_meet_by_rdma_cm() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let cm = Cm::new(sim.clone())?;
    let address = "10.0.1.1:7471".parse().unwrap();
    let listener = Listener::bind(&cm, PortSpace::Tcp, address)?;
    let requests = PacketFilter::EVERY.cm(CmMessage::Req);
    let lost = sim.inject(Fault::drop(requests).nth(1))?;
    let side = |pd: &verbs_api::owned::Pd| {
        let channel = pd.context().create_comp_channel()?;
        pd.context().cq(4).channel(&channel).create()
    };
    rt::block_on(&*sim, Order::Seed(3), async |rt| {
        let server = rt.spawn("server", async move {
            let request = listener.next_request().await?;
            let pd = request.context()?.alloc_pd()?;
            let cq = side(&pd)?;
            let _qp = pd.qp(QpType::Rc, &cq, &cq).create_for(&request)?;
            let connection = request.accept(&ConnParam::new())?;
            connection.until_established().await?;
            connection.until_disconnected().await?;
            connection.disconnect()
        });
        let mut resolving = cm.route(PortSpace::Tcp, address).resolve()?;
        let route = resolving.until_resolved().await?;
        let pd = route.context()?.alloc_pd()?;
        let cq = side(&pd)?;
        let _qp = pd.qp(QpType::Rc, &cq, &cq).create_for(&route)?;
        let connection = route.connect(&ConnParam::new())?;
        connection.until_established().await?;
        assert!(
            rt.now() > Duration::from_secs(1),
            "after the second request"
        );
        connection.disconnect()?;
        server.await
    })?;
    assert_eq!(sim.fired(lost), Ok(1));
    Ok(())
}

/// A future of the simulation works together with others, here in a join by hand: each is polled
/// whenever one of them is woken.
#[test]
fn futures_of_several_sources_share_a_task() -> Result<()> {
    let sim = sim(Mode::Stepped);
    let [near, far] = Side::pair(&sim)?;
    near.expect(1)?;
    far.expect(2)?;
    let got = rt::block_on(&*sim, Order::Fifo, async |rt| {
        near.send(0)?;
        far.send(0)?;
        let (mut one, mut other) = (pin!(near.receive()), pin!(far.receive()));
        let mut sleep = pin!(rt.sleep(micros(50)));
        let mut got = [None, None];
        poll_fn(|context| {
            let [first, second] = &mut got;
            if first.is_none() {
                *first = ready(one.as_mut().poll(context));
            }
            if second.is_none() {
                *second = ready(other.as_mut().poll(context));
            }
            sleep.as_mut().poll(context)
        })
        .await;
        Ok(got)
    })?;
    assert_eq!(got, [Some(Ok(1)), Some(Ok(2))]);
    Ok(())
}

/// Nothing can have arrived without a wake-up.
#[test]
fn a_future_that_is_polled_for_another_makes_no_call() -> Result<()> {
    let sim = Arc::new(Sim::new(SimConfig::new().trace(true)));
    let [near, far] = Side::pair(&sim)?;
    near.expect(1)?;
    rt::block_on(&*sim, Order::Fifo, async |rt| {
        let mut wait = pin!(near.receive());
        let mut calls = Vec::new();
        poll_fn(|context| {
            for _ in 0..3 {
                assert_eq!(wait.as_mut().poll(context), Poll::Pending);
                calls.push(sim.trace().len());
            }
            Poll::Ready(())
        })
        .await;
        assert_eq!(calls, [calls[0]; 3]);
        far.send(0)?;
        assert_eq!(rt.timeout(micros(50), wait).await, Some(Ok(1)));
        Ok(())
    })
}

fn ready<T>(poll: Poll<T>) -> Option<T> {
    match poll {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
