//! What posted work holds, and the numbers it comes back with.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use verbs_api::lab::{Lab, TraceEvent};
use verbs_api::owned::{Dest, RecvWr, SendWr, Sge};
use verbs_api::{
    Access, Advice, AdviseFlags, AhAttr, Cause, DmInit, ErrorKind, MrInit, MrMemory, Object,
    QpModify, QpState, QpType, RcParams, SendFlags, SendOps, Wait, WcOpcode, WcStatus,
};
use verbs_sim::{Problem, SimConfig};

use crate::setup::{End, Setup, drain, pair, recv, send, wr_ids};

/// SQ-17: a region that the program drops stays until the completion of its work is polled, and so
/// the work succeeds.
#[test]
fn work_holds_its_region_until_its_completion_is_polled() {
    let setup = Setup::stepped();
    let (ends, [near, far]) = pair(&setup);
    let (from, into) = (ends[0].small_mr(), ends[1].small_mr());
    from.write(0, b"received").unwrap();
    far.post_recv(RecvWr::new(1, &[into.sge(..)])).unwrap();
    near.post_send(SendWr::send(2, &[from.sge(..)])).unwrap();
    let raw = into.handle();
    drop((from, into));
    setup.settle();
    assert_eq!((setup.live(0).mrs, setup.live(1).mrs), (2, 2));
    assert_eq!(drain(&ends[0].cq)[0].status, WcStatus::Success);
    assert_eq!((setup.live(0).mrs, setup.live(1).mrs), (1, 2));
    let wc = ends[1].cq.poll().unwrap().next().unwrap();
    assert_eq!((wc.wr_id, wc.byte_len), (1, 8));
    assert_eq!(
        setup.live(1).mrs,
        1,
        "{raw} is destroyed with its last holder"
    );
}

/// Numbers that these objects give to the device are shown nowhere: not in the trace, nor in
/// errors, nor in the diagnosis.
#[test]
fn what_is_shown_has_the_numbers_of_the_program() {
    const SENDS: u64 = 0x5e4d;
    const RECEIVES: u64 = 0x4ecf;
    let setup = Setup::new(SimConfig::new().trace(true));
    let [near, far] = ["sim0", "sim1"].map(|name| End::open(&setup, name));
    let srq = far.pd.srq(4).create().unwrap();
    for srq in [None, Some(&srq)] {
        let from = near.qp(QpType::Rc);
        let to = far.pd.qp(QpType::Rc, &far.cq, &far.cq);
        let to = srq.into_iter().fold(to, |to, srq| to.srq(srq));
        let to = to.create().unwrap();
        from.connect_rc(&to, &RcParams::default()).unwrap();
        let room = [far.mr.sge(..8)];
        let receive = [RecvWr::new(RECEIVES, &room)];
        match srq {
            Some(srq) => srq.post_recv(receive).unwrap(),
            None => to.post_recv(receive).unwrap(),
        }
        let refused = far.mr.write(0, &[1]).unwrap_err().to_string();
        assert!(refused.contains("work request 0x4ecf of "), "{refused}");
        let longer = [near.mr.sge(..9)];
        from.post_send(SendWr::send(SENDS, &longer)).unwrap();
        setup.settle();
        assert_eq!(wr_ids(&near.cq), [SENDS]);
        assert_eq!(wr_ids(&far.cq), [RECEIVES]);
    }
    let mut shown = Vec::new();
    for record in setup.sim.trace() {
        match record.event {
            TraceEvent::Completion { wc, .. } => shown.push(wc.wr_id),
            TraceEvent::Call { call } if call.starts_with("ibv_post") => {
                let own = [" 0x5e4d 9 B", "0x4ecf 8 B"];
                assert!(own.iter().any(|own| call.contains(own)), "{call}");
            }
            _ => {}
        }
    }
    shown.sort_unstable();
    assert_eq!(shown, [RECEIVES, RECEIVES, SENDS, SENDS]);
    let mut failed = Vec::new();
    for finding in setup.sim.diagnose().findings() {
        if let Problem::Failed(work) = &finding.problem {
            failed.push(work.wr_id);
        }
    }
    failed.sort_unstable();
    assert_eq!(failed, shown);
}

