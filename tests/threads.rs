//! Real threads, in inline mode: each event and each completion goes to one thread, none is lost.

mod common;

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;

use common::{End, checked, drain, pair};
use crossbeam::channel::{self, RecvTimeoutError};
use verbs_api::lab::{ArmState, LostWakeup, TraceEvent};
use verbs_api::{
    Arm, Cause, Cq, CqInit, Error, ErrorKind, Qp, QpType, RcParams, SendWr, Verbs, Wait, Wc,
};
use verbs_sim::{Mode, Sim, SimConfig};

/// How long a test waits before it says that something hangs.
const WATCH: Duration = Duration::from_secs(60);

fn inline() -> SimConfig {
    SimConfig::new().mode(Mode::Inline)
}

/// Runs `body`. If that takes too long all waits are ended, so that a hang becomes a failure.
fn watched(sim: &dyn Verbs, body: impl FnOnce()) {
    let (done, watch) = channel::bounded::<()>(0);
    thread::scope(|scope| {
        scope.spawn(move || {
            if watch.recv_timeout(WATCH) == Err(RecvTimeoutError::Timeout) {
                sim.lab().unwrap().close();
            }
        });
        body();
        drop(done);
    });
}

/// CHAN-13, CHAN-25, CQ-ARM-31, CQ-ARM-37: eight threads wait on one channel of many CQs and go
/// through the loop of get event, acknowledge, arm, poll until empty. Each event goes to one of
/// them, each completion is seen once, and in the end no CQ holds any.
#[test]
fn waiters_on_one_channel_lose_nothing_and_get_nothing_twice() {
    const WAITERS: usize = 8;
    const PRODUCERS: u64 = 4;
    const CQS_EACH: u64 = 4;
    const MESSAGES: u64 = 200;
    const TOTAL: u64 = PRODUCERS * CQS_EACH * MESSAGES;

    let sim = checked(inline().trace(true));
    let near = End::open(&sim, "sim0", 1, 64);
    let far = End::open(&sim, "sim1", 64, 64);
    let senders: Vec<Vec<Sender>> = (0..PRODUCERS)
        .map(|producer| {
            let sender = |i| Sender::new(&near, &far, producer * CQS_EACH + i, MESSAGES);
            (0..CQS_EACH).map(sender).collect()
        })
        .collect();
    let seen: Vec<AtomicU64> = (0..TOTAL).map(|_| AtomicU64::new(0)).collect();
    let (polled, events) = (AtomicU64::new(0), AtomicU64::new(0));
    let (all_polled, watch) = channel::unbounded();

    let in_time = thread::scope(|scope| {
        for _ in 0..WAITERS {
            let (seen, polled, events, sim) = (&seen, &polled, &events, &sim);
            let all_polled = all_polled.clone();
            scope.spawn(move || {
                loop {
                    let event = match sim.get_cq_event(near.channel, Wait::Forever) {
                        Ok(event) => event,
                        Err(error) => {
                            assert!(matches!(error.cause(), Cause::LostWakeup(_)), "{error}");
                            return;
                        }
                    };
                    events.fetch_add(1, Ordering::Relaxed);
                    sim.ack_cq_events(event.cq, 1).unwrap();
                    sim.req_notify_cq(event.cq, Arm::NEXT).unwrap();
                    for wc in drain(sim, event.cq) {
                        seen[wc.wr_id as usize].fetch_add(1, Ordering::Relaxed);
                        if polled.fetch_add(1, Ordering::Relaxed) + 1 == TOTAL {
                            all_polled.send(()).unwrap();
                        }
                    }
                }
            });
        }
        for of_one in &senders {
            scope.spawn(move || {
                for _ in 0..MESSAGES {
                    for sender in of_one {
                        far.post(sender.qp, SendWr::send(0, &[]).unsignaled());
                    }
                }
            });
        }
        let in_time = watch.recv_timeout(WATCH);
        sim.lab().unwrap().close();
        in_time
    });

    assert_eq!(
        polled.into_inner(),
        TOTAL,
        "waiters were in time: {in_time:?}"
    );
    assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    in_time.expect("a wake-up was lost");
    let queued = sim.lab().unwrap().trace();
    let is_event = |event: &TraceEvent| matches!(event, TraceEvent::CqEvent { .. });
    let queued = queued.iter().filter(|record| is_event(&record.event));
    assert_eq!(events.into_inner(), queued.count() as u64);
    let report = lost_wakeup(&sim, &near);
    for cq in report.cqs.iter().filter(|report| report.cq != near.cq) {
        assert_eq!((cq.unpolled, cq.armed), (0, ArmState::Next), "{cq}");
    }
}

