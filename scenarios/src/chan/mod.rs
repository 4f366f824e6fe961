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
pub(crate) mod descriptor;
mod life;
mod read;
mod steer;
mod threads;

use verbs_api::{Arm, CompChannel, CqEvent, CqInit, Wait};

use crate::{End, PairOptions, Result, Scenario, Setup};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    life::channels_are_distinct_and_of_their_context,
    life::channel_of_another_context_is_refused,
    life::create_needs_an_open_context,
    life::create_fails_beyond_the_limit_of_open_files,
    life::create_fails_without_memory_and_leaks_nothing,
    life::channel_without_cq_is_destroyed_at_once,
    life::destroy_is_busy_until_the_last_cq_is_gone,
    steer::event_comes_on_the_channel_of_its_cq_only,
    steer::many_cqs_share_a_channel,
    steer::cqs_are_split_over_channels_in_any_grouping,
    steer::both_ends_of_a_connection_share_a_channel,
    steer::waiting_events_do_not_hold_up_another_channel,
    steer::cqs_with_different_vectors_share_a_channel,
    steer::vectors_are_as_many_as_the_device_says,
    read::event_needs_a_cq_a_request_and_a_completion,
    read::empty_channel_would_block,
    read::wait_that_nothing_can_end_stalls,
    read::events_are_read_one_by_one_in_order,
    read::event_names_its_cq,
    read::event_outlives_the_qp,
    read::unread_events_are_not_dropped,
    read::cq_keeps_its_context_and_channel,
    read::resized_cq_keeps_its_context_and_channel,
    ack::events_are_acknowledged_in_any_batches,
    ack::destroy_would_block_until_the_last_acknowledgement,
    ack::unread_events_go_with_their_cq,
    ack::only_read_events_keep_a_cq,
    ack::too_many_acknowledgements_are_a_usage_error,
    ack::unacknowledged_events_hold_up_no_others,
    #[cfg(target_os = "linux")]
    descriptor::descriptor_is_readable_exactly_while_an_event_is_unread,
    #[cfg(target_os = "linux")]
    descriptor::descriptor_that_is_asked_for_late_tells_how_it_is,
    #[cfg(target_os = "linux")]
    descriptor::edge_triggered_epoll_wakes_for_each_event,
    #[cfg(target_os = "linux")]
    descriptor::descriptor_of_a_context_tells_of_asynchronous_events,
    threads::each_channel_wakes_its_own_thread,
    threads::sleeping_reader_is_woken_by_an_armed_cq_only,
    threads::threads_share_a_channel_and_each_event_goes_to_one,
    threads::any_thread_acknowledges,
    threads::destroy_with_a_thread_waiting_is_a_usage_error,
    threads::each_of_several_waiting_threads_keeps_its_channel,
];

/// A connected end of side A on one CQ made like this; each of its writes completes there.
fn writer<'b>(setup: &'b Setup<'_>, init: &CqInit) -> Result<End<'b>> {
    let options = PairOptions {
        one_cq: true,
        recv_cqe: 4,
        channel: false,
        mem: 4096,
        ..PairOptions::default()
    };
    let cq = setup.create_cq(setup.ctx_a(), init)?;
    let a = setup.end_on(cq, cq, options)?;
    let b = setup.end(setup.ctx_b(), options)?;
    Ok(setup.connect(a, b, options)?.a)
}

/// `n` [writers](writer), their CQs on one channel; the `cq_context` of each is its number.
fn writers<'b>(setup: &'b Setup<'_>, channel: CompChannel, n: u64) -> Result<Vec<End<'b>>> {
    let on_channel = |i| writer(setup, &CqInit::new(16).channel(channel).context(i));
    (0..n).map(on_channel).collect()
}

/// Makes a completion on the CQ of a writer, and polls it.
fn complete(setup: &Setup<'_>, writer: &End<'_>) -> Result {
    writer.write(1, 8)?;
    setup.successes(writer.send_cq, 1)?;
    Ok(())
}

/// Makes an event of the CQ of a writer, and leaves it unread.
fn fire(setup: &Setup<'_>, writer: &End<'_>) -> Result {
    setup.arm(writer.send_cq, Arm::NEXT)?;
    complete(setup, writer)
}

/// Makes an event of the CQ of a writer, and reads it. It has to be acknowledged.
fn fire_and_take(setup: &Setup<'_>, writer: &End<'_>) -> Result<CqEvent> {
    fire(setup, writer)?;
    setup.take_event(writer.channel)
}

/// Destroys the queue pair of an end, and its CQ, which must not have to wait for anything.
fn destroy(setup: &Setup<'_>, end: &End<'_>) -> Result {
    setup.destroy_qp(end.qp, setup.wait())?;
    Ok(setup.destroy_cq(end.send_cq, Wait::Poll)?)
}
