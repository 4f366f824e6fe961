//! The places of a CQ that an open iteration holds, until it ends.

use verbs_api::behavior::{Overrun, PollAfterOverrun, SqRelease};
use verbs_api::{
    Capabilities, Cq, CqFlags, CqInit, CqInitEx, ErrorKind, QpAttrMask, QpState, QpType, RecvWr,
    SendWr, SrqInit, Wait, Wc, XrcdInit,
};

use super::{go_on, next, pair_on, start};
use crate::cq_ovr::{Queue, SmallCq};
use crate::failure::{check, check_eq, in_case};
use crate::{OfRule, PairOptions, Result, Setup, expect_err, wr_ids};

const PLACES: &str = "CQ-CREATE-17";

/// A small extended CQ for one queue of a pair.
fn small<'b>(setup: &'b Setup<'b>, queue: Queue, init: &CqInitEx) -> Result<SmallCq<'b>> {
    let context = match queue {
        Queue::Send => setup.ctx_a(),
        Queue::Recv => setup.ctx_b(),
    };
    SmallCq::on(setup, queue, setup.create_cq_ex(context, init)?)
}

fn plain(cqe: i32) -> CqInitEx {
    CqInitEx::new(CqInit::new(cqe))
}

/// Opens an iteration and advances to completion number `count`; all of them are there.
fn come_to(setup: &Setup<'_>, cq: Cq, count: u64) -> Result {
    start(setup, cq)?;
    for wr_id in 0..count {
        check_eq!(PLACES, setup.read_wc(cq)?.wr_id, wr_id);
        if wr_id + 1 < count {
            check!(PLACES, next(setup, cq)?, "another completion", "the end");
        }
    }
    Ok(())
}

scenario!(full_cq_overruns_whatever_an_iteration_has_come_to:
    "CQ-CREATE-17", "CQ-CREATE-15", "CQ-OVR-03"; needs CQ_EX);
fn full_cq_overruns_whatever_an_iteration_has_come_to(setup: &Setup<'_>) -> Result {
    let declared = setup.behavior()?.overrun.is_some();
    for queue in Queue::BOTH {
        for (cqe, count) in [(1, 1), (7, 1), (7, 3), (7, 7)] {
            let small = small(setup, queue, &plain(cqe))?;
            let cqe = small.cqe()?;
            small.fill(0..cqe)?;
            come_to(setup, small.cq, count)?;
            setup.no_async_event(small.end.context, PLACES)?;
            small.push_all(cqe..small.too_many()?)?;
            small.cq_err(PLACES)?;
            setup.async_events(small.end.context)?;
            check_eq!(PLACES, setup.read_wc(small.cq)?.wr_id, count - 1);
            // What it has not come to yet is still there.
            let mut got = Vec::new();
            while next(setup, small.cq)? {
                got.push(setup.read_wc(small.cq)?.wr_id);
            }
            setup.end_poll(small.cq).rule("CQ-CREATE-15")?;
            if declared {
                check_eq!("CQ-OVR-03", got, (count..cqe).collect::<Vec<_>>());
            }
        }
    }
    Ok(())
}

scenario!(iteration_has_places_for_no_more_than_it_has_come_to: "CQ-CREATE-17"; needs CQ_EX);
fn iteration_has_places_for_no_more_than_it_has_come_to(setup: &Setup<'_>) -> Result {
    for queue in Queue::BOTH {
        for free in [1, 2, 4] {
            let small = small(setup, queue, &plain(7))?;
            let cqe = small.cqe()?;
            small.fill(0..cqe - free)?;
            come_to(setup, small.cq, cqe - free)?;
            check!(PLACES, !next(setup, small.cq)?, "the end", "a completion");
            small.fill(cqe - free..cqe)?;
            setup.no_async_event(small.end.context, PLACES)?;
            setup.end_poll(small.cq)?;
            // All it had come to are free again.
            small.fill(cqe..2 * cqe - free)?;
            setup.no_async_event(small.end.context, PLACES)?;
            let got = setup.successes(small.cq, cqe as usize).rule(PLACES)?;
            let rest: Vec<_> = (cqe - free..2 * cqe - free).collect();
            check_eq!(PLACES, wr_ids(&got), rest);
            small.overrun(PLACES)?;
            setup.async_events(small.end.context)?;
        }
    }
    Ok(())
}

