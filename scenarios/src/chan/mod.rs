//! Completion channels: which events are read where, and what must be acknowledged.
//!
//! | file | holds |
//! |---|---|
//! | `life` | creating and destroying channels, limits |
//! | `steer` | on which channel an event comes |
//! | `read` | reading events: which, when, in what order |
//! | `ack` | acknowledging them, and CQs that go away |
//! | `descriptor` | file descriptors, on Linux |
//! | `threads` | several threads at channels |

mod ack;
#[cfg(target_os = "linux")]
mod descriptor;
mod life;
mod read;
mod steer;
mod threads;

use verbs_api::{Arm, Capabilities, CompChannel, CqEvent, CqInit, Wait};

use crate::{Bench, End, Hazards, PairOptions, Result, Scenario};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario::new(
        "chan.channels_are_distinct_and_of_their_context",
        &["CHAN-01", "CHAN-08", "CHAN-07"],
        life::channels_are_distinct_and_of_their_context,
    ),
    Scenario::new(
        "chan.channel_of_another_context_is_refused",
        &["CHAN-07", "CHAN-01"],
        life::channel_of_another_context_is_refused,
    ),
    Scenario::new(
        "chan.create_needs_an_open_context",
        &["CHAN-07"],
        life::create_needs_an_open_context,
    ),
    Scenario::new(
        "chan.create_fails_beyond_the_limit_of_open_files",
        &["CHAN-09"],
        life::create_fails_beyond_the_limit_of_open_files,
    )
    .needs(Capabilities::LAB),
    Scenario::new(
        "chan.create_fails_without_memory_and_leaks_nothing",
        &["CHAN-10"],
        life::create_fails_without_memory_and_leaks_nothing,
    )
    .needs(Capabilities::LAB),
    Scenario::new(
        "chan.channel_without_cq_is_destroyed_at_once",
        &["CHAN-11"],
        life::channel_without_cq_is_destroyed_at_once,
    ),
    Scenario::new(
        "chan.destroy_is_busy_until_the_last_cq_is_gone",
        &["CHAN-38", "CQ-DESTROY-07"],
        life::destroy_is_busy_until_the_last_cq_is_gone,
    ),
    Scenario::new(
        "chan.event_comes_on_the_channel_of_its_cq_only",
        &["CHAN-04", "CHAN-17"],
        steer::event_comes_on_the_channel_of_its_cq_only,
    ),
    Scenario::new(
        "chan.many_cqs_share_a_channel",
        &["CHAN-06", "CHAN-24", "CHAN-23"],
        steer::many_cqs_share_a_channel,
    ),
    Scenario::new(
        "chan.cqs_are_split_over_channels_in_any_grouping",
        &["CHAN-22", "CHAN-14", "CHAN-17"],
        steer::cqs_are_split_over_channels_in_any_grouping,
    ),
    Scenario::new(
        "chan.both_ends_of_a_connection_share_a_channel",
        &["CHAN-19", "CHAN-24", "CHAN-06"],
        steer::both_ends_of_a_connection_share_a_channel,
    ),
    Scenario::new(
        "chan.waiting_events_do_not_hold_up_another_channel",
        &["CHAN-15"],
        steer::waiting_events_do_not_hold_up_another_channel,
    ),
    Scenario::new(
        "chan.cqs_with_different_vectors_share_a_channel",
        &["CHAN-16"],
        steer::cqs_with_different_vectors_share_a_channel,
    )
    .needs(Capabilities::COMP_VECTORS),
    Scenario::new(
        "chan.vectors_are_as_many_as_the_device_says",
        &["CHAN-18"],
        steer::vectors_are_as_many_as_the_device_says,
    ),
    Scenario::new(
        "chan.event_needs_a_cq_a_request_and_a_completion",
        &["CHAN-25", "CHAN-41"],
        read::event_needs_a_cq_a_request_and_a_completion,
    ),
    Scenario::new(
        "chan.empty_channel_would_block",
        &["CHAN-29", "CHAN-26", "CHAN-41"],
        read::empty_channel_would_block,
    ),
    Scenario::new(
        "chan.wait_that_nothing_can_end_stalls",
        &["CHAN-41", "CHAN-26"],
        read::wait_that_nothing_can_end_stalls,
    )
    .needs(Capabilities::LAB),
    Scenario::new(
        "chan.events_are_read_one_by_one_in_order",
        &["CHAN-33", "CHAN-32"],
        read::events_are_read_one_by_one_in_order,
    ),
    Scenario::new(
        "chan.event_names_its_cq",
        &["CHAN-23", "CHAN-27"],
        read::event_names_its_cq,
    ),
    Scenario::new(
        "chan.event_outlives_the_qp",
        &["CHAN-40"],
        read::event_outlives_the_qp,
    ),
    Scenario::new(
        "chan.unread_events_are_not_dropped",
        &["CHAN-43"],
        read::unread_events_are_not_dropped,
    )
    .needs(Capabilities::LAB),
    Scenario::new(
        "chan.cq_keeps_its_context_and_channel",
        &["CHAN-45"],
        read::cq_keeps_its_context_and_channel,
    ),
    Scenario::new(
        "chan.resized_cq_keeps_its_context_and_channel",
        &["CHAN-45"],
        read::resized_cq_keeps_its_context_and_channel,
    )
    .needs(Capabilities::RESIZE_CQ),
    Scenario::new(
        "chan.events_are_acknowledged_in_any_batches",
        &["CHAN-34", "CHAN-35"],
        ack::events_are_acknowledged_in_any_batches,
    )
    .hazards(Hazards::MAY_HANG),
    Scenario::new(
        "chan.destroy_would_block_until_the_last_acknowledgement",
        &["CHAN-35", "CHAN-34"],
        ack::destroy_would_block_until_the_last_acknowledgement,
    )
    .hazards(Hazards::MAY_HANG),
    Scenario::new(
        "chan.unread_events_go_with_their_cq",
        &["CHAN-36"],
        ack::unread_events_go_with_their_cq,
    )
    .hazards(Hazards::MAY_HANG),
    Scenario::new(
        "chan.only_read_events_keep_a_cq",
        &["CHAN-36", "CHAN-35"],
        ack::only_read_events_keep_a_cq,
    )
    .hazards(Hazards::MAY_HANG),
    Scenario::new(
        "chan.too_many_acknowledgements_are_a_usage_error",
        &["CHAN-37"],
        ack::too_many_acknowledgements_are_a_usage_error,
    )
    .needs(Capabilities::LAB),
    Scenario::new(
        "chan.unacknowledged_events_hold_up_no_others",
        &["CHAN-39", "CHAN-34"],
        ack::unacknowledged_events_hold_up_no_others,
    )
    .hazards(Hazards::MAY_HANG),
    #[cfg(target_os = "linux")]
    Scenario::new(
        "chan.descriptor_is_readable_exactly_while_an_event_is_unread",
        &["CHAN-30", "CHAN-03"],
        descriptor::descriptor_is_readable_exactly_while_an_event_is_unread,
    )
    .needs(Capabilities::FD),
    #[cfg(target_os = "linux")]
    Scenario::new(
        "chan.edge_triggered_epoll_wakes_for_each_event",
        &["CHAN-30", "CHAN-03"],
        descriptor::edge_triggered_epoll_wakes_for_each_event,
    )
    .needs(Capabilities::FD),
    #[cfg(target_os = "linux")]
    Scenario::new(
        "chan.descriptor_of_a_context_tells_of_asynchronous_events",
        &["ASYNC-01", "ASYNC-13"],
        descriptor::descriptor_of_a_context_tells_of_asynchronous_events,
    )
    .needs(Capabilities::FD),
    Scenario::new(
        "chan.each_channel_wakes_its_own_thread",
        &["CHAN-05"],
        threads::each_channel_wakes_its_own_thread,
    )
    .needs(Capabilities::THREADS)
    .hazards(Hazards::MAY_HANG),
    Scenario::new(
        "chan.sleeping_reader_is_woken_by_an_armed_cq_only",
        &["CHAN-13", "CHAN-26"],
        threads::sleeping_reader_is_woken_by_an_armed_cq_only,
    )
    .needs(Capabilities::THREADS)
    .hazards(Hazards::MAY_HANG),
    Scenario::new(
        "chan.threads_share_a_channel_and_each_event_goes_to_one",
        &["CHAN-20", "CHAN-21"],
        threads::threads_share_a_channel_and_each_event_goes_to_one,
    )
    .needs(Capabilities::THREADS)
    .hazards(Hazards::MAY_HANG),
    Scenario::new(
        "chan.any_thread_acknowledges",
        &["CHAN-42", "CHAN-35"],
        threads::any_thread_acknowledges,
    )
    .needs(Capabilities::THREADS)
    .hazards(Hazards::MAY_HANG),
    Scenario::new(
        "chan.destroy_with_a_thread_waiting_is_a_usage_error",
        &["CHAN-44"],
        threads::destroy_with_a_thread_waiting_is_a_usage_error,
    )
    .needs(Capabilities::LAB.union(Capabilities::THREADS)),
];

