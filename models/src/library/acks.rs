//! Acknowledging events: as many as were read, on the CQ they are of.

use verbs_api::{Cq, Error, Verbs, Wait};

use super::{Model, arm, poll, wait_event};
use crate::{Bench, Outcome};

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "ack.before_arming",
        &["CHAN-34", "CHAN-35", "CQ-ARM-39"],
        (2, 2),
        |bench| until_destroyed(bench, |bench, cq| consume(bench, cq, Ack::BeforeArming)),
    ),
    Model::holds(
        "ack.after_arming",
        &["CHAN-34", "CHAN-39", "CHAN-42"],
        (2, 2),
        |bench| until_destroyed(bench, |bench, cq| consume(bench, cq, Ack::AfterArming)),
    ),
    Model::holds(
        "ack.all_at_the_end",
        &["CHAN-34", "CHAN-39"],
        (2, 2),
        |bench| until_destroyed(bench, |bench, cq| consume(bench, cq, Ack::AtTheEnd)),
    ),
    Model::fails(
        "ack.too_few",
        &["CHAN-35", "CHAN-34"],
        "an event was read and is not acknowledged",
        (2, 2),
        |bench| until_destroyed(bench, |bench, cq| consume(bench, cq, Ack::OneLess)),
    ),
    Model::fails(
        "ack.one_for_each_completion",
        &["CHAN-37", "CQ-ARM-29"],
        "read and not acknowledged yet",
        (2, 2),
        |bench| until_destroyed(bench, |bench, cq| consume(bench, cq, Ack::ByCompletion)),
    ),
    Model::holds(
        "ack.on_the_cq_of_the_event",
        &["CHAN-23", "CHAN-34"],
        (2, 2),
        |bench| two_cqs(bench, true),
    ),
    Model::fails(
        "ack.on_another_cq",
        &["CHAN-37", "CHAN-23"],
        "only 0 were read and not acknowledged yet",
        (2, 2),
        |bench| two_cqs(bench, false),
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
fn until_destroyed(bench: &Bench, event_loop: fn(&Bench, Cq) -> Result<(), Error>) -> Outcome {
    let cq = bench.cq(4)?;
    let link = bench.link(cq, 2)?;
    let consumer = bench.spawn("loop", move |bench| event_loop(bench, cq));
    let peer = bench.spawn("peer", move |bench| {
        link.send(bench, 0)?;
        link.send(bench, 1)
    });
    peer.join()?;
    consumer.join()?;
    link.destroy(bench)?;
    Ok(bench.sim().destroy_cq(cq, Wait::Forever)?)
}

fn consume(bench: &Bench, cq: Cq, when: Ack) -> Result<(), Error> {
    let ack = |events| bench.sim().ack_cq_events(cq, events);
    let (mut left, mut unacked) = (2, 0);
    loop {
        arm(bench, cq)?;
        if when == Ack::AfterArming {
            ack(std::mem::take(&mut unacked))?;
        }
        let polled = poll(bench, cq)?;
        if when == Ack::ByCompletion {
            ack(polled as u32)?;
        }
        left -= polled;
        if left == 0 {
            break;
        }
        let event = wait_event(bench)?;
        unacked += 1;
        if when == Ack::BeforeArming {
            bench.sim().ack_cq_events(event.cq, 1)?;
            unacked = 0;
        }
    }
    match when {
        Ack::AtTheEnd => ack(unacked),
        Ack::OneLess => ack(unacked.saturating_sub(1)),
        _ => Ok(()),
    }
}

/// Two CQs on one channel: the acknowledgement is for the CQ that the event names, or for the first.
fn two_cqs(bench: &Bench, of_the_event: bool) -> Outcome {
    let cqs = [bench.cq(4)?, bench.cq(4)?];
    let links = [bench.link(cqs[0], 1)?, bench.link(cqs[1], 1)?];
    bench.spawn("loop", move |bench| {
        let mut left = 2;
        loop {
            for cq in cqs {
                arm(bench, cq)?;
                left -= poll(bench, cq)?;
            }
            if left == 0 {
                return Ok::<_, Error>(());
            }
            let event = wait_event(bench)?;
            let cq = if of_the_event { event.cq } else { cqs[0] };
            bench.sim().ack_cq_events(cq, 1)?;
        }
    });
    bench.spawn("peer", move |bench| {
        links[1].send(bench, 0)?;
        links[0].send(bench, 0)
    });
    Ok(())
}