scenario!(dead_cq_is_iterated_to_its_last_completion: "CQ-OVR-03", "CQ-OVR-02"; needs CQ_EX);
/// Then it is refused as by `ibv_poll_cq`, or found empty.
fn dead_cq_is_iterated_to_its_last_completion(setup: &Setup<'_>) -> Result {
    let behavior = setup.behavior()?;
    if behavior.overrun != Some(Overrun::Dead) {
        return Ok(());
    }
    for queue in Queue::BOTH {
        let small = small(setup, queue, &plain(5))?;
        let cqe = small.cqe()?;
        small.overrun("CQ-OVR-03")?;
        start(setup, small.cq)?;
        let mut got = vec![setup.read_wc(small.cq)?.wr_id];
        while next(setup, small.cq)? {
            got.push(setup.read_wc(small.cq)?.wr_id);
        }
        check_eq!("CQ-OVR-03", got, (0..cqe).collect::<Vec<_>>());
        setup.end_poll(small.cq)?;
        let kind = match behavior.poll_after_overrun {
            Some(PollAfterOverrun::Error) => ErrorKind::Io,
            _ => ErrorKind::NotFound,
        };
        for _ in 0..2 {
            expect_err(setup.start_poll(small.cq), kind, "CQ-OVR-02")?;
        }
        expect_err(setup.end_poll(small.cq), ErrorKind::Usage, "CQ-OVR-02")?;
    }
    Ok(())
}

scenario!(overwriting_takes_the_places_of_an_iteration_first: "CQ-CREATE-14"; needs CQ_EX);
/// They are of the oldest completions, and have been seen: the newest stay, as many as there are
/// places.
fn overwriting_takes_the_places_of_an_iteration_first(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-14";
    let init = plain(7).flags(CqFlags::IGNORE_OVERRUN);
    for queue in Queue::BOTH {
        for (held, more) in [
            (1, 1),
            (3, 1),
            (3, 3),
            (3, 5),
            (7, 2),
            (7, 7),
            (7, 9),
            (2, 20),
        ] {
            let context = match queue {
                Queue::Send => setup.ctx_a(),
                Queue::Recv => setup.ctx_b(),
            };
            match setup.has(context, Capabilities::IGNORE_OVERRUN)? {
                Some(true) => {}
                Some(false) => {
                    let refused = setup.create_cq_ex(context, &init);
                    return expect_err(refused, ErrorKind::NotSupported, RULE).map(drop);
                }
                None => return Ok(()),
            }
            let small = small(setup, queue, &init)?;
            let cqe = small.cqe()?;
            small.fill(0..cqe)?;
            come_to_any(setup, small.cq, held)?;
            small.fill(cqe..cqe + more)?;
            setup.no_async_event(context, RULE)?;
            check_eq!(RULE, setup.state(small.end.qp)?, QpState::Rts);
            let mut got = Vec::new();
            while setup.next_poll(small.cq).is_ok() {
                got.push(setup.read_wc(small.cq)?.wr_id);
            }
            let newest: Vec<_> = (held.max(more)..cqe + more).collect();
            let case = format!("{more} more, {held} seen of {cqe}");
            in_case(&case, same(RULE, &got, &newest))?;
            setup.end_poll(small.cq)?;
            // All places are free.
            small.fill(0..cqe)?;
            let all = wr_ids(&setup.successes(small.cq, cqe as usize).rule(RULE)?);
            in_case(&case, same(RULE, &all, &(0..cqe).collect::<Vec<_>>()))?;
        }
    }
    Ok(())
}

fn come_to_any(setup: &Setup<'_>, cq: Cq, count: u64) -> Result {
    start(setup, cq)?;
    (1..count).try_for_each(|_| Ok(setup.next_poll(cq)?))
}

fn same(rule: &'static str, seen: &[u64], expected: &[u64]) -> Result {
    check_eq!(rule, seen, expected, "the completions");
    Ok(())
}

scenario!(later_completion_frees_the_slots_of_lost_ones:
    "SQ-05", "RQ-02"; needs CQ_EX, IGNORE_OVERRUN);
fn later_completion_frees_the_slots_of_lost_ones(setup: &Setup<'_>) -> Result {
    if setup.behavior()?.sq_release != Some(SqRelease::Poll) {
        return Ok(());
    }
    let init = plain(7).flags(CqFlags::IGNORE_OVERRUN);
    for (queue, rule) in [(Queue::Send, "SQ-05"), (Queue::Recv, "RQ-02")] {
        let small = small(setup, queue, &init)?;
        let (end, cqe, lost) = (small.end, small.cqe()?, 5);
        small.fill(0..cqe + lost)?;
        let cap = setup.query_qp(end.qp, QpAttrMask::CAP)?.attr.cap;
        let (data, all) = match queue {
            Queue::Send => ([end.sge(0, 8)], cap.max_send_wr),
            Queue::Recv => ([end.sge(end.landing(), 8)], cap.max_recv_wr),
        };
        let room = || {
            let post = |wr_id| match queue {
                Queue::Send => {
                    setup.post_send(end.qp, &[SendWr::rdma_write(wr_id, &data, end.remote())])
                }
                Queue::Recv => setup.post_recv(end.qp, &[RecvWr::new(wr_id, &data)]),
            };
            (0..).take_while(|wr_id| post(*wr_id).is_ok()).count() as u64
        };
        check_eq!(rule, room(), u64::from(all) - cqe - lost, "the free slots");
        let got = setup.successes(small.cq, 1)?[0].wr_id;
        // Sends that were posted in between have completed, and overwritten others.
        if queue == Queue::Recv {
            check_eq!(rule, got, lost, "the oldest that is left");
            check_eq!(rule, room(), lost + 1, "the free slots");
        } else {
            check!(rule, room() > lost, "those of all before it", "fewer");
        }
    }
    Ok(())
}