/// A connected end of side A on one CQ made like this; each of its writes completes there.
fn writer<'b>(bench: &'b Bench<'_>, init: &CqInit) -> Result<End<'b>> {
    let options = PairOptions {
        one_cq: true,
        recv_cqe: 4,
        channel: false,
        mem: 4096,
        ..PairOptions::default()
    };
    let cq = bench.create_cq(bench.ctx_a(), init)?;
    let a = bench.end_on(cq, cq, options)?;
    let b = bench.end(bench.ctx_b(), options)?;
    Ok(bench.connect(a, b, options)?.a)
}

/// So many [writers](writer), their CQs on one channel; the `cq_context` of each is its number.
fn writers<'b>(bench: &'b Bench<'_>, channel: CompChannel, n: u64) -> Result<Vec<End<'b>>> {
    let on_channel = |i| writer(bench, &CqInit::new(16).channel(channel).context(i));
    (0..n).map(on_channel).collect()
}

/// Makes a completion on the CQ of a writer, and polls it.
fn complete(bench: &Bench<'_>, writer: &End<'_>) -> Result {
    writer.write(1, 8)?;
    bench.successes(writer.send_cq, 1)?;
    Ok(())
}

/// Makes an event of the CQ of a writer, and leaves it unread.
fn fire(bench: &Bench<'_>, writer: &End<'_>) -> Result {
    bench.arm(writer.send_cq, Arm::NEXT)?;
    complete(bench, writer)
}

/// Makes an event of the CQ of a writer, and reads it. It has to be acknowledged.
fn fire_and_take(bench: &Bench<'_>, writer: &End<'_>) -> Result<CqEvent> {
    fire(bench, writer)?;
    bench.take_event(writer.channel)
}

/// Destroys the queue pair of an end, and its CQ, which must not have to wait for anything.
fn destroy(bench: &Bench<'_>, end: &End<'_>) -> Result {
    bench.destroy_qp(end.qp, bench.wait())?;
    Ok(bench.destroy_cq(end.send_cq, Wait::Poll)?)
}
