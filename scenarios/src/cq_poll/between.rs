//! The order of completions of different queues: none is promised.

use verbs_api::Cq;
use verbs_api::behavior::AckEffect;

use crate::failure::{check, check_eq};
use crate::{OfRule, PairOptions, Result, Setup, wr_ids};

const RULE: &str = "CQ-POLL-13";

/// A device whose acknowledgements count late shows it in far fewer.
const ROUNDS: u64 = 32;

/// Sends and receives of an end share a CQ.
fn one_cq() -> PairOptions {
    PairOptions {
        one_cq: true,
        ..PairOptions::default()
    }
}

scenario!(answer_may_complete_before_the_send_it_answers: "CQ-POLL-13");
fn answer_may_complete_before_the_send_it_answers(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(one_cq())?;
    let (a, b) = (pair.a, pair.b);
    let mut is_ever_first = false;
    for _ in 0..ROUNDS {
        a.recv(2, 8)?;
        b.recv(3, 8)?;
        a.send(1, 8)?;
        check_eq!(
            RULE,
            wr_ids(&setup.successes(b.recv_cq, 1).rule(RULE)?),
            [3]
        );
        b.send(4, 8)?;
        is_ever_first |= is_second_first(setup, a.send_cq, [1, 2])?;
        check_eq!(
            RULE,
            wr_ids(&setup.successes(b.send_cq, 1).rule(RULE)?),
            [4]
        );
    }
    as_declared(setup, is_ever_first)
}

scenario!(sends_of_two_qps_may_complete_in_another_order_than_posted: "CQ-POLL-13");
fn sends_of_two_qps_may_complete_in_another_order_than_posted(setup: &Setup<'_>) -> Result {
    let first = setup.pair(one_cq())?;
    let second = setup.second_pair(&first, one_cq())?;
    let mut is_ever_first = false;
    for _ in 0..ROUNDS {
        first.a.write(1, 8)?;
        second.a.write(2, 8)?;
        is_ever_first |= is_second_first(setup, first.a.send_cq, [1, 2])?;
    }
    as_declared(setup, is_ever_first)
}

/// Takes two completions that may come in either order. Returns whether the second came first.
fn is_second_first(setup: &Setup<'_>, cq: Cq, expected: [u64; 2]) -> Result<bool> {
    let [first, second] = expected;
    let got = wr_ids(&setup.successes(cq, 2).rule(RULE)?);
    let is_second_first = got == [second, first];
    let is_either = is_second_first || got == expected;
    check!(RULE, is_either, format!("{first} and {second}"), "{got:?}");
    Ok(is_second_first)
}

/// Checks that the order varied as declared, on a simulator: elsewhere it depends on time.
fn as_declared(setup: &Setup<'_>, varied: bool) -> Result {
    if setup.verbs().lab().is_none() {
        return Ok(());
    }
    let seen = if varied {
        AckEffect::Late
    } else {
        AckEffect::Arrival
    };
    setup.as_declared(RULE, setup.behavior()?.ack_effect, seen)
}
