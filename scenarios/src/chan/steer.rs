//! On which channel an event comes.

use verbs_api::{Arm, CompChannel, Cq, CqInit, ErrorKind, Wait};

use super::{fire, writer, writers};
use crate::failure::{check, check_eq};
use crate::{Claim, OfRule, PairOptions, Result, Setup, expect_err};

scenario!(event_comes_on_the_channel_of_its_cq_only: "CHAN-04", "CHAN-17");
fn event_comes_on_the_channel_of_its_cq_only(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(PairOptions {
        separate_channels: true,
        ..PairOptions::default()
    })?;
    let (a, b) = (pair.a, pair.b);
    check!(
        "CHAN-17",
        a.send_channel != a.channel,
        "two channels",
        "{} twice",
        a.channel
    );
    for cq in [a.send_cq, a.recv_cq] {
        setup.arm(cq, Arm::NEXT)?;
    }
    b.recv(1, 64)?;
    a.send(1, 64)?;
    setup.expect_event(a.send_channel, a.send_cq, "CHAN-04")?;
    setup.no_event(a.channel, "CHAN-17")?;
    a.recv(2, 64)?;
    b.send(2, 64)?;
    setup.expect_event(a.channel, a.recv_cq, "CHAN-04")?;
    setup.no_event(a.send_channel, "CHAN-17")
}

scenario!(many_cqs_share_a_channel: "CHAN-06", "CHAN-23");
fn many_cqs_share_a_channel(setup: &Setup<'_>) -> Result {
    spread(setup, &[0; 40], ["CHAN-06", "CHAN-23"])
}

scenario!(cqs_are_split_over_channels_in_any_grouping: "CHAN-22", "CHAN-14", "CHAN-17");
fn cqs_are_split_over_channels_in_any_grouping(setup: &Setup<'_>) -> Result {
    let halves: Vec<usize> = (0..100).map(|i| i / 50).collect();
    spread(setup, &halves, "CHAN-22")?;
    let in_turn: Vec<usize> = (0..9).map(|i| i % 3).collect();
    spread(setup, &in_turn, "CHAN-22")?;
    spread(setup, &[0, 1, 1, 1, 1, 1, 1], "CHAN-14")?;
    spread(setup, &[0, 1, 2, 3], "CHAN-17")
}

/// CQ `i` is on channel `grouping[i]`. All get a completion, the last first and none waiting for
/// another: each channel then has one event of each of its CQs, in whatever order, and no other.
fn spread(setup: &Setup<'_>, grouping: &[usize], rule: impl Into<Claim>) -> Result {
    let rule = rule.into();
    let count = grouping.iter().max().map_or(0, |last| last + 1);
    let channels = (0..count).map(|_| setup.create_comp_channel(setup.ctx_a()));
    let channels: Vec<CompChannel> = channels.collect::<verbs_api::Result<_>>()?;
    let mut ends = Vec::new();
    for (context, group) in (0..).zip(grouping) {
        let init = CqInit::new(4).channel(channels[*group]).context(context);
        ends.push(writer(setup, &init)?);
    }
    for end in &ends {
        setup.arm(end.send_cq, Arm::NEXT)?;
    }
    for end in ends.iter().rev() {
        end.write(1, 8)?;
    }
    for channel in channels {
        let numbered = (0..).zip(&ends);
        let on_channel = numbered.filter(|(_, end)| end.channel == channel);
        let expected: Vec<(u64, Cq)> = on_channel.map(|(i, end)| (i, end.send_cq)).collect();
        let mut seen = Vec::new();
        for _ in &expected {
            let event = setup.event_and_ack(channel).rule(rule)?;
            seen.push((event.cq_context, event.cq));
        }
        seen.sort_unstable();
        check_eq!(rule, seen, expected, format!("events on {channel}"));
        setup.no_event(channel, rule)?;
    }
    Ok(())
}