/// WC-19, QP-FLUSH-01: unsignaled work is released by the next completion of its queue, of whatever
/// kind; a completion of the other queue does not affect it.
#[test]
fn unsignaled_work_is_released_by_a_later_completion_of_its_queue() {
    for fails in [false, true] {
        let setup = Setup::stepped();
        let (ends, [near, far]) = pair(&setup);
        for wr_id in 0..4 {
            recv(&far, wr_id);
        }
        for wr_id in 0..3 {
            let mr = ends[0].small_mr();
            let list = [mr.sge(..0)];
            let empty = SendWr::send(wr_id, &[]).unsignaled();
            let held = SendWr::send(wr_id, &list).unsignaled();
            near.post_send([empty, held]).unwrap();
            recv(&far, wr_id);
        }
        recv(&near, 9);
        recv(&near, 9);
        send(&far, 9);
        setup.settle();
        assert_eq!(wr_ids(&ends[0].cq), [9], "a receive");
        assert_eq!(setup.live(0).mrs, 4);
        if fails {
            near.modify(&QpModify::to(QpState::Err)).unwrap();
            near.post_send(SendWr::send(5, &[]).unsignaled()).unwrap();
        } else {
            recv(&far, 0);
            send(&near, 5);
        }
        setup.settle();
        let sent = drain(&ends[0].cq);
        let sent = sent.iter().find(|wc| wc.opcode == WcOpcode::Send);
        assert_eq!(sent.map(|wc| wc.wr_id), Some(5));
        assert_eq!(setup.live(0).mrs, 1);
    }
}

/// Work that will not be executed any more is released at once: its QP is reset, or destroyed.
#[test]
fn work_of_a_qp_that_is_reset_or_destroyed_is_released() {
    let setup = Setup::stepped();
    let (ends, [near, _far]) = pair(&setup);
    let post = || {
        let mr = ends[0].small_mr();
        near.post_recv(RecvWr::new(1, &[mr.sge(..)])).unwrap();
        mr
    };
    let mr = post();
    let refused = mr.destroy().unwrap_err();
    near.modify(&QpModify::to(QpState::Reset)).unwrap();
    refused.object.destroy().unwrap();
    near.modify(&reinit()).unwrap();
    let mr = post();
    let refused = mr.destroy().unwrap_err();
    near.destroy().unwrap();
    refused.object.destroy().unwrap();
}

fn reinit() -> QpModify {
    use verbs_api::QpAttrMask as M;
    QpModify::to(QpState::Init)
        .set(M::PKEY_INDEX, |_| {})
        .set(M::PORT, |attr| attr.port_num = 1)
        .set(M::ACCESS_FLAGS, |_| {})
}

/// CQ-DESTROY-08: completions of a destroyed QP come out with the program's numbers, where the
/// device keeps them, while another QP of the same CQ goes on.
#[test]
fn completions_outlive_their_qp_with_the_numbers_of_the_program() {
    for purges in [false, true] {
        let mut behavior = verbs_api::behavior::Behavior::SPEC;
        behavior.cqe_purge = purges;
        let setup = Setup::new(SimConfig::new().behavior(behavior));
        let (ends, [near, far]) = pair(&setup);
        let (other, peer) = (ends[0].qp(QpType::Rc), ends[1].qp(QpType::Rc));
        other.connect_rc(&peer, &RcParams::default()).unwrap();
        for wr_id in 70..73 {
            recv(&far, 0);
            send(&near, wr_id);
        }
        setup.settle();
        near.destroy().unwrap();
        recv(&peer, 0);
        send(&other, 80);
        setup.settle();
        let expected: &[u64] = if purges { &[80] } else { &[70, 71, 72, 80] };
        assert_eq!(wr_ids(&ends[0].cq), expected, "purges: {purges}");
    }
}

