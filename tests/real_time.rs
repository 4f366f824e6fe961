//! The clock of the machine: timers fire on their own, and a wait for a time takes that time.

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{End, pair};
use verbs_api::profile::Profile;
use verbs_api::{Arm, ErrorKind, QpType, RcParams, SendWr, Verbs, Wait, Wc, WcStatus};
use verbs_sim::{Mode, Sim, SimConfig};

/// How long a test waits before it says that something hangs.
const WATCH: Duration = Duration::from_secs(60);

fn real_time() -> Sim {
    Sim::new(SimConfig::new().mode(Mode::RealTime))
}

/// The next completion of an end.
fn one(end: &End<'_>) -> Wc {
    let start = Instant::now();
    loop {
        if let Some(wc) = end.drain().pop() {
            return wc;
        }
        assert!(start.elapsed() < WATCH, "no completion comes");
        thread::yield_now();
    }
}

/// RNR-01: the sender tries again by itself, and gets through once a receive is posted.
#[test]
fn send_without_a_receive_is_repeated_until_there_is_one() {
    let sim = real_time();
    let near = End::open(&sim, "sim0", 16, 64);
    let far = End::open(&sim, "sim1", 16, 64);
    let params = RcParams {
        // 10 us
        min_rnr_timer: 1,
        ..RcParams::default()
    };
    let (from, to) = pair((&near, &far), QpType::Rc, 4, &params);
    near.send(from, 1, 0, 8);
    assert_eq!(near.drain(), []);
    far.recv(to, 2, 0, 8);
    assert_eq!(one(&near).status, WcStatus::Success);
    assert_eq!(one(&far).wr_id, 2);
}

/// TMR-01, LIFE-07: a dead peer is noticed after all retries, and no wait is needed for
/// that.
#[test]
fn peer_that_is_gone_is_noticed_in_its_time() {
    let sim = real_time();
    let near = End::open(&sim, "sim0", 16, 64);
    let far = End::open(&sim, "sim1", 16, 64);
    let params = RcParams {
        // 4.096 us * 2^8, about 1 ms
        timeout: 8,
        retry_cnt: 3,
        ..RcParams::default()
    };
    let (qp, _) = pair((&near, &far), QpType::Rc, 4, &params);
    sim.close_device(far.context).unwrap();
    let start = Instant::now();
    near.send(qp, 1, 0, 8);
    assert_eq!(one(&near).status, WcStatus::RetryExcErr);
    // The first try and three more.
    let least = 4 * Duration::from_nanos(4096 << 8);
    assert!(start.elapsed() >= least, "{:?}", start.elapsed());
}

/// CQ-POLL-13: an acknowledgement that counts late wakes the thread that waits for it.
#[test]
fn late_acknowledgement_ends_a_wait() {
    let config = SimConfig::new().profile(Profile::ADVERSARIAL);
    let sim = Sim::new(config.mode(Mode::RealTime));
    let near = End::open(&sim, "sim0", 16, 64);
    let far = End::open(&sim, "sim1", 16, 64);
    let (qp, _) = pair((&near, &far), QpType::Rc, 4, &RcParams::default());
    let list = [near.mem.sge(0, 8)];
    for wr_id in 0..64 {
        sim.req_notify_cq(near.cq, Arm::NEXT).unwrap();
        near.post(qp, SendWr::rdma_write(wr_id, &list, far.mem.remote(0)));
        let event = sim.get_cq_event(near.channel, Wait::For(WATCH)).unwrap();
        sim.ack_cq_events(event.cq, 1).unwrap();
        let sent: Vec<_> = near
            .drain()
            .iter()
            .map(|wc| (wc.wr_id, wc.status))
            .collect();
        assert_eq!(sent, [(wr_id, WcStatus::Success)]);
    }
}

#[test]
fn wait_for_a_time_takes_that_time() {
    let sim = real_time();
    let near = End::open(&sim, "sim0", 16, 64);
    let time = Duration::from_millis(20);
    let start = Instant::now();
    let nothing = sim.get_cq_event(near.channel, Wait::For(time)).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::TimedOut);
    assert!(start.elapsed() >= time, "{:?}", start.elapsed());
}

#[test]
fn settling_waits_for_the_timers_and_the_clock_cannot_be_moved() {
    let sim = real_time();
    let near = End::open(&sim, "sim0", 16, 64);
    let far = End::open(&sim, "sim1", 16, 64);
    let params = RcParams {
        timeout: 8,
        retry_cnt: 1,
        ..RcParams::default()
    };
    let (qp, _) = pair((&near, &far), QpType::Rc, 4, &params);
    let lab = sim.lab().unwrap();
    let refused = lab.advance(Duration::from_secs(1)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotSupported);
    sim.close_device(far.context).unwrap();
    near.send(qp, 1, 0, 8);
    lab.settle().unwrap();
    assert_eq!(near.drain()[0].status, WcStatus::RetryExcErr);
}

/// A simulation that goes away with a timer running takes its thread with it.
#[test]
fn simulation_ends_while_a_timer_runs() {
    let sim = real_time();
    let near = End::open(&sim, "sim0", 16, 64);
    let far = End::open(&sim, "sim1", 16, 64);
    let (qp, _) = pair((&near, &far), QpType::Rc, 4, &RcParams::default());
    near.send(qp, 1, 0, 8);
    drop(sim);
}
