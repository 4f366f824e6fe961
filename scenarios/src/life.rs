//! Lifetime of objects: many at once, side by side, and what is left when a context ends.

use std::thread;

use verbs_api::{
    Access, Arm, CqInit, Element, ErrorKind, QpInit, QpType, RecvWr, SrqAttr, SrqAttrMask, SrqInit,
    Wait, WcStatus,
};

use crate::cq_ovr::{Queue, SmallCq};
use crate::end::gives_up_soon;
use crate::failure::{check_eq, value_in_case};
use crate::{Bench, End, Failure, OfRule, Pair, PairOptions, Result, Scenario, expect_err};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    cycles_of_creation_leave_nothing_behind,
    threads_create_and_destroy_beside_each_other,
    threads_create_on_one_domain_and_queue,
    destruction_of_one_connection_leaves_the_others,
    destruction_of_one_region_leaves_the_others,
    end_of_a_context_frees_what_it_had,
    peer_of_a_context_that_ended_gets_no_answer,
    end_of_a_context_waits_for_no_acknowledgement_of_its_cqs,
    end_of_a_context_waits_for_no_acknowledgement_of_its_srq_and_qp,
    end_of_a_context_leaves_the_others,
];

/// All an end has, children first.
fn destroy(bench: &Bench<'_>, end: &End<'_>) -> verbs_api::Result<()> {
    bench.destroy_qp(end.qp, bench.wait())?;
    bench.destroy_cq(end.send_cq, bench.wait())?;
    bench.destroy_cq(end.recv_cq, bench.wait())?;
    bench.destroy_comp_channel(end.channel)?;
    bench.dereg_mr(end.mr)?;
    bench.dealloc_pd(end.pd)
}

scenario!(cycles_of_creation_leave_nothing_behind: "LIFE-02");
fn cycles_of_creation_leave_nothing_behind(bench: &Bench<'_>) -> Result {
    const CYCLES: u32 = 100;
    let options = PairOptions {
        mem: 4096,
        ..PairOptions::default()
    };
    let before = bench.live()?;
    for cycle in 0..CYCLES {
        let end = bench.end(bench.ctx_a(), options);
        let end = value_in_case(&format!("cycle {cycle}"), end.rule("LIFE-02"))?;
        destroy(bench, &end).rule("LIFE-02")?;
    }
    bench.expect_live(before, "LIFE-02")?;
    Ok(())
}

scenario!(threads_create_and_destroy_beside_each_other: "LIFE-03", "LIFE-02"; needs THREADS);
fn threads_create_and_destroy_beside_each_other(bench: &Bench<'_>) -> Result {
    let before = bench.live()?;
    let cycles = || -> Result {
        for _ in 0..8 {
            let end = bench.end(bench.ctx_a(), PairOptions::default())?;
            destroy(bench, &end)?;
        }
        Ok(())
    };
    all(4, cycles).rule("LIFE-03")?;
    bench.expect_live(before, "LIFE-02")?;
    bench.rc_pair()?.still_works("LIFE-03")
}

scenario!(threads_create_on_one_domain_and_queue: "LIFE-03"; needs THREADS);
/// On the same domain, channel and CQ, which then are free of users.
fn threads_create_on_one_domain_and_queue(bench: &Bench<'_>) -> Result {
    let end = bench.end(bench.ctx_a(), PairOptions::default())?;
    let cycles = || -> Result {
        for _ in 0..8 {
            let cq = bench.create_cq(end.context, &CqInit::new(4).channel(end.channel))?;
            let init = QpInit::new(QpType::Rc, end.send_cq, cq);
            let qp = bench.create_qp(end.pd, &init)?;
            let mr = bench.alloc_mr(end.pd, 4096, Access::ALL_RDMA)?;
            bench.destroy_qp(qp, bench.wait())?;
            bench.dereg_mr(mr)?;
            bench.destroy_cq(cq, bench.wait())?;
        }
        Ok(())
    };
    all(4, cycles).rule("LIFE-03")?;
    destroy(bench, &end).rule("LIFE-03")
}

