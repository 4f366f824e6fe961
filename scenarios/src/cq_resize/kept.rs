//! Completions, arming, events and all else that a resize keeps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use verbs_api::{Arm, Cq, CqInit, ErrorKind};

use super::{expect_armed, requests_beside_completions};
use crate::cq_ovr::{Queue, SmallCq};
use crate::failure::{check, check_eq, in_case};
use crate::{End, OfRule, Pair, PairOptions, Result, Setup, expect_err_among, wr_ids};

/// Sizes for a CQ that has 64 entries and holds at most eight completions.
const SIZES: [i32; 6] = [200, 64, 33, 8, 9, 100];

scenario!(completions_survive_in_order: "CQ-RESIZE-22", "CQ-RESIZE-03"; needs RESIZE_CQ);
fn completions_survive_in_order(setup: &Setup<'_>) -> Result {
    for (present, size) in [(0, 200), (1, 1), (4, 200), (4, 5), (4, 4), (8, 64), (8, 8)] {
        let pair = setup.rc_pair()?;
        pair.deliver(0..present)?;
        setup.settle()?;
        setup.resize_cq(pair.b.recv_cq, size).rule("CQ-RESIZE-03")?;
        let got = setup.successes(pair.b.recv_cq, present as usize);
        let got = wr_ids(&got.rule("CQ-RESIZE-22")?);
        check_eq!("CQ-RESIZE-22", got, (0..present).collect::<Vec<_>>());
        setup.no_completion(pair.b.recv_cq, "CQ-RESIZE-22")?;
    }
    Ok(())
}

scenario!(partly_polled_ring_is_kept_at_every_index:
    "CQ-RESIZE-29", "CQ-RESIZE-22"; needs RESIZE_CQ);
fn partly_polled_ring_is_kept_at_every_index(setup: &Setup<'_>) -> Result {
    const PRESENT: u64 = 6;
    let pair = setup.pair(PairOptions {
        recv_cqe: PRESENT as i32 + 1,
        ..PairOptions::default()
    })?;
    let cq = pair.b.recv_cq;
    let mut first = 0;
    // The first index moves on by six from round to round, through rings of changing size.
    for size in [8, 7, 13, 16] {
        for polled in 0..=PRESENT {
            pair.deliver(first..first + PRESENT)?;
            setup.settle()?;
            let mut got = setup.successes(cq, polled as usize)?;
            let left = (PRESENT - polled).max(1) as i32;
            for new in [left, left + 1, size] {
                setup.resize_cq(cq, new).rule("CQ-RESIZE-29")?;
            }
            let rest = setup.successes(cq, (PRESENT - polled) as usize);
            got.extend(rest.rule("CQ-RESIZE-29")?);
            let expected: Vec<_> = (first..first + PRESENT).collect();
            let what = format!("the order with {polled} polled before");
            check_eq!("CQ-RESIZE-22", wr_ids(&got), expected, what);
            first += PRESENT;
        }
    }
    setup.no_completion(cq, "CQ-RESIZE-29")
}

scenario!(request_survives_with_its_type: "CQ-RESIZE-24", "CQ-RESIZE-04"; needs RESIZE_CQ);
fn request_survives_with_its_type(setup: &Setup<'_>) -> Result {
    for size in [200, 64, 8] {
        for request in [None, Some(Arm::SOLICITED), Some(Arm::NEXT)] {
            let pair = setup.rc_pair()?;
            let cq = pair.b.recv_cq;
            if let Some(arm) = request {
                setup.arm(cq, arm)?;
            }
            setup.resize_cq(cq, size).rule("CQ-RESIZE-04")?;
            let armed = expect_armed(setup, &pair, request, 0, "CQ-RESIZE-24");
            in_case(&format!("{request:?}, to {size}"), armed)?;
        }
    }
    Ok(())
}

scenario!(armed_cq_with_completions_makes_no_event:
    "CQ-RESIZE-25", "CQ-RESIZE-20"; needs RESIZE_CQ);
fn armed_cq_with_completions_makes_no_event(setup: &Setup<'_>) -> Result {
    for request in requests_beside_completions(setup)? {
        let pair = setup.rc_pair()?;
        let cq = pair.b.recv_cq;
        pair.deliver(0..4)?;
        setup.settle()?;
        if let Some(arm) = request {
            setup.arm(cq, arm)?;
        }
        for size in [100, 64, 4] {
            setup.resize_cq(cq, size).rule("CQ-RESIZE-20")?;
            setup.no_event(pair.b.channel, "CQ-RESIZE-25")?;
        }
        setup.successes(cq, 4)?;
        let armed = expect_armed(setup, &pair, request, 4, "CQ-RESIZE-20");
        in_case(&format!("{request:?}"), armed)?;
    }
    Ok(())
}

