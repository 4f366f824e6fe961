//! Destroying what another thread uses.

use verbs_api::{ErrorKind, Verbs, Wait};

use super::{Model, ack, arm, consume, wait_event};
use crate::{Harness, Outcome};

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "destroy.after_its_thread_has_ended",
        &["CQ-DESTROY-02", "CQ-DESTROY-07", "LIFE-01"],
        after_the_thread,
    ),
    Model::fails(
        "destroy.while_a_thread_waits",
        &["CQ-ARM-50", "CQ-DESTROY-02"],
        "an event can no longer come",
        while_a_thread_waits,
    )
    .threads(1)
    .completions(0),
    Model::fails(
        "destroy.channel_while_a_thread_waits",
        &["CHAN-44", "CHAN-38"],
        "channel",
        channel_while_a_thread_waits,
    )
    .threads(1)
    .completions(0),
    Model::holds(
        "destroy.waits_for_an_acknowledgement",
        &["CHAN-35", "CQ-DESTROY-03"],
        |harness| unread_event(harness, Wait::Poll),
    )
    .completions(1),
    Model::fails(
        "destroy.between_readiness_and_blocking_read",
        &["CHAN-36", "CHAN-29"],
        "one that was unread went with its CQ",
        |harness| unread_event(harness, Wait::Forever),
    )
    .completions(1),
];

fn after_the_thread(harness: &Harness) -> Outcome {
    let cq = harness.cq(4)?;
    let link = harness.link(cq, 2)?;
    let consumer = harness.spawn("loop", move |harness| consume(harness, cq, 2));
    let peer = harness.spawn("peer", move |harness| {
        link.send(harness, 0)?;
        link.send(harness, 1)
    });
    peer.join()?;
    consumer.join()?;
    link.destroy(harness)?;
    harness.sim().destroy_cq(cq, Wait::Forever)?;
    Ok(harness.sim().destroy_comp_channel(harness.channel())?)
}

fn while_a_thread_waits(harness: &Harness) -> Outcome {
    let cq = harness.cq(4)?;
    arm(harness, cq)?;
    harness.spawn("loop", move |harness| {
        let event = wait_event(harness)?;
        ack(harness, event)
    });
    Ok(harness.sim().destroy_cq(cq, Wait::Forever)?)
}

fn channel_while_a_thread_waits(harness: &Harness) -> Outcome {
    harness.spawn("loop", wait_event);
    Ok(harness.sim().destroy_comp_channel(harness.channel())?)
}

/// A thread learns that an event is there, and then reads it; in between its CQ may be destroyed,
/// and the event with it. A read that does not block finds nothing; one that does never returns.
fn unread_event(harness: &Harness, wait: Wait) -> Outcome {
    let cq = harness.cq(4)?;
    let link = harness.link(cq, 1)?;
    arm(harness, cq)?;
    harness.spawn("loop", move |harness| -> Outcome {
        harness.sim().wait_for_edge(harness.channel(), 0)?;
        match harness.sim().get_cq_event(harness.channel(), wait) {
            Ok(event) => Ok(ack(harness, event)?),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    });
    harness.spawn("owner", move |harness| -> Outcome {
        link.send(harness, 0)?;
        link.destroy(harness)?;
        Ok(harness.sim().destroy_cq(cq, Wait::Forever)?)
    });
    Ok(())
}