/// A queue pair that sends to one on an armed CQ of its own, which has receives for all.
struct Sender {
    qp: Qp,
}

impl Sender {
    fn new(near: &End<'_>, far: &End<'_>, number: u64, messages: u64) -> Self {
        let init = CqInit::new(messages as i32).channel(near.channel);
        let cq = near.verbs.create_cq(near.context, &init).unwrap();
        let (receiver, qp) = pair(
            (&End { cq, ..*near }, far),
            QpType::Rc,
            messages as u32,
            &RcParams::default(),
        );
        for message in 0..messages {
            near.recv(receiver, number * messages + message, 0, 0);
        }
        near.verbs.req_notify_cq(cq, Arm::NEXT).unwrap();
        Self { qp }
    }
}

/// What a thread learns that waits when no more work will come.
fn lost_wakeup(sim: &dyn Verbs, end: &End<'_>) -> LostWakeup {
    let error = sim.get_cq_event(end.channel, Wait::Forever).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stalled);
    match error.cause() {
        Cause::LostWakeup(lost) => lost.as_ref().clone(),
        other => panic!("{other}"),
    }
}

/// `close` ends a wait that has begun as it ends one that begins later.
#[test]
fn close_wakes_every_waiter() {
    let sim = checked(inline());
    let near = End::open(&sim, "sim0", 1, 64);
    let begin = Barrier::new(9);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                begin.wait();
                let lost = lost_wakeup(&sim, &near);
                assert_eq!((lost.channel, lost.cqs.len()), (near.channel, 1));
            });
        }
        begin.wait();
        sim.lab().unwrap().close();
    });
}

/// SQ-11, CQ-POLL-05: two threads post on one queue pair. Each work request completes once, and
/// those of one thread in the order in which it posted them, on both sides.
#[test]
fn posts_of_two_threads_on_one_queue_pair_keep_the_order_of_each() {
    const EACH: u32 = 2000;
    let sim = checked(inline());
    let near = End::open(&sim, "sim0", 2 * EACH as i32, 64);
    let far = End::open(&sim, "sim1", 2 * EACH as i32, 64);
    let params = RcParams::default();
    let (qp, peer) = pair((&near, &far), QpType::Rc, 2 * EACH, &params);
    for _ in 0..2 * EACH {
        far.recv(peer, 0, 0, 0);
    }
    thread::scope(|scope| {
        for thread in 0..2_u8 {
            scope.spawn(move || {
                for i in 0..EACH {
                    let number = u32::from(thread) << 24 | i;
                    let imm = number.to_be_bytes();
                    near.post(qp, SendWr::send_with_imm(number.into(), &[], imm));
                }
            });
        }
    });
    let sent: Vec<u32> = near.drain().iter().map(|wc| wc.wr_id as u32).collect();
    let received = far.drain();
    let received: Vec<u32> = received
        .iter()
        .map(|wc| u32::from_be_bytes(wc.imm_data))
        .collect();
    assert_eq!(sent, received, "one order at both ends");
    for thread in 0..2 {
        let of_thread = sent.iter().filter(|number| *number >> 24 == thread);
        let expected = (0..EACH).map(|i| thread << 24 | i);
        assert!(of_thread.copied().eq(expected), "thread {thread}");
    }
}

/// Both ends of several connections post at the same time, so that packets cross: nothing is lost,
/// nothing blocks.
#[test]
fn packets_that_cross_all_arrive() {
    const EACH: u32 = 500;
    const PAIRS: usize = 4;
    let sim = checked(inline());
    let cqe = 2 * PAIRS as i32 * EACH as i32;
    let ends = [
        End::open(&sim, "sim0", cqe, 64),
        End::open(&sim, "sim1", cqe, 64),
    ];
    let params = RcParams::default();
    let pairs: Vec<(Qp, Qp)> = (0..PAIRS)
        .map(|_| pair((&ends[0], &ends[1]), QpType::Rc, EACH, &params))
        .collect();
    for (a, b) in &pairs {
        for wr_id in 0..EACH.into() {
            ends[0].recv(*a, wr_id, 0, 8);
            ends[1].recv(*b, wr_id, 0, 8);
        }
    }
    thread::scope(|scope| {
        for (end, qp) in pairs
            .iter()
            .flat_map(|(a, b)| [(ends[0], *a), (ends[1], *b)])
        {
            scope.spawn(move || {
                for wr_id in 0..EACH.into() {
                    end.send(qp, wr_id, 8, 8);
                }
            });
        }
    });
    for end in &ends {
        let mut of_queue: BTreeMap<(u32, bool), Vec<u64>> = BTreeMap::new();
        for wc in end.drain() {
            let queue = (wc.qp_num, wc.opcode.is_recv());
            of_queue.entry(queue).or_default().push(wc.wr_id);
        }
        assert_eq!(of_queue.len(), 2 * PAIRS);
        assert!(
            of_queue
                .values()
                .all(|ids| ids.iter().copied().eq(0..EACH.into()))
        );
    }
}

