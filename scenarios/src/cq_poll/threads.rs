//! Polls where other threads may fill the CQ: a device may then know without a lock that it is
//! empty.

use verbs_api::{Cq, CqInit, CqInitEx, ErrorKind, Handle, Wait, Wc};

use crate::failure::{check_eq, in_case};
use crate::{Bench, OfRule, PairOptions, Result, expect_err, expect_err_among};

scenario!(no_other_handle_is_taken_for_an_empty_cq: "CQ-DESTROY-05", "CQ-POLL-03"; needs THREADS);
fn no_other_handle_is_taken_for_an_empty_cq(bench: &Bench<'_>) -> Result {
    let context = bench.ctx_a();
    let poll = |cq| bench.poll_cq(cq, &mut [Wc::default()]);
    let refused = |what: &str, cq| {
        let kinds = [ErrorKind::Invalid, ErrorKind::NotFound];
        in_case(
            what,
            expect_err_among(poll(cq), &kinds, "CQ-DESTROY-05").map(drop),
        )
    };
    let empty = |cq| -> Result {
        check_eq!("CQ-POLL-03", poll(cq).rule("CQ-POLL-03")?, 0);
        Ok(())
    };
    refused("zero", Cq::default())?;
    let other = bench.open_device(&bench.devices()?[0].name)?;
    let cq = bench.create_cq(context, &CqInit::new(4))?;
    let (index, generation) = (cq.index(), cq.generation());
    for _ in 0..2 {
        empty(cq)?;
        refused("zero", Cq::default())?;
        for context in [other, bench.ctx_b()] {
            let there = Cq::from_parts(context, index, generation);
            refused("of another context", there)?;
        }
        for bit in 0..32 {
            let generation = generation ^ 1 << bit;
            let never = Cq::from_parts(context, index, generation);
            refused("of another generation", never)?;
            let never = Cq::from_parts(context, index ^ 1 << bit, cq.generation());
            refused("of another index", never)?;
        }
    }
    bench.close_device(other)?;
    bench.destroy_cq(cq, Wait::Poll)?;
    refused("destroyed", cq)?;
    let next = bench.create_cq(context, &CqInit::new(4))?;
    empty(next)?;
    refused("destroyed", cq)?;
    bench.destroy_cq(next, Wait::Poll)?;
    refused("destroyed", next).map(drop)
}

scenario!(overrun_cq_gives_the_same_whoever_polls: "CQ-POLL-04", "CQ-POLL-06"; needs THREADS);
fn overrun_cq_gives_the_same_whoever_polls(bench: &Bench<'_>) -> Result {
    super::gives_a_failure_after_the_last(bench)
}

scenario!(dead_device_is_told_by_a_poll_of_an_empty_cq: "ASYNC-10"; needs LAB, THREADS);
fn dead_device_is_told_by_a_poll_of_an_empty_cq(bench: &Bench<'_>) -> Result {
    let cq = bench.create_cq(bench.ctx_a(), &CqInit::new(4))?;
    let poll = || bench.poll_cq(cq, &mut [Wc::default()]);
    check_eq!("ASYNC-10", poll()?, 0);
    bench.lab().kill_device(bench.ctx_a())?;
    expect_err(poll(), ErrorKind::Io, "ASYNC-10").map(drop)
}

scenario!(iterated_cq_is_refused_though_it_has_nothing: "CQ-CREATE-15"; needs CQ_EX, THREADS);
fn iterated_cq_is_refused_though_it_has_nothing(bench: &Bench<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-15";
    let options = PairOptions::default();
    let cq = bench.create_cq_ex(bench.ctx_b(), &CqInitEx::new(CqInit::new(4)))?;
    let sends = bench.create_cq(bench.ctx_b(), &CqInit::new(4))?;
    let (a, b) = (
        bench.end(bench.ctx_a(), options)?,
        bench.end_on(sends, cq, options)?,
    );
    let pair = bench.connect(a, b, options)?;
    let poll = || bench.poll_cq(cq, &mut [Wc::default()]);
    for wr_id in 0..2 {
        check_eq!(RULE, poll().rule(RULE)?, 0);
        pair.deliver(wr_id..wr_id + 1)?;
        bench.until("an iteration", || Ok(bench.start_poll(cq).ok()))?;
        expect_err(poll(), ErrorKind::Usage, RULE)?;
        expect_err(bench.next_poll(cq), ErrorKind::NotFound, RULE)?;
        expect_err(poll(), ErrorKind::Usage, RULE)?;
        bench.end_poll(cq)?;
    }
    Ok(())
}
