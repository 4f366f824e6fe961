//! Moderation of completion events (`ibv_modify_cq`): an event after a number of completions, or a
//! period after the first of them.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::Config;
use verbs_api::lab::Lab;
use verbs_api::{
    Arm, Cause, CompChannel, Cq, CqInit, CqModeration, Element, ErrorKind, Qp, QpCap, QpInit,
    QpType, RcParams, RecvWr, SendWr, Verbs, Wait, Wc,
};
use verbs_sim::{Sim, SimConfig};

const MICROSECOND: Duration = Duration::from_micros(1);

/// A connected pair; the receives of `far` complete in `cq`.
struct Line {
    sim: Sim,
    channel: CompChannel,
    cq: Cq,
    near: Qp,
    far: Qp,
}

impl Line {
    fn new(moderation: CqModeration) -> Self {
        Self::on(Sim::new(SimConfig::new()), moderation)
    }

    fn on(sim: Sim, moderation: CqModeration) -> Self {
        let context = sim.open_device("sim0").unwrap();
        let channel = sim.create_comp_channel(context).unwrap();
        let init = CqInit::new(64).channel(channel);
        let cq = sim.create_cq(context, &init).unwrap();
        let sends = sim.create_cq(context, &CqInit::new(64)).unwrap();
        let pd = sim.alloc_pd(context).unwrap();
        // Nothing is signaled, so that no place of the send queue is free again.
        let cap = QpCap {
            max_send_wr: 64,
            ..QpCap::default()
        };
        let init = QpInit::new(QpType::Rc, sends, cq).cap(cap);
        let near = sim.create_qp(pd, &init).unwrap();
        let far = sim.create_qp(pd, &init).unwrap();
        sim.connect_rc(near, far, &RcParams::default()).unwrap();
        sim.modify_cq(cq, &moderation).unwrap();
        Self {
            sim,
            channel,
            cq,
            near,
            far,
        }
    }

    /// A message arrives.
    fn arrive(&self, solicited: bool) {
        self.sim
            .post_recv(self.far, &[RecvWr::new(1, &[])])
            .unwrap();
        let send = SendWr::send(1, &[]).unsignaled();
        let send = if solicited { send.solicited() } else { send };
        self.sim.post_send(self.near, &[send]).unwrap();
        // The way there and back is a few microseconds.
        self.sim.advance(5 * MICROSECOND).unwrap();
        // So that queues do not fill.
        self.sim.poll_cq(self.cq, &mut [Wc::default(); 4]).unwrap();
    }

    fn has_event(&self) -> bool {
        match self.sim.get_cq_event(self.channel, Wait::Poll) {
            Ok(event) => {
                assert_eq!(event.cq, self.cq);
                self.sim.ack_cq_events(self.cq, 1).unwrap();
                true
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                false
            }
        }
    }
}

fn moderation(cq_count: u16, cq_period: u16) -> CqModeration {
    CqModeration {
        cq_count,
        cq_period,
    }
}

proptest! {
    #![proptest_config(Config::with_cases(64))]

    /// The event comes with the completion that makes up the count, and not before; what came
    /// before the request does not count.
    #[test]
    fn event_comes_with_the_last_of_the_count(
        count in 1_u16..8,
        before in 0_u16..4,
        solicited in any::<bool>(),
    ) {
        let line = Line::new(moderation(count, 10_000));
        for _ in 0..before {
            line.arrive(true);
        }
        let arm = if solicited { Arm::SOLICITED } else { Arm::NEXT };
        line.sim.req_notify_cq(line.cq, arm).unwrap();
        for arrived in 1..=count {
            prop_assert!(!line.has_event());
            if solicited {
                line.arrive(false);
                prop_assert!(!line.has_event(), "a message that is not asked for");
            }
            line.arrive(true);
            prop_assert_eq!(line.has_event(), arrived == count);
        }
        // One request, one event.
        line.arrive(true);
        line.sim.advance(20_000 * MICROSECOND).unwrap();
        prop_assert!(!line.has_event());
    }

    /// The event comes one period after the first completion, however many came since.
    #[test]
    fn event_comes_when_the_time_of_the_first_is_over(
        period in 100_u16..60_000,
        more in 0_u16..4,
    ) {
        let line = Line::new(moderation(100, period));
        line.sim.req_notify_cq(line.cq, Arm::NEXT).unwrap();
        line.arrive(false);
        for _ in 0..more {
            line.arrive(false);
        }
        let passed = 5 * (u32::from(more) + 1);
        line.sim.advance((u32::from(period) - passed - 5) * MICROSECOND).unwrap();
        prop_assert!(!line.has_event());
        line.sim.advance(10 * MICROSECOND).unwrap();
        prop_assert!(line.has_event());
    }
}

