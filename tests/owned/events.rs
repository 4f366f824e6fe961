//! Events as guards: acknowledged when dropped, and holding their object until then.

use std::mem;
use std::thread;

use verbs_api::lab::Lab;
use verbs_api::owned::Element;
use verbs_api::{Arm, AsyncEventType, Cause, ErrorKind, QpType, RcParams, Wait};

use crate::setup::{End, Setup, pair, recv, send, wr_ids};

/// One event of the CQ of the near end, and what it takes to make another.
macro_rules! event {
    ($setup:expr, $ends:expr, $qps:expr) => {{
        $ends[0].cq.req_notify(Arm::NEXT).unwrap();
        recv(&$qps[0], 1);
        send(&$qps[1], 2);
        $setup.settle();
        $ends[0].channel.get_event(Wait::Poll).unwrap().unwrap()
    }};
}

/// CHAN-34, CHAN-35: an event holds its CQ; destroying returns an error instead of waiting, and
/// works once the event is dropped.
#[test]
fn a_cq_goes_after_its_events() {
    let setup = Setup::stepped();
    let (ends, qps) = pair(&setup);
    let event = event!(setup, ends, qps);
    assert_eq!(event.cq(), &ends[0].cq);
    let cq = ends[0].cq.clone();
    drop((ends, qps));
    let refused = cq.destroy().unwrap_err();
    assert_eq!(refused.error.kind(), ErrorKind::Busy);
    drop(event);
    refused.object.destroy().unwrap();
    setup.assert_nothing_lives();
}

/// The last handle of a CQ can be that in its event.
#[test]
fn an_event_outlives_all_handles_of_its_cq() {
    let setup = Setup::stepped();
    let (ends, qps) = pair(&setup);
    let event = event!(setup, ends, qps);
    drop((ends, qps));
    assert_eq!(setup.live(0).cqs, 1);
    assert_eq!(wr_ids(event.cq()), [1]);
    drop(event);
    setup.assert_nothing_lives();
}

/// An event that is forgotten leaks its CQ and what that was made from; nothing waits, all else
/// goes.
#[test]
fn a_forgotten_event_leaks_its_cq_and_nothing_else() {
    let setup = Setup::stepped();
    let (ends, qps) = pair(&setup);
    mem::forget(event!(setup, ends, qps));
    drop((ends, qps));
    let live = setup.live(0);
    assert_eq!((live.cqs, live.channels, live.contexts), (1, 1, 1));
    assert_eq!((live.qps, live.mrs, live.pds), (0, 0, 0));
}

/// ASYNC-03: as for completion events; a CQ and a QP that overran.
#[test]
fn an_asynchronous_event_holds_its_object_and_leaks_it_when_forgotten() {
    for forget in [false, true] {
        let setup = Setup::stepped();
        let ends = [End::open(&setup, "sim0"), End::open(&setup, "sim1")];
        let small = ends[0].context.cq(1).create().unwrap();
        let qp = ends[0].pd.qp(QpType::Rc, &small, &ends[0].cq);
        let qp = qp.create().unwrap();
        let peer = ends[1].qp(QpType::Rc);
        qp.connect_rc(&peer, &RcParams::default()).unwrap();
        for _ in 0..2 {
            recv(&peer, 0);
            send(&qp, 0);
        }
        setup.settle();
        let take = || ends[0].context.get_async_event(Wait::Poll).unwrap();
        let (first, second) = (take().unwrap(), take().unwrap());
        assert!(take().is_none());
        assert_eq!(first.event_type(), AsyncEventType::CqErr);
        assert_eq!(first.element(), &Element::Cq(small.clone()));
        assert_eq!(second.event_type(), AsyncEventType::QpFatal);
        assert_eq!(second.element(), &Element::Qp(qp.clone()));
        drop((ends, small, qp, peer));
        let live = setup.live(0);
        assert_eq!(
            (live.cqs, live.qps, live.pds),
            (2, 1, 1),
            "the events hold them"
        );
        drop(first);
        if forget {
            mem::forget(second);
            assert_eq!(setup.live(0).qps, 1);
        } else {
            drop(second);
            setup.assert_nothing_lives();
        }
    }
}

/// A port has no object: its event can be dropped, or not.
#[test]
fn port_events_hold_the_context_alone() {
    let setup = Setup::stepped();
    let context = setup.open("sim0");
    setup.sim.set_port(context.handle(), 1, false).unwrap();
    let event = context.get_async_event(Wait::Poll).unwrap().unwrap();
    assert_eq!(event.element(), &Element::Port(1));
    assert!(event.to_string().contains("PORT_ERR"), "{event}");
    drop(context);
    drop(event);
    setup.assert_nothing_lives();
}

/// CHAN-44 has no equivalent: a thread that waits holds the channel, and what others drop is
/// destroyed after the wait.
#[test]
fn a_channel_on_which_a_thread_waits_goes_after_the_wait() {
    let setup = Setup::inline();
    let (ends, qps) = pair(&setup);
    setup.watched(|| {
        let channel = ends[0].channel.clone();
        let waiter = thread::spawn(move || channel.get_event(Wait::Forever).unwrap_err());
        drop((ends, qps));
        setup.sim.close();
        let error = waiter.join().unwrap();
        assert!(matches!(error.cause(), Cause::LostWakeup(_)), "{error}");
    });
    setup.assert_nothing_lives();
}

/// One thread reads events while another drops the CQs and QPs they are about: an event is either a
/// guard that holds its object, or passed over; in the end nothing is left, and no thread waits for
/// an acknowledgement.
#[test]
fn objects_dropped_while_their_events_are_read_leave_nothing_behind() {
    const ROUNDS: u64 = 300;
    let setup = Setup::inline();
    let ends = [End::open(&setup, "sim0"), End::open(&setup, "sim1")];
    setup.watched(|| {
        thread::scope(|scope| {
            scope.spawn(|| {
                while let Ok(Some(event)) = ends[0].channel.get_event(Wait::Forever) {
                    event.cq().poll().unwrap();
                }
            });
            scope.spawn(|| while ends[0].context.get_async_event(Wait::Forever).is_ok() {});
            for round in 0..ROUNDS {
                let cq = ends[0].context.cq(1).channel(&ends[0].channel);
                let cq = cq.create().unwrap();
                cq.req_notify(Arm::NEXT).unwrap();
                let qp = ends[0].pd.qp(QpType::Rc, &cq, &cq).create().unwrap();
                let peer = ends[1].qp(QpType::Rc);
                qp.connect_rc(&peer, &RcParams::default()).unwrap();
                for _ in 0..round % 3 {
                    recv(&peer, 0);
                    send(&qp, 0);
                }
            }
            setup.sim.close();
        });
    });
    drop(ends);
    setup.assert_nothing_lives();
}
