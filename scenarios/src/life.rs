//! Lifetime of objects: many at once, side by side, and what is left when a context ends.

use std::thread;

use verbs_api::{
    Access, Arm, CqInit, Element, ErrorKind, QpInit, QpType, RecvWr, SrqAttr, SrqAttrMask, SrqInit,
    Wait, WcStatus,
};

use crate::cq_ovr::{Queue, SmallCq};
use crate::end::gives_up_soon;
use crate::failure::{check_eq, value_in_case};
use crate::{
    End, EndParts, Failure, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err,
};

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
fn destroy(setup: &Setup<'_>, end: &End<'_>) -> verbs_api::Result<()> {
    setup.destroy_qp(end.qp, setup.wait())?;
    setup.destroy_cq(end.send_cq, setup.wait())?;
    setup.destroy_cq(end.recv_cq, setup.wait())?;
    setup.destroy_comp_channel(end.channel)?;
    setup.dereg_mr(end.mr)?;
    setup.dealloc_pd(end.pd)
}

scenario!(cycles_of_creation_leave_nothing_behind: "LIFE-02");
fn cycles_of_creation_leave_nothing_behind(setup: &Setup<'_>) -> Result {
    const CYCLES: u32 = 100;
    let options = PairOptions {
        mem: 4096,
        ..PairOptions::default()
    };
    let before = setup.live()?;
    for cycle in 0..CYCLES {
        let end = setup.end(setup.ctx_a(), options);
        let end = value_in_case(&format!("cycle {cycle}"), end.rule("LIFE-02"))?;
        destroy(setup, &end).rule("LIFE-02")?;
    }
    setup.expect_live(before, "LIFE-02")?;
    Ok(())
}

scenario!(threads_create_and_destroy_beside_each_other: "LIFE-03", "LIFE-02"; needs THREADS);
fn threads_create_and_destroy_beside_each_other(setup: &Setup<'_>) -> Result {
    let before = setup.live()?;
    let cycles = || -> Result {
        for _ in 0..8 {
            let end = setup.end(setup.ctx_a(), PairOptions::default())?;
            destroy(setup, &end)?;
        }
        Ok(())
    };
    all(4, cycles).rule("LIFE-03")?;
    setup.expect_live(before, "LIFE-02")?;
    setup.rc_pair()?.still_works("LIFE-03")
}

