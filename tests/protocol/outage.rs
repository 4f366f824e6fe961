//! Links and ports that go down for a time, by fault rules.

use core::time::Duration;

use verbs_api::lab::{Fault, FaultGuard, Lab};
use verbs_api::{AsyncEventType, PortState, QpType, RcParams, Verbs, Wait, WcStatus};
use verbs_sim::{Mode, Sim, SimConfig};

use crate::common::{End, pair, settle};
use crate::link::{Link, statuses};

const US: Duration = Duration::from_micros(1);
const MS: Duration = Duration::from_millis(1);

/// TMR-04, TMR-05: a link that comes up before the last retry costs nothing but time; one that
/// stays down longer costs the connection.
#[test]
fn link_that_is_down_within_the_retries_is_survived() {
    let timeout = Duration::from_nanos(4096 << 14);
    let params = RcParams {
        retry_cnt: 3,
        ..RcParams::default()
    };
    // The tries are at 0, 1, 2 and 3 times the time-out from the start, which is at 1 us.
    for (until, status) in [
        (2 * timeout, WcStatus::Success),
        (3 * timeout + US, WcStatus::Success),
        (3 * timeout + 2 * US, WcStatus::RetryExcErr),
    ] {
        for cut_off in [false, true] {
            for node in [0, 1] {
                let sim = Sim::new(SimConfig::new());
                let link = Link::new(&sim, QpType::Rc, &params);
                let down = Fault::link_down(node).down_at(US).up_at(until);
                let down = if cut_off { down } else { down.peer(1 - node) };
                let guard = FaultGuard::new(&sim, down).unwrap();
                sim.advance(US).unwrap();
                link.far.recv(link.peer, 1, 0, 8);
                link.near.send(link.qp, 1, 0, 8);
                settle(&sim);
                assert_eq!(statuses(&link.near.drain()), [status], "up at {until:?}");
                let lost = if until == 2 * timeout { 2 } else { 3 };
                let lost = lost + u64::from(status != WcStatus::Success);
                assert_eq!(guard.fired(), lost, "up at {until:?}");
            }
        }
    }
}

/// ASYNC-09: a port that goes down and up at times that a rule names reports it then, also to
/// waiting threads; connections survive it within their retries. Settling does not wait for it.
#[test]
fn port_goes_down_and_up_when_a_rule_says() {
    let outage = Fault::port_down(1, 1).down_at(5 * MS);
    for mode in [Mode::Stepped, Mode::RealTime] {
        let sim = Sim::new(SimConfig::new().mode(mode));
        let link = Link::new(&sim, QpType::Rc, &RcParams::default());
        let guard = FaultGuard::new(&sim, outage.clone().up_at(30 * MS)).unwrap();
        settle(&sim);
        let next = || {
            let event = sim.get_async_event(link.far.context, Wait::Forever);
            let event = event.unwrap();
            sim.ack_async_event(link.far.context, &event).unwrap();
            event.event_type
        };
        assert_eq!(next(), AsyncEventType::PortErr);
        assert!(sim.now() >= 5 * MS);
        link.far.recv(link.peer, 1, 0, 8);
        link.near.send(link.qp, 1, 0, 8);
        assert_eq!(next(), AsyncEventType::PortActive);
        assert!(sim.now() >= 30 * MS);
        settle(&sim);
        assert_eq!(statuses(&link.near.drain()), [WcStatus::Success]);
        assert_eq!(guard.fired(), 1);
    }
    // One that is over is down at once; the rule takes it along when it goes.
    let sim = Sim::new(SimConfig::new().mode(Mode::Inline));
    sim.advance(6 * MS).unwrap();
    let context = sim.open_device("sim1").unwrap();
    let state = || sim.query_port(context, 1).unwrap().state;
    let guard = FaultGuard::new(&sim, outage.clone()).unwrap();
    assert_eq!(state(), PortState::Down);
    drop(guard);
    assert_eq!(state(), PortState::Active);
    let _guard = FaultGuard::new(&sim, outage.up_at(7 * MS)).unwrap();
    sim.advance(MS / 2).unwrap();
    assert_eq!(state(), PortState::Down);
    sim.advance(MS / 2).unwrap();
    assert_eq!(state(), PortState::Active);
}

/// A partition cuts the links it names and no other.
#[test]
fn link_that_is_down_is_no_other_link() {
    let sim = Sim::new(SimConfig::new().nodes(3));
    let ends = ["sim0", "sim1", "sim2"].map(|name| End::open(&sim, name, 64, 4096));
    let params = RcParams {
        retry_cnt: 0,
        ..RcParams::default()
    };
    for (fault, cut) in [
        (Fault::link_down(0).peer(1), [true, false, false, false]),
        (Fault::link_down(0), [true, true, false, false]),
        (Fault::link_down(2), [false, true, true, false]),
    ] {
        let _guard = FaultGuard::new(&sim, fault.clone()).unwrap();
        for ((a, b), cut) in [(0, 1), (0, 2), (1, 2), (0, 0)].into_iter().zip(cut) {
            let (near, far) = (&ends[a], &ends[b]);
            let (qp, peer) = pair((near, far), QpType::Rc, 4, &params);
            far.recv(peer, 1, 64, 8);
            near.send(qp, 2, 0, 8);
            settle(&sim);
            let (sent, received) = (near.drain(), far.drain());
            let mut all: Vec<_> = sent.iter().chain(&received).collect();
            all.sort_by_key(|wc| wc.wr_id);
            let last = all.last().map(|wc| wc.status);
            let expected = if cut {
                WcStatus::RetryExcErr
            } else {
                WcStatus::Success
            };
            assert_eq!(last, Some(expected), "{fault:?}: {a} to {b}");
            for (end, qp) in [(near, qp), (far, peer)] {
                sim.destroy_qp(qp, Wait::Poll).unwrap();
                end.drain();
            }
        }
    }
}
