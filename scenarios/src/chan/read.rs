//! Reading events: which, when, in what order.

use std::time::Duration;

use verbs_api::lab::Limit;
use verbs_api::{Arm, Cause, CqInit, ErrorKind, Wait};

use super::{complete, fire, fire_and_take, writer, writers};
use crate::failure::check_eq;
use crate::{End, Failure, OfRule, Result, Setup, expect_err};

scenario!(event_needs_a_cq_a_request_and_a_completion: "CHAN-25", "CHAN-41");
fn event_needs_a_cq_a_request_and_a_completion(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    setup.no_event(channel, "CHAN-41")?;
    let writer = writer(setup, &CqInit::new(16).channel(channel))?;
    setup.no_event(channel, "CHAN-41")?;
    complete(setup, &writer)?;
    setup.no_event(channel, "CHAN-25")?;
    setup.arm(writer.send_cq, Arm::NEXT)?;
    setup.no_event(channel, "CHAN-25")?;
    complete(setup, &writer)?;
    setup.expect_event(channel, writer.send_cq, "CHAN-25")?;
    complete(setup, &writer)?;
    setup.no_event(channel, "CHAN-25")
}

scenario!(empty_channel_would_block: "CHAN-29", "CHAN-26", "CHAN-41");
fn empty_channel_would_block(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let is_empty = |rule| {
        let moment = Wait::For(Duration::from_millis(1));
        expect_err(
            setup.get_cq_event(channel, Wait::Poll),
            ErrorKind::WouldBlock,
            rule,
        )?;
        expect_err(
            setup.get_cq_event(channel, moment),
            ErrorKind::TimedOut,
            rule,
        )
    };
    is_empty("CHAN-41")?;
    let writer = writer(setup, &CqInit::new(16).channel(channel))?;
    is_empty("CHAN-41")?;
    setup.arm(writer.send_cq, Arm::NEXT)?;
    is_empty("CHAN-29")?;
    writer.write(1, 8)?;
    let event = setup.take_event(channel).rule("CHAN-26")?;
    check_eq!("CHAN-26", event.cq, writer.send_cq);
    is_empty("CHAN-29")?;
    setup.ack_cq_events(event.cq, 1)?;
    is_empty("CHAN-29")?;
    Ok(())
}

scenario!(wait_that_nothing_can_end_stalls: "CHAN-41", "CHAN-26"; needs LAB);
fn wait_that_nothing_can_end_stalls(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let stalls = |rule| {
        let endless = setup.get_cq_event(channel, Wait::Forever);
        let error = expect_err(endless, ErrorKind::Stalled, rule)?;
        let Cause::Stall(stall) = error.cause() else {
            let seen = error.cause().to_string();
            return Err(Failure::assertion("how things stand", seen)).rule(rule);
        };
        check_eq!(rule, stall.channel, Some(channel), "the channel");
        Ok(())
    };
    stalls("CHAN-41")?;
    let writer = writer(setup, &CqInit::new(16).channel(channel))?;
    writer.write(1, 8)?;
    stalls("CHAN-41")?;
    setup.successes(writer.send_cq, 1)?;
    setup.arm(writer.send_cq, Arm::NEXT)?;
    stalls("CHAN-26")?;
    complete(setup, &writer)?;
    setup.expect_event(channel, writer.send_cq, "CHAN-26")?;
    Ok(())
}

scenario!(events_are_read_one_by_one_in_order: "CHAN-33", "CHAN-32");
fn events_are_read_one_by_one_in_order(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let writers = writers(setup, channel, 4)?;
    for order in [[2, 0, 3, 1], [3, 2, 1, 0], [0, 1, 2, 3]] {
        for i in order {
            fire(setup, &writers[i])?;
        }
        let mut read = Vec::new();
        for _ in order {
            let event = setup.event_and_ack(channel).rule("CHAN-32")?;
            read.push(event.cq);
        }
        let fired = order.map(|i| writers[i].send_cq);
        check_eq!("CHAN-33", read, fired, "the order of the events");
        setup.no_event(channel, "CHAN-32")?;
    }
    Ok(())
}