scenario!(threads_create_on_one_domain_and_queue: "LIFE-03"; needs THREADS);
/// On the same domain, channel and CQ, which then are free of users.
fn threads_create_on_one_domain_and_queue(setup: &Setup<'_>) -> Result {
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let cycles = || -> Result {
        for _ in 0..8 {
            let cq = setup.create_cq(end.context, &CqInit::new(4).channel(end.channel))?;
            let init = QpInit::new(QpType::Rc, end.send_cq, cq);
            let qp = setup.create_qp(end.pd, &init)?;
            let mr = setup.alloc_mr(end.pd, 4096, Access::ALL_RDMA)?;
            setup.destroy_qp(qp, setup.wait())?;
            setup.dereg_mr(mr)?;
            setup.destroy_cq(cq, setup.wait())?;
        }
        Ok(())
    };
    all(4, cycles).rule("LIFE-03")?;
    destroy(setup, &end).rule("LIFE-03")
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
fn destruction_of_one_connection_leaves_the_others(setup: &Setup<'_>) -> Result {
    let stays = setup.rc_pair()?;
    let goes = setup.rc_pair()?;
    let place = |wr_id: u64| stays.b.landing() + 64 * wr_id;
    for wr_id in 0..4 {
        stays.b.recv_at(wr_id, place(wr_id), 64)?;
        goes.b.recv(wr_id, 64)?;
    }
    stays.a.fill(1, 64)?;
    for part in 0..4 {
        stays.a.send(part, 64)?;
        match part {
            0 => setup.destroy_qp(goes.a.qp, setup.wait())?,
            1 => {
                setup.destroy_cq(goes.a.send_cq, setup.wait())?;
                setup.destroy_cq(goes.a.recv_cq, setup.wait())?;
                setup.destroy_comp_channel(goes.a.channel)?;
            }
            2 => setup.dereg_mr(goes.a.mr)?,
            _ => setup.dealloc_pd(goes.a.pd)?,
        }
        for cq in [stays.a.send_cq, stays.b.recv_cq] {
            let wc = setup.successes(cq, 1).rule("LIFE-04")?[0];
            check_eq!("LIFE-04", wc.wr_id, part);
        }
        stays.b.expect_data_at(place(part), 1, 64, "LIFE-04")?;
    }
    stays.still_works("LIFE-04")
}

scenario!(destruction_of_one_region_leaves_the_others: "LIFE-04");
fn destruction_of_one_region_leaves_the_others(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    for _ in 0..4 {
        let other = setup.alloc_mr(pair.a.pd, 4096, Access::ALL_RDMA)?;
        pair.a.fill(2, 64)?;
        pair.b.recv(1, 64)?;
        pair.a.send(2, 64)?;
        setup.dereg_mr(other)?;
        setup.successes(pair.b.recv_cq, 1).rule("LIFE-04")?;
        setup.successes(pair.a.send_cq, 1).rule("LIFE-04")?;
        pair.b.expect_data(2, 64, "LIFE-04")?;
    }
    pair.still_works("LIFE-04")
}

scenario!(end_of_a_context_frees_what_it_had: "LIFE-07"; hazards MAY_HANG);
/// Its handles are invalid, and the device keeps none of its objects.
fn end_of_a_context_frees_what_it_had(setup: &Setup<'_>) -> Result {
    let name = setup.devices()?.swap_remove(0).name;
    let before = setup.live()?;
    for unread in [false, true] {
        let context = setup.open_device(&name)?;
        let end = setup.end(context, PairOptions::default())?;
        if unread {
            setup.arm(end.recv_cq, Arm::NEXT)?;
        }
        setup.close_device(context).rule("LIFE-07")?;
        setup.expect_live(before, "LIFE-07")?;
        let stale = [
            setup.dealloc_pd(end.pd),
            setup.dereg_mr(end.mr),
            setup.destroy_comp_channel(end.channel),
            setup.destroy_cq(end.recv_cq, Wait::Poll),
            setup.destroy_qp(end.qp, Wait::Poll),
        ];
        for result in stale {
            expect_err(result, ErrorKind::Invalid, "LIFE-07")?;
        }
    }
    Ok(())
}

scenario!(peer_of_a_context_that_ended_gets_no_answer: "LIFE-07"; hazards MAY_HANG);
fn peer_of_a_context_that_ended_gets_no_answer(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(PairOptions {
        rc: gives_up_soon(),
        ..PairOptions::default()
    })?;
    for wr_id in 0..4 {
        b.recv(wr_id, 8)?;
    }
    a.send(1, 8)?;
    setup.successes(a.send_cq, 1)?;
    setup.close_device(b.context).rule("LIFE-07")?;
    // On iWARP the sender is notified.
    setup.settle()?;
    a.send(2, 8)?;
    setup
        .one_with(a.send_cq, WcStatus::RetryExcErr, "LIFE-07")
        .map(drop)
}

scenario!(end_of_a_context_waits_for_no_acknowledgement_of_its_cqs: "LIFE-07"; hazards MAY_HANG);
/// Destroying each object would wait for the program to acknowledge what it has read.
fn end_of_a_context_waits_for_no_acknowledgement_of_its_cqs(setup: &Setup<'_>) -> Result {
    let name = setup.devices()?.swap_remove(0).name;
    let before = setup.live()?;
    let context = setup.open_device(&name)?;
    let channel = setup.create_comp_channel(context)?;
    let cq = setup.create_cq(context, &CqInit::new(4).channel(channel))?;
    let small = SmallCq::on(setup, Queue::Send, cq)?;
    setup.arm(cq, Arm::NEXT)?;
    small.push(0)?;
    setup.take_event(channel)?;
    small.push_all(1..1 + small.too_many()?)?;
    loop {
        let event = setup.take_async_event(context)?;
        if event.element == Element::Cq(cq) {
            break;
        }
    }
    setup.close_device(context).rule("LIFE-07")?;
    // The queue pair of side B is still there.
    if let (Some(before), Some(after)) = (before, setup.live()?) {
        check_eq!("LIFE-07", after[0], before[0], "what side A has");
    }
    setup.rc_pair()?.still_works("LIFE-07")
}

scenario!(end_of_a_context_waits_for_no_acknowledgement_of_its_srq_and_qp:
    "LIFE-07"; needs SRQ; hazards MAY_HANG);
/// The context also has an SRQ and a queue pair with unacknowledged events.
fn end_of_a_context_waits_for_no_acknowledgement_of_its_srq_and_qp(setup: &Setup<'_>) -> Result {
    let name = setup.devices()?.swap_remove(0).name;
    let context = setup.open_device(&name)?;
    let pd = setup.alloc_pd(context)?;
    let mr = setup.alloc_mr(pd, 4096, Access::ALL_RDMA)?;
    let srq = setup.create_srq(pd, &SrqInit::new(4))?;
    let cq = setup.create_cq(context, &CqInit::new(16))?;
    let options = PairOptions::default();
    let parts = EndParts {
        pd,
        mr,
        send_cq: cq,
        recv_cq: cq,
        srq: Some(srq),
    };
    let taker = setup.end_of(parts, options)?;
    let pair = setup.connect(setup.peer_end(options)?, taker, options)?;
    let room = [pair.b.sge(0, 8)];
    setup.post_srq_recv(srq, &[RecvWr::new(1, &room)])?;
    let limit = SrqAttr {
        srq_limit: 1,
        ..SrqAttr::default()
    };
    setup.modify_srq(srq, &limit, SrqAttrMask::LIMIT)?;
    pair.a.send(2, 8)?;
    setup.one(cq)?;
    let event = setup.take_async_event(context)?;
    check_eq!("LIFE-07", event.element, Element::Srq(srq), "the event");
    // That it has taken its last receive, which not every device tells.
    setup.to_err(taker.qp)?;
    setup.settle()?;
    let _ = setup.get_async_event(context, Wait::Poll);
    setup.close_device(context).rule("LIFE-07")?;
    setup.rc_pair()?.still_works("LIFE-07")
}

scenario!(end_of_a_context_leaves_the_others: "LIFE-04"; hazards MAY_HANG);
fn end_of_a_context_leaves_the_others(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let name = setup.devices()?.swap_remove(0).name;
    let context = setup.open_device(&name)?;
    setup.end(context, PairOptions::default())?;
    pair.b.recv(1, 8)?;
    pair.a.send(2, 8)?;
    setup.close_device(context)?;
    setup.successes(pair.b.recv_cq, 1).rule("LIFE-04")?;
    setup.successes(pair.a.send_cq, 1).rule("LIFE-04")?;
    pair.still_works("LIFE-04")
}
