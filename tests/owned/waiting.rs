//! Waiting for completions: in the right order, so that none is missed and no thread is woken
//! needlessly.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use verbs_api::lab::Lab;
use verbs_api::owned::{Completions, Cq, Qp};
use verbs_api::{Cause, ErrorKind, QpType, RcParams, Verb, Verbs, Wait};

use crate::setup::{End, Setup, pair, recv, send};

/// The numbers of what was waited for.
fn ids(completions: Option<Completions>) -> Vec<u64> {
    let completions = completions.into_iter().flatten();
    completions.map(|wc| wc.wr_id).collect()
}

/// A CQ of its own at the first end with a queue pair connected to one at the second.
fn connected(ends: &[End; 2], cqe: u32) -> (Cq, Qp, Qp) {
    let cq = ends[0].context.cq(cqe).channel(&ends[0].channel);
    let cq = cq.create().unwrap();
    let qp = ends[0].pd.qp(QpType::Rc, &cq, &cq).max_recv_wr(400);
    let qp = qp.create().unwrap();
    let peer = ends[1].pd.qp(QpType::Rc, &ends[1].cq, &ends[1].cq);
    let peer = peer.max_send_wr(400).create().unwrap();
    qp.connect_rc(&peer, &RcParams::default()).unwrap();
    (cq, qp, peer)
}

/// In any mode a wait for a time, or for none, is over when nothing comes: of a CQ, of a channel,
/// and for asynchronous events.
#[test]
fn waits_for_a_time_end() {
    for setup in [Setup::stepped(), Setup::inline()] {
        let (ends, _qps) = pair(&setup);
        let [
            End {
                context,
                channel,
                cq,
                ..
            },
            _,
        ] = &ends;
        for time in [Wait::For(Duration::from_millis(5)), Wait::Poll] {
            setup.watched(|| {
                assert!(cq.wait(time).unwrap().is_none());
                assert!(channel.wait(time).unwrap().is_none());
                assert!(channel.get_event(time).unwrap().is_none());
                assert!(context.get_async_event(time).unwrap().is_none());
            });
        }
    }
}

/// CQ-ARM-03, CQ-ARM-29: completions that are there make no wait; those that come are waited for;
/// and when nothing is there, the CQ is armed with no event queued, so that the next completion
/// makes one.
#[test]
fn wait_gives_what_is_there_then_what_comes() {
    let setup = Setup::stepped();
    let (ends, [near, far]) = pair(&setup);
    let cq = &ends[0].cq;
    for round in 0..50 {
        let wr_id = 2 * round;
        recv(&near, wr_id);
        recv(&near, wr_id + 1);
        send(&far, 0);
        setup.settle();
        assert_eq!(ids(cq.wait(Wait::Forever).unwrap()), [wr_id]);
        send(&far, 0);
        assert_eq!(ids(cq.wait(Wait::Forever).unwrap()), [wr_id + 1]);
        assert!(cq.wait(Wait::Poll).unwrap().is_none());
        if round % 2 == 0 {
            recv(&near, wr_id);
            send(&far, 0);
            setup.settle();
            let raw = setup.sim.get_cq_event(ends[0].channel.handle(), Wait::Poll);
            assert_eq!(raw.unwrap().cq, cq.handle(), "the channel is readable");
            setup.sim.ack_cq_events(cq.handle(), 1).unwrap();
            assert_eq!(ids(cq.wait(Wait::Poll).unwrap()), [wr_id]);
            // The event was taken behind the layer's back; arming says that there is another.
            cq.req_notify(verbs_api::Arm::NEXT).unwrap();
        }
        ends[1].cq.poll().unwrap().for_each(drop);
        ends[1].cq.poll().unwrap().for_each(drop);
    }
}

