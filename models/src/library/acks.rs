//! Acknowledging events: as many as were read, on the CQ they are of.

use verbs_api::{Cq, Error, Verbs, Wait};

use super::{Model, arm, poll, wait_event};
use crate::{Harness, Outcome};

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "ack.before_arming",
        &["CHAN-34", "CHAN-35", "CQ-ARM-39"],
        (2, 2),
        |harness| {
            until_destroyed(harness, |harness, cq| {
                consume(harness, cq, Ack::BeforeArming)
            })
        },
    ),
    Model::holds(
        "ack.after_arming",
        &["CHAN-34", "CHAN-39", "CHAN-42"],
        (2, 2),
        |harness| {
            until_destroyed(harness, |harness, cq| {
                consume(harness, cq, Ack::AfterArming)
            })
        },
    ),
    Model::holds(
        "ack.all_at_the_end",
        &["CHAN-34", "CHAN-39"],
        (2, 2),
        |harness| until_destroyed(harness, |harness, cq| consume(harness, cq, Ack::AtTheEnd)),
    ),
    Model::fails(
        "ack.too_few",
        &["CHAN-35", "CHAN-34"],
        "an event was read and is not acknowledged",
        (2, 2),
        |harness| until_destroyed(harness, |harness, cq| consume(harness, cq, Ack::OneLess)),
    ),
    Model::fails(
        "ack.one_for_each_completion",
        &["CHAN-37", "CQ-ARM-29"],
        "read and not acknowledged yet",
        (2, 2),
        |harness| {
            until_destroyed(harness, |harness, cq| {
                consume(harness, cq, Ack::ByCompletion)
            })
        },
    ),
    Model::holds(
        "ack.on_the_cq_of_the_event",
        &["CHAN-23", "CHAN-34"],
        (2, 2),
        |harness| two_cqs(harness, true),
    ),
    Model::fails(
        "ack.on_another_cq",
        &["CHAN-37", "CHAN-23"],
        "only 0 were read and not acknowledged yet",
        (2, 2),
        |harness| two_cqs(harness, false),
    ),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ack {
    BeforeArming,
    AfterArming,
    AtTheEnd,
    OneLess,
    /// Takes completions for events: that many are not there.
    ByCompletion,
}

/// A loop that ends after two completions; then its CQ is destroyed.
fn until_destroyed(
    harness: &Harness,
    event_loop: fn(&Harness, Cq) -> Result<(), Error>,
) -> Outcome {
    let cq = harness.cq(4)?;
    let link = harness.link(cq, 2)?;
    let consumer = harness.spawn("loop", move |harness| event_loop(harness, cq));
    let peer = harness.spawn("peer", move |harness| {
        link.send(harness, 0)?;
        link.send(harness, 1)
    });
    peer.join()?;
    consumer.join()?;
    link.destroy(harness)?;
    Ok(harness.sim().destroy_cq(cq, Wait::Forever)?)
}

fn consume(harness: &Harness, cq: Cq, when: Ack) -> Result<(), Error> {
    let ack = |events| harness.sim().ack_cq_events(cq, events);
    let (mut left, mut unacked) = (2, 0);
    loop {
        arm(harness, cq)?;
        if when == Ack::AfterArming {
            ack(std::mem::take(&mut unacked))?;
        }
        let polled = poll(harness, cq)?;
        if when == Ack::ByCompletion {
            ack(polled as u32)?;
        }
        left -= polled;
        if left == 0 {
            break;
        }
        let event = wait_event(harness)?;
        unacked += 1;
        if when == Ack::BeforeArming {
            harness.sim().ack_cq_events(event.cq, 1)?;
            unacked = 0;
        }
    }
    match when {
        Ack::AtTheEnd => ack(unacked),
        Ack::OneLess => ack(unacked.saturating_sub(1)),
        _ => Ok(()),
    }
}

/// Two CQs on one channel: the acknowledgement is for the CQ that the event names, or for the
/// first.
fn two_cqs(harness: &Harness, of_the_event: bool) -> Outcome {
    let cqs = [harness.cq(4)?, harness.cq(4)?];
    let links = [harness.link(cqs[0], 1)?, harness.link(cqs[1], 1)?];
    harness.spawn("loop", move |harness| {
        let mut left = 2;
        loop {
            for cq in cqs {
                arm(harness, cq)?;
                left -= poll(harness, cq)?;
            }
            if left == 0 {
                return Ok::<_, Error>(());
            }
            let event = wait_event(harness)?;
            let cq = if of_the_event { event.cq } else { cqs[0] };
            harness.sim().ack_cq_events(cq, 1)?;
        }
    });
    harness.spawn("peer", move |harness| {
        links[1].send(harness, 0)?;
        links[0].send(harness, 0)
    });
    Ok(())
}
