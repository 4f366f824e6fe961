//! The event that few receives are left.

use verbs_api::{AsyncEventType, ErrorKind};

use super::Shared;
use crate::failure::{check_eq, in_case};
use crate::{Claim, OfRule, PairOptions, Result, Setup, expect_err};

const REACHED: AsyncEventType = AsyncEventType::SrqLimitReached;

scenario!(limit_event_comes_once_when_fewer_than_it_are_left: "SRQ-05", "ASYNC-02"; needs SRQ);
/// For various numbers of receives and limits, the event comes with the receive that leaves one
/// fewer than the limit.
fn limit_event_comes_once_when_fewer_than_it_are_left(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-05";
    let shared = Shared::new(setup, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    for (posted, limit) in [(1, 1), (4, 3), (6, 2)] {
        shared.post(0..posted)?;
        shared.set_limit(limit).rule(RULE)?;
        for wr_id in 0..posted {
            shared.takes(&pair, 1, wr_id, RULE)?;
            let left = posted - wr_id - 1;
            let expected = if left + 1 == u64::from(limit) {
                vec![REACHED]
            } else {
                vec![]
            };
            let events = shared.events()?;
            let case = format!("{left} of {posted} are left, the limit is {limit}");
            check_eq!([RULE, "ASYNC-02"], events, expected, case);
        }
    }
    Ok(())
}

scenario!(limit_is_zero_once_its_event_was_raised: "SRQ-06"; needs SRQ);
fn limit_is_zero_once_its_event_was_raised(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-06";
    let shared = Shared::new(setup, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    shared.post(0..4)?;
    shared.set_limit(3)?;
    shared.takes(&pair, 1, 0, RULE)?;
    let limit = || -> Result<u32> { Ok(setup.query_srq(shared.srq).rule(RULE)?.srq_limit) };
    check_eq!(RULE, limit()?, 3, "the limit before");
    shared.takes(&pair, 1, 1, RULE)?;
    shared.event(REACHED, RULE)?;
    check_eq!(RULE, limit()?, 0, "the limit after");
    Ok(())
}

scenario!(limit_can_be_set_again_and_lifted: "SRQ-06"; needs SRQ);
fn limit_can_be_set_again_and_lifted(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-06";
    let shared = Shared::new(setup, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    shared.tells_limit(0, RULE)?;
    shared.post(0..6)?;
    for (limit, wr_id) in [(6, 0), (5, 1), (4, 2)] {
        shared.set_limit(limit).rule(RULE)?;
        shared.tells_limit(limit, RULE)?;
        shared.takes(&pair, 1, wr_id, RULE)?;
        in_case(&format!("limit {limit}"), shared.event(REACHED, RULE))?;
    }
    shared.set_limit(3).rule(RULE)?;
    shared.set_limit(0).rule(RULE)?;
    shared.tells_limit(0, RULE)?;
    for wr_id in 3..6 {
        shared.takes(&pair, 1, wr_id, RULE)?;
    }
    check_eq!(RULE, shared.events()?, [], "the events");
    Ok(())
}

scenario!(limit_above_what_is_there_is_told_now_or_with_the_next_receive: "SRQ-07"; needs SRQ);
fn limit_above_what_is_there_is_told_now_or_with_the_next_receive(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-07";
    let shared = Shared::new(setup, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    shared.post([0, 1])?;
    shared.set_limit(4).rule(RULE)?;
    let at_once = !shared.events()?.is_empty();
    setup.as_declared(RULE, setup.behavior()?.srq_limit_at_once, at_once)?;
    shared.takes(&pair, 1, 0, RULE)?;
    let expected = if at_once { vec![] } else { vec![REACHED] };
    check_eq!(RULE, shared.events()?, expected, "the events then");
    shared.takes(&pair, 1, 1, RULE)?;
    check_eq!(RULE, shared.events()?, [], "the events afterwards");
    Ok(())
}

scenario!(limit_above_the_size_is_refused: "SRQ-08"; needs SRQ);
fn limit_above_the_size_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-08";
    let shared = Shared::new(setup, 8)?;
    let most = shared.max_wr()?;
    for armed in [0, 2, most] {
        shared.set_limit(armed).rule(RULE)?;
        let before = shared.reported()?;
        for limit in [most + 1, u32::MAX] {
            let refused = expect_err(shared.set_limit(limit), ErrorKind::Invalid, RULE);
            in_case(&format!("limit {limit}"), refused.map(drop))?;
            check_eq!(RULE, shared.reported()?, before, "what a query tells");
        }
    }
    Ok(())
}

scenario!(unread_event_goes_with_its_queue: "ASYNC-06"; needs SRQ; hazards MAY_HANG);
fn unread_event_goes_with_its_queue(setup: &Setup<'_>) -> Result {
    let shared = Shared::new(setup, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    shared.post(0..2)?;
    shared.set_limit(2)?;
    shared.takes(&pair, 1, 0, Claim::NONE)?;
    setup.settle()?;
    setup.destroy_qp(pair.b.qp, setup.wait())?;
    setup
        .destroy_srq(shared.srq, setup.wait())
        .rule("ASYNC-06")?;
    setup.no_async_event(pair.b.context, "ASYNC-06")
}