scenario!(both_ends_of_a_connection_share_a_channel: "CHAN-19", "CHAN-24", "CHAN-06");
fn both_ends_of_a_connection_share_a_channel(setup: &Setup<'_>) -> Result {
    let options = PairOptions::default();
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let end = || {
        let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(16).channel(channel))?;
        setup.end_on(cq, cq, options)
    };
    let pair = setup.connect(end()?, end()?, options)?;
    let (a, b) = (pair.a, pair.b);
    for cq in [a.send_cq, b.recv_cq] {
        setup.arm(cq, Arm::NEXT)?;
    }
    b.recv(1, 64)?;
    a.send(1, 64)?;
    let mut seen = [
        setup
            .event_and_ack(channel)
            .rule(["CHAN-19", "CHAN-06"])?
            .cq,
        setup
            .event_and_ack(channel)
            .rule(["CHAN-19", "CHAN-06"])?
            .cq,
    ];
    seen.sort_unstable();
    let mut expected = [a.send_cq, b.recv_cq];
    expected.sort_unstable();
    check_eq!(
        ["CHAN-19", "CHAN-24"],
        seen,
        expected,
        "the CQs that have an event"
    );
    setup.no_event(channel, "CHAN-19")
}

scenario!(waiting_events_do_not_hold_up_another_channel: "CHAN-15");
fn waiting_events_do_not_hold_up_another_channel(setup: &Setup<'_>) -> Result {
    let low = setup.create_comp_channel(setup.ctx_a())?;
    let high = setup.create_comp_channel(setup.ctx_a())?;
    let backlog = writers(setup, low, 32)?;
    let urgent = writer(setup, &CqInit::new(16).channel(high))?;
    for writer in &backlog {
        fire(setup, writer)?;
    }
    fire(setup, &urgent)?;
    setup.expect_event(high, urgent.send_cq, "CHAN-15")?;
    setup.no_event(high, "CHAN-15")?;
    for writer in &backlog {
        setup.expect_event(low, writer.send_cq, "CHAN-15")?;
    }
    setup.no_event(low, "CHAN-15")
}

scenario!(cqs_with_different_vectors_share_a_channel: "CHAN-16"; needs COMP_VECTORS);
fn cqs_with_different_vectors_share_a_channel(setup: &Setup<'_>) -> Result {
    let vectors = setup.query_device(setup.ctx_a())?.num_comp_vectors;
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let other = setup.create_comp_channel(setup.ctx_a())?;
    for (vector, on) in [(0, channel), (vectors - 1, channel), (vectors - 1, other)] {
        let init = CqInit::new(16).channel(on).comp_vector(vector as i32);
        let writer = writer(setup, &init).rule("CHAN-16")?;
        check_eq!(
            "CHAN-16",
            setup.query_cq(writer.send_cq)?.comp_vector,
            vector,
            "the vector"
        );
        fire(setup, &writer)?;
        setup.expect_event(on, writer.send_cq, "CHAN-16")?;
    }
    for quiet in [channel, other] {
        setup.no_event(quiet, "CHAN-16")?;
    }
    Ok(())
}

scenario!(vectors_are_as_many_as_the_device_says: "CHAN-18"; without RC);
fn vectors_are_as_many_as_the_device_says(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_a();
    let vectors = setup.query_device(context)?.num_comp_vectors as i32;
    check!("CHAN-18", vectors >= 1, "at least 1 vector", "{vectors}");
    for vector in 0..vectors {
        let init = CqInit::new(4).comp_vector(vector);
        let cq = setup.create_cq(context, &init).rule("CHAN-18")?;
        setup.destroy_cq(cq, Wait::Poll)?;
    }
    for beyond in [vectors, vectors + 1, i32::MAX, -1] {
        let refused = setup.create_cq(context, &CqInit::new(4).comp_vector(beyond));
        expect_err(refused, ErrorKind::Invalid, "CHAN-18")?;
    }
    Ok(())
}
