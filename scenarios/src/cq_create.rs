//! Creating CQs: sizes, channels, completion vectors, how many, and who shares them.

use verbs_api::lab::Limit;
use verbs_api::{Arm, Capabilities, Cq, CqInit, Error, ErrorKind, Wait, WcOpcode};

use crate::cq_ovr::{Queue, SmallCq};
use crate::failure::{check, check_eq, value_in_case};
use crate::{OfRule, PairOptions, Result, Scenario, Setup, expect_err, wr_ids};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    size_is_at_least_what_was_asked,
    every_entry_can_be_used,
    size_below_one_is_refused,
    size_above_the_limit_is_refused,
    cq_without_channel_is_polled,
    context_value_comes_with_every_event,
    vector_is_one_of_the_device,
    as_many_cqs_as_the_limit_says,
    many_qps_share_a_cq,
    completions_of_all_qps_must_fit,
    cqs_of_different_qps_are_apart,
    sends_and_receives_go_to_their_cqs,
    failure_leaves_the_channel_free,
    failure_leaks_nothing,
    limit_of_entries_is_of_all_cqs_together,
];

/// Sizes around powers of two.
pub(crate) const SIZES: [i32; 14] = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 1000, 1023, 1024];

/// A CQ has the size it should have when `asked` entries were asked for.
pub(crate) fn expect_size(setup: &Setup<'_>, cq: Cq, asked: i32, rule: &'static str) -> Result {
    let (asked, cqe) = (asked as u32, setup.query_cq(cq)?.cqe);
    check!(
        rule,
        cqe >= asked,
        format!("at least {asked} entries"),
        "{cqe}"
    );
    let Some(declared) = setup.behavior()?.cqe_rounding else {
        return Ok(());
    };
    check_eq!(
        rule,
        cqe,
        declared.up(asked),
        format!("the size asked as {asked}")
    );
    Ok(())
}

scenario!(size_is_at_least_what_was_asked: "CQ-CREATE-01"; without RC);
fn size_is_at_least_what_was_asked(setup: &Setup<'_>) -> Result {
    for asked in SIZES {
        let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(asked));
        let cq = cq.rule("CQ-CREATE-01")?;
        expect_size(setup, cq, asked, "CQ-CREATE-01")?;
        setup.destroy_cq(cq, Wait::Poll)?;
    }
    Ok(())
}

scenario!(every_entry_can_be_used: "CQ-CREATE-02");
fn every_entry_can_be_used(setup: &Setup<'_>) -> Result {
    for queue in Queue::BOTH {
        for asked in [1, 2, 3, 8, 9, 31] {
            let small = SmallCq::new(setup, queue, asked)?;
            let cqe = small.cqe()?;
            small.fill(0..cqe)?;
            setup.no_async_event(small.end.context, "CQ-CREATE-02")?;
            let got = setup.successes(small.cq, cqe as usize);
            let got = wr_ids(&got.rule("CQ-CREATE-02")?);
            check_eq!("CQ-CREATE-02", got, (0..cqe).collect::<Vec<_>>());
        }
    }
    Ok(())
}

scenario!(size_below_one_is_refused: "CQ-CREATE-03"; without RC);
fn size_below_one_is_refused(setup: &Setup<'_>) -> Result {
    for cqe in [0, -1, i32::MIN] {
        let refused = setup.create_cq(setup.ctx_a(), &CqInit::new(cqe));
        expect_err(refused, ErrorKind::Invalid, "CQ-CREATE-03")?;
    }
    Ok(())
}

scenario!(size_above_the_limit_is_refused: "CQ-CREATE-04"; without RC);
fn size_above_the_limit_is_refused(setup: &Setup<'_>) -> Result {
    for above in sizes_above_the_limit(setup)? {
        let refused = setup.create_cq(setup.ctx_a(), &CqInit::new(above));
        expect_err(refused, ErrorKind::Invalid, "CQ-CREATE-04")?;
    }
    let max = largest_size(setup)?;
    match setup.create_cq(setup.ctx_a(), &CqInit::new(max)) {
        Ok(cq) => expect_size(setup, cq, max, "CQ-CREATE-04"),
        error => expect_err(error, ErrorKind::NoMemory, "CQ-CREATE-04").map(drop),
    }
}

/// The largest size that may be asked for.
pub(crate) fn largest_size(setup: &Setup<'_>) -> Result<i32> {
    let max = setup.query_device(setup.ctx_a())?.max_cqe;
    Ok(i32::try_from(max).unwrap_or(i32::MAX))
}

