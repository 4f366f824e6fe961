//! Queue pairs and threads side by side.

use std::thread;

use verbs_api::{QpCap, SendWr};

use crate::failure::{check_eq, in_case};
use crate::{OfRule, Pair, PairOptions, Result, Setup, wr_ids};

scenario!(posts_of_threads_all_complete_each_thread_in_its_order: "SQ-25"; needs THREADS);
/// Each thread posts writes with numbers of its own; one list of two at a time.
fn posts_of_threads_all_complete_each_thread_in_its_order(setup: &Setup<'_>) -> Result {
    const THREADS: u64 = 4;
    const EACH: u64 = 32;
    let pair = setup.pair(PairOptions {
        send_cqe: 256,
        cap: QpCap {
            max_send_wr: 128,
            ..QpCap::default()
        },
        ..PairOptions::default()
    })?;
    let a = &pair.a;
    let post_all = |thread: u64| -> Result {
        let data = [a.sge(thread * 64, 64)];
        for i in (0..EACH).step_by(2) {
            let work = |i| SendWr::rdma_write(thread * 1000 + i, &data, a.remote());
            setup
                .post_send(a.qp, &[work(i), work(i + 1)])
                .rule("SQ-25")?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || post_all(thread)))
            .collect();
        for thread in threads {
            thread.join().expect("no panic")?;
        }
        Ok::<_, crate::Failure>(())
    })?;
    let count = (THREADS * EACH) as usize;
    let seen = wr_ids(&setup.successes(a.send_cq, count).rule("SQ-25")?);
    for thread in 0..THREADS {
        let of_thread: Vec<_> = seen.iter().filter(|id| **id / 1000 == thread).collect();
        let expected: Vec<_> = (0..EACH).map(|i| thread * 1000 + i).collect();
        let expected: Vec<_> = expected.iter().collect();
        check_eq!("SQ-25", of_thread, expected, format!("thread {thread}"));
    }
    setup.no_completion(a.send_cq, "SQ-25")
}

scenario!(queue_pair_that_waits_holds_up_no_other: "SQ-29"; needs RNR);
/// Both pairs share their CQs; one has sends and no receive for them.
fn queue_pair_that_waits_holds_up_no_other(setup: &Setup<'_>) -> Result {
    let waits = setup.rc_pair()?;
    let runs = setup.second_pair(&waits, PairOptions::default())?;
    for wr_id in 100..108 {
        waits.a.send(wr_id, 8)?;
    }
    for round in 0..4 {
        runs.b.recv(round, 8)?;
        runs.a.send(round, 8)?;
        for cq in [runs.a.send_cq, runs.b.recv_cq] {
            let wc = setup.successes(cq, 1).rule("SQ-29")?[0];
            check_eq!("SQ-29", wc.wr_id, round, "completed while another waits");
        }
    }
    for wr_id in 100..108 {
        waits.b.recv(wr_id, 8)?;
    }
    setup.successes(waits.b.recv_cq, 8).rule("SQ-29")?;
    setup.successes(waits.a.send_cq, 8).rule("SQ-29")?;
    Ok(())
}

scenario!(more_work_than_the_cq_has_room_for_can_be_posted: "SQ-30"; hazards MAY_HANG);
/// In one list, so that the CQ cannot overrun before the post ends.
fn more_work_than_the_cq_has_room_for_can_be_posted(setup: &Setup<'_>) -> Result {
    for excess in [0, 1, 8] {
        let Pair { a, .. } = setup.pair(PairOptions {
            send_cqe: 4,
            cap: QpCap {
                max_send_wr: 64,
                ..QpCap::default()
            },
            ..PairOptions::default()
        })?;
        let room = setup.query_cq(a.send_cq)?.cqe;
        let data = [a.sge(0, 8)];
        let work = |wr_id| SendWr::rdma_write(wr_id, &data, a.remote());
        let list: Vec<_> = (0..u64::from(room + excess)).map(work).collect();
        let posted = setup.post_send(a.qp, &list).rule("SQ-30");
        in_case(&format!("{excess} more"), posted)?;
    }
    Ok(())
}
