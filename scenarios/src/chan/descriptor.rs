//! The file descriptors of channels and contexts.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, epoll, poll};
use verbs_api::{Arm, CqInit, Wait};

use super::{fire, writer};
use crate::cq_ovr::{Queue, SmallCq};
use crate::failure::{check, check_eq};
use crate::{Bench, Failure, OfRule, Result};

scenario!(descriptor_is_readable_exactly_while_an_event_is_unread: "CHAN-30", "CHAN-03"; needs FD);
fn descriptor_is_readable_exactly_while_an_event_is_unread(bench: &Bench<'_>) -> Result {
    const RULE: &str = "CHAN-30";
    let channel = bench.create_comp_channel(bench.ctx_a())?;
    let first = writer(bench, &CqInit::new(16).channel(channel))?;
    let second = writer(bench, &CqInit::new(16).channel(channel))?;
    let fd = bench.channel_fd(channel).rule("CHAN-03")?;
    let readable = |expected, when| is_readable(bench, &fd, expected, RULE, when);
    readable(false, "before any event")?;
    bench.arm(first.send_cq, Arm::NEXT)?;
    readable(false, "armed")?;
    for writer in [&first, &second] {
        fire(bench, writer)?;
        readable(true, "with an event unread")?;
    }
    bench.expect_event(channel, first.send_cq, RULE)?;
    readable(true, "with one of two events read")?;
    let event = bench.take_event(channel)?;
    readable(false, "with both read, one of them not acknowledged")?;
    bench.ack_cq_events(event.cq, 1)?;
    fire(bench, &first)?;
    readable(true, "with a third event")?;
    let later = bench.channel_fd(channel).rule("CHAN-03")?;
    is_readable(bench, &later, true, RULE, "a second descriptor")?;
    // Unread events of a CQ go with it, and those behind them stay.
    let third = writer(bench, &CqInit::new(16).channel(channel))?;
    for writer in [&second, &third] {
        fire(bench, writer)?;
    }
    super::destroy(bench, &first)?;
    for writer in [&second, &third] {
        readable(true, "with the CQ of the first event gone")?;
        bench.expect_event(channel, writer.send_cq, RULE)?;
    }
    readable(false, "with all others read")?;
    fire(bench, &third)?;
    super::destroy(bench, &third)?;
    readable(false, "with the CQ of the event gone")?;
    is_readable(bench, &later, false, RULE, "a second descriptor")
}

scenario!(descriptor_that_is_asked_for_late_tells_how_it_is: "CHAN-30"; needs FD);
/// On a channel that has had events: with one unread, and with all read.
fn descriptor_that_is_asked_for_late_tells_how_it_is(bench: &Bench<'_>) -> Result {
    const RULE: &str = "CHAN-30";
    for is_read in [false, true] {
        let channel = bench.create_comp_channel(bench.ctx_a())?;
        let writer = writer(bench, &CqInit::new(16).channel(channel))?;
        fire(bench, &writer)?;
        bench.settle()?;
        if is_read {
            bench.expect_event(channel, writer.send_cq, RULE)?;
        }
        let fd = bench.channel_fd(channel)?;
        is_readable(bench, &fd, !is_read, RULE, "when it is new")?;
        if !is_read {
            bench.expect_event(channel, writer.send_cq, RULE)?;
            is_readable(bench, &fd, false, RULE, "with its event read")?;
        }
        fire(bench, &writer)?;
        is_readable(bench, &fd, true, RULE, "with the next event")?;
    }
    Ok(())
}

scenario!(edge_triggered_epoll_wakes_for_each_event: "CHAN-30", "CHAN-03"; needs FD);
fn edge_triggered_epoll_wakes_for_each_event(bench: &Bench<'_>) -> Result {
    const RULE: &str = "CHAN-30";
    let channel = bench.create_comp_channel(bench.ctx_a())?;
    let first = writer(bench, &CqInit::new(16).channel(channel))?;
    let second = writer(bench, &CqInit::new(16).channel(channel))?;
    let fd = bench.channel_fd(channel)?;
    let edges = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(broken)?;
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&edges, &fd, epoll::EventData::new_u64(0), flags).map_err(broken)?;
    let wakes = |expected, when| {
        let time = wait_time(bench, expected)?;
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
    fire(bench, &first)?;
    wakes(true, "for the first event")?;
    wakes(false, "again for the first event")?;
    fire(bench, &second)?;
    wakes(true, "for the second event, the first unread")?;
    for (writer, when) in [
        (&first, "with one of two events read"),
        (&second, "with both events read"),
    ] {
        bench.expect_event(channel, writer.send_cq, RULE)?;
        wakes(false, when)?;
    }
    fire(bench, &first)?;
    wakes(true, "for the third event")?;
    bench.event_and_ack(channel)?;
    bench.no_event(channel, RULE)
}

scenario!(descriptor_of_a_context_tells_of_asynchronous_events: "ASYNC-01", "ASYNC-13", "ASYNC-06"; needs FD);
fn descriptor_of_a_context_tells_of_asynchronous_events(bench: &Bench<'_>) -> Result {
    const RULE: &str = "ASYNC-01";
    let small = SmallCq::new(bench, Queue::Send, 3)?;
    let context = small.end.context;
    let fd = bench.async_fd(context).rule(RULE)?;
    let other = bench.async_fd(bench.ctx_b())?;
    is_readable(bench, &fd, false, RULE, "before any event")?;
    small.push_all(0..small.too_many()?)?;
    is_readable(bench, &fd, true, RULE, "after an overrun")?;
    let events = bench.async_events(context)?;
    check!(RULE, !events.is_empty(), "an event", "none");
    is_readable(bench, &fd, false, RULE, "with all events read")?;
    is_readable(bench, &other, false, "ASYNC-13", "of another context")?;
    // Unread events of an object go with it.
    let next = SmallCq::new(bench, Queue::Send, 3)?;
    next.push_all(0..next.too_many()?)?;
    is_readable(bench, &fd, true, RULE, "after another overrun")?;
    bench.destroy_qp(next.end.qp, bench.wait())?;
    bench.destroy_cq(next.cq, bench.wait())?;
    is_readable(
        bench,
        &fd,
        false,
        "ASYNC-06",
        "with what the events are of gone",
    )
}

/// Whether the descriptor can be read is as `expected`, at once or before long.
pub(crate) fn is_readable(
    bench: &Bench<'_>,
    fd: &OwnedFd,
    expected: bool,
    rule: &'static str,
    when: &str,
) -> Result {
    let time = wait_time(bench, expected)?;
    let mut polled = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut polled, time.try_into().ok().as_ref()).map_err(broken)?;
    let seen = polled[0].revents().contains(PollFlags::IN);
    check_eq!(rule, seen, expected, format!("readable {when}"));
    Ok(())
}

/// How long to wait for the descriptor to become readable, or for it not to.
fn wait_time(bench: &Bench<'_>, expected: bool) -> Result<Duration> {
    let wait = if expected {
        bench.settle()?;
        bench.wait()
    } else {
        bench.quiet()?
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