scenario!(queued_event_stays_readable: "CQ-RESIZE-30"; needs RESIZE_CQ);
fn queued_event_stays_readable(setup: &Setup<'_>) -> Result {
    for size in [200, 64, 2] {
        let pair = setup.rc_pair()?;
        let cq = pair.b.recv_cq;
        setup.arm(cq, Arm::NEXT)?;
        pair.deliver(0..2)?;
        setup.settle()?;
        setup.resize_cq(cq, size)?;
        setup.expect_event(pair.b.channel, cq, "CQ-RESIZE-30")?;
        setup.no_event(pair.b.channel, "CQ-RESIZE-30")?;
    }
    Ok(())
}

scenario!(channel_context_vector_and_qps_stay: "CQ-RESIZE-27"; needs RESIZE_CQ);
fn channel_context_vector_and_qps_stay(setup: &Setup<'_>) -> Result {
    const CONTEXT: u64 = 0x0123_4567_89ab_cdef;
    let context = setup.ctx_b();
    let channel = setup.create_comp_channel(context)?;
    let vector = setup.query_device(context)?.num_comp_vectors as i32 - 1;
    let init = CqInit::new(8).channel(channel).context(CONTEXT);
    let cq = setup.create_cq(context, &init.comp_vector(vector))?;
    let small = SmallCq::on(setup, Queue::Recv, cq)?;
    let before = setup.query_cq(cq)?;
    let other = setup.query_cq(small.end.send_cq)?;
    for size in [50, 3] {
        setup.resize_cq(cq, size)?;
        let after = setup.query_cq(cq)?;
        check_eq!("CQ-RESIZE-27", after.channel, before.channel);
        check_eq!("CQ-RESIZE-27", after.cq_context, before.cq_context);
        check_eq!("CQ-RESIZE-27", after.comp_vector, before.comp_vector);
        let kept = setup.query_cq(small.end.send_cq)?;
        check_eq!("CQ-RESIZE-27", kept, other, "the other CQ of the QP");

        setup.arm(cq, Arm::NEXT)?;
        small.push(0)?;
        let event = setup.event_and_ack(channel).rule("CQ-RESIZE-27")?;
        check_eq!("CQ-RESIZE-27", event.cq, cq);
        check_eq!("CQ-RESIZE-27", event.cq_context, CONTEXT);
        let wc = setup.successes(cq, 1).rule("CQ-RESIZE-27")?[0];
        check_eq!("CQ-RESIZE-27", wc.qp_num, small.end.qp_num);
        let destroyed = setup.destroy_cq(cq, setup.wait());
        expect_err_among(destroyed, &[ErrorKind::Busy], "CQ-RESIZE-27")?;
    }
    Ok(())
}

scenario!(any_number_of_qps_may_use_the_cq: "CQ-RESIZE-05"; needs RESIZE_CQ);
fn any_number_of_qps_may_use_the_cq(setup: &Setup<'_>) -> Result {
    let alone = setup.create_cq(setup.ctx_a(), &CqInit::new(64))?;
    for size in SIZES {
        setup.resize_cq(alone, size).rule("CQ-RESIZE-05")?;
    }
    for qps in [1, 2, 4] {
        let case = format!("{qps} QPs");
        in_case(&case, resize_under_qps(setup, qps).rule("CQ-RESIZE-05"))?;
    }
    Ok(())
}

fn resize_under_qps(setup: &Setup<'_>, qps: usize) -> Result {
    let first = setup.rc_pair()?;
    let mut pairs = vec![first];
    for _ in 1..qps {
        pairs.push(setup.second_pair(&first, PairOptions::default())?);
    }
    let cqs = [first.a.send_cq, first.b.recv_cq];
    for size in SIZES {
        cqs.iter().try_for_each(|cq| setup.resize_cq(*cq, size))?;
    }
    for size in SIZES {
        for pair in &pairs {
            pair.b.recv(0, 8)?;
            pair.a.send(0, 8)?;
            pair.b.recv(1, 8)?;
            pair.a.send(1, 8)?;
        }
        cqs.iter().try_for_each(|cq| setup.resize_cq(*cq, size))?;
        expect_of_each(setup, &pairs, |pair| pair.a, first.a.send_cq)?;
        expect_of_each(setup, &pairs, |pair| pair.b, first.b.recv_cq)?;
    }
    Ok(())
}