/// However many waits end by a poll, at most one event of a CQ is queued. (In stepped mode the poll
/// that finds nothing lets the message arrive: before the arming, or behind that of the last
/// round.)
#[test]
fn waits_that_end_by_a_poll_leave_no_heap_of_events() {
    for setup in [Setup::inline(), Setup::stepped()] {
        let (ends, [near, far]) = pair(&setup);
        let cq = &ends[0].cq;
        assert!(cq.wait(Wait::Poll).unwrap().is_none());
        for wr_id in 0..200 {
            recv(&near, wr_id);
            send(&far, 0);
            assert_eq!(ids(cq.wait(Wait::Forever).unwrap()), [wr_id]);
            setup.settle();
            ends[1].cq.poll().unwrap().for_each(drop);
        }
        let queued = std::iter::from_fn(|| ends[0].channel.get_event(Wait::Poll).unwrap());
        assert!(queued.count() <= 1);
    }
}

/// A CQ that is attached while a thread waits wakes it with its first completion.
#[test]
fn a_thread_that_waits_is_woken_by_a_cq_that_was_attached_later() {
    let setup = Setup::inline();
    setup.watched(|| {
        for _ in 0..100 {
            let ends = [End::open(&setup, "sim0"), End::open(&setup, "sim1")];
            let channel = ends[0].channel.clone();
            let begun = Barrier::new(2);
            thread::scope(|scope| {
                let waiter = scope.spawn(|| {
                    begun.wait();
                    channel.wait(Wait::Forever).map(ids)
                });
                begun.wait();
                thread::yield_now();
                let (_cq, qp, peer) = connected(&ends, 1);
                recv(&qp, 5);
                send(&peer, 0);
                assert_eq!(waiter.join().unwrap(), Ok(vec![5]));
            });
        }
    });
}