scenario!(event_names_its_cq: "CHAN-23", "CHAN-27");
fn event_names_its_cq(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    for context in [0, 1, 1, u64::MAX] {
        let writer = writer(setup, &CqInit::new(16).channel(channel).context(context))?;
        setup.arm(writer.send_cq, Arm::NEXT)?;
        writer.write(7, 8)?;
        let event = setup.take_event(channel).rule("CHAN-23")?;
        check_eq!("CHAN-23", event.cq, writer.send_cq);
        check_eq!("CHAN-23", event.cq_context, context);
        let wc = setup.one(event.cq).rule("CHAN-27")?;
        check_eq!("CHAN-27", wc.wr_id, 7);
        setup.no_completion(writer.send_cq, "CHAN-27")?;
        setup.ack_cq_events(event.cq, 1).rule("CHAN-27")?;
    }
    Ok(())
}

scenario!(event_outlives_the_qp: "CHAN-40");
fn event_outlives_the_qp(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let writers = writers(setup, channel, 2)?;
    for writer in &writers {
        fire(setup, writer)?;
        setup.destroy_qp(writer.qp, setup.wait())?;
    }
    for writer in &writers {
        setup.expect_event(channel, writer.send_cq, "CHAN-40")?;
    }
    setup.no_event(channel, "CHAN-40")
}

scenario!(unread_events_are_not_dropped: "CHAN-43"; needs LAB);
fn unread_events_are_not_dropped(setup: &Setup<'_>) -> Result {
    const ROUNDS: usize = 64;
    let (lab, context) = (setup.lab(), setup.ctx_a());
    let channel = setup.create_comp_channel(context)?;
    let writers = writers(setup, channel, 8)?;
    lab.set_limit(context, Limit::Objects, Some(0))?;
    for _ in 0..ROUNDS {
        for writer in &writers {
            fire(setup, writer)?;
        }
    }
    let merged = setup.behavior()?.merge_unread_events == Some(true);
    for _ in 0..if merged { 1 } else { ROUNDS } {
        for writer in &writers {
            setup.expect_event(channel, writer.send_cq, "CHAN-43")?;
        }
    }
    setup.no_event(channel, "CHAN-43")
}

scenario!(cq_keeps_its_context_and_channel: "CHAN-45");
fn cq_keeps_its_context_and_channel(setup: &Setup<'_>) -> Result {
    let writer = keeper(setup)?;
    for arm in [Arm::SOLICITED, Arm::NEXT] {
        setup.arm(writer.send_cq, arm)?;
        is_kept(setup, &writer)?;
    }
    for _ in 0..2 {
        event_is_kept(setup, &writer)?;
    }
    setup.to_err(writer.qp)?;
    is_kept(setup, &writer)?;
    setup.destroy_qp(writer.qp, setup.wait())?;
    is_kept(setup, &writer)
}

scenario!(resized_cq_keeps_its_context_and_channel: "CHAN-45"; needs RESIZE_CQ);
fn resized_cq_keeps_its_context_and_channel(setup: &Setup<'_>) -> Result {
    let writer = keeper(setup)?;
    for cqe in [64, 1, 16] {
        setup.resize_cq(writer.send_cq, cqe).rule("CHAN-45")?;
        is_kept(setup, &writer)?;
        event_is_kept(setup, &writer)?;
    }
    Ok(())
}

const KEPT: u64 = 0x0123_4567_89ab_cdef;

fn keeper<'b>(setup: &'b Setup<'_>) -> Result<End<'b>> {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let keeper = writer(setup, &CqInit::new(16).channel(channel).context(KEPT))?;
    is_kept(setup, &keeper)?;
    Ok(keeper)
}

fn is_kept(setup: &Setup<'_>, end: &End<'_>) -> Result {
    let now = setup.query_cq(end.send_cq)?;
    check_eq!("CHAN-45", now.cq_context, KEPT);
    check_eq!("CHAN-45", now.channel, Some(end.channel));
    Ok(())
}

fn event_is_kept(setup: &Setup<'_>, end: &End<'_>) -> Result {
    let event = fire_and_take(setup, end).rule("CHAN-45")?;
    check_eq!("CHAN-45", event.cq_context, KEPT);
    is_kept(setup, end)?;
    setup.ack_cq_events(event.cq, 1)?;
    is_kept(setup, end)
}