/// The CQ has two completions of every queue pair, in order.
fn expect_of_each<'b>(
    setup: &Setup<'_>,
    pairs: &[Pair<'b>],
    end: impl Fn(&Pair<'b>) -> End<'b>,
    cq: Cq,
) -> Result {
    let got = setup.successes(cq, 2 * pairs.len())?;
    for pair in pairs {
        let qp_num = end(pair).qp_num;
        let own: Vec<_> = got
            .iter()
            .copied()
            .filter(|wc| wc.qp_num == qp_num)
            .collect();
        check_eq!(
            "CQ-RESIZE-05",
            wr_ids(&own),
            [0, 1],
            format!("qp_num {qp_num:#x}")
        );
    }
    Ok(())
}

scenario!(traffic_goes_on_through_resizes: "CQ-RESIZE-23"; needs RESIZE_CQ);
fn traffic_goes_on_through_resizes(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let cqs = [pair.a.send_cq, pair.b.recv_cq];
    let mut sizes = SIZES.into_iter().cycle();
    let resize = |size: Option<i32>| {
        cqs.iter()
            .try_for_each(|cq| setup.resize_cq(*cq, size.expect("there is always one more")))
            .rule("CQ-RESIZE-23")
    };
    for round in 0..40 {
        let expected: Vec<u64> = (8 * round..8 * round + 8).collect();
        for (i, wr_id) in expected.iter().enumerate() {
            pair.b.recv(*wr_id, 8)?;
            pair.a.send(*wr_id, 8)?;
            if i % 3 == 2 {
                resize(sizes.next())?;
            }
        }
        for cq in cqs {
            let mut got = setup.successes(cq, 3).rule("CQ-RESIZE-23")?;
            resize(sizes.next())?;
            got.extend(setup.successes(cq, 5).rule("CQ-RESIZE-23")?);
            check_eq!("CQ-RESIZE-23", wr_ids(&got), expected);
        }
    }
    cqs.iter()
        .try_for_each(|cq| setup.no_completion(*cq, "CQ-RESIZE-23"))
}

scenario!(traffic_goes_on_while_a_thread_resizes: "CQ-RESIZE-23"; needs RESIZE_CQ, THREADS);
fn traffic_goes_on_while_a_thread_resizes(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let cqs = [pair.a.send_cq, pair.b.recv_cq];
    let done = AtomicBool::new(false);
    let resize = || -> Result {
        for size in SIZES.into_iter().cycle() {
            if done.load(Ordering::Relaxed) {
                break;
            }
            cqs.iter()
                .try_for_each(|cq| setup.resize_cq(*cq, size))
                .rule("CQ-RESIZE-23")?;
        }
        Ok(())
    };
    let traffic = || -> Result {
        for round in 0..100 {
            let expected: Vec<u64> = (8 * round..8 * round + 8).collect();
            for wr_id in &expected {
                pair.b.recv(*wr_id, 8)?;
                pair.a.send(*wr_id, 8)?;
            }
            for cq in cqs {
                let got = setup.successes(cq, 8).rule("CQ-RESIZE-23")?;
                check_eq!("CQ-RESIZE-23", wr_ids(&got), expected);
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let resizer = scope.spawn(resize);
        let result = traffic();
        done.store(true, Ordering::Relaxed);
        result.and(resizer.join().expect("it does not panic"))
    })?;
    cqs.iter()
        .try_for_each(|cq| setup.no_completion(*cq, "CQ-RESIZE-23"))
}

scenario!(overrun_cq_does_not_get_back_what_it_lost: "CQ-RESIZE-31"; needs RESIZE_CQ);
fn overrun_cq_does_not_get_back_what_it_lost(setup: &Setup<'_>) -> Result {
    for queue in Queue::BOTH {
        let small = SmallCq::new(setup, queue, 4)?;
        let count = small.overrun("CQ-RESIZE-31")?;
        let larger = 2 * count as i32;
        let resized = setup.resize_cq(small.cq, larger);
        if resized.is_err() {
            expect_err_among(resized, &[ErrorKind::Invalid], "CQ-RESIZE-31")?;
        }
        let got = wr_ids(&small.leftovers()?.0);
        let lost = (got.len() as u64) < count && got.is_sorted_by(|older, newer| older < newer);
        let expected = format!("fewer than the {count} completions, in order");
        check!("CQ-RESIZE-31", lost, expected, "{got:?}");
    }
    Ok(())
}
