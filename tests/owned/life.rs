//! How long objects live: any order of dropping is right, and destroying says what is in the way.

use std::any::Any;

use proptest::prelude::*;
use verbs_api::lab::{Fault, Lab};
use verbs_api::owned::{DestroyError, RecvWr, SendWr};
use verbs_api::{Access, AhAttr, Cause, Error, ErrorKind, Gid, QpType, RcParams, Verb, Wait};

use crate::setup::{End, Setup, drain, pair, recv, send};

/// Everything there is, in use: clones, posted and finished work, events, a batch half read.
fn everything(setup: &Setup) -> Vec<Box<dyn Any>> {
    let (ends, [near, far]) = pair(setup);
    let mut all: Vec<Box<dyn Any>> = Vec::new();
    for (end, qp) in ends.iter().zip([&near, &far]) {
        let mr = end.small_mr();
        qp.post_recv(RecvWr::new(1, &[mr.sge(..)])).unwrap();
    }
    let mr = ends[0].small_mr();
    near.post_send(SendWr::send(2, &[mr.sge(..)]).unsignaled())
        .unwrap();
    send(&near, 3);
    send(&near, 4); // waits for a receive
    let datagrams = ends[1].qp(QpType::Ud);
    datagrams.activate(1, 7).unwrap();
    let gid = ends[0].context.query_gid(1, 0).unwrap();
    let ah = ends[1].pd.create_ah(&AhAttr::global(1, 0, gid)).unwrap();
    datagrams
        .post_send(SendWr::send(5, &[]).to(&ah, 1, 7))
        .unwrap();
    // A CQ that overruns, for its event.
    let small = ends[0].context.cq(1).create().unwrap();
    let doomed = ends[0]
        .pd
        .qp(QpType::Rc, &small, &ends[0].cq)
        .create()
        .unwrap();
    let peer = ends[1].qp(QpType::Rc);
    doomed.connect_rc(&peer, &RcParams::default()).unwrap();
    for _ in 0..2 {
        recv(&peer, 6);
        send(&doomed, 7);
    }
    setup.settle_a_while();
    let mut batch = ends[1].cq.wait(Wait::Forever).unwrap().unwrap();
    batch.next();
    ends[0].cq.req_notify(verbs_api::Arm::NEXT).unwrap();
    recv(&far, 8);
    setup.settle_a_while();
    all.push(Box::new(
        ends[0].channel.get_event(Wait::Poll).unwrap().unwrap(),
    ));
    for _ in 0..2 {
        all.push(Box::new(
            ends[0]
                .context
                .get_async_event(Wait::Poll)
                .unwrap()
                .unwrap(),
        ));
    }
    all.push(Box::new(batch));
    for qp in [near, far, datagrams, doomed, peer] {
        all.push(Box::new(qp.clone()));
        all.push(Box::new(qp));
    }
    for End {
        context,
        pd,
        mr,
        channel,
        cq,
    } in ends
    {
        all.push(Box::new(mr.clone()));
        all.push(Box::new((context, pd, cq.clone())));
        all.push(Box::new(mr));
        all.push(Box::new(channel));
        all.push(Box::new(cq));
    }
    all.push(Box::new(ah));
    all.push(Box::new(small));
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// LIFE-01, LIFE-02: whatever is dropped first, all is destroyed, and nothing waits.
    #[test]
    fn dropped_in_any_order_everything_is_destroyed(
        inline in any::<bool>(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 64),
    ) {
        let setup = if inline { Setup::inline() } else { Setup::stepped() };
        let mut all = everything(&setup);
        for index in order {
            if !all.is_empty() {
                drop(all.swap_remove(index.index(all.len())));
            }
        }
        prop_assert!(all.is_empty());
        setup.assert_nothing_lives();
    }
}

fn refusal<T>(result: Result<(), DestroyError<T>>) -> (Error, T) {
    let refused = result.expect_err("something is in the way");
    (refused.error, refused.object)
}

/// An error names the obstacle to destroying an object, the object is returned, and can be
/// destroyed without the obstacle. (PD-01, CQ-DESTROY-01, CHAN-38 require the same of raw objects.)
#[test]
fn destroying_what_is_used_gives_it_back_and_says_why() {
    let setup = Setup::stepped();
    let (ends, [near, far]) = pair(&setup);
    let [end, other_end] = ends;
    let End {
        context,
        pd,
        mr,
        channel,
        cq,
    } = end;
    near.post_recv(RecvWr::new(1, &[mr.sge(..8)])).unwrap();
    let (error, mr) = refusal(mr.destroy());
    assert_eq!(
        (error.verb(), error.kind()),
        (Verb::DeregMr, ErrorKind::Busy)
    );
    assert_eq!(
        error.to_string(),
        "ibv_dereg_mr: EBUSY: mr#0 is held by 1 others: clones of it, objects made from it, work \
         requests that use it, or events of it"
    );
    let (error, pd) = refusal(pd.destroy());
    assert_eq!(
        (error.verb(), error.kind()),
        (Verb::DeallocPd, ErrorKind::Busy)
    );
    let (error, cq) = refusal(cq.destroy());
    assert_eq!(
        (error.verb(), error.kind()),
        (Verb::DestroyCq, ErrorKind::Busy)
    );
    let (error, channel) = refusal(channel.destroy());
    assert_eq!(
        (error.verb(), error.kind()),
        (Verb::DestroyCompChannel, ErrorKind::Busy)
    );
    let (error, context) = refusal(context.close());
    assert_eq!(
        (error.verb(), error.kind()),
        (Verb::CloseDevice, ErrorKind::Busy)
    );
    let clone = near.clone();
    let (error, near) = refusal(near.destroy());
    assert_eq!(
        (error.verb(), error.kind()),
        (Verb::DestroyQp, ErrorKind::Busy)
    );
    drop(clone);

    // They came back as good as before.
    send(&far, 2);
    setup.settle();
    assert_eq!(drain(&cq)[0].wr_id, 1);
    mr.destroy().unwrap();
    near.destroy().unwrap();
    pd.destroy().unwrap();
    cq.destroy().unwrap();
    channel.destroy().unwrap();
    context.close().unwrap();
    drop((far, other_end));
    setup.assert_nothing_lives();
}

