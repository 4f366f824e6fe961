//! CQs that change their size, and CQs that are too small.

use verbs_api::{AsyncEventType, Cq, Error, ErrorKind, Verbs, Wait, Wc};

use super::{Model, ack, arm, consume, next_event, poll, wait_event};
use crate::{Harness, Outcome, Search};

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "resize.grows_while_another_thread_polls",
        &["CQ-RESIZE-23", "CQ-RESIZE-22", "CQ-RESIZE-24"],
        (3, 2),
        |harness| resized(harness, 64),
    )
    .search(Search::new().preemptions(3)),
    Model::fails(
        "resize.leaves_no_room_for_what_may_come",
        &["CQ-RESIZE-07", "CQ-RESIZE-06", "CQ-OVR-02"],
        "CQ-RESIZE-07",
        (3, 2),
        |harness| resized(harness, 1),
    )
    .search(Search::new().preemptions(3)),
    Model::holds(
        "overrun.room_for_all",
        &["CQ-POLL-10", "CQ-OVR-01"],
        (2, 2),
        |harness| sized(harness, 2),
    ),
    Model::fails(
        "overrun.while_armed",
        &["CQ-OVR-02", "CQ-OVR-01", "CQ-ARM-51"],
        "a completion found the CQ full",
        (2, 2),
        |harness| sized(harness, 1),
    ),
    Model::holds(
        "overrun.is_noticed",
        &["CQ-OVR-01", "CQ-OVR-07", "ASYNC-03"],
        (3, 2),
        is_noticed,
    )
    .search(Search::new().preemptions(3)),
];

/// One thread polls, one resizes, one makes completions: they come once each, in their order.
fn resized(harness: &Harness, cqe: i32) -> Outcome {
    let cq = harness.cq(2)?;
    let link = harness.link(cq, 2)?;
    harness.spawn("loop", move |harness| in_order(harness, cq));
    harness.spawn("owner", move |harness| harness.sim().resize_cq(cq, cqe));
    harness.spawn("peer", move |harness| {
        link.send(harness, 0)?;
        link.send(harness, 1)
    });
    Ok(())
}

fn in_order(harness: &Harness, cq: Cq) -> Result<(), Error> {
    let mut expected = 0;
    loop {
        arm(harness, cq)?;
        let mut wcs = [Wc::default(); 4];
        let count = harness.sim().poll_cq(cq, &mut wcs)?;
        for wc in &wcs[..count] {
            assert_eq!(wc.wr_id, expected, "completions come in their order");
            expected += 1;
        }
        if expected == 2 {
            return Ok(());
        }
        let event = wait_event(harness)?;
        ack(harness, event)?;
    }
}

/// Two completions for a CQ of this size.
fn sized(harness: &Harness, cqe: i32) -> Outcome {
    let cq = harness.cq(cqe)?;
    let link = harness.link(cq, 2)?;
    harness.spawn("loop", move |harness| consume(harness, cq, 2));
    harness.spawn("peer", move |harness| {
        link.send(harness, 0)?;
        link.send(harness, 1)
    });
    Ok(())
}

/// A CQ that may overrun, and a thread that watches for it: either all completions are polled, or
/// the asynchronous event says that they are not; and in both cases everything can be destroyed.
fn is_noticed(harness: &Harness) -> Outcome {
    let cq = harness.cq(1)?;
    let link = harness.link(cq, 2)?;
    let consumer = harness.spawn("loop", move |harness| {
        let mut polled = 0;
        loop {
            // After an overrun the CQ cannot be used any more.
            match arm(harness, cq).and_then(|()| poll(harness, cq)) {
                Ok(count) => polled += count,
                Err(_) => return Ok(polled),
            }
            match next_event(harness)? {
                Some(event) => ack(harness, event)?,
                None => return Ok::<_, Error>(polled),
            }
        }
    });
    let watcher = harness.spawn("watcher", move |harness| {
        let mut overrun = false;
        loop {
            match harness
                .sim()
                .get_async_event(harness.context(), Wait::Forever)
            {
                Ok(event) => {
                    overrun |= event.event_type == AsyncEventType::CqErr;
                    harness.sim().ack_async_event(harness.context(), &event)?;
                }
                Err(error) if error.kind() == ErrorKind::Stalled => return Ok(overrun),
                Err(error) => return Err(error),
            }
        }
    });
    harness.spawn("peer", move |harness| {
        link.send(harness, 0)?;
        // The QP is in the error state after an overrun of its CQ.
        link.send(harness, 1)
    });
    let (polled, overrun) = (consumer.join()?, watcher.join()?);
    assert!(
        overrun || polled == 2,
        "{polled} polled, and no word of an overrun"
    );
    link.destroy(harness)?;
    Ok(harness.sim().destroy_cq(cq, Wait::Forever)?)
}
