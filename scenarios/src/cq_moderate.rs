//! Moderation: an event for several completions, or for a time.

use core::time::Duration;

use verbs_api::behavior::Overrun;
use verbs_api::lab::{Fault, Lab, PacketFilter};
use verbs_api::{Arm, Capabilities, CqModeration, ErrorKind, Handle, QpCap, RcParams, Wait, Wc};

use crate::cq_ovr::{Queue, SmallCq};
use crate::failure::{check, check_eq, in_case};
use crate::{End, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    event_comes_with_the_last_of_the_count,
    only_what_was_added_since_the_request_counts,
    event_comes_when_the_period_is_over,
    period_begins_with_the_first_completion_asked_for,
    count_and_period_end_each_other,
    period_and_time_out_of_a_queue_pair_run_beside_each_other,
    no_count_or_no_period_is_off,
    only_what_was_asked_for_counts,
    new_count_holds_for_an_event_that_is_put_off,
    new_period_holds_for_an_event_that_is_put_off,
    event_that_is_put_off_comes_when_moderation_goes_off,
    numbers_make_no_event_by_themselves,
    event_that_is_put_off_goes_with_its_cq,
    event_that_is_put_off_goes_with_an_overrun,
    event_that_is_put_off_goes_with_the_device,
    period_wakes_a_thread,
    new_numbers_wake_a_thread,
    moderation_is_there_or_refused,
];

const COUNT: &str = "CQ-MOD-01";
const PERIOD: &str = "CQ-MOD-02";
const OFF: &str = "CQ-MOD-03";
const CHANGE: &str = "CQ-MOD-04";
const GOES: &str = "CQ-MOD-05";

/// A period that no traffic here takes.
const LONG: u16 = 10_000;

const INSTANT: Duration = Duration::from_nanos(1);

const fn micros(period: u16) -> Duration {
    Duration::from_micros(period as u64)
}

/// A pair whose receives complete on a CQ that is moderated. The clock goes on only where the
/// scenario lets it, and while a message is on its way.
#[derive(Clone, Copy)]
struct Moderated<'b> {
    setup: &'b Setup<'b>,
    pair: Pair<'b>,
    b: End<'b>,
}

impl<'b> Moderated<'b> {
    fn new(setup: &'b Setup<'_>) -> Result<Self> {
        Self::with(setup, RcParams::default())
    }

    fn with(setup: &'b Setup<'_>, rc: RcParams) -> Result<Self> {
        // Sends are not polled: where there is nothing to poll, the clock goes on.
        let pair = setup.pair(PairOptions {
            rc,
            send_cqe: 256,
            cap: QpCap {
                max_send_wr: 256,
                ..QpCap::default()
            },
            ..PairOptions::default()
        })?;
        let b = pair.b;
        Ok(Self { setup, pair, b })
    }

    fn lab(&self) -> &'b dyn Lab {
        self.setup.lab()
    }

    fn set(&self, cq_count: u16, cq_period: u16) -> Result {
        let numbers = CqModeration {
            cq_count,
            cq_period,
        };
        Ok(self.setup.modify_cq(self.b.recv_cq, &numbers)?)
    }

    fn arm(&self, arm: Arm) -> Result {
        self.setup.arm(self.b.recv_cq, arm)
    }

    /// A completion is added at this very moment, and polled.
    fn arrives(&self) -> Result {
        self.comes(false)
    }

    /// The same, of a message that was sent with the solicited bit.
    fn solicited_arrives(&self) -> Result {
        self.comes(true)
    }

    fn comes(&self, solicited: bool) -> Result {
        self.b.recv(1, 8)?;
        if solicited {
            self.pair.a.send_solicited(1, 8)?
        } else {
            self.pair.a.send(1, 8)?
        }
        self.setup.successes(self.b.recv_cq, 1).map(drop)
    }

    /// The clock goes on to this time.
    fn until(&self, time: Duration) -> Result {
        let left = time.checked_sub(self.lab().now());
        Ok(self.lab().advance(left.unwrap_or_default())?)
    }

    /// There is no event at this moment.
    fn silent(&self, rule: &'static str) -> Result {
        let event = self.setup.get_cq_event(self.b.channel, Wait::Poll);
        expect_err(event.map(drop), ErrorKind::WouldBlock, rule).map(drop)
    }

    /// There is one event at this moment.
    fn fires(&self, rule: &'static str) -> Result {
        let event = self.setup.get_cq_event(self.b.channel, Wait::Poll);
        let event = event.rule(rule)?;
        check_eq!(rule, event.cq, self.b.recv_cq);
        self.setup.ack_cq_events(event.cq, 1)?;
        self.silent(rule)
    }

    /// The event comes at this time, and not before.
    fn fires_at(&self, time: Duration, rule: &'static str) -> Result {
        self.until(time - INSTANT)?;
        self.silent(rule)?;
        self.until(time)?;
        self.fires(rule)
    }

    /// Nothing is asked for any more, and nothing put off.
    fn is_unarmed(&self, rule: &'static str) -> Result {
        self.arrives()?;
        self.lab().advance(2 * micros(u16::MAX))?;
        self.silent(rule)
    }
}

