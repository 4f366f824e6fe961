//! The bytes of posted work are the device's until its completion has been polled.

use verbs_api::{RecvWr, SendWr, Verbs};

use super::{Model, ack, arm, poll, wait_event};
use crate::{Bench, Outcome};

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "buffer.read_after_its_completion",
        &["CQ-POLL-12", "SQ-17"],
        (2, 1),
        |bench| received(bench, true),
    ),
    Model::fails(
        "buffer.read_after_its_event",
        &["CQ-POLL-12", "SQ-17"],
        "until its completion has been polled",
        (2, 1),
        |bench| received(bench, false),
    ),
];

/// A message into a buffer; an event says that something has come, a completion what.
fn received(bench: &Bench, poll_first: bool) -> Outcome {
    let cq = bench.cq(4)?;
    let link = bench.link(cq, 0)?;
    let mr = bench.mr(2)?;
    let sge = bench.sim().query_mr(mr)?;
    bench.sim().write_mr(mr, 0, &[7])?;
    bench
        .sim()
        .post_recv(link.far, &[RecvWr::new(0, &[sge.sge(1, 1)])])?;
    arm(bench, cq)?;
    bench.spawn("loop", move |bench| -> Outcome {
        let event = wait_event(bench)?;
        ack(bench, event)?;
        if poll_first {
            assert_eq!(poll(bench, cq)?, 1);
        }
        let mut byte = [0];
        bench.sim().read_mr(mr, 1, &mut byte)?;
        assert_eq!(byte, [7]);
        Ok(())
    });
    bench.spawn("peer", move |bench| -> Outcome {
        let list = [sge.sge(0, 1)];
        let wr = SendWr::send(0, &list).unsignaled();
        Ok(bench.sim().post_send(link.near, &[wr])?)
    });
    Ok(())
}