/// A loop over completions that ends early, or panics, loses none.
#[test]
fn completions_not_taken_come_again() {
    let setup = Setup::stepped();
    let (ends, [near, far]) = pair(&setup);
    for wr_id in 0..6 {
        recv(&far, 0);
        send(&near, wr_id);
    }
    setup.settle();
    let cq = &ends[0].cq;
    let first = cq.poll().unwrap().next().unwrap();
    assert_eq!(first.wr_id, 0);
    let panics = || {
        for wc in cq.poll().unwrap() {
            assert_ne!(wc.wr_id, 2, "as this test wants it");
        }
    };
    catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
    let mut some = [Default::default(); 2];
    assert_eq!(cq.poll_into(&mut some).unwrap(), 2);
    assert_eq!(some.map(|wc| wc.wr_id), [3, 4]);
    let waited = cq.wait(Wait::Forever).unwrap().unwrap();
    assert_eq!(waited.as_slice()[0].wr_id, 5);
}

/// SQ-01, SQ-03, RQ-02: a list stops at the first that cannot be posted; what comes before runs,
/// and nothing holds the rest.
#[test]
fn what_is_refused_is_not_held() {
    let setup = Setup::stepped();
    let (ends, [near, far]) = pair(&setup);
    let other_pd = ends[0].context.alloc_pd().unwrap();
    let foreign = other_pd.alloc_mr(8, Access::LOCAL_WRITE).unwrap();
    let (good, held) = (ends[0].small_mr(), ends[0].small_mr());
    let (good_list, held_list) = ([good.sge(..)], [held.sge(4..)]);
    for (bad, what) in [
        (
            foreign.sge(..),
            "ibv_post_recv: EINVAL: the mr is of another pd",
        ),
        (
            good.sge(4..9),
            "ibv_post_recv: EINVAL: end of the sge is 9, allowed are 4 to 8",
        ),
        (
            good.sge(9..),
            "ibv_post_recv: EINVAL: start of the sge is 9, allowed are 0 to 8",
        ),
        (
            good.sge(3..=usize::MAX),
            "ibv_post_recv: EINVAL: end of the sge is 9223372036854775807, allowed are 3 to 8",
        ),
    ] {
        let list = [bad];
        let refused = near
            .post_recv([
                RecvWr::new(1, &good_list),
                RecvWr::new(2, &list),
                RecvWr::new(3, &held_list),
            ])
            .unwrap_err();
        assert_eq!(refused.bad_wr, 1);
        assert_eq!(refused.error.to_string(), what);
    }
    // Four are posted, room is for twelve more.
    let list = vec![RecvWr::new(4, &held_list); 14];
    let refused = near.post_recv(&list).unwrap_err();
    assert_eq!(
        (refused.bad_wr, refused.error.kind()),
        (12, ErrorKind::NoMemory)
    );
    for _ in 0..16 {
        send(&far, 0);
    }
    setup.settle();
    assert_eq!(wr_ids(&ends[0].cq), [[1; 4].as_slice(), &[4; 12]].concat());
    good.destroy().unwrap();
    held.destroy().unwrap();
    foreign.destroy().unwrap();
}

/// CQ-OVR-04: work whose completion was lost holds its region until its QP is destroyed.
#[test]
fn an_overrun_loses_completions_but_no_region() {
    let setup = Setup::stepped();
    let ends = [End::open(&setup, "sim0"), End::open(&setup, "sim1")];
    let small = ends[0].context.cq(1).create().unwrap();
    let near = ends[0].pd.qp(QpType::Rc, &small, &small).create().unwrap();
    let far = ends[1].qp(QpType::Rc);
    near.connect_rc(&far, &RcParams::default()).unwrap();
    for wr_id in 0..3 {
        recv(&far, 0);
        let mr = ends[0].small_mr();
        near.post_send(SendWr::send(wr_id, &[mr.sge(..0)])).unwrap();
    }
    setup.settle();
    assert_eq!(near.state().unwrap(), QpState::Err);
    let mut polled = [Default::default(); 4];
    assert_eq!(small.poll_into(&mut polled), Ok(1));
    assert_eq!(polled[0].wr_id, 0);
    let error = small.poll().unwrap_err();
    assert_eq!(error.cause(), &Cause::CqOverrun);
    assert_eq!(setup.live(0).mrs, 3);
    near.destroy().unwrap();
    assert_eq!(setup.live(0).mrs, 1);
    small.destroy().unwrap();
}

