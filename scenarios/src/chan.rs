//! Completion channels: which events are read where, and what must be acknowledged.

use verbs_api::{Arm, ErrorKind, Wait};

use crate::failure::check_eq;
use crate::{Bench, OfRule, PairOptions, Result, Scenario, expect_err};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::new(
        "chan.event_comes_on_the_channel_of_its_cq_only",
        &["CHAN-04", "CHAN-17"],
        event_comes_on_the_channel_of_its_cq_only,
    ),
    Scenario::new(
        "chan.destroy_with_cq_attached_is_busy",
        &["CHAN-38", "CHAN-11"],
        destroy_with_cq_attached_is_busy,
    ),
];

fn event_comes_on_the_channel_of_its_cq_only(bench: &Bench<'_>) -> Result {
    let pair = bench.pair(PairOptions {
        separate_channels: true,
        ..PairOptions::default()
    })?;
    let (a, b) = (pair.a, pair.b);
    bench.arm(a.send_cq, Arm::NEXT)?;
    bench.arm(a.recv_cq, Arm::NEXT)?;
    b.recv(1, 64)?;
    a.send(1, 64)?;
    let event = bench.take_event(a.send_channel).rule("CHAN-04")?;
    check_eq!("CHAN-04", event.cq, a.send_cq);
    bench.ack_cq_events(event.cq, 1)?;
    bench.no_event(a.channel, "CHAN-04")
}

fn destroy_with_cq_attached_is_busy(bench: &Bench<'_>) -> Result {
    let end = bench.end(bench.ctx_a(), PairOptions::default())?;
    let busy = bench.destroy_comp_channel(end.channel);
    expect_err(busy, ErrorKind::Busy, "CHAN-38")?;
    bench.destroy_qp(end.qp, bench.wait())?;
    bench.destroy_cq(end.send_cq, bench.wait())?;
    bench.destroy_cq(end.recv_cq, Wait::Poll)?;
    bench.destroy_comp_channel(end.channel).rule("CHAN-38")
}
