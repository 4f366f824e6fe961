//! Arming, and polling after it.

use verbs_api::{Arm, Cq, Error, Verbs, Wc};

use super::{Model, ack, arm, consume, poll, wait_event};
use crate::{Harness, Outcome};

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "re_poll.after_arming",
        &["CQ-ARM-31", "CQ-ARM-37"],
        (2, 3),
        |harness| peer_sends(harness, 3, |harness, cq| consume(harness, cq, 3)),
    ),
    Model::fails(
        "re_poll.before_arming_only",
        &["CQ-ARM-03", "CQ-ARM-31"],
        "It was not polled after arming",
        (2, 2),
        |harness| peer_sends(harness, 2, polls_before_arming_only),
    ),
    Model::holds(
        "drain.until_empty",
        &["CQ-ARM-29", "CQ-POLL-02"],
        (2, 2),
        |harness| peer_sends(harness, 2, drains),
    ),
    Model::fails(
        "drain.one_for_an_event",
        &["CQ-ARM-30", "CQ-ARM-29"],
        "polled after arming, but not until it was empty",
        (2, 2),
        |harness| peer_sends(harness, 2, takes_one_for_an_event),
    ),
    Model::holds(
        "handler.arms_after_every_event",
        &["CQ-ARM-17", "CQ-ARM-38"],
        (2, 3),
        |harness| peer_sends(harness, 3, |harness, cq| handles(harness, cq, 3, true)),
    ),
    Model::fails(
        "handler.arms_only_if_it_found_some",
        &["CQ-ARM-38", "CQ-ARM-27"],
        "was not armed again",
        (2, 2),
        |harness| peer_sends(harness, 2, |harness, cq| handles(harness, cq, 2, false)),
    ),
    Model::holds(
        "two_cqs.polls_both_after_arming_both",
        &["CQ-ARM-31", "CQ-ARM-01", "CHAN-06"],
        (2, 2),
        |harness| two_cqs(harness, true),
    ),
    Model::fails(
        "two_cqs.polls_one_after_arming_both",
        &["CQ-ARM-03", "CHAN-06"],
        "It was not polled after arming",
        (2, 2),
        |harness| two_cqs(harness, false),
    ),
    Model::holds(
        "solicited.last_message_is_solicited",
        &["CQ-ARM-06", "CQ-ARM-08"],
        (2, 2),
        |harness| solicited(harness, true),
    ),
    Model::fails(
        "solicited.no_message_is_solicited",
        &["CQ-ARM-06", "CQ-ARM-08"],
        "armed for solicited completions",
        (2, 2),
        |harness| solicited(harness, false),
    ),
];

/// A loop, and a peer that sends to it.
fn peer_sends(
    harness: &Harness,
    count: u64,
    event_loop: fn(&Harness, Cq) -> Result<(), Error>,
) -> Outcome {
    let cq = harness.cq(4)?;
    let link = harness.link(cq, count)?;
    harness.spawn("loop", move |harness| event_loop(harness, cq));
    harness.spawn("peer", move |harness| {
        (0..count).try_for_each(|wr_id| link.send(harness, wr_id))
    });
    Ok(())
}

fn polls_before_arming_only(harness: &Harness, cq: Cq) -> Result<(), Error> {
    let mut left = 2;
    loop {
        left -= poll(harness, cq)?;
        if left == 0 {
            return Ok(());
        }
        arm(harness, cq)?;
        let event = wait_event(harness)?;
        ack(harness, event)?;
    }
}

fn poll_one(harness: &Harness, cq: Cq) -> Result<usize, Error> {
    harness.sim().poll_cq(cq, &mut [Wc::default()])
}

fn drains(harness: &Harness, cq: Cq) -> Result<(), Error> {
    let mut left = 2;
    loop {
        arm(harness, cq)?;
        loop {
            let polled = poll_one(harness, cq)?;
            left -= polled;
            if left == 0 {
                return Ok(());
            }
            if polled == 0 {
                break;
            }
        }
        let event = wait_event(harness)?;
        ack(harness, event)?;
    }
}

fn takes_one_for_an_event(harness: &Harness, cq: Cq) -> Result<(), Error> {
    let mut left = 2;
    loop {
        arm(harness, cq)?;
        left -= poll_one(harness, cq)?;
        if left == 0 {
            return Ok(());
        }
        let event = wait_event(harness)?;
        ack(harness, event)?;
    }
}

/// A handler that runs once for each event. It may find nothing: what caused the event was taken by
/// the poll that followed the arming.
fn handles(harness: &Harness, cq: Cq, mut left: usize, always: bool) -> Result<(), Error> {
    arm(harness, cq)?;
    left -= poll(harness, cq)?;
    while left > 0 {
        let event = wait_event(harness)?;
        ack(harness, event)?;
        let found = poll(harness, cq)?;
        left -= found;
        if always || found > 0 {
            arm(harness, cq)?;
            left -= poll(harness, cq)?;
        }
    }
    Ok(())
}

/// Poll the receive CQ, poll the send CQ, arm both, poll again: both, or the receive CQ alone.
fn two_cqs(harness: &Harness, both: bool) -> Outcome {
    let (recv_cq, send_cq, other_cq) = (harness.cq(4)?, harness.cq(4)?, harness.cq(4)?);
    let inward = harness.link(recv_cq, 1)?;
    let outward = harness.link_between(send_cq, other_cq, 1)?;
    harness.spawn("loop", move |harness| {
        let mut left = 2;
        loop {
            left -= poll(harness, recv_cq)? + poll(harness, send_cq)?;
            arm(harness, recv_cq)?;
            arm(harness, send_cq)?;
            left -= poll(harness, recv_cq)?;
            if both {
                left -= poll(harness, send_cq)?;
            }
            if left == 0 {
                return Ok::<_, Error>(());
            }
            let event = wait_event(harness)?;
            ack(harness, event)?;
        }
    });
    harness.spawn("peer", move |harness| {
        outward.send_signaled(harness, 0)?;
        inward.send(harness, 0)
    });
    Ok(())
}

fn solicited(harness: &Harness, last_is: bool) -> Outcome {
    let cq = harness.cq(4)?;
    let link = harness.link(cq, 2)?;
    harness.spawn("loop", move |harness| {
        let mut left = 2;
        loop {
            harness.sim().req_notify_cq(cq, Arm::SOLICITED)?;
            left -= poll(harness, cq)?;
            if left == 0 {
                return Ok::<_, Error>(());
            }
            let event = wait_event(harness)?;
            ack(harness, event)?;
        }
    });
    harness.spawn("peer", move |harness| {
        link.send(harness, 0)?;
        if last_is {
            link.send_solicited(harness, 1)
        } else {
            link.send(harness, 1)
        }
    });
    Ok(())
}