/// Runs it in `count` threads.
fn all(count: usize, work: impl Fn() -> Result + Sync) -> Result {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(&work)).collect();
        let results = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        results.collect::<Result<Vec<()>, Failure>>().map(drop)
    })
}

scenario!(destruction_of_one_connection_leaves_the_others: "LIFE-04");
/// Both connections have work under way on CQs of their own.
fn destruction_of_one_connection_leaves_the_others(bench: &Bench<'_>) -> Result {
    let stays = bench.rc_pair()?;
    let goes = bench.rc_pair()?;
    let place = |wr_id: u64| stays.b.landing() + 64 * wr_id;
    for wr_id in 0..4 {
        stays.b.recv_at(wr_id, place(wr_id), 64)?;
        goes.b.recv(wr_id, 64)?;
    }
    stays.a.fill(1, 64)?;
    for part in 0..4 {
        stays.a.send(part, 64)?;
        match part {
            0 => bench.destroy_qp(goes.a.qp, bench.wait())?,
            1 => {
                bench.destroy_cq(goes.a.send_cq, bench.wait())?;
                bench.destroy_cq(goes.a.recv_cq, bench.wait())?;
                bench.destroy_comp_channel(goes.a.channel)?;
            }
            2 => bench.dereg_mr(goes.a.mr)?,
            _ => bench.dealloc_pd(goes.a.pd)?,
        }
        for cq in [stays.a.send_cq, stays.b.recv_cq] {
            let wc = bench.successes(cq, 1).rule("LIFE-04")?[0];
            check_eq!("LIFE-04", wc.wr_id, part);
        }
        stays.b.expect_data_at(place(part), 1, 64, "LIFE-04")?;
    }
    stays.still_works("LIFE-04")
}

scenario!(destruction_of_one_region_leaves_the_others: "LIFE-04");
fn destruction_of_one_region_leaves_the_others(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    for _ in 0..4 {
        let other = bench.alloc_mr(pair.a.pd, 4096, Access::ALL_RDMA)?;
        pair.a.fill(2, 64)?;
        pair.b.recv(1, 64)?;
        pair.a.send(2, 64)?;
        bench.dereg_mr(other)?;
        bench.successes(pair.b.recv_cq, 1).rule("LIFE-04")?;
        bench.successes(pair.a.send_cq, 1).rule("LIFE-04")?;
        pair.b.expect_data(2, 64, "LIFE-04")?;
    }
    pair.still_works("LIFE-04")
}

scenario!(end_of_a_context_frees_what_it_had: "LIFE-07"; hazards MAY_HANG);
/// Its handles are invalid, and the device keeps none of its objects.
fn end_of_a_context_frees_what_it_had(bench: &Bench<'_>) -> Result {
    let name = bench.devices()?.swap_remove(0).name;
    let before = bench.live()?;
    for unread in [false, true] {
        let context = bench.open_device(&name)?;
        let end = bench.end(context, PairOptions::default())?;
        if unread {
            bench.arm(end.recv_cq, Arm::NEXT)?;
        }
        bench.close_device(context).rule("LIFE-07")?;
        bench.expect_live(before, "LIFE-07")?;
        let stale = [
            bench.dealloc_pd(end.pd),
            bench.dereg_mr(end.mr),
            bench.destroy_comp_channel(end.channel),
            bench.destroy_cq(end.recv_cq, Wait::Poll),
            bench.destroy_qp(end.qp, Wait::Poll),
        ];
        for result in stale {
            expect_err(result, ErrorKind::Invalid, "LIFE-07")?;
        }
    }
    Ok(())
}

scenario!(peer_of_a_context_that_ended_gets_no_answer: "LIFE-07"; hazards MAY_HANG);
fn peer_of_a_context_that_ended_gets_no_answer(bench: &Bench<'_>) -> Result {
    let Pair { a, b } = bench.pair(PairOptions {
        rc: gives_up_soon(),
        ..PairOptions::default()
    })?;
    for wr_id in 0..4 {
        b.recv(wr_id, 8)?;
    }
    a.send(1, 8)?;
    bench.successes(a.send_cq, 1)?;
    bench.close_device(b.context).rule("LIFE-07")?;
    a.send(2, 8)?;
    bench
        .one_with(a.send_cq, WcStatus::RetryExcErr, "LIFE-07")
        .map(drop)
}

