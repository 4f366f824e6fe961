//! Acknowledging events, and CQs that go away.

use verbs_api::{CqInit, ErrorKind, Wait};

use super::{destroy, fire, fire_and_take, writer, writers};
use crate::failure::check_eq;
use crate::{End, OfRule, Result, Setup, expect_err};

scenario!(events_are_acknowledged_in_any_batches: "CHAN-34", "CHAN-35"; hazards MAY_HANG);
fn events_are_acknowledged_in_any_batches(setup: &Setup<'_>) -> Result {
    let batches: [&[u32]; 5] = [&[5], &[1, 1, 1, 1, 1], &[2, 3], &[4, 1], &[0, 5, 0]];
    for batches in batches {
        let writer = own_channel(setup)?;
        read(setup, &writer, 5)?;
        for nevents in batches {
            setup
                .ack_cq_events(writer.send_cq, *nevents)
                .rule("CHAN-34")?;
        }
        destroy(setup, &writer).rule("CHAN-35")?;
    }
    Ok(())
}

scenario!(destroy_would_block_until_the_last_acknowledgement:
    "CHAN-35", "CHAN-34"; hazards MAY_HANG);
fn destroy_would_block_until_the_last_acknowledgement(setup: &Setup<'_>) -> Result {
    for events in [1, 2, 5] {
        let writer = own_channel(setup)?;
        read(setup, &writer, events)?;
        setup.destroy_qp(writer.qp, setup.wait())?;
        for _ in 0..events {
            would_block(setup, &writer, "CHAN-35")?;
            setup.ack_cq_events(writer.send_cq, 1).rule("CHAN-34")?;
        }
        setup
            .destroy_cq(writer.send_cq, Wait::Poll)
            .rule("CHAN-35")?;
    }
    Ok(())
}

scenario!(unread_events_go_with_their_cq: "CHAN-36"; hazards MAY_HANG);
fn unread_events_go_with_their_cq(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let writers = writers(setup, channel, 3)?;
    for writer in &writers {
        fire(setup, writer)?;
    }
    let [first, second, third] = &writers[..] else {
        unreachable!("three were made")
    };
    destroy(setup, second).rule("CHAN-36")?;
    setup.expect_event(channel, first.send_cq, "CHAN-36")?;
    destroy(setup, third).rule("CHAN-36")?;
    setup.no_event(channel, "CHAN-36")
}

scenario!(only_read_events_keep_a_cq: "CHAN-36", "CHAN-35"; hazards MAY_HANG);
fn only_read_events_keep_a_cq(setup: &Setup<'_>) -> Result {
    let writer = own_channel(setup)?;
    read(setup, &writer, 2)?;
    fire(setup, &writer)?;
    setup.destroy_qp(writer.qp, setup.wait())?;
    setup.ack_cq_events(writer.send_cq, 1)?;
    would_block(setup, &writer, "CHAN-35")?;
    setup.ack_cq_events(writer.send_cq, 1)?;
    setup
        .destroy_cq(writer.send_cq, Wait::Poll)
        .rule("CHAN-36")?;
    setup.no_event(writer.channel, "CHAN-36")
}

scenario!(too_many_acknowledgements_are_a_usage_error: "CHAN-37"; needs LAB);
fn too_many_acknowledgements_are_a_usage_error(setup: &Setup<'_>) -> Result {
    let writer = own_channel(setup)?;
    let cq = writer.send_cq;
    let too_many = |nevents| {
        let refused = setup.ack_cq_events(cq, nevents);
        expect_err(refused, ErrorKind::Usage, "CHAN-37")
    };
    too_many(1)?;
    fire(setup, &writer)?;
    too_many(1)?;
    setup.take_event(writer.channel)?;
    too_many(2)?;
    too_many(u32::MAX)?;
    setup.ack_cq_events(cq, 1).rule("CHAN-37")?;
    too_many(1)?;
    destroy(setup, &writer).rule("CHAN-37")
}

scenario!(unacknowledged_events_hold_up_no_others: "CHAN-39", "CHAN-34"; hazards MAY_HANG);
fn unacknowledged_events_hold_up_no_others(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let writers = writers(setup, channel, 2)?;
    for _ in 0..50 {
        for writer in &writers {
            let event = fire_and_take(setup, writer).rule("CHAN-39")?;
            check_eq!("CHAN-39", event.cq, writer.send_cq);
        }
    }
    setup.no_event(channel, "CHAN-39")?;
    for writer in &writers {
        setup.ack_cq_events(writer.send_cq, 50).rule("CHAN-34")?;
        destroy(setup, writer).rule("CHAN-34")?;
    }
    Ok(())
}

fn own_channel<'b>(setup: &'b Setup<'_>) -> Result<End<'b>> {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    writer(setup, &CqInit::new(16).channel(channel))
}

/// Makes and reads `events` events, and acknowledges none.
fn read(setup: &Setup<'_>, writer: &End<'_>, events: u32) -> Result {
    for _ in 0..events {
        fire_and_take(setup, writer)?;
    }
    Ok(())
}

/// The CQ cannot be destroyed yet, and still lives.
fn would_block(setup: &Setup<'_>, writer: &End<'_>, rule: &'static str) -> Result {
    let waits = setup.destroy_cq(writer.send_cq, Wait::Poll);
    expect_err(waits, ErrorKind::WouldBlock, rule)?;
    setup.query_cq(writer.send_cq).rule(rule)?;
    Ok(())
}