/// CHAN-13: an event wakes the thread that waits for it, even if other threads wait on the device.
#[test]
fn an_event_wakes_the_thread_that_waits_for_it() {
    const ROUNDS: u32 = 1000;
    let sim = checked(inline());
    let near = End::open(&sim, "sim0", 1, 64);
    let far = End::open(&sim, "sim1", 1, 64);
    let quiet = End::open(&sim, "sim0", 1, 64);
    let (qp, peer) = pair((&near, &far), QpType::Rc, ROUNDS, &RcParams::default());
    for _ in 0..ROUNDS {
        near.recv(qp, 0, 0, 0);
    }
    let (armed, when_armed) = channel::unbounded();
    let sim = &sim;
    let run = move || {
        thread::scope(|scope| {
            scope.spawn(|| lost_wakeup(sim, &quiet));
            scope.spawn(|| {
                sim.get_async_event(quiet.context, Wait::Forever)
                    .unwrap_err()
            });
            let waiter = scope.spawn(move || {
                for _ in 0..ROUNDS {
                    sim.req_notify_cq(near.cq, Arm::NEXT).unwrap();
                    armed.send(()).unwrap();
                    sim.get_cq_event(near.channel, Wait::Forever).unwrap();
                    sim.ack_cq_events(near.cq, 1).unwrap();
                    assert_eq!(near.drain().len(), 1);
                }
            });
            while when_armed.recv().is_ok() {
                far.post(peer, SendWr::send(0, &[]).unsignaled());
            }
            let waited = waiter.join();
            sim.lab().unwrap().close();
            waited.unwrap();
        });
    };
    watched(sim, run);
}

/// CHAN-35: destroying a CQ waits until another thread has acknowledged what was read.
#[test]
fn destroy_waits_for_an_acknowledgement_of_another_thread() {
    for _ in 0..100 {
        let sim = checked(inline());
        let near = End::open(&sim, "sim0", 1, 64);
        let far = End::open(&sim, "sim1", 1, 64);
        let (qp, peer) = pair((&near, &far), QpType::Rc, 1, &RcParams::default());
        sim.req_notify_cq(near.cq, Arm::NEXT).unwrap();
        let remote = far.mem.remote(0);
        near.post(qp, SendWr::rdma_write(0, &[near.mem.sge(0, 8)], remote));
        let event = sim.get_cq_event(near.channel, Wait::Forever).unwrap();
        for qp in [qp, peer] {
            sim.destroy_qp(qp, Wait::Forever).unwrap();
        }
        let acknowledged = AtomicBool::new(false);
        let run = || {
            thread::scope(|scope| {
                scope.spawn(|| {
                    sim.destroy_cq(near.cq, Wait::Forever).unwrap();
                    assert!(acknowledged.load(Ordering::SeqCst), "it did not wait");
                });
                let early = sim.destroy_cq(near.cq, Wait::Poll).unwrap_err();
                assert_eq!(early.kind(), ErrorKind::WouldBlock);
                acknowledged.store(true, Ordering::SeqCst);
                sim.ack_cq_events(event.cq, 1).unwrap();
            })
        };
        watched(&sim, run);
        let gone = sim.query_cq(near.cq).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::Invalid);
        sim.destroy_comp_channel(near.channel).unwrap();
    }
}

/// A wait for a time ends after that time of the machine, whatever it is for, though nothing
/// happens; the clock of the simulation does not move by it.
#[test]
fn a_wait_for_a_time_ends_by_the_clock_of_the_machine() {
    const TIME: Duration = Duration::from_millis(20);
    let sim = checked(inline());
    let near = End::open(&sim, "sim0", 1, 64);
    let far = End::open(&sim, "sim1", 1, 64);
    let (qp, _) = pair((&near, &far), QpType::Rc, 1, &RcParams::default());
    sim.req_notify_cq(near.cq, Arm::NEXT).unwrap();
    let remote = far.mem.remote(0);
    near.post(qp, SendWr::rdma_write(0, &[near.mem.sge(0, 8)], remote));
    let event = sim.get_cq_event(near.channel, Wait::Poll).unwrap();
    sim.destroy_qp(qp, Wait::Poll).unwrap();
    let wait = Wait::For(TIME);
    let get_event = || sim.get_cq_event(near.channel, wait).map(drop);
    let get_async = || sim.get_async_event(near.context, wait).map(drop);
    let destroy = || sim.destroy_cq(event.cq, wait);
    let ends_in_time = |rule: &str, wait: &dyn Fn() -> Result<(), Error>| {
        let before = sim.lab().unwrap().now();
        let start = Instant::now();
        assert_eq!(wait().unwrap_err().kind(), ErrorKind::TimedOut, "{rule}");
        assert!(start.elapsed() >= TIME, "{rule}");
        assert_eq!(sim.lab().unwrap().now(), before, "{rule}");
    };
    watched(&sim, || {
        ends_in_time("CHAN-13", &get_event);
        ends_in_time("ASYNC-01", &get_async);
        ends_in_time("CHAN-35", &destroy);
    });
    sim.ack_cq_events(event.cq, 1).unwrap();
}