scenario!(event_comes_with_the_last_of_the_count: "CQ-MOD-01"; needs CQ_MODERATION, LAB);
fn event_comes_with_the_last_of_the_count(setup: &Setup<'_>) -> Result {
    let cq = Moderated::new(setup)?;
    for count in [1, 2, 3, 8] {
        cq.set(count, u16::MAX)?;
        for round in 0..2 {
            cq.arm(Arm::NEXT)?;
            for _ in 1..count {
                cq.arrives()?;
                in_case(&format!("{count}, round {round}"), cq.silent(COUNT))?;
            }
            cq.arrives()?;
            in_case(&format!("{count}, round {round}"), cq.fires(COUNT))?;
        }
        cq.is_unarmed(COUNT)?;
    }
    Ok(())
}

scenario!(only_what_was_added_since_the_request_counts: "CQ-MOD-01"; needs CQ_MODERATION, LAB);
fn only_what_was_added_since_the_request_counts(setup: &Setup<'_>) -> Result {
    let cq = Moderated::new(setup)?;
    cq.set(3, u16::MAX)?;
    for before in [1, 2, 3, 4] {
        (0..before).try_for_each(|_| cq.arrives())?;
        cq.arm(Arm::NEXT)?;
        for _ in 0..2 {
            cq.silent(COUNT)?;
            cq.arrives()?;
        }
        cq.silent(COUNT)?;
        cq.arrives()?;
        cq.fires(COUNT)?;
    }
    Ok(())
}

scenario!(event_comes_when_the_period_is_over: "CQ-MOD-02"; needs CQ_MODERATION, LAB);
fn event_comes_when_the_period_is_over(setup: &Setup<'_>) -> Result {
    let cq = Moderated::new(setup)?;
    for period in [1, 2, 1000, u16::MAX] {
        cq.set(u16::MAX, period)?;
        for _ in 0..2 {
            cq.arm(Arm::NEXT)?;
            cq.arrives()?;
            let end = cq.lab().now() + micros(period);
            in_case(&format!("{period} us"), cq.fires_at(end, PERIOD))?;
        }
        cq.is_unarmed(PERIOD)?;
    }
    Ok(())
}

scenario!(period_begins_with_the_first_completion_asked_for:
    "CQ-MOD-02"; needs CQ_MODERATION, LAB);
fn period_begins_with_the_first_completion_asked_for(setup: &Setup<'_>) -> Result {
    let cq = Moderated::new(setup)?;
    cq.set(u16::MAX, LONG)?;
    cq.arrives()?;
    cq.lab().advance(2 * micros(LONG))?;
    cq.arm(Arm::NEXT)?;
    cq.lab().advance(2 * micros(LONG))?;
    cq.silent(PERIOD)?;
    cq.arrives()?;
    let end = cq.lab().now() + micros(LONG);
    // Others put it off no further.
    for _ in 0..3 {
        cq.lab().advance(micros(LONG / 5))?;
        cq.arrives()?;
        cq.silent(PERIOD)?;
    }
    cq.fires_at(end, PERIOD)
}

scenario!(count_and_period_end_each_other:
    "CQ-MOD-01", "CQ-MOD-02"; needs CQ_MODERATION, LAB);
