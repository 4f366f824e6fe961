//! Channels that are shared: by threads, and by CQs.

use verbs_api::{Cq, Error};

use super::{Model, ack, arm, next_event, poll, wait_event};
use crate::{Bench, Failure, Outcome, Search};

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "threads.take_what_they_find",
        &["CHAN-20", "CHAN-21", "CQ-ARM-38", "CQ-POLL-05"],
        (3, 2),
        |bench| two_threads(bench, false),
    )
    .search(Search::new().preemptions(2)),
    Model::fails(
        "threads.expect_a_completion_with_each_event",
        &["CQ-ARM-38", "CHAN-20"],
        "its CQ was empty",
        (3, 2),
        |bench| two_threads(bench, true),
    )
    .search(Search::new().preemptions(2)),
    Model::holds(
        "channel.handles_the_cq_of_the_event",
        &["CHAN-23", "CHAN-06", "CHAN-24"],
        (2, 3),
        |bench| two_cqs(bench, true),
    )
    .search(Search::new().preemptions(3)),
    Model::fails(
        "channel.handles_its_first_cq_only",
        &["CHAN-23", "CHAN-06"],
        "a completion is in cq#1 that nobody polls",
        (2, 3),
        |bench| two_cqs(bench, false),
    )
    .search(Search::new().preemptions(3)),
];

/// Two threads serve one CQ; they end when nothing can come any more. An event wakes one of them, and
/// the other may be polling already.
fn two_threads(bench: &Bench, expect_some: bool) -> Outcome {
    let cq = bench.cq(4)?;
    let link = bench.link(cq, 2)?;
    let serve = move |bench: &Bench| -> Outcome<usize> {
        arm(bench, cq)?;
        let mut polled = poll(bench, cq)?;
        while let Some(event) = next_event(bench)? {
            ack(bench, event)?;
            arm(bench, cq)?;
            let found = poll(bench, cq)?;
            if expect_some && found == 0 {
                return Err(Failure::new(format!(
                    "an event of {cq} came, and its CQ was empty: another thread had polled it \
                     (CQ-ARM-38)"
                )));
            }
            polled += found;
        }
        Ok(polled)
    };
    let servers = [bench.spawn("a", serve), bench.spawn("b", serve)];
    bench.spawn("peer", move |bench| {
        link.send(bench, 0)?;
        link.send(bench, 1)
    });
    let mut polled = 0;
    for server in servers {
        polled += server.join()?;
    }
    assert_eq!(polled, 2, "each completion is polled once");
    bench.expect_empty(cq)
}

/// One channel for two CQs: the event says which it is of.
fn two_cqs(bench: &Bench, look: bool) -> Outcome {
    let cqs: [Cq; 2] = [bench.cq(4)?, bench.cq(4)?];
    let links = [bench.link(cqs[0], 2)?, bench.link(cqs[1], 1)?];
    bench.spawn("loop", move |bench| {
        let mut left = 3;
        for cq in cqs {
            arm(bench, cq)?;
            left -= poll(bench, cq)?;
        }
        while left > 0 {
            let event = wait_event(bench)?;
            ack(bench, event)?;
            let cq = if look { event.cq } else { cqs[0] };
            arm(bench, cq)?;
            left -= poll(bench, cq)?;
        }
        Ok::<_, Error>(())
    });
    bench.spawn("peer", move |bench| {
        links[0].send(bench, 0)?;
        links[1].send(bench, 0)?;
        links[0].send(bench, 1)
    });
    Ok(())
}