/// Sizes that are too large; none if the limit is the largest number.
pub(crate) fn sizes_above_the_limit(setup: &Setup<'_>) -> Result<Vec<i32>> {
    let next = largest_size(setup)?.checked_add(1);
    Ok(next.into_iter().flat_map(|next| [next, i32::MAX]).collect())
}

scenario!(cq_without_channel_is_polled: "CQ-CREATE-05");
fn cq_without_channel_is_polled(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(PairOptions {
        channel: false,
        ..PairOptions::default()
    })?;
    pair.deliver(0..8).rule("CQ-CREATE-05")?;
    let got = setup.successes(pair.b.recv_cq, 8).rule("CQ-CREATE-05")?;
    check_eq!("CQ-CREATE-05", wr_ids(&got), (0..8).collect::<Vec<_>>());
    for cq in [pair.a.send_cq, pair.b.recv_cq] {
        check_eq!("CQ-CREATE-05", setup.query_cq(cq)?.channel, None);
    }
    Ok(())
}

scenario!(context_value_comes_with_every_event: "CQ-CREATE-06");
fn context_value_comes_with_every_event(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_b())?;
    for value in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
        let init = CqInit::new(8).channel(channel).context(value);
        let cq = setup.create_cq(setup.ctx_b(), &init)?;
        check_eq!("CQ-CREATE-06", setup.query_cq(cq)?.cq_context, value);
        let small = SmallCq::on(setup, Queue::Recv, cq)?;
        for wr_id in 0..3 {
            setup.arm(cq, Arm::NEXT)?;
            small.push(wr_id)?;
            let event = setup.event_and_ack(channel).rule("CQ-CREATE-06")?;
            check_eq!("CQ-CREATE-06", event.cq, cq);
            check_eq!("CQ-CREATE-06", event.cq_context, value);
            setup.successes(cq, 1)?;
        }
    }
    Ok(())
}

scenario!(vector_is_one_of_the_device: "CQ-CREATE-07");
fn vector_is_one_of_the_device(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_b();
    let vectors = setup.query_device(context)?.num_comp_vectors as i32;
    let channel = setup.create_comp_channel(context)?;
    let init = |vector| CqInit::new(8).channel(channel).comp_vector(vector);
    for vector in [-1, vectors, i32::MIN, i32::MAX] {
        let refused = setup.create_cq(context, &init(vector));
        expect_err(refused, ErrorKind::Invalid, "CQ-CREATE-07")?;
    }
    for vector in [0, vectors - 1] {
        let cq = setup
            .create_cq(context, &init(vector))
            .rule("CQ-CREATE-07")?;
        let seen = setup.query_cq(cq)?.comp_vector;
        check_eq!("CQ-CREATE-07", seen, vector as u32, "the vector");
        let small = SmallCq::on(setup, Queue::Recv, cq)?;
        setup.arm(cq, Arm::NEXT)?;
        small.push(0)?;
        setup.expect_event(channel, cq, "CQ-CREATE-07")?;
    }
    Ok(())
}

/// A device that has more is not asked for all.
const MANY: u32 = 65_536;

scenario!(as_many_cqs_as_the_limit_says: "CQ-CREATE-08"; needs LAB);
fn as_many_cqs_as_the_limit_says(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_b();
    let pair = setup.rc_pair()?;
    pair.deliver(0..2)?;
    let max_cq = setup.query_device(context)?.max_cq;
    let room = max_cq.min(MANY) - setup.lab().live(context)?.cqs;
    let init = CqInit::new(1);
    let mut last = Cq::default();
    for nth in 1..=room {
        let made = setup.create_cq(context, &init).rule("CQ-CREATE-08");
        last = match made {
            Ok(cq) => cq,
            Err(_) => value_in_case(&format!("CQ {nth} of {room}"), made)?,
        };
    }
    if max_cq <= MANY {
        let refused = setup.create_cq(context, &init);
        expect_err(refused, ErrorKind::NoMemory, "CQ-CREATE-08")?;
    }
    pair.deliver(2..4).rule("CQ-CREATE-08")?;
    let got = setup.successes(pair.b.recv_cq, 4).rule("CQ-CREATE-08")?;
    check_eq!("CQ-CREATE-08", wr_ids(&got), [0, 1, 2, 3]);
    setup.destroy_cq(last, Wait::Poll).rule("CQ-CREATE-08")?;
    setup.create_cq(context, &init).rule("CQ-CREATE-08")?;
    Ok(())
}

