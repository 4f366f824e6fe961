//! Destroying what another thread uses.

use verbs_api::{ErrorKind, Verbs, Wait};

use super::{Model, ack, arm, consume, wait_event};
use crate::{Bench, Outcome};

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "destroy.after_its_thread_has_ended",
        &["CQ-DESTROY-02", "CQ-DESTROY-07", "LIFE-01"],
        (2, 2),
        after_the_thread,
    ),
    Model::fails(
        "destroy.while_a_thread_waits",
        &["CQ-ARM-50", "CQ-DESTROY-02"],
        "an event can no longer come",
        (1, 0),
        while_a_thread_waits,
    ),
    Model::fails(
        "destroy.channel_while_a_thread_waits",
        &["CHAN-44", "CHAN-38"],
        "channel",
        (1, 0),
        channel_while_a_thread_waits,
    ),
    Model::holds(
        "destroy.waits_for_an_acknowledgement",
        &["CHAN-35", "CQ-DESTROY-03"],
        (2, 1),
        |bench| unread_event(bench, Wait::Poll),
    ),
    Model::fails(
        "destroy.between_readiness_and_blocking_read",
        &["CHAN-36", "CHAN-29"],
        "one that was unread went with its CQ",
        (2, 1),
        |bench| unread_event(bench, Wait::Forever),
    ),
];

fn after_the_thread(bench: &Bench) -> Outcome {
    let cq = bench.cq(4)?;
    let link = bench.link(cq, 2)?;
    let consumer = bench.spawn("loop", move |bench| consume(bench, cq, 2));
    let peer = bench.spawn("peer", move |bench| {
        link.send(bench, 0)?;
        link.send(bench, 1)
    });
    peer.join()?;
    consumer.join()?;
    link.destroy(bench)?;
    bench.sim().destroy_cq(cq, Wait::Forever)?;
    Ok(bench.sim().destroy_comp_channel(bench.channel())?)
}

fn while_a_thread_waits(bench: &Bench) -> Outcome {
    let cq = bench.cq(4)?;
    arm(bench, cq)?;
    bench.spawn("loop", move |bench| {
        let event = wait_event(bench)?;
        ack(bench, event)
    });
    Ok(bench.sim().destroy_cq(cq, Wait::Forever)?)
}

fn channel_while_a_thread_waits(bench: &Bench) -> Outcome {
    bench.spawn("loop", wait_event);
    Ok(bench.sim().destroy_comp_channel(bench.channel())?)
}

/// A thread learns that an event is there, and then reads it; in between its CQ may be destroyed,
/// and the event with it. A read that does not block finds nothing; one that does never returns.
fn unread_event(bench: &Bench, wait: Wait) -> Outcome {
    let cq = bench.cq(4)?;
    let link = bench.link(cq, 1)?;
    arm(bench, cq)?;
    bench.spawn("loop", move |bench| -> Outcome {
        bench.sim().wait_for_edge(bench.channel(), 0)?;
        match bench.sim().get_cq_event(bench.channel(), wait) {
            Ok(event) => Ok(ack(bench, event)?),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    });
    bench.spawn("owner", move |bench| -> Outcome {
        link.send(bench, 0)?;
        link.destroy(bench)?;
        Ok(bench.sim().destroy_cq(cq, Wait::Forever)?)
    });
    Ok(())
}
