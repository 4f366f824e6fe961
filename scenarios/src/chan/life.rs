//! Creating and destroying channels, limits.

use verbs_api::lab::{Fault, Limit};
use verbs_api::{Context, CqInit, ErrorKind, Handle, Verb, Wait};

use super::{destroy, fire, writers};
use crate::failure::{check, check_eq};
use crate::{OfRule, Result, Setup, expect_err};

scenario!(channels_are_distinct_and_of_their_context: "CHAN-01", "CHAN-08", "CHAN-07"; without RC);
fn channels_are_distinct_and_of_their_context(setup: &Setup<'_>) -> Result {
    let mut channels = Vec::new();
    for context in [setup.ctx_a(), setup.ctx_b(), setup.ctx_a()] {
        let channel = setup.create_comp_channel(context).rule("CHAN-07")?;
        check_eq!("CHAN-01", channel.context(), context);
        check!(
            "CHAN-08",
            !channels.contains(&channel),
            "a new channel",
            "{channel} again"
        );
        let init = CqInit::new(4).channel(channel);
        setup.create_cq(context, &init).rule("CHAN-01")?;
        channels.push(channel);
    }
    Ok(())
}

scenario!(channel_of_another_context_is_refused: "CHAN-07", "CHAN-01"; without RC);
fn channel_of_another_context_is_refused(setup: &Setup<'_>) -> Result {
    let same_device = setup.open_device(&setup.devices()?[0].name)?;
    for other in [setup.ctx_b(), same_device] {
        let channel = setup.create_comp_channel(other)?;
        let init = CqInit::new(4).channel(channel);
        let mixed = setup.create_cq(setup.ctx_a(), &init);
        expect_err(mixed, ErrorKind::Invalid, "CHAN-07")?;
        let cq = setup.create_cq(other, &init).rule("CHAN-01")?;
        setup.destroy_cq(cq, Wait::Poll)?;
        setup.destroy_comp_channel(channel).rule("CHAN-07")?;
    }
    Ok(())
}

scenario!(create_needs_an_open_context: "CHAN-07"; without RC);
fn create_needs_an_open_context(setup: &Setup<'_>) -> Result {
    let name = &setup.devices()?[0].name;
    let context = setup.open_device(name)?;
    let channel = setup.create_comp_channel(context).rule("CHAN-07")?;
    setup.destroy_comp_channel(channel)?;
    setup.close_device(context)?;
    for closed in [context, Context::default()] {
        let refused = setup.create_comp_channel(closed);
        expect_err(refused, ErrorKind::Invalid, "CHAN-07")?;
    }
    Ok(())
}

scenario!(create_fails_beyond_the_limit_of_open_files: "CHAN-09"; needs LAB);
fn create_fails_beyond_the_limit_of_open_files(setup: &Setup<'_>) -> Result {
    let (lab, context) = (setup.lab(), setup.ctx_a());
    let live = lab.live(context)?;
    let used = u64::from(live.contexts + live.channels);
    lab.set_limit(context, Limit::Files, Some(used + 1))?;
    let last = setup.create_comp_channel(context).rule("CHAN-09")?;
    for _ in 0..2 {
        let beyond = setup.create_comp_channel(context);
        expect_err(beyond, ErrorKind::TooManyFiles, "CHAN-09")?;
    }
    setup.destroy_comp_channel(last)?;
    setup.create_comp_channel(context).rule("CHAN-09")?;
    lab.set_limit(context, Limit::Files, None)?;
    setup.create_comp_channel(context).rule("CHAN-09")?;
    Ok(())
}

scenario!(create_fails_without_memory_and_leaks_nothing: "CHAN-10"; needs LAB);
fn create_fails_without_memory_and_leaks_nothing(setup: &Setup<'_>) -> Result {
    let (lab, context) = (setup.lab(), setup.ctx_a());
    setup.create_comp_channel(context)?;
    let before = lab.live(context)?;
    let refused = || {
        let refused = setup.create_comp_channel(context);
        expect_err(refused, ErrorKind::NoMemory, "CHAN-10")
    };
    lab.set_limit(context, Limit::Objects, Some(u64::from(before.channels)))?;
    refused()?;
    lab.set_limit(context, Limit::Objects, None)?;
    lab.inject(Fault::fail(Verb::CreateCompChannel, ErrorKind::NoMemory).first(1))?;
    refused()?;
    check_eq!("CHAN-10", lab.live(context)?, before, "what lives");
    setup.create_comp_channel(context).rule("CHAN-10")?;
    Ok(())
}

scenario!(channel_without_cq_is_destroyed_at_once: "CHAN-11"; without RC);
fn channel_without_cq_is_destroyed_at_once(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    setup.destroy_comp_channel(channel).rule("CHAN-11")?;
    let again = setup.destroy_comp_channel(channel);
    expect_err(again, ErrorKind::Invalid, "CHAN-11")?;
    let read = setup.get_cq_event(channel, Wait::Poll);
    expect_err(read, ErrorKind::Invalid, "CHAN-11")?;
    let attached = setup.create_cq(setup.ctx_a(), &CqInit::new(4).channel(channel));
    expect_err(attached, ErrorKind::Invalid, "CHAN-11")?;
    Ok(())
}

scenario!(destroy_is_busy_until_the_last_cq_is_gone: "CHAN-38", "CQ-DESTROY-07");
fn destroy_is_busy_until_the_last_cq_is_gone(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    for writer in writers(setup, channel, 3)? {
        fire(setup, &writer)?;
        let busy = setup.destroy_comp_channel(channel);
        expect_err(busy, ErrorKind::Busy, "CHAN-38")?;
        setup.expect_event(channel, writer.send_cq, "CHAN-38")?;
        fire(setup, &writer).rule("CHAN-38")?;
        setup.expect_event(channel, writer.send_cq, "CHAN-38")?;
        destroy(setup, &writer)?;
    }
    setup
        .destroy_comp_channel(channel)
        .rule(["CHAN-38", "CQ-DESTROY-07"])
}