scenario!(many_qps_share_a_cq: "CQ-CREATE-09");
fn many_qps_share_a_cq(setup: &Setup<'_>) -> Result {
    let first = setup.rc_pair()?;
    let mut pairs = vec![first];
    for _ in 1..5 {
        pairs.push(setup.second_pair(&first, PairOptions::default())?);
    }
    for round in 0..3 {
        for pair in &pairs {
            pair.b.recv(round, 8)?;
            pair.a.send(round, 8)?;
        }
    }
    for (cq, qps) in [
        (
            first.a.send_cq,
            pairs.iter().map(|pair| pair.a.qp_num).collect::<Vec<_>>(),
        ),
        (
            first.b.recv_cq,
            pairs.iter().map(|pair| pair.b.qp_num).collect(),
        ),
    ] {
        let got = setup.successes(cq, 15).rule("CQ-CREATE-09")?;
        for qp in qps {
            let of_qp: Vec<_> = got.iter().copied().filter(|wc| wc.qp_num == qp).collect();
            check_eq!(
                "CQ-CREATE-09",
                wr_ids(&of_qp),
                [0, 1, 2],
                format!("qp_num {qp:#x}")
            );
        }
        setup.no_completion(cq, "CQ-CREATE-09")?;
    }
    Ok(())
}

scenario!(completions_of_all_qps_must_fit: "CQ-CREATE-09");
fn completions_of_all_qps_must_fit(setup: &Setup<'_>) -> Result {
    for queue in Queue::BOTH {
        let first = SmallCq::new(setup, queue, 4)?;
        let second = SmallCq::on(setup, queue, first.cq)?;
        let count = first.too_many()?;
        let half = first.cqe()? / 2;
        first.fill(0..half)?;
        second.fill(half..first.cqe()?)?;
        setup.no_async_event(first.end.context, "CQ-CREATE-09")?;
        first.push_all(first.cqe()?..count)?;
        first.cq_err("CQ-CREATE-09")?;
    }
    Ok(())
}

scenario!(cqs_of_different_qps_are_apart: "CQ-CREATE-10");
fn cqs_of_different_qps_are_apart(setup: &Setup<'_>) -> Result {
    let [busy, calm] = [setup.rc_pair()?, setup.rc_pair()?];
    setup.arm(calm.b.recv_cq, Arm::NEXT)?;
    busy.deliver(0..16)?;
    setup.no_event(calm.b.channel, "CQ-CREATE-10")?;
    setup.no_completion(calm.b.recv_cq, "CQ-CREATE-10")?;
    calm.deliver(0..1)?;
    setup.expect_event(calm.b.channel, calm.b.recv_cq, "CQ-CREATE-10")?;
    for (pair, count) in [(calm, 1), (busy, 16)] {
        let got = setup
            .successes(pair.b.recv_cq, count)
            .rule("CQ-CREATE-10")?;
        let own = got.iter().all(|wc| wc.qp_num == pair.b.qp_num);
        check!(
            "CQ-CREATE-10",
            own,
            format!("of qp_num {:#x}", pair.b.qp_num),
            "{got:?}"
        );
    }
    Ok(())
}

scenario!(sends_and_receives_go_to_their_cqs: "CQ-CREATE-11");
fn sends_and_receives_go_to_their_cqs(setup: &Setup<'_>) -> Result {
    for one_cq in [false, true] {
        let pair = setup.pair(PairOptions {
            one_cq,
            ..PairOptions::default()
        })?;
        for wr_id in 0..4 {
            for (from, to) in [(pair.a, pair.b), (pair.b, pair.a)] {
                to.recv(wr_id, 8)?;
                from.send(wr_id, 8)?;
            }
        }
        for end in [pair.a, pair.b] {
            let per_cq = if one_cq { 8 } else { 4 };
            for (cq, opcode) in [(end.send_cq, WcOpcode::Send), (end.recv_cq, WcOpcode::Recv)] {
                if one_cq && opcode == WcOpcode::Recv {
                    continue;
                }
                let got = setup.successes(cq, per_cq).rule("CQ-CREATE-11")?;
                let of_kind = got.iter().filter(|wc| wc.opcode == opcode).count();
                check_eq!("CQ-CREATE-11", of_kind, 4, format!("{opcode} on {cq}"));
                setup.no_completion(cq, "CQ-CREATE-11")?;
            }
        }
    }
    Ok(())
}

/// Requests that every device refuses.
fn bad_requests(setup: &Setup<'_>) -> Result<Vec<CqInit>> {
    let vectors = setup.query_device(setup.ctx_a())?.num_comp_vectors as i32;
    let mut bad: Vec<_> = sizes_above_the_limit(setup)?
        .into_iter()
        .map(CqInit::new)
        .collect();
    bad.extend([
        CqInit::new(0),
        CqInit::new(-1),
        CqInit::new(8).comp_vector(vectors),
        CqInit::new(8).comp_vector(-1),
    ]);
    Ok(bad)
}

