//! Polling: how many, in which order, once each.

mod between;
mod threads;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use verbs_api::behavior::{Overrun, PollAfterOverrun};
use verbs_api::{Cq, CqInit, ErrorKind, QpCap, QpType, Wc, WcStatus};

use crate::cq_ovr::{Queue, SmallCq};
use crate::failure::{check, check_eq};
use crate::{OfRule, PairOptions, Result, Scenario, Setup, expect_err, wr_ids};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    at_most_as_many_as_asked_oldest_first,
    empty_cq_gives_zero,
    overrun_cq_gives_a_failure_after_the_last,
    each_completion_comes_once,
    threads_share_the_completions,
    no_entries_gives_zero_and_changes_nothing,
    completions_come_in_posting_order,
    mixed_sends_complete_in_posting_order,
    flushed_work_completes_in_posting_order,
    queues_that_share_a_cq_keep_their_own_order,
    array_is_not_written_beyond_its_end,
    only_polling_makes_room,
    full_cq_raises_an_error_or_loses_nothing,
    data_is_there_with_its_completion,
    between::answer_may_complete_before_the_send_it_answers,
    between::sends_of_two_qps_may_complete_in_another_order_than_posted,
    threads::no_other_handle_is_taken_for_an_empty_cq,
    threads::overrun_cq_gives_the_same_whoever_polls,
    threads::dead_device_is_told_by_a_poll_of_an_empty_cq,
    threads::iterated_cq_is_refused_though_it_has_nothing,
];

scenario!(at_most_as_many_as_asked_oldest_first: "CQ-POLL-01", "CQ-POLL-02");
fn at_most_as_many_as_asked_oldest_first(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let cq = pair.b.recv_cq;
    for (present, room) in [(1, 1), (5, 1), (5, 4), (5, 5), (5, 6), (5, 64)] {
        pair.deliver(0..present)?;
        setup.settle()?;
        let mut left = (0..present).collect::<Vec<_>>();
        while !left.is_empty() {
            let expected = left.drain(..left.len().min(room)).collect::<Vec<_>>();
            let got = wr_ids(&poll_up_to(setup, cq, room)?);
            check_eq!("CQ-POLL-01", got, expected, format!("a poll of {room}"));
        }
        let more = poll_up_to(setup, cq, room)?;
        check_eq!("CQ-POLL-02", more.len(), 0, "a poll of the emptied CQ");
    }
    Ok(())
}

/// One poll for at most `room` completions.
fn poll_up_to(setup: &Setup<'_>, cq: Cq, room: usize) -> Result<Vec<Wc>> {
    let mut wc = vec![Wc::default(); room];
    let count = setup.poll_cq(cq, &mut wc)?;
    check!(
        "CQ-POLL-01",
        count <= room,
        format!("at most {room}"),
        "{count}"
    );
    wc.truncate(count);
    Ok(wc)
}

scenario!(empty_cq_gives_zero: "CQ-POLL-03");
fn empty_cq_gives_zero(setup: &Setup<'_>) -> Result {
    let unused = setup.create_cq(setup.ctx_a(), &CqInit::new(8))?;
    setup.no_completion(unused, "CQ-POLL-03")?;
    let pair = setup.rc_pair()?;
    pair.b.recv(0, 8)?;
    for cq in [pair.a.send_cq, pair.a.recv_cq, pair.b.recv_cq] {
        setup.no_completion(cq, "CQ-POLL-03")?;
    }
    pair.a.send(1, 8)?;
    for cq in [pair.a.send_cq, pair.b.recv_cq] {
        setup.successes(cq, 1)?;
        setup.no_completion(cq, "CQ-POLL-03")?;
    }
    Ok(())
}

scenario!(overrun_cq_gives_a_failure_after_the_last: "CQ-POLL-04", "CQ-POLL-06");
fn overrun_cq_gives_a_failure_after_the_last(setup: &Setup<'_>) -> Result {
    gives_a_failure_after_the_last(setup)
}