/// UD-01, AH-04: an address handle is held as a region is.
#[test]
fn a_datagram_holds_its_address_handle() {
    let setup = Setup::stepped();
    let ends = [End::open(&setup, "sim0"), End::open(&setup, "sim1")];
    let qps = ends.each_ref().map(|end| end.qp(QpType::Ud));
    for qp in &qps {
        qp.activate(1, 0x11).unwrap();
    }
    let into = ends[1].pd.alloc_mr(48, Access::LOCAL_WRITE).unwrap();
    qps[1].post_recv(RecvWr::new(1, &[into.sge(..)])).unwrap();
    ends[0].mr.write(0, b"datagram").unwrap();
    let gid = ends[1].context.query_gid(1, 0).unwrap();
    let ah = ends[0].pd.create_ah(&AhAttr::global(1, 0, gid)).unwrap();
    let list = [ends[0].mr.sge(..8)];
    let wr = SendWr::send(2, &list).to(&ah, qps[1].num(), 0x11);
    qps[0].post_send(wr).unwrap();
    let refused = ah.destroy().unwrap_err();
    assert_eq!(refused.error.kind(), ErrorKind::Busy);
    setup.settle();
    assert_eq!(wr_ids(&ends[0].cq), [2]);
    refused.object.destroy().unwrap();
    assert_eq!(wr_ids(&ends[1].cq), [1]);
    assert_eq!(into.read_vec(40, 8).unwrap(), b"datagram");

    let foreign = ends[1].pd.create_ah(&AhAttr::global(1, 0, gid)).unwrap();
    let wr = SendWr::send(2, &[]).to(&foreign, 1, 0x11);
    assert!(matches!(wr.dest, Dest::Ud { .. }));
    let refused = qps[0].post_send(wr).unwrap_err();
    let must_share = "pd";
    let object = Object::Ah;
    assert_eq!(
        refused.error.cause(),
        &Cause::Mismatch { object, must_share }
    );
}