/// The error of the verb itself is given too, and the next attempt is a new one.
#[test]
fn destroying_says_what_the_device_says() {
    let setup = Setup::stepped();
    let mr = End::open(&setup, "sim0").small_mr();
    // The first is of the end's own region.
    let fault = Fault::fail(Verb::DeregMr, ErrorKind::Io).nth(2);
    setup.sim.inject(fault).unwrap();
    drop(
        setup
            .open("sim0")
            .alloc_pd()
            .unwrap()
            .alloc_mr(1, Access::empty()),
    );
    let (error, mr) = refusal(mr.destroy());
    assert_eq!(
        (error.kind(), error.cause()),
        (ErrorKind::Io, &Cause::Injected)
    );
    mr.destroy().unwrap();
    setup.assert_nothing_lives();
}

/// Dropping cannot tell an error: the object stays, with what it was made from, and goes as soon as
/// it can.
#[test]
fn what_cannot_be_destroyed_when_it_is_dropped_goes_later() {
    let setup = Setup::stepped();
    let context = setup.open("sim0");
    let fault = Fault::fail(Verb::DeallocPd, ErrorKind::NoMemory);
    setup.sim.inject(fault.clone().first(2)).unwrap();
    drop(context.alloc_pd().unwrap()); // fails, and fails again at once
    assert_eq!(setup.live(0).pds, 1);
    drop(context.create_comp_channel().unwrap());
    assert_eq!(setup.live(0).pds, 0);

    // A verb that never succeeds leaks the object and the device it is on, and nothing else.
    setup.sim.inject(fault).unwrap();
    let end = End::open(&setup, "sim0");
    drop((end, context));
    let live = setup.live(0);
    assert_eq!((live.contexts, live.pds), (1, 1));
    assert_eq!((live.mrs, live.cqs, live.channels), (0, 0, 0));
}

/// LIFE-03: objects are made, shared, used and dropped by many threads.
#[test]
fn objects_shared_between_threads_are_destroyed_once() {
    let setup = Setup::inline();
    let (ends, qps) = pair(&setup);
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (end, qp) = (ends[thread % 2].clone(), qps[thread % 2].clone());
            scope.spawn(move || {
                for round in 0..100 {
                    let mr = end.small_mr();
                    mr.write(0, &[thread as u8; 8]).unwrap();
                    let own = end.context.cq(4).channel(&end.channel).create().unwrap();
                    let idle = end.pd.qp(QpType::Rc, &own, &end.cq).create().unwrap();
                    drop((own, mr));
                    drop(idle);
                    // One region for all: the bytes are of one thread or of another.
                    let bytes = [round, thread as u8];
                    end.mr.write(0, &bytes).unwrap();
                    end.mr.read(0, &mut [0; 2]).unwrap();
                    if round == 0 {
                        recv(&qp, 0);
                        drain(&end.cq);
                    }
                    qp.state().unwrap();
                }
            });
        }
    });
    drop((ends, qps));
    setup.assert_nothing_lives();
}

/// MCAST-06: a queue pair that goes leaves its groups; one that is still held by others may have
/// left them, which changes nothing.
#[test]
fn a_queue_pair_that_goes_leaves_its_groups() {
    let setup = Setup::stepped();
    let end = End::open(&setup, "sim0");
    let groups = [1, 2].map(|last| {
        let mut gid = [0; 16];
        (gid[0], gid[15]) = (0xff, last);
        Gid(gid)
    });
    let member = |groups: &[Gid]| {
        let qp = end.qp(QpType::Ud);
        for group in groups {
            qp.attach_mcast(*group, 0).unwrap();
        }
        qp
    };
    drop(member(&groups));
    member(&groups).destroy().unwrap();
    let qp = member(&groups);
    qp.detach_mcast(groups[0], 0).unwrap();
    let refused = qp.detach_mcast(groups[0], 0).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    qp.destroy().unwrap();
    let raw = member(&groups[..1]);
    let verbs = end.context.verbs();
    verbs.detach_mcast(raw.handle(), groups[0], 0).unwrap();
    drop(raw);
    drop(end);
    setup.assert_nothing_lives();
}