fn gives_a_failure_after_the_last(setup: &Setup<'_>) -> Result {
    let behavior = setup.behavior()?;
    let declared = match behavior.overrun {
        Some(Overrun::DropNew) => Some(PollAfterOverrun::Empty),
        _ => behavior.poll_after_overrun,
    };
    for queue in Queue::BOTH {
        let small = SmallCq::new(setup, queue, 4)?;
        small.overrun("CQ-POLL-04")?;
        let (_, first) = small.leftovers()?;
        if first == PollAfterOverrun::Empty && setup.verbs().lab().is_none() {
            // Work is still under way, and its completions have room again.
            setup.poll_all(small.cq)?;
        }
        let (more, again) = small.leftovers()?;
        for seen in [first, again] {
            setup.as_declared("CQ-POLL-04", declared, seen)?;
        }
        check_eq!("CQ-POLL-04", more.len(), 0, "completions after the failure");
        let none = setup.poll_cq(small.cq, &mut []).rule("CQ-POLL-06")?;
        check_eq!("CQ-POLL-06", none, 0, "a poll of no entries");
        if declared == Some(PollAfterOverrun::Error) {
            let failed = setup.poll_cq(small.cq, &mut [Wc::default()]);
            expect_err(failed, ErrorKind::Io, "CQ-POLL-04")?;
        }
    }
    Ok(())
}

scenario!(each_completion_comes_once: "CQ-POLL-05");
fn each_completion_comes_once(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    // Enough rounds for the rings of the default size to wrap.
    for round in 0..16 {
        let expected: Vec<u64> = (round * 10..round * 10 + 10).collect();
        for wr_id in &expected {
            b.recv(*wr_id, 8)?;
            a.send(*wr_id, 8)?;
        }
        for cq in [a.send_cq, b.recv_cq] {
            let got = setup.successes(cq, 10).rule("CQ-POLL-05")?;
            check_eq!("CQ-POLL-05", wr_ids(&got), expected);
        }
    }
    for cq in [a.send_cq, b.recv_cq] {
        setup.no_completion(cq, "CQ-POLL-05")?;
    }
    Ok(())
}

scenario!(threads_share_the_completions: "CQ-POLL-05"; needs THREADS);
fn threads_share_the_completions(setup: &Setup<'_>) -> Result {
    const TOTAL: u64 = 400;
    const THREADS: usize = 4;
    const AT_ONCE: u64 = 4;
    let pair = setup.pair(PairOptions {
        recv_cqe: TOTAL as i32,
        cap: QpCap {
            max_recv_wr: TOTAL as u32,
            ..QpCap::default()
        },
        ..PairOptions::default()
    })?;
    let polled = Mutex::new(Vec::new());
    let is_fed = AtomicBool::new(false);
    let poll_some = || -> Result<Option<()>> {
        let mut wc = [Wc::default(); 3];
        let got = setup.poll_cq(pair.b.recv_cq, &mut wc)?;
        let mut polled = polled.lock().expect("no poller panics");
        polled.extend(wr_ids(&wc[..got]));
        Ok((polled.len() >= TOTAL as usize).then_some(()))
    };
    let poll = || {
        // That may take long, and has waits of its own.
        while !is_fed.load(Ordering::Relaxed) {
            poll_some()?;
            thread::yield_now();
        }
        setup.until("all completions are polled", poll_some)
    };
    let feed = || {
        let mut firsts = (0..TOTAL).step_by(AT_ONCE as usize);
        firsts.try_for_each(|first| pair.deliver(first..first + AT_ONCE))
    };
    thread::scope(|scope| {
        let pollers: Vec<_> = (0..THREADS).map(|_| scope.spawn(poll)).collect();
        let fed = feed();
        is_fed.store(true, Ordering::Relaxed);
        let mut results = pollers
            .into_iter()
            .map(|poller| poller.join().expect("no poller panics"));
        fed.and(results.try_for_each(|result| result.rule("CQ-POLL-05")))
    })?;
    let mut union = polled.into_inner().expect("no poller panics");
    union.sort_unstable();
    check_eq!("CQ-POLL-05", union, (0..TOTAL).collect::<Vec<_>>());
    setup.no_completion(pair.b.recv_cq, "CQ-POLL-05")
}

