//! Handlers: events and completions are two things, and no completion may be missed.

use std::hint::spin_loop;
use std::ops::Range;
use std::sync::Barrier;
use std::thread;

use verbs_api::{Arm, CompChannel, Cq, ErrorKind, QpCap, SendFlags, SendWr, Wait, Wc, WcStatus};

use super::{BOTH, PLAIN, deliver, leave, post};
use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::{End, OfRule, Pair, PairOptions, Result, Setup, expect_err};

scenario!(one_event_for_many_completions: "CQ-ARM-29", "CQ-ARM-32", "CQ-ARM-53");
fn one_event_for_many_completions(setup: &Setup<'_>) -> Result {
    for poll_first in [false, true] {
        let pair = setup.rc_pair()?;
        let b = pair.b;
        setup.arm(b.recv_cq, Arm::NEXT)?;
        for wr_id in 0..10 {
            post(&pair, wr_id, PLAIN)?;
        }
        if poll_first {
            take(setup, b.recv_cq, 0..10, "CQ-ARM-32")?;
            setup.expect_event(b.channel, b.recv_cq, ["CQ-ARM-29", "CQ-ARM-53"])?;
        } else {
            setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-29")?;
            take(setup, b.recv_cq, 0..10, "CQ-ARM-29")?;
        }
        setup.no_event(b.channel, "CQ-ARM-29")?;
    }
    Ok(())
}

scenario!(request_made_after_the_last_arrival_waits: "CQ-ARM-30", "CQ-ARM-32");
fn request_made_after_the_last_arrival_waits(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    for wr_id in 0..10 {
        leave(setup, &pair, wr_id, PLAIN)?;
    }
    take(setup, b.recv_cq, 0..2, "CQ-ARM-32")?;
    setup.arm(b.recv_cq, Arm::NEXT)?;
    setup.no_event(b.channel, "CQ-ARM-30")?;
    take(setup, b.recv_cq, 2..10, "CQ-ARM-32")?;
    setup.no_event(b.channel, "CQ-ARM-30")?;
    deliver(setup, &pair, PLAIN)?;
    setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-30")?;
    Ok(())
}

scenario!(event_does_not_oblige_to_poll: "CQ-ARM-33");
fn event_does_not_oblige_to_poll(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    for wr_id in 0..4 {
        setup.arm(b.recv_cq, Arm::NEXT)?;
        post(&pair, wr_id, PLAIN)?;
        setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-33")?;
    }
    take(setup, b.recv_cq, 0..4, "CQ-ARM-33")?;
    setup.no_event(b.channel, "CQ-ARM-33")
}

scenario!(completion_stays_until_it_is_polled: "CQ-ARM-34");
fn completion_stays_until_it_is_polled(setup: &Setup<'_>) -> Result {
    stays_until_polled(setup, |_| Ok(()))
}

scenario!(completion_stays_through_resizes: "CQ-ARM-34"; needs RESIZE_CQ);
fn completion_stays_through_resizes(setup: &Setup<'_>) -> Result {
    stays_until_polled(setup, |cq| {
        for cqe in [100, 4] {
            setup.resize_cq(cq, cqe).rule("CQ-ARM-34")?;
        }
        Ok(())
    })
}

/// Events, requests and `disturb` take no completion away; a poll takes each once.
fn stays_until_polled(setup: &Setup<'_>, disturb: impl Fn(Cq) -> Result) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    for wr_id in 0..3 {
        leave(setup, &pair, wr_id, PLAIN)?;
    }
    for arm in BOTH {
        setup.arm(b.recv_cq, arm)?;
        disturb(b.recv_cq)?;
        check_eq!("CQ-ARM-34", setup.poll_cq(b.recv_cq, &mut [])?, 0);
    }
    for wr_id in 0..3 {
        take(setup, b.recv_cq, wr_id..wr_id + 1, "CQ-ARM-34")?;
        disturb(b.recv_cq)?;
    }
    setup.no_completion(b.recv_cq, "CQ-ARM-34")
}

scenario!(event_may_come_with_an_empty_cq: "CQ-ARM-38", "CQ-ARM-53");
fn event_may_come_with_an_empty_cq(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    for _ in 0..3 {
        setup.arm(b.recv_cq, Arm::NEXT)?;
        deliver(setup, &pair, PLAIN)?;
        setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-53")?;
        let present = setup.drain(b.recv_cq).rule("CQ-ARM-38")?;
        check_eq!("CQ-ARM-38", present, []);
        setup.no_event(b.channel, "CQ-ARM-53")?;
    }
    Ok(())
}