/// SQ-25, CQ-POLL-05: several threads post on the QPs of one CQ, several poll it. Each number comes
/// once, and everything is released.
#[test]
fn threads_that_post_and_poll_get_each_number_once() {
    const POSTERS: u64 = 4;
    const EACH: u64 = 400;
    let setup = Setup::inline();
    let (ends, [near, far]) = pair(&setup);
    let (other, peer) = (ends[0].qp(QpType::Rc), ends[1].qp(QpType::Rc));
    other.connect_rc(&peer, &RcParams::default()).unwrap();
    let (seen, count) = (Mutex::new(BTreeSet::new()), AtomicUsize::new(0));
    const TOTAL: usize = (POSTERS * EACH) as usize;
    setup.watched(|| {
        thread::scope(|scope| {
            for poster in 0..POSTERS {
                let (ends, [near, far, other, peer]) = (&ends, [&near, &far, &other, &peer]);
                scope.spawn(move || {
                    let (qp, peer) = if poster % 2 == 0 {
                        (near, far)
                    } else {
                        (other, peer)
                    };
                    for i in 0..EACH {
                        while peer.post_recv(RecvWr::new(0, &[])).is_err() {
                            drain(&ends[1].cq);
                        }
                        let mr = ends[0].small_mr();
                        let list = [mr.sge(..0)];
                        let wr = SendWr::send(poster << 32 | i, &list);
                        let wr = if i % 4 == 0 { wr } else { wr.unsignaled() };
                        // The last one is signaled, so that all are released.
                        let wr = if i == EACH - 1 {
                            SendWr::send(wr.wr_id, &list)
                        } else {
                            wr
                        };
                        while qp.post_send(wr).is_err() {
                            thread::yield_now();
                        }
                    }
                });
            }
            for _ in 0..3 {
                scope.spawn(|| {
                    let expected = (0..EACH).filter(|i| i % 4 == 0 || *i == EACH - 1).count();
                    while count.load(Ordering::Relaxed) < expected * POSTERS as usize {
                        for wc in ends[0].cq.poll().unwrap() {
                            assert_eq!(wc.status, WcStatus::Success, "{wc}");
                            assert!(seen.lock().unwrap().insert(wc.wr_id), "{wc} came twice");
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                        thread::yield_now();
                    }
                });
            }
        });
    });
    assert!(seen.into_inner().unwrap().len() < TOTAL);
    // What was posted behind a queue's last signaled one was posted by the other thread.
    drop((near, far, other, peer));
    assert_eq!(setup.live(0).mrs, 1);
}

/// SQ-27: a batch is posted as a whole or not at all, and one that is not holds nothing.
#[test]
fn batch_holds_what_it_uses_if_it_is_posted() {
    let setup = Setup::stepped();
    let ends = [End::open(&setup, "sim0"), End::open(&setup, "sim1")];
    let [near, far] = ends.each_ref().map(|end| {
        let qp = end.pd.qp(QpType::Rc, &end.cq, &end.cq);
        qp.send_ops(SendOps::SEND).create().unwrap()
    });
    near.connect_rc(&far, &RcParams::default()).unwrap();
    let mr = ends[0].small_mr();
    let (all, beyond) = ([mr.sge(..)], [mr.sge(..9)]);
    for bad in [
        SendWr::send(2, &beyond),
        SendWr::rdma_write(2, &all, mr.remote(0)),
        SendWr::send(2, &all).inline(),
    ] {
        let refused = near.post_batch(&[SendWr::send(1, &all), bad]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    }
    recv(&far, 1);
    recv(&far, 2);
    setup.settle();
    assert_eq!(wr_ids(&ends[0].cq), []);
    near.post_batch(&[SendWr::send(3, &all[..0]), SendWr::send(4, &[])])
        .unwrap();
    setup.settle();
    assert_eq!(wr_ids(&ends[0].cq), [3, 4]);
    assert_eq!(wr_ids(&ends[1].cq), [1, 2]);
    let lives = setup.live(0).mrs;
    drop(mr);
    assert_eq!(setup.live(0).mrs, lives - 1);
}

/// SQ-08, SQ-09: inline data needs no region, nor its bytes after the post.
#[test]
fn inline_data_holds_nothing() {
    let setup = Setup::stepped();
    let [near, far] = ["sim0", "sim1"].map(|name| End::open(&setup, name));
    let from = near.pd.qp(QpType::Rc, &near.cq, &near.cq);
    let from = from.max_inline_data(16).create().unwrap();
    let to = far.qp(QpType::Rc);
    from.connect_rc(&to, &RcParams::default()).unwrap();
    let into = far.small_mr();
    to.post_recv(RecvWr::new(1, &[into.sge(..)])).unwrap();
    let bytes = b"no regio".to_vec();
    let wr = SendWr::send(2, &[]).inline_data(&bytes);
    from.post_send(wr).unwrap();
    drop(bytes);
    assert_eq!(setup.live(0).mrs, 1);
    setup.settle();
    assert_eq!((wr_ids(&near.cq), wr_ids(&far.cq)), (vec![2], vec![1]));
    assert_eq!(into.read_vec(0, 8).unwrap(), b"no regio");
    let mut without_flag = SendWr::send(3, &[]).inline_data(&[0; 8]);
    without_flag.flags = SendFlags::SIGNALED;
    for bad in [SendWr::send(3, &[]).inline_data(&[0; 17]), without_flag] {
        let refused = from.post_send(bad).unwrap_err().error;
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    }
}

/// MR-13, MR-18: regions that share memory go one by one; a null region is as large as can be.
#[test]
fn regions_share_memory_or_have_none() {
    let setup = Setup::stepped();
    let end = End::open(&setup, "sim0");
    let whole = end.pd.alloc_mr(64, Access::LOCAL_WRITE).unwrap();
    let part = MrInit::new(8, Access::ZERO_BASED).memory(MrMemory::Of(whole.handle(), 16));
    let part = end.pd.alloc_mr_as(&part).unwrap();
    assert_eq!((part.addr(), part.length()), (0, 8));
    whole.write(16, b"together").unwrap();
    drop(whole);
    assert_eq!(part.read_vec(0, 8).unwrap(), b"together");
    let null = end.pd.alloc_null_mr().unwrap();
    assert_eq!(null.length(), usize::MAX);
    assert!(null.read_vec(0, 8).is_err());
    drop((part, null, end));
    setup.assert_nothing_lives();
}

/// ODP-07: advice names parts of on-demand regions, which are in them.
#[test]
fn advice_is_about_parts_of_on_demand_regions() {
    let setup = Setup::stepped();
    let end = End::open(&setup, "sim0");
    let access = Access::LOCAL_WRITE | Access::ON_DEMAND;
    let region = end.pd.alloc_mr(4096, access).unwrap();
    let pinned = end.pd.alloc_mr(64, Access::LOCAL_WRITE).unwrap();
    let advise = |list: &[Sge<'_>]| {
        let result = end
            .pd
            .advise_mr(Advice::PrefetchWrite, AdviseFlags::FLUSH, list);
        result.map_err(|error| error.kind())
    };
    assert_eq!(advise(&[region.sge(..), region.sge(64..128)]), Ok(()));
    assert_eq!(advise(&[]), Err(ErrorKind::Invalid));
    assert_eq!(advise(&[pinned.sge(..)]), Err(ErrorKind::NotFound));
    assert_eq!(advise(&[region.sge(..4097)]), Err(ErrorKind::Invalid));
    drop((region, pinned, end));
}

/// DM-08, DM-10: a region holds its device memory, which is freed after it.
#[test]
fn region_holds_its_device_memory() {
    let setup = Setup::stepped();
    let end = End::open(&setup, "sim0");
    let dm = end.pd.context().alloc_dm(&DmInit::new(64)).unwrap();
    dm.write(16, b"device's").unwrap();
    let access = Access::ZERO_BASED | Access::LOCAL_WRITE;
    let mr = end.pd.reg_dm_mr(&dm, 16, 8, access).unwrap();
    assert_eq!((mr.addr(), mr.length(), dm.length()), (0, 8, 64));
    let busy = dm.clone().destroy().unwrap_err();
    assert_eq!(busy.error.kind(), ErrorKind::Busy);
    let mut seen = [0; 8];
    dm.read(16, &mut seen).unwrap();
    assert_eq!(seen, *b"device's");
    drop((busy, dm));
    assert!(mr.read_vec(0, 8).is_err());
    drop((mr, end));
    setup.assert_nothing_lives();
}

/// PD-05, PD-06: a parent domain holds its domains, and its objects work with those of the others.
#[test]
fn parent_domain_holds_its_domains() {
    let setup = Setup::stepped();
    let end = End::open(&setup, "sim0");
    let td = end.pd.context().alloc_td().unwrap();
    let parent = end.pd.alloc_parent_domain(Some(&td)).unwrap();
    let second = parent.alloc_parent_domain(None).unwrap();
    assert_eq!((setup.live(0).pds, setup.live(0).tds), (3, 1));
    let busy = td.clone().destroy().unwrap_err();
    assert_eq!(busy.error.kind(), ErrorKind::Busy);
    let mr = second.alloc_mr(64, Access::LOCAL_WRITE).unwrap();
    let context = end.pd.context();
    let cq = context.cq(4).create().unwrap();
    let qp = parent.qp(QpType::Rc, &cq, &cq).create().unwrap();
    let peer = end.pd.qp(QpType::Rc, &cq, &cq).create().unwrap();
    qp.connect_rc(&peer, &RcParams::default()).unwrap();
    qp.post_send(SendWr::send(1, &[mr.sge(..8)])).unwrap();
    let other = context.alloc_pd().unwrap();
    let foreign = other.alloc_mr(8, Access::empty()).unwrap();
    assert!(qp.post_send(SendWr::send(2, &[foreign.sge(..8)])).is_err());
    drop((busy, td, parent, second, other, foreign));
    drop((qp, peer, cq, mr, end));
    setup.assert_nothing_lives();
}