scenario!(open_iteration_keeps_its_cq_as_it_is: "CQ-CREATE-15"; needs CQ_EX, RESIZE_CQ);
fn open_iteration_keeps_its_cq_as_it_is(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-15";
    let (pair, _) = pair_on(setup, QpType::Rc, &plain(16))?;
    let cq = pair.b.recv_cq;
    pair.deliver(0..3)?;
    setup.settle()?;
    let before = setup.query_cq(cq)?;
    start(setup, cq)?;
    for at_end in [false, true] {
        for size in [4, 64] {
            expect_err(setup.resize_cq(cq, size), ErrorKind::Usage, RULE)?;
        }
        check_eq!(RULE, setup.query_cq(cq)?, before);
        while !at_end && next(setup, cq)? {}
    }
    setup.end_poll(cq)?;
    setup.resize_cq(cq, 64).rule(RULE)
}

scenario!(cq_of_an_xrc_srq_waits_for_the_end_of_an_iteration: "CQ-CREATE-15"; needs CQ_EX, XRC);
/// Nothing else uses such a CQ: its SRQ can go with the iteration open.
fn cq_of_an_xrc_srq_waits_for_the_end_of_an_iteration(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-15";
    let options = PairOptions::of(QpType::XrcSend);
    let context = setup.ctx_b();
    let xrcd = setup.open_xrcd(context, &XrcdInit::private())?;
    let cq = setup.create_cq_ex(context, &plain(4))?;
    let b = setup.xrc_end(xrcd, None, options)?;
    let srq = setup.create_srq(b.pd, &SrqInit::new(4).xrc(xrcd, cq))?;
    let pair = setup.connect(setup.end(setup.ctx_a(), options)?, b, options)?;
    setup.post_srq_recv(srq, &[RecvWr::new(1, &[b.sge(0, 8)])])?;
    let data = [pair.a.sge(0, 8)];
    let work = SendWr::send(1, &data).to_srq(setup.srq_num(srq)?);
    setup.post_send(pair.a.qp, &[work])?;
    start(setup, cq)?;
    setup.destroy_srq(srq, setup.wait())?;
    for _ in 0..2 {
        let refused = setup.destroy_cq(cq, Wait::Poll);
        expect_err(refused, ErrorKind::Usage, RULE)?;
        check_eq!(RULE, setup.read_wc(cq)?.wr_id, 1);
    }
    setup.end_poll(cq)?;
    setup.destroy_cq(cq, Wait::Poll).rule(RULE)?;
    let gone = setup.poll_cq(cq, &mut [Wc::default()]);
    expect_err(gone, ErrorKind::Invalid, RULE).map(drop)
}

scenario!(data_is_there_when_an_iteration_comes_to_its_completion: "CQ-POLL-12"; needs CQ_EX);
fn data_is_there_when_an_iteration_comes_to_its_completion(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-POLL-12";
    const LEN: u32 = 4096;
    let (pair, _) = pair_on(setup, QpType::Rc, &plain(16))?;
    let (a, b, cq) = (pair.a, pair.b, pair.b.recv_cq);
    let send = |tag: u8| -> Result {
        a.fill_at(u64::from(tag) * u64::from(LEN), tag, LEN)?;
        b.recv_at(
            tag.into(),
            b.landing() + u64::from(tag) * u64::from(LEN),
            LEN,
        )?;
        let data = [a.sge(u64::from(tag) * u64::from(LEN), LEN)];
        a.post(SendWr::send(tag.into(), &data))?;
        // It arrives, and no poll has seen it where that can be known without one.
        match setup.verbs().lab() {
            Some(lab) => Ok(lab.settle()?),
            None => setup.successes(a.send_cq, 1).map(drop),
        }
    };
    let landed = |tag: u8| {
        let at = b.landing() + u64::from(tag) * u64::from(LEN);
        b.expect_data_at(at, tag, LEN, RULE)
    };
    send(1)?;
    start(setup, cq)?;
    in_case("start_poll", landed(1))?;
    send(2)?;
    go_on(setup, cq)?;
    in_case("next_poll", landed(2))?;
    setup.end_poll(cq)?;
    Ok(())
}

scenario!(extended_cqs_are_there_or_refused: "CQ-CREATE-18"; without RC);
fn extended_cqs_are_there_or_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-18";
    let (context, before) = (setup.ctx_a(), setup.live()?);
    let has = setup.capabilities(context)?.contains(Capabilities::CQ_EX);
    let made = setup.create_cq_ex(context, &plain(4));
    if has {
        setup.destroy_cq(made.rule(RULE)?, Wait::Poll)?;
    } else {
        expect_err(made, ErrorKind::NotSupported, RULE)?;
    }
    setup.expect_live(before, RULE)
}
