//! Polls where other threads may fill the CQ: a device may then know without a lock that it is
//! empty.

use verbs_api::{Cq, CqInit, CqInitEx, ErrorKind, Handle, Wait, Wc};

use crate::failure::{check_eq, in_case};
use crate::{OfRule, PairOptions, Result, Setup, expect_err, expect_err_among};

scenario!(no_other_handle_is_taken_for_an_empty_cq:
    "CQ-DESTROY-05", "CQ-POLL-03"; needs THREADS; without RC);
fn no_other_handle_is_taken_for_an_empty_cq(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_a();
    let poll = |cq| setup.poll_cq(cq, &mut [Wc::default()]);
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
    let other = setup.open_device(&setup.devices()?[0].name)?;
    let cq = setup.create_cq(context, &CqInit::new(4))?;
    let (index, generation) = (cq.index(), cq.generation());
    for _ in 0..2 {
        empty(cq)?;
        refused("zero", Cq::default())?;
        for context in [other, setup.ctx_b()] {
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
    setup.close_device(other)?;
    setup.destroy_cq(cq, Wait::Poll)?;
    refused("destroyed", cq)?;
    let next = setup.create_cq(context, &CqInit::new(4))?;
    empty(next)?;
    refused("destroyed", cq)?;
    setup.destroy_cq(next, Wait::Poll)?;
    refused("destroyed", next).map(drop)
}

scenario!(overrun_cq_gives_the_same_whoever_polls: "CQ-POLL-04", "CQ-POLL-06"; needs THREADS);
fn overrun_cq_gives_the_same_whoever_polls(setup: &Setup<'_>) -> Result {
    super::gives_a_failure_after_the_last(setup)
}

scenario!(dead_device_is_told_by_a_poll_of_an_empty_cq: "ASYNC-10"; needs LAB, THREADS);
fn dead_device_is_told_by_a_poll_of_an_empty_cq(setup: &Setup<'_>) -> Result {
    let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(4))?;
    let poll = || setup.poll_cq(cq, &mut [Wc::default()]);
    check_eq!("ASYNC-10", poll()?, 0);
    setup.lab().kill_device(setup.ctx_a())?;
    expect_err(poll(), ErrorKind::Io, "ASYNC-10").map(drop)
}

scenario!(iterated_cq_is_refused_though_it_has_nothing: "CQ-CREATE-15"; needs CQ_EX, THREADS);
fn iterated_cq_is_refused_though_it_has_nothing(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-15";
    let options = PairOptions::default();
    let cq = setup.create_cq_ex(setup.ctx_b(), &CqInitEx::new(CqInit::new(4)))?;
    let sends = setup.create_cq(setup.ctx_b(), &CqInit::new(4))?;
    let (a, b) = (
        setup.end(setup.ctx_a(), options)?,
        setup.end_on(sends, cq, options)?,
    );
    let pair = setup.connect(a, b, options)?;
    let poll = || setup.poll_cq(cq, &mut [Wc::default()]);
    for wr_id in 0..2 {
        check_eq!(RULE, poll().rule(RULE)?, 0);
        pair.deliver(wr_id..wr_id + 1)?;
        setup.until("an iteration", || Ok(setup.start_poll(cq).ok()))?;
        expect_err(poll(), ErrorKind::Usage, RULE)?;
        expect_err(setup.next_poll(cq), ErrorKind::NotFound, RULE)?;
        expect_err(poll(), ErrorKind::Usage, RULE)?;
        setup.end_poll(cq)?;
    }
    Ok(())
}
