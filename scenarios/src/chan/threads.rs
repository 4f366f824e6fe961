//! Several threads at channels.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use crossbeam::channel;
use verbs_api::{Arm, Cq, CqInit, ErrorKind};

use super::{complete, destroy, fire, fire_and_take, writer, writers};
use crate::failure::{Failure, check_eq};
use crate::setup::yield_to_others;
use crate::{End, OfRule, Result, Setup, expect_err};

scenario!(each_channel_wakes_its_own_thread: "CHAN-05"; needs THREADS; hazards MAY_HANG);
fn each_channel_wakes_its_own_thread(setup: &Setup<'_>) -> Result {
    let mut groups: Vec<Vec<End<'_>>> = Vec::new();
    for _ in 0..3 {
        let channel = setup.create_comp_channel(setup.ctx_a())?;
        groups.push(writers(setup, channel, 2)?);
    }
    let (report, reports) = channel::unbounded();
    thread::scope(|scope| {
        for group in &groups {
            let (report, channel) = (report.clone(), group[0].channel);
            scope.spawn(move || {
                for _ in group {
                    let event = setup.event_and_ack(channel);
                    report.send((channel, event)).expect("someone listens");
                }
            });
        }
        for turn in 0..2 {
            for end in groups.iter().rev().map(|group| &group[turn]) {
                fire(setup, end)?;
                let (channel, event) = reports.recv().expect("the threads live");
                let woken = (channel, event.rule("CHAN-05")?.cq);
                check_eq!("CHAN-05", woken, (end.channel, end.send_cq), "what wakes");
            }
        }
        Ok(())
    })
}

scenario!(sleeping_reader_is_woken_by_an_armed_cq_only:
    "CHAN-13", "CHAN-26"; needs THREADS; hazards MAY_HANG);
fn sleeping_reader_is_woken_by_an_armed_cq_only(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let writers = writers(setup, channel, 2)?;
    let (armed, unarmed) = (&writers[0], &writers[1]);
    let read = || setup.event_and_ack(channel);
    let event = setup.waits_until("CHAN-26", read, || {
        complete(setup, unarmed)?;
        fire(setup, armed)
    })?;
    check_eq!("CHAN-13", event.rule("CHAN-13")?.cq, armed.send_cq);
    setup.no_event(channel, "CHAN-13")
}

scenario!(threads_share_a_channel_and_each_event_goes_to_one:
    "CHAN-20", "CHAN-21"; needs THREADS; hazards MAY_HANG);
fn threads_share_a_channel_and_each_event_goes_to_one(setup: &Setup<'_>) -> Result {
    const EVENTS: u32 = 48;
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let writers = writers(setup, channel, u64::from(EVENTS))?;
    for writer in &writers {
        setup.arm(writer.send_cq, Arm::NEXT)?;
    }
    let left = AtomicU32::new(EVENTS);
    let claim = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
    // Whichever thread is free claims the next event: none has to get any.
    let read = || {
        let mut read = Vec::new();
        while claim().is_ok() {
            read.push(setup.event_and_ack(channel)?.cq);
        }
        Ok(read)
    };
    let mut read = thread::scope(|scope| -> Result<Vec<Cq>> {
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(read)).collect();
        for writer in &writers {
            writer.write(1, 8)?;
        }
        let mut all = Vec::new();
        for reader in readers {
            let read: Result<Vec<Cq>> = reader.join().expect("no panic");
            all.extend(read.rule("CHAN-20")?);
        }
        Ok(all)
    })?;
    read.sort_unstable();
    let fired: Vec<Cq> = writers.iter().map(|end| end.send_cq).collect();
    check_eq!(
        ["CHAN-20", "CHAN-21"],
        read,
        fired,
        "the events of all threads"
    );
    setup.no_event(channel, "CHAN-20")
}

scenario!(any_thread_acknowledges: "CHAN-42"; needs THREADS; hazards MAY_HANG);
fn any_thread_acknowledges(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let writer = writer(setup, &CqInit::new(16).channel(channel))?;
    let (to_acknowledge, read) = channel::unbounded();
    thread::scope(|scope| {
        let acknowledger = scope.spawn(move || -> Result {
            // Two at a time, so that it is always behind the reader.
            while let (Ok(first), Ok(_)) = (read.recv(), read.recv()) {
                setup.ack_cq_events(first, 2)?;
            }
            Ok(())
        });
        for _ in 0..100 {
            let event = fire_and_take(setup, &writer).rule("CHAN-42")?;
            to_acknowledge.send(event.cq).expect("someone acknowledges");
        }
        drop(to_acknowledge);
        acknowledger.join().expect("no panic").rule("CHAN-42")
    })?;
    destroy(setup, &writer).rule("CHAN-42")
}

scenario!(destroy_with_a_thread_waiting_is_a_usage_error: "CHAN-44"; needs LAB, THREADS);
fn destroy_with_a_thread_waiting_is_a_usage_error(setup: &Setup<'_>) -> Result {
    // The thread may be late, and its channel gone before it waits: then once more. On a busy
    // machine it can be late many times.
    const TRIES: u32 = 5000;
    for _ in 0..TRIES {
        let channel = setup.create_comp_channel(setup.ctx_a())?;
        let mut destroyed = Ok(());
        let read = setup.waits_until(
            "CHAN-44",
            || setup.event_and_ack(channel),
            || {
                destroyed = setup.destroy_comp_channel(channel);
                match destroyed {
                    Ok(()) => Ok(()),
                    Err(_) => fire(setup, &writer(setup, &CqInit::new(16).channel(channel))?),
                }
            },
        )?;
        if destroyed.is_err() {
            expect_err(destroyed, ErrorKind::Usage, "CHAN-44")?;
            read.rule("CHAN-44")?;
            return Ok(());
        }
    }
    let seen = format!("success, {TRIES} times");
    Err(Failure::assertion("a usage error", seen)).rule("CHAN-44")
}

scenario!(each_of_several_waiting_threads_keeps_its_channel: "CHAN-44", "CHAN-21"; needs LAB, THREADS);
/// Each event wakes one thread; the others wait on, and the channel can go when none does.
fn each_of_several_waiting_threads_keeps_its_channel(setup: &Setup<'_>) -> Result {
    // A thread may be late, and its channel gone before it waits: then once more.
    const TRIES: u32 = 5000;
    for _ in 0..TRIES {
        if kept_by_each(setup)? {
            return Ok(());
        }
    }
    let seen = format!("success, {TRIES} times");
    Err(Failure::assertion("a usage error", seen)).rule("CHAN-44")
}

/// Two threads wait, and are woken one after the other. Whether both were seen to keep the channel.
fn kept_by_each(setup: &Setup<'_>) -> Result<bool> {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    let (report, reports) = channel::unbounded();
    thread::scope(|scope| {
        for _ in 0..2 {
            let report = report.clone();
            scope.spawn(move || report.send(setup.event_and_ack(channel)));
        }
        for _ in 0..2 {
            yield_to_others();
            match setup.destroy_comp_channel(channel) {
                Ok(()) => return Ok(false),
                kept => expect_err(kept, ErrorKind::Usage, "CHAN-44")?,
            };
            let writer = writer(setup, &CqInit::new(16).channel(channel))?;
            fire(setup, &writer)?;
            let woken = reports.recv().expect("the threads live").rule("CHAN-21")?;
            check_eq!("CHAN-21", woken.cq, writer.send_cq, "what wakes");
            destroy(setup, &writer)?;
        }
        setup.destroy_comp_channel(channel).rule("CHAN-44")?;
        Ok(true)
    })
}