scenario!(no_entries_gives_zero_and_changes_nothing: "CQ-POLL-06");
fn no_entries_gives_zero_and_changes_nothing(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let cq = pair.b.recv_cq;
    let poll_none = || setup.poll_cq(cq, &mut []).rule("CQ-POLL-06");
    check_eq!("CQ-POLL-06", poll_none()?, 0, "a poll of the empty CQ");
    pair.deliver(0..3)?;
    check_eq!("CQ-POLL-06", poll_none()?, 0, "a poll of 3 completions");
    let got = setup.successes(cq, 3).rule("CQ-POLL-06")?;
    check_eq!("CQ-POLL-06", wr_ids(&got), [0, 1, 2]);
    Ok(())
}

scenario!(completions_come_in_posting_order: "CQ-POLL-07"; needs RC, UC, UD);
fn completions_come_in_posting_order(setup: &Setup<'_>) -> Result {
    for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud] {
        let pair = setup.pair(PairOptions::of(qp_type))?;
        let (a, b) = (pair.a, pair.b);
        for wr_id in 0..8 {
            b.recv(100 + wr_id, 3000)?;
        }
        // Long and short ones: what is quicker must not overtake.
        for wr_id in 0..8 {
            let len = if wr_id % 2 == 0 { 1000 } else { 1 };
            a.send(wr_id, len)?;
        }
        for (cq, first) in [(a.send_cq, 0), (b.recv_cq, 100)] {
            let got = setup.successes(cq, 8).rule("CQ-POLL-07")?;
            let expected = (first..first + 8).collect::<Vec<_>>();
            check_eq!(
                "CQ-POLL-07",
                wr_ids(&got),
                expected,
                format!("{qp_type} order")
            );
        }
    }
    Ok(())
}

scenario!(mixed_sends_complete_in_posting_order: "CQ-POLL-07"; needs RDMA_READ);
fn mixed_sends_complete_in_posting_order(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    for wr_id in 0..15 {
        match wr_id % 3 {
            0 => a.read(wr_id, 5000)?,
            1 => a.write(wr_id, 8)?,
            _ => {
                b.recv(wr_id, 8)?;
                a.send(wr_id, 8)?;
            }
        }
    }
    let got = wr_ids(&setup.successes(a.send_cq, 15).rule("CQ-POLL-07")?);
    for (wr_id, seen) in (0..15).zip(&got) {
        let expected = format!("wr_id {wr_id} next");
        check!(
            "CQ-POLL-07",
            *seen == wr_id,
            expected,
            "wr_id {seen} in its place: {got:?}"
        );
    }
    let got = setup.successes(b.recv_cq, 5).rule("CQ-POLL-07")?;
    check_eq!("CQ-POLL-07", wr_ids(&got), [2, 5, 8, 11, 14]);
    Ok(())
}

scenario!(flushed_work_completes_in_posting_order: "CQ-POLL-07");
fn flushed_work_completes_in_posting_order(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    for wr_id in 0..8 {
        b.recv(wr_id, 8)?;
    }
    for wr_id in 0..3 {
        pair.a.send(wr_id, 8)?;
    }
    setup.successes(pair.a.send_cq, 3)?;
    setup.to_err(b.qp)?;
    b.recv(8, 8)?;
    let got = setup.poll_all(b.recv_cq)?;
    check_eq!("CQ-POLL-07", wr_ids(&got), (0..9).collect::<Vec<_>>());
    let flushed = got.iter().map(|wc| wc.status == WcStatus::WrFlushErr);
    let expected: Vec<_> = got.iter().map(|wc| wc.wr_id >= 3).collect();
    check_eq!(
        "CQ-POLL-07",
        flushed.collect::<Vec<_>>(),
        expected,
        "flushed"
    );
    Ok(())
}

