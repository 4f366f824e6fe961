//! Arming a CQ: which completion makes an event, and how often.

use verbs_api::Arm;

use crate::{Bench, Result, Scenario};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::new(
        "cq_arm.request_is_one_shot",
        &["CQ-ARM-17", "CQ-ARM-02", "CQ-ARM-04"],
        request_is_one_shot,
    ),
    Scenario::new(
        "cq_arm.solicited_request_ignores_plain_receive",
        &["CQ-ARM-08", "CQ-ARM-06"],
        solicited_request_ignores_plain_receive,
    ),
];

fn request_is_one_shot(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    bench.arm(b.recv_cq, Arm::NEXT)?;
    bench.no_event(b.channel, "CQ-ARM-02")?;
    for wr_id in 0..5 {
        b.recv(wr_id, 64)?;
        a.send(wr_id, 64)?;
    }
    bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-04")?;
    bench.successes(b.recv_cq, 5)?;
    bench.no_event(b.channel, "CQ-ARM-17")?;

    bench.arm(b.recv_cq, Arm::NEXT)?;
    b.recv(5, 64)?;
    a.send(5, 64)?;
    bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-17")?;
    Ok(())
}

fn solicited_request_ignores_plain_receive(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    bench.arm(b.recv_cq, Arm::SOLICITED)?;
    b.recv(1, 64)?;
    a.send(1, 64)?;
    bench.successes(b.recv_cq, 1)?;
    bench.no_event(b.channel, "CQ-ARM-08")?;

    b.recv(2, 64)?;
    a.send_solicited(2, 64)?;
    bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-06")?;
    Ok(())
}