/// CQ-POLL-01, CQ-POLL-05: threads that poll one CQ share its completions; each gets those it gets
/// in order.
#[test]
fn polling_threads_share_the_completions() {
    const TOTAL: u64 = 4096;
    let sim = checked(inline());
    let near = End::open(&sim, "sim0", TOTAL as i32, 64);
    let far = End::open(&sim, "sim1", 1, 64);
    let (qp, _) = pair(
        (&near, &far),
        QpType::Rc,
        TOTAL as u32,
        &RcParams::default(),
    );
    let begin = Barrier::new(8);
    let shares: Mutex<Vec<Vec<u64>>> = Mutex::new(Vec::new());
    for wr_id in 0..TOTAL {
        near.post(qp, SendWr::rdma_write(wr_id, &[], far.mem.remote(0)));
    }
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                begin.wait();
                let share = poll_one_by_one(&sim, near.cq);
                shares.lock().unwrap().push(share);
            });
        }
    });
    let shares = shares.into_inner().unwrap();
    assert!(shares.iter().all(|share| share.is_sorted()));
    let mut all: Vec<u64> = shares.into_iter().flatten().collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..TOTAL));
}

fn poll_one_by_one(verbs: &dyn Verbs, cq: Cq) -> Vec<u64> {
    let mut share = Vec::new();
    let mut wc = [Wc::default()];
    while verbs.poll_cq(cq, &mut wc).unwrap() == 1 {
        share.push(wc[0].wr_id);
    }
    share
}

/// Threads open, connect, work and clean up each on its own, on the same two nodes.
#[test]
fn threads_with_contexts_of_their_own_do_not_meet() {
    let sim = checked(inline());
    let run = || {
        thread::scope(|scope| {
            for thread in 0..8_u8 {
                let sim = &sim;
                scope.spawn(move || {
                    for _ in 0..50 {
                        let near = End::open(sim, "sim0", 16, 64);
                        let far = End::open(sim, "sim1", 16, 64);
                        let (a, b) = pair((&near, &far), QpType::Rc, 4, &RcParams::default());
                        near.write(0, &[thread; 8]);
                        far.recv(b, 1, 0, 8);
                        for end in [&near, &far] {
                            sim.req_notify_cq(end.cq, Arm::NEXT).unwrap();
                        }
                        near.send(a, 1, 0, 8);
                        for end in [&near, &far] {
                            // A post is done when it returns, whatever other threads do.
                            let event = sim.get_cq_event(end.channel, Wait::Poll).unwrap();
                            assert_eq!(event.cq, end.cq);
                            assert_eq!(end.drain().len(), 1);
                        }
                        assert_eq!(far.read(0, 8), [thread; 8]);
                        sim.close_device(near.context).unwrap();
                        sim.close_device(far.context).unwrap();
                    }
                });
            }
        })
    };
    watched(&sim, run);
    let context = sim.open_device("sim0").unwrap();
    let live = sim.lab().unwrap().live(context).unwrap();
    assert_eq!((live.contexts, live.qps, live.cqs, live.mrs), (1, 0, 0, 0));
}

/// ASYNC-01: a thread that waits for events of a context does not wait on when it is closed. In
/// some rounds it waits by then, in others it finds the context closed.
#[test]
fn wait_for_events_ends_with_the_context() {
    const ROUNDS: usize = 200;
    let sim = Sim::new(inline());
    let start = &Barrier::new(2);
    watched(&sim, || {
        for _ in 0..ROUNDS {
            let context = sim.open_device("sim0").unwrap();
            thread::scope(|scope| {
                let waits = scope.spawn(|| {
                    start.wait();
                    sim.get_async_event(context, Wait::Forever)
                });
                start.wait();
                sim.close_device(context).unwrap();
                let refused = waits.join().unwrap().unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
            });
        }
    });
}
