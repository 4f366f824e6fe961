//! The file descriptors of channels and contexts.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, epoll, poll};
use verbs_api::{Arm, CqInit, Wait};

use super::{fire, writer};
use crate::cq_ovr::{Queue, SmallCq};
use crate::failure::{check, check_eq};
use crate::{Failure, OfRule, Result, Setup};

scenario!(descriptor_is_readable_exactly_while_an_event_is_unread: "CHAN-30", "CHAN-03"; needs FD);
fn descriptor_is_readable_exactly_while_an_event_is_unread(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CHAN-30";
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let first = writer(setup, &CqInit::new(16).channel(channel))?;
    let second = writer(setup, &CqInit::new(16).channel(channel))?;
    let fd = setup.channel_fd(channel).rule("CHAN-03")?;
    let readable = |expected, when| is_readable(setup, &fd, expected, RULE, when);
    readable(false, "before any event")?;
    setup.arm(first.send_cq, Arm::NEXT)?;
    readable(false, "armed")?;
    for writer in [&first, &second] {
        fire(setup, writer)?;
        readable(true, "with an event unread")?;
    }
    setup.expect_event(channel, first.send_cq, RULE)?;
    readable(true, "with one of two events read")?;
    let event = setup.take_event(channel)?;
    readable(false, "with both read, one of them not acknowledged")?;
    setup.ack_cq_events(event.cq, 1)?;
    fire(setup, &first)?;
    readable(true, "with a third event")?;
    let later = setup.channel_fd(channel).rule("CHAN-03")?;
    is_readable(setup, &later, true, RULE, "a second descriptor")?;
    // Unread events of a CQ go with it, and those behind them stay.
    let third = writer(setup, &CqInit::new(16).channel(channel))?;
    for writer in [&second, &third] {
        fire(setup, writer)?;
    }
    super::destroy(setup, &first)?;
    for writer in [&second, &third] {
        readable(true, "with the CQ of the first event gone")?;
        setup.expect_event(channel, writer.send_cq, RULE)?;
    }
    readable(false, "with all others read")?;
    fire(setup, &third)?;
    super::destroy(setup, &third)?;
    readable(false, "with the CQ of the event gone")?;
    is_readable(setup, &later, false, RULE, "a second descriptor")
}

scenario!(descriptor_that_is_asked_for_late_tells_how_it_is: "CHAN-30"; needs FD);
/// On a channel that has had events: with one unread, and with all read.
fn descriptor_that_is_asked_for_late_tells_how_it_is(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CHAN-30";
    for is_read in [false, true] {
        let channel = setup.create_comp_channel(setup.ctx_a())?;
        let writer = writer(setup, &CqInit::new(16).channel(channel))?;
        fire(setup, &writer)?;
        setup.settle()?;
        if is_read {
            setup.expect_event(channel, writer.send_cq, RULE)?;
        }
        let fd = setup.channel_fd(channel)?;
        is_readable(setup, &fd, !is_read, RULE, "when it is new")?;
        if !is_read {
            setup.expect_event(channel, writer.send_cq, RULE)?;
            is_readable(setup, &fd, false, RULE, "with its event read")?;
        }
        fire(setup, &writer)?;
        is_readable(setup, &fd, true, RULE, "with the next event")?;
    }
    Ok(())
}

scenario!(edge_triggered_epoll_wakes_for_each_event: "CHAN-30", "CHAN-03"; needs FD);
fn edge_triggered_epoll_wakes_for_each_event(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CHAN-30";
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let first = writer(setup, &CqInit::new(16).channel(channel))?;
    let second = writer(setup, &CqInit::new(16).channel(channel))?;
    let fd = setup.channel_fd(channel)?;
    let edges = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(broken)?;
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&edges, &fd, epoll::EventData::new_u64(0), flags).map_err(broken)?;
    let wakes = |expected, when| {
        let time = wait_time(setup, expected)?;
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }];
        let count = epoll::wait(&edges, &mut events, time.try_into().ok().as_ref());
        let woken = count.map_err(broken)? > 0;
        check_eq!(
            [RULE, "CHAN-03"],
            woken,
            expected,
            format!("epoll wakes {when}")
        );
        Ok::<(), Failure>(())
    };
    wakes(false, "before any event")?;
    fire(setup, &first)?;
    wakes(true, "for the first event")?;
    wakes(false, "again for the first event")?;
    fire(setup, &second)?;
    wakes(true, "for the second event, the first unread")?;
    for (writer, when) in [
        (&first, "with one of two events read"),
        (&second, "with both events read"),
    ] {
        setup.expect_event(channel, writer.send_cq, RULE)?;
        wakes(false, when)?;
    }
    fire(setup, &first)?;
    wakes(true, "for the third event")?;
    setup.event_and_ack(channel)?;
    setup.no_event(channel, RULE)
}

scenario!(descriptor_of_a_context_tells_of_asynchronous_events: "ASYNC-01", "ASYNC-13", "ASYNC-06"; needs FD);
fn descriptor_of_a_context_tells_of_asynchronous_events(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ASYNC-01";
    let small = SmallCq::new(setup, Queue::Send, 3)?;
    let context = small.end.context;
    let fd = setup.async_fd(context).rule(RULE)?;
    let other = setup.async_fd(setup.ctx_b())?;
    let is_quiet = |fd, context, rule, when| {
        // Events of a real port, which others cause, are passed over.
        setup.no_async_event(context, rule)?;
        is_readable(setup, fd, false, rule, when)
    };
    is_quiet(&fd, context, RULE, "before any event")?;
    small.push_all(0..small.too_many()?)?;
    is_readable(setup, &fd, true, RULE, "after an overrun")?;
    let events = setup.async_events(context)?;
    check!(RULE, !events.is_empty(), "an event", "none");
    is_quiet(&fd, context, RULE, "with all events read")?;
    is_quiet(&other, setup.ctx_b(), "ASYNC-13", "of another context")?;
    // Unread events of an object go with it.
    let next = SmallCq::new(setup, Queue::Send, 3)?;
    next.push_all(0..next.too_many()?)?;
    is_readable(setup, &fd, true, RULE, "after another overrun")?;
    setup.destroy_qp(next.end.qp, setup.wait())?;
    setup.destroy_cq(next.cq, setup.wait())?;
    let when = "with what the events are of gone";
    is_quiet(&fd, context, "ASYNC-06", when)
}

/// Whether the descriptor can be read is as `expected`, at once or before long.
pub(crate) fn is_readable(
    setup: &Setup<'_>,
    fd: &OwnedFd,
    expected: bool,
    rule: &'static str,
    when: &str,
) -> Result {
    let time = wait_time(setup, expected)?;
    let mut polled = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut polled, time.try_into().ok().as_ref()).map_err(broken)?;
    let seen = polled[0].revents().contains(PollFlags::IN);
    check_eq!(rule, seen, expected, format!("readable {when}"));
    Ok(())
}

/// How long to wait for the descriptor to become readable, or for it not to.
fn wait_time(setup: &Setup<'_>, expected: bool) -> Result<Duration> {
    let wait = if expected {
        setup.settle()?;
        setup.wait()
    } else {
        setup.quiet()?
    };
    Ok(match wait {
        Wait::For(time) => time,
        // All is settled: it is now or never.
        Wait::Poll | Wait::Forever => Duration::ZERO,
    })
}

fn broken(errno: rustix::io::Errno) -> Failure {
    Failure::assertion("the system call works", errno.to_string())
}