scenario!(failure_leaves_the_channel_free: "CQ-CREATE-13"; without RC);
fn failure_leaves_the_channel_free(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    for bad in bad_requests(setup)? {
        let refused = setup.create_cq(setup.ctx_a(), &bad.channel(channel));
        expect_err(refused, ErrorKind::Invalid, "CQ-CREATE-13")?;
    }
    setup.destroy_comp_channel(channel).rule("CQ-CREATE-13")
}

scenario!(failure_leaks_nothing: "CQ-CREATE-13"; needs LAB);
fn failure_leaks_nothing(setup: &Setup<'_>) -> Result {
    let (lab, context) = (setup.lab(), setup.ctx_a());
    let channel = setup.create_comp_channel(context)?;
    let before = lab.live(context)?;
    for bad in bad_requests(setup)? {
        let refused = setup.create_cq(context, &bad.channel(channel));
        expect_err(refused, ErrorKind::Invalid, "CQ-CREATE-13")?;
    }
    let good = CqInit::new(8).channel(channel);
    for limit in [Limit::Objects, Limit::CqEntries] {
        lab.set_limit(context, limit, Some(0))?;
        let refused = setup.create_cq(context, &good);
        expect_err(refused, ErrorKind::NoMemory, "CQ-CREATE-13")?;
        lab.set_limit(context, limit, None)?;
    }
    check_eq!("CQ-CREATE-13", lab.live(context)?, before, "what lives");
    // If entries of the failed ones were still counted, these would not fit.
    lab.set_limit(context, Limit::CqEntries, Some(8))?;
    let cq = setup.create_cq(context, &CqInit::new(1).channel(channel));
    setup.destroy_cq(cq.rule("CQ-CREATE-13")?, Wait::Poll)?;
    setup.destroy_comp_channel(channel).rule("CQ-CREATE-13")
}

scenario!(limit_of_entries_is_of_all_cqs_together: "CQ-CREATE-13", "CQ-RESIZE-15"; needs LAB);
/// Entries that a resize or a destruction releases are available to others.
fn limit_of_entries_is_of_all_cqs_together(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-13";
    let (lab, context) = (setup.lab(), setup.ctx_a());
    let create = |cqe| setup.create_cq(context, &CqInit::new(cqe));
    let size = |cq| Ok::<_, Error>(u64::from(setup.query_cq(cq)?.cqe));
    let full = |cqe| expect_err(create(cqe), ErrorKind::NoMemory, RULE);
    let (large, small) = (create(15)?, create(7)?);
    let (most, least) = (size(large)?, size(small)?);
    lab.set_limit(context, Limit::CqEntries, Some(most + least))?;
    full(1)?;
    setup.destroy_cq(small, Wait::Poll)?;
    full(15)?;
    let small = create(7).rule(RULE)?;
    full(1)?;
    setup.destroy_cq(large, Wait::Poll)?;
    let [second, third] = [create(7).rule(RULE)?, small];
    full(15)?;
    if setup
        .capabilities(context)?
        .contains(Capabilities::RESIZE_CQ)
    {
        const RESIZE: &str = "CQ-RESIZE-15";
        let no_room = || -> Result {
            let refused = setup.resize_cq(second, most as i32 + 1);
            expect_err(refused, ErrorKind::NoMemory, RESIZE)?;
            check_eq!(RESIZE, size(second)?, least);
            Ok(())
        };
        no_room()?;
        setup.resize_cq(second, 15).rule(RESIZE)?;
        full(1)?;
        setup.destroy_cq(third, Wait::Poll)?;
        setup.resize_cq(second, 7).rule(RESIZE)?;
        // What is there already needs no room.
        lab.set_limit(context, Limit::CqEntries, Some(1))?;
        setup.resize_cq(second, 7).rule(RESIZE)?;
        full(1)?;
        lab.set_limit(context, Limit::CqEntries, Some(most + least))?;
        if size(second)? == least {
            let third = create(15).rule(RESIZE)?;
            full(1)?;
            no_room()?;
            setup.destroy_cq(third, Wait::Poll)?;
        }
        setup.destroy_cq(second, Wait::Poll)?;
        // All entries are released.
        lab.set_limit(context, Limit::CqEntries, Some(most))?;
        create(15).rule(RESIZE)?;
    }
    Ok(())
}
