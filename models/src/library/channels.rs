//! Channels that are shared: by threads, and by CQs.

use verbs_api::{Cq, Error};

use super::{Model, ack, arm, next_event, poll, wait_event};
use crate::{Harness, ModelError, Outcome, Search};

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "threads.take_what_they_find",
        &["CHAN-20", "CHAN-21", "CQ-ARM-38", "CQ-POLL-05"],
        (3, 2),
        |harness| two_threads(harness, false),
    )
    .search(Search::new().preemptions(2)),
    Model::fails(
        "threads.expect_a_completion_with_each_event",
        &["CQ-ARM-38", "CHAN-20"],
        "its CQ was empty",
        (3, 2),
        |harness| two_threads(harness, true),
    )
    .search(Search::new().preemptions(2)),
    Model::holds(
        "channel.handles_the_cq_of_the_event",
        &["CHAN-23", "CHAN-06", "CHAN-24"],
        (2, 3),
        |harness| two_cqs(harness, true),
    )
    .search(Search::new().preemptions(3)),
    Model::fails(
        "channel.handles_its_first_cq_only",
        &["CHAN-23", "CHAN-06"],
        "an unpolled completion is in cq#1",
        (2, 3),
        |harness| two_cqs(harness, false),
    )
    .search(Search::new().preemptions(3)),
];

/// Two threads serve one CQ; they end when nothing can come any more. An event wakes one of them,
/// and the other may be polling already.
fn two_threads(harness: &Harness, expect_some: bool) -> Outcome {
    let cq = harness.cq(4)?;
    let link = harness.link(cq, 2)?;
    let serve = move |harness: &Harness| -> Outcome<usize> {
        arm(harness, cq)?;
        let mut polled = poll(harness, cq)?;
        while let Some(event) = next_event(harness)? {
            ack(harness, event)?;
            arm(harness, cq)?;
            let found = poll(harness, cq)?;
            if expect_some && found == 0 {
                return Err(ModelError::new(format!(
                    "an event of {cq} came, and its CQ was empty: another thread had polled it \
                     (CQ-ARM-38)"
                )));
            }
            polled += found;
        }
        Ok(polled)
    };
    let servers = [harness.spawn("a", serve), harness.spawn("b", serve)];
    harness.spawn("peer", move |harness| {
        link.send(harness, 0)?;
        link.send(harness, 1)
    });
    let mut polled = 0;
    for server in servers {
        polled += server.join()?;
    }
    assert_eq!(polled, 2, "each completion is polled once");
    harness.expect_empty(cq)
}

/// One channel for two CQs: the event says which it is of.
fn two_cqs(harness: &Harness, look: bool) -> Outcome {
    let cqs: [Cq; 2] = [harness.cq(4)?, harness.cq(4)?];
    let links = [harness.link(cqs[0], 2)?, harness.link(cqs[1], 1)?];
    harness.spawn("loop", move |harness| {
        let mut left = 3;
        for cq in cqs {
            arm(harness, cq)?;
            left -= poll(harness, cq)?;
        }
        while left > 0 {
            let event = wait_event(harness)?;
            ack(harness, event)?;
            let cq = if look { event.cq } else { cqs[0] };
            arm(harness, cq)?;
            left -= poll(harness, cq)?;
        }
        Ok::<_, Error>(())
    });
    harness.spawn("peer", move |harness| {
        links[0].send(harness, 0)?;
        links[1].send(harness, 0)?;
        links[0].send(harness, 1)
    });
    Ok(())
}
