//! Creating and destroying channels, limits.

use verbs_api::lab::{Fault, Limit};
use verbs_api::{Context, CqInit, ErrorKind, Handle, Verb, Wait};

use super::{destroy, fire, writers};
use crate::failure::{check, check_eq};
use crate::{Bench, OfRule, Result, expect_err};

scenario!(channels_are_distinct_and_of_their_context: "CHAN-01", "CHAN-08", "CHAN-07");
fn channels_are_distinct_and_of_their_context(bench: &Bench<'_>) -> Result {
    let mut channels = Vec::new();
    for context in [bench.ctx_a(), bench.ctx_b(), bench.ctx_a()] {
        let channel = bench.create_comp_channel(context).rule("CHAN-07")?;
        check_eq!("CHAN-01", channel.context(), context);
        check!(
            "CHAN-08",
            !channels.contains(&channel),
            "a new channel",
            "{channel} again"
        );
        let init = CqInit::new(4).channel(channel);
        bench.create_cq(context, &init).rule("CHAN-01")?;
        channels.push(channel);
    }
    Ok(())
}

scenario!(channel_of_another_context_is_refused: "CHAN-07", "CHAN-01");
fn channel_of_another_context_is_refused(bench: &Bench<'_>) -> Result {
    let same_device = bench.open_device(&bench.devices()?[0].name)?;
    for other in [bench.ctx_b(), same_device] {
        let channel = bench.create_comp_channel(other)?;
        let init = CqInit::new(4).channel(channel);
        let mixed = bench.create_cq(bench.ctx_a(), &init);
        expect_err(mixed, ErrorKind::Invalid, "CHAN-07")?;
        let cq = bench.create_cq(other, &init).rule("CHAN-01")?;
        bench.destroy_cq(cq, Wait::Poll)?;
        bench.destroy_comp_channel(channel).rule("CHAN-07")?;
    }
    Ok(())
}

scenario!(create_needs_an_open_context: "CHAN-07");
fn create_needs_an_open_context(bench: &Bench<'_>) -> Result {
    let name = &bench.devices()?[0].name;
    let context = bench.open_device(name)?;
    let channel = bench.create_comp_channel(context).rule("CHAN-07")?;
    bench.destroy_comp_channel(channel)?;
    bench.close_device(context)?;
    for closed in [context, Context::default()] {
        let refused = bench.create_comp_channel(closed);
        expect_err(refused, ErrorKind::Invalid, "CHAN-07")?;
    }
    Ok(())
}

scenario!(create_fails_beyond_the_limit_of_open_files: "CHAN-09"; needs LAB);
fn create_fails_beyond_the_limit_of_open_files(bench: &Bench<'_>) -> Result {
    let (lab, context) = (bench.lab(), bench.ctx_a());
    let live = lab.live(context)?;
    let used = u64::from(live.contexts + live.channels);
    lab.set_limit(context, Limit::Files, Some(used + 1))?;
    let last = bench.create_comp_channel(context).rule("CHAN-09")?;
    for _ in 0..2 {
        let beyond = bench.create_comp_channel(context);
        expect_err(beyond, ErrorKind::TooManyFiles, "CHAN-09")?;
    }
    bench.destroy_comp_channel(last)?;
    bench.create_comp_channel(context).rule("CHAN-09")?;
    lab.set_limit(context, Limit::Files, None)?;
    bench.create_comp_channel(context).rule("CHAN-09")?;
    Ok(())
}

scenario!(create_fails_without_memory_and_leaks_nothing: "CHAN-10"; needs LAB);
fn create_fails_without_memory_and_leaks_nothing(bench: &Bench<'_>) -> Result {
    let (lab, context) = (bench.lab(), bench.ctx_a());
    bench.create_comp_channel(context)?;
    let before = lab.live(context)?;
    let refused = || {
        let refused = bench.create_comp_channel(context);
        expect_err(refused, ErrorKind::NoMemory, "CHAN-10")
    };
    lab.set_limit(context, Limit::Objects, Some(u64::from(before.channels)))?;
    refused()?;
    lab.set_limit(context, Limit::Objects, None)?;
    lab.inject(Fault::fail(Verb::CreateCompChannel, ErrorKind::NoMemory).first(1))?;
    refused()?;
    check_eq!("CHAN-10", lab.live(context)?, before, "what lives");
    bench.create_comp_channel(context).rule("CHAN-10")?;
    Ok(())
}

scenario!(channel_without_cq_is_destroyed_at_once: "CHAN-11");
fn channel_without_cq_is_destroyed_at_once(bench: &Bench<'_>) -> Result {
    let channel = bench.create_comp_channel(bench.ctx_a())?;
    bench.destroy_comp_channel(channel).rule("CHAN-11")?;
    let again = bench.destroy_comp_channel(channel);
    expect_err(again, ErrorKind::Invalid, "CHAN-11")?;
    let read = bench.get_cq_event(channel, Wait::Poll);
    expect_err(read, ErrorKind::Invalid, "CHAN-11")?;
    let attached = bench.create_cq(bench.ctx_a(), &CqInit::new(4).channel(channel));
    expect_err(attached, ErrorKind::Invalid, "CHAN-11")?;
    Ok(())
}

scenario!(destroy_is_busy_until_the_last_cq_is_gone: "CHAN-38", "CQ-DESTROY-07");
fn destroy_is_busy_until_the_last_cq_is_gone(bench: &Bench<'_>) -> Result {
    let channel = bench.create_comp_channel(bench.ctx_a())?;
    for writer in writers(bench, channel, 3)? {
        fire(bench, &writer)?;
        let busy = bench.destroy_comp_channel(channel);
        expect_err(busy, ErrorKind::Busy, "CHAN-38")?;
        bench.expect_event(channel, writer.send_cq, "CHAN-38")?;
        fire(bench, &writer).rule("CHAN-38")?;
        bench.expect_event(channel, writer.send_cq, "CHAN-38")?;
        destroy(bench, &writer)?;
    }
    bench
        .destroy_comp_channel(channel)
        .rule(["CHAN-38", "CQ-DESTROY-07"])
}