/// Whichever limit is reached first makes the one event; the next request starts again with both.
fn count_and_period_end_each_other(setup: &Setup<'_>) -> Result {
    let cq = Moderated::new(setup)?;
    cq.set(3, LONG)?;
    for _ in 0..2 {
        cq.arm(Arm::NEXT)?;
        cq.arrives()?;
        cq.arrives()?;
        let end = cq.lab().now() + micros(LONG);
        cq.until(end)?;
        cq.fires(PERIOD)?;
        cq.arm(Arm::NEXT)?;
        for _ in 0..2 {
            cq.arrives()?;
            cq.silent(COUNT)?;
        }
        cq.arrives()?;
        cq.fires(COUNT)?;
        cq.arm(Arm::NEXT)?;
        cq.lab().advance(2 * micros(LONG))?;
        cq.silent(PERIOD)?;
        cq.arrives()?;
        let end = cq.lab().now() + micros(LONG);
        cq.fires_at(end, PERIOD)?;
    }
    Ok(())
}

scenario!(period_and_time_out_of_a_queue_pair_run_beside_each_other:
    "CQ-MOD-02", "TMR-17"; needs CQ_MODERATION, LAB);
/// A request of the same device is lost while an event is put off. One is over long before the
/// other.
fn period_and_time_out_of_a_queue_pair_run_beside_each_other(setup: &Setup<'_>) -> Result {
    for (timeout, period) in [(8, LONG), (14, 1000)] {
        let cq = Moderated::with(
            setup,
            RcParams {
                timeout,
                ..RcParams::default()
            },
        )?;
        cq.set(u16::MAX, period)?;
        cq.arm(Arm::NEXT)?;
        cq.arrives()?;
        let end = cq.lab().now() + micros(period);
        // The acknowledgement is on its way no more.
        cq.lab().advance(micros(100))?;
        let to_a = PacketFilter::EVERY.dest_qpn(cq.pair.a.qp_num);
        cq.lab().inject(Fault::drop(to_a).nth(1))?;
        cq.b.write(2, 8)?;
        // A time-out may take up to four times as long.
        let done = cq.lab().now() + 4 * Duration::from_nanos(4096 << timeout);
        let is_done = || -> Result {
            cq.until(done)?;
            let count = setup.poll_cq(cq.b.send_cq, &mut [Wc::default()])?;
            check_eq!("TMR-17", count, 1, "completions of the lost request");
            Ok(())
        };
        if done < end {
            is_done()?;
            cq.fires_at(end, PERIOD)?;
        } else {
            cq.fires_at(end, PERIOD)?;
            is_done()?;
        }
    }
    Ok(())
}

scenario!(no_count_or_no_period_is_off: "CQ-MOD-03"; needs CQ_MODERATION, LAB);
fn no_count_or_no_period_is_off(setup: &Setup<'_>) -> Result {
    let cq = Moderated::new(setup)?;
    let first_fires = |case: &str| {
        cq.arm(Arm::NEXT)?;
        cq.silent(OFF)?;
        cq.arrives()?;
        in_case(case, cq.fires(OFF))?;
        cq.is_unarmed(OFF)
    };
    first_fires("new")?;
    for (count, period) in [(0, LONG), (4, 0), (u16::MAX, 0), (0, 0)] {
        cq.set(4, LONG)?;
        cq.set(count, period)?;
        first_fires(&format!("{count} completions, {period} us"))?;
    }
    Ok(())
}

scenario!(only_what_was_asked_for_counts:
    "CQ-MOD-01", "CQ-MOD-02"; needs CQ_MODERATION, LAB);
fn only_what_was_asked_for_counts(setup: &Setup<'_>) -> Result {
    if setup.behavior()?.recv_se_fires != Some(true) {
        return Ok(());
    }
    let cq = Moderated::new(setup)?;
    cq.set(2, LONG)?;
    cq.arm(Arm::SOLICITED)?;
    for _ in 0..3 {
        cq.arrives()?;
    }
    cq.lab().advance(2 * micros(LONG))?;
    cq.silent(PERIOD)?;
    cq.solicited_arrives()?;
    cq.silent(COUNT)?;
    cq.arrives()?;
    cq.silent(COUNT)?;
    cq.solicited_arrives()?;
    cq.fires(COUNT)?;
    cq.arm(Arm::SOLICITED)?;
    cq.arrives()?;
    cq.lab().advance(micros(LONG) / 2)?;
    cq.solicited_arrives()?;
    let end = cq.lab().now() + micros(LONG);
    cq.fires_at(end, PERIOD)
}

