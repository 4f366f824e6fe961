//! Arming, and polling after it.

use verbs_api::{Arm, Cq, Error, Verbs, Wc};

use super::{Model, ack, arm, consume, poll, wait_event};
use crate::{Bench, Outcome};

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "re_poll.after_arming",
        &["CQ-ARM-31", "CQ-ARM-37"],
        (2, 3),
        |bench| peer_sends(bench, 3, |bench, cq| consume(bench, cq, 3)),
    ),
    Model::fails(
        "re_poll.before_arming_only",
        &["CQ-ARM-03", "CQ-ARM-31"],
        "Nobody polled it after arming",
        (2, 2),
        |bench| peer_sends(bench, 2, polls_before_arming_only),
    ),
    Model::holds(
        "drain.until_empty",
        &["CQ-ARM-29", "CQ-POLL-02"],
        (2, 2),
        |bench| peer_sends(bench, 2, drains),
    ),
    Model::fails(
        "drain.one_for_an_event",
        &["CQ-ARM-30", "CQ-ARM-29"],
        "polled after arming, but not until it was empty",
        (2, 2),
        |bench| peer_sends(bench, 2, takes_one_for_an_event),
    ),
    Model::holds(
        "handler.arms_after_every_event",
        &["CQ-ARM-17", "CQ-ARM-38"],
        (2, 3),
        |bench| peer_sends(bench, 3, |bench, cq| handles(bench, cq, 3, true)),
    ),
    Model::fails(
        "handler.arms_only_if_it_found_some",
        &["CQ-ARM-38", "CQ-ARM-27"],
        "was not armed again",
        (2, 2),
        |bench| peer_sends(bench, 2, |bench, cq| handles(bench, cq, 2, false)),
    ),
    Model::holds(
        "two_cqs.polls_both_after_arming_both",
        &["CQ-ARM-31", "CQ-ARM-01", "CHAN-06"],
        (2, 2),
        |bench| two_cqs(bench, true),
    ),
    Model::fails(
        "two_cqs.polls_one_after_arming_both",
        &["CQ-ARM-03", "CHAN-06"],
        "Nobody polled it after arming",
        (2, 2),
        |bench| two_cqs(bench, false),
    ),
    Model::holds(
        "solicited.last_message_is_solicited",
        &["CQ-ARM-06", "CQ-ARM-08"],
        (2, 2),
        |bench| solicited(bench, true),
    ),
    Model::fails(
        "solicited.no_message_is_solicited",
        &["CQ-ARM-06", "CQ-ARM-08"],
        "armed for solicited completions",
        (2, 2),
        |bench| solicited(bench, false),
    ),
];

/// A loop, and a peer that sends to it.
fn peer_sends(
    bench: &Bench,
    count: u64,
    event_loop: fn(&Bench, Cq) -> Result<(), Error>,
) -> Outcome {
    let cq = bench.cq(4)?;
    let link = bench.link(cq, count)?;
    bench.spawn("loop", move |bench| event_loop(bench, cq));
    bench.spawn("peer", move |bench| {
        (0..count).try_for_each(|wr_id| link.send(bench, wr_id))
    });
    Ok(())
}

fn polls_before_arming_only(bench: &Bench, cq: Cq) -> Result<(), Error> {
    let mut left = 2;
    loop {
        left -= poll(bench, cq)?;
        if left == 0 {
            return Ok(());
        }
        arm(bench, cq)?;
        let event = wait_event(bench)?;
        ack(bench, event)?;
    }
}

fn poll_one(bench: &Bench, cq: Cq) -> Result<usize, Error> {
    bench.sim().poll_cq(cq, &mut [Wc::default()])
}

fn drains(bench: &Bench, cq: Cq) -> Result<(), Error> {
    let mut left = 2;
    loop {
        arm(bench, cq)?;
        loop {
            let polled = poll_one(bench, cq)?;
            left -= polled;
            if left == 0 {
                return Ok(());
            }
            if polled == 0 {
                break;
            }
        }
        let event = wait_event(bench)?;
        ack(bench, event)?;
    }
}

fn takes_one_for_an_event(bench: &Bench, cq: Cq) -> Result<(), Error> {
    let mut left = 2;
    loop {
        arm(bench, cq)?;
        left -= poll_one(bench, cq)?;
        if left == 0 {
            return Ok(());
        }
        let event = wait_event(bench)?;
        ack(bench, event)?;
    }
}

/// A handler that runs once for each event. It may find nothing: what caused the event was taken by
/// the poll that followed the arming.
fn handles(bench: &Bench, cq: Cq, mut left: usize, always: bool) -> Result<(), Error> {
    arm(bench, cq)?;
    left -= poll(bench, cq)?;
    while left > 0 {
        let event = wait_event(bench)?;
        ack(bench, event)?;
        let found = poll(bench, cq)?;
        left -= found;
        if always || found > 0 {
            arm(bench, cq)?;
            left -= poll(bench, cq)?;
        }
    }
    Ok(())
}

/// Poll the receive CQ, poll the send CQ, arm both, poll again: both, or the receive CQ alone.
fn two_cqs(bench: &Bench, both: bool) -> Outcome {
    let (recv_cq, send_cq, other_cq) = (bench.cq(4)?, bench.cq(4)?, bench.cq(4)?);
    let inward = bench.link(recv_cq, 1)?;
    let outward = bench.link_between(send_cq, other_cq, 1)?;
    bench.spawn("loop", move |bench| {
        let mut left = 2;
        loop {
            left -= poll(bench, recv_cq)? + poll(bench, send_cq)?;
            arm(bench, recv_cq)?;
            arm(bench, send_cq)?;
            left -= poll(bench, recv_cq)?;
            if both {
                left -= poll(bench, send_cq)?;
            }
            if left == 0 {
                return Ok::<_, Error>(());
            }
            let event = wait_event(bench)?;
            ack(bench, event)?;
        }
    });
    bench.spawn("peer", move |bench| {
        outward.send_signaled(bench, 0)?;
        inward.send(bench, 0)
    });
    Ok(())
}

fn solicited(bench: &Bench, last_is: bool) -> Outcome {
    let cq = bench.cq(4)?;
    let link = bench.link(cq, 2)?;
    bench.spawn("loop", move |bench| {
        let mut left = 2;
        loop {
            bench.sim().req_notify_cq(cq, Arm::SOLICITED)?;
            left -= poll(bench, cq)?;
            if left == 0 {
                return Ok::<_, Error>(());
            }
            let event = wait_event(bench)?;
            ack(bench, event)?;
        }
    });
    bench.spawn("peer", move |bench| {
        link.send(bench, 0)?;
        if last_is {
            link.send_solicited(bench, 1)
        } else {
            link.send(bench, 1)
        }
    });
    Ok(())
}
