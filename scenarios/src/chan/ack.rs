//! Acknowledging events, and CQs that go away.

use verbs_api::{CqInit, ErrorKind, Wait};

use super::{destroy, fire, fire_and_take, writer, writers};
use crate::failure::check_eq;
use crate::{Bench, End, OfRule, Result, expect_err};

scenario!(events_are_acknowledged_in_any_batches: "CHAN-34", "CHAN-35"; hazards MAY_HANG);
fn events_are_acknowledged_in_any_batches(bench: &Bench<'_>) -> Result {
    let batches: [&[u32]; 5] = [&[5], &[1, 1, 1, 1, 1], &[2, 3], &[4, 1], &[0, 5, 0]];
    for batches in batches {
        let writer = own_channel(bench)?;
        read(bench, &writer, 5)?;
        for nevents in batches {
            bench
                .ack_cq_events(writer.send_cq, *nevents)
                .rule("CHAN-34")?;
        }
        destroy(bench, &writer).rule("CHAN-35")?;
    }
    Ok(())
}

scenario!(destroy_would_block_until_the_last_acknowledgement:
    "CHAN-35", "CHAN-34"; hazards MAY_HANG);
fn destroy_would_block_until_the_last_acknowledgement(bench: &Bench<'_>) -> Result {
    for events in [1, 2, 5] {
        let writer = own_channel(bench)?;
        read(bench, &writer, events)?;
        bench.destroy_qp(writer.qp, bench.wait())?;
        for _ in 0..events {
            would_block(bench, &writer, "CHAN-35")?;
            bench.ack_cq_events(writer.send_cq, 1).rule("CHAN-34")?;
        }
        bench
            .destroy_cq(writer.send_cq, Wait::Poll)
            .rule("CHAN-35")?;
    }
    Ok(())
}

scenario!(unread_events_go_with_their_cq: "CHAN-36"; hazards MAY_HANG);
fn unread_events_go_with_their_cq(bench: &Bench<'_>) -> Result {
    let channel = bench.create_comp_channel(bench.ctx_a())?;
    let writers = writers(bench, channel, 3)?;
    for writer in &writers {
        fire(bench, writer)?;
    }
    let [first, second, third] = &writers[..] else {
        unreachable!("three were made")
    };
    destroy(bench, second).rule("CHAN-36")?;
    bench.expect_event(channel, first.send_cq, "CHAN-36")?;
    destroy(bench, third).rule("CHAN-36")?;
    bench.no_event(channel, "CHAN-36")
}

scenario!(only_read_events_keep_a_cq: "CHAN-36", "CHAN-35"; hazards MAY_HANG);
fn only_read_events_keep_a_cq(bench: &Bench<'_>) -> Result {
    let writer = own_channel(bench)?;
    read(bench, &writer, 2)?;
    fire(bench, &writer)?;
    bench.destroy_qp(writer.qp, bench.wait())?;
    bench.ack_cq_events(writer.send_cq, 1)?;
    would_block(bench, &writer, "CHAN-35")?;
    bench.ack_cq_events(writer.send_cq, 1)?;
    bench
        .destroy_cq(writer.send_cq, Wait::Poll)
        .rule("CHAN-36")?;
    bench.no_event(writer.channel, "CHAN-36")
}

scenario!(too_many_acknowledgements_are_a_usage_error: "CHAN-37"; needs LAB);
fn too_many_acknowledgements_are_a_usage_error(bench: &Bench<'_>) -> Result {
    let writer = own_channel(bench)?;
    let cq = writer.send_cq;
    let too_many = |nevents| {
        let refused = bench.ack_cq_events(cq, nevents);
        expect_err(refused, ErrorKind::Usage, "CHAN-37")
    };
    too_many(1)?;
    fire(bench, &writer)?;
    too_many(1)?;
    bench.take_event(writer.channel)?;
    too_many(2)?;
    too_many(u32::MAX)?;
    bench.ack_cq_events(cq, 1).rule("CHAN-37")?;
    too_many(1)?;
    destroy(bench, &writer).rule("CHAN-37")
}

scenario!(unacknowledged_events_hold_up_no_others: "CHAN-39", "CHAN-34"; hazards MAY_HANG);
fn unacknowledged_events_hold_up_no_others(bench: &Bench<'_>) -> Result {
    let channel = bench.create_comp_channel(bench.ctx_a())?;
    let writers = writers(bench, channel, 2)?;
    for _ in 0..50 {
        for writer in &writers {
            let event = fire_and_take(bench, writer).rule("CHAN-39")?;
            check_eq!("CHAN-39", event.cq, writer.send_cq);
        }
    }
    bench.no_event(channel, "CHAN-39")?;
    for writer in &writers {
        bench.ack_cq_events(writer.send_cq, 50).rule("CHAN-34")?;
        destroy(bench, writer).rule("CHAN-34")?;
    }
    Ok(())
}

fn own_channel<'b>(bench: &'b Bench<'_>) -> Result<End<'b>> {
    let channel = bench.create_comp_channel(bench.ctx_a())?;
    writer(bench, &CqInit::new(16).channel(channel))
}

/// Makes and reads `events` events, and acknowledges none.
fn read(bench: &Bench<'_>, writer: &End<'_>, events: u32) -> Result {
    for _ in 0..events {
        fire_and_take(bench, writer)?;
    }
    Ok(())
}

/// The CQ cannot be destroyed yet, and still lives.
fn would_block(bench: &Bench<'_>, writer: &End<'_>, rule: &'static str) -> Result {
    let waits = bench.destroy_cq(writer.send_cq, Wait::Poll);
    expect_err(waits, ErrorKind::WouldBlock, rule)?;
    bench.query_cq(writer.send_cq).rule(rule)?;
    Ok(())
}