scenario!(new_count_holds_for_an_event_that_is_put_off:
    "CQ-MOD-04", "CQ-MOD-01"; needs CQ_MODERATION, LAB);
fn new_count_holds_for_an_event_that_is_put_off(setup: &Setup<'_>) -> Result {
    let cq = Moderated::new(setup)?;
    for (count, more) in [(1, 0), (2, 0), (3, 0), (4, 1), (5, 2), (9, 6)] {
        cq.set(7, u16::MAX)?;
        cq.arm(Arm::NEXT)?;
        (0..3).try_for_each(|_| cq.arrives())?;
        cq.silent(COUNT)?;
        cq.set(count, u16::MAX)?;
        for _ in 0..more {
            in_case(&format!("{count}"), cq.silent(CHANGE))?;
            cq.arrives()?;
        }
        in_case(&format!("{count}"), cq.fires(CHANGE))?;
        cq.is_unarmed(CHANGE)?;
    }
    Ok(())
}

scenario!(new_period_holds_for_an_event_that_is_put_off:
    "CQ-MOD-04"; needs CQ_MODERATION, LAB);
fn new_period_holds_for_an_event_that_is_put_off(setup: &Setup<'_>) -> Result {
    const GONE: u16 = 3000;
    let cq = Moderated::new(setup)?;
    // In parts of its own, since the first completion.
    for period in [1, GONE - 1, GONE, GONE + 1, GONE + 500, LONG, LONG + 2000] {
        cq.set(9, LONG)?;
        cq.arm(Arm::NEXT)?;
        cq.arrives()?;
        let first = cq.lab().now();
        cq.until(first + micros(GONE))?;
        cq.silent(CHANGE)?;
        cq.set(9, period)?;
        let result = if period <= GONE {
            cq.fires(CHANGE)
        } else {
            cq.fires_at(first + micros(period), CHANGE)
        };
        in_case(&format!("{period} us"), result)?;
        cq.is_unarmed(CHANGE)?;
    }
    Ok(())
}

scenario!(event_that_is_put_off_comes_when_moderation_goes_off:
    "CQ-MOD-04"; needs CQ_MODERATION, LAB);
fn event_that_is_put_off_comes_when_moderation_goes_off(setup: &Setup<'_>) -> Result {
    let cq = Moderated::new(setup)?;
    for (count, period) in [(0, 0), (0, LONG), (9, 0)] {
        cq.set(9, LONG)?;
        cq.arm(Arm::NEXT)?;
        cq.arrives()?;
        cq.silent(CHANGE)?;
        cq.set(count, period)?;
        let case = format!("{count} completions, {period} us");
        in_case(&case, cq.fires(CHANGE))?;
        cq.is_unarmed(CHANGE)?;
    }
    Ok(())
}

scenario!(numbers_make_no_event_by_themselves: "CQ-MOD-04"; needs CQ_MODERATION, LAB);
/// They change no request either.
fn numbers_make_no_event_by_themselves(setup: &Setup<'_>) -> Result {
    let cq = Moderated::new(setup)?;
    for armed in [false, true] {
        if armed {
            cq.arm(Arm::NEXT)?;
        }
        for (count, period) in [(1, 1), (0, 0), (3, LONG), (0, 1), (2, LONG)] {
            cq.set(count, period)?;
            cq.silent(CHANGE)?;
            cq.lab().advance(2 * micros(LONG))?;
            cq.silent(CHANGE)?;
        }
        cq.arrives()?;
        cq.silent(CHANGE)?;
        cq.arrives()?;
        if armed {
            cq.fires(CHANGE)?
        } else {
            cq.silent(CHANGE)?
        }
    }
    Ok(())
}

scenario!(event_that_is_put_off_goes_with_its_cq: "CQ-MOD-05"; needs CQ_MODERATION, LAB);
fn event_that_is_put_off_goes_with_its_cq(setup: &Setup<'_>) -> Result {
    let cq = Moderated::new(setup)?;
    cq.set(9, LONG)?;
    cq.arm(Arm::NEXT)?;
    cq.arrives()?;
    cq.silent(GOES)?;
    setup.destroy_qp(cq.b.qp, setup.wait())?;
    setup.destroy_cq(cq.b.recv_cq, Wait::Poll).rule(GOES)?;
    cq.lab().advance(2 * micros(LONG)).rule(GOES)?;
    cq.silent(GOES)
}