scenario!(polling_and_reading_neither_arm_nor_disarm: "CQ-ARM-39");
fn polling_and_reading_neither_arm_nor_disarm(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    let handle = || -> Result {
        for _ in 0..3 {
            check_eq!("CQ-ARM-39", setup.drain(b.recv_cq)?, []);
            let empty = setup.get_cq_event(b.channel, Wait::Poll);
            expect_err(empty, ErrorKind::WouldBlock, "CQ-ARM-39")?;
            setup.ack_cq_events(b.recv_cq, 0)?;
        }
        Ok(())
    };
    handle()?;
    deliver(setup, &pair, PLAIN)?;
    setup.no_event(b.channel, "CQ-ARM-39")?;

    setup.arm(b.recv_cq, Arm::NEXT)?;
    handle()?;
    deliver(setup, &pair, PLAIN)?;
    setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-39")?;
    Ok(())
}

scenario!(unacknowledged_events_do_not_hold_up_requests: "CQ-ARM-39");
fn unacknowledged_events_do_not_hold_up_requests(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    for _ in 0..3 {
        setup.arm(b.recv_cq, Arm::NEXT)?;
        deliver(setup, &pair, PLAIN)?;
        let event = setup.take_event(b.channel).rule("CQ-ARM-39")?;
        check_eq!("CQ-ARM-39", event.cq, b.recv_cq);
    }
    setup.ack_cq_events(b.recv_cq, 3)?;
    deliver(setup, &pair, PLAIN)?;
    setup.no_event(b.channel, "CQ-ARM-39")
}

/// The next completions are successes with these wr_ids.
fn take(setup: &Setup<'_>, cq: Cq, wr_ids: Range<u64>, rule: &'static str) -> Result {
    let count = (wr_ids.end - wr_ids.start) as usize;
    let got = setup.successes(cq, count).rule(rule)?;
    let got: Vec<_> = got.iter().map(|wc| wc.wr_id).collect();
    check_eq!(rule, got, wr_ids.collect::<Vec<_>>(), "wr_ids");
    Ok(())
}

/// The safe handler, one call at a time: get event, acknowledge, arm, poll until empty.
struct Handler<'b> {
    setup: &'b Setup<'b>,
    channel: CompChannel,
    cq: Cq,
    arm: Arm,
    /// The number of completions that fit into a poll.
    batch: usize,
    next: Call,
    seen: Vec<u64>,
    events: usize,
}

#[derive(Clone, Copy)]
enum Call {
    GetEvent,
    Ack,
    Arm,
    Poll,
}

impl<'b> Handler<'b> {
    /// Arms the CQ of receives of `end`.
    fn start(setup: &'b Setup<'b>, end: &End<'_>, arm: Arm, batch: usize) -> Result<Self> {
        setup.arm(end.recv_cq, arm)?;
        Ok(Self {
            setup,
            channel: end.channel,
            cq: end.recv_cq,
            arm,
            batch,
            next: Call::GetEvent,
            seen: Vec::new(),
            events: 0,
        })
    }

