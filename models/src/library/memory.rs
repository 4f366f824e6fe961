//! The bytes of posted work are the device's until its completion has been polled.

use verbs_api::{RecvWr, SendWr, Verbs};

use super::{Model, ack, arm, poll, wait_event};
use crate::{Harness, Outcome};

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "buffer.read_after_its_completion",
        &["CQ-POLL-12", "SQ-17"],
        |harness| received(harness, true),
    )
    .completions(1),
    Model::fails(
        "buffer.read_after_its_event",
        &["CQ-POLL-12", "SQ-17"],
        "until its completion has been polled",
        |harness| received(harness, false),
    )
    .completions(1),
];

/// A message into a buffer; an event says that something has come, a completion what.
fn received(harness: &Harness, poll_first: bool) -> Outcome {
    let cq = harness.cq(4)?;
    let link = harness.link(cq, 0)?;
    let mr = harness.mr(2)?;
    let sge = harness.sim().query_mr(mr)?;
    harness.sim().write_mr(mr, 0, &[7])?;
    harness
        .sim()
        .post_recv(link.far, &[RecvWr::new(0, &[sge.sge(1, 1)])])?;
    arm(harness, cq)?;
    harness.spawn("loop", move |harness| -> Outcome {
        let event = wait_event(harness)?;
        ack(harness, event)?;
        if poll_first {
            assert_eq!(poll(harness, cq)?, 1);
        }
        let mut byte = [0];
        harness.sim().read_mr(mr, 1, &mut byte)?;
        assert_eq!(byte, [7]);
        Ok(())
    });
    harness.spawn("peer", move |harness| -> Outcome {
        let list = [sge.sge(0, 1)];
        let wr = SendWr::send(0, &list).unsignaled();
        Ok(harness.sim().post_send(link.near, &[wr])?)
    });
    Ok(())
}