scenario!(event_that_is_put_off_goes_with_an_overrun: "CQ-MOD-05"; needs CQ_MODERATION, LAB);
fn event_that_is_put_off_goes_with_an_overrun(setup: &Setup<'_>) -> Result {
    let behavior = setup.behavior()?;
    if behavior.overrun != Some(Overrun::Dead) {
        return Ok(());
    }
    for queue in Queue::BOTH {
        let small = SmallCq::new(setup, queue, 3)?;
        let on = CqModeration {
            cq_count: u16::MAX,
            cq_period: u16::MAX,
        };
        setup.modify_cq(small.cq, &on)?;
        setup.arm(small.cq, Arm::NEXT)?;
        small.overrun(GOES)?;
        let mut at_once = 0;
        while let Ok(event) = setup.get_cq_event(small.channel, Wait::Poll) {
            setup.ack_cq_events(event.cq, 1)?;
            at_once += 1;
        }
        let spurious = u32::from(behavior.spurious_events == Some(true));
        check_eq!(GOES, at_once, spurious, "the events of a lost completion");
        setup.lab().advance(2 * micros(u16::MAX))?;
        let late = setup.get_cq_event(small.channel, Wait::Poll).map(drop);
        expect_err(late, ErrorKind::WouldBlock, GOES)?;
    }
    Ok(())
}

scenario!(event_that_is_put_off_goes_with_the_device: "CQ-MOD-05"; needs CQ_MODERATION, LAB);
fn event_that_is_put_off_goes_with_the_device(setup: &Setup<'_>) -> Result {
    let cq = Moderated::new(setup)?;
    cq.set(9, LONG)?;
    cq.arm(Arm::NEXT)?;
    cq.arrives()?;
    cq.lab().kill_device(cq.b.context)?;
    cq.silent(GOES)?;
    cq.lab().advance(2 * micros(LONG))?;
    cq.silent(GOES)
}

scenario!(period_wakes_a_thread: "CQ-MOD-02"; needs CQ_MODERATION, LAB, THREADS; hazards MAY_HANG);
fn period_wakes_a_thread(setup: &Setup<'_>) -> Result {
    wakes_a_thread(setup, PERIOD, |cq| Ok(cq.lab().advance(micros(LONG))?))
}

scenario!(new_numbers_wake_a_thread: "CQ-MOD-04"; needs CQ_MODERATION, LAB, THREADS; hazards MAY_HANG);
fn new_numbers_wake_a_thread(setup: &Setup<'_>) -> Result {
    wakes_a_thread(setup, CHANGE, |cq| cq.set(1, LONG))
}

/// A thread waits for an event that is put off until this.
fn wakes_a_thread(
    setup: &Setup<'_>,
    rule: &'static str,
    ends: impl FnOnce(&Moderated<'_>) -> Result,
) -> Result {
    let cq = Moderated::new(setup)?;
    cq.set(9, LONG)?;
    cq.arm(Arm::NEXT)?;
    cq.arrives()?;
    let read = || setup.event_and_ack(cq.b.channel);
    let event = setup.waits_until(rule, read, || ends(&cq))?.rule(rule)?;
    check_eq!(rule, event.cq, cq.b.recv_cq);
    Ok(())
}

scenario!(moderation_is_there_or_refused: "CQ-MOD-06");
fn moderation_is_there_or_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-MOD-06";
    let cq = setup.rc_pair()?.b.recv_cq;
    let context = cq.context();
    let max = setup.query_device_ex(context)?.cq_moderation;
    let one = CqModeration {
        cq_count: 1,
        cq_period: 1,
    };
    match setup.has(context, Capabilities::CQ_MODERATION)? {
        Some(true) => {}
        Some(false) => {
            check_eq!(RULE, max, CqModeration::default(), "the limits");
            for numbers in [one, max] {
                let refused = setup.modify_cq(cq, &numbers);
                expect_err(refused, ErrorKind::NotSupported, RULE)?;
            }
            return Ok(());
        }
        None => return Ok(()),
    }
    let useful = max.cq_count > 0 && max.cq_period > 0;
    check!(RULE, useful, "limits above 0", "{max:?}");
    for numbers in [one, max, CqModeration::default()] {
        setup.modify_cq(cq, &numbers).rule(RULE)?;
    }
    Ok(())
}