/// A wait that cannot end is an error, not a hang; one that makes no sense says why.
#[test]
fn waits_that_cannot_end_are_refused() {
    let setup = Setup::stepped();
    let (ends, _qps) = pair(&setup);
    let cq = &ends[0].cq;
    let error = cq.wait(Wait::Forever).unwrap_err();
    assert!(matches!(error.cause(), Cause::Stall(_)), "{error}");
    let alone = ends[0].context.cq(1).create().unwrap();
    let error = alone.wait(Wait::Forever).unwrap_err();
    assert_eq!(
        (error.verb(), error.kind()),
        (Verb::GetCqEvent, ErrorKind::Invalid)
    );
    let second = ends[0].context.cq(1).channel(&ends[0].channel);
    let second = second.create().unwrap();
    for cq in [cq, &second] {
        let error = cq.wait(Wait::Forever).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    drop(second);
    assert!(cq.wait(Wait::Poll).unwrap().is_none());
}

/// CHAN-06, CHAN-23: CQs of one channel take turns, however busy one is.
#[test]
fn cqs_of_one_channel_take_turns() {
    let setup = Setup::stepped();
    let ends = [End::open(&setup, "sim0"), End::open(&setup, "sim1")];
    let (busy, busy_qp, busy_peer) = connected(&ends, 400);
    let (calm, calm_qp, calm_peer) = connected(&ends, 400);
    for i in 0..300 {
        recv(&busy_qp, i);
        send(&busy_peer, 0);
    }
    recv(&calm_qp, 1000);
    send(&calm_peer, 0);
    setup.settle();
    let channel = &ends[0].channel;
    let mut order = Vec::new();
    let mut all = Vec::new();
    while all.len() < 301 {
        let batch = channel.wait(Wait::Forever).unwrap().unwrap();
        order.push(batch.cq().clone());
        all.extend(batch.map(|wc| wc.wr_id));
    }
    let turn = order.iter().position(|cq| *cq == calm).unwrap();
    assert!(turn <= 1, "the calm one was served in turn {turn}");
    assert!(order.iter().all(|cq| *cq == calm || *cq == busy));
    all.sort_unstable();
    assert!(all.into_iter().eq((0..300).chain([1000])));
}

/// After a wait without result every CQ is armed and no event is queued: the next completion of any
/// of them makes an event, which wakes a watcher of the descriptor.
#[test]
fn a_channel_that_would_block_becomes_readable_with_the_next_completion() {
    let setup = Setup::stepped();
    let ends = [End::open(&setup, "sim0"), End::open(&setup, "sim1")];
    let cqs: Vec<_> = (0..3).map(|_| connected(&ends, 64)).collect();
    let channel = &ends[0].channel;
    let mut got = Vec::new();
    assert!(channel.wait(Wait::Poll).unwrap().is_none());
    for round in 0..60_u64 {
        // As often as not several completions, on one CQ or on two.
        for i in 0..=round % 3 {
            let (_, qp, peer) = &cqs[((round + i * i) % 3) as usize];
            recv(qp, round);
            send(peer, 0);
            if round % 2 == 0 {
                setup.settle();
            }
        }
        setup.settle();
        let event = channel.get_event(Wait::Poll).unwrap();
        drop(event.expect("the channel is readable"));
        while let Some(batch) = channel.wait(Wait::Poll).unwrap() {
            got.extend(batch.map(|wc| wc.wr_id));
        }
        ends[1].cq.poll().unwrap().for_each(drop);
    }
    let expected = (0..60).flat_map(|round| vec![round; (round % 3 + 1) as usize]);
    assert!(got.into_iter().eq(expected));
}

/// CQ-ARM-31: several threads wait on a channel while CQs are added to it; every completion of
/// every CQ comes to one of them.
#[test]
fn threads_that_share_a_channel_miss_no_completion_of_new_cqs_either() {
    const CQS: u64 = 40;
    const EACH: u64 = 40;
    let setup = Setup::inline();
    let ends = [End::open(&setup, "sim0"), End::open(&setup, "sim1")];
    let (sum, count) = (AtomicU64::new(0), AtomicU64::new(0));
    setup.watched(|| {
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while let Ok(Some(batch)) = ends[0].channel.wait(Wait::Forever) {
                        for wc in batch {
                            sum.fetch_add(wc.wr_id, Ordering::Relaxed);
                            if count.fetch_add(1, Ordering::Relaxed) + 1 == CQS * EACH {
                                setup.sim.close();
                            }
                        }
                    }
                });
            }
            // They are kept until the end, so that no completion is discarded.
            let all: Vec<_> = (0..CQS)
                .map(|number| {
                    let (cq, qp, peer) = connected(&ends, 64);
                    for i in 0..EACH {
                        recv(&qp, number * EACH + i);
                        send(&peer, 0);
                        ends[1].cq.poll().unwrap().for_each(drop);
                    }
                    (cq, qp, peer)
                })
                .collect();
            while count.load(Ordering::Relaxed) < CQS * EACH && !setup.is_over() {
                thread::yield_now();
            }
            drop(all);
        });
    });
    let total = CQS * EACH;
    assert_eq!(count.into_inner(), total, "a wake-up was lost");
    assert_eq!(sum.into_inner(), total * (total - 1) / 2);
}

/// Several threads wait for one CQ: none sleeps while completions come.
#[test]
fn threads_that_wait_for_one_cq_get_everything() {
    const TOTAL: u64 = 1000;
    let setup = Setup::inline();
    let (ends, [near, far]) = pair(&setup);
    let count = AtomicU64::new(0);
    setup.watched(|| {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Ok(Some(batch)) = ends[0].cq.wait(Wait::Forever) {
                        let polled = batch.count() as u64;
                        if count.fetch_add(polled, Ordering::Relaxed) + polled == TOTAL {
                            setup.sim.close();
                        }
                    }
                });
            }
            for wr_id in 0..TOTAL {
                recv(&near, wr_id);
                send(&far, 0);
                ends[1].cq.poll().unwrap().for_each(drop);
                while count.load(Ordering::Relaxed) + 8 < wr_id && !setup.is_over() {
                    thread::yield_now();
                }
            }
        });
    });
    assert_eq!(count.into_inner(), TOTAL, "a wake-up was lost");
}