/// Either number zero: every completion makes its event, as without (CQ-ARM-26).
#[test]
fn a_number_of_zero_turns_moderation_off() {
    for off in [moderation(0, 0), moderation(0, 50), moderation(9, 0)] {
        let line = Line::new(moderation(9, 1000));
        line.sim.modify_cq(line.cq, &off).unwrap();
        line.sim.req_notify_cq(line.cq, Arm::NEXT).unwrap();
        line.arrive(false);
        assert!(line.has_event(), "{off:?}");
    }
}

/// An event that is put off follows the new numbers.
#[test]
fn a_change_holds_for_the_event_that_is_put_off() {
    for (new, comes) in [
        (moderation(0, 0), true),
        (moderation(2, 60_000), true),
        (moderation(9, 5), true),
        (moderation(3, 60_000), false),
    ] {
        let line = Line::new(moderation(9, 50_000));
        line.sim.req_notify_cq(line.cq, Arm::NEXT).unwrap();
        line.arrive(false);
        line.arrive(false);
        assert!(!line.has_event());
        line.sim.modify_cq(line.cq, &new).unwrap();
        assert_eq!(line.has_event(), comes, "{new:?}");
        line.arrive(false);
        assert_eq!(line.has_event(), !comes, "{new:?}");
    }
}

/// A wait for an event moves the clock to the end of its time; a CQ that is gone has no timer.
#[test]
fn a_wait_lets_the_time_pass_and_destruction_ends_it() {
    let line = Line::new(moderation(9, 1000));
    line.sim.req_notify_cq(line.cq, Arm::NEXT).unwrap();
    line.arrive(false);
    let start = line.sim.now();
    let event = line.sim.get_cq_event(line.channel, Wait::Forever).unwrap();
    line.sim.ack_cq_events(event.cq, 1).unwrap();
    let waited = line.sim.now() - start;
    assert!(waited > 900 * MICROSECOND && waited <= 1000 * MICROSECOND);

    line.sim.req_notify_cq(line.cq, Arm::NEXT).unwrap();
    line.arrive(false);
    for qp in [line.near, line.far] {
        line.sim.destroy_qp(qp, Wait::Poll).unwrap();
    }
    line.sim.destroy_cq(line.cq, Wait::Poll).unwrap();
    let left = line.sim.now();
    line.sim.settle().unwrap();
    assert!(line.sim.now() - left < 900 * MICROSECOND);
}

/// The error names the timer that keeps the simulator from settling.
#[test]
fn a_stall_names_the_timer_of_the_cq() {
    let config = SimConfig::new().horizon(Duration::from_millis(1));
    let line = Line::on(Sim::new(config), moderation(9, u16::MAX));
    line.sim.req_notify_cq(line.cq, Arm::NEXT).unwrap();
    line.arrive(false);
    let error = line.sim.settle().unwrap_err();
    let Cause::Stall(stall) = error.cause() else {
        panic!("{error}");
    };
    let timers: Vec<_> = stall.timers.iter().map(|timer| timer.of).collect();
    assert_eq!(timers, [Element::Cq(line.cq)]);
}