scenario!(queues_that_share_a_cq_keep_their_own_order: "CQ-POLL-08", "CQ-POLL-07");
fn queues_that_share_a_cq_keep_their_own_order(setup: &Setup<'_>) -> Result {
    let options = PairOptions {
        one_cq: true,
        ..PairOptions::default()
    };
    let first = setup.pair(options)?;
    let second = setup.second_pair(&first, options)?;
    // The first digit tells the queue.
    for i in 0..8 {
        for (pair, a_recv, b_recv) in [(first, 100, 200), (second, 300, 400)] {
            pair.a.recv(a_recv + i, 8)?;
            pair.b.recv(b_recv + i, 8)?;
            pair.a.send(a_recv + 400 + i, 8)?;
            pair.b.send(b_recv + 400 + i, 8)?;
        }
    }
    for (cq, queues) in [
        (first.a.recv_cq, [100, 300, 500, 700]),
        (first.b.recv_cq, [200, 400, 600, 800]),
    ] {
        let got = wr_ids(&setup.successes(cq, 32).rule("CQ-POLL-08")?);
        for queue in queues {
            let of_queue: Vec<_> = got.iter().filter(|id| **id / 100 * 100 == queue).collect();
            let expected: Vec<_> = (queue..queue + 8).collect();
            check_eq!("CQ-POLL-07", of_queue, expected.iter().collect::<Vec<_>>());
        }
        setup.no_completion(cq, "CQ-POLL-08")?;
    }
    Ok(())
}

scenario!(array_is_not_written_beyond_its_end: "CQ-POLL-09");
fn array_is_not_written_beyond_its_end(setup: &Setup<'_>) -> Result {
    let mut canary = Wc::default();
    canary.wr_id = 0xdead_beef_dead_beef;
    canary.vendor_err = 0xdead_beef;
    let pair = setup.rc_pair()?;
    pair.deliver(0..5)?;
    setup.settle()?;
    let mut wc = [canary; 8];
    let got = setup.poll_cq(pair.b.recv_cq, &mut wc[2..5])?;
    check_eq!("CQ-POLL-09", (got, wr_ids(&wc[2..5])), (3, vec![0, 1, 2]));
    let around: Vec<_> = wc[..2].iter().chain(&wc[5..]).copied().collect();
    check_eq!(
        "CQ-POLL-09",
        around,
        [canary; 5],
        "what is around the array"
    );
    Ok(())
}

scenario!(only_polling_makes_room: "CQ-POLL-10");
fn only_polling_makes_room(setup: &Setup<'_>) -> Result {
    let small = SmallCq::new(setup, Queue::Recv, 4)?;
    let cqe = small.cqe()?;
    for _ in 0..10 {
        small.fill(0..cqe)?;
        setup.successes(small.cq, cqe as usize).rule("CQ-POLL-10")?;
    }
    setup.no_async_event(small.end.context, "CQ-POLL-10")?;
    small.overrun("CQ-POLL-10")?;
    Ok(())
}

scenario!(full_cq_raises_an_error_or_loses_nothing: "CQ-POLL-11");
fn full_cq_raises_an_error_or_loses_nothing(setup: &Setup<'_>) -> Result {
    for queue in Queue::BOTH {
        let small = SmallCq::new(setup, queue, 4)?;
        let count = small.too_many()?;
        small.push_all(0..count)?;
        let events = setup.async_events(small.end.context)?;
        let is_told = events.contains(&small.cq_err_event());
        let all = if is_told {
            Ok(Vec::new())
        } else {
            setup.successes(small.cq, count as usize)
        };
        let all = wr_ids(&all.rule("CQ-POLL-11")?);
        let in_order = all.iter().copied().eq(0..count);
        check!("CQ-POLL-11", is_told || in_order, "all of them", "{all:?}");
    }
    Ok(())
}

scenario!(data_is_there_with_its_completion: "CQ-POLL-12"; needs RDMA_READ);
fn data_is_there_with_its_completion(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    for (round, len) in [1, 8, 1024, 1025, 4096, 20_000].into_iter().enumerate() {
        let tag = round as u8 + 1;
        a.fill(tag, len)?;
        b.recv(1, len)?;
        a.send(1, len)?;
        setup.successes(b.recv_cq, 1)?;
        b.expect_data(tag, len, "CQ-POLL-12")?;
        setup.successes(a.send_cq, 1)?;

        b.fill(tag ^ 0x80, len)?;
        a.read(2, len)?;
        setup.successes(a.send_cq, 1)?;
        a.expect_data(tag ^ 0x80, len, "CQ-POLL-12")?;
    }
    Ok(())
}