scenario!(end_of_a_context_waits_for_no_acknowledgement_of_its_cqs: "LIFE-07"; hazards MAY_HANG);
/// Destroying each object would wait for the program to acknowledge what it has read.
fn end_of_a_context_waits_for_no_acknowledgement_of_its_cqs(bench: &Bench<'_>) -> Result {
    let name = bench.devices()?.swap_remove(0).name;
    let before = bench.live()?;
    let context = bench.open_device(&name)?;
    let channel = bench.create_comp_channel(context)?;
    let cq = bench.create_cq(context, &CqInit::new(4).channel(channel))?;
    let small = SmallCq::on(bench, Queue::Send, cq)?;
    bench.arm(cq, Arm::NEXT)?;
    small.push(0)?;
    bench.take_event(channel)?;
    small.push_all(1..1 + small.too_many()?)?;
    loop {
        let event = bench.take_async_event(context)?;
        if event.element == Element::Cq(cq) {
            break;
        }
    }
    bench.close_device(context).rule("LIFE-07")?;
    // The queue pair of side B is still there.
    if let (Some(before), Some(after)) = (before, bench.live()?) {
        check_eq!("LIFE-07", after[0], before[0], "what side A has");
    }
    bench.rc_pair()?.still_works("LIFE-07")
}

scenario!(end_of_a_context_waits_for_no_acknowledgement_of_its_srq_and_qp:
    "LIFE-07"; needs SRQ; hazards MAY_HANG);
/// The context also has an SRQ and a queue pair with unacknowledged events.
fn end_of_a_context_waits_for_no_acknowledgement_of_its_srq_and_qp(bench: &Bench<'_>) -> Result {
    let name = bench.devices()?.swap_remove(0).name;
    let context = bench.open_device(&name)?;
    let pd = bench.alloc_pd(context)?;
    let mr = bench.alloc_mr(pd, 4096, Access::ALL_RDMA)?;
    let srq = bench.create_srq(pd, &SrqInit::new(4))?;
    let cq = bench.create_cq(context, &CqInit::new(16))?;
    let options = PairOptions::default();
    let taker = bench.end_of((pd, mr), (cq, cq), Some(srq), options)?;
    let pair = bench.connect(bench.peer_end(options)?, taker, options)?;
    let room = [pair.b.sge(0, 8)];
    bench.post_srq_recv(srq, &[RecvWr::new(1, &room)])?;
    let limit = SrqAttr {
        srq_limit: 1,
        ..SrqAttr::default()
    };
    bench.modify_srq(srq, &limit, SrqAttrMask::LIMIT)?;
    pair.a.send(2, 8)?;
    bench.one(cq)?;
    let event = bench.take_async_event(context)?;
    check_eq!("LIFE-07", event.element, Element::Srq(srq), "the event");
    // That it has taken its last receive, which not every device tells.
    bench.to_err(taker.qp)?;
    bench.settle()?;
    let _ = bench.get_async_event(context, Wait::Poll);
    bench.close_device(context).rule("LIFE-07")?;
    bench.rc_pair()?.still_works("LIFE-07")
}

scenario!(end_of_a_context_leaves_the_others: "LIFE-04"; hazards MAY_HANG);
fn end_of_a_context_leaves_the_others(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let name = bench.devices()?.swap_remove(0).name;
    let context = bench.open_device(&name)?;
    bench.end(context, PairOptions::default())?;
    pair.b.recv(1, 8)?;
    pair.a.send(2, 8)?;
    bench.close_device(context)?;
    bench.successes(pair.b.recv_cq, 1).rule("LIFE-04")?;
    bench.successes(pair.a.send_cq, 1).rule("LIFE-04")?;
    pair.still_works("LIFE-04")
}