    /// Makes the next call. Without an event, within `wait`, that stays the one to get it.
    fn step(&mut self, wait: Wait) -> Result {
        let (setup, cq) = (self.setup, self.cq);
        self.next = match self.next {
            Call::GetEvent => match setup.get_cq_event(self.channel, wait) {
                Ok(event) => {
                    check_eq!("CQ-ARM-31", event.cq, cq);
                    self.events += 1;
                    Call::Ack
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => Call::GetEvent,
                Err(error) => return Err(error).rule("CQ-ARM-37"),
            },
            Call::Ack => {
                setup.ack_cq_events(cq, 1)?;
                Call::Arm
            }
            Call::Arm => {
                setup.arm(cq, self.arm)?;
                Call::Poll
            }
            Call::Poll => {
                let mut wc = vec![Wc::default(); self.batch];
                let polled = setup.poll_cq(cq, &mut wc)?;
                for wc in &wc[..polled] {
                    check_eq!("CQ-ARM-31", wc.status, WcStatus::Success);
                    self.seen.push(wc.wr_id);
                }
                if polled == 0 {
                    Call::GetEvent
                } else {
                    Call::Poll
                }
            }
        };
        Ok(())
    }

    /// Continues until it has seen `count` completions.
    fn until_seen(&mut self, count: usize) -> Result {
        while self.seen.len() < count {
            self.step(self.setup.wait())?;
        }
        Ok(())
    }
}

scenario!(safe_handler_misses_nothing_in_any_order: "CQ-ARM-31", "CQ-ARM-37"; hazards MAY_HANG);
fn safe_handler_misses_nothing_in_any_order(setup: &Setup<'_>) -> Result {
    for arm in BOTH {
        for batch in [1, 4] {
            let pair = setup.rc_pair()?;
            let mut handler = Handler::start(setup, &pair.b, arm, batch)?;
            for arrivals in schedules() {
                let case = format!("arrivals {arrivals:#b}, {arm}, polls of {batch}");
                value_in_case(&case, run_schedule(setup, &pair, &mut handler, arrivals))?;
            }
        }
    }
    Ok(())
}

const TICKS: u32 = 12;
const ARRIVALS: u32 = 3;

/// Every choice of the ticks at which a message arrives; at the others the handler makes a call.
fn schedules() -> impl Iterator<Item = u32> {
    (0_u32..1 << TICKS).filter(|ticks| ticks.count_ones() == ARRIVALS)
}

fn run_schedule(
    setup: &Setup<'_>,
    pair: &Pair<'_>,
    handler: &mut Handler<'_>,
    arrivals: u32,
) -> Result {
    let mut arrived = 0;
    for tick in 0..TICKS {
        if arrivals >> tick & 1 == 0 {
            handler.step(Wait::Poll)?;
        } else {
            post(pair, arrived, SendFlags::SOLICITED)?;
            setup.settle()?;
            arrived += 1;
        }
    }
    let count = arrived as usize;
    handler.until_seen(count)?;
    let events = std::mem::take(&mut handler.events);
    check!(
        "CQ-ARM-31",
        events <= count + 1,
        "an event for each completion at most",
        "{events}"
    );
    let seen = std::mem::take(&mut handler.seen);
    check_eq!(
        "CQ-ARM-31",
        seen,
        (0..arrived).collect::<Vec<_>>(),
        "wr_ids"
    );
    setup.successes(pair.a.send_cq, count)?;
    Ok(())
}

const SENDERS: usize = 4;
const MESSAGES: u64 = 200;

scenario!(safe_handler_misses_nothing_of_many_senders:
    "CQ-ARM-31", "CQ-ARM-37"; needs THREADS; hazards MAY_HANG);
fn safe_handler_misses_nothing_of_many_senders(setup: &Setup<'_>) -> Result {
    let pairs = many_to_one(setup)?;
    let mut handler = Handler::start(setup, &pairs[0].b, Arm::NEXT, 8)?;
    thread::scope(|scope| -> Result {
        let senders: Vec<_> = pairs
            .iter()
            .map(|pair| scope.spawn(|| send_all(&pair.a)))
            .collect();
        let handled = handler.until_seen(SENDERS * MESSAGES as usize);
        for sender in senders {
            sender.join().expect("a sender does not panic")?;
        }
        handled
    })?;
    handler.seen.sort_unstable();
    let all: Vec<_> = (0..SENDERS as u64 * MESSAGES).collect();
    check_eq!(["CQ-ARM-31", "CQ-ARM-37"], handler.seen, all, "wr_ids");
    Ok(())
}

/// Pairs with their receives on one CQ, all of them posted; the wr_id of each is its own.
fn many_to_one<'b>(setup: &'b Setup<'_>) -> Result<Vec<Pair<'b>>> {
    let options = PairOptions {
        cap: QpCap {
            max_send_wr: MESSAGES as u32,
            max_recv_wr: MESSAGES as u32,
            ..QpCap::default()
        },
        recv_cqe: (SENDERS as u64 * MESSAGES) as i32,
        mem: 4096,
        ..PairOptions::default()
    };
    let first = setup.pair(options)?;
    let mut pairs = vec![first];
    while pairs.len() < SENDERS {
        let a = setup.end(setup.ctx_a(), options)?;
        let b = setup.end_on(first.b.send_cq, first.b.recv_cq, options)?;
        pairs.push(setup.connect(a, b, options)?);
    }
    let mut wr_ids = 0..;
    for pair in &pairs {
        for wr_id in wr_ids.by_ref().take(MESSAGES as usize) {
            pair.b.recv(wr_id, 8)?;
        }
    }
    Ok(pairs)
}

/// Unsignaled, so that nothing has to be polled in between.
fn send_all(a: &End<'_>) -> Result {
    let sges = [a.sge(0, 8)];
    for wr_id in 0..MESSAGES {
        a.post(SendWr::send(wr_id, &sges).unsignaled())?;
    }
    Ok(())
}

const ROUNDS: u32 = 100;

scenario!(completion_beside_a_request_fires_or_is_seen: "CQ-ARM-37"; needs THREADS);
fn completion_beside_a_request_fires_or_is_seen(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    for round in 0..ROUNDS {
        let barrier = Barrier::new(2);
        let seen = thread::scope(|scope| -> Result<usize> {
            let sender = scope.spawn(|| {
                barrier.wait();
                post(&pair, 1, PLAIN)
            });
            barrier.wait();
            (0..round * 20).for_each(|_| spin_loop());
            let armed = setup.arm(b.recv_cq, Arm::NEXT);
            let seen = setup.poll_cq(b.recv_cq, &mut [Wc::default()]);
            sender.join().expect("the sender does not panic")?;
            armed?;
            Ok(seen?)
        })?;
        // One that must come is waited for, however long the message takes.
        let first = if seen == 0 {
            let event = setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-37");
            in_case(&format!("round {round}"), event)?;
            1
        } else {
            0
        };
        let fired = first + setup.cq_events(b.channel)?.len();
        let case = format!("round {round}: seen {seen}, events {fired}");
        check!("CQ-ARM-37", fired <= 1, "at most one event", "{case}");
        setup.successes(b.recv_cq, 1 - seen)?;
        setup.successes(pair.a.send_cq, 1)?;
        if fired == 0 {
            deliver(setup, &pair, PLAIN)?;
            setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-37")?;
        }
    }
    Ok(())
}
