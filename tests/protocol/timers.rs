//! Retries and waits: their number and their times.

use core::time::Duration;

use crate::common::{checked, settle};
use crate::link::{Kind, Link, Work, statuses};
use verbs_api::lab::Shape;
use verbs_api::{Cause, Element, ErrorKind, QpState, QpType, RcParams, Verbs, Wait, WcStatus};
use verbs_sim::SimConfig;

/// TMR-01, TMR-03, TMR-04: with a dead peer a request is sent n + 1 times, one time-out after the
/// other; one time-out after the last comes RETRY_EXC_ERR.
#[test]
fn a_dead_peer_costs_all_retries_and_their_time() {
    for retry_cnt in 0..=7_u8 {
        for timeout in [1, 8, 14, 18] {
            let wait = Duration::from_nanos(4096 << timeout);
            let sim = checked(SimConfig::new());
            let params = RcParams {
                timeout,
                retry_cnt,
                ..RcParams::default()
            };
            let link = Link::new(&sim, QpType::Rc, &params);
            sim.destroy_qp(link.peer, Wait::Poll).unwrap();
            sim.lab().unwrap().tap();
            link.near.send(link.qp, 1, 0, 8);
            settle(&sim);
            let tries = u32::from(retry_cnt) + 1;
            let times: Vec<_> = sim
                .lab()
                .unwrap()
                .tapped()
                .iter()
                .map(|packet| packet.at)
                .collect();
            let expected: Vec<_> = (0..tries).map(|n| wait * n).collect();
            assert_eq!(times, expected, "retry_cnt {retry_cnt}, timeout {timeout}");
            assert_eq!(sim.lab().unwrap().now(), wait * tries);
            assert_eq!(statuses(&link.near.drain()), [WcStatus::RetryExcErr]);
            assert_eq!(link.near.state(link.qp), QpState::Err);
        }
    }
}

/// TMR-01, TMR-10: time-out code 0 waits forever; the error state ends it.
#[test]
fn without_a_time_out_work_stays_outstanding() {
    let sim = checked(SimConfig::new());
    let params = RcParams {
        timeout: 0,
        ..RcParams::default()
    };
    let link = Link::new(&sim, QpType::Rc, &params);
    sim.destroy_qp(link.peer, Wait::Poll).unwrap();
    link.near.send(link.qp, 1, 0, 8);
    settle(&sim);
    sim.lab()
        .unwrap()
        .advance(Duration::from_secs(1000))
        .unwrap();
    assert_eq!(link.near.drain(), []);
    link.near.fail(link.qp);
    assert_eq!(statuses(&link.near.drain()), [WcStatus::WrFlushErr]);
}

/// The waits by their code, in units of 10 us (TMR-06).
const RNR_WAITS: [u64; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

/// RNR-01, RNR-03, RNR-05, RNR-06, TMR-06: without a receive a request is sent n + 1 times, each
/// after the time that the receiver's answer gives; then comes RNR_RETRY_EXC_ERR, and nothing at
/// the receiver.
#[test]
fn a_receiver_that_is_not_ready_costs_all_rnr_retries_and_their_waits() {
    let latency = Duration::from_micros(1);
    for (code, units) in (0..).zip(RNR_WAITS) {
        for rnr_retry in [0, 1, 3, 6] {
            let sim = checked(SimConfig::new().link(Shape::new().delay(latency)));
            let params = RcParams {
                // The time-out must not be in the way of the longest wait.
                timeout: 0,
                rnr_retry,
                min_rnr_timer: code,
                ..RcParams::default()
            };
            let link = Link::new(&sim, QpType::Rc, &params);
            sim.lab().unwrap().tap();
            link.near.send(link.qp, 1, 0, 8);
            settle(&sim);
            let tapped = sim.lab().unwrap().tapped();
            let times: Vec<_> = link.requests(&tapped).map(|packet| packet.at).collect();
            let period = Duration::from_micros(10 * units) + 2 * latency;
            let expected: Vec<_> = (0..=rnr_retry.into()).map(|n| period * n).collect();
            assert_eq!(times, expected, "code {code}, rnr_retry {rnr_retry}");
            let answers = tapped.iter().filter_map(|packet| packet.packet.syndrome);
            let codes: Vec<_> = answers.map(|syndrome| syndrome.rnr_timer()).collect();
            assert_eq!(codes, vec![Some(code); times.len()]);
            assert_eq!(statuses(&link.near.drain()), [WcStatus::RnrRetryExcErr]);
            assert_eq!(link.near.state(link.qp), QpState::Err);
            assert_eq!(link.far.drain(), []);
            let event = sim.get_async_event(link.far.context, Wait::Poll);
            assert_eq!(event.unwrap_err().kind(), ErrorKind::WouldBlock);
        }
    }
}

/// RNR-02, TMR-04: rnr_retry 7 has no limit. An error names the timer that keeps the simulator from
/// settling; with a receive all ends well.
#[test]
fn endless_rnr_retry_is_a_stall_that_names_its_timer() {
    let sim = checked(SimConfig::new().horizon(Duration::from_secs(1)));
    let link = Link::new(&sim, QpType::Rc, &RcParams::default());
    link.near.send(link.qp, 1, 0, 8);
    let error = sim.lab().unwrap().settle().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stalled);
    let Cause::Stall(stall) = error.cause() else {
        panic!("{error}");
    };
    let timers: Vec<_> = stall
        .timers
        .iter()
        .map(|timer| (timer.of, timer.what))
        .collect();
    assert_eq!(timers, [(Element::Qp(link.qp), "RNR timer")]);
    assert_eq!(link.near.drain(), []);
    link.far.recv(link.peer, 1, 0, 8);
    settle(&sim);
    assert_eq!(statuses(&link.near.drain()), [WcStatus::Success]);
}

/// TMR-11, RNR-07, RNR-08: a long wait for a receive uses up no other retries, and what is posted
/// behind waits too.
#[test]
fn work_behind_a_wait_for_a_receive_waits_in_order() {
    for kind in [Kind::Send, Kind::WriteImm] {
        let sim = checked(SimConfig::new());
        let params = RcParams {
            retry_cnt: 0,
            ..RcParams::default()
        };
        let link = Link::new(&sim, QpType::Rc, &params);
        let program = [kind, Kind::Write, Kind::Read].map(|kind| Work::new(kind, 3000));
        link.fill(&program);
        link.post(&program);
        sim.lab().unwrap().advance(Duration::from_secs(10)).unwrap();
        assert_eq!((link.near.drain(), link.far.drain()), (vec![], vec![]));
        assert_eq!(
            link.far.read(link.layout.coming(1), 3000),
            [0; 3000],
            "the write has not begun"
        );
        link.post_receives(&program);
        settle(&sim);
        link.results().assert_like(&program, "after a long wait");
    }
}

/// RNR-04: progress restores the RNR retries.
#[test]
fn progress_restores_the_rnr_retries() {
    let sim = checked(SimConfig::new());
    let params = RcParams {
        rnr_retry: 2,
        min_rnr_timer: 20,
        ..RcParams::default()
    };
    let link = Link::new(&sim, QpType::Rc, &params);
    for wr_id in 0..5 {
        link.near.send(link.qp, wr_id, 0, 8);
        // Past the second try, and before the third, which is the last.
        sim.lab()
            .unwrap()
            .advance(Duration::from_millis(15))
            .unwrap();
        link.far.recv(link.peer, wr_id, 0, 8);
        settle(&sim);
        assert_eq!(
            statuses(&link.near.drain()),
            [WcStatus::Success],
            "message {wr_id}"
        );
    }
}
